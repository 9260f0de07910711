"""The stand-in of an adaptive release while it learns: a tree of what was measured, refitted after each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from statistics import median

from understudy.domain.domain import Clique, Domain
from understudy.query.constraint import Constraint
from understudy.query.merging import Merging
from understudy.query.residuals import centred, parts_of
from understudy.releases.adaptive.known_residuals import KnownResiduals
from understudy.releases.adaptive.rows import AdaptiveStandIn
from understudy.releases.adaptive.shrink import lessons
from understudy.releases.adaptive.sweep import Sweep
from understudy.releases.evidence import Evidence
from understudy.standin.graphical.model import FitSettings, GraphicalStandIn, fit
from understudy.standin.graphical.tree import GrowingTree
from understudy.standin.measurement import Interaction, Measurement

SPARSE = 16.0
"""Times as much slack, at most, for cells that hold few people: noise in them is not to be learnt."""

ROUGH = FitSettings(noise_share=0.1, most_passes=60, sparse_slack=SPARSE, smooth=True)
"""For every fit but the last: neither the next gaps nor what a sweep teaches need the stand-in's optimum."""

FINAL = FitSettings(noise_share=0.05, most_passes=90, sparse_slack=SPARSE, smooth=True)
"""For the stand-in that answers. On adult at epsilon 1 and 10 and on network-20 at 1, so many passes leave the
mean error of the answers within 0.1% of what it is after 500. Its slack is that of `final_share`."""

LEAST_SHARE, SHARED_SLACK = 0.1, 1.6
"""Slack of the last fit: so much at least, and so much for all cells of a typical pair together."""


def final_share(coarse: Domain) -> float:
    """Slack of each cell in the last fit, in standard deviations of its noise, by the groups of a typical pair.

    Slack loses more of what was measured than of its noise where tables have many cells; where they have four, as
    those of yes-or-no questions, the slack of fits between rounds is better.
    """
    sizes = [a.size for a in coarse if a.size > 1]
    if len(sizes) < 2:
        return ROUGH.slack_share
    pair = median(a * b for a, b in combinations(sizes, 2))
    return min(max(SHARED_SLACK / pair, LEAST_SHARE), ROUGH.slack_share)


@dataclass(eq=False)
class Learner:
    """The stand-in that an evidence gives: a tree of at most `most_cells` cells over groups of values.

    `cliques` were measured, and `known` has what was told of their residuals. `tree` lists those that fitted into
    it. Those that did not, and what was `learnt` from the last sweep without fitting, are applied to the answers
    that hold them (`AdaptiveStandIn`). Cliques of constraints are always in the tree, which keeps their forbidden
    cells empty.
    """

    evidence: Evidence
    merging: Merging
    constraints: Sequence[Constraint]
    most_cells: int
    cliques: list[Clique] = field(default_factory=list)
    tree: list[Clique] = field(default_factory=list)
    learnt: list[Measurement] = field(default_factory=list)
    fitted: GraphicalStandIn | None = None

    @cached_property
    def known(self) -> KnownResiduals:
        """What all measurements together say of each residual."""
        return KnownResiduals(self.merging.coarse)

    def precision(self, part: Clique) -> float:
        """1/τ of what is known of a residual; of no attribute, of the number of rows."""
        return self.known.precision(part) if part else self.evidence.rows_precision

    def first(self, told: Measurement) -> None:
        """A single attribute's groups, as they were measured first."""
        self.evidence.average(told)
        self.known.add(Interaction(told.clique, centred(told.counts), told.variance))
        self.cliques.append(told.clique)
        self.tree.append(told.clique)

    def measured(self, sweep: Sweep) -> None:
        """What a round measured."""
        self.cliques += [clique for clique in sweep.cliques if clique not in self.cliques]
        self._add(sweep)

    def _add(self, sweep: Sweep) -> None:
        for residual in sweep.residuals:
            self.known.add(residual)
        if sweep.rows is not None:
            self.evidence.average(sweep.rows)

    @property
    def model(self) -> GraphicalStandIn:
        """The tree as it was fitted last."""
        assert self.fitted is not None
        return self.fitted

    def refit(self, settings: FitSettings) -> None:
        """Take into the tree what fits, and fit; the rest waits for the answers that hold it."""
        coarse = self.merging.coarse
        zeros = [c.clique for c in self.constraints]
        growing, inside = GrowingTree(coarse, [*self.tree, *zeros], self.most_cells), set(self.tree)
        for clique in (*self.cliques, *(m.clique for m in self.learnt)):
            if clique not in inside and growing.take(clique):
                self.tree.append(clique)
                inside.add(clique)
        self.fitted = fit(
            coarse,
            [m for m in self.learnt if m.clique in inside],
            total=self.evidence.rows,
            interactions=self.known.below(clique for clique in self.cliques if clique in inside),
            start=self.fitted,
            constraints=self.constraints,
            settings=settings,
        )

    def finish(self, *, weighed: bool = False) -> None:
        """The last fit, to everything that was measured and learnt.

        Slack is by the strength of dependences, but where answers are `weighed` against a measurement of their
        own: that repairs what the fit misses, and noise that it follows less well.
        """
        share = final_share(self.merging.coarse)
        self.refit(replace(FINAL, slack_share=share, by_strength=not weighed))

    @property
    def standin(self) -> AdaptiveStandIn:
        """The tree, with every measurement that is outside of it."""
        inside, rows = set(self.tree), self.evidence.rows
        told = [self.known.table(clique, rows) for clique in self.cliques if clique not in inside]
        told += [m for m in self.learnt if m.clique not in inside]
        return AdaptiveStandIn(self.merging, self.model, tuple(told))

    def holds(self, clique: Clique) -> bool:
        """Whether the tree has a clique that holds this one."""
        return any(set(clique) <= set(held) for held in self.model.cliques)

    @property
    def _fitted_to(self) -> set[Clique]:
        """Cliques that were measured, and the parts of those in the tree, whose residuals it is fitted to."""
        inside = set(self.tree)
        parts = (part for clique in self.cliques if clique in inside for part in parts_of(clique))
        return {*self.cliques, *parts}

    def learn(self, sweep: Sweep, *, sweeps_workload: bool) -> None:
        """Take in what the last sweep says: of what was measured before, of pairs, of what the tree holds.

        A sweep over larger marginals measures the pairs below them as well, with as little noise in a cell of many
        more people. So the stand-in learns pairs first, and larger marginals only as far as pairs do not explain
        them. What is larger than a pair and not held by the tree is left to the answers (`shrink`). A part of what
        was measured is no lesson: the fit has its residual, and would count the same noise twice. The last fit
        alone is an accurate one.
        """
        self._add(sweep)
        self.refit(ROUGH)
        known = self._fitted_to
        larger = [c for c in sweep.cliques if len(c) > 2 and c not in known]
        if self._take([c for c in sweep.pairs if c not in known], sweep) and larger:
            self.refit(ROUGH)
        self._take([c for c in larger if self.holds(c)], sweep)
        self.finish(weighed=sweeps_workload)

    def remeasured(self, sweep: Sweep) -> None:
        """Take in what a sweep says of what was measured before, and fit for the last time.

        Of other pairs a sweep that was made for their bars tells less than noise in it would teach: on adult at
        epsilon 0.1 a stand-in that learns them is 1.4% farther off.
        """
        self._add(sweep)
        self.finish()

    def _take(self, cliques: Sequence[Clique], sweep: Sweep) -> bool:
        """Add what is known of some cliques, since the sweep, to what was learnt; whether that is anything new."""
        rows = self.evidence.rows
        measured = [self.known.table(c, rows) for c in cliques if sweep.about(c) is not None]
        found = lessons(self.standin.grouped([m.clique for m in measured]), measured, self.evidence.rows)
        self.learnt = [*self.learnt, *found]
        return bool(found)
