"""What questions may buy if they are asked now, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from understudy.query.marginal import Marginal
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.funds import Funds
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.policy import PurchasePolicy
from understudy.sessions.purchase import Purchase


@dataclass(frozen=True, eq=False)
class Forecast:
    """Asks the policy what it wants, and leaves out what cannot be paid; `asked` counts the question itself."""

    policy: PurchasePolicy
    funds: Funds
    knowledge: Knowledge

    def last(self, marginal: Marginal, *, asked: int) -> Purchase:
        """What answers a question: a class, if there is one to buy and it can be paid, or fresh noise."""
        wanted = self.policy.purchase(self.knowledge, marginal, asked=asked)
        if isinstance(wanted, DirectPurchase) or self.funds.is_payable([wanted]):
            return wanted
        return self.policy.fresh(self.knowledge, marginal, asked=asked)

    def of(self, marginal: Marginal, *, asked: int) -> list[Purchase]:
        """All that a question may buy; what comes before the answer, where that would not leave too little for it.

        That is the number of rows, where it is private and not known yet, and histograms.
        """
        last = self.last(marginal, asked=asked)
        opening = (
            None if self.funds.calibrator.relation.rows_are_public else self.policy.opening(self.knowledge)
        )
        before = [] if opening is None or not self.funds.is_payable([opening, last]) else [opening]
        prepared = self.policy.preparations(self.knowledge, marginal)
        if prepared and self.funds.is_payable([*before, *prepared, last]):
            before += prepared
        return [*before, last]

    def of_all(self, marginals: Iterable[Marginal], *, asked: int) -> list[Purchase]:
        """All that several questions may buy, one after the other."""
        found: list[Purchase] = []
        left = self.policy.left
        try:
            for i, marginal in enumerate(marginals):
                for purchase in self.of(marginal, asked=asked + i):
                    if isinstance(purchase, DirectPurchase):
                        self.policy.left -= purchase.share  # later ones get less of β, and cost more
                    if isinstance(purchase, DirectPurchase) or not _holds(found, purchase):
                        found.append(purchase)
        finally:
            self.policy.left = left
        return found


def _holds(found: Sequence[Purchase], purchase: Purchase) -> bool:
    """Whether the number of rows, a histogram or a class is in the forecast already."""
    plan = purchase.plain()
    return any(other.kind == purchase.kind and other.plain() == plan for other in found)
