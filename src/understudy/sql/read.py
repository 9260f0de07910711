"""Reading a SELECT statement: what it is made of, or a refusal that says what to write instead.

Of the parse tree only the clauses that are named here are read; a statement with any other is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects import DuckDB

from understudy.domain.attribute import as_asked
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.sql.evaluate import Node, shown, used
from understudy.sql.levels import with_single_levels
from understudy.sql.tokens import EXAMPLE, check_depth

MAX_GROWN = 2_000
"""Nodes of the expressions that names stand for, all together."""

SCHEMA = "public"
CATALOG = "understudy"
"""What may stand before the name of the table: Postgres has every table in a schema and in a database."""


@dataclass(frozen=True)
class Item:
    """One column of the SELECT list."""

    name: str
    node: Node


@dataclass(frozen=True)
class Order:
    """One term of ORDER BY."""

    node: Node
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Statement:
    """A SELECT over one table, as parse trees whose names have been resolved."""

    items: tuple[Item, ...]
    where: Node | None
    group: tuple[Node, ...]
    having: Node | None
    order: tuple[Order, ...]
    limit: int | None
    offset: int


def read(select: exp.Select, domain: Domain, tables: Collection[str]) -> Statement:
    """The statement that a tree is, about one of the `tables`; `sql.merge` took sub-queries into it before."""
    _check_clauses(select)
    select = with_single_levels(select)
    qualifiers = _table(select, tables)
    for column in select.find_all(exp.Column):
        _check_column(column, qualifiers)
    items = _items(select)
    aliases = {name.lower(): node for name, node in _aliases(select)}
    group = tuple(
        _resolved(node, items, aliases, domain, alias_first=False, clause="GROUP BY")
        for node in _grouping(select)
    )
    having = select.args.get("having")
    order = select.args.get("order")
    return Statement(
        items=items,
        where=select.args["where"].this if select.args.get("where") else None,
        group=_distinct(select, items, group),
        having=_substituted(having.this, aliases, domain, alias_first=False) if having else None,
        order=tuple(_ordered(o, items, aliases, domain) for o in order.expressions) if order else (),
        limit=_bound(select.args.get("limit"), "LIMIT"),
        offset=_bound(select.args.get("offset"), "OFFSET") or 0,
    )


def _distinct(select: exp.Select, items: tuple[Item, ...], group: tuple[Node, ...]) -> tuple[Node, ...]:
    """The groups of a statement: SELECT DISTINCT a, b without aggregates is GROUP BY a, b."""
    distinct = select.args.get("distinct")
    if distinct is None:
        return group
    if distinct.args.get("on"):
        raise QueryError("DISTINCT ON is not answered", remedy="GROUP BY lists every declared value")
    if group or any(item.node.find(exp.AggFunc) for item in items):
        return group  # every key is listed, or `sql.merge` would have taken it apart: the rows differ already
    return tuple(item.node for item in items if item.node.find(exp.Column))


ROWS_JOINED = (
    "rows are not joined: they are private",
    "aggregate first: FROM (SELECT sex, count(*) AS n FROM … GROUP BY sex) AS a JOIN (SELECT …) AS b USING (sex)",
)
_CLAUSES = {
    "expressions", "from_", "where", "group", "having", "order", "limit", "offset", "kind", "distinct",
}  # fmt: skip
_REFUSED = {
    "joins": ROWS_JOINED,
    "laterals": ROWS_JOINED,
    "sample": ("samples are not answered", "every question is about the whole table"),
    "into": ("INTO is not answered", "nothing is written"),
    "locks": ("locks are not answered", "nothing is written"),
    "pivots": ("PIVOT is not answered", "use GROUP BY"),
}


def _check_clauses(select: exp.Select) -> None:
    for clause in sorted(used(select) - _CLAUSES):
        unnamed = (f"{clause.strip('_').upper()} is not answered", "leave it out")
        problem, remedy = _REFUSED.get(clause, unnamed)
        raise QueryError(problem, remedy=remedy)
    if select.args.get("kind"):
        raise QueryError("SELECT AS is not answered", remedy="list the columns")


def _table(select: exp.Select, tables: Collection[str]) -> set[str]:
    """The names by which columns may be qualified."""
    source = select.args.get("from_")
    names, remedy = sorted(tables), write_from(tables)
    if source is None:
        raise QueryError("FROM is missing", remedy=remedy, suggestions=names)
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise QueryError("tables are not made by functions", remedy=remedy, suggestions=names)
    if used(table) - {"this", "alias", "db", "catalog", "only"}:
        raise QueryError("a sample or version of a table is not answered", remedy=remedy, suggestions=names)
    check_place(table, names)
    if table.name.lower() not in {name.lower() for name in tables}:
        raise QueryError(f"there is no table {table.name[:60]!r}", remedy=remedy, suggestions=names)
    alias = table.args.get("alias")
    if alias is not None and used(alias) - {"this"}:
        raise QueryError("columns of the table are not renamed", remedy="leave out the list after its name")
    return {table.name.lower(), alias.name.lower()} if alias is not None else {table.name.lower()}


def write_from(tables: Collection[str]) -> str:
    """What to write after FROM; names that are no plain words are in double quotes.

    >>> write_from(["people", "town-on-show"])
    'write FROM people or "town-on-show"'
    """
    words = DuckDB.tokenizer_class.KEYWORDS
    named = [f'"{name}"' if name.upper() in words else as_asked(name) for name in sorted(tables)]
    return f"write FROM {' or '.join(named)}"


def check_place(table: exp.Table, names: Collection[str]) -> None:
    """Refuse a table of another schema than `public`, or of another database than ours."""
    for kind, part, ours in (("schema", table.db, SCHEMA), ("database", table.catalog, CATALOG)):
        if part and part.lower() != ours:
            raise QueryError(
                f"there is no {kind} {part[:60]!r} here", remedy=write_from(names), suggestions=sorted(names)
            )


def _check_column(column: exp.Column, qualifiers: set[str]) -> None:
    if isinstance(column.this, exp.Star):
        raise QueryError(
            "* stands for rows, which are private", remedy="ask for count(*) or another aggregate"
        )
    if used(column) - {"this", "table", "db", "catalog"}:
        raise QueryError(f"{shown(column)}: columns have one name", remedy="quote it with double quotes")
    place = (column.args.get("db"), SCHEMA), (column.args.get("catalog"), CATALOG)
    if any(part is not None and part.name.lower() != ours for part, ours in place):
        raise QueryError(
            f"{shown(column)}: columns have one name",
            remedy="quote it with double quotes where it holds a dot",
        )
    if column.table and column.table.lower() not in qualifiers:
        raise QueryError(
            f"there is no table {column.table[:60]!r} in this statement",
            remedy="qualify columns with the table's name or with its alias after FROM, or not at all",
        )


def _aliases(select: exp.Select) -> Iterator[tuple[str, Node]]:
    for item in select.expressions:
        if isinstance(item, exp.Alias):
            yield item.alias, item.this


def _items(select: exp.Select) -> tuple[Item, ...]:
    taken: set[str] = set()
    items = []
    for item in select.expressions:
        node = item.this if isinstance(item, exp.Alias) else item
        if isinstance(node, exp.Star) or isinstance(item, exp.Aliases):
            raise QueryError(
                "rows are private",
                remedy="name aggregates instead, such as SELECT count(*); DISTINCT columns list declared values",
                suggestions=(f"SELECT count(*) FROM {select.args['from_'].this.name}",),
            )
        name = item.alias if isinstance(item, exp.Alias) else name_of(node)
        unique, number = name, 1
        while unique.lower() in taken:
            unique, number = f"{name}_{number}", number + 1
        taken.add(unique.lower())
        items.append(Item(unique, node))
    if not items:
        raise QueryError("the SELECT list is empty", remedy=f"a statement reads: {EXAMPLE}")
    return tuple(items)


def name_of(node: Node) -> str:
    """What a column without a name of its own is called."""
    if isinstance(node, exp.Column):
        return node.name
    return node.sql(dialect="duckdb", normalize_functions="lower")


def _grouping(select: exp.Select) -> list[Node]:
    group = select.args.get("group")
    if group is None:
        return []
    if extra := used(group) - {"expressions"}:
        what = "ALL" if "all" in extra else "ROLLUP, CUBE and GROUPING SETS"
        raise QueryError(
            f"GROUP BY {what} is not answered", remedy="list the attributes, GROUP BY sex, district"
        )
    return group.expressions


def _ordered(node: exp.Ordered, items: tuple[Item, ...], aliases: dict[str, Node], domain: Domain) -> Order:
    if used(node) - {"this", "desc", "nulls_first"} or isinstance(node.this, exp.Var):
        raise QueryError("ORDER BY takes columns or expressions with ASC, DESC and NULLS FIRST or LAST")
    term = _resolved(node.this, items, aliases, domain, alias_first=True, clause="ORDER BY")
    return Order(term, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _resolved(
    node: Node,
    items: tuple[Item, ...],
    aliases: dict[str, Node],
    domain: Domain,
    *,
    alias_first: bool,
    clause: str,
) -> Node:
    """A term of GROUP BY or ORDER BY: a position, a name given in the SELECT list, or an expression."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        if not node.this.isdigit() or not 1 <= int(node.this[:9]) <= len(items):
            raise QueryError(f"{clause} {node.this[:20]}", remedy=f"there are columns 1 to {len(items)}")
        return items[int(node.this) - 1].node
    return _substituted(node, aliases, domain, alias_first=alias_first)


def _substituted(node: Node, aliases: dict[str, Node], domain: Domain, *, alias_first: bool) -> Node:
    """The expression with names of the SELECT list replaced by what they name."""
    grown = 0

    def named(part: Node) -> Node:
        nonlocal grown
        if not isinstance(part, exp.Column) or part.table:
            return part
        found = aliases.get(part.name.lower())
        if found is None or (not alias_first and part.name in domain):
            return part
        grown += sum(1 for _ in found.walk())
        if grown > MAX_GROWN:
            raise QueryError("names of long expressions are used too often", remedy="ask in two statements")
        return found.copy()

    if not aliases:
        return node
    if isinstance(node, exp.Column):
        return named(node)
    changed = node.transform(named)
    check_depth(changed)
    return changed


def _bound(node: Node | None, clause: str) -> int | None:
    if node is None:
        return None
    if isinstance(node, exp.Fetch):  # FETCH FIRST 10 ROWS ONLY
        options = node.args.get("limit_options")
        plain = options is None or not (options.args.get("percent") or options.args.get("with_ties"))
        number = node.args.get("count") if plain else None
    else:
        number = node.expression if not used(node) - {"this", "expression"} else None
    if not isinstance(number, exp.Literal) or number.args.get("is_string") or not str(number.this).isdigit():
        raise QueryError(f"{clause} takes a whole number of rows, such as {clause} 10")
    return int(str(number.this)[:15])
