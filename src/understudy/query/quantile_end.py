"""A quantile of a measure, or one end of an interval for it: what is asked of the rows of each cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.query.moment import measure

LARGEST_DENOMINATOR = 10_000
"""Of a level: as fine as four decimals."""


@dataclass(frozen=True)
class QuantileEnd:
    """A step of a measure near the value below which `level` of the rows lie (`point`), or at or beyond it.

    The `low` end lies at or below the quantile, and the `high` end at or above it. Its place between the bounds
    is drawn (`mechanism.quantile`); it is no sum, and nothing is added up of it. Raises a `QueryError` where
    the level is not between 0 and 1, or is finer than four decimals.
    """

    side: Literal["low", "point", "high"]
    level: Fraction
    name: str

    def __post_init__(self) -> None:
        if not 0 <= self.level <= 1:
            raise QueryError("the level of a quantile is a number between 0 and 1")
        if self.level.denominator > LARGEST_DENOMINATOR:
            raise QueryError("the level of a quantile has at most four decimals", remedy="write 0.9 or 0.025")

    @property
    def names(self) -> tuple[str, ...]:
        """The measure that is read."""
        return (self.name,)

    @property
    def low(self) -> Fraction:
        """The least place."""
        return Fraction(0)

    @property
    def high(self) -> Fraction:
        """The largest place."""
        return Fraction(1)

    @property
    def unit(self) -> tuple[str, ...]:
        """It is no share of a unit."""
        return ()

    @property
    def kind(self) -> str:
        """What it is called."""
        return f"quantile {self.level} {self.side}"

    def measures(self, domain: Domain) -> tuple[Bins, ...]:
        """The attribute; raises a `QueryError` where it is not declared with a resolution."""
        return (measure(domain, self.name),)

    def key(self, domain: Domain) -> str:
        """A name for what is drawn: other bounds or another resolution make another one."""
        (a,) = self.measures(domain)
        return f"{self.kind} of {a.identity} {a.lower_bound}..{a.upper_bound}/{a.resolution}"

    def describe(self) -> str:
        """The end in words, for people who read a ledger."""
        return f"{self.kind} of {self.name}"


def ends_of(level: float | Fraction, name: str) -> tuple[QuantileEnd, QuantileEnd, QuantileEnd]:
    """The lower end, the quantile and the upper end."""
    exact = level if isinstance(level, Fraction) else Fraction(str(level))
    low, point, high = (QuantileEnd(side, exact, name) for side in ("low", "point", "high"))
    return low, point, high
