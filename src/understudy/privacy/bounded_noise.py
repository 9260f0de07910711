"""Bounded noise on counts: its event, and what it costs at one Rényi order.

The noise is a whole number x with |x| ≤ R and P[x] ∝ cos(πx/(2(R + 1)))^(7/2): no answer is ever off by more than
R people. The chance of an outcome vanishes at the ends, so that some outcomes of one table are impossible, or much
less likely, on its neighbour: no ε, no ρ and no μ hold. A Rényi divergence of one order does once a few outcomes
at an end are set aside, with a mass that the budget's δ pays for:

    D = ln(Σ P^a·Q^(1-a)) / (a - 1) over the outcomes that are not set aside,   d = the mass under P of the others,

where P is the law on one table, Q that on its neighbour, and a the order. Where a number moves by s, P is the
law of the noise and Q that of the noise plus s, or minus s; as the law is symmetric, both ways cost the same.
Counted from the low end, x = k - R - 1 has P ∝ sin(θk)^(7/2), θ = π/(2R + 2), k = 1, …, 2R + 1. The w lowest
are set aside, s ≤ w, and for the others P/Q = (sin θk / sin θ(k - s))^(7/2).

**Many numbers.** One person moves a vector by integers s_i with Σ|s_i| ≤ l1, each at most `largest` in size,
and the noises are independent: divergences and masses add up. So with w(s) outcomes set aside where a number
moves by s,

    all together cost at most   l1 · max D(s)/s   and   l1 · max d(s)/s   over s = 1, …, largest,

and somebody who moves the vector by a part of l1 costs at most that part of it, which is what joint accounting
needs (`joint`). Of the `set_aside` outcomes where a number moves by `largest`, a smaller s gets its part,
rounded up.

**How it is kept.** The event records order, divergence and δ, as decimals of six digits that were rounded up;
whoever reads it checks that they cover the noise. The sums are floats: every term has a relative error of a few
2⁻⁵³, and the terms of either sign together are at most 3R times as large as what is left of them, so that the
sum is off by less than 10⁻⁹ of itself for all R up to `MAX_REACH`; `ROOM`, ten times that, is added before
rounding.

Noise that is bounded is due to Dagan and Kur (2020); this law, its exponent and its price at one order are our
own.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import inf, isfinite, log1p, pi, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError, RefusedError
from understudy.privacy.event import AdditiveNoise, PrivacyLoss
from understudy.privacy.renyi import checked_order

EXPONENT = 3.5
"""m of cos^m. The Fisher information, m²π²/(4(m - 1)(R + 1)²), is least at m = 2, where the ends are too heavy."""

MAX_REACH = 1 << 17
"""The largest R: prices are sums over 2R + 1 outcomes."""

MAX_LARGEST = 64
"""The most steps by which a number may move: a price looks at each number of steps."""

MAX_TERMS = 1 << 20
"""The most of `reach` times `largest`: what bounds the work of a price, here and for whoever verifies it."""

DIGITS = 6
"""Significant digits of a recorded divergence or δ."""

ROOM = 1e-8
"""The part by which a recorded price exceeds the sum in floats that it stands for, at least."""

SMALLEST = 1e-300
"""No noise on what somebody moves is free, whatever floats say."""

SLACK = 1e-9
"""Of this, what reading a record allows for: the sum of another machine may differ in its last digits."""


class BoundedPrice(NamedTuple):
    """What bounded noise costs at an order, rounded up: a divergence, and the mass that is set aside for it."""

    divergence: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedNoise(AdditiveNoise):
    """Noise on integers that is never more than `reach`, priced at one Rényi order.

    One person moves the integers by at most `l1` in total and each by at most `largest`. For what it costs at
    `order`, `set_aside` outcomes at one end are set aside where a number moves by `largest`; `divergence` and
    `delta` are the price. Raises ParameterError where they do not cover the noise.
    """

    reach: int
    l1: int
    largest: int
    set_aside: int
    order: Fraction
    divergence: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        for name in ("reach", "l1", "largest", "set_aside"):
            object.__setattr__(self, name, _whole(getattr(self, name), name))
        if not (self.divergence >= 0 and 0 <= self.delta < 1):
            raise ParameterError(
                "the price of bounded noise is a divergence, and a delta of at least 0 below 1"
            )
        divergence, delta = _sums(self.reach, self.l1, self.largest, self.set_aside, self.order)
        if self.divergence < Fraction(divergence * (1 + SLACK)) or self.delta < Fraction(delta * (1 + SLACK)):
            raise ParameterError("the recorded price of bounded noise does not cover the noise")

    @classmethod
    def priced(cls, *, reach: int, l1: int, largest: int, set_aside: int, order: Fraction) -> BoundedNoise:
        """The event of such noise with its price at this order."""
        price = bounded_price(reach, l1, largest, set_aside, order)
        return cls(
            reach=reach, l1=l1, largest=largest, set_aside=set_aside, order=order,
            divergence=price.divergence, delta=price.delta,
        )  # fmt: skip

    @property
    def moves_nobody(self) -> bool:
        return self.l1 == 0

    def pure_cost(self) -> Fraction:
        if self.l1 == 0:
            return Fraction(0)
        raise RefusedError(
            "bounded noise gives no pure epsilon: the ends of its range tell two tables apart",
            remedy="Declare a budget with a delta that is kept at one Rényi order, or ask for Laplace noise",
        )

    def zcdp_cost(self) -> Fraction:
        if self.l1 == 0:
            return Fraction(0)
        raise RefusedError(
            "bounded noise has no price in rho: its divergence is finite at one order, and not at all",
            remedy="Declare a budget with a delta that is kept at one Rényi order, or ask for Gaussian noise",
        )

    def gdp_cost(self) -> Fraction | None:
        return Fraction(0) if self.l1 == 0 else None

    def renyi_cost(self, order: Fraction) -> Fraction:
        """The recorded divergence, at the recorded order; RefusedError at any other."""
        if self.l1 == 0:
            return Fraction(0)
        if order != self.order:
            raise RefusedError(
                f"bounded noise was priced at the Rényi order {self.order}, and this budget is kept at {order}",
                remedy="ask for it anew, at the order of the budget",
            )
        return self.divergence

    def delta_cost(self) -> Fraction:
        return self.delta

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        """As many numbers as can move by `largest`, and one that moves by the rest of `l1`."""
        if self.l1 == 0:
            return ()
        whole, rest = divmod(self.l1, self.largest)
        losses = (
            PrivacyLoss("bounded noise", float(self.reach), whole, self.largest),
            PrivacyLoss("bounded noise", float(self.reach), 1, rest),
        )
        return tuple(loss for loss in losses if loss.moved and loss.times)


def bounded_price(reach: int, l1: int, largest: int, set_aside: int, order: Fraction) -> BoundedPrice:
    """What the noise costs at this order, rounded up to six digits.

    >>> price = bounded_price(2000, 1, 1, 5, Fraction(22))
    >>> float(price.divergence), float(price.delta)
    (3.34525e-05, 3.9759e-12)
    """
    divergence, delta = _sums(reach, l1, largest, set_aside, order)
    if not isfinite(divergence):
        raise ParameterError(
            f"at order {order} bounded noise of reach {reach} has no price with {set_aside} outcomes set aside",
            remedy="set more outcomes aside, or take a larger reach",
        )
    return BoundedPrice(_rounded_up(divergence), _rounded_up(delta))


def most_set_aside(reach: int, l1: int, largest: int, delta: Fraction) -> int:
    """The most outcomes that can be set aside for a mass of at most `delta`; 0 where it is less than is needed.

    The more are set aside, the smaller is the divergence.
    """
    _check_noise(reach, l1, largest, largest)
    low, high = largest - 1, reach + 1  # `low` fits, or is too few to be tried; `high` does not fit
    while high - low > 1:
        middle = (low + high) // 2
        if _rounded_up(_mass(reach, l1, largest, middle)) <= delta:
            low = middle
        else:
            high = middle
    return low if low >= largest else 0


@lru_cache(maxsize=1024)
def _sums(reach: int, l1: int, largest: int, set_aside: int, order: Fraction) -> tuple[float, float]:
    """The price in floats, within 10⁻⁹ of itself; an infinite divergence where a sum overflows."""
    _check_noise(reach, l1, largest, set_aside)
    excess = float(checked_order(order) - 1)
    if l1 == 0:
        return 0.0, 0.0
    divergence = max(
        _divergence(reach, moved, _part(set_aside, moved, largest), excess) / moved
        for moved in range(1, largest + 1)
    )
    return l1 * divergence, _mass(reach, l1, largest, set_aside)


def _check_noise(reach: int, l1: int, largest: int, set_aside: int) -> None:
    if not 1 <= reach <= MAX_REACH:
        raise ParameterError(f"bounded noise reaches from 1 to {MAX_REACH} people, not {reach}")
    if not 1 <= largest <= MAX_LARGEST or not largest <= max(l1, 1):
        raise ParameterError(
            f"under bounded noise one person moves a number by 1 to {MAX_LARGEST} of {l1} steps, not {largest}"
        )
    if reach * largest > MAX_TERMS:
        raise ParameterError(
            f"bounded noise for a move of {largest} reaches at most {MAX_TERMS // largest} people, not {reach}"
        )
    if not largest <= set_aside <= reach:
        raise ParameterError(
            f"of bounded noise that reaches {reach}, {largest} to {reach} outcomes are set aside, not {set_aside}"
        )


def _part(set_aside: int, moved: int, largest: int) -> int:
    """How many outcomes are set aside where a number moves by so much: its part, rounded up."""
    return -(-set_aside * moved // largest)


def _mass(reach: int, l1: int, largest: int, set_aside: int) -> float:
    """l1 · max over s of the mass that is set aside where a number moves by s, divided by s."""
    lowest = np.concatenate([[0.0], np.cumsum(_law(reach)[:set_aside])])
    return l1 * max(float(lowest[_part(set_aside, s, largest)]) / s for s in range(1, largest + 1))


def _divergence(reach: int, moved: int, set_aside: int, excess: float) -> float:
    """D at the order 1 + `excess` where a number moves by `moved`.

    Σ P^a·Q^(1-a) = 1 - d + Σ P·expm1((a - 1)L), with L = (7/2)·ln(sin θk / sin θ(k - s)), of which the argument is
    1 + 2·cos(θ(k - s/2))·sin(θs/2)/sin θ(k - s): the sines are those of small numbers wherever they are small. The
    mass d is not taken off, which makes D too large by at most d/(a - 1) and leaves it positive.
    """
    theta, k = pi / (2 * reach + 2), np.arange(set_aside + 1, 2 * reach + 2, dtype=np.float64)
    law, before = _law(reach), k - moved
    below = np.sin(theta * np.minimum(before, 2 * reach + 2 - before))
    step = 2 * sin(theta * moved / 2) * np.sin(theta * (reach + 1 - k + moved / 2))
    with np.errstate(over="ignore"):
        grown = np.expm1(excess * EXPONENT * np.log1p(step / below))
        more = float((law[set_aside:] * grown).sum())
    return max(log1p(more) / excess, SMALLEST) if isfinite(more) else inf


@lru_cache(maxsize=16)
def _law(reach: int) -> NDArray[np.float64]:
    """The probabilities of the noise, from its low end on."""
    k = np.arange(1, 2 * reach + 2, dtype=np.float64)
    weights = np.sin(pi / (2 * reach + 2) * np.minimum(k, 2 * reach + 2 - k)) ** EXPONENT
    law = weights / weights.sum()
    law.setflags(write=False)
    return law


def _rounded_up(amount: float) -> Fraction:
    """The number and `ROOM`, rounded up to six digits."""
    if amount == 0:
        return Fraction(0)
    context = Context(prec=DIGITS, rounding=ROUND_CEILING)
    return Fraction(context.create_decimal(Decimal(amount * (1 + ROOM))))


def _whole(number: Fraction | int, name: str) -> int:
    if int(number) != number or number < 0:
        raise ParameterError(f"the {name.replace('_', ' ')} of bounded noise is a whole number, not {number}")
    return int(number)
