"""Looks whose event says less than they release: refused by the Curator, before it charges and before it looks.

Each releases a marginal's counts with Laplace noise, and tells a lie about one part of that. What no check of the
Curator can see, a wrong word about how far one person moves the values, is caught by replays (`sensitivity`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from audit.mutants.mutant import ONE, Mutant
from audit.mutants.tables import ADD, ROWS, SETTING
from understudy.curator.curator import Curator
from understudy.errors import ParameterError
from understudy.mechanism.additive import noise_for
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.look import Blocks
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.noise.samplers import SeededNoise
from understudy.privacy.columns import CountColumns
from understudy.privacy.event import LaplaceNoise, Located, Selection, Span, Together
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy_audit.acts import AB, DOMAIN, A

REPLACE, ADDED = Relation(Neighbours.REPLACE), Relation(Neighbours.ADD_REMOVE)
SOME = Marginal(DOMAIN, ("a",), LinearQuery.conjunction(DOMAIN, {"b": np.array([1.0, 0.0, 0.0])}))


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts of two attributes with noise, honestly."""

    marginal: Marginal = AB
    made_for: Relation = REPLACE

    @property
    def marginals(self):
        return (self.marginal,)

    @property
    def mechanism(self):
        return noise_for(Price.of(epsilon=1), self.made_for.moves(CountColumns.of(self.marginal)))

    @property
    def event(self):
        return self.mechanism.event

    def event_under(self, relation):
        return self.mechanism.event_for(relation.moves(CountColumns.of(self.marginal)))

    @property
    def key(self):
        return f"{type(self).__name__} {self.marginal.key}"

    def values(self, counts):
        return counts[0].ravel()


class CostsNothing(Counts):
    """Says that nobody can move what it releases, and draws noise for everybody."""

    @property
    def event(self):
        return LaplaceNoise(l1=Fraction(0), scale=ONE)


class NamesNoEvent(Counts):
    """Says, twice, that nothing was done."""

    @property
    def event(self):
        return Together(())

    def event_under(self, relation):
        return Together(())


class HalfThePrice(Counts):
    """Is charged for twice the noise that it draws."""

    @property
    def event(self):
        return replace(super().event, scale=2 * super().event.scale)


class AnotherCurrency(Counts):
    """Calls its noise a selection, which is cheaper in rho."""

    @property
    def event(self):
        return Selection(epsilon=ONE)


class WithoutNoise(Counts):
    """Draws no noise, by a mechanism for values that nobody can move."""

    @property
    def mechanism(self):
        return LaplaceMechanism(epsilon=ONE, l1=0)


class Quiet(LaplaceMechanism):
    """Draws half of the noise that its event says."""

    def release(self, values, *, noise):
        return LaplaceMechanism(epsilon=2 * self.epsilon, l1=self.l1).release(values, noise=noise)


class DrawsLess(Counts):
    """Brings a mechanism of its own."""

    @property
    def mechanism(self):
        return Quiet(epsilon=ONE, l1=super().mechanism.l1)


class DrawsLessInBlocks(Counts):
    """Hides a mechanism of its own among the blocks of a vector."""

    @property
    def mechanism(self):
        return Blocks((Quiet(epsilon=ONE, l1=2),), (self.marginal.size,))

    @property
    def event(self):
        return LaplaceMechanism(epsilon=ONE, l1=2).event

    def event_under(self, relation):
        return self.event


class AnotherRegion(Strategy):
    """Says that fewer rows move its combinations than do."""

    @property
    def event(self):
        honest = super().event
        assert isinstance(honest, Located)
        span = Span(honest.region[0].attribute, 3, 2)  # another cell of the attribute
        return replace(honest, region=(span,))


class SharpSelection(Counts):
    """Chooses among cells more sharply than it is charged for."""

    @property
    def mechanism(self):
        return ExponentialMechanism(epsilon=2 * ONE, sensitivity=2)

    @property
    def event(self):
        return Selection(epsilon=ONE)


def region(curator: Curator, kind: type[Strategy]) -> Strategy:
    return kind(SOME, (np.eye(2, dtype=np.int64),), curator.relation, Price.of(epsilon=1))


def refused(build, setting=SETTING) -> bool:
    """Whether a Curator refuses a look, for nothing, and without having looked."""
    curator = setting.curator(ROWS, noise=SeededNoise(3))
    truth, looks = curator._truth, []
    sums_of = truth.sums_of
    truth.sums_of = lambda *given, **named: looks.append(given) or sums_of(*given, **named)
    try:
        curator._buy(build(curator))
    except ParameterError:
        return not looks and not curator.ledger.debits()
    return False


def measured_without_noise() -> bool:
    """Whether a measurement that was prepared with noise for nobody is refused."""
    curator = SETTING.curator(ROWS, noise=SeededNoise(3))
    prepared = curator.calibration.prepare([A], Price.of(epsilon=1))
    free = replace(prepared, mechanisms=((LaplaceMechanism(epsilon=ONE, l1=0), 1),))
    try:
        curator.perform(free)
    except ParameterError:
        return not curator.ledger.debits()
    return False


BY = "the Curator's own check"
LOOKS = [
    Mutant("a look whose event costs nothing", BY, lambda: refused(lambda c: CostsNothing())),
    Mutant("a look without an event", BY, lambda: refused(lambda c: NamesNoEvent())),
    Mutant("a look at half of its price", BY, lambda: refused(lambda c: HalfThePrice())),
    Mutant("a look under another kind of event", BY, lambda: refused(lambda c: AnotherCurrency())),
    Mutant("a look made for another relation", BY, lambda: refused(lambda c: Counts(made_for=ADDED))),
    Mutant("the same, where rows are private", BY,
           lambda: refused(lambda c: Counts(made_for=REPLACE), ADD)),
    Mutant("a look with a mechanism for nobody", BY, lambda: refused(lambda c: WithoutNoise())),
    Mutant("a look that draws less noise", BY, lambda: refused(lambda c: DrawsLess())),
    Mutant("a look that draws less noise in blocks", BY, lambda: refused(lambda c: DrawsLessInBlocks())),
    Mutant("a look with another region", BY, lambda: refused(lambda c: region(c, AnotherRegion))),
    Mutant("a selection sharper than its event", BY, lambda: refused(lambda c: SharpSelection())),
    Mutant("a measurement prepared without noise", BY, measured_without_noise),
]  # fmt: skip
LOOKS_HONEST = [
    Mutant("counts with their noise", BY, lambda: refused(lambda c: Counts())),
    Mutant(
        "counts made for added rows, of such rows", BY, lambda: refused(lambda c: Counts(made_for=ADDED), ADD)
    ),
    Mutant("combinations with their region", BY, lambda: refused(lambda c: region(c, Strategy))),
]
