"""Rent or buy: single answers are bought until a class that holds them would have cost no more.

What was paid for questions of a class is its rent. A class is bought when its rent, with the next question, passes
its price: so no more than twice the better of the two is ever paid. It is bought earlier where the questions that
are still expected would, at the present rate, cost several times its price; and at once where classes on the same
attributes, of other rows, have already served more than they cost.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb

from scipy.stats import norm

from understudy.domain import Clique
from understudy.interactive.conjunction import Box
from understudy.interactive.families import Family, Product
from understudy.interactive.group_bys import can_buy
from understudy.interactive.knowledge import Knowledge, Place
from understudy.interactive.purchase import Price, Shop, coarse
from understudy.interactive.wholesale import BuyGrids, grid_product, is_feasible
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal

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


class Renting:
    """What was paid for questions of each class that might be bought."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._rent: OrderedDict[Class, tuple[float, int]] = OrderedDict()
        self._paid: dict[Clique, float] = {}
        self._served: dict[Clique, float] = {}
        self._feasible: dict[Clique, bool] = {}
        self._asked_for = self._charged = 0.0
        self._beside: set[tuple[Clique, str, bool]] = set()

    # ---- what could be bought

    @cached_property
    def is_small(self) -> bool:
        """The whole domain is a class that can be bought."""
        domain = self._shop.curator.domain
        whole = domain.clique(a.name for a in domain if a.size > 1)
        return domain.size() <= SMALL and self._possible(whole)

    @cached_property
    def _pairs(self) -> tuple[str, ...]:
        """Attributes of few cells, which may be asked for beside any range: labels of two classes, say."""
        found = [
            a.name
            for a in self._shop.curator.domain
            if 1 < a.size <= FEW and not self._shop.is_ordered(a.name)
        ]
        return tuple(found[:MOST_PAIRS])

    def _classes(self, box: Box) -> Iterator[Class]:
        """The attributes of each class that holds a box, and what it says of the others."""
        domain = box.domain
        ranges = [
            name
            for name, cells in box.sides.items()
            if self._shop.is_ordered(name) and Family(cells.size, ordered=True).holds(cells)
        ]
        names: list[tuple[str, ...]] = [(name, other) for name in ranges for other in self._pairs]
        names += [(name,) for name in ranges]
        names += combinations(ranges, 2)
        for some in names:
            yield domain.clique(some), tuple(part for part in box.key if part[0] not in some)
        if self.is_small:
            yield domain.clique(a.name for a in domain if a.size > 1), ()

    def _possible(self, by: Clique) -> bool:
        if by not in self._feasible:
            self._feasible[by] = is_feasible(self._shop, by)
        return self._feasible[by]

    # ---- the books

    def pay(self, box: Box, price: Price, charged: float) -> None:
        """A question was bought by itself; with joint accounting it was `charged` less than its price, or more."""
        [amount] = price.values()
        self._asked_for += float(amount)
        self._charged += charged
        for found in self._classes(box):
            rent, asked = self._rent.pop(found, (0.0, 0))
            self._rent[found] = (rent + float(amount), asked + 1)
        while len(self._rent) > MOST_RENTS:
            self._rent.popitem(last=False)

    def bought(self, by: Clique, where: LinearQuery, price: Price) -> None:
        """A class was bought, of the rows in a box."""
        [amount] = price.values()
        self._paid[by] = self._paid.get(by, 0.0) + float(amount)
        for label in self._pairs:
            if label not in by:
                self._beside.add((by, label, label in where.clique))

    def _is_proven(self, by: Clique) -> bool:
        """Classes on these attributes have served more than they cost.

        So has a range with a label where the range alone has, and was bought for rows of one label and for all.
        """
        if by in self._paid:
            return 0 < self._paid[by] <= self._served.get(by, 0.0)
        for label in set(by) & set(self._pairs):
            rest = tuple(name for name in by if name != label)
            both = {(rest, label, True), (rest, label, False)} <= self._beside
            if both and rest in self._paid and self._is_proven(rest):
                return True
        return False

    def serve(self, box: Box, price: float, knowledge: Knowledge) -> None:
        """A question cost nothing, perhaps thanks to a class."""
        for by in self._paid:
            if knowledge.holds_class(by, tuple(part for part in box.key if part[0] not in by)):
                self._served[by] = self._served.get(by, 0.0) + price

    @property
    def _part(self) -> float:
        """What is charged for questions, as a part of their prices: a class of all rows has no such rebate."""
        return min(self._charged / self._asked_for, 1.0) if self._asked_for else 1.0

    # ---- the choice

    def choose(
        self, box: Box, price: Price, knowledge: Knowledge, *, left: float, asked: int, ahead: int
    ) -> BuyGrids | None:
        """The class to buy instead of one more answer, if any; it takes a part of the `left` of β.

        `asked` questions came, and about as many as `ahead` are to come.
        """
        amount = float(*price.values())
        for by, place in self._classes(box):
            if knowledge.holds_class(by, place) or not self._possible(by):
                continue
            if (
                len(by) > 1
                and not set(self._pairs).isdisjoint(by)
                and not self._is_proven(by)
                and not self.is_small
            ):
                continue  # a range with a label is bought only after the range alone has served
            rent, seen = self._rent.get((by, place), (0.0, 0))
            rate = (seen + 1) / max(asked, 1)
            proven = self._is_proven(by)
            coming = rate * ahead * amount if seen + 1 >= SEEN else 0.0
            worth = max(rent + amount, min(coming / FORECAST, (rent + amount) / EVIDENCE))
            worth *= 1.0 if place else self._part
            if not proven and worth <= self._least(by):
                continue
            likely = max(MEMBERS * sum(box.domain.shape(by)), 0.0 if place else rate * ahead)
            part = coarse(left * min(0.5, likely / (ahead + 1)))
            where = Box(box.domain, {name: cells for name, cells in box.sides.items() if name not in by})
            found = BuyGrids.of(self._shop, by, where.query, part)
            if found.price and (proven or worth > float(*found.price.values())):
                return found
        return None

    def _least(self, by: Clique) -> float:
        """A class costs more than this, whatever its share of β: its widest member alone does."""
        spread = self._shop.width / (_norm(grid_product(self._shop, by)) * float(norm.isf(0.25)))
        product = grid_product(self._shop, by)
        found = self._shop.price_of_spread(self._shop.marginal(by), product.matrices, spread)
        return float(*found.values())


class GroupByRent:
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
            self._rent += float(*price.values())
            self._seen += 1
            self._order = max(self._order, len(marginal.by))

    def due(self, shop: Shop, marginal: Marginal, price: Price, *, asked: int, ahead: int) -> int:
        """The order of the class whose price is worth finding out now; 0 for none."""
        order = max(self._order, len(marginal.by))
        if marginal.where.factors or self._seen + 1 < SEEN or not can_buy(shop, order):
            return 0
        amount = float(*price.values())
        rent, seen = self._rent + amount, self._seen + 1
        others = sum(comb(len(marginal.domain), size) for size in range(1, order + 1)) - seen
        coming = max(min(ahead * seen / max(asked, 1), others), 0) * rent / seen
        self._worth = max(rent, min(coming / FORECAST_GROUP_BYS, rent / EVIDENCE_GROUP_BYS))
        if self._worth < 1.1 * self._tried or self._worth < LEAST * amount:
            return 0
        return order

    def is_worth(self, price: Price) -> bool:
        """Whether the class is due at this price; if not, it is not asked for again until more is at stake."""
        if self._worth <= float(*price.values()):
            self._tried = self._worth
            return False
        return True


@lru_cache(maxsize=1024)
def _norm(product: Product) -> float:
    return product.norm(2)
