"""The first step of an adaptive release: 1-way marginals, the merging of rare values by them, and a first tree.

Larger marginals are measured for more. Where no pair can be looked at afterwards, they are measured once more, for
all that is left of the price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from understudy.errors import RefusedError
from understudy.privacy.price import Price
from understudy.query.constraint import Constraint
from understudy.query.marginal import Marginal
from understudy.query.merging import Merging
from understudy.rational import MIN_PARAMETER
from understudy.releases.adaptive.beta import BetaShares
from understudy.releases.adaptive.learner import ROUGH, Learner
from understudy.releases.adaptive.likely_counts import likely_counts
from understudy.releases.adaptive.one_way import OneWayBars, OneWayShares
from understudy.releases.adaptive.pick import Candidates
from understudy.releases.adaptive.rule import ROWS_SHARE, Rule, first_prices, least_first
from understudy.releases.adaptive.sequential import HIGH_LEVELS, LEVELS
from understudy.releases.evidence import Evidence
from understudy.releases.run import Run
from understudy.releases.unspent import UnspentPrice
from understudy.standin.measurement import Measurement


def check_first(evidence: Evidence) -> None:
    """Refuse a price that does not buy the 1-way marginals, and the number of rows where it is private."""
    run, private = evidence.run, evidence.private_rows
    rows = run.total * ROWS_SHARE if private else Fraction(0)
    if (private and rows < MIN_PARAMETER) or run.total - rows < least_first(run.domain):
        raise RefusedError(
            "at this price 1-way marginals would have more noise than can be drawn. Nothing was spent. Give a "
            "larger `epsilon`"
        )


@dataclass(eq=False)
class FirstMarginals:
    """What is measured first, from what is left of the price, and what follows from it.

    After `learnt`, `useful` says whether it left some pair to look at, and `measured_again` whether the 1-way
    marginals were measured for all the rest, as it did not.
    """

    evidence: Evidence
    unspent: UnspentPrice
    rule: Rule
    candidates: Candidates
    beta: BetaShares
    constraints: tuple[Constraint, ...]
    useful: bool = True
    measured_again: bool = False

    @property
    def run(self) -> Run:
        return self.evidence.run

    def learnt(self) -> tuple[Learner, OneWayBars]:
        """All 1-way marginals, larger ones for more; then rare values are merged, and a first tree is fitted.

        Where no pair of attributes has more than one group each, a round or a sweep could tell no more than 1-way
        marginals do, and where all pairs have more cells than can be measured, or noise that can be drawn costs
        more than a round has, it could tell nothing: the 1-way marginals are measured again, for all that is left,
        and merged by both measurements. What buys no noise that can be drawn stays in the ledger.
        """
        run, evidence = self.run, self.evidence
        marginals = [Marginal(run.domain, (name,)) for name in run.domain.names]
        whole = self.unspent.left
        if len(self.candidates):
            whole = max(run.total * self.rule.first * (1 - self.rule.guard), least_first(run.domain))
        prices = self._first_prices(whole)
        public = not evidence.private_rows
        again = (HIGH_LEVELS if self.rule.sweeps_workload else LEVELS) if len(self.candidates) else ()
        shares = {
            name: OneWayShares.of(run.domain, name, self.beta.one_way, again, rows_public=public)
            for name in run.domain.names
        }
        own = next(iter(shares.values())).own  # the same for all
        found = run.measure("first", marginals, [Price("rho", price) for price in prices], beta=own)
        known = [
            Measurement(marginal.by, answer.noisy, 1 / evidence.precision(price))
            for marginal, answer, price in zip(marginals, found, prices, strict=True)
        ]
        merging = self._merged(known)
        one_way = OneWayBars(merging, float(run.curator.rows) if public else None, run.rounded)
        for answer, first in zip(found, known, strict=True):
            evidence.prove(evidence.plain, first.clique, answer.noisy, answer.error)
            if first.counts.size > 1:
                one_way.first(first.clique[0], first.counts, first.variance, shares[first.clique[0]])
        self.useful = self._any_useful(merging) and self.can_look(run.total * self.rule.guard)
        if len(self.candidates) and not self.useful:
            known = self._again(marginals, known)
            merging = self._merged(known)
        learner = Learner(evidence, merging, self.constraints, self.rule.cells)
        for own_table, begin in zip(known, merging.starts, strict=True):
            merged = np.add.reduceat(own_table.counts, begin)
            spread = own_table.counts.size / merged.size * own_table.variance
            learner.first(Measurement(own_table.clique, merged, spread))
        learner.refit(ROUGH)
        return learner, one_way

    def _first_prices(self, whole: Fraction) -> list[Fraction]:
        """What each 1-way marginal is measured for, taken from what is left."""
        return [self.unspent.spend(part) for part in first_prices(self.run.domain, whole).values()]

    def _again(self, marginals: Sequence[Marginal], known: Sequence[Measurement]) -> list[Measurement]:
        """Measure the 1-way marginals for all that is left; averages of both measurements, by precision.

        The bars have the part of β that rounds and a sweep would have had. Whether they are told depends on the
        first noise alone, and they use the second alone: given the first, they fail with that probability at most.
        """
        run, evidence = self.run, self.evidence
        if not all(map(evidence.can_measure, first_prices(run.domain, self.unspent.left).values())):
            return [*known]
        self.measured_again = True
        prices = self._first_prices(self.unspent.left)
        beta = self.beta.after_first / len(marginals)
        found = run.measure("first again", marginals, [Price("rho", price) for price in prices], beta=beta)
        both = []
        for old, answer, price in zip(known, found, prices, strict=True):
            evidence.prove(evidence.plain, old.clique, answer.noisy, answer.error)
            both.append(old.averaged(Measurement(old.clique, answer.noisy, 1 / evidence.precision(price))))
        return both

    def _merged(self, known: Sequence[Measurement]) -> Merging:
        """Rare values together, but for attributes that a constraint speaks of: it is about their values."""
        merging = Merging.of(
            self.run.domain,
            [m.counts for m in known],
            self.rule.merge,
            [likely_counts(m.counts, m.variance) for m in known],
        )
        kept = {name for constraint in self.constraints for name in constraint.clique}
        use = [self.evidence.plain if name in kept else merging for name in self.run.domain.names]
        return Merging(
            self.run.domain,
            tuple(m.starts[i] for i, m in enumerate(use)),
            tuple(m.shares[i] for i, m in enumerate(use)),
        )

    def _any_useful(self, merging: Merging) -> bool:
        """Whether some candidate has two attributes with more than one group of values, and can be measured."""
        return bool(self.candidates.useful(merging.coarse).any())

    def can_look(self, kept: Fraction) -> bool:
        """Whether what is left beside what is `kept` pays for gaps in each round: the first is the cheapest."""
        rounds = (self.unspent.left - kept) * min(self.rule.round_shares())
        return self.evidence.can_measure(max(rounds * self.rule.select * Fraction(9, 10), Fraction(0)))
