"""A small table of values, and not of cells, that can be cut anywhere: a truth without an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counted import Rows
from understudy.domain.attribute import Attribute, Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.domain.refinement import refined
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal

DOMAIN = Domain(
    (
        Bins.between("age", [0, 20, 50, 100]),
        Bins.between("pay", [0.0, 250.0, 1000.0], null=True),
        Categories(name="sex", values=("F", "M")),
    )
)


class ValueRows(Rows):
    """Columns of values, coded anew for every domain."""

    def __init__(self, domain: Domain, values: Mapping[str, NDArray[Any]], **more: Any) -> None:
        self.values = values
        super().__init__(
            domain, np.array([_codes(domain[name], values[name]) for name in domain.names]), **more
        )

    def refined(self, domain: Domain) -> ValueRows:
        """The same rows in other cells; looks are counted, and deaths died, where the declared ones are."""
        outer, finer = self, ValueRows(domain, self.values)

        def sums_of(marginals: Any, *, resolution: int = 1) -> Any:
            outer.sums_of([])
            return Rows.sums_of(finer, marginals, resolution=resolution)

        finer.sums_of = sums_of  # type: ignore[method-assign]
        return finer


def _codes(attribute: Attribute, values: NDArray[Any]) -> NDArray[np.intp]:
    if isinstance(attribute, Bins):
        inside = np.searchsorted(np.array(attribute.starts), values, side="right") - 1
        return np.where(np.isnan(values.astype(float)), attribute.size - 1, inside)
    return np.array([attribute.code(value) for value in values], np.intp)


def table(rows: int = 3000, seed: int = 5) -> ValueRows:
    """Ages, pays of which one in ten is missing, and sexes, all of which depend on each other."""
    draw = np.random.default_rng(seed)
    age = np.minimum(draw.gamma(3, 12, rows).astype(int), 100)
    pay = np.minimum(np.round(age * 8 * draw.random(rows) + 3, 1), 1000.0)
    pay[draw.random(rows) < 0.1] = np.nan
    sex = np.where(draw.random(rows) < 0.3 + age / 250, "F", "M")
    return ValueRows(DOMAIN, {"age": age, "pay": pay, "sex": sex})


def count(truth: ValueRows, marginal: Marginal) -> NDArray[np.float64]:
    """The exact counts of a marginal over any refinement; no look: a test knows the table."""
    return ValueRows(marginal.domain, truth.values).exact(marginal)


def between(low: int, high: int, *, sex: str = "", by: tuple[str, ...] = ()) -> Marginal:
    """How many rows have an age from `low` up to `high`, which is not in it."""
    fine = refined(DOMAIN, "age", [edge for edge in (low, high) if 0 < edge <= 100])
    ages = fine["age"]
    assert isinstance(ages, Bins)
    sides: dict[str, Any] = {"age": [low <= start < high for start in ages.starts]}
    if sex:
        sides["sex"] = [sex == "F", sex == "M", False]
    return Marginal(fine, by, LinearQuery.conjunction(fine, sides))
