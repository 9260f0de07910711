"""What counts are expected to be, before they are bought: a guess that decides how they are bought, and no
answer.

The guess for a conjunction is that its last condition holds as often among the rows of the others as among
all: the count of the others, where that is known, times the share of the condition. It is made of released
values, so that it may decide what is bought; nothing that is promised rests on it.
"""

from __future__ import annotations

import numpy as np

from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.sessions.knowledge import Knowledge, Values, boxes_of

NARROW = 0.05
"""Counts that are known to within this part of all rows are built on."""


def predicted(knowledge: Knowledge, marginal: Marginal) -> Values | None:
    """A guess of the counts of a marginal's cells, in people; None where its condition is no box.

    Promise     None: attributes may depend on each other in any way. No answer, interval or error is made of it.
    Why         It is right where the last condition, and each attribute of a breakdown, is independent of the
                rest.
    Privacy     It reads released values, so what is bought may depend on it.
    Cost        Nothing. One interval for each condition, and a product as large as the marginal.
    """
    box = boxes_of(marginal)
    if box is None:
        return None
    counts = np.array(_rows_of(knowledge, box))
    for name in marginal.by:
        counts = np.multiply.outer(counts, shares_of(knowledge, name))
    return counts


def _rows_of(knowledge: Knowledge, box: Box) -> float:
    """The rows in a box: the mean of the guesses that leave out one condition and multiply by its share."""
    total = knowledge.total[0]
    shares = {name: float(shares_of(knowledge, name)[cells].sum()) for name, cells in box.sides.items()}
    guess = total * float(np.prod(list(shares.values())))
    if len(shares) < 2:
        return guess
    guesses = []
    for name, share in shares.items():
        rest = Box(box.domain, {n: c for n, c in box.sides.items() if n != name})
        low, high = knowledge.interval(rest)
        if high - low <= NARROW * total:
            guesses.append((low + high) / 2 * share)
    return float(np.mean(guesses)) if guesses else guess


def shares_of(knowledge: Knowledge, name: str) -> Values:
    """The shares of an attribute's cells among all rows, as far as they were released; else all alike."""
    size = knowledge.grid.domain[name].size
    counts = knowledge.cell_counts(name)
    if counts is None or counts.clip(min=0).sum() <= 0:
        return np.full(size, 1 / size)
    counts = counts.clip(min=0)
    return counts / counts.sum()
