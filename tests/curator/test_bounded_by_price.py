"""Bounded noise that `auto` takes where it is cheaper at the same promise, and what that never changes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import understudy as us
from curator.test_certain_errors import FRAME, RENYI, TEXT, project
from program import call
from understudy.curator.pricing import QuestionPricing
from understudy.declaration.file import parse
from understudy.errors import RefusedError
from understudy.noise.samplers import SeededNoise
from understudy.privacy.bounded_noise import BoundedNoise, most_set_aside
from understudy.privacy.cost import UNITS, delta_units
from understudy.privacy.event import unversioned
from understudy.privacy.joint import GROWTH

WIDE = """\
understudy: 1
name: t
source: t.csv
budget: {budget}
attributes:
  age: {{type: integer, edges: {edges}}}
  sex: {{type: category, values: [F, M]}}
  pay: {{type: real, bounds: [0, 100], resolution: 1}}
"""


@contextmanager
def no_bounded_noise() -> Iterator[None]:
    """Has the noises compared that were compared before bounded noise was one of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuestionPricing, "may_be_certain", lambda *_: False)
        yield


def wide(budget: str = RENYI) -> us.Project:
    """A table with a histogram of 800 cells, from which on certain errors are cheap."""
    declared = parse(WIDE.format(budget=budget, edges=list(range(0, 201))))
    frame = pd.DataFrame({"age": [10, 20, 40, 70] * 500, "sex": ["F", "M"] * 1000, "pay": [1.0, 50] * 1000})
    return us.Project.frame(frame, declared, noise=SeededNoise(3))


def test_the_cheaper_noise_is_taken_and_the_answer_says_that_its_error_is_certain() -> None:
    p = wide()
    few, many = p.quote("count sex = F", error=2000), p.quote("count by age, sex", error=2000)
    assert (few.noise, few.beta) == ("gaussian", 0.05)
    assert (many.noise, many.beta, many.error) == ("bounded", 0, 2000)
    usual = p.quote("count by age, sex", error=2000, noise="gaussian")
    assert many.cost.units < 0.8 * usual.cost.units
    answer = p.ask("count by age, sex", error=2000)
    assert (answer.beta, answer.cost) == (0, many.cost)
    rows = p.ask("SELECT age, sex, count(*) AS n FROM t GROUP BY age, sex", error=2000)
    assert rows.beta == 0


@pytest.mark.parametrize("price", [{}, {"rho": 1e-5}])
def test_at_a_price_the_smaller_error_is_taken(price: dict[str, float]) -> None:
    p = wide("{epsilon: 0.2, delta: 1e-6, key_delta: 5e-7, filter: renyi}")
    found = p.quote("count by age, sex", beta=1e-6, **price)
    usual = p.quote("count by age, sex", beta=1e-6, noise="gaussian", **price)
    assert (found.noise, found.beta) == ("bounded", 0)
    assert found.error < usual.error
    assert found.cost.units <= usual.cost.units


def test_an_epsilon_is_a_price_of_other_noise() -> None:
    assert wide().quote("count by age, sex", epsilon=0.1, beta=1e-9).noise == "gaussian"


@pytest.mark.parametrize(
    "budget",
    [
        "{epsilon: 1}",
        "{epsilon: 1, delta: 1e-6}",
        "{epsilon: 1, delta: 1e-6, key_delta: 1e-7}",
        "{epsilon: 1, delta: 1e-6, filter: renyi}",
        "{epsilon: 1, delta: 1e-6, key_delta: 1e-7, filter: gdp}",
    ],
)
def test_nothing_changes_where_bounded_noise_has_no_price(budget: str) -> None:
    found = wide(budget).quote("count by age, sex", error=1000, beta=1e-3)
    with no_bounded_noise():
        assert found == wide(budget).quote("count by age, sex", error=1000, beta=1e-3)
    assert found.noise != "bounded"


@pytest.mark.parametrize(
    "question",
    [
        "SELECT age, count(*) AS n FROM t GROUP BY age",
        "SELECT median(age) AS m FROM t",
        "SELECT sum(n) AS s FROM (SELECT age, count(*) AS n FROM t WHERE sex = 'F' GROUP BY age) AS c",
        "SELECT age, count(*) FILTER (WHERE sex = 'F') AS f, count(*) AS n FROM t GROUP BY age",
    ],
)
def test_what_is_made_of_counts_is_no_wider_with_errors_that_are_certain(question: str) -> None:
    p = wide()
    terms: dict[str, Any] = {"error": 2000, "beta": 1e-6}
    assert p.quote(question, **terms).noise == "bounded"
    assert p.forecast(question, **terms) == p.forecast(question, **terms, noise="gaussian")


def test_measures_and_what_has_no_bounds_keep_normal_noise() -> None:
    added = "SELECT sum(n) AS s FROM (SELECT age, count(*) AS n FROM t GROUP BY age) AS c WHERE n > 5"
    for text in (added, "SELECT count(*) AS n, avg(pay) AS a FROM t GROUP BY sex"):
        assert wide().quote(text, error=2000, beta=1e-6).noise == "gaussian"


def test_sequences_never_cost_more_than_without_bounded_noise() -> None:
    """Generated questions, errors and probabilities, and the totals after every one of them.

    The sum of the prices is never larger. The joint price of the ledger is an upper bound that is found anew
    where it has grown by a twentieth: after a question that grew it less, it may be larger by so much.
    """
    coins, better = random.Random(7), 0
    ranges = ["", "sex = F", "age < 30", "age >= 65", "age < 65 and sex = M"]
    for _ in range(5):
        asked = [
            (
                f"count {coins.choice(ranges)} {coins.choice(['', 'by sex', 'by age', 'by age, sex'])}",
                {
                    "error": coins.choice([300, 700, 1000, 3000]),
                    "beta": coins.choice([0.05, 1e-3, 1e-6, 1e-9]),
                },
            )
            for _ in range(8)
        ]
        totals: list[list[tuple[int, int]]] = []
        for chosen in (nullcontext(), no_bounded_noise()):
            p, flat = project(neighbours="replace"), 0
            totals.append([])
            with chosen:
                for question, price in asked:
                    prepared = p.prepare(question, **price)  # type: ignore[arg-type]
                    flat += prepared.quote.cost.units
                    prepared.run()
                    totals[-1].append((flat, p.ledger.spent.units))
        for (new_flat, new), (old_flat, old) in zip(*totals, strict=True):
            assert new_flat <= old_flat
            assert new <= old * GROWTH
        better += totals[0][-1][1] < totals[1][-1][1]
    assert better >= 3


def test_where_the_mass_runs_out_other_noise_is_taken_and_a_request_stays_what_it_was() -> None:
    p = project()
    terms: dict[str, Any] = {"error": 1000, "beta": 1e-9}
    first = p.ask("count sex = F", request="first", **terms)
    debit = p.ledger.find("first")
    assert debit is not None
    event = unversioned(debit.event)
    assert isinstance(event, BoundedNoise)
    while (left := p.ledger.budget.key_delta - p.ledger.delta_spent) >= event.delta:
        aside = most_set_aside(2000, 1, 1, left)
        spent = BoundedNoise.priced(reach=2000, l1=1, largest=1, set_aside=aside, order=event.order)
        p.ledger.charge(spent, question="something else", request=f"{left}")
    assert p.quote("count sex = F", **terms).noise == "gaussian"
    assert p.ask("count sex = F", request="second", **terms).beta == 1e-9
    before = p.ledger.spent
    assert p.ask("count sex = F", request="first", **terms).noisy == first.noisy  # charged for other noise
    assert p.ledger.spent == before


SELECTED = "SELECT age, sex, count(*) AS n FROM t GROUP BY age, sex"


@pytest.mark.parametrize("question", [SELECTED, "count by age, sex", "count by age"])
def test_a_repeated_request_says_the_probability_of_the_noise_that_it_was_paid_with(question: str) -> None:
    p = wide()
    terms: dict[str, Any] = {"error": 2000, "beta": 1e-6}
    with no_bounded_noise():
        likely = p.ask(question, request="likely", **terms)
    sure = p.ask(question, request="sure", **terms)
    assert (likely.beta, sure.beta) == (1e-6, 0)
    spent = p.ledger.spent
    again = p.ask(question, request="likely", **terms)  # bounded noise would be the better one now
    assert (again.beta, again.as_dict()) == (1e-6, likely.as_dict())
    with no_bounded_noise():
        assert p.ask(question, request="sure", **terms).beta == 0
    assert p.ledger.spent == spent


def test_its_part_of_the_mass_is_no_larger_than_what_other_noise_takes_of_rho() -> None:
    p = wide()
    budget = p.ledger.budget
    for error in (150, 300, 1000, 5000):
        for beta in (0.05, 1e-6, 1e-12):
            quote = p.quote("count by age, sex", error=error, beta=beta)
            usual = p.quote("count by age, sex", error=error, beta=beta, noise="gaussian")
            assert quote.cost.units <= usual.cost.units
            if quote.noise == "bounded":
                event = p.prepare("count by age, sex", error=error, beta=beta)._measurement.event
                part = Fraction(delta_units(event), budget.delta_cap)
                assert part < Fraction(usual.cost.units, budget.cap.units)
    assert budget.cap.units < UNITS


def test_what_takes_much_of_the_mass_to_save_a_little_is_left_to_other_noise() -> None:
    """The larger of its parts, of rho and of key_delta, is compared (docs/declaration.md), not rho alone."""
    p = project(neighbours="replace")
    budget = p.ledger.budget
    terms: dict[str, Any] = {"error": 800, "beta": 1e-6}
    cost = {noise: p.quote("count by sex", **terms, noise=noise).cost for noise in ("gaussian", "bounded")}
    assert cost["bounded"].units < cost["gaussian"].units
    event = p.prepare("count by sex", **terms, noise="bounded").event
    of_delta = Fraction(delta_units(event), budget.delta_cap)
    assert of_delta > Fraction(cost["gaussian"].units, budget.cap.units)
    assert p.quote("count by sex", **terms).noise == "gaussian"


def test_the_command_tells_which_noise_it_is_and_that_the_error_is_certain(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "understudy.yml").write_text(TEXT.format(neighbours="replace", budget=RENYI))
    terms = ["count by age, sex", "--error", "1000", "--beta", "1e-6"]
    dry = call("ask", *terms, "--dry-run", cwd=tmp_path).stdout
    assert "± 1,000 people for sure (bounded noise)" in dry
    assert (
        json.loads(call("ask", *terms, "--dry-run", "--json", cwd=tmp_path).stdout)[0]["noise"] == "bounded"
    )
    told = call("ask", *terms, cwd=tmp_path).stdout
    assert "all within the error for sure (bounded noise)" in told
    assert json.loads(call("ledger", "verify", "--json", cwd=tmp_path).stdout)["sound"]


@pytest.mark.parametrize("aggregate", ["avg(pay)", "variance(pay)", "median(pay)", "sum(pay)"])
@pytest.mark.parametrize("price", [{"epsilon": 0.1}, {"error": 100}, {"rho": 1e-3}, {}])
def test_bounded_noise_for_a_measure_is_refused_at_once_as_for_counts(
    aggregate: str, price: dict[str, float]
) -> None:
    with pytest.raises(RefusedError, match="for counts of people") as refusal:
        wide().quote(f"SELECT {aggregate} AS x FROM t", noise="bounded", **price)  # type: ignore[arg-type]
    assert "other noise" in refusal.value.remedy
