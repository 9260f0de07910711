"""Product classes: all conjunctions on a few attributes, of the rows in a box, bought in one piece.

A class is a product of `families`, one for each attribute: say, all ranges of ages times all sets of districts,
among the rows with `sex = F`. One noisy table serves every member, with one band for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.class_band import band
from understudy.sessions.families import Kind
from understudy.sessions.family_product import Product, product_of, slack
from understudy.sessions.knowledge import Interval, IntervalTable, Knowledge
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult
from understudy.theory.normal_law import ndtri

Values = NDArray[np.float64]

MOST_PRODUCT_CELLS = 1 << 12
"""A class on more cells than this is not bought."""


COARSEST = 4
"""Weights of a smaller resolution than this are worse than the cells themselves, if these can be measured."""


@dataclass(frozen=True, eq=False)
class ReleasedProduct:
    """A product class that was bought: noisy counts of the cells of `by`.

    The sum over every member is within `width` people of its true count, if the band holds. The rows that it is
    of are kept beside it (`Knowledge.learn_class`).
    """

    by: Clique
    product: Product
    counts: Values
    width: float

    def _inside(self, box: Box, apart: Clique = ()) -> list[Values] | None:
        """The sides of a box along each axis, whole along those of `apart`; None where the box is no member."""
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

    def holds(self, by: Clique, kinds: tuple[Kind, ...]) -> bool:
        """Whether every product of members of families of these kinds, on the attributes `by`, is a member."""
        wanted = dict(zip(by, kinds, strict=True))
        return wanted.keys() <= set(self.by) and all(
            family.holds_kind(wanted[name]) if name in wanted else family.holds_all
            for name, family in zip(self.by, self.product.families, strict=True)
        )

    def interval(self, box: Box) -> Interval | None:
        """The interval of a box's count, in people; None where the box is no member."""
        sides = self._inside(box)
        if sides is None:
            return None
        count = self.counts
        for side in reversed(sides):
            count = count @ side
        return float(count) - self.width, float(count) + self.width

    def table(self, by: Clique, where: Box) -> IntervalTable | None:
        """Intervals of the cells of `by` among the rows in a box, in people; None where they are no members."""
        families = dict(zip(self.by, self.product.families, strict=True))
        if not set(by) <= set(self.by) or not all(families[name].holds_cells for name in by):
            return None
        sides = self._inside(where, by)
        if sides is None:
            return None
        counts = self.counts
        for axis in reversed(range(len(self.by))):
            if self.by[axis] not in by:
                counts = np.tensordot(counts, sides[axis], axes=(axis, 0))
        return IntervalTable(counts - self.width, counts + self.width)


@dataclass(frozen=True, eq=False)
class ProductPurchase:
    """All products of members of families (`kinds`) on the attributes `by`, of the rows in `where`.

    Promise     Except with probability `share` every member is within the session's width of its true count.
    Why         The band is a quantile of the largest error over all members, a function of the noise alone
                (`families`), for the weights of this `resolution`; None is the finest.
    Cost        `price`, once, for a row that moves one cell of the table.

    `asked_for` is whether a question needs the class itself, as a quantile needs ranges: it is not ahead then.
    `ordered` is whether somebody ordered it (`Session.buy`).
    """

    kind: ClassVar[str] = "grids"
    by: Clique
    kinds: tuple[Kind, ...]
    where: LinearQuery
    share: float
    price: Price
    resolution: int | None = None
    sup: float | None = None
    """The band in deviations of the noise on a combination, where it was found before."""
    asked_for: bool = False
    ordered: bool = False

    @classmethod
    def of(
        cls,
        calibrator: Calibrator,
        by: Clique,
        where: LinearQuery,
        share: float,
        kinds: tuple[Kind, ...] = (),
    ) -> ProductPurchase | None:
        """The purchase at the smallest price that keeps its promise; None where no price does.

        `kinds` are those of `usual_kinds`, unless others are given.
        """
        kinds = kinds or usual_kinds(calibrator, by)
        resolution = resolution_for(calibrator, by, kinds, where, share)
        product = product_on(calibrator, by, kinds, resolution)
        sup, room = band(product, share), calibrator.width * 0.9995 - slack(product)
        if sup is None or room <= 0:
            return None
        price = calibrator.price_of_spread(
            Marginal(calibrator.curator.domain, by, where), product.matrices, room / sup
        )
        return cls(by, kinds, where, share, price, resolution, sup)

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> ProductPurchase:
        """The purchase of a plan in the ledger."""
        question = from_plain(calibrator.curator.domain, plan["question"])
        fixed = question.by, tuple(plan["kinds"]), question.where, plan["share"], Price.from_plain(plan)
        why = plan.get("asked for", False), plan.get("ordered", False)
        return cls(*fixed, plan.get("resolution"), plan.get("sup"), *why)

    def plain(self) -> dict[str, Any]:
        """The plan: attributes and rows as a question, the kinds of families, the share of β and the price.

        A resolution other than the finest is written as well; before there were others, none was.
        """
        question = plain(Marginal(self.where.domain, self.by, self.where))
        return {
            "question": question,
            "kinds": list(self.kinds),
            "share": self.share,
            **self.price.as_plain(),
            **({} if self.resolution is None else {"resolution": self.resolution}),
            **({"asked for": True} if self.asked_for else {}),
            **({"ordered": True} if self.ordered else {}),
        }

    def _product(self, calibrator: Calibrator) -> Product:
        return product_on(calibrator, self.by, self.kinds, self.resolution)

    def _strategy(self, calibrator: Calibrator) -> Strategy:
        matrices = self._product(calibrator).matrices
        marginal = Marginal(calibrator.curator.domain, self.by, self.where)
        return Strategy(marginal, matrices, calibrator.relation, self.price)

    def band(self, calibrator: Calibrator) -> dict[str, Any]:
        """The band, which is simulated."""
        return {"sup": self._sup(calibrator)}

    def _sup(self, calibrator: Calibrator) -> float:
        sup = band(self._product(calibrator), self.share) if self.sup is None else self.sup
        assert sup is not None
        return sup

    def event(self, calibrator: Calibrator) -> Event:
        """The noise on the combinations of cells that are measured."""
        return self._strategy(calibrator).event

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, and keep the class with its band."""
        product, strategy = self._product(calibrator), self._strategy(calibrator)
        combinations, cost = request.run(calibrator.curator, strategy)
        released = np.array(combinations, np.float64)
        mechanism = strategy.mechanism
        width = mechanism.spread * self._sup(calibrator) + slack(product)
        where = Box.of(self.where)
        assert where is not None
        counts = product.cells(released.reshape(strategy.shape))
        knowledge.learn_class(self.by, where, ReleasedProduct(self.by, product, counts, width))
        return PurchaseResult(cost)


def usual_kinds(calibrator: Calibrator, by: Clique) -> tuple[Kind, ...]:
    """For each attribute the usual kind of family: all ranges of ordered ones, all sets of cells else."""
    return tuple("ranges" if calibrator.is_ordered(name) else "subsets" for name in by)


def product_on(
    calibrator: Calibrator, by: Clique, kinds: tuple[Kind, ...], resolution: int | None = None
) -> Product:
    """The product of families of these kinds on the attributes `by`."""
    sizes = calibrator.curator.domain.shape(by)
    return product_of(sizes, kinds, laplace=calibrator.is_pure, resolution=resolution)


def resolution_for(
    calibrator: Calibrator, by: Clique, kinds: tuple[Kind, ...], where: LinearQuery, share: float
) -> int | None:
    """The resolution of weights at which the noise of a class can be drawn, whatever its price turns out to be.

    It is None, the finest one, unless the noise would be too large then: else the finest one halved as often as
    it takes, and 1 at last, where the cells themselves are measured. Halving costs a few hundredths of the price
    down to 32, and a quarter at 16.

    Why it suffices: the band holds for the member a with the largest deviation too, so that noise of deviation σ
    on the combinations has z·‖a‖·σ ≤ width, with z = Φ⁻¹(1 - share/2). No price is below that of the noise with
    σ = width/(z·‖a‖), at which it is tried whether noise can be drawn; and at higher prices noise is smaller.
    """
    product = product_on(calibrator, by, kinds)
    if calibrator.is_pure:
        return None
    marginal, tail = Marginal(calibrator.curator.domain, by, where), -float(ndtri(share / 2))
    while product.resolution != 1:
        spread = calibrator.width / (tail * product.norm(2))
        least = calibrator.price_of_spread(marginal, product.matrices, spread)
        if calibrator.is_drawable(marginal, product.matrices, least):
            break
        half = (product.resolution or product.finest) // 2
        product = replace(product, resolution=half if half >= COARSEST else 1)
    return product.resolution


def is_feasible(calibrator: Calibrator, by: Clique, kinds: tuple[Kind, ...] = ()) -> bool:
    """Whether a class on `by` is small enough to be bought, and its band to be simulated."""
    if not by or calibrator.curator.domain.size(by) > MOST_PRODUCT_CELLS:
        return False
    if any(size < 2 for size in calibrator.curator.domain.shape(by)):
        return False
    return product_on(calibrator, by, kinds or usual_kinds(calibrator, by)).is_feasible
