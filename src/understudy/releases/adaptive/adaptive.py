"""The adaptive release: iterative construction [Lecture 7, Algorithm 1] on universes of any size.

    1-way marginals → merge rare values → rounds of: find what the stand-in gets wrong, measure what pays, refit →
    one sweep over the workload, or over the pairs that were never measured → stand-in and sweep combined

How much each step may spend is decided by public numbers (`rule`). The rounds are in `rounds`, the stand-in and
what it learns in `learner`, the sweep in `guard`, the combination in `shrink`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import RefusedError
from understudy.privacy.price import Price
from understudy.query.constraint import Constraint
from understudy.query.marginal import Marginal
from understudy.query.merging import Merging, simplex
from understudy.releases.adaptive.guard import Sweep, sweep
from understudy.releases.adaptive.learner import ROUGH, Learner
from understudy.releases.adaptive.pick import Candidates
from understudy.releases.adaptive.rounds import Rounds
from understudy.releases.adaptive.rows import AdaptiveStandIn
from understudy.releases.adaptive.rule import (
    MOST_ROUNDS,
    ROWS_SHARE,
    Rule,
    first_prices,
    most_cells,
    rule_for,
    triples_are_few,
)
from understudy.releases.adaptive.shrink import shrunk
from understudy.releases.evidence import Evidence
from understudy.releases.run import Outcome, Run
from understudy.releases.unspent import UnspentPrice
from understudy.standin.measurement import Measurement

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

    `memory` (bytes) and `seconds` (CPU time, as forecast: no clock is read) limit the stand-in; all else follows
    from public numbers, unless a `rule` is given. `constraints` are public knowledge of empty cells,
    beside those that are declared.

    Privacy     The run's price, in debits: the number of rows where it is private, the 1-way marginals, in each
                round noisy gaps (`MergedGaps`) and measurements (`MergedMarginals`), the last sweep
                (`MergedStrategy`). What is asked in a step depends on answers released before it, so zCDP adds
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
            "`method='mwem'` (small universes) or `method='ic'`. Nothing was spent"
        )
    if rule is None:
        most_cells(run.workload, memory, seconds)  # refused before the first debit
    run.check_affordable(run.budget.cap)
    _anticipate(run)
    evidence, unspent = Evidence(run), UnspentPrice(run.total)
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
    )
    if noisy is not None:
        noise = evidence.noise(Price("rho", price))
        # Its share is fixed beforehand: the number of rounds, which the others depend on, follows the noise.
        error = float(noise.error(run.beta / (max(MOST_ROUNDS, used.rounds) + 4)))
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
    def beta(self) -> Fraction:
        """Of each step that proves intervals: rows, first marginals, each round, the last gaps, the sweep."""
        return self.run.beta / (self.rule.rounds + 4)

    @cached_property
    def candidates(self) -> Candidates:
        return Candidates.of(self.run.workload, triples=self.rule.triples)

    def outcome(self) -> Outcome:
        """Buy everything, and answer."""
        learner = self._first()
        # The number of rows was paid from the whole price: the rounds bear that.
        kept = self.run.total * self.rule.guard * (1 - ROWS_SHARE)
        rounds = Rounds(self.evidence, learner, self.candidates, self.rule, self.unspent, kept, self.beta)
        if len(self.candidates):
            for t in range(1, self.rule.rounds + 1):
                rounds.round(t)
                self._report(t, learner)
        swept = self._guard(learner)
        standin = learner.standin
        tables = dict(zip(self.run.workload, self._combined(standin, swept), strict=True))
        below = self.evidence.beside
        measured = dict(zip(below, standin.grouped(below), strict=True))
        told, also = (
            self.evidence.answers({c: learner.merging.expand(c, t) for c, t in found.items()}, rounds.bounds)
            for found in (tables, measured)
        )
        return Outcome("adaptive", standin, self.evidence.rows, told, self._proof(learner), also=also)

    # ---- first marginals

    def _first(self) -> Learner:
        """All 1-way marginals, larger ones for more; then rare values are merged, and a first tree is fitted."""
        run, evidence = self.run, self.evidence
        marginals = [Marginal(run.domain, (name,)) for name in run.domain.names]
        share = self.rule.first * (1 - self.rule.guard) if len(self.candidates) else 1 - ROWS_SHARE
        prices = [self.unspent.spend(part) for part in first_prices(run.domain, run.total * share).values()]
        asked = [Price("rho", price) for price in prices]
        found = run.measure("first", marginals, asked, beta=self.beta / len(marginals))
        merging = self._merged(Merging.of(run.domain, [a.noisy for a in found], self.rule.merge))
        for marginal, answer, price, begin in zip(marginals, found, prices, merging.starts, strict=True):
            evidence.prove(evidence.plain, marginal.by, answer.noisy, answer.error)
            merged = np.add.reduceat(answer.noisy, begin)
            spread = marginal.size / merged.size / evidence.precision(price)
            evidence.measurements.append(Measurement(marginal.by, merged, spread))
        tree = [m.by for m in marginals]
        learner = Learner(evidence, merging, self.constraints, self.rule.cells, tree)
        learner.refit(ROUGH)
        return learner

    def _merged(self, merging: Merging) -> Merging:
        """The merging, but for attributes that a constraint speaks of: it is about their values."""
        kept = {name for constraint in self.constraints for name in constraint.clique}
        use = [self.evidence.plain if name in kept else merging for name in self.run.domain.names]
        return Merging(
            self.run.domain,
            tuple(m.starts[i] for i, m in enumerate(use)),
            tuple(m.shares[i] for i, m in enumerate(use)),
        )

    # ---- the last sweep

    def _guard(self, learner: Learner) -> Sweep:
        """The last sweep, for all that is left; the stand-in learns from it."""
        run, rule = self.run, self.rule
        if not rule.guard or not len(self.candidates):
            return Sweep()
        if rule.guard_order == 0:
            asked, weights = run.workload.cliques, run.workload.weights
        else:
            asked = tuple(self._unmeasured_pairs())
            weights = (Fraction(1),) * len(asked)
        swept = sweep(run, learner.merging, asked, weights, self.unspent.spend(self.unspent.left))
        for clique, error in swept.errors(self.beta).items():
            self.evidence.prove(learner.merging, clique, swept.measured[clique].counts, error)
        learner.learn(swept)
        self._report(rule.rounds + 1, learner)
        return swept

    def _unmeasured_pairs(self) -> list[Clique]:
        held = [set(m.clique) for m in self.evidence.measurements]
        pairs = self.candidates.cliques[: self.candidates.pairs]
        return [p for p in pairs if not any(h.issuperset(p) for h in held)] or list(pairs)

    # ---- what is said

    def _combined(self, standin: AdaptiveStandIn, swept: Sweep) -> list[Values]:
        """The workload's counts of groups, by the stand-in and the sweep together."""
        cliques, measured = list(self.run.workload), swept.measured
        tables = standin.grouped(cliques)
        if not all(c in measured for c in cliques):  # pairs: the stand-in has learnt them
            return tables
        rows = self.evidence.rows
        return [simplex(t, rows) for t in shrunk(tables, [measured[c] for c in cliques])]

    def _report(self, t: int, learner: Learner) -> None:
        details = {
            "measured": len(self.evidence.measurements),
            "cells": learner.model.cells,
            "outside": len(learner.standin.outside),
        }
        self.run.tell(f"round {t} done", t, self.rule.rounds + 1, **details)

    def _proof(self, learner: Learner) -> dict[str, Any]:
        rule, rows, (low, high) = self.rule, self.evidence.rows, self.evidence.proved_rows
        return {
            "mechanism": "adaptive",
            "theorem": "the law of the noise that was added; no theorem about the stand-in",
            "shares": {name: float(getattr(rule, name)) for name in ("first", "select", "guard")},
            "rounds": rule.rounds,
            "merged_below": rule.merge,
            "measured": len(self.evidence.measurements),
            "outside_the_tree": len(learner.standin.outside),
            "cells": learner.model.cells,
            "most_cells": rule.cells,
            "beta": float(self.run.beta),
            "rows_error": max(rows - low, high - rows),
        }
