"""DualQuery: multiplicative weights over queries, one record per round found by any optimiser. [GGHRW14]

Each round draws s queries from the weights and finds a record on which they are large; only the draws look at the
data. The accuracy parameters are quoted from the paper; the pure price is derived in `dual_query_eps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt

from understudy.rational import Number
from understudy.theory.arguments import (
    Whole,
    above_zero,
    exact_above_zero,
    log_of_inverse,
    require,
    whole,
)
from understudy.theory.logarithm import floor_log_over


@dataclass(frozen=True, slots=True)
class DualQueryParams:
    """T rounds, step η, s draws in each round."""

    T: int
    eta: float
    s: int


def dual_query_params(Q: Whole, X: Whole, alpha: Number, beta: Number) -> DualQueryParams:
    """T = ⌈16 ln|Q|/α²⌉, η = α/4, s = ⌈48 ln(2|X|T/β)/α²⌉: all queries within α, except with probability β.

    For 0 < α ≤ 1, and a class that holds the complement 1 - q of each of its queries. [GGHRW14]
    """
    margin = exact_above_zero(alpha, "alpha")
    require(margin <= 1, f"alpha must be at most 1, not {alpha}")
    rounds = floor_log_over(whole(Q, "Q", at_least=2), margin**2 / 16) + 1
    draws = 48 * (log(2 * whole(X, "X") * rounds) + log_of_inverse(beta)) / float(margin) ** 2
    return DualQueryParams(rounds, float(margin / 4), ceil(draws * (1 + 1e-12)))


def dual_query_eps(n: Whole, params: DualQueryParams) -> float:
    """ηT(T-1)s/n, for pure privacy: the sum over all draws.

    In round t one of n rows moves each log-weight by η(t-1)/n at most, so that a draw is 2η(t-1)/n-DP. [GGHRW14]
    """
    rounds, draws = whole(params.T, "T"), whole(params.s, "s")
    return float(
        exact_above_zero(params.eta, "eta") * rounds * (rounds - 1) * draws / Fraction(whole(n, "n"))
    )


def dual_query_rho(n: Whole, params: DualQueryParams) -> float:
    """Σ_t s(2η(t-1)/n)²/8, the zCDP price: each draw is an exponential mechanism, charged ε²/8.

    [CesarRogers21]
    """
    rounds, draws = whole(params.T, "T"), whole(params.s, "s")
    squares = (rounds - 1) * rounds * (2 * rounds - 1) // 6
    step = 2 * exact_above_zero(params.eta, "eta") / whole(n, "n")
    return float(draws * step**2 * squares / 8)


def dual_query_alpha(n: Whole, Q: Whole, X: Whole, eps: Number, beta: Number) -> float:
    """The least α ≤ 1 whose parameters cost at most ε on n rows, by bisection; refused if there is none."""
    price = above_zero(eps, "eps")

    def affordable(alpha: float) -> bool:
        return dual_query_eps(n, dual_query_params(Q, X, alpha, beta)) <= price

    require(affordable(1.0), "no alpha up to 1 is affordable; more rows or a larger eps help")
    low, high = 0.0, 1.0
    while high - low > 1e-10 * high:
        middle = sqrt(low * high) if low else high / 2
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return high
