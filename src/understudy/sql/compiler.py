"""From a statement to a compiled one, and a memory of those seen before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.errors import QueryError
from understudy.query.disjoint import disjoint_stacks
from understudy.query.marginal import Marginal
from understudy.query.text_size import USUAL, TextSize
from understudy.sql.around import split
from understudy.sql.attributes import attribute_of, grid_evaluator
from understudy.sql.canonical import canonical_key
from understudy.sql.collect import Aggregate, Averages, Collector, factors_of
from understudy.sql.compiled import CompiledAround, CompiledSql
from understudy.sql.estimate import Key, group_names
from understudy.sql.evaluate import Evaluator, Node, shown, uncast
from understudy.sql.factors import conjunction
from understudy.sql.grid import Numbers, Value, of_attribute
from understudy.sql.group import AXIS, Grouping, Part
from understudy.sql.group_by import groups_of
from understudy.sql.measured import Family
from understudy.sql.merge import nested, simplified
from understudy.sql.program import SqlProgram
from understudy.sql.read import Statement, read
from understudy.sql.remedies import unknown
from understudy.sql.scalar import FUNCTIONS
from understudy.sql.tokens import parsed, tokens_of

MAX_MARGINALS = 64
"""Marginals that one statement may need; they share its price."""

REMEMBERED = 512
"""Statements that a compiler remembers."""

REMEMBERED_CELLS = 1 << 16
"""Statements with more cells than this are compiled anew each time."""


def compile_sql(
    text: str,
    domain: Domain,
    *,
    tables: Collection[str],
    rows_public: bool = False,
    measured: Family | None = None,
    averages: Averages = "sums",
    person: tuple[str, int] | None = None,
    size: TextSize = USUAL,
) -> CompiledSql | CompiledAround:
    """A SELECT statement about `domain`, or a `QueryError` that says what to write instead. Reads no data.

    A statement around private SELECTs gives a `CompiledAround`, any other a `CompiledSql`.
    `tables` are the names that may stand after FROM; `rows_public` says that the number of all rows is known,
    `measured` which moments of measures are bought (without, measures are summed by their bins), `averages` what
    averages of bins are made of, `person` which
    column says whose row it is, and how many rows each may have, and `size` how long the statement may be.

    >>> from understudy.domain.attribute import Categories
    >>> domain = Domain((Bins.between("age", [0, 18, 65, 120]), Categories(name="sex", values=("F", "M"))))
    >>> compiled = compile_sql("SELECT sex, count(*) FROM t WHERE age < 18 GROUP BY sex", domain, tables=["t"])
    >>> [marginal.describe() for marginal in compiled.marginals]
    ['age in (0-17) by sex']
    >>> compile_sql("SELECT count(*) FROM t WHERE age < 17", domain, tables=["t"])
    Traceback (most recent call last):
    understudy.errors.QueryError: 17 is not a bin edge of age; nearest: 0 and 18: try age < 0 or age < 18
    """
    meant = _Meant(domain, tuple(tables), rows_public, measured, averages, person)
    return _understood(tokens_of(text, size), text, meant)


class SqlCompiler:
    """`compile_sql` for one domain, with a memory of the last statements, by text and by words.

    Two texts that differ in spaces, comments or the case of words are one entry; two that differ otherwise but
    ask the same share one compiled statement. Safe to use from several threads.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        tables: Collection[str],
        rows_public: bool,
        measured: Family | None = None,
        averages: Averages = "sums",
        person: tuple[str, int] | None = None,
        size: TextSize = USUAL,
    ) -> None:
        self._meant = _Meant(domain, tuple(tables), rows_public, measured, averages, person)
        self._size = size
        self._seen: OrderedDict[Hashable, CompiledSql | CompiledAround] = OrderedDict()
        self._lock = Lock()

    def compile(self, text: str) -> CompiledSql | CompiledAround:
        if (found := self._recall(text)) is not None:
            return found
        tokens = tokens_of(text, self._size)
        words = tuple(_word(token) for token in tokens)
        if (found := self._recall(words)) is None:
            fresh = _understood(tokens, text, self._meant)
            names = (
                () if isinstance(fresh, CompiledAround) else tuple(column.name for column in fresh.columns)
            )
            found = self._recall((fresh.key, names)) or fresh
            self._remember((fresh.key, names), found)
        self._remember(words, found)
        self._remember(text, found)
        return found

    def _recall(self, key: Hashable) -> CompiledSql | CompiledAround | None:
        with self._lock:
            found = self._seen.get(key)
            if found is not None:
                self._seen.move_to_end(key)
            return found

    def _remember(self, key: Hashable, compiled: CompiledSql | CompiledAround) -> None:
        cells = sum(f.weights.size for m in compiled.marginals for f in m.where.factors)
        cells += sum(marginal.size for marginal in compiled.marginals)
        if cells > REMEMBERED_CELLS:
            return
        with self._lock:
            self._seen[key] = compiled
            self._seen.move_to_end(key)
            while len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)


def _word(token: Token) -> tuple[str, str]:
    quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
    kind = token.token_type.name if quoted else ""
    return kind, token.text if quoted or token.token_type == TokenType.VAR else token.text.upper()


# ---- compiling


@dataclass(frozen=True)
class _Meant:
    """What a statement is about: the attributes, the names of the table, and what is public about its rows."""

    domain: Domain
    tables: tuple[str, ...]
    rows_public: bool
    measured: Family | None
    averages: Averages
    person: tuple[str, int] | None


def _understood(tokens: list[Token], text: str, meant: _Meant) -> CompiledSql | CompiledAround:
    domain, tables = meant.domain, meant.tables
    try:
        query = simplified(parsed(tokens, text, domain), tables, domain)
        if isinstance(query, exp.Select) and next(nested(query), None) is None:
            return _compiled(read(query, domain, tables), meant)
        taken = split(query, tables)
        inner = [
            replace(
                _compiled(read(part, domain, tables), meant), text=part.sql(dialect="duckdb", comments=False)
            )
            for part in taken.inner
        ]
    except RecursionError:
        raise QueryError(
            "the statement is nested too deep", remedy="write it with fewer parentheses"
        ) from None
    _check_marginals(sum(len(part.marginals) for part in inner))
    return CompiledAround(taken.outer.sql(dialect="duckdb", comments=False), tuple(inner))


def _compiled(statement: Statement, meant: _Meant) -> CompiledSql:
    domain = meant.domain
    statement = _as_named(statement, domain)
    grid = grid_evaluator(domain)
    where = conjunction(
        domain, grid.scope, [] if statement.where is None else factors_of(grid, statement.where)
    )
    groups = groups_of(statement, domain, grid)
    listed = groups.possible(where) if statement.group else np.ones(1, bool)
    shared = meant.rows_public and not statement.group
    cells = not groups.conditions and groups.count == groups.group_of.size
    collector = Collector(
        domain,
        grid,
        where,
        shared=shared,
        cells=cells,
        measured=meant.measured,
        averages=meant.averages,
        person=meant.person,
    )
    leaves = _Leaves(statement, groups, grid, collector)
    names = tuple(_names(domain, item.node, groups, leaves) for item in statement.items)
    columns = SqlProgram(statement, groups, {}, {}, names, {}, listed).dry_run(leaves)
    aggregates = collector.settle()
    groups, (parts, marginals) = _measured(statement, meant, grid, groups, aggregates)
    program = SqlProgram(statement, groups, aggregates, leaves.fixed, names, parts, listed)
    plain = [node.unnest() for node in statement.group]
    by = tuple(attribute_of(domain, node).name for node in plain if isinstance(node, exp.Column))
    return CompiledSql(columns, tuple(marginals), canonical_key(program, marginals), program, by)


def _as_named(statement: Statement, domain: Domain) -> Statement:
    """The statement with columns in bins not cast to text: the names of their groups are texts already."""

    def named(node: Node) -> Node:
        column = uncast(node)
        if column is node.unnest() or not isinstance(column, exp.Column):
            return node
        value = of_attribute(attribute_of(domain, column))
        is_binned = isinstance(value, Numbers) and bool((value.known & ~value.exact).any())
        return column if is_binned else node

    return replace(
        statement,
        items=tuple(replace(item, node=named(item.node)) for item in statement.items),
        group=tuple(named(node) for node in statement.group),
        order=tuple(replace(term, node=named(term.node)) for term in statement.order),
    )


class _Leaves:
    """What the parts of an expression over groups are worth: aggregates (0 for now) and functions of the group."""

    def __init__(self, statement: Statement, groups: Grouping, grid: Evaluator, collector: Collector) -> None:
        self.fixed: dict[int, Value] = {}
        self._groups = groups
        self._grid = grid
        self._collector = collector
        roots = [item.node for item in statement.items] + [term.node for term in statement.order]
        roots += [statement.having] if statement.having is not None else []
        for called in (node for root in roots for node in root.find_all(exp.Anonymous)):
            if called.name.lower() not in FUNCTIONS:
                raise unknown(called, shown(called))
        self._aggregated = {id(part) for root in roots for part in _above_aggregates(root)}
        if not statement.group and not any(id(item.node) in self._aggregated for item in statement.items):
            raise QueryError(
                "rows are private: SELECT needs an aggregate, such as count(*)",
                remedy="GROUP BY what it is listed by; SELECT DISTINCT lists the declared values",
            )

    def __call__(self, node: Node) -> Value | None:
        if id(node) not in self._aggregated:
            if id(node) not in self.fixed:
                self.fixed[id(node)] = self._groups.over_groups(self._grid.value(node), shown(node))
            return self.fixed[id(node)]
        if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup):
            kind = self._collector.register(node)
            zeros = np.zeros(self._groups.count)
            return Numbers((AXIS,), zeros, zeros, zeros, null=zeros > 0, unknown=zeros > 0, kind=kind)
        return None


def _above_aggregates(root: Node) -> list[Node]:
    """The aggregates of an expression and everything that holds one."""
    found: list[Node] = []
    for aggregate in root.find_all(exp.AggFunc):
        node: Node | None = aggregate
        while node is not None:
            found.append(node)
            node = None if node is root else node.parent
    return found


def _names(domain: Domain, node: Node, groups: Grouping, leaves: _Leaves) -> list[Key] | None:
    """The names of the groups in a column without aggregates: labels of bins, else the values themselves."""
    if next(iter(_above_aggregates(node)), None) is not None:
        return None
    of = node.unnest()
    value = leaves(node)
    assert value is not None
    if isinstance(of, exp.Column):
        attribute = attribute_of(domain, of)
        if isinstance(attribute, Bins) and group_names(value, groups.count) is None:
            codes = np.arange(float(attribute.size))
            cells = groups.over_groups(Numbers((attribute.name,), codes, codes, codes), attribute.name)
            assert isinstance(cells, Numbers)
            labels = [*attribute.labels[:-1], None] if attribute.null else attribute.labels
            return [labels[int(i)] for i in cells.point]
        return group_names(value, groups.count, attribute)
    return group_names(value, groups.count)


Parts = dict[tuple[str, str], list[tuple[int, Part]]]
"""By the key of a tally: the places of the marginals that are measured for it, and the groups of their cells."""


def _measured(
    statement: Statement,
    meant: _Meant,
    grid: Evaluator,
    groups: Grouping,
    aggregates: dict[int, Aggregate],
) -> tuple[Grouping, tuple[Parts, list[Marginal]]]:
    """The groups, and what is measured for them.

    Where averages are made of shares, counts of different rows share one price (`query.disjoint`). Then groups of
    several cells are counted one by one, if as few vectors are measured as of their cells: noise on a group is
    that on a cell, and not on all cells of the group. Otherwise cells are measured and added up.
    """
    usual = _marginals(groups, aggregates)
    counts = all(
        tally.moment is None and not tally.over and tally.query.is_counting
        for aggregate in aggregates.values()
        for tally in aggregate.tallies
    )
    if meant.averages != "shares" or not counts or groups.count == groups.group_of.size or groups.conditions:
        return groups, _checked(usual)
    single = groups_of(statement, meant.domain, grid, disjoint=True)
    if not single.conditions:
        return groups, _checked(usual)
    found = _marginals(single, aggregates)
    if len(found[1]) > MAX_MARGINALS or len(disjoint_stacks(found[1])) > len(disjoint_stacks(usual[1])):
        return groups, _checked(usual)
    return single, found


def _checked(measured: tuple[Parts, list[Marginal]]) -> tuple[Parts, list[Marginal]]:
    _check_marginals(len(measured[1]))
    return measured


def _marginals(groups: Grouping, aggregates: dict[int, Aggregate]) -> tuple[Parts, list[Marginal]]:
    """Every marginal once, whatever the number of aggregates that need it."""
    places: dict[tuple[str, Clique, str], int] = {}
    marginals: list[Marginal] = []
    parts: Parts = {}
    for aggregate in aggregates.values():
        for tally in aggregate.tallies:
            if tally.key in parts:
                continue
            parts[tally.key] = []
            for part in groups.parts(tally):
                moment = part.marginal.moment.describe() if part.marginal.moment else ""
                name = (part.marginal.where.key, part.marginal.by, moment)
                if name not in places:
                    places[name] = len(marginals)
                    marginals.append(part.marginal)
                parts[tally.key].append((places[name], part))
    return parts, marginals


def _check_marginals(count: int) -> None:
    if count > MAX_MARGINALS:
        raise QueryError(
            f"the statement needs {count} marginals, and at most {MAX_MARGINALS} share one price",
            remedy="ask for fewer aggregates, or in two statements",
        )
