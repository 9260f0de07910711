"""The one cell of a breakdown that is not known yet: it is looked at as a single count.

Of some breakdowns all cells but one follow from what is known. Noise on all cells is paid by every row that the
breakdown is of, and costs twice as much as on a count: a row that is replaced moves two cells of a breakdown, and
one count once. The others are told by what is known of them, as they are where a breakdown costs nothing. Where
several cells are unknown the whole breakdown is looked at: that costs rows in these as much as a look at these
alone does, and tells the others more closely.

Promise     A band for the cell holds as it does where the whole breakdown is looked at.
Why         The count is that of the breakdown in this cell, and the price is that of noise within the same band.
            Which cell it is follows from what was released before, and stands in the plan that is written into the
            ledger before the draw.
Cost        The cell alone is looked at only where no row pays more for that than for the whole breakdown, by the
            ledger's account (`permission`): what the allowance says of a question's own counts holds here, too.
"""

from __future__ import annotations

import numpy as np

from understudy.query.box import Cells
from understudy.query.marginal import Marginal
from understudy.sessions.knowledge import IntervalTable, Knowledge, Values, boxes_of
from understudy.sessions.predicted_counts import predicted


def unknown_part(marginal: Marginal, paid: Cells) -> Marginal | None:
    """The count of the one cell of a breakdown that is paid for.

    None where more are, and where the question is no breakdown into declared cells of the rows in a box.
    """
    box = boxes_of(marginal)
    if not marginal.by or box is None or marginal.size < 2 or int(paid.sum()) != 1:
        return None
    [place] = np.argwhere(paid)
    return Marginal.of(box.at(marginal.by, place).query)


def spread(
    knowledge: Knowledge, marginal: Marginal, known: IntervalTable, paid: Cells, noisy: Values
) -> Values:
    """The noisy count of a cell among the counts of the whole breakdown; all others as they are predicted, within
    what is known of them.
    """
    expected = predicted(knowledge, marginal)
    whole = (known.low + known.high) / 2 if expected is None else np.clip(expected, known.low, known.high)
    whole[paid] = noisy
    return whole
