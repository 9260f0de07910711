"""Sums of Laplace noises: the exact tail of one, and a bound that many keep at once, however rare its failure.

Under a pure ε the cells of a class are measured one by one, each with Laplace noise. A member of the class is a
sum of k cells, so that its noise S is the sum of k independent Laplace noises, of scale 1 here.

Tail        P[S > q] = Σ_{m<k} e^(-q)·q^m/m! · P[Binomial(2k - m - 1, 1/2) ≥ k], for q ≥ 0.
Why         A Laplace noise is the difference of two exponential times, so that S is the difference of the times of
            the k-th arrivals of two independent Poisson processes. Let the first run for q before the second
            begins: S > q where the second has its k arrivals first. If the first has made m < k by then, from then
            on each arrival is of either with probability 1/2, and the second is first where among the next
            2k - m - 1 arrivals at least k are its own. If it has made k, it is first itself.
Larger k    P[S > q] grows with k: S is symmetric and unimodal, and a further noise of ±x moves more across q from
            below, where there is more, than back. So sizes may be rounded up.
Bound       q with Σ P[|member| > q] ≤ β over all members is passed by some member with probability at most β.
Cost        No privacy, and no draw: a simulation for a rare failure would need 48/β draws (`simulation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from understudy.sessions.found_once import found_once
from understudy.sessions.simulation import where_it_falls

Values = NDArray[np.float64]

MOST_SIZES = 64
"""Different numbers of cells up to which each is looked at; beyond, they are rounded up."""

MOST_MEMBERS = 1 << 512
"""Of more members no bound is found: tails that rare come near to the least number that floats hold."""

ROUNDING = 1e-9
"""What float arithmetic can make a tail too small by, in parts of it, and far more."""


def tails(cells: tuple[int, ...], at: float) -> Values:
    """P[S > `at`], for sums S of so many Laplace noises of scale 1 each; `at` is positive."""
    from scipy.special import gammaln  # late: it takes a quarter of a second to load

    arrivals = np.arange(max(cells))
    made = np.exp(arrivals * log(at) - at - gammaln(arrivals + 1))
    return (_second_is_first(cells) @ made) * (1 + ROUNDING)


def union_bound(members: Mapping[int, int], beta: float) -> float:
    """What some member's |noise| passes with probability at most `beta`, in scales of the noise on a cell.

    `members` are how many there are of each number of cells, at most `MOST_MEMBERS` in all.
    """
    step = ceil(max(members) / MOST_SIZES) if len(members) > MOST_SIZES else 1
    rounded: dict[int, int] = {}
    for size, number in members.items():
        up = step * ceil(size / step)
        rounded[up] = rounded.get(up, 0) + number
    cells, numbers = tuple(rounded), np.array([float(number) for number in rounded.values()])
    # P[S > q] is at most e^(-q/2)·(4/3)^k, by Chernoff's bound at t = 1/2: at `most` all together are below β.
    most = 2 * (log(2 * float(numbers.sum()) / beta) + max(cells) * log(4 / 3))
    return where_it_falls(lambda at: 2 * float(numbers @ tails(cells, at)) - beta, 0.0, most)


@found_once(64)
def _second_is_first(cells: tuple[int, ...]) -> Values:
    """P[Binomial(2k - m - 1, 1/2) ≥ k] for each number of cells k, along m: 0 where m is k or more."""
    from scipy.special import betainc

    arrivals, each = np.arange(max(cells)), np.array(cells)[:, None]
    left = np.maximum(each - arrivals, 0)
    return np.where(left > 0, betainc(each, np.maximum(left, 1), 0.5), 0.0)
