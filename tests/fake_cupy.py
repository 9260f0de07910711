"""As much of CuPy as `DeviceCells` uses, on NumPy: the kernel is the loop that it stands for, tile by tile.

So the tests run all that leads to the kernel where there is no device; the kernel itself is compared with brute
force by `python -m bench.dense_gpu --check` on a machine that has one.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


class Array(np.ndarray):
    def get(self):
        return np.array(self)

    def set(self, given):
        self[...] = given


def _array(given):
    return np.array(given).view(Array)


class RawKernel:
    def __init__(self, source, name, options):
        assert f"void __launch_bounds__(THREADS) {name}(" in source
        self._defined = dict(option[2:].split("=") for option in options if option.startswith("-D"))

    def __call__(self, grid, block, given):
        cells, rows, columns, tiles, ids, factors, floor, asked_ids, weights, sums = given
        assert (block, len(tiles)) == ((int(self._defined["THREADS"]),), grid[0])
        assert (cells.shape, cells.flags.c_contiguous) == ((rows, columns), True)
        assert columns % int(self._defined["WIDE"]) == 0
        width = int(self._defined["THREADS"]) * int(self._defined["WIDE"]) * int(self._defined["EACH"])
        sums[...] = 0
        for tile in tiles:
            here = slice(tile * width, min((tile + 1) * width, columns))
            for row in range(rows):
                part = cells[row, here]
                if isinstance(ids, np.ndarray) and ids[row] >= 0:
                    assert factors.dtype == cells.dtype
                    scaled = part * factors[ids[row], here]
                    now = np.where(scaled > floor, scaled, np.minimum(part, floor))
                    sums[row % grid[1], 0] += (now - part).sum(dtype=np.float64)
                    part[...] = now
                if isinstance(asked_ids, np.ndarray) and asked_ids[row] >= 0:
                    assert weights.dtype == cells.dtype
                    sums[row % grid[1], 1] += np.vdot(
                        part.astype(float), weights[asked_ids[row], here].astype(float)
                    )


def _elementwise(given, told, body):
    assert (given, body) == ("float64 value, float64 step", "factor = exp(step * value)")
    return lambda value, step: np.exp(step * value).astype(told.split()[0])


def cupy(*, devices: int = 1, memory: int = 1 << 30) -> SimpleNamespace:
    """The module, on a machine with so many devices and so much memory on the first."""
    runtime = SimpleNamespace(
        getDeviceCount=lambda: devices,
        memGetInfo=lambda: (memory, memory),
        CUDARuntimeError=RuntimeError,
    )
    return SimpleNamespace(
        ElementwiseKernel=_elementwise,
        RawKernel=RawKernel,
        asarray=_array,
        cuda=SimpleNamespace(
            runtime=runtime, Device=lambda: SimpleNamespace(attributes={"MultiProcessorCount": 3})
        ),
        empty=lambda shape, dtype: _array(np.empty(shape, dtype)),
        get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 0),
        ones=lambda shape, dtype: _array(np.ones(shape, dtype)),
    )
