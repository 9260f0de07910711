"""The cells of a breakdown that are not known yet: they alone are looked at.

Of many breakdowns some cells follow from what is known: those of rare values, of rows that were counted before.
Noise on all cells is paid by every row that the breakdown is of; noise on some of them by the rows in these. So a
breakdown is looked at within the values that unknown cells have. Where one cell alone is unknown it is a single
count, at half the price: a row that is replaced moves two cells of a breakdown, and one count once. The others are
told by what is known of them, as they are where a breakdown costs nothing.

Promise     A band for the unknown cells holds as it does where the whole breakdown is looked at.
Why         The counts are those of the breakdown in these cells, and the price is that of noise within the same
            band. Which cells they are follows from what was released before, and stands in the plan, which is
            written into the ledger before the draw.
Cost        A part is looked at only where no row pays more for that than for the whole breakdown, by the ledger's
            account (`permission`): what the allowance says of a question's own counts holds here, too.
"""

from __future__ import annotations

import numpy as np

from understudy.query.box import Box, Cells
from understudy.query.marginal import Marginal
from understudy.sessions.knowledge import IntervalTable, Knowledge, ReleasedTable, Values, boxes_of
from understudy.sessions.predicted_counts import predicted


def looked_at(paid: Cells) -> Cells:
    """The cells of a breakdown with values that cells have which are paid for: these, and along several attributes
    others between them.
    """
    found = np.zeros(paid.shape, bool)
    found[np.ix_(*(_values(paid, axis) for axis in range(paid.ndim)))] = True
    return found


def _values(paid: Cells, axis: int) -> Cells:
    """The values along an axis that cells have which are paid for."""
    others = tuple(other for other in range(paid.ndim) if other != axis)
    return np.asarray(paid.any(axis=others), bool)


def unknown_part(marginal: Marginal, paid: Cells) -> Marginal | None:
    """The part of a breakdown with the cells that are paid for: the count of one, or a breakdown of fewer rows.

    None where that is the whole, and where the question is no breakdown into declared cells of the rows in a box.
    """
    box = boxes_of(marginal)
    if not marginal.by or box is None or marginal.size < 2 or not paid.any():
        return None
    if int(paid.sum()) == 1:
        [place] = np.argwhere(paid)
        return Marginal.of(box.at(marginal.by, place).query)
    within = _within(box, marginal, paid)
    return None if within.key == box.key else Marginal(marginal.domain, marginal.by, within.query)


def _within(box: Box, marginal: Marginal, paid: Cells) -> Box:
    """The rows of a box with the values that paid cells have along each attribute of a breakdown."""
    sides = dict(box.sides)
    for axis, name in enumerate(marginal.by):
        held = _values(paid, axis)
        if name in sides:
            held = held & sides[name]
        if not held.all():
            sides[name] = held
    return Box(box.domain, sides)


def part_of(noisy: Values, paid: Cells) -> Values:
    """The counts of the part, from those of the whole breakdown: one, or a table with 0 in all other cells."""
    return np.array(noisy[paid][0]) if int(paid.sum()) == 1 else np.where(looked_at(paid), noisy, 0.0)


def released_part(marginal: Marginal, paid: Cells, noisy: Values, variance: float) -> ReleasedTable:
    """The part as it was released, from noisy counts of the whole breakdown."""
    box, counts = boxes_of(marginal), part_of(noisy, paid)
    assert box is not None  # else it has no part
    if int(paid.sum()) == 1:
        [place] = np.argwhere(paid)
        return ReleasedTable((), box.at(marginal.by, place), counts, variance)
    return ReleasedTable(marginal.by, _within(box, marginal, paid), counts, variance)


def spread(
    knowledge: Knowledge, marginal: Marginal, known: IntervalTable, paid: Cells, noisy: Values
) -> Values:
    """The noisy counts of a part among those of the whole breakdown; all others as they are predicted, within
    what is known of them.
    """
    expected = predicted(knowledge, marginal)
    whole = (known.low + known.high) / 2 if expected is None else np.clip(expected, known.low, known.high)
    there = looked_at(paid)
    whole[there] = noisy[there] if noisy.ndim else noisy
    return whole
