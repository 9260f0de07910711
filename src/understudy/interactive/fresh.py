"""Fresh noise for one question, frozen: never topped up, never drawn again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from understudy.answer import Answer
from understudy.interactive.conjunction import Box, from_plain, plain
from understudy.interactive.knowledge import Knowledge, Table, boxes_of
from understudy.interactive.purchase import Learnt, Price, Shop, price_in, written
from understudy.privacy.event import Event
from understudy.privacy.neighbours import located
from understudy.query.marginal import Marginal


def intervals(knowledge: Knowledge, marginal: Marginal) -> Table | None:
    """What is known of a marginal's cells; None where it is no box."""
    box = boxes_of(marginal)
    if box is None:
        return None
    if marginal.by:
        return knowledge.table(marginal.by, box)
    low, high = knowledge.interval(box)
    return Table(np.array(low), np.array(high))


@dataclass(frozen=True, eq=False)
class Fresh:
    """Noise on the counts of one question, of which `cells` are not known well enough.

    The other cells keep what was known of them, and the band need not speak of their noise.
    """

    kind: ClassVar[str] = "fresh"
    marginal: Marginal
    share: float
    price: Price

    @classmethod
    def of(cls, shop: Shop, knowledge: Knowledge, marginal: Marginal, share: float) -> Fresh:
        table = intervals(knowledge, marginal)
        wide = marginal.size if table is None else int((table.high - table.low > 2 * shop.width).sum())
        return cls(marginal, share, shop.price_of_counts(marginal, share, max(wide, 1)))

    @classmethod
    def read(cls, shop: Shop, plan: Mapping[str, Any]) -> Fresh:
        return cls(from_plain(shop.curator.domain, plan["question"]), plan["share"], price_in(plan))

    def plain(self) -> dict[str, Any]:
        return {"question": plain(self.marginal), "share": self.share, **written(self.price)}

    def event(self, shop: Shop) -> Event:
        mechanism, _ = shop.curator.mechanism(self.marginal, **self.price)
        declared = shop.curator.declaration
        return located(self.marginal, mechanism.event, declared.neighbours, declared.max_rows)

    def make(self, shop: Shop, knowledge: Knowledge, *, request: str, analyst: str) -> Learnt:
        measured = shop.curator.measure(self.marginal, **self.price, request=request, analyst=analyst)
        low, high = measured.noisy - shop.width, measured.noisy + shop.width
        table = intervals(knowledge, self.marginal)
        if table is None:
            low, high = np.maximum(low, 0), np.minimum(high, knowledge.total[1])
        else:
            pinned = table.high - table.low <= 2 * shop.width
            low = np.where(pinned, table.low, np.maximum(low, table.low))
            high = np.where(pinned, table.high, np.minimum(high, table.high))
        high = np.maximum(low, high)
        if table is not None:
            self._learn(knowledge, Table(low, high))
        value, half = (low + high) / 2, (high - low) / 2
        answer = Answer(self.marginal, value, half, value, measured.cost, 1.0)
        return Learnt(measured.cost, self.marginal, answer)

    def _learn(self, knowledge: Knowledge, table: Table) -> None:
        box = Box.of(self.marginal.where)
        assert box is not None
        if self.marginal.by:
            knowledge.learn_table(self.marginal.by, box, table)
        else:
            knowledge.learn(box, (float(table.low), float(table.high)))
