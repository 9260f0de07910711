"""What a session buys next, and which part of β goes with it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import inf, nextafter
from typing import Any

from understudy.errors import InsufficientBudgetError, QueryError
from understudy.privacy.cost import Cost
from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.histogram import HistogramPurchase, RowCountPurchase
from understudy.sessions.knowledge import Knowledge, boxes_of
from understudy.sessions.marginals_class import MarginalsPurchase, can_buy
from understudy.sessions.product_class import ProductPurchase, is_feasible
from understudy.sessions.purchase import Calibrator, Purchase, rounded
from understudy.sessions.ski_rental import MarginalsSkiRental, SkiRental
from understudy.sessions.terms import Conjunctions, Terms

HISTOGRAMS = 0.1
"""Part of β for histograms of single attributes, good for all sets of cells at once."""

CELLS = 0.02
"""Part of β for those that are good for single cells only."""

TOTAL = 0.02
"""Part of β for the number of rows, where that is private."""

ANNOUNCED = 0.9
"""Part of the rest that goes to the classes that were announced."""

GROUP_BYS = 0.75
"""Part of what is left that goes to the class of all marginals: it will answer most of what is asked."""

WARM = 0.1
"""Histograms may cost together as much as this part of all questions asked directly."""

LEAST_SHARE = 1e-250
"""A share of β below this buys nothing: tails so thin are not computed."""

_KINDS = {
    kind.kind: kind
    for kind in (RowCountPurchase, HistogramPurchase, ProductPurchase, MarginalsPurchase, DirectPurchase)
}


class PurchasePolicy:
    """Plans purchases from public and released values alone, and keeps the books of β."""

    def __init__(self, calibrator: Calibrator, terms: Terms) -> None:
        self._calibrator = calibrator
        self._terms = terms
        self._ski_rental = SkiRental(calibrator)
        self._histograms: set[tuple[str, bool]] = set()
        self._warm = 0.0
        self._rows_bought = False
        self._orders: set[int] = set()
        self._marginals_rental = MarginalsSkiRental()
        beta = float(terms.beta)
        self.left = beta * (1 - HISTOGRAMS - CELLS - (0.0 if calibrator.relation.rows_are_public else TOTAL))
        self._domain = calibrator.curator.domain

    def read(self, plan: Mapping[str, Any]) -> Purchase:
        """A purchase that was written down."""
        return _KINDS[plan["kind"]].read(self._calibrator, plan)

    # ---- the books

    def note(self, purchase: Purchase) -> None:
        """A purchase is about to be made: its part of β is gone, whatever happens."""
        if isinstance(purchase, RowCountPurchase):
            self._rows_bought = True
        elif isinstance(purchase, HistogramPurchase):
            self._histograms.add((purchase.name, purchase.plain_cells))
            self._warm += float(purchase.price.amount)
        else:
            self.left = max(nextafter(self.left - purchase.share, 0.0), 0.0)

    def made(self, purchase: Purchase, charged: Cost) -> None:
        """A purchase was made, and charged."""
        if isinstance(purchase, ProductPurchase):
            self._ski_rental.bought(purchase)
        elif isinstance(purchase, MarginalsPurchase):
            self._orders.add(purchase.order)
        elif isinstance(purchase, DirectPurchase) and purchase.marginal.by:
            self._marginals_rental.pay(purchase.marginal, purchase.price)
        elif isinstance(purchase, DirectPurchase) and not purchase.marginal.by:
            box = Box.of(purchase.marginal.where)
            if box is not None and not self._terms.is_direct:
                self._ski_rental.pay(box, purchase.price, charged.amount)

    def served(self, knowledge: Knowledge, marginal: Marginal) -> None:
        """A question was answered for nothing."""
        box = None if marginal.by else Box.of(marginal.where)
        if box is not None:
            self._ski_rental.serve(box, self._unit, knowledge)

    # ---- planning

    def opening(self, knowledge: Knowledge) -> Purchase | None:
        """The next purchase that comes before any question."""
        if not self._calibrator.relation.rows_are_public and not self._rows_bought:
            return RowCountPurchase.of(self._calibrator, float(self._terms.beta) * TOTAL)
        for i, announced in enumerate(self._terms.classes):
            share = rounded(self.left * ANNOUNCED / (len(self._terms.classes) - i))
            if isinstance(announced, Conjunctions):
                found = self._open_grids(knowledge, announced, share)
            else:
                found = self._open_marginals(knowledge, announced.order, share)
            if found is not None:
                return found
        return None

    def _open_grids(self, knowledge: Knowledge, announced: Conjunctions, share: float) -> Purchase | None:
        by, everyone = self._domain.clique(announced.names), Box(self._domain, {})
        if knowledge.holds_class(by, everyone.key):
            return None
        found = (
            ProductPurchase.of(self._calibrator, by, everyone.query, share)
            if is_feasible(self._calibrator, by)
            else None
        )
        if found is None:
            raise QueryError(
                f"the class {announced} is too large to be bought at once: announce fewer attributes, or none"
            )
        return found

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
                part = float(self._terms.beta) * CELLS / len(self._domain)
                return HistogramPurchase.cells(self._calibrator, attribute.name, part, self._unit)
        return MarginalsPurchase.of(self._calibrator, knowledge, order, share)

    def preparations(self, knowledge: Knowledge, marginal: Marginal) -> list[Purchase]:
        """Histograms of the attributes of a question, while they cost little beside all questions."""
        box = boxes_of(marginal)
        if box is None or self._terms.is_direct or (self._ski_rental.is_small and not marginal.by):
            return []
        beta, found = float(self._terms.beta) / len(self._domain), []
        spent = self._warm
        for name in marginal.clique:
            plain = bool(marginal.by)
            if self._domain[name].size < 2 or not self._histograms.isdisjoint({(name, False), (name, plain)}):
                continue
            make = HistogramPurchase.cells if plain else HistogramPurchase.of
            one = make(self._calibrator, name, beta * (CELLS if plain else HISTOGRAMS), self._unit)
            spent += float(one.price.amount)
            if spent <= WARM * self._unit * self._terms.queries:
                found.append(one)
        return found

    def _ahead(self, asked: int) -> int:
        """Questions that are still expected."""
        return max(self._terms.queries - asked + 1, self._terms.queries // 10, 1)

    def fresh(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> DirectPurchase:
        """Fresh noise for a question, with an even part of what is left of β."""
        share = rounded(self.left / (self._ahead(asked) + 1))
        if share < LEAST_SHARE:
            raise InsufficientBudgetError(requested=inf, remaining=0.0, currency="beta")
        return DirectPurchase.of(self._calibrator, knowledge, marginal, share)

    def purchase(self, knowledge: Knowledge, marginal: Marginal, *, asked: int) -> Purchase:
        """Fresh noise for a question, or a class that holds it."""
        ahead, fresh = self._ahead(asked), self.fresh(knowledge, marginal, asked=asked)
        if self._terms.is_direct:
            return fresh
        if marginal.by:
            order = self._marginals_rental.due(
                self._calibrator, marginal, fresh.price, asked=asked, ahead=ahead
            )
            if order and not self._orders:
                found = MarginalsPurchase.of(
                    self._calibrator, knowledge, order, rounded(self.left * GROUP_BYS)
                )
                if found is not None and self._marginals_rental.is_worth(found.price):
                    return found
            return fresh
        box = boxes_of(marginal)
        if box is None:
            return fresh
        found = self._ski_rental.choose(box, fresh.price, knowledge, left=self.left, asked=asked, ahead=ahead)
        return found or fresh

    @cached_property
    def _unit(self) -> float:
        """The price of one question asked directly."""
        share = rounded(float(self._terms.beta) / self._terms.queries)
        return float(self._calibrator.price_of_counts(self._calibrator.one, share, 1).amount)
