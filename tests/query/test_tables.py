"""Remembered tables: the same numbers as a pass, fewer passes, bounded memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query import tables as module
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.tables import RememberedTables
from understudy.standin.dense.weights import DenseWeights
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DOMAIN = Domain(tuple(Bins.integers(f"a{i}", 0, 1) for i in range(10)))
RATES = np.random.default_rng(0).dirichlet(np.ones(1024)).reshape(DOMAIN.shape())


def sums(clique):
    return RATES.sum(axis=tuple(i for i, name in enumerate(DOMAIN.names) if name not in clique))


@pytest.fixture
def made():
    return []


@pytest.fixture
def tables(made):
    def make(clique):
        made.append(clique)
        return sums(clique)

    return RememberedTables(DOMAIN, make)


def test_every_table_is_right_and_blocks_are_passed_over_once(tables, made):
    draw = np.random.default_rng(1)
    for _ in range(200):
        clique = DOMAIN.clique(
            str(name) for name in draw.choice(DOMAIN.names, draw.integers(0, 4), replace=False)
        )
        np.testing.assert_allclose(tables.over(clique), sums(clique), rtol=1e-12)
    assert len(made) == len(set(made)) <= 1 + 3 + 3 + 1  # none, one, two or three of the three blocks
    tables.forget()
    assert tables.over(("a0",)) == pytest.approx(sums(("a0",)))
    assert made[-1] == ("a0", "a1", "a2", "a3")


def test_what_is_wide_is_not_remembered_and_memory_is_bounded(tables, made, monkeypatch):
    monkeypatch.setattr(module, "WIDE", 64)
    assert tables.over(DOMAIN.names[:7]) is None
    assert tables.over(("a0", "a4", "a8")).shape == (2, 2, 2)
    assert made == [("a0", "a4", "a8")]  # its blocks together are too wide
    monkeypatch.setattr(module, "ROOM", 40)
    for i in range(9):
        tables.over((f"a{i}", f"a{i + 1}"))
        assert sum(table.size for table in tables._kept.values()) == tables._cells <= 40


def test_weights_answer_the_same_before_and_after_they_remember():
    """Calm or not, in one answer or another: and an update forgets."""
    draw = np.random.default_rng(2)
    weights = DenseWeights.histogram(DOMAIN, RATES, threads=1)
    for turn in range(3):
        asked = []
        for _ in range(40):
            names = draw.choice(DOMAIN.names, 3, replace=False)
            query = LinearQuery.conjunction(DOMAIN, {str(name): draw.random(2) < 0.7 for name in names})
            asked.append((query, weights.answer(query)))
        rates = weights.rates()
        for query, answer in asked:
            assert answer == pytest.approx(float((rates * query.weights(DOMAIN.names)).sum()), abs=1e-12)
        weights.reweight(LinearQuery.conjunction(DOMAIN, {f"a{turn}": [0, 1]}), 0.5)
        assert not weights._tables._kept
    whole = LinearQuery.table(DOMAIN, DOMAIN.names, draw.integers(0, 2, DOMAIN.shape()).astype(float))
    rates = weights.rates()
    assert weights.answer(whole) == pytest.approx(float((rates * whole.weights()).sum()), abs=1e-12)


def test_the_truth_counts_the_same_from_memory():
    draw = np.random.default_rng(3)
    rows = draw.integers(0, 2, (3000, 10))
    columns = {name: rows[:, i] for i, name in enumerate(DOMAIN.names)}
    wide = Domain((*DOMAIN.attributes, Bins.integers("b", 0, 99)))
    columns["b"] = draw.integers(0, 100, 3000)
    truth = Truth(in_memory(pa.table(columns)), wide)
    for _ in range(30):
        names = draw.choice(DOMAIN.names, 3, replace=False)
        query = LinearQuery.conjunction(wide, {str(name): draw.random(2) < 0.7 for name in names})
        exact = int(query.row_weights(columns).sum()) if query.factors else 3000
        assert int(truth.sums(Marginal.of(query))) == exact
        by = Marginal(wide, (str(names[0]),), query)
        assert int(truth.sums(by).sum()) == exact
    table = LinearQuery.table(wide, wide.names, draw.random(wide.shape()))  # 102,400 cells, 3,000 rows
    for resolution in (1, 1000):
        steps = np.rint(table.weights()[tuple(columns[name] for name in wide.names)] * resolution)
        assert int(truth.sums(Marginal.of(table), resolution=resolution)) == int(steps.sum())


def test_a_large_table_of_bits_has_a_name_of_its_own():
    draw = np.random.default_rng(4)
    domain = Domain((Bins.integers("x", 0, 99), Bins.integers("y", 0, 99)))
    bits = draw.integers(0, 2, (100, 100)).astype(float)
    one, same = (LinearQuery.table(domain, ("x", "y"), bits) for _ in range(2))
    assert one.key == same.key
    bits[3, 7] = 1 - bits[3, 7]
    assert LinearQuery.table(domain, ("x", "y"), bits).key != one.key
    assert (
        LinearQuery.table(domain, ("x", "y"), bits / 2).key != LinearQuery.table(domain, ("x", "y"), bits).key
    )
