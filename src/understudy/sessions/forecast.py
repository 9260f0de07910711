"""What questions may buy if they are asked now, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from understudy.query.marginal import Marginal
from understudy.sessions.funds import Funds
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.looks import LookPurchase
from understudy.sessions.own_counts import OwnCounts
from understudy.sessions.policy import PurchasePolicy
from understudy.sessions.purchase import Purchase


@dataclass(frozen=True, eq=False)
class Forecast:
    """What the policy would buy for a question, less what the funds cannot pay for.

    Promise     A forecast buys nothing, spends nothing of β and reads no data. What a question buys when it is
                asked next is what is forecast, or less where the first of several purchases tells enough.
    Cost        The time of finding prices.

    `asked` counts the questions of the session so far, the one in hand included.
    """

    policy: PurchasePolicy
    funds: Funds
    knowledge: Knowledge

    def last(self, marginal: Marginal, *, asked: int) -> Purchase:
        """The purchase that answers a question: a class, if the policy wants one and it can be paid, else its own
        counts.
        """
        wanted = self.policy.purchase(self.knowledge, marginal, asked=asked)
        if isinstance(wanted, OwnCounts) or self.funds.is_payable([wanted]):
            return wanted
        return self.policy.counts(self.knowledge, marginal, asked=asked)

    def of(self, marginal: Marginal, *, asked: int) -> list[Purchase]:
        """All that a question may buy, the purchase that answers it last.

        Before it come the number of rows, where that is private and not known yet, and histograms; each only
        where it leaves enough of the budget for the answer. Of two looks the second is there as well, since it may
        be needed; where both cannot be paid, the counts are bought in one look.
        """
        answering = self._answering(marginal, asked=asked)
        opening = (
            None if self.funds.calibrator.relation.rows_are_public else self.policy.opening(self.knowledge)
        )
        before = [] if opening is None or not self.funds.is_payable([opening, *answering]) else [opening]
        histograms = self.policy.preparations(marginal, asked=asked)
        if histograms and self.funds.is_payable([*before, *histograms, *answering]):
            before += histograms
        return [*before, *answering]

    def _answering(self, marginal: Marginal, *, asked: int) -> list[Purchase]:
        last = self.last(marginal, asked=asked)
        if not isinstance(last, LookPurchase) or last.second:
            return [last]
        both: list[Purchase] = [last, last.next]
        if self.funds.is_payable(both):
            return both
        return [self.policy.direct(self.knowledge, marginal, asked=asked)]

    def of_all(self, marginals: Iterable[Marginal], *, asked: int) -> list[Purchase]:
        """All that several questions may buy, one after the other.

        Each is forecast under a copy of the policy from which the shares of β of the answers before it are gone:
        later questions get less of β, and cost more.
        """
        forecast, purchases = self, list[Purchase]()
        for i, marginal in enumerate(marginals):
            for purchase in forecast.of(marginal, asked=asked + i):
                if isinstance(purchase, OwnCounts):
                    forecast = replace(forecast, policy=forecast.policy.with_less_beta(purchase.share))
                    purchases.append(purchase)
                elif not _contains(purchases, purchase):
                    purchases.append(purchase)
        return purchases


def _contains(purchases: Sequence[Purchase], purchase: Purchase) -> bool:
    """Whether the same number of rows, histogram or class is among purchases."""
    plan = purchase.plain()
    return any(other.kind == purchase.kind and other.plain() == plan for other in purchases)
