"""The count of a group of rows, bought so closely that all questions about rows in the group follow from it.

Whatever is counted among the rows of a group is between nothing and the whole group. Where the group is known to
have at most two widths of rows, every such count is known within the width, for nothing. Of many groups that
questions are about it is only known that they have one and a half widths, say, give or take one: then a count of
the group with less noise, for the price of a few single counts, may stand for all classes that would be bought
of its rows.

Promise     Except with probability `share` the count of the group is within `error` people of the noisy one.
Why         The price is the smallest at which the noise on one count is (`Calibration.price_of`). Group, error and
            price follow from what was released before, and stand in the plan that is written into the ledger
            before the draw.
When        Before a class of the rows in a group is bought, once for each group, where the count costs at most
            `MOST_OF_CLASS` times what the class does and is expected to be enough: with N and s the count of the
            group as it is known so far and its deviation, and σ that of the new noise, N + error +
            LIKELY·√(s² + σ²) is two widths.
Cost        `price`, once. It is bought ahead of questions: what a session pays beside direct answers is bounded by
            its `allowance`, which has to permit the count and the class together (`PurchasePolicy.group_count`).
Privacy     Decisions read prices, questions and released values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, sqrt
from typing import Any, ClassVar

from understudy.mechanism.additive import Additive, usual_reach
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.query.box import Box, from_plain, plain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.knowledge import Knowledge, ReleasedTable, around
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult

LIKELY = 1.3
"""In deviations: nine of ten groups turn out to be small that are bought as such."""

MOST_OF_CLASS = 2
"""Times the price of the class that would be bought next: other classes of the same rows mostly follow it."""

DEVIATIONS = 4.5
"""Bands of what was bought before are taken to be so many deviations of their noise wide on either side."""


@dataclass(frozen=True, eq=False)
class GroupCountPurchase:
    """The number of rows in `where`, to within `error` people. Promise and reason are those of the module."""

    kind: ClassVar[str] = "group"
    where: LinearQuery
    share: float
    error: int
    price: Price

    @classmethod
    def of(
        cls, calibrator: Calibrator, knowledge: Knowledge, where: LinearQuery, share: float
    ) -> GroupCountPurchase | None:
        """The count of a group that is expected to be small; None where that is not expected."""
        box = Box.of(where)
        if box is None or not where.factors:
            return None
        low, high = knowledge.interval(box)
        if high <= 2 * calibrator.width:
            return None
        band = usual_reach(calibrator.currency, share)
        gap, deviation = 2 * calibrator.width - (low + high) / 2, (high - low) / 2 / DEVIATIONS
        error = enough_for(gap, deviation, band)
        if error < 1:
            return None
        price = calibrator.curator.calibration.price_of(Marginal.of(where), error=error, beta=share)
        return cls(where, share, error, price)

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> GroupCountPurchase:
        """The purchase of a plan in the ledger."""
        where = from_plain(calibrator.curator.domain, plan["question"]).where
        return cls(where, plan["share"], plan["error"], Price.from_plain(plan))

    @property
    def box(self) -> Box:
        """The group."""
        box = Box.of(self.where)
        assert box is not None
        return box

    @property
    def counted(self) -> Marginal:
        """The group as a marginal of one cell."""
        return Marginal.of(self.where)

    def plain(self) -> dict[str, Any]:
        """The plan: the group as a question, the share of β, the error in people and the price."""
        return {
            "question": plain(self.counted),
            "share": self.share,
            "error": self.error,
            **self.price.as_plain(),
        }

    def band(self, calibrator: Calibrator) -> dict[str, Any]:
        """Nothing: the band is `error`."""
        return {}

    def event(self, calibrator: Calibrator) -> Event:
        """The noise on the count, located at the rows of the group."""
        return calibrator.curator.located([self.counted], self._mechanism(calibrator))

    def _mechanism(self, calibrator: Calibrator) -> Additive:
        return calibrator.curator.calibration.mechanism(self.counted, self.price)[0]

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, and add the interval of the group's count to the knowledge."""
        measured = request.measure(calibrator.curator, self.counted, self.price)
        low, high = around(measured.noisy, self.error, (0.0, knowledge.total[1]))
        knowledge.learn(self.box, (float(low), float(high)))
        variance = float(self._mechanism(calibrator).variance)
        knowledge.keep(ReleasedTable((), self.box, measured.noisy, variance))
        return PurchaseResult(measured.cost)


def enough_for(gap: float, deviation: float, band: float) -> int:
    """The largest whole error e, in people, with e + LIKELY·√(deviation² + (e/band)²) ≤ gap; 0 for none.

    `gap` is how far a group is expected to be below two widths, `deviation` how far off that may be, and `band`
    the error in deviations of its noise.
    """
    # The smaller root of (gap - e)² = LIKELY²·(deviation² + (e/band)²), as a quotient that has no 0 in it.
    slope, rest = 1 - (LIKELY / band) ** 2, gap**2 - (LIKELY * deviation) ** 2
    if gap <= 0 or rest <= 0 or slope <= 0:
        return 0
    return floor(rest / (gap + sqrt(gap**2 - slope * rest)))
