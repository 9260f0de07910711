"""Stand-in and measurement of the same counts, combined cell by cell: empirical Bayes.

How far a stand-in is off depends on the cell: nearly all small counts are right, many large ones are not. Both
show in its differences from noisy counts whose noise is known. So the law of its errors is estimated from them,
and each cell is moved by what that law expects, given its own difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.query.merging import simplex
from understudy.releases.pair_means import pair_means
from understudy.standin.graphical.compile import compiled
from understudy.standin.measurement import Measurement

Values = NDArray[np.float64]

SCALES = np.concatenate([[0.0], 0.5 * 2.0 ** np.arange(8)])
"""Standard deviations, in those of the noise, of the normal laws whose mixture a stand-in's errors follow.

None is small but 0: an error far below the noise cannot be told from it, and is not worth moving a cell for.
"""

LEVELS = 2.0 ** np.arange(-4, 9)
"""Counts, in standard deviations of the noise, that part the cells whose errors are taken to be alike."""

GROUPS, LEAST_GROUP = 4, 8
"""Marginals are taken together by how far they are off; a group has at least so many of them."""

DIFFERENCES = np.concatenate([np.arange(0, 8, 0.1), np.arange(8, 60.5, 0.5)])
"""Ends of intervals of differences, in standard deviations; those beyond the last are treated as that large."""

MIDDLES = (DIFFERENCES[1:] + DIFFERENCES[:-1]) / 2
SPREAD = 1 + SCALES**2
"""Variances of a difference, in those of the noise, under each law of errors."""

LIKELY = np.maximum(np.exp(-(MIDDLES[:, None] ** 2) / 2 / SPREAD) / np.sqrt(SPREAD), 1e-300)
"""How likely each difference is under each law."""

EXPECTED = SCALES**2 / SPREAD
"""The share of a difference that is the stand-in's error, under each law."""

RIGHT = (SCALES == 0).astype(np.float64)
"""The law under which the stand-in is right."""

STEPS = 100
"""Of expectation and maximisation: a step takes microseconds."""

LEARNT = 0.004
"""Of the rows: what a measurement moves by less, in L1, teaches nothing."""

DOUBTED = 3
"""Cells beside those that were seen in which the stand-in is right."""

CORRECTED = 2
"""Times that the stand-in's tables are scaled to the pairs which all of them together say."""

RAKED = 2
"""Passes of proportional fitting over the pairs of a table: more change nothing that noise would leave visible."""


def combined(tables: Sequence[Values], measured: Sequence[Measurement], rows: float) -> list[Values]:
    """Counts that sum to `rows`, by a stand-in's tables and measurements of the same marginals together.

    Each marginal is first combined for itself (`shrunk`). Many of them hold the same pair, and their mean knows it
    better than the stand-in does: so the stand-in's tables of three attributes and more are scaled to these pairs,
    and then combined with their measurements once more; and so again (`CORRECTED`), with the pairs that this
    gives. This is post-processing.
    """
    found = [simplex(table, rows) for table in shrunk(tables, measured)]
    if all(len(m.clique) < 3 for m in measured):
        return found
    for _ in range(CORRECTED):
        pairs = pair_means((m.clique, table) for m, table in zip(measured, found, strict=True))
        better = [_raked(m.clique, table, pairs) for m, table in zip(measured, tables, strict=True)]
        found = [simplex(table, rows) for table in shrunk(better, measured)]
    return found


def _raked(clique: Clique, table: Values, pairs: Mapping[Clique, Values]) -> Values:
    """A table of three attributes and more, scaled along its pairs in turn; smaller ones stay as they are."""
    if len(clique) < 3:
        return table
    raked = table
    for _ in range(RAKED):
        for kept in combinations(range(len(clique)), 2):
            gone = tuple(i for i in range(len(clique)) if i not in kept)
            held = raked.sum(axis=gone, keepdims=True)
            wanted = pairs[clique[kept[0]], clique[kept[1]]].reshape(held.shape)
            raked = raked * np.divide(wanted, held, out=np.zeros(held.shape), where=held > 0)
    return raked


def shrunk(
    tables: Sequence[Values], measured: Sequence[Measurement], *, groups: int = GROUPS
) -> list[Values]:
    """Each table moved towards its measurement: E[count | difference], under the law of errors that was estimated.

    A cell's error is drawn from a mixture of centred normal laws (`SCALES`), with the weights of most likelihood
    for the cells of about its size in the marginals that are about as far off; there are at most so many `groups`
    of these. This is post-processing.
    """
    if not tables:
        return []
    std = [sqrt(max(m.variance, 1e-12)) for m in measured]
    apart = [(m.counts - t) / s for t, m, s in zip(tables, measured, std, strict=True)]
    far = np.argsort([float(np.mean(a**2)) for a in apart], kind="stable")
    found: list[Values] = [np.empty(0)] * len(tables)
    for group in np.array_split(far, min(max(len(far) // LEAST_GROUP, 1), groups)):
        counts = np.concatenate([(tables[i] / std[i]).ravel() for i in group])
        moves = moved(counts, np.concatenate([apart[i].ravel() for i in group]))
        ends = np.cumsum([tables[i].size for i in group])
        for i, move in zip(group, np.split(moves, ends[:-1]), strict=True):
            found[i] = tables[i] + std[i] * move.reshape(tables[i].shape)
    return found


def lessons(tables: Sequence[Values], measured: Sequence[Measurement], rows: float) -> list[Measurement]:
    """What a stand-in with these tables should learn: those that move, with the part of the noise that is left.

    All tables share one law of errors: the stand-in knew none of them, and they are few and small, so that groups
    of them would say too little and leave most of what was measured unused.
    """
    found = []
    for old, m, new in zip(tables, measured, shrunk(tables, measured, groups=1), strict=True):
        better = simplex(new, rows)
        if np.abs(better - old).sum() > LEARNT * rows:
            apart = m.counts - old
            share = float(np.sum((better - old) * apart)) / max(float(np.sum(apart**2)), 1e-9)
            found.append(Measurement(m.clique, better, m.variance * min(max(share, 0.01), 1.0)))
    return found


def moved(counts: Values, apart: Values) -> Values:
    """By how much each cell should move; all in standard deviations of the noise."""
    return _moves(counts, apart, LEVELS, DIFFERENCES, LIKELY, EXPECTED, RIGHT, DOUBTED * RIGHT, STEPS)


@compiled
def _moves(counts, apart, levels, ends, likely, expected, right, imagined, steps):
    """The difference of each cell times the share of it that is to be expected as the stand-in's error.

    Differences are counted by their size, for the cells of each level. The law of errors that makes these numbers
    most likely tells the share at the middle of each interval of sizes; between two middles it is drawn straight.
    """
    kinds, last = levels.size + 1, ends.size - 2
    level, place = np.empty(counts.size, np.int64), np.empty(counts.size, np.int64)
    seen = np.zeros((kinds, last + 1))
    for i in range(counts.size):
        k = 0
        while k < levels.size and levels[k] < counts[i]:
            k += 1
        size = abs(apart[i])
        d, above = 0, last + 1  # the interval lies from d, and before this one
        while above - d > 1:
            half = (d + above) // 2
            d, above = (half, above) if ends[half] <= size else (d, half)
        level[i], place[i] = k, d
        seen[level[i], place[i]] += 1.0
    shares = np.empty((kinds, last + 1))
    for k in range(kinds):
        some = np.flatnonzero(seen[k])
        if some.size:
            weight = 0.9 * right + 0.1 / right.size
            weight = _most_likely(seen[k][some], likely[some], weight, imagined, steps)
            for d in range(last + 1):
                part = total = 0.0
                for s in range(weight.size):
                    part += likely[d, s] * weight[s] * expected[s]
                    total += likely[d, s] * weight[s]
                shares[k, d] = part / total
    moves = np.empty(counts.size)
    for i in range(counts.size):
        size, d, share = abs(apart[i]), place[i], shares[level[i]]
        middle = (ends[d] + ends[d + 1]) / 2
        to = min(d + 1, last) if size > middle else max(d - 1, 0)
        apart_by = (ends[to] + ends[to + 1]) / 2 - middle
        along = min((size - middle) / apart_by, 1.0) if to != d else 0.0
        moves[i] = apart[i] * (share[d] + along * (share[to] - share[d]))
    return moves


@compiled
def _most_likely(often, likely, weight, imagined, steps):
    """Weights of a mixture after so many steps of expectation and maximisation.

    `likely` has the density of each law at each difference, `often` how many cells have it; `imagined` cells of
    each law are counted beside them.
    """
    weight = weight.copy()
    found = np.empty(weight.size)
    for _ in range(steps):
        found[:] = 0.0
        for i in range(often.size):
            density = 0.0
            for k in range(weight.size):
                density += likely[i, k] * weight[k]
            share = often[i] / density
            for k in range(weight.size):
                found[k] += share * likely[i, k]
        total = 0.0
        for k in range(weight.size):
            weight[k] = weight[k] * found[k] + imagined[k]
            total += weight[k]
        for k in range(weight.size):
            weight[k] /= total
    return weight
