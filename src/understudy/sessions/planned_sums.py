"""Sums of noisy counts whose weights are fixed before each draw: what earlier answers tell of a later question.

Where a count of some rows and one of a part of them were bought, their difference is an unbiased count of the
others. Its noise is larger than the session promises, so that it answers nothing by itself; but a new look needs
only the precision that is missing.

Theorem     Let ε₁, …, εₘ be noises, each normal with variance σᵢ² given all that happened before it was drawn; let
            the weight wᵢ and σᵢ be fixed when εᵢ is drawn, by whoever saw everything before; and let Σ wᵢ²σᵢ² = V
            for a V that was fixed before ε₁ was drawn. Then Σ wᵢεᵢ is normal with variance V, whatever decided the
            weights and the variances. If the sum of wᵢ²σᵢ² is only known to lie between (1 - δ)V and V, then
            P[|Σ wᵢεᵢ| > (z + 4√δ)·√V] ≤ 2Φ(-z)/(1 - 2Φ(-4)).
Proof       Given all before its last draw, E exp(iλΣwᵢεᵢ + λ²V/2) loses that draw: exp(iλwₘεₘ + λ²wₘ²σₘ²/2) has
            expectation 1. So, draw by draw, E exp(iλΣwᵢεᵢ) = exp(-λ²V/2), which only the normal law has. For the
            second part let a last normal draw R, with variance what is missing of V and at most δV, make up the
            sum M to V: M + R is normal with variance V. Where |M| > (z + 4√δ)√V and |R| ≤ 4√δ√V, which R keeps
            with probability at least 1 - 2Φ(-4) whatever M is, |M + R| > z√V. ∎
Never drawn A sum whose later terms nobody asks for is no exception: think of them as drawn and not shown. Whether
            they are shown may depend on everything.
On lattices Discrete Gaussian noise is within one step of normal noise of the same parameter (`simulation`,
            coupling), and rounded normal noise within half of one, which adds Σ|wᵢ| people to the band. The σᵢ²
            are those of the normal noise.
Not claimed Weights that are chosen after a draw have no such law. An analyst who has seen a hundred noisy counts,
            and knows the table, asks for the sum of those whose noise is positive. So the noise of counts that
            are added up later is bounded by their variance only for sums that were planned before.
Plan        Some purchases take a share of β for one planned sum more, before they are drawn. With it goes the
            weight of their noise, which is a constant. The first later purchase that makes a sum with it, by being
            a part of the same rows, or having them as a part, or all others of a larger box, becomes its second
            term, also before it is drawn. These two say which question the sum is about, the third box of the
            three; when that is asked, what is missing of V is bought as the third term.
Shares      A planned sum fails with probability at most the share that its first purchase took for it, whatever
            second and third term the analyst brings about. Every purchase plans one sum at most. So all shares
            together are at most the parts of β that were taken for purchases, as without sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.query.box import Box
from understudy.theory.normal_law import ndtri

Values = NDArray[np.float64]
Place = tuple[tuple[str, bytes], ...]
Counted = tuple[Clique, Place]
"""The cells of a marginal, and the key of the box of rows that are counted."""

FILL = 1e-6
"""δ of the theorem: the third term has the variance that is missing, or so much of it less."""

WEIGHT = 0.42
"""The weight of the first two terms of a planned sum; that of the third is 1 - WEIGHT."""

SUM_SHARE = 0.2
"""The part of a purchase's share of β that goes to the sum that it plans."""

MEMORY, OFTEN = 20.0, 3.0
"""Sums are planned while, of about the last `MEMORY` counts that were bought, `OFTEN` could have been the third
box of two that were bought before: planning makes all counts a fiftieth dearer, and saves a quarter of a third."""

MOST_OBSERVED = 1 << 13
"""Counts that are remembered for sums; older ones are forgotten first."""

MOST_ALONG = 1 << 8
"""Boxes that differ along one attribute and are compared; older ones are forgotten first."""


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Noisy counts that were bought in full, all of one variance; None of them where they are not drawn yet.

    `share` is the part of β of the sum that was planned with them, 0 for none, and `weight` their weight in it.
    """

    noisy: Values | None
    variance: float
    share: float
    weight: float


@dataclass(frozen=True, slots=True)
class PlannedSum:
    """The first and the second term of a planned sum, with the signs that they have in it."""

    first: Counted
    second: Counted
    signs: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class KnownTerms:
    """The two terms of a planned sum that are known, and what its third one has to be.

    estimate   the two terms, each with its sign: unbiased counts of the third box
    weight     their weight in the sum
    variance   the most that the noise of the third term may have, in people squared; 0 or less where none will do
    """

    estimate: Values
    weight: float
    variance: float


def tail(share: float, cells: int) -> float:
    """How many deviations the band of a sum is wide, for each of some cells: z + 4√δ of the theorem."""
    return -float(ndtri(share * (1 - 1e-4) / cells / 2)) + 4 * FILL**0.5  # 2Φ(-4) is less than 1e-4


def variance_of_sum(width: float, weight: float, share: float, cells: int) -> float:
    """V, the most that the whole sum may have: its band, with a step of the lattice in each term, is the width.

    The weights of the three terms are `weight`, `weight` and 1 - `weight`.
    """
    return (max(width - 1 - weight, 0.0) / tail(share, cells)) ** 2


@dataclass(eq=False)
class PlannedSums:
    """Which counts were bought, and the sums that were planned with them. Theorem and plan are the module's.

    All of it follows from the purchases in their order. `copy` gives one to be added to.
    """

    domain: Domain
    recent: float = 0.0
    """How many of the latest counts were the third box of two that were known; older ones count for less."""
    _observed: dict[Counted, Observed] = field(default_factory=dict)
    _along: dict[tuple[Clique, str, Place], tuple[tuple[int, Counted], ...]] = field(default_factory=dict)
    _planned: dict[Counted, PlannedSum] = field(default_factory=dict)
    _taken: set[Counted] = field(default_factory=set)

    def copy(self) -> PlannedSums:
        """The same sums, to be added to."""
        return replace(
            self,
            _observed=dict(self._observed),
            _along=dict(self._along),
            _planned=dict(self._planned),
            _taken=set(self._taken),
        )

    @property
    def are_worth_it(self) -> bool:
        """Whether sums should be planned: enough of the latest counts could have used one."""
        return self.recent >= OFTEN

    @property
    def may_be_worth_it(self) -> bool:
        """Whether one of the latest counts could have used a sum: more may come."""
        return self.recent >= 1 / 2

    # ---- purchases

    def begin(self, by: Clique, where: Box, *, share: float, weight: float) -> None:
        """Counts are about to be drawn: they become the second term of sums, and plan one with a share of β."""
        mine = by, where.key
        related = list(self._related(by, where))
        self.recent = self.recent * (1 - 1 / MEMORY) + any(self._is_drawn(third) for _, third, _ in related)
        if mine in self._observed:
            return  # drawn before: its noise is known to whoever asks now
        for first, third, signs in related:
            held = self._observed[first]
            if held.share and first not in self._taken and third not in self._observed:
                self._taken.add(first)
                self._planned[third] = PlannedSum(first, mine, signs)
        self._observed[mine] = Observed(None, inf, share, weight)
        for name, cells in where.sides.items():
            place = by, name, _without(where.key, name)
            self._along[place] = (*self._along.get(place, ()), (_bits(cells), mine))[-MOST_ALONG:]
        if len(self._observed) > MOST_OBSERVED:
            self._forget(next(iter(self._observed)))

    def finish(self, by: Clique, where: Box, noisy: Values, variance: float) -> None:
        """Counts were drawn in full, as they were begun."""
        mine = by, where.key
        if mine in self._observed and self._observed[mine].noisy is None:
            self._observed[mine] = replace(self._observed[mine], noisy=noisy, variance=variance)

    def completed(self, by: Clique, where: Box, noisy: Values, variance: float) -> None:
        """The third term of the sum that was planned for a question was drawn: no other one is added to it.

        By itself it may become the second term of other sums.
        """
        self.begin(by, where, share=0.0, weight=0.0)
        self.finish(by, where, noisy, variance)
        self.given_up(by, where)

    def given_up(self, by: Clique, where: Box) -> None:
        """No third term is added to the sum that was planned for a question (`Never drawn`)."""
        self._planned.pop((by, where.key), None)

    def _forget(self, oldest: Counted) -> None:
        """Forget counts, and the sums that were planned with them."""
        del self._observed[oldest]
        self._planned = {
            third: plan for third, plan in self._planned.items() if oldest not in (plan.first, plan.second)
        }
        self._taken.discard(oldest)
        by, key = oldest
        for name, _ in key:
            place = by, name, _without(key, name)
            left = tuple(part for part in self._along[place] if part[1] != oldest)
            if left:
                self._along[place] = left
            else:
                del self._along[place]

    # ---- what they tell

    def terms(self, by: Clique, where: Box, width: float) -> KnownTerms | None:
        """The two known terms of the sum that was planned for a question; None where there is none.

        `width` is the session's, in people: the band of the whole sum.
        """
        plan = self._planned.get((by, where.key))
        if plan is None:
            return None
        first, second = self._observed.get(plan.first), self._observed.get(plan.second)
        if first is None or second is None or first.noisy is None or second.noisy is None:
            return None
        most = variance_of_sum(width, first.weight, first.share, first.noisy.size)
        left = most - first.weight**2 * (first.variance + second.variance)
        estimate = plan.signs[0] * first.noisy + plan.signs[1] * second.noisy
        return KnownTerms(estimate, first.weight, left / (1 - first.weight) ** 2)

    def _is_drawn(self, counted: Counted) -> bool:
        held = self._observed.get(counted)
        return held is not None and held.noisy is not None

    def _related(self, by: Clique, where: Box) -> Iterator[tuple[Counted, Counted, tuple[int, int]]]:
        """Counts that were bought and make a third box with this one: they, that box, and the signs of both."""
        key = where.key
        for attribute in self.domain:
            name = attribute.name
            if name in by:
                continue
            rest, whole = _without(key, name), _all_bits(attribute.size)
            others = self._along.get((by, name, rest), ())
            if name in where.sides and (by, rest) in self._observed:
                others = (*others, (whole, (by, rest)))
            if not others:
                continue
            mine = _bits(where.sides[name]) if name in where.sides else whole
            for bits, first in others:
                if bits & mine == mine and bits != mine:
                    yield first, (by, _with(rest, attribute.size, name, bits ^ mine, self.domain)), (1, -1)
                elif bits & mine == bits and bits != mine:
                    yield first, (by, _with(rest, attribute.size, name, bits ^ mine, self.domain)), (-1, 1)
                elif bits & mine == 0 and bits | mine == whole:
                    yield first, (by, rest), (1, 1)


def _bits(cells: NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(cells).tobytes(), "big")


def _all_bits(size: int) -> int:
    """`_bits` of all cells of an attribute."""
    return ((1 << size) - 1) << -size % 8


def _without(key: Place, name: str) -> Place:
    return tuple(part for part in key if part[0] != name)


def _with(rest: Place, size: int, name: str, bits: int, domain: Domain) -> Place:
    """The key of a box with one more condition, in the domain's order of attributes."""
    held = dict(rest) | {name: bits.to_bytes(-(-size // 8), "big")}
    return tuple((each, held[each]) for each in domain.clique(held))
