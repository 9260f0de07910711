"""The band of a class: how far off, at the most, are all members of a product of families at once.

A member is a fixed combination of the noise, which is normal; it is off by more than q with a probability that is
known. The chance that some member is off by more is at most the sum of these (the union bound), and less where
members are off together, as ranges are that share most of their cells. How much less is simulated where the
members can be listed, by drawing just the noise that matters:

Sampling    Let Aᵢ be the event that the i-th member is off by more than q, and M how many are. Then

                P[some member is off by more] = Σᵢ E[1(Aᵢ)/M] = Σᵢ P[Aᵢ] · E[1/M],

            where a member i is drawn with probability P[Aᵢ]/Σ P[Aⱼ], and the noise given Aᵢ. [NaimanPriebe01]
Promise     A band fails with probability at most `beta`, but for `simulation.DOUBT`.
Why         1/M lies between 0 and 1. If its mean were above u, the mean of m draws would be at most a < u with
            probability at most exp(-m·kl(a, u)) [Hoeffding63, Theorem 1]. Each of the `TRIES` widths that are
            tried has an equal part of the doubt and draws of its own: the first draws, by which the widths are
            chosen, say nothing about them.
Cost        No privacy: the seed is public (`simulation`), and nothing here depends on the table.
"""

from __future__ import annotations

from functools import lru_cache
from math import log

import numpy as np
from numpy.typing import NDArray

from understudy.sessions import laplace_sums
from understudy.sessions.families import MOST_MEMBERS
from understudy.sessions.family_product import DRAWS, Product, ReusedArrays
from understudy.sessions.found_once import found_once
from understudy.sessions.simulation import (
    DOUBT,
    continuous,
    continuous_blocks,
    draws_for,
    extended_quantile,
    safe_quantile,
    uniform,
    where_it_falls,
)
from understudy.theory.normal_law import ndtr, ndtri

Values = NDArray[np.float64]

MOST_DRAWS = 1 << 15
"""Draws of the noise that the largest errors over a class are simulated with at most."""

USUAL_WORK = 1 << 24
"""Numbers that such a simulation goes through where that is enough for `family_product.DRAWS` draws."""

BLOCK = 1 << 19
"""Numbers that a simulation goes through at once: they stay near the processor, and no threads are woken."""

MOST_LISTED = 1 << 20
"""Members of a product up to which they are listed one by one."""

DEVIATIONS = 1 << 14
"""Steps into which members' deviations are rounded up for the union bound."""

FIRST_DRAWS, TRIED_DRAWS = 1 << 8, 1 << 13
"""Draws of the noise by which a width is chosen, and by which it is tried."""

TRIED_WORK = 3 << 19
"""Numbers that trying a width may go through: larger classes get fewer draws."""

TRIES = 2
"""Widths that are tried below that of the union bound."""

HARDLY_TOGETHER = 0.93
"""Where the chance is more than this part of the union bound, that one is taken."""


@lru_cache(maxsize=256)
def band(product: Product, beta: float) -> float | None:
    """Half the width of a band for all members of a product, which fails with probability at most `beta`.

    It is in deviations (for Laplace noise: scales) of the noise on a combination.

    For noise on integers `slack` steps have to be added (`simulation`). None where there is no such band. Of
    classes whose members are too many to list, and of Laplace noise that is not too rare, it is a quantile of the
    simulated largest error.
    """
    if product.families[0].laplace:
        return _laplace_band(product, beta)
    if product.members <= MOST_LISTED and all(f.members <= MOST_MEMBERS for f in product.families):
        return _listed_band(product, beta)
    return extended_quantile(_sample(product), beta, product.norm(2))


def _laplace_band(product: Product, beta: float) -> float | None:
    """A quantile needs many draws where the failure is rare; the union bound is nearly as small there."""
    few = product.members <= laplace_sums.MOST_MEMBERS
    bound = laplace_sums.union_bound(product.sizes, beta) if few else None
    if draws_for(beta) > _draws(product):
        return bound
    found = safe_quantile(_sample(product), beta)
    return found if bound is None else min(found, bound)


@found_once(256)
def _listed_band(product: Product, beta: float) -> float:
    """The least of the widths that are tried: that of the union bound, or narrower ones, in order."""
    widest = union_bound(product, beta)
    draws = min(TRIED_DRAWS, TRIED_WORK // product.at_once)
    if draws < FIRST_DRAWS:
        return widest
    together = float(_together(product, widest, FIRST_DRAWS, stream=0).mean())
    for tried in range(TRIES):
        part = _not_above(together + tried * (1 - together) / TRIES, draws)
        if part > HARDLY_TOGETHER:
            break
        width = union_bound(product, beta / part)
        mean = float(_together(product, width, draws, stream=tried + 1).mean())
        if _not_above(mean, draws) <= part:
            return width
    return widest


def union_bound(product: Product, beta: float) -> float:
    """q with Σ P[|member| > q] ≤ β: every member is normal, with a deviation that is a product along the axes."""
    deviations = product.deviations.ravel()
    step = float(deviations.max()) / DEVIATIONS
    classes = np.bincount(np.ceil(deviations / step).astype(np.int64))  # rounded up: the bound only grows
    there = np.flatnonzero(classes)
    number, sizes = classes[there], there * step * (1 + 1e-9)
    most = -1.01 * float(ndtri(min(beta, 1.0) / product.members / 2)) * float(sizes[-1])
    return where_it_falls(lambda q: 2 * float((number * ndtr(-q / sizes)).sum()) - beta, 0.0, most)


def _together(product: Product, width: float, draws: int, *, stream: int) -> Values:
    """Draws of 1/M, given that the member that is drawn is off by more than `width`; of other streams, others.

    By symmetry it is taken to be off upwards. The drawn member counts, also where rounding puts it at the width.
    """
    deviations = product.deviations
    tails = ndtr(-width / deviations)
    chances = np.cumsum(tails)
    which, far = uniform((2, draws), stream=stream)
    at = np.minimum(np.searchsorted(chances, which * chances[-1], side="right"), chances.size - 1)
    members = np.unravel_index(at, deviations.shape)
    off = -ndtri((1 - far) * tails[members])
    shape = tuple(len(matrix) for matrix in product.matrices)
    noise = continuous((draws, *shape), stream=stream + 1).reshape(draws, -1)
    directions = product.directions(members)
    along = np.einsum("ij,ij->i", noise, directions)
    noise += (off - along)[:, None] * directions
    above, block, arrays = np.empty(draws), max(1, BLOCK // product.at_once), ReusedArrays()
    for start in range(0, draws, block):
        here = slice(start, start + block)
        above[here] = product.number_above(noise[here].reshape(-1, *shape), width, arrays)
    return 1 / np.maximum(above, 1)


def _not_above(mean: float, draws: int) -> float:
    """What the mean of a number between 0 and 1 is at most, by the mean of draws, but for a part of the doubt."""
    enough = log(TRIES / DOUBT) / draws

    def missing(upper: float) -> float:
        far = mean * log(mean / upper) + (1 - mean) * log((1 - mean) / (1 - upper)) if mean < 1 else 0.0
        return enough - far

    return 1.0 if mean >= 1 else where_it_falls(missing, mean, 1 - 1e-12)


def _draws(product: Product) -> int:
    """How many draws of the noise are simulated."""
    return min(max(USUAL_WORK // product.work, DRAWS), MOST_DRAWS)


@found_once(64)
def _sample(product: Product) -> Values:
    """Simulated largest errors over all members."""
    laplace, draws = product.families[0].laplace, _draws(product)
    block = max(1, BLOCK // product.at_once)
    cells, arrays = tuple(len(matrix) for matrix in product.matrices), ReusedArrays()
    noise = continuous_blocks(draws, cells, block, laplace=laplace)
    return np.concatenate([product.suprema(each, arrays) for each in noise])
