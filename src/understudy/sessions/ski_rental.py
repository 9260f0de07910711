"""Rent or buy: single answers are bought until a class that holds them would have cost no more.

What was paid for questions of a class is its rent: their joint price, where the ledger's joint accounting has
begun to count, else the sum. A class is bought when its rent, with the next question, passes its price; every
payment speaks for one purchase at most, so that classes together cost no more than the answers that were bought by
themselves. There are two ways to buy earlier. Where the questions that are still expected would, at the present
rate, cost several times the price, a part of the rent is enough. And a class that is being asked for is bought at
once if classes on the same attributes, of other rows, or all classes together, have saved as much: where one
question after the other varies just what it varies, or where other classes of the same rows were bought.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb, prod

import numpy as np
from scipy.stats import norm

from understudy.domain.domain import Clique
from understudy.privacy.joint import WIDE
from understudy.privacy.price import Price
from understudy.query.box import Box, Cells
from understudy.query.marginal import Marginal
from understudy.sessions.families import Family, Kind, Product
from understudy.sessions.knowledge import Knowledge, Place
from understudy.sessions.marginals_class import can_buy
from understudy.sessions.product_class import ProductPurchase, grid_product, is_feasible, usual_kinds
from understudy.sessions.purchase import Calibrator, coarse

SMALL = 1 << 10
"""Cells of a whole domain that are thought of as one class."""

MOST_RENTS = 1 << 16

MEMBERS = 2.0
"""Questions that a class is thought to serve, for each cell of its attributes."""

FEW = 3
MOST_PAIRS = 4
"""Attributes of so few cells, and so many of them, are thought of as labels."""

LEAST = 10
"""A class of marginals costs more than so many of them."""

SEEN = 6
"""Questions of a class that make a rate."""

FORECAST_GROUP_BYS, EVIDENCE_GROUP_BYS = 1.5, 0.06
FORECAST, EVIDENCE = 2.0, 0.1
"""A class is bought when it is expected to save so many times its price, and this part of it was paid as rent."""

Class = tuple[Clique, Place]
"""The attributes that a class varies, and what it says of the others."""

Sides = tuple[Cells | None, ...]


@dataclass(slots=True)
class _Payment:
    """For one question; counted until a class was bought for it."""

    amount: float
    wide: bool
    counts: bool = True


@dataclass(frozen=True, slots=True)
class _Run:
    """Questions of one class, one after the other: the sides of the first and of the last, and which varied."""

    first: Place
    last: Place
    varied: frozenset[str]


class SkiRental:
    """What was paid for questions of each class that might be bought."""

    def __init__(self, calibrator: Calibrator) -> None:
        self._calibrator = calibrator
        self._rent: OrderedDict[Class, list[tuple[Sides, _Payment]]] = OrderedDict()
        self._paid: dict[tuple[Clique, bool], float] = {}
        self._served: dict[tuple[Clique, bool], float] = {}
        self._feasible: dict[tuple[Clique, tuple[Kind, ...]], bool] = {}
        self._held: dict[Class, tuple[Kind, ...]] = {}
        self._places: set[Place] = set()
        self._like: dict[Clique, tuple[Kind, ...]] = {}
        self._runs: dict[Class, _Run] = {}
        self._asked_for = self._charged = 0.0

    # ---- what could be bought

    @cached_property
    def is_small(self) -> bool:
        """The whole domain is a class that can be bought."""
        domain = self._calibrator.curator.domain
        return domain.size() <= SMALL and self._possible(
            self._whole, usual_kinds(self._calibrator, self._whole)
        )

    @cached_property
    def _whole(self) -> Clique:
        domain = self._calibrator.curator.domain
        return domain.clique(a.name for a in domain if a.size > 1)

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        """Attributes of few cells, which may be asked for beside any other: labels of two classes, say."""
        found = [
            a.name
            for a in self._calibrator.curator.domain
            if 1 < a.size <= FEW and not self._calibrator.is_ordered(a.name)
        ]
        return tuple(found[:MOST_PAIRS])

    def _classes(self, box: Box) -> Iterator[Class]:
        """The classes that may hold a box."""
        ranges, cells = [], []
        for name, side in box.sides.items():
            if not self._calibrator.is_ordered(name):
                cells += [name] if int(side.sum()) == 1 else []
            elif Family(side.size, "ranges").holds(side):
                ranges.append(name)
        names = {(name, label): None for name in (*ranges, *cells) for label in self._labels if name != label}
        names |= {(name,): None for name in (*ranges, *cells)}
        names |= dict.fromkeys(combinations(ranges, 2))
        for by in dict.fromkeys(box.domain.clique(some) for some in names):
            yield by, tuple(part for part in box.key if part[0] not in by)
        if self.is_small:
            yield self._whole, ()

    def _possible(self, by: Clique, kinds: tuple[Kind, ...]) -> bool:
        if (by, kinds) not in self._feasible:
            self._feasible[by, kinds] = is_feasible(self._calibrator, by, kinds)
        return self._feasible[by, kinds]

    def _kinds(self, found: Class, members: Sequence[Sides]) -> tuple[Kind, ...]:
        """The families that hold what was asked of a class, as small as those of the class on `by` before it.

        The second time, that of all ranges and subsets.
        """
        by, _ = found
        usual = usual_kinds(self._calibrator, by)
        if found in self._held or by == self._whole:
            return usual
        kinds: list[Kind] = []
        for axis, (kind, like) in enumerate(zip(usual, self._like.get(by, (None,) * len(by)), strict=True)):
            sides = [member[axis] for member in members]
            size = self._calibrator.curator.domain[by[axis]].size
            narrower: tuple[Kind, ...] = ("prefixes", "suffixes") if kind == "ranges" else ("cells",)
            fits: list[Kind] = [k for k in narrower if like != kind and _hold(Family(size, k), sides)]
            kinds.append(fits[0] if fits else kind)
        return tuple(kinds)

    # ---- the books

    def pay(self, box: Box, price: Price, charged: float) -> None:
        """A question was bought by itself; with joint accounting it was `charged` less than its price, or more."""
        amount = float(price.amount)
        self._runs = self._runs_with(box)
        self._asked_for += amount
        self._charged += charged
        payment = self._payment(box, amount)
        for found in self._classes(box):
            paid = self._rent.pop(found, [])
            paid.append((_sides(box, found[0]), payment))
            self._rent[found] = paid
        while len(self._rent) > MOST_RENTS:
            self._rent.popitem(last=False)

    def _payment(self, box: Box, amount: float) -> _Payment:
        covered = prod(float(cells.mean()) for cells in box.sides.values())
        return _Payment(amount, wide=covered > float(WIDE))

    def bought(self, purchase: ProductPurchase) -> None:
        """A class was bought: what was paid for its questions speaks for no other."""
        by, place = purchase.by, _place(purchase)
        alike = by, bool(place)
        self._paid[alike] = self._paid.get(alike, 0.0) + float(purchase.price.amount)
        if (by, place) not in self._held:
            self._like[by] = purchase.kinds
        self._held[by, place] = purchase.kinds
        self._places.add(place)
        for _, payment in self._rent.pop((by, place), []):
            payment.counts = False

    def serve(self, box: Box, price: float, knowledge: Knowledge) -> None:
        """A question cost nothing: thanks to a class, if one holds it and histograms alone say too little."""
        self._runs = self._runs_with(box)
        low, high = knowledge.frechet(box)
        if high - low <= 2 * self._calibrator.width:
            return
        for by, place in self._runs:
            kinds = self._held.get((by, place))
            if kinds is not None and self._are_members(by, kinds, _sides(box, by)):
                alike = by, bool(place)
                self._served[alike] = self._served.get(alike, 0.0) + price
                return

    def _are_members(self, by: Clique, kinds: tuple[Kind, ...], sides: Sides) -> bool:
        sizes = self._calibrator.curator.domain.shape(by)
        each = zip(sizes, kinds, sides, strict=True)
        return all(_hold(Family(size, kind), [side]) for size, kind, side in each)

    def _runs_with(self, box: Box) -> dict[Class, _Run]:
        """The classes that hold a question and those just before it."""
        found = {}
        for by, place in self._classes(box):
            mine = tuple(part for part in box.key if part[0] in by)
            before = self._runs.get((by, place), _Run(mine, mine, frozenset()))
            changed = {name for name, _ in set(before.last) ^ set(mine)}
            found[by, place] = _Run(before.first, mine, before.varied | changed)
        return found

    # ---- the choice

    def choose(
        self, box: Box, price: Price, knowledge: Knowledge, *, left: float, asked: int, ahead: int
    ) -> ProductPurchase | None:
        """The class to buy instead of one more answer, if any; it takes a part of the `left` of β.

        `asked` questions came, and about as many as `ahead` are to come.
        """
        payment, runs = self._payment(box, float(price.amount)), self._runs_with(box)
        for found in self._classes(box):
            by, place = found
            if self._held.get(found) == usual_kinds(self._calibrator, by):
                continue
            members = [(_sides(box, by), payment), *self._rent.get(found, [])]
            asked_for = [sides for sides, _ in members]
            kinds = self._kinds(found, [*asked_for, *_run_sides(box, by, runs[found])])
            if not self._possible(by, kinds):
                continue
            at_once = self._is_asked_for(found, runs[found])
            rate = sum(paid.counts for _, paid in members) / max(asked, 1)
            worth = (
                self._worth(found, members, rate * ahead * payment.amount)
                if self._varied(by, asked_for)
                else 0.0
            )
            if not at_once and worth <= self._least(by, kinds):
                continue
            likely = max(MEMBERS * sum(box.domain.shape(by)), 0.0 if place else rate * ahead)
            part = coarse(left * min(0.5, likely / (ahead + 1)))
            where = Box(box.domain, {name: cells for name, cells in box.sides.items() if name not in by})
            offer = ProductPurchase.of(self._calibrator, by, where.query, part, kinds)
            if offer is not None and self._is_due(offer, worth, at_once=at_once):
                return offer
        return None

    def _is_asked_for(self, found: Class, run: _Run) -> bool:
        """Whether questions in a row vary what a class varies; or its like was bought, and others of its rows."""
        by, place = found
        return run.varied >= set(by) or (
            place in self._places and found not in self._held and self._is_proven(found)
        )

    def _is_proven(self, found: Class) -> bool:
        """Classes on the same attributes, of all rows or of some as this one, have served more than they cost."""
        alike = found[0], bool(found[1])
        return 0 < self._paid.get(alike, 0.0) <= self._served.get(alike, 0.0)

    def _is_due(self, offer: ProductPurchase, worth: float, *, at_once: bool) -> bool:
        """The rent has reached the price; or the class is being asked for, and classes have saved as much."""
        price = float(offer.price.amount)
        saved = sum(self._served.values()) - sum(self._paid.values())
        return worth > price or (at_once and (self._is_proven((offer.by, _place(offer))) or saved >= price))

    def _varied(self, by: Clique, members: Sequence[Sides]) -> bool:
        """Whether the questions differ along every attribute of a class."""
        if by == self._whole:
            return True
        keys = [tuple(None if side is None else side.tobytes() for side in member) for member in members]
        return all(len(set(along)) > 1 for along in zip(*keys, strict=True))

    def _worth(self, found: Class, members: Sequence[tuple[Sides, _Payment]], coming: float) -> float:
        """The rent; or, if enough questions came to tell their rate, what is coming, on some evidence.

        A class of all rows is charged to everybody, and so is compared with what answers are charged on average.
        """
        counted = [(sides, paid) for sides, paid in members if paid.counts]
        flat = rent = sum(paid.amount for _, paid in counted)
        if self._charged < self._asked_for:
            rent = self._joint_rent(found[0], counted) if found[1] else flat * self._charged / self._asked_for
        forecast = min(coming * rent / flat / FORECAST, rent / EVIDENCE) if len(counted) >= SEEN else 0.0
        return max(rent, forecast)

    def _joint_rent(self, by: Clique, members: Sequence[tuple[Sides, _Payment]]) -> float:
        """Wide questions by their sum, others by what the worst cells of two neighbours pay."""
        shape = self._calibrator.curator.domain.shape(by)
        table, flat = np.zeros(shape), 0.0
        for sides, paid in members:
            if paid.wide:
                flat += paid.amount
                continue
            table[
                np.ix_(*(np.ones(n, bool) if s is None else s for s, n in zip(sides, shape, strict=True)))
            ] += paid.amount
        return flat + self._calibrator.relation.cells_of_a_difference * float(table.max())

    def _least(self, by: Clique, kinds: tuple[Kind, ...]) -> float:
        """A class costs more than this, whatever its share of β: its widest member alone does."""
        product = grid_product(self._calibrator, by, kinds)
        spread = self._calibrator.width / (_norm(product) * float(norm.isf(0.25)))
        found = self._calibrator.price_of_spread(self._calibrator.marginal(by), product.matrices, spread)
        return float(found.amount)


def _sides(box: Box, by: Clique) -> Sides:
    return tuple(box.sides.get(name) for name in by)


def _run_sides(box: Box, by: Clique, run: _Run) -> list[Sides]:
    """The sides of the first question of a run."""
    first = dict(run.first)
    sizes = box.domain.shape(by)
    return [
        tuple(
            np.unpackbits(np.frombuffer(first[name], np.uint8), count=size).astype(bool)
            if name in first
            else None
            for name, size in zip(by, sizes, strict=True)
        )
    ]


def _hold(family: Family, sides: Sequence[Cells | None]) -> bool:
    return all(family.holds_all if side is None else family.holds(side) for side in sides)


def _place(purchase: ProductPurchase) -> Place:
    where = Box.of(purchase.where)
    assert where is not None
    return where.key


class MarginalsSkiRental:
    """The same for marginals of all rows: one class for each order."""

    def __init__(self) -> None:
        self._rent = 0.0
        self._seen = 0
        self._order = 0
        self._worth = 0.0
        self._tried = 0.0

    def pay(self, marginal: Marginal, price: Price) -> None:
        """A marginal was bought by itself."""
        if not marginal.where.factors:
            self._rent += float(price.amount)
            self._seen += 1
            self._order = max(self._order, len(marginal.by))

    def due(self, calibrator: Calibrator, marginal: Marginal, price: Price, *, asked: int, ahead: int) -> int:
        """The order of the class whose price is worth finding out now; 0 for none."""
        order = max(self._order, len(marginal.by))
        if marginal.where.factors or self._seen + 1 < SEEN or not can_buy(calibrator, order):
            return 0
        amount = float(price.amount)
        rent, seen = self._rent + amount, self._seen + 1
        others = sum(comb(len(marginal.domain), size) for size in range(1, order + 1)) - seen
        coming = max(min(ahead * seen / max(asked, 1), others), 0) * rent / seen
        self._worth = max(rent, min(coming / FORECAST_GROUP_BYS, rent / EVIDENCE_GROUP_BYS))
        if self._worth < 1.1 * self._tried or self._worth < LEAST * amount:
            return 0
        return order

    def is_worth(self, price: Price) -> bool:
        """Whether the class is due at this price; if not, it is not asked for again until more is at stake."""
        if self._worth <= float(price.amount):
            self._tried = self._worth
            return False
        return True


@lru_cache(maxsize=1024)
def _norm(product: Product) -> float:
    return product.norm(2)
