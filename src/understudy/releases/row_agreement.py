"""How far synthetic rows are from tables that they should have, and moves of their values that bring them nearer.

For a cell whose count among the rows is off by e, the loss is that of Huber: e²/2w up to w rows, and |e| - w/2
beyond; w is at least `WIDTH`, and more while the cells of the marginal are far off. It is quadratic where cells
expect less than one row, so that rare cells are neither emptied nor filled by rounding. A value moves only where
that lowers the sum of all losses, and never into a cell that is declared to be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.query.constraint import Constraint
from understudy.releases.row_moves import (
    MOST_BLOCK,
    Constrained,
    Looks,
    Targets,
    count_rows,
    move_rows,
    table_sums,
)
from understudy.releases.run import MarginalAnswer
from understudy.releases.synthetic import Codes
from understudy.releases.table_places import AttributeTables, TablePlaces

Lines = NDArray[np.unsignedinteger[Any]]
"""Rows, a line for each attribute: in the fewest bits, for every pass reads all of them."""

WIDTH = 10.0
"""Rows up to which the loss of a cell is quadratic, at least. Answers have noise of that size, and need not be
met to the row: what the cells of many targets say together is nearer to the table than what each says."""

SWEEPS, MORE_SWEEPS = 2, 4
"""How often each row is looked at, and how often where that is little work; a second look finds a tenth of what
the first one found."""

LITTLE_WORK, MOST_WORK = 60_000_000, 400_000_000
"""Rows that are looked at, times the targets that each is compared with."""

MOST_TRIED = 400_000_000
"""Values that are tried, times the targets that hold their attribute. Where it would be more, of the rows that are
looked at only those are moved that are most in the way."""

COUNTING, COMPARING, TRYING = 0.8, 0.9, 13.0
"""Nanoseconds that a row takes for each target that it is counted in, or compared with; and, where it is tried to
move it, those for each target that holds the attribute, beside one for each value."""

LOOKING = 8.0
"""Nanoseconds that a look at a row takes for each attribute, and once more where it is tried to move it, however
few targets there are: rows are sorted by what is in the way, and gathered by the attribute that is tried."""

BLOCK = 512
"""Rows that are compared with all targets at once, at least. Long tables have longer blocks."""

GROUPS, LONG_GROUPS = 1024, 96
"""In so many groups rows choose their moves; those of long tables in fewer. The rows of a group move at once, so
that it must hold a small part of the rows of a cell."""

AT_ONCE = 0.25
"""Of the rows that would have to be moved, those that move at once, at most: where cells are nearly right, as
those of long tables with few values are, more would leave them off to the other side."""

LEAST_GAIN = 1e-4
"""Of a move: sums of losses are known up to rounding."""

FEW_MOVES = 0.01
"""Of the rows that were looked at: a sweep that moves fewer is the last."""

TRIED_AT_A_TIME = 110_000
"""Rows that are tried while rows settle, at most, before it is told anew which part of them is worth it."""

WORTH_TRYING, LEAST_PART = 1.5, 0.02
"""Of the rows that settle, those most in the way are tried: so many for each that was moved before, and this part
of them at least."""

FEW_OF_TRIED = 0.01
"""Of the rows that were tried: where fewer are moved, rows have settled."""

LEAST_NEARER = 0.02
"""Of the distance that moves would take away if each mended a row of every target that holds its attribute: where
a pass through the rows brings less, targets contradict each other, and rows that meet one leave another."""

ONE_WAY_WEIGHT = 0.02
"""Of a 1-way marginal's losses, for each larger marginal that holds its attribute."""


@dataclass(eq=False)
class RowAgreement:
    """Rows, one line of `rows` for each attribute, and how far every cell of every target is off among them.

    With `copies`, each target stands in `off` once for each of its attributes, with the values of that attribute
    side by side: the choice among the values of one attribute reads whole lines of memory. That pays where few
    rows choose at once. Without, it stands there once. `first` is the first of its copies.

    `moved` and `looked` tell how many values were moved and how many rows were looked at, and `work` about how
    many nanoseconds all of it took, by the numbers of rows, targets and values alone.
    """

    domain: Domain
    rows: Lines
    places: TablePlaces
    first: NDArray[np.int64]
    off: NDArray[np.float32]
    weights: NDArray[np.float32]
    constraints: Sequence[Constraint] = ()
    moved: int = 0
    looked: int = 0
    work: float = 0.0

    @classmethod
    def of(
        cls,
        domain: Domain,
        rows: Lines,
        asked: Sequence[MarginalAnswer],
        constraints: Sequence[Constraint] = (),
        *,
        copies: bool = True,
        weights: Sequence[float] | None = None,
    ) -> RowAgreement:
        """Count the rows in the cells of every target; moves are made in `rows`, a line for each attribute.

        Unless `weights` are given, 1-way targets weigh `ONE_WAY_WEIGHT` for each larger one that holds them, and
        all others 1.
        """
        members = [[domain.position(name) for name in answer.clique] for answer in asked]
        counted = _counted(domain, rows, members)
        tables, off = [], []
        for answer, own, found in zip(asked, members, counted, strict=True):
            scale = rows.shape[1] / max(float(answer.counts.sum()), 1e-9)
            apart = (found.reshape(answer.counts.shape) - scale * answer.counts).astype(np.float32)
            for k in range(len(own)) if copies else (len(own) - 1,):
                order = [*range(k), *range(k + 1, len(own)), k]
                tables.append([own[j] for j in order])
                off.append(apart.transpose(order).ravel())
        larger = np.array([a for own in members if len(own) > 1 for a in own], np.int64)
        holding = np.bincount(larger, minlength=len(domain))
        return cls(
            domain,
            rows,
            TablePlaces.of(domain.shape(), tables),
            np.cumsum([0, *(len(own) if copies else 1 for own in members)], dtype=np.int64),
            np.concatenate(off),
            np.array(weights or [_weight(own, holding) for own in members], np.float32),
            constraints,
            work=COUNTING * rows.size / len(domain) * len(asked),
        )

    @property
    def codes(self) -> Codes:
        """The rows as they are now."""
        return {name: self.rows[a].astype(np.int64) for a, name in enumerate(self.domain.names)}

    @property
    def distance(self) -> float:
        """The part of the rows that would have to be moved, on average over the targets."""
        return float(self._apart[0].mean()) / 2 / max(self.rows.shape[1], 1) if self.weights.size else 0.0

    @property
    def columns_distance(self) -> float:
        """The part of the rows that would have to be moved, on average over the 1-way targets; 0 without any."""
        columns = self.places.width[self.first[:-1]] == 1
        return (
            float(self._apart[0][columns].mean()) / 2 / max(self.rows.shape[1], 1) if columns.any() else 0.0
        )

    def descend(
        self,
        rng: np.random.Generator,
        *,
        looks: int | None = None,
        tried: int = MOST_TRIED,
        groups: int = GROUPS,
        unseen: int = 0,
    ) -> None:
        """Look at rows one after another, and move the value of each that is most in the way, where that helps.

        Rows must stand in random order. Which is looked at first is drawn, so that groups are others each time.
        So many looks are made, or as many as their number and that of the targets allow.

        For each target there are `unseen` others like it. A move puts a row into a cell of theirs and takes one
        out of another, nobody knows which: their expected losses grow by their steepness, and it must gain more.
        """
        count, asked = self.rows.shape[1], max(self.weights.size, 1)
        most = min(MORE_SWEEPS * count, max(SWEEPS * count, LITTLE_WORK // asked))
        left = min(most, max(MOST_WORK // asked, 1) if looks is None else looks)
        values = float(np.mean(self.domain.shape())) + 2
        part = min(1.0, tried / (left * self._holding * values))
        step, start = min(count, left // 3 + 1), int(rng.integers(count))
        while left > 0:
            # A part of the looks at a time: how steep the losses are follows how far off the cells still are.
            now = min(step, left)
            moves = self._look(start, now, part, groups, unseen)
            start, left = (start + now) % count, left - now
            if moves < FEW_MOVES * now:
                return

    def settle(
        self,
        rng: np.random.Generator,
        *,
        work: float,
        part: float = 1.0,
        tried: int = TRIED_AT_A_TIME,
        groups: int = GROUPS,
    ) -> None:
        """Look at rows one after another for about `work` nanoseconds, at more and more of them for each move.

        The nearer rows are, the fewer of them can gain by a move, and finding those that are in the way takes
        less work than trying all. So a smaller and smaller part of them is tried, those most in the way: `part` at
        first, and `tried` rows before the part is told anew. Rows must stand in random order. Rows have settled
        when few of those that are tried move, or when the moves of a pass bring them no nearer (`LEAST_NEARER`).
        """
        count, end = self.rows.shape[1], self.work + work
        start, settled = int(rng.integers(count)), False
        distance, looked, moved = self.distance, self.looked, self.moved
        while self.work < end and not settled:
            looks = min(count, int(tried / part) + 1)
            moves = self._look(start, looks, part, groups)
            start, settled = (start + looks) % count, moves < FEW_OF_TRIED * part * looks
            part = min(part, max(WORTH_TRYING * moves / looks, LEAST_PART))
            if self.looked - looked >= count:
                now, mended = self.distance, (self.moved - moved) / count * self._holding / self.weights.size
                settled = settled or distance - now < LEAST_NEARER * mended
                distance, looked, moved = now, self.looked, self.moved

    def _look(self, start: int, looks: int, part: float, groups: int, unseen: int = 0) -> int:
        """Look at so many rows from `start` on, and try this part of them; how many were moved."""
        count, targets, held = self.rows.shape[1], self._targets, self._held
        steep = (targets.weights * targets.steepness)[targets.owner[held.tables]]
        harm = [steep[begin:end].sum() for begin, end in pairwise(held.at)]
        least = np.array([LEAST_GAIN + unseen * float(each) for each in harm], np.float32)
        most = min(count // groups + 1, MOST_BLOCK)
        block = min(max(count // 64, BLOCK, most), MOST_BLOCK)
        together = int(min(most, AT_ONCE * self.distance * count)) + 1
        moves = move_rows(
            self.rows,
            np.array(self.domain.shape(), np.int64),
            Looks(start, looks, block, together, part, least),
            targets,
            self.constrained,
        )
        self.moved, self.looked = self.moved + moves, self.looked + looks
        self.work += looks * look_work(self.domain, self.weights.size, self._holding, part)
        return moves

    @property
    def _targets(self) -> Targets:
        """What the rows should be like, with losses as steep as they are now."""
        return Targets(
            self.off, self.weights, self.steepness(), self.first, self._owner, self.places, self._held
        )

    @cached_property
    def _held(self) -> AttributeTables:
        """The tables that hold each attribute; of several copies those that have its values side by side."""
        copied = self.first[-1] > self.weights.size
        return (self.places.by_last if copied else self.places.by_member)(len(self.domain))

    @property
    def _holding(self) -> float:
        """Targets that hold an attribute, on average."""
        return self._held.tables.size / len(self.domain)

    @cached_property
    def _owner(self) -> NDArray[np.int64]:
        """The target that each table is of."""
        return np.repeat(np.arange(self.first.size - 1), np.diff(self.first))

    @cached_property
    def constrained(self) -> Constrained:
        """Which cells rows may enter, of all constraints one after another."""
        zeros = [[self.domain.position(name) for name in c.clique] for c in self.constraints]
        allowed = np.concatenate([c.allowed.ravel() for c in self.constraints] or [np.ones(1, bool)])
        places = TablePlaces.of(self.domain.shape(), zeros)
        return Constrained(allowed, places, places.by_member(len(self.domain)))

    @property
    def _apart(self) -> NDArray[np.float64]:
        """Of each target, what its cells are off in all, and the sum of the squares."""
        return table_sums(self.off, self.places.starts, self.first)

    @cached_property
    def _cells(self) -> NDArray[np.int64]:
        """How many each target has."""
        return np.diff(np.append(self.places.starts, self.off.size))[self.first[:-1]]

    def steepness(self) -> NDArray[np.float32]:
        """Of each target's losses: quadratic up to `WIDTH` rows, or up to what its cells are off as yet."""
        return (1 / np.maximum(WIDTH, np.sqrt(self._apart[1] / self._cells))).astype(np.float32)


def look_work(domain: Domain, asked: int, holding: float, part: float = 1.0) -> float:
    """About how many nanoseconds a look at a row takes, of which this part is tried (on one core of 2023).

    It is compared with `asked` targets, of which `holding` hold an attribute.
    """
    each = (1 + part) * LOOKING * len(domain)
    return each + COMPARING * asked + part * holding * (float(np.mean(domain.shape())) + TRYING)


def _weight(members: Sequence[int], holding: NDArray[np.int64]) -> float:
    """Of a target's losses; `holding` says how many larger targets hold each attribute."""
    above = int(holding[members[0]]) if len(members) == 1 else 0
    return ONE_WAY_WEIGHT * above if above else 1.0


def _counted(domain: Domain, rows: Lines, tables: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    """How many rows are in each cell of each table, flat."""
    places = TablePlaces.of(domain.shape(), tables)
    ends = np.append(places.starts, places.starts[-1] + prod(domain.shape()[a] for a in tables[-1]))
    found = np.zeros(int(ends[-1]), np.int64)
    count_rows(rows, places, found)
    return np.split(found, ends[1:-1])
