"""The dense stand-in against brute force: expand every query, multiply, sum, divide."""

from __future__ import annotations

import subprocess
import sys
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fake_cupy
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.query.linear import Factor, LinearQuery
from understudy.query.projection import Projection
from understudy.standin.dense import device, host, weights
from understudy.standin.dense.device import spoken_tiles, tile_width
from understudy.standin.dense.weights import DENSE_LIMIT, DenseWeights
from understudy.standin.multiplicative import MultiplicativeWeights

# Rows and columns fall differently: columns only, few or many rows, long rows, a last attribute that fills a row.
SHAPES = [(7,), (2,) * 13, (5, 3, 40, 30), (3, 2000), (3, 40, 2000), (2, 70_000), (4, 3, 2, 5), (1, 1500, 1)]


def domain_of(shape: tuple[int, ...]) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i:02d}", 0, size - 1) for i, size in enumerate(shape)))


DOMAINS = {shape: domain_of(shape) for shape in SHAPES}


def random_query(domain: Domain, rng: np.random.Generator) -> LinearQuery:
    """One to three factors, on one or two attributes each; 0/1 or real; now and then all zero."""
    names = list(rng.permutation(domain.names)[: rng.integers(1, 5)])
    factors = []
    while names:
        clique = domain.clique(names[: rng.integers(1, 3)])
        names = [name for name in names if name not in clique]
        table = rng.random(domain.shape(clique))
        factors.append(Factor(clique, table if rng.random() < 0.4 else (table < rng.random()).astype(float)))
    return LinearQuery(domain, tuple(factors))


class Brute:
    """The same histogram as one float64 table that is normalised after every step."""

    def __init__(self, cells: np.ndarray) -> None:
        self.rates = cells / cells.sum()

    def scale(self, factors: np.ndarray) -> None:
        self.rates = self.rates * factors
        self.rates /= self.rates.sum()

    def answer(self, query: LinearQuery) -> float:
        return float(np.vdot(self.rates, query.weights(query.domain.names)))


def project(rates: np.ndarray, domain: Domain, clique: tuple[str, ...]) -> np.ndarray:
    return rates.sum(axis=tuple(i for i, name in enumerate(domain.names) if name not in clique))


@settings(max_examples=40)
@given(
    st.sampled_from(SHAPES),
    st.integers(0, 2**32),
    st.sampled_from(["float64", "float32"]),
    st.sampled_from([1, 2, "cuda"]),
)
def test_every_operation_equals_brute_force(shape, seed, dtype, place):
    rng = np.random.default_rng(seed)
    domain = DOMAINS[shape]
    start = rng.random(shape) + 0.01
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "SHARED", 1)  # threads share even a small pass
        patch.setattr(device, "_cupy", fake_cupy.cupy)
        patch.setattr(device, "EACH", 1)  # so that the tests' domains have several tiles
        where = {"device": place} if place == "cuda" else {"threads": place}
        ours, brute = DenseWeights.histogram(domain, start, dtype=dtype, **where), Brute(start)
        tolerance = 1e-12 if dtype == "float64" else 2e-6
        for _ in range(6):
            query, following = random_query(domain, rng), random_query(domain, rng)
            assert ours.answer(query) == pytest.approx(brute.answer(query), rel=tolerance, abs=tolerance)
            kind, step = rng.integers(3), rng.normal() * 2
            if kind == 0:
                ours.reweight(query, step)
                brute.scale(np.exp(step * query.weights(domain.names)))
            elif kind == 1:
                brute.scale(np.exp(step * query.weights(domain.names)))
                answer = ours.reweight_then_answer(query, step, following)
                assert answer == pytest.approx(brute.answer(following), rel=tolerance, abs=tolerance)
            else:
                table = rng.random(domain.shape(query.clique)) * 3 + 0.01
                ours.scale_marginal(query.clique, table)
                sizes = dict(zip(query.clique, table.shape, strict=True))
                brute.scale(table.reshape([sizes.get(name, 1) for name in domain.names]))
            clique = domain.clique(rng.permutation(domain.names)[: rng.integers(0, 3)])
            rates = ours.project(clique)
            assert rates.shape == domain.shape(clique)
            assert rates.dtype == np.float64
            assert rates.sum() == pytest.approx(1, abs=1e-12)
            np.testing.assert_allclose(
                rates, project(brute.rates, domain, clique), rtol=tolerance, atol=tolerance / 10
            )
        np.testing.assert_allclose(ours.rates(), brute.rates, rtol=20 * tolerance)


def test_many_answers_are_those_of_each():
    domain = DOMAINS[(5, 3, 40, 30)]
    rng = np.random.default_rng(5)
    ours = DenseWeights.histogram(domain, rng.random(domain.shape()))
    queries = [random_query(domain, rng) for _ in range(30)]
    queries += [LinearQuery.conjunction(domain, {"a01": w}) for w in np.eye(3)] + [
        LinearQuery.everyone(domain)
    ]
    np.testing.assert_allclose(ours.answer_many(queries), [ours.answer(q) for q in queries], atol=1e-13)
    np.testing.assert_allclose(
        ours.answer_many(queries), [q.answer(ours) for q in queries], atol=1e-13
    )  # the protocol's way
    assert ours.answer_many([]).shape == (0,)


def test_projections_and_answers_on_many_attributes_take_another_road(monkeypatch):
    domain = DOMAINS[(5, 3, 40, 30)]
    rng = np.random.default_rng(6)
    ours = DenseWeights.histogram(domain, rng.random(domain.shape()))
    queries = [random_query(domain, rng) for _ in range(4)] * 2
    expected = [ours.project(q.clique) for q in queries], ours.answer_many(queries)
    monkeypatch.setattr(host, "SUMS", 1)
    monkeypatch.setattr(weights, "_ONE_BY_ONE", 1)
    for query, rates in zip(queries, expected[0], strict=True):
        np.testing.assert_allclose(ours.project(query.clique), rates, rtol=1e-12)
    np.testing.assert_allclose(ours.answer_many(queries), expected[1], rtol=1e-12)


def test_a_histogram_of_any_scale():
    domain = DOMAINS[(7,)]
    ours = DenseWeights.histogram(domain, [1e300, 1e-300, 0, 5e299, 1e200, 0, 1], dtype="float32")
    assert (ours.rates() > 0).tolist() == [True, True, False, True, True, False, True]
    assert ours.rates()[0] == pytest.approx(2 / 3)


def test_it_is_a_projection():
    standin: Projection = DenseWeights.uniform(DOMAINS[(7,)])
    np.testing.assert_allclose(standin.project(("a00",)), np.full(7, 1 / 7))
    assert standin.project(()).shape == ()
    assert float(standin.project(())) == 1


def test_the_constant_query_changes_nothing():
    ours = DenseWeights.product(DOMAINS[(4, 3, 2, 5)], {"a00": [1, 2, 3, 4]})
    before = ours.rates()
    ours.reweight(LinearQuery.everyone(ours.domain), 3.0)
    ours.reweight(LinearQuery.conjunction(ours.domain, {"a01": [0, 0, 0]}), 3.0)
    ours.reweight(LinearQuery.conjunction(ours.domain, {"a01": [0, 1, 0]}), 0.0)
    np.testing.assert_allclose(ours.rates(), before, rtol=1e-14)
    assert ours.answer(LinearQuery.everyone(ours.domain)) == pytest.approx(1, abs=1e-14)


def test_a_product_of_marginals():
    domain = DOMAINS[(4, 3, 2, 5)]
    ours = DenseWeights.product(domain, {"a00": [1, 2, 3, 4], "a02": [0, 7]})
    np.testing.assert_allclose(ours.project(("a00",)), [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(ours.project(("a00", "a02"))[:, 1], [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(ours.project(("a03",)), np.full(5, 0.2))
    wide = domain_of((2,) * 20)
    skewed = DenseWeights.product(wide, {name: [1e-30, 1e30] for name in wide.names}, dtype="float32")
    assert skewed.project(wide.names[:1])[1] == pytest.approx(1)


def test_the_lazy_normaliser_of_a_counting_query():
    """Z = 1 + (e^η - 1)s: nothing outside of the support is written, and the answers are as if it were."""
    domain = DOMAINS[(2,) * 13]
    ours = DenseWeights.uniform(domain)
    query = LinearQuery.conjunction(domain, {"a00": [0, 1], "a05": [1, 0], "a12": [0, 1]})
    outside = query.weights(domain.names) == 0
    before = ours._cells.cells.reshape(domain.shape())[outside].copy()
    s, eta = ours.answer(query), 0.7
    ours.reweight(query, eta)
    z = 1 + (exp(eta) - 1) * s
    assert ours._mass == pytest.approx(z * domain.size(), rel=1e-14) or ours._mass == pytest.approx(
        z, rel=1e-14
    )
    assert ours.answer(query) == pytest.approx(s * exp(eta) / z, rel=1e-14)
    np.testing.assert_array_equal(ours._cells.cells.reshape(domain.shape())[outside], before)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 1e-4)])
def test_a_thousand_updates_do_not_drift(dtype, tolerance):
    """In float32 a cell is rounded by at most 6e-8 of itself in each of the updates that touch it."""
    domain = DOMAINS[(2,) * 13]
    rng = np.random.default_rng(11)
    ours, logs = DenseWeights.uniform(domain, dtype=dtype), np.zeros(domain.shape())
    for _ in range(1000):
        query, step = random_query(domain, rng), rng.normal() * 0.3
        ours.reweight(query, step)
        logs += step * query.weights(domain.names)
    exact = np.exp(logs - logs.max())
    np.testing.assert_allclose(ours.rates(), exact / exact.sum(), rtol=tolerance)
    carried = 1e-12 if dtype == "float64" else 1e-8
    assert ours._mass == pytest.approx(float(ours._cells.cells.sum(dtype=np.float64)), rel=carried)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("log_factor", [-1e4, -300.0, -60.0, 60.0, 300.0, 1e4])
def test_extreme_factors_neither_overflow_nor_make_cells_zero(dtype, log_factor):
    domain = DOMAINS[(2,) * 13]
    ours = DenseWeights.uniform(domain, dtype=dtype)
    query = LinearQuery.conjunction(domain, {"a00": [0, 1], "a12": [0, 1]})
    everyone = LinearQuery.everyone(domain)
    ours.reweight(query, log_factor)
    certain = 1.0 if log_factor > 0 else 0.0
    assert ours.answer(query) == pytest.approx(certain, abs=1e-20 if log_factor < 0 else 1e-12)
    assert (ours.rates() > 0).all()
    assert np.isfinite(ours.rates()).all()
    assert ours.answer(everyone) == pytest.approx(1)
    ours.reweight(query, -3 * log_factor)  # what was kept at the floor comes back
    assert ours.answer(query) == pytest.approx(1 - certain, abs=1e-12)
    assert ours.project(("a01",)) == pytest.approx([0.5, 0.5])


def test_moderate_extremes_are_undone_exactly():
    domain = DOMAINS[(2,) * 13]
    ours = DenseWeights.uniform(domain)
    query = LinearQuery.conjunction(domain, {"a00": [0, 1], "a12": [0, 1]})
    for step in (100.0, -100.0, -200.0, 200.0):
        ours.reweight(query, step)
    assert ours.answer(query) == pytest.approx(0.25, rel=1e-12)


def test_zero_cells_stay_zero_and_zero_factors_leave_the_floor():
    domain = DOMAINS[(7,)]
    ours = DenseWeights.histogram(domain, [0, 1, 1, 0, 1, 1, 0])
    ours.reweight(LinearQuery.conjunction(domain, {"a00": [1, 1, 0, 0, 0, 0, 0]}), 500.0)
    ours.scale_marginal(("a00",), [1e300, 1e300, 1, 1, 1, 1, 1])
    assert (ours.rates()[[0, 3, 6]] == 0).all()
    assert ours.project(("a00",))[1] == pytest.approx(1)
    ours = DenseWeights.uniform(domain)
    ours.scale_marginal(("a00",), [0, 1, 1, 1, 1, 1, 1])
    assert 0 < ours.rates()[0] < 1e-300
    assert ours.rates()[1] == pytest.approx(1 / 6)


def test_a_copy_is_independent():
    domain = DOMAINS[(4, 3, 2, 5)]
    ours = DenseWeights.uniform(domain, dtype="float32", threads=1)
    query = LinearQuery.conjunction(domain, {"a01": [0, 1, 0]})
    twin = ours.copy()
    ours.reweight(query, log(2))
    assert twin.answer(query) == pytest.approx(1 / 3)
    assert ours.answer(query) == pytest.approx(0.5)
    assert (twin.dtype, twin.threads) == (np.float32, 1)
    assert "120 cells, float32" in repr(twin)


def test_an_answer_is_not_remembered_past_an_update():
    domain = DOMAINS[(7,)]
    ours = DenseWeights.uniform(domain)
    query = LinearQuery.conjunction(domain, {"a00": [1, 0, 0, 0, 0, 0, 0]})
    first = ours.answer(query)
    ours.scale_marginal(("a00",), [6, 1, 1, 1, 1, 1, 1])
    assert first == pytest.approx(1 / 7)
    assert ours.answer(query) == pytest.approx(0.5)


def test_too_large_is_refused_before_it_is_allocated():
    huge = domain_of((10,) * 100)
    for make in (
        lambda: DenseWeights.uniform(huge),
        lambda: DenseWeights.product(huge, {}),
        lambda: DenseWeights.histogram(huge, [1]),
    ):
        with pytest.raises(TooLargeError, match="the graphical one holds larger domains") as refusal:
            make()
        assert (refusal.value.cells, refusal.value.limit) == (10**100, DENSE_LIMIT)


@pytest.mark.parametrize(
    ("act", "error", "sentence"),
    [
        (
            lambda w: DenseWeights.histogram(w.domain, [1, 2]),
            DomainError,
            r"must have shape \(7,\), not \(2,\)",
        ),
        (lambda w: DenseWeights.histogram(w.domain, [-1] * 7), ParameterError, "at least 0, and not all 0"),
        (lambda w: DenseWeights.histogram(w.domain, [0] * 7), ParameterError, "at least 0, and not all 0"),
        (lambda w: DenseWeights.product(w.domain, {"a00": [1]}), ParameterError, "must be 7 finite numbers"),
        (lambda w: DenseWeights.product(w.domain, {"a00": [0] * 7}), ParameterError, "a positive sum"),
        (lambda w: DenseWeights.product(w.domain, {"b": [0] * 7}), DomainError, "no attribute 'b'"),
        (lambda w: DenseWeights.uniform(w.domain, threads=0), ParameterError, "threads must be at least 1"),
        (lambda w: w.reweight(LinearQuery.everyone(w.domain), np.inf), ParameterError, "must be finite"),
        (lambda w: w.scale_marginal(("a00",), [1]), DomainError, r"must have shape \(7,\)"),
        (lambda w: w.scale_marginal(("a00",), [-1] * 7), ParameterError, "at least 0, and not all 0"),
        (lambda w: w.scale_marginal(("a00",), [0] * 7), ParameterError, "at least 0, and not all 0"),
        (lambda w: w.answer(LinearQuery.everyone(DOMAINS[(2,) * 13])), DomainError, "different domains"),
    ],
)
def test_what_cannot_be_done_is_refused(act, error, sentence):
    with pytest.raises(error, match=sentence):
        act(DenseWeights.uniform(DOMAINS[(7,)]))


def test_numba_is_imported_only_when_a_pass_is_made():
    program = (
        "import sys, understudy, understudy.standin.dense.weights, understudy.standin.multiplicative, "
        "understudy.standin.median.median, understudy.standin.linear; print('numba' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "False"


# ---- cells on a device


def test_tiles_of_which_nothing_is_said_are_not_read():
    spans = np.array([[0, 10], [2047, 2049], [5000, 5001]])
    assert spoken_tiles(spans, 6000, 1024).tolist() == [True, True, True, False, True, False]
    assert spoken_tiles(np.empty((0, 2), np.int64), 6000, 1024).tolist() == [False] * 6


def test_rows_begin_where_several_cells_are_read_at_once():
    for columns, dtype, wide in [
        (4096, "float32", 4),
        (4096, "float64", 2),
        (4098, "float32", 2),
        (7, "float64", 1),
    ]:
        assert tile_width(columns, np.dtype(dtype)) == device.THREADS * device.EACH * wide


def test_a_stand_in_on_a_device_is_the_one_in_memory(monkeypatch):
    monkeypatch.setattr(device, "_cupy", fake_cupy.cupy)
    domain = DOMAINS[(5, 3, 40, 30)]
    ours = DenseWeights.product(domain, {"a01": [1, 2, 3]}, dtype="float32", device="cuda")
    here = DenseWeights.product(domain, {"a01": [1, 2, 3]}, dtype="float32")
    assert (ours.dtype, ours.threads, repr(ours)) == (
        np.dtype("float32"), 1, "DenseWeights(18,000 cells, float32, on a CUDA device)",
    )  # fmt: skip
    query = LinearQuery.conjunction(domain, {"a01": [0, 1, 1], "a03": np.arange(30) < 7})
    kept = ours.copy()
    for weights_ in (ours, here):
        weights_.reweight(query, 0.7)
    np.testing.assert_allclose(ours.rates(), here.rates(), rtol=1e-6)
    assert kept.answer(query) != pytest.approx(ours.answer(query))
    assert MultiplicativeWeights(domain=domain, alpha=0.1, device="cuda").start().dtype == np.float64


def test_a_device_that_is_too_small_or_not_there_is_refused_with_what_to_do(monkeypatch):
    domain = DOMAINS[(3, 40, 2000)]
    with pytest.raises(ParameterError, match="device must be 'cpu' or 'cuda', not 'tpu'"):
        DenseWeights.uniform(domain, device="tpu")
    with pytest.raises(ParameterError, match=r"needs CuPy: install the extra `understudy\[cuda\]`"):
        DenseWeights.uniform(domain, device="cuda")
    device._cupy.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.cupy(devices=0))
    with pytest.raises(ParameterError, match="this machine shows none: leave it out"):
        DenseWeights.uniform(domain, device="cuda")
    monkeypatch.setattr(device, "_cupy", lambda: fake_cupy.cupy(memory=1 << 20))
    with pytest.raises(TooLargeError, match="on this device") as refusal:
        DenseWeights.uniform(domain, dtype="float32", device="cuda")
    assert refusal.value.limit == int(0.9 * 2**20) // 4
