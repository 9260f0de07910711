"""A single marginal of a stand-in, bent towards measurements that the stand-in itself could not take in.

A clique may be worth measuring although a tree that holds it would be too large. What was measured then still
improves every marginal that contains the clique, one at a time and without any tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from understudy.domain.domain import Clique
from understudy.errors import ParameterError
from understudy.standin.graphical.compile import compiled
from understudy.standin.graphical.fit import FitSettings
from understudy.standin.graphical.tree import Table
from understudy.standin.measurement import Measurement

SETTLED = 1e-4
"""Change of a log factor below which sweeps end."""


def locally_fitted(
    rates: Table,
    clique: Clique,
    measurements: Sequence[Measurement],
    *,
    total: float,
    settings: FitSettings | None = None,
    sweeps: int = 20,
) -> Table:
    """Rates p ∝ rates·exp(Σ θ_c) over `clique`, with one log factor for each measured c inside it.

    In counts, P = total·p before it is scaled to the total minimises KL(P ‖ total·rates) + ½ Σ_c |P_c - y_c|²/κ_c,
    where κ_c is the slack of `FitSettings`: proportional fitting, damped by what the noise allows. It takes one
    measurement after the other, each exactly, until nothing moves; cells without mass keep none.
    """
    settings = FitSettings() if settings is None else settings
    if rates.ndim != len(clique) or not 0 <= total < np.inf:
        raise ParameterError("rates are shaped by their clique, and a total is a finite number of at least 0")
    inside = [m for m in measurements if set(m.clique) <= set(clique)]
    counts = np.array(rates, dtype=np.float64) * max(total, 1.0)
    theta = [np.zeros(m.counts.size) for m in inside]
    for _ in range(sweeps):
        moved = 0.0
        for m, logs in zip(inside, theta, strict=True):
            gone = tuple(i for i, name in enumerate(clique) if name not in m.clique)
            slack = max(settings.slack_share * sqrt(m.variance), settings.least_slack)
            step = _step(counts.sum(axis=gone).ravel(), m.counts.ravel() - slack * logs, slack)
            logs += step
            sizes = [n if name in m.clique else 1 for name, n in zip(clique, counts.shape, strict=True)]
            counts *= np.exp(step).reshape(sizes)
            moved = max(moved, float(np.abs(step).max(initial=0.0)))
        if moved < SETTLED or len(inside) < 2:
            break
    mass = counts.sum()
    if not mass > 0:
        raise ParameterError("rates must have a positive sum")
    return counts / mass


FURTHEST = 60.0
"""Log factors stay within this: e^60 is more rows than anyone has."""


@compiled
def _step(masses, targets, slack):
    """The t with mass·e^t + slack·t = target for each cell, by Newton's method kept between two bounds."""
    steps = np.zeros(masses.size)
    for i in range(masses.size):
        low, high, t = -FURTHEST, FURTHEST, 0.0
        if not masses[i] > 0:
            continue
        for _ in range(100):
            grown = masses[i] * np.exp(t)
            excess = grown + slack * t - targets[i]
            if excess > 0:
                high = t
            else:
                low = t
            new = t - excess / (grown + slack)
            if not low < new < high:
                new = 0.5 * (low + high)
            done = abs(new - t) <= 1e-12 * (1 + abs(t))
            t = new
            if done:
                break
        steps[i] = t
    return steps
