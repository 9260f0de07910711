"""Several questions are charged no more than the price that was told for all of them before the first."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

import understudy as us
from session_analysts import attributes, curator, random_conjunction, random_group_by, table_of
from understudy.errors import InsufficientBudgetError, ParameterError, PriceRoseError, QueryError
from understudy.privacy.cost import Cost, PureDP
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.sessions.asking import Asking
from understudy.sessions.buyer import Buyer
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.opening import session as session_of
from understudy.sessions.session import Session
from understudy.sessions.several import SeveralQuestions

WIDE = table_of(attributes({"age": 16, "h": 16}, {"k": 9, "s": 3}), 5000, 1)
AHEAD = {"histogram", "grids", "marginals"}
QUESTIONS = [f"count by age, {other}" for other in ("h", "k")] + ["count by age, h, s", "count by age, h, k"]


def opened(seed: int = 1, queries: int = 300, **terms: object) -> Session:
    return session_of(curator(WIDE, seed=seed, **terms), alpha=0.02, beta=0.05, queries=queries)  # type: ignore[arg-type]


def spent(session: Session) -> int:
    return session.curator.ledger.spent.units


def times(cost: Cost, factor: float) -> Cost:
    return type(cost)(int(factor * cost.units))


def kinds(session: Session) -> list[str]:
    return [plan["kind"] for plan in session._buyer.journal.all()]


def some(draw: np.random.Generator, number: int, names: list[str]) -> list[object]:
    return [
        random_conjunction(draw, WIDE.domain, names)
        if draw.random() < 0.9
        else random_group_by(draw, WIDE.domain)
        for _ in range(number)
    ]


@pytest.mark.parametrize("neighbours", [Neighbours.REPLACE, Neighbours.ADD_REMOVE])
@pytest.mark.parametrize("seed", range(8))
def test_several_questions_cost_no_more_than_they_were_told_to(seed, neighbours):
    """And all of them are answered, while histograms and classes become due."""
    draw = np.random.default_rng(seed)
    names = [["age"], ["age", "s"], [], ["k", "h"]][seed % 4]
    session = opened(seed, [20, 300, 10_000][seed % 3], neighbours=neighbours)
    for question in some(draw, int(draw.integers(12)), names):
        session.ask(question)  # type: ignore[call-overload]
    questions = some(draw, int(draw.integers(2, 32)), names)
    several, before = session.several(questions), spent(session)  # type: ignore[arg-type]
    prices = several.prices()
    assert [cost.units for cost in prices] == sorted(cost.units for cost in prices)
    assert prices[-1] == several.price
    answers = list(several.ask())
    assert len(answers) == len(questions)
    assert all(answer.source != "uncertified" for answer in answers)
    assert spent(session) - before == sum(answer.cost.units for answer in answers) <= several.price.units


def test_without_the_plan_the_same_questions_pass_the_price(monkeypatch):
    """Asked one by one, what is due ahead is bought: 40 questions cost more than told, where that has no room."""
    monkeypatch.setattr("understudy.sessions.several.FEW", 10_000)
    draw = np.random.default_rng(5)
    questions = [random_conjunction(draw, WIDE.domain, ["age", "s"]) for _ in range(40)]
    free, kept = opened(), opened()
    told = kept.several(questions).price.units
    for question in questions:
        free.ask(question)
    assert spent(free) > told
    assert AHEAD & set(kinds(free))
    list(kept.several(questions).ask())
    assert spent(kept) <= told
    assert AHEAD.isdisjoint(kinds(kept))


def test_the_sum_of_single_prices_is_no_promise():
    """Each question has less of β than the one before: tables of all rows cost more than told."""
    session = opened(queries=10_000)
    questions = ["count by k, s", "count by age, k", "count by h, s", "count by age, s", "count by h, k"]
    alone = sum(cost.units for cost in session.dry_run(questions))
    for question in questions:
        session.ask(question)
    assert spent(session) > alone
    again = opened(queries=10_000)
    several = again.several(questions)
    assert several.price.units > alone
    list(several.ask())
    assert spent(again) <= several.price.units


def test_what_becomes_due_is_bought_ahead_where_the_rest_is_within_the_price_then():
    draw = np.random.default_rng(3)
    questions = [random_conjunction(draw, WIDE.domain, ["age"]) for _ in range(60)]
    session = opened(queries=1000)
    several = session.several(questions)
    list(several.ask())
    assert AHEAD & set(kinds(session))
    assert spent(session) <= several.price.units / 3


@pytest.mark.parametrize("names", [["age"], ["age", "s"]])
@pytest.mark.parametrize("number", [40, 100])
def test_long_lists_cost_about_what_their_questions_cost_one_by_one(names, number):
    draw = np.random.default_rng(3)
    questions = [random_conjunction(draw, WIDE.domain, names) for _ in range(number)]
    alone, together = opened(), opened()
    for question in questions:
        alone.ask(question)
    list(together.several(questions).ask())
    assert spent(together) <= 1.05 * spent(alone)


def test_without_room_in_its_price_a_long_list_costs_much_more(monkeypatch):
    """The mutant that the test above must catch."""
    monkeypatch.setattr("understudy.sessions.several.FEW", 10_000)
    draw = np.random.default_rng(3)
    questions = [random_conjunction(draw, WIDE.domain, ["age"]) for _ in range(100)]
    alone, together = opened(), opened()
    for question in questions:
        alone.ask(question)
    list(together.several(questions).ask())
    assert spent(together) > 1.9 * spent(alone)


@pytest.mark.parametrize("seed", range(3))
def test_quantiles_and_errors_stand_among_other_questions(seed):
    draw = np.random.default_rng(seed)
    session = opened(seed, 100)
    questions = [
        f"count age < {draw.integers(3, 9)} and s = v0",
        f"SELECT median(age), count(*) FILTER (WHERE h < {draw.integers(3, 9)}) AS few FROM t WHERE s = 'v0'",
        f"count h < {draw.integers(3, 9)} and k = v1",
        "SELECT quantile_disc(h, 0.1), quantile_disc(h, 0.9) FROM t",
        f"count age >= {draw.integers(3, 9)} and k = v2",
    ]
    several = session.several(questions)
    assert sum(answer.cost.units for answer in several.ask()) <= several.price.units
    assert spent(session) <= several.price.units
    closer, before = session.several(questions[:1] + questions[2:3], error=40), spent(session)
    assert closer.price.units > 0
    assert all(float(answer.error.max()) <= 40 for answer in closer.ask())  # type: ignore[union-attr]
    assert 0 < spent(session) - before <= closer.price.units
    assert session.several(questions[:1] + questions[2:3], error=40).price.units == 0


def test_a_question_beyond_what_was_agreed_to_is_refused_and_nothing_is_lost():
    session = opened(queries=10_000)
    several = session.several(QUESTIONS)
    agreed = several.prices()[1]
    answers, told = several.ask(most=agreed), list[int]()
    with pytest.raises(PriceRoseError) as refusal:
        told += (answer.cost.units for answer in answers)
    told = [session.ask(question).cost.units for question in QUESTIONS[:2]]
    assert told == [0, 0]
    assert 0 < spent(session) <= agreed.units
    assert refusal.value.requested > refusal.value.agreed
    again = session.several(QUESTIONS)
    assert [cost.units > 0 for cost in again.prices()] == [False, False, True, True]
    assert len(list(again.ask())) == len(QUESTIONS)


def test_what_others_buy_meanwhile_makes_nobody_pay_more_than_was_told():
    """The rest is planned anew, after classes that others ordered, and is within the price or refused."""
    session = opened(queries=10_000)
    several = session.several(QUESTIONS)
    charged, answered = 0, 0
    with suppress(PriceRoseError):
        for place, answer in enumerate(several.ask()):
            charged, answered = charged + answer.cost.units, answered + 1
            session.buy(us.conjunctions(*(["k", "s"], ["h", "s"], ["age", "s"], ["h", "k"])[place]))
    assert answered >= 1
    assert 0 < charged <= several.price.units


def test_a_question_is_not_charged_more_than_was_agreed_to():
    session = opened()
    price = session.price(QUESTIONS[0])
    with pytest.raises(PriceRoseError):
        session.ask(QUESTIONS[0], most=times(price, 0.99))
    assert spent(session) == 0
    assert 0 < session.ask(QUESTIONS[0], most=price).cost.units <= price.units
    assert session.ask(QUESTIONS[0], most=times(price, 0)).source == "repeat"
    with pytest.raises(QueryError):
        session.ask("count nobody = 1", most=price)
    with pytest.raises(PriceRoseError):
        session.ask("count s = v1", error=1, most=times(price, 0.01))
    assert spent(session) <= price.units


def test_nothing_is_bought_ahead_where_that_is_beyond_what_was_agreed_to():
    """A histogram is due and costs several times a count: with less agreed to, the count alone is bought."""
    session, draw = opened(), np.random.default_rng(3)
    for _ in range(60):
        question = random_conjunction(draw, WIDE.domain, ["age", "s"])
        price = session.price(question)
        before = spent(session)
        plan = session._buyer.plans.of_own([question], "", asked=session._buyer.asked + 1)
        own = session._buyer.funds("").quote(plan.purchases)
        if own.units < price.units / 2:
            break
        session.ask(question)
    else:
        pytest.fail("nothing became due")
    assert session.ask(question, most=own).source == "measured"
    assert spent(session) - before <= own.units
    assert price.units > 2 * own.units


def test_a_limit_that_does_not_hold_the_purchases_is_noticed(monkeypatch):
    """A mutant that forgets what was charged passes the amount agreed to, and these tests see that."""
    monkeypatch.setattr(SeveralQuestions, "_ready", lambda self, place, limit: None)
    monkeypatch.setattr("understudy.sessions.charge_limit.ChargeLimit.charged", lambda self, cost: None)
    draw = np.random.default_rng(3)
    questions = [random_conjunction(draw, WIDE.domain, ["age", "s"]) for _ in range(40)]
    session = opened()
    several = session.several(questions)
    agreed = times(several.price, 0.5)
    list(several.ask(most=agreed))
    assert spent(session) > agreed.units


def test_a_search_for_a_quantile_leaves_the_other_parts_their_shares_of_beta(monkeypatch):
    """The shares of all purchases add up to at most β; they came to 1.05 times β without the search's limit."""
    taken: list[float] = []
    make = Buyer.make

    def noted(self, purchase, asking):
        result = make(self, purchase, asking)
        taken.append(purchase.share)
        return result

    monkeypatch.setattr(Buyer, "make", noted)
    session = opened(111, queries=6)
    counts = ", ".join(f"count(*) FILTER (WHERE k = 'v{i}') AS f{i}" for i in range(6))
    answer = session.ask(f"SELECT median(age), {counts} FROM t WHERE s = 'v1'")
    assert answer.source != "uncertified"
    assert sum(taken) <= 0.05
    assert session._buyer.policy.beta.left > 0


def test_a_share_above_what_is_left_of_beta_is_refused_before_it_is_charged():
    session = opened()
    session._buyer.policy.beta.left = 1e-9
    purchase = DirectPurchase.of(
        session._buyer.calibrator,
        session._buyer.known.knowledge,
        Marginal(WIDE.domain, ("k",)),
        0.01,
    )
    before = spent(session)
    with pytest.raises(InsufficientBudgetError, match="Begin another session"):
        session._buyer.make(purchase, Asking("", session.curator.ledger.spent))
    assert spent(session) == before


@pytest.mark.parametrize("most", [0.5, "all", PureDP(10**12)])
def test_a_limit_in_another_currency_is_refused(most):
    session = opened()
    with pytest.raises(ParameterError, match="most is a cost in rho"):
        session.ask("count", most=most)
    with pytest.raises(ParameterError, match="most is a cost in rho"):
        next(session.several(["count", "count by k"]).ask(most=most))
    assert spent(session) == 0


def test_nothing_is_paid_for_an_answer_that_the_budget_cannot_finish():
    """Of two looks the first alone would be paid for nothing: such a question is answered uncertified, for 0."""
    session = opened(queries=10_000, epsilon=0.5)
    answers = list(session.several(QUESTIONS).ask())
    unpaid = [answer.cost.units for answer in answers if answer.source == "uncertified"]
    assert unpaid
    assert sum(unpaid) == 0
