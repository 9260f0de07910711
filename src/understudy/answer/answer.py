"""An answer about the cells of a marginal: numbers, how far they can be off, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, overload

import numpy as np
from numpy.typing import NDArray

from understudy.answer.chart import MOST_BARS, ChartRow, error_bars
from understudy.answer.cut_bins import CutBins
from understudy.answer.frames import answer_frame
from understudy.errors import ParameterError
from understudy.pages import notebook
from understudy.pages.notebook import MOST_ROWS, ErrorBar
from understudy.privacy.cost import Cost
from understudy.query.marginal import Marginal

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
    import polars as pl

SOURCES = ("uncertified", "checked", "measured", "pinned", "implied", "repeat", "public")
"""Where numbers come from, the weakest first."""


def weakest(sources: Iterable[str]) -> str:
    """The source of what is made of several numbers; `public` where there are none.

    >>> weakest(["public", "measured", "repeat"])
    'measured'
    """
    return min(sources, key=SOURCES.index, default="public")


class HasPopulation(Protocol):
    """What answers say of the population behind the table; nothing at all where no theorem does."""

    @property
    def population_error(self) -> object: ...

    @property
    def population_beta(self) -> float | None: ...

    @property
    def population_theorem(self) -> str | None: ...


def check_population(answer: HasPopulation) -> None:
    """Refuse, with a `ParameterError`, a population error without its probability, or the other way round."""
    without = answer.population_error is None
    if without != (answer.population_beta is None) or (without and answer.population_theorem is not None):
        raise ParameterError("a population error comes with the probability that it fails, and only then")


def on_population(answers: Iterable[HasPopulation]) -> tuple[float | None, str | None]:
    """How probably one of several population errors fails, and the theorems that they rest on.

    Errors of one theorem hold together but for its probability; those of two, but for the sum of both.
    """
    found = {answer.population_theorem: answer.population_beta for answer in answers}
    betas = [beta for beta in found.values() if beta is not None]
    named = [theorem for theorem in found if theorem is not None]
    return (sum(betas) if betas else None), ("; ".join(named) or None)


def noise_together(noises: Iterable[str | None]) -> str | None:
    """The noise that a number made of several answers rests on, from that of each (`Answer.noise`).

    Quantiles that are drawn by ranks are named only where nothing else has noise.
    """
    found = {noise for noise in noises if noise is not None}
    if len(found) > 1:
        found -= {"exponential"}
    return "mixed" if len(found) > 1 else next(iter(found), None)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """Numbers for the cells of a marginal, all within `error` of the table's with probability 1 - `beta`.

    Raises a `ParameterError` where a population error comes without its probability, or the other way round.

    query             the marginal that was asked for
    value             a number for each cell, in people for a count, as a fraction of all rows for a share, of the
                      group's own rows for a rate; an array with an axis for each attribute of `query.by`, without
                      axes where that is empty
    error             the half-width of each cell's interval around `value`, in the same unit; infinite where the
                      source is `uncertified`, unless that is so for `cut_bins` alone
    noisy             what was released before it was cut to what is possible: unbiased where noise was added, and
                      so the better one to add up
    cost              what the ledger charged for it, in ε or ρ
    beta              the probability with which some cell is further off than its `error`; 0 with bounded noise
    source            `measured` (noise was bought), `public` (no row can change it), `implied` and `pinned`
                      (deduced in a session), `checked` (a bound that a release proves), `repeat` (asked
                      before in the session), or `uncertified` (nobody vouches for it)
    population_error  the half-width around `value` of what the population behind the table has, in the same unit
                      (a count is compared with as many people drawn from it); None where no theorem gives one
    population_beta   the probability with which some population error of the session that rests on the same
                      theorem does not hold; None without
    population_theorem  the theorem that gives it, and whether it is peer reviewed; None without
    cut_bins          the certified ends of each interval, and the part of it that comes from bins, where the
                      condition cuts bins that a release knows as a whole only: rows are then taken to be spread
                      evenly in them, which nobody vouches for. None elsewhere
    low, high         the ends of each interval, where it need not lie evenly around `value`: of aggregates of
                      measures, quantiles among them, and of what a release vouches for. `error` is the distance to
                      the farther one. None elsewhere
    unit              what the numbers are: `people`, `share of all rows`, `rate within` and the groups' names, or
                      an aggregate of measures such as `avg of income`, in their own unit
    noise             the noise that the numbers rest on: `laplace`, `gaussian`, `bounded` or, where quantiles of
                      measures were drawn by ranks, `exponential`; `mixed` in sessions that have bought counts with
                      Gaussian and with bounded noise. None where no noise was added for them: what is public,
                      what a release says, and what nobody vouches for
    """

    query: Marginal
    value: NDArray[np.float64]
    error: NDArray[np.float64]
    noisy: NDArray[np.float64]
    cost: Cost
    beta: float
    source: str = "measured"
    population_error: NDArray[np.float64] | None = field(default=None)
    population_beta: float | None = None
    unit: str = "people"
    cut_bins: CutBins | None = None
    population_theorem: str | None = None
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    noise: str | None = None

    def __post_init__(self) -> None:
        check_population(self)
        kept: dict[int, NDArray[np.float64]] = {}  # an array that is given twice is kept once
        for name in ("value", "error", "noisy", "population_error", "low", "high"):
            given = getattr(self, name)
            if given is None:
                continue
            if id(given) not in kept:
                kept[id(given)] = np.array(given, dtype=np.float64)
                kept[id(given)].flags.writeable = False
            object.__setattr__(self, name, kept[id(given)])

    def repeated(self, cost: Cost) -> Answer:
        """The same answer, given once more, with the source `repeat`; `cost` is what was charged on the way to it.

        It shares its arrays, which are read-only, with this one, so that nothing is copied or checked again.
        """
        again = object.__new__(Answer)
        again.__dict__.update(self.__dict__)
        again.__dict__["cost"] = cost
        again.__dict__["source"] = "repeat"
        return again

    def with_population(self, error: NDArray[np.float64], beta: float, theorem: str) -> Answer:
        """The same answer with its `population_error`, which nobody writes to from now on.

        `beta` and `theorem` are those of the error. The other arrays are shared with this answer.
        """
        error.flags.writeable = False
        told = object.__new__(Answer)
        told.__dict__.update(self.__dict__)
        told.__dict__["population_error"] = error
        told.__dict__["population_beta"] = beta
        told.__dict__["population_theorem"] = theorem
        return told

    @property
    def measure(self) -> str:
        """What the numbers are in one word, as frames head them: `value` (of a count), `share`, `rate`, `avg`."""
        return "value" if self.unit == "people" else self.unit.partition(" ")[0]

    @property
    def described(self) -> str:
        """The question in words: ``rate smoker in (true) within district``."""
        if self.measure == "value":
            return self.query.describe()
        between = "within" if self.measure == "rate" else "by"
        groups = f" {between} {', '.join(self.query.by)}" if self.query.by else ""
        if self.measure not in ("share", "rate"):
            return f"{self.unit} over {self.query.where.describe()}{groups}"
        return f"{self.measure} {self.query.where.describe()}{groups}"

    @property
    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Ends of intervals that need not lie evenly around `value`, also those of `cut_bins`; None elsewhere."""
        if self.cut_bins is not None:
            return self.cut_bins.low, self.cut_bins.high
        return None if self.low is None or self.high is None else (self.low, self.high)

    def interval(self, i: int) -> tuple[float, float] | None:
        """The ends of the interval of the cell `i`, in the order of `rows`; None where nothing is proved of it."""
        value, error = float(self.value.flat[i]), float(self.error.flat[i])
        if self.low is None and not isfinite(error):
            return None
        if self.ends is None:
            return value - error, value + error
        low, high = self.ends
        return float(low.flat[i]), float(high.flat[i])

    def rows(self) -> list[tuple[tuple[str, ...], float, float]]:
        """The labels, the value and the error of each cell, in the unit of the answer and the domain's order."""
        cells = zip(self.query.labels(), self.value.ravel(), self.error.ravel(), strict=True)
        return [(labels, float(value), float(error)) for labels, value, error in cells]

    @overload
    def to_frame(self, backend: Literal["pandas"]) -> pd.DataFrame: ...

    @overload
    def to_frame(self, backend: Literal["polars"]) -> pl.DataFrame: ...

    @overload
    def to_frame(self, backend: str = "pyarrow") -> Any: ...  # pyarrow has no types

    def to_frame(self, backend: str = "pyarrow") -> Any:
        """A frame with a row for each cell: its labels, `value` (or `share`, or `rate`), `error` and `noisy`.

        Where an interval need not lie evenly around its value, the frame has its ends as well, `low` and `high`,
        also those of `cut_bins`.

        `backend` is pyarrow, pandas, polars, or another that `answer.frames` names; a `ParameterError` where it is
        unknown or not installed.
        """
        return answer_frame(self, backend)

    def to_pandas(self) -> pd.DataFrame:
        """The frame of `to_frame` in pandas; a `ParameterError` says what to install where that is not there."""
        return self.to_frame("pandas")

    def to_polars(self) -> pl.DataFrame:
        """The frame of `to_frame` in polars; a `ParameterError` says what to install where that is not there."""
        return self.to_frame("polars")

    def plot(self) -> alt.LayerChart:
        """An Altair chart with a bar for each cell and a whisker over its error, of the first 60 cells.

        Raises a `ParameterError` that says what to install where Altair is not there.
        """
        rows = [
            ChartRow(labels, bar)
            for (labels, _, _), bar in zip(self._first(MOST_BARS), self._bars(MOST_BARS), strict=True)
        ]
        return error_bars(self.query.by, rows, value=self.measure, total=self.query.size)

    def _bars(self, most: int) -> list[ErrorBar]:
        """The interval of each cell, up to a number of them."""
        if self.ends is None:
            return [ErrorBar.around(value, error) for _, value, error in self._first(most)]
        values = islice(self.value.flat, most)
        return [ErrorBar(float(value), *(self.interval(i) or ())) for i, value in enumerate(values)]

    def _first(self, most: int) -> list[tuple[tuple[str, ...], float, float]]:
        """`rows` up to a number of cells: the others are not named, however many there are."""
        cells = islice(np.ndindex(*self.query.shape), most)
        return [
            (self.query.domain.labels(cell, self.query.by), float(self.value[cell]), float(self.error[cell]))
            for cell in cells
        ]

    def as_dict(self) -> dict[str, Any]:
        """The answer as plain values, which JSON can hold: the question, the rows and every known field."""
        common: dict[str, Any] = {
            "by": list(self.query.by),
            "cost": {self.cost.currency: self.cost.amount},
            "beta": self.beta,
            "source": self.source,
            "noise": self.noise,
            "population_error": None if self.population_error is None else self.population_error.tolist(),
            "population_beta": self.population_beta,
            "population_theorem": self.population_theorem,
            "unit": self.unit,
        }
        if self.cut_bins is not None:
            common["cut_bins"] = self.cut_bins.as_dict()
        if self.low is not None and self.high is not None:
            common |= {"low": self.low.tolist(), "high": self.high.tolist()}
        if not self.query.by:
            return {"value": float(self.value), "error": float(self.error), **common}
        rows = [
            {"cell": list(labels), "value": value, "error": error} for labels, value, error in self.rows()
        ]
        return {"rows": rows, **common}

    def __repr__(self) -> str:
        worst = notebook.half_width(float(self.error.max(initial=0.0)))
        told = f"{self.query.size:,} cells" if self.query.by else notebook.number(float(self.value))
        return f"Answer({self.described!r}: {told} {worst}, {self.source})"

    def _repr_html_(self) -> str:
        by = self.query.by
        shown = [
            [*labels, notebook.number(value), notebook.half_width(error), bar]
            for (labels, value, error), bar in zip(self._first(MOST_ROWS), self._bars(MOST_ROWS), strict=True)
        ]
        sure = notebook.certainty(self.beta)
        note = f"The table's own numbers are within their bars, all at once, with probability {sure}."
        if self.cut_bins is not None:
            note += " Rows are taken to be spread evenly in bins that are cut, which nobody vouches for."
        if not np.isfinite(self.error).all():
            note = "Numbers without a bound are estimates that nobody vouches for."
        note += f" Source: {self.source}; charged: {self.cost.currency} {self.cost.amount:.4g}."
        if self.population_error is not None:
            reach = notebook.half_width(float(self.population_error.max(initial=0.0)))
            note += f" Of the population behind the table: {reach}, by {self.population_theorem}."
        found = notebook.table(
            [*by, self.measure, "error", ""], shown, numbers=(self.measure, "error"), total=self.query.size
        )
        return notebook.panel(self.described, found, note=note)


def flat_numbers(nested: Any) -> list[float | None]:
    """The numbers of an array as `as_dict` has it, a list of lists or one number, in the order of its cells."""
    if not isinstance(nested, list):
        return [nested]
    return [number for part in cast("list[Any]", nested) for number in flat_numbers(part)]
