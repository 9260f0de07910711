"""The adaptive release: iterative construction [Lecture 7, Algorithm 1] on universes of any size.

    1-way marginals → merge rare values → rounds of: find what the stand-in gets wrong, measure what pays, refit →
    one sweep over the workload, over all pairs, or over those without short bars → stand-in and sweep combined

Where the merging leaves no pair to look at, or the workload has none, the 1-way marginals get the whole price.

How much each step may spend is decided by public numbers (`rule`). The first step is in `first_marginals`, the
rounds are in `rounds`, the stand-in and what it learns in `learner`, sweeps in `sweep` and `bars_sweep`, the
combination in `shrink`, what is told in `steps_taken`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import RefusedError
from understudy.privacy.cost import rounded_down
from understudy.privacy.price import Price
from understudy.query.constraint import Constraint
from understudy.query.marginal import Marginal
from understudy.releases.adaptive.bars_sweep import MOST, MOST_OF_LEFT, BarsReserve
from understudy.releases.adaptive.beta import ROWS_PART, BetaShares
from understudy.releases.adaptive.first_marginals import FirstMarginals, check_first
from understudy.releases.adaptive.learner import Learner
from understudy.releases.adaptive.pick import Candidates
from understudy.releases.adaptive.rounds import Rounds
from understudy.releases.adaptive.rows import ANSWERED, WEIGHED, AdaptiveStandIn
from understudy.releases.adaptive.rule import (
    ROWS_SHARE,
    Rule,
    limits_of,
    rule_for,
    told,
    triples_are_few,
)
from understudy.releases.adaptive.shrink import combined
from understudy.releases.adaptive.steps_taken import StepsTaken
from understudy.releases.adaptive.sweep import SMALL, Sweep, SweepPlan
from understudy.releases.evidence import Evidence
from understudy.releases.pair_means import pair_means
from understudy.releases.run import Outcome, Run
from understudy.releases.small_marginals import below, direct_bars
from understudy.releases.target import importance_of_pairs, triples_with
from understudy.releases.unspent import UnspentPrice

Values = NDArray[np.float64]


def adaptive(
    run: Run,
    *,
    memory: int | None = None,
    seconds: float | None = None,
    constraints: Sequence[Constraint] = (),
    rule: Rule | None = None,
) -> Outcome:
    """Release the workload's marginals through a graphical stand-in that learns where it is wrong.

    `memory` (bytes) and `seconds` (CPU time, as forecast: no clock is read) limit the stand-in and the last sweep;
    more seconds than the usual four allow larger ones (`rule.limits_of`). All else follows from public numbers,
    unless a `rule` is given. `constraints` are public knowledge of empty cells, beside those that are declared.

    Privacy     The run's price, in debits: the number of rows where it is private, the 1-way marginals, in each
                round noisy gaps (`MergedGaps`) and residuals (`MergedStrategy`), the last sweep
                (`MergedStrategy` too). What is asked in a step depends on answers released before it, so zCDP adds
                up. [BunSteinke16, Lemma 1.7]
    Accuracy    Measured marginals by the law of their noise; others by the last noisy gaps and by the counts that
                hold theirs. All intervals hold jointly, with probability 1 - β (`beta`). 1-way marginals have
                bars from all tables that hold them (`sequential`), and from the last sweep alone; what a round
                measured and the planned sweep measures too has bars from both (`combined`). 1-way and 2-way
                marginals below the workload are always among the answers, and a sweep over the workload measures
                them so precisely that their bars are no longer than those of direct questions, as far as half of
                its price goes, or all of it where there is nothing larger than pairs (`small_bars`). Where no
                sweep pays, one is made for the pairs that would have longer ones, for a quarter of the price at
                most (`bars_sweep`).
    Complexity  Passes over a tree of at most `rule.cells` cells; one count of the candidates for each round.
    Gap         No theorem about the stand-in itself. A killed run is resumed by refitting, which needs the same
                floating-point results, up to rounding to whole people.
    """
    if run.budget.is_pure:
        raise RefusedError(
            "the adaptive release adds Gaussian noise, which no pure epsilon pays for: give a delta, or use "
            "`method='mwem'` (small universes) or `method='ic'`. Nothing was spent"
        )
    if rule is None:
        limits_of(run.workload, memory, seconds)  # refused before the first debit
    run.check_affordable(run.budget.cap)
    _anticipate(run)
    evidence, unspent = Evidence(run), UnspentPrice(run.total)
    check_first(evidence)
    used = _rows(evidence, unspent, rule, memory, seconds)
    return _Adaptive(evidence, unspent, used, (*run.constraints, *constraints)).outcome()


def _anticipate(run: Run) -> None:
    """Whatever may be looked at, when it is paid for, is counted in the first pass over the rows."""
    pairs = Candidates.of(run.workload, triples=triples_are_few(run.workload)).cliques
    run.curator.anticipate([(), *((name,) for name in run.domain.names), *pairs, *run.workload])


def _rows(
    evidence: Evidence, unspent: UnspentPrice, rule: Rule | None, memory: int | None, seconds: float | None
) -> Rule:
    """Buy the number of rows where it is private; the rule, which follows from it."""
    run, declared = evidence.run, evidence.run.curator.declaration
    price = unspent.spend(run.total * ROWS_SHARE) if evidence.private_rows else Fraction(0)
    if evidence.private_rows:
        noisy = run.measure("rows", [Marginal(run.domain, ())], Price("rho", price))[0].noisy
        rows = max(float(declared.rows_at_least or 1), float(noisy))
    else:
        noisy, rows = None, float(run.curator.rows)
    used = rule or rule_for(
        run.domain,
        run.workload,
        precision=evidence.precision(run.total),
        rows=rows,
        memory=memory,
        seconds=seconds,
        target=run.target,
    )
    if noisy is not None:
        noise = evidence.noise(Price("rho", price))
        error = float(noise.error(run.beta * ROWS_PART))
        evidence.keep_rows(noisy, 1 / evidence.precision(price), error)
    return used


@dataclass(eq=False)
class _Adaptive:
    """A release under way, after its rule is known: first marginals, rounds, the last sweep, answers."""

    evidence: Evidence
    unspent: UnspentPrice
    rule: Rule
    constraints: tuple[Constraint, ...]

    @property
    def run(self) -> Run:
        return self.evidence.run

    @property
    def beta(self) -> BetaShares:
        return self._beta_of(self.rule)

    def _beta_of(self, rule: Rule) -> BetaShares:
        return BetaShares.of(
            self.run.beta,
            private_rows=self.evidence.private_rows,
            pairs=bool(len(self.candidates)),
            sweep=bool(rule.guard),
            sweeps_workload=rule.sweeps_workload,
        )

    @property
    def _taken(self) -> StepsTaken:
        return StepsTaken(
            pairs=bool(len(self.candidates)),
            useful=self.first.useful,
            measured_again=self.first.measured_again,
            private_rows=self.evidence.private_rows,
        )

    @cached_property
    def candidates(self) -> Candidates:
        return Candidates.of(self.run.workload, triples=self.rule.triples)

    @cached_property
    def first(self) -> FirstMarginals:
        return FirstMarginals(
            self.evidence, self.unspent, self.rule, self.candidates, self.beta, self.constraints
        )

    @cached_property
    def below(self) -> list[Clique]:
        """The 1-way and 2-way marginals that are told whether or not the workload lists them."""
        return [*((name,) for name in self.run.domain.names), *self._pairs]

    def outcome(self) -> Outcome:
        """Buy everything, and answer."""
        learner, one_way = self.first.learnt()
        plan, bars = self._planned(learner), self._kept_for_bars(learner)
        rounds = Rounds(
            self.evidence,
            learner,
            self.candidates,
            self.rule,
            self.unspent,
            self._kept,
            self.beta,
            one_way,
            frozenset(() if plan is None else plan.cliques),
            bars,
        )
        if self._taken.rounds:
            for t in range(1, self.rule.rounds + 1):
                rounds.round(t)
                self._report(t, learner)
        swept = self._guard(learner, plan, rounds)
        self._prove(learner, rounds, swept)
        standin = replace(learner.standin, slack=ANSWERED)
        tables = dict(zip(self.run.workload, self._combined(standin, learner, swept), strict=True))
        beside = list(dict.fromkeys(c for c in (*self.below, *self.evidence.beside) if c not in tables))
        measured = dict(zip(beside, standin.grouped(beside), strict=True))
        if self.rule.sweeps_workload and swept.cliques:
            # Tables of the workload combine the stand-in with a measurement of their own: their sums are nearer.
            means = pair_means(tables.items())
            measured.update((pair, means[pair]) for pair in beside if pair in means)
        answers, also = (
            self.evidence.answers(
                {c: learner.merging.expand(c, t) for c, t in found.items()},
                rounds.bounds,
            )
            for found in (tables, measured)
        )
        proof = self._proof(learner, rounds, swept)
        return Outcome("adaptive", standin, self.evidence.rows, answers, proof, also=also)

    def _prove(self, learner: Learner, rounds: Rounds, swept: Sweep) -> None:
        """Intervals from the sweep, alone or with a round's first measurement, and of the 1-way marginals."""
        bars = rounds.bars
        betas = bars.betas(swept) if bars is not None else swept.beta_of_cells(self.beta.sweep, SMALL)
        for clique, beta in betas.items():
            first = rounds.firsts.get(clique)
            assert swept.tables is not None
            if first is None:
                counts, error = swept.tables.table(clique), swept.tables.error(clique, beta)
            else:
                counts, error = first.with_sweep(swept.tables, beta)
            self.evidence.prove(learner.merging, clique, counts, error)
        rounds.one_way.swept(swept)
        for interval in rounds.one_way.intervals():
            self.evidence.intervals.add(interval)

    # ---- the last sweep

    @property
    def _kept(self) -> Fraction:
        """The price of the last sweep. That of the number of rows was paid from the whole: the rounds bear it."""
        return self.run.total * self.rule.guard * (1 - ROWS_SHARE)

    def _planned(self, learner: Learner) -> SweepPlan | None:
        """The last sweep, where it is over the workload, before any round: nothing in it depends on them."""
        if not self.rule.sweeps_workload or not self._taken.rounds:
            return None
        workload, price = self.run.workload, rounded_down(self._kept)
        plan = self._plan(learner, workload.cliques, price, workload.weights)
        direct = direct_bars(self.run, (*workload, *below(workload)))
        return plan.with_small_bars(self.run.curator.relation, price, direct, self.beta.sweep)

    def _plan(
        self, learner: Learner, cliques: Sequence[Clique], price: Fraction, weights: Sequence[Fraction]
    ) -> SweepPlan:
        relation, rounded = self.run.curator.relation, self.run.rounded
        return SweepPlan.of(relation, learner.merging, cliques, price, rounded=rounded, weights=weights)

    def _guard(self, learner: Learner, plan: SweepPlan | None, rounds: Rounds) -> Sweep:
        """The last sweep, as planned, or over pairs for all that is left; the stand-in learns from it."""
        if not self.rule.guard or not self._taken.rounds:
            return Sweep()
        if rounds.bars is not None:
            return self._sweep_for_bars(learner, rounds.bars)
        if plan is None:
            plan = self._plan_pairs(learner, rounds)
        self.unspent.spend(self.unspent.left)
        swept = plan.buy(self.run, "guard")
        learner.learn(swept, sweeps_workload=self.rule.sweeps_workload)
        self._report(self.rule.rounds + 1, learner)
        return swept

    def _sweep_for_bars(self, learner: Learner, bars: BarsReserve) -> Sweep:
        """Pairs that no round gave short bars, for all that is left: what was kept for them."""
        left = self.unspent.spend(self.unspent.left) if bars.missing else Fraction(0)
        swept = bars.plan(bars.missing, left).buy(self.run, "guard") if bars.missing else Sweep()
        learner.remeasured(swept)
        self._report(self.rule.rounds + 1, learner)
        self._let_sweep_take(left / (self.run.total * (1 - ROWS_SHARE)))
        return swept

    @property
    def _pairs(self) -> Sequence[Clique]:
        return self.candidates.cliques[: self.candidates.pairs]

    def _kept_for_bars(self, learner: Learner) -> BarsReserve | None:
        """What is kept for a sweep that is there for the bars of pairs alone; from now on the rule has its share.

        There is none where it would take too much, or leave rounds too little to look at gaps, and where all pairs
        have short bars by those of their columns. Pairs of columns of one value are public where the number of
        rows is: a direct question has a bar of 0.
        """
        run = self.run
        bars_of = direct_bars(run, self._pairs) if self.rule.for_bars and self._taken.rounds else {}
        direct = {pair: bar for pair, bar in bars_of.items() if bar > 0}
        if not direct:
            return None
        whole = run.total * (1 - ROWS_SHARE)
        most = rounded_down(min(MOST * whole, MOST_OF_LEFT * self.unspent.left))

        def plan(pairs: Sequence[Clique], price: Fraction) -> SweepPlan:
            return self._plan(learner, pairs, price, [Fraction(1)] * len(pairs))

        swept = replace(self.rule, guard=MOST)
        beta = self._beta_of(swept).sweep
        intervals, pairs = self.evidence.intervals, tuple(direct)
        bars = BarsReserve(run.domain, intervals, plan, direct, beta, most, pairs, most / 2)
        if not bars.price or not self.first.can_look(bars.price):
            return None
        self._let_sweep_take(bars.price / whole)
        return bars

    def _let_sweep_take(self, guard: Fraction) -> None:
        """Keep in the rule what the last sweep takes, and what was paid first, of what that leaves."""
        self.rule = replace(
            self.rule, guard=guard, first=self.rule.first * (1 - self.rule.guard) / (1 - guard)
        )

    def _plan_pairs(self, learner: Learner, rounds: Rounds) -> SweepPlan:
        """A sweep over all pairs, for all that is left, by what the last round saw of them.

        Where a target is named, its pairs weigh more, and its triples as much as other pairs.
        """
        run, pairs, left = self.run, self._pairs, self.unspent.left
        triples = triples_with(self.rule.target, run.workload)
        weights = rounds.seen_pairs().weights(
            self.evidence.precision(left),
            share=float(left / run.total),
            told=told(run.domain, run.workload),
            importance=importance_of_pairs(run.target, pairs),
            beside=len(triples),
        )
        return self._plan(learner, [*pairs, *triples], left, [*weights, *[Fraction(1)] * len(triples)])

    # ---- what is said

    def _combined(self, standin: AdaptiveStandIn, learner: Learner, swept: Sweep) -> list[Values]:
        """The workload's counts of groups, by the stand-in and, where each was swept, all that is known of it.

        Of swept pairs beside others the stand-in has learnt all that is known.
        """
        cliques, rows = list(self.run.workload), self.evidence.rows
        swept_cliques = set(swept.cliques)
        measured = [clique for clique in cliques if clique in swept_cliques]
        if not self.rule.sweeps_workload and all(len(clique) < 3 for clique in measured):
            measured = []
        weighed = set(measured)
        others = [clique for clique in cliques if clique not in weighed]
        found = dict(zip(others, standin.grouped(others), strict=True))
        if measured:
            tables = replace(standin, slack=WEIGHED).grouped(measured)
            known = [learner.known.table(clique, rows) for clique in measured]
            found.update(zip(measured, combined(tables, known, rows), strict=True))
        return [found[clique] for clique in cliques]

    def _report(self, t: int, learner: Learner) -> None:
        details = {
            "measured": len(learner.cliques),
            "cells": learner.model.cells,
            "outside": len(learner.standin.outside),
        }
        self.run.tell(f"round {t} done", t, self.rule.rounds + 1, **details)

    def _proof(self, learner: Learner, rounds: Rounds, swept: Sweep) -> dict[str, Any]:
        rule, rows, (low, high) = self.rule, self.evidence.rows, self.evidence.proved_rows
        return {
            "mechanism": "adaptive",
            "theorem": "the law of the noise that was added; no theorem about the stand-in",
            "shares": self._taken.shares(rule),
            "rounds": rule.rounds if self._taken.rounds else 0,
            "merged_below": rule.merge,
            "measured": len(learner.cliques),
            "outside_the_tree": len(learner.standin.outside),
            "cells": learner.model.cells,
            "most_cells": rule.cells,
            "beta": float(self.run.beta),
            "bars": self._taken.bars(rounds.beta, rounds, swept),
            "rows_error": max(rows - low, high - rows),
        }
