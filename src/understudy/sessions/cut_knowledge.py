"""What is known of counts that cut declared cells, and what follows from it.

A question may cut an ordered attribute anywhere. Its cells are then parts of declared ones, and each question may
have other parts. So what is known of them is kept by the values that they hold (`cut_line`), and not by cells:

- a part holds at most what its declared cell holds, and a union of parts at least what its whole cells hold;
- with the same other conditions, counts of ranges are differences of one rising function: complements, differences
  of prefixes and sums of neighbouring ranges follow;
- a conjunction holds at most what one with fewer or wider conditions holds.

Promise     Where every band that was bought holds, each interval contains its true count. All of the above are
            deductions, and cost neither privacy nor any of β.
Units       Of a person with too many rows, those are kept whose declared cells hash lowest; among rows of the same
            declared cells, those that lie lower in the refined attribute (`table.view_reader.at_most`). So parts
            add up to declared cells under every refinement, and facts about refinements of one attribute are about
            the same rows. With two refined attributes they need not be: such facts are then not combined.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.domain.attribute import Attribute
from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.domain.refinement import RefinedDomain
from understudy.query.box import Box, Cells
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.refined import least_refined
from understudy.query.within_bins import declared_groups, enclosing, whole_groups
from understudy.sessions.cut_line import (
    END,
    PASSES,
    Edge,
    RangeBounds,
    RangeFact,
    Run,
    Runs,
    edge_of,
    holds,
    runs_of,
)

if TYPE_CHECKING:
    from understudy.sessions.knowledge import IntervalTable, Knowledge

Values = NDArray[np.float64]
Side = Runs | bytes
"""A condition on an attribute: the values of an ordered one, the packed cells of any other."""

Line = tuple[str, tuple[tuple[str, str], ...], tuple[tuple[str, Side], ...]]
"""The attribute along which ranges are counted, the groups with their cells, and the conditions on others."""

Known = Callable[[Marginal], "IntervalTable | None"]

MOST_FACTS = 128
"""Facts of one line that are kept; older ones are forgotten first."""

MOST_LINES = 1 << 12
"""Lines of which facts are kept; the one that was learnt of longest ago is forgotten first."""

MOST_CUT_BOXES = 1 << 10
"""Single counts with cuts that are searched for wider and narrower ones; older ones are forgotten first."""

MOST_GROUPS = 16
"""Groups of a marginal that are kept as single counts, too; those of a larger one are known along lines only."""

MOST_NEAR = 8
"""Declared edges beside those of a question of which every pair is looked at; of more, only neighbours are."""

MOST_NUMBERS = 1 << 22
"""Numbers that the deduction along one line may hold: of more, only the latest facts are used."""

MOST_STEPS = 1 << 23
"""Additions that the deduction along one line may take, for the same: some ten milliseconds."""


@dataclass(frozen=True, eq=False)
class CutBox:
    """The count of a conjunction lies between `low` and `high`, in people; `cut` are its refined attributes."""

    sides: Mapping[str, Side]
    low: float
    high: float
    cut: frozenset[str]


@dataclass(eq=False)
class CutKnowledge:
    """Facts about counts that cut declared cells. Promise and reason are those of the module.

    `one_refinement` says that facts are combined only where the same single attribute is refined, as they must be
    where rows of a person are left out.
    """

    one_refinement: bool = False
    _lines: dict[Line, tuple[RangeFact, ...]] = field(default_factory=dict)
    _boxes: tuple[CutBox, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._lines)

    def copy(self) -> CutKnowledge:
        """The same facts, to be added to."""
        return CutKnowledge(self.one_refinement, dict(self._lines), self._boxes)

    def learn(self, marginal: Marginal, table: IntervalTable) -> None:
        """Add that the counts of a marginal of a refined domain lie in intervals; nothing where it is no box of
        counts.
        """
        box, cut = Box.of(marginal.where), _cut(marginal.domain)
        if box is None or marginal.moment is not None or (self.one_refinement and len(cut) > 1):
            return
        for name in cut & {*marginal.by, *box.sides}:
            line, attribute = _line(marginal, box, name), marginal.domain[name]
            if name not in marginal.by:
                self._add(line, [RangeFact(runs_of(attribute, box.sides[name]), table.low, table.high, cut)])
                continue
            axis, held = marginal.by.index(name), box.sides.get(name, np.ones(attribute.size, bool))
            self._add(
                line,
                [
                    RangeFact(
                        ((edge_of(attribute, cell), edge_of(attribute, cell + 1)),),
                        np.asarray(table.low.take(cell, axis=axis)),
                        np.asarray(table.high.take(cell, axis=axis)),
                        cut,
                    )
                    for cell in np.flatnonzero(held).tolist()
                ],
            )
        if np.prod(marginal.shape) <= MOST_GROUPS:
            found = [
                CutBox(_sides(one), float(table.low[group]), float(table.high[group]), cut)
                for group in np.ndindex(marginal.shape)
                if (one := _group(marginal, box, group)) is not None
            ]
            self._boxes = (*self._boxes, *found)[-MOST_CUT_BOXES:]

    def _add(self, line: Line, facts: Iterable[RangeFact]) -> None:
        known = (*self._lines.pop(line, ()), *facts)
        self._lines[line] = known[-MOST_FACTS:]
        if len(self._lines) > MOST_LINES:
            del self._lines[next(iter(self._lines))]

    def facts(self, line: Line, cut: frozenset[str]) -> list[RangeFact]:
        """What was learnt of a line that holds together with a question about the refined attributes `cut`."""
        found = self._lines.get(line, ())
        return [fact for fact in found if not (self.one_refinement and cut and fact.cut != cut)]

    def holds(self, name: str) -> bool:
        """Whether something was learnt of ranges of an attribute among all rows."""
        return (name, (), ()) in self._lines

    def around(self, box: Box, cut: frozenset[str]) -> tuple[float, float]:
        """At least what a conjunction inside a box has, at most what one around it has, in people."""
        sides, low, high = _sides(box), 0.0, np.inf
        for known in self._boxes:
            if self.one_refinement and cut and known.cut != cut:
                continue
            if known.high < high and _lies_in(sides, known.sides):
                high = known.high
            if known.low > low and _lies_in(known.sides, sides):
                low = known.low
        return low, high


# ---- what follows


def cut_intervals(knowledge: Knowledge, marginal: Marginal, known: Known) -> IntervalTable | None:
    """Intervals for the counts of a marginal, in people, from what is `known` of declared cells and from cuts.

    The marginal is of the declared domain or of a refined one. None where its condition is no box.
    """
    declared, box = knowledge.grid.domain, Box.of(marginal.where)
    if marginal.where.largest == 0:
        return knowledge.settled(np.zeros(marginal.shape), np.zeros(marginal.shape))
    if box is None:
        return None
    cut = _cut(marginal.domain)
    found = enclosed(marginal, declared, known)
    if found is None:
        return None
    low, high = found
    if not (knowledge.cuts.one_refinement and len(cut) > 1):
        below, above = knowledge.cuts.around(box, cut)
        fewest, most = _frechet(knowledge, box, known)
        high = np.minimum(high, min(above, most))
        low = low if marginal.by else np.maximum(low, max(below, fewest))
        for name in {*marginal.by, *box.sides}:
            if not isinstance(marginal.domain[name], Bins):
                continue
            ends = _along(knowledge, marginal, box, name, known)
            if ends is not None:
                low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
    possible = _possible(marginal, box)
    return knowledge.settled(np.where(possible, low, 0.0), np.where(possible, high, 0.0))


def enclosed(marginal: Marginal, declared: Domain, known: Known) -> tuple[Values, Values] | None:
    """The ends that what is `known` of the declared cells inside a question and around it gives its counts.

    None where that is nothing.
    """
    inner, outer = enclosing(marginal.where, declared)
    most = known(Marginal(declared, marginal.by, outer))
    if most is None:
        return None
    least = most if inner.key == outer.key else known(Marginal(declared, marginal.by, inner))
    high = declared_groups(marginal, declared, most.high)
    low = np.zeros(high.shape) if least is None else declared_groups(marginal, declared, least.low)
    return np.where(whole_groups(marginal, declared), low, 0.0), high


def _frechet(knowledge: Knowledge, box: Box, known: Known) -> tuple[float, float]:
    """Bounds of a conjunction from its conditions one by one: at most the least of them, at least ΣLᵢ - (k - 1)N.

    Nothing is said where no range of all rows was ever cut.
    """
    total = knowledge.total[1]
    if len(box.sides) < 2 or not any(knowledge.cuts.holds(name) for name in box.sides):
        return 0.0, np.inf
    held, most = 0.0, total
    for name, cells in box.sides.items():
        alone = Marginal.of(LinearQuery.conjunction(box.domain, {name: cells}))
        found = cut_intervals(knowledge, least_refined(alone, knowledge.grid.domain), known)
        low, high = (0.0, total) if found is None else (float(found.low), float(found.high))
        held, most = held + max(low, 0.0), min(most, high)
    return held - (len(box.sides) - 1) * total, most


def _along(
    knowledge: Knowledge, marginal: Marginal, box: Box, name: str, known: Known
) -> tuple[Values, Values] | None:
    """What the facts of the line along one attribute say of a question; None where there are none."""
    declared = knowledge.grid.domain
    facts = knowledge.cuts.facts(_line(marginal, box, name), _cut(marginal.domain))
    asked = _asked(marginal, box, name, declared) if facts else {}
    if not asked:
        return None
    others = tuple(other for other in marginal.by if other != name)
    shape = marginal.domain.shape(others)
    own = {edge for runs in asked.values() for run in runs for edge in run}
    rest = Box(marginal.domain, {n: cells for n, cells in box.sides.items() if n != name})
    line = _DeclaredLine(Marginal(marginal.domain, others, rest.query), name, declared, known)
    taken = line.latest(facts, own, _most_edges(max(int(np.prod(shape)), 1), len(own)))
    if taken is None:
        return _of_the_same(facts, asked, marginal, name)
    facts, edges = taken, [*own, *(edge for fact in taken for run in fact.runs for edge in run)]
    near = sorted({edge for one in own for edge in line.near(one)})
    nodes = sorted({*(edge for one in edges for edge in line.near(one)), *line.ends})
    pairs = {*pairwise(nodes), line.ends}
    if not others and len(near) <= MOST_NEAR:
        pairs |= {(a, b) for i, a in enumerate(near) for b in near[i + 1 :]}
    facts += [fact for pair in sorted(pairs) if (fact := line.fact(pair)) is not None]
    bounds = RangeBounds(facts, [*edges, *nodes], shape, len(own))
    if name not in marginal.by:
        return bounds.interval(asked[-1])
    return _by_parts(marginal, name, {cell: bounds.interval(runs) for cell, runs in asked.items()})


def _most_edges(groups: int, starts: int) -> int:
    """How many edges the deduction along a line may have, for so many ends of ranges that are asked for."""
    from_each = (MOST_STEPS / (PASSES * starts * groups)) ** 0.5
    return int(min((MOST_NUMBERS / groups) ** 0.5, max(from_each, (MOST_STEPS / groups) ** (1 / 3))))


def _of_the_same(
    facts: Sequence[RangeFact], asked: Mapping[int, Runs], marginal: Marginal, name: str
) -> tuple[Values, Values] | None:
    """What facts about the very sets that are asked for say of these, and nothing else, where they are many.

    A group by the hours of a month has hundreds of parts of bins.
    """
    told: dict[Runs, tuple[Values, Values]] = {}
    for fact in facts:
        low, high = told.get(fact.runs, (fact.low, fact.high))
        told[fact.runs] = np.maximum(low, fact.low), np.minimum(high, fact.high)
    if name not in marginal.by:
        return told.get(asked[-1])
    return _by_parts(marginal, name, {cell: told[runs] for cell, runs in asked.items() if runs in told})


def _by_parts(
    marginal: Marginal, name: str, parts: Mapping[int, tuple[Values, Values]]
) -> tuple[Values, Values]:
    """The ends of a marginal's counts where those of some parts of an attribute are known, in each group."""
    low, high = np.zeros(marginal.shape), np.full(marginal.shape, np.inf)
    place: list[slice | int] = [slice(None)] * len(marginal.by)
    for cell, ends in parts.items():
        place[marginal.by.index(name)] = cell
        low[tuple(place)], high[tuple(place)] = ends
    return low, high


def _asked(marginal: Marginal, box: Box, name: str, declared: Domain) -> dict[int, Runs]:
    """The sets of values of an attribute that a question counts: one, or one for each part that is a group."""
    attribute = marginal.domain[name]
    if name not in marginal.by:
        return {-1: runs_of(attribute, box.sides[name])}
    part = ~whole_groups(Marginal(marginal.domain, (name,)), declared)
    return {
        cell: ((edge_of(attribute, cell), edge_of(attribute, cell + 1)),)
        for cell in np.flatnonzero(part).tolist()
    }


@dataclass(frozen=True, eq=False)
class _DeclaredLine:
    """The declared edges of an attribute, and what is known of the ranges between them.

    `rest` are the groups and the other conditions, over a domain that may be refined.
    """

    rest: Marginal
    name: str
    declared: Domain
    known: Known

    @property
    def _attribute(self) -> Attribute:
        return self.declared[self.name]

    @property
    def ends(self) -> Run:
        """The first edge and the last."""
        return edge_of(self._attribute, 0), END

    def latest(self, facts: Sequence[RangeFact], own: Iterable[Edge], most: int) -> list[RangeFact] | None:
        """The latest facts that have, with a question's own edges, no more than so many; None if these have more.

        The declared edges near all of them are counted, too.
        """
        places, taken = {*self.ends}, list[RangeFact]()
        places.update(own, *map(self.near, own))
        if len(places) > most:
            return None
        for fact in reversed(facts):
            edges = {edge for run in fact.runs for edge in run}
            if len(places | (edges := edges.union(*map(self.near, edges)))) > most:
                break
            places |= edges
            taken.append(fact)
        return taken[::-1]

    def near(self, edge: Edge) -> tuple[Edge, ...]:
        """The declared edges at an edge, or before and after it."""
        attribute = self._attribute
        assert isinstance(attribute, Bins)
        if edge[0]:
            return (edge,)
        after = bisect_left(attribute.starts, edge[1])
        if after < attribute.proper_size and attribute.starts[after] == edge[1]:
            return (edge,)
        return edge_of(attribute, after - 1), edge_of(attribute, after)

    def fact(self, run: Run) -> RangeFact | None:
        """What is known of a range between declared edges; None for nothing."""
        first, last = (_cell_at(self._attribute, edge) for edge in run)
        places = np.arange(self._attribute.size)
        cells: Cells = (places >= first) & (places < last)
        found = enclosed(self.rest, self.declared, lambda asked: self.known(_within(asked, self.name, cells)))
        return None if found is None else RangeFact((run,), *found)


def _cell_at(attribute: Attribute, edge: Edge) -> int:
    """The number of the cell that begins at a declared edge; the number of cells at the end."""
    assert isinstance(attribute, Bins)
    if edge == END:
        return attribute.size
    kind, place = edge
    return attribute.proper_size + place if kind else bisect_left(attribute.starts, place)


def _within(asked: Marginal, name: str, cells: Cells) -> Marginal:
    """The question of the rows with one more condition, on an attribute that is free so far."""
    also = LinearQuery.conjunction(asked.domain, {name: cells})
    return Marginal(asked.domain, asked.by, asked.where & also)


def _possible(marginal: Marginal, box: Box) -> NDArray[np.bool_]:
    """Which groups a row that meets the condition can be in."""
    held = np.ones((1,) * len(marginal.by), bool)
    for axis, name in enumerate(marginal.by):
        if name in box.sides:
            held = held & box.sides[name].reshape([-1 if i == axis else 1 for i in range(len(marginal.by))])
    return np.broadcast_to(held, marginal.shape)


# ---- names


def _cut(domain: Domain) -> frozenset[str]:
    """The attributes that a domain refines."""
    return domain.cut if isinstance(domain, RefinedDomain) else frozenset()


def _group(marginal: Marginal, box: Box, group: tuple[int, ...]) -> Box | None:
    """The conjunction that one group of a marginal counts; None where its condition rules the group out."""
    sides = dict(box.sides)
    for name, cell in zip(marginal.by, group, strict=True):
        if name in sides and not sides[name][cell]:
            return None
        sides[name] = np.arange(marginal.domain[name].size) == cell
    return Box(marginal.domain, sides)


def _side(attribute: Attribute, cells: Cells) -> Side:
    return runs_of(attribute, cells) if isinstance(attribute, Bins) else np.packbits(cells).tobytes()


def _sides(box: Box) -> dict[str, Side]:
    return {name: _side(box.domain[name], cells) for name, cells in box.sides.items()}


def _lies_in(inner: Mapping[str, Side], outer: Mapping[str, Side]) -> bool:
    """Whether one conjunction implies another."""
    for name, wide in outer.items():
        narrow = inner.get(name)
        if narrow is None:
            return False
        if isinstance(wide, bytes):
            assert isinstance(narrow, bytes)
            if any(a & ~b for a, b in zip(narrow, wide, strict=True)):
                return False
        elif isinstance(narrow, bytes) or not holds(wide, narrow):
            return False
    return True


def _line(marginal: Marginal, box: Box, name: str) -> Line:
    domain = marginal.domain
    groups: Clique = tuple(other for other in marginal.by if other != name)
    rest = {other: cells for other, cells in box.sides.items() if other != name}
    return (
        name,
        tuple((other, domain[other].identity) for other in groups),
        tuple((other, _side(domain[other], rest[other])) for other in domain.clique(rest)),
    )
