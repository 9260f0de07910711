"""Passes over the cells of a dense histogram in the machine's memory, shared among threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import ParameterError
from understudy.standin.dense.layout import DenseLayout, Patterns

SUMS = 2**22
"""Cells of the largest table of sums that every thread has its own of."""

SHARED = 2**21
"""Cells below which a second thread costs more than it saves."""


class HostCells:
    """The cells of a dense histogram as a matrix in memory (`layout`), and the passes that are made over it.

    Sums are taken in float64. A positive cell never falls below the smallest normal number of its type.
    """

    def __init__(
        self, layout: DenseLayout, cells: NDArray[np.floating[Any]], *, threads: int | None = None
    ) -> None:
        """Take over `cells`, a C-contiguous table of as many cells as the layout has."""
        if threads is not None and threads < 1:
            raise ParameterError(f"threads must be at least 1, not {threads}")
        self.layout = layout
        self.cells = cells.reshape(layout.rows, layout.columns)
        self.threads = threads or _cores()
        self._floor = np.finfo(cells.dtype).tiny
        self._pool: ThreadPoolExecutor | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.cells.dtype

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes

    def copy(self) -> HostCells:
        return HostCells(self.layout, self.cells.copy(), threads=self.threads)

    def table(self) -> NDArray[np.float64]:
        """Every cell, as a new array shaped by the domain."""
        return self.cells.reshape(self.layout.domain.shape()).astype(np.float64)

    def mass(self) -> float:
        """The sum of the cells."""
        return float(sum(self._pass(_kernels().mass)))

    def answer(self, asked: Patterns) -> float:
        """Σ weight · cell, `asked` being the weights."""
        return float(sum(self._pass(_kernels().answer, asked.plain)))

    def dot(self, weights: NDArray[np.float64]) -> float | None:
        """`answer` where weights lie in memory as the cells do; None where that is no faster."""
        return float(np.vdot(self.cells, weights)) if self.dtype == np.float64 else None

    def scale(
        self, said: Patterns, step: float | None, asked: Patterns | None, *, counting: bool
    ) -> tuple[float, float]:
        """Multiply each cell by exp(step · value), or by the value that is `said` where there is no step.

        Returns what the mass grew by, if `counting`, and the answer of the new cells to what is `asked`.
        """
        factors = said.values if step is None else np.exp(step * said.values)
        multiply = (said.ids, factors.astype(self.dtype, copy=False), said.spans, said.flat)
        if asked is None:
            return float(sum(self._pass(_kernels().scale, multiply, self._floor, counting))), 0.0
        following = asked.plain, said.joins(asked)
        parts = self._pass(_kernels().scale_then_answer, multiply, self._floor, counting, *following)
        grown, total = (sum(part) for part in zip(*parts, strict=True))
        return float(grown), float(total)

    def rescale(self, factor: float) -> float:
        """Multiply every cell; the mass afterwards."""
        return float(sum(self._pass(_kernels().rescale, self.dtype.type(factor), self._floor)))

    def project(self, clique: Clique) -> NDArray[np.float64]:
        """The sums over all attributes that are not in the clique."""
        layout, names = self.layout, self.layout.domain.names
        leading = [i for i, name in enumerate(layout.above) if name in clique]
        seen = tuple(size if i in leading else 1 for i, size in enumerate(layout.leading))
        ids = layout.each_row(np.arange(prod(seen)).reshape(seen))
        shape = (prod(seen), layout.columns)
        if prod(shape) > SUMS:  # nearly all attributes: each thread's sums would be as large as the weights
            sums = self.cells.reshape(layout.domain.shape())
        else:
            parts = self._pass(_kernels().project, ids, each=lambda: np.zeros(shape))
            sums = np.add.reduce(parts).reshape(*seen, *layout.trailing)
        others = tuple(i for i, name in enumerate(names) if name not in clique)
        return np.asarray(sums.sum(axis=others, dtype=np.float64))

    def _pass(
        self, kernel: Callable[..., Any], *arguments: object, each: Callable[[], object] | None = None
    ) -> list[Any]:
        """Run a kernel over all cells, shared among the threads; `each` makes an argument of a thread's own."""
        rows, columns = self.cells.shape
        shares = self.threads if self.cells.size >= SHARED else 1
        by_rows = rows >= shares
        cuts = [(rows if by_rows else columns) * i // shares for i in range(shares + 1)]
        ranges = [
            (low, high, 0, columns) if by_rows else (0, rows, low, high) for low, high in pairwise(cuts)
        ]

        def run(window: tuple[int, int, int, int]) -> object:
            own = each() if each else None
            result = kernel(self.cells, window, *arguments, *([own] if each else []))
            return own if each else result

        if shares == 1:
            return [run(ranges[0])]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="dense-weights")
        return list(self._pool.map(run, ranges))


def _cores() -> int:
    """The cores that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _kernels() -> Any:
    """The compiled loops; numba takes a second to import, and most commands never need it."""
    from understudy.standin.dense import kernels

    return kernels
