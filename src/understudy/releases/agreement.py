"""Synthetic rows that agree with the answers of a release, cell by cell.

A stand-in follows its answers only as far as its tree reaches. Rows that are drawn from it are therefore moved
afterwards: one value of one row at a time, wherever that brings the counts of the rows nearer to the answers. This
is the combinatorial optimisation of population synthesis, with the answered marginals as its tables. Rows have one
joint distribution, so they also settle what noise makes the answers disagree about, and are often nearer to the
table than the answers themselves.

For a cell whose count among the rows is off by e, the loss is that of Huber: e²/2w up to w rows, and |e| - w/2
beyond; w is at least `WIDTH`, and more while the cells of the marginal are far off. It is quadratic where cells
expect less than one row, so that rare cells are neither emptied nor filled by rounding. A value moves only where
that lowers the sum of all losses, and never into a cell that is declared to be empty. Everything here is made of
released numbers: it is post-processing and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.query.constraint import Constraint
from understudy.query.projection import Projection
from understudy.releases.run import MarginalAnswer
from understudy.releases.synthetic import Codes, sample_codes
from understudy.standin.graphical.compile import compiled

WIDTH = 1.5
"""Rows up to which the loss of a cell is quadratic."""

SWEEPS, MORE_SWEEPS = 2, 4
"""How often each row is looked at, and how often where that is little work; a second look finds a tenth of what
the first one found."""

LITTLE_WORK, MOST_WORK = 60_000_000, 400_000_000
"""Rows that are looked at, times the targets that each is compared with: nanoseconds each."""

MOST_TRIED = 400_000_000
"""Values that are tried, times the targets that hold their attribute: tens of nanoseconds each. Where it would be
more, of the rows that are looked at only those are moved that are most in the way."""

BLOCK, MOST_BLOCK = 512, 4096
"""Rows that are compared with all targets at once, at least and at most; the moves of one block are seen by the
next. Long tables have long blocks."""

TRIES = 2
"""Attributes of a row that are tried, those first whose cells have most rows too many."""

LEAST_GAIN = 1e-4
"""Of a move: sums of losses are known up to rounding."""

FEW_MOVES = 0.01
"""Of the rows that were looked at: a sweep that moves fewer is the last."""

ONE_WAY_WEIGHT = 0.02
"""Of a 1-way marginal's losses, for each larger marginal that holds its attribute."""


def agreeing_rows(
    standin: Projection, answers: Sequence[MarginalAnswer], rows: int, rng: np.random.Generator
) -> Codes:
    """Rows drawn from a stand-in and moved until their counts agree with the answers; `rows` of them.

    Answers that a theorem certifies are the stand-in's own, so rows that follow it agree with them already.
    """
    codes = sample_codes(standin, rows, rng)
    told = [answer for answer in answers if answer.clique and answer.basis != "certified"]
    if not told or not rows:
        return codes
    agreement = RowAgreement.of(standin.domain, codes, told, _zeros(standin, told))
    agreement.descend(rng)
    return agreement.codes


def _zeros(standin: Projection, answers: Sequence[MarginalAnswer]) -> list[Constraint]:
    """What no row may be in: what the stand-in was told to leave empty, and cells that are 0 without error."""
    model = getattr(standin, "model", standin)
    found: list[Constraint] = list(getattr(model, "constraints", ()))
    for answer in answers:
        empty = (answer.counts == 0) & (answer.error == 0)
        if empty.any() and not empty.all():
            found.append(Constraint(answer.clique, ~empty))
    if not hasattr(standin, "sample_codes"):  # every cell is held, and those without mass stay empty
        rates = standin.project(standin.domain.names)
        if (rates <= 0).any() and (rates > 0).any():
            found.append(Constraint(standin.domain.names, rates > 0))
    return found


def targets(answers: Sequence[MarginalAnswer]) -> list[MarginalAnswer]:
    """The answers that rows are compared with: marginals that lie in no larger one, and the 1-way ones.

    Other marginals below a larger one are left out: the larger ones tell them together, with less noise.
    """
    below = {
        part
        for answer in answers
        for order in range(2, len(answer.clique))
        for part in combinations(answer.clique, order)
    }
    return [answer for answer in answers if answer.clique not in below]


@dataclass(frozen=True, eq=False)
class TablePlaces:
    """Where the cells of many tables stand in one array, each table in C order.

    Of table t, `members[t]` are the positions of its attributes, the first `width[t]` of them, `starts[t]` is the
    place of its first cell, and `strides[t]` how far a step of each attribute reaches.
    """

    members: NDArray[np.int64]
    width: NDArray[np.int64]
    starts: NDArray[np.int64]
    strides: NDArray[np.int64]

    @classmethod
    def of(cls, sizes: Sequence[int], tables: Sequence[Sequence[int]]) -> TablePlaces:
        """Tables over these attributes, one after another."""
        most = max(map(len, tables), default=1)
        members, strides = (np.zeros((len(tables), most), np.int64) for _ in range(2))
        starts, begin = np.zeros(len(tables), np.int64), 0
        for t, attributes in enumerate(tables):
            starts[t], step = begin, 1
            for k in reversed(range(len(attributes))):
                members[t, k], strides[t, k] = attributes[k], step
                step *= sizes[attributes[k]]
            begin += step
        return cls(members, np.array([len(t) for t in tables], np.int64), starts, strides)

    def by(self, attributes: int, keys: Sequence[int] | NDArray[np.int64]) -> _Lists:
        """Tables by one key each: those of key a are `which[at[a]:at[a + 1]]`."""
        keys = np.asarray(keys, np.int64)
        at = np.searchsorted(np.sort(keys), np.arange(attributes + 1))
        return at.astype(np.int64), np.argsort(keys, kind="stable").astype(np.int64)


_Lists = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(eq=False)
class RowAgreement:
    """Rows, one line of `rows` for each attribute, and how far every cell of every target is off among them.

    Each target stands in `off` once for each of its attributes, with the values of that attribute side by side:
    the choice among the values of one attribute reads whole lines of memory. `first` is the first of its copies.
    """

    domain: Domain
    rows: NDArray[np.int32]
    places: TablePlaces
    first: NDArray[np.int64]
    off: NDArray[np.float32]
    weights: NDArray[np.float32]
    constraints: Sequence[Constraint] = ()
    moved: int = 0

    @classmethod
    def of(
        cls,
        domain: Domain,
        codes: Mapping[str, NDArray[np.int64]],
        answers: Sequence[MarginalAnswer],
        constraints: Sequence[Constraint] = (),
    ) -> RowAgreement:
        """Count the rows in the cells of every target."""
        rows = np.stack([np.asarray(codes[name], np.int32) for name in domain.names])
        asked = targets(answers)
        members = [[domain.position(name) for name in answer.clique] for answer in asked]
        counted = _counted(domain, rows, members)
        tables, off = [], []
        for answer, own, found in zip(asked, members, counted, strict=True):
            scale = rows.shape[1] / max(float(answer.counts.sum()), 1e-9)
            apart = (found.reshape(answer.counts.shape) - scale * answer.counts).astype(np.float32)
            for k in range(len(own)):
                order = [*range(k), *range(k + 1, len(own)), k]
                tables.append([own[j] for j in order])
                off.append(apart.transpose(order).ravel())
        larger = np.array([a for own in members if len(own) > 1 for a in own], np.int64)
        holding = np.bincount(larger, minlength=len(domain))
        return cls(
            domain,
            rows,
            TablePlaces.of(domain.shape(), tables),
            np.cumsum([0, *map(len, members)], dtype=np.int64),
            np.concatenate(off),
            np.array([_weight(own, holding) for own in members], np.float32),
            constraints,
        )

    @property
    def codes(self) -> Codes:
        """The rows as they are now."""
        return {name: self.rows[a].astype(np.int64) for a, name in enumerate(self.domain.names)}

    @property
    def distance(self) -> float:
        """The part of the rows that would have to be moved, on average over the targets."""
        apart = [float(np.abs(self._target(c)).sum()) / 2 for c in range(self.weights.size)]
        return float(np.mean(apart)) / max(self.rows.shape[1], 1)

    def descend(self, rng: np.random.Generator, *, work: int = MOST_WORK) -> None:
        """Look at rows in random order, and move the value of each that is most in the way, where that helps."""
        places, attributes, count = self.places, len(self.domain), self.rows.shape[1]
        sizes = np.array(self.domain.shape(), np.int64)
        last = places.members[np.arange(places.width.size), places.width - 1]
        owner = np.repeat(np.arange(self.first.size - 1), np.diff(self.first))
        zeros = [[self.domain.position(name) for name in c.clique] for c in self.constraints]
        # A constraint stands once for each of its attributes, in the list of that attribute.
        empty = TablePlaces.of(sizes.tolist(), zeros)
        kinds = np.array([a for own in zeros for a in own], np.int64)
        at, which = empty.by(attributes, kinds)
        which = np.repeat(np.arange(len(zeros)), [len(own) for own in zeros])[which] if zeros else which
        allowed = np.concatenate([c.allowed.ravel() for c in self.constraints] or [np.ones(1, bool)])
        asked, holding = max(self.weights.size, 1), places.width.size / attributes
        looks = min(MORE_SWEEPS * count, max(SWEEPS * count, LITTLE_WORK // asked), max(work // asked, 1))
        part = min(1.0, MOST_TRIED / (looks * holding * (float(sizes.mean()) + 2)))
        block, step = min(max(count // 64, BLOCK), MOST_BLOCK), min(count, looks // 3 + 1)
        while looks > 0:
            # A part of the looks at a time: how steep the losses are follows how far off the cells still are.
            order = rng.permutation(count)[: min(step, looks)]
            looks -= order.size
            moves = _sweep(
                self.rows, sizes, order, block, part, self.off, self.weights, self._steepness(), self.first, owner,
                places.members, places.width, places.starts, places.strides, *places.by(attributes, last),
                empty.members, empty.width, empty.starts, empty.strides, at, which, allowed,
            )  # fmt: skip
            self.moved += moves
            if moves < FEW_MOVES * order.size:
                return

    def _target(self, c: int) -> NDArray[np.float32]:
        """How far the cells of a target are off."""
        begin = self.places.starts[self.first[c]]
        size = self.domain.size([self.domain.names[a] for a in self._members(c)])
        return self.off[begin : begin + size]

    def _members(self, c: int) -> NDArray[np.int64]:
        t = self.first[c]
        return self.places.members[t, : self.places.width[t]]

    def _steepness(self) -> NDArray[np.float32]:
        """Of each target's losses: quadratic up to `WIDTH` rows, or up to what its cells are off as yet."""
        apart = [float(np.sqrt(np.mean(self._target(c) ** 2))) for c in range(self.weights.size)]
        return (1 / np.maximum(WIDTH, np.array(apart))).astype(np.float32)


def _weight(members: Sequence[int], holding: NDArray[np.int64]) -> float:
    """Of a target's losses; `holding` says how many larger targets hold each attribute."""
    above = int(holding[members[0]]) if len(members) == 1 else 0
    return ONE_WAY_WEIGHT * above if above else 1.0


def _counted(
    domain: Domain, rows: NDArray[np.int32], tables: Sequence[Sequence[int]]
) -> list[NDArray[np.int64]]:
    """How many rows are in each cell of each table, flat."""
    places = TablePlaces.of(domain.shape(), tables)
    ends = np.append(places.starts, places.starts[-1] + prod(domain.shape()[a] for a in tables[-1]))
    found = np.zeros(int(ends[-1]), np.int64)
    _count(rows, places.members, places.width, places.starts, places.strides, found)
    return np.split(found, ends[1:-1])


ONE, HALF = np.float32(1.0), np.float32(0.5)


@compiled
def _count(rows, members, width, starts, strides, found):
    """Count the rows in the cells of all tables, a block of rows at a time."""
    at = np.empty(MOST_BLOCK, np.int64)
    for begin in range(0, rows.shape[1], at.size):
        count = min(at.size, rows.shape[1] - begin)
        for t in range(width.size):
            for i in range(count):
                at[i] = starts[t]
            for k in range(width[t]):
                a, step = members[t, k], strides[t, k]
                for i in range(count):
                    at[i] += step * rows[a, begin + i]
            for i in range(count):
                found[at[i]] += 1


@compiled
def _push(off, weight, steepness):
    """The slope of a cell's loss. In single precision throughout, so that several cells are worked out at once."""
    slope = off * steepness
    slope = ONE if slope > ONE else slope
    return weight * (-ONE if slope < -ONE else slope)


@compiled
def _sweep(
    rows, sizes, order, length, part, off, weights, steepness, first, owner,
    members, width, starts, strides, held_at, held,
    empty_members, empty_width, empty_starts, empty_strides, empty_at, empty, allowed,
):  # fmt: skip
    """Look once at the rows in `order`, in blocks; how many values were moved."""
    attributes = rows.shape[0]
    block, push = np.empty((attributes, length), np.int64), np.empty((attributes, length), np.float32)
    at, slope, top = np.empty(length, np.int64), np.empty(length, np.float32), np.empty(length, np.float32)
    row, gain = np.empty(attributes, np.int64), np.empty(sizes.max(), np.float32)
    moved = 0
    for begin in range(0, order.size, length):
        count = min(length, order.size - begin)
        for a in range(attributes):
            for i in range(count):
                block[a, i] = rows[a, order[begin + i]]
                push[a, i] = 0.0
        for c in range(weights.size):
            t = first[c]
            for i in range(count):
                at[i] = starts[t]
            for k in range(width[t]):
                for i in range(count):
                    at[i] += strides[t, k] * block[members[t, k], i]
            for i in range(count):
                slope[i] = _push(off[at[i]] - HALF, weights[c], steepness[c])
            for k in range(width[t]):
                for i in range(count):
                    push[members[t, k], i] += slope[i]
        for i in range(count):
            top[i] = push[0, i]
            for a in range(1, attributes):
                top[i] = max(top[i], push[a, i])
        least = np.sort(top[:count])[count - max(int(part * count), 1)]
        for i in range(count):
            if top[i] < least:
                continue
            for a in range(attributes):
                row[a] = block[a, i]
            for _ in range(TRIES):
                a = 0
                for b in range(attributes):
                    if push[b, i] > push[a, i]:
                        a = b
                push[a, i] = -np.inf
                best = _best(
                    a, row, sizes[a], off, weights, steepness, owner, gain,
                    members, width, starts, strides, held_at, held,
                    empty_members, empty_width, empty_starts, empty_strides, empty_at, empty, allowed,
                )  # fmt: skip
                if best >= 0:
                    _move(a, row, best, off, first, owner, members, width, starts, strides, held_at, held)
                    rows[a, order[begin + i]] = best
                    moved += 1
                    break
    return moved


@compiled
def _best(
    a, row, size, off, weights, steepness, owner, gain,
    members, width, starts, strides, held_at, held,
    empty_members, empty_width, empty_starts, empty_strides, empty_at, empty, allowed,
):  # fmt: skip
    """The value of attribute a that lowers the losses most, given the row's others; -1 where none does."""
    own = np.float32(0.0)
    for v in range(size):
        gain[v] = 0.0
    for h in range(held_at[a], held_at[a + 1]):
        t = held[h]
        place = starts[t]
        for k in range(width[t] - 1):
            place += strides[t, k] * row[members[t, k]]
        weight, steep = weights[owner[t]], steepness[owner[t]]
        own += _push(off[place + row[a]] - HALF, weight, steep)
        for v in range(size):
            gain[v] += _push(off[place + v] + HALF, weight, steep)
    for h in range(empty_at[a], empty_at[a + 1]):
        t = empty[h]
        place, step = empty_starts[t], 0
        for k in range(empty_width[t]):
            if empty_members[t, k] == a:
                step = empty_strides[t, k]
            else:
                place += empty_strides[t, k] * row[empty_members[t, k]]
        for v in range(size):
            if not allowed[place + step * v]:
                gain[v] = np.inf
    best, least = -1, own - np.float32(LEAST_GAIN)
    for v in range(size):
        if gain[v] < least and v != row[a]:
            best, least = v, gain[v]
    return best


@compiled
def _move(a, row, value, off, first, owner, members, width, starts, strides, held_at, held):
    """Count the row under another value of attribute a, in all copies of the targets that hold it."""
    for h in range(held_at[a], held_at[a + 1]):
        c = owner[held[h]]
        for t in range(first[c], first[c + 1]):
            place, step = starts[t], 0
            for k in range(width[t]):
                place += strides[t, k] * row[members[t, k]]
                if members[t, k] == a:
                    step = strides[t, k]
            off[place] -= ONE
            off[place + step * (value - row[a])] += ONE
