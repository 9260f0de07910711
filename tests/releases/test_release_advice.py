"""What a refused release is told: every method that a message names fits, once the message is followed."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy import memory
from understudy.declaration.file import parse
from understudy.errors import (
    DomainError,
    InsufficientBudgetError,
    ParameterError,
    RefusedError,
    UnderstudyError,
)
from understudy.ledger.place import ledger_place
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.cost import ZCDP, PureDP
from understudy.project import Project
from understudy.query.workload import Workload
from understudy.rational import MIN_PARAMETER
from understudy.releases import methods
from understudy.releases.making import release
from understudy.releases.method_choice import chosen, perform
from understudy.releases.resumable_run import ResumableRun
from understudy.releases.run import Run, Step, largest_epsilon

PURE, DELTA = "{epsilon: 1}", "{epsilon: 1, delta: 1e-9}"
SIZES = {"small": (3, 2), "middle": (30, 30, 10, 10, 8), "wide": (16,) * 8}
COMMAND_LINE = [name for name, method in methods.METHODS.items() if not method.python_only]


def project(
    sizes: tuple[int, ...], budget: str, neighbours: str = "replace", ledger=None, more=""
) -> Project:
    rng = np.random.default_rng(1)
    columns = {f"a{i}": rng.integers(0, size, 300) for i, size in enumerate(sizes)}
    table = pa.table({**columns, "sex": rng.choice(["F", "M"], 300).tolist()})
    listed = "".join(f"  a{i}: {{type: integer, bounds: [0, {size - 1}]}}\n" for i, size in enumerate(sizes))
    declared = parse(
        f"understudy: 1\nname: people\nsource: people.parquet\nbudget: {budget}\nneighbours: {neighbours}\n{more}"
        f"attributes:\n  sex: {{type: category, values: [F, M]}}\n{listed}"
    )
    return Project.frame(table, declared, ledger=ledger)


def run_of(about: Project, *, delta: Fraction | None = None, order: int = 2) -> Run:
    own = about.declaration.budget
    budget = Budget(Fraction(1), own.delta if delta is None else delta)
    return Run(about.curator, Workload.all_marginals(about.domain, order), budget, "spring")


def refusal(run: Run, method: str, options: dict) -> str | None:
    """What `perform` says before it looks; None where the method fits."""
    try:
        if method == "auto" and not options.get("ranges"):
            chosen(run)
            return None
        known = methods.named("residual" if method == "auto" else method)
        if not known.obstacle(run, options):
            return None
        perform(run, method, options)
    except RefusedError as error:
        return str(error)
    raise AssertionError("what has an obstacle is refused")


def followed(run: Run, told: str, options: dict) -> list[tuple[str, str]]:
    """Each method that a message names as a way out, and its obstacle when that way is taken."""
    found = []
    advice = told.partition("Nothing was spent. ")[2]
    for name in re.findall(r"[Tt]ake `method='(\w+)'`", advice):
        found.append((name, methods.named(name).obstacle(run, options)))
    for name, cells in re.findall(r"`method='(\w+)', cells=(\d+)`", advice):
        found.append((name, methods.named(name).obstacle(run, {**options, "cells": int(cells)})))
    given = re.search(r"\(budget: ({.*?})\), then (\w+) fits", advice)
    if given is not None:
        budget = project((2,), given[1]).declaration.budget
        assert (budget.epsilon, budget.is_pure) == (run.curator.ledger.budget.epsilon, False)
        richer = Project.over(run.curator._truth.source, replace(run.curator.declaration, budget=budget))
        again = Run(richer.curator, run.workload, budget, "spring")
        found.append((given[2], methods.named(given[2]).obstacle(again, options)))
    for name in re.findall(r"[Ll]eave out `delta`, then (\w+) fits", advice):
        again = replace(run, budget=replace(run.budget, delta=run.curator.ledger.budget.delta))
        found.append((name, methods.named(name).obstacle(again, options)))
    for left_out, name in re.findall(r"[Ll]eave out ([a-z, ]+), then (\w+) fits", advice):
        rest = {key: value for key, value in options.items() if key not in left_out.split(", ")}
        found.append((name, methods.named(name).obstacle(run, rest)))
    mentioned = set(re.findall(rf"\b({'|'.join(methods.METHODS)})\b", advice))
    assert mentioned == {name for name, _ in found}, (
        f"{advice} names a method in words that are not followed here"
    )
    return found


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("size", SIZES)
def test_every_method_that_a_refusal_names_fits(size, neighbours):
    refused = 0
    for budget, delta in ((PURE, None), (DELTA, None), (DELTA, Fraction(0))):
        about = project(SIZES[size], budget, neighbours)
        run = run_of(about, delta=delta)
        for method, options in product(["auto", *COMMAND_LINE], ({}, {"ranges": ["a0"]})):
            if options and method not in ("auto", "residual"):
                continue
            told = refusal(run, method, options)
            if told is None:
                continue
            refused += 1
            ways = followed(run, told, options)
            assert ways, told
            assert [obstacle for _, obstacle in ways] == [""] * len(ways), told
            reasons = told.partition("Nothing was spent. ")[0]
            for name, _ in ways if method == "auto" and not options else []:
                assert f"{name}:" not in reasons, f"{name} is refused and proposed: {told}"
        assert about.ledger.spent.units == 0
    assert refused >= 5


def test_a_wide_table_with_a_pure_budget_is_told_to_have_a_delta():
    run = run_of(project(SIZES["wide"], PURE))
    told = refusal(run, "auto", {})
    assert told is not None
    assert told.endswith("Give the budget a delta (budget: {epsilon: 1, delta: 1e-9}), then adaptive fits")
    assert "residual" not in told


def test_a_budget_that_was_drawn_on_stays_pure_and_nobody_is_told_otherwise(tmp_path):
    declared = project(SIZES["wide"], PURE).declaration
    place = ledger_place("understudy.ledger", base=tmp_path, environ={})
    ledger = DurableLedger(place, "people", declared.budget)
    about = project(SIZES["wide"], PURE, ledger=ledger)
    try:
        with pytest.raises(RefusedError, match="Give the budget a delta"):
            release(about, "2-way", epsilon=1)
        assert not list(tmp_path.iterdir())  # nothing was spent, and no ledger was made
        about.ask("count by sex", epsilon=0.1)
        for method, options in (("auto", {}), ("residual", {"ranges": ["a0"]}), ("mwem", {})):
            told = refusal(run_of(about), method, options)
            assert told is not None
            assert "drawn on" in told
            assert "coarser bins or fewer attributes, so that mwem fits" in told
            assert ("leave out ranges" in told) == bool(options)
            assert "give the budget" not in told.lower()
        with pytest.raises(RefusedError, match=r"Leave `delta` out$"):
            release(about, "2-way", epsilon=0.5, delta=1e-9)
        assert ledger.spent.amount == 0.1
    finally:
        ledger.close()


def test_settings_and_constraints_do_not_lead_in_circles():
    small = run_of(project(SIZES["small"], PURE))
    for method, options in (("mwem", {"cells": 3}), ("smalldb", {"alpha": 1e-7})):
        told = refusal(small, method, options)
        assert told is not None
        assert [obstacle for _, obstacle in followed(small, told, options)] == [""], told
    for size, budget, method in product(SIZES, (PURE, DELTA), ("smalldb", "ic")):
        run = run_of(project(SIZES[size], budget, more="constraints:\n  - impossible: a0 < 1 and a1 < 1\n"))
        told = refusal(run, method, {})
        assert told is not None
        assert "declared to be empty" in told
        ways = followed(run, told, {})
        assert ways
        assert not any(obstacle for _, obstacle in ways), told


def test_auto_takes_the_adaptive_method_where_nothing_else_fits_a_smaller_universe(monkeypatch):
    run = run_of(project(SIZES["middle"], DELTA))
    too_large = replace(methods.METHODS["residual"], obstacle=lambda run, options: "too large")
    monkeypatch.setattr(methods, "METHODS", {**methods.METHODS, "residual": too_large})
    assert chosen(run) == "adaptive"


def test_mistakes_are_told_before_what_stands_in_the_way():
    about = project(SIZES["wide"], PURE)
    cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ParameterError, "sex has no order", {"ranges": ["sex"]}),
        (DomainError, "there is no attribute 'nope'", {"ranges": ["nope"]}),
        (ParameterError, "residual does not take rounds", {"method": "residual", "rounds": 3}),
        (ParameterError, "net needs databases, which it is given from Python only", {"method": "net"}),
        (
            ParameterError,
            r"one of auto, smalldb, ic, mwem, residual, adaptive, aim, not 'mwm'",
            {"method": "mwm"},
        ),
    ]
    for kind, words, arguments in cases:
        with pytest.raises(kind, match=words):
            release(about, "2-way", epsilon=1, **arguments)
    with_delta = project(SIZES["small"], DELTA)
    meant = r"auto means residual here, and residual does not take seconds.*Take `method='adaptive'`"
    with pytest.raises(ParameterError, match=meant):
        release(with_delta, "2-way", epsilon=1, seconds=5)
    with pytest.raises(ParameterError, match="cells_limit must be at least 1"):
        release(with_delta, "2-way", epsilon=1, method="residual", cells_limit=0)
    assert about.ledger.spent.units == with_delta.ledger.spent.units == 0


# ---- too little memory is allowed


@pytest.mark.parametrize("method", ["auto", *(name for name in COMMAND_LINE if name != "ic")])
@pytest.mark.parametrize("memory", [1, 10**4, 10**5, 10**6, 10**7, 10**8])
@pytest.mark.parametrize("size", SIZES)
def test_the_memory_and_the_rows_that_a_refusal_names_are_enough(size, memory, method):
    """Whoever follows the advice is not refused again: by `forecast`, which decides as `release` does.

    `ic` certifies nothing for so few people, whatever its memory.
    """
    about = project(SIZES[size], DELTA)
    asked: dict[str, Any] = {"epsilon": 1, "method": method, "memory": memory, "rows": 10_000}
    try:
        us.forecast(about, "2-way", **asked)
        return
    except UnderstudyError as refused:
        told = str(refused)
    advice = told.partition("Nothing was spent. ")[2]
    assert advice, told
    assert "at most 0" not in told
    for name, number in re.findall(r"`(memory|rows)=(\d+)`", advice):
        us.forecast(about, "2-way", **{**asked, name: int(number)})
        tighter = int(number) * 9 // 10 if name == "memory" else -(-int(number) * 12 // 10)
        with pytest.raises(UnderstudyError):  # and it is not much more than enough
            us.forecast(about, "2-way", **{**asked, name: tighter})


def test_more_seconds_than_the_machine_has_memory_for_are_told_the_limit_that_fits(monkeypatch):
    """Nothing but what is said decides the sizes, so that the machine's memory must be said to limit them."""
    monkeypatch.setattr(memory, "physical", lambda: 2_150_000_000)
    about = project(SIZES["wide"], DELTA)
    asked: dict[str, Any] = {"epsilon": 1, "method": "adaptive", "seconds": 1000}
    with pytest.raises(RefusedError, match="no larger than fits, with `memory=1000000000`, then") as refused:
        us.forecast(about, "2-way", **asked)
    assert "at least" not in str(refused.value)
    assert us.forecast(about, "2-way", **asked, memory=10**9).need.total <= 10**9
    assert about.ledger.spent.units == 0


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "8GB"])
def test_memory_is_a_positive_number_of_bytes(wrong):
    about = project(SIZES["small"], DELTA)
    for call in (us.forecast, us.release):
        with pytest.raises(ParameterError, match="`memory` is a positive number of bytes, not"):
            call(about, us.marginals(1), epsilon=0.1, memory=wrong)
    assert about.ledger.spent.units == 0


# ---- too little is left


@pytest.mark.parametrize("budget", [PURE, DELTA])
def test_what_is_proposed_where_too_little_is_left_can_be_paid(budget):
    about = project(SIZES["small"], budget)
    about.ask("count by sex", epsilon=0.4 if budget == PURE else None, rho=None if budget == PURE else 0.005)
    with pytest.raises(
        InsufficientBudgetError, match=r"remains\. Nothing was spent\. Give a smaller `epsilon`: at most "
    ) as found:
        release(about, "1-way", epsilon=1)
    most = float(re.findall(r"at most ([\d.e-]+)\.$", str(found.value))[0])
    assert found.value.remedy.startswith("Give a smaller")
    with pytest.raises(InsufficientBudgetError):
        release(about, "1-way", epsilon=most * 1.001)
    release(about, "1-way", epsilon=most)
    with pytest.raises(InsufficientBudgetError, match=r"smaller|its own `name`"):
        release(about, "1-way", epsilon=1)


def test_a_limit_for_an_analyst_is_said_to_be_one():
    about = project(SIZES["small"], PURE, more="limits: {analyst: 0.2}\n")
    with pytest.raises(
        InsufficientBudgetError, match=r"0\.2 remains within the limit for now.*at most 0\.2"
    ) as found:
        release(about, "1-way", epsilon=1, analyst="ada")
    assert found.value.limit == "now"


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9), Fraction(1, 100)])
@pytest.mark.parametrize("amount", [1e-9, 0.0123456, 0.9999999, 1.0, 3.7])
def test_the_largest_epsilon_is_paid_and_a_thousandth_more_is_not(amount: float, delta: Fraction):
    left = (PureDP if delta == 0 else ZCDP)(round(amount * 10**15))
    most = largest_epsilon(left, delta, Budget.of(1, 1e-6))
    if most is None:
        assert delta
        return
    assert Budget.of(most, delta).cap.units <= left.units
    assert Budget.of(most * 1.0011, delta).cap.units > left.units
    assert largest_epsilon(type(left)(0), delta, Budget.of(1, 1e-6)) is None


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6), Fraction(1, 10**9)])
@pytest.mark.parametrize("units", [1, 2, 10, 100, 1000])
def test_no_epsilon_is_proposed_that_a_budget_cannot_have(units: int, delta: Fraction):
    left = (PureDP if delta == 0 else ZCDP)(units)
    ledger = Budget.of(1, delta)
    most = largest_epsilon(left, delta, ledger)
    assert most is None or ledger.alone(most, delta).cap.units <= units
    assert most is not None or ledger.alone(MIN_PARAMETER, delta).cap.units > units


def test_what_was_bought_is_asked_for_again_where_one_unit_of_the_budget_is_left():
    about = project(SIZES["small"], "{epsilon: 1, delta: 1e-6}")
    release(about, "1-way", epsilon=0.9, name="spring")
    bought = about.ledger.spent
    about.ask("count by sex", rho=Fraction(about.ledger.remaining.units - 1, 10**15))
    assert about.ledger.remaining.units == 1
    known = run_of(about, order=1)
    again = ResumableRun(known.curator, known.workload, known.budget, "spring")
    first = about.ledger.debits("spring ")[0].request.removeprefix("spring ")
    again.request(first)
    again.steps.append(Step(first, "", bought))
    for more in (0, 1):
        again.check_affordable(type(bought)(bought.units + more))
        again.request("a step that was not bought")
    again.check_affordable(type(bought)(bought.units + 2))
    again.request(first)
    with pytest.raises(InsufficientBudgetError, match="the rest of spring"):
        again.request("a step that was not bought")
    with pytest.raises(InsufficientBudgetError, match=r"Give a smaller `epsilon`\.$"):
        release(about, "1-way", epsilon=1, name="summer")


@pytest.mark.parametrize("method", ["residual", "adaptive", "aim", "mwem"])
def test_a_finished_release_is_made_again_though_nothing_of_the_budget_is_left(method: str):
    """What it left of its price, by rounding noise or by ending early, others may have spent since."""
    about = project(SIZES["small"], "{epsilon: 1, delta: 1e-6}")
    made = release(about, "2-way", epsilon=0.9, method=method, name="spring")
    left = about.ledger.remaining
    about.ask("count by sex", rho=Fraction(left.units, 10**15))
    whole = about.ledger.spent
    assert about.ledger.remaining.units == 0
    again = release(about, "2-way", epsilon=0.9, method=method, name="spring")
    assert about.ledger.spent == whole
    assert [told.clique for told in again.answers] == [told.clique for told in made.answers]
    for told, before in zip(again.answers, made.answers, strict=True):
        np.testing.assert_array_equal(told.counts, before.counts)
        np.testing.assert_array_equal(told.error, before.error)
