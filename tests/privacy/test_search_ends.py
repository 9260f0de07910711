"""The searches between zCDP and (ε, δ) stop where further steps change nothing: caps in ledgers depend on them."""

from __future__ import annotations

from math import exp, log, sqrt

import pytest

from understudy.privacy import compose


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
