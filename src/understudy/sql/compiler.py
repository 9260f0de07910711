"""From a statement to a compiled one, and a memory of those seen before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable
from hashlib import sha256
from threading import Lock

import numpy as np
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from understudy.domain.attribute import Attribute, close_to, listed
from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.errors import QueryError
from understudy.query.marginal import Marginal
from understudy.query.text_size import USUAL, TextSize
from understudy.sql.collect import Aggregate, Collector, factors_of
from understudy.sql.compiled import CompiledSql, Key, SqlProgram, group_names
from understudy.sql.evaluate import Constant, Evaluator, Node, chain, shown
from understudy.sql.factors import conjunction
from understudy.sql.grid import Bools, Numbers, Scope, Truths, Value, of_attribute, of_mask
from understudy.sql.group import AXIS, Grouping, Part, grouping
from understudy.sql.measured import Family
from understudy.sql.read import Statement, read, tokens_of
from understudy.sql.scalar import FUNCTIONS

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
    size: TextSize = USUAL,
) -> CompiledSql:
    """A SELECT statement about `domain`, or a `QueryError` that says what to write instead. Reads no data.

    `tables` are the names that may stand after FROM; `rows_public` says that the number of all rows is known,
    `measured` which moments of measures are bought (without, measures are summed by their bins), and `size` how
    long the statement may be.

    >>> from understudy.domain.attribute import Categories
    >>> domain = Domain((Bins.between("age", [0, 18, 65, 120]), Categories(name="sex", values=("F", "M"))))
    >>> compiled = compile_sql("SELECT sex, count(*) FROM t WHERE age < 18 GROUP BY sex", domain, tables=["t"])
    >>> [marginal.describe() for marginal in compiled.marginals]
    ['age in (0-17) by sex']
    >>> compile_sql("SELECT count(*) FROM t WHERE age < 17", domain, tables=["t"])
    Traceback (most recent call last):
    understudy.errors.QueryError: 17 is not a bin edge of age; nearest: 0 and 18: try age < 0 or age < 18
    """
    tokens = tokens_of(text, size)
    return _understood(tokens, text, domain, tables, rows_public=rows_public, measured=measured)


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
        size: TextSize = USUAL,
    ) -> None:
        self.domain = domain
        self.measured: Family | None = measured
        self.tables = tuple(tables)
        self.rows_public = rows_public
        self.size = size
        self._seen: OrderedDict[Hashable, CompiledSql] = OrderedDict()
        self._lock = Lock()

    def compile(self, text: str) -> CompiledSql:
        if (found := self._recall(text)) is not None:
            return found
        tokens = tokens_of(text, self.size)
        words = tuple(_word(token) for token in tokens)
        if (found := self._recall(words)) is None:
            fresh = _understood(
                tokens, text, self.domain, self.tables, rows_public=self.rows_public, measured=self.measured
            )
            names = tuple(column.name for column in fresh.columns)
            found = self._recall((fresh.key, names)) or fresh
            self._remember((fresh.key, names), found)
        self._remember(words, found)
        self._remember(text, found)
        return found

    def _recall(self, key: Hashable) -> CompiledSql | None:
        with self._lock:
            found = self._seen.get(key)
            if found is not None:
                self._seen.move_to_end(key)
            return found

    def _remember(self, key: Hashable, compiled: CompiledSql) -> None:
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


# ---- the grid of the declared attributes


def grid_evaluator(domain: Domain) -> Evaluator:
    """Expressions over the cells of a domain."""
    scope = Scope.of(domain)

    def leaf(node: Node) -> Value | None:
        return of_attribute(attribute_of(domain, node)) if isinstance(node, exp.Column) else None

    def compare(node: Node, operator: str, constant: Constant) -> Truths:
        attribute = attribute_of(domain, node)
        return of_mask((attribute.name,), attribute.compare(operator, constant))

    def cut(node: Node, clique: Clique, undecided: Bools) -> QueryError:
        return _cut_bin(domain, node, clique, undecided)

    return Evaluator(scope, leaf, compare_attribute=compare, cut=cut, functions=FUNCTIONS)


def attribute_of(domain: Domain, node: Node) -> Attribute:
    """The attribute that a column names: exactly, or up to case where that is one attribute only."""
    name = node.name
    if name in domain:
        return domain[name]
    alike = [attribute for attribute in domain if attribute.name.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    hint = "a text stands in single quotes"
    if getattr(node.this, "quoted", False):  # as other languages write a text
        text = "'" + name[:60].replace("'", "''") + "'"
        hint = f"in SQL double quotes name a column; if it is a value, write {text}"
    close = close_to(name[:60], domain.names)
    raise QueryError(
        f"there is no attribute {name[:60]!r}",
        remedy=f"the domain has: {listed(close, domain.names, '`domain.names`')}; {hint}",
        suggestions=close,
    )


def _cut_bin(domain: Domain, node: Node, clique: Clique, undecided: Bools) -> QueryError:
    cell = tuple(int(i) for i in np.argwhere(np.atleast_1d(undecided))[0])
    for name, code in zip(clique, cell, strict=False):
        attribute = domain[name]
        if isinstance(attribute, Bins) and code < attribute.proper_size:
            edges = (*attribute.starts, attribute.upper)
            return QueryError(
                f"{shown(node)} cuts the bin {attribute.labels[code]} of {name}: it holds for some of its values "
                f"and not for others",
                remedy=f"Let it change at an edge, {edges[code]} or {edges[code + 1]}",
                suggestions=(str(edges[code]), str(edges[code + 1])),
            )
    return QueryError(f"{shown(node)} is not decided by the declared cells")


# ---- compiling


def _understood(
    tokens: list[Token],
    text: str,
    domain: Domain,
    tables: Collection[str],
    *,
    rows_public: bool,
    measured: Family | None,
) -> CompiledSql:
    try:
        statement = read(tokens, text, domain, tables)
        return _compiled(statement, domain, rows_public=rows_public, measured=measured)
    except RecursionError:
        raise QueryError(
            "the statement is nested too deep", remedy="write it with fewer parentheses"
        ) from None


def _compiled(
    statement: Statement, domain: Domain, *, rows_public: bool, measured: Family | None
) -> CompiledSql:
    grid = grid_evaluator(domain)
    where = conjunction(
        domain, grid.scope, [] if statement.where is None else factors_of(grid, statement.where)
    )
    groups = _groups(statement, domain, grid)
    shared = rows_public and not statement.group
    cells = not groups.conditions and groups.count == groups.group_of.size
    collector = Collector(domain, grid, where, shared=shared, cells=cells, measured=measured)
    leaves = _Leaves(statement, groups, grid, collector)
    names = tuple(_names(domain, item.node, groups, leaves) for item in statement.items)
    columns = SqlProgram(statement, groups, {}, {}, names, {}).dry_run(leaves)
    aggregates = collector.settle()
    parts, marginals = _marginals(groups, aggregates)
    program = SqlProgram(statement, groups, aggregates, leaves.fixed, names, parts)
    plain = [node.unnest() for node in statement.group]
    listed = tuple(attribute_of(domain, node).name for node in plain if isinstance(node, exp.Column))
    return CompiledSql(columns, tuple(marginals), _key(program, marginals), program, listed)


def _groups(statement: Statement, domain: Domain, grid: Evaluator) -> Grouping:
    attributes: list[str] = []
    expressions: list[tuple[str, Value]] = []
    for node in statement.group:
        of = node.unnest()
        if isinstance(of, exp.Column):
            attributes.append(attribute_of(domain, of).name)
        else:
            expressions.append((shown(of), grid.value(of)))
    return grouping(domain, grid.scope, attributes, expressions)


class _Leaves:
    """What the parts of an expression over groups are worth: aggregates (0 for now) and functions of the group."""

    def __init__(self, statement: Statement, groups: Grouping, grid: Evaluator, collector: Collector) -> None:
        self.fixed: dict[int, Value] = {}
        self._groups = groups
        self._grid = grid
        self._collector = collector
        roots = [item.node for item in statement.items] + [term.node for term in statement.order]
        roots += [statement.having] if statement.having is not None else []
        self._aggregated = {id(part) for root in roots for part in _above_aggregates(root)}
        if not any(id(item.node) in self._aggregated for item in statement.items):
            raise QueryError(
                "rows are private: SELECT needs an aggregate, such as count(*)"
                + ("" if statement.group else ", and GROUP BY what it is listed by")
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


def _marginals(
    groups: Grouping, aggregates: dict[int, Aggregate]
) -> tuple[dict[tuple[str, str], list[tuple[int, Part]]], list[Marginal]]:
    """Every marginal once, whatever the number of aggregates that need it."""
    places: dict[tuple[str, Clique, str], int] = {}
    marginals: list[Marginal] = []
    parts: dict[tuple[str, str], list[tuple[int, Part]]] = {}
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
    if len(marginals) > MAX_MARGINALS:
        raise QueryError(
            f"the statement needs {len(marginals)} marginals, and at most {MAX_MARGINALS} share one price",
            remedy="ask for fewer aggregates, or in two statements",
        )
    return parts, marginals


# ---- the canonical name


def _key(program: SqlProgram, marginals: list[Marginal]) -> str:
    statement = program.statement
    meaning = [
        [marginal.key for marginal in marginals],
        program.grouping.clique,
        sha256(program.grouping.group_of.tobytes()).hexdigest(),
        [
            names if names is not None else _canonical(program, item.node)
            for item, names in zip(statement.items, program.names, strict=True)
        ],
        None if statement.having is None else _canonical(program, statement.having),
        [(_canonical(program, o.node), o.descending, o.nulls_first) for o in statement.order],
        statement.limit,
        statement.offset,
    ]
    return sha256(repr(meaning).encode()).hexdigest()


_SORTED = (exp.Add, exp.Mul, exp.And, exp.Or, exp.EQ, exp.NEQ)


def _canonical(program: SqlProgram, node: Node) -> str:
    """An expression over released numbers, apart from how it was written."""
    while isinstance(node, exp.Paren) and id(node) not in program.fixed:
        node = node.this
    if id(node) in program.fixed:
        value = program.fixed[id(node)]
        arrays = [np.asarray(part) for part in vars(value).values() if not isinstance(part, str | tuple)]
        contents = [(a.tolist() if a.dtype == object else a.tobytes()) for a in arrays]
        return sha256(repr([value.clique, contents]).encode()).hexdigest()
    if id(node) in program.aggregates:
        return repr(program.aggregates[id(node)].key)
    if isinstance(node, exp.And | exp.Or):
        inner = [_canonical(program, link) for link in chain(node)]
    else:
        inner = [_canonical(program, part) for part in node.iter_expressions()]
    if isinstance(node, _SORTED):
        inner.sort()
    return f"{type(node).__name__}({', '.join(inner)})"
