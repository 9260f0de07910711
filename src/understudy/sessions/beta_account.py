"""How β is divided among the purchases of a session, and what is left of it.

Every purchase takes a part of what is left, so that the shares of all purchases add up to at most β, however many
there are. [union bound over purchases, in `session`] Counts with bounded noise cannot fail: they take nothing of
β, and what they would have taken stays for what can.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatchmethod
from math import nextafter

from understudy.errors import InsufficientBudgetError
from understudy.sessions.completing import CompletingPurchase
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.looks import LookPurchase
from understudy.sessions.number_of_rows import RowCountPurchase
from understudy.sessions.product_class import ProductPurchase
from understudy.sessions.purchase import Purchase
from understudy.sessions.within_error import WithinPurchase

HISTOGRAMS = 0.1
"""Part of what is left of β for histograms of all attributes, whose bands hold for all ranges, or all sets, of an
attribute's cells at once."""

CELLS = 0.02
"""Part of what is left of β for histograms of all attributes whose bands hold for single cells only."""

TOTAL = 0.02
"""Part of β that is set aside for the number of rows, where that is private."""

MAIN = 0.4
"""A class that gets more than this part of what is left of β is a main class: little else was paid for."""

NEW_SESSION = "Begin another session: this one has promised answers with all of its beta"
"""What to do where a session has no share of β left for a further answer."""

ROUNDING = 1e-12
"""By this part of β a share may pass what is left of it, for rounding."""


class BetaAccount:
    """Keeps account of β, as a probability, for one session.

    Promise     The shares of β of all purchases that are planned and noted add up to at most β.
    Why         Each share is a fraction of `left`, from which it is taken before the next one is planned; rounding
                is always downwards. What is set aside for the number of rows is taken from `left` beforehand.

    left               what is left of β, beside what is set aside
    for_rows           what is set aside for the number of rows, and not taken yet
    counts_bought      how many counts of single questions have had a share
    has_main_class     whether a class had much of what was left when it was bought
    """

    def __init__(self, beta: float, *, rows_are_public: bool = True) -> None:
        self.left, self.for_rows = beta, 0.0 if rows_are_public else beta * TOTAL
        if not rows_are_public:
            self._take(self.for_rows)
        self._rounding = ROUNDING * beta
        self.counts_bought = 0
        self.has_main_class = False

    def is_main(self, purchase: Purchase) -> bool:
        """Whether a class gets much of what is left of β, since little was paid beside it."""
        return isinstance(purchase, ProductPurchase) and purchase.share > MAIN * self.left

    def left_after(self, purchases: Sequence[Purchase]) -> float:
        """What would be left of β after purchases."""
        return self.left - sum(purchase.share for purchase in purchases)

    def check(self, purchase: Purchase) -> None:
        """Refuse, with an `InsufficientBudgetError`, a purchase whose share is more than what is left of β.

        Plans keep to what is left, so that this never happens; were one wrong, β would still not be overspent.
        """
        is_certain = isinstance(purchase, DirectPurchase | WithinPurchase) and purchase.is_certain
        takes_none = is_certain or isinstance(purchase, CompletingPurchase)
        left = max(self.left, self.for_rows) if isinstance(purchase, RowCountPurchase) else self.left
        if not takes_none and purchase.share > left + self._rounding:
            raise InsufficientBudgetError(
                requested=purchase.share, remaining=left, currency="beta", remedy=NEW_SESSION
            )

    @singledispatchmethod
    def note(self, purchase: Purchase) -> None:
        """Take a purchase's share from β: it stands in the journal, and the share is gone whatever comes of it."""
        self._take(purchase.share)

    def _take(self, share: float) -> None:
        if share > self.left:  # before this was set aside, a session could promise all of its beta without
            self.for_rows = max(self.for_rows - (share - self.left), 0.0)
        self.left = max(nextafter(self.left - share, 0.0), 0.0)

    @note.register
    def _(self, purchase: RowCountPurchase) -> None:
        if self.for_rows:
            self.for_rows = 0.0
        else:
            self._take(purchase.share)

    @note.register
    def _(self, purchase: ProductPurchase) -> None:
        self.has_main_class = self.has_main_class or self.is_main(purchase)
        self._take(purchase.share)

    @note.register
    def _(self, purchase: DirectPurchase) -> None:
        if not purchase.is_certain:
            self.counts_bought += 1
            self._take(purchase.share)

    @note.register
    def _(self, purchase: WithinPurchase) -> None:
        if not purchase.is_certain:
            self.counts_bought += 1
            self._take(purchase.share)

    @note.register
    def _(self, purchase: LookPurchase) -> None:
        self.counts_bought += purchase.is_first
        self._take(purchase.share)

    @note.register
    def _(self, purchase: CompletingPurchase) -> None:
        self.counts_bought += 1
