"""What a ledger charges for a mix of sources, against brute force over every pair of neighbouring tables.

Every look is shown all tables that one person's row can make, and tells what it would have added noise to: so the
loss of each pair of tables is known, look by look. The looks are those of a session and of a Curator themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counted import Cells
from understudy.curator.candidates import Candidate
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, SourceSpec, Unit
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise.samplers import SeededNoise
from understudy.privacy import joint
from understudy.privacy.budget import Budget
from understudy.privacy.columns import ProductColumns
from understudy.privacy.cost import UNITS
from understudy.privacy.price import Currency, Price
from understudy.privacy.relation import Neighbours
from understudy.query.box import Grid
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.histogram import HistogramPurchase
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.marginals_class import MarginalsPurchase, can_buy
from understudy.sessions.product_class import ProductPurchase
from understudy.sessions.purchase import PurchaseRequest

DOMAIN = Domain(
    (
        Bins.integers("age", 0, 2),
        Categories(name="sex", values=("f",)),
        Categories(name="town", values=("a", "b")),
    )
)
SHAPE = DOMAIN.shape(DOMAIN.names)
BASE = np.random.default_rng(5).integers(20, 60, SHAPE)
REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
BUDGETS = {"rho": Budget.of(1000, 1e-6), "epsilon": Budget.of(1000)}


@dataclass
class Seen:
    """The values that a release added noise to, and the noise."""

    mechanism: LaplaceMechanism | GaussianMechanism
    values: np.ndarray

    def loss(self, other: Seen, currency: str) -> float:
        """What the release tells two tables apart by: Δ²/(2σ²), or Δ₁/scale, of this pair alone."""
        assert (self.mechanism, self.values.shape) == (other.mechanism, other.values.shape)
        off = (self.values - other.values).astype(float)
        if isinstance(self.mechanism, GaussianMechanism):
            return float((off**2).sum() / (2 * self.mechanism.variance))
        epsilon = float(np.abs(off).sum() / self.mechanism.scale)
        return epsilon if currency == "epsilon" else epsilon**2 / 2


class Watched(Curator):
    """A Curator that shows every look all tables that the row, or the rows, of one person can make.

    What each release would have added noise to is kept for each table; what is released is always zeros, so that
    nothing that is looked at later depends on the table.
    """

    def __init__(self, truths: Sequence[Cells], ledger: MemoryLedger, declared: Declaration) -> None:
        self.truths = truths
        super().__init__(self.truths[0], ledger, declared, noise=SeededNoise(1))  # type: ignore[arg-type]
        self.seen: list[list[Seen]] = [[] for _ in truths]
        self.at: int | None = None

    def _paid(self, event, question, terms, look):
        for at, truth in enumerate(self.truths):
            self.at, self._truth = at, truth  # type: ignore[assignment]
            look()
        self.at, self._truth = None, self.truths[0]  # type: ignore[assignment]
        return super()._paid(event, question, terms, look)


@contextmanager
def watching(curator: Watched) -> Iterator[None]:
    """Releases tell their values to a Curator, and give zeros."""

    def release(mechanism, values, *, noise):
        if curator.at is not None:
            curator.seen[curator.at].append(Seen(mechanism, np.array(values, np.int64)))
        return np.zeros_like(values)

    with pytest.MonkeyPatch.context() as patch:
        for kind in (LaplaceMechanism, GaussianMechanism):
            patch.setattr(kind, "release", release)
        yield


@dataclass
class World:
    """A Curator, and what its looks were charged that are known by their parameter alone."""

    curator: Watched
    currency: Currency
    pure: int = 0
    """In units; every pair of tables may lose that much."""

    def __post_init__(self) -> None:
        self.calibrator = Calibrator(self.curator, 40)
        rows = float(BASE.sum() + 1)
        public = self.calibrator.relation.rows_are_public
        self.knowledge = Knowledge(Grid(DOMAIN), (rows, rows) if public else (1.0, 10.0**6))

    def price(self, amount: Fraction) -> Price:
        return Price(self.currency, amount)

    def request(self) -> str:
        return f"look {len(self.curator.ledger.debits())}"

    def buy(self, purchase: Any, price: Fraction) -> None:
        """A session's purchase, at a price of ours."""
        replace(purchase, price=self.price(price)).make(
            self.calibrator, self.knowledge, PurchaseRequest(self.request(), "")
        )

    def measure(self, *marginals: Marginal, price: Price) -> None:
        self.curator.measure_all(marginals, price, request=self.request())

    def charged(self, look: Callable[[], object]) -> None:
        """A look that is known by its parameter alone."""
        before = self.curator.ledger.spent.units
        look()
        self.pure += self.curator.ledger.spent.units - before

    def worst(self) -> float:
        """The largest sum of losses over all pairs of neighbours: two rows, or a person's rows and none."""
        seen = self.curator.seen
        public = self.calibrator.relation.rows_are_public
        pairs = combinations(seen, 2) if public else ((seen[0], other) for other in seen[1:])
        losses = [
            sum(a.loss(b, self.currency) for a, b in zip(one, other, strict=True)) for one, other in pairs
        ]
        return max(losses) + self.pure / UNITS


Look = Callable[[World], None]
PRICE = Fraction(1, 50)


def query(**sides: Sequence[int]) -> LinearQuery:
    return LinearQuery.conjunction(
        DOMAIN, {name: np.isin(np.arange(DOMAIN[name].size), held) for name, held in sides.items()}
    )


# ---- the sources


def fresh(*by: str, price: Fraction = PRICE, **sides: Sequence[int]) -> Look:
    marginal = Marginal(DOMAIN, by, query(**sides))
    return lambda world: world.measure(marginal, price=world.price(price))


def laplace(**sides: Sequence[int]) -> Look:
    """Laplace noise, whatever the currency."""
    return lambda world: world.measure(Marginal.of(query(**sides)), price=Price.of(epsilon=PRICE))


def weighted() -> Look:
    marginal = Marginal.of(LinearQuery.table(DOMAIN, ("town",), [0.25, 1.0, 0.0]))
    return lambda world: world.measure(marginal, price=world.price(PRICE))


def at_once(*parts: LinearQuery) -> Look:
    return lambda world: world.measure(*map(Marginal.of, parts), price=world.price(PRICE))


def histogram(name: str) -> Look:
    return lambda world: world.buy(HistogramPurchase.of(world.calibrator, name, 0.1, 1.0), PRICE)


def cells(name: str) -> Look:
    return lambda world: world.buy(HistogramPurchase.cells(world.calibrator, name, 0.1, 1.0), PRICE)


def a_class(*by: str, **sides: Sequence[int]) -> Look:
    return lambda world: world.buy(ProductPurchase.of(world.calibrator, by, query(**sides), 0.1), PRICE)


def residuals(order: int) -> Look:
    def look(world: World) -> None:
        if can_buy(world.calibrator, order):
            purchase = MarginalsPurchase.of(world.calibrator, world.knowledge, order, 0.1)
            if purchase is not None:
                world.buy(purchase, PRICE)

    return look


def sparse_vector() -> Look:
    def look(world: World) -> None:
        opened = world.curator.sparse(threshold=10**6, epsilon=Fraction(1, 5), request=world.request())
        opened.ask(query(age=[0]), guess=0)

    return lambda world: world.charged(lambda: look(world))


def selection() -> Look:
    listed = [Candidate(query(age=[cell]), Fraction(10)) for cell in range(3)]
    return lambda world: world.charged(
        lambda: world.curator.choose(listed, epsilon=Fraction(1, 5), request=world.request())
    )


SOURCES: dict[str, Look] = {
    "one count": fresh(age=[0], sex=[1]),
    "another count": fresh(age=[1], town=[0, 2], price=Fraction(1, 30)),
    "most people": fresh(age=[0, 1], price=Fraction(1, 30)),
    "GROUP BY": fresh("town"),
    "GROUP BY of some": fresh("town", age=[2]),
    "GROUP BY of others": fresh("sex", "town", age=[0]),
    "Laplace count": laplace(sex=[0]),
    "weights": weighted(),
    "several at once": at_once(query(age=[0]), query(age=[1], sex=[0]), query(town=[2])),
    "histogram": histogram("age"),
    "cells": cells("town"),
    "class": a_class("age", "town"),
    "class of some": a_class("age", sex=[0]),
    "class of others": a_class("town", age=[0, 2], sex=[1]),
    "residuals": residuals(2),
    "sparse vector": sparse_vector(),
    "selection": selection(),
}


# ---- brute force


def opened(neighbours: Neighbours, currency: str, *, max_rows=1, ledger=None, version="0") -> World:
    """Replacing: the table with one row in each place. Else: with up to `max_rows` rows of one more person."""
    adding = neighbours is ADD_REMOVE
    declared = Declaration(
        name="t",
        source=SourceSpec("-"),
        domain=DOMAIN,
        budget=BUDGETS[currency],
        neighbours=neighbours,
        unit=Unit("person", max_rows) if max_rows > 1 else None,
        rows_at_least=1 if adding else None,
        rows_at_most=10**6 if adding else None,
    )
    counts = range(max_rows + 1) if adding else (1,)
    people = [person for rows in counts for person in combinations_with_replacement(range(BASE.size), rows)]
    truths = [Cells(DOMAIN, with_rows(person), version=version) for person in people]
    return World(Watched(truths, ledger or MemoryLedger(declared.budget), declared), currency)


def with_rows(cells: Sequence[int]) -> np.ndarray:
    table = BASE.copy()
    np.add.at(table.reshape(-1), list(cells), 1)
    return table


def looked(world: World, looks: Sequence[Look]) -> World:
    with watching(world.curator):
        for look in looks:
            look(world)
    return world


def charged(world: World) -> float:
    return world.curator.ledger.spent.amount


def added_up(world: World) -> float:
    events = [debit.event for debit in world.curator.ledger.debits()]
    return world.curator.ledger.budget.total(events).amount


RELATIONS = [(REPLACE, "rho"), (REPLACE, "epsilon"), (ADD_REMOVE, "rho"), (ADD_REMOVE, "epsilon")]
ROUNDING = 1e-9
AUDIT = bool(os.environ.get("UNDERSTUDY_AUDIT"))


@pytest.mark.parametrize(("neighbours", "currency"), RELATIONS)
def test_no_two_sources_cost_less_than_their_worst_pair(neighbours, currency):
    for pair in list(combinations(SOURCES, 2))[:: 1 if AUDIT else 4]:
        world = looked(opened(neighbours, currency), [SOURCES[name] for name in pair])
        assert world.worst() * (1 - ROUNDING) <= charged(world) <= added_up(world) * (1 + ROUNDING), pair


@pytest.mark.parametrize(("neighbours", "currency"), RELATIONS)
@given(names=st.lists(st.sampled_from(sorted(SOURCES)), min_size=3, max_size=14))
@settings(max_examples=10)
def test_no_mix_of_sources_costs_less_than_its_worst_pair(names, neighbours, currency):
    world = looked(opened(neighbours, currency), [SOURCES[name] for name in names])
    assert world.worst() * (1 - ROUNDING) <= charged(world) <= added_up(world) * (1 + ROUNDING)


@pytest.mark.parametrize("currency", ["rho", "epsilon"])
@given(names=st.lists(st.sampled_from(sorted(SOURCES)), min_size=2, max_size=8))
@settings(max_examples=5)
def test_several_rows_to_a_person(names, currency):
    world = looked(opened(ADD_REMOVE, currency, max_rows=2), [SOURCES[name] for name in names])
    assert world.worst() * (1 - ROUNDING) <= charged(world) <= added_up(world) * (1 + ROUNDING)


@pytest.mark.parametrize(("neighbours", "currency"), RELATIONS)
@given(data=st.data())
@settings(max_examples=5)
def test_versions_of_a_table_are_added_up(neighbours, currency, data):
    """A person may have any row in each version: the losses of the worst pairs of all versions add up."""
    ledger = MemoryLedger(BUDGETS[currency])
    worlds = {version: opened(neighbours, currency, ledger=ledger, version=version) for version in "ab"}
    for version in "aba":
        names = data.draw(st.lists(st.sampled_from(sorted(SOURCES)), min_size=1, max_size=5))
        looked(worlds[version], [SOURCES[name] for name in names])
        worst = sum(world.worst() for world in worlds.values())
        assert ledger.spent.amount >= worst * (1 - ROUNDING)


EXACT = {
    "counts of different people": [fresh(age=[cell], town=[0]) for cell in range(3)],
    "GROUP BYs of different people": [fresh("town", age=[0]), fresh("town", age=[1]), fresh("town", age=[2])],
    "the same people again": [fresh(age=[0], sex=[0])] * 3,
    "a count and everybody": [fresh(age=[0], sex=[0]), fresh("town"), cells("age")],
    "a sparse vector and a selection": [sparse_vector(), selection(), fresh(age=[0])],
    "classes of different people": [a_class("town", age=[cell]) for cell in range(3)],
}


@pytest.mark.parametrize(("neighbours", "currency"), RELATIONS)
@pytest.mark.parametrize("mix", EXACT)
def test_where_all_rows_are_alike_the_price_is_that_of_the_worst_pair(mix, neighbours, currency):
    world = looked(opened(neighbours, currency), EXACT[mix])
    assert charged(world) == pytest.approx(world.worst(), rel=1e-3)


# ---- mutants


def _one_row_is_seen(patch):
    patch.setattr(joint, "_factor", lambda event: 1)


def _conditions_are_forgotten(patch):
    """A row may be replaced by one that a class of some people does not see."""
    patch.setattr(ProductColumns, "farthest", property(lambda self: self._farthest_pair()))


def _versions_are_forgotten(patch):
    patch.setattr(Curator, "versioned", lambda self, event: event)


FEW, OTHERS = ([fresh(age=[cell], town=[town]) for cell in range(3)] for town in (0, 1))


@pytest.mark.parametrize(
    ("mutant", "versions"),
    [
        (_one_row_is_seen, [FEW]),
        (_conditions_are_forgotten, [[a_class("age", sex=[0]), a_class("age", sex=[1])]]),
        (_versions_are_forgotten, [FEW, OTHERS]),
    ],
)
def test_a_price_that_is_too_low_is_noticed(mutant, versions, monkeypatch):
    mutant(monkeypatch)
    ledger, worst = MemoryLedger(BUDGETS["rho"]), 0.0
    for version, looks in zip("ab", versions, strict=False):
        worst += looked(opened(REPLACE, "rho", ledger=ledger, version=version), looks).worst()
    assert ledger.spent.amount < worst * (1 - ROUNDING)
