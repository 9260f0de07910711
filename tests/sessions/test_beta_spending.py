"""Shares of β that fall with the number of counts bought: they add up, and their least is known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from session_table import conjunction, curator
from understudy.errors import InsufficientBudgetError
from understudy.sessions.beta_account import BetaAccount
from understudy.sessions.beta_spending import CAREFUL, EVEN, GENEROUS, LEAST_SHARE, BetaSpending
from understudy.sessions.opening import session as session_of

FALLING = {"careful": CAREFUL, "generous": GENEROUS}
EVERY = {"even": EVEN, **FALLING}
PLACES = [(0, 10_000), (300, 9000), (5000, 5000), (0, 150), (40, 1000), (7, 1), (2500, 100_000)]


def shares(
    spending: BetaSpending, left: float, bought: int, expected: int, free: set[int] = frozenset()
) -> list[float]:
    """The shares of a sequence of questions, of which some cost nothing."""
    found = []
    for place in range(expected):
        if place in free:
            continue
        share = left * spending.part(bought, expected - place)
        found.append(share)
        left, bought = left - share, bought + 1
    return found


@pytest.mark.parametrize("expected", [1, 10, 1000, 10_000])
@pytest.mark.parametrize("name", EVERY)
def test_shares_add_up_to_no_more_than_is_left(name, expected):
    found = shares(EVERY[name], 1.0, 0, expected)
    assert 0.99 < sum(found) <= 1 + 1e-12
    assert min(found) > 0


@pytest.mark.parametrize(("bought", "expected"), PLACES)
@pytest.mark.parametrize("name", EVERY)
def test_no_later_share_is_below_the_least(name, bought, expected):
    spending = EVERY[name]
    least = spending.least(0.8, bought, expected)
    found = shares(spending, 0.8, bought, expected)
    assert least <= min(found[:-1] or found) * (1 + 1e-9)
    assert least >= 0.9 * min(found)  # it is hardly more careful than it has to be


@pytest.mark.parametrize("name", FALLING)
def test_answers_for_nothing_leave_more_for_the_others(name):
    draw = np.random.default_rng(1)
    least = FALLING[name].least(1.0, 0, 2000)
    for part in (0.1, 0.5, 0.9):
        free = set(np.flatnonzero(draw.random(2000) < part).tolist())
        assert min(shares(FALLING[name], 1.0, 0, 2000, free)) >= least * (1 - 1e-9)


@pytest.mark.parametrize(("bought", "expected"), PLACES)
def test_who_goes_on_more_carefully_has_a_larger_least_share(bought, expected):
    """So what was permitted with generous shares stays so, when careful or even ones are given from here on."""
    generous, careful, even = (s.least(1.0, bought, expected) for s in (GENEROUS, CAREFUL, EVEN))
    assert generous <= careful * (1 + 1e-9)
    assert careful <= even * (1 + 1e-9)
    assert GENEROUS.part(bought, expected) >= CAREFUL.part(bought, expected) >= EVEN.part(bought, expected)


def test_the_first_counts_get_more_and_short_sessions_even_shares():
    [(rate, lead)] = CAREFUL.falling
    assert CAREFUL.part(0, 10_001) == pytest.approx(rate / lead)
    for spending in FALLING.values():
        assert spending.part(0, 100) == 1 / 100
        assert spending.part(10**7, 5000) == 1 / 5000


def test_a_session_takes_falling_shares_and_a_direct_one_even_ones():
    cells = [np.arange(10) < cut for cut in range(1, 9)]
    found = {}
    for mechanism in ("auto", "direct"):
        session = session_of(curator(epsilon=1000.0, delta=1e-6), alpha=0.02, mechanism=mechanism)
        for age in cells:
            session.ask_marginal(conjunction(age=age))
        found[mechanism] = [plan["share"] for plan in session._buyer.journal.all() if plan["kind"] == "fresh"]
    first, *others = found["auto"]
    assert first > 40 * found["direct"][0]
    assert all(later <= first for later in others)
    assert max(found["direct"]) <= 1.01 * min(found["direct"])


@pytest.mark.parametrize("beta", [0.05, 1e-13, 1e-200])
def test_no_purchase_takes_more_of_a_small_beta_than_is_left(beta):
    """What was allowed for rounding was 1e-12, and ten times all of a β of 1e-13."""
    session = session_of(curator(epsilon=500.0, delta=1e-6), alpha=0.1, beta=beta, queries=10)
    session.ask_marginal(conjunction(age=np.arange(10) > 6))
    bought = session._buyer.plans.of([conjunction(age=np.arange(10) < 3)], "", asked=2).purchases[0]
    account = BetaAccount(beta)
    account.check(bought)
    account.left = bought.share
    account.check(bought)
    account.left = bought.share / 2
    with pytest.raises(InsufficientBudgetError, match="promised answers with all of its beta"):
        account.check(bought)


def test_a_session_whose_beta_is_too_small_says_what_an_answer_takes():
    session = session_of(curator(epsilon=500.0, delta=1e-6), alpha=0.1, beta=1e-300, queries=10)
    with pytest.raises(InsufficientBudgetError, match=f"costs beta {LEAST_SHARE:g} and .*e-30.* remains"):
        session.ask_marginal(conjunction(age=np.arange(10) > 6), uncertified=False)
    assert session.purchases == 0
