"""More precision for small marginals, as far as it takes for their bars to be no wider than direct questions'.

The precisions that make a workload's largest variance least may leave its 1-way and 2-way marginals with little:
of a single marginal over three large attributes, nothing but its own cells is measured. Precisions add up, and so
do prices, so what is best for the workload is mixed with what direct questions to the small marginals would
measure. Each question's part of the price grows until its bar is short enough, and shrinks where it is shorter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.mechanism.matrix.many_marginals import JointStrategy
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.privacy.relation import Relation
from understudy.releases.residual.tables import ResidualTables

Values = NDArray[np.float64]

ROUNDS = 32
"""Of other parts of the price, at most. In the second half parts only grow: what shrinks may be short again."""

LEAST_PART = 0.1
"""Of an equal part: what a small marginal begins with whose bar is too wide."""

AIM = 1.01
"""Times the ratio of a bar to the one that it may have: what a part grows by, squared."""

MOST = 0.99
"""Of the price, for direct questions to small marginals, where nothing else is said."""

SHORT = 0.7
"""A bar that is so much shorter than it may be is looked at again at the end only: it grows by the root of what
others take of the price.
"""


def with_small_bars(
    residuals: Residuals,
    precisions: Values,
    relation: Relation,
    rho: Fraction,
    widest: Mapping[Clique, float],
    betas: Mapping[Clique, Fraction],
    *,
    most: float = MOST,
    rounded: bool = False,
) -> JointStrategy:
    """A look whose bars for the cliques of `widest` are at most that, found by public numbers alone.

    `betas` are those of each cell of these cliques; at most `most` of the price goes to what direct questions to
    them would measure; `rounded` says that the noise is rounded normal noise (`Run.rounded`). Where none is found,
    the one whose longest bar, over what it may have, is shortest.
    """
    own = precisions / float(precisions @ residuals.price)
    parts: dict[Clique, float] = {}
    direct: dict[Clique, Values] = {}
    best: tuple[float, JointStrategy] | None = None
    near = [clique for clique, limit in widest.items() if limit]
    for turn in range(ROUNDS):
        whole = sum(parts.values())
        scale = min(1.0, most / whole) if whole else 1.0
        tried = (1 - scale * whole) * own
        for clique, part in parts.items():
            tried = tried + scale * part * direct[clique]
        look = residuals.strategies(tried, relation, rho, rounded=rounded)
        ratios = ratios_of_bars(residuals, look, relation, near, widest, betas)
        if max(ratios.values(), default=0.0) <= 1:
            others = [clique for clique, limit in widest.items() if limit and clique not in ratios]
            ratios |= ratios_of_bars(residuals, look, relation, others, widest, betas)
            if max(ratios.values(), default=0.0) <= 1:
                return look
        longest = max(ratios.values())
        if best is None or longest < best[0]:
            best = longest, look
        near = [clique for clique, ratio in ratios.items() if ratio > SHORT]
        for clique in near:
            ratio, part = ratios[clique], parts.get(clique, 0.0)
            if ratio > 1:
                direct.setdefault(clique, direct_precisions(residuals, clique))
                part = max(part, LEAST_PART / len(widest))
            if part and (ratio > 1 or turn < ROUNDS // 2):
                parts[clique] = part * min(ratio * AIM, 4.0) ** 2
    assert best is not None
    return best[1]


def ratios_of_bars(
    residuals: Residuals,
    look: JointStrategy,
    relation: Relation,
    cliques: Sequence[Clique],
    widest: Mapping[Clique, float],
    betas: Mapping[Clique, Fraction],
) -> dict[Clique, float]:
    """Bars of cliques over those that they may have."""
    rows = 0.0 if relation.rows_are_public else None
    tables = ResidualTables(residuals, look, np.zeros(look.cells, np.int64), rows)
    return {c: float(tables.error(c, betas[c]).max()) / widest[c] for c in cliques}


def direct_precisions(residuals: Residuals, clique: Clique) -> Values:
    """What a direct question to a marginal tells of each residual; its price is 1.

    A cell's variance σ² is Σ_A σ²·Π_{i ∈ A} (1 - 1/k_i)·Π_{i ∉ A} 1/k_i over the parts A of the marginal, and in
    terms of residuals Σ_A v_A·Π_{i ∈ A} d_i·Π_{i ∉ A} 1/k_i², which gives v_A, and so a precision, for each A.
    """
    sizes = {name: residuals.domain[name].size for name in clique}
    wide = [name for name in clique if sizes[name] > 1]
    own = {name: residuals.bases[name].inside[0] / (1 - 1 / sizes[name]) for name in wide}
    found = np.zeros(len(residuals.cliques))
    for at, part in enumerate(residuals.cliques):
        if set(part) <= set(wide):
            even = prod(sizes[name] for name in wide if name not in part)
            found[at] = prod(own[name] for name in part) / even
    price = float(found @ residuals.price)
    return found / price if price else found
