"""The number of rows where it is private: what it costs to know it as closely as shares need it.

A count is within the session's width whatever the number of rows. A share of all rows is a count over that number,
so that what is not known of it adds to the error: it is bought to an eighth of the width, once, with the first
share that is asked for. `count` of everybody is a question like others, within the width.

Neither histograms nor classes of all rows need it: they tell it within a band of their own
(`Knowledge.learn_rows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.privacy.region import located
from understudy.query.marginal import Marginal
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult


@dataclass(frozen=True, repr=False)
class NumberOfRows(Marginal):
    """The count of all rows as a part of a question that needs it closely: within `rows_error`, not the width."""

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """Another question than `count`, which is answered within the width."""
        return ("number of rows",)


@dataclass(frozen=True, eq=False)
class RowCountPurchase:
    """The number of rows, to within `error` people: an eighth of the session's width.

    Promise     Except with probability `share` the number of rows is within `error` of the noisy one.
    Why         The price is the smallest at which the noise on one count is (`Calibration.price_of`).
    Cost        `price`, once a session, with the first question that needs it; only where the neighbouring
                relation keeps the number private. It is the same whenever that comes, and for who asks directly:
                its share of β is set aside (`beta_account`).
    """

    kind: ClassVar[str] = "rows"
    share: float
    error: int
    price: Price

    @classmethod
    def of(cls, calibrator: Calibrator, share: float) -> RowCountPurchase:
        """The purchase at the smallest price that keeps its promise."""
        error = rows_error(calibrator.width)
        return cls(
            share,
            error,
            calibrator.curator.calibration.price_of(_everyone(calibrator), error=error, beta=share),
        )

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> RowCountPurchase:
        """The purchase of a plan in the ledger."""
        return cls(plan["share"], plan["error"], Price.from_plain(plan))

    def plain(self) -> dict[str, Any]:
        """The plan: the share of β, the error in people and the price."""
        return {"share": self.share, "error": self.error, **self.price.as_plain()}

    def band(self, calibrator: Calibrator) -> dict[str, Any]:
        """Nothing: the band is `error`."""
        return {}

    def event(self, calibrator: Calibrator) -> Event:
        """The noise on the number of rows, located at every cell."""
        everyone = _everyone(calibrator)
        mechanism, _ = calibrator.curator.calibration.mechanism(everyone, self.price)
        return located(everyone, mechanism.event, calibrator.relation)

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, and narrow the interval of the number of rows."""
        measured = request.measure(calibrator.curator, _everyone(calibrator), self.price)
        knowledge.learn_number_of_rows(float(measured.noisy), self.error)
        return PurchaseResult(measured.cost)


def _everyone(calibrator: Calibrator) -> Marginal:
    """The number of rows, as a marginal of one cell."""
    return Marginal(calibrator.curator.domain, ())


def rows_error(width: int) -> int:
    """The error, in people, to which the number of rows is bought for answers within `width` people."""
    return max(width // 8, 1)
