"""The answer to a SELECT statement: rows of group names and of released numbers with their bounds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from understudy.answer.answer import check_population, weakest
from understudy.answer.chart import MOST_BARS, ChartRow, error_bars
from understudy.answer.frames import to_frame
from understudy.errors import ParameterError
from understudy.pages import notebook
from understudy.pages.notebook import ErrorBar
from understudy.privacy.cost import Cost

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
    import polars as pl

    from understudy.query.column import Column
    from understudy.sql import Estimate
    from understudy.sql.estimate import Key

    Cell = Key | Estimate

Order = Literal["certified", "uncertified"]
UNCERTIFIED_ORDER = (
    "The order is not certified: bounds of rows overlap. "
    "ORDER BY low(…) DESC puts first what is surely large."
)
"""What is said of rows whose order by released numbers may be another one in truth."""

Distances = tuple[tuple[float | None, ...], ...]
"""For each cell of an answer how far it can be off, in the unit of its column; None where nobody can tell."""


@dataclass(frozen=True, eq=False, repr=False)
class SqlAnswer:
    """The rows that answer a SELECT statement. With probability 1 - `beta` every number is within its bounds.

    text              the statement
    columns           a name for each column, its kind, `key` (names of groups, public) or `value` (released), and
                      the type of its values
    cells             the rows: names of groups, and an `Estimate` for every released number, with its value, its
                      bounds, and the part of them that comes from bins
    cost              what the ledger charged for the whole statement, in ε or ρ; nothing where earlier answers say
                      it
    beta              the probability with which some number is outside its bounds; 0 with bounded noise
    sources           for each marginal that the statement needs, where its counts came from, as in `Answer.source`
    population_error  for each cell of `cells` how far its value can be, in the unit of its column (days for a
                      date), from what the statement says of the population behind the table; None in columns of
                      keys and where a value is missing or has no bound. None as a whole where no theorem gives it
    population_beta   the probability with which some population error of the session that rests on the same
                      theorem does not hold; None without
    population_theorem  the theorem that gives it, and whether it is peer reviewed; None without
    order             what is known of the order of the rows, where ORDER BY goes by released numbers: `certified`
                      where the bounds of the rows that it sets apart do not overlap, else `uncertified`: an empty
                      group with wide bounds may stand first by chance. None where it goes by public names
    noise             the noise that the numbers rest on, as in `Answer.noise`

    Raises a `ParameterError` where a population error comes without its probability, or the other way round.

    Of the population a statement says what it would say of a table of as many rows in which every group is as
    frequent as in the population: counts and sums are those of so many people, averages, quantiles and ratios are
    the population's own.
    """

    text: str
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    cost: Cost
    beta: float
    sources: tuple[str, ...]
    population_error: Distances | None = None
    population_beta: float | None = None
    order: Order | None = None
    population_theorem: str | None = None
    noise: str | None = None

    def __post_init__(self) -> None:
        check_population(self)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows with a plain value in each column: the name of a group, or a released number without bounds."""
        return [
            tuple(cell if (number := _estimate(cell)) is None else number.value for cell in row)
            for row in self.cells
        ]

    @property
    def source(self) -> str:
        """The weakest of `sources`; `public` where nothing had to be measured."""
        return weakest(self.sources)

    @property
    def is_bounded(self) -> bool:
        """Whether some released number has a bound on both sides."""
        numbers = (_estimate(cell) for row in self.cells for cell in row)
        return any(
            number is not None and number.low is not None and number.high is not None for number in numbers
        )

    def as_dict(self) -> dict[str, Any]:
        """The answer as plain values, which JSON can hold; a bound that does not exist is null."""
        return {
            "columns": [
                {"name": column.name, "kind": column.kind, "type": column.type} for column in self.columns
            ],
            "rows": [[_plain(cell) for cell in row] for row in self.cells],
            "cost": {self.cost.currency: self.cost.amount},
            "beta": self.beta,
            "source": self.source,
            "sources": list(self.sources),
            "noise": self.noise,
            "population_error": None
            if self.population_error is None
            else [*map(list, self.population_error)],
            "population_beta": self.population_beta,
            "population_theorem": self.population_theorem,
            "order": self.order,
        }

    @overload
    def to_frame(self, backend: Literal["pandas"]) -> pd.DataFrame: ...

    @overload
    def to_frame(self, backend: Literal["polars"]) -> pl.DataFrame: ...

    @overload
    def to_frame(self, backend: str = "pyarrow") -> Any: ...  # pyarrow has no types

    def to_frame(self, backend: str = "pyarrow") -> Any:
        """A frame of the library `backend`: pyarrow, pandas, polars, or another that `answer.frames` names.

        A released column x is followed by its bounds, x_low and x_high. Raises a `ParameterError` where the
        library is unknown or not installed.
        """
        pa: Any = import_module("pyarrow")  # untyped; takes a while to load, and most programs make no frame

        data: dict[str, Any] = {}
        for i, column in enumerate(self.columns):
            cells = [row[i] for row in self.cells]
            if column.kind != "value":
                data[_free(column.name, data)] = _key_array(cells, pa)
                continue
            for field, suffix in (("value", ""), ("low", "_low"), ("high", "_high")):
                values = [getattr(cell, field) for cell in cells]
                kind = {"date": pa.date32(), "timestamp": pa.timestamp("s")}.get(column.type, pa.float64())
                data[_free(column.name + suffix, data)] = pa.array(values, kind)
        return to_frame(data, "pyarrow" if backend == "arrow" else backend)

    def to_pandas(self) -> pd.DataFrame:
        """The frame of `to_frame` in pandas; a `ParameterError` says what to install where that is not there."""
        return self.to_frame("pandas")

    def to_polars(self) -> pl.DataFrame:
        """The frame of `to_frame` in polars; a `ParameterError` says what to install where that is not there."""
        return self.to_frame("polars")

    def plot(self, column: str | None = None) -> alt.LayerChart:
        """An Altair chart of a released `column`, the first by default: bar and whisker for each of 60 rows.

        Raises a `ParameterError` where there is no such column, and one that says what to install where Altair is
        not there.
        """
        released = [c.name for c in self.columns if c.kind == "value"]
        wanted = column if column is not None else next(iter(released), None)
        if wanted is None or wanted not in released:
            listed = ", ".join(released) or "none"
            raise ParameterError(
                f"there is no released column {wanted!r} to draw; released columns: {listed}"
            )
        place = next(i for i, c in enumerate(self.columns) if c.kind == "value" and c.name == wanted)
        keys = [i for i, c in enumerate(self.columns) if c.kind == "key"]
        rows = [
            ChartRow(tuple(shown(row[i]) for i in keys), _bar(row[place])) for row in self.cells[:MOST_BARS]
        ]
        return error_bars([self.columns[i].name for i in keys], rows, value=wanted, total=len(self.cells))

    def __repr__(self) -> str:
        text = " ".join(self.text.split())
        short = text if len(text) <= 60 else f"{text[:59]}…"
        return f"SqlAnswer({short!r}: {len(self.cells):,} rows, {self.source})"

    def _repr_html_(self) -> str:
        heads: list[str] = []
        for column in self.columns:
            heads += [column.name, ""] if column.kind == "value" else [column.name]
        rows: list[list[notebook.Cell]] = []
        for row in self.cells[: notebook.MOST_ROWS]:
            cells: list[notebook.Cell] = []
            for column, cell in zip(self.columns, row, strict=True):
                cells += [shown(cell), _bar(cell)] if column.kind == "value" else [shown(cell)]
            rows.append(cells)
        numbers = [column.name for column in self.columns if column.kind == "value"]
        found = notebook.table(heads, rows, numbers=numbers, total=len(self.cells))
        sure = notebook.certainty(self.beta)
        price = f"{self.cost.currency} {self.cost.amount:.4g}"
        note = (
            f"All numbers are within their bounds, at once, with probability {sure}. Source: {self.source}; "
        )
        order = f" {UNCERTIFIED_ORDER}" if self.order == "uncertified" else ""
        return notebook.panel(" ".join(self.text.split()), found, note=f"{note}charged: {price}.{order}")


def _bar(cell: Cell) -> ErrorBar:
    """The bar of a released number."""
    number = _estimate(cell)
    return ErrorBar(None) if number is None else ErrorBar(number.value, number.low, number.high)


def _estimate(cell: Cell) -> Estimate | None:
    """The released number in a cell; None where the cell holds the name of a group.

    Imported here, so that a program that answers no SELECT statement does not load the compiler.
    """
    from understudy.sql.estimate import Estimate

    return cell if isinstance(cell, Estimate) else None


def shown(cell: Cell) -> str:
    """A cell for people: the name of a group, or a released value with its bounds."""
    number = _estimate(cell)
    if number is None:
        return "null" if cell is None else str(cell)
    value = notebook.number(number.value)
    if number.low == number.high == number.value:
        return value
    if number.low is None and number.high is None:
        return f"{value} (no bounds known)"
    if number.high is None or number.low is None:
        known = number.low if number.high is None else number.high
        assert known is not None
        return f"{value} [{'at least' if number.high is None else 'at most'} {notebook.number(known)}]"
    return f"{value} [{notebook.number(number.low)}, {notebook.number(number.high)}]"


def _plain(cell: Cell) -> Any:
    number = _estimate(cell)
    if number is not None:
        return {key: _plain(value) for key, value in number._asdict().items()}
    return cell.isoformat() if isinstance(cell, dt.date) else cell


def _key_array(cells: list[Cell], pa: Any) -> Any:
    kinds = {type(cell) for cell in cells if cell is not None}
    if len(kinds) > 1:  # a cell `other` among numbers
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    return pa.array(cells) if kinds else pa.array(cells, pa.string())


def _free(name: str, taken: Mapping[str, object]) -> str:
    while name in taken:
        name += "_"
    return name
