"""All marginals up to an order, bought in one piece by their residuals (`mechanism.matrix.residuals_of_order`).

A residual is what a marginal tells beyond the marginals inside it. Residuals of all sets of attributes up to the
order are measured once each; every marginal is a sum of those inside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.mechanism.additive import amount_for
from understudy.mechanism.matrix.residuals_of_order import (
    LARGEST,
    MOST_PARTS,
    Places,
    ResidualColumns,
    ResidualLook,
    ResidualsOfOrder,
)
from understudy.noise.law import MAX_VARIANCE
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.privacy.relation import Relation, Sensitivity
from understudy.query.box import Box, Cells, Grid, as_text, from_text
from understudy.query.residuals import assembled, centred, parts_of
from understudy.sessions.calibrator import Calibrator, digits
from understudy.sessions.found_once import found_once
from understudy.sessions.knowledge import Interval, IntervalTable, Knowledge, ReleasedTable
from understudy.sessions.one_way import OneWay
from understudy.sessions.purchase import PurchaseRequest, PurchaseResult
from understudy.theory.normal_law import ndtri

Values = NDArray[np.float64]

MOST_CLASS_CELLS = 1 << 23
"""Cells of all marginals together that a class may have."""

MOST_ORDER = 3

PART = 0.9995
"""The band as a part of the session's width: rounding must not make it wider than the width."""


@dataclass(frozen=True, eq=False)
class ReleasedMarginals:
    """A class of marginals that was bought: noisy residuals; the `paid` cells of each marginal are within `width`
    people.
    """

    domain: Domain
    parts: ResidualsOfOrder
    residuals: Mapping[Places, Values]
    paid: Mapping[Places, Cells]
    rows: float
    width: float
    variances: Mapping[Places, float]
    """The variance of the noise on a cell of each marginal."""

    def interval(self, box: Box) -> Interval | None:
        """The interval of a box's count, in people; None where the box is not one cell of a marginal."""
        if not box.sides or len(box.sides) > self.parts.order:
            return None
        if any(int(cells.sum()) != 1 for cells in box.sides.values()):
            return None
        by = self.domain.clique(box.sides)
        table = self.table(by, Box(self.domain, {}))
        if table is None:
            return None
        cell = tuple(int(np.flatnonzero(box.sides[name])[0]) for name in by)
        return float(table.low[cell]), float(table.high[cell])

    def table(self, by: Clique, where: Box) -> IntervalTable | None:
        """Intervals of the cells of `by` among all rows, in people, unbounded where a cell was not paid for; None
        where the marginal was not bought or is of some rows only.
        """
        counts = None if where.sides else self.counts(by)
        if counts is None:
            return None
        paid = self.paid[tuple(self.domain.names.index(name) for name in by)]
        low = np.where(paid, counts - self.width, -np.inf)
        high = np.where(paid, counts + self.width, np.inf)
        return IntervalTable(low, high, counts)

    def counts(self, by: Clique) -> Values | None:
        """The noisy counts of a marginal's cells; None where not all its residuals were bought."""
        part = tuple(self.domain.names.index(name) for name in by)
        if not part or any(inner not in self.residuals for inner in parts_of(part)[1:]):
            return None
        sizes = dict(enumerate(self.parts.sizes))
        return assembled(part, sizes, {(): np.array(self.rows), **self.residuals})

    def released(self) -> Iterator[ReleasedTable]:
        """The noisy counts of the marginals that lie within no other one."""
        inside = {inner for part in self.residuals for inner in parts_of(part)[:-1]}
        for part in self.residuals:
            by = tuple(self.domain.names[i] for i in part)
            counts = None if part in inside else self.counts(by)
            if counts is not None:
                yield ReleasedTable(by, Box(self.domain, {}), counts, self.variances[part])


@dataclass(frozen=True, eq=False)
class MarginalsPurchase:
    """The residuals of all marginals up to `order`, each measured with its weight.

    Promise     Except with probability `share` every `paid` cell of every marginal is within the session's width.
    Why         The paid cells are those that were not known well enough when the price was found: fixed by what
                was released before, and written into the ledger with the plan. The noise is independent of that,
                so that the union bound over them holds whatever is asked later.
    Cost        `price`, in ρ, once. It needs Gaussian noise and a public number of rows.
    """

    kind: ClassVar[str] = "marginals"
    order: int
    weights: tuple[int, ...]
    paid: Mapping[Places, Cells]
    share: float
    price: Price
    ordered: bool = False
    """Whether somebody ordered the class (`Session.buy`)."""

    @classmethod
    def of(
        cls, calibrator: Calibrator, knowledge: Knowledge, order: int, share: float
    ) -> MarginalsPurchase | None:
        """The purchase at the smallest price that keeps its promise.

        None where every cell is known well enough already, where the noise's being on integers alone makes the
        band too wide, and where there are so many rows that the noise cannot be drawn. The weights are made
        smaller until it can: band, noise and price are those of the whole weights, whatever was rounded.
        """
        parts = _parts(calibrator, order)
        histograms = tuple(knowledge.one_ways.items())
        paid = _all_unknown(knowledge.grid, knowledge.total, histograms, parts, calibrator.width)
        unknown = np.array([int(paid[part].sum()) for part in parts.all])
        if not unknown.any():
            return None
        tail, largest = -float(ndtri(share / unknown.sum() / 2)), float(LARGEST)
        while True:
            weights = _weights(parts, (unknown > 0).tobytes(), largest)
            sup = tail * float(parts.spreads(weights)[unknown > 0].max())
            spread = (PART * calibrator.width - _steps(parts, weights)) / sup
            if spread <= 0:
                return None
            moved = _moved(calibrator.relation, parts, weights)
            price = Price("rho", digits(amount_for("rho", moved, spread)))
            noise = float(moved.l2_squared / (2 * price.amount))
            if noise <= MAX_VARIANCE / 2:
                break
            if max(weights) == 1:
                return None
            largest *= min((MAX_VARIANCE / 4 / noise) ** 0.5, 0.5)
        return cls(order, weights, paid, share, price)

    @classmethod
    def read(cls, calibrator: Calibrator, plan: Mapping[str, Any]) -> MarginalsPurchase:
        """The purchase of a plan in the ledger."""
        parts, paid, at = _parts(calibrator, plan["order"]), {}, 0
        cells = from_text(plan["paid"], (sum(_cells(parts, part) for part in parts.all),))
        for part in parts.all:
            paid[part] = cells[at : at + _cells(parts, part)].reshape([parts.sizes[i] for i in part])
            at += _cells(parts, part)
        fixed = plan["order"], tuple(plan["weights"]), paid, plan["share"], Price.from_plain(plan)
        return cls(*fixed, plan.get("ordered", False))

    def plain(self) -> dict[str, Any]:
        """The plan: the order, the weights, the paid cells, the share of β and the price."""
        paid = as_text(np.concatenate([cells.ravel() for cells in self.paid.values()]))
        fixed = {"order": self.order, "weights": self.weights, "paid": paid}
        ordered = {"ordered": True} if self.ordered else {}
        return {**fixed, "share": self.share, **self.price.as_plain(), **ordered}

    def _look(self, calibrator: Calibrator) -> ResidualLook:
        parts = _parts(calibrator, self.order)
        return ResidualLook(calibrator.curator.domain, parts, self.weights, calibrator.relation, self.price)

    def band(self, calibrator: Calibrator) -> dict[str, Any]:
        """Nothing: the band is the session's width."""
        return {}

    def event(self, calibrator: Calibrator) -> Event:
        """The noise on all residuals together."""
        return self._look(calibrator).event

    def make(self, calibrator: Calibrator, knowledge: Knowledge, request: PurchaseRequest) -> PurchaseResult:
        """Charge, look, and keep the residuals with the band of the paid cells."""
        look = self._look(calibrator)
        released, cost = request.run(calibrator.curator, look)
        residuals, at = {}, 0
        for part, w in zip(look.residuals.all, self.weights, strict=True):
            if w:
                shape = [look.residuals.sizes[i] for i in part]
                table = np.array(released[at], np.float64).reshape(shape) / (w * prod(shape))
                residuals[part] = centred(table)
                at += 1
        spreads = look.residuals.spreads(self.weights) ** 2 * float(look.additive.variance)
        variances = dict(zip(look.residuals.all, spreads.tolist(), strict=True))
        rows, width = knowledge.total[0], PART * calibrator.width
        knowledge.marginals.append(
            ReleasedMarginals(look.domain, look.residuals, residuals, self.paid, rows, width, variances)
        )
        return PurchaseResult(cost)


def can_buy(calibrator: Calibrator, order: int) -> bool:
    """Whether all marginals up to an order can be bought at once."""
    return why_not(calibrator, order) is None


def why_not(calibrator: Calibrator, order: int) -> str | None:
    """Why all marginals up to an order cannot be bought at once, in words; None where they can be.

    The noise has to be Gaussian, the number of rows public, and sets and cells few enough.
    """
    domain = calibrator.curator.domain
    if calibrator.is_pure:
        return "the budget has no delta"
    if not calibrator.relation.rows_are_public:
        return "the number of rows is private under `neighbours: add-remove`"
    if not 1 <= order <= min(MOST_ORDER, len(domain)):
        return f"the order is between 1 and {min(MOST_ORDER, len(domain))}"
    parts = _parts(calibrator, order)
    if not parts.is_feasible:
        return f"there are {parts.count:,} sets of up to {order} attributes, more than {MOST_PARTS:,}"
    cells = _cells_of_order(domain.shape(domain.names), order)
    if cells > MOST_CLASS_CELLS:
        return f"they have {cells:,} cells, more than {MOST_CLASS_CELLS:,}"
    return None


def _parts(calibrator: Calibrator, order: int) -> ResidualsOfOrder:
    domain = calibrator.curator.domain
    return _parts_of_sizes(domain.shape(domain.names), order)


@lru_cache(maxsize=16)
def _parts_of_sizes(sizes: tuple[int, ...], order: int) -> ResidualsOfOrder:
    """The same object for the same sizes: what it finds out about them is found once."""
    return ResidualsOfOrder(sizes, order)


@lru_cache(maxsize=16)
def _cells_of_order(sizes: tuple[int, ...], order: int) -> int:
    """How many cells all marginals of an order have together."""
    return sum(map(prod, combinations(sizes, order)))


@found_once(64)
def _weights(parts: ResidualsOfOrder, needed: bytes, largest: float) -> tuple[int, ...]:
    """`ResidualsOfOrder.weights`, found once: the class is priced again and again before it is bought."""
    return tuple(parts.weights(np.frombuffer(needed, bool), largest=largest))


@found_once(64)
def _moved(relation: Relation, parts: ResidualsOfOrder, weights: tuple[int, ...]) -> Sensitivity:
    return relation.moves(ResidualColumns(parts, weights))


def _cells(parts: ResidualsOfOrder, part: Places) -> int:
    return prod(parts.sizes[i] for i in part)


@found_once(4)
def _all_unknown(
    grid: Grid,
    total: Interval,
    histograms: tuple[tuple[str, OneWay], ...],
    parts: ResidualsOfOrder,
    width: int,
) -> Mapping[Places, Cells]:
    """For each marginal the cells that the histograms do not tell well enough."""
    found, known = dict(histograms), dict[Places, Cells]()
    for part in parts.all:
        names = (grid.domain.names[i] for i in part)
        own = tuple((name, found[name]) for name in names if name in found)
        known[part] = _unknown(grid, total, own, part, width)
    return known


_KEPT: WeakKeyDictionary[Grid, dict[Places, tuple[object, Cells]]] = WeakKeyDictionary()
"""Of each marginal of a session, the cells that were found last and what they were found with: as long as its grid
is there."""


def _unknown(
    grid: Grid, total: Interval, histograms: tuple[tuple[str, OneWay], ...], part: Places, width: int
) -> Cells:
    """The cells of a marginal that the histograms of its attributes do not tell well enough.

    They are kept for each marginal: one histogram more tells something new of a few of them.
    """
    kept, found_with = _KEPT.setdefault(grid, {}), (total, histograms, width)
    if (last := kept.get(part)) is not None and last[0] == found_with:
        return last[1]
    by, known = tuple(grid.domain.names[i] for i in part), Knowledge(grid, total, dict(histograms))
    table = known.settled(*known.of_histograms(by, total))
    cells = np.asarray(table.high - table.low > 2 * width)
    cells.setflags(write=False)
    kept[part] = found_with, cells
    return cells


def _steps(parts: ResidualsOfOrder, weights: Sequence[int]) -> float:
    """How far one step of noise in every combination can move a cell (`simulation`)."""
    return sum(
        2.0 ** len(part) / (w * prod(parts.sizes[i] for i in part))
        for part, w in zip(parts.all, weights, strict=True)
        if w
    )
