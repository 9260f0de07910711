"""What a session may buy ahead of questions, by its allowance and by what is left of β."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from understudy.errors import RefusedError
from understudy.privacy.event import Event
from understudy.query.marginal import Marginal
from understudy.sessions.allowance import Allowance
from understudy.sessions.beta_account import BetaAccount
from understudy.sessions.beta_spending import CAREFUL, EVEN, GENEROUS, LEAST_SHARE, BetaSpending
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.looks import FIRST, dearer
from understudy.sessions.purchase import Purchase
from understudy.sessions.terms import Terms


@dataclass(frozen=True, eq=False)
class Permission:
    """Says which purchases ahead the allowance permits, and what own counts have to keep to after them.

    Promise     At every moment a session has cost at most 3/2 of what the questions so far would have cost by
                themselves, and three single counts, if nothing is bought ahead that is not permitted here.
    Why         The `allowance` has rule and proof. It rests on the least share of β that any later count can get:
                that is found here, and own counts keep to it (`spending`, `own_counts`).
    Privacy     Prices, questions and shares are public.
    """

    calibrator: Calibrator
    terms: Terms
    allowance: Allowance
    beta: BetaAccount
    planned: tuple[Purchase, ...] = ()
    """What is planned ahead and not made yet, beside which others are permitted; its shares of β are taken."""

    def permits(self, purchases: Sequence[Purchase], *, asked: int, question: Marginal | None = None) -> bool:
        """Whether the allowance permits purchases ahead of a question, beside those planned, with what they leave
        of β.

        What may follow is reckoned with: careful shares of β for counts, in several looks; or, after a main class,
        even shares in one look, which are less dear in the end (`spending`). Not permitted is what leaves later
        counts less than `LEAST_SHARE` of β, and what the ledger has no price for, such as little noise under a
        `gdp` filter.
        """
        if self._keeps(CAREFUL, purchases, asked=asked, question=question):
            return True
        is_main = any(self.beta.is_main(purchase) for purchase in purchases)
        return is_main and self._keeps(EVEN, purchases, asked=asked, question=question)

    def wait(self, purchases: Sequence[Purchase], *, asked: int) -> float:
        """After how many more questions purchases ahead are likely to be permitted (`Allowance.wait`)."""
        least = self._least(CAREFUL, purchases, asked=asked)
        if least < LEAST_SHARE:
            return inf
        try:
            return self.allowance.wait(
                self._events(purchases), least_share=least, dearer=dearer(self.calibrator), asked=asked
            )
        except RefusedError:
            return inf

    def _least(self, spending: BetaSpending, purchases: Sequence[Purchase], *, asked: int) -> float:
        """The least share of β that a later count can get by `spending` after purchases."""
        left, expected = self.beta.left_after(purchases), self.terms.ahead(asked) + 1
        least = spending.least(left, self.beta.counts_bought, expected)
        return least if spending is EVEN else least * (1 - FIRST)  # what the last of several looks has

    def _events(self, purchases: Sequence[Purchase]) -> list[Event]:
        """What purchases are charged, after those that are planned."""
        return [
            self.calibrator.charged(purchase.event(self.calibrator))
            for purchase in (*self.planned, *purchases)
        ]

    def _keeps(
        self,
        spending: BetaSpending,
        purchases: Sequence[Purchase] = (),
        *,
        asked: int,
        question: Marginal | None = None,
    ) -> bool:
        """Whether the allowance permits purchases ahead, if counts get shares of β by `spending` from now on."""
        least = self._least(spending, purchases, asked=asked)
        if least < LEAST_SHARE:
            return False
        events = self._events(purchases)
        try:
            return self.allowance.permits(
                events,
                least_share=least,
                dearer=dearer(self.calibrator),
                asked=asked,
                question=question,
            )
        except RefusedError:
            return False

    def spending(self, *, asked: int) -> BetaSpending:
        """How the shares of β of own counts fall: as generously as the allowance permits.

        Generous shares may become the least: they are given where the allowance permits what was bought ahead with
        counts as dear as those can be. Else careful ones, with which everything ahead was permitted; or even ones,
        in one look, after a main class for which the allowance reckoned with these: few counts follow it, and the
        dearest of them decides when it may be bought.
        """
        if self.terms.is_direct:
            return EVEN
        if self._keeps(GENEROUS, asked=asked):
            return GENEROUS
        return EVEN if self.beta.has_main_class and not self._keeps(CAREFUL, asked=asked) else CAREFUL

    def is_no_dearer(self, purchase: Purchase, other: Purchase) -> bool:
        """Whether no row pays more for a purchase than for another one, as the ledger accounts for both.

        The allowance takes a question's own counts to cost each cell no more than the question does by itself.
        """
        events = (self.calibrator.charged(each.event(self.calibrator)) for each in (purchase, other))
        return self.allowance.is_no_dearer(*events)
