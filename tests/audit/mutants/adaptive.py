"""Adaptive releases whose plan reads the table: caught by forcing one run onto a neighbouring table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from audit.mutants.mutant import Mutant
from audit.replay import control_flow
from understudy.curator.curator import Curator
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.run import Run
from understudy_audit.acts import WORKLOAD
from understudy_audit.neighbours import Setting, table_pairs

PRIVATE = Setting(Budget.of(8, 1e-6), Neighbours.ADD_REMOVE, rows_at_least=1, rows_at_most=4096)


@dataclass(eq=False)
class ExactRows(Run):
    """Pays for the number of rows, and then takes the exact one."""

    def measure(self, step: str, marginals: Any, price: Any, **options: Any) -> Any:
        found = super().measure(step, marginals, price, **options)
        if step != "rows":
            return found
        rows = np.asarray(float(self.curator._truth.rows))
        return [replace(found[0], value=rows, noisy=rows)]


@dataclass(eq=False)
class FreeRows(ExactRows):
    """Takes the exact number of rows, and pays nothing for it."""

    def measure(self, step: str, marginals: Any, price: Any, **options: Any) -> Any:
        if step != "rows":
            return Run.measure(self, step, marginals, price, **options)
        return super().measure(step, marginals, price / 10**6, **options)


def reads_the_table(kind: type[Run]) -> bool:
    def act(curator: Curator) -> Any:
        found = adaptive(kind(curator, WORKLOAD, curator.declaration.budget, "audit"))
        return [found.rows, [(answer.counts, answer.error) for answer in found.answers]]

    pairs = list(table_pairs(Neighbours.ADD_REMOVE, rows=200))[:2]
    return any(control_flow(PRIVATE, pair.first, pair.second, act, noise=SeededNoise(2)) for pair in pairs)


ADAPTIVE = [
    Mutant("an adaptive release with the exact number of rows", "replay", lambda: reads_the_table(ExactRows)),
    Mutant("an adaptive release with its rows for nothing", "replay", lambda: reads_the_table(FreeRows)),
]

ADAPTIVE_HONEST = [
    Mutant("an adaptive release under add-remove", "replay", lambda: reads_the_table(Run)),
]
