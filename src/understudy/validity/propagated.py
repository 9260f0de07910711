"""Intervals of scores that are functions of several means, from intervals of the means.

Where every mean lies in its interval, the score lies in the one that is computed here: each function rises or
falls in each of its means, so that its ends are at corners, and what cannot be (a variance below 0, say) is left
out. So a certificate for all means at once is one for all scores at once, with the same probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

Interval = tuple[float, float]
"""Two ends in [0, 1], the lower one first."""

ROUNDED_AWAY = 1e-12
"""A variance that is no larger may be 0, and what was computed of it rounding."""


def root_mean_square(means: Sequence[Interval]) -> Interval:
    """1 - sqrt(m), for the mean m of clipped squared errors; the interval given is that of 1 - m.

    >>> root_mean_square([(0.75, 1.0)])
    (0.5, 1.0)
    """
    ((low, high),) = means
    return 1 - sqrt(1 - low), 1 - sqrt(1 - high)


def explained_variance(means: Sequence[Interval], *, ratio: float = 1.0) -> Interval:
    """R² = 1 - ratio·m/v, no lower than 0, for the mean m of clipped squared errors and the target's variance v.

    The intervals given are those of 1 - m, of the target's mean a, and of the mean c of 4(u - 1/2)², with the
    target u in [0, 1]. Then v = c/4 - (a - 1/2)² rises in c and falls in |a - 1/2|, and is 0 at least. `ratio` is
    the square of the largest error over that of the target's range. R² is 0 where the variance is.
    """
    (unexplained, explained), centre, square = means[0], means[1], means[2]
    away = [abs(end - 0.5) for end in centre]
    nearest = 0.0 if centre[0] <= 0.5 <= centre[1] else min(away)
    least, most = square[0] / 4 - max(away) ** 2, square[1] / 4 - nearest**2
    low = 1 - ratio * (1 - unexplained) / least if least > ROUNDED_AWAY else 0.0
    high = 1 - ratio * (1 - explained) / most if most > 0 else 0.0
    return max(low, 0.0), max(high, 0.0)


def harmonic_mean(means: Sequence[Interval]) -> Interval:
    """F1 = 2t/(2t + e), for the share t of true positives and the share e of errors of both kinds.

    The intervals given are those of t and of 1 - e, which t cannot exceed. F1 rises in t and falls in e, and is 0
    where t is.
    """
    (least, most), right = means[0], means[1]
    most = min(most, right[1])
    least = min(least, most)
    low = 1 / (1 + (1 - right[0]) / (2 * least)) if least > 0 else 0.0
    high = 1 / (1 + (1 - right[1]) / (2 * most)) if most > 0 else 0.0
    return low, high
