"""The catalog of a server as Postgres programs read it, answered in the desk's process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from understudy.desk.desk import Desk, DeskDatabase
from understudy.desk.postgres_type import TYPES
from understudy.desk.rows import RowColumn, Rows, recast
from understudy.errors import StatementError
from understudy.server.pg.catalog import functions, views
from understudy.server.pg.catalog.facts import facts
from understudy.server.pg.catalog.reading import parsed
from understudy.server.pg.catalog.relations import CatalogRelations, CatalogTable, stored
from understudy.server.pg.catalog.rewriting import Rewritten, rewritten
from understudy.server.pg.catalog.scope import Shape
from understudy.server.pg.catalog.session_facts import SessionFacts
from understudy.server.pg.catalog.sources import home

_TREES_KEPT = 200


class Catalog:
    """`pg_catalog` and `information_schema` for a few served tables.

    Everything in it is public: what every Postgres 15 holds, what custodians declared, and the name and settings
    of whoever asks. It is immutable; a server makes another when its tables or releases change.
    """

    def __init__(self, tables: Sequence[CatalogTable], *, database: str = "understudy") -> None:
        self.tables = tuple(tables)
        self.database_name = database
        self.relations = CatalogRelations(tables, database=database)
        self._trees: dict[str, exp.Query] = {}
        held = dict(self.relations.tables())
        for name, columns in facts().relations["information_schema"].items():
            held["inf", name] = Rows(tuple(RowColumn(column, stored(kind)) for column, kind in columns), [])
        self.database = DeskDatabase(
            {place: rows for place, rows in held.items() if place not in views.VIEWS},
            statements=[*views.statements(database), *functions.statements()],
        )

    def about(self, statement: str | exp.Query) -> bool:
        """Whether a statement is about the catalog alone: it names its relations only, or none at all."""
        try:
            tree = self._read(statement)
        except StatementError:
            return False
        ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        return all(
            (not table.db and table.name.lower() in ctes)
            or home(table.db.lower(), _folded(table.this)) is not None
            for table in tree.find_all(exp.Table)
            if isinstance(table.this, exp.Identifier)
        )

    def rewritten(
        self,
        statement: str | exp.Query,
        session: SessionFacts,
        given: Mapping[tuple[str, str], Shape] | None = None,
    ) -> Rewritten:
        """The statement for the desk, with the columns of its result and the settings that it makes.

        `given` are tables that it is about instead of the catalog.
        """
        return rewritten(self._read(statement), self.relations, session, given)

    def prepared(
        self,
        statement: str | exp.Query,
        *,
        user: str,
        settings: Mapping[str, str] | None = None,
        tables: Mapping[str, Rows] | None = None,
        database: DeskDatabase | None = None,
    ) -> PreparedStatement:
        """A statement of a user that a desk can answer or describe.

        It is about the catalog, unless `tables` or a `database` of others are given: released rows by name, or
        those that stay in the desk. Raises a `StatementError` for what cannot be read or names what there is not.
        """
        session = SessionFacts(user, self.database_name, settings or {})
        given = None
        if tables is not None or database is not None:
            given = {("", name): _shape(rows) for name, rows in (tables or {}).items()}
            given |= {place: _shape(rows) for place, rows in (database.tables if database else {}).items()}
        made = self.rewritten(statement, session, given)
        held = database or (self.database if tables is None else None)
        return PreparedStatement(_text(made), made.shape, tables, held)

    def _read(self, statement: str | exp.Query) -> exp.Query:
        """The tree of a statement, which nobody changes; those of the last texts are kept."""
        if not isinstance(statement, str):
            return statement
        tree = self._trees.get(statement)
        if tree is None:
            tree = parsed(statement)
            if len(self._trees) >= _TREES_KEPT:
                self._trees.clear()
            self._trees[statement] = tree
        return tree


@dataclass(frozen=True, eq=False)
class PreparedStatement:
    """A statement as the desk takes it, with the shape that Postgres would give its result.

    Both methods raise a `StatementError` for what fails or takes too much.
    """

    sql: str
    shape: Shape
    tables: Mapping[str, Rows] | None
    database: DeskDatabase | None

    def answer(self, desk: Desk) -> Rows:
        """The rows, under the names and in the types that Postgres would give them."""
        found = desk.run(self.sql, self.tables, database=self.database)
        return recast(found, _columns(self.shape, found.columns))

    def describe(self, desk: Desk) -> tuple[RowColumn, ...]:
        """The columns that `answer` would return, without running the statement."""
        return _columns(self.shape, desk.describe(self.sql, self.tables, database=self.database))


def _shape(rows: Rows) -> Shape:
    return [(column.name, column.type.name) for column in rows.columns]


def _text(made: Rewritten) -> str:
    return made.tree.sql(dialect="duckdb", identify=True)


def _columns(shape: Shape, found: tuple[RowColumn, ...]) -> tuple[RowColumn, ...]:
    """The columns under Postgres' names and types, where they are known."""
    if len(shape) != len(found):
        return found
    return tuple(
        RowColumn(name, TYPES.get(kind, column.type))
        for (name, kind), column in zip(shape, found, strict=True)
    )


def _folded(name: exp.Expr) -> str:
    return name.name if name.args.get("quoted") else name.name.lower()
