"""A release finishes, or it spends nothing: whatever the domain, the workload, the budget and the memory."""

from __future__ import annotations

import re
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import understudy as us
from understudy import memory
from understudy.declaration.file import parse
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError, TooLargeError, UnderstudyError
from understudy.noise.samplers import SeededNoise
from understudy.query.workload import Workload
from understudy.releases import demand
from understudy.releases import folder as files
from understudy.standin.graphical.model import GraphicalStandIn, fit
from understudy.standin.graphical.projected import projected
from understudy.standin.measurement import Measurement

HEAD = "understudy: 1\nname: t\nsource: t.csv\n"


def project(
    sizes: list[int], rows: int, *, head: str = "neighbours: replace\nbudget: {epsilon: 1, delta: 1e-9}\n"
):
    attributes = "".join(
        f"  a{i}: {{type: integer, edges: {[*range(n + 1)]}}}\n" for i, n in enumerate(sizes)
    )
    rng = np.random.default_rng(rows)
    frame = pd.DataFrame({f"a{i}": rng.integers(0, n, rows) for i, n in enumerate(sizes)})
    return us.Project.frame(frame, parse(f"{HEAD}{head}attributes:\n{attributes}"), noise=SeededNoise(1))


@st.composite
def situations(draw: Any) -> dict[str, Any]:
    """A small table, however odd, a workload of it, a price, and perhaps a limit of memory."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 7]), min_size=1, max_size=5))
    neighbours = draw(st.sampled_from(["replace", "add-remove", "add-remove\nrows: {at_least: 5}"]))
    epsilon = draw(st.sampled_from([1e-9, 1e-5, 0.01, 1, 30]))
    delta = draw(st.sampled_from(["", ", delta: 1e-9", ", delta: 1e-30"]))
    head = f"neighbours: {neighbours}\nbudget: {{epsilon: {epsilon}{delta}}}\n"
    if draw(st.booleans()) and len(sizes) > 1 and min(sizes[:2]) > 1:
        head += "constraints:\n  - impossible: a0 >= 1 and a1 < 1\n"
    return {
        "sizes": sizes,
        "rows": draw(st.sampled_from([0, 1, 40, 500])),
        "head": head,
        "order": draw(st.integers(0, len(sizes))),
        "epsilon": epsilon * draw(st.sampled_from([1, 0.3])),
        "memory": draw(st.sampled_from([None, None, 1000, 300_000, 10**7])),
    }


@pytest.mark.parametrize("method", ["auto", "adaptive", "residual", "mwem", "smalldb", "ic", "aim"])
def test_a_release_finishes_or_spends_nothing(method):
    @given(situation=situations())
    @settings(
        max_examples=9,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def finishes(situation: dict[str, Any]) -> None:
        p = project(situation["sizes"], situation["rows"], head=situation["head"])
        before = p.ledger.spent
        terms = {"epsilon": situation["epsilon"], "method": method, "memory": situation["memory"]}
        try:
            made = us.release(p, us.marginals(situation["order"]), **terms)
        except UnderstudyError:
            assert p.ledger.spent == before
            return
        assert len(made.draw(30)["a0"]) == 30
        assert made.drawn_rows <= 10**9

    finishes()


@pytest.mark.parametrize("method", ["auto", "adaptive", "residual", "mwem", "aim"])
def test_a_small_machine_refuses_before_the_first_debit(method, monkeypatch):
    p = project([7, 7, 7, 7], 500)
    us.release(p, us.marginals(2), epsilon=0.1, method=method)
    spent = p.ledger.spent
    monkeypatch.setattr(memory, "physical", lambda: 100_000)
    with pytest.raises(UnderstudyError, match=r"Nothing was spent.*`(memory|max_cells)") as refusal:
        us.release(p, us.marginals(2), epsilon=0.1, method=method)
    assert "50 KB is allowed" in str(refusal.value)
    assert p.ledger.spent == spent
    us.release(p, us.marginals(2), epsilon=0.1, method=method, memory=10**10)


def test_tables_that_nobody_can_hold_are_refused_before_the_first_debit():
    p = project([50] * 9, 20)
    for method in ("auto", "adaptive", "residual", "aim"):
        with pytest.raises(TooLargeError, match="Nothing was spent"):
            us.release(p, us.marginals(9), epsilon=0.1, method=method)
    with pytest.raises(UnderstudyError, match=r"of memory.*Nothing was spent"):
        us.release(p, us.marginals(4), epsilon=0.1, memory=10**9)
    assert p.ledger.spent.units == 0


def test_looks_that_count_too_much_at_once_are_refused_before_the_first_debit(monkeypatch):
    """All candidates of a round are counted in one look, which comes after the 1-way marginals are paid."""
    p = project([20] * 6, 50)
    monkeypatch.setattr(demand, "CELL_LIMIT", 5000)  # a pair has 400 cells, 15 pairs have 6000
    with pytest.raises(UnderstudyError, match=r"6,000 cells at once.*Nothing was spent"):
        us.release(p, us.marginals(2), epsilon=0.1, method="adaptive")
    assert p.ledger.spent.units == 0


def test_more_rows_than_fit_are_refused_before_the_first_debit():
    p = project([3, 3], 100)
    with pytest.raises(
        TooLargeError, match=r"synthetic rows.*Nothing was spent. Draw fewer synthetic rows, at most `rows="
    ):
        us.release(p, us.marginals(1), epsilon=0.1, memory=10**8, rows=10**9)
    assert p.ledger.spent.units == 0


def test_a_private_number_of_rows_that_is_off_by_billions_draws_no_more_than_fits():
    p = project([2], 50, head="neighbours: add-remove\nbudget: {epsilon: 1e-9}\n")
    made = us.release(p, us.marginals(1), epsilon=1e-9, method="mwem")
    assert made.drawn_rows <= memory.default_limit() // demand.row_bytes(p.domain)
    assert made.drawn_rows <= 10**9


@pytest.mark.parametrize(
    ("sizes", "neighbours", "epsilon", "finishes"),
    [
        (
            [2] * 25,
            "replace",
            3e-4,
            True,
        ),  # a direct question to each of 2,625 marginals would cost too little
        ([2] * 25, "replace", 5e-5, True),  # what the first measurements leave buys no second ones
        ([2] * 40, "add-remove", 1e-4, True),
        ([3000, 2, 1], "add-remove", 1e-4, True),  # the smallest attribute's share would buy no noise
        ([2] * 300, "add-remove", 1e-4, False),  # nor would that of any
        ([2] * 25, "replace", 2e-5, False),
    ],
)
def test_a_price_of_next_to_nothing_buys_a_release_or_is_not_spent(sizes, neighbours, epsilon, finishes):
    head = f"neighbours: {neighbours}\nbudget: {{epsilon: {epsilon}, delta: 1e-9}}\n"
    p = project(sizes, 200, head=head)
    terms = {"epsilon": 0.9 * epsilon, "method": "adaptive", "name": "r"}
    if not finishes:
        with pytest.raises(UnderstudyError):
            us.release(p, us.marginals(2), **terms)
        assert p.ledger.spent.units == 0
        return
    made = us.release(p, us.marginals(3 if len(sizes) < 30 else 2), **terms)
    spent = p.ledger.spent
    steps = made.certificate["parameters"]["shares"]
    assert ("first again" in steps) == any("first again" in name for name in made.certificate["requests"])
    assert 0 < spent.units <= p.ledger.budget.alone(0.9 * epsilon, 1e-9).cap.units


def test_a_workload_is_counted_before_it_is_listed():
    domain = Domain(tuple(Bins.integers(f"a{i}", 0, 1) for i in range(60)))
    with pytest.raises(QueryError, match="14,783,142,660 marginals of order 9"):
        Workload.all_marginals(domain, 9)


def test_aim_with_a_workload_that_leaves_attributes_out_finishes():
    p = project([2, 3, 3], 100)
    for workload in (us.marginals(0), Workload.of(p.domain, [("a0",)])):
        us.release(p, workload, epsilon=0.1, method="aim")


# ---- what is too large for an exact table


def test_a_marginal_across_a_tree_comes_out_however_large_the_tables_on_its_way():
    domain = Domain(tuple(Bins.integers(name, 0, 9) for name in "abcd"))
    rng = np.random.default_rng(0)
    told = [Measurement(c, rng.random((10, 10)) * 100, 1.0) for c in (("a", "b"), ("b", "c"), ("c", "d"))]
    model: GraphicalStandIn = fit(domain, told, total=5000)
    cliques = [("a", "b"), ("a", "d")]
    exact = model.project_many(cliques)
    with pytest.raises(TooLargeError):
        model.project_many(cliques, most=50)
    found = projected(model, cliques, most=50)
    assert np.array_equal(found[0], exact[0])  # it lies in the tree: no table is met on the way
    assert found[1].shape == (10, 10)
    assert np.abs(found[1] - exact[1]).sum() < 0.05
    assert np.array_equal(found[1], projected(model, cliques, most=50)[1])  # a stopped run meets it again


@pytest.mark.parametrize(("method", "order"), [("mwem", 4), ("residual", 4), ("residual", 2)])
def test_the_forecast_of_memory_covers_what_is_allocated(method, order):
    p = project([10, 10, 10, 10], 300)
    terms = {"epsilon": 0.1, "method": method} | ({"passes": 3} if method == "mwem" else {})
    us.release(p, us.marginals(1), **terms)  # imports
    need = us.forecast(p, us.marginals(order), **terms).need
    tracemalloc.start()
    made = us.release(p, us.marginals(order), **terms)
    files.answers_table(p.domain, made.answers)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert need.total / 10 <= peak <= need.total + 8_000_000


def test_the_forecast_with_a_limit_of_memory_is_of_what_will_be_taken():
    """Neither of the least that the method could do with, nor of more than the limit."""
    p = project([10, 10, 10, 10], 300)

    def need(**limits: float) -> int:
        return us.forecast(p, us.marginals(2), epsilon=0.1, method="adaptive", **limits).need.total

    usual, more = need(), need(seconds=20)
    assert need(memory=10**10) == usual < more == need(memory=10**11, seconds=20)
    assert usual / 5 < need(memory=usual // 2) <= usual // 2
    assert usual < need(memory=2 * usual, seconds=20) <= 2 * usual
    with pytest.raises(UnderstudyError, match=r"Allow more memory, at least `memory=(\d+)`") as refused:
        need(memory=1)
    least = int(re.findall(r"`memory=(\d+)`", str(refused.value))[0])
    for limit in (least, least * 11 // 10, least * 2):
        assert need(memory=limit) <= limit


@pytest.mark.parametrize(
    ("method", "sizes", "rows", "terms"),
    [("ic", [10] * 6, 20_000, {"rows": 10, "most_rounds": 60}), ("smalldb", [500], 300, {"size": 2})],
)
def test_methods_that_fit_no_model_are_forecast_as_well(method, sizes, rows, terms):
    """A weight for every cell of a million, and a matrix of 500 kinds of rows by as many queries."""
    p = project(sizes, rows)
    asked = {"epsilon": 1, "method": method, **terms}
    need = us.forecast(p, us.marginals(1), **asked).need
    with pytest.raises(UnderstudyError, match=r"the stand-in.*is allowed.*Nothing was spent"):
        us.release(p, us.marginals(1), **asked, memory=need.total - 1)
    assert p.ledger.spent.units == 0
    tracemalloc.start()
    us.release(p, us.marginals(1), **asked)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert need.parts["the stand-in"] / 10 <= peak <= need.total + 12_000_000
