"""A stand-in near noisy interactions: a histogram of every cell where that fits, else a junction tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod, sqrt

import numpy as np

from understudy.domain.domain import Clique, Domain
from understudy.query.constraint import Constraint
from understudy.query.projection import Projection
from understudy.query.residuals import assembled
from understudy.standin.dense.weights import DenseWeights
from understudy.standin.graphical.model import CandidateSizes, GraphicalStandIn, fit, model_cells
from understudy.standin.interactions import Interaction
from understudy.standin.maximum_entropy import NEWTON_LIMIT, coordinates_of, fit_histogram
from understudy.standin.measurement import Measurement

ENTROPY = 0.7
"""κ times the standard deviation of the noise, in people: enough to keep empty what the noise alone would fill."""

NEWTON_CELLS = 1 << 22
FOLLOWED_CELLS = 1 << 18
"""Cells of a universe whose histogram is fitted within seconds, by second derivatives or by gradients."""

TREE_CELLS = 1 << 19
"""Cells of a junction tree's tables, where the universe is larger."""

TREE_TRIES = 400
"""Cliques that are tried for the tree, the most telling first."""


def stand_in(
    domain: Domain, told: Sequence[Interaction], *, rows: float, constraints: Sequence[Constraint] = ()
) -> Projection:
    """A distribution near all interactions; with every clique its smaller ones must be told too.

    Where `constraints` say that cells are empty, it is a tree, which keeps them so.
    """
    if constraints:
        return fit_tree(domain, told, rows=rows, constraints=constraints)
    few = coordinates_of(domain, told) <= NEWTON_LIMIT
    if domain.size() <= (NEWTON_CELLS if few else FOLLOWED_CELLS):
        rates = fit_histogram(domain, told, rows=rows, entropy=ENTROPY)
        return DenseWeights.histogram(domain, rates, threads=1)
    return fit_tree(domain, told, rows=rows)


def fit_tree(
    domain: Domain,
    told: Sequence[Interaction],
    *,
    rows: float,
    cells: int = TREE_CELLS,
    constraints: Sequence[Constraint] = (),
) -> GraphicalStandIn:
    """A junction tree of at most `cells` cells on the cliques that tell most beyond their noise."""
    by_clique = {part.clique: part for part in told if part.clique}
    chosen = _chosen(domain, list(by_clique.values()), cells, [c.clique for c in constraints])
    largest = [c for c in chosen if not any(set(c) < set(other) for other in chosen)]
    tables = [_measurement(domain, by_clique, c, rows) for c in largest]
    return fit(domain, tables, total=rows, constraints=constraints)


def _chosen(domain: Domain, told: Sequence[Interaction], limit: int, fixed: Sequence[Clique]) -> list[Clique]:
    """All attributes, and greedily the clique that tells most for each cell by which it makes the tree grow.

    The tree holds the `fixed` cliques whatever is chosen.
    """
    chosen: list[Clique] = [part.clique for part in told if len(part.clique) == 1]
    scored = [(_telling(part), part) for part in told if len(part.clique) > 1]
    best = sorted((found for found in scored if found[0] > 0), key=lambda found: -found[0])[:TREE_TRIES]
    if not best:
        return chosen
    scores = np.array([score for score, _ in best])
    own = np.array([part.counts.size for _, part in best], np.float64)
    sizes = CandidateSizes(domain, [part.clique for _, part in best])
    now = model_cells(domain, [*chosen, *fixed])
    left = np.ones(len(best), np.bool_)
    while True:
        grown = np.asarray(sizes.cells([*chosen, *fixed]), np.float64)
        left &= grown <= limit
        if not left.any():
            return chosen
        found = int(np.argmax(np.where(left, scores / (np.maximum(grown - now, 0) + own), -1.0)))
        chosen.append(best[found][1].clique)
        left[found], now = False, grown[found]


def _telling(part: Interaction) -> float:
    """Σ|u| that an interaction has beyond noise of its variance, less half of what that noise would bring.

    Lengths stand for sums of absolute values: √(cells·(‖u‖² - v·coordinates)) - ½·cells·√v.
    """
    noise = part.variance * prod(size - 1 for size in part.counts.shape)
    beyond = max(float((part.counts**2).sum()) - noise, 0.0)
    return sqrt(beyond * part.counts.size) - 0.5 * part.counts.size * sqrt(part.variance)


def _measurement(
    domain: Domain, told: Mapping[Clique, Interaction], clique: Clique, rows: float
) -> Measurement:
    """A table put together from interactions, with the mean variance of its cells."""
    inside = [part for part in told if set(part) <= set(clique)]
    sizes = {name: domain[name].size for name in clique}
    counts = assembled(clique, sizes, {(): np.array(rows), **{part: told[part].counts for part in inside}})
    variance = sum(
        told[part].variance
        * prod(1 - 1 / size for size in domain.shape(part))
        / (domain.size(clique) / domain.size(part)) ** 2
        for part in inside
    )
    return Measurement(clique, counts, float(variance))
