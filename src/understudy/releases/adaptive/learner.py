"""The stand-in of an adaptive release while it learns: a tree of what was measured, refitted after each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from understudy.domain.domain import Clique
from understudy.query.constraint import Constraint
from understudy.query.merging import Merging
from understudy.releases.adaptive.guard import Sweep
from understudy.releases.adaptive.rows import AdaptiveStandIn
from understudy.releases.adaptive.shrink import lessons
from understudy.releases.evidence import Evidence
from understudy.standin.graphical.model import FitSettings, GraphicalStandIn, fit
from understudy.standin.graphical.tree import GrowingTree
from understudy.standin.measurement import Measurement

SPARSE = 16.0
"""Times as much slack, at most, for cells that hold few people: noise in them is not to be learnt."""

ROUGH = FitSettings(noise_share=0.1, most_passes=60, sparse_slack=SPARSE)
"""Between rounds: the next gaps need not know the stand-in's optimum."""

FINAL = FitSettings(sparse_slack=SPARSE)


@dataclass(eq=False)
class Learner:
    """The stand-in that an evidence gives: a tree of at most `most_cells` cells over groups of values.

    `tree` lists the measured cliques that fitted into it. Those that did not, and what was `learnt` from the last
    sweep without fitting, are applied to the answers that hold them (`AdaptiveStandIn`). Cliques of constraints
    are always in the tree, which keeps their forbidden cells empty.
    """

    evidence: Evidence
    merging: Merging
    constraints: Sequence[Constraint]
    most_cells: int
    tree: list[Clique]
    learnt: list[Measurement] = field(default_factory=list)
    fitted: GraphicalStandIn | None = None

    @property
    def model(self) -> GraphicalStandIn:
        """The tree as it was fitted last."""
        assert self.fitted is not None
        return self.fitted

    def refit(self, settings: FitSettings) -> None:
        """Take into the tree what fits, and fit; the rest waits for the answers that hold it."""
        coarse = self.merging.coarse
        zeros = [c.clique for c in self.constraints]
        told = [*self.evidence.measurements, *self.learnt]
        growing, inside = GrowingTree(coarse, [*self.tree, *zeros], self.most_cells), {(), *self.tree}
        for m in told:
            if m.clique not in inside and growing.take(m.clique):
                self.tree.append(m.clique)
                inside.add(m.clique)
        self.fitted = fit(
            coarse,
            [m for m in told if m.clique in inside],
            total=self.evidence.rows,
            start=self.fitted,
            constraints=self.constraints,
            settings=settings,
        )

    @property
    def standin(self) -> AdaptiveStandIn:
        """The tree, with every measurement that is outside of it."""
        inside = {(), *self.tree}
        told = (*self.evidence.measurements, *self.learnt)
        return AdaptiveStandIn(self.merging, self.model, tuple(m for m in told if m.clique not in inside))

    def holds(self, clique: Clique) -> bool:
        """Whether the tree has a clique that holds this one."""
        return any(set(clique) <= set(held) for held in self.model.cliques)

    def learn(self, sweep: Sweep) -> None:
        """Take in what the last sweep says: of what was measured before, of pairs, of what the tree holds.

        A sweep over larger marginals measures the pairs below them as well, with as little noise in a cell of many
        more people. So the stand-in learns pairs first, and larger marginals only as far as pairs do not explain
        them. What is larger than a pair and not held by the tree is left to the answers (`shrink`).
        """
        for clique in [m.clique for m in self.evidence.measurements if m.clique]:
            told = sweep.about(clique)
            if told is not None:
                self.evidence.average(told)
        self.refit(FINAL)
        known = {m.clique for m in self.evidence.measurements}
        self._take([c for c in sweep.pairs if c not in known], sweep)
        self._take([c for c in sweep.cliques if len(c) > 2 and c not in known and self.holds(c)], sweep)

    def _take(self, cliques: Sequence[Clique], sweep: Sweep) -> None:
        """Add what the sweep says of some cliques to what was learnt, and refit if that is anything new."""
        measured = [told for clique in cliques if (told := sweep.about(clique)) is not None]
        found = lessons(self.standin.grouped([m.clique for m in measured]), measured, self.evidence.rows)
        if found:
            self.learnt = [*self.learnt, *found]
            self.refit(FINAL)
