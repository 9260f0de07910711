"""Programs for the compiled sweeps: tables laid out in one block of memory, and what to do with them in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.standin.graphical import kernels
from understudy.standin.graphical.tree import Attributes, Layout, Values

BLOCK = 1 << 14
"""Cells of a table that are worked on at a time: all operands meet them in the cache next to the processor."""

SHORT_RUN = 8
"""A run shorter than this takes in the axes before it, up to `LONG_RUN` cells, and has a list of offsets."""

LONG_RUN = 256


@dataclass(frozen=True, slots=True)
class TableRegion:
    """A table of a program: where it starts, and its attributes."""

    start: int
    size: int
    attributes: Attributes

    @property
    def stop(self) -> int:
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class PassProgram:
    """Operations on `memory` numbers; `run` works on a block given to it and keeps nothing."""

    ops: NDArray[np.int64]
    pool: NDArray[np.int64]
    scales: Values
    memory: int
    block: int
    axes: int

    def run(self, work: Values) -> tuple[float, float]:
        """The logarithms taken out, and the smallest mass met; 0 says that all mass was lost."""
        scratch, counter = np.empty(self.block), np.empty(self.axes, np.int64)
        return kernels.run(self.ops, self.pool, self.scales, work, scratch, counter)


@dataclass
class ProgramWriter:
    """Collects regions and operations; `finish` gives the program."""

    layout: Layout
    memory: int = 0
    _ops: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    _pool: list[int] = field(default_factory=list)
    _scales: list[float] = field(default_factory=lambda: [1.0])
    _block: int = 1
    _axes: int = 1

    def region(self, attributes: Attributes) -> TableRegion:
        """Room for a table."""
        region = TableRegion(self.memory, self.layout.cells(attributes), attributes)
        self.memory += region.size
        return region

    def finish(self) -> PassProgram:
        ops = np.array(self._ops, dtype=np.int64).reshape(-1, 6)
        pool = np.array(self._pool, dtype=np.int64)
        return PassProgram(ops, pool, np.array(self._scales), self.memory, self._block, self._axes)

    def exponentiate(self, source: TableRegion, to: TableRegion) -> None:
        self._ops.append((kernels.EXPONENTIATE, source.start, source.size, to.start, 0, 0))

    def normalise(self, table: TableRegion, total: TableRegion) -> None:
        self._ops.append((kernels.NORMALISE, table.start, table.size, total.start, 0, 0))

    def ratio(self, new: TableRegion, old: TableRegion, total: TableRegion, to: TableRegion) -> None:
        self._ops.append((kernels.RATIO, new.start, new.size, to.start, old.start, total.start))

    def finite(self, table: TableRegion) -> None:
        self._ops.append((kernels.FINITE, table.start, table.size, 0, 0, 0))

    def logarithm(self, source: TableRegion, plus: TableRegion, to: TableRegion) -> None:
        self._ops.append((kernels.LOGARITHM, source.start, source.size, to.start, plus.start, 0))

    def count(self, number: TableRegion) -> None:
        self._ops.append((kernels.COUNT, number.start, 1, 0, 0, 0))

    def sweep(
        self,
        table: TableRegion,
        *,
        read: Sequence[TableRegion] = (),
        write: Sequence[TableRegion] = (),
        combine: int = kernels.PRODUCT,
        resume: bool,
        store: bool,
        add: bool = False,
        scale: Sequence[float] | None = None,
    ) -> None:
        """One walk along `table`: combine it with what is read, and project it on what is written.

        `resume` starts from what the table holds, `store` keeps the outcome there, `add` adds the projections to
        what was there instead of replacing it; `scale` multiplies each operand (of a sum) or projection.
        """
        operands = [*read, *write]
        outer, inner = self._split(table.attributes)
        block = self.layout.cells(inner)
        self._ops.append((kernels.SWEEP, len(self._pool), 0, 0, 0, 0))
        head = [len(outer), block, len(read), len(write), table.start, int(resume), int(store), combine]
        self._pool += [*head, *(self.layout.sizes[a] for a in outer)]
        plans: list[tuple[int, tuple[int, ...]]] = []
        for k, operand in enumerate(operands):
            cleared = operand.size if k >= len(read) and not add else 0
            factor = 0 if scale is None else len(self._scales)
            plan = run_plan(self.layout, inner, operand.attributes)
            self._axes = max(self._axes, plan[0])
            plans.append((len(self._pool) + 3, plan))
            strides = [_stride(self.layout, operand.attributes, a) for a in outer]
            self._pool += [operand.start, cleared, factor, 0, *strides]
            if scale is not None:
                self._scales.append(scale[k])
        for place, plan in plans:
            self._pool[place] = len(self._pool)
            self._pool += plan
        self._block = max(self._block, block)

    def _split(self, attributes: Attributes) -> tuple[Attributes, Attributes]:
        """The axes between blocks, and those of a block."""
        first, cells = len(attributes), 1
        while first and cells * self.layout.sizes[attributes[first - 1]] <= BLOCK:
            first -= 1
            cells *= self.layout.sizes[attributes[first]]
        return attributes[:first], attributes[first:]


def run_plan(layout: Layout, along: Attributes, operand: Attributes) -> tuple[int, ...]:
    """How a table over `operand` lies along one over `along`: axes it has or lacks in a row count as one, the last
    ones make a run.

    Attributes of the operand that are not in `along` come before all of it.
    """
    return _run_plan(layout.shape(along), tuple(a in operand for a in along))


@lru_cache(maxsize=1 << 12)
def _run_plan(sizes: tuple[int, ...], held: tuple[bool, ...]) -> tuple[int, ...]:
    """The plan by the sizes of the axes, and by which of them the operand has. Many tables have the same."""
    strides, cells = [0] * len(sizes), 1
    for i in reversed(range(len(sizes))):
        if held[i]:
            strides[i], cells = cells, cells * sizes[i]
    groups: list[list[int]] = []
    for i, size in enumerate(sizes):
        if size == 1:
            continue
        if groups and held[groups[-1][-1]] == held[i]:
            groups[-1].append(i)
        else:
            groups.append([i])

    def length(axes: Sequence[int]) -> int:
        return prod(sizes[i] for i in axes)

    run: list[int] = groups.pop() if groups else []
    kind = kernels.CONTIGUOUS if run and held[run[-1]] else kernels.CONSTANT
    pattern: list[int] = []
    if length(run) < SHORT_RUN and groups:
        while groups and length(run) * sizes[groups[-1][-1]] <= LONG_RUN:
            run = [groups[-1].pop(), *run]
            if not groups[-1]:
                groups.pop()
        kind, pattern = kernels.GATHERED, _offsets([(sizes[i], strides[i]) for i in run])
    steps = [strides[group[-1]] for group in groups]
    return (len(groups), length(run), kind, *map(length, groups), *steps, *pattern)


def _stride(layout: Layout, operand: Attributes, attribute: int) -> int:
    """Cells between neighbours along an axis of an operand; 0 where it lacks the axis."""
    if attribute not in operand:
        return 0
    return layout.cells(operand[operand.index(attribute) + 1 :])


def _offsets(run: Sequence[tuple[int, int]]) -> list[int]:
    """An operand's cells along a run of axes, each with its size and stride, counted from the first."""
    offsets = np.zeros((), dtype=np.int64)
    for size, stride in run:
        offsets = offsets[..., None] + np.arange(size) * stride
    return offsets.ravel().tolist()


def project(layout: Layout, attributes: Attributes, table: Values, onto: Attributes) -> Values:
    """Sums of a flat table over the attributes that `onto` lacks."""
    plan = np.array(run_plan(layout, attributes, onto), dtype=np.int64)
    out = np.zeros(layout.cells(onto))
    kernels.walk(kernels.PROJECT, table, out, plan, 0)
    return out
