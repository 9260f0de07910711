"""Shares of a budget: what one analyst, one day or one month may take of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from understudy.privacy.cost import UNITS
from understudy.rational import positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """In the budget's own currency. They only ever narrow: the budget itself binds everybody together."""

    analyst: Fraction | None = None
    day: Fraction | None = None
    month: Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("analyst", "day", "month"):
            value = getattr(self, name)
            if value is not None:
                positive(value, f"the limit of a {name}" if name != "analyst" else "the limit of an analyst")

    def binding(self, *, analyst: str, at: str) -> Iterator[tuple[str, int]]:
        """The name of each share that a request at the ISO time `at` draws on, and its size in units.

        Whoever gives no name draws on one share, together with all others who give none.
        """
        shares = (
            (f"analyst {analyst!r}", self.analyst),
            (f"day {at[:10]}", self.day),
            (f"month {at[:7]}", self.month),
        )
        for name, size in shares:
            if size is not None:
                yield name, floor(size * UNITS)
