"""A part of the whole in percent: never all of it for less, never nothing for more, and near what it is."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.cli.prices import left_told, price_told
from understudy.client.refusals import waiting
from understudy.client.told import BudgetPart, ServerQuote
from understudy.curator.quote import Quote
from understudy.errors import RefusedAfterChargeError
from understudy.ledger.statement import statement
from understudy.percent import percent_of
from understudy.privacy.budget import Budget
from understudy.privacy.cost import ZCDP, PureDP
from understudy.privacy.limits import Limits
from understudy.server.mcp import tools
from understudy.server.pages import words
from understudy.server.pg.notices import explained

PARTS = st.floats(0, 1, exclude_min=True, exclude_max=True) | st.builds(
    lambda digits, power: digits * 10.0**-power, st.floats(0.1, 0.999), st.integers(0, 12)
)
"""Parts between nothing and all, small ones as often as large ones."""

NEAR_ALL = st.builds(lambda rest: 1 - rest, st.floats(1e-15, 0.02))

AMOUNTS = st.floats(0, 1e300)

TWO_DIGITS = 0.05 + 1e-6
"""How far two digits that count can be off, as a part of what they tell."""


def told(words: str) -> tuple[float, float]:
    """The parts of the whole that may be told in these words."""
    words = words.replace("a millionth", "1 millionths").replace(",", "")
    found = re.fullmatch(r"(less than |more than |)([0-9.]+)(%| millionths)", words)
    assert found is not None, words
    bound, digits, unit = found.groups()
    number = float(digits) * (0.01 if unit == "%" else 1e-6)
    if bound:
        return (0.0, number) if bound == "less than " else (number, float("inf"))
    step = (0.01 if unit == "%" else 1e-6) * 0.1 ** len(digits.partition(".")[2])
    return number - step, number + step


def place(words: str) -> float:
    """Where words stand among those of all parts, from the least to the most."""
    low, high = told(words)
    if words.startswith("less"):
        return high * (1 - 1e-9)
    return low * (1 + 1e-9) if words.startswith("more") else (low + high) / 2


@given(PARTS | NEAR_ALL)
@example(0.9999999999999999)
@example(0.9999)
@example(0.99995)
@example(0.9949)
@example(0.995)
@example(5e-324)
def test_a_part_is_neither_all_nor_nothing(share):
    shown = percent_of(share)
    assert shown not in ("100%", "0%")
    low, high = told(shown)
    assert low <= share * (1 + 1e-9)
    assert share <= high * (1 + 1e-9)
    if not shown.startswith(("less", "more")):
        middle = (low + high) / 2
        assert 0 < middle < 1
        assert abs(middle - share) <= TWO_DIGITS * share
        assert abs(middle - share) <= 0.5 * (1 - share) or share < 0.99


@given(AMOUNTS, AMOUNTS)
@example(0.0, 0.0)
@example(1.0, 0.0)
@example(1e300, 5e-324)
@example(1.0049, 1.0)
def test_all_is_told_of_nothing_else_and_more_than_all_of_more(amount, whole):
    shown = percent_of(amount, whole)
    assert (shown == "0%") == (amount == 0)
    assert (shown == "100%") == (amount == whole and amount > 0)
    low, high = told(shown)
    assert (high > 1) == ((amount >= whole and amount > 0) or shown == "more than 99.99%")
    if amount > whole:
        assert shown == "more than 100%" or low >= 1
    assert not re.search(r"e[+-]|inf|nan", shown)


@given(PARTS | NEAR_ALL | st.floats(1, 200), PARTS | NEAR_ALL | st.floats(1, 200))
def test_more_is_never_told_as_less(one, other):
    low, high = sorted((one, other))
    assert place(percent_of(low)) <= place(percent_of(high))


@given(st.integers(1, 10**40), st.integers(0, 10**40), st.integers(1, 10**20))
@example(10**30, 10**30 - 1, 1)
@example(10**30, 10**30 + 1, 1)
@example(10**30, 1, 1)
def test_whole_numbers_of_any_size_are_compared_exactly(whole, amount, times):
    shown = percent_of(amount, whole)
    assert (shown == "100%") == (amount == whole)
    assert (shown == "0%") == (amount == 0)
    if amount > whole:
        assert told(shown)[1] > 1
    assert percent_of(times * amount, times * whole) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (-0.1, "0%"), (0, "0%"), (4e-7, "less than a millionth"), (1e-6, "a millionth"),
        (1.4e-6, "1.4 millionths"),
        (0.0000999, "100 millionths"), (0.0001, "0.01%"), (0.00996, "1%"), (0.0996, "10%"), (0.5605, "56%"),
        (0.99, "99%"), (0.9904, "99%"), (0.9949, "99.5%"), (0.9994, "99.94%"), (0.9999, "99.99%"),
        (0.999901, "more than 99.99%"), (1.0049, "more than 100%"), (1.006, "101%"), (20, "2,000%"),
        (100, "10,000%"), (101, "more than 10,000%"), (float("inf"), "more than 10,000%"),
    ],
)  # fmt: skip
def test_words_at_the_edges(share, shown):
    assert percent_of(share) == shown


def test_every_place_says_less_than_all_where_it_is():
    share, shown = 0.9996, "99.96%"
    refused = RefusedAfterChargeError(
        "too few rows", remedy="ask", charged=1, share=share, remaining=1, currency="rho"
    )
    assert f"({shown} of the budget)" in str(refused)
    budget = Budget.of(1)
    cost = PureDP(round(share * budget.cap.units))
    assert price_told(cost, budget).startswith(f"{shown} of the budget")
    assert left_told(cost, budget).startswith(f"{shown} of the budget left")
    assert words.part(share) == words.part(2 * share, 2) == shown
    line = explained({"free": False, "cost": {"rho": 1}, "share": share, "affordable": True, "beta": 0,
                      "needs_approval": False}, "in the session")[0]  # fmt: skip
    assert line == f"Question (at most rho 1, {shown} of the budget)"


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (2.6e-6, "2.6 millionths"),
        (3e-7, "less than a millionth"),
        (0.99996, "more than 99.99%"),
        (0.9996, "99.96%"),
    ],
)
def test_clients_agents_limits_and_pages_tell_parts_so(share, shown):
    budget = Budget.of(1)
    cost = PureDP(round(share * budget.cap.units))
    asked = ServerQuote(
        "count", cost, share, 10, 0.05, is_payable=True, more_like_this=1, needs_approval=False
    )
    assert repr(asked).startswith(f"ServerQuote(at most {shown} of the budget")
    assert str(BudgetPart(0.1, share)) == shown
    assert f"would take {shown} of the whole" in str(waiting({"id": "a", "approval": {"share": share}}))
    assert f">{shown}<" in Quote(cost, 10, 0.05, share, 0.1, "laplace")._repr_html_()
    assert tools._reads({"share": share, "source": "uncertified"}).endswith(f"It cost {shown} of the budget.")
    approval = {"share": share, "expires": "2026-01-08T00:00:00Z"}
    assert f"which costs {shown} of the budget." in tools._waits({"approval": approval, "id": "a"})
    limits = Limits(analyst=Fraction(cost.units, budget.cap.units))
    assert limits.described(budget.cap)[0].endswith(f", {shown} of the budget")
    entry = {"number": 1, "kind": "debit", "cost": cost.units, "total": cost.units, "at": "2026-01-08T00:00:00Z",
             "analyst": "ada", "request": "r", "question": "count", "hash": "h"}  # fmt: skip
    page = statement("people", budget, [entry], None, place="x")
    assert page.count(f">{shown}<") >= 3  # what is spent, that ada spent it, and the entry's price


def test_a_limit_of_a_budget_that_rounds_to_zero_is_more_than_all_of_it():
    cap = Budget.of(1e-8, 1e-9).cap
    everybody, named = Limits(analyst=Fraction(1, 2)), Limits(analysts={"*": Fraction(0)})
    assert everybody.described(cap) == ("each analyst may take 0.5 (rho), more than 100% of the budget",)
    assert named.described(cap) == ("each analyst who is not named may take 0 (rho), 0% of the budget",)


def test_nothing_is_left_of_a_budget_that_rounds_to_zero():
    budget = Budget.of(1e-8, 1e-9)
    assert budget.cap == ZCDP(0)
    assert left_told(ZCDP(0), budget).startswith("0% of the budget left")
    assert price_told(ZCDP(1), budget).startswith("more than 100% of the budget")
