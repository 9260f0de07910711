"""Intervals for ratios of noisy sums, and for variances: from the noise itself, not from a box around each sum.

If r is the true ratio of two sums X and N, then X - r·N is 0, and what was released of it is noise alone, whose
law is known for every r. So the ratios for which the released X - r·N is within the 1 - β quantile of that noise
hold the true one with probability 1 - β, whatever X and N are (Fieller 1954; the inversion of a test).

Weights    X - r·N is Σ c_j(r)·T_j over the tallies T_j, each with noise of its own, independent of the others. For
           continuous symmetric unimodal noises |Σ w_j·Z_j| grows stochastically with every |w_j| (Anderson 1955),
           so that over a short range of r the quantile is at most that of the largest weights in it. Noise on a
           lattice is within a step of continuous noise (`sessions.simulation`), which costs a step of every weight
           on the way there, and another one on the way back. The plain sum of all tallies, a number of rows, has
           weights of 1 whatever r is: it needs no continuous noise, and no steps (`JointNoise.reach_of_sum`).
Variances  With m the true average, Σ(t - m)² is N·V, V the variance. Of m an interval is known, with a part of β;
           for every m in it the released Σ(t - m)² - V·N is noise alone if m and V are the true ones. V is between
           the least and the most that the equation allows for any of these m, with the rest of β. A covariance is
           bounded likewise, by Σ(t - m)(s - l), for which m and l are each in an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from understudy.query.cell_noise import TallyNoise, WeightedBound
from understudy.sql.grid import Floats

RATIOS = 64
"""Ranges of ratios, of equal length, in each of which the noise is taken to be as large as it can be there."""

AT_ONCE = 1 << 14
"""Ranges of ratios, times groups, that are looked at in one go."""

FINENESS = 64
"""Weights are rounded up to so fine a part of the largest, at most, so that few quantiles are worked out."""

PASSES = 3
"""How often the variance that the noise depends on is narrowed to what the pass before has left."""

FOR_MEANS, FOR_ROWS = 0.15, 0.05
"""The parts of β for the averages that a variance is taken around, and for a sample's number of rows."""


@dataclass(frozen=True)
class JointNoise:
    """The independent noises on several tallies of the same groups, and the probability β that is left for them.

    All of them are nearly normal, or all are Laplace noise of one scale.
    """

    tallies: tuple[TallyNoise, ...]
    beta: float

    @classmethod
    def of(cls, noises: Sequence[TallyNoise | None]) -> JointNoise | None:
        """None where the noise of one is not known, where nothing is left of β, or where they are of two kinds."""
        known = tuple(noise for noise in noises if noise is not None)
        if not known or len(known) < len(noises):
            return None
        beta = sum(noise.beta for noise in known) / max(known[0].released.size, 1)
        kinds = {noise.bound for noise in known if noise.variance.any()}
        return cls(known, beta) if 0 < beta < 1 and len(kinds) <= 1 else None

    @property
    def is_normal(self) -> bool:
        return all(noise.bound is None for noise in self.tallies)

    def released(self, form: Sequence[Floats | float]) -> Floats:
        """What was released of a combination of the tallies."""
        return np.asarray(sum(c * noise.released for c, noise in zip(form, self.tallies, strict=True)))

    def reach(self, weights: Sequence[Floats | float], beta: float) -> Floats:
        """At least the 1 - `beta` quantile of |Σ c_j·Z_j| in each group, for all |c_j| up to the `weights`.

        Weights may have more axes than groups, before theirs; so has the answer then.
        """
        off = np.asarray(sum(w * noise.step for w, noise in zip(weights, self.tallies, strict=True)))
        if self.is_normal:
            variance = sum(w * w * noise.variance for w, noise in zip(weights, self.tallies, strict=True))
            return -NormalDist().inv_cdf(beta / 2) * np.sqrt(variance) + off
        bound = next(noise.bound for noise in self.tallies if noise.bound is not None)
        shape = np.broadcast_shapes(self.tallies[0].released.shape, *map(np.shape, weights))
        cells = [np.broadcast_to(noise.cells, shape).ravel() for noise in self.tallies]
        wide = [np.broadcast_to(np.asarray(w, np.float64), shape).ravel() for w in weights]
        return _bounds(bound, np.array(cells), np.array(wide), beta / 2).reshape(shape) + 2 * off

    def reach_of_sum(self, beta: float) -> Floats:
        """At least the 1 - `beta` quantile of |Σ Z_j|, the noise on the sum of all tallies, in each group.

        No weight varies here, so the law of the noises on their lattice is enough, where all of them have the
        same: no step is lost for each cell between that noise and continuous noise, as in `reach`. What values
        were rounded by is added.
        """
        loud = [noise for noise in self.tallies if noise.variance.any()]
        laws = {noise.plain for noise in loud}
        plain = laws.pop() if len(laws) == 1 else None
        if plain is None:
            return self.reach([1.0] * len(self.tallies), beta)
        cells = np.rint(sum(noise.cells for noise in loud))
        many, place = np.unique(cells, return_inverse=True)
        found = np.array([plain(((int(n), 1),), beta / 2) if n else 0.0 for n in many.tolist()])
        rounding = sum((noise.rounding for noise in self.tallies), np.zeros(cells.shape))
        return found[np.ravel(place)].reshape(cells.shape) + rounding


def _bounds(bound: WeightedBound, cells: Floats, weights: Floats, beta: float) -> Floats:
    """The bound in each group, which is a column; weights are rounded up, so that few different ones are left."""
    largest = np.where(cells > 0, weights, 0.0).max(axis=0)
    unit = 2.0 ** np.ceil(np.log2(np.where(largest > 0, largest, 1.0))) / FINENESS
    whole = np.ceil(weights / unit * (1 - 1e-12))
    kinds, place = np.unique(np.rint(np.concatenate([cells, whole])), axis=1, return_inverse=True)
    many = len(cells)
    found = [
        bound(tuple((int(n), int(w)) for n, w in zip(kind[:many], kind[many:], strict=True)), beta)
        for kind in kinds.T.tolist()
    ]
    return np.where(largest > 0, unit * np.array(found)[np.ravel(place)], 0.0)


def ratio_interval(
    noise: JointNoise, form: Sequence[float], rows: Sequence[float], beta: float
) -> tuple[Floats, Floats]:
    """Fieller's interval, between 0 and 1, for the ratio of a form to the number of rows.

    Where noise is not nearly normal, `mean_interval` finds it. Otherwise, if r is the true ratio of two sums X
    and N, what was released of X - r·N is within δ of normal noise of variance v(r) = var X - 2r·cov + r²·var N.
    So the ratios with |X - r·N| ≤ z·√v(r) + δ, z the normal quantile for β, hold r with probability 1 - β,
    whatever X and N are. With (z√v + δ)² ≤ (1 + η)z²v + (1 + 1/η)δ², for any fixed η, they lie between the roots
    of a quadratic polynomial, or anywhere if its leading coefficient is not positive: then there may be no rows.
    """
    known = noise.tallies
    if not noise.is_normal:
        return mean_interval(noise, form, rows, beta)
    above, below = noise.released(form), noise.released(rows)
    of_above, of_below, both = (
        sum(c * d * told.variance for c, d, told in zip(one, other, known, strict=True))
        for one, other in ((form, form), (rows, rows), (form, rows))
    )
    # |c - r·d| is largest at an end of 0 ≤ r ≤ 1
    off = sum(max(abs(c), abs(c - d)) * told.step for c, d, told in zip(form, rows, known, strict=True))
    z = -NormalDist().inv_cdf(beta / 2)
    typical = z * np.sqrt(of_above + of_below) + np.finfo(float).tiny
    eta = np.clip(off / typical, 1e-9, 1e9)  # fixed by the noise alone
    square = (1 + eta) * z**2
    a = below**2 - square * of_below
    half_b = above * below - square * both
    c = above**2 - square * of_above - (1 + 1 / eta) * off**2
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(half_b**2 - a * c, 0.0))
        low, high = (half_b - root) / a, (half_b + root) / a
    bounded = (a > 0) & (below > 0)
    low, high = np.where(bounded, low, 0.0), np.where(bounded, high, 1.0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def mean_interval(
    noise: JointNoise, form: Sequence[float], rows: Sequence[float], beta: float
) -> tuple[Floats, Floats]:
    """The least and the most between 0 and 1 that the ratio of a form to the number of rows can be."""
    above, below = noise.released(form), noise.released(rows)
    low, high = np.ones(above.shape), np.zeros(above.shape)
    at_once = max(1, AT_ONCE // max(above.size, 1))
    for i in range(0, RATIOS, at_once):
        places = np.arange(i, min(i + at_once, RATIOS)).reshape(-1, *(1,) * above.ndim)
        first, last = places / RATIOS, (places + 1) / RATIOS
        weights = [np.maximum(abs(c - first * d), abs(c - last * d)) for c, d in zip(form, rows, strict=True)]
        off = noise.reach(weights, beta)
        with np.errstate(all="ignore"):
            ends = np.sort([(above - off) / below, (above + off) / below], axis=0)
        least, most = np.where(below == 0, -np.inf, ends[0]), np.where(below == 0, np.inf, ends[1])
        possible = (least <= last) & (most >= first) & ((below != 0) | (np.abs(above) <= off))
        low = np.minimum(low, np.where(possible, np.clip(least, first, last), 1.0).min(axis=0))
        high = np.maximum(high, np.where(possible, np.clip(most, first, last), 0.0).max(axis=0))
    with np.errstate(all="ignore"):
        nearest = np.clip(np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.5), 0.0, 1.0)
    none = (
        low > high
    )  # no ratio is possible: the noise is beyond its quantile, which happens with probability β
    return np.where(none, nearest, low), np.where(none, nearest, high)


@dataclass(frozen=True)
class SpreadForms:
    """Coefficients of the tallies for the sums of t·s, t and s and for the rows; of a variance s is t."""

    both: Sequence[float]
    one: Sequence[float]
    other: Sequence[float]
    rows: Sequence[float]
    covariance: bool


@dataclass(frozen=True)
class SpreadEnds:
    """The ends of a variance or covariance, and of the number of rows."""

    low: Floats
    high: Floats
    rows: tuple[Floats, Floats]


def spread_interval(noise: JointNoise, forms: SpreadForms) -> SpreadEnds:
    """The least and the most that the variance, or the covariance, of places between 0 and 1 can be.

    With probability 1 - β of the noise they and the ends of the number of rows hold together.
    """
    of_means = noise.beta * FOR_MEANS / (2 if forms.covariance else 1)
    one = mean_interval(noise, forms.one, forms.rows, of_means)
    other = mean_interval(noise, forms.other, forms.rows, of_means) if forms.covariance else one
    counted = noise.released(forms.rows)
    off = noise.reach([abs(c) for c in forms.rows], noise.beta * FOR_ROWS)
    rows = np.maximum(counted - off, 0.0), counted + off
    beta = noise.beta * (1 - FOR_MEANS - FOR_ROWS)
    least = -0.25 if forms.covariance else 0.0
    low, high = np.full(counted.shape, least), np.full(counted.shape, 0.25)
    around = _around(noise, forms, one, other)
    some = counted > 0
    for _ in range(PASSES):
        off = noise.reach(_weights(forms, one, other, low, high), beta)
        with np.errstate(all="ignore"):
            ends = (around[0] - off) / counted, (around[1] + off) / counted
        low = np.where(some, np.clip(ends[0], low, high), low)
        high = np.where(some, np.clip(ends[1], low, high), high)
    return SpreadEnds(low, high, rows)


Ends = tuple[Floats, Floats]


def _around(noise: JointNoise, forms: SpreadForms, one: Ends, other: Ends) -> Ends:
    """The least and the most that was released of Σ(t - m)(s - l), for averages between their ends."""
    both, x, y, rows = (noise.released(form) for form in (forms.both, forms.one, forms.other, forms.rows))
    if forms.covariance:
        corners = [both - b * x - a * y + a * b * rows for a in one for b in other]
        return np.minimum.reduce(corners), np.maximum.reduce(corners)
    with np.errstate(all="ignore"):
        middle = np.clip(np.where(rows > 0, x / np.where(rows > 0, rows, 1.0), one[0]), *one)
    values = [both - 2 * m * x + m * m * rows for m in (*one, middle)]
    return np.minimum.reduce(values), np.maximum.reduce(values)


def _weights(forms: SpreadForms, one: Ends, other: Ends, low: Floats, high: Floats) -> list[Floats]:
    """The most that each tally can weigh in Σ(t - m)(s - l) - V·N, for m, l and V between their ends."""
    found: list[Floats] = []
    for both, x, y, rows in zip(forms.both, forms.one, forms.other, forms.rows, strict=True):
        if forms.covariance:
            values = [
                both - b * x - a * y + (a * b - v) * rows for a in one for b in other for v in (low, high)
            ]
        else:
            middle = np.clip(x / rows, *one) if rows else one[0]
            values = [both - 2 * m * x + (m * m - v) * rows for m in (*one, middle) for v in (low, high)]
        found.append(np.maximum.reduce([np.abs(value) for value in values]))
    return found
