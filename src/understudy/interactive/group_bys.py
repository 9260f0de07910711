"""All marginals up to an order, bought at once by their residuals (`residuals`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from understudy.domain import Clique, Domain
from understudy.interactive.conjunction import Box
from understudy.interactive.knowledge import Interval, Knowledge, Table
from understudy.interactive.purchase import Learnt, Price, Shop, digits, price_in, written
from understudy.interactive.residuals import Part, Parts, centred, combined, parts_of
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.noise import NoiseSource
from understudy.privacy.event import Event
from understudy.query.marginal import Marginal

Values = NDArray[np.float64]

MOST_CELLS = 1 << 23
"""Cells of all marginals together."""

MOST_ORDER = 3

PART = 0.9995
"""The band, as a part of an answer's width: rounding must not make it wider."""


@dataclass(frozen=True, eq=False)
class ResidualLook:
    """Noisy residuals of all parts with a positive weight: ρ-zCDP, by Δ² of `residuals`. [CKS20, Theorem 14]"""

    domain: Domain
    parts: Parts
    weights: tuple[int, ...]
    mechanism: GaussianMechanism

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """The largest parts; every other lies within one of them."""
        used = [part for part, w in zip(self.parts.all, self.weights, strict=True) if w]
        inner = {smaller for part in used for smaller in parts_of(part)[:-1]}
        return tuple(self._marginal(part) for part in used if part not in inner)

    def _marginal(self, part: Part) -> Marginal:
        return Marginal(self.domain, tuple(self.domain.names[i] for i in part))

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @property
    def key(self) -> str:
        return f"residuals up to {self.parts.order} {sha256(repr(self.weights).encode()).hexdigest()}"

    def release(self, counts: Sequence[NDArray[np.int64]], *, noise: NoiseSource) -> list[list[int]]:
        tables: dict[Part, NDArray[np.int64]] = {}
        for marginal, table in zip(self.marginals, counts, strict=True):
            whole = tuple(self.domain.names.index(name) for name in marginal.by)
            for part in parts_of(whole):
                if part not in tables:
                    others = tuple(axis for axis, i in enumerate(whole) if i not in part)
                    tables[part] = table.sum(axis=others)
        return [
            self.mechanism.release(combined(tables[part], w), noise=noise).ravel().tolist()
            for part, w in zip(self.parts.all, self.weights, strict=True)
            if w
        ]


@dataclass(frozen=True, eq=False)
class Marginals:
    """Noisy residuals; a cell that was not known well enough when they were bought is within `width` now."""

    domain: Domain
    parts: Parts
    residuals: Mapping[Part, Values]
    before: Knowledge
    rows: float
    limit: float
    """Half of the widest interval that was enough to know a cell well."""
    width: float

    def interval(self, box: Box) -> Interval | None:
        """A count that is one cell of a marginal."""
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

    def table(self, by: Clique, where: Box) -> Table | None:
        part = tuple(self.domain.names.index(name) for name in by)
        if where.sides or not part or any(inner not in self.residuals for inner in parts_of(part)):
            return None
        shape = self.domain.shape(by)
        found = np.full(shape, self.rows / prod(shape))
        for inner in parts_of(part):
            sizes = [self.parts.sizes[i] if i in inner else 1 for i in part]
            rest = prod(self.parts.sizes[i] for i in part if i not in inner)
            found = found + self.residuals[inner].reshape(sizes) / rest
        known = self.before.table(by, where)
        wide = known.high - known.low > 2 * self.limit
        return Table(np.where(wide, found - self.width, -np.inf), np.where(wide, found + self.width, np.inf))


@dataclass(frozen=True, eq=False)
class BuyMarginals:
    """The residuals of all marginals up to `order`; the plan holds their weights."""

    kind: ClassVar[str] = "marginals"
    order: int
    weights: tuple[int, ...]
    share: float
    price: Price

    @classmethod
    def of(cls, shop: Shop, knowledge: Knowledge, order: int, share: float) -> BuyMarginals | None:
        """The cheapest at which every cell that is not known well enough is within the width; None if all are.

        The cells that need it are fixed by what was released before, and the noise is independent of that: so the
        union bound over them holds whatever is asked later.
        """
        domain = shop.curator.domain
        parts = Parts(domain.shape(domain.names), order)
        unknown = np.array([_unknown(knowledge, domain, part, shop.width) for part in parts.all])
        if not unknown.any():
            return None
        weights = parts.weights(unknown > 0)
        sup = float(norm.isf(share / unknown.sum() / 2)) * float(parts.spreads(weights)[unknown > 0].max())
        spread = (PART * shop.width - _steps(parts, weights)) / sup
        price = digits(parts.l2_squared(weights) / (2 * spread**2))
        return cls(order, tuple(weights), share, {"rho": price})

    @classmethod
    def read(cls, shop: Shop, plan: Mapping[str, Any]) -> BuyMarginals:
        return cls(plan["order"], tuple(plan["weights"]), plan["share"], price_in(plan))

    def plain(self) -> dict[str, Any]:
        return {"order": self.order, "weights": self.weights, "share": self.share, **written(self.price)}

    def _look(self, shop: Shop) -> ResidualLook:
        domain = shop.curator.domain
        parts = Parts(domain.shape(domain.names), self.order)
        mechanism = GaussianMechanism(rho=self.price["rho"], l2_squared=parts.l2_squared(self.weights))
        return ResidualLook(domain, parts, self.weights, mechanism)

    def event(self, shop: Shop) -> Event:
        return self._look(shop).event

    def make(self, shop: Shop, knowledge: Knowledge, *, request: str, analyst: str) -> Learnt:
        look = self._look(shop)
        released, cost = shop.run(look, request=request, analyst=analyst)
        residuals, at = {}, 0
        for part, w in zip(look.parts.all, self.weights, strict=True):
            if w:
                shape = [look.parts.sizes[i] for i in part]
                table = np.array(released[at], np.float64).reshape(shape) / (w * prod(shape))
                residuals[part] = centred(table, range(len(part)))
                at += 1
        before = Knowledge(knowledge.grid, knowledge.total, dict(knowledge.one_ways))
        rows, width = knowledge.total[0], float(shop.width)
        knowledge.marginals.append(
            Marginals(look.domain, look.parts, residuals, before, rows, width, PART * width)
        )
        return Learnt(cost)


def can_buy(shop: Shop, order: int) -> bool:
    """Gaussian noise, a public number of rows, and few enough cells."""
    domain = shop.curator.domain
    if shop.is_pure or not shop.replaces or not 1 <= order <= min(MOST_ORDER, len(domain)):
        return False
    parts = Parts(domain.shape(domain.names), order)
    if not parts.is_feasible:
        return False
    return sum(domain.size(clique) for clique in combinations(domain.names, order)) <= MOST_CELLS


def _unknown(knowledge: Knowledge, domain: Domain, part: Part, width: int) -> int:
    by = tuple(domain.names[i] for i in part)
    table = Knowledge(knowledge.grid, knowledge.total, knowledge.one_ways).table(by, Box(domain, {}))
    return int((table.high - table.low > 2 * width).sum())


def _steps(parts: Parts, weights: Sequence[int]) -> float:
    """How far one step of noise in every combination can move a cell (`simulation`)."""
    return sum(
        2.0 ** len(part) / (w * prod(parts.sizes[i] for i in part))
        for part, w in zip(parts.all, weights, strict=True)
        if w
    )
