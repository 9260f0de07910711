"""A discrete Gaussian is a randomised rounding of normal noise, but for a factor next to 1.

Lemma. Let s be a whole number, v > u > 0, and a a whole number with P[a] ∝ exp(-(a-s)²/(2v)). Draw instead y
= s + N(0, v - u) and then a whole number with weights exp(-(a-y)²/(2u)), and call its law Q. Then P[a] ≤ (1 +
η)·Q[a] for every a, with η = 2e^{-w}/(1 - e^{-w}), w = 2π²u.

Proof. Let Θ_u(y) be the sum of exp(-(m-y)²/(2u)) over whole numbers m: by Poisson summation sqrt(2πu)·(1 + 2Σ
e^{-wj²} cos(2πjy)) over j ≥ 1, which is largest at y = 0 and there at most sqrt(2πu)(1 + η). Q[a] is the
integral of the density of y times exp(-(a-y)²/(2u))/Θ_u(y), hence at least
sqrt(u/v)·exp(-(a-s)²/(2v))/Θ_u(0), because normal laws convolve. P[a] = exp(-(a-s)²/(2v))/Θ_v(0), and Θ_v(0)
≥ sqrt(2πv). ∎

The second draw does not look at the rows: it is a function of the normal answer and of fresh coins. So any
event about answers to adaptive questions has at most (1 + η)^m times the probability that it has with normal
noise of variance v - u, where m counts the noisy numbers. At u = 4, η is below 10⁻³³, and `LOG_FACTOR` allows
for 10²³ numbers. What is proved for normal noise thus holds for the discrete Gaussian of a variance that is 4
steps larger: several numbers at once, as the cells of a table, and small variances too, which the bound of
`tilting.discrete_gaussian_log_bound` does not reach.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, pi

from understudy.rational import Number
from understudy.theory.arguments import above_zero

SMOOTHING = 4
"""u: by how much the normal noise has less variance than the discrete Gaussian that it is compared with."""


def smoothing_excess(u: Number) -> float:
    """η = 2e^{-w}/(1 - e^{-w}), w = 2π²u."""
    decay = exp(-2 * pi**2 * above_zero(u, "u"))
    return 2 * decay / (1 - decay)


LOG_FACTOR = 1e23 * smoothing_excess(SMOOTHING)
"""At least m·ln(1 + η) for up to 10²³ noisy numbers: it is added to ln(1/β)."""


def normal_rho(l2_squared: Fraction, variance: Fraction) -> Fraction | None:
    """The price Δ²/(2(v - 4)) of the normal noise that discrete Gaussian noise of variance v is compared with.

    None for v ≤ 4, where the lemma compares it with nothing.
    """
    spread = variance - SMOOTHING
    return l2_squared / (2 * spread) if spread > 0 else None
