"""Bounded noise for a holdout: density cos²(πz/2R)/R on [-R, R], and what Theorem T of `tilting` certifies
with it.

The error against the sample is at most R counts for sure, so no part of β pays for noise, and nothing is lost
to the largest of k tails. -ln of the density has the slope 2θ tan(θz), θ = π/2R, which is infinite at the
edge: the envelope g of Theorem T is the density up to z₀ and from there on the exponential that is tangent to
it. B is least at the z₀ where the slope is 2/sqrt(nα). With R = nr, y = π²α/(8nr²) and s = tan(θz),

    B(y) = (4/π)∫ from 0 to 1/sqrt(2y) of e^{ys²}/(1+s²)² ds + (2y/(1+2y))·sqrt(8ey)/π,        Λ = k ln B(y),

and all k answers are within r + t of the population except with probability β, where t² = α(ln(1/β) +
Λ)/(2n(α-1)). r and α are fixed in advance, with k and β. At the best of them the width is a function of k and
β, over sqrt(n).
"""

from __future__ import annotations

from functools import lru_cache
from math import asinh, atan, cos, e, exp, inf, log, log1p, pi, sin, sqrt
from typing import NamedTuple

import numpy as np

from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, require, whole
from understudy.theory.minimise import best_from
from understudy.theory.normal_noise import TWO_READERS, own_note
from understudy.theory.planned import VALIDITY, PlanInputs, Planned, Width
from understudy.theory.tilting import outward, tilting_t

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)

_QUADRATURE = 1e-11
"""More than the relative error of the quadrature of B - 1 for y between 10⁻⁹ and 10⁶; it is added."""


class BoundedWidth(NamedTuple):
    """All answers are within `width` = `r` + t of the population; `alpha` is the order of Theorem T behind it."""

    width: float
    r: float
    t: float
    alpha: float


def cosine_excess(y: Number) -> float:
    """B(y) - 1, never below the exact value; for small y it is close to y.

    The part up to z₀ is integrated over w, s = sinh w, less the mass of the density; what the tangent adds
    beyond z₀ is known in closed form.
    """
    value = above_zero(y, "y")
    require(1e-9 <= value <= 1e6, f"y must be between 1e-9 and 1e6, not {value:g}")
    return _excess(value)


def _excess(value: float) -> float:
    half = asinh(1 / sqrt(2 * value)) / 2
    w = half * (1 + _NODES)
    core = 4 / pi * half * float(_WEIGHTS @ (np.expm1(value * np.sinh(w) ** 2) / np.cosh(w) ** 3))
    v0 = atan(sqrt(2 * value))  # π/2 - θz₀
    tail = 2 * value / (1 + 2 * value) * sqrt(8 * e * value) / pi
    beyond = 2 / pi * (v0 - sin(v0) * cos(v0))  # the mass of the density beyond z₀
    return (core + tail - beyond) * (1 + _QUADRATURE)


def cosine_log_bound(n: Whole, alpha: Number, r: Number, k: Whole = 1) -> float:
    """k ln B(y) with y = π²α/(8nr²): k answers with cos² noise of half-width r on scores; infinite beyond 10⁶."""
    y = pi**2 * above_zero(alpha, "alpha") / (8 * whole(n, "n") * above_zero(r, "r") ** 2)
    return outward(whole(k, "k") * log1p(cosine_excess(max(y, 1e-9)))) if y <= 1e6 else inf


def cosine_width(n: Whole, k: Whole, beta: Number) -> BoundedWidth:
    """The narrowest certificate for k answers with cos² noise on n rows.

    >>> found = cosine_width(10**5, 10**4, 0.05)
    >>> round(found.width, 4), round(found.r, 4)
    (0.0801, 0.0397)
    """
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))
    unit = _unit(queries, failure)
    r = unit.r / sqrt(rows)
    t = tilting_t(rows, failure, unit.alpha, cosine_log_bound(rows, unit.alpha, r, queries))
    return BoundedWidth(min(1.0, outward(r + t)), r, t, unit.alpha)


@lru_cache(maxsize=4096)
def _unit(k: int, beta: float) -> BoundedWidth:
    """Everything times sqrt(n): the case n = 1, where no width need be below 1."""
    centre, log_beta = log(k**0.25 * sqrt(pi / 2)), log(beta)

    def width(at: tuple[float, ...]) -> float:
        r, alpha = exp(at[0]), 1 + exp(at[1])
        y = pi**2 * alpha / (8 * r * r)
        if not 1e-9 <= y <= 1e6:
            return inf
        return r + sqrt(alpha * (k * log1p(_excess(y)) - log_beta) / (2 * (alpha - 1)))

    starts = [(centre + step, excess) for step in (-0.3, 0.0) for excess in (0.0, 1.0)]
    found, (log_r, excess) = best_from(width, starts)
    # told in few digits, so that another machine's search fixes the same noise in advance
    r, alpha = float(f"{exp(log_r):.5g}"), float(f"{1 + exp(excess):.5g}")
    return BoundedWidth(found, r, found - r, alpha)


def _planned(s: PlanInputs) -> Width:
    found = cosine_width(s.rows, s.queries, s.beta)
    return found.width, {"r": found.r, "alpha": found.alpha}


BOUNDED_NOISE = Planned(
    name="bounded",
    promises=VALIDITY,
    theorem="Theorem T (tilting), bounded noise",
    width=_planned,
    note=own_note(TWO_READERS),
)
