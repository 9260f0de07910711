"""An answer: a number, how far it can be off, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.answer.frames import answer_frame
from understudy.errors import ParameterError
from understudy.privacy.cost import Cost
from understudy.query.marginal import Marginal


@dataclass(frozen=True, eq=False)
class Answer:
    """Values for the cells of a marginal, all within `error` of the table's with probability 1 - `beta`.

    `value` and `error` are in the unit of the question: people for a count, a fraction for a share. A single
    number is an array without axes. `noisy` is what the mechanism released, before it was clipped to what is
    possible: unbiased, and so the better one to add up. `population_error` is the half-width against the
    population behind the table, where a theorem gives one; all of them hold except with probability
    `population_beta`.
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

    def __post_init__(self) -> None:
        if (self.population_error is None) != (self.population_beta is None):
            raise ParameterError("a population error comes with the probability that it fails, and only then")
        kept: dict[int, NDArray[np.float64]] = {}  # an array that is given twice is kept once
        for name in ("value", "error", "noisy", "population_error"):
            given = getattr(self, name)
            if given is None:
                continue
            if id(given) not in kept:
                kept[id(given)] = np.array(given, dtype=np.float64)
                kept[id(given)].flags.writeable = False
            object.__setattr__(self, name, kept[id(given)])

    def rows(self) -> list[tuple[tuple[str, ...], float, float]]:
        """(labels, value, error) for each cell."""
        cells = zip(self.query.labels(), self.value.ravel(), self.error.ravel(), strict=True)
        return [(labels, float(value), float(error)) for labels, value, error in cells]

    def to_frame(self, backend: str = "pyarrow") -> Any:
        """A pandas, polars or Arrow frame with a row for each cell: its labels, `value`, `error` and `noisy`."""
        return answer_frame(self, backend)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for machines."""
        common = {
            "by": list(self.query.by),
            "cost": {self.cost.currency: self.cost.amount},
            "beta": self.beta,
            "source": self.source,
            "population_error": None if self.population_error is None else self.population_error.tolist(),
            "population_beta": self.population_beta,
        }
        if not self.query.by:
            return {"value": float(self.value), "error": float(self.error), **common}
        rows = [
            {"cell": list(labels), "value": value, "error": error} for labels, value, error in self.rows()
        ]
        return {"rows": rows, **common}
