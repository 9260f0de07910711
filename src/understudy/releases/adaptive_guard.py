"""The last sweep of an adaptive release: everything that was never measured, once, and what it says about answers.

A stand-in that is right on average may be far off in a few cells. So a part of the price measures all marginals of
the workload, or all pairs that no measurement holds, with more noise; answers that lie outside of what that noise
allows are moved. All of this works on noisy counts that were released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.domain import Clique
from understudy.mechanism.merged import Contrasts, MergedMarginals
from understudy.privacy.neighbours import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.merging import Merging, simplex
from understudy.query.workload import Workload
from understudy.releases.distinguisher import whole_units
from understudy.releases.run import Run
from understudy.standin.measurement import Measurement

Table = NDArray[np.float64]

REACH = 3.0
"""Standard deviations of a cell's noise by which an answer may differ from its measurement."""

PAIR_REACH = 2.5
"""The same along a pair, whose cells are many of an answer's."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Noisy counts of groups, with half-widths that hold jointly."""

    measured: Mapping[Clique, Measurement] = field(default_factory=dict)
    errors: Mapping[Clique, float] = field(default_factory=dict)


def sweep_marginals(
    run: Run, merging: Merging, cliques: Sequence[Clique], price: Fraction, beta: Fraction
) -> Sweep:
    """Measure each of the cliques with an equal part of the price."""
    if not cliques:
        return Sweep()
    declared = run.curator.declaration
    each = whole_units(price / len(cliques))
    look = MergedMarginals(
        merging,
        tuple(Marginal(run.domain, c) for c in cliques),
        (each,) * len(cliques),
        declared.neighbours,
        declared.max_rows,
    )
    measured, errors = {}, {}
    for c, mechanism, counts in zip(cliques, look.mechanisms, run.look("guard", look), strict=True):
        shaped = np.array(counts, np.float64).reshape(merging.coarse.shape(c))
        measured[c] = Measurement(c, shaped, float(mechanism.variance))
        errors[c] = float(mechanism.error(beta / len(cliques), cells=shaped.size))
    return Sweep(measured, errors)


def all_binary(merging: Merging, workload: Workload) -> bool:
    """Whether every attribute of the workload has two values, none merged."""
    sizes = {merging.coarse[name].size for c in workload for name in c}
    return sizes == {2} and {merging.domain[name].size for c in workload for name in c} == {2}


def sweep_contrasts(run: Run, workload: Workload, price: Fraction, beta: Fraction) -> Sweep:
    """Measure the contrasts of all parts of the workload's cliques, each for the root of the weight that uses it.

    With a price ∝ √weight the summed variance of all answers is smallest. A cell of a clique of k attributes is
    2⁻ᵏ·Σ ±contrast, so its noise has variance 4⁻ᵏ·Σσ². Discrete Gaussian noise has a moment generating function of
    at most exp(t²σ²/2) (a shifted Gaussian sums to at most the centred one over the integers), hence
    P[|noise of a cell| > t] ≤ 2·exp(-t²/2V) with V that variance.
    """
    declared = run.curator.declaration
    weight: dict[Clique, float] = {}
    for clique, share in zip(workload.cliques, workload.weights, strict=True):
        for order in range(len(clique) + 1):
            for part in combinations(clique, order):
                weight[part] = weight.get(part, 0.0) + float(share)
    public = declared.neighbours is Neighbours.REPLACE
    parts = [c for c in weight if c or not public]
    roots = [Fraction(round(10**6 * sqrt(weight[c] / max(weight.values())))) for c in parts]
    prices = tuple(whole_units(price * root / sum(roots)) for root in roots)
    marginals = tuple(Marginal(run.domain, c) for c in parts)
    look = Contrasts(marginals, prices, declared.neighbours, declared.max_rows)
    found = dict(zip(parts, run.look("guard", look), strict=True))
    variance = {c: float(m.variance) for c, m in zip(parts, look.mechanisms, strict=True)}
    if public:
        found[()], variance[()] = run.curator.rows, 0.0
    measured, errors = {}, {}
    for clique in workload:
        inside = [c for order in range(len(clique) + 1) for c in combinations(clique, order)]
        table = sum((found[c] * _signs(clique, c) for c in inside), np.zeros((2,) * len(clique)))
        spread = sum(variance[c] for c in inside) / 4 ** len(clique)
        measured[clique] = Measurement(clique, table / 2 ** len(clique), spread)
        errors[clique] = sqrt(2 * spread * log(2 * workload.queries / float(beta)))
    return Sweep(measured, errors)


def _signs(clique: Clique, part: Clique) -> Table:
    signs = np.ones(())
    for name in clique:
        signs = np.multiply.outer(signs, np.array([1.0, -1.0]) if name in part else np.ones(2))
    return signs


def guarded(clique: Clique, table: Table, sweep: Sweep, rows: float) -> Table:
    """Counts of groups moved to where the sweep allows: by the clique's own measurement, or along its pairs."""
    own = sweep.measured.get(clique)
    if own is not None:
        return _combined(table, own, rows)
    told = [sweep.measured[p] for p in combinations(clique, 2) if p in sweep.measured]
    if not told:
        return table
    moved = np.array(table)
    for _ in range(2 if len(told) > 1 else 1):
        for m in told:
            gone = tuple(i for i, name in enumerate(clique) if name not in m.clique)
            here = moved.sum(axis=gone, keepdims=True)
            reach = PAIR_REACH * sqrt(m.variance)
            seen = m.counts.reshape(here.shape)
            wanted = np.clip(here, np.maximum(seen - reach, 0.0), np.maximum(seen + reach, 0.0))
            moved *= np.divide(wanted, here, out=np.ones_like(here), where=here > 1e-9)
    return moved * (rows / max(float(moved.sum()), 1e-9))


def _combined(table: Table, own: Measurement, rows: float) -> Table:
    """The stand-in, moved to within `REACH` standard deviations of the measurement; or both, by their precisions.

    τ², the stand-in's mean squared error in this marginal, is estimated by the mean squared difference less the
    noise. A few cells that are far off are moved one by one; where the stand-in is off by more than the noise
    everywhere, the measurement counts for its share τ²/(τ² + σ²).
    """
    apart = own.counts - table
    error = max(float(np.mean(apart**2)) - own.variance, 0.0)
    reach = REACH * sqrt(own.variance)
    if error > own.variance:
        table = table + error / (error + own.variance) * apart
    return simplex(np.clip(table, own.counts - reach, own.counts + reach), rows)
