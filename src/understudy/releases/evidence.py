"""What a release has bought so far, and what that proves: noisy counts, the number of rows, intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import ParameterError
from understudy.mechanism.additive import Additive, noise_for
from understudy.privacy.columns import PARTITION
from understudy.privacy.cost import rounded_down
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.query.merging import Merging
from understudy.releases.run import MarginalAnswer, Run
from understudy.standin.measurement import Measurement

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interval:
    """Counts of a clique's cells lie between `low` and `high`, all of them, jointly with the other intervals."""

    clique: Clique
    low: Values
    high: Values
    basis: str

    @classmethod
    def around(
        cls, merging: Merging, clique: Clique, counts: Values, error: float | Values, basis: str
    ) -> Interval:
        """Of values, from counts of groups that are off by at most `error`, in all cells or in each.

        A value that is alone in its group has the group's interval; one of several is between 0 and the upper end.
        """
        low, high = possible_ends(counts, error)
        alone = merging.spread(clique, _alone(merging, clique))
        return cls(clique, merging.spread(clique, low) * alone, merging.spread(clique, high), basis)

    def meet(self, other: Interval) -> Interval:
        """Both hold; in cells where they cannot, one of them does (`met_ends`)."""
        return Interval(self.clique, *met_ends(self.low, self.high, other.low, other.high), self.basis)


def possible_ends(
    counts: Values, error: float | Values, least: float = 0.0, most: float = inf
) -> tuple[Values, Values]:
    """The part of counts ± `error` that lies from `least` to `most`, between which all counts are known to be.

    Where no part does, the noise was larger than its error, as anybody can see: told are then the possible counts
    that are no farther from the nearest possible one than the interval's farther end is, and no bar of 0.
    """
    low, high = counts - error, counts + error
    told = np.maximum(low, least), np.where(high < least, 2 * least - low, high)
    if isfinite(most):
        return np.where(low > most, np.maximum(2 * most - high, least), told[0]), np.minimum(told[1], most)
    return told


def met_ends(low: Values, high: Values, other_low: Values, other_high: Values) -> tuple[Values, Values]:
    """What two intervals have in common, cell by cell; where that is nothing, the least interval that holds both.

    One of them did not hold then, nobody knows which: the count is in the other one.
    """
    least, most = np.maximum(low, other_low), np.minimum(high, other_high)
    apart = most < least
    return (
        np.where(apart, np.minimum(low, other_low), least),
        np.where(apart, np.maximum(high, other_high), most),
    )


def _alone(merging: Merging, clique: Clique) -> Values:
    alone = np.ones(())
    for name in clique:
        widths = merging.widths[merging.domain.position(name)]
        alone = np.multiply.outer(alone, (widths == 1).astype(np.float64))
    return alone


class ProvedIntervals:
    """All intervals of a run, by clique; those of a clique that was measured again are intersected."""

    def __init__(self) -> None:
        self._known: dict[Clique, Interval] = {}
        self._holding: dict[str, list[Clique]] = {}

    def add(self, interval: Interval) -> None:
        """One more interval, which holds jointly with the others."""
        known = self._known.get(interval.clique)
        self._known[interval.clique] = interval if known is None else known.meet(interval)
        if known is None and interval.clique:
            self._holding.setdefault(interval.clique[0], []).append(interval.clique)

    def replace(self, interval: Interval) -> None:
        """An interval in place of that of its clique, which it was made of."""
        self._known.pop(interval.clique, None)
        self.add(interval)

    def of(self, clique: Clique) -> Interval | None:
        """What measuring the clique itself proved of it."""
        return self._known.get(clique)

    @property
    def cliques(self) -> list[Clique]:
        """The cliques that were measured, in that order; the empty one, the number of rows, is not listed."""
        return [clique for clique in self._known if clique]

    def inside(self, clique: Clique) -> Iterable[Interval]:
        """What is known of parts of a clique, and of the clique itself."""
        names = set(clique)
        for name in clique:
            for part in self._holding.get(name, ()):
                if names.issuperset(part):
                    yield self._known[part]

    def answer(
        self,
        clique: Clique,
        counts: Values,
        bound: Interval | None,
    ) -> MarginalAnswer:
        """The counts, moved into every interval about the clique, and what these have in common.

        Where intervals contradict each other, the count is moved into the least one that holds them (`met_ends`).
        A cell is never more than the cells of smaller marginals that hold it, and the same as one where the other
        attributes have one value.
        """
        own = self._known.get(clique)
        low = np.zeros(counts.shape) if own is None else own.low
        high = np.full(counts.shape, np.inf) if own is None else own.high
        basis = "bounded" if own is None else own.basis
        if bound is not None:
            low, high = met_ends(low, high, bound.low, bound.high)
        for part in self.inside(clique):
            if part.clique != clique:
                kept = [n if a in part.clique else 1 for a, n in zip(clique, counts.shape, strict=True)]
                same = part.high.size == counts.size
                least = part.low.reshape(kept) if same else np.zeros(counts.shape)
                low, high = met_ends(low, high, least, part.high.reshape(kept))
                basis = part.basis if same and own is None else basis
        value = np.clip(counts, low, high)
        return MarginalAnswer(clique, value, low, high, basis if np.isfinite(high).all() else "uncertified")


@dataclass(eq=False)
class Evidence:
    """Everything that a run has bought so far, and what it proves.

    `measurements` are noisy counts with the variance of their noise: what stand-ins are fitted to. `intervals` say
    between which numbers exact counts lie, and `rows_error` how far the measured number of rows may be off.

    The intervals are proved by the law of the noise alone, which is public: a step's noisy counts are all within
    the step's error except with probability β_step, its share of the run's β. The shares of all steps sum to β at
    most, so all intervals hold jointly with probability 1 - β, whatever steps were chosen in between by looking at
    earlier answers. An interval that combines noises of several steps gives each a weight that was fixed before
    the noise was drawn (`adaptive.beta`). No interval rests on a stand-in; moving an answer into its intervals is
    post-processing.
    """

    run: Run
    measurements: list[Measurement] = field(default_factory=list)
    intervals: ProvedIntervals = field(default_factory=ProvedIntervals)
    rows_error: float = 0.0
    _rows_told: float | None = None

    # ---- public numbers

    @property
    def private_rows(self) -> bool:
        """Whether the number of rows is private, as it is where a person's rows are added or removed."""
        return not self.run.curator.relation.rows_are_public

    def noise(self, price: Price) -> Additive:
        """What is added to the counts of a marginal that is measured at that price."""
        moved = self.run.curator.relation.moves(PARTITION)
        return noise_for(price, moved, rounded=self.run.rounded)

    def can_measure(self, rho: Fraction) -> bool:
        """Whether a marginal can be measured for so much rho, in whole units: its noise can be drawn."""
        try:
            self.noise(Price("rho", rounded_down(rho)))
        except ParameterError:
            return False
        return True

    def precision(self, rho: Fraction) -> float:
        """1/σ² of a marginal that is measured for so much rho, σ² the parameter of the law of its noise."""
        return float(1 / self.noise(Price("rho", rho)).parameter)

    @cached_property
    def plain(self) -> Merging:
        """No values merged: what counts of single values are about."""
        return Merging.none(self.run.domain)

    # ---- what was bought

    def measure(
        self,
        step: str,
        marginals: Sequence[Marginal],
        variances: Sequence[float],
        beta: Fraction,
        price: Price,
    ) -> None:
        """Buy noisy counts of marginals, each at the `price` and with noise of that variance; keep all of them."""
        answers = self.run.measure(step, marginals, price, beta=beta)
        for marginal, answer, variance in zip(marginals, answers, variances, strict=True):
            self.measurements.append(Measurement(marginal.by, answer.noisy, variance))
            self.prove(self.plain, marginal.by, answer.noisy, answer.error)

    def prove(self, merging: Merging, clique: Clique, counts: Values, error: float | Values) -> None:
        """Keep that the exact counts of a clique's groups are within `error` of noisy ones."""
        self.intervals.add(Interval.around(merging, clique, counts, error, "measured"))

    def keep_rows(self, noisy: Values, variance: float, error: float) -> None:
        """Keep a measured number of rows, and how far it may be off."""
        self.measurements.append(Measurement((), noisy, variance))
        self.prove(self.plain, (), noisy, error)
        self._rows_told, self.rows_error = float(noisy), error

    def bound_rows(self) -> None:
        """The number of rows, where it is private: the cells of every measured marginal add up to it."""
        told = self.intervals.of(()) or Interval((), np.array(0.0), np.array(inf), "measured")
        for clique in self.intervals.cliques:
            if one := self.intervals.of(clique):
                told = told.meet(
                    Interval((), np.asarray(one.low.sum()), np.asarray(one.high.sum()), "measured")
                )
        self.intervals.replace(told)
        low, high = float(told.low), float(told.high)
        self._rows_told, self.rows_error = (low + high) / 2, (high - low) / 2

    def average(self, new: Measurement) -> None:
        """Keep a measurement; what was measured before is averaged with it, by precision."""
        for j, old in enumerate(self.measurements):
            if old.clique == new.clique:
                self.measurements[j] = old.averaged(new)
                return
        self.measurements.append(new)

    # ---- the number of rows

    @property
    def rows_told(self) -> float:
        """The number of rows that `rows_error` is about: the public one, or the one that was measured."""
        if not self.private_rows:
            return float(self.run.curator.rows)
        assert self._rows_told is not None
        return self._rows_told

    @property
    def proved_rows(self) -> tuple[float, float]:
        """Where the number of rows lies: it is public, or is declared and measured to be in between."""
        if not self.private_rows:
            return float(self.run.curator.rows), float(self.run.curator.rows)
        declared, told = self.run.curator.declaration, self.intervals.of(())
        low, high = (0.0, inf) if told is None else (float(told.low), float(told.high))
        low = max(low, declared.rows_at_least or 0)
        return low, max(min(high, declared.rows_at_most or inf), low)

    @property
    def rows_precision(self) -> float:
        """1/σ² of what all measurements together say of the number of rows; endless where it is public."""
        if not self.private_rows:
            return inf
        return sum(1 / (m.variance * m.counts.size) for m in self.measurements)

    @property
    def rows(self) -> float:
        """The number of rows that all measurements together say best, within what is declared and proved."""
        if not self.private_rows:
            return float(self.run.curator.rows)
        weights = np.array([1 / (m.variance * m.counts.size) for m in self.measurements])
        sums = np.array([m.counts.sum() for m in self.measurements])
        return max(float(np.clip(weights @ sums / weights.sum(), *self.proved_rows)), 1.0)

    # ---- answers

    @property
    def beside(self) -> list[Clique]:
        """The cliques that were measured on the way and are not in the workload."""
        asked = set(self.run.workload)
        return [clique for clique in self.intervals.cliques if clique not in asked]

    def answers(
        self,
        counts: Mapping[Clique, Values],
        bounds: Mapping[Clique, Interval] | None = None,
    ) -> tuple[MarginalAnswer, ...]:
        """Counts by a stand-in, moved into all intervals that are proved, and into `bounds` that were paid for."""
        paid = bounds or {}
        return tuple(self.intervals.answer(c, table, paid.get(c)) for c, table in counts.items())
