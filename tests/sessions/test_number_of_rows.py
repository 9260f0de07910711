"""A private number of rows: bought once, with the first share, and by nobody else."""

from __future__ import annotations

import json

import numpy as np
import pytest

from session_table import DOMAIN, ROWS, conjunction, curator
from understudy.errors import InsufficientBudgetError
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.box import Box, Grid
from understudy.sessions.asking import Asking
from understudy.sessions.beta_account import TOTAL
from understudy.sessions.knowledge import UNBOUNDED, Knowledge
from understudy.sessions.number_of_rows import RowCountPurchase
from understudy.sessions.opening import session as session_of
from understudy.sessions.terms import ranges

LEAST = 3000
PRIVATE = {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": LEAST}
BUDGETS = pytest.mark.parametrize("delta", [1e-6, 0.0], ids=["gaussian", "laplace"])


def opened(delta=1e-6, **terms):
    one = terms.pop("one", None) or curator(epsilon=500, delta=delta, **PRIVATE)
    return session_of(one, **{"alpha": 0.05, "beta": 0.05, "queries": 1000, **terms})


def plans(session):
    return [json.loads(step) for step in session.curator.ledger.steps(session._buyer.journal.debit)]


@BUDGETS
@pytest.mark.parametrize("question", ["count age < 4", "count", "count by town"])
def test_a_first_count_costs_no_more_than_a_direct_one(question, delta):
    ours, direct = opened(delta), opened(delta, mechanism="direct")
    alone = direct.ask(question).cost.units
    quoted = ours.price(question).units
    answer = ours.ask(question)
    assert answer.cost.units <= quoted <= 1.01 * alone
    assert "rows" not in {plan["kind"] for plan in plans(ours) + plans(direct)}
    assert float(answer.error.max()) <= ours.width


@BUDGETS
def test_shares_buy_the_number_of_rows_once_at_one_price_whenever_the_first_comes(delta):
    paid = []
    for mechanism, before in (("auto", 0), ("auto", 9), ("direct", 5)):
        session = opened(delta, mechanism=mechanism)
        for age in range(before):
            session.ask(f"count age = {age}")
        quoted = session.price("share town = a").units
        first, second = session.ask("share town = a"), session.ask("share sex = F")
        assert first.source == "measured"
        assert first.cost.units <= quoted
        for answer, query in (
            (first, conjunction(town=[1, 0, 0, 0, 0, 0])),
            (second, conjunction(sex=[1, 0, 0])),
        ):
            exact = session.curator._truth.sums(query) / ROWS
            assert abs(float(answer.value) - exact) <= float(answer.error) <= (1 + 1 / 8) * 0.05
        [bought] = [plan for plan in plans(session) if plan["kind"] == "rows"]
        assert bought["share"] == 0.05 * TOTAL
        paid.append(bought[session.curator.ledger.spent.currency])
        assert sum(plan.get("share", 0.0) + plan.get("of beta", 0.0) for plan in plans(session)) <= 0.05
    assert len(set(paid)) == 1


def test_several_shares_plan_it_once_and_keep_to_their_price():
    session = opened()
    listed = session.several(["share age < 4", "count age < 7", "share town = a by sex"])
    assert sum(answer.cost.units for answer in listed.ask()) <= listed.price.units
    assert [plan["kind"] for plan in plans(session)].count("rows") == 1
    assert session.known("share age < 4").cost.units == 0


def test_a_share_that_cannot_be_paid_whole_buys_nothing():
    one = curator(ledger=MemoryLedger(Budget.of(0.2, 1e-6)), **PRIVATE)
    session = opened(one=one, alpha=0.05)
    quoted, alone = session.price("share age < 4").units, session.price("count age < 4").units
    assert alone <= one.ledger.remaining.units < quoted
    with pytest.raises(InsufficientBudgetError):
        session.ask("share age < 4", uncertified=False)
    assert session.ask("share age < 4").source == "uncertified"
    assert one.ledger.spent.units == 0
    assert session.ask("count age < 4").source == "measured"


@pytest.mark.parametrize("counts", [0, 3])
def test_a_session_that_began_with_the_number_of_rows_goes_on(counts):
    """As sessions did before: it is known, and costs nothing more."""
    one = curator(epsilon=500, **PRIVATE)
    before = opened(one=one, name="old")
    before._buyer.make(
        RowCountPurchase.of(before._buyer.calibrator, 0.05 * TOTAL), Asking("", before._buyer.nothing)
    )
    for age in range(counts):
        before.ask(f"count age = {age}")
    total = before._known.knowledge.total
    assert total[1] - total[0] <= 2 * (before.width // 8)
    again = opened(one=one, name="old")
    assert again._known.knowledge.total == total
    assert again._buyer.policy.beta.left == before._buyer.policy.beta.left
    assert again.price("share town = a") == before.price("share town = a") == before.price("count town = a")
    again.buy(ranges("age"))
    assert again._known.knowledge.total == total
    again.ask("share town = a")
    assert [plan["kind"] for plan in plans(again)].count("rows") == 1


def test_the_shares_of_beta_are_at_most_beta_where_it_was_not_set_aside():
    """In a session that was begun before, and could not pay for the number of rows."""
    beta = opened()._buyer.policy.beta
    assert beta.left + beta.for_rows <= 0.05
    beta._take(0.0499)
    assert 0 == beta.left < beta.for_rows <= 0.0001 * (1 + 1e-9)


def test_what_tells_all_rows_tells_their_number():
    session = opened()
    session.buy(ranges("age"))
    least, most = session._known.knowledge.total
    assert LEAST <= least <= ROWS <= most <= least + 2 * session.width
    assert session.price("count").units == 0
    assert session.price("share age < 4").units > 0  # which needs it closely


def test_a_contradiction_about_all_rows_leaves_the_newest_band():
    knowledge = Knowledge(Grid(DOMAIN), (100.0, UNBOUNDED))
    knowledge.learn(Box(DOMAIN, {}), (150.0, 250.0))
    knowledge.learn_rows((200.0, 400.0))
    assert (knowledge.total, knowledge.contradicted) == ((200.0, 250.0), False)
    knowledge.learn_number_of_rows(350.0, 10.0)
    assert (knowledge.total, knowledge.contradicted) == ((340.0, 360.0), True)
    knowledge.learn_rows((345.0, 355.0))
    assert knowledge.total == (340.0, 360.0)
    public = Knowledge(Grid(DOMAIN), (100.0, 100.0))
    public.learn_rows((0.0, 90.0))
    assert (public.total, public.contradicted) == ((100.0, 100.0), False)
    assert np.isfinite(public.interval(Box(DOMAIN, {}))).all()
