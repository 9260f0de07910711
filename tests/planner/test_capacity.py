"""How many counts within an error each filter pays for, likely and for sure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from program import call
from understudy.declaration.file import parse
from understudy.errors import ParameterError
from understudy.planner import capacity
from understudy.planner.capacity import best_certain, certain_counts, count_capacity, declared_budget
from understudy.privacy.budget import Budget

TEXT = "understudy: 1\nname: t\nsource: t.csv\n{budget}\nattributes:\n  sex: {{type: category, values: [F, M]}}\n"


def test_one_command_tells_how_many_counts_are_surely_within_2000_people(tmp_path: Path) -> None:
    said = call("plan", "--epsilon", "1", "--delta", "1e-6", "--error", "2000", cwd=tmp_path).stdout
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines()[2:5]}
    assert rows["zcdp"] == ["9,407", "no", "price"]
    assert rows["renyi"] == ["9,326", "15,867"]
    assert "recommended: renyi, 15,867 counts within 2,000 people for sure" in said
    assert "budget: {epsilon: 1, delta: 1e-06, key_delta: 1e-07, filter: renyi, order: 22}" in said


def test_where_errors_are_small_gaussian_noise_is_recommended() -> None:
    found = count_capacity(1, 1e-6, 100)
    assert found.recommended is not None
    assert found.recommended.filter == "gdp"
    assert found.recommended.sure == 0
    assert "with probability 0.95" in found.verdict()


def test_where_nothing_pays_for_one_count_no_filter_is_recommended(tmp_path: Path) -> None:
    terms = ["plan", "--epsilon", "0.01", "--delta", "1e-9", "--error", "20"]
    said = call(*terms, cwd=tmp_path).stdout
    assert "no filter answers even one count within 20 people: allow a wider error" in said
    assert "recommended" not in said
    assert json.loads(call(*terms, "--json", cwd=tmp_path).stdout)["recommended"] is None


def test_a_ledger_that_was_charged_has_fixed_the_filter(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sex\n" + "F\nM\n" * 200, encoding="utf-8")
    budget = "budget: {epsilon: 1, delta: 1e-6, key_delta: 1e-7, filter: renyi}"
    (tmp_path / "understudy.yml").write_text(TEXT.format(budget=budget), encoding="utf-8")
    terms = ["plan", "--project", "understudy.yml", "--error", "100"]
    assert "recommended: gdp" in call(*terms, cwd=tmp_path).stdout
    call("ask", "count sex = F", "--error", "500", cwd=tmp_path)
    said = call(*terms, cwd=tmp_path).stdout
    assert "filter: renyi, which the first charge to the ledger has fixed" in said
    assert "recommended" not in said
    told = json.loads(call(*terms, "--json", cwd=tmp_path).stdout)
    assert (told["recommended"], told["fixed"]) == ("renyi", "renyi")
    too_small = call(*terms[:-1], "1", cwd=tmp_path).stdout
    assert "has fixed, answers not even one count within 1 people: allow a wider error" in too_small


def test_few_noises_of_the_widest_reach_are_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a tenth of a second, and there are 67 orders and parts of delta for narrow errors."""
    tried: list[Budget] = []

    def counted(budget: Budget, error: int) -> int:
        tried.append(budget)
        return int(budget.key_delta * 10**9)

    monkeypatch.setattr(capacity, "certain_counts", counted)
    best_certain(1, 1e-6, 10**9)
    assert len(set(tried)) <= 24  # the parts of delta, and a search among the orders of two of them
    tried.clear()
    best_certain(1, 1e-6, 2000)
    assert len(set(tried)) > 50


def test_likely_counts_are_paid_and_one_more_is_not() -> None:
    """By a project's own prices: k counts, each at β/k."""
    import pandas as pd

    import understudy as us

    for one in count_capacity(1, 1e-6, 500).filters:
        declared = parse(TEXT.format(budget=one.declared))
        frame = pd.DataFrame({"sex": ["F", "M"] * 10})
        p = us.Project.frame(frame, declared)
        for counts, fits in ((one.likely, True), (one.likely + 1, False)):
            cost = p.quote("count sex = F", error=500, beta=0.05 / counts, noise="gaussian").cost
            assert (counts * cost.units <= one.budget.cap.units) == fits


@pytest.mark.parametrize("error", [300, 1000, 5000])
def test_no_order_or_part_of_delta_nearby_pays_for_more(error: int) -> None:
    many, best = best_certain(1, 1e-6, error)
    assert certain_counts(best, error) == many > 0
    for part in (1e-8, 1e-7, 5e-7):
        usual = Budget.of(1, 1e-6, key_delta=part, filter="renyi")
        assert certain_counts(usual, error) <= many


@pytest.mark.parametrize(("epsilon", "delta", "error"), [(1, 1e-6, 16_384), (0.05, 1e-5, 9_000)])
def test_wide_errors_get_the_best_of_all_orders_and_parts(
    monkeypatch: pytest.MonkeyPatch, epsilon: float, delta: float, error: int
) -> None:
    """The search finds what a comparison of all of them finds; by itself the usual order would pay for fewer."""
    found, kept = best_certain(epsilon, delta, error)
    monkeypatch.setattr(capacity, "WIDE", error)
    monkeypatch.setattr(capacity, "SET_ASIDE", (*capacity.SMALLER, *capacity.SET_ASIDE))
    assert found == best_certain(epsilon, delta, error)[0] == certain_counts(kept, error)
    usual = Budget.of(epsilon, delta, key_delta=delta / 10, filter="renyi")
    assert found > certain_counts(usual, error)


@pytest.mark.parametrize("peak", [0, 1, 7, 12, 23, 24])
def test_the_search_finds_the_peak_wherever_it_is(peak: int) -> None:
    budgets = [Budget.of(1, 1e-6, filter="renyi", order=order) for order in range(15, 40)]
    looked: list[Budget] = []

    def counts(budget: Budget) -> int:
        looked.append(budget)
        return -abs(budgets.index(budget) - peak)

    assert capacity._searched(budgets, counts) is budgets[peak]
    assert len(set(looked)) <= 14


def test_what_is_declared_can_be_read_again() -> None:
    for one in count_capacity(1, 1e-6, 1000).filters:
        assert parse(TEXT.format(budget=one.declared)).budget == one.budget
    assert declared_budget(Budget.of(2, 1e-9)) == "budget: {epsilon: 2, delta: 1e-09}"


def test_a_budget_without_a_delta_and_less_than_a_person_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="delta"):
        count_capacity(1, 0, 1000)
    with pytest.raises(ParameterError, match="one person"):
        count_capacity(1, 1e-6, 0.5)
    for wrong in (["--rows", "1000"], ["--alpha", "0.1"]):
        terms = ["plan", "--epsilon", "1", "--delta", "1e-6", "--error", "2000", *wrong]
        assert "leave" in call(*terms, cwd=tmp_path, status=2).stderr
    assert "--delta" in call("plan", "--epsilon", "1", "--error", "2000", cwd=tmp_path, status=2).stderr
    assert (
        "goes with --ask" in call("plan", "--noise", "bounded", "--rows", "9", cwd=tmp_path, status=2).stderr
    )


def test_the_plan_of_many_queries_says_how_many_are_sure(tmp_path: Path) -> None:
    terms = ["plan", "--rows", "1000000", "--queries", "10000", "--epsilon", "1", "--delta", "1e-6"]
    said = call(*terms, cwd=tmp_path).stdout
    assert "for sure, with bounded noise:" in said
    told = json.loads(call(*terms, "--json", cwd=tmp_path).stdout)["filter"]["sure"]
    assert told["counts"] > 10_000
    assert "filter: renyi" in told["declare"]


@pytest.mark.parametrize("noise", ["auto", "bounded", "gaussian"])
def test_a_planned_question_costs_what_ask_would_take(noise: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sex\n" + "F\nM\n" * 2000, encoding="utf-8")
    budget = "budget: {epsilon: 1, delta: 1e-6, key_delta: 1e-7, filter: renyi}"
    (tmp_path / "understudy.yml").write_text(TEXT.format(budget=budget), encoding="utf-8")
    terms = ["count by sex", "--error", "1000", "--beta", "1e-6", "--noise", noise, "--json"]
    asked = json.loads(call("ask", *terms, "--dry-run", cwd=tmp_path).stdout)[0]
    planned = json.loads(
        call("plan", "--project", "understudy.yml", "--rows", "4000", "--ask", *terms, cwd=tmp_path).stdout
    )[0]
    assert planned["cost"] == asked["cost"]  # to the unit
    assert planned["noise"] == asked["noise"]
    assert planned["errors"][0]["error"] == asked["error"]
    assert (planned["noise"] == "bounded") == (noise != "gaussian")
    assert (planned["delta"] > 0) == (noise != "gaussian")
    said = call(
        "plan", "--project", "understudy.yml", "--rows", "4000", "--ask", *terms[:-1], cwd=tmp_path
    ).stdout
    assert f"pays for {planned['like_it']:,} like it" in said
    assert ("for sure, with bounded noise" in said) == (noise != "gaussian")


def test_a_rate_with_bounded_noise_is_planned_by_its_own_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sex\n" + "F\nM\n" * 2000, encoding="utf-8")
    budget = "budget: {epsilon: 8, delta: 1e-6, key_delta: 1e-7, filter: renyi}"
    (tmp_path / "understudy.yml").write_text(TEXT.format(budget=budget), encoding="utf-8")
    terms = ["--ask", "share sex = F", "--error", "0.1", "--noise", "bounded", "--json"]
    (told,) = json.loads(
        call("plan", "--project", "understudy.yml", "--rows", "4000", *terms, cwd=tmp_path).stdout
    )
    assert told["reached"]
    assert told["errors"][0]["error"] <= 0.1
    assert told["noise"] == "bounded"
