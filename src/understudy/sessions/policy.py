"""What a session buys next: the counts of a question by themselves, or something that answers others as well.

What was bought, and what is left of β, is kept by the `purchase_record`; what own counts would cost is found by
`own_counts`, and what may be bought ahead by `permission`. Here it is decided which of them is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.rational import Number
from understudy.sessions.beta_account import CELLS, HISTOGRAMS, BetaAccount
from understudy.sessions.beta_spending import BEFORE, LEAST_SHARE, part_of_class
from understudy.sessions.calibrator import Calibrator, coarse, rounded
from understudy.sessions.completing import CompletingPurchase
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.families import Kind
from understudy.sessions.histogram import HistogramPurchase
from understudy.sessions.histogram_rent import due_at
from understudy.sessions.knowledge import Knowledge, boxes_of
from understudy.sessions.looks import LookPurchase, was_begun
from understudy.sessions.marginals_class import MarginalsPurchase
from understudy.sessions.marginals_rental import MarginalsSkiRental, cell_of
from understudy.sessions.named_classes import check_class, covers, product_class
from understudy.sessions.number_of_rows import NumberOfRows, RowCountPurchase
from understudy.sessions.own_counts import OwnCounts, OwnCountsOffers
from understudy.sessions.permission import Permission
from understudy.sessions.product_class import ProductPurchase, is_feasible
from understudy.sessions.purchase import Purchase
from understudy.sessions.purchase_record import PurchaseRecord, is_cut
from understudy.sessions.ski_rental import MOST_OF_BETA
from understudy.sessions.small_groups import MOST_OF_CLASS, GroupCountPurchase
from understudy.sessions.terms import Announced, Conjunctions, Terms
from understudy.sessions.within_error import WithinPurchase

ANNOUNCED = 0.9
"""Part of what is left of β that goes to the classes that were announced."""

ORDERED = 0.5
"""Part of what is left of β that goes to a class that is ordered later, or expected."""

HISTOGRAMS_COST = 0.1
"""Histograms may cost together this part of the price of all expected questions, each bought by itself."""

CELL_COUNTS = 0.5
"""The most of what is left of β that goes to the class of all marginals where counts of single cells lead to it:
conjunctions of other kinds come beside them."""

MEMBERS = 2.0
"""How many questions the ranges that a quantile needs are expected to answer, for each of their cells."""

_KINDS = {
    kind.kind: kind
    for kind in (
        RowCountPurchase,
        HistogramPurchase,
        GroupCountPurchase,
        ProductPurchase,
        MarginalsPurchase,
        DirectPurchase,
        LookPurchase,
        CompletingPurchase,
        WithinPurchase,
    )
}


class PurchasePolicy:
    """Says which purchases come next, by what was bought so far.

    Promise     The shares of β of all purchases that are planned and noted add up to at most β (`beta_account`).
    Privacy     Plans are functions of the declaration, the terms, the questions and released values alone.
    Cost        At every moment at most 3/2 of what the questions so far would have cost by themselves, and three
                single counts (`allowance`). Within that, what is bought ahead is chosen by `ski_rental`.
    """

    def __init__(self, calibrator: Calibrator, terms: Terms, nothing_released: Knowledge) -> None:
        self._calibrator = calibrator
        self._terms = terms
        self.record = PurchaseRecord(calibrator, terms, nothing_released)
        self._allowance, self._ski_rental = self.record.allowance, self.record.ski_rental
        self._marginals_rental, self._cells_rental = self.record.marginals_rental, self.record.cells_rental
        self._permission = Permission(calibrator, terms, self._allowance, self.beta)
        self._own_counts = OwnCountsOffers(calibrator, terms, self._permission)
        self._offered: dict[tuple[str, bool, float], HistogramPurchase] = {}
        self._tried: dict[int, float] = {}
        self._saved_for = 0
        self._domain = calibrator.curator.domain

    @property
    def beta(self) -> BetaAccount:
        """What is left of β after the purchases so far."""
        return self.record.beta

    def read(self, plan: Mapping[str, Any]) -> Purchase:
        """The purchase that a plan in the journal describes."""
        return _KINDS[plan["kind"]].read(self._calibrator, plan)

    def after(self, purchases: Iterable[Purchase]) -> Self:
        """A copy of the policy after purchases that are planned: their shares of β are gone, and what is planned
        ahead counts against the allowance. Rents are those of purchases that were made.
        """
        other, planned = copy(self), tuple(purchases)
        other.record = self.record.after(planned)
        ahead = tuple(filter(_is_ahead, planned))
        other._permission = replace(
            self._permission, beta=other.beta, planned=(*self._permission.planned, *ahead)
        )
        other._own_counts = replace(self._own_counts, permission=other._permission)
        return other

    # ---- planning

    def opening(self, knowledge: Knowledge) -> Purchase | None:
        """The next purchase that comes before any question: an announced class.

        None where all of them were bought. Raises a `QueryError` where an announced class is too large.
        """
        for i, announced in enumerate(self._terms.classes):
            share = rounded(self.beta.left * ANNOUNCED / (len(self._terms.classes) - i))
            purchase = self._named(knowledge, announced, share)
            if purchase is not None:
                return purchase
        return None

    def ordered(self, knowledge: Knowledge, named: Announced) -> Purchase | None:
        """The next purchase for a class that is ordered (`named_classes`); None where it was bought.

        A tenth of β stays for other questions, however many classes are ordered. Raises a `QueryError` where the
        class is too large.
        """
        spare = max(self.beta.left - 0.1 * float(self._terms.beta), 0.02 * self.beta.left)
        purchase = self._named(knowledge, named, rounded(ORDERED * spare))
        marked = isinstance(purchase, ProductPurchase | MarginalsPurchase)
        return replace(purchase, ordered=True) if marked else purchase

    def _named(self, knowledge: Knowledge, named: Announced, share: float) -> Purchase | None:
        """The next purchase for a class that somebody named; before marginals come the cells of each attribute."""
        if isinstance(named, Conjunctions):
            return product_class(self._calibrator, knowledge, named, share)
        check_class(self._calibrator, named)
        if any(bought >= named.order for bought in self.record.orders):
            return None
        for attribute in self._domain:
            if attribute.size > 1 and (attribute.name, True) not in self.record.histograms:
                return self._histogram(attribute.name, plain=True)
        return MarginalsPurchase.of(self._calibrator, knowledge, named.order, share)

    def _awaited(self, marginal: Marginal) -> int | None:
        """The place in the terms of an expected class that contains a question, and was not bought so far."""
        for place, named in enumerate(self._terms.expected):
            held = (
                self._ski_rental.holds(self._domain.clique(named.names))
                if isinstance(named, Conjunctions)
                else any(bought >= named.order for bought in self.record.orders)
            )
            if not held and covers(self._calibrator, named, marginal):
                return place
        return None

    def _expected(self, knowledge: Knowledge, place: int, *, asked: int) -> Purchase | None:
        """An expected class, as soon as it may be bought; None before.

        Its price takes long to find: it is found again only when what was paid has grown by a fiftieth.
        """
        if self.record.paid < 1.02 * self._tried.get(place, -1.0):
            return None
        named, share = self._terms.expected[place], coarse(self.beta.left * ORDERED)
        if isinstance(named, Conjunctions):
            offer = product_class(self._calibrator, knowledge, named, share)
        else:
            offer = MarginalsPurchase.of(self._calibrator, knowledge, named.order, share)
        if offer is not None and self._permission.permits([offer], asked=asked):
            return offer
        self._tried[place] = self.record.paid
        return None

    def preparations(self, marginal: Marginal, *, asked: int) -> list[Purchase]:
        """Histograms to buy before a question: of its attributes, while they cost little beside all questions.

        They bound every conjunction (Fréchet), so that many later questions need no purchase.
        """
        box = boxes_of(marginal)
        if box is None or self._terms.is_direct or (self._ski_rental.is_small and not marginal.by):
            return []
        if self._awaited(marginal) is not None or (not marginal.by and self._is_saved_for(box)):
            return []
        histograms = list[Purchase]()
        cost = self.record.histograms_cost
        for name in marginal.clique:
            plain = bool(marginal.by)
            is_known = not self.record.histograms.isdisjoint({(name, False), (name, plain)})
            if self._domain[name].size < 2 or is_known:
                continue
            worth = self.record.histogram_rents.worth(
                name, plain=plain, asked=asked, ahead=self._terms.ahead(asked)
            )
            if worth < due_at(0.0, self._single_price):
                continue  # whatever it costs: its price, which takes long to find, is not needed
            histogram = self._histogram(name, plain=plain)
            if worth < due_at(float(histogram.price.amount), self._single_price):
                continue
            cost += float(histogram.price.amount)
            if (
                cost <= HISTOGRAMS_COST * self._single_price * self._terms.queries
                and self._permission.permits([*histograms, histogram], asked=asked)
            ):
                histograms.append(histogram)
        return histograms

    def _histogram(self, name: str, *, plain: bool) -> HistogramPurchase:
        """The histogram of an attribute, for its cells only where `plain`: the same one for equal shares of β."""
        part = (CELLS if plain else HISTOGRAMS) / len(self._domain)
        share = coarse(max(self.beta.left * part, LEAST_SHARE))
        if (name, plain, share) not in self._offered:
            make = HistogramPurchase.cells if plain else HistogramPurchase.of
            self._offered[name, plain, share] = make(self._calibrator, name, share, self._single_price)
        return self._offered[name, plain, share]

    def ranges(self, marginal: Marginal, name: str, *, most: float, asked: int) -> ProductPurchase | None:
        """All ranges of an attribute in each group of a marginal by it, which tell every quantile there.

        None where they cost more than `most` single counts, or are too many, or not of declared cells. A quantile
        buys them where they cost less than counts that search for it, also in a direct session: so they are asked
        for, and not bought ahead.
        """
        box = boxes_of(marginal)
        if box is None or not self._calibrator.is_ordered(name):
            return None
        kinds: tuple[Kind, ...] = tuple("ranges" if each == name else "cells" for each in marginal.by)
        if not is_feasible(self._calibrator, marginal.by, kinds):
            return None
        likely = MEMBERS * sum(marginal.shape)
        share = coarse(self.beta.left * min(0.5, likely / (self._terms.ahead(asked) + 1)))
        offer = ProductPurchase.of(self._calibrator, marginal.by, box.query, share, kinds)
        if offer is None or float(offer.price.amount) > most * self._single_price:
            return None
        return replace(offer, asked_for=True)

    def was_asked_for(self, marginal: Marginal) -> bool:
        """Whether a class on the attributes of a marginal, of its rows, was bought for a quantile."""
        return self._allowance.was_asked_for(marginal)

    def direct(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> DirectPurchase:
        """The counts of a question bought by themselves, in one look (`own_counts`, which says what is raised)."""
        return self._own_counts.direct(knowledge, marginal, asked=asked)

    def counts(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> OwnCounts:
        """The counts of a question bought by themselves, in one look or two; raises as `direct` does."""
        return self._own_counts.counts(knowledge, marginal, asked=asked)

    def within(self, marginal: Marginal, width: float, *, asked: int) -> WithinPurchase:
        """The sums of a marginal within `width` people, not the session's own width; raises as `direct` does."""
        return self._own_counts.within(marginal, width, asked=asked)

    def purchase(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> Purchase:
        """The purchase that answers a question: its counts by themselves, or a class that contains it.

        Raises as `direct` does.
        """
        ahead, direct = self._terms.ahead(asked), self.counts(knowledge, marginal, asked=asked)
        is_direct = self._terms.is_direct or isinstance(marginal, NumberOfRows)
        if is_direct or marginal.moment is not None or is_cut(marginal):
            return direct
        if (awaited := self._awaited(marginal)) is not None:  # nothing else uses up the allowance for it
            return self._expected(knowledge, awaited, asked=asked) or direct
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
            if self._is_saved_for(box):
                return direct
        product = self._ski_rental.choose(
            box, direct.price, paid=self._paid_before(), left=self.beta.left, asked=asked, ahead=ahead
        )
        if product is None:
            return direct
        new = None if was_begun(knowledge, marginal) else marginal  # with its first look it was counted
        return product if self._permission.permits([product], asked=asked, question=new) else direct

    def group_count(
        self, knowledge: Knowledge, wanted: ProductPurchase, *, asked: int
    ) -> GroupCountPurchase | None:
        """The count of the rows that a class is of, which may make the class needless (`small_groups`).

        None where that is not expected, or was tried before, and where the allowance does not permit both.
        """
        spending = self._permission.spending(asked=asked)
        part = spending.part(self.beta.counts_bought, self._terms.ahead(asked) + 1)
        share = rounded(self.beta.left_after([wanted]) * part)  # what is left beside the class
        if share < LEAST_SHARE:
            return None
        group = GroupCountPurchase.of(self._calibrator, knowledge, wanted.where, share)
        if group is None or group.box.key in self.record.groups:
            return None
        if group.price.amount > MOST_OF_CLASS * wanted.price.amount:
            return None
        return group if self._permission.permits([group, wanted], asked=asked) else None

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
        if self.record.orders:
            return None
        ahead = self._terms.ahead(asked)
        order = rental.due(self._calibrator, marginal, price, asked=asked, ahead=ahead)
        if not order:
            return None
        rent = rental.rent + float(price)
        part = part_of_class(rent, self._paid_before() + float(price) - rent)
        share = rounded(self.beta.left * min(part, CELL_COUNTS if rental.of_cells else MOST_OF_BETA))
        offer = MarginalsPurchase.of(self._calibrator, knowledge, order, share)
        if offer is None or not rental.is_worth(offer.price):
            if rental.of_cells:
                self._saved_for = 0
            return None
        if self._permission.permits([offer], asked=asked):
            return offer
        if rental.of_cells:
            wait = self._permission.wait([offer], asked=asked)
            is_saved = rental.is_worth_saving_for(offer.price, wait, ahead=ahead)
            self._saved_for = order if is_saved else 0
        return None

    def _is_saved_for(self, box: Box) -> bool:
        """Whether a count is of a cell of marginals whose class is worth its price, and waits for the allowance.

        Then nothing else is bought ahead for it: what may be spent ahead is kept for the class.
        """
        return not self.record.orders and 0 < len(box.sides) <= self._saved_for and cell_of(box) is not None

    def _paid_before(self) -> float:
        """What counts and classes have cost so far, and what parts of β for classes reckon with beside."""
        return self.record.paid + BEFORE * self._single_price

    @property
    def _single_price(self) -> float:
        return self.record.single_price


def _is_ahead(purchase: Purchase) -> bool:
    """Whether a purchase that is planned for a question is not asked for: it needs the allowance."""
    asked_for = isinstance(purchase, ProductPurchase) and purchase.asked_for
    return not asked_for and not isinstance(purchase, OwnCounts | WithinPurchase)
