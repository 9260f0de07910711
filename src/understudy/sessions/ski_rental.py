"""When to buy a class: the ski-rental problem, rent or buy.

Buying the counts of one question is renting; buying a class that contains it, and questions like it, is buying.
The rent of a class is what was paid for its questions so far: their joint price, where the ledger's joint
accounting has begun to count, else the sum.

Rule        A class is bought when its rent, with the next question, passes its price.
Why         Every payment is counted for one class at most: when a class is bought, the payments for its questions
            count no more. So classes that are bought by the rule cost together no more than the questions that
            were bought by themselves. [Karlin, Manasse, Rudolph, Sleator 1988: the deterministic strategy]
Earlier     There are two exceptions, in which a forecast or earlier savings stand for a part of the rent. Where
            the questions that are still expected would, at the present rate, cost several times the price, a part
            of the rent is enough (`FORECAST`, `EVIDENCE`). And a class is bought at once if classes like it, or
            all classes together, have saved as much as it costs, and it is being asked for: one question after the
            other varies just what it varies, or other classes of the same rows were bought.
Never       A class is not bought where the counts of all its members that were not asked for cost no more.
Bound       The rule says what is wanted. What a session pays beside direct answers is bounded by its `allowance`,
            which every purchase of a class has to keep.
Privacy     Decisions read prices, questions and what was charged, which are public; they cost nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from understudy.domain.domain import Clique
from understudy.privacy.joint import WIDE
from understudy.privacy.price import Price
from understudy.query.box import Box, Cells
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.beta_spending import part_of_class
from understudy.sessions.calibrator import Calibrator, coarse
from understudy.sessions.families import CellFamily, Kind
from understudy.sessions.knowledge import Knowledge, Place
from understudy.sessions.product_class import ProductPurchase, is_feasible, product_on, usual_kinds
from understudy.theory.normal_law import ndtri

SMALL = 1 << 10
"""A domain of at most so many cells is a candidate as a whole: one class of all conjunctions."""

MOST_RENTS = 1 << 16
"""Candidates whose payments are remembered; the one that was paid for longest ago is forgotten first."""

MOST_OF_BETA = 0.75
"""The most of what is left of β that goes to one class (`beta_spending.part_of_class`)."""

FEW = 3
"""An unordered attribute of at most so many cells counts as a label, which is often asked for beside others."""

MOST_PAIRS = 4
"""At most so many attributes count as labels."""

SEEN = 6
"""From so many questions of a class on, the rate at which they come is used as a forecast."""

FORECAST, EVIDENCE = 6.0, 0.1
"""A class is bought early when it is expected to save `FORECAST` times its price, and the part `EVIDENCE` of
its price was paid as rent."""

Class = tuple[Clique, Place]
"""A class that could be bought: the attributes that it varies, and the key of the box of rows that it is of."""

Sides = tuple[Cells | None, ...]
"""The sets of cells that a question has along the attributes of a class; None where it has no condition."""


@dataclass(slots=True)
class _Payment:
    """The price of one question in ε or ρ; `counts` until a class was bought for it."""

    amount: float
    wide: bool
    counts: bool = True


@dataclass(frozen=True, slots=True)
class _QuestionRun:
    """Questions of one class, one after the other: the sides of the first and of the last, and which varied."""

    first: Place
    last: Place
    varied: frozenset[str]


class SkiRental:
    """Remembers what was paid for questions of every product class that could be bought, and chooses by the rule.

    Rule, reason and exceptions are those of the module.
    """

    def __init__(self, calibrator: Calibrator) -> None:
        self._calibrator = calibrator
        self._history: list[tuple[Place, _Payment] | tuple[Class]] = []
        """What was paid, each with the key of the box that it was paid for, and the classes that were bought, in
        their order."""
        self._paid: dict[tuple[Clique, bool], float] = {}
        self._served: dict[tuple[Clique, bool], float] = {}
        self._feasible: dict[tuple[Clique, tuple[Kind, ...]], bool] = {}
        self._held: dict[Class, tuple[Kind, ...]] = {}
        self._spent: dict[Class, float] = {}
        self._places: set[Place] = set()
        self._like: dict[Clique, tuple[Kind, ...]] = {}
        self._runs: dict[Class, _QuestionRun] = {}
        self._asked_for = self._charged = 0.0
        self._latest: tuple[Place, _Payment] | None = None

    # ---- what could be bought

    @cached_property
    def is_small(self) -> bool:
        """Whether the whole domain is a class that can be bought."""
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
        """Attributes of few cells, such as yes and no, which may be asked for beside any other."""
        labels = [
            a.name
            for a in self._calibrator.curator.domain
            if 1 < a.size <= FEW and not self._calibrator.is_ordered(a.name)
        ]
        return tuple(labels[:MOST_PAIRS])

    def _classes(self, box: Box) -> Iterator[Class]:
        """The classes that could be bought and may contain the count of a box."""
        ranges, cells = [], []
        for name, side in box.sides.items():
            if not self._calibrator.is_ordered(name):
                cells += [name] if int(side.sum()) == 1 else []
            elif CellFamily(side.size, "ranges").holds(side):
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

    def _kinds(self, candidate: Class, members: Sequence[Sides]) -> tuple[Kind, ...]:
        """The kinds of families that contain what was asked of a class: the narrowest ones, such as prefixes.

        They are as wide as those of the last class on the same attributes; and all ranges and all sets where this
        class was bought before, too narrow.
        """
        by, _ = candidate
        usual = usual_kinds(self._calibrator, by)
        if candidate in self._held or by == self._whole:
            return usual
        kinds: list[Kind] = []
        for axis, (kind, like) in enumerate(zip(usual, self._like.get(by, (None,) * len(by)), strict=True)):
            sides = [member[axis] for member in members]
            size = self._calibrator.curator.domain[by[axis]].size
            narrower: tuple[Kind, ...] = ("prefixes", "suffixes") if kind == "ranges" else ("cells",)
            fits: list[Kind] = [k for k in narrower if like != kind and _hold(CellFamily(size, k), sides)]
            kinds.append(fits[0] if fits else kind)
        return tuple(kinds)

    # ---- what was paid and saved

    @cached_property
    def _rent(self) -> OrderedDict[Class, list[tuple[Sides, _Payment]]]:
        """What was paid for the questions of each class, with their sides, since it was bought last.

        It follows from the history. A question has a dozen of classes: so a checkpoint keeps the history alone,
        and who goes on finds this when something has to be bought.
        """
        found, domain = OrderedDict[Class, list[tuple[Sides, _Payment]]](), self._calibrator.curator.domain
        for event in self._history:
            if len(event) == 2:
                self._add_rent(found, Box.from_key(domain, event[0]), event[1])
            else:
                found.pop(event[0], None)
        return found

    def _add_rent(
        self, rent: OrderedDict[Class, list[tuple[Sides, _Payment]]], box: Box, payment: _Payment
    ) -> None:
        for candidate in self._classes(box):
            paid = rent.pop(candidate, [])
            paid.append((_sides(box, candidate[0]), payment))
            rent[candidate] = paid
        while len(rent) > MOST_RENTS:
            rent.popitem(last=False)

    def pay(self, box: Box, price: Price, charged: float, *, again: bool = False) -> None:
        """Remember a question that was bought by itself at a price; `again` adds to what was paid for it
        before.

        `charged` is what the ledger's joint accounting took for it, in ε or ρ, which may be less or more.
        """
        amount = float(price.amount)
        if again and self._latest is not None and self._latest[0] == box.key:
            self._asked_for += amount
            self._charged += charged
            self._latest[1].amount += amount
            return
        self._runs = self._runs_with(box)
        self._asked_for += amount
        self._charged += charged
        payment = self._payment(box, amount)
        self._latest = box.key, payment
        self._add_rent(self._rent, box, payment)
        self._history.append(self._latest)

    def _payment(self, box: Box, amount: float) -> _Payment:
        covered = prod(float(cells.mean()) for cells in box.sides.values())
        return _Payment(amount, wide=covered > float(WIDE))

    def bought(self, purchase: ProductPurchase) -> None:
        """Remember a class that was bought: what was paid for its questions counts for no other class."""
        by, place = purchase.by, _place(purchase)
        alike = by, bool(place)
        self._paid[alike] = self._paid.get(alike, 0.0) + float(purchase.price.amount)
        if (by, place) not in self._held:
            self._like[by] = purchase.kinds
        self._held[by, place] = purchase.kinds
        self._places.add(place)
        spent = float(purchase.price.amount)
        for _, payment in self._rent.pop((by, place), []):
            spent += payment.amount
            payment.counts = False
        self._history.append(((by, place),))
        self._spent[by, place] = self._spent.get((by, place), 0.0) + spent

    def holds(self, by: Clique) -> bool:
        """Whether a class of all rows on some attributes was bought."""
        return (by, ()) in self._held

    def serve(self, box: Box, price: float, knowledge: Knowledge) -> None:
        """Remember a question that cost nothing.

        A class has saved `price`, in ε or ρ, if it contains the question and histograms alone tell too little.
        """
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
        return all(_hold(CellFamily(size, kind), [side]) for size, kind, side in each)

    def _runs_with(self, box: Box) -> dict[Class, _QuestionRun]:
        """For each class that contains a question the run of questions of that class that it ends."""
        runs = {}
        for by, place in self._classes(box):
            mine = tuple(part for part in box.key if part[0] in by)
            before = self._runs.get((by, place), _QuestionRun(mine, mine, frozenset()))
            changed = {name for name, _ in set(before.last) ^ set(mine)}
            runs[by, place] = _QuestionRun(before.first, mine, before.varied | changed)
        return runs

    # ---- the choice

    def choose(
        self, box: Box, price: Price, *, paid: float, left: float, asked: int, ahead: int
    ) -> ProductPurchase | None:
        """The class to buy instead of the counts of a box at `price`; None where none is due.

        `paid` is what counts and classes have cost so far, in ε or ρ, and `left` is what is left of β, of which
        the class takes a part. `asked` questions came so far, and about `ahead` are still to come.
        """
        payment, runs = self._payment(box, float(price.amount)), self._runs_with(box)
        for candidate in runs:
            by, _ = candidate
            if self._held.get(candidate) == usual_kinds(self._calibrator, by):
                continue
            members = [(_sides(box, by), payment), *self._rent.get(candidate, [])]
            asked_for = [sides for sides, _ in members]
            kinds = self._kinds(candidate, [*asked_for, *_run_sides(box, by, runs[candidate])])
            if not self._possible(by, kinds):
                continue
            at_once = self._is_asked_for(candidate, runs[candidate])
            rate = sum(paid.counts for _, paid in members) / max(asked, 1)
            worth = (
                self._worth(candidate, members, rate * ahead * payment.amount)
                if self._varied(by, asked_for)
                else 0.0
            )
            if not at_once and (worth <= 0 or worth <= self._least(by, kinds)):
                continue
            where = Box(box.domain, {name: cells for name, cells in box.sides.items() if name not in by})
            own = sum(each.amount for _, each in members[1:] if each.counts) + self._paid_inside(candidate)
            offer = self._offer(by, where.query, kinds, left, paid - own)
            if offer is None or not self._is_due(offer, worth, at_once=at_once):
                continue
            unasked = product_on(self._calibrator, by, kinds).members - len(_different(asked_for[1:]))
            if unasked * price.amount > offer.price.amount:
                return offer
        return None

    def _offer(
        self, by: Clique, where: LinearQuery, kinds: tuple[Kind, ...], left: float, others: float
    ) -> ProductPurchase | None:
        """A class with the part of β that its price has beside `others`, at most `MOST_OF_BETA`."""
        offer = ProductPurchase.of(self._calibrator, by, where, coarse(left * MOST_OF_BETA), kinds)
        if offer is None:
            return None
        share = coarse(left * min(part_of_class(float(offer.price.amount), others), MOST_OF_BETA))
        return (
            offer if share == offer.share else ProductPurchase.of(self._calibrator, by, where, share, kinds)
        )

    def _paid_inside(self, candidate: Class) -> float:
        """What was paid for classes on some of a class's attributes, of the same rows, and before them for their
        questions: it answers what they do.
        """
        by, place = candidate
        return sum(spent for (held, of), spent in self._spent.items() if of == place and set(held) <= set(by))

    def _is_asked_for(self, candidate: Class, run: _QuestionRun) -> bool:
        """Whether a class is being asked for.

        It is where questions in a row varied all that it varies; or where classes of the same rows were bought,
        and classes on the same attributes have paid off.
        """
        by, place = candidate
        return run.varied >= set(by) or (
            place in self._places and candidate not in self._held and self._is_proven(candidate)
        )

    def _is_proven(self, candidate: Class) -> bool:
        """Whether classes on the same attributes (of all rows, or of some, as this) saved more than they cost."""
        alike = candidate[0], bool(candidate[1])
        return 0 < self._paid.get(alike, 0.0) <= self._served.get(alike, 0.0)

    def _is_due(self, offer: ProductPurchase, worth: float, *, at_once: bool) -> bool:
        """Whether the rent passed the price; or the class is being asked for, and classes have saved as much."""
        price = float(offer.price.amount)
        saved = sum(self._served.values()) - sum(self._paid.values())
        return worth > price or (at_once and (self._is_proven((offer.by, _place(offer))) or saved >= price))

    def _varied(self, by: Clique, members: Sequence[Sides]) -> bool:
        """Whether the questions differ along every attribute of a class."""
        if by == self._whole:
            return True
        return all(len(set(along)) > 1 for along in zip(*_different(members), strict=True))

    def _worth(self, candidate: Class, members: Sequence[tuple[Sides, _Payment]], coming: float) -> float:
        """The rent in ε or ρ; or, if enough questions came to tell their rate, the forecast, if that is more.

        A class of all rows is charged to everybody, and so is compared with what answers are charged on average.
        """
        counted = [(sides, paid) for sides, paid in members if paid.counts]
        flat = rent = sum(paid.amount for _, paid in counted)
        if self._charged < self._asked_for:
            rent = (
                self._joint_rent(candidate[0], counted)
                if candidate[1]
                else flat * self._charged / self._asked_for
            )
        forecast = min(coming * rent / flat / FORECAST, rent / EVIDENCE) if len(counted) >= SEEN else 0.0
        return max(rent, forecast)

    def _joint_rent(self, by: Clique, members: Sequence[tuple[Sides, _Payment]]) -> float:
        """The joint price of payments: wide questions by their sum, others by the most that the cells of two
        neighbouring tables pay.
        """
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
        """A lower bound of a class's price, whatever its share of β: its widest member alone costs so much."""
        product = product_on(self._calibrator, by, kinds)
        spread = self._calibrator.width / (product.norm(2) * -float(ndtri(0.25)))
        price = self._calibrator.price_of_spread(
            Marginal(self._calibrator.curator.domain, by), product.matrices, spread
        )
        return float(price.amount)


def _different(members: Sequence[Sides]) -> set[tuple[bytes | None, ...]]:
    """The members of a class that differ, by the bytes of their sides."""
    return {tuple(None if side is None else side.tobytes() for side in member) for member in members}


def _sides(box: Box, by: Clique) -> Sides:
    return tuple(box.sides.get(name) for name in by)


def _run_sides(box: Box, by: Clique, run: _QuestionRun) -> list[Sides]:
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


def _hold(family: CellFamily, sides: Sequence[Cells | None]) -> bool:
    return all(family.holds_all if side is None else family.holds(side) for side in sides)


def _place(purchase: ProductPurchase) -> Place:
    where = Box.of(purchase.where)
    assert where is not None
    return where.key
