"""Questions to a release that cut bins: what is certain of them, and what a public rule adds.

A release knows declared cells, and its marginals cannot be split. A condition that cuts a bin is answered by the
rule of `query.within_bins`: rows are spread evenly in the bin. Nobody vouches for that, so the answer is
`uncertified`. What is certain is told all the same: the count is at least that of the whole bins of the condition,
and at most that of these and of the bins that it cuts. The error reaches to both ends, and the part of it that
comes from the cut bins, which no budget would make smaller, is told apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from understudy.answer.cut_bins import CutBins
from understudy.domain.domain import Domain
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.projection import Projection
from understudy.query.within_bins import (
    EvenlySpread,
    averaged,
    declared_groups,
    enclosing,
    whole_groups,
)
from understudy.releases.run import MarginalAnswer

Values = NDArray[np.float64]

Best = Callable[[Marginal], MarginalAnswer]
"""Counts and their intervals for a question about declared cells."""


def cut_counts(
    marginal: Marginal, declared: Domain, best: Best, standin: Projection
) -> tuple[Values, CutBins]:
    """The counts of a question over a refinement of a release's domain, in people, and what is certain of them.

    `best` answers questions over the domain itself. The certified ends are infinite where its errors are.
    """
    inner, outer = enclosing(marginal.where, declared)
    whole = best(Marginal(declared, marginal.by, inner))
    around = best(Marginal(declared, marginal.by, outer))
    alone = whole_groups(marginal, declared)
    # A group that is a part of a declared cell holds no whole bin, and at most its cell.
    low = np.where(alone, np.maximum(declared_groups(marginal, declared, whole.low), 0.0), 0.0)
    high = declared_groups(marginal, declared, around.high)
    if alone.all():
        estimate = best(Marginal(declared, marginal.by, averaged(marginal.where, declared))).counts
    else:
        estimate = _shared_out(
            marginal, declared, declared_groups(marginal, declared, around.counts), outer, standin
        )
    possible = _possible(marginal)
    low, high = np.where(possible, np.minimum(low, high), 0.0), np.where(possible, high, 0.0)
    # Where the whole bins are not certified and all around them is, what lies between is not due to cut bins.
    own = np.where(alone, declared_groups(marginal, declared, (whole.high - whole.low) / 2), 0.0)
    own = np.where(np.isfinite(high), np.minimum(own, (high - low) / 2), np.inf)
    return np.clip(estimate, low, high), CutBins.beyond(low, high, own)


def _shared_out(
    marginal: Marginal, declared: Domain, cells: Values, outer: LinearQuery, standin: Projection
) -> Values:
    """The counts of declared cells, divided among their parts as the stand-in divides them."""
    fine = marginal.answer(EvenlySpread(standin, marginal.domain))
    coarse = declared_groups(marginal, declared, Marginal(declared, marginal.by, outer).answer(standin))
    return cells * np.divide(fine, coarse, out=np.zeros(fine.shape), where=coarse > 0)


def _possible(marginal: Marginal) -> NDArray[np.bool_]:
    """Which groups a row that meets the condition can be in."""
    held = np.ones((1,) * len(marginal.by), bool)
    for factor in marginal.where.factors:
        gone = tuple(i for i, name in enumerate(factor.clique) if name not in marginal.by)
        some = (factor.weights > 0).any(axis=gone)
        sizes = dict(zip([n for n in factor.clique if n in marginal.by], some.shape, strict=True))
        held = held & some.reshape([sizes.get(name, 1) for name in marginal.by])
    return np.broadcast_to(held, marginal.shape)
