"""How likely noise is to lift a key over its threshold: the two tails that the δ of key selection is made of.

Both are worked out in floating point, with relative errors below 10⁻¹², and a recorded δ has to be above them by
the relative `ROOM`, which is a hundred times that.
"""

from __future__ import annotations

from fractions import Fraction
from math import erfc, exp, expm1, sqrt

ROOM = 1e-10
"""The part by which a recorded δ exceeds the tail that it stands for, at least."""


def truncated_geometric_end(epsilon: Fraction, reach: int) -> float:
    """P[X = k] of noise X on -k, …, k with P[x] ∝ q^|x|, q = exp(-ε), k = `reach`.

    The weights add up to 1 + 2(q + … + q^k) = ((1 - q) + 2q(1 - q^k))/(1 - q).

    >>> truncated_geometric_end(Fraction(1), 0)
    1.0
    """
    rate = float(epsilon)
    one_less = -expm1(-rate)
    weights = one_less + 2 * exp(-rate) * -expm1(-rate * reach)
    return exp(-rate * reach) * one_less / weights


def gaussian_tail(variance: Fraction, reach: int) -> float:
    """At least P[X ≥ t] of discrete Gaussian noise X, t = `reach` ≥ 1.

    The weights exp(-x²/2σ²) from t on add up to no more than their integral from t - 1 on, and all of them to no
    less than σ√(2π), by Poisson's summation formula: what is left is the tail of the normal law at (t - 1)/σ.
    """
    return erfc((reach - 1) / sqrt(2 * variance)) / 2


def covers(delta: Fraction, tail: float, keys: int) -> bool:
    """Whether a recorded δ is enough for so many keys, each of which is lifted with the probability `tail`."""
    return float(delta) >= keys * tail * (1 + ROOM)
