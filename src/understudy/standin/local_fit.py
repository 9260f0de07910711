"""Measurements that do not fit into the stand-in's tree, applied to the answers that contain them.

A clique that was measured and would make the tree too large still says something about every marginal that holds
it. There, the stand-in's table is scaled along the clique's cells until it agrees with the noisy counts as far as
their noise warrants: proportional fitting with a slack.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np

from understudy.domain.domain import Clique
from understudy.standin.graphical.compile import compiled
from understudy.standin.graphical.residual import Table
from understudy.standin.measurement import Measurement

SLACK_SHARE, LEAST_SLACK = 0.4, 0.2
"""As in the fit of the stand-in: of the noise's standard deviation, in counts for a unit of log potential."""

SWEEPS = 3


def locally_fitted(clique: Clique, table: Table, outside: Sequence[Measurement], total: float) -> Table:
    """The table's counts after scaling along every measurement inside the clique; they sum to `total`."""
    inside = [m for m in outside if set(m.clique) <= set(clique)]
    if not inside or total <= 0:
        return table
    fitted = np.array(table, np.float64)
    logs = [np.zeros(m.counts.shape) for m in inside]
    for _ in range(SWEEPS if len(inside) > 1 else 1):
        for i, m in enumerate(inside):
            slack = max(SLACK_SHARE * m.variance**0.5, LEAST_SLACK)
            gone = tuple(k for k, name in enumerate(clique) if name not in m.clique)
            here = np.ascontiguousarray(fitted.sum(axis=gone))
            wanted = m.counts - slack * logs[i]
            change = scaling(here.ravel(), wanted.ravel(), slack).reshape(here.shape)
            logs[i] += change
            kept = [n if name in m.clique else 1 for name, n in zip(clique, fitted.shape, strict=True)]
            fitted *= np.exp(change).reshape(kept)
        fitted *= total / fitted.sum()
    return fitted


@compiled
def scaling(counts, wanted, slack):
    """The solution t of counts·exp(t) + slack·t = wanted in each cell, within [-12, 8]; 0 where counts vanish.

    The left side increases in t: Newton's method, kept inside the interval that still holds the root.
    """
    logs = np.zeros(counts.size)
    for i in range(counts.size):
        m = counts[i]
        if m < 1e-12:
            continue
        low, high, t = -12.0, 8.0, 0.0
        for _ in range(30):
            grown = m * exp(t)
            off = grown + slack * t - wanted[i]
            if off > 0:
                high = t
            else:
                low = t
            new = t - off / (grown + slack)
            if new <= low or new >= high:
                new = 0.5 * (low + high)
            moved = abs(new - t)
            t = new
            if moved < 1e-4:
                break
        logs[i] = t
    return logs
