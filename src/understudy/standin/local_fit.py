"""One table of a stand-in, bent towards noisy counts that the stand-in itself could not take in.

A marginal that was measured may not fit into a stand-in's tree, and a count under a condition has no place in it.
Both still say something about every table that holds their attributes. There the table is scaled along the cells
of what was observed until both agree as far as the noise warrants: proportional fitting with a slack. In counts,
the fitted table P minimises

    KL(P ‖ table) + ½ Σ_c |P_c - y_c|²/κ_c,   ΣP = total,

over the observations c with noisy counts y_c and slack κ_c. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.standin.graphical.compile import compiled

Values = NDArray[np.float64]

LEAST_SLACK = 0.2
"""In counts for a unit of log potential: less would be met exactly, and the scaling might not settle."""

LEAST_HELD = 1e-9
"""Counts of a cell, at least, where its noise is compared with them."""

SWEEPS = 3
"""Over several observations; one alone is met at once."""

SETTLED = 1e-4
"""Change of a log factor below which it is taken to be found."""


@dataclass(frozen=True)
class LocalSlack:
    """κ: a noisy count may be missed by `share` of its standard deviation for each unit of log potential.

    With `sparse` above 1 it may be missed by up to so many times as much in cells that hold few people for their
    noise, as in the fit of the stand-in (`FitProblem.with_sparse_slack`): v/m, where the table that is to be
    fitted has m people in a cell whose noise has variance v.
    """

    share: float = 0.4
    sparse: float = 1.0

    def of(self, variance: float, held: Values) -> Values:
        """The slack of cells that hold so many people and were counted with noise of this variance."""
        even = max(self.share * variance**0.5, LEAST_SLACK)
        if self.sparse == 1:
            return np.full(held.shape, even)
        return np.clip(variance / np.maximum(held, LEAST_HELD), even, self.sparse * even)


EVEN = LocalSlack()


@dataclass(frozen=True, eq=False)
class Observation:
    """Noisy counts of the cells of `by`, shaped in its order, with noise of `variance`.

    `mask` is 1 in the cells of the fitted table whose rows were counted and 0 in the others, in a shape that
    broadcasts to the table; without one every row was counted.
    """

    by: Clique
    counts: Values
    variance: float
    mask: Values | None = None


def locally_fitted(
    clique: Clique,
    table: Values,
    inside: Sequence[Observation],
    total: float,
    *,
    sweeps: int = SWEEPS,
    settled: float = SETTLED,
    least: float | None = None,
    slack: LocalSlack = EVEN,
) -> Values:
    """The counts of a clique's cells after scaling along every observation; they sum to `total`.

    Every observation's attributes lie in the clique. What a masked observation leaves of the total is shared out
    among the cells that it did not count, as they were. The total is restored after each sweep. With `least` it is
    restored after each observation, and no cell falls below `least` on the way, so that none is lost for good.
    """
    if not inside or total <= 0:
        return table
    fitted = np.array(table, np.float64)
    logs = [np.zeros(seen.counts.shape) for seen in inside]
    slacks = [slack.of(seen.variance, _counted(clique, fitted, seen)[1]) for seen in inside]
    for _ in range(sweeps if len(inside) > 1 else 1):
        for i, seen in enumerate(inside):
            fitted, logs[i] = _scaled(clique, fitted, seen, slacks[i], logs[i], total, settled)
            if least is not None:
                fitted = np.maximum(fitted, least)
                fitted *= total / fitted.sum()
        if least is None:
            fitted *= total / fitted.sum()
    return fitted


def _counted(clique: Clique, table: Values, seen: Observation) -> tuple[Values, Values]:
    """The part of a table that was counted, and the sums over it that the observation is about."""
    gone = tuple(axis for axis, name in enumerate(clique) if name not in seen.by)
    counted = table if seen.mask is None else table * seen.mask
    return counted, np.ascontiguousarray(counted.sum(axis=gone))


def _scaled(
    clique: Clique,
    table: Values,
    seen: Observation,
    slack: Values,
    logs: Values,
    total: float,
    settled: float,
) -> tuple[Values, Values]:
    """The table after m ↦ m·exp(t) in the cells that were observed, and the sum of all t so far.

    t is such that m·exp(t) + κ·(logs + t) is the noisy count: what the slack takes grows with the log factor.
    """
    counted, here = _counted(clique, table, seen)
    wanted = seen.counts - slack * logs
    change = scaling(here.ravel(), wanted.ravel(), slack.ravel(), settled).reshape(here.shape)
    across = [size if name in seen.by else 1 for name, size in zip(clique, table.shape, strict=True)]
    scaled = counted * np.exp(change).reshape(across)
    if seen.mask is not None:
        others = table * (1 - seen.mask)
        left = max(total - float(scaled.sum()), 0.0)
        scaled = scaled + others * (left / max(float(others.sum()), 1e-9))
    return scaled, logs + change


@compiled
def scaling(counts, wanted, slack, settled):
    """The solution t of counts·exp(t) + slack·t = wanted in each cell, within [-12, 8]; 0 where counts vanish.

    The left side increases in t: Newton's method, kept inside the interval that still holds the root.
    """
    logs = np.zeros(counts.size)
    for i in range(counts.size):
        m = counts[i]
        if m < 1e-12:
            continue
        low, high, t = -12.0, 8.0, 0.0
        for _ in range(100):
            grown = m * exp(t)
            off = grown + slack[i] * t - wanted[i]
            if off > 0:
                high = t
            else:
                low = t
            new = t - off / (grown + slack[i])
            if new <= low or new >= high:
                new = 0.5 * (low + high)
            moved = abs(new - t)
            t = new
            if moved < settled:
                break
        logs[i] = t
    return logs
