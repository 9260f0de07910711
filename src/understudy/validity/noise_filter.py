"""The noise of a holdout's scores under Theorem T: chosen on the way, under a cap, certified at the realised sum.

Theorem T (`theory.tilting`) charges each answer by its noise: Σ ln B_j. A mode fixes in advance the order α, the
noise that is planned for each of its k scores, and the cap on the sum: k times what the planned noise adds. The
noise of the next score may depend on all answers before it, as long as the sum stays under the cap: a filter.
The width of a score is the reach of its own noise and t at the sum up to and with it ("realised sums" in
`theory.tilting`); so early scores are narrower than late ones, a coarse score leaves more for later ones, and a
fine one takes more.

Sums are whole numbers: `UNITS` for the planned noise, and for another one what it adds in proportion, rounded up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, inf, isfinite

from understudy.errors import HandleClosedError, ParameterError, RefusedError
from understudy.theory.tilting import outward, tilting_t

UNITS = 10**12
"""What one score with the planned noise counts for."""

COARSEST = 1.0
"""The largest scale of noise on scores between 0 and 1 that may be asked for."""


@dataclass(frozen=True, eq=False)
class NoiseFilter:
    """What noise adds up to, and the t that is certified for it.

    rows      independent rows
    queries   how many scores with the planned noise the cap allows
    beta      the probability with which t may fail
    alpha     the order of the theorem, fixed in advance
    planned   the scale of the planned noise, as a score: σ of normal noise, r of bounded noise
    log_bound ln B of one answer with noise of a scale, infinite where the theorem says nothing
    """

    rows: int
    queries: int
    beta: float
    alpha: float
    planned: float
    log_bound: Callable[[float], float]

    @cached_property
    def cap(self) -> int:
        """The units that all scores together may add up to."""
        return self.queries * UNITS

    @cached_property
    def planned_bound(self) -> float:
        """ln B of one answer with the planned noise: what `UNITS` stand for."""
        return self.log_bound(self.planned)

    def cost(self, scale: float | None) -> int | None:
        """The units of one score with noise of this scale, the planned one without; None if more than the cap."""
        if scale is None or scale == self.planned:
            return UNITS
        ratio = _ratio(self, scale)
        return ceil(UNITS * ratio) if ratio < 2 * self.queries else None

    def t(self, units: int) -> float:
        """How far a question can be from its expectation when so much was spent, but for `beta`."""
        spent = outward(outward(units / UNITS) * self.planned_bound)
        return tilting_t(self.rows, self.beta, self.alpha, spent)

    def admit(self, units: int, scale: float | None, means: int = 1) -> None:
        """Refuse a score of so many means whose noise does not fit under the cap after `units` were spent.

        Raises a `RefusedError` that names the least scale that does, and a `HandleClosedError` where none does.
        """
        cost = self.cost(scale)
        if cost is not None and units + means * cost <= self.cap:
            return
        least = self.least_scale(units, means)
        if least is None:
            raise HandleClosedError(
                "the noise of all scores so far adds up to the cap of the certificate: it covers no more. New "
                "rows make a new holdout"
            )
        raise RefusedError(
            f"noise of scale {self.planned if scale is None else scale:.4g} does not fit under what is left of "
            "the certificate's cap",
            remedy=f"take `scale={least:.6g}` or more. Nothing was counted",
        )

    def least_scale(self, units: int, means: int = 1) -> float | None:
        """The least scale that the noise of the next means may have, rounded up; None where none fits any more."""
        left = (self.cap - units) // means
        coarse = self.cost(COARSEST)
        if coarse is None or coarse > left:
            return None
        low, high = 0.0, COARSEST  # the cost falls with the scale
        for _ in range(60):
            middle = (low + high) / 2
            cost = self.cost(middle) if middle > 0 else None
            low, high = (low, middle) if cost is not None and cost <= left else (middle, high)
        return min(COARSEST, float(f"{high * (1 + 1e-5):.6g}"))  # six digits are off by half of that at most


@lru_cache(maxsize=4096)
def _ratio(noise: NoiseFilter, scale: float) -> float:
    """What a scale adds over what the planned one does, rounded up."""
    try:
        found = noise.log_bound(scale)
    except (ZeroDivisionError, OverflowError):  # next to no noise at all
        return inf
    return outward(outward(found) / noise.planned_bound) if found < inf else inf


def checked_scale(scale: float | None) -> float | None:
    """A scale of noise as a float, between 0 and 1; raises a `ParameterError` for anything else."""
    if scale is None:
        return None
    try:
        found = float(scale)
    except (TypeError, ValueError):
        found = inf
    if not (isfinite(found) and 0 < found <= COARSEST):
        raise ParameterError(f"the scale of noise on a score is above 0 and at most 1, not {scale!r}")
    return found
