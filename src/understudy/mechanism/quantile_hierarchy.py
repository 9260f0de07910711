"""Several quantiles of a measure at once, from counts with noise that are refined where the quantiles lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, hypot

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.mechanism.additive import adds_noise, law_of, noise_for
from understudy.mechanism.bounded_noise import BoundedMechanism
from understudy.mechanism.card import Card, Family
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.parameters import whole
from understudy.mechanism.quantile_cuts import (
    BRANCHES,
    LADDER,
    ZOOM_CUTS,
    CutSearch,
    RoundTerms,
    counts_every_cut,
)
from understudy.mechanism.rounded_normal import RoundedNormalMechanism
from understudy.noise.samplers import NoiseSource
from understudy.noise.sums import NoiseLaw
from understudy.privacy.cost import UNITS
from understudy.privacy.event import Event, GaussianNoise, LaplaceNoise, RoundedNormal, Together
from understudy.privacy.price import Currency, Price
from understudy.privacy.relation import Sensitivity
from understudy.rational import probability

Whole = NDArray[np.int64]
RoundNoise = LaplaceMechanism | GaussianMechanism | RoundedNormalMechanism
"""The noise of a round, whose sums have a known law (`noise.sums`)."""

StepTable = tuple[Whole, Whole]
"""Steps that rows lie at, in order, and how many rows at each."""

LAST_PART = Fraction(13, 20)
"""The part of the price for the round that the intervals rest on; by simulation on smooth data."""

GROWTH: dict[Currency, Fraction] = {"epsilon": Fraction(3, 2), "rho": Fraction(2)}
"""Each round that looks for the quantiles costs so many times as much as the one before.

Less in epsilon, of which half means twice the noise, and not √2 times as in rho.
"""

EARLIER = Fraction(1, 25)
"""The part of β for ends that rest on earlier rounds, where the last one missed the quantile."""

MOST_LEVELS = 32
"""Quantiles of one measure that are found together."""


def round_parts(steps: int, levels: int, currency: Currency = "rho") -> tuple[Fraction, ...]:
    """The rounds for so many levels of a measure of so many steps, and the part of the price that each costs.

    One where every cut is counted; else the last, and before it as many as it takes to divide the range by
    `BRANCHES` down to regions of some dozen steps.
    """
    if counts_every_cut(steps, levels):
        return (Fraction(1),)
    zooms, size = 1, BRANCHES**3
    while size < steps:
        zooms, size = zooms + 1, size * BRANCHES
    parts = [GROWTH[currency] ** i for i in range(zooms)]
    return (*(part * (1 - LAST_PART) / sum(parts) for part in parts), LAST_PART)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileHierarchy:
    """Count the rows between cuts, with noise, in rounds: each round cuts where the last one saw the quantiles.

    The steps 0, …, K of a measure are cut at public places, and each round tells how many rows lie between its
    cuts, with noise of its own on every count. Where the next round cuts follows from what was told
    (`quantile_cuts`). The cells of a question go through the rounds side by side.

    Privacy     That of the rounds together: [BunSteinke16, Lemma 1.7] and [Lecture 4, Theorem 8] add up their
                prices, also as later cuts depend on what earlier rounds told. In each round a row counts in one
                of the counts of all cells, so that they are one partition of the rows.
    Accuracy    Except with probability `beta` in each cell, the lower end of every level is at or below, and the
                upper end at or above, every value between the order statistics of ranks ⌊p(n - 1)⌋ and
                ⌈p(n - 1)⌉: by a test of fixed sequence on the exact law of sums of noises (`quantile_cuts`).
                How near they are depends on the data; `ranks` says what is expected where values are dense.
    Complexity  O(rounds · levels · cuts) for a cell, beside one sorted table of its values.
    Gap         None: counts are whole numbers, and the noise is exact.
    """

    rounds: tuple[RoundNoise, ...]
    levels: tuple[Fraction, ...]
    steps: int
    beta: Fraction

    def __post_init__(self) -> None:
        whole(self.steps, "steps", at_least=1)
        object.__setattr__(self, "beta", probability(self.beta))
        if not 0 < len(self.levels) <= MOST_LEVELS:
            raise ParameterError(
                f"between 1 and {MOST_LEVELS} quantiles are found at once",
                remedy="ask for fewer in a question",
            )
        if list(self.levels) != sorted(set(self.levels)) or not 0 <= self.levels[0] <= self.levels[-1] <= 1:
            raise ParameterError("the levels of quantiles are different numbers between 0 and 1, in order")
        if len(self.rounds) != len(round_parts(self.steps, len(self.levels))):
            raise ParameterError("a hierarchy has as many rounds as its measure needs")
        if not all(adds_noise(mechanism) for mechanism in self.rounds):
            raise ParameterError("counts that nobody can move have quantiles that need no mechanism")

    @classmethod
    def made(
        cls,
        price: Price,
        moved: Sensitivity,
        *,
        levels: Sequence[Fraction],
        steps: int,
        beta: Fraction,
        rounded: bool = False,
    ) -> QuantileHierarchy:
        """The hierarchy that keeps to a price, for counts that neighbours move by at most `moved`.

        With `rounded` a price in rho buys normal noise that is rounded (`additive.noise_for`).

        The rounds' parts of the price are whole units of a ledger, and so are their parts for one row of a person:
        what is charged jointly with other questions is rounded up for each round.
        """
        unit, different = Fraction(4 * moved.l1**2, UNITS), tuple(sorted(set(levels)))
        parts = (price.amount * part for part in round_parts(steps, len(different), price.currency))
        amounts = [floor(part / unit) * unit or part for part in parts]
        rounds = tuple(_noise(Price(price.currency, amount), moved, rounded=rounded) for amount in amounts)
        return cls(rounds=rounds, levels=different, steps=steps, beta=beta)

    @property
    def event(self) -> Event:
        return _one([mechanism.event for mechanism in self.rounds])

    def event_for(self, moved: Sensitivity) -> Event:
        """The event of these rounds on counts that neighbours move by at most `moved`."""
        return _one([mechanism.event_for(moved) for mechanism in self.rounds])

    def draw_all(
        self, tables: Sequence[StepTable], *, noise: NoiseSource
    ) -> list[list[tuple[int, int, int]]]:
        """For each cell and each level the lower end, the estimate and the upper end, in steps."""
        searches = [CutSearch(self.steps, self.levels) for _ in tables]
        for mechanism, terms in zip(self.rounds, self._terms(), strict=True):
            cut = [search.cuts(terms) for search in searches]
            exact = [between(table, cuts) for table, cuts in zip(tables, cut, strict=True)]
            told = mechanism.release(np.concatenate(exact), noise=noise)
            ends = np.cumsum([counts.size for counts in exact])[:-1]
            for search, cuts, counts in zip(searches, cut, np.split(told, ends), strict=True):
                search.observe(cuts, counts, terms)
        return [search.ends() for search in searches]

    def ranks(self, level: Fraction) -> float:
        """How many ranks an end is expected to lie beyond the quantile, where values are dense."""
        *before, last = self._terms()
        if not before:
            return last.bound(level, self.steps, min(int(level * (self.steps + 1)), self.steps - 1)) + 1
        count = len(self.levels)
        bound = last.bound(level, 2 * len(LADDER) * count, len(LADDER) * count)
        seen = before[-1].deviation(level, ZOOM_CUTS * count)
        off = hypot(seen, last.deviation(level, 2 * len(LADDER) * count))
        return bound + off * sum(LADDER) / len(LADDER) + 1

    def _terms(self) -> list[RoundTerms]:
        """The noise of each round, and its part of β for one end of one level."""
        share, most = self.beta / (2 * len(self.levels)), len(self.rounds) - 1
        last = share if not most else share * (1 - EARLIER)
        return [
            RoundTerms(_law(mechanism), float(last if i == most else share * EARLIER / most), i == most)
            for i, mechanism in enumerate(self.rounds)
        ]


def between(table: StepTable, cuts: Whole) -> Whole:
    """How many rows lie between cuts, those before the first and after the last among them."""
    values, counts = table
    below = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return np.diff(np.concatenate([[0], below[np.searchsorted(values, cuts, "left")], [below[-1]]]))


def _noise(price: Price, moved: Sensitivity, *, rounded: bool) -> RoundNoise:
    made = noise_for(price, moved, rounded=rounded)
    assert not isinstance(made, BoundedMechanism)
    return made


def _law(mechanism: RoundNoise) -> NoiseLaw:
    law = law_of(mechanism)
    assert law is not None
    return law


def _one(events: Sequence[Event]) -> Event:
    return events[0] if len(events) == 1 else Together(tuple(events))


CARD = Card(
    name="quantiles from refined counts",
    family=Family.SELECTION,
    privacy="ε, or ρ-zCDP: that of its noise",
    accuracy="intervals of values, certain but with β; several quantiles for one price",
    source="Maurer, Hothorn and Lehmacher 1995 (fixed-sequence tests)",
    events=(LaplaceNoise, GaussianNoise, RoundedNormal),
)
