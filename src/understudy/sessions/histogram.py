"""The number of rows where it is private, and histograms of single attributes: what bounds conjunctions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.strategy import Strategy
from understudy.privacy.event import Event
from understudy.privacy.neighbours import located
from understudy.sessions.design import Design
from understudy.sessions.knowledge import Knowledge, around
from understudy.sessions.one_way import OneWay, half_widths, shape
from understudy.sessions.purchase import Learnt, Price, Shop, digits, price_in, written

LARGEST_BAND = 0.9
"""The widest band of a histogram, as a part of the width, where that does not cost more."""

MOST = 15
"""A histogram costs no more than so many direct questions."""

LIGHT = 1.0
"""How much wider the bands of single cells are than those of direct answers."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The number of rows, to within an eighth of the width."""

    kind: ClassVar[str] = "rows"
    share: float
    error: int
    price: Price

    @classmethod
    def of(cls, shop: Shop, share: float) -> Rows:
        error = rows_error(shop.width)
        return cls(share, error, shop.curator.price_of(shop.marginal(()), error=error, beta=share))

    @classmethod
    def read(cls, shop: Shop, plan: Mapping[str, Any]) -> Rows:
        return cls(plan["share"], plan["error"], price_in(plan))

    def plain(self) -> dict[str, Any]:
        return {"share": self.share, "error": self.error, **written(self.price)}

    def event(self, shop: Shop) -> Event:
        everyone, declared = shop.marginal(()), shop.curator.declaration
        mechanism, _ = shop.curator.mechanism(everyone, **self.price)
        return located(everyone, mechanism.event, declared.neighbours, declared.max_rows)

    def make(self, shop: Shop, knowledge: Knowledge, *, request: str, analyst: str) -> Learnt:
        measured = shop.curator.measure(shop.marginal(()), **self.price, request=request, analyst=analyst)
        low, high = around(measured.noisy, self.error, knowledge.total)
        knowledge.total = (float(low), float(high))
        return Learnt(measured.cost)


@dataclass(frozen=True, eq=False)
class Histogram:
    """One attribute, good for all ranges or all subsets of its cells at once; or (`plain_cells`) for each cell."""

    kind: ClassVar[str] = "histogram"
    name: str
    plain_cells: bool
    share: float
    price: Price

    @classmethod
    def of(cls, shop: Shop, name: str, share: float, unit: float) -> Histogram:
        """Bands a little narrower than the width, if that does not cost too many of the direct price `unit`."""
        design = _design(shop, name, plain_cells=False)
        mean, deviation, kappa = shape(design, share)
        spread = LARGEST_BAND * shop.width / float((mean + kappa * deviation).max())
        [(currency, price)] = shop.price_of_spread(shop.marginal((name,)), (design.matrix,), spread).items()
        return cls(name, plain_cells=False, share=share, price={currency: min(price, digits(MOST * unit))})

    @classmethod
    def cells(cls, shop: Shop, name: str, share: float, unit: float) -> Histogram:
        """A look at every cell, about as good as a direct answer to each."""
        part = LIGHT if shop.is_pure else LIGHT**2
        return cls(name, plain_cells=True, share=share, price={shop.currency: digits(2 * unit / part)})

    @classmethod
    def read(cls, shop: Shop, plan: Mapping[str, Any]) -> Histogram:
        return cls(plan["name"], plan["cells"], plan["share"], price_in(plan))

    def plain(self) -> dict[str, Any]:
        return {"name": self.name, "cells": self.plain_cells, "share": self.share, **written(self.price)}

    def _strategy(self, shop: Shop) -> Strategy:
        matrix = _design(shop, self.name, plain_cells=self.plain_cells).matrix
        return shop.strategy(shop.marginal((self.name,)), (matrix,), self.price)

    def event(self, shop: Shop) -> Event:
        return self._strategy(shop).event

    def make(self, shop: Shop, knowledge: Knowledge, *, request: str, analyst: str) -> Learnt:
        design = _design(shop, self.name, plain_cells=self.plain_cells)
        strategy = self._strategy(shop)
        found, cost = shop.run(strategy, request=request, analyst=analyst)
        released = np.array(found, np.float64)
        mechanism = strategy.mechanism
        if self.plain_cells:
            each = float(mechanism.error(self.share, cells=design.size))
            knowledge.one_ways.setdefault(self.name, OneWay(released, _sums(design, each), ordered=False))
            return Learnt(cost)
        spread = mechanism.scale if isinstance(mechanism, LaplaceMechanism) else mechanism.variance
        counts = design.histogram(released, knowledge.total[0])
        widths = half_widths(design, spread, self.share)
        knowledge.one_ways[self.name] = OneWay(counts, widths, design.ordered)
        return Learnt(cost)


def rows_error(width: int) -> int:
    """How well the number of rows is bought, for answers of this width."""
    return max(width // 8, 1)


def _design(shop: Shop, name: str, *, plain_cells: bool) -> Design:
    return Design(
        shop.curator.domain[name].size,
        ordered=not plain_cells and shop.is_ordered(name),
        centred=shop.replaces and not plain_cells,
        laplace=shop.is_pure,
    )


def _sums(design: Design, each: float) -> np.ndarray:
    """Bands of sets from those of their cells."""
    return each * np.arange(design.size + 1, dtype=np.float64)
