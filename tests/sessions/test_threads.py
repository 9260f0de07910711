"""Threads in one session: what costs nothing waits for nobody, what has to be bought is bought once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from session_table import DOMAIN, conjunction, curator
from understudy.errors import RequestConflictError
from understudy.query.box import Box, Grid
from understudy.query.marginal import Marginal
from understudy.sessions import box_bounds, knowledge, purchase_plans
from understudy.sessions.forecast import Forecast
from understudy.sessions.opening import session as session_of
from understudy.sessions.terms import ranges

PATIENCE = 60
"""Seconds after which a thread that waits is taken to wait for ever; nothing here takes one second."""
BOUGHT = "count age < 4 and town = 'a'"
ANOTHER = "count sex = F and town = 'b'"
NEW = "count age >= 6 and sex = F and town = 'c'"
STATEMENT = "SELECT count(*) FROM t WHERE age < 3"


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    """The domain counts as a large one: single questions are bought, and histograms before them."""
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)


class Looking:
    """A table whose looks wait until they may go on."""

    def __init__(self, session) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self._sums_of = session.curator._truth.sums_of
        session.curator._truth.sums_of = self
        self.looks = 0

    def __call__(self, *args, **kwargs):
        self.looks += 1
        self.begun.set()
        assert self.goes_on.wait(PATIENCE)
        return self._sums_of(*args, **kwargs)


@pytest.fixture
def session():
    opened = session_of(curator(), alpha=0.02, beta=1e-9, queries=100, name="team", classes=[ranges("age")])
    opened.ask(BOUGHT, analyst="ada")
    return opened


def test_nothing_that_is_free_waits_for_somebodys_look(session):
    said = session.ask(BOUGHT)
    looking = Looking(session)
    with ThreadPoolExecutor(4) as crowd:
        buying = crowd.submit(session.ask, NEW, analyst="ada")
        assert looking.begun.wait(PATIENCE)
        steps, spent = session._known.step, session.curator.ledger.spent

        def free():
            """As another analyst, while ada's look runs."""
            repeated = session.ask(BOUGHT, analyst="bob")
            implied = [session.ask(f"count age < {end}", analyst="bob").source for end in range(1, 9)]
            selected = session.ask(STATEMENT, analyst="bob")
            assert session.known(NEW) is session.known(ANOTHER) is None
            told = session.known(BOUGHT, analyst="bob")
            prices = [session.price(q, "bob").units for q in (BOUGHT, "count age < 5", NEW, ANOTHER)]
            return repeated, implied, selected.source, told, prices, repr(session), session.contradicted

        repeated, implied, selected, told, prices, *_ = crowd.submit(free).result(PATIENCE)
        assert repeated.value.tolist() == told.value.tolist() == said.value.tolist()
        assert set(implied) == {"implied"}
        assert selected in ("implied", "repeat")
        assert prices[:2] == [0, 0]
        assert min(prices[2:]) > 0
        assert (session._known.step, buying.done(), looking.looks) == (steps, False, 1)
        assert session.curator.ledger.spent.units >= spent.units
        same = [crowd.submit(session.ask, NEW, analyst=who) for who in ("bob", "eve")]
        looking.goes_on.set()
        first, *others = [future.result(PATIENCE) for future in (buying, *same)]
    assert (first.source, [other.source for other in others]) == ("measured", ["repeat", "repeat"])
    assert [other.cost.units for other in others] == [0, 0]
    assert {answer.value.item() for answer in (first, *others)} == {first.value.item()}
    assert {debit.analyst for debit in session.curator.ledger.debits("team#")} == {"", "ada"}


def test_two_threads_that_ask_the_same_new_question_pay_once(session):
    before, together = session.curator.ledger.spent.units, threading.Barrier(4)

    def ask(who):
        together.wait(PATIENCE)
        return session.ask(NEW, analyst=who)

    with ThreadPoolExecutor(4) as crowd:
        answers = list(crowd.map(ask, ("ada", "bob", "eve", "dan")))
    paid = [answer for answer in answers if answer.cost.units]
    assert [answer.source for answer in paid] == ["measured"]
    assert session.curator.ledger.spent.units == before + paid[0].cost.units
    assert len({answer.value.item() for answer in answers}) == 1


def test_a_crowd_that_asks_prices_and_buys_at_once_gets_true_answers(session):
    """Answers are deduced and priced while knowledge and policy grow, and nobody sees half of a purchase."""
    exact, stop = session.curator._truth.sums, threading.Event()

    def questions(seed):
        generator = np.random.default_rng(seed)
        for _ in range(8):
            low, high = np.sort(generator.integers(0, 10, 2))
            age = (np.arange(10) >= low) & (np.arange(10) <= high)
            yield conjunction(age=age, town=np.arange(6) == generator.integers(5))

    def buy(seed):
        try:
            return [session.ask_marginal(question, analyst=f"buyer {seed}") for question in questions(seed)]
        finally:
            stop.set()

    def read(seed):
        answers, generator = [], np.random.default_rng(seed)
        while not stop.is_set():
            low, high = np.sort(generator.integers(0, 10, 2))
            age = (np.arange(10) >= low) & (np.arange(10) <= high)
            answers.append(session.known(conjunction(age=age)))
            session.price(conjunction(age=age, sex=np.arange(3) < 1))
        return answers

    with ThreadPoolExecutor(4) as crowd:
        buyers = [crowd.submit(buy, seed) for seed in (1, 2)]
        readers = [crowd.submit(read, seed) for seed in (3, 4)]
        told = [answer for future in (*buyers, *readers) for answer in future.result(PATIENCE)]
    assert len(told) > 16
    for answer in told:
        assert abs(answer.value - exact(answer.query)) <= answer.error <= session.width


def test_what_was_known_stays_as_it_was(session):
    before, question = session._known, conjunction(age=np.arange(10) >= 6, sex=np.arange(3) < 1)
    assert before.intervals(question) is None
    session.ask_marginal(question)
    assert session._known.intervals(question) is not None
    assert before.intervals(question) is None
    assert session._known.step > before.step


def test_a_full_list_of_boxes_is_copied_before_it_is_written_over(monkeypatch):
    monkeypatch.setattr(box_bounds, "MOST_BOXES", 64)
    known = knowledge.Knowledge(Grid(DOMAIN), (4000.0, 4000.0))
    box = Box(DOMAIN, {"age": np.arange(10) < 4, "town": np.arange(6) < 2})
    for count in range(64):
        known.learn(box, (float(count), 1000.0))
    later = known.copy()
    for _ in range(64):
        later.learn(box, (500.0, 600.0))
    assert known.interval(box) == (63.0, 1000.0)
    assert later.interval(box) == (500.0, 600.0)


def test_the_policy_hears_of_free_answers_without_making_them_wait(session, monkeypatch):
    monkeypatch.setattr(purchase_plans, "SERVED", 3)
    served = []
    record = session._buyer.policy.record
    monkeypatch.setattr(record, "served", lambda known, marginal: served.append(marginal))
    asked = [Marginal(DOMAIN, (), conjunction(age=np.arange(10) < end).where) for end in range(1, 8)]
    planning, leave = threading.Event(), threading.Event()

    def plan():
        with session._buyer.plans._lock:
            planning.set()
            assert leave.wait(PATIENCE)

    with ThreadPoolExecutor(2) as crowd:
        held = crowd.submit(plan)
        assert planning.wait(PATIENCE)
        for question in asked[:4]:
            assert crowd.submit(session.ask_marginal, question).result(PATIENCE).cost.units == 0
        assert served == []
        leave.set()
        held.result(PATIENCE)
    session.ask_marginal(asked[4])
    assert served == asked[:5]
    session.ask_marginal(asked[5])
    assert session.price(NEW).units > 0  # plans know of everything that was asked before
    assert served == asked[:6]


def test_a_request_that_another_thread_took_meanwhile_buys_nothing_for_another_question(session):
    """Both threads find the request free; the one that has to wait for the other's purchase looks again."""
    looking = Looking(session)
    with ThreadPoolExecutor(2) as crowd:
        first = crowd.submit(session.ask, NEW, analyst="ada", request="r")
        assert looking.begun.wait(PATIENCE)
        checks = threading.Event()
        check, session._buyer.check_request = session._buyer.check_request, lambda _: checks.set()
        second = crowd.submit(session.ask, ANOTHER, analyst="ada", request="r")
        assert checks.wait(PATIENCE)
        session._buyer.check_request = check
        looking.goes_on.set()
        paid = first.result(PATIENCE).cost
        with pytest.raises(RequestConflictError, match="another question"):
            second.result(PATIENCE)
    assert session.ask(NEW, analyst="ada", request="r").cost == paid


def test_an_answer_that_another_thread_paid_for_meanwhile_is_told_as_free(session, monkeypatch):
    """Both deduce it from the same purchase; whoever made the purchase tells its cost, and nobody else does."""
    question, known = "count age < 5", session._known
    [marginal] = session._reader.read(question).marginals
    paid = replace(known.answer(marginal, session._buyer.nothing), cost=session.curator.ledger.spent)
    deduced = type(known).answer

    def slowly(self, asked, charged):
        session._buyer.memory.keep_free(asked, replace(paid, source="measured"))
        return deduced(self, asked, charged)

    monkeypatch.setattr(type(known), "answer", slowly)
    told = session.ask(question, analyst="bob")
    assert (told.cost.units, told.source) == (0, "implied")
    assert told.value.tolist() == paid.value.tolist()


def test_a_plan_belongs_to_what_was_known_before_it_was_made(session, monkeypatch):
    """Whoever buys makes something known while another plans: that plan is of what was known before."""
    mine, of, found = session._buyer, Forecast.of, []
    question = conjunction(age=np.arange(10) < 4, town=np.arange(6) == 1)

    def of_meanwhile(self, marginal, *, asked):
        found.append(self.knowledge)
        if len(found) == 1:
            mine.journal.length += 1  # bought, and a moment later made known
            mine._publish(mine.known.knowledge.copy())
        return of(self, marginal, asked=asked)

    monkeypatch.setattr(Forecast, "of", of_meanwhile)
    first = mine.plans.of([question], "", asked=1)
    assert not mine.holds(first)
    for _ in range(2):  # the second time it is not found again
        assert mine.holds(mine.plans.of([question], "", asked=1))
    assert [one is mine.known.knowledge for one in found] == [False, True]


def test_a_plan_made_during_a_look_does_not_hold_after_it(session):
    mine = session._buyer
    mine.journal.length += 1  # paid for, and not known yet
    other = conjunction(age=np.arange(10) < 4, sex=np.arange(3) == 1)
    for marginals in ([conjunction(town=np.arange(6) == 1)], [other, conjunction(age=np.arange(10) < 3)]):
        assert not mine.holds(mine.plans.of(marginals, "", asked=1))
