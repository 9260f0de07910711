"""Synthetic rows whose targets are pairs and columns: all moves of a row are weighed at once.

A wide table has many pairs, and rows of a weak stand-in are far from most of them: each row must move several
times. One row after another makes the moves by which it gains most, each against all pairs that hold the
attribute, and the counts of all cells follow at once, so that none is left too far to the other side (`pair_moves`
has the loops). Losses are those of larger targets (`row_agreement`): quadratic up to `WIDTH` rows, and linear
beyond.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.query.constraint import Constraint
from understudy.releases.pair_moves import PairLosses, PairTables, move_in_pairs, write_slopes
from understudy.releases.row_agreement import FEW_MOVES, LEAST_GAIN, Lines, RowAgreement
from understudy.releases.run import MarginalAnswer
from understudy.releases.table_places import TablePlaces

COLUMN_WEIGHT = 1.5
"""Of a column's losses, times the root of how many pairs hold it. Columns are told with much less noise than
pairs, whose positive counts have other sums: these would keep rows away from columns that weigh no more."""

TRIES = 4
"""Values of a row that are moved in one look, at most: most of a look is adding up its lines."""

MOST_PUSH = 32_000
"""The sum of the slopes that are added up for a value, at most: it fits 16 bits."""

REFRESHED = 4
"""How often slopes are told anew in a pass through the rows, at most: they get steeper as cells become right."""

CELLS_A_LOOK = 8
"""Cells for each attribute that are told anew for each row that is looked at, at most."""

ADDING, WEIGHING, CHANGING, TELLING = 0.06, 1.1, 6.0, 4.0
"""Nanoseconds of adding one value of a line, of comparing a value of an attribute with the others, of changing a
pair for a move, and of telling the slope of a cell anew."""


PAIRS_WORK, PAIRS_WORK_EACH = 7_000_000_000, 35_000
"""Nanoseconds in which rows meet pairs and columns once they are counted, at most, and for each row."""


def pairs_work(rows: int) -> float:
    """Nanoseconds in which so many rows meet pairs and columns."""
    return float(min(PAIRS_WORK, PAIRS_WORK_EACH * rows))


def of_pairs(asked: Sequence[MarginalAnswer]) -> bool:
    """Whether no target is larger than a pair."""
    return all(len(answer.clique) <= 2 for answer in asked)


def pair_weights(asked: Sequence[MarginalAnswer]) -> list[float]:
    """What the losses of pairs and columns weigh where rows meet them together."""
    held = Counter(name for answer in asked if len(answer.clique) == 2 for name in answer.clique)
    return [
        COLUMN_WEIGHT * sqrt(held[a.clique[0]]) if len(a.clique) == 1 and held[a.clique[0]] else 1.0
        for a in asked
    ]


def meet_pairs(
    domain: Domain,
    lines: Lines,
    asked: Sequence[MarginalAnswer],
    zeros: Sequence[Constraint],
    rng: np.random.Generator,
    *,
    work: float,
) -> RowAgreement:
    """Move rows, a line for each attribute, until they meet pairs and columns, for about `work` nanoseconds
    once they are counted.

    Every row is looked at once, and again until few of them move; `work` bounds that. Rows must stand in random
    order. Which is looked at first is drawn. Returns how far the rows are then.
    """
    agreement = RowAgreement.of(domain, lines, asked, zeros, copies=False, weights=pair_weights(asked))
    tables = pair_tables(domain, agreement.places)
    slopes = np.zeros(int(tables.lines[-1]), np.int16)
    column_slopes = np.zeros(int(tables.places[-1]), np.int16)
    count, cells, each = lines.shape[1], agreement.off.size, pair_look_work(domain, tables)
    step = max(count // REFRESHED + 1, cells // (CELLS_A_LOOK * len(domain)))
    start, left, end = int(rng.integers(count)), count, agreement.work + work
    moves, looks, moved = 0, 1, 0
    while left > 0 and agreement.work < end:
        expected = each + moves / looks * pair_move_work(domain, tables)
        looks = min(step, left, int((end - agreement.work) / expected) + 1)
        losses = pair_losses(agreement)
        write_slopes(agreement.off, tables, losses, slopes, column_slopes)
        moves = move_in_pairs(
            agreement.rows, start, looks, TRIES, agreement.off, tables, losses, slopes, column_slopes,
            agreement.constrained,
        )  # fmt: skip
        agreement.moved, agreement.looked = agreement.moved + moves, agreement.looked + looks
        agreement.work += TELLING * cells + looks * each + moves * pair_move_work(domain, tables)
        start, left, moved = (start + looks) % count, left - looks, moved + moves
        if left == 0 and moved >= FEW_MOVES * count:
            left, moved = count, 0
    return agreement


def pair_tables(domain: Domain, places: TablePlaces) -> PairTables:
    """Where targets that stand at such places are, by their attributes, and the lines of their slopes."""
    sizes, count, pair = np.array(domain.shape(), np.int64), len(domain), places.width == 2
    begin, columns = np.append(0, np.cumsum(sizes)), np.full(count, -1, np.int64)
    columns[places.members[~pair, 0]] = places.starts[~pair]
    one, two, by = *_pairs(places, places.members), _by_attribute(places)
    mine, others = np.concatenate([one, two])[by], np.concatenate([two, one])[by]
    steps, other_steps = _pairs(places, places.strides)
    own = np.searchsorted(mine, np.arange(count + 1))
    # Where the values of each other attribute begin, among those of all others of its own.
    ends = np.append(0, np.cumsum(sizes[others]))
    inside = ends[:-1] - ends[own[mine]]
    length = ends[own[1:]] - ends[own[:-1]]
    backwards = np.empty(by.size, np.int64)
    backwards[by] = np.arange(
        by.size
    )  # where each pair stands, first with its one attribute, then with the other
    back = inside[np.roll(backwards, by.size // 2)[by]]
    new = np.append(True, (mine[1:] != mine[:-1]) | (begin[others[1:]] != begin[others[:-1] + 1]))[: by.size]
    first = np.flatnonzero(new)
    long = np.append(ends[first[1:]], ends[-1])[: first.size] - ends[first]
    return PairTables(
        begin,
        np.append(0, np.cumsum(sizes * length)),
        length,
        np.searchsorted(mine[first], np.arange(count + 1)),
        np.stack([begin[others[first]], inside[first], long], axis=1),
        own,
        others,
        np.tile(places.starts[pair], 2)[by],
        np.concatenate([steps, other_steps])[by],
        np.concatenate([other_steps, steps])[by],
        inside,
        back,
        columns,
    )


def _pairs(places: TablePlaces, told: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What is told of the one and of the other attribute of every pair."""
    pair = places.width == 2
    return told[pair, 0], told[pair, -1]


def _by_attribute(places: TablePlaces) -> NDArray[np.int64]:
    """The order in which pairs stand with each of their attributes: by it, and then by the other one."""
    one, two = _pairs(places, places.members)
    return np.lexsort((np.concatenate([two, one]), np.concatenate([one, two])))


def pair_losses(agreement: RowAgreement) -> PairLosses:
    """How steep losses are as far as cells are off now, in steps in which all slopes of a value fit 16 bits."""
    count, places = len(agreement.domain), agreement.places
    pair, by = places.width == 2, _by_attribute(places)
    mine = np.concatenate(_pairs(places, places.members))[by]
    of_pairs, of_columns = [], []
    for told in (agreement.weights * agreement.steepness(), agreement.weights):
        found = np.zeros(count, np.float32)
        found[places.members[~pair, 0]] = told[~pair]
        of_columns.append(found)
        of_pairs.append(np.tile(told[pair], 2)[by])
    (steep, most), (steep_column, most_column) = of_pairs, of_columns
    largest = float((np.bincount(mine, most, count) + most_column).max())
    scale = np.float32(MOST_PUSH / max(largest, 1e-9))
    least = scale * (np.bincount(mine, steep, count) + steep_column + LEAST_GAIN)
    return PairLosses(
        scale * steep,
        scale * most,
        scale * steep_column,
        scale * most_column,
        np.ceil(least).astype(np.int64),
    )


def pair_look_work(domain: Domain, tables: PairTables) -> float:
    """About how many nanoseconds a look at a row takes, if no value of it is moved (on one core of 2023)."""
    return ADDING * float(tables.length.sum()) + WEIGHING * sum(domain.shape())


def pair_move_work(domain: Domain, tables: PairTables) -> float:
    """About how many nanoseconds a move takes, and looking for the next one."""
    share = 1 / len(domain)
    return share * float(2 * ADDING * tables.length.sum() + CHANGING * tables.others.size) + WEIGHING * sum(
        domain.shape()
    )
