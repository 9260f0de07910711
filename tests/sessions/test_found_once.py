"""Numbers that take long are found once, outside the lock of plans: whoever needs none of them does not wait."""

from __future__ import annotations

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
import pytest

from session_table import curator
from understudy.ledger.asking_lock import AskingLock
from understudy.sessions import allowance, families, family_product, found_once, one_way
from understudy.sessions.found_once import planned
from understudy.sessions.opening import session as session_of

PATIENCE = 60
"""Seconds after which a thread that waits is taken to wait for ever; nothing here takes one second."""
DEAR = "SELECT quantile_disc(age, 0.5) FROM t"
CHEAP = "count age >= 6 and sex = F and town = 'c'"


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    """The domain counts as a large one: single questions are bought."""
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)


class Slowly:
    """A function that waits until it may go on."""

    def __init__(self, function=lambda *given: given) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self._function = function

    def __call__(self, *given, **named):
        self.begun.set()
        assert self.goes_on.wait(PATIENCE)
        return self._function(*given, **named)


def opened(queries=100):
    return session_of(curator(), alpha=0.02, beta=1e-9, queries=queries)


@pytest.fixture
def weighing(monkeypatch):
    """The weights of all ranges take as long as a test wants."""
    families._minimax_weights.begin()
    family_product._product.cache_clear()  # a product keeps what it is made of
    family_product._norm.cache_clear()
    slowly = Slowly(families._minimax_weights._function)
    monkeypatch.setattr(families._minimax_weights, "_function", slowly)
    yield slowly
    slowly.goes_on.set()


def test_a_small_price_and_a_purchase_do_not_wait_for_a_dear_price(weighing):
    session = opened()
    with ThreadPoolExecutor(3) as crowd:
        dear = crowd.submit(session.price, DEAR)
        assert weighing.begun.wait(PATIENCE)
        priced = crowd.submit(session.price, CHEAP).result(PATIENCE)
        bought = crowd.submit(session.ask, CHEAP).result(PATIENCE)
        again = crowd.submit(session.price, CHEAP).result(PATIENCE)
        assert not dear.done()
        weighing.goes_on.set()
        told = dear.result(PATIENCE)
    assert 0 < bought.cost.units <= priced.units
    assert again.units == 0
    # Of what is known by the time when it is told; its number among the questions is that of when it was priced.
    assert session.price(DEAR).units <= told.units <= 1.001 * session.price(DEAR).units


def test_a_price_that_was_broken_off_is_what_it_is_in_one_go(weighing):
    session, other = opened(), opened()
    with ThreadPoolExecutor(3) as crowd:
        prices = [crowd.submit(session.price, DEAR) for _ in range(2)]
        assert weighing.begun.wait(PATIENCE)
        weighing.goes_on.set()
        told = {price.result(PATIENCE).units for price in prices}
    assert families._minimax_weights.times == 1
    assert told == {other.price(DEAR).units}
    assert min(told) > 0


def test_threads_that_need_one_number_find_it_once():
    slowly = Slowly()
    function = found_once.found_once(4)(slowly)
    with ThreadPoolExecutor(4) as crowd:
        found = [crowd.submit(function, 1, 2) for _ in range(4)]
        assert slowly.begun.wait(PATIENCE)
        slowly.goes_on.set()
        assert {one.result(PATIENCE) for one in found} == {(1, 2)}
    assert function.times == 1


def test_the_last_numbers_are_kept():
    function = found_once.found_once(2)(lambda number: -number)
    assert [function(number) for number in (1, 2, 1, 3, 1)] == [-1, -2, -1, -3, -1]
    assert function.times == 3
    assert function(2) == -2
    assert function.times == 4


@pytest.mark.parametrize("is_entered", [False, True])
def test_a_plan_leaves_its_lock_for_each_number_and_begins_anew_where_others_entered(is_entered):
    lock, called = AskingLock("test"), []

    @found_once.found_once(4)
    def number(value):
        called.append((value, free_to_others(lock) if is_entered else True))
        return value

    def plan():
        called.append("plan")
        return number(1) + number(2)

    assert planned(lock, plan, before=lambda: called.append("before")) == 3
    begun, again = ["before", "plan"], ["before", "plan"] if is_entered else []
    assert called == [*begun, (1, True), *again, (2, True), *again]


def free_to_others(lock):
    """Whether another thread could enter."""

    def entered():
        with lock.if_free() as inside:
            return inside

    with ThreadPoolExecutor(1) as other:
        return other.submit(entered).result(PATIENCE)


def test_a_plan_that_is_always_interrupted_finds_the_last_numbers_itself(monkeypatch):
    """Others may enter, and make the cache forget the number, each time that it is found."""
    monkeypatch.setattr(found_once, "MOST_TRIES", 3)
    lock, entered = AskingLock("test"), []
    function = found_once.found_once(0)(lambda: entered.append(free_to_others(lock)) or 7)
    assert planned(lock, function, before=lambda: None) == 7
    assert entered == [True, True, True, False]


def test_a_number_that_the_cache_forgets_at_once_is_found_once_for_a_plan():
    function = found_once.found_once(0)(lambda: 7)
    assert planned(AskingLock("test"), function, before=lambda: None) == 7
    assert function.times == 1


def test_a_plan_that_lets_go_of_its_lock_asks_the_allowance_once(monkeypatch):
    """Who asks it changes it: it counts the questions that wait, which says what may be bought ahead."""
    monkeypatch.setattr("understudy.sessions.histogram_rent.HistogramRents.worth", lambda *_, **__: np.inf)
    asked = []
    monkeypatch.setattr(
        allowance.Allowance, "permits", lambda self, events, **_: bool(asked.append(events)) or True
    )
    found, find_apart = [], found_once.find_apart

    def outside_all_locks(find):
        """A cached property holds a lock of its class, in which no plan may wait for its own."""
        frames = inspect.getouterframes(inspect.currentframe(), context=0)
        assert not any(one.frame.f_code is cached_property.__get__.__code__ for one in frames)
        found.append(len(asked))
        find_apart(find)

    monkeypatch.setattr(found_once, "find_apart", outside_all_locks)
    one_way.shape.begin()
    prices, counted = [], []
    for _ in range(2):
        asked.clear()
        prices.append(opened(queries=2000).price(CHEAP).units)
        counted.append(len(asked))
    assert found[0] < found[-1]  # it was asked before the last number was found
    assert prices[0] == prices[1]
    assert counted[0] == counted[1] > 0


def test_an_error_in_a_plan_is_the_callers_and_leaves_nothing_behind():
    lock, function = AskingLock("test"), found_once.found_once(1)(lambda: 7)

    def plan():
        raise KeyError("x")

    with pytest.raises(KeyError):
        planned(lock, plan, before=lambda: None)
    assert function() == 7  # this thread does not plan any more
    assert free_to_others(lock)


def test_a_forked_child_waits_for_no_thread_of_its_parent():
    slowly = Slowly()
    function = found_once.found_once(1)(slowly)
    with ThreadPoolExecutor(2) as crowd:
        parents = crowd.submit(function, 1)
        assert slowly.begun.wait(PATIENCE)
        function.after_fork_in_child()  # what the child does; the parent's thread is none of its own
        slowly.goes_on.set()
        assert crowd.submit(function, 1).result(PATIENCE) == (1,)
        parents.result(PATIENCE)
