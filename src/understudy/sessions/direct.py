"""Fresh noise for one question, frozen: never topped up, never drawn again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from understudy.answer.answer import Answer
from understudy.domain.domain import Clique
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.privacy.region import located
from understudy.query.box import Box, Cells, as_text, from_plain, from_text, plain
from understudy.query.marginal import Marginal
from understudy.sessions.knowledge import (
    TOUCHING,
    IntervalTable,
    Knowledge,
    ReleasedTable,
    Values,
    boxes_of,
    nearest,
)
from understudy.sessions.purchase import Calibrator, PurchaseRequest, PurchaseResult


def intervals(knowledge: Knowledge, marginal: Marginal) -> IntervalTable | None:
    """What is known of a marginal's cells; None where it is no box."""
    where = marginal.where
    if where.largest == 0:
        return IntervalTable(np.zeros(marginal.shape), np.zeros(marginal.shape))
    if not marginal.by and where.largest == where.smallest:
        low, high = (where.largest * end for end in knowledge.total)
        return IntervalTable(np.array(low), np.array(high))
    box = Box.of(where)
    if box is None:
        return None
    if marginal.by:
        return _within(knowledge, marginal.by, box)
    low, high = knowledge.interval(box)
    return IntervalTable(np.array(low), np.array(high))


def _within(knowledge: Knowledge, by: Clique, box: Box) -> IntervalTable:
    """The cells of a marginal of the rows in a box; those that the box itself rules out are empty."""
    own = {name: cells for name, cells in box.sides.items() if name in by}
    if not own:
        return knowledge.table(by, box)
    others = Box(box.domain, {name: cells for name, cells in box.sides.items() if name not in by})
    table, held = knowledge.table(by, others), np.ones((1,) * len(by), bool)
    for axis, name in enumerate(by):
        if name in own:
            held = held & own[name].reshape([-1 if i == axis else 1 for i in range(len(by))])
    return IntervalTable(np.where(held, table.low, 0.0), np.where(held, table.high, 0.0))


@dataclass(frozen=True, eq=False)
class DirectPurchase:
    """Noise on the counts of one question; the band of its `paid` cells is as wide as an answer's.

    Those were not known well enough when the price was found: fixed by what was released before, and written down
    with it. All others keep what is known of them, and the band does not speak of their noise.
    """

    kind: ClassVar[str] = "fresh"
    marginal: Marginal
    paid: Cells
    share: float
    price: Price

    @classmethod
    def of(
        cls, calibrator: Calibrator, knowledge: Knowledge, marginal: Marginal, share: float
    ) -> DirectPurchase:
        """At the smallest price; where everything is known well enough, every cell is paid all the same."""
        table = intervals(knowledge, marginal)
        wide = None if table is None else np.asarray(table.high - table.low > 2 * calibrator.width)
        paid = np.ones(marginal.shape, bool) if wide is None or not wide.any() else wide
        return cls(marginal, paid, share, calibrator.price_of_counts(marginal, share, int(paid.sum())))

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> DirectPurchase:
        marginal = from_plain(calibrator.curator.domain, plan["question"])
        return cls(marginal, from_text(plan["paid"], marginal.shape), plan["share"], Price.from_plain(plan))

    def plain(self) -> dict[str, Any]:
        cells = {"question": plain(self.marginal), "paid": as_text(self.paid)}
        return {**cells, "share": self.share, **self.price.as_plain()}

    def event(self, calibrator: Calibrator) -> Event:
        mechanism, _ = calibrator.curator.mechanism(self.marginal, self.price)
        return located(self.marginal, mechanism.event, calibrator.relation)

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        measured = calibrator.measure(self.marginal, self.price, request)
        box, found = boxes_of(self.marginal), self._found(calibrator, knowledge, measured.noisy)
        if box is not None:
            self._learn(knowledge, box, found)
            variance = float(calibrator.curator.mechanism(self.marginal, self.price)[0].variance)
            knowledge.keep(ReleasedTable(self.marginal.by, box, measured.noisy, variance))
        if bool((found.high - found.low > 2 * calibrator.width + TOUCHING).any()):
            return PurchaseResult(measured.cost)  # what told the other cells then is not known here
        value, error = nearest(found, measured.noisy, calibrator.width)
        answer = Answer(self.marginal, value, error, measured.noisy, measured.cost, 1.0)
        return PurchaseResult(measured.cost, self.marginal, answer)

    def _found(self, calibrator: Calibrator, knowledge: Knowledge, noisy: Values) -> IntervalTable:
        """What is known of the cells now: the band tells of those that were paid, and of no others."""
        known = intervals(knowledge, self.marginal)
        if known is None:
            known = IntervalTable(
                np.zeros(self.marginal.shape), np.full(self.marginal.shape, knowledge.total[1])
            )
        low, high = np.array(known.low), np.array(known.high)
        met = knowledge.met(
            IntervalTable(low[self.paid], high[self.paid]), noisy[self.paid], calibrator.width
        )
        low[self.paid], high[self.paid] = met.low, met.high
        return IntervalTable(low, high)

    def _learn(self, knowledge: Knowledge, box: Box, table: IntervalTable) -> None:
        if self.marginal.by:
            knowledge.learn_table(self.marginal.by, box, table)
        else:
            knowledge.learn(box, (float(table.low), float(table.high)))
