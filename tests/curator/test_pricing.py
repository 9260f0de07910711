"""What an epsilon means under each budget, which noise a question gets, and what 0.1 charged found again."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import understudy as us
from understudy.curator.calibration import Calibration
from understudy.curator.pricing import QuestionPricing
from understudy.curator.question_price import QuestionPrice
from understudy.declaration.file import parse
from understudy.errors import (
    InsufficientBudgetError,
    ParameterError,
    QueryError,
    RefusedError,
    RequestConflictError,
)
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.compose import zcdp_delta
from understudy.privacy.price import Price
from understudy.query.expression import parse as question
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal

TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: replace
budget: {budget}
attributes:
  age: {{type: integer, edges: [0, 18, 65, 120]}}
  sex: {{type: category, values: [F, M]}}
"""
FRAME = pd.DataFrame({"age": [10, 30, 70, 40] * 100, "sex": ["F", "M", "F", "F"] * 100})
WITH_DELTA, PURE = "{epsilon: 1, delta: 1e-9}", "{epsilon: 1}"


def project(budget: str = WITH_DELTA, ledger: MemoryLedger | None = None) -> us.Project:
    return us.Project.frame(FRAME, parse(TEXT.format(budget=budget)), ledger=ledger, noise=SeededNoise(5))


@given(epsilon=st.floats(0.01, 1), delta=st.sampled_from([1e-5, 1e-9, 1e-15]))
@settings(max_examples=25, deadline=None)
def test_an_epsilon_is_the_part_of_the_budget_that_it_says(epsilon, delta):
    budget = Budget.of(1, delta)
    part = budget.part(epsilon)
    assert part.currency == "rho"
    assert part == Budget.of(epsilon, delta).whole
    assert zcdp_delta(float(part.amount), epsilon) <= delta * (1 + 1e-6)  # (ε, δ)-DP by itself
    assert zcdp_delta(float(part.amount) * 1.01, epsilon) > delta * 0.999  # and no larger price is
    assert part.amount <= budget.whole.amount
    cost = type(budget.cap)(int(part.amount * 10**15))
    assert budget.epsilon_of(cost) == pytest.approx(epsilon, rel=1e-3)


def test_all_of_epsilon_is_all_of_the_budget():
    assert project().quote("count by sex", epsilon=1).share == pytest.approx(1, abs=1e-12)
    assert project(PURE).quote("count by sex", epsilon=1).share == 1
    assert project(PURE).quote("count by sex", epsilon=0.1).epsilon == pytest.approx(0.1)


def test_the_first_question_takes_a_small_part_of_the_budget():
    quote = project().quote("count age < 18 by sex", epsilon=0.1)
    assert quote.share < 0.02
    assert quote.epsilon == pytest.approx(0.1, rel=1e-3)
    former = project().quote("count age < 18 by sex", epsilon=0.1, noise="laplace")
    assert former.share > 0.3  # ε²/2 of a budget in ρ: what every question cost in 0.1
    same = project().quote("count age < 18 by sex", rho=former.cost.amount)
    assert same.error < former.error / 2


@given(
    epsilon=st.sampled_from([0.001, 0.05, 0.5, 1]),
    beta=st.sampled_from([0.001, 0.05, 0.5, 0.9]),
    text=st.sampled_from(["count age < 18", "count by sex", "SELECT avg(age), count(*) FROM t GROUP BY sex"]),
)
@settings(max_examples=20, deadline=None)
def test_the_noise_is_the_one_with_the_smaller_error(epsilon, beta, text):
    p = project()
    best = p.quote(text, epsilon=epsilon, beta=beta)
    rho = best.cost.amount
    errors = {}
    for noise in ("laplace", "gaussian"):
        other = p.quote(text, rho=rho, beta=beta, noise=noise)
        assert other.noise == noise
        errors[noise] = other.error
    assert best.error <= min(errors.values()) * 1.01 + 1
    assert p.quote(text, error=max(best.error, 1), beta=beta).cost.units <= best.cost.units * 1.01


def test_at_an_error_the_cheaper_noise_is_taken():
    p = project()
    for text in ("count age < 18", "count by age"):
        best = p.quote(text, error=30)
        for noise in ("laplace", "gaussian"):
            assert best.cost.units <= p.quote(text, error=30, noise=noise).cost.units
        assert best.error <= 30


def test_a_pure_budget_adds_laplace_noise_and_no_other():
    assert project(PURE).quote("count by sex", epsilon=0.1).noise == "laplace"
    assert project(PURE).quote("count by sex").noise == "laplace"
    for price in ({"rho": 0.01}, {"epsilon": 0.1, "noise": "gaussian"}):
        with pytest.raises(RefusedError, match="no pure epsilon"):
            project(PURE).quote("count by sex", **price)


def test_prices_that_make_no_sense_are_refused():
    with pytest.raises(ParameterError, match="one of epsilon, rho and error"):
        QuestionPrice(epsilon=1, rho=1)
    with pytest.raises(ParameterError, match="laplace, gaussian or bounded"):
        project().ask("count by sex", noise="uniform")  # type: ignore[arg-type]


def test_what_does_not_fit_is_told_in_epsilon():
    p = project()
    p.ask("count by sex", epsilon=0.5)
    with pytest.raises(InsufficientBudgetError, match=r"at most epsilon 0\.8") as refusal:
        p.ask("count by sex", epsilon=1)
    assert "under a budget of epsilon 1, delta 1e-09" in str(refusal.value)
    fits = float(str(refusal.value).split("at most epsilon ")[1].split(" ")[0])
    p.ask("count by sex", epsilon=fits)


# ---- questions about different rows

RATES = (
    "rate sex = F within age",
    "rate age < 18 and sex = F within age",
    "rate age < 18 or sex = F within sex",
    "SELECT age, count(*) FILTER (WHERE sex = 'F') / count(*) FILTER (WHERE sex = 'M') FROM t GROUP BY age",
    "SELECT sum(CASE WHEN age < 18 THEN 1 ELSE 0 END) / count(*) FILTER (WHERE age >= 18) FROM t",
)


@pytest.mark.parametrize("text", RATES)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("budget", [WITH_DELTA, PURE])
def test_a_ratio_of_different_rows_is_charged_its_quote_and_has_the_noise_that_this_buys(
    text, neighbours, budget, tmp_path
):
    FRAME.to_csv(tmp_path / "t.csv", index=False)  # a file has versions, so that joint accounting is at work
    declared = TEXT.format(budget=budget).replace("neighbours: replace", f"neighbours: {neighbours}")
    (tmp_path / "t.yml").write_text(declared)
    p = us.open(tmp_path / "t.yml", ledger=MemoryLedger(parse(declared).budget))
    prepared = p.prepare(text, epsilon=0.1)
    answer = prepared.run()
    assert answer.cost == prepared.quote.cost
    whole = p.ledger.budget.part(0.1)
    assert prepared.quote.cost.amount == pytest.approx(float(whole.amount), rel=1e-9)
    # The noise of one partition at this price, and nothing wider.
    parts = prepared.question.marginals
    alone = [
        p.curator.calibration.error(
            one,
            *p.curator.calibration.mechanism(one, whole, beside=parts[:i] + parts[i + 1 :]),
            0.025,
        )
        for i, one in enumerate(parts)
    ]
    assert prepared.quote.error == max(alone)
    # So are its counts at an error in people, which is not that of a ratio.
    within = QuestionPricing(p.curator.calibration, p.ledger).prepare(parts, QuestionPrice(error=40))
    assert max(within.errors) <= 40
    told = p.curator.perform(within, words=text)
    assert sum(one.cost.units for one in told) == p.ledger.budget.price(within.event).units


def test_marginals_that_share_rows_share_no_noise():
    p = project()
    both = [question(text, p.domain).marginal for text in ("count by sex", "count age < 18 by sex")]
    with pytest.raises(QueryError, match="about different rows"):
        p.curator.calibration.prepare(both, Price.of(rho=0.001), stacks=[(0, 1)])
    prepared = p.curator.calibration.prepare(both, Price.of(rho=0.001))
    for stacks in (((0, 1),), ((0,),), ((0,), (1,), (1,))):  # one noise, one marginal free, one charged twice
        with pytest.raises((ParameterError, QueryError)):
            p.curator.perform(replace(prepared, stacks=stacks))
    assert p.ledger.spent.units == 0


def test_weights_other_than_0_and_1_share_no_noise_with_counts():
    """They are rounded to a lattice of their own, and the error of that is told for them alone."""
    p = project()
    whole = question("count sex = F", p.domain).marginal
    halves = np.array([0.0, 0.5, 0.0][: p.domain["sex"].size])
    weighted = Marginal.of(LinearQuery(p.domain, (Factor(("sex",), halves),)))
    with pytest.raises(QueryError, match="weights of 0 and 1"):
        p.curator.calibration.prepare([whole, weighted], Price.of(rho=0.001), stacks=[(0, 1)])


def test_that_marginals_exclude_each_other_is_found_out_once_and_not_at_every_price_that_is_tried(
    monkeypatch,
):
    """Whoever may ask for a price may send a statement of many counts; the search tries dozens of prices."""
    p = project()
    ages = ("< 18", ">= 65", "BETWEEN 18 AND 64")
    counts = ", ".join(f"count(*) FILTER (WHERE age {age} AND sex = '{sex}')" for age in ages for sex in "FM")
    looked, moves = [], Calibration.sensitivity

    def counted(self, *marginals, resolution=1):
        looked.append(len(marginals))
        return moves(self, *marginals, resolution=resolution)

    monkeypatch.setattr(Calibration, "sensitivity", counted)
    assert p.prepare(f"SELECT {counts} FROM t", error=30).quote.error <= 30
    assert 0 < looked.count(6) <= 4  # for each noise, where it is priced and where it is prepared


def test_a_ratio_that_was_charged_in_parts_is_found_again_under_its_request():
    books = MemoryLedger(parse(TEXT.format(budget=WITH_DELTA)).budget)
    p = project(ledger=books)
    text = (
        "SELECT count(*) FILTER (WHERE sex = 'F') / count(*) FILTER (WHERE sex = 'M') FROM t WHERE age < 65"
    )
    parts = p.prepare(text, rho=0.001).question.marginals
    slack = Fraction(4, 10**15)  # what 0.1 left for rounding up
    before = p.curator.measure_all(
        parts, Price("rho", Fraction(1, 2000) - slack), beta=Fraction(1, 40), request="r"
    )
    spent = books.spent
    again = p.ask(text, rho=0.001, request="r")
    assert books.spent == spent
    assert again.rows[0][0] == pytest.approx(float(before[0].noisy / before[1].noisy))


# ---- what version 0.1 charged


def charged_by_0_1(p: us.Project, text: str, price: Price, request: str) -> object:
    """As 0.1 did: Laplace noise for an epsilon, whatever the budget, and no words in the ledger."""
    return p.curator.measure_all([question(text, p.domain).marginal], price, request=request)[0]


def test_a_request_of_0_1_gets_its_answer_again_with_its_own_error():
    books = MemoryLedger(parse(TEXT.format(budget=WITH_DELTA)).budget)
    p = project(ledger=books)
    before = charged_by_0_1(p, "count age < 18 by sex", Price.of(epsilon=0.1), "r")
    spent = books.spent
    again = project(ledger=books).ask("count age < 18 by sex", epsilon=0.1, request="r")
    assert books.spent == spent
    assert (again.noisy == before.noisy).all()
    assert (again.error == before.error).all()
    laplace = LaplaceMechanism(epsilon=Fraction(1, 10), l1=2)
    assert again.error.max() == laplace.error(0.05, cells=2 + 1)
    # A new request is priced by the new meaning, knowingly: another noise, another price.
    assert p.ask("count age < 18 by sex", epsilon=0.1).cost.units < before.cost.units / 10


def test_a_default_price_of_0_1_is_found_again():
    books = MemoryLedger(parse(TEXT.format(budget=WITH_DELTA)).budget)
    p = project(ledger=books)
    before = charged_by_0_1(p, "count by sex", books.budget.whole * Fraction(1, 100), "r")
    again = p.ask("count by sex", request="r")
    assert (again.noisy == before.noisy).all()
    assert books.spent == before.cost


def test_a_request_with_another_price_is_another_question():
    p = project()
    p.ask("count by sex", epsilon=0.1, request="r")
    with pytest.raises(RequestConflictError):
        p.ask("count by sex", epsilon=0.2, request="r")


# ---- the words in the ledger


def test_the_ledger_keeps_the_question_as_it_was_asked():
    books = MemoryLedger(parse(TEXT.format(budget=WITH_DELTA)).budget)
    p = project(ledger=books)
    first = p.ask("count  age < 18\n by sex", request="r")
    kept = books.find("r").question
    assert kept.startswith("count age < 18 by sex -> measure age in (0-17) by sex #")
    # The same question in other words, or in none, under the same request: the same answer, nothing paid.
    for same in ("count age<18 by sex", question("count age < 18 by sex", p.domain).marginal):
        assert (p.ask(same, request="r").noisy == first.noisy).all()
    assert books.find("r").question == kept
    assert books.spent == first.cost
    with pytest.raises(RequestConflictError):
        p.ask("count age < 65 by sex", request="r")


def test_very_long_words_are_shortened_and_the_question_is_kept_whole():
    books = MemoryLedger(parse(TEXT.format(budget=WITH_DELTA)).budget)
    p = project(ledger=books)
    p.ask("SELECT count(*) FROM t WHERE age < 18" + " OR age < 18" * 300, request="r")
    kept = books.find("r").question
    assert len(kept) <= 2000
    assert " … -> measure " in kept
    p.ask("SELECT count(*) FROM t WHERE age < 18", request="r")
    assert len(books.debits("r")) == 1
