"""Tilting: how far adaptive questions can lead from the population, from the shape of the noise alone.

Setting. Rows S_1 … S_n are independent, S_i drawn from D_i; the analyst's coins are independent of them. In
round j the past fixes a question q_j with values in [0, 1] and a log-concave density f_j; what is released is
a_j = s_j + Z_j for the sum s_j of q_j over the rows and fresh noise Z_j of density f_j (in counts: a score is
a_j/n). Let g_j ≥ f_j be positive and log-concave, ψ_j a slope (subgradient) of -ln g_j, and B_j = ∫ g_j
exp(nαψ_j²/8) for an α > 1 fixed in advance. Every path keeps Σ ln B_j ≤ Λ: a filter, so that noise and number
of questions may depend on answers.

Theorem T (own; derived and re-derived by two readers, not peer reviewed). For every question q* that is a
function of what was told, P[q*(S) - q*(D) > t] ≤ exp(Λ - 2nt²(α-1)/α), with q(S) the mean over the rows and
q(D) its expectation.

Proof.
1. Let r_{i,0} = D_i, and from what was told, round by round: c_j the sum over i of the mean of q_j under
r_{i,j-1}; ψ_j the slope at a_j - c_j; r_{i,j} the law r_{i,j-1} tilted by exp(αψ_j q_j). All are functions of
the answers, c_j of those before a_j.
2. ln g_j is concave, so f_j(a_j - s_j) ≤ g_j(a_j - s_j) ≤ g_j(a_j - c_j) exp(ψ_j (s_j - c_j)). As s_j and c_j
are sums over rows, the density of all answers given the rows is at most Π_j g_j(a_j - c_j) · Π_i w_i(S_i),
where ln w_i is the sum over j of ψ_j (q_j - its mean under r_{i,j-1}).
3. The indicator of the event is at most exp(λ Σ_i (q*(S_i) - D_i q*) - λnt) for λ > 0. Given the answers, the
product over rows has independent factors, and Hölder's inequality with α and α' = α/(α-1) bounds each by (E
w_i^α)^{1/α} · (E exp(α'λ(q* - D_i q*)))^{1/α'}. By the choice of r_{i,j}, the first expectation telescopes
into a product over j of means, under r_{i,j-1}, of exp(αψ_j(q_j - its mean)), each at most exp(α²ψ_j²/8) by
Hoeffding's lemma, and the second is at most exp(α'²λ²/8) by the same.
4. So the probability is at most exp(nα'λ²/8 - λnt) · ∫ Π_j g_j(a_j - c_j) exp(nαψ_j²/8) da. Each factor
divided by B_j integrates to 1 over a_j, whatever the past; from the last answer to the first, the integral is
at most the largest product of B_j on a path, e^Λ. Take λ = 4t/α'. ∎

Certificate. If |Z_j| ≤ n·r_j for sure, then except with probability β all a_j/n are within r_j + t of q_j(D),
where t² = α(ln(1/β) + Λ)/(2n(α-1)). For the first answer that is further off, q_j or 1 - q_j is a function of
what was told that exceeds its expectation by more than t: one application covers both sides and all answers,
and no union is taken. For noise without a bound, add the probability that some |Z_j| exceeds n·r_j.

Realised sums. With α fixed in advance, t may be a function of what was told: where 2nt²(α-1)/α ≥ ln(1/β) +
Σ ln B_j on every path, with the sum over the answers of that path, P[q*(S) - q*(D) > t] ≤ β. For steps 2 and 3
hold answer by answer, with λ = 4t/α' a function of the answers; in step 4 the factor exp(Σ ln B_j - 2nt²/α') is at
most β before anything is integrated, and what is left integrates to at most 1. So the sum that was really spent
takes the place of Λ, no cap on it is needed for the bound, and in the certificate each answer has its own t, by
the sum up to and with that answer: the first failing one is decided when it is told. Likewise the noise of the
next answer, and whether there is one, may depend on all before.

Laws, in counts.
Normal: an answer of variance σ² is the mean of M answers of variance Mσ² to the same question, and a mean is a
function of them; as M grows their Σ ln B tends to nα/(8σ²), evenly over all paths with Σ 1/σ_j² ≤ μ². So
Λ = nαμ²/8, and the best α gives t = μ/4 + sqrt(μ²/16 + ln(1/β)/(2n)). Rounding is a function of the answer.
For realised sums the limit on each path is enough: t falls to it, and the events of exceeding t grow to that one.
Discrete Gaussian: sums stand for integrals. The sum of exp(-(a-c)²/(2v)) over whole numbers a is largest at
c = 0 and, divided by sqrt(v), falls with v (Poisson summation), so that ln B ≤ -ln(1 - nα/(4σ²))/2.
Laplace of scale b, and discrete Laplace: |ψ| ≤ 1/b, and the sum of exp(-|a-c|/b) is largest at c = 0, so that
ln B ≤ nα/(8b²). On a vector that a replaced row moves by Δ₁ in total, ψ·q has a range of Δ₁/b: nαΔ₁²/(8b²).
Normal on a vector of sums that a replaced row moves by at most Δ: as M grows the slopes become small, and the
logarithm of a mean of exp(αψ·(v - its mean)) becomes α²/2 times the variance of ψ·v; over ψ that is the trace of
the row's covariance, half of the mean squared distance of two rows, at most Δ²/2. So Λ = nαΔ²/(4σ²). In a table
of C cells each row counts in one, the trace is at most 1 - 1/C, and Λ = nα(1 - 1/C)/(2σ²).
In prices, ρ = Δ²/(2σ²) for a replaced row makes Λ = nαρ/2 (`transfer_order`). Where Δ bounds the length of what
one row adds, and not the distance of two rows, as under add-remove, the trace is at most Δ²: twice that.
Bounded noise is in `cosine_noise`.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log, log1p, nextafter, sqrt

import numpy as np

from understudy.rational import Number, probability
from understudy.theory.arguments import (
    Whole,
    above_zero,
    at_least_zero,
    log_of_inverse,
    require,
    whole,
)
from understudy.theory.minimise import best_from, best_on_line
from understudy.theory.normal_noise import TWO_READERS, NoiseCertificate, own_note, quantile
from understudy.theory.planned import VALIDITY, PlanInputs, Planned, Width

_OUTWARD = 1 + 2.0**-40  # some thousand times the rounding of the few operations of a width


def outward(value: float) -> float:
    """A float above the exact value of a positive expression of a few dozen operations, by 10⁻¹² of it."""
    return nextafter(value * _OUTWARD, inf)


# ---- the theorem


def tilting_t(n: Whole, beta: Number, alpha: Number, log_bound: Number) -> float:
    """sqrt(α(ln(1/β) + Λ)/(2n(α-1))): the t at which `tilting_failure` is β."""
    rows, order = whole(n, "n"), above_one(alpha)
    total = log_of_inverse(beta) + at_least_zero(log_bound, "log_bound")
    return outward(sqrt(order * total / (2 * rows * (order - 1))))


def transfer_order(n: Whole, beta: Number, rho: Number) -> float:
    """1 + sqrt(1 + 2 ln(1/β)/(nρ)): the α at which t is least where prices add up to ρ, Λ = nαρ/2.

    There t is sqrt(ρ)/2 + sqrt(ρ/4 + ln(1/β)/(2n)). Fixed in advance it certifies every other sum of prices too,
    by the realised sum: t² = α(ln(1/β) + nαρ/2)/(2n(α-1)).

    >>> order = transfer_order(10**5, 0.05, 0.02)
    >>> round(tilting_t(10**5, 0.05, order, transfer_log_bound(10**5, order, 0.02)), 4)
    0.1415
    """
    return 1 + sqrt(1 + 2 * log_of_inverse(beta) / (whole(n, "n") * above_zero(rho, "rho")))


def transfer_log_bound(n: Whole, alpha: Number, rho: Number) -> float:
    """nαρ/2: Λ of noise on sums over rows whose prices for a replaced row add up to ρ, each on its own.

    It is the sum of prices that enters. A joint price counts answers about different rows once; here they add up,
    because after an answer the tilted law of a row may lie where the next question asks.
    """
    return outward(whole(n, "n") * above_one(alpha) * at_least_zero(rho, "rho") / 2)


# ---- Λ for the laws of noise, in counts


def discrete_gaussian_log_bound(n: Whole, alpha: Number, sigma: Number, k: Whole = 1) -> float:
    """-k·ln(1 - nα/(4σ²))/2: k answers with discrete Gaussian noise; infinite where nα ≥ 4σ²."""
    share = whole(n, "n") * above_one(alpha) / (4 * above_zero(sigma, "sigma") ** 2)
    return outward(-whole(k, "k") * log1p(-outward(share)) / 2) if outward(share) < 1 else inf


# ---- normal noise


def tilting_gauss_t(mu: Number, n: Whole, beta: Number) -> float:
    """μ/4 + sqrt(μ²/16 + ln(1/β)/(2n)): normal noise at the best α, for Σ 1/σ_j² ≤ μ² in counts.

    >>> round(tilting_gauss_t(0.08, 10**5, 0.05), 6)
    0.040371
    """
    scale, rows = above_zero(mu, "mu"), whole(n, "n")
    return outward(scale / 4 + sqrt(scale**2 / 16 + log_of_inverse(beta) / (2 * rows)))


def tilting_width(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, σ): k answers with N(0, σ²) noise on scores, at the best σ and split of β."""
    width, sigma, _ = tilting_split(n, k, beta)
    return width, sigma


def tilting_split(n: Whole, k: Whole, beta: Number) -> tuple[float, float, float]:
    """(width, σ, noise's part of β) at the best σ and split; the width is a function of k and β, over sqrt(n)."""
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))
    sigma, share = _best_normal(queries, failure)
    sigma /= sqrt(rows)
    return _at_split(rows, queries, failure, sigma, share), sigma, share


def tilting_width_at(n: int, k: int, beta: float, sigma: float) -> float:
    """The width at a given σ and the best split of β."""
    mu = sqrt(k) / (n * sigma)

    def width(logit: float) -> float:
        share = beta / (1 + exp(-logit))
        return sigma * quantile(k, share) + tilting_gauss_t(mu, n, beta - share) if share < beta else inf

    return min(1.0, outward(best_on_line(width, np.linspace(-12, 20, 65).tolist())[0]))


def _at_split(n: int, k: int, beta: float, sigma: float, share: float) -> float:
    t = tilting_gauss_t(sqrt(k) / (n * sigma), n, beta - share)
    return min(1.0, outward(sigma * quantile(k, share) + t))


@lru_cache(maxsize=1024)
def _best_normal(k: int, beta: float) -> tuple[float, float]:
    """σ·sqrt(n) and the noise's part of β at which the width times sqrt(n) is least."""

    def width(at: tuple[float, ...]) -> float:
        sigma, share = exp(at[0]), beta / (1 + exp(-at[1]))
        if not 0 < share < beta:
            return inf
        mu = sqrt(k) / sigma
        return sigma * quantile(k, share) + mu / 4 + sqrt(mu**2 / 16 + log(1 / (beta - share)) / 2)

    centre = log(k**0.25 / sqrt(8))
    starts = [(centre + step, logit) for step in (-0.7, 0.0, 0.7) for logit in (0.0, 2.0, 4.0, 7.0)]
    place = best_from(width, starts)[1]
    # told in few digits, so that another machine's search fixes the same noise in advance
    return float(f"{exp(place[0]):.5g}"), min(float(f"{beta / (1 + exp(-place[1])):.4g}"), 0.9999 * beta)


# ---- noise that is discrete, or Laplace


def tilting_width_discrete(n: Whole, k: Whole, beta: Number) -> tuple[float, float]:
    """(width, σ) with discrete Gaussian noise on counts, the α, σ and split of β chosen best.

    P[X ≥ m] is at most P[N ≥ m - 1] of the normal law for m ≥ 1 [CKS20]: the largest noise is at most a count
    more.
    """
    rows, queries, failure = whole(n, "n"), whole(k, "k"), float(probability(beta))

    def width(at: tuple[float, ...]) -> float:
        sigma, share, alpha = exp(at[0]), failure / (1 + exp(-at[1])), 1 + exp(at[2])
        if not (0 < share < failure and rows * sigma >= 1):
            return inf
        bound = discrete_gaussian_log_bound(rows, alpha, rows * sigma, queries)
        if bound == inf:
            return inf
        return sigma * quantile(queries, share) + 1 / rows + tilting_t(rows, failure - share, alpha, bound)

    centre = log(_best_normal(queries, failure)[0] / sqrt(rows))
    starts = [(centre + s, x, a) for s in (0.0, 0.5, 1.0, 2.0) for x in (2.0, 4.0) for a in (-1.0, 0.0, 1.0)]
    found, place = best_from(width, starts)
    return (min(1.0, outward(found)), exp(place[0])) if found < inf else (1.0, exp(centre))


def above_one(alpha: Number) -> float:
    """`alpha` as a float, refused unless it is above 1."""
    order = above_zero(alpha, "alpha")
    require(order > 1, f"alpha must be above 1, not {alpha!r}")
    return order


def _planned_discrete(s: PlanInputs) -> Width:
    width, sigma = tilting_width_discrete(s.rows, s.queries, s.beta)
    return width, {"sigma": sigma}


TILTING = NoiseCertificate(
    name="tilting",
    theorem="Theorem T (tilting)",
    best=tilting_width,
    at=tilting_width_at,
    plan_theorem="Theorem T (tilting), Gaussian noise",
    own=True,
    readers=TWO_READERS,
)

TILTING_DISCRETE = Planned(
    name="tilting-discrete",
    promises=VALIDITY,
    theorem="Theorem T (tilting), discrete Gaussian noise",
    width=_planned_discrete,
    note=f"private as well: the noise is the one that protects people; {own_note(TWO_READERS)}",
)
