"""The adaptive release: iterative construction [Lecture 7, Algorithm 1] on universes of any size.

    1-way marginals → merge rare values → rounds of: find what the stand-in gets wrong, measure what pays, refit →
    one sweep over the workload, or over the pairs that were never measured → stand-in and sweep combined

How much each step may spend is decided by public numbers (`adaptive_rule`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import RefusedError
from understudy.mechanism.additive import Additive, noise_for
from understudy.mechanism.merged import MergedGaps, MergedMarginals
from understudy.privacy.columns import PARTITION
from understudy.privacy.cost import rounded_down
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.query.merging import Merging, simplex
from understudy.releases.adaptive.guard import Sweep, sweep
from understudy.releases.adaptive.pick import Candidates, NoiseForecast, Picks, Situation, pick
from understudy.releases.adaptive.rows import AdaptiveStandIn
from understudy.releases.adaptive.rule import (
    MOST_ROUNDS,
    ROWS_SHARE,
    Rule,
    most_cells,
    rule_for,
    triples_are_few,
)
from understudy.releases.adaptive.shrink import lessons, shrunk
from understudy.releases.run import Outcome, Progress, Run
from understudy.releases.workload_answers import Interval, Knowledge, answers
from understudy.standin.graphical.model import Constraint, FitSettings, GraphicalStandIn, fit, model_cells
from understudy.standin.measurement import Measurement

Table = NDArray[np.float64]

ROUGH = FitSettings(noise_share=0.1, most_passes=60)
"""Between rounds: the next gaps need not know the stand-in's optimum."""

FINAL = FitSettings()

PAIR_WEIGHT = 2
"""Gaps of pairs are looked at so much closer than those of triples: what is wrong with a pair is wrong in all of
them."""

DOUBT = 1.0
"""Standard deviations taken off noisy gaps: the largest of many are too large."""


def adaptive(
    run: Run,
    *,
    memory: int | None = None,
    seconds: float | None = None,
    constraints: Sequence[Constraint] = (),
    rule: Rule | None = None,
) -> Outcome:
    """Release the workload's marginals through a graphical stand-in that learns where it is wrong.

    `memory` (bytes) and `seconds` (CPU time, as forecast: no clock is read) limit the stand-in; all else follows
    from public numbers, unless a `rule` is given. `constraints` are public knowledge of empty cells,
    beside those that are declared.

    Privacy     The run's price, in debits: the number of rows where it is private, the 1-way marginals, in each
                round noisy gaps (`MergedGaps`) and measurements (`MergedMarginals`), the last sweep
                (`MergedStrategies`). What is asked in a step depends on answers released before it, so zCDP adds
                up. [BunSteinke16, Lemma 1.7]
    Accuracy    Measured marginals by the law of their noise; others by the last noisy gaps and by the counts that
                hold theirs. All intervals hold jointly, with probability 1 - β.
    Complexity  Passes over a tree of at most `rule.cells` cells; one count of the candidates for each round.
    Gap         No theorem about the stand-in itself. A killed run is resumed by refitting, which needs the same
                floating-point results, up to rounding to whole people.
    """
    if run.budget.is_pure:
        raise RefusedError(
            "the adaptive release adds Gaussian noise, which no pure epsilon pays for: give a delta, or use "
            "`method='mwem'` (small universes) or ic. Nothing was spent"
        )
    if rule is None:
        most_cells(run.workload, memory, seconds)  # refused before the first debit
    run.check_affordable(run.budget.cap)
    state = _State(run, (*run.constraints, *constraints))
    state.anticipate()
    state.begin(rule, memory, seconds)
    for t in range(1, state.rule.rounds + 1):
        state.round(t)
    state.guard()
    return state.outcome()


@dataclass(eq=False)
class _State:
    """What was bought so far, the stand-in that it gives, and the intervals that it proves."""

    run: Run
    constraints: tuple[Constraint, ...]
    bought: list[Measurement] = field(default_factory=list)
    learnt: list[Measurement] = field(default_factory=list)
    tree: list[Clique] = field(default_factory=list)
    knowledge: Knowledge = field(default_factory=Knowledge)
    bounds: dict[Clique, Interval] = field(default_factory=dict)
    sweep: Sweep = field(default_factory=Sweep)
    rule: Rule = field(init=False)
    merging: Merging = field(init=False)
    model: GraphicalStandIn | None = None

    def __post_init__(self) -> None:
        self.left = self.run.total
        self.rows_error = 0.0

    # ---- public numbers and prices

    @property
    def private_rows(self) -> bool:
        return not self.run.curator.relation.rows_are_public

    def noise(self, price: Fraction) -> Additive:
        """What a marginal is measured with for that much rho."""
        return noise_for(Price("rho", price), self.run.curator.relation.moves(PARTITION))

    def precision(self, price: Fraction) -> float:
        """1/σ² of a marginal measured for that much rho."""
        return float(1 / self.noise(price).variance)

    @property
    def beta(self) -> Fraction:
        """Of each step that proves intervals: rows, first marginals, each round, the last gaps, the sweep."""
        return self.run.beta / (self.rule.rounds + 4)

    def spend(self, price: Fraction) -> Fraction:
        whole = min(rounded_down(price), self.left)
        self.left -= whole
        return whole

    # ---- the beginning

    def anticipate(self) -> None:
        """Whatever may be looked at, when it is paid for, is counted in the first pass over the rows."""
        workload, names = self.run.workload, self.run.domain.names
        pairs = Candidates.of(workload, triples=triples_are_few(workload)).cliques
        self.run.curator.anticipate([(), *((name,) for name in names), *pairs, *workload])

    def begin(self, rule: Rule | None, memory: int | None, seconds: float | None) -> None:
        run, declared = self.run, self.run.curator.declaration
        rows = float(declared.rows_at_least or 1) if self.private_rows else float(run.curator.rows)
        price, paid = Fraction(0), None
        if self.private_rows:
            price = self.spend(run.total * ROWS_SHARE)
            paid = run.measure("rows", [Marginal(run.domain, ())], Price("rho", price))[0]
            self.bought.append(Measurement((), paid.noisy, 1 / self.precision(price)))
            rows = max(rows, float(paid.noisy))
        self.rule = rule or rule_for(
            run.domain,
            run.workload,
            precision=self.precision(run.total),
            rows=rows,
            memory=memory,
            seconds=seconds,
        )
        if paid is not None:
            # Its share is fixed beforehand: the number of rounds, which the others depend on, follows the noise.
            self.rows_error = float(
                self.noise(price).error(run.beta / (max(MOST_ROUNDS, self.rule.rounds) + 4))
            )
        self.first()

    @cached_property
    def candidates(self) -> Candidates:
        return Candidates.of(self.run.workload, triples=self.rule.triples)

    def first(self) -> None:
        """All 1-way marginals, larger ones for more; then rare values are merged."""
        run = self.run
        marginals = [Marginal(run.domain, (name,)) for name in run.domain.names]
        wanted = [Fraction(round(1000 * sqrt(m.size))) for m in marginals]
        share = self.rule.first * (1 - self.rule.guard) if len(self.candidates) else 1 - ROWS_SHARE
        prices = [self.spend(run.total * share * w / sum(wanted)) for w in wanted]
        asked = [Price("rho", price) for price in prices]
        found = run.measure("first", marginals, asked, beta=self.beta / len(marginals))
        plain = Merging.none(run.domain)
        self.merging = self.merged(Merging.of(run.domain, [a.noisy for a in found], self.rule.merge), plain)
        for marginal, answer, price, begin in zip(marginals, found, prices, self.merging.starts, strict=True):
            error = float(answer.error.max())
            self.knowledge.add(Interval.around(plain, marginal.by, answer.noisy, error, "measured"))
            merged = np.add.reduceat(answer.noisy, begin)
            spread = marginal.size / merged.size / self.precision(price)
            self.bought.append(Measurement(marginal.by, merged, spread))
        self.tree = [m.by for m in marginals]
        self.refit(ROUGH)

    def merged(self, merging: Merging, plain: Merging) -> Merging:
        """The merging, but for attributes that a constraint speaks of: it is about their values."""
        kept = {name for constraint in self.constraints for name in constraint.clique}
        use = [plain if name in kept else merging for name in self.run.domain.names]
        return Merging(
            self.run.domain,
            tuple(m.starts[i] for i, m in enumerate(use)),
            tuple(m.shares[i] for i, m in enumerate(use)),
        )

    @property
    def rows(self) -> float:
        """The number of rows that all measurements together say best, within what is declared and proved."""
        if not self.private_rows:
            return float(self.run.curator.rows)
        weights = np.array([1 / (m.variance * m.counts.size) for m in self.bought])
        sums = np.array([m.counts.sum() for m in self.bought])
        return max(float(np.clip(weights @ sums / weights.sum(), *self.proved_rows)), 1.0)

    @property
    def proved_rows(self) -> tuple[float, float]:
        """Where the number of rows lies, by the declaration and by its own measurement."""
        declared, told = self.run.curator.declaration, self._told_rows
        low = max(told - self.rows_error, declared.rows_at_least or 0, 0.0)
        return low, max(min(told + self.rows_error, declared.rows_at_most or inf), low)

    # ---- fitting

    def refit(self, settings: FitSettings) -> None:
        """Take into the tree what fits, and fit; the rest waits for `locally_fitted`."""
        coarse = self.merging.coarse
        zeros = [c.clique for c in self.constraints]
        told = [*self.bought, *self.learnt]
        for m in told:
            if m.clique and m.clique not in self.tree:
                grown = [*self.tree, *zeros, m.clique]
                if model_cells(coarse, grown) <= self.rule.cells:
                    self.tree.append(m.clique)
        inside = {(), *self.tree}
        self.model = fit(
            coarse,
            [m for m in told if m.clique in inside],
            total=self.rows,
            start=self.model,
            constraints=self.constraints,
            settings=settings,
        )

    @property
    def standin(self) -> AdaptiveStandIn:
        assert self.model is not None
        inside = {(), *self.tree}
        outside = tuple(m for m in (*self.bought, *self.learnt) if m.clique not in inside)
        return AdaptiveStandIn(self.merging, self.model, outside)

    # ---- rounds

    def round(self, t: int) -> None:
        """Look at gaps, pick what pays, measure it, refit."""
        rule, last = self.rule, t == self.rule.rounds
        if not len(self.candidates):
            return
        shares = rule.round_shares()
        kept = self.left_for_guard
        price = (self.left - kept) * shares[t - 1] / sum(shares[t - 1 :])
        tables = self.standin.grouped(list(self.candidates.cliques))
        select = self.spend(price * rule.select)
        gaps = self.gaps(t, tables, select)
        measure = price - select
        situation = Situation(self.candidates, self.merging.coarse, gaps, NoiseForecast(tables))
        found = pick(situation, self.precision(measure), most=rule.most)
        if found is None and last:
            found = self.again(situation)
        if found is not None:
            self.measure(t, found, measure)
            self.refit(FINAL if last else ROUGH)
        self.report(t)

    @property
    def left_for_guard(self) -> Fraction:
        """The number of rows was paid from the whole price: the rounds bear that."""
        return self.run.total * self.rule.guard * (1 - ROWS_SHARE)

    @property
    def sweeps_all(self) -> bool:
        """Whether every answer will be measured, more closely than gaps can bound it."""
        return self.rule.guard > 0 and self.rule.guard_order == 0

    def report(self, t: int) -> None:
        assert self.model is not None
        details = {
            "measured": len(self.bought),
            "cells": self.model.cells,
            "outside": len(self.standin.outside),
        }
        self.run.report(Progress("adaptive", t, self.rule.rounds + 1, self.run.spent.amount, details))

    def again(self, situation: Situation) -> Picks | None:
        """Nothing new is worth its noise: what was measured is measured once more, or the heaviest pair."""
        bought = {m.clique for m in self.bought}
        useful = [i for i in range(len(self.candidates)) if situation.useful[i]]
        if not useful:
            return None
        known = [i for i in useful if self.candidates.cliques[i] in bought]
        known = known or [max(useful, key=lambda i: self.candidates.weight[i])]
        return Picks(tuple(known), (1 / len(known),) * len(known), 0.0)

    @cached_property
    def marginals(self) -> tuple[Marginal, ...]:
        return tuple(Marginal(self.run.domain, c) for c in self.candidates.cliques)

    def gaps(self, t: int, tables: Sequence[Table], price: Fraction) -> Table:
        """Noisy L1 distances of the stand-in from the table; the last ones also bound what no sweep measures."""
        pairs = self.candidates.pairs
        weights = (PAIR_WEIGHT,) * pairs + (1,) * (len(self.candidates) - pairs)
        guesses = tuple(np.rint(table).astype(np.int64) for table in tables)
        look = MergedGaps(
            self.merging, self.marginals, guesses, weights, Price("rho", price), self.run.curator.relation
        )
        scale = np.array(weights, np.float64)
        noisy = np.array(self.run.look(f"round {t} gaps", look), np.float64) / scale
        if t == self.rule.rounds and not self.sweeps_all:
            reach = look.mechanism.error(self.beta, cells=len(noisy))
            for clique, guess, gap in zip(
                self.candidates.cliques, guesses, noisy + reach / scale, strict=True
            ):
                self.bounds[clique] = self.bound(clique, guess, float(gap))
        return noisy - DOUBT * sqrt(float(look.mechanism.variance)) / scale

    def bound(self, clique: Clique, guess: NDArray[np.int64], gap: float) -> Interval:
        """Deviations of a gap sum to the difference of totals, so none exceeds half of both together."""
        drift = abs(float(guess.sum()) - self._told_rows) + self.rows_error
        error = max(gap + drift, 0.0) / 2
        return Interval.around(self.merging, clique, guess.astype(np.float64), error, "bounded")

    @property
    def _told_rows(self) -> float:
        """The number of rows that `rows_error` is about."""
        return float(self.bought[0].counts) if self.private_rows else float(self.run.curator.rows)

    def measure(self, t: int, found: Picks, price: Fraction) -> None:
        parts = [Fraction(round(10**9 * share)) for share in found.share]
        prices = tuple(Price("rho", self.spend(price * part / sum(parts))) for part in parts)
        marginals = tuple(self.marginals[i] for i in found.which)
        look = MergedMarginals(self.merging, marginals, prices, self.run.curator.relation)
        beta = self.beta / len(prices)
        released = self.run.look(f"round {t} measure", look)
        for marginal, mechanism, counts in zip(marginals, look.mechanisms, released, strict=True):
            shaped = np.array(counts, np.float64).reshape(self.merging.coarse.shape(marginal.by))
            error = float(mechanism.error(beta, cells=shaped.size))
            self.knowledge.add(Interval.around(self.merging, marginal.by, shaped, error, "measured"))
            self.keep(Measurement(marginal.by, shaped, float(mechanism.variance)))

    def keep(self, new: Measurement) -> None:
        """What is measured again is averaged by precision."""
        for j, old in enumerate(self.bought):
            if old.clique == new.clique:
                a, b = 1 / old.variance, 1 / new.variance
                mean = (a * old.counts + b * new.counts) / (a + b)
                self.bought[j] = Measurement(old.clique, mean, 1 / (a + b))
                return
        self.bought.append(new)

    # ---- the end

    def guard(self) -> None:
        """The last sweep, for all that is left."""
        run, rule = self.run, self.rule
        if not rule.guard or not len(self.candidates):
            return
        if rule.guard_order == 0:
            asked, weights = run.workload.cliques, run.workload.weights
        else:
            asked = tuple(self.unmeasured_pairs())
            weights = (Fraction(1),) * len(asked)
        self.sweep = sweep(run, self.merging, asked, weights, self.spend(self.left))
        for clique, error in self.sweep.errors(self.beta).items():
            counts = self.sweep.measured[clique].counts
            self.knowledge.add(Interval.around(self.merging, clique, counts, error, "measured"))
        self.learn()
        self.report(rule.rounds + 1)

    def learn(self) -> None:
        """Take what the sweep says into the stand-in: about what was measured before, then all that fits."""
        for clique in [m.clique for m in self.bought if m.clique]:
            told = self.sweep.about(clique)
            if told is not None:
                self.keep(told)
        self.refit(FINAL)
        known = {m.clique for m in self.bought}
        asked = [c for c in self.sweep.measured if c not in known and (len(c) < 3 or self.inside(c))]
        told = [self.sweep.measured[c] for c in asked]
        self.learnt = lessons(self.standin.grouped(asked), told, self.rows)
        if self.learnt:
            self.refit(FINAL)

    def inside(self, clique: Clique) -> bool:
        """Whether the stand-in's tree holds a clique already."""
        assert self.model is not None
        return any(set(clique) <= set(held) for held in self.model.cliques)

    def unmeasured_pairs(self) -> list[Clique]:
        held = [set(m.clique) for m in self.bought]
        pairs = self.candidates.cliques[: self.candidates.pairs]
        return [p for p in pairs if not any(h.issuperset(p) for h in held)] or list(pairs)

    def outcome(self) -> Outcome:
        run, standin = self.run, self.standin
        tables = dict(zip(run.workload, self.combined(standin), strict=True))
        below = [c for c in self.knowledge.cliques if c not in tables]
        measured = dict(zip(below, standin.grouped(below), strict=True))
        told, also = (
            answers(self.knowledge, {c: self.merging.expand(c, t) for c, t in found.items()}, self.bounds)
            for found in (tables, measured)
        )
        return Outcome("adaptive", standin, self.rows, told, self.proof(), also=also)

    def combined(self, standin: AdaptiveStandIn) -> list[Table]:
        """The workload's counts of groups, by the stand-in and the sweep together."""
        cliques, swept, rows = list(self.run.workload), self.sweep.measured, self.rows
        tables = standin.grouped(cliques)
        if not all(c in swept for c in cliques):  # pairs: the stand-in has learnt them
            return tables
        return [simplex(t, rows) for t in shrunk(tables, [swept[c] for c in cliques])]

    def proof(self) -> dict[str, Any]:
        assert self.model is not None
        rule, rows, (low, high) = self.rule, self.rows, self.proved_rows
        return {
            "mechanism": "adaptive",
            "theorem": "the law of the noise that was added; no theorem about the stand-in",
            "shares": {name: float(getattr(rule, name)) for name in ("first", "select", "guard")},
            "rounds": rule.rounds,
            "merged_below": rule.merge,
            "measured": len(self.bought),
            "outside_the_tree": len(self.standin.outside),
            "cells": self.model.cells,
            "most_cells": rule.cells,
            "beta": float(self.run.beta),
            "rows_error": max(rows - low, high - rows),
        }
