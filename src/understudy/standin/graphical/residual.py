"""Noisy marginals taken apart into uncorrelated parts, and put together again by generalised least squares.

Close the measured cliques under intersection. Each set of attributes i of that lattice has a part of its own: what
a table over i tells beyond the tables over smaller sets of the lattice. Under noise of one variance σ_c² per
measured clique the parts are uncorrelated, and every clique c that holds i estimates part i with variance
σ_c² |c| / |i| for each cell (|·| counts cells). So generalised least squares over overlapping measurements is a
weighted mean for each part. Measurements that contradict each other are reconciled before a model is fitted, and
the model has no parameter that it cannot feel: that is what makes the fit converge when the noise is small.

What was measured of a set's own part alone, an interaction, joins that mean with its own precision. All sets
within it then belong to the lattice: else its part would hold more than the interaction tells of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from understudy.errors import ParameterError
from understudy.query.residuals import parts_of
from understudy.standin.graphical import kernels
from understudy.standin.graphical.program import PassProgram, ProgramWriter, TableRegion
from understudy.standin.graphical.tree import Attributes, Layout, Values

LEAST_VARIANCE = 1e-6
"""Counts measured exactly are taken for counts with this variance, so that every weight is finite."""


@dataclass(frozen=True)
class ResidualCounts:
    """A measurement in the layout: attributes, flat counts, and the variance of each cell."""

    attributes: Attributes
    counts: Values
    variance: float

    def weight(self, part: TableRegion) -> float:
        """The precision with which this estimates a cell of a part."""
        return part.size / (max(self.variance, LEAST_VARIANCE) * self.counts.size)


@dataclass(frozen=True)
class OwnPart:
    """An interaction in the layout: attributes, flat counts, and the variance of each coordinate."""

    attributes: Attributes
    counts: Values
    variance: float


def maximal(cliques: Iterable[Attributes]) -> tuple[Attributes, ...]:
    """The cliques that are part of no other, smaller ones first."""
    distinct = sorted(set(cliques), key=lambda c: (len(c), c))
    sets = [frozenset(c) for c in distinct]
    return tuple(c for i, c in enumerate(distinct) if not any(sets[i] < other for other in sets[i + 1 :]))


def lattice(cliques: Iterable[Attributes]) -> tuple[Attributes, ...]:
    """The cliques, the empty set, and all intersections of theirs; smaller ones first."""
    closed: set[frozenset[int]] = {frozenset()}
    for clique in sorted(set(cliques)):
        closed |= {frozenset(clique) & other for other in closed} | {frozenset(clique)}
        closed |= {frozenset(clique) & other for other in closed}
    return tuple(sorted((tuple(sorted(s)) for s in closed), key=lambda s: (len(s), s)))


@dataclass(frozen=True)
class ResidualSpace:
    """The parts of tables over `cliques`, for every set of `sets`, in one flat vector.

    `sets` is a lattice that holds the cliques; the empty set, whose part is the total, comes first.
    """

    layout: Layout
    cliques: tuple[Attributes, ...]
    sets: tuple[Attributes, ...]

    @cached_property
    def parts(self) -> tuple[TableRegion, ...]:
        """Where each part stands."""
        writer = ProgramWriter(self.layout)
        return tuple(writer.region(s) for s in self.sets)

    @cached_property
    def tables(self) -> tuple[TableRegion, ...]:
        """Where each clique's table stands, in a flat vector of all of them."""
        writer = ProgramWriter(self.layout)
        return tuple(writer.region(clique) for clique in self.cliques)

    @cached_property
    def size(self) -> int:
        return self.parts[-1].stop

    @cached_property
    def cells(self) -> int:
        return self.tables[-1].stop if self.tables else 0

    @cached_property
    def place(self) -> dict[Attributes, TableRegion]:
        return {part.attributes: part for part in self.parts}

    @cached_property
    def _inside(self) -> dict[Attributes, list[Attributes]]:
        return {}

    def within(self, attributes: Attributes) -> list[Attributes]:
        """The sets of the lattice that lie inside."""
        if attributes not in self._inside:
            outer = frozenset(attributes)
            self._inside[attributes] = [s for s in self.sets if outer.issuperset(s)]
        return self._inside[attributes]

    def spread(self, values: Mapping[Attributes, float]) -> Values:
        """One number for each part, repeated over its cells."""
        return np.repeat([values[p.attributes] for p in self.parts], [p.size for p in self.parts])

    def residuals(self, tables: Values) -> Values:
        """The parts of consistent tables of counts: each is read off one clique that holds it."""
        work = np.empty(self._residuals.memory)
        work[: self.cells] = tables
        self._residuals.run(work)
        return work[self.cells : self.cells + self.size]

    def effects(self, tables: Values) -> Values:
        """The parts of the sum of the functions given by tables: means in place of sums."""
        work = np.empty(self._effects.memory)
        work[: self.cells] = tables
        work[self.cells : self.cells + self.size] = 0.0
        self._effects.run(work)
        return work[self.cells : self.cells + self.size]

    def expand(self, parts: Values) -> Values:
        """The tables with the given parts; the adjoint of `effects`."""
        work = np.empty(self._expand.memory)
        work[self.cells : self.cells + self.size] = parts
        self._expand.run(work)
        return work[: self.cells]

    def projected(self, functions: Values) -> Values:
        """Functions on the cells of every set, each without what smaller sets of the lattice tell of it.

        This is the orthogonal projection on the space of the set's own part.
        """
        begin = self.cells + self.size
        work = np.empty(self._projected.memory)
        work[self.cells : begin] = functions
        self._projected.run(work)
        return work[begin : begin + self.size]

    # The four programs share one block of memory: the tables, then the parts.

    def _write(self) -> tuple[ProgramWriter, list[TableRegion], dict[Attributes, TableRegion]]:
        writer = ProgramWriter(self.layout)
        tables = [writer.region(clique) for clique in self.cliques]
        return writer, tables, {s: writer.region(s) for s in self.sets}

    def _share(self, s: Attributes, table: Attributes) -> float:
        return self.layout.cells(s) / self.layout.cells(table)

    def _project(
        self, writer: ProgramWriter, table: TableRegion, onto: Mapping[Attributes, TableRegion]
    ) -> None:
        """The table's projections on sets within it: each is summed up from the smallest that holds it."""
        asked: dict[TableRegion, list[TableRegion]] = {}
        known = [table]
        for s in sorted(onto, key=len, reverse=True):
            source = min((r for r in known if set(s) <= set(r.attributes)), key=lambda r: r.size)
            asked.setdefault(source, []).append(onto[s])
            known.append(onto[s])
        for source in known:
            if source in asked:
                writer.sweep(source, write=asked[source], resume=True, store=False)

    def _gathered(
        self,
        writer: ProgramWriter,
        parts: Mapping[Attributes, TableRegion],
        sets: Sequence[Attributes],
        table: Attributes,
        sign: float,
    ) -> tuple[list[TableRegion], list[float]]:
        """What a table has to read, and with which scales, for ± the sum of the functions with these parts.

        A part that lies within another is added to it on the smaller table first.
        """
        tops = maximal(sets)
        held: dict[Attributes, list[Attributes]] = {top: [] for top in tops}
        for s in sets:
            held[min((top for top in tops if set(s) <= set(top)), key=self.layout.cells)].append(s)
        read: list[TableRegion] = []
        scale: list[float] = []
        for top, own in held.items():
            shares = [sign * self._share(s, table) for s in own]
            if len(own) == 1 or top == table:
                read += [parts[s] for s in own]
                scale += shares
            else:
                sums = writer.region(top)
                writer.sweep(
                    sums,
                    read=[parts[s] for s in own],
                    scale=shares,
                    combine=kernels.SUM,
                    resume=False,
                    store=True,
                )
                read.append(sums)
                scale.append(1.0)
        return read, scale

    def _take_apart(self, writer: ProgramWriter, parts: Mapping[Attributes, TableRegion]) -> None:
        """From projections to parts, in place: each set in turn loses what smaller sets tell."""
        for s, part in parts.items():
            smaller = [t for t in self.within(s) if t != s]
            read, scale = self._gathered(writer, parts, smaller, s, -1.0)
            writer.sweep(part, read=read, scale=scale, combine=kernels.SUM, resume=True, store=True)

    @cached_property
    def _residuals(self) -> PassProgram:
        writer, tables, parts = self._write()
        done: set[Attributes] = set()
        for table in sorted(tables, key=lambda table: table.size):
            fresh = [s for s in self.within(table.attributes) if s not in done]
            self._project(writer, table, {s: parts[s] for s in fresh})
            done.update(fresh)
        self._take_apart(writer, parts)
        return writer.finish()

    @cached_property
    def _effects(self) -> PassProgram:
        writer, tables, parts = self._write()
        for table in tables:
            own = {s: writer.region(s) for s in self.within(table.attributes)}
            self._project(writer, table, own)
            self._take_apart(writer, own)
            for s, part in own.items():
                share = [self._share(s, table.attributes)]
                writer.sweep(part, write=[parts[s]], scale=share, resume=True, store=False, add=True)
        return writer.finish()

    @cached_property
    def _projected(self) -> PassProgram:
        writer, _, parts = self._write()
        found = {s: writer.region(s) for s in self.sets}
        for s, part in parts.items():
            own = {t: found[t] if t == s else writer.region(t) for t in self.within(s)}
            self._project(writer, part, own)
            self._take_apart(writer, own)
        return writer.finish()

    @cached_property
    def _expand(self) -> PassProgram:
        writer, tables, parts = self._write()
        for table in tables:
            inside = self.within(table.attributes)
            smaller = [s for s in inside if s != table.attributes]
            read, scale = self._gathered(writer, parts, smaller, table.attributes, 1.0)
            read += [parts[s] for s in inside if s == table.attributes]
            scale += [1.0] * (len(inside) - len(smaller))
            writer.sweep(table, read=read, scale=scale, combine=kernels.SUM, resume=False, store=True)
        return writer.finish()


@dataclass(frozen=True)
class Reconciled:
    """The best linear unbiased estimate of every part, its variance for each cell, and the noise behind it."""

    space: ResidualSpace
    estimate: Values
    variance: dict[Attributes, float]
    noise: dict[Attributes, float]

    @property
    def total(self) -> float:
        """The number of rows that the measurements agree on: the part of the empty set."""
        return float(self.estimate[0])


def reconcile(
    layout: Layout, measured: Sequence[ResidualCounts], interactions: Sequence[OwnPart] = ()
) -> Reconciled:
    """Generalised least squares over all measurements, and interactions, at once.

    `noise` is, for each part, the mean standard deviation of the cells of the measurements behind it, weighted as
    they are in the estimate; of an interaction it is that of a table over its own attributes.
    """
    told = [m.attributes for m in (*measured, *interactions)]
    sets = lattice([*told, *(part for own in interactions for part in parts_of(own.attributes))])
    space = ResidualSpace(layout, maximal(told), sets)
    sums = np.zeros(space.size)
    weights, noise = dict.fromkeys(sets, 0.0), dict.fromkeys(sets, 0.0)
    for m in measured:
        own = ResidualSpace(layout, (m.attributes,), tuple(space.within(m.attributes)))
        residuals = own.residuals(m.counts)
        for part in own.parts:
            weight, place = m.weight(part), space.place[part.attributes]
            sums[place.start : place.stop] += weight * residuals[part.start : part.stop]
            weights[part.attributes] += weight
            noise[part.attributes] += weight * sqrt(max(m.variance, LEAST_VARIANCE))
    for own in interactions:
        weight, place = 1 / max(own.variance, LEAST_VARIANCE), space.place[own.attributes]
        sums[place.start : place.stop] += weight * own.counts
        weights[own.attributes] += weight
        noise[own.attributes] += sqrt(weight)
    if any(s and not weights[s] for s in sets):
        raise ParameterError("an interaction can be fitted where those of all sets within it were measured")
    variance = {s: 1 / weights[s] if weights[s] > 0 else 0.0 for s in sets}
    return Reconciled(
        space, sums * space.spread(variance), variance, {s: noise[s] * variance[s] for s in sets}
    )
