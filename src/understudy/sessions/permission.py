"""What a session may buy ahead of questions, by its allowance and by what is left of β."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.errors import RefusedError
from understudy.query.marginal import Marginal
from understudy.sessions.allowance import Allowance
from understudy.sessions.beta_account import BetaAccount
from understudy.sessions.beta_spending import LEAST_SHARE, least_share
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
                that is found here, and own counts keep to it (`are_shares_even`, `own_counts`).
    Privacy     Prices, questions and shares are public.
    """

    calibrator: Calibrator
    terms: Terms
    allowance: Allowance
    beta: BetaAccount
    planned: tuple[Purchase, ...] = ()
    """What is planned ahead and not made yet, beside which others are permitted; its shares of β are taken."""

    def permits(self, purchases: Sequence[Purchase], *, asked: int, question: Marginal | None = None) -> bool:
        """Whether the allowance permits purchases ahead of a question, beside those planned. Histograms have β of
        their own.

        What may follow is reckoned with: falling shares of β for counts, in several looks; or, after a main class,
        even shares in one look, which are less dear in the end (`are_shares_even`). Not permitted is what leaves
        later counts less than `LEAST_SHARE` of β, and what the ledger has no price for, such as little noise under
        a `gdp` filter.
        """
        left, all_ahead = self.beta.left_after(purchases), (*self.planned, *purchases)
        events = [self.calibrator.charged(purchase.event(self.calibrator)) for purchase in all_ahead]
        expected = self.terms.ahead(asked) + 1
        shares = [least_share(left, self.beta.counts_bought, expected) * (1 - FIRST)]
        if any(self.beta.is_main(purchase) for purchase in purchases):
            shares.append(left / expected)
        try:
            return any(
                self.allowance.permits(
                    events,
                    least_share=least,
                    dearer=dearer(self.calibrator),
                    asked=asked,
                    question=question,
                )
                for least in shares
                if least >= LEAST_SHARE
            )
        except RefusedError:
            return False

    def are_shares_even(self, *, asked: int) -> bool:
        """Whether counts get even shares of β, and are bought in one look.

        They do after a main class, for which the allowance may have reckoned with that: few counts follow it, and
        the dearest of them decides when it may be bought. When the allowance permits falling shares again, they
        get these.
        """
        return self.terms.is_direct or (self.beta.has_main_class and not self.permits([], asked=asked))

    def is_no_dearer(self, purchase: Purchase, other: Purchase) -> bool:
        """Whether no row pays more for a purchase than for another one, as the ledger accounts for both.

        The allowance takes a question's own counts to cost each cell no more than the question does by itself.
        """
        events = (self.calibrator.charged(each.event(self.calibrator)) for each in (purchase, other))
        return self.allowance.is_no_dearer(*events)
