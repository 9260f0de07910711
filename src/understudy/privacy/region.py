"""Which rows can move noisy counts: what joint accounting goes by."""

from __future__ import annotations

import numpy as np

from understudy.privacy.event import Event, GaussianNoise, LaplaceNoise, Located, Span
from understudy.privacy.relation import Relation
from understudy.query.marginal import Marginal

MAX_CELLS = 1 << 16
"""The most cells of an attribute that a region names: as many as new ledgers tell apart (`joint.RULE_2`)."""


def located(marginal: Marginal, noise: LaplaceNoise | GaussianNoise, relation: Relation) -> Event:
    """The noise on a marginal's counts, with the region whose rows can move them where it is not everybody.

    A condition on several attributes at once is taken by its extent along each, and one on an attribute of more
    cells than the accounting tells apart is left out, with its cells, which nobody has to write down: a region may
    be too large, which costs accuracy of the accounting, never soundness.
    """
    moved = noise.l1 if isinstance(noise, LaplaceNoise) else noise.l2_squared
    if moved == 0 or not marginal.where.is_counting:
        return noise
    spans: list[Span] = []
    for factor in marginal.where.factors:
        for axis, name in enumerate(factor.clique):
            others = tuple(i for i in range(factor.weights.ndim) if i != axis)
            held = np.atleast_1d(factor.weights.any(axis=others) if others else factor.weights > 0)
            if not held.any():  # a condition that nobody meets: no region, and the noise's own price
                return noise
            if not held.all() and held.size <= MAX_CELLS:
                mask = sum(1 << int(cell) for cell in np.flatnonzero(held))
                spans.append(Span(marginal.domain[name].identity, held.size, mask))
    if not spans:
        return noise
    region = tuple(sorted(spans, key=lambda span: span.attribute))
    return Located(noise=noise, region=region, relation=str(relation), split=marginal.size > 1)
