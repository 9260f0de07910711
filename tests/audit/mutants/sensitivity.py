"""Sensitivities that are too small: caught by two releases on the same coins."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from audit.mutants.mutant import ONE, Mutant
from audit.mutants.tables import SETTING
from audit.replay import sensitivities
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.noise.samplers import SeededNoise
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.marginal import Marginal
from understudy_audit.acts import AB, A
from understudy_audit.neighbours import table_pairs


def sensitivity_caught(act, setting=SETTING) -> bool:
    return any(
        sensitivities(setting, pair.first, pair.second, act, noise=SeededNoise(2))[0]
        for pair in table_pairs(setting.neighbours, rows=12)
    )


@dataclass(frozen=True, eq=False)
class HalfCounts:
    """A marginal's counts with noise for half of what a replaced row moves."""

    marginal: Marginal
    l1: int
    marginals: tuple = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "marginals", (self.marginal,))

    @property
    def mechanism(self):
        return LaplaceMechanism(epsilon=ONE, l1=self.l1)

    @property
    def event(self):
        return self.mechanism.event

    @property
    def key(self):
        return f"half {self.marginal.key}"

    def event_under(self, relation):
        return self.event  # its word, which the Curator takes

    def values(self, counts):
        return counts[0].ravel()


class LongestColumn(Strategy):
    """Takes the longest column for the distance of two."""

    @property
    def columns(self):
        longest = super().columns.longest
        return SimpleNamespace(longest=longest, farthest=longest)


def long_column(curator):
    matrix = np.array([[1, 0], [0, 1]])
    curator._buy(LongestColumn(A, (matrix,), Relation(Neighbours.REPLACE), Price.of(epsilon=1)))


SENSITIVITY = [
    Mutant("a marginal's sensitivity without the second cell", "replay: sensitivity",
           lambda: sensitivity_caught(lambda c: c._buy(HalfCounts(AB, 1)))),
    Mutant("a strategy's sensitivity from its longest column", "replay: sensitivity",
           lambda: sensitivity_caught(long_column)),
]  # fmt: skip
