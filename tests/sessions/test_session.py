"""A session's promise, its prices, and that nothing is lost with the process."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from session_table import DOMAIN, ROWS, conjunction, curator, random_question
from statistical import assert_covers
from understudy.declaration.declaration import Unit
from understudy.domain.domain import Domain
from understudy.errors import InsufficientBudgetError, ParameterError, QueryError, RefusedError
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.limits import Limits
from understudy.privacy.relation import Neighbours
from understudy.query.box import Box
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.workload import marginals
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.forecast import Forecast
from understudy.sessions.funds import Funds
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.marginals_class import MarginalsPurchase
from understudy.sessions.opening import session as session_of
from understudy.sessions.purchase import PurchaseRequest
from understudy.sessions.terms import conjunctions, ranges

pytestmark = pytest.mark.usefixtures("generous")

AUDIT = bool(os.environ.get("UNDERSTUDY_AUDIT"))


@pytest.fixture(autouse=True)
def _histograms(request, monkeypatch):
    """The domain counts as a large one, unless a test says otherwise."""
    if "whole" not in request.keywords:
        monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)


@pytest.mark.parametrize(
    ("declared", "mutant"),
    [
        ({}, 0.45),
        ({"delta": 0.0}, 0.3),  # the tails of Laplace: a small β is far from all other noise
        ({"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000, "rows_at_most": 9000}, 0.4),
    ],
)
def test_every_answer_of_a_session_holds_with_the_promised_probability(declared, mutant):
    """Sessions of 60 questions, half random and half steered to where a released histogram is worst."""
    sessions, beta = (500, 0.2) if AUDIT else (5, 1e-3)
    ratios, exact = [], {}
    for seed in range(sessions):
        one = curator(seed=seed, **declared)
        session = session_of(one, alpha=0.02, beta=beta, queries=60)
        generator = np.random.default_rng(seed)
        bad, nearest = False, 0.0
        for i in range(60):
            question = random_question(generator) if i % 2 else steered(session, one)
            answer = session.ask_marginal(question)
            if question.key not in exact:
                exact[question.key] = one._truth.sums(question)
            off = np.abs(answer.value - exact[question.key])
            bad |= bool((off > answer.error + 1e-9).any())
            nearest = max(nearest, float((off / np.maximum(answer.error, 1.0)).max()))
            assert (answer.error <= session.width + 1e-9).all()
        ratios.append(inf if bad else min(nearest, 1.0))
    assert_covers(ratios, beta, mutant=0.8 if AUDIT else mutant)


def test_a_small_domain_is_bought_at_once_and_keeps_the_promise(monkeypatch):
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 1024)
    one = curator()
    session = session_of(one, alpha=0.02, beta=0.05, queries=1000)
    generator = np.random.default_rng(0)
    for _ in range(150):
        question = random_question(generator)
        answer = session.ask_marginal(question)
        assert (np.abs(answer.value - one._truth.sums(question)) <= answer.error + 1e-9).all()
    assert [json.loads(step)["kind"] for step in one.ledger.steps(session._buyer.journal.debit)].count(
        "grids"
    ) == 1


def steered(session, one) -> Marginal:
    """The worst subset of a released histogram, by an analyst who knows the table."""
    known = session._known.knowledge.one_ways.get("town")
    if known is None:
        return conjunction(town=np.arange(6) < 3)
    off = known.counts - one._truth.count(("town",))
    return conjunction(town=off > 0)


def test_answers_name_their_source_and_free_ones_cost_nothing():
    one = curator()
    session = session_of(one, alpha=0.02, beta=0.05, queries=1000)
    found = Counter()
    generator = np.random.default_rng(0)
    for _ in range(300 if AUDIT else 120):
        question = random_question(generator)
        before, quoted, step = one.ledger.spent.units, session.price(question).units, session._known.step
        answer = session.ask_marginal(question)
        paid = one.ledger.spent.units - before
        found[answer.source] += 1
        assert answer.cost.units == paid <= quoted
        plans = [json.loads(plan) for plan in one.ledger.steps(session._buyer.journal.debit)[step:]]
        bought = {plan["kind"] for plan in plans}
        if bought == {"look"} and len(plans) == len(plans[0]["looks"]):  # all of them, one by one
            assert quoted - paid < len(plans)  # so many prices were rounded up
        elif not {"histogram", "look"} & bought:
            assert paid == quoted
        assert (paid == 0) or answer.source == "measured"
        again = session.ask_marginal(question)
        assert again.source == "repeat"
        assert again.cost.units == 0
        assert (again.value == answer.value).all()
        assert one.ledger.spent.units == before + paid
    assert min(found[source] for source in ("measured", "implied", "pinned")) > 0


def test_free_answers_are_forgotten_by_number_and_by_cells(monkeypatch):
    session = session_of(curator(), alpha=0.05, queries=100, classes=[conjunctions("sex", "town")])
    held = session._buyer.memory
    monkeypatch.setattr("understudy.sessions.answer_memory.MOST_FREE_CELLS", 20)
    for by in (("sex",), ("town",), ("sex", "town"), ("sex",), ("town",)):
        answer = session.ask_marginal(Marginal(DOMAIN, by))
        assert held.free_cells == sum(kept.value.size for kept in held.free.values()) <= 20
        assert answer.cost.units == 0
    monkeypatch.setattr("understudy.sessions.answer_memory.MOST_ANSWERS", 1)
    session.ask_marginal(conjunction(sex=np.arange(3) < 1))
    assert len(held.free) == 1


def test_a_killed_session_goes_on_where_it_was():
    ledger = MemoryLedger(Budget.of(500, 1e-6))
    first = curator(ledger=ledger, seed=1)
    session = session_of(first, alpha=0.02, beta=0.05, queries=200, name="mine")
    generator = np.random.default_rng(3)
    questions = [random_question(generator) for _ in range(60)]
    answers = [session.ask_marginal(question) for question in questions]
    spent = ledger.spent
    again = session_of(curator(ledger=ledger, seed=2), alpha=0.02, beta=0.05, queries=200, name="mine")
    assert again._buyer.policy.beta.left == session._buyer.policy.beta.left
    for question, answer in zip(questions, answers, strict=True):
        repeated = again.ask_marginal(question)
        if answer.source == "measured" and repeated.source == "repeat":
            assert (repeated.value == answer.value).all()
        assert (np.abs(repeated.value - answer.value) <= repeated.error + answer.error).all()
        assert repeated.cost.units == 0
    assert ledger.spent == spent
    with pytest.raises(RefusedError, match=r"has alpha 0\.02, .*ask with the same terms"):
        session_of(curator(ledger=ledger), alpha=0.03, beta=0.05, queries=200, name="mine")


@pytest.mark.parametrize("lives", [0, 1, 3])
def test_a_purchase_that_was_written_down_is_finished(lives, monkeypatch):
    """Killed between the plan and the debit of the histograms or of the answer itself, as version 0.1 could be."""
    ledger = MemoryLedger(Budget.of(500, 1e-6))
    one = curator(ledger=ledger)
    session = session_of(one, alpha=0.02, beta=0.05, queries=200, name="mine")
    question = conjunction(age=np.arange(10) < 4, sex=np.arange(3) < 1, town=np.arange(6) < 2)
    charge, left = ledger.charge, [lives]

    def killed(*args, step, **kwargs):
        if not left[0]:
            plan = {"step": step.number, "question": step.question, "answer": step.text, "state": step.state}
            assert ledger.advance(ledger.find("mine"), **plan)
            raise KeyboardInterrupt
        left[0] -= 1
        return charge(*args, step=step, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "charge", killed)
        with pytest.raises(KeyboardInterrupt):
            session.ask_marginal(question)
    again = session_of(curator(ledger=ledger, seed=9), alpha=0.02, beta=0.05, queries=200, name="mine")
    assert again._known.step == lives + 1
    assert [debit.request for debit in ledger.debits()] == [
        "mine",
        *(f"mine#{i + 1}" for i in range(lives + 1)),
    ]
    answer = again.ask_marginal(question)
    assert answer.source == ("repeat" if lives == 3 else "measured")
    assert abs(float(answer.value) - one._truth.sums(question)) <= 2 * session.width


def test_a_session_that_cannot_pay_answers_what_it_can_and_says_so():
    one = curator(epsilon=0.5)
    session = session_of(one, alpha=0.05, beta=0.05, queries=50)
    generator = np.random.default_rng(0)
    found = Counter()
    for _ in range(80):
        before, question = one.ledger.spent, random_question(generator)
        answer = session.ask_marginal(question)
        found[answer.source] += 1
        if answer.source == "uncertified":
            assert one.ledger.spent == before
            assert np.isinf(answer.error).all()
            assert np.isfinite(answer.value).all()
            with pytest.raises(InsufficientBudgetError):
                session.ask_marginal(question, uncertified=False)
    assert found["uncertified"] > 0
    assert found["pinned"] + found["implied"] + found["repeat"] > 0
    assert one.ledger.spent.units <= one.ledger.budget.cap.units


# ---- what is told of an interval


@pytest.mark.parametrize("classes", [[marginals(2)], [conjunctions("sex", "town")], []])
def test_small_cells_are_not_told_as_half_of_the_error(classes):
    """An interval is cut at 0; its middle would be far too high for every cell with few people."""
    one = curator()
    session = session_of(one, alpha=0.05, queries=100, classes=classes)
    question = Marginal(DOMAIN, ("sex", "town"))
    answer, exact = session.ask_marginal(question), one._truth.sums(question)
    small = exact < session.width / 4
    assert small.any()
    assert np.abs(answer.value - exact)[small].mean() < session.width / 4
    assert (np.abs(answer.value - exact) <= answer.error).all()
    assert (answer.error <= session.width).all()
    assert (answer.noisy != answer.value).any()
    assert answer.noisy.sum() == pytest.approx(ROWS, abs=4 * session.width)


@pytest.mark.parametrize("declared", [{}, {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000}])
def test_what_needs_no_look_is_told_for_nothing(declared):
    one = curator(**declared)
    session = session_of(one, alpha=0.05, queries=100)
    nobody = session.ask("count age < 0")
    assert (nobody.source, float(nobody.value), float(nobody.error)) == ("implied", 0, 0)
    assert session.ask("SELECT count(*) FROM t WHERE age < 0").source in ("repeat", "public")
    assert one.ledger.spent.units == session._known.step == 0
    if not declared:
        half = Marginal.of(LinearQuery.conjunction(DOMAIN, {"age": np.full(10, 0.5)}))
        answer = session.ask_marginal(half)
        assert (float(answer.value), float(answer.error)) == (ROWS / 2, 0)
        assert one.ledger.spent.units == 0


def test_cells_that_the_condition_rules_out_are_empty_and_the_others_known():
    one = curator()
    session = session_of(one, alpha=0.02, queries=100)
    women = conjunction(sex=np.arange(3) == 0, town=np.arange(6) < 2)
    first = session.ask_marginal(Marginal(DOMAIN, ("sex",), women.where))
    assert first.error.tolist() == [session.width, 0, 0]
    assert first.value[1:].tolist() == [0, 0]
    assert abs(first.value[0] - one._truth.sums(women)) <= session.width
    whole = session.ask_marginal(Marginal(DOMAIN, ("town",)))
    some = Marginal(DOMAIN, ("town",), conjunction(town=np.arange(6) < 3).where)
    assert session.price(some).units == 0
    answer = session.ask_marginal(some)
    assert (np.abs(answer.value - whole.value)[:3] <= whole.error[:3]).all()
    assert answer.value[3:].tolist() == answer.error[3:].tolist() == [0, 0, 0]


# ---- which cells a price was for


def test_only_the_cells_that_were_paid_get_the_band_of_fresh_noise():
    """A marginal of few people: most cells are known to be small, and the price is for the others alone."""
    one = curator()
    session = session_of(one, alpha=0.02, queries=200, name="mine")
    question = Marginal(DOMAIN, ("age", "town"), conjunction(sex=np.arange(3) == 1).where)
    answer = session.ask_marginal(question)
    [plan] = [plan for plan in plans(session) if plan["kind"] == "fresh"]
    bought = DirectPurchase.read(session._buyer.calibrator, plan)
    assert 0 < bought.paid.sum() < bought.paid.size
    assert shop_price(session, question, bought) == bought.price
    again = session_of(curator(ledger=one.ledger, seed=9), alpha=0.02, queries=200, name="mine")
    assert (again.ask_marginal(question).value == answer.value).all()
    blank = Knowledge(session._known.knowledge.grid, session._known.knowledge.total)
    last = f"mine#{len(plans(session))}"
    learnt = bought.make(session._buyer.calibrator, blank, PurchaseRequest(last, ""))
    assert learnt.answer is None
    known = blank.table(question.by, Box.of(question.where))
    assert (known.high - known.low == 2 * session.width)[bought.paid].any()
    assert (known.high - known.low)[~bought.paid] == pytest.approx(ROWS)


def shop_price(session, question, bought):
    return session._buyer.calibrator.price_of_counts(question, bought.share, int(bought.paid.sum()))


def test_only_the_cells_that_were_paid_get_the_band_of_residuals():
    one = curator()
    session = session_of(one, alpha=0.02, queries=200, classes=[marginals(2)], name="mine")
    [plan] = [plan for plan in plans(session) if plan["kind"] == "marginals"]
    bought = MarginalsPurchase.read(session._buyer.calibrator, plan)
    assert any(0 < cells.sum() < cells.size for cells in bought.paid.values())
    blank = Knowledge(session._known.knowledge.grid, session._known.knowledge.total)
    bought.make(session._buyer.calibrator, blank, PurchaseRequest(f"mine#{len(plans(session))}", ""))
    for part, paid in bought.paid.items():
        by = tuple(DOMAIN.names[i] for i in part)
        known = blank.table(by, Box(DOMAIN, {}))
        assert ((known.high - known.low)[~paid] == ROWS).all()
        assert ((known.high - known.low)[paid] <= 2 * session.width).all()


def plans(session):
    return [json.loads(step) for step in session.curator.ledger.steps(session._buyer.journal.debit)]


# ---- bands that cannot all hold


def test_what_contradicts_itself_is_bought_afresh_with_its_own_error():
    """A histogram whose band failed by far: no answer claims to be exact, none is further off than it says."""
    one = curator()
    session = session_of(one, alpha=0.02, beta=0.05, queries=200)
    session.ask_marginal(conjunction(age=np.arange(10) < 4, town=np.arange(6) < 2))
    assert not session.contradicted
    known = session._known.knowledge.one_ways["age"]
    session._known.knowledge.one_ways["age"] = replace(known, counts=known.counts[::-1].copy())
    question = conjunction(age=np.arange(10) >= 2, sex=np.arange(3) < 2)
    answer = session.ask_marginal(question)
    assert session.contradicted
    assert answer.source == "measured"
    assert "contradicts itself" in session._repr_html_()
    assert abs(answer.value - one._truth.sums(question)) <= answer.error <= session.width
    assert answer.error > 0.99 * session.width
    assert (session.ask_marginal(question).value == answer.value).all()


def test_a_question_in_doubt_costs_and_holds_again():
    one = curator()
    session = session_of(one, alpha=0.02, queries=200, classes=[ranges("age")])
    question = conjunction(age=np.arange(10) < 3)
    assert session.price(question).units == 0
    session._known.knowledge.learn(Box.of(question.where), (0.0, 10.0))
    assert session.price(question).units > 0
    answer = session.ask_marginal(question)
    assert abs(answer.value - one._truth.sums(question)) <= answer.error == session.width
    assert session.contradicted


# ---- budgets and shares of them


def test_a_statement_that_cannot_be_paid_whole_buys_no_part():
    one = curator(epsilon=0.3)
    session = session_of(one, alpha=0.02, queries=50)
    text = "SELECT sex, avg(age) FROM t WHERE town = 'a' GROUP BY sex"
    parts = session.price("count town = a by sex"), session.price(text)
    assert parts[0].units <= one.ledger.remaining.units < parts[1].units
    answer = session.ask(text)
    assert answer.source == "uncertified"
    assert answer.cost.units == one.ledger.spent.units == 0
    with pytest.raises(InsufficientBudgetError, match="Nothing was spent"):
        session.ask(text, uncertified=False)
    assert session.ask("count town = a by sex").source == "measured"


def test_the_share_of_an_analyst_binds():
    ledger = MemoryLedger(Budget.of(500, 1e-6), limits=Limits(analyst=Fraction(1, 10**4)))
    session = session_of(curator(ledger=ledger), alpha=0.01, queries=50, analyst="ada")
    question = conjunction(age=np.arange(10) < 4, town=np.arange(6) < 2)
    answer = session.ask_marginal(question)
    assert answer.source == "uncertified"
    assert session._known.step == 0
    with pytest.raises(InsufficientBudgetError, match="analyst"):
        session.ask_marginal(question, uncertified=False)
    assert ledger.spent.units == 0


def test_prices_of_statements_are_the_most_that_they_cost():
    """Also beyond the announced number of questions, where every purchase takes from the β of the next."""
    one = curator()
    session = session_of(one, alpha=0.02, queries=3)
    for town in "abcde":
        text = f"SELECT sex, count(*), avg(age) FROM t WHERE town = '{town}' GROUP BY sex"
        quoted, before = session.price(text).units, one.ledger.spent.units
        assert session.price(text).units == quoted
        assert session.ask(text).cost.units == one.ledger.spent.units - before <= quoted


def test_a_question_that_was_priced_is_not_planned_again_unless_something_changed(monkeypatch):
    planned, of = [], Forecast.of

    def counted(self, marginal, *, asked):
        planned.append(marginal)
        return of(self, marginal, asked=asked)

    monkeypatch.setattr(Forecast, "of", counted)
    one = session_of(curator(), alpha=0.02, mechanism="direct")
    first, second, third = (f"count sex = F and town = {town}" for town in "abc")
    price = one.price(first)
    assert one.ask(first).cost.units <= price.units
    assert len(planned) == 1
    one.price(second)
    one.ask(third)
    one.ask(second)  # planned before the purchase for another question
    assert len(planned) == 4


def test_what_others_spent_since_a_price_was_told_has_the_question_planned_again(monkeypatch):
    """A class that could be paid then may be too dear now, where the question's own counts are not."""
    refused, check = [], Funds.check

    def once(self, purchases):
        if not refused:
            refused.extend(purchases)
            raise InsufficientBudgetError(requested=2.0, remaining=1.0, currency="rho")
        return check(self, purchases)

    one = session_of(curator(), alpha=0.02)
    one.price("count sex = F and town = a")
    monkeypatch.setattr(Funds, "check", once)
    assert one.ask("count sex = F and town = a").source == "measured"
    assert refused


def test_names_of_sessions_do_not_run_into_each_other():
    ledger = MemoryLedger(Budget.of(500, 1e-6))
    for name in ("run", "run 1", "run 2"):
        session = session_of(curator(ledger=ledger), alpha=0.02, queries=50, name=name)
        assert session.ask("count age < 4").source == "measured"
    with pytest.raises(ParameterError, match="#"):
        session_of(curator(ledger=ledger), alpha=0.02, name="run#1")


def test_bad_input_is_refused_and_costs_nothing():
    one = curator()
    nan = float("nan")
    for name, values in {
        "alpha": (0, -0.1, 2, nan, float("inf"), "0.1", True),
        "beta": (0, 1, -0.1, 1.5, nan),
        "queries": (0, -1, 1.5, 10**13, True),
    }.items():
        for value in values:
            with pytest.raises(ParameterError, match=name if name != "queries" else "questions"):
                session_of(one, **({"alpha": 0.02, "beta": 0.05, "queries": 10} | {name: value}))
    with pytest.raises(ParameterError, match="less than one person"):
        session_of(one, alpha=1e-6)
    with pytest.raises(RefusedError, match="at_least"):
        session_of(curator(neighbours=Neighbours.ADD_REMOVE), alpha=0.1)
    session = session_of(one, alpha=0.02, queries=10)
    before = one.ledger.spent
    with pytest.raises(QueryError, match="another domain"):
        session.ask_marginal(Marginal(Domain((DOMAIN["sex"],)), ()))
    assert one.ledger.spent == before


@pytest.mark.parametrize("seed", [0, 1])
def test_bands_hold_where_nothing_bounds_the_number_of_rows(seed):
    """It is too dear to be bought here: what is deduced must not be a difference of two huge numbers."""
    one = curator(epsilon=4, seed=seed, neighbours=Neighbours.ADD_REMOVE, rows_at_least=1000)
    opened = session_of(one, alpha=0.02, beta=0.05, queries=200)
    certified = 0
    for chosen in range(1, 62, 3):
        asked = conjunction(town=(chosen >> np.arange(6) & 1).astype(bool))
        told = opened.ask_marginal(asked)
        if told.source != "uncertified":
            certified += 1
            assert abs(float(told.value) - float(one._truth.sums(asked))) <= float(told.error) + 1e-9
    assert certified > 10
    assert not opened.contradicted


def test_a_process_that_lags_behind_pays_nothing_for_what_another_bought():
    one = curator()
    first, second = (session_of(one, alpha=0.02, queries=1000, name="x") for _ in range(2))
    first.ask("count town = 'a'")
    before = one.ledger.spent.units
    assert second.ask("count town = 'b'").source == "implied"
    assert one.ledger.spent.units == before


def test_a_session_far_beyond_its_questions_still_answers():
    opened = session_of(curator(), alpha=0.02, queries=1, mechanism="direct")
    opened._buyer.policy.beta.left = 1e-260
    assert opened.ask("count town = 'c' and sex = 'F'").source == "uncertified"


def test_a_session_that_goes_on_simulates_no_band_again(monkeypatch):
    """The bands of histograms and classes stand in the journal with their purchases, to the last digit."""
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)
    one = curator()
    first = session_of(one, alpha=0.02, queries=5000, name="mine", classes=[ranges("age", "sex")])
    asked = [conjunction(age=np.arange(10) < 4, town=np.arange(6) < 2), conjunction(town=np.arange(6) < 3)]
    said = [first.ask_marginal(question).value.tolist() for question in asked]
    assert {"histogram", "grids"} <= {plan["kind"] for plan in plans(first)}

    def again(*args, **kwargs):
        raise AssertionError("a band is simulated again")

    monkeypatch.setattr("understudy.sessions.histogram.half_widths", again)
    monkeypatch.setattr("understudy.sessions.product_class.band", again)
    second = session_of(one, name="mine")
    assert [second.ask_marginal(question).value.tolist() for question in asked] == said
    for name, known in first._known.knowledge.one_ways.items():
        assert (second._known.knowledge.one_ways[name].half_widths == known.half_widths).all()
    held = [[c.width for _, c in s._known.knowledge.classes()] for s in (first, second)]
    assert held[0] == held[1] != []


@pytest.mark.parametrize("rows_each", [13, 16])
def test_a_price_near_the_largest_one_is_found(rows_each):
    """A width of one person, and people of many rows: a guess of the price may lie beyond all prices."""
    draw = np.random.default_rng(0)
    people = pa.table({"p": draw.integers(0, 500 // rows_each, 500), "a": draw.integers(0, 4, 500)})
    project = us.declare(
        people, {"a": range(5)}, epsilon=900, delta=1e-6, unit=Unit("p", rows_each), neighbours="add-remove",
        rows_at_least=500, rows_at_most=510,
    )  # fmt: skip
    answer = us.session(project, alpha=0.002, queries=100).ask("count a=1")
    assert (answer.source, float(answer.error)) == ("measured", 1.0)
