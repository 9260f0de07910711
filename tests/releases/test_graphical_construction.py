"""Iterative construction, offline and online, on the graphical stand-in: the same run as on a histogram.

Same coins, same table: every query found, every answer bought and every error is that of the dense stand-in.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.lectures.online import OnlineConstruction
from understudy.lectures.online_terms import practical_terms
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.query.linear import LinearQuery
from understudy.query.workload import Workload
from understudy.releases.iterative import iterative_construction
from understudy.releases.run import Run
from understudy.standin.graphical.model import GraphicalStandIn
from understudy.standin.graphical.weights import GraphicalWeights
from understudy.standin.multiplicative import MultiplicativeWeights
from understudy.table.source import in_memory
from understudy.table.truth import Truth

SIZES = {"a": 2, "b": 3, "c": 2, "d": 2}
DOMAIN = Domain(tuple(Bins.integers(name, 0, size - 1) for name, size in SIZES.items()))
PAIRS = Workload.all_marginals(DOMAIN, 2)
ALPHA = Fraction(1, 5)


def people(rows: int = 4000) -> pd.DataFrame:
    draw = np.random.default_rng(2)
    a = draw.integers(0, 2, rows)
    b = np.minimum(a + draw.integers(0, 2, rows), 2)
    return pd.DataFrame({"a": a, "b": b, "c": (draw.random(rows) < 0.8) * a, "d": draw.integers(0, 2, rows)})


def curator(epsilon: float, seed: int) -> Curator:
    budget = Budget.of(epsilon, 0)
    declared = Declaration(name="t", source=SourceSpec("-"), domain=DOMAIN, budget=budget)
    return Curator(
        Truth(in_memory(people()), DOMAIN), MemoryLedger(budget), declared, noise=SeededNoise(seed)
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_lecture7_algorithm_1_on_a_tree_is_that_on_a_histogram(seed: int):
    found = {}
    for kind in (MultiplicativeWeights, GraphicalWeights):
        run = Run(curator(30, seed), PAIRS, Budget.of(30, 0), "r")
        found[kind] = iterative_construction(run, alpha=0.4, update=kind(domain=DOMAIN, alpha=ALPHA))
    dense, tree = found[MultiplicativeWeights], found[GraphicalWeights]
    assert isinstance(tree.standin, GraphicalStandIn)
    assert len(dense.proof["sequence"]) > 1
    for one, other in zip(dense.proof["sequence"], tree.proof["sequence"], strict=True):
        assert one["query"] == other["query"]
        assert one["value"] == pytest.approx(other["value"], abs=1e-9)
    for one, other in zip(dense.answers, tree.answers, strict=True):
        np.testing.assert_allclose(one.counts, other.counts, atol=1e-6)


def test_online_construction_on_a_tree_is_that_on_a_histogram():
    draw = np.random.default_rng(5)
    questions = []
    for _ in range(60):
        names = draw.choice(list(SIZES), 2, replace=False)
        cells = {name: np.arange(SIZES[name]) == draw.integers(SIZES[name]) for name in names}
        questions.append(LinearQuery.conjunction(DOMAIN, cells))
    told = {}
    for kind in (MultiplicativeWeights, GraphicalWeights):
        opened = curator(40, 7)
        update = kind(domain=DOMAIN, alpha=ALPHA)
        terms = practical_terms(opened, alpha=Fraction(1, 5), queries=60, updates=12)
        online = OnlineConstruction(opened, update, terms)
        told[kind] = [(a.source, round(float(a.value), 6)) for a in map(online.ask, questions)]
    assert told[MultiplicativeWeights] == told[GraphicalWeights]
    assert {source for source, _ in told[GraphicalWeights]} >= {"checked", "measured"}
