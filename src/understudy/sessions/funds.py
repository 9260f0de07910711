"""What purchases cost together, and whether the ledger can pay for them now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.errors import InsufficientBudgetError, RefusedError
from understudy.ledger.interface import Ledger
from understudy.privacy.cost import Cost, delta_units
from understudy.privacy.event import Event, Together
from understudy.sessions.answer_memory import Identity, identity
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.looks import LookPurchase
from understudy.sessions.purchase import Purchase

OTHERS = "this analyst, or for this day or month"
"""The limit that is named in a refusal where the table's own budget would have been enough."""

FAR_BELOW = 4
"""Purchases can be paid for sure where this many times the sum of their separate prices is left."""


@dataclass(frozen=True, eq=False)
class Funds:
    """Prices of purchases in one ledger, against what one analyst may still spend there.

    Promise     What passes `check` can be paid, unless somebody else spends in between. The ledger itself checks
                again when it charges.
    Cost        No privacy and no write: quotes are computed from public events.
    """

    calibrator: Calibrator
    ledger: Ledger
    analyst: str

    @property
    def nothing(self) -> Cost:
        """A cost of 0, in the ledger's currency."""
        return self.ledger.budget.total([])

    def quote(self, purchases: Sequence[Purchase]) -> Cost:
        """The most that the purchases would be charged, one after the other, with the ledger's joint accounting.

        Each is rounded up to a whole unit of the ledger by itself: hence the units that are added. Of several
        looks at a question the later ones may not be needed. A joint price is a bound, for which more work is done
        where more is bought: so where something else comes after them, what is found without them counts if it is
        more.
        """
        needed = _without_later_looks(purchases)
        ways = [purchases] if needed == list(purchases[: len(needed)]) else [purchases, needed]
        costs = [self.ledger.quote(Together(tuple(map(self._event, some)))) for some in ways]
        return type(costs[0])(max(cost.units for cost in costs) + max(len(purchases) - 1, 0))

    def in_turn(self, purchases: Sequence[Purchase]) -> int:
        """The units that the purchases are charged if they are made one after the other, none left out."""
        quote = self.ledger.quote(Together(tuple(map(self._event, purchases))))
        return quote.units + max(len(purchases) - 1, 0)

    def is_payable(self, purchases: Sequence[Purchase]) -> bool:
        """Whether the analyst's part of the budget pays for all of the purchases now; not what has no price."""
        left = self.ledger.available(self.analyst)
        try:
            return self._are_far_below(purchases, left) or self.quote(purchases).units <= left.units
        except RefusedError:
            return False

    def _are_far_below(self, purchases: Sequence[Purchase], left: Cost) -> bool:
        """Whether so much is left that purchases can be paid for sure, by their separate prices.

        What has a δ of its own is not: the budget may have none for it, which a quote tells.
        """
        events = [self._event(purchase) for purchase in purchases]
        alone = sum(self.ledger.budget.price(event).units for event in events)
        return left.units >= FAR_BELOW * alone and not any(map(delta_units, events))

    def check(self, purchases: Sequence[Purchase]) -> None:
        """Raise an `InsufficientBudgetError` where the purchases cannot all be paid now.

        The joint price, which takes longer to compute, is found only where the separate prices leave a doubt.
        """
        left = self.ledger.available(self.analyst)
        if self._are_far_below(purchases, left) or (cost := self.quote(purchases)).units <= left.units:
            return
        limit = OTHERS if cost.units <= self.ledger.remaining.units else ""
        raise InsufficientBudgetError(
            requested=cost.amount, remaining=left.amount, currency=left.currency, limit=limit
        )

    def _event(self, purchase: Purchase) -> Event:
        return self.calibrator.charged(purchase.event(self.calibrator))


def _without_later_looks(purchases: Sequence[Purchase]) -> list[Purchase]:
    """The purchases without looks that follow another one of them at the same question."""
    begun, needed = set[Identity](), list[Purchase]()
    for purchase in purchases:
        if isinstance(purchase, LookPurchase):
            question = identity(purchase.marginal)
            if question in begun:
                continue
            begun.add(question)
        needed.append(purchase)
    return needed
