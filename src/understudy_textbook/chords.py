"""Chords of the price of a call lie below the call of a larger variance: what the price of a selection rests on.

Let φ be the density and Q the upper tail of the normal law, and c(x) = E(Z - x)₊ = φ(x) - x·Q(x), so that c' = -Q
and c'' = φ. A call of variance s² is s·c(x/s).

**Theorem.** For every h > 0, every chord of c over an interval of length 2h lies below x ↦ s·c(x/s), for

    s = sqrt(2π)·(c(-h) + c(h))/2 = exp(-h²/2) + h·sqrt(π/2)·erf(h/sqrt(2)),

the value at which the chord over [-h, h] touches it at 0. (`gdp` uses it in units of the reserve r: x/sqrt(r).)

*Proof.* The line through the chord over [m - h, m + h] has the slope -P and the intercept α,

    P = (c(m-h) - c(m+h))/2h,     α = c(m-h) + P·(m-h) = c(m+h) + P·(m+h).

Put Q(ξ) = P. The tangent of s·c(x/s) of slope -P touches at x = sξ and has the intercept s·φ(ξ). As s·c(x/s) is
convex, the line lies below it if and only if α ≤ s·φ(ξ). So the theorem says that R(m) = α/φ(ξ) is largest at m =
0, where ξ = 0 and R = s. By symmetry (c(-x) = c(x) + x) let m ≥ 0. Let Z be normal given that it lies in the
interval, with mean μ and variance V, and δ = P[m-h < Z < m+h]/2h.

1. *Derivatives in m.* P' = -δ, and δ' = -μδ. The law of Z - m has a density in proportion to exp(-u²/2 - mu) on
   [-h, h], so that its mean μ - m falls at the rate V, and μ' = 1 - V. By parts, P = (Q(m-h) + Q(m+h))/2 + δ(μ -
   m), so that α' = -xδ with x = 2m - μ. From Q(ξ) = P, ξ' = δ/φ(ξ) =: y > 0. So R' = y·(Rξ - x), and x' = 1 + V.
   All of ξ, μ and x are 0 at m = 0, and 0 ≤ V ≤ 1, since δ, a convolution of log-concave functions, is log-concave
   and -(ln δ)'' = 1 - V.

2. *V falls.* V' = -(the third central moment of Z), as m tilts the law of Z - m by exp(-mu). Compare the
   density at μ + t and at μ - t, t > 0. Where both lie in the interval, their ratio is exp(-2μt) ≤ 1; beyond, only
   μ + t does, as μ ≤ m. So their difference is first negative, from some t₀ on positive; its integral against t is
   0, hence that against t³ = t·(t² - t₀²) + t·t₀² is at least 0.

3. *ξ is convex.* Let k = (ln y)' = ξy - μ, so that ξ'' = yk, k(0) = 0 and k' = y² + ξyk - (1 - V). Suppose k has
   a negative local minimum. There k' = 0, so y² + ξyk = 1 - V ≥ 0, that is ξ|k| ≤ y. And k'' = 3y²k + ξyk² + V' ≥
   0 (the term with k' is gone) with V' ≤ 0 needs ξ|k| ≥ 3y: a contradiction. So if k is negative anywhere, it does
   not rise afterwards, and stays below some -a < 0. Then y falls exponentially, ξ is bounded, and P = Q(ξ) does
   not tend to 0. But it does. So k ≥ 0.

4. *x/ξ falls.* Let z = xy - ξ(1 + V), which is 0 at m = 0. z' = xyk - ξV' ≥ 0 by steps 2 and 3 (x ≥ m ≥ 0). So z ≥
   0, that is dx/dξ = (1 + V)/y ≤ x/ξ. Both α and φ(ξ) tend to 0 as m grows, and dα = -x·φ(ξ)dξ, dφ(ξ) = -ξ·φ(ξ)dξ.
   So R is an average of x/ξ over all larger ξ, hence at most x/ξ: R' = y·(Rξ - x) ≤ 0. ∎
"""

from __future__ import annotations

from math import erf, exp, pi, sqrt


def largest_ratio(half: float) -> float:
    """s: the deviation of the least normal law whose calls lie above all chords of c over length 2·`half`.

    In floats, for comparison: `gdp.selection_cost` has its own digits.

    >>> round(largest_ratio(0.9) ** 2 - 1, 4)
    0.9036
    """
    return exp(-half * half / 2) + half * sqrt(pi / 2) * erf(half / sqrt(2))
