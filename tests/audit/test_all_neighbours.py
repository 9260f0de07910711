"""Every look that the program makes, on every pair of neighbouring tables of a few rows: brute force.

What meets noise is tapped (`taps`) and compared with what its mechanism was made for: never more, over all pairs,
and for some pair just as much. Relations that forget the second row of a replacement, or the rows of a person, are
caught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from audit.taps import Tap, tapped
from counted import Cells, curator_of
from understudy.curator.candidates import Candidate
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, Unit
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.mechanism.gap import Guess, NoisyGaps, WorstGuess
from understudy.mechanism.matrix.many_marginals import Centred, Combinations, JointStrategy, StrategyPart
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.mechanism.matrix.residuals_of_order import ResidualLook, ResidualsOfOrder
from understudy.mechanism.merged import MergedGaps, MergedStrategy
from understudy.mechanism.worst_query import QueryClass, WorstQuery
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.merging import Merging

DOMAIN = Domain((Bins.integers("a", 0, 1), Bins.integers("b", 0, 2)))
CELLS = [(a, b) for a in range(2) for b in range(3)]
A, B, AB = (Marginal(DOMAIN, by) for by in (("a",), ("b",), ("a", "b")))
SOME = LinearQuery.conjunction(DOMAIN, {"b": [0, 0, 1]})
WEIGHTS = LinearQuery.conjunction(DOMAIN, {"a": [0.25, 1.0]})
MERGING = Merging(
    DOMAIN,
    (np.array([0, 1]), np.array([0, 1])),
    (np.array([1.0, 1.0]), np.array([1.0, 0.5, 0.5])),
)
"""The last two values of b are one group."""

EPSILON, RHO = Price.of(epsilon=1), Price.of(rho=1)
REPLACE, ADD, SEVERAL = (
    Relation(Neighbours.REPLACE), Relation(Neighbours.ADD_REMOVE), Relation(Neighbours.ADD_REMOVE, 3),
)  # fmt: skip
Table = tuple[tuple[int, int], ...]
"""Rows, in order: tables are multisets."""

MATRICES = (np.array([[1, 1], [2, -1]]), np.array([[1, 0, 3], [0, 2, -2]]))
GUESSES = (Guess(A, np.array([4, 0])), Guess(B, np.array([4, 0, 0]), weight=Fraction(1, 2)))
SUMS = {"a": Centred(2), "b": Combinations(np.array([[1, 2, 3], [0, 1, -1]]))}
PARTS = (
    StrategyPart(("a",), Fraction(1, 3)),
    StrategyPart(("b",), Fraction(1, 5)),
    StrategyPart(("a", "b"), Fraction(1, 7)),
)


@dataclass(frozen=True)
class Case:
    """A look; whether it has more than one cell to move a row between, and whether its bound is met exactly."""

    act: Callable[[Curator], Any]
    cells: bool = True
    is_attained: bool = True
    is_pure: bool = False


def sparse(curator: Curator) -> None:
    handle = curator.sparse(threshold=10**6, epsilon=1)
    handle.ask(SOME, guess=0)


def residuals(curator: Curator) -> None:
    parts, weights = ResidualsOfOrder((2, 3), 2), (3, 2, 1)
    curator._buy(ResidualLook(DOMAIN, parts, weights, curator.relation, RHO))


CASES: dict[str, Case] = {
    "marginals": Case(lambda c: c.measure_all([A, B, AB], EPSILON), is_pure=True),
    "marginals, Gaussian": Case(lambda c: c.measure_all([A, B, AB], RHO)),
    "weights in cells": Case(lambda c: c.measure_all([Marginal(DOMAIN, ("b",), WEIGHTS)], RHO)),
    "weights": Case(lambda c: c.measure_all([Marginal.of(WEIGHTS)], EPSILON), cells=False, is_pure=True),
    "a count": Case(lambda c: c.measure_all([Marginal.of(SOME)], RHO), cells=False),
    "cells of some": Case(lambda c: c.measure_all([Marginal(DOMAIN, ("a",), SOME)], RHO)),
    "combinations": Case(lambda c: c._buy(Strategy(AB, MATRICES, c.relation, EPSILON)), is_pure=True),
    "combinations, Gaussian": Case(lambda c: c._buy(Strategy(AB, MATRICES, c.relation, RHO))),
    "combinations of some": Case(
        lambda c: c._buy(Strategy(Marginal(DOMAIN, ("a",), SOME), MATRICES[:1], c.relation, RHO)),
        is_attained=False,
    ),
    "gaps": Case(lambda c: c._buy(NoisyGaps(GUESSES, c.relation, EPSILON)), is_pure=True),
    "gaps, Gaussian": Case(lambda c: c._buy(NoisyGaps(GUESSES, c.relation, RHO))),
    "worst guess": Case(lambda c: c._buy(WorstGuess(GUESSES, Fraction(1), c.relation))),
    "gap of one count": Case(
        lambda c: c._buy(NoisyGaps((Guess(Marginal.of(SOME), np.array(0)),), c.relation, RHO)), cells=False
    ),
    "worst query": Case(
        lambda c: c._buy(WorstQuery(QueryClass(DOMAIN, (AB,)), np.zeros(6), Fraction(1), c.relation)),
        cells=False,
    ),
    "noisy maximum": Case(
        lambda c: c._buy(
            WorstQuery(QueryClass(DOMAIN, (AB,)), np.zeros(6), Fraction(1), c.relation, law="noisy-max")
        ),
        cells=False,
    ),
    "choice": Case(lambda c: c.choose([Candidate(SOME, Fraction(0))], epsilon=1), cells=False, is_pure=True),
    "sparse vector": Case(sparse, cells=False, is_pure=True),
    "merged gaps": Case(
        lambda c: c._buy(
            MergedGaps(MERGING, (A, B), (np.array([4, 0]), np.array([4, 0])), (2, 1), RHO, c.relation)
        )
    ),
    "residuals": Case(residuals),
    "strategies": Case(
        lambda c: c._buy(JointStrategy(DOMAIN, {**SUMS, "b": Centred(3)}, PARTS, c.relation))
    ),
    "strategies of any matrix": Case(
        lambda c: c._buy(JointStrategy(DOMAIN, SUMS, PARTS, c.relation)), is_attained=False
    ),
    "merged strategies": Case(
        lambda c: c._buy(
            MergedStrategy(
                MERGING, JointStrategy(MERGING.coarse, {n: Centred(2) for n in "ab"}, PARTS, c.relation)
            )
        )
    ),
}  # fmt: skip


def neighbours(relation: Relation) -> Iterator[tuple[Table, Table]]:
    """Every pair: up to one row in common, and one more in each, or up to a person's rows in one of them."""
    for common in ((), *((cell,) for cell in CELLS)):
        if relation.kind is Neighbours.REPLACE:
            for a, b in combinations_with_replacement(CELLS, 2):
                yield tuple(sorted((*common, a))), tuple(sorted((*common, b)))
        else:
            for size in range(1, relation.max_rows + 1):
                for rows in combinations_with_replacement(CELLS, size):
                    yield common, tuple(sorted((*common, *rows)))


def curator(case: Case, relation: Relation, table: Table) -> Curator:
    counts = np.zeros((2, 3), np.int64)
    for row in table:
        counts[row] += 1
    unit = None if relation.max_rows == 1 else Unit(column="person", max_rows=relation.max_rows)
    return curator_of(
        Cells(DOMAIN, counts), epsilon=500, delta=0 if case.is_pure else 1e-6, neighbours=relation.kind,
        unit=unit, rows_at_least=1, rows_at_most=100,
    )  # fmt: skip


def reach(case: Case, relation: Relation) -> list[Fraction]:
    """For each mechanism the farthest that a pair of neighbours moves its values, as a part of what it is for."""

    @cache
    def tapped_at(table: Table) -> list[tuple[Event, Tap]]:
        with tapped() as taps:
            case.act(curator(case, relation, table))
        together: dict[int, list[tuple[Event, Tap]]] = {}
        for event, tap in ((event, tap) for event, of_debit in taps.settled for tap in of_debit):
            together.setdefault(id(tap.mechanism), []).append((event, tap))
        return [
            (of[0][0], Tap(of[0][1].mechanism, np.concatenate([tap.values for _, tap in of])))
            for of in together.values()
        ]

    far: list[Fraction] = []
    for one, other in neighbours(relation):
        taps = zip(tapped_at(one), tapped_at(other), strict=True)
        sizes = [before.reach(after.values - before.values, event) for (event, before), (_, after) in taps]
        far = [max(pair) for pair in zip(sizes, far or sizes, strict=True)]
    return far


@pytest.mark.parametrize("relation", [REPLACE, ADD, SEVERAL], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_no_pair_of_neighbours_moves_a_look_by_more_than_its_noise_is_made_for_and_one_does_by_as_much(
    name, relation
):
    far = reach(CASES[name], relation)
    assert far
    assert max(far) <= 1
    if CASES[name].is_attained:
        assert min(far) >= 1 - Fraction(1, 10**8)


class WithoutTheSecondRow(Relation):
    """Takes a replaced row for one that is added."""

    def moves(self, columns):
        return columns.longest * self.max_rows

    def moves_squared(self, longest, farthest):
        return self.max_rows**2 * longest()


class WithOneRow(Relation):
    """Forgets that a person may have several rows."""

    def moves(self, columns):
        return Relation(self.kind).moves(columns)

    def moves_squared(self, longest, farthest):
        return Relation(self.kind).moves_squared(longest, farthest)


@pytest.mark.parametrize(
    ("wrong", "relation", "names"),
    [
        (
            WithoutTheSecondRow,
            REPLACE,
            [name for name, case in CASES.items() if case.cells and case.is_attained],
        ),
        (WithOneRow, SEVERAL, list(CASES)),
    ],
)
def test_a_wrong_relation_is_caught_by_every_look_that_it_concerns(monkeypatch, wrong, relation, names):
    monkeypatch.setattr(
        Declaration, "relation", property(lambda self: wrong(relation.kind, relation.max_rows))
    )
    for name in names:
        assert max(reach(CASES[name], relation)) > 1, name
