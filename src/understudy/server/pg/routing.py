"""Where a SELECT goes, by its parse tree: to the gate, or to the desk, or nowhere.

    only relations of the catalog, or no FROM          the desk, on the emulated catalog
    a served table, in one SELECT or around several    the gate, as one question
    `synthetic.RELEASE`                                the desk, on the release's synthetic rows

What is found out here is public: names, types, columns. Nothing is asked, priced or looked at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import sqlglot
from sqlglot import exp

from understudy.desk.allowed import ascii_lower
from understudy.desk.rows import RowColumn, Rows
from understudy.domain.attribute import Attribute, Categories
from understudy.domain.bins import Bins
from understudy.errors import QueryError
from understudy.project import Project
from understudy.query.column import Column
from understudy.server.inquiry import check_question
from understudy.server.pg.catalog.reading import parsed
from understudy.server.pg.lexer import StatementText, statements_of
from understudy.server.pg.naming import given_names
from understudy.server.pg.parameters import Template, literal, parameter_number, types_of, with_lists
from understudy.server.pg.plans import Select, answer_columns, result_column
from understudy.server.pg.states import Refusal
from understudy.server.pg.values import BOOL, DATE, FLOAT8, INT4, INT8, TEXT, TIMESTAMP
from understudy.server.served_tables import ServedTables

REMEMBERED = 2048
"""Statements that were read, of all connections."""

SYNTHETIC = "synthetic"
_PRIVATE_SCHEMAS = frozenset(("", "public"))


class PublicRows(Protocol):
    """What runs SQL on public rows: the catalog, or the synthetic rows of releases."""

    def describe(self, sql: str, user: str, settings: Mapping[str, str]) -> Sequence[RowColumn]:
        """The columns of a statement, which is not run."""
        ...


@dataclass(frozen=True, slots=True)
class PublicResult:
    """Public rows, and the settings that the statement makes by `set_config`, which its connection remembers."""

    rows: Rows
    settings: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class SelectReader:
    """Who reads a statement: their name and settings, which the catalog shows."""

    user: str
    settings: Mapping[str, str]
    bounds: bool


class Router:
    """Reads SELECTs for all connections, and remembers them. Safe for threads; reading takes milliseconds."""

    def __init__(self, served: ServedTables, catalog: PublicRows, synthetic: PublicRows) -> None:
        self._served = served
        self._catalog = catalog
        self._synthetic = synthetic
        self._names = {name.lower(): name for name in served.tables}
        self._known: OrderedDict[tuple[Any, ...], Select] = OrderedDict()

    def known(self, statement: StatementText, oids: Sequence[int], *, bounds: bool) -> Select | None:
        """A SELECT that was read before, if it still means the same."""
        return self._known.get((statement.text, tuple(oids), bounds, self._generations))

    @property
    def _generations(self) -> tuple[int, ...]:
        return tuple(table.generation for table in self._served.tables.values())

    def read(self, statement: StatementText, oids: Sequence[int], reader: SelectReader) -> Select:
        """Where a SELECT goes, and what comes back. Raises a `Refusal`, a `Problem` or an error of the library."""
        key = (statement.text, tuple(oids), reader.bounds, self._generations)
        if any(token.value.lower() in self._names for token in statement.tokens):
            check_question(statement.text)  # what programs ask about the catalog may be longer
        template = Template.of(statement)
        tree = parsed(template.marked)
        private = self._private(tree)
        if private is None:
            found = self._public(statement, template, tree, oids, reader)
        else:
            found = self._question(private, statement, template, tree, oids, bounds=reader.bounds)
        self._known[key] = found
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found

    def _private(self, tree: exp.Expr) -> str | None:
        """The private table that a statement names; None where it names none. Several at once are refused."""
        named = {
            self._names[table.name.lower()]
            for table in relations(tree)
            if table.db.lower() in _PRIVATE_SCHEMAS and table.name.lower() in self._names
        }
        if len(named) > 1:
            raise Refusal(
                "0A000",
                f"a statement is about one table, and this names {' and '.join(sorted(named))}",
                hint="Ask about each table in a statement of its own, and join the answers in your program.",
            )
        return next(iter(named), None)

    def _public(
        self,
        statement: StatementText,
        template: Template,
        tree: exp.Expr,
        oids: Sequence[int],
        reader: SelectReader,
    ) -> Select:
        schemas = {table.db.lower() for table in relations(tree)}
        goes_to = SYNTHETIC if SYNTHETIC in schemas else "catalog"
        run = self._synthetic if goes_to == SYNTHETIC else self._catalog
        parameters = types_of(tree, template.count, oids, {})
        nothing = template.filled([None] * template.count) if template.count else statement.text
        found = run.describe(nothing, reader.user, reader.settings)
        names = [column.name for column in found]
        if goes_to == SYNTHETIC:  # the catalog names its columns itself
            names = given_names(tree, names)
        columns = tuple(result_column(name, c.type.oid) for name, c in zip(names, found, strict=True))
        return Select(goes_to, "", template, columns, parameters, text=statement.text)

    def _question(
        self,
        name: str,
        statement: StatementText,
        template: Template,
        tree: exp.Expr,
        oids: Sequence[int],
        *,
        bounds: bool,
    ) -> Select:
        with self._served.tables[name].use() as opened:
            project = opened.project
            types = {attribute.name.lower(): attribute_type(attribute) for attribute in project.domain}
            parameters = types_of(tree, template.count, oids, types)
            asks = (
                _columns_with_parameters(project, template, tree, parameters)
                if template.count
                else project.columns(statement.text)
            )
        names = tuple(given_names(tree, [column.name for column in asks]))
        columns = answer_columns(asks, names, bounds=bounds)
        return Select("gate", name, template, columns, parameters, asks, names, statement.text)


def relations(tree: exp.Expr) -> list[exp.Table]:
    """The relations that a statement reads, without the names that it defines itself with WITH.

    Names are compared as Postgres and DuckDB compare them: of the letters, A to Z alone have two cases.
    """
    defined = {ascii_lower(cte.alias) for cte in tree.find_all(exp.CTE)}
    return [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and (table.db or ascii_lower(table.name) not in defined)
    ]


def attribute_type(attribute: Attribute) -> int:
    """The type that a declared attribute has as a column of its table."""
    kind = attribute.kind
    if kind == "integer":
        edges = (*attribute.starts, attribute.upper) if isinstance(attribute, Bins) else _values(attribute)
        fits = all(isinstance(edge, int) and abs(edge) < 1 << 31 for edge in edges)
        return INT4 if fits else INT8
    return {"real": FLOAT8, "date": DATE, "timestamp": TIMESTAMP, "boolean": BOOL}.get(kind, TEXT)


def _values(attribute: Attribute) -> Sequence[Any]:
    return attribute.values if isinstance(attribute, Categories) else ()


def _columns_with_parameters(
    project: Project, template: Template, tree: exp.Expr, parameters: Sequence[int]
) -> tuple[Column, ...]:
    """The columns of a question whose values are not known yet.

    Filters with parameters are left out: they can only leave groups out, and the columns of all groups can hold
    those of some. Any other parameter stands for a value that the attribute beside it has.
    """
    values = [_possible(project, tree, number + 1, oid) for number, oid in enumerate(parameters)]
    plain = tree.copy()
    for select in plain.find_all(exp.Select):
        for clause in ("where", "having", "limit", "offset"):
            node = select.args.get(clause)
            if node is not None and any(parameter_number(column) for column in node.find_all(exp.Column)):
                select.set(clause, None)
    for column in list(plain.find_all(exp.Column)):
        if number := parameter_number(column):
            column.replace(sqlglot.parse_one(literal(values[number - 1]), read="duckdb"))
    try:
        return project.columns(plain.sql(dialect="duckdb"))
    except QueryError as refusal:
        try:
            return project.columns(with_lists(statements_of(template.filled(values))[0]).text)
        except QueryError:
            raise refusal from None


def _possible(project: Project, tree: exp.Expr, number: int, oid: int) -> Any:
    """A value that a parameter could have: an edge or a value of the attribute beside it."""
    for column in tree.find_all(exp.Column):
        if column.name != f"${number}":
            continue
        node = column.parent
        while isinstance(node, exp.Predicate | exp.Binary | exp.Paren | exp.Any | exp.Tuple):
            for near in node.find_all(exp.Column):
                found = [a for a in project.domain if a.name.lower() == near.name.lower()]
                if found and found[0].kind == "boolean":
                    return [True] if oid in _LISTS else True
                if found:
                    value = (
                        found[0].starts[0]
                        if isinstance(found[0], Bins)
                        else next(iter(_values(found[0])), None)
                    )
                    return [value] if oid in _LISTS else value
            node = node.parent
    return _PLAIN.get(oid, "")


_LISTS = frozenset((1000, 1005, 1007, 1009, 1015, 1016, 1022, 1182, 1231))
_PLAIN = {BOOL: True, 20: 1, 21: 1, 23: 1, 26: 1, 700: 1.0, FLOAT8: 1.0, 1700: 1, DATE: "2000-01-01"}
