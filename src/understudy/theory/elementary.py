"""A certificate from textbook steps alone: Pinsker, the chain rule, Markov. It is shown beside Theorem T as a
check.

Let K_i be the divergence of the law of row i given all answers from its law D_i, and V the mean over rows of
the total variation between the two: no question is expected to differ from the population by more than V,
given the answers. V² ≤ the mean of K_i/2 (Jensen, Pinsker). E K_i is the information between row i and the
answers, at most that given all other rows (they are independent), and by the chain rule at most the sum K of
what each answer can tell of one row, a price that may be chosen adaptively under a cap. CVaR_β(V) ≤ sqrt(E
V²/β) ≤ sqrt(K/(2β)), and as in `cvar` all answers are within CVaR_β(largest noise) + CVaR_β(V) of the
population except with probability β. Prices, in counts:

    normal or discrete Gaussian noise on a count   1/(8σ²)            the variance of a value in [0, 1] is at
    most 1/4 the same on a table of C cells                 (1 - 1/C)/(2σ²)    the trace of a covariance of
    one cell in C any ε-DP answer                                ε²/8 cos² noise of half-width R ≥ 3
    π²/(8R²)           `cosine_divergence`

It grows like β^{-1/2} and is wider than Theorem T; it uses no part of that proof.
"""

from __future__ import annotations

from math import pi, sqrt

from understudy.rational import Number, probability
from understudy.theory.arguments import above_zero, require
from understudy.theory.cvar import cvar_noise_gauss
from understudy.theory.tilting import outward


def normal_price(sigma: Number) -> float:
    """1/(8σ²): what an answer with normal or discrete Gaussian noise tells of one row, σ in counts."""
    return outward(1 / (8 * above_zero(sigma, "sigma") ** 2))


def cosine_price(R: Number) -> float:
    """π²/(8R²): what an answer with cos² noise of half-width R ≥ 3 counts tells of one row."""
    reach = above_zero(R, "R")
    require(reach >= 3, f"the price of cos² noise needs a half-width of at least 3 counts, not {reach:g}")
    return outward(pi**2 / (8 * reach**2))


def elementary_V(information: Number, beta: Number) -> float:
    """sqrt(K/(2β)): the transfer term, for a cap K on the sum of prices."""
    return outward(sqrt(above_zero(information, "information") / (2 * float(probability(beta)))))


def elementary_normal_at(n: int, k: int, beta: float, sigma: float) -> float:
    """k answers with N(0, σ²) noise on scores, σ given."""
    return min(1.0, cvar_noise_gauss(sigma, k, beta) + elementary_V(k * normal_price(n * sigma), beta))


def elementary_cosine_at(n: int, k: int, beta: float, r: float) -> float:
    """k answers with cos² noise of half-width r on scores, r given; 1 below 3 counts."""
    return min(1.0, outward(r + elementary_V(k * cosine_price(n * r), beta))) if n * r >= 3 else 1.0
