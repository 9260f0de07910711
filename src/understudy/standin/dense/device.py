"""Passes over the cells of a dense histogram in the memory of a CUDA device.

One kernel serves all of them: it multiplies the cells of some rows and columns by factors, sums what they grew by,
and sums the products of the new cells with weights; without factors it only reads. A pass is bound by the device's
memory: a cell is read once, and written once where it changes, whatever is asked. What a query says travels as
patterns over the columns and a number for each row (`layout.Patterns`), some hundred kilobytes, and is kept there.

A block of threads works on one tile of columns, whose patterns then stay in the cache of its multiprocessor; all
blocks that run at a time work on neighbouring rows, as the memory likes it. Tiles of which nothing is said are not
read. Each block leaves its sums in a place of its own, and these are added in order: the same passes give the same
numbers.

CuPy is imported when the first cells are placed on the device.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import ParameterError, TooLargeError
from understudy.standin.dense.layout import DenseLayout, Patterns

ROW = 2**14
"""Columns of a row on a device, at least: for each query its rows are numbered on the host, so they are few."""

THREADS = 256
"""Threads of a block."""

EACH = 1
"""Vectors of cells that a thread works on in one tile, to have that many reads under way."""

CHUNK = 64
"""Neighbouring rows that a block works on, one after the other: they often have the same pattern."""

BLOCKS = 32
"""Blocks for each multiprocessor, more than run at once: those that end early make room for others."""

ROOM = 0.9
"""The part of the device's free memory that the cells may take."""

KEPT = 64
"""Patterns that are kept on the device: those of the latest queries."""

SOURCE = r"""
typedef struct { REAL at[WIDE]; } __attribute__((aligned(WIDE * sizeof(REAL)))) Vector;

extern "C" __global__ void __launch_bounds__(THREADS) pass(
    REAL *cells, long long rows, long long columns, const int *tiles,
    const int *__restrict__ ids, const REAL *__restrict__ factors, REAL floor,
    const int *__restrict__ asked_ids, const REAL *__restrict__ weights, double *sums)
{
    const long long first = tiles[blockIdx.x] * (long long)(THREADS * WIDE * EACH) + threadIdx.x * WIDE;
    double grown = 0, total = 0;
    int factored = -1, weighted = -1;  // whose patterns are held
    Vector factor[EACH], weight[EACH];
    for (long long chunk = (long long)blockIdx.y * CHUNK; chunk < rows; chunk += (long long)gridDim.y * CHUNK)
    for (long long row = chunk; row < rows && row < chunk + CHUNK; row++) {
        const int said = ids ? ids[row] : -1, asked = asked_ids ? asked_ids[row] : -1;
        if (said < 0 && asked < 0) continue;
        REAL *const here = cells + row * columns;
        Vector held[EACH];
        #pragma unroll
        for (int i = 0; i < EACH; i++) {
            const long long c = first + i * THREADS * WIDE;
            if (c < columns) held[i] = *(const Vector *)(here + c);
        }
        if (said >= 0 && said != factored) {
            factored = said;
            #pragma unroll
            for (int i = 0; i < EACH; i++) {
                const long long c = first + i * THREADS * WIDE;
                if (c < columns) factor[i] = *(const Vector *)(factors + said * columns + c);
            }
        }
        if (asked >= 0 && asked != weighted) {
            weighted = asked;
            #pragma unroll
            for (int i = 0; i < EACH; i++) {
                const long long c = first + i * THREADS * WIDE;
                if (c < columns) weight[i] = *(const Vector *)(weights + asked * columns + c);
            }
        }
        REAL more = 0, part = 0;
        #pragma unroll
        for (int i = 0; i < EACH; i++) {
            const long long c = first + i * THREADS * WIDE;
            if (c >= columns) continue;
            if (said >= 0) {
                #pragma unroll
                for (int j = 0; j < WIDE; j++) {
                    const REAL old = held[i].at[j], scaled = old * factor[i].at[j];
                    const REAL now = scaled > floor ? scaled : (old < floor ? old : floor);
                    held[i].at[j] = now;
                    more += now - old;
                }
                *(Vector *)(here + c) = held[i];
            }
            if (asked >= 0) {
                #pragma unroll
                for (int j = 0; j < WIDE; j++) part += held[i].at[j] * weight[i].at[j];
            }
        }
        grown += more;
        total += part;
    }
    __shared__ double shared[2][THREADS];
    shared[0][threadIdx.x] = grown;
    shared[1][threadIdx.x] = total;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            shared[0][threadIdx.x] += shared[0][threadIdx.x + half];
            shared[1][threadIdx.x] += shared[1][threadIdx.x + half];
        }
    }
    if (threadIdx.x < 2)
        sums[2 * (blockIdx.y * gridDim.x + blockIdx.x) + threadIdx.x] = shared[threadIdx.x][0];
}
"""


@dataclass(frozen=True, eq=False)
class _Placed:
    """Patterns on the device, and on the host the tiles of columns that they speak of."""

    patterns: Patterns
    ids: Any
    values: Any
    weights: Any
    """The values in the precision of the cells."""
    tiles: NDArray[np.bool_]


class DeviceCells:
    """The cells of a dense histogram on a CUDA device: the same passes as `HostCells`, with the same results.

    Accuracy    A cell is rounded as on the host, except that factors exp(step · value) are rounded from the
                device's exponential, which may differ in the last place of a float64. Some thirty cells are added
                up in their own precision, and their sums in float64: in float32 a sum is within 2e-6 of itself.
    """

    def __init__(self, layout: DenseLayout, cells: Any) -> None:
        """Take over `cells`, a CuPy array of as many cells as the layout has."""
        self.layout = layout
        self.cells = cells.reshape(layout.rows, layout.columns)
        self._floor = np.finfo(self.dtype).tiny
        self._placed: OrderedDict[int, _Placed] = OrderedDict()
        self._tiles: dict[bytes, Any] = {}
        everywhere = np.array([[0, layout.columns]], np.int64)
        self._all = Patterns(layout.every_row, np.ones((1, layout.columns)), everywhere, flat=False)

    @classmethod
    def filled(cls, layout: DenseLayout, dtype: str) -> DeviceCells:
        """Every cell 1. Raises a `TooLargeError` where the device has no room for them."""
        cupy = _cupy()
        free = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
        most = int(ROOM * free) // np.dtype(dtype).itemsize
        if (cells := layout.rows * layout.columns) > most:
            raise TooLargeError("the dense stand-in on this device", cells=cells, limit=most)
        return cls(layout, cupy.ones(cells, dtype))

    @classmethod
    def of(cls, layout: DenseLayout, cells: NDArray[np.floating[Any]]) -> DeviceCells:
        """A copy of a table in memory."""
        placed = cls.filled(layout, cells.dtype.name)
        placed.cells.set(np.ascontiguousarray(cells).reshape(placed.cells.shape))
        return placed

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.cells.dtype

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes

    @property
    def threads(self) -> int:
        return 1

    def copy(self) -> DeviceCells:
        return DeviceCells(self.layout, self.cells.copy())

    def table(self) -> NDArray[np.float64]:
        """Every cell, as a new array in memory, shaped by the domain."""
        return self.cells.get().reshape(self.layout.domain.shape()).astype(np.float64)

    def mass(self) -> float:
        """The sum of the cells."""
        return self._pass(None, None, self._all)[1]

    def answer(self, asked: Patterns) -> float:
        """Σ weight · cell, `asked` being the weights."""
        return self._pass(None, None, asked)[1]

    def dot(self, weights: NDArray[np.float64]) -> float | None:
        """None: weights that lie in memory are no faster here."""
        del weights
        return None

    def scale(
        self, said: Patterns, step: float | None, asked: Patterns | None, *, counting: bool
    ) -> tuple[float, float]:
        """Multiply each cell by exp(step · value), or by the value that is `said` where there is no step.

        Returns what the mass grew by, which is counted in any case, and the answer of the new cells to what is
        `asked`.
        """
        del counting
        placed = self._place(said)
        factors = placed.weights
        if step is not None:
            factors = _exponential(self.dtype.name)(placed.values, step)
        return self._pass(said, factors, asked)

    def rescale(self, factor: float) -> float:
        """Multiply every cell; the mass afterwards."""
        factors = self._place(self._all).weights * self.dtype.type(factor)
        return self._pass(self._all, factors, self._all)[1]

    def project(self, clique: Clique) -> NDArray[np.float64]:
        """The sums over all attributes that are not in the clique."""
        domain = self.layout.domain
        # Neighbouring attributes that are both kept, or both summed over, are one axis: fewer axes are faster.
        axes = [
            (kept, tuple(name for name, _ in names))
            for kept, names in groupby(((name, name in clique) for name in domain.names), key=lambda n: n[1])
        ]
        sums = self.cells.reshape([domain.size(names) for _, names in axes])
        over = tuple(i for i, (kept, _) in enumerate(axes) if not kept)
        summed = sums.sum(axis=over, dtype=np.float64) if over else sums.astype(np.float64)
        return summed.get().reshape(domain.shape(clique))

    def _pass(self, said: Patterns | None, factors: Any, asked: Patterns | None) -> tuple[float, float]:
        """One launch of the kernel: what the mass grew by, and what is asked of the new cells."""
        multiplying = None if said is None else self._place(said)
        asking = None if asked is None else self._place(asked)
        parts = [part.tiles for part in (multiplying, asking) if part is not None]
        spoken = np.logical_or.reduce(parts)
        if not spoken.any():
            return 0.0, 0.0
        cupy = _cupy()
        tiles = self._tiles.get(spoken.tobytes())
        if tiles is None:
            tiles = self._tiles[spoken.tobytes()] = cupy.asarray(np.flatnonzero(spoken).astype(np.int32))
        rows, columns = self.cells.shape
        blocks = -(-BLOCKS * _multiprocessors() // tiles.size)
        grid = (tiles.size, min(-(-rows // CHUNK), blocks))
        sums = cupy.empty((grid[0] * grid[1], 2), np.float64)
        nowhere = np.intp(0)
        _kernel(self.dtype.name, _wide(columns, self.dtype.itemsize), EACH)(
            grid,
            (THREADS,),
            (
                self.cells, np.int64(rows), np.int64(columns), tiles,
                nowhere if multiplying is None else multiplying.ids, nowhere if multiplying is None else factors,
                self.dtype.type(self._floor), nowhere if asking is None else asking.ids,
                nowhere if asking is None else asking.weights, sums,
            ),
        )  # fmt: skip
        grown, total = sums.get().sum(axis=0)
        return float(grown), float(total)

    def _place(self, patterns: Patterns) -> _Placed:
        """Patterns on the device; the latest stay there."""
        known = self._placed.get(id(patterns))
        if known is not None:
            return known
        cupy = _cupy()
        tiles = spoken_tiles(patterns.spans, self.layout.columns, tile_width(self.layout.columns, self.dtype))
        values = cupy.asarray(patterns.values)
        weights = values.astype(self.dtype, copy=False)
        placed = _Placed(patterns, cupy.asarray(patterns.ids), values, weights, tiles)
        self._placed[id(patterns)] = placed
        if len(self._placed) > KEPT:
            self._placed.popitem(last=False)
        return placed


def tile_width(columns: int, dtype: np.dtype[Any]) -> int:
    """How many columns a tile has."""
    return THREADS * EACH * _wide(columns, dtype.itemsize)


def spoken_tiles(spans: NDArray[np.int64], columns: int, width: int) -> NDArray[np.bool_]:
    """Of each tile of columns, whether it has a column in one of the spans."""
    changes = np.zeros(-(-columns // width) + 1, np.int64)
    np.add.at(changes, spans[:, 0] // width, 1)
    np.add.at(changes, (spans[:, 1] - 1) // width + 1, -1)
    return changes[:-1].cumsum() > 0


def _wide(columns: int, itemsize: int) -> int:
    """How many cells are read at once: sixteen bytes of them, where every row begins at such a place."""
    return max(wide for wide in (1, 2, 4) if columns % wide == 0 and wide * itemsize <= 16)


@lru_cache
def _kernel(dtype: str, wide: int, each: int) -> Any:
    real = {"float32": "float", "float64": "double"}[dtype]
    options = (
        "--std=c++14",
        f"-DREAL={real}",
        f"-DWIDE={wide}",
        f"-DTHREADS={THREADS}",
        f"-DEACH={each}",
        f"-DCHUNK={CHUNK}",
    )
    return _cupy().RawKernel(SOURCE, "pass", options=options)


@lru_cache
def _exponential(dtype: str) -> Any:
    return _cupy().ElementwiseKernel(
        "float64 value, float64 step", f"{dtype} factor", "factor = exp(step * value)"
    )


@lru_cache
def _multiprocessors() -> int:
    return _cupy().cuda.Device().attributes["MultiProcessorCount"]


def check_present() -> None:
    """Raise a `ParameterError` where CuPy is not installed, or finds no CUDA device."""
    _cupy()


@lru_cache
def _cupy() -> Any:
    """CuPy, where it is installed and finds a device; else a `ParameterError` says what to do."""
    try:
        import cupy  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ParameterError(
            "device 'cuda' needs CuPy: install the extra `understudy[cuda]`, or leave `device` out"
        ) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        count = 0
    if not count:
        raise ParameterError("device 'cuda' needs a CUDA device, and this machine shows none: leave it out")
    return cupy
