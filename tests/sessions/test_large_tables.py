"""Sessions on tables of up to 10^9 rows: noise is large in people, and is drawn on a lattice that is coarser."""

from __future__ import annotations

import json
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from counted import Cells, curator_of
from session_analysts import attributes, curator, random_conjunction, table_of
from understudy.mechanism.matrix.bases import HistogramDesign
from understudy.privacy.budget import Budget
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.workload import marginals
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.family_product import product_of
from understudy.sessions.histogram import HistogramPurchase
from understudy.sessions.one_way import half_widths
from understudy.sessions.opening import session as session_of
from understudy.sessions.product_class import ProductPurchase, resolution_for
from understudy.sessions.simulation import LatticeNoise
from understudy.sessions.terms import conjunctions, ranges

SIZES = [10**5, 10**6, 10**7, 10**9]
SMALL = attributes({"age": 6, "hours": 4}, {"sex": 3, "town": 3})
CLASSES = {
    "asked": (),
    "ranges": (ranges("age", "hours"),),
    "conjunctions": (conjunctions("hours", "sex", "town"),),
    "marginals": (marginals(2),),
}


def of_rows(rows, domain=SMALL):
    """A table of so many rows, known by its counts."""
    few = table_of(domain, 1000, 3)
    return Cells(domain, few.count(domain.names).reshape(domain.shape(domain.names)) * (rows // 1000))


def plans(session):
    steps = session.curator.ledger.steps(session._buyer.journal.debit)
    return [json.loads(step) for step in steps]


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    """The domain counts as a large one: it is not bought as a whole. Histograms are bought at once."""
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)
    monkeypatch.setattr("understudy.sessions.histogram_rent.RENT", 0.0)
    monkeypatch.setattr("understudy.sessions.histogram_rent.COUNTS", 0.0)


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize(
    ("name", "delta"),
    [*((name, 1e-6) for name in CLASSES), *((name, 0) for name in CLASSES if name != "marginals")],
)
def test_sessions_of_every_size_buy_classes_and_keep_their_promise(name, rows, delta):
    truth = of_rows(rows)
    one = curator(truth, seed=5, delta=delta)
    session = session_of(one, alpha=0.05, beta=0.05, queries=1000, classes=CLASSES[name], name="large")
    draw = np.random.default_rng(6)
    asked = [
        *(random_conjunction(draw, SMALL, ("age", "hours")) for _ in range(4)),
        *(random_conjunction(draw, SMALL, ("hours", "sex", "town")) for _ in range(4)),
        *(Marginal(SMALL, by) for by in (("age", "hours"), ("sex", "town"), ("age",))),
    ]
    for question in asked:
        answer = session.ask_marginal(question)
        assert answer.source != "uncertified"
        assert (np.abs(answer.value - truth.exact(question)) <= answer.error + 1e-6 * rows).all()
        assert (answer.error <= session.width).all()
    bought = {plan["kind"] for plan in plans(session)}
    assert bought >= {"asked": {"histogram"}, "marginals": {"marginals"}}.get(name, {"grids"})
    again = session_of(curator_of(truth, epsilon=1000, delta=delta, seed=9, ledger=one.ledger), name="large")
    spent = one.ledger.spent
    for question in asked:
        said = session.ask_marginal(question), again.ask_marginal(question)
        assert (np.abs(said[0].value - said[1].value) <= said[0].error + said[1].error).all()
    assert one.ledger.spent == spent


def test_classes_have_a_price_under_every_budget_of_a_gdp_filter():
    """Also where the reserve of the filter is large: there no discrete noise had a price, of whatever variance."""

    def price(epsilon):
        budget = Budget.of(epsilon, Fraction(1, 10**6), filter="gdp")
        one = curator(of_rows(10**7), seed=5, budget=budget)
        found = session_of(one, alpha=0.05, queries=100).price_of_class(ranges("age"))
        session_of(one, alpha=0.05, queries=100, classes=[ranges("age")])
        assert one.ledger.spent.units > 0
        return found

    assert price(1) == price(400) == price(1000)


# ---- the resolution of weights

BY, KINDS = ("age", "hours"), ("ranges", "ranges")


def calibrator_of(rows, alpha=0.05):
    return Calibrator(curator(of_rows(rows), seed=1), int(alpha * rows))


def everyone():
    return LinearQuery.everyone(SMALL)


def test_weights_are_as_fine_as_ever_where_the_noise_permits():
    """A plan reads as it did before there were resolutions; what was planned before is measured as it was."""
    found = [resolution_for(calibrator_of(rows), BY, KINDS, everyone(), 1e-3) for rows in (2000, *SIZES)]
    assert found[:2] == [None, None]
    assert found[2:] == sorted(found[2:], reverse=True)
    assert min(found[2:]) >= 16  # prices have a least value, and so noise has a largest one
    small = ProductPurchase.of(calibrator_of(2000), BY, everyone(), 1e-3, KINDS)
    large = ProductPurchase.of(calibrator_of(10**6), BY, everyone(), 1e-3, KINDS)
    assert small is not None
    assert large is not None
    assert "resolution" not in small.plain()
    assert large.plain()["resolution"] == large.resolution == found[2]
    for purchase, calibrator in ((small, calibrator_of(2000)), (large, calibrator_of(10**6))):
        again = ProductPurchase.read(calibrator, json.loads(json.dumps(purchase.plain())))
        assert again.plain() == purchase.plain()
    before = {key: value for key, value in large.plain().items() if key != "resolution"}
    old = ProductPurchase.read(calibrator_of(10**5), before)
    finest = product_of((6, 4), KINDS, laplace=False)
    assert [m.tolist() for m in old._product(calibrator_of(10**5)).matrices] == [
        m.tolist() for m in finest.matrices
    ]


def test_histograms_of_many_rows_have_coarser_weights_too():
    purchases = [HistogramPurchase.of(calibrator_of(rows), "age", 1e-3, 1e-9) for rows in (2000, 10**9)]
    assert purchases[0].resolution is None
    assert "resolution" not in purchases[0].plain()
    assert 16 <= (purchases[1].resolution or 0) < 1024
    for purchase in purchases:
        again = HistogramPurchase.read(calibrator_of(2000), json.loads(json.dumps(purchase.plain())))
        assert again.plain() == purchase.plain()


@pytest.mark.parametrize("kind", ["ranges", "prefixes", "suffixes", "subsets", "cells"])
@pytest.mark.parametrize("size", [2, 3, 5, 12])
def test_rounded_weights_tell_all_cells_apart_at_every_resolution(kind, size):
    """The cells come out of the combinations exactly, whatever was rounded."""
    for resolution in (1, 2, 3, 5, 8, 16, 64, 1024):
        whole = product_of((size,), (kind,), laplace=False, resolution=resolution)
        [matrix], [inverse] = whole.matrices, whole.inverses
        assert np.abs(matrix).max() == (1 if (matrix == np.eye(size)).all() else resolution)
        assert inverse @ matrix == pytest.approx(np.eye(size), abs=1e-9)


@pytest.mark.parametrize("centred", [False, True])
def test_rounded_histograms_tell_all_differences_apart(centred):
    for resolution in (1, 2, 3, 8, 64, 1024):
        design = HistogramDesign(7, ordered=True, centred=centred, resolution=resolution)
        counts = np.arange(7.0) ** 2
        found = design.histogram(design.matrix @ counts, counts.sum())
        assert found == pytest.approx(counts, abs=1e-8)


def test_rounding_costs_little():
    """Price × width² is the largest deviation of a member times the longest column: squared, to within a tenth."""

    def cost(resolution):
        product = product_of((12, 8), KINDS, laplace=False, resolution=resolution)
        columns = [np.linalg.norm(matrix, axis=0).max() for matrix in product.matrices]
        return (product.norm(2) * np.prod(columns)) ** 2

    assert all(cost(resolution) <= 1.1 * cost(None) for resolution in (512, 128, 64, 32))
    assert cost(16) <= 1.3 * cost(None)
    assert cost(4) <= cost(1) <= cost(2)


# ---- memory


@pytest.mark.parametrize("rows", SIZES)
def test_bands_of_laplace_noise_take_as_much_memory_on_every_table(rows):
    """The table of its law had 72 numbers for each person of the scale: gigabytes at 10^9 rows."""
    spread = Fraction(rows, 37)
    tracemalloc.start()
    half_widths(HistogramDesign(10, ordered=False, centred=False, laplace=True), spread, 1e-4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 27
    assert LatticeNoise.of(spread, laplace=True).below.nbytes < 1 << 22
