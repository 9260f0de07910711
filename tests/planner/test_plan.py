from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import understudy as us
from page_checks import read_page
from understudy.errors import ParameterError
from understudy.planner.frontier import frontier
from understudy.planner.mechanisms import MECHANISMS
from understudy.planner.solve import Plan, plan, width_of
from understudy.theory.planned import PlanInputs, Promise

VALIDITY = {"promise": "validity", "beta": 0.05}
PRIVACY = {"epsilon": 1, "delta": 1e-6, "universe": 256, "beta": 0.05}


def option(found: Plan, name: str):
    return next(o for o in found.options if o.mechanism == name)


def test_the_bar_of_a_validity_plan():
    found = plan(rows=100_000, queries=10_000, universe=1024, **VALIDITY)
    assert len(found.options) >= 10
    assert option(found, "cvar").width == pytest.approx(0.1497, abs=5e-5)
    assert option(found, "drift").width == pytest.approx(0.1090, abs=5e-5)
    assert option(found, "split").vacuous
    assert found.recommended.mechanism == "universe"
    widths = [o.width for o in found.options]
    assert widths == sorted(widths)


def test_without_a_universe_there_are_still_ten():
    reply = plan(rows=100_000, queries=10_000, guesses=True, best_only=True, **VALIDITY).as_dict()
    assert len(reply["mechanisms"]) >= 10
    for entry in reply["mechanisms"]:
        assert {"mechanism", "width", "theorem", "parameters"} <= entry.keys()
    json.dumps(reply)


def test_theorem_t_is_recommended_and_the_drift_certificates_are_offered():
    found = plan(rows=100_000, queries=10_000, **VALIDITY)
    assert found.recommended.mechanism == "bounded"
    named = [o.mechanism for o in found.options[:5]]
    assert named == ["bounded", "tilting", "tilting-discrete", "drift-sharp", "drift"]
    assert all("not peer reviewed" in o.note for o in found.options[:5])
    assert plan(rows=100_000, alpha=0.05, **VALIDITY).recommended.solved == 1489


def test_privacy_mechanisms_are_ranked():
    found = plan(rows=10**6, queries=1000, vc=3, **PRIVACY)
    assert {o.mechanism for o in found.options} >= {
        "laplace", "gaussian", "histogram", "smalldb", "smalldb-vc", "iterative-mw", "iterative-median",
        "online-mw",
    }  # fmt: skip
    assert option(found, "laplace").width == pytest.approx(1000 / 10**6 * 9.9035, rel=1e-3)
    assert all(entry.theorem for entry in found.options)


def test_both_promises_cost_more_than_each():
    both = plan(rows=10**6, queries=100, epsilon=1, delta=1e-6, promise="both")
    private = plan(rows=10**6, queries=100, epsilon=1, delta=1e-6)
    assert option(both, "private-gaussian").width > option(private, "gaussian").width
    assert option(both, "private-laplace").width > option(private, "laplace").width


@pytest.mark.parametrize("unknown", ["rows", "queries", "epsilon"])
def test_the_solver_inverts(unknown):
    known = {"rows": 10**6, "queries": 200, "epsilon": 1.0, "alpha": 0.05, "delta": 1e-6, "universe": 64}
    del known[unknown]
    found = plan(**known)
    for o in found.options:
        if o.solved is None:
            continue
        forward = plan(**{k: v for k, v in known.items() if k != "alpha"}, **{unknown: o.solved})
        width = option(forward, o.mechanism).width
        assert width <= 0.05 * (1 + 1e-9)
        less = {"rows": 0.99, "queries": 1.02, "epsilon": 0.99}[unknown]
        worse = o.solved * less if unknown == "epsilon" else max(1, round(o.solved * less))
        if unknown != "queries" or o.solved < 10**15:
            missed = plan(**{k: v for k, v in known.items() if k != "alpha"}, **{unknown: worse})
            assert option(missed, o.mechanism).width >= 0.05 * 0.99


def test_rows_for_a_width_then_the_width_for_these_rows():
    found = plan(queries=1000, alpha=0.05, **VALIDITY)
    for o in found.options:
        if o.solved is not None:
            again = option(plan(rows=o.solved, queries=1000, **VALIDITY), o.mechanism)
            assert again.width == pytest.approx(0.05, rel=0.01)


@given(st.integers(3, 7), st.integers(0, 5), st.sampled_from(["rows", "queries", "beta"]))
@settings(max_examples=25)
def test_monotone_in_every_argument(rows, queries, name):
    here = PlanInputs(rows=10**rows, queries=10**queries, promise=Promise.VALIDITY, universe=512)
    more = {"rows": 3 * 10**rows, "queries": 3 * 10**queries, "beta": 0.1}[name]
    there = PlanInputs(**{**{k: getattr(here, k) for k in here.__slots__}, name: more})
    for mechanism in MECHANISMS:
        if not mechanism.lacks(here):
            before, after = width_of(mechanism, here)[0], width_of(mechanism, there)[0]
            wider = name == "queries"
            assert after >= before * (1 - 1e-6) if wider else after <= before * (1 + 1e-6), mechanism.name


@pytest.mark.parametrize("epsilons", [(0.01, 0.1), (0.5, 2.0), (5.0, 50.0)])
@pytest.mark.parametrize("promise", ["privacy", "both"])
def test_a_larger_budget_never_hurts(epsilons, promise):
    known = {"rows": 10**6, "queries": 50, "delta": 1e-6, "universe": 64, "promise": promise}
    small, large = (plan(**known, epsilon=epsilon) for epsilon in epsilons)
    for o in small.options:
        assert option(large, o.mechanism).width <= o.width * (1 + 1e-6), o.mechanism


@pytest.mark.parametrize(
    ("known", "hint"),
    [
        ({"rows": 100, "queries": 10, "beta": 0, **{"promise": "validity"}}, "beta"),
        ({"rows": 100, "queries": 10, "beta": 1.5, **{"promise": "validity"}}, "beta"),
        ({"rows": 100, "queries": 0, **VALIDITY}, "queries must be at least 1"),
        ({"rows": 0, "queries": 1, **VALIDITY}, "rows must be at least 1"),
        ({"rows": 100.5, "queries": 1, **VALIDITY}, "whole"),
        ({"rows": float("nan"), "queries": 1, **VALIDITY}, "finite"),
        ({"rows": 100, "queries": 10, "universe": 1, **VALIDITY}, "universe must be at least 2"),
        ({"rows": 100, "queries": 10, "epsilon": 1, **VALIDITY}, "no epsilon"),
        ({"rows": 100, "queries": 10, "alpha": 0.1, **VALIDITY}, "exactly one"),
        ({"rows": 100, **VALIDITY}, "exactly one"),
        ({"rows": 100, "queries": 10}, "exactly one"),
        ({"rows": 100, "queries": 10, "epsilon": -1}, "positive"),
        ({"rows": 100, "queries": 10, "epsilon": 1, "delta": 1}, "delta"),
        ({"rows": 100, "queries": 10, "epsilon": 1, "best_only": True}, "validity alone"),
        ({"rows": 100, "queries": 10, "failures": 2, **VALIDITY}, "guesses"),
        ({"rows": 100, "queries": 10, "failures": 10, "guesses": True, **VALIDITY}, "fewer wrong"),
        ({"rows": 100, "alpha": 2, **VALIDITY}, "alpha"),
        ({"rows": 100, "queries": 10, "epsilon": 1, "promise": "fame"}, "privacy, validity, both"),
    ],
)
def test_bad_input_is_one_clear_sentence(known, hint):
    with pytest.raises(ParameterError) as refused:
        plan(**known)
    assert hint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_huge_universes_are_no_trouble():
    found = plan(rows=10**9, queries=10**6, epsilon=1, delta=1e-9, universe=10**100)
    assert option(found, "iterative-mw").width < 0.5


def test_a_workload_stands_for_its_queries_and_universe():
    domain = us.Domain(tuple(us.Bins.integers(f"a{i}", 0, 3) for i in range(5)))
    workload = us.marginals(2).over(domain)
    found = plan(rows=10**6, epsilon=1, workload=workload)
    assert (found.situation.queries, found.situation.universe) == (160, 1024)
    with pytest.raises(ParameterError, match="workload"):
        plan(rows=10**6, epsilon=1, workload=workload, queries=3)


def test_it_shows_itself():
    found = us.plan(rows=100_000, queries=10_000, **VALIDITY)
    assert "recommended: bounded" in str(found)
    assert found._repr_html_().count("<tr>") == len(found.options) + 1
    assert "needs the size of the universe" in found.left_out["median"]


def test_a_frontier_is_a_page_of_the_one_design(tmp_path: Path):
    found = plan(rows=100_000, queries=1000, **VALIDITY)
    drawn = frontier(found, against="rows")
    drawn.save(tmp_path / "frontier.html")
    text = (tmp_path / "frontier.html").read_text(encoding="utf-8")
    assert len(read_page(text).drawings) == 2  # for a wide screen and for a telephone; no labels meet
    for option in found.options:
        assert option.mechanism in text
    assert "Recommended: bounded." in text


def test_a_frontier_alone_carries_its_colours(tmp_path: Path):
    frontier(plan(rows=100_000, queries=1000, **VALIDITY)).save(tmp_path / "frontier.svg")
    text = (tmp_path / "frontier.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(text)  # well-formed
    assert "prefers-color-scheme: dark" in text
    assert "--paper" in text
    assert "<script" not in text
    assert re.findall(r"https?://[^\"]*", text.replace("http://www.w3.org/2000/svg", "")) == []


def test_frontiers_that_cannot_be_drawn_say_why(tmp_path: Path):
    found = plan(rows=100_000, queries=1000, **VALIDITY)
    with pytest.raises(ParameterError, match="no epsilon"):
        frontier(found, against="epsilon")
    with pytest.raises(ParameterError, match="one of"):
        frontier(found, against="time")
    with pytest.raises(ParameterError, match="no mechanism says anything"):
        frontier(plan(rows=2, queries=1000, **VALIDITY), against="queries")
    with pytest.raises(ParameterError, match="written as"):
        frontier(found).save(tmp_path / "x.gif")
