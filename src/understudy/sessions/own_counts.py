"""What the counts of one question cost by themselves: with which noise, in how many looks, at which part of β."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from understudy.curator.pricing import SPARE
from understudy.errors import InsufficientBudgetError
from understudy.query.marginal import Marginal
from understudy.sessions.beta_account import NEW_SESSION, TOTAL
from understudy.sessions.beta_spending import EVEN, LEAST_SHARE, BetaSpending
from understudy.sessions.calibrator import Calibrator, rounded
from understudy.sessions.completing import CompletingPurchase
from understudy.sessions.direct import BOUNDED, DirectPurchase, can_plan_sum
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.looks import LookPurchase, next_look
from understudy.sessions.number_of_rows import NumberOfRows, RowCountPurchase
from understudy.sessions.permission import Permission
from understudy.sessions.planned_sums import SUM_SHARE
from understudy.sessions.terms import Terms
from understudy.sessions.within_error import WithinPurchase

OwnCounts = DirectPurchase | LookPurchase | CompletingPurchase | RowCountPurchase
"""A purchase of the counts of one question, or of the number of rows that it needs, and of nothing ahead."""


@dataclass(frozen=True, eq=False)
class OwnCountsOffers:
    """Offers the counts of single questions at the smallest price that keeps the session's promise.

    Promise     Every offer answers its question within the session's width, except with its share of β, and is no
                dearer than the allowance takes counts to be.
    Why         The purchases prove their bands; a share is at least the one that `permission` reckoned with.
    Privacy     Offers are functions of the declaration, the terms, the questions and released values alone.
    """

    calibrator: Calibrator
    terms: Terms
    permission: Permission

    def direct(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> DirectPurchase:
        """The counts of a question bought by themselves: with bounded noise, where that costs less, or the usual.

        Both keep the session's width, and have the same region in the ledger's joint account, so that the smaller
        price is never dearer, now or later (`curator.pricing`). Raises as `_offers` does.
        """
        usual, certain = self._offers(knowledge, marginal, asked=asked)
        return cheaper(usual, certain)

    def _offers(
        self, knowledge: Knowledge, marginal: Marginal, *, asked: int
    ) -> tuple[DirectPurchase | None, DirectPurchase | None]:
        """The counts with the usual noise, and with bounded noise: one of them at least, as the terms allow.

        Where the terms name bounded noise, what it is not made for gets the usual one. Raises as `_usual` does, a
        `RefusedError` where bounded noise is named and has no price, and an `InsufficientBudgetError` in the
        currency `delta` where too little is left of that.
        """
        noise, certain = self.terms.noise, self._certain(marginal)
        if noise == BOUNDED and marginal.moment is None and marginal.where.is_counting:
            if certain is None:
                self.calibrator.curator.calibration.price_of(
                    marginal, error=self.calibrator.width, certain=True
                )
                raise InsufficientBudgetError(requested=inf, remaining=0.0, currency="delta")
            return None, certain
        try:
            return self._usual(knowledge, marginal, asked=asked), certain
        except InsufficientBudgetError:
            if certain is None:
                raise
            return None, certain

    def _certain(self, marginal: Marginal) -> DirectPurchase | None:
        """The counts with bounded noise, where the terms allow it and δ is left for it; None elsewhere."""
        if self.terms.noise not in ("auto", BOUNDED):
            return None
        spare = 1 if self.terms.noise == BOUNDED else SPARE
        return DirectPurchase.certain(self.calibrator, marginal, spare=spare)

    def _usual(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> DirectPurchase:
        """The counts with the usual noise, and with a part of what is left of β (`beta_spending`).

        Raises an `InsufficientBudgetError` in the currency `beta` where too little of β is left.
        """
        spending, share = self._share(asked)
        planned = self._share_of_sum(knowledge, marginal, share, spending, asked=asked)
        whole = DirectPurchase.of(self.calibrator, knowledge, marginal, share, of_sum=planned)
        part = None if self.terms.is_direct else whole.of_unknown(self.calibrator)
        if part is None or (part.measured.by and knowledge.sums.may_be_worth_it):
            return whole  # sums are of whole tables
        return part if self.permission.is_no_dearer(part, whole.of_all(self.calibrator)) else whole

    def _share(self, asked: int) -> tuple[BetaSpending, float]:
        """How shares of β fall now, and the one that the next question gets; raises as `_usual` does."""
        beta, spending = self.permission.beta, self.permission.spending(asked=asked)
        share = rounded(beta.left * spending.part(beta.counts_bought, self.terms.ahead(asked) + 1))
        return spending, self._enough(share)

    def _enough(self, share: float) -> float:
        if share < LEAST_SHARE:
            raise InsufficientBudgetError(
                requested=LEAST_SHARE, remaining=share, currency="beta", remedy=NEW_SESSION
            )
        return share

    def _share_of_rows(self) -> float:
        """The share of β of the number of rows: what was set aside; where that is gone, in a purchase that came to
        nothing, a part of what is left. Raises as `_usual` does.
        """
        beta = self.permission.beta
        return self._enough(beta.for_rows or rounded(beta.left * TOTAL))

    def within(self, marginal: Marginal, width: float, *, asked: int) -> WithinPurchase:
        """The sums of a marginal within `width` people, with the share of β that own counts get.

        The noise is bounded where the terms name that and the marginal counts people. Raises as `_usual` does.
        """
        certain = self.terms.noise == BOUNDED and marginal.moment is None and marginal.where.is_counting
        share = 0.0 if certain else self._share(asked)[1]
        return WithinPurchase.of(self.calibrator, marginal, width, share, certain=certain)

    def _share_of_sum(
        self, knowledge: Knowledge, marginal: Marginal, share: float, spending: BetaSpending, *, asked: int
    ) -> float:
        """The part of a count's share of β that goes to the sum that it plans: none unless that is worth it.

        What is left to the count itself is no less than the least share that any count can still get. So a count
        with a sum is no dearer than the allowance takes counts to be.
        """
        if spending is EVEN or not knowledge.sums.are_worth_it:
            return 0.0
        beta, planned = self.permission.beta, rounded(SUM_SHARE * share)
        least = spending.least(beta.left, beta.counts_bought, self.terms.ahead(asked) + 1)
        return planned if share - planned >= least and can_plan_sum(self.calibrator, marginal) else 0.0

    def counts(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> OwnCounts:
        """The counts of a question bought by themselves: in several looks, where the first may be enough; or with
        less precision, where they complete a sum that was planned (`completing`).

        Bounded noise takes the place of a look only where it costs no more than that look alone. Raises as
        `direct` does.
        """
        if isinstance(marginal, NumberOfRows):
            return RowCountPurchase.of(self.calibrator, self._share_of_rows())
        following = next_look(self.calibrator, knowledge, marginal)
        if following is not None:
            certain = self._certain(marginal)
            if certain is None or following.price.amount < certain.price.amount:
                return following
            return certain
        usual, certain = self._offers(knowledge, marginal, asked=asked)
        direct = cheaper(usual, certain)
        if usual is None or self.permission.spending(asked=asked) is EVEN:
            return direct
        look = LookPurchase.of(self.calibrator, knowledge, usual)
        if look is not None:
            return direct if direct.is_certain and direct.price.amount <= look.price.amount else look
        completing = CompletingPurchase.of(self.calibrator, knowledge, marginal)
        return completing if completing and completing.price.amount < direct.price.amount else direct


def cheaper(usual: DirectPurchase | None, certain: DirectPurchase | None) -> DirectPurchase:
    """The one that costs less; the usual one where they cost the same. One of them is there."""
    if usual is None or (certain is not None and certain.price.amount < usual.price.amount):
        assert certain is not None
        return certain
    return usual
