"""Whole classes bought once: all products of members of `families` on a few attributes, of the rows in a box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.query.box import Box, from_plain, plain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.families import Kind, Product, band, product_of, slack
from understudy.sessions.knowledge import Interval, IntervalTable, Knowledge
from understudy.sessions.purchase import Calibrator, PurchaseRequest, PurchaseResult

Values = NDArray[np.float64]

MOST_PRODUCT_CELLS = 1 << 12
"""A class on more cells is not bought."""


@dataclass(frozen=True, eq=False)
class ReleasedProduct:
    """Counts of the cells of `by` among the rows in `where`: every product of members is within `width`."""

    by: Clique
    product: Product
    counts: Values
    width: float

    def _inside(self, box: Box, apart: Clique = ()) -> list[Values] | None:
        """The box along each axis but those of `apart`, None where it is no member."""
        sides = []
        for name, family in zip(self.by, self.product.families, strict=True):
            cells = box.sides.get(name)
            if name in apart or (cells is None and family.holds_all):
                sides.append(np.ones(family.size))
            elif cells is None:
                return None
            elif family.holds(cells):
                sides.append(cells.astype(np.float64))
            else:
                return None
        return sides

    def interval(self, box: Box) -> Interval | None:
        sides = self._inside(box)
        if sides is None:
            return None
        found = self.counts
        for side in reversed(sides):
            found = found @ side
        return float(found) - self.width, float(found) + self.width

    def table(self, by: Clique, where: Box) -> IntervalTable | None:
        families = dict(zip(self.by, self.product.families, strict=True))
        if not set(by) <= set(self.by) or not all(families[name].holds_cells for name in by):
            return None
        sides = self._inside(where, by)
        if sides is None:
            return None
        found = self.counts
        for axis in reversed(range(len(self.by))):
            if self.by[axis] not in by:
                found = np.tensordot(found, sides[axis], axes=(axis, 0))
        return IntervalTable(found - self.width, found + self.width)


@dataclass(frozen=True, eq=False)
class ProductPurchase:
    """The class of all products of members on `by`, of the rows in `where`; its band is as wide as an answer's."""

    kind: ClassVar[str] = "grids"
    by: Clique
    kinds: tuple[Kind, ...]
    where: LinearQuery
    share: float
    price: Price

    @classmethod
    def of(
        cls,
        calibrator: Calibrator,
        by: Clique,
        where: LinearQuery,
        share: float,
        kinds: tuple[Kind, ...] = (),
    ) -> ProductPurchase | None:
        """Of ranges and subsets, unless other `kinds` are named; None where no price buys a band so narrow."""
        kinds = kinds or usual_kinds(calibrator, by)
        product = grid_product(calibrator, by, kinds)
        sup, room = band(product, share), calibrator.width * 0.9995 - slack(product)
        if sup is None or room <= 0:
            return None
        price = calibrator.price_of_spread(calibrator.marginal(by, where), product.matrices, room / sup)
        return cls(by, kinds, where, share, price)

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> ProductPurchase:
        question = from_plain(calibrator.curator.domain, plan["question"])
        return cls(question.by, tuple(plan["kinds"]), question.where, plan["share"], Price.from_plain(plan))

    def plain(self) -> dict[str, Any]:
        question = plain(Marginal(self.where.domain, self.by, self.where))
        return {
            "question": question,
            "kinds": list(self.kinds),
            "share": self.share,
            **self.price.as_plain(),
        }

    def _strategy(self, calibrator: Calibrator) -> Strategy:
        product = grid_product(calibrator, self.by, self.kinds)
        return calibrator.strategy(calibrator.marginal(self.by, self.where), product.matrices, self.price)

    def event(self, calibrator: Calibrator) -> Event:
        return self._strategy(calibrator).event

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        product, strategy = grid_product(calibrator, self.by, self.kinds), self._strategy(calibrator)
        found, cost = calibrator.run(strategy, request)
        released = np.array(found, np.float64)
        mechanism = strategy.mechanism
        sup = band(product, self.share)
        assert sup is not None
        width = mechanism.spread * sup + slack(product)
        where = Box.of(self.where)
        assert where is not None
        counts = product.cells(released.reshape(strategy.shape))
        knowledge.learn_class(self.by, where, ReleasedProduct(self.by, product, counts, width))
        return PurchaseResult(cost)


def usual_kinds(calibrator: Calibrator, by: Clique) -> tuple[Kind, ...]:
    """All ranges of ordered attributes, all subsets of the others."""
    return tuple("ranges" if calibrator.is_ordered(name) else "subsets" for name in by)


def grid_product(calibrator: Calibrator, by: Clique, kinds: tuple[Kind, ...]) -> Product:
    """The families of some attributes."""
    return product_of(calibrator.curator.domain.shape(by), kinds, laplace=calibrator.is_pure)


def is_feasible(calibrator: Calibrator, by: Clique, kinds: tuple[Kind, ...] = ()) -> bool:
    """Whether the class is small enough to be bought."""
    if not by or calibrator.curator.domain.size(by) > MOST_PRODUCT_CELLS:
        return False
    if any(size < 2 for size in calibrator.curator.domain.shape(by)):
        return False
    return grid_product(calibrator, by, kinds or usual_kinds(calibrator, by)).is_feasible
