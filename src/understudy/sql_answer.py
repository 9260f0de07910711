"""Running a compiled statement: its marginals go through the Curator, what comes back becomes rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from math import floor
from typing import Any

from understudy.answer.frames import to_frame
from understudy.curator.curator import Curator
from understudy.privacy.cost import UNITS, Cost
from understudy.privacy.event import Together
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.rational import Number, exact
from understudy.sql import Column, CompiledSql, Estimate
from understudy.sql.compiled import Key

Cell = Key | Estimate


@dataclass(frozen=True, eq=False)
class SqlAnswer:
    """The rows of a statement. All released numbers are within their bounds with probability 1 - `beta`.

    `cells` hold group names and `Estimate`s; `rows` the same with the released numbers alone. `sources` says for
    every marginal whether it was measured or is public. `cost` is what the ledger charged.
    """

    text: str
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    cost: Cost
    beta: float
    sources: tuple[str, ...]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Plain rows: names of groups and released values."""
        return [
            tuple(cell.value if isinstance(cell, Estimate) else cell for cell in row) for row in self.cells
        ]

    @property
    def source(self) -> str:
        """The weakest of its parts' sources."""
        order = ("uncertified", "checked", "measured", "pinned", "implied", "repeat")
        return next((source for source in order if source in self.sources), "public")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for machines; a bound that does not exist is null."""
        return {
            "columns": [{"name": column.name, "kind": column.kind} for column in self.columns],
            "rows": [[_plain(cell) for cell in row] for row in self.cells],
            "cost": {self.cost.currency: self.cost.amount},
            "beta": self.beta,
            "source": self.source,
            "sources": list(self.sources),
        }

    def to_frame(self, backend: str = "pyarrow") -> Any:
        """A pandas, polars or Arrow frame; a released column x is followed by x_low and x_high."""
        import pyarrow as pa  # takes a while to load, and most programs make no frame

        data: dict[str, Any] = {}
        for i, column in enumerate(self.columns):
            cells = [row[i] for row in self.cells]
            if column.kind == "key":
                data[_free(column.name, data)] = _key_array(cells, pa)
                continue
            for field, suffix in (("value", ""), ("low", "_low"), ("high", "_high")):
                values = [getattr(cell, field) for cell in cells]
                dates = any(isinstance(value, dt.date) for value in values)
                array = pa.array(values, pa.date32() if dates else pa.float64())
                data[_free(column.name + suffix, data)] = array
        return to_frame(data, "pyarrow" if backend == "arrow" else backend)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(column.name)}</th>" for column in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(shown(cell))}</td>" for cell in row) + "</tr>"
            for row in self.cells
        )
        price = f"{self.cost.currency} {self.cost.amount:.4g}"
        note = f"all within their bounds with probability {1 - self.beta:g}; price {price}"
        return f"<table><caption>{note}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def shown(cell: Cell) -> str:
    """A cell for people: a name, or a value with its bounds."""
    if not isinstance(cell, Estimate):
        return "null" if cell is None else str(cell)
    value = "null" if cell.value is None else _number(cell.value)
    if cell.low == cell.high == cell.value:
        return value
    low = "-∞" if cell.low is None else _number(cell.low)
    high = "∞" if cell.high is None else _number(cell.high)
    return f"{value} [{low}, {high}]"


def _number(value: float | dt.date) -> str:
    if isinstance(value, dt.date):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def _plain(cell: Cell) -> Any:
    if isinstance(cell, Estimate):
        return {key: _plain(value) for key, value in cell._asdict().items()}
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


# ---- prices


def is_free(curator: Curator, marginal: Marginal) -> bool:
    """Nobody can move it: one constant weight, and a public number of rows."""
    public = curator.relation.rows_are_public
    return public and marginal.size == 1 and marginal.where.largest == marginal.where.smallest


def share(
    curator: Curator,
    compiled: CompiledSql,
    *,
    price: Price,
    error: Fraction | None,
    beta: Fraction,
) -> tuple[Price, Fraction]:
    """The price and the failure probability of each marginal: equal parts for those that are not free.

    With an `error`, whatever `price` is, the one at which every measured count is within so many people.
    """
    paid = [marginal for marginal in compiled.marginals if not is_free(curator, marginal)]
    parts = max(len(paid), 1)
    if error is None:
        return _part(curator, price, parts), beta / parts
    prices = [curator.price_of(marginal, error=error, beta=beta / parts) for marginal in paid]
    dearest = max((each.amount for each in prices), default=Fraction(1))
    return Price(curator.ledger.budget.currency, dearest), beta / parts


def _part(curator: Curator, price: Price, parts: int) -> Price:
    """One of several equal parts, so much smaller that rounding each of them up stays within the whole."""
    if parts == 1:
        return price
    slack = 4 * curator.relation.max_rows**2
    units = floor(price.amount * UNITS / parts) - slack
    return Price(price.currency, Fraction(units, UNITS)) if units > 1000 * slack else price / parts


def quote(curator: Curator, compiled: CompiledSql, *, each: Price, beta: Fraction) -> tuple[Cost, float]:
    """What a statement costs, and the largest half-width, in people, of its measured counts. Reads no data."""
    built = [curator.mechanism(marginal, each) for marginal in compiled.marginals]
    cost = curator.ledger.budget.price(Together(tuple(mechanism.event for mechanism, _ in built)))
    errors = [curator.error(m, *parts, beta) for m, parts in zip(compiled.marginals, built, strict=True)]
    return cost, max(errors, default=0.0)


def run(
    curator: Curator,
    text: str,
    compiled: CompiledSql,
    *,
    each: Price,
    each_beta: Fraction,
    beta: Number,
    request: str | None = None,
    analyst: str = "",
) -> SqlAnswer:
    """Measure what a statement needs, each marginal at the price `each`, and evaluate it.

    Privacy     That of the marginals, composed; what is made of the released counts is post-processing.
    Accuracy    Every marginal's cells are within their errors except with probability `each_beta`; together, by
                the union bound, except with `beta`.
    """
    answers = curator.measure_all(compiled.marginals, each, beta=each_beta, request=request, analyst=analyst)
    budget = curator.ledger.budget
    units = sum(answer.cost.units for answer in answers)
    cells = compiled.evaluate(
        [answer.noisy for answer in answers], [answer.error for answer in answers], rows=curator.rows_at_most
    )
    return SqlAnswer(
        text=text.strip(),
        columns=compiled.columns,
        cells=tuple(cells),
        cost=type(budget.cap)(units),
        beta=float(exact(beta)),
        sources=tuple("public" if is_free(curator, m) else "measured" for m in compiled.marginals),
    )
