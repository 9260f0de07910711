"""What a session buys next, and which part of β goes with it.

β is divided beforehand: fixed parts for the number of rows and for histograms, the rest for classes and for the
counts of single questions. Every purchase takes a part of what is left of its own, so that the shares of all
purchases add up to at most β, however many there are. [union bound over purchases, in `session`] Counts with
bounded noise cannot fail: they take nothing of β, and what they would have taken stays for what can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, singledispatchmethod
from math import inf, nextafter
from typing import Any, Self

from understudy.curator.pricing import SPARE
from understudy.domain.refinement import RefinedDomain
from understudy.errors import InsufficientBudgetError, QueryError, RefusedError
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event
from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.rational import Number
from understudy.sessions.allowance import Allowance
from understudy.sessions.beta_spending import BEFORE, least_share, part_of_class, part_of_left
from understudy.sessions.calibrator import Calibrator, coarse, rounded
from understudy.sessions.completing import CompletingPurchase
from understudy.sessions.direct import BOUNDED, DirectPurchase, can_plan_sum, running_sums
from understudy.sessions.families import Kind
from understudy.sessions.histogram import MOST, HistogramPurchase, RowCountPurchase
from understudy.sessions.histogram_rent import HistogramRents, due_at
from understudy.sessions.knowledge import TOUCHING, Knowledge, boxes_of
from understudy.sessions.looks import FIRST, LookPurchase, dearer, next_look
from understudy.sessions.marginals_class import MarginalsPurchase, can_buy
from understudy.sessions.planned_sums import SUM_SHARE
from understudy.sessions.product_class import ProductPurchase, is_feasible
from understudy.sessions.purchase import Purchase
from understudy.sessions.ski_rental import MOST_OF_BETA, MarginalsSkiRental, SkiRental, cell_of
from understudy.sessions.terms import AllMarginals, Announced, Conjunctions, Terms

HISTOGRAMS = 0.1
"""Part of β for histograms whose bands hold for all ranges, or all sets, of an attribute's cells at once."""

CELLS = 0.02
"""Part of β for histograms whose bands hold for single cells only."""

TOTAL = 0.02
"""Part of β for the number of rows, where that is private."""

ANNOUNCED = 0.9
"""Part of what is left of β that goes to the classes that were announced."""

HISTOGRAMS_COST = 0.1
"""Histograms may cost together this part of the price of all expected questions, each bought by itself."""

MAIN = 0.4
"""A class that gets more than this part of what is left of β is a main class: little else was paid for."""

CELL_COUNTS = 0.5
"""The most of what is left of β that goes to the class of all marginals where counts of single cells lead to it:
conjunctions of other kinds come beside them."""

MEMBERS = 2.0
"""How many questions the ranges that a quantile needs are expected to answer, for each of their cells."""

LEAST_SHARE = 1e-250
"""A share of β below this buys nothing: the tails of noise are not computed so far out."""

_KINDS = {
    kind.kind: kind
    for kind in (
        RowCountPurchase,
        HistogramPurchase,
        ProductPurchase,
        MarginalsPurchase,
        DirectPurchase,
        LookPurchase,
        CompletingPurchase,
    )
}


OwnCounts = DirectPurchase | LookPurchase | CompletingPurchase
"""A purchase of the counts of one question, and of nothing ahead."""


class PurchasePolicy:
    """Plans purchases, and keeps account of β and of what was bought.

    Promise     The shares of β of all purchases that are planned and noted add up to at most β.
    Why         Each share is a fraction of `left`, from which it is taken before the next one is planned; rounding
                is always downwards.
    Privacy     Plans are functions of the declaration, the terms, the questions and released values alone.
    Cost        At every moment at most 3/2 of what the questions so far would have cost by themselves, and three
                single counts (`allowance`). Within that, what is bought ahead is chosen by `ski_rental`.
    """

    _planned_ahead: tuple[Purchase, ...] = ()
    """What was planned ahead and not made yet; only a copy that plans further has any (`after`)."""

    def __init__(self, calibrator: Calibrator, terms: Terms, nothing_released: Knowledge) -> None:
        self._calibrator = calibrator
        self._terms = terms
        self._ski_rental = SkiRental(calibrator)
        self._allowance = Allowance(calibrator, terms, nothing_released)
        self._histograms: set[tuple[str, bool]] = set()
        self._histograms_cost = 0.0
        self._offered: dict[tuple[str, bool], HistogramPurchase] = {}
        self._rows_bought = False
        self._orders: set[int] = set()
        self._marginals_rental = MarginalsSkiRental()
        self._cells_rental = MarginalsSkiRental(of_cells=True)
        self._histogram_rents = HistogramRents(calibrator)
        self._has_main_class = False
        self._counts_bought = 0
        self._paid = 0.0
        """What counts and classes, which share `left`, have cost so far, in ε or ρ."""
        beta = float(terms.beta)
        # What is left of β for classes and single questions, as a probability.
        self.left = beta * (1 - HISTOGRAMS - CELLS - (0.0 if calibrator.relation.rows_are_public else TOTAL))
        self._domain = calibrator.curator.domain

    def read(self, plan: Mapping[str, Any]) -> Purchase:
        """The purchase that a plan in the journal describes."""
        return _KINDS[plan["kind"]].read(self._calibrator, plan)

    def after(self, purchases: Iterable[Purchase]) -> Self:
        """A copy of the policy after purchases that are planned: their shares of β are gone, and what is planned
        ahead counts against the allowance. Rents are those of purchases that were made.
        """
        other = copy(self)
        other._histograms = set(self._histograms)
        for purchase in purchases:
            other.note(purchase)
            asked_for = isinstance(purchase, ProductPurchase) and purchase.asked_for
            if not isinstance(purchase, OwnCounts | RowCountPurchase) and not asked_for:
                other._planned_ahead = (*other._planned_ahead, purchase)
        return other

    # ---- what was bought

    @singledispatchmethod
    def note(self, purchase: Purchase) -> None:
        """Take a purchase's share from β: it stands in the journal, and the share is gone whatever comes of it.

        The number of rows and histograms have parts of β of their own, and are bought once each.
        """
        self._take(purchase.share)

    def _take(self, share: float) -> None:
        self.left = max(nextafter(self.left - share, 0.0), 0.0)

    @note.register
    def _(self, purchase: ProductPurchase) -> None:
        self._has_main_class = self._has_main_class or self._is_main(purchase)
        self._take(purchase.share)

    @note.register
    def _(self, purchase: DirectPurchase) -> None:
        if not purchase.is_certain:
            self._counts_bought += 1
            self._take(purchase.share)

    @note.register
    def _(self, purchase: LookPurchase) -> None:
        self._counts_bought += not purchase.second
        self._take(purchase.share)

    @note.register
    def _(self, purchase: CompletingPurchase) -> None:
        self._counts_bought += 1

    @note.register
    def _(self, purchase: RowCountPurchase) -> None:
        self._rows_bought = True

    @note.register
    def _(self, purchase: HistogramPurchase) -> None:
        self._histograms.add((purchase.name, purchase.plain_cells))
        self._histograms_cost += float(purchase.price.amount)

    @singledispatchmethod
    def made(self, purchase: Purchase, charged: Cost) -> None:
        """Remember a purchase that was made, and what the ledger charged for it, for later choices."""
        self._bought_ahead(purchase)

    @made.register
    def _(self, purchase: RowCountPurchase, charged: Cost) -> None:
        pass  # every session needs it, one that buys nothing ahead too

    @made.register
    def _(self, purchase: ProductPurchase, charged: Cost) -> None:
        self._paid += float(purchase.price.amount)
        self._ski_rental.bought(purchase)
        if purchase.asked_for:
            self._allowance.asked_for(self._event(purchase), purchase.by, purchase.where)
        elif not self._is_announced(Conjunctions(purchase.by)) or purchase.where.factors:
            self._bought_ahead(purchase)

    @made.register
    def _(self, purchase: MarginalsPurchase, charged: Cost) -> None:
        self._paid += float(purchase.price.amount)
        self._orders.add(purchase.order)
        if not self._is_announced(AllMarginals(purchase.order)):
            self._bought_ahead(purchase)

    @made.register
    def _(self, purchase: DirectPurchase, charged: Cost) -> None:
        self._allowance.asked(purchase.marginal)
        self._rented(purchase, charged, again=False)

    @made.register
    def _(self, purchase: LookPurchase, charged: Cost) -> None:
        if not purchase.second:
            self._allowance.asked(purchase.marginal)
        self._rented(purchase, charged, again=purchase.second)

    @made.register
    def _(self, purchase: CompletingPurchase, charged: Cost) -> None:
        self._allowance.asked(purchase.marginal)
        self._rented(purchase, charged, again=False)

    def _rented(self, purchase: OwnCounts, charged: Cost, *, again: bool) -> None:
        """Remember what a question's own counts cost, as rent of the classes that would have answered it."""
        marginal, price = purchase.marginal, purchase.price
        if not self._terms.is_direct:
            self._allowance.paid(self._event(purchase))
        self._paid += float(price.amount)
        if marginal.moment is not None or _is_cut(marginal) or self._terms.is_direct:
            return  # no class of counts of declared cells would have answered it
        self._histogram_rents.pay(marginal, float(price.amount))
        if marginal.by:
            self._marginals_rental.pay(marginal, price.amount, again=again)
        elif (box := Box.of(marginal.where)) is not None:
            self._ski_rental.pay(box, price, charged.amount, again=again)
            if (cell := cell_of(box)) is not None:
                self._cells_rental.pay(cell, charged.amount, again=again)

    def _is_announced(self, announced: Announced) -> bool:
        """Whether a class stands in the session's terms: then it was asked for, and not bought ahead."""
        if isinstance(announced, AllMarginals):
            return announced in self._terms.classes
        names = {self._domain.clique(c.names) for c in self._terms.classes if isinstance(c, Conjunctions)}
        return announced.names in names

    def _bought_ahead(self, purchase: Purchase) -> None:
        if not self._terms.is_direct:
            self._allowance.bought(self._event(purchase))

    def _event(self, purchase: Purchase) -> Event:
        return self._calibrator.charged(purchase.event(self._calibrator))

    def answered(self, marginal: Marginal) -> None:
        """Remember a question that was answered by what was bought for it, its own counts left out."""
        self._allowance.asked(marginal)

    def served(self, knowledge: Knowledge, marginal: Marginal) -> None:
        """Remember a question that was answered for nothing: classes that do so have paid off."""
        self._allowance.asked(marginal)
        alone = not (marginal.by or marginal.moment or _is_cut(marginal))
        box = Box.of(marginal.where) if alone else None
        if box is not None:
            self._ski_rental.serve(box, self._single_price, knowledge)

    # ---- planning

    def opening(self, knowledge: Knowledge) -> Purchase | None:
        """The next purchase that comes before any question: the private number of rows, or an announced class.

        None where all of them were bought. Raises a `QueryError` where an announced class is too large.
        """
        if not self._calibrator.relation.rows_are_public and not self._rows_bought:
            return RowCountPurchase.of(self._calibrator, float(self._terms.beta) * TOTAL)
        for i, announced in enumerate(self._terms.classes):
            share = rounded(self.left * ANNOUNCED / (len(self._terms.classes) - i))
            if isinstance(announced, Conjunctions):
                purchase = self._open_product(knowledge, announced, share)
            else:
                purchase = self._open_marginals(knowledge, announced.order, share)
            if purchase is not None:
                return purchase
        return None

    def _open_product(self, knowledge: Knowledge, announced: Conjunctions, share: float) -> Purchase | None:
        by, everyone = self._domain.clique(announced.names), Box(self._domain, {})
        if knowledge.holds_class(by, everyone.key):
            return None
        purchase = (
            ProductPurchase.of(self._calibrator, by, everyone.query, share)
            if is_feasible(self._calibrator, by)
            else None
        )
        if purchase is None:
            raise QueryError(
                f"the class {announced} is too large to be bought at once: announce fewer attributes, or none"
            )
        return purchase

    def _open_marginals(self, knowledge: Knowledge, order: int, share: float) -> Purchase | None:
        if not can_buy(self._calibrator, order):
            raise QueryError(
                f"marginals of {order} attributes are bought at once only up to order 3, of few enough cells, "
                "with a delta in the budget and under `neighbours: replace`: announce fewer, or none"
            )
        if any(bought >= order for bought in self._orders):
            return None
        for attribute in self._domain:
            if attribute.size > 1 and (attribute.name, True) not in self._histograms:
                return self._histogram(attribute.name, plain=True)
        return MarginalsPurchase.of(self._calibrator, knowledge, order, share)

    def _permits(self, purchases: Sequence[Purchase], *, asked: int) -> bool:
        """Whether the allowance permits purchases ahead, beside those planned. Histograms have β of their own.

        What may follow is reckoned with: falling shares of β for counts, in two looks; or, after a main class,
        even shares in one look, which are less dear in the end (`_are_shares_even`). The allowance does not permit
        what the ledger has no price for, such as little noise under a `gdp` filter.
        """
        of_their_own = (HistogramPurchase, RowCountPurchase)
        left = self.left - sum(p.share for p in purchases if not isinstance(p, of_their_own))
        events = [self._event(purchase) for purchase in (*self._planned_ahead, *purchases)]
        expected = self._terms.ahead(asked) + 1
        shares = [least_share(left, self._counts_bought, expected) * (1 - FIRST)]
        if any(self._is_main(purchase) for purchase in purchases):
            shares.append(left / expected)
        try:
            return any(
                self._allowance.permits(
                    events, least_share=least, dearer=dearer(self._calibrator), asked=asked
                )
                for least in shares
            )
        except RefusedError:
            return False

    def _is_main(self, purchase: Purchase) -> bool:
        """Whether a class gets much of what is left of β, since little was paid beside it."""
        return isinstance(purchase, ProductPurchase) and purchase.share > MAIN * self.left

    def _are_shares_even(self, *, asked: int) -> bool:
        """Whether counts get even shares of β, and are bought in one look.

        They do after a main class, for which the allowance may have reckoned with that: few counts follow it, and
        the dearest of them decides when it may be bought. When the allowance permits falling shares again, they
        get these.
        """
        return self._terms.is_direct or (self._has_main_class and not self._permits([], asked=asked))

    def preparations(self, marginal: Marginal, *, asked: int) -> list[Purchase]:
        """Histograms to buy before a question: of its attributes, while they cost little beside all questions.

        They bound every conjunction (Fréchet), so that many later questions need no purchase.
        """
        box = boxes_of(marginal)
        if box is None or self._terms.is_direct or (self._ski_rental.is_small and not marginal.by):
            return []
        histograms = list[Purchase]()
        cost = self._histograms_cost
        for name in marginal.clique:
            plain = bool(marginal.by)
            if self._domain[name].size < 2 or not self._histograms.isdisjoint({(name, False), (name, plain)}):
                continue
            worth = self._histogram_rents.worth(
                name, plain=plain, asked=asked, ahead=self._terms.ahead(asked)
            )
            if worth < due_at(0.0, self._single_price):
                continue  # whatever it costs: its price, which takes long to find, is not needed
            histogram = self._histogram(name, plain=plain)
            if worth < due_at(float(histogram.price.amount), self._single_price):
                continue
            cost += float(histogram.price.amount)
            if cost <= HISTOGRAMS_COST * self._single_price * self._terms.queries and self._permits(
                [*histograms, histogram], asked=asked
            ):
                histograms.append(histogram)
        return histograms

    def _histogram(self, name: str, *, plain: bool) -> HistogramPurchase:
        """The histogram of an attribute, for its cells only where `plain`: always the same one."""
        if (name, plain) not in self._offered:
            make = HistogramPurchase.cells if plain else HistogramPurchase.of
            share = float(self._terms.beta) / len(self._domain) * (CELLS if plain else HISTOGRAMS)
            self._offered[name, plain] = make(self._calibrator, name, share, self._single_price)
        return self._offered[name, plain]

    def ranges(
        self, knowledge: Knowledge, marginal: Marginal, name: str, *, asked: int
    ) -> ProductPurchase | None:
        """All ranges of an attribute in each group of a marginal by it, which a quantile of the attribute needs.

        The errors of cells, of which a quantile is made else, add up. None where running sums are known well
        enough, or the class is dearer than `MOST` single counts or too large, or is no class of declared cells.
        """
        box = boxes_of(marginal)
        if box is None or self._terms.is_direct or not self._calibrator.is_ordered(name):
            return None
        known = running_sums(knowledge, marginal, name)
        if known is None or not bool((known[1] - known[0] > 2 * self._calibrator.width + TOUCHING).any()):
            return None
        kinds: tuple[Kind, ...] = tuple("ranges" if each == name else "cells" for each in marginal.by)
        if not is_feasible(self._calibrator, marginal.by, kinds):
            return None
        likely = MEMBERS * sum(marginal.shape)
        share = coarse(self.left * min(0.5, likely / (self._terms.ahead(asked) + 1)))
        offer = ProductPurchase.of(self._calibrator, marginal.by, box.query, share, kinds)
        if offer is None or float(offer.price.amount) > MOST * self._single_price:
            return None
        return replace(offer, asked_for=True)

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
        noise, certain = self._terms.noise, self._certain(marginal)
        if noise == BOUNDED and marginal.moment is None and marginal.where.is_counting:
            if certain is None:
                self._calibrator.curator.calibration.price_of(
                    marginal, error=self._calibrator.width, certain=True
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
        if self._terms.noise not in ("auto", BOUNDED):
            return None
        spare = 1 if self._terms.noise == BOUNDED else SPARE
        return DirectPurchase.certain(self._calibrator, marginal, spare=spare)

    def _usual(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> DirectPurchase:
        """The counts with the usual noise, and with a part of what is left of β (`beta_spending`).

        Raises an `InsufficientBudgetError` in the currency `beta` where too little of β is left.
        """
        expected = self._terms.ahead(asked) + 1
        are_even = self._are_shares_even(asked=asked)
        part = 1 / expected if are_even else part_of_left(self._counts_bought, expected)
        share = rounded(self.left * part)
        if share < LEAST_SHARE:
            raise InsufficientBudgetError(requested=inf, remaining=0.0, currency="beta")
        planned = 0.0 if are_even else self._share_of_sum(knowledge, marginal, share, expected)
        return DirectPurchase.of(self._calibrator, knowledge, marginal, share, of_sum=planned)

    def _share_of_sum(self, knowledge: Knowledge, marginal: Marginal, share: float, expected: int) -> float:
        """The part of a count's share of β that goes to the sum that it plans: none unless that is worth it.

        What is left to the count itself is no less than the least share that any count can still get. So a count
        with a sum is no dearer than the allowance takes counts to be.
        """
        if not knowledge.sums.are_worth_it:
            return 0.0
        planned = rounded(SUM_SHARE * share)
        least = least_share(self.left, self._counts_bought, expected)
        return planned if share - planned >= least and can_plan_sum(self._calibrator, marginal) else 0.0

    def counts(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> OwnCounts:
        """The counts of a question bought by themselves: in two looks, where one is likely to be enough; or with
        less precision, where they complete a sum that was planned (`completing`).

        Bounded noise takes the place of a look only where it costs no more than that look alone. Raises as
        `direct` does.
        """
        second = next_look(knowledge, marginal)
        if second is not None:
            certain = self._certain(marginal)
            return second if certain is None or second.price.amount < certain.price.amount else certain
        usual, certain = self._offers(knowledge, marginal, asked=asked)
        direct = cheaper(usual, certain)
        if usual is None or self._are_shares_even(asked=asked):
            return direct
        look = LookPurchase.of(self._calibrator, knowledge, usual)
        if look is not None:
            return direct if direct.is_certain and direct.price.amount <= look.price.amount else look
        completing = CompletingPurchase.of(self._calibrator, knowledge, marginal)
        return completing if completing and completing.price.amount < direct.price.amount else direct

    def purchase(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> Purchase:
        """The purchase that answers a question: its counts by themselves, or a class that contains it.

        Raises as `direct` does.
        """
        ahead, direct = self._terms.ahead(asked), self.counts(knowledge, marginal, asked=asked)
        if self._terms.is_direct or marginal.moment is not None or _is_cut(marginal):
            return direct
        if marginal.by:
            price = direct.price.amount
            marginals = self._marginals(knowledge, self._marginals_rental, marginal, price, asked=asked)
            return marginals or direct
        box = boxes_of(marginal)
        if box is None:
            return direct
        if (cell := cell_of(box)) is not None:
            price = direct.price.amount
            marginals = self._marginals(knowledge, self._cells_rental, cell, price, asked=asked)
            if marginals is not None:
                return marginals
        product = self._ski_rental.choose(
            box, direct.price, paid=self._paid_before(), left=self.left, asked=asked, ahead=ahead
        )
        return product if product is not None and self._permits([product], asked=asked) else direct

    def _marginals(
        self,
        knowledge: Knowledge,
        rental: MarginalsSkiRental,
        marginal: Marginal,
        price: Number,
        *,
        asked: int,
    ) -> MarginalsPurchase | None:
        """The class of all marginals, where the rent of questions like this one makes it due."""
        ahead = self._terms.ahead(asked)
        order = 0 if self._orders else rental.due(self._calibrator, marginal, price, asked=asked, ahead=ahead)
        if not order:
            return None
        rent = rental.rent + float(price)
        part = part_of_class(rent, self._paid_before() + float(price) - rent)
        share = rounded(self.left * min(part, CELL_COUNTS if rental.of_cells else MOST_OF_BETA))
        offer = MarginalsPurchase.of(self._calibrator, knowledge, order, share)
        if offer is None or not rental.is_worth(offer.price):
            return None
        return offer if self._permits([offer], asked=asked) else None

    def _paid_before(self) -> float:
        """What counts and classes have cost so far, and what parts of β for classes reckon with beside."""
        return self._paid + BEFORE * self._single_price

    @cached_property
    def _single_price(self) -> float:
        """The price of one count with an even part of β, in ε or ρ: what other prices are compared with."""
        share = rounded(float(self._terms.beta) / self._terms.queries)
        return float(self._calibrator.price_of_counts(self._calibrator.single_count, share, 1).amount)


def cheaper(usual: DirectPurchase | None, certain: DirectPurchase | None) -> DirectPurchase:
    """The one that costs less; the usual one where they cost the same. One of them is there."""
    if usual is None or (certain is not None and certain.price.amount < usual.price.amount):
        assert certain is not None
        return certain
    return usual


def _is_cut(marginal: Marginal) -> bool:
    """Whether a question cuts declared cells, of which classes are made."""
    return isinstance(marginal.domain, RefinedDomain)
