"""Belief propagation: from log potentials to the rates of every clique of the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import inf

import numpy as np

from understudy.errors import ParameterError
from understudy.standin.graphical import kernels
from understudy.standin.graphical.program import PassProgram, ProgramWriter, TableRegion
from understudy.standin.graphical.tree import Attributes, JunctionTree, Layout, Values

LEAST_MASS = 1e-200
"""Below this, rates are recomputed in logarithms: cells that floats had lost could have mattered."""


@dataclass(frozen=True)
class Potential:
    """A log factor over some attributes, flat in the layout."""

    attributes: Attributes
    logs: Values


@dataclass(frozen=True)
class Propagator:
    """Two sweeps over each clique: up with the potentials and the children's messages, down with the parent's.

    Messages are rates, rescaled at each separator; no logarithm is taken of a clique's table. Where the factors
    are so extreme that mass is lost, the upward sweep is repeated in logarithms.
    """

    layout: Layout
    tree: JunctionTree
    potentials: tuple[Attributes, ...]
    zeros: tuple[Attributes, ...] = ()

    @cached_property
    def _fast(self) -> _Compiled:
        return _write(self, careful=False)

    @cached_property
    def _careful(self) -> _Compiled:
        return _write(self, careful=True)

    def propagate(self, logs: Sequence[Values], allowed: Sequence[Values] = ()) -> Beliefs:
        """The beliefs for one log table for each potential, and one table of 0 and 1 for each of `zeros`."""
        beliefs = self._attempt(logs, allowed)
        if not beliefs.least_mass > 0:
            raise ParameterError("the constraints forbid every cell")
        return beliefs

    def log_mass(self, logs: Sequence[Values], weights: Sequence[Values]) -> float:
        """log Σ exp(Σ logs)·Π weights over all cells; the weights are at least 0, and -inf says that it is 0."""
        beliefs = self._attempt(logs, weights)
        return beliefs.log_mass if beliefs.least_mass > 0 else -inf

    def _attempt(self, logs: Sequence[Values], allowed: Sequence[Values]) -> Beliefs:
        sizes = [table.size for table in logs]
        flat = np.concatenate(logs) if logs else np.empty(0)
        beliefs = self._run(self._fast, *_exponentials(flat, sizes), allowed)
        if beliefs.least_mass <= LEAST_MASS:
            with np.errstate(divide="ignore"):
                beliefs = self._run(self._careful, flat, 0.0, [np.log(table) for table in allowed])
        return beliefs

    def _run(
        self, compiled: _Compiled, factors: Values, taken_out: float, allowed: Sequence[Values]
    ) -> Beliefs:
        work = np.empty(compiled.program.memory)
        work[compiled.one.start] = 1.0
        work[compiled.one.stop : compiled.one.stop + factors.size] = factors
        for region, table in zip(compiled.allowed, allowed, strict=True):
            work[region.start : region.stop] = table
        log_mass, smallest = compiled.program.run(work)
        return Beliefs(work, log_mass + taken_out, smallest, compiled.tables, compiled.marginals)


def _exponentials(logs: Values, sizes: Sequence[int]) -> tuple[Values, float]:
    """Each factor over its largest value, one after the other, and the sum of what was taken out."""
    if not sizes:
        return logs, 0.0
    peaks = np.maximum.reduceat(logs, [0, *accumulate(sizes[:-1])])
    return np.exp(logs - np.repeat(peaks, sizes)), float(sum(peaks.tolist()))


@dataclass(frozen=True)
class Beliefs:
    """What a pass leaves: each clique's rates, each potential's marginal, log Z, and the smallest mass met."""

    work: Values
    log_mass: float
    least_mass: float
    tables: tuple[TableRegion, ...]
    of_potentials: tuple[TableRegion, ...]

    def clique(self, j: int) -> Values:
        return self.work[self.tables[j].start : self.tables[j].stop]

    def marginals(self) -> Values:
        """The rates over the attributes of every potential, one after the other."""
        return self.work[self.of_potentials[0].start : self.of_potentials[-1].stop].copy()


@dataclass(frozen=True)
class _Compiled:
    """A program and where its tables stand; the `marginals` follow `one`, without a gap."""

    program: PassProgram
    one: TableRegion
    allowed: tuple[TableRegion, ...]
    tables: tuple[TableRegion, ...]
    marginals: tuple[TableRegion, ...]


def _write(plan: Propagator, *, careful: bool) -> _Compiled:
    """The program of a pass; `careful` combines logarithms and exponentiates whole cliques."""
    layout, tree = plan.layout, plan.tree
    writer = ProgramWriter(layout)
    one = writer.region(())
    marginals = tuple(writer.region(attributes) for attributes in plan.potentials)
    # A marginal's room is free until the way down, so the factor stands there.
    allowed = tuple(writer.region(attributes) for attributes in plan.zeros)
    tables = tuple(writer.region(clique) for clique in tree.cliques)
    hosted: list[list[TableRegion]] = [[] for _ in tables]
    for marginal in marginals:
        hosted[_host(plan, marginal.attributes)].append(marginal)
    joined = _Joined([])
    asked = [
        joined.write_up(writer, t.size, own, careful=careful) for t, own in zip(tables, hosted, strict=True)
    ]
    read = [list(own) for own in asked]
    for table in allowed:
        read[_host(plan, table.attributes)].append(table)
    if careful:
        ups = _write_up_in_logarithms(writer, tree, tables, read, one)
    else:
        ups = _write_up(writer, tree, tables, read)
    _write_down(writer, tree, tables, ups, asked, one)
    joined.write_down(writer)
    return _Compiled(writer.finish(), one, allowed, tables, marginals)


JOINED_SHARE = 8
"""Potentials on the same clique are first multiplied among themselves, on tables of at most 1/8 of its cells."""


@dataclass(frozen=True)
class _Joined:
    """Tables on which several potentials meet before they meet their clique, with what each is made of."""

    tables: list[tuple[TableRegion, list[TableRegion]]]

    def write_up(
        self, writer: ProgramWriter, cells: int, potentials: Sequence[TableRegion], *, careful: bool
    ) -> list[TableRegion]:
        """What a clique of `cells` cells has to read in place of the potentials."""
        combine = kernels.SUM if careful else kernels.PRODUCT
        read: list[TableRegion] = []
        for group in _groups(writer.layout, cells // JOINED_SHARE, potentials):
            if len(group) == 1:
                read += group
                continue
            table = writer.region(tuple(sorted({a for region in group for a in region.attributes})))
            parts = self.write_up(writer, table.size, group, careful=careful)
            writer.sweep(table, read=parts, combine=combine, resume=False, store=True)
            self.tables.append((table, parts))
            read.append(table)
        return read

    def write_down(self, writer: ProgramWriter) -> None:
        """From the marginals of joined tables to those of their parts; what was made last is taken apart first."""
        for table, parts in reversed(self.tables):
            writer.sweep(table, write=parts, resume=True, store=False)


def _groups(layout: Layout, most_cells: int, potentials: Sequence[TableRegion]) -> list[list[TableRegion]]:
    """Put each potential to the group that grows least by it, and stays within the cells; else it starts one."""
    groups: list[tuple[frozenset[int], list[TableRegion]]] = []
    for potential in potentials:
        best, least = -1, inf
        for i, (attributes, _) in enumerate(groups):
            cells = layout.cells(attributes.union(potential.attributes))
            growth = cells / layout.cells(attributes)
            if cells <= most_cells and growth < least:
                best, least = i, growth
        if best < 0:
            groups.append((frozenset(potential.attributes), [potential]))
        else:
            attributes, members = groups[best]
            groups[best] = (attributes.union(potential.attributes), [*members, potential])
    return [members for _, members in groups]


def _host(plan: Propagator, attributes: Attributes) -> int:
    host = plan.tree.host(attributes, plan.layout)
    assert host is not None, "the tree was made for these cliques"
    return host


_Up = tuple[TableRegion, TableRegion]
"""What a clique says of its separator: a message, and the mass by which it was divided."""


def _write_up(
    writer: ProgramWriter,
    tree: JunctionTree,
    tables: Sequence[TableRegion],
    read: Sequence[list[TableRegion]],
) -> list[_Up]:
    ups: list[_Up] = [(writer.region(separator), writer.region(())) for separator in tree.separators]
    for j in reversed(range(len(tables))):
        message, mass = ups[j]
        heard = [ups[child][0] for child in tree.children[j]]
        writer.sweep(tables[j], read=[*read[j], *heard], write=[message], resume=False, store=True)
        writer.normalise(message, mass)
    return ups


def _write_up_in_logarithms(
    writer: ProgramWriter,
    tree: JunctionTree,
    tables: Sequence[TableRegion],
    read: Sequence[list[TableRegion]],
    one: TableRegion,
) -> list[_Up]:
    """The same, losing nothing: each cell of a separator has its largest logarithm taken out first."""
    ups: list[_Up] = [(writer.region(separator), one) for separator in tree.separators]
    spoken = [writer.region(separator) for separator in tree.separators]
    for j in reversed(range(len(tables))):
        message, largest = ups[j][0], writer.region(tree.separators[j])
        heard = [spoken[child] for child in tree.children[j]]
        writer.sweep(tables[j], read=[*read[j], *heard], combine=kernels.SUM, resume=False, store=True)
        writer.sweep(tables[j], write=[largest], combine=kernels.MAXIMUM, resume=True, store=False)
        writer.finite(largest)
        writer.sweep(tables[j], read=[largest], scale=[-1.0], combine=kernels.SUM, resume=True, store=True)
        writer.exponentiate(tables[j], tables[j])
        writer.sweep(tables[j], write=[message], resume=True, store=False)
        writer.logarithm(message, largest, spoken[j])
        if tree.parents[j] < 0:
            writer.count(spoken[j])
    return ups


def _write_down(
    writer: ProgramWriter,
    tree: JunctionTree,
    tables: Sequence[TableRegion],
    ups: Sequence[_Up],
    asked: Sequence[list[TableRegion]],
    one: TableRegion,
) -> None:
    downs: dict[int, TableRegion] = {j: one for j, parent in enumerate(tree.parents) if parent < 0}
    for j, table in enumerate(tables):
        message, mass = ups[j]
        ratio = writer.region(tree.separators[j])
        writer.ratio(downs[j], message, mass, ratio)
        for child in tree.children[j]:
            downs[child] = writer.region(tree.separators[child])
        written = [*asked[j], *(downs[child] for child in tree.children[j])]
        writer.sweep(table, read=[ratio], write=written, resume=True, store=True)
