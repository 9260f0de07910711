from __future__ import annotations

import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.declaration.declaration import Unit
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import TooLargeError
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.table import truth as truth_module
from understudy.table.source import in_memory
from understudy.table.truth import Truth
from understudy.table.view_reader import ViewReader

DOMAIN = Domain((Bins.integers("a", 0, 3), Bins.integers("b", 0, 2), Bins.integers("c", 0, 1)))


def made(rows: np.ndarray) -> Truth:
    columns = {a.name: pa.array(rows[:, i], pa.int64()) for i, a in enumerate(DOMAIN)}
    return Truth(in_memory(pa.table(columns)), DOMAIN)


def brute(rows: np.ndarray) -> np.ndarray:
    table = np.zeros(DOMAIN.shape(), np.int64)
    np.add.at(table, tuple(rows.T), 1)
    return table


def by_row(truth: Truth, marginal: Marginal, resolution: int) -> np.ndarray:
    with truth._look() as look:
        return truth._sums_by_row(look, marginal, resolution)


def random_rows(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, a.size, n) for a in DOMAIN], axis=1)


@pytest.mark.parametrize("n", [0, 1, 500])
def test_counts_are_exact_over_every_clique_and_every_look(n):
    rows = random_rows(1, n)
    truth = made(rows)
    whole = brute(rows)
    cliques = [(), ("a",), ("c",), ("a", "b"), ("b", "c"), ("a", "b", "c")]
    for _ in range(3):  # streamed, then kept in memory
        counts = truth.counts(cliques)
        for clique in cliques:
            axes = tuple(i for i, name in enumerate(DOMAIN.names) if name not in clique)
            np.testing.assert_array_equal(counts[clique], whole.sum(axis=axes))
            assert counts[clique].dtype == np.int64
    assert truth.rows == n


def test_a_table_too_large_for_memory_is_streamed_every_time(monkeypatch):
    monkeypatch.setattr(truth_module, "CACHE_BYTES", 100)
    rows = random_rows(2, 500)
    truth = made(rows)
    for _ in range(3):
        np.testing.assert_array_equal(truth.count(("a", "b", "c")), brute(rows))


@given(st.integers(0, 10**6), st.sampled_from([1, 7, 1 << 20]), st.data())
@settings(max_examples=25)
def test_weighing_rows_equals_weighing_cells(seed, resolution, data):
    rows = random_rows(seed, 60)
    rng = np.random.default_rng(seed)
    parts = {a.name: rng.random(a.size) for a in DOMAIN if data.draw(st.booleans())}
    by = tuple(data.draw(st.sets(st.sampled_from(DOMAIN.names))))
    marginal = Marginal(DOMAIN, by, LinearQuery.conjunction(DOMAIN, parts))
    truth = made(rows)
    dense = truth.sums(marginal, resolution=resolution)
    np.testing.assert_array_equal(by_row(truth, marginal, resolution), dense)
    # and both equal the definition: round each row's weight, then add
    weights = np.rint(marginal.where.weights(DOMAIN.names) * resolution).astype(np.int64)
    expected = np.zeros(DOMAIN.shape(), np.int64)
    for row in rows:
        expected[tuple(row)] += weights[tuple(row)]
    axes = tuple(i for i, name in enumerate(DOMAIN.names) if name not in marginal.by)
    np.testing.assert_array_equal(dense, expected.sum(axis=axes))


def test_a_conjunction_over_a_huge_clique_is_counted_by_row():
    wide = Domain(tuple(Bins.integers(f"x{i}", 0, 9) for i in range(30)))
    rng = np.random.default_rng(3)
    data = rng.integers(0, 2, (1000, 30))
    truth = Truth(in_memory(pa.table({f"x{i}": pa.array(data[:, i]) for i in range(30)})), wide)
    query = LinearQuery.conjunction(
        wide, {name: np.arange(10) < 2 - (i % 7 == 0) for i, name in enumerate(wide.names)}
    )
    expected = sum(all(row[i] == 0 for i in range(0, 30, 7)) for row in data)
    assert int(truth.sums(Marginal.of(query))) == expected > 0
    with pytest.raises(TooLargeError):
        truth.count(wide.names)


def test_rates_sum_to_one_even_without_rows():
    np.testing.assert_allclose(made(random_rows(4, 50)).project(("a", "b")).sum(), 1)
    np.testing.assert_allclose(made(random_rows(4, 0)).project(("a", "b")), 1 / 12)


def test_large_sums_do_not_overflow():
    rows = np.zeros((1000, 3), np.int64)
    marginal = Marginal.of(LinearQuery.conjunction(DOMAIN, {"a": [0.999, 0, 0, 0]}))
    total = int(made(rows).sums(marginal, resolution=1 << 36))
    assert total == 1000 * round(0.999 * (1 << 36))


def test_units_limit_rows():
    table = pa.table({"who": [1, 1, 1, 2, None], "a": [0, 1, 2, 3, 3], "b": [0] * 5, "c": [0] * 5})
    truth = Truth(in_memory(table), DOMAIN, Unit("who", 2))
    assert truth.rows == 3
    assert truth.count(("a",)).sum() == 3
    assert truth.count(("a",))[3] == 1


@pytest.mark.parametrize("fits", [True, False])
def test_the_table_is_encoded_once_however_many_threads_ask_first(monkeypatch, fits):
    if not fits:
        monkeypatch.setattr(truth_module, "CACHE_BYTES", 100)
    rows, encodings, lines = random_rows(4, 500), [], []
    plain = ViewReader.batches

    def counting(self, domain, clique, unit):
        (encodings if len(clique) == len(DOMAIN) else lines).append(clique)
        time.sleep(0.01)  # whoever is asked meanwhile waits
        return plain(self, domain, clique, unit)

    monkeypatch.setattr(ViewReader, "batches", counting)
    truth = made(rows)
    whole = brute(rows)
    start = threading.Barrier(32)
    found: list[np.ndarray] = [np.zeros(0)] * 32

    def ask(i: int) -> None:
        clique = (("a", "b"), ("b", "c"), ("a",), ("c",))[i % 4]
        start.wait()
        found[i] = truth.sums(Marginal(DOMAIN, clique))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(encodings) == 1
    assert len(lines) <= (1 if fits else 5)  # the first look reads what it needs; counts are kept
    for i in range(32):
        clique = (("a", "b"), ("b", "c"), ("a",), ("c",))[i % 4]
        axes = tuple(k for k, name in enumerate(DOMAIN.names) if name not in clique)
        np.testing.assert_array_equal(found[i], whole.sum(axis=axes))
