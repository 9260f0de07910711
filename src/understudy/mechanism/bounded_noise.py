"""Bounded noise on integers: every answer is within a stated number of people for sure."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import isqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import ParameterError, RefusedError
from understudy.mechanism.card import Card, Family, NoiseSubject
from understudy.mechanism.parameters import lattice_sensitivity, lattice_values
from understudy.noise.bounded import bounded, bounded_log_law, checked_reach
from understudy.noise.samplers import NoiseSource
from understudy.privacy.bounded_noise import (
    MAX_LARGEST,
    MAX_REACH,
    BoundedNoise,
    BoundedPrice,
    bounded_price,
    most_set_aside,
)
from understudy.privacy.relation import Sensitivity
from understudy.rational import Number

FISHER = 12.0903
"""(R + 1)² times the Fisher information of the law, m²π²/(4(m - 1)) for m = 7/2: the price, but for the ends."""

MORE = Fraction(10**9)
"""More than a whole budget."""


@dataclass(frozen=True, kw_only=True)
class BoundedMechanism:
    """Add to each of a vector of integers independent noise x, |x| ≤ R, P[x] ∝ cos(πx/(2(R + 1)))^(7/2).

    Privacy     At the Rényi order `order`, with `set_aside` outcomes at one end set aside where one person
                moves a number by `largest`: a divergence and a mass, which the event records. One person moves
                the vector by at most `l1` in total, and each number by at most `largest`.
                (`privacy.bounded_noise` has the proof.)
    Accuracy    |noise| ≤ R = `reach`, always: no share of β, however many answers there are.
    Complexity  O(1) draws for each entry; the price is a sum over the 2R + 1 outcomes, found once.
    Gap         R is at most 2¹⁷, and one person moves a number by at most 64.
    """

    reach: int
    l1: int
    largest: int
    set_aside: int
    order: Fraction

    def __post_init__(self) -> None:
        lattice_sensitivity(self.l1)
        object.__setattr__(self, "reach", checked_reach(self.reach))
        _ = self.event  # priced here: what has no price is refused before anything is charged

    @classmethod
    def within(cls, reach: int, moved: Sensitivity, *, order: Fraction, delta: Fraction) -> BoundedMechanism:
        """Noise of this reach, with as many outcomes set aside as a mass of `delta` allows.

        Raises RefusedError where the mass is too small for one person's move, or the move too large.
        """
        l1, largest = _moves(moved)
        set_aside = most_set_aside(checked_reach(reach), l1, largest, delta) if l1 else 1
        if not set_aside:
            raise RefusedError(
                f"noise that stays within {reach} has ends that are heavier than the delta of {float(delta):g} "
                f"that there is for them",
                remedy="ask for a wider error, or give more of delta to be set aside",
            )
        return cls(reach=reach, l1=l1, largest=largest, set_aside=set_aside, order=order)

    @classmethod
    def balanced(
        cls, reach: int, moved: Sensitivity, *, order: Fraction, divergence: Fraction, delta: Fraction
    ) -> BoundedMechanism:
        """Noise of this reach of which the most answers can be paid by a whole budget of `divergence` and `delta`.

        The more outcomes are set aside, the smaller is the divergence and the larger the mass: the larger of
        the parts that one answer takes of the two is made as small as it can be. Raises RefusedError where that
        is more than all.
        """
        return _balanced(cls, reach, moved, order, divergence, delta)

    @classmethod
    def for_price(
        cls, divergence: Fraction, moved: Sensitivity, *, order: Fraction, delta: Fraction
    ) -> BoundedMechanism:
        """Noise of the least reach that was found to cost at most this divergence, and at most `delta` of mass.

        Raises RefusedError where noise of the largest reach costs more.
        """
        return _for_price(cls, divergence, moved, order, delta)

    @property
    def parameter(self) -> Fraction:
        """The number that the law of the noise depends on: its reach."""
        return Fraction(self.reach)

    @property
    def spread(self) -> float:
        """The length that the noise grows with: its reach."""
        return float(self.reach)

    @cached_property
    def variance(self) -> float:
        """Of the noise on one entry: about 0.0887·(R + 1)²; 0 when nobody can move the values."""
        if self.l1 == 0:
            return 0.0
        outcomes = np.arange(-self.reach, self.reach + 1, dtype=np.float64)
        return float((np.exp(bounded_log_law(self.reach, outcomes)) * outcomes**2).sum())

    @property
    def event(self) -> BoundedNoise:
        return BoundedNoise.priced(
            reach=self.reach, l1=self.l1, largest=self.largest, set_aside=self.set_aside, order=self.order
        )

    def event_for(self, moved: Sensitivity) -> BoundedNoise:
        """The event of this noise on values that neighbours move by `moved`; `event`, if it was made for that."""
        l1, largest = _moves(moved)
        return BoundedNoise.priced(
            reach=self.reach, l1=l1, largest=largest, set_aside=self.set_aside, order=self.order
        )

    def release(self, values: NDArray[np.int64], *, noise: NoiseSource) -> NDArray[np.int64]:
        """The values with noise; exact where nobody can move them."""
        values = lattice_values(values)
        if self.l1 == 0:
            return values
        return values + bounded(self.reach, values.size, noise=noise).reshape(values.shape)

    def draw_many(self, values: NDArray[np.int64], times: int, *, noise: NoiseSource) -> list[list[int]]:
        """So many independent releases of a vector; each costs as one."""
        return self.release(np.tile(values, (times, 1)), noise=noise).tolist()

    def error(self, beta: Number, *, cells: int = 1) -> int:
        """The reach, within which all `cells` noises are for sure: neither `beta` nor `cells` matters."""
        del beta, cells
        return 0 if self.l1 == 0 else self.reach

    def log_law(self, value: int, outputs: ArrayLike) -> NDArray[np.float64]:
        """ln P[output | value], for outputs that are integers; minus infinity for those that cannot be."""
        return bounded_log_law(self.reach, np.asarray(outputs, dtype=np.int64) - value)


def _moves(moved: Sensitivity) -> tuple[int, int]:
    """How far the vector moves in total, and how far one of its whole numbers can at most."""
    largest = min(moved.l1, isqrt(moved.l2_squared))
    if largest > MAX_LARGEST:
        raise RefusedError(
            f"one person can move a number by {largest}, and bounded noise is priced for at most {MAX_LARGEST}",
            remedy="ask for Gaussian noise, or declare fewer rows to a person",
        )
    return moved.l1, max(largest, 1)


@lru_cache(maxsize=1024)
def _balanced(
    kind: type[BoundedMechanism],
    reach: int,
    moved: Sensitivity,
    order: Fraction,
    divergence: Fraction,
    delta: Fraction,
) -> BoundedMechanism:
    l1, largest = _moves(moved)

    def part(set_aside: int) -> Fraction:
        """The larger part of the two, where they have a price."""
        price = _priced(reach, l1, largest, set_aside, order)
        return MORE if price is None else max(price.divergence / divergence, price.delta / delta)

    def too_many(set_aside: int) -> bool:
        """Whether the mass is the larger part; also beyond what can be set aside."""
        price = None if set_aside > reach else _priced(reach, l1, largest, set_aside, order)
        return set_aside > reach or (
            price is not None and price.delta * divergence > price.divergence * delta
        )

    checked_reach(reach)
    few, many = largest - 1, largest
    while not too_many(many):
        few, many = many, 2 * many
    many = min(many, reach + 1)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if too_many(middle) else (middle, many)
    best = min((at for at in (few, many) if largest <= at <= reach), key=part, default=0)
    if not best or part(best) > 1:
        raise RefusedError(
            f"noise that stays within {reach} has ends that are heavier than this budget pays for",
            remedy="ask for a wider error, or declare a larger `key_delta`",
        )
    return kind(reach=reach, l1=l1, largest=largest, set_aside=best, order=order)


def _priced(reach: int, l1: int, largest: int, set_aside: int, order: Fraction) -> BoundedPrice | None:
    """What noise costs; None where it has no price, because too few outcomes are set aside for this order."""
    try:
        return bounded_price(reach, l1, largest, set_aside, order)
    except ParameterError:
        return None


@lru_cache(maxsize=1024)
def _for_price(
    kind: type[BoundedMechanism], divergence: Fraction, moved: Sensitivity, order: Fraction, delta: Fraction
) -> BoundedMechanism:
    def found(reach: int) -> BoundedMechanism | None:
        try:
            built = kind.within(reach, moved, order=order, delta=delta)
        except (ParameterError, RefusedError):  # no price at all
            return None
        return built if built.event.divergence <= divergence else None

    if divergence <= 0:
        raise ParameterError(f"a price at a Rényi order is positive, not {divergence}")
    l1, largest = _moves(moved)
    near = isqrt(int(FISHER * float(order) * max(l1, 1) * largest / (2 * float(divergence)))) + 1
    fails, holds, step = 0, min(near, MAX_REACH), 1
    while (built := found(holds)) is None:
        if holds == MAX_REACH:
            raise RefusedError(
                f"bounded noise of the largest reach, {MAX_REACH}, costs more than that",
                remedy="pay more, or ask for Gaussian noise",
            )
        fails, holds = holds, min(2 * holds, MAX_REACH)
    while holds - step > fails and (better := found(holds - step)) is not None:
        built, holds, step = better, holds - step, 2 * step
    fails = max(fails, holds - step)
    while holds - fails > 1:
        middle = (fails + holds) // 2
        if (better := found(middle)) is None:
            fails = middle
        else:
            built, holds = better, middle
    return built


CARD = Card(
    name="bounded, on integers",
    family=Family.NOISE,
    privacy="a divergence at one Rényi order, and a δ for the ends",
    accuracy="never off by more than R",
    source="Dagan, Kur 2020, for bounded noise; the law and its price are ours",
    events=(BoundedNoise,),
    audited=(
        NoiseSubject(
            "bounded",
            "mechanism.bounded_noise.BoundedMechanism.release",
            lambda epsilon, moved, shift: BoundedMechanism.for_price(
                4 * epsilon**2 / 2,
                Sensitivity(moved, sum(step * step for step in shift)),
                order=Fraction(4),
                delta=Fraction(1, 1000),
            ),
            most=MAX_LARGEST,
        ),
    ),
)
