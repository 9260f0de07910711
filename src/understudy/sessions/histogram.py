"""The number of rows where it is private, and histograms of single attributes: what bounds conjunctions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from understudy.mechanism.matrix.bases import HistogramDesign
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.privacy.region import located
from understudy.sessions.knowledge import Knowledge, around
from understudy.sessions.one_way import OneWay, half_widths, shape
from understudy.sessions.purchase import Calibrator, PurchaseRequest, PurchaseResult, digits

LARGEST_BAND = 0.9
"""The widest band of a histogram, as a part of the width, where that does not cost more."""

MOST = 15
"""A histogram costs no more than so many direct questions."""

LIGHT = 1.0
"""How much wider the bands of single cells are than those of direct answers."""


@dataclass(frozen=True, eq=False)
class RowCountPurchase:
    """The number of rows, to within an eighth of the width."""

    kind: ClassVar[str] = "rows"
    share: float
    error: int
    price: Price

    @classmethod
    def of(cls, calibrator: Calibrator, share: float) -> RowCountPurchase:
        error = rows_error(calibrator.width)
        return cls(
            share, error, calibrator.curator.price_of(calibrator.marginal(()), error=error, beta=share)
        )

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> RowCountPurchase:
        return cls(plan["share"], plan["error"], Price.from_plain(plan))

    def plain(self) -> dict[str, Any]:
        return {"share": self.share, "error": self.error, **self.price.as_plain()}

    def event(self, calibrator: Calibrator) -> Event:
        everyone = calibrator.marginal(())
        mechanism, _ = calibrator.curator.mechanism(everyone, self.price)
        return located(everyone, mechanism.event, calibrator.relation)

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        measured = calibrator.measure(calibrator.marginal(()), self.price, request)
        low, high = around(measured.noisy, self.error, knowledge.total)
        knowledge.total = (float(low), float(high))
        return PurchaseResult(measured.cost)


@dataclass(frozen=True, eq=False)
class HistogramPurchase:
    """One attribute, good for all ranges or all subsets of its cells at once; or (`plain_cells`) for each cell."""

    kind: ClassVar[str] = "histogram"
    name: str
    plain_cells: bool
    share: float
    price: Price

    @classmethod
    def of(cls, calibrator: Calibrator, name: str, share: float, unit: float) -> HistogramPurchase:
        """Bands a little narrower than the width, if that does not cost too many of the direct price `unit`."""
        design = _design(calibrator, name, plain_cells=False)
        mean, deviation, kappa = shape(design, share)
        spread = LARGEST_BAND * calibrator.width / float((mean + kappa * deviation).max())
        found = calibrator.price_of_spread(calibrator.marginal((name,)), (design.matrix,), spread)
        price = Price(found.currency, min(found.amount, digits(MOST * unit)))
        return cls(name, plain_cells=False, share=share, price=price)

    @classmethod
    def cells(cls, calibrator: Calibrator, name: str, share: float, unit: float) -> HistogramPurchase:
        """A look at every cell, about as good as a direct answer to each."""
        part = LIGHT if calibrator.is_pure else LIGHT**2
        price = Price(calibrator.currency, digits(2 * unit / part))
        return cls(name, plain_cells=True, share=share, price=price)

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> HistogramPurchase:
        return cls(plan["name"], plan["cells"], plan["share"], Price.from_plain(plan))

    def plain(self) -> dict[str, Any]:
        return {"name": self.name, "cells": self.plain_cells, "share": self.share, **self.price.as_plain()}

    def _strategy(self, calibrator: Calibrator) -> Strategy:
        matrix = _design(calibrator, self.name, plain_cells=self.plain_cells).matrix
        return calibrator.strategy(calibrator.marginal((self.name,)), (matrix,), self.price)

    def event(self, calibrator: Calibrator) -> Event:
        return self._strategy(calibrator).event

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        design = _design(calibrator, self.name, plain_cells=self.plain_cells)
        strategy = self._strategy(calibrator)
        found, cost = calibrator.run(strategy, request)
        released = np.array(found, np.float64)
        mechanism = strategy.mechanism
        if self.plain_cells:
            each = float(mechanism.error(self.share, cells=design.size))
            knowledge.one_ways.setdefault(self.name, OneWay(released, _sums(design, each), ordered=False))
            return PurchaseResult(cost)
        counts = design.histogram(released, knowledge.total[0])
        widths = half_widths(design, mechanism.parameter, self.share)
        knowledge.one_ways[self.name] = OneWay(counts, widths, design.ordered)
        return PurchaseResult(cost)


def rows_error(width: int) -> int:
    """How well the number of rows is bought, for answers of this width."""
    return max(width // 8, 1)


def _design(calibrator: Calibrator, name: str, *, plain_cells: bool) -> HistogramDesign:
    return HistogramDesign(
        calibrator.curator.domain[name].size,
        ordered=not plain_cells and calibrator.is_ordered(name),
        centred=calibrator.relation.rows_are_public and not plain_cells,
        laplace=calibrator.is_pure,
    )


def _sums(design: HistogramDesign, each: float) -> np.ndarray:
    """Bands of sets from those of their cells."""
    return each * np.arange(design.size + 1, dtype=np.float64)
