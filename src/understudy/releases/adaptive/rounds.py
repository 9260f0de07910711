"""The rounds of an adaptive release: look where the stand-in is wrong, measure what pays, refit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.mechanism.additive import Additive
from understudy.mechanism.merged import MergedGaps, MergedMarginals
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.releases.adaptive.beta import BetaShares
from understudy.releases.adaptive.combined import FirstMeasurement
from understudy.releases.adaptive.learner import ROUGH, Learner
from understudy.releases.adaptive.one_way import OneWayBars
from understudy.releases.adaptive.pick import Candidates, NoiseForecast, Picks, RoundSituation, pick
from understudy.releases.adaptive.rule import Rule
from understudy.releases.evidence import Evidence, Interval
from understudy.releases.residual.half_width import GaussianLaw, half_width
from understudy.releases.unspent import UnspentPrice
from understudy.standin.measurement import Measurement

Values = NDArray[np.float64]

PAIR_WEIGHT = 2
"""Gaps of pairs are looked at so much closer than those of triples: what is wrong with a pair is wrong in all of
them."""

DOUBT = 1.0
"""Standard deviations taken off noisy gaps: the largest of many are too large."""


@dataclass(eq=False)
class Rounds:
    """What all rounds share. `kept` is the part of the price that the last sweep will take.

    `bounds` are the intervals that the last round's gaps prove of candidates that no sweep will measure. They hold
    jointly with those of the evidence: `beta` shares the run's β among the steps. `firsts` has the first
    measurement of each clique that is in the `planned` sweep too: its bar combines both. `pair_bars` has the
    shortest bar that a measurement proved of each pair, in people.
    """

    evidence: Evidence
    learner: Learner
    candidates: Candidates
    rule: Rule
    unspent: UnspentPrice
    kept: Fraction
    beta: BetaShares
    one_way: OneWayBars
    planned: frozenset[Clique] = frozenset()
    bounds: dict[Clique, Interval] = field(default_factory=dict)
    firsts: dict[Clique, FirstMeasurement] = field(default_factory=dict)
    pair_bars: dict[Clique, float] = field(default_factory=dict)

    def round(self, t: int) -> None:
        """Look at gaps, pick what pays, measure it, refit; after the last round only where no sweep follows, from
        which the stand-in learns with its own fits.
        """
        rule, last = self.rule, t == self.rule.rounds
        shares = rule.round_shares()
        price = (self.unspent.left - self.kept) * shares[t - 1] / sum(shares[t - 1 :])
        tables = self.learner.standin.grouped(list(self.candidates.cliques))
        select = self.unspent.spend(price * rule.select)
        gaps = self._gaps(t, tables, select)
        measure = price - select
        coarse = self.learner.merging.coarse
        forecast = NoiseForecast(tables)
        situation = RoundSituation(self.candidates, coarse, gaps, forecast, self._sweeps_all)
        # The price buys so much 1/σ² in all.
        found = pick(situation, self.evidence.precision(measure), most=rule.most)
        if found is None and last:
            found = self._again(situation)
        if found is not None:
            self._measure(t, found, measure)
            if not last:
                self.learner.refit(ROUGH)
            elif not rule.guard:
                self.learner.finish()

    @cached_property
    def _marginals(self) -> tuple[Marginal, ...]:
        return tuple(Marginal(self.evidence.run.domain, c) for c in self.candidates.cliques)

    @property
    def _sweeps_all(self) -> bool:
        """Whether every answer will be measured, more closely than gaps can bound it."""
        return self.rule.guard > 0 and self.rule.guard_order == 0

    def _gaps(self, t: int, tables: Sequence[Values], price: Fraction) -> Values:
        """Noisy L1 distances of the stand-in from the table; the last ones also bound what no sweep measures."""
        run, pairs = self.evidence.run, self.candidates.pairs
        weights = (PAIR_WEIGHT,) * pairs + (1,) * (len(self.candidates) - pairs)
        guesses = tuple(np.rint(table).astype(np.int64) for table in tables)
        look = MergedGaps(
            self.learner.merging,
            self._marginals,
            guesses,
            weights,
            Price("rho", price),
            run.curator.relation,
            run.rounded,
        )
        scale = np.array(weights, np.float64)
        noisy = np.array(run.look(f"round {t} gaps", look), np.float64) / scale
        if t == self.rule.rounds and not self._sweeps_all:
            reach = look.mechanism.error(self.beta.gaps, cells=len(noisy))
            for clique, guess, gap in zip(
                self.candidates.cliques, guesses, noisy + reach / scale, strict=True
            ):
                self.bounds[clique] = self._bound(clique, guess, float(gap))
        return noisy - DOUBT * sqrt(float(look.mechanism.variance)) / scale

    def _bound(self, clique: Clique, guess: NDArray[np.int64], gap: float) -> Interval:
        """Deviations of a gap sum to the difference of totals, so none exceeds half of both together."""
        drift = abs(float(guess.sum()) - self.evidence.rows_told) + self.evidence.rows_error
        error = max(gap + drift, 0.0) / 2
        return Interval.around(self.learner.merging, clique, guess.astype(np.float64), error, "bounded")

    def _again(self, situation: RoundSituation) -> Picks | None:
        """Nothing new is worth its noise: what was measured is measured once more, or the heaviest pair."""
        bought = {m.clique for m in self.evidence.measurements}
        useful = [i for i in range(len(self.candidates)) if situation.useful[i]]
        if not useful:
            return None
        known = [i for i in useful if self.candidates.cliques[i] in bought]
        known = known or [max(useful, key=lambda i: self.candidates.weight[i])]
        return Picks(tuple(known), (1 / len(known),) * len(known), 0.0)

    def _measure(self, t: int, found: Picks, price: Fraction) -> None:
        run, merging = self.evidence.run, self.learner.merging
        parts = [Fraction(round(10**9 * share)) for share in found.share]
        prices = tuple(Price("rho", self.unspent.spend(price * part / sum(parts))) for part in parts)
        marginals = tuple(self._marginals[i] for i in found.which)
        look = MergedMarginals(merging, marginals, prices, run.curator.relation, run.rounded)
        beta = self.beta.picks / self.rule.rounds / len(prices)
        released = run.look(f"round {t} measure", look)
        for marginal, mechanism, counts in zip(marginals, look.mechanism.mechanisms, released, strict=True):
            shaped = np.array(counts, np.float64).reshape(merging.coarse.shape(marginal.by))
            self._prove(marginal.by, shaped, mechanism, beta)
            variance = float(mechanism.parameter)
            self.one_way.measured(marginal.by, shaped, variance)
            if marginal.by in self.planned and marginal.by not in self.firsts:
                self.firsts[marginal.by] = FirstMeasurement(marginal.by, shaped, variance)
            self.evidence.average(Measurement(marginal.by, shaped, variance))

    def _prove(self, clique: Clique, counts: Values, mechanism: Additive, beta: Fraction) -> None:
        """Intervals of what was measured, and of the pairs in it, each cell with the same part of `beta`."""
        merging = self.learner.merging
        pairs = [pair for pair in combinations(clique, 2) if pair != clique]
        coarse, noise = merging.coarse, GaussianLaw(float(mechanism.parameter), self.evidence.run.rounded)
        cell = beta / (counts.size + sum(map(coarse.size, pairs)))
        error = float(mechanism.error(cell * counts.size, cells=counts.size))
        self.evidence.prove(merging, clique, counts, error)
        self._keep_bar(clique, error)
        for pair in pairs:
            others = tuple(i for i, name in enumerate(clique) if name not in pair)
            summed = counts.sum(axis=others)
            draws = counts.size // summed.size
            law = np.full(summed.shape, draws * noise.variance)
            lift, loose = draws * noise.lift, noise.looseness
            error = half_width(law, cell, reach=float(draws), lift=lift, looseness=loose)
            self.evidence.prove(merging, pair, summed, error)
            self._keep_bar(pair, float(error.max()))

    def _keep_bar(self, clique: Clique, error: float) -> None:
        if len(clique) == 2:
            self.pair_bars[clique] = min(error, self.pair_bars.get(clique, inf))
