"""From what a mechanism does to what its answers are worth: each theorem as a certificate.

What a mechanism does is its noise and privacy curve at the cap, or the tree of its transcripts, or the rejections
that it has met. `gaussian` takes any noise; without one, the theorem's own best is used (`best_sigma`).
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log, sqrt

import numpy as np

from understudy.errors import ParameterError
from understudy.rational import Number, probability
from understudy.theory.arguments import Whole, above_zero, whole
from understudy.theory.certificates import NOISE_CERTIFICATES
from understudy.theory.cosine_noise import cosine_log_bound, cosine_width
from understudy.theory.cvar import Curve, cvar_V
from understudy.theory.elementary import elementary_cosine_at, elementary_normal_at
from understudy.theory.guess_and_check import gnc_failures_width, gnc_width
from understudy.theory.ladder import ladder_width
from understudy.theory.minimise import best_on_line
from understudy.theory.normal_noise import NoiseCertificate
from understudy.theory.tilting import TILTING, outward, tilting_t, tilting_width_discrete
from understudy.theory.transfer import pure_dp_width
from understudy.theory.universe import universe_width
from understudy.validity.certificate import (
    ADVANCE,
    BEST,
    BOUNDED,
    BOUNDED_NOISE,
    CAP,
    ELSEWHERE,
    INDEPENDENT,
    ROUNDED,
    SEALED,
    TWICE_READ,
    UNREVIEWED,
    Certificate,
)

_ALWAYS = (INDEPENDENT, SEALED, ADVANCE, BOUNDED)


def gaussian(
    rows: Whole, queries: Whole, beta: Number, *, sigma: Number | None = None, theorem: str = "tilting"
) -> Certificate:
    """Means with normal noise of standard deviation `sigma`; the theorem's best where none is given.

    Beside Theorem T stands what textbook steps give for the same noise.
    """
    certificate = noise_certificate(theorem)
    n, k, failure = whole(rows, "rows"), whole(queries, "queries"), float(probability(beta))
    if sigma is None:
        width, used = certificate.best(n, k, failure)
    else:
        used = above_zero(sigma, "sigma")
        width = certificate.at(n, k, failure, used)
    if certificate is TILTING and used is not None:
        assumed = (*_ALWAYS, ROUNDED, CAP, TWICE_READ)
        check = _elementary(elementary_normal_at(n, k, failure, used), failure, assumed[:-1])
        return Certificate(width, failure, certificate.theorem, assumed, check)
    extra = (UNREVIEWED,) if certificate.own else ()
    return Certificate(width, failure, certificate.theorem, (*_ALWAYS, ROUNDED, CAP, *extra))


def bounded(
    rows: Whole, queries: Whole, beta: Number, *, r: Number | None = None, alpha: Number | None = None
) -> Certificate:
    """Means with cos² noise of half-width `r`, by Theorem T of order `alpha`; the best of both where not given."""
    n, k, failure = whole(rows, "rows"), whole(queries, "queries"), float(probability(beta))
    best = cosine_width(n, k, failure)
    reach = best.r if r is None else above_zero(r, "r")
    order = best.alpha if alpha is None else above_zero(alpha, "alpha")
    bound = cosine_log_bound(n, order, reach, k)
    width = min(1.0, outward(reach + tilting_t(n, failure, order, bound))) if bound < inf else 1.0
    assumed = (*_ALWAYS, BOUNDED_NOISE, CAP, TWICE_READ)
    check = _elementary(elementary_cosine_at(n, k, failure, reach), failure, assumed[:-1])
    return Certificate(width, failure, "Theorem T (tilting), bounded noise", assumed, check)


def _elementary(width: float, beta: float, assumed: tuple[str, ...]) -> Certificate:
    return Certificate(width, beta, "Pinsker and the chain rule", assumed)


def discrete_gaussian(rows: Whole, queries: Whole, beta: Number) -> Certificate:
    """Counts with discrete Gaussian noise, private as well, by Theorem T."""
    width = tilting_width_discrete(rows, queries, beta)[0]
    theorem = "Theorem T (tilting), discrete Gaussian noise"
    return Certificate(width, float(probability(beta)), theorem, (*_ALWAYS, CAP, TWICE_READ))


def private(curve: Curve, largest_noise: Number, beta: Number) -> Certificate:
    """Any mechanism with a privacy curve for one replaced row, and the CVaR_β of its largest error.

    A mere promise (α, β_s) on the sample counts as a CVaR of α + β_s/β.
    """
    width = above_zero(largest_noise, "largest_noise") + cvar_V(curve, beta)
    return Certificate(width, float(probability(beta)), "CVaR transfer", (*_ALWAYS, CAP))


def pure(epsilon: Number, largest_noise: Number, beta: Number) -> Certificate:
    """A purely ε-DP mechanism: tanh(ε/4) beyond the CVaR_β of its largest error."""
    width = above_zero(largest_noise, "largest_noise") + pure_dp_width(epsilon)
    return Certificate(width, float(probability(beta)), "pure privacy, tanh(ε/4)", (*_ALWAYS, CAP))


def guess_and_check(
    rows: Whole, queries: Whole, rejections: Whole, eta: Number, beta: Number, *, grid: Whole | None = None
) -> Certificate:
    """GuessAndCheck(η, m): all queries that could be asked, counted; ⌈2/η⌉ grid points unless given."""
    width = gnc_width(rows, queries, rejections, eta, beta, grid)
    return Certificate(width, float(probability(beta)), "GuessAndCheck, exact tree", (*_ALWAYS, ELSEWHERE))


def realised(rows: Whole, queries: Whole, failures: Whole, eta: Number, beta: Number) -> Certificate:
    """GuessAndCheck after the rejections that it has met: valid for every number of them at once."""
    width = gnc_failures_width(rows, queries, failures, eta, beta)
    theorem = f"GuessAndCheck, {whole(failures, 'failures', at_least=0)} realised failures"
    return Certificate(width, float(probability(beta)), theorem, (*_ALWAYS, ELSEWHERE))


def universe(rows: Whole, cells: Whole, beta: Number) -> Certificate:
    """Exact means over a finite universe: any number of queries."""
    lasting = (INDEPENDENT, BOUNDED, "the universe was fixed before the rows were seen")
    return Certificate(
        universe_width(rows, cells, beta), float(probability(beta)), "union over a finite universe", lasting
    )


def ladder(rows: Whole, queries: Whole, beta: Number) -> Certificate:
    """The running best, told on a grid when it is beaten by a step."""
    width = ladder_width(rows, queries, beta)[0]
    return Certificate(width, float(probability(beta)), "Ladder, exact tree", (*_ALWAYS, BEST))


@lru_cache(maxsize=256)
def best_sigma(n: int, k: int, beta: float, theorem: str = "tilting") -> float:
    """The noise at which a theorem certifies least."""
    certificate = noise_certificate(theorem)
    sigma = certificate.best(n, k, beta)[1]
    if sigma is not None:
        return sigma
    centre = log(sqrt(k) / n) / 2
    line = np.linspace(centre - 5, min(centre + 5, 1.0), 40).tolist()
    return exp(best_on_line(lambda x: certificate.at(n, k, beta, exp(x)), line)[1])


def noise_certificate(name: str) -> NoiseCertificate:
    """The certificate of that name for means with normal noise; ParameterError if there is none."""
    if name not in NOISE_CERTIFICATES:
        raise ParameterError(f"no certificate {name!r}; there are: {', '.join(NOISE_CERTIFICATES)}")
    return NOISE_CERTIFICATES[name]
