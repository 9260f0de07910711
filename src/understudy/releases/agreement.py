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
from understudy.releases.pair_means import pair_means
from understudy.releases.row_moves import MOST_BLOCK, count_rows, move_rows
from understudy.releases.run import MarginalAnswer
from understudy.releases.synthetic import Codes, sample_codes

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

LONG_WORK, LONG_TRIED = 300_000_000, 800_000_000
"""The same for the large targets of long tables, of which fewer rows are looked at and more of these moved."""

BLOCK = 512
"""Rows that are compared with all targets at once, at least. Long tables have longer blocks."""

GROUPS, SMALL_GROUPS, LONG_GROUPS = 1024, 256, 96
"""In so many groups rows choose their moves; those of long tables in fewer, for their small targets and for the
large ones. The rows of a group move at once, so that it must hold a small part of the rows of a cell."""

AT_ONCE = 0.25
"""Of the rows that would have to be moved, those that move at once, at most: where cells are nearly right, as
those of long tables with few values are, more would leave them off to the other side."""

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
    zeros = _zeros(standin, told)
    for stage in stages(told, rows):
        agreement = RowAgreement.of(standin.domain, codes, stage.asked, zeros)
        agreement.descend(rng, work=stage.work, tried=stage.tried, groups=stage.groups)
        codes = agreement.codes
    return codes


@dataclass(frozen=True)
class Stage:
    """Targets that rows are compared with, and the most work: looks times targets, and values tried times those
    that hold their attribute.
    """

    asked: Sequence[MarginalAnswer]
    work: int = MOST_WORK
    tried: int = MOST_TRIED
    groups: int = GROUPS


def stages(told: Sequence[MarginalAnswer], rows: int) -> list[Stage]:
    """In which order rows are made to agree with answers.

    Where the rows are few enough for all of them to be looked at twice, once with all targets. Of more rows only a
    part can be compared with many targets. There the columns and the pairs come first, which are few and take
    away most of what is off in the larger ones as well; then all targets, in a part of the rows; and then the
    small ones again, which that moved a little.
    """
    asked = targets(told)
    if SWEEPS * rows * len(asked) <= MOST_WORK or max(len(answer.clique) for answer in asked) < 3:
        return [Stage(asked)]
    small = _small(asked)
    return [
        Stage(small, MOST_WORK // 5, groups=SMALL_GROUPS),
        Stage(asked, LONG_WORK, LONG_TRIED, LONG_GROUPS),
        Stage(small, MOST_WORK // 5, groups=SMALL_GROUPS),
    ]


def _small(asked: Sequence[MarginalAnswer]) -> list[MarginalAnswer]:
    """The 1-way targets, and all pairs as the larger targets tell them together."""
    one_way = [answer for answer in asked if len(answer.clique) == 1]
    shares = ((a.clique, a.counts / max(float(a.counts.sum()), 1e-9)) for a in asked)
    pairs = pair_means(shares).items()
    return [
        *one_way,
        *(MarginalAnswer(c, mean, np.full(mean.shape, np.inf), "uncertified") for c, mean in pairs),
    ]


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
        asked: Sequence[MarginalAnswer],
        constraints: Sequence[Constraint] = (),
    ) -> RowAgreement:
        """Count the rows in the cells of every target."""
        rows = np.stack([np.asarray(codes[name], np.int32) for name in domain.names])
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

    def descend(
        self,
        rng: np.random.Generator,
        *,
        work: int = MOST_WORK,
        tried: int = MOST_TRIED,
        groups: int = GROUPS,
    ) -> None:
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
        part = min(1.0, tried / (looks * holding * (float(sizes.mean()) + 2)))
        most, step = min(count // groups + 1, MOST_BLOCK), min(count, looks // 3 + 1)
        block = min(max(count // 64, BLOCK, most), MOST_BLOCK)
        while looks > 0:
            # A part of the looks at a time: how steep the losses are follows how far off the cells still are.
            order = rng.permutation(count)[: min(step, looks)]
            looks -= order.size
            together = int(min(most, AT_ONCE * self.distance * count / part)) + 1
            moves = move_rows(
                self.rows, sizes, order, block, together, part,
                self.off, self.weights, self._steepness(), self.first, owner,
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
    count_rows(rows, places.members, places.width, places.starts, places.strides, found)
    return np.split(found, ends[1:-1])
