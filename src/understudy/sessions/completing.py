"""Counts of a question that complete a planned sum: two known terms, and only the precision that is missing.

The question is the third box of two that were bought before, such as the men where everybody and the women were
counted. A look at it needs less precision than one without them, and is put together with both by the weights that
were fixed before any of the three was drawn (`planned_sums`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from understudy.answer.answer import Answer
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.query.box import from_plain, plain
from understudy.query.marginal import Marginal
from understudy.rational import MIN_PARAMETER, exact
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.direct import can_plan_sum, learn, narrowed, normal_variance
from understudy.sessions.knowledge import TOUCHING, Knowledge, boxes_of, nearest
from understudy.sessions.planned_sums import FILL, KnownTerms
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult

ROUNDING = 1 + 1e-9
"""Variances that differ by no more than this factor are the same, by the rounding of sums."""


@dataclass(frozen=True, eq=False)
class CompletingPurchase:
    """Noise on the counts of one question, less precise than the session's width by what two earlier ones tell.

    Promise     The counts, put together with the two known terms, are all within the session's width, except with
                the share of β that was taken for the sum when its first term was bought.
    Why         The theorem of `planned_sums`: the weights of all three terms were fixed before each was drawn, and
                the variance of this one is chosen, before it is drawn, so that the sum has what was planned.
    Cost        `price`, which is less than that of the counts by themselves, and nothing of β.
    """

    kind: ClassVar[str] = "completing"
    marginal: Marginal
    price: Price

    @classmethod
    def of(
        cls, calibrator: Calibrator, knowledge: Knowledge, marginal: Marginal
    ) -> CompletingPurchase | None:
        """The purchase at the smallest price that keeps its promise; None where no sum was planned for it."""
        known = _terms(calibrator, knowledge, marginal)
        if known is None or known.variance <= 0:
            return None
        moved = calibrator.curator.calibration.sensitivity(marginal)
        amount = exact(float(f"{float(moved.l2_squared) / 2 / known.variance * (1 + 5e-8):.8g}"))
        return cls(marginal, Price("rho", amount)) if amount >= MIN_PARAMETER else None

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> CompletingPurchase:
        """The purchase of a plan in the ledger."""
        return cls(from_plain(calibrator.curator.domain, plan["question"]), Price.from_plain(plan))

    @property
    def share(self) -> float:
        """Nothing: the share of the sum was taken with its first term."""
        return 0.0

    def plain(self) -> dict[str, Any]:
        """The plan: the question and the price. The sum follows from the purchases before."""
        return {"question": plain(self.marginal), **self.price.as_plain()}

    def band(self, calibrator: Calibrator) -> dict[str, Any]:
        """Nothing: the band is the session's width."""
        return {}

    def event(self, calibrator: Calibrator) -> Event:
        """The noise on the counts, located at the cells that the question reads."""
        return calibrator.event_of_counts(self.marginal, self.price)

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, add the new counts to the known terms, and answer the question.

        Nothing is learnt where the sum is not known, or the noise is not the one that was planned; then the sum is
        given up, so that nobody buys for it again.
        """
        known, box = _terms(calibrator, knowledge, self.marginal), boxes_of(self.marginal)
        measured = request.measure(calibrator.curator, self.marginal, self.price)
        variance = normal_variance(calibrator, self.marginal, self.price)
        if known is None or box is None:
            return PurchaseResult(measured.cost)
        if not 1 - FILL < variance / known.variance < ROUNDING:
            knowledge.sums.given_up(self.marginal.by, box)
            return PurchaseResult(measured.cost)
        knowledge.sums.completed(self.marginal.by, box, measured.noisy, variance)
        noisy = known.weight * known.estimate + (1 - known.weight) * measured.noisy
        paid = np.ones(self.marginal.shape, bool)
        table = narrowed(knowledge, self.marginal, paid, noisy, calibrator.width)
        # What stand-ins are told is the new look alone: the other two terms they are told already.
        learn(knowledge, self.marginal, table, measured.noisy, variance)
        if bool((table.high - table.low > 2 * calibrator.width + TOUCHING).any()):
            return PurchaseResult(measured.cost)
        value, error = nearest(table, noisy, calibrator.width)
        answer = Answer(self.marginal, value, error, noisy, measured.cost, 1.0)
        return PurchaseResult(measured.cost, self.marginal, answer)


def _terms(calibrator: Calibrator, knowledge: Knowledge, marginal: Marginal) -> KnownTerms | None:
    box = boxes_of(marginal)
    if box is None or not can_plan_sum(calibrator, marginal):
        return None
    return knowledge.sums.terms(marginal.by, box, calibrator.width)
