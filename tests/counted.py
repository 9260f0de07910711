"""Tables known by their counts: as much of `table.truth` as a Curator asks for, without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.domain import Clique, Domain
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.rational import Number

ROUNDING = 1e-6
"""People. Sums of floats are as far off as this; counts are whole."""

Counts = NDArray[np.int64]


class Killed(BaseException):
    """The power went. Like an interrupt, it is nothing that the program may catch and go on from."""


class Counted:
    """A truth that counts its looks, and dies at the one after `dies_at` of them where that is given."""

    rows: int
    is_file = False
    former_version = None

    def __init__(self, domain: Domain, *, version: str | None = "0", dies_at: int | None = None) -> None:
        self.domain, self.version, self.dies_at = domain, version, dies_at
        self.looks = 0
        self._counted: dict[Clique, Counts] = {}

    def _count(self, clique: Clique) -> Counts:
        """The number of rows in each cell of a clique."""
        raise NotImplementedError

    def check_unchanged(self) -> None:
        """Nobody can change it."""

    def check_size(self, marginals: Sequence[Marginal]) -> None:
        """What a test asks for fits."""

    def count(self, clique: Clique) -> Counts:
        """The number of rows in each cell; no look: a test knows the table."""
        if clique not in self._counted:
            self._counted[clique] = np.asarray(self._count(clique))
            self._counted[clique].flags.writeable = False
        return self._counted[clique]

    def exact(self, marginal: Marginal) -> NDArray[np.float64]:
        """The sums without any rounding of weights; no look either."""
        weighted = self.count(marginal.clique) * marginal.where.weights(marginal.clique)
        return np.asarray(weighted.sum(axis=_folded(marginal)), np.float64)

    def sums(self, marginal: Marginal, *, resolution: int = 1) -> Counts:
        return self.sums_of([marginal], resolution=resolution)[0]

    def sums_of(self, marginals: Sequence[Marginal], *, resolution: int = 1) -> list[Counts]:
        if self.looks == self.dies_at:
            raise Killed
        self.looks += 1
        return [self._sums(marginal, resolution) for marginal in marginals]

    def _sums(self, marginal: Marginal, resolution: int) -> Counts:
        steps = np.rint(marginal.where.weights(marginal.clique) * resolution).astype(np.int64)
        return (self.count(marginal.clique) * steps).sum(axis=_folded(marginal), dtype=np.int64)


def _folded(marginal: Marginal) -> tuple[int, ...]:
    return tuple(i for i, name in enumerate(marginal.clique) if name not in marginal.by)


class Cells(Counted):
    """A table of all cells of a domain: a look costs next to nothing, however many rows there are."""

    def __init__(self, domain: Domain, table: ArrayLike, **more: Any) -> None:
        super().__init__(domain, **more)
        self.table = np.asarray(table)
        self.rows = int(self.table.sum())

    def _count(self, clique: Clique) -> Counts:
        return self.table.sum(axis=tuple(i for i, name in enumerate(self.domain.names) if name not in clique))


class Rows(Counted):
    """Columns of codes, one for each attribute: for domains with more cells than can be held."""

    def __init__(self, domain: Domain, columns: ArrayLike, **more: Any) -> None:
        super().__init__(domain, **more)
        self.rows = np.shape(columns)[1]
        self._codes = dict(zip(domain.names, np.asarray(columns), strict=True))

    def _cells(self, clique: Clique) -> NDArray[np.intp]:
        """The cell of each row; that of no attributes is the only one."""
        if not clique:
            return np.zeros(self.rows, np.intp)
        codes = tuple(self._codes[name] for name in clique)
        return np.asarray(np.ravel_multi_index(codes, self.domain.shape(clique)))

    def _count(self, clique: Clique) -> Counts:
        cells = self._cells(clique)
        return np.bincount(cells, minlength=self.domain.size(clique)).reshape(self.domain.shape(clique))

    def _sums(self, marginal: Marginal, resolution: int) -> Counts:
        """Row by row: the cells that a condition speaks of may be too many to weigh."""
        steps = np.rint(np.broadcast_to(marginal.where.row_weights(self._codes), self.rows) * resolution)
        sums = np.bincount(self._cells(marginal.by), steps, minlength=marginal.size)
        return np.rint(sums).astype(np.int64).reshape(marginal.shape)


def curator_of(
    truth: Any,
    *,
    epsilon: Number = 1,
    delta: Number = 0,
    seed: int | None = 1,
    neighbours: Neighbours = Neighbours.REPLACE,
    ledger: Any = None,
    budget: Budget | None = None,
    **declared: Any,
) -> Curator:
    """The Curator of a truth of any kind, with books in memory unless others are given.

    A budget takes the place of epsilon and delta. Without a seed the noise is the operating system's, as in
    production.
    """
    declaration = Declaration(
        name="t",
        source=SourceSpec("-"),
        domain=truth.domain,
        budget=Budget.of(epsilon, delta) if budget is None else budget,
        neighbours=neighbours,
        **declared,
    )
    books = MemoryLedger(declaration.budget) if ledger is None else ledger
    noise = None if seed is None else SeededNoise(seed)
    return Curator(truth, books, declaration, noise=noise)
