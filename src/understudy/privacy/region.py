"""Which rows can move noisy counts: what joint accounting goes by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.privacy.event import AdditiveNoise, Event, Located, Span
from understudy.privacy.relation import Relation
from understudy.query.marginal import Marginal

MAX_CELLS = 1 << 16
"""The most cells of an attribute that a region names: as many as new ledgers tell apart (`NEWEST`)."""


def located(marginal: Marginal, noise: AdditiveNoise, relation: Relation) -> Event:
    """The noise on a marginal's counts, with the region whose rows can move them where it is not everybody.

    A condition on several attributes at once is taken by its extent along each, and one on an attribute of more
    cells than the accounting tells apart is left out, with its cells, which nobody has to write down: a region may
    be too large, which costs accuracy of the accounting, never soundness.
    """
    return located_stack((marginal,), noise, relation)


def located_stack(marginals: Sequence[Marginal], noise: AdditiveNoise, relation: Relation) -> Event:
    """One noise on the counts of marginals of which no row counts in two, with the region of all of them.

    Its extent along an attribute is that of all conditions together, and everything where one of them does not
    name the attribute. Each row adds to one cell, so that it moves the counts by at most half of what two rows do.
    """
    if noise.moves_nobody or not all(marginal.where.is_counting for marginal in marginals):
        return noise
    # A condition that nobody meets has no region, and alone the noise's own price.
    extents = [found for marginal in marginals if (found := _extents(marginal)) is not None]
    if not extents:
        return noise
    domain, spans = marginals[0].domain, list[Span]()
    for name in (name for name in extents[0] if all(name in found for found in extents)):
        held = np.logical_or.reduce([found[name] for found in extents])
        if not held.all() and held.size <= MAX_CELLS:
            mask = sum(1 << int(cell) for cell in np.flatnonzero(held))
            spans.append(Span(domain[name].identity, held.size, mask))
    if not spans:
        return noise
    region = tuple(sorted(spans, key=lambda span: span.attribute))
    split = sum(marginal.size for marginal in marginals) > 1
    return Located(noise=noise, region=region, relation=str(relation), split=split)


def _extents(marginal: Marginal) -> dict[str, NDArray[np.bool_]] | None:
    """For each attribute of a marginal's condition the cells in which it can hold; None where it holds nowhere."""
    found: dict[str, NDArray[np.bool_]] = {}
    for factor in marginal.where.factors:
        for axis, name in enumerate(factor.clique):
            others = tuple(i for i in range(factor.weights.ndim) if i != axis)
            held = np.atleast_1d(factor.weights.any(axis=others) if others else factor.weights > 0)
            if not held.any():
                return None
            found[name] = held
    return found
