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

Rows of a table that is not long meet all targets at once. Those of a long one, for which that takes too much work,
meet the large targets in rounds (`meet_in_rounds`), or, where there are few kinds of rows, are drawn by weights
(`raking`) and moved a little; and at last they meet the columns and the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.query.constraint import Constraint
from understudy.query.projection import Projection
from understudy.releases.pair_means import pair_means
from understudy.releases.raking import raked_rows
from understudy.releases.row_moves import MOST_BLOCK, count_rows, move_rows
from understudy.releases.run import MarginalAnswer
from understudy.releases.synthetic import Codes, sample_codes
from understudy.releases.table_places import TablePlaces

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

ROUNDS, PARTS = 9, 8
"""In so many rounds rows of long tables meet a part of their targets, in so many parts at first."""

ROUND_WORK = 40_000_000
"""Rows that are looked at in a round, times its targets."""

MOST_MOVED = 0.6
"""Of the rows that were looked at in a round: where fewer were moved, the next part is twice as large."""

LAST_WORK = 80_000_000
"""The same as `ROUND_WORK` for the columns and pairs, which rows of long tables meet at last."""

POLISH_WORK = 50_000_000
"""The same for all targets of rows that were raked before."""

BLOCK = 512
"""Rows that are compared with all targets at once, at least. Long tables have longer blocks."""

GROUPS, LONG_GROUPS = 1024, 96
"""In so many groups rows choose their moves; in the rounds of long tables in fewer. The rows of a group move at
once, so that it must hold a small part of the rows of a cell."""

AT_ONCE = 0.25
"""Of the rows that would have to be moved, those that move at once, at most: where cells are nearly right, as
those of long tables with few values are, more would leave them off to the other side."""

LEAST_GAIN = 1e-4
"""Of a move: sums of losses are known up to rounding."""

FEW_MOVES = 0.01
"""Of the rows that were looked at: a sweep that moves fewer is the last."""

FITTING = 8
"""How often the lines and the columns of a pair are scaled to sums that are told."""

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
    domain, asked, zeros = standin.domain, targets(told), _zeros(standin, told)
    planned = [Stage(asked)]
    if not is_long(asked, rows):
        lines = as_lines(domain, codes)
    elif (raked := raked_rows(domain, codes, raking_order(asked, rng), rng)) is not None:
        lines = as_lines(domain, raked)
        planned = [Stage(asked, POLISH_WORK, groups=rows), Stage(small_targets(asked), LAST_WORK)]
    else:
        lines = as_lines(domain, codes)
        meet_in_rounds(domain, lines, asked, zeros, rng)
        planned = [Stage(small_targets(asked), LAST_WORK)]
    for stage in planned:
        agreement = RowAgreement.of(domain, lines, stage.asked, zeros)
        agreement.descend(rng, work=stage.work, groups=stage.groups)
    return {name: line.astype(np.int64) for name, line in zip(domain.names, lines, strict=True)}


def as_lines(domain: Domain, codes: Codes) -> NDArray[np.int32]:
    """The rows with a line for each attribute."""
    return np.stack([np.asarray(codes[name], np.int32) for name in domain.names])


@dataclass(frozen=True)
class Stage:
    """Targets that rows are compared with, the most looks times targets, and in how many groups rows choose."""

    asked: Sequence[MarginalAnswer]
    work: int = MOST_WORK
    groups: int = GROUPS


def is_long(asked: Sequence[MarginalAnswer], rows: int) -> bool:
    """Whether all rows cannot be compared twice with all targets, some of which are larger than pairs."""
    return SWEEPS * rows * len(asked) > MOST_WORK and max(len(answer.clique) for answer in asked) > 2


def meet_in_rounds(
    domain: Domain,
    lines: NDArray[np.int32],
    asked: Sequence[MarginalAnswer],
    zeros: Sequence[Constraint],
    rng: np.random.Generator,
) -> list[int]:
    """Move rows in rounds, a random part of the targets in each; returns in how many parts they were, each time.

    A move costs as much as there are targets, and gains about the root of that, so that many moves for few targets
    bring rows nearer in the same time than few moves for all. To the targets of other rounds they are noise, so
    that only those are made that gain more than this costs. Once these become few, parts are made twice as large.
    """
    large = [answer for answer in asked if len(answer.clique) > 1]
    parts, taken, waiting = min(PARTS, len(large)), [], []
    for _ in range(ROUNDS):
        size = len(large) // parts
        if len(waiting) < size:
            waiting = rng.permutation(len(large)).tolist()
        part, waiting = [large[i] for i in waiting[:size]], waiting[size:]
        agreement = RowAgreement.of(domain, lines, part, zeros, copies=False)
        agreement.descend(rng, work=ROUND_WORK, tried=MOST_WORK, groups=LONG_GROUPS, unseen=parts - 1)
        taken.append(parts)
        if agreement.moved < MOST_MOVED * agreement.looked:
            parts = max(parts // 2, 1)
    return taken


def raking_order(asked: Sequence[MarginalAnswer], rng: np.random.Generator) -> list[MarginalAnswer]:
    """Targets in the order of a sweep of raking: large ones in random order, then pairs, and columns last."""
    large = [answer for answer in asked if len(answer.clique) > 2]
    small = small_targets(asked)
    return [*(large[i] for i in rng.permutation(len(large))), *reversed(small)]


def small_targets(asked: Sequence[MarginalAnswer]) -> list[MarginalAnswer]:
    """The 1-way targets, and all pairs as the larger targets tell them together, with the 1-way targets' sums.

    Columns are told with much less noise than the sums of larger tables. Pairs that had other sums would draw the
    columns of the rows away from their answers.
    """
    shares = [(a.clique, a.counts / max(float(a.counts.sum()), 1e-9)) for a in asked]
    columns = {clique[0]: np.maximum(share, 0.0) for clique, share in shares if len(clique) == 1}
    pairs = {c: _with_sums(mean, [columns.get(name) for name in c]) for c, mean in pair_means(shares).items()}
    return [
        *(answer for answer in asked if len(answer.clique) == 1),
        *(MarginalAnswer(c, pair, np.full(pair.shape, np.inf), "uncertified") for c, pair in pairs.items()),
    ]


def _with_sums(pair: NDArray[np.float64], sums: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64]:
    """The pair fitted to sums of its lines and of its columns by iterative proportions, where they are known."""
    pair = np.maximum(pair, 0.0)
    for _ in range(FITTING if any(known is not None for known in sums) else 0):
        for axis, known in enumerate(sums):
            if known is not None:
                now = pair.sum(axis=1 - axis)
                ratio = np.divide(known, now, out=np.ones_like(now), where=now > 0)
                pair = pair * (ratio[:, None] if axis == 0 else ratio)
    return pair


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


@dataclass(eq=False)
class RowAgreement:
    """Rows, one line of `rows` for each attribute, and how far every cell of every target is off among them.

    With `copies`, each target stands in `off` once for each of its attributes, with the values of that attribute
    side by side: the choice among the values of one attribute reads whole lines of memory. That pays where few
    rows choose at once. Without, it stands there once. `first` is the first of its copies.
    """

    domain: Domain
    rows: NDArray[np.int32]
    places: TablePlaces
    first: NDArray[np.int64]
    off: NDArray[np.float32]
    weights: NDArray[np.float32]
    constraints: Sequence[Constraint] = ()
    moved: int = 0
    looked: int = 0

    @classmethod
    def of(
        cls,
        domain: Domain,
        rows: NDArray[np.int32],
        asked: Sequence[MarginalAnswer],
        constraints: Sequence[Constraint] = (),
        *,
        copies: bool = True,
    ) -> RowAgreement:
        """Count the rows in the cells of every target; moves are made in `rows`, a line for each attribute."""
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

    def descend(
        self,
        rng: np.random.Generator,
        *,
        work: int = MOST_WORK,
        tried: int = MOST_TRIED,
        groups: int = GROUPS,
        unseen: int = 0,
    ) -> None:
        """Look at rows one after another, and move the value of each that is most in the way, where that helps.

        Rows must stand in random order. Which is looked at first is drawn, so that groups are others each time.

        For each target there are `unseen` others like it. A move puts a row into a cell of theirs and takes one
        out of another, nobody knows which: their expected losses grow by their steepness, and it must gain more.
        """
        places, attributes, count = self.places, len(self.domain), self.rows.shape[1]
        sizes = np.array(self.domain.shape(), np.int64)
        copied = self.first[-1] > self.weights.size
        held = places.by_last(attributes) if copied else places.by_member(attributes)
        owner = np.repeat(np.arange(self.first.size - 1), np.diff(self.first))
        zeros = [[self.domain.position(name) for name in c.clique] for c in self.constraints]
        empty = TablePlaces.of(sizes.tolist(), zeros)
        allowed = np.concatenate([c.allowed.ravel() for c in self.constraints] or [np.ones(1, bool)])
        asked, holding = max(self.weights.size, 1), held[1].size / attributes
        looks = min(MORE_SWEEPS * count, max(SWEEPS * count, LITTLE_WORK // asked), max(work // asked, 1))
        part = min(1.0, tried / (looks * holding * (float(sizes.mean()) + 2)))
        most, step = min(count // groups + 1, MOST_BLOCK), min(count, looks // 3 + 1)
        block = min(max(count // 64, BLOCK, most), MOST_BLOCK)
        start = int(rng.integers(count))
        while looks > 0:
            # A part of the looks at a time: how steep the losses are follows how far off the cells still are.
            now = min(step, looks)
            steepness = self._steepness()
            harm = [(self.weights * steepness)[owner[held[1][b:e]]].sum() for b, e in pairwise(held[0])]
            least = np.array([LEAST_GAIN + unseen * float(each) for each in harm], np.float32)
            together = int(min(most, AT_ONCE * self.distance * count / part)) + 1
            moves = move_rows(
                self.rows, sizes, start, now, block, together, part, least,
                self.off, self.weights, steepness, self.first, owner,
                places.members, places.width, places.starts, places.strides, *held,
                empty.members, empty.width, empty.starts, empty.strides, *empty.by_member(attributes), allowed,
            )  # fmt: skip
            start, looks = (start + now) % count, looks - now
            self.moved, self.looked = self.moved + moves, self.looked + now
            if moves < FEW_MOVES * now:
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
    count_rows(rows, places.members, places.width, places.starts, places.strides, found)
    return np.split(found, ends[1:-1])
