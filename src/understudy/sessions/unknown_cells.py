"""The part of a breakdown that is not known yet: a breakdown is looked at there, and nowhere else.

Of many breakdowns all cells but a few follow from what is known. Noise on all cells is paid by every row that the
breakdown is of; noise on the others alone is paid by the rows in these, and where one cell alone is unknown it is
a single count, at half the price: a row that is replaced moves two cells of a breakdown, and one count once.

Promise     A band for the paid cells holds as it does where the whole breakdown is looked at.
Why         The counts of the part are those of the breakdown in these cells, and the price is that of noise within
            the same band. Which cells they are follows from what was released before, and stands in the plan that
            is written into the ledger before the draw.
Cost        A part is looked at only where the ledger accounts no more for it at any cell (`permission`): so what
            the allowance says of a question's own counts holds for parts.
"""

from __future__ import annotations

import numpy as np

from understudy.query.box import Box, Cells
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.knowledge import IntervalTable, ReleasedTable, Values, boxes_of


def unknown_part(marginal: Marginal, paid: Cells) -> Marginal | None:
    """The smallest marginal that has the paid cells of a breakdown, and more of its cells only where it has to.

    A single count where one cell is paid for. None where it would be the breakdown itself, and where that is none
    of the declared cells in a box.
    """
    if not marginal.by or boxes_of(marginal) is None or not paid.any():
        return None
    sides = dict[str, Cells]()
    for axis, name in enumerate(marginal.by):
        held = np.asarray(paid.any(axis=tuple(i for i in range(paid.ndim) if i != axis)), np.bool_)
        if not held.all():
            sides[name] = held
    if not sides:
        return None
    by = () if int(paid.sum()) == 1 else marginal.by
    return Marginal(marginal.domain, by, marginal.where & LinearQuery.conjunction(marginal.domain, sides))


def spread(known: IntervalTable, paid: Cells, noisy: Values) -> Values:
    """Noisy counts of a part as counts of the whole breakdown: the middle of what is known in all other cells."""
    whole = (known.low + known.high) / 2
    whole[paid] = noisy[paid] if noisy.ndim else noisy
    return whole


def single_cells(
    marginal: Marginal, box: Box, paid: Cells, noisy: Values, variance: float
) -> list[ReleasedTable]:
    """The noisy counts of the paid cells of a breakdown of the rows in a box, each as a release of its own."""
    return [
        ReleasedTable((), box.at(marginal.by, place), np.array(noisy[tuple(place)]), variance)
        for place in np.argwhere(paid)
    ]
