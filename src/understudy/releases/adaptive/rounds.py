"""The rounds of an adaptive release: look where the stand-in is wrong, measure what pays, refit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.mechanism.merged import MergedGaps
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.releases.adaptive.bars_sweep import BarsReserve
from understudy.releases.adaptive.beta import BetaShares
from understudy.releases.adaptive.combined import FirstMeasurement
from understudy.releases.adaptive.learner import ROUGH, Learner
from understudy.releases.adaptive.one_way import OneWayBars
from understudy.releases.adaptive.pair_weights import SeenPairs
from understudy.releases.adaptive.pick import Candidates, NoiseForecast, Picks, RoundSituation, pick
from understudy.releases.adaptive.rule import Rule
from understudy.releases.adaptive.sweep import PAIRS, SweepPlan
from understudy.releases.adaptive.top_up import TopUp, can_be_drawn
from understudy.releases.evidence import Evidence, Interval
from understudy.releases.unspent import UnspentPrice

Values = NDArray[np.float64]

PAIR_WEIGHT = 2
"""Gaps of pairs are looked at so much closer than those of triples: what is wrong with a pair is wrong in all of
them."""

DOUBT = 1.0
"""Standard deviations taken off noisy gaps: the largest of many are too large."""


@dataclass(eq=False)
class Rounds:
    """What all rounds share. `kept_for_sweep` is the part of the price that the last sweep will take; for one that
    is made for bars alone it is what its `bars` say, less from round to round.

    `bounds` are the intervals that the last round's gaps prove of candidates that no sweep will measure. They hold
    jointly with those of the evidence: `beta` shares the run's β among the steps. `firsts` has the first
    measurement of each clique that is in the `planned` sweep too: its bar combines both. `seen` are the tables of
    the stand-in that the last round looked at, and their noisy gaps.
    """

    evidence: Evidence
    learner: Learner
    candidates: Candidates
    rule: Rule
    unspent: UnspentPrice
    kept_for_sweep: Fraction
    beta: BetaShares
    one_way: OneWayBars
    planned: frozenset[Clique] = frozenset()
    bars: BarsReserve | None = None
    bounds: dict[Clique, Interval] = field(default_factory=dict)
    firsts: dict[Clique, FirstMeasurement] = field(default_factory=dict)
    seen: tuple[Sequence[Values], Values] | None = None

    @property
    def kept(self) -> Fraction:
        """Of the price, for the last sweep."""
        return self.kept_for_sweep if self.bars is None else self.bars.price

    def round(self, t: int) -> None:
        """Look at gaps, pick what pays, measure it, refit; after the last round only where no sweep follows, from
        which the stand-in learns with its own fits.
        """
        rule, last = self.rule, t == self.rule.rounds
        shares = rule.round_shares()
        price = (self.unspent.left - self.kept) * shares[t - 1] / sum(shares[t - 1 :])
        tables = self.learner.standin.grouped(list(self.candidates.cliques))
        select = self.unspent.spend(price * rule.select)
        gaps, doubt = self._gaps(t, tables, select)
        self.seen = tables, gaps
        if last and self.bars is not None:
            self.bars.bounded(self.bounds)
        measure = self.unspent.left - self.kept if last else price - select
        coarse = self.learner.merging.coarse
        forecast = NoiseForecast(tables)
        situation = RoundSituation(self.candidates, coarse, gaps - doubt, forecast, self._sweeps_all)
        whole = self.evidence.precision(measure)  # the price buys so much 1/σ² in all
        found = self._drawn(pick(situation, whole, most=rule.most), whole)
        if found is None and last:
            found = self._drawn(self._again(situation), whole)
        if found is not None:
            self._measure(t, found, measure)
            if not last:
                self.learner.refit(ROUGH)
        if last and not rule.guard:
            self.learner.finish()

    @cached_property
    def _marginals(self) -> tuple[Marginal, ...]:
        return tuple(Marginal(self.evidence.run.domain, c) for c in self.candidates.cliques)

    @property
    def _sweeps_all(self) -> bool:
        """Whether every answer will be measured, more closely than gaps can bound it."""
        return self.rule.sweeps_workload

    def _gaps(self, t: int, tables: Sequence[Values], price: Fraction) -> tuple[Values, Values]:
        """Noisy L1 distances of the stand-in from the table, and how far to doubt them.

        The last ones also bound what no sweep measures.
        """
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
        return noisy, DOUBT * sqrt(float(look.mechanism.variance)) / scale

    def seen_pairs(self) -> SeenPairs:
        """What the last round saw of every pair, and which of them the rounds measured."""
        assert self.seen is not None
        tables, gaps = self.seen
        pairs = self.candidates.cliques[: self.candidates.pairs]
        known = {pair for clique in self.learner.cliques for pair in combinations(clique, 2)}
        measured = np.array([pair in known for pair in pairs], np.bool_)
        return SeenPairs(tables[: len(pairs)], gaps[: len(pairs)], measured)

    def _bound(self, clique: Clique, guess: NDArray[np.int64], gap: float) -> Interval:
        """Deviations of a gap sum to the difference of totals, so none exceeds half of both together."""
        drift = abs(float(guess.sum()) - self.evidence.rows_told) + self.evidence.rows_error
        error = max(gap + drift, 0.0) / 2
        return Interval.around(self.learner.merging, clique, guess.astype(np.float64), error, "bounded")

    def _again(self, situation: RoundSituation) -> Picks | None:
        """Nothing new is worth its noise: what was measured is measured once more, or the heaviest pair."""
        bought = set(self.learner.cliques)
        useful = [i for i in range(len(self.candidates)) if situation.useful[i]]
        if not useful:
            return None
        known = [i for i in useful if self.candidates.cliques[i] in bought]
        known = known or [max(useful, key=lambda i: self.candidates.weight[i])]
        return Picks(tuple(known), (1 / len(known),) * len(known), 0.0)

    def _drawn(self, found: Picks | None, whole: float) -> Picks | None:
        """The picks whose noise can be drawn, of all that share the precision `whole`; None if none is left."""
        if found is None:
            return None
        size = self.learner.merging.coarse.size
        kept = [
            (i, share)
            for i, share in zip(found.which, found.share, strict=True)
            if can_be_drawn(size(self.candidates.cliques[i]), whole * share)
        ]
        if not kept or len(kept) == len(found.which):
            return found if kept else None
        shared = sum(share for _, share in kept)
        return Picks(tuple(i for i, _ in kept), tuple(share / shared for _, share in kept), found.gain)

    def _measure(self, t: int, found: Picks, price: Fraction) -> None:
        """Buy the residuals of what was picked, as far as they are not known; their bars."""
        run, learner, beta = self.evidence.run, self.learner, self.beta.picks / self.rule.rounds
        if self.bars is not None:
            self.bars.measured(self._planned(found, price), beta)
            if t == self.rule.rounds:  # what is kept for the sweep is less now, and no other round follows
                price = max(price, self.unspent.left - self.bars.price)
        plan = self._planned(found, self.unspent.spend(price))
        swept = plan.buy(run, f"round {t} measure")
        assert swept.tables is not None  # what was picked has cells to tell apart
        for clique, own in swept.beta_of_cells(beta, PAIRS).items():
            error = swept.tables.error(clique, own)
            self.evidence.prove(learner.merging, clique, swept.tables.table(clique), error)
            if clique in self.planned:
                self.firsts.setdefault(clique, FirstMeasurement(clique, swept.tables))
        self.one_way.swept(swept)
        learner.measured(swept)

    def _planned(self, found: Picks, price: Fraction) -> SweepPlan:
        """What a round measures of its picks, for that price."""
        cliques = [self.candidates.cliques[i] for i in found.which]
        whole = self.evidence.precision(price)
        top_up = TopUp(dict(zip(cliques, found.share, strict=True)), whole, self.learner.precision)
        return SweepPlan.of(
            self.evidence.run.curator.relation,
            self.learner.merging,
            cliques,
            price,
            rounded=self.evidence.run.rounded,
            precisions=top_up.precisions,
        )
