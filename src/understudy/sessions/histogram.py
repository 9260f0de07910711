"""Histograms of single attributes.

They are bought before the first questions that touch them: the intervals that they give bound every conjunction
from its conditions one by one (the Fréchet bounds, `knowledge`), so that many questions need no purchase.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.additive import amount_for
from understudy.mechanism.matrix.bases import HistogramDesign
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.mechanism.matrix.ranges import MINIMAX_RESOLUTION
from understudy.privacy.columns import ONE_COUNT, PARTITION
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.sessions.calibrator import Calibrator, digits
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.one_way import OneWay, half_widths, shape
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult

LARGEST_BAND = 0.9
"""The widest band of a histogram, as a part of the session's width, unless `MOST` forbids the price of that."""

MOST = 15
"""A histogram costs no more than so many single counts."""

LIGHT = 1.0
"""How much wider the bands of single cells are than those of counts that are bought by themselves."""


@dataclass(frozen=True, eq=False)
class HistogramPurchase:
    """A histogram of one attribute, with a band for all ranges (ordered) or all sets (else) of its cells at once;
    where `plain_cells`, for each cell only.

    Promise     Except with probability `share` every such count is within its half-width.
    Why         `one_way` gives the largest error over all of them, from the law of the noise alone, for the whole
                weights of the design at this `resolution` (None: the finest), whatever was rounded to get them.
    Cost        `price`, once for each attribute, and at most `MOST` times that of a single count.
    """

    kind: ClassVar[str] = "histogram"
    name: str
    plain_cells: bool
    share: float
    price: Price
    resolution: int | None = None
    widths: tuple[float, ...] | None = None
    """The half-widths for each size of set, in people, where they were found before."""

    @classmethod
    def of(cls, calibrator: Calibrator, name: str, share: float, unit: float) -> HistogramPurchase:
        """Bands for all ranges or sets, a little narrower than the session's width.

        They are wider where that would cost more than `MOST` times `unit`, the price of a single count. The
        weights of the design are halved until the noise on the combinations can be drawn.
        """
        resolution, whole = None, Marginal(calibrator.curator.domain, (name,))
        while True:
            design = _design(calibrator, name, plain_cells=False, resolution=resolution)
            mean, deviation, kappa = shape(design, share)
            spread = LARGEST_BAND * calibrator.width / float((mean + kappa * deviation).max())
            wanted = calibrator.price_of_spread(whole, (design.matrix,), spread)
            price = Price(wanted.currency, min(wanted.amount, digits(MOST * unit)))
            if design.is_plain or calibrator.is_drawable(whole, (design.matrix,), price):
                return cls(name, plain_cells=False, share=share, price=price, resolution=resolution)
            resolution = design.resolution // 2

    @classmethod
    def cells(cls, calibrator: Calibrator, name: str, share: float, unit: float) -> HistogramPurchase:
        """Every cell by itself, about as precise as a single count at the price `unit`.

        That costs as many times the price as cells are moved further than a count: twice where rows are replaced.
        """
        relation, currency = calibrator.relation, calibrator.currency
        cells = amount_for(currency, relation.moves(PARTITION), LIGHT)
        count = amount_for(currency, relation.moves(ONE_COUNT), 1.0)
        price = Price(currency, digits(unit * cells / count))
        return cls(name, plain_cells=True, share=share, price=price)

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> HistogramPurchase:
        """The purchase of a plan in the ledger."""
        fixed = plan["name"], plan["cells"], plan["share"], Price.from_plain(plan)
        widths = plan.get("widths")
        return cls(*fixed, plan.get("resolution"), None if widths is None else tuple(widths))

    def plain(self) -> dict[str, Any]:
        """The plan: the attribute, whether for cells only, the share of β and the price.

        A resolution other than the finest is written as well; before there were others, none was.
        """
        plan = {"name": self.name, "cells": self.plain_cells, "share": self.share, **self.price.as_plain()}
        return plan if self.resolution is None else {**plan, "resolution": self.resolution}

    def _designed(self, calibrator: Calibrator) -> tuple[HistogramDesign, Strategy]:
        """Which combinations of the cells are measured, and the look that measures them."""
        design = _design(calibrator, self.name, plain_cells=self.plain_cells, resolution=self.resolution)
        cells = Marginal(calibrator.curator.domain, (self.name,))
        return design, Strategy(cells, (design.matrix,), calibrator.relation, self.price)

    def band(self, calibrator: Calibrator) -> dict[str, Any]:
        """The half-widths, which are simulated."""
        return {} if self.plain_cells else {"widths": self._widths(calibrator).tolist()}

    def _widths(self, calibrator: Calibrator) -> NDArray[np.float64]:
        if self.widths is not None:
            return np.array(self.widths, np.float64)
        design, strategy = self._designed(calibrator)
        return half_widths(design, strategy.mechanism.parameter, self.share)

    def event(self, calibrator: Calibrator) -> Event:
        """The noise on the combinations of cells that are measured."""
        return self._designed(calibrator)[1].event

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, and keep the histogram with its bands; one for cells only replaces no other."""
        design, strategy = self._designed(calibrator)
        combinations, cost = request.run(calibrator.curator, strategy)
        released = np.array(combinations, np.float64)
        mechanism = strategy.mechanism
        if self.plain_cells:
            each = float(mechanism.error(self.share, cells=design.size))
            knowledge.one_ways.setdefault(self.name, OneWay(released, _sums(design, each), ordered=False))
            return PurchaseResult(cost)
        counts = design.histogram(released, knowledge.total[0])
        known = OneWay(counts, self._widths(calibrator), design.ordered)
        knowledge.one_ways[self.name] = known
        knowledge.learn_rows(known.interval(np.ones(design.size, bool)))
        return PurchaseResult(cost)


def _design(
    calibrator: Calibrator, name: str, *, plain_cells: bool, resolution: int | None = None
) -> HistogramDesign:
    return HistogramDesign(
        calibrator.curator.domain[name].size,
        ordered=not plain_cells and calibrator.is_ordered(name),
        centred=calibrator.relation.rows_are_public and not plain_cells,
        laplace=calibrator.is_pure,
        resolution=MINIMAX_RESOLUTION if resolution is None else resolution,
    )


def _sums(design: HistogramDesign, each: float) -> np.ndarray:
    """Bands of sets from those of their cells."""
    return each * np.arange(design.size + 1, dtype=np.float64)
