"""A session's price is the most that a question costs, of however many parts it is."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from session_analysts import attributes, curator, random_conjunction, random_group_by, table_of
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.sessions import allowance, ski_rental
from understudy.sessions.allowance import Allowance
from understudy.sessions.asking import Asking
from understudy.sessions.buyer import Buyer
from understudy.sessions.opening import session as session_of
from understudy.sessions.question_plan import QuestionPlan
from understudy.sessions.session import Session, _least_refined

WIDE = table_of(attributes({"age": 16, "h": 16}, {"k": 9, "s": 3}), 5000, 1)
SMALL = table_of(attributes({"age": 16}, {"k": 9, "s": 3}), 5000, 1)
BUDGETS = {
    "approximate": {"delta": 1e-6},
    "pure": {},
    "bounded": {"delta": 1e-6, "key_delta": 5e-7},
    "gdp": {"delta": 1e-6, "filter": "gdp"},  # its cap takes more than a second at so large an epsilon
}
AHEAD = {"histogram", "grids", "marginals"}


def filtered(draw: np.random.Generator) -> str:
    """A SELECT of three counts of random sets of one attribute's values."""
    sets = [sorted(draw.choice(8, draw.integers(2, 6), replace=False)) for _ in range(3)]
    named = [", ".join(f"'v{value}'" for value in some) for some in sets]
    counts = (f"count(*) FILTER (WHERE k IN ({some})) AS c{i}" for i, some in enumerate(named))
    return f"SELECT {', '.join(counts)} FROM t"


def kinds(session: Session) -> list[str]:
    """What the session has bought so far, in order."""
    return [plan["kind"] for plan in session._buyer.journal.all()]


def asked(session: Session, question: str) -> tuple[int, int]:
    """What a question was quoted, and what the ledger charged for it, in units."""
    quoted, before = session.price(question).units, session.curator.ledger.spent.units
    told = session.ask(question)
    spent = session.curator.ledger.spent.units - before
    assert told.cost.units == spent
    return quoted, spent


def test_the_parts_of_a_statement_make_no_histogram_due_before_the_next_statement():
    """The rent of two parts made a histogram due in the fifth statement, which cost four times its price."""
    session = session_of(curator(WIDE, seed=1), alpha=0.02, beta=0.05, queries=300)
    draw = np.random.default_rng(1)
    for _ in range(5):
        quoted, spent = asked(session, filtered(draw))
        assert 0 < spent <= quoted
    assert AHEAD.isdisjoint(kinds(session))
    quoted, spent = asked(session, filtered(draw))
    assert 0 < spent <= quoted
    assert "histogram" in kinds(session)


def test_a_statement_that_the_budget_pays_for_is_answered_in_all_parts():
    """What is left pays for the statement, and for the histogram that its parts make due but not for both: nothing
    is bought that the last part would miss.
    """
    draw = np.random.default_rng(1)
    statements = [filtered(draw) for _ in range(5)]
    others = "count(*) FILTER (WHERE h < 5) AS few, count(*) FILTER (WHERE h >= 9) AS many"
    statements[4] = statements[4].replace(" FROM", f", {others} FROM")
    session = session_of(curator(WIDE, seed=1), alpha=0.02, beta=0.05, queries=300)
    for statement in statements[:4]:
        session.ask(statement)
    spent, price = session.curator.ledger.spent.units, session.price(statements[4]).units
    for rest in (price, 26 * price // 10):
        epsilon = bisect_left(range(1, 10**6), spent + rest, key=lambda e: budget_of(e).cap.units) + 1
        one = curator(WIDE, seed=1, budget=budget_of(epsilon))
        poor = session_of(one, alpha=0.02, beta=0.05, queries=300)
        assert [poor.ask(statement).source for statement in statements] == ["measured"] * 5


def budget_of(epsilon: int) -> Budget:
    """A budget of so many ten-thousandths of ε."""
    return Budget.of(Fraction(epsilon, 10**4), 1e-6)


@pytest.mark.parametrize("neighbours", [Neighbours.REPLACE, Neighbours.ADD_REMOVE])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("queries", [300, 10_000])
def test_no_question_of_several_parts_costs_more_than_its_price(monkeypatch, queries, budget, neighbours):
    """Boxes and tables, one to four at once, while histograms and classes become due."""
    monkeypatch.setattr(ski_rental, "SMALL", 0)
    seed = queries + len(budget)
    one = curator(SMALL, seed=seed, budget=Budget.of(1000, **BUDGETS[budget]), neighbours=neighbours)
    session, draw = session_of(one, alpha=0.02, beta=0.05, queries=queries), np.random.default_rng(seed)
    for _ in range(20):
        names = [["age"], ["age", "s"], ["k"], ()][int(draw.integers(4))]
        parts = [
            random_group_by(draw, SMALL.domain)
            if draw.random() < 0.2
            else random_conjunction(draw, SMALL.domain, names)
            for _ in range(int(draw.integers(1, 5)))
        ]
        plan = session._parts.planned(_least_refined(session.curator.domain, parts), "")
        quoted = session._buyer.funds("").quote(plan.purchases).units
        spent, left = one.ledger.spent.units, session._buyer.policy.beta.left
        after = session._buyer.policy.after(plan.purchases).beta.left
        session.counts(parts)
        assert one.ledger.spent.units - spent <= quoted
        assert min(after, left) <= session._buyer.policy.beta.left
    assert budget == "gdp" or AHEAD & set(kinds(session))  # little noise has no price under `gdp`


@pytest.mark.parametrize("seed", range(4))
def test_no_statement_with_quantiles_costs_more_than_its_price(seed):
    """What quantiles buy, ranges or counts of a search, comes first, and takes a part of β from what is beside."""
    session = session_of(curator(WIDE, seed=seed), alpha=0.02, beta=0.05, queries=100)
    draw = np.random.default_rng(seed)
    for _ in range(4):
        first, second = draw.permutation(["age", "h"])
        k, low = draw.integers(8), draw.integers(1, 12)
        quoted, spent = asked(
            session,
            f"SELECT median({first}), count(*) FILTER (WHERE {second} < {low} AND k = 'v{k}') AS few, "
            f"median({second}), count(*) FILTER (WHERE k = 'v{k}') AS some FROM t WHERE s = 'v{draw.integers(2)}'",
        )
        assert spent <= quoted
        several = ", ".join(f"quantile_disc({first}, {level})" for level in (0.1, 0.5, 0.9))
        quoted, spent = asked(session, f"SELECT {several} FROM t WHERE k = 'v{k}'")
        assert spent <= quoted
    assert "grids" in kinds(session)


def generated(draw: np.random.Generator) -> list[Marginal]:
    """A question of one to seven parts: boxes on one or two attributes, or on any, and now and then a table."""
    names = [["age"], ["age", "s"], ["k"], ()][int(draw.integers(4))]
    return [
        random_group_by(draw, SMALL.domain)
        if draw.random() < 0.2
        else random_conjunction(draw, SMALL.domain, names)
        for _ in range(int(draw.integers(1, 8)))
    ]


def dearest(seed: int, *, kept: bool, prices: int = 1) -> float:
    """How many times its price a generated question cost at most, each priced `prices` times and then asked.

    Where plans are not `kept`, each is made anew, as for whoever had many others priced meanwhile.
    """
    one = curator(SMALL, seed=seed, budget=Budget.of(1000, delta=1e-6))
    session, draw = session_of(one, alpha=0.02, beta=0.05, queries=300), np.random.default_rng(seed)
    worst, told = 0.0, 0
    for _ in range(41):
        question = generated(draw)
        parts = _least_refined(session.curator.domain, question)
        for _ in range(prices):
            told = session._buyer.funds("").quote(session._parts.planned(parts, "").purchases).units
            if not kept:
                session._buyer.plans.forget()
        spent = one.ledger.spent.units
        session.counts(question)
        worst = max(worst, (one.ledger.spent.units - spent) / max(told, 1))
    return worst


@pytest.mark.parametrize("counted", [1, 8, 32, 10**6])
@pytest.mark.parametrize("seed", [11, 17])
def test_no_class_is_bought_that_a_price_did_not_name(monkeypatch, seed, counted):
    """However many questions that wait are counted at once, and whether the plan was kept or is made anew."""
    monkeypatch.setattr(allowance, "MOST_COUNTED", counted)
    assert 0 < dearest(seed, kept=False) <= 1
    assert 0 < dearest(seed, kept=True, prices=3) <= 1


@pytest.mark.parametrize("seed", [11, 17])
def test_an_allowance_that_counts_more_after_a_price_is_noticed(monkeypatch, seed):
    """The mutant: whoever asks has more questions counted than whoever was told the price, and may buy more. A
    plan that was kept holds all the same.
    """
    permits = Allowance.permits

    def counting_more(self: Allowance, *args: Any, **kwargs: Any) -> bool:
        self._uncounted = None
        return permits(self, *args, **kwargs)

    monkeypatch.setattr(Allowance, "permits", counting_more)
    assert dearest(seed, kept=False) > 4
    assert 0 < dearest(seed, kept=True) <= 1


def test_prices_of_other_questions_change_nothing():
    """Thirty are priced, and then the first is: its price is what it was, also by a plan that is made anew."""
    one = curator(SMALL, seed=6, budget=Budget.of(1000, delta=1e-6))
    session, draw = session_of(one, alpha=0.02, beta=0.05, queries=300), np.random.default_rng(6)
    for _ in range(30):
        session.counts(generated(draw))
    waiting = [_least_refined(session.curator.domain, generated(draw)) for _ in range(30)]

    def told(parts: list[Marginal]) -> int:
        return session._buyer.funds("").quote(session._parts.planned(parts, "").purchases).units

    first = list(map(told, waiting))
    assert sum(first) > 0
    assert list(map(told, waiting)) == first
    session._buyer.plans.forget()
    assert list(map(told, waiting[::-1])) == first[::-1]


@pytest.mark.parametrize("seed", [291, 679])
def test_leaving_out_a_look_makes_no_statement_dearer_than_its_price(seed):
    """With fewer purchases the ledger's joint bound can be larger: these cost 1.24 and 1.14 times their price."""
    assert 0 < dearest(seed, kept=True) <= 1


@pytest.mark.parametrize("seed", [291, 679])
def test_a_plan_from_which_looks_are_left_out_whatever_that_costs_is_noticed(monkeypatch, seed):
    monkeypatch.setattr(Buyer, "keep_to", lambda self, plan, marginal, asking: None)
    assert dearest(seed, kept=True) > 1.1


def test_a_look_that_is_made_to_keep_the_price_changes_no_answer(monkeypatch):
    """Its question was answered before it: asked again it has the same answer, which is within its error."""
    needless, keep_to = [], Buyer.keep_to

    def counted(self: Buyer, plan: QuestionPlan, marginal: Marginal, asking: Asking) -> None:
        before = self.journal.length
        keep_to(self, plan, marginal, asking)
        needless.append(self.journal.length - before)

    monkeypatch.setattr(Buyer, "keep_to", counted)
    one = curator(SMALL, seed=268, budget=Budget.of(1000, delta=1e-6))
    session, draw = session_of(one, alpha=0.02, beta=0.05, queries=300), np.random.default_rng(268)
    told = []
    for _ in range(41):
        question, spent = generated(draw), one.ledger.spent.units
        told += [
            (part, cells.answer) for part, cells in zip(question, session.counts(question).cells, strict=True)
        ]
        assert (
            sum(answer.cost.units for _, answer in told[-len(question) :]) == one.ledger.spent.units - spent
        )
    assert sum(needless) > 0
    for part, answer in told:
        again = session.ask_marginal(part)
        assert (again.value == answer.value).all()
        assert not again.cost.units
        assert (abs(answer.value - SMALL.exact(part)) <= answer.error).all()
        assert (answer.error <= session.width).all()
