"""Exact bounds on probabilities from counts, and what two of them say about epsilon."""

from __future__ import annotations

from math import inf, log

from scipy.stats import beta

from understudy.errors import ParameterError


def at_least(hits: int, trials: int, error: float) -> float:
    """A lower bound on a probability that is too high with chance at most `error` (Clopper and Pearson, 1934)."""
    _check(hits, trials, error)
    return 0.0 if hits == 0 else float(beta.ppf(error, hits, trials - hits + 1))


def at_most(hits: int, trials: int, error: float) -> float:
    """An upper bound on a probability that is too low with chance at most `error` (Clopper and Pearson, 1934)."""
    _check(hits, trials, error)
    return 1.0 if hits == trials else float(beta.isf(error, hits + 1, trials - hits))


def certified_epsilon(hits: tuple[int, int], trials: tuple[int, int], *, delta: float, error: float) -> float:
    """The largest ε such that no (ε', δ)-DP mechanism with ε' < ε is compatible with the counts at 1 - `error`.

    (ε, δ)-DP bounds P[E] ≤ e^ε·P'[E] + δ for the event E that was counted. Each of the two probabilities gets half
    of the error; 0 where nothing is shown.
    """
    low = at_least(hits[0], trials[0], error / 2) - delta
    high = at_most(hits[1], trials[1], error / 2)
    return max(0.0, log(low / high)) if low > 0 else 0.0


def estimated_epsilon(hits: tuple[int, int], trials: tuple[int, int], *, delta: float) -> float:
    """What the counts themselves say, without any allowance for luck; infinite where one side never had it."""
    first, second = hits[0] / trials[0] - delta, hits[1] / trials[1]
    if first <= 0:
        return 0.0
    return inf if second == 0 else max(0.0, log(first / second))


def _check(hits: int, trials: int, error: float) -> None:
    if not 0 <= hits <= trials or trials < 1 or not 0 < error < 1:
        raise ParameterError("a bound needs 0 ≤ hits ≤ trials, trials ≥ 1 and 0 < error < 1")
