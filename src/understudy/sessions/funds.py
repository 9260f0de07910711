"""What purchases cost, and whether they can be paid now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.errors import InsufficientBudgetError
from understudy.ledger.interface import Ledger
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event, Together
from understudy.sessions.purchase import Calibrator, Purchase

OTHERS = "this analyst, or for this day or month"


@dataclass(frozen=True, eq=False)
class Funds:
    """Prices of purchases in one ledger, against what one analyst may spend."""

    calibrator: Calibrator
    analyst: str

    @property
    def _ledger(self) -> Ledger:
        return self.calibrator.curator.ledger

    @property
    def nothing(self) -> Cost:
        return self._ledger.budget.total([])

    def quote(self, purchases: Sequence[Purchase]) -> Cost:
        """The most that they would be charged, one after the other: each is rounded up by itself."""
        cost = self._ledger.quote(Together(tuple(map(self._event, purchases))))
        return type(cost)(cost.units + max(len(purchases) - 1, 0))

    def is_payable(self, purchases: Sequence[Purchase]) -> bool:
        return self.quote(purchases).units <= self._ledger.available(self.analyst).units

    def check(self, purchases: Sequence[Purchase]) -> None:
        """Refuse what cannot be paid; the exact price is found only where that is in doubt."""
        left = self._ledger.available(self.analyst)
        alone = sum(self._ledger.budget.price(self._event(purchase)).units for purchase in purchases)
        if left.units >= 4 * alone or (cost := self.quote(purchases)).units <= left.units:
            return
        limit = OTHERS if cost.units <= self._ledger.remaining.units else ""
        raise InsufficientBudgetError(
            requested=cost.amount, remaining=left.amount, currency=left.currency, limit=limit
        )

    def _event(self, purchase: Purchase) -> Event:
        return self.calibrator.charged(purchase.event(self.calibrator))
