"""Counts, or sums of a measure, of one question, bought within an error of their own.

A session's counts are within its width. Who asks for another error, for a count or for an average that is made of
a sum and a number of rows, gets noise for that error, wider or narrower than the session's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from understudy.answer.answer import Answer
from understudy.mechanism.additive import Additive
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.query.box import from_plain, plain
from understudy.query.marginal import Marginal
from understudy.rational import exact
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.direct import BOUNDED, learn, narrowed
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult


@dataclass(frozen=True, eq=False)
class WithinPurchase:
    """Noise on the sums of one marginal at the smallest price that keeps them within `width` people.

    Promise     Except with probability `share` every cell is within `width` of its true sum. Where the purchase
                `is_certain`, all cells are, always, and the share is 0.
    Why         The width and the price are fixed before the noise is drawn, by what was released before; the noise
                is independent of that, so that the union bound over the cells holds.
    Cost        `price`, in the ledger's currency, for a row that moves one sum by one.
    """

    kind: ClassVar[str] = "within"
    marginal: Marginal
    width: float
    share: float
    price: Price
    is_certain: bool = False

    @classmethod
    def of(
        cls, calibrator: Calibrator, marginal: Marginal, width: float, share: float, *, certain: bool = False
    ) -> WithinPurchase:
        """The purchase at the smallest price that keeps its promise; a certain one takes nothing of β.

        The width is rounded down to four digits, so that plans are short.
        """
        width = float(f"{width * 0.9995:.4g}")
        pricing = calibrator.curator.calibration.price_of
        if certain:
            return cls(
                marginal, width, 0.0, pricing(marginal, error=exact(width), certain=True), is_certain=True
            )
        return cls(marginal, width, share, pricing(marginal, error=exact(width), beta=exact(share)))

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> WithinPurchase:
        """The purchase of a plan in the ledger."""
        marginal, certain = (
            from_plain(calibrator.curator.domain, plan["question"]),
            plan.get("noise") == BOUNDED,
        )
        return cls(marginal, plan["width"], plan["share"], Price.from_plain(plan), certain)

    def plain(self) -> dict[str, Any]:
        """The plan: question, width in people, share of β and price; and bounded noise, where it is that."""
        noise = {"noise": BOUNDED} if self.is_certain else {}
        terms = {"question": plain(self.marginal), "width": self.width, "share": self.share}
        return {**terms, **self.price.as_plain(), **noise}

    def band(self, calibrator: Calibrator) -> dict[str, Any]:
        """Nothing: the band is the width of the plan."""
        return {}

    def event(self, calibrator: Calibrator) -> Event:
        """The noise on the sums, located at the cells that are looked at."""
        return calibrator.curator.located([self.marginal], self._mechanism(calibrator))

    def _mechanism(self, calibrator: Calibrator) -> Additive:
        made = calibrator.curator.calibration.mechanism(self.marginal, self.price, certain=self.is_certain)
        return made[0]

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, and add the band to the knowledge; the answer is the middle of what is known then."""
        measured = request.measure(calibrator.curator, self.marginal, self.price, certain=self.is_certain)
        every = np.ones(self.marginal.shape, bool)
        table = narrowed(knowledge, self.marginal, every, measured.noisy, self.width)
        learn(knowledge, self.marginal, table, measured.noisy, float(self._mechanism(calibrator).variance))
        value, error = (table.low + table.high) / 2, (table.high - table.low) / 2
        answer = Answer(self.marginal, value, error, measured.noisy, measured.cost, 1.0)
        return PurchaseResult(measured.cost, self.marginal, answer)
