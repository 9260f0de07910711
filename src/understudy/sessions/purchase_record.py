"""What a session has bought so far, as far as that decides what is bought next: rents, classes, what is left of β.

A purchase is noted when it stands in the journal, which takes its share of β, and told again once it was made:
then what it cost is rent of the classes that would have answered its question, or counts against the allowance.
What the released numbers tell is another subject (`knowledge`).
"""

from __future__ import annotations

from copy import copy
from functools import cached_property, singledispatchmethod

from understudy.domain.refinement import RefinedDomain
from understudy.mechanism.additive import usual_noise
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event
from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.sessions.allowance import Allowance
from understudy.sessions.beta_account import BetaAccount
from understudy.sessions.calibrator import Calibrator, rounded
from understudy.sessions.completing import CompletingPurchase
from understudy.sessions.direct import BOUNDED, DirectPurchase
from understudy.sessions.histogram import HistogramPurchase
from understudy.sessions.histogram_rent import HistogramRents
from understudy.sessions.knowledge import Knowledge, Place
from understudy.sessions.looks import LookPurchase
from understudy.sessions.marginals_class import MarginalsPurchase
from understudy.sessions.marginals_rental import MarginalsSkiRental, cell_of
from understudy.sessions.number_of_rows import NumberOfRows, RowCountPurchase
from understudy.sessions.product_class import ProductPurchase
from understudy.sessions.purchase import Purchase
from understudy.sessions.ski_rental import SkiRental
from understudy.sessions.small_groups import GroupCountPurchase
from understudy.sessions.terms import AllMarginals, Announced, Conjunctions, Terms
from understudy.sessions.within_error import WithinPurchase

_Counts = DirectPurchase | LookPurchase | CompletingPurchase


class PurchaseRecord:
    """Remembers purchases, and tells those who decide by them: the account of β, the allowance and the rents.

    Promise     Every share of β is taken once, when its purchase is noted; every price counts once, as rent or as
                bought ahead, when it was made.
    Why         The `buyer` notes each step of the journal once, and tells each purchase that was made once. Kinds
                that count as neither are named below, with the reason.
    Privacy     Purchases, prices and questions are public.
    Cost        Nothing of the budget.
    """

    def __init__(self, calibrator: Calibrator, terms: Terms, nothing_released: Knowledge) -> None:
        self._calibrator = calibrator
        self._terms = terms
        self._domain = calibrator.curator.domain
        public = calibrator.relation.rows_are_public
        self.beta = BetaAccount(float(terms.beta), rows_are_public=public)
        self.allowance = Allowance(calibrator, terms, nothing_released)
        self.ski_rental = SkiRental(calibrator)
        self.marginals_rental = MarginalsSkiRental()
        self.cells_rental = MarginalsSkiRental(of_cells=True)
        self.histogram_rents = HistogramRents(calibrator)
        self.histograms: set[tuple[str, bool]] = set()
        """The attributes whose histograms were bought, and whether of their cells alone."""
        self.histograms_cost = 0.0
        """What histograms have cost so far, in ε or ρ."""
        self.groups: set[Place] = set()
        self.orders: set[int] = set()
        """The orders of the classes of all marginals that were bought."""
        self.paid = 0.0
        """What counts and classes, which share what is left of β, have cost so far, in ε or ρ."""
        self.noises: tuple[str, ...] = ()
        """The noises that purchases were made with so far, each once, as `Answer.noise` names them."""

    def after(self, planned: tuple[Purchase, ...]) -> PurchaseRecord:
        """A copy in which purchases that are planned are noted; rents and the allowance are those of both."""
        other = copy(self)
        other.histograms, other.beta = set(self.histograms), copy(self.beta)
        for purchase in planned:
            other.note(purchase)
        return other

    def note(self, purchase: Purchase) -> None:
        """Take a purchase's share from β, and remember its noise, and what is bought once only: it stands in the
        journal.
        """
        self.beta.note(purchase)
        usual = usual_noise(self._calibrator.currency)
        is_bounded = isinstance(purchase, DirectPurchase | WithinPurchase) and purchase.is_certain
        self.noises = tuple(dict.fromkeys((*self.noises, BOUNDED if is_bounded else usual)))
        if isinstance(purchase, HistogramPurchase):
            self.histograms.add((purchase.name, purchase.plain_cells))
            self.histograms_cost += float(purchase.price.amount)

    @singledispatchmethod
    def made(self, purchase: Purchase, charged: Cost) -> None:
        """Remember a purchase that was made, and what the ledger charged for it, for later choices."""
        self._bought_ahead(purchase)

    @made.register
    def _(self, purchase: RowCountPurchase, charged: Cost) -> None:
        pass  # who asks directly pays as much for it: it is on both sides of the allowance

    @made.register
    def _(self, purchase: WithinPurchase, charged: Cost) -> None:
        pass  # who asks directly for an error pays as much: it is on both sides of the allowance

    @made.register
    def _(self, purchase: ProductPurchase, charged: Cost) -> None:
        self.paid += float(purchase.price.amount)
        self.ski_rental.bought(purchase)
        if purchase.asked_for:
            self.allowance.asked_for(self._event(purchase), purchase.by, purchase.where)
        elif not purchase.ordered and (
            not self._is_announced(Conjunctions(purchase.by)) or purchase.where.factors
        ):
            self._bought_ahead(purchase)

    @made.register
    def _(self, purchase: GroupCountPurchase, charged: Cost) -> None:
        self.paid += float(purchase.price.amount)
        self.groups.add(purchase.box.key)
        self._bought_ahead(purchase)

    @made.register
    def _(self, purchase: MarginalsPurchase, charged: Cost) -> None:
        self.paid += float(purchase.price.amount)
        self.orders.add(purchase.order)
        if not purchase.ordered and not self._is_announced(AllMarginals(purchase.order)):
            self._bought_ahead(purchase)

    @made.register
    def _(self, purchase: DirectPurchase, charged: Cost) -> None:
        self.allowance.asked(purchase.marginal)
        self._rented(purchase, charged, again=False)

    @made.register
    def _(self, purchase: LookPurchase, charged: Cost) -> None:
        if purchase.is_first:
            self.allowance.asked(purchase.marginal)
        self._rented(purchase, charged, again=not purchase.is_first)

    @made.register
    def _(self, purchase: CompletingPurchase, charged: Cost) -> None:
        self.allowance.asked(purchase.marginal)
        self._rented(purchase, charged, again=False)

    def _rented(self, purchase: _Counts, charged: Cost, *, again: bool) -> None:
        """Remember what a question's own counts cost, as rent of the classes that would have answered it."""
        marginal, price = purchase.marginal, purchase.price
        if not self._terms.is_direct:
            self.allowance.paid(self._event(purchase), marginal)
        self.paid += float(price.amount)
        if marginal.moment is not None or is_cut(marginal) or self._terms.is_direct:
            return  # no class of counts of declared cells would have answered it
        self.histogram_rents.pay(marginal, float(price.amount))
        if marginal.by:
            self.marginals_rental.pay(marginal, price.amount, again=again)
        elif (box := Box.of(marginal.where)) is not None:
            self.ski_rental.pay(box, price, charged.amount, again=again)
            if (cell := cell_of(box)) is not None:
                self.cells_rental.pay(cell, charged.amount, again=again)

    def _is_announced(self, announced: Announced) -> bool:
        """Whether a class was ordered by the session's terms: then it is not bought ahead."""
        if isinstance(announced, AllMarginals):
            return announced in self._terms.classes
        names = {self._domain.clique(c.names) for c in self._terms.classes if isinstance(c, Conjunctions)}
        return announced.names in names

    def _bought_ahead(self, purchase: Purchase) -> None:
        if not self._terms.is_direct:
            self.allowance.bought(self._event(purchase))

    def _event(self, purchase: Purchase) -> Event:
        return self._calibrator.charged(purchase.event(self._calibrator))

    def answered(self, marginal: Marginal) -> None:
        """Remember a question that was answered by what was bought for it, its own counts left out."""
        if isinstance(marginal, NumberOfRows):
            return  # its price is on both sides of the allowance already
        self.allowance.asked(marginal)

    def served(self, knowledge: Knowledge, marginal: Marginal) -> None:
        """Remember a question that was answered for nothing: classes that do so have paid off."""
        if isinstance(marginal, NumberOfRows):
            return
        self.allowance.asked(marginal)
        alone = not (marginal.by or marginal.moment or is_cut(marginal))
        box = Box.of(marginal.where) if alone else None
        if box is not None:
            self.ski_rental.serve(box, self.single_price, knowledge)

    @cached_property
    def single_price(self) -> float:
        """The price of one count with an even part of β, in ε or ρ: what other prices are compared with."""
        share = rounded(float(self._terms.beta) / self._terms.queries)
        return float(self._calibrator.price_of_counts(self._calibrator.single_count, share, 1).amount)


def is_cut(marginal: Marginal) -> bool:
    """Whether a question cuts declared cells, of which classes are made."""
    return isinstance(marginal.domain, RefinedDomain)
