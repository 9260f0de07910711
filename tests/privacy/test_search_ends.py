"""Searches between zCDP or GDP and (ε, δ) stop where more steps change nothing: caps in ledgers depend on them."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt

import pytest

from understudy.privacy import compose, gdp


def whole_search(rho: float, epsilon: float) -> float:
    """`zcdp_delta` with all of its 120 steps, as version 0.1 made them."""
    centre = log(max((epsilon + rho) / (2 * rho) - 1, 1e-8) + 1e-8)
    low, high = min(centre, 0.0) - 12, max(centre, 0.0) + 12
    ratio = (sqrt(5) - 1) / 2
    for _ in range(120):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if compose._log_delta(rho, epsilon, exp(left)) < compose._log_delta(rho, epsilon, exp(right)):
            high = right
        else:
            low = left
    delta = exp(min(0.0, compose._log_delta(rho, epsilon, exp((low + high) / 2)))) * (1 + compose.SLACK)
    return min(1.0, max(delta, compose.SMALLEST))


CASES = [(1e-6, 1e-3), (0.015, 1.0), (0.5, 4.0), (3.0, 0.1), (1e-9, 30.0)]


@pytest.mark.parametrize(("rho", "epsilon"), CASES)
def test_a_search_that_ends_early_finds_the_same_delta(rho: float, epsilon: float) -> None:
    assert compose.zcdp_delta(rho, epsilon) == whole_search(rho, epsilon)


def test_a_search_that_ends_early_finds_the_same_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    for epsilon, delta in ((1.0, 1e-9), (0.1, 1e-6)):
        target, low, high = delta, 0.0, epsilon
        while compose.zcdp_delta(high, epsilon) <= target:
            low, high = high, 2 * high
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if compose.zcdp_delta(middle, epsilon) <= target else (low, middle)
        assert compose.zcdp_rho(epsilon, delta) == low
    calls: list[float] = []
    found = compose.zcdp_delta
    monkeypatch.setattr(
        compose, "zcdp_delta", lambda rho, epsilon: (calls.append(rho), found(rho, epsilon))[1]
    )
    compose.zcdp_rho(1.0, 1e-9)
    assert len(calls) < 80  # a float has 53 bits


GDP_CASES = [("1/1000", "1e-9"), ("1/10", "1e-30"), ("1", "1e-6"), ("20", "1/1000"), ("1000", "1e-6")]


@pytest.mark.parametrize(("epsilon", "delta"), GDP_CASES)
def test_a_cap_on_mu_is_the_last_step_that_keeps_delta(epsilon: str, delta: str) -> None:
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    steps = gdp.gdp_cap(epsilon, delta) / gdp.STEP
    assert steps.denominator == 1
    assert gdp._over(int(steps), epsilon, delta) <= 0 < gdp._over(int(steps) + 1, epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), GDP_CASES[:4])
def test_a_straight_line_finds_the_cap_that_halving_finds(epsilon: str, delta: str, monkeypatch) -> None:
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    over, asked = gdp._over, []
    monkeypatch.setattr(gdp, "_over", lambda *given: (asked.append(given), over(*given))[1])
    found = gdp._cap.__wrapped__(epsilon, delta)
    soon = len(asked)
    monkeypatch.setattr(gdp, "STRAIGHT", 0)
    assert gdp._cap.__wrapped__(epsilon, delta) == found
    assert soon <= 6
    assert soon <= len(asked) - soon


def test_a_search_that_starts_from_nothing_ends(monkeypatch) -> None:
    """Where floats tell nothing of the cap, its ends are far apart and δ is no line between them."""
    found = gdp.gdp_cap(Fraction(1), Fraction(1, 10**6))
    monkeypatch.setattr(gdp, "_rough_delta", lambda mu_squared, epsilon: float(mu_squared > 100))
    assert gdp._cap.__wrapped__(Fraction(1), Fraction(1, 10**6)) == found


@pytest.mark.parametrize("epsilon", [1, 699, 701, 1000])
def test_a_spent_cap_is_told_as_the_epsilon_of_its_budget(epsilon: int) -> None:
    """From ε = 700 on the second tail is a product of a factor that overflows and one that underflows."""
    cap = gdp.gdp_cap(Fraction(epsilon), Fraction(1, 10**6))
    assert gdp.gdp_epsilon(cap, Fraction(1, 10**6)) == pytest.approx(epsilon, rel=1e-9)
