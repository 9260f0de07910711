"""A Curator over a table, for the length of a benchmark, and a truth that does not count as the program does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.tables import Table, counted, flat_cells
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.domain import Clique, Domain
from understudy.errors import QueryError
from understudy.ledger.interface import Ledger
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.table.truth import Truth

Counts = NDArray[np.int64]


class CellTruth:
    """Exact sums from the cells that hold a row and how many they hold: as much of `Truth` as a Curator asks for.

    What is measured over it is the mechanism: a clique with no more cells than there are such cells, or one that
    `counts` was asked for, is counted once.
    """

    version = "0"
    former_version = None
    is_file = False

    def __init__(self, table: Table) -> None:
        self.domain = table.domain
        self.rows = table.rows
        names = table.domain.names
        cells, self._held = np.unique(
            np.stack([table.codes[name] for name in names], axis=1), axis=0, return_counts=True
        )
        self._cells: Mapping[str, Counts] = dict(zip(names, np.ascontiguousarray(cells.T), strict=True))
        self._counted: dict[Clique, Counts] = {}

    def check_unchanged(self) -> None: ...

    def check_size(self, marginals: Sequence[Marginal]) -> None:
        if any(marginal.domain != self.domain for marginal in marginals):
            raise QueryError("the question is about another domain")

    def counts(self, cliques: Iterable[Clique]) -> dict[Clique, Counts]:
        return {clique: self._count(clique) for clique in cliques}

    def sums_of(self, marginals: Sequence[Marginal], *, resolution: int = 1) -> list[Counts]:
        self.check_size(marginals)
        return [self.sums(marginal, resolution=resolution) for marginal in marginals]

    def sums(self, marginal: Marginal, *, resolution: int = 1) -> Counts:
        """For each cell the sum of its rows' weights, in steps of 1/resolution, each weight rounded to one."""
        clique = marginal.clique
        if clique in self._counted or self.domain.size(clique) <= self._held.size:
            steps = _steps(marginal.where.weights(clique), resolution)
            summed = tuple(i for i, name in enumerate(clique) if name not in marginal.by)
            return (self._count(clique) * steps).sum(axis=summed, dtype=np.int64)
        total = np.zeros(marginal.size, np.int64)
        steps = _steps(marginal.where.row_weights(self._cells), resolution)  # type: ignore[arg-type]
        np.add.at(total, flat_cells(self.domain, marginal.by, self._cells), self._held * steps)
        return total.reshape(marginal.shape)

    def _count(self, clique: Clique) -> Counts:
        if clique not in self._counted:
            self._counted[clique] = counted(self.domain, clique, self._cells, self._held)
        return self._counted[clique]


def _steps(weights: Any, resolution: int) -> Any:
    return np.rint(np.asarray(weights) * resolution).astype(np.int64)


def curator_over(
    truth: Truth | CellTruth,
    domain: Domain,
    budget: Budget,
    *,
    neighbours: Neighbours,
    seed: int | None,
    ledger: Ledger | None = None,
) -> Curator:
    """A Curator with a ledger in memory, unless another is given; no seed means the operating system's noise."""
    declared = Declaration(
        name="bench", source=SourceSpec("-"), domain=domain, budget=budget, neighbours=neighbours
    )
    noise = None if seed is None else SeededNoise(seed)
    kept = MemoryLedger(budget) if ledger is None else ledger
    return Curator(truth, kept, declared, noise=noise)  # type: ignore[arg-type]
