"""A SELECT around private SELECTs: taken apart into those, and an outer statement on their released rows.

Every innermost SELECT over the declared table is a question like any other: it is priced, charged and answered
with bounds. What stands around them (windows, joins of results, arithmetic between sub-queries, UNION) sees the
released rows alone, so it is post-processing: it costs nothing, reveals nothing more, and has no bounds. It is run
by `understudy.desk`, in a process that never opened the table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from understudy.errors import QueryError
from understudy.sql.merge import is_direct, nested
from understudy.sql.read import ROWS_JOINED, write_from

RELEASED = "released_"
"""Before the number of an inner SELECT: the name of the table of its released rows in the outer statement."""

MAX_INNER = 16
"""Private SELECTs that one statement may stand around."""


@dataclass(frozen=True, eq=False)
class Split:
    """An outer statement, in which the rows of the inner ones are tables `released_0`, `released_1`, …"""

    outer: exp.Query
    inner: tuple[exp.Select, ...]


def split(query: exp.Query, tables: Collection[str]) -> Split:
    """Take a query apart; the tree is changed in place. A pure function of the tree.

    Raises a `QueryError` where rows of the table itself would be joined or compared with a sub-query, where a
    table is not declared, and where there is no SELECT over the table at all.
    """
    known: dict[str, str] = {}
    inner: list[exp.Select] = []
    outer = exp.Subquery(this=query)
    for select in [node for node in outer.find_all(exp.Select) if is_direct(node, tables)]:
        if next(nested(select), None) is not None:
            raise QueryError(
                "a condition on rows cannot hold a sub-query",
                remedy="ask for the sub-query first, and write what it says: IN ('…', '…'), or a number",
            )
        words = select.sql(dialect="duckdb")
        if words not in known:
            known[words] = f"{RELEASED}{len(inner)}"
            inner.append(select)
        select.replace(exp.select("*").from_(exp.to_table(known[words])))
    _check_tables(outer, tables, set(known.values()))
    if len(inner) > MAX_INNER:
        raise QueryError(
            f"the statement stands around {len(inner)} SELECTs over the table, and may around {MAX_INNER}",
            remedy="ask in two statements",
        )
    found = outer.this
    assert isinstance(found, exp.Query)
    return Split(found, tuple(inner))


def _check_tables(outer: exp.Expr, tables: Collection[str], released: Collection[str]) -> None:
    names, remedy = sorted(tables), write_from(tables)
    for table in outer.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            raise QueryError("tables are not made by functions", remedy=remedy, suggestions=names)
        if table.name in released and not table.db:
            continue
        if table.name.lower() in {name.lower() for name in names}:
            raise QueryError(ROWS_JOINED[0], remedy=ROWS_JOINED[1])
        raise QueryError(f"there is no table {table.name[:60]!r}", remedy=remedy, suggestions=names)
    if not released:
        raise QueryError("FROM is missing", remedy=remedy, suggestions=names)
