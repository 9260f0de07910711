"""A larger table in place of the one that was asked for: the same rows cost nothing more, and tell about others.

`by job where race = white` is a slice of `by job, race`. Every row counts in one cell of either, so that the larger
table is dearer by a logarithm only, for its number of cells: each cell is as precise. Where most rows are in the
slice, the ledger's joint accounting charges much the same people for both. The larger table then answers the other
slices for nothing, and the slices the other way, `by race where job = …`, and the cells of either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.knowledge import Knowledge, boxes_of
from understudy.sessions.predicted_counts import shares_of
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult

HEAVY = 0.5
"""A condition is made into groups where it is expected to hold for at least this part of the rows."""

MOST_WIDE_CELLS = 1 << 12
"""Cells of a larger table."""

DEARER = 1.15
"""A larger table is bought where it costs at most so many times the table that was asked for."""


@dataclass(frozen=True, eq=False)
class WideTablePurchase(DirectPurchase):
    """The counts of a larger table, bought ahead of the questions that it will answer.

    Promise and reason are those of `DirectPurchase`, of all its paid cells. The question that it is bought for
    follows from it, as a slice.
    """

    kind: ClassVar[str] = "wide"

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, and add the band to the knowledge; the answer is deduced."""
        return PurchaseResult(super().make(calibrator, knowledge, request).cost)


def widened(knowledge: Knowledge, marginal: Marginal) -> Marginal | None:
    """The table of which a marginal is a slice, along its condition that holds for most rows; None without one."""
    box = boxes_of(marginal) if len(marginal.by) == 1 else None
    if box is None:
        return None
    heavy = {
        name: float(shares_of(knowledge, name)[cells].sum())
        for name, cells in box.sides.items()
        if int(cells.sum()) == 1
    }
    name = max(heavy, key=heavy.__getitem__, default=None)
    if name is None or heavy[name] < HEAVY:
        return None
    by = box.domain.clique((*marginal.by, name))
    if box.domain.size(by) > MOST_WIDE_CELLS:
        return None
    rest = Box(box.domain, {other: cells for other, cells in box.sides.items() if other != name})
    return Marginal(box.domain, by, rest.query)
