"""After the budget: a stand-in fitted to what was released answers on, and says that nobody vouches for it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from understudy.domain import Domain
from understudy.interactive.fresh import intervals
from understudy.interactive.knowledge import Knowledge
from understudy.query.marginal import Marginal

Values = NDArray[np.float64]


def uncertified(knowledge: Knowledge, marginal: Marginal) -> Values:
    """Counts by a product of the released histograms, moved into what is known of them."""
    found = _independent(marginal, _shares(knowledge)) * (knowledge.total[0] + knowledge.total[1]) / 2
    known = intervals(knowledge, marginal)
    return found if known is None else np.clip(found, known.low, known.high)


def _shares(knowledge: Knowledge) -> Mapping[str, Values]:
    """A distribution of every attribute: its histogram without the noise below 0, or all cells alike."""
    domain: Domain = knowledge.grid.domain
    found = {}
    for attribute in domain:
        known = knowledge.one_ways.get(attribute.name)
        counts = np.ones(attribute.size) if known is None else np.maximum(known.counts, 0.0)
        if counts.sum() <= 0:
            counts = np.ones(attribute.size)
        found[attribute.name] = counts / counts.sum()
    return found


def _independent(marginal: Marginal, shares: Mapping[str, Values]) -> Values:
    """The answer of independent attributes: a product over the parts of the condition."""
    axes = {name: i for i, name in enumerate(marginal.by)}
    found: Values = np.ones((1,) * len(axes))
    for name, axis in axes.items():
        found = found * shares[name].reshape([-1 if i == axis else 1 for i in range(len(axes))])
    for factor in marginal.where.factors:
        part: Values = factor.weights
        for axis in reversed(range(len(factor.clique))):
            if factor.clique[axis] not in axes:
                part = np.tensordot(part, shares[factor.clique[axis]], axes=(axis, 0))
        left = [name for name in factor.clique if name in axes]
        sizes = dict(zip(left, part.shape, strict=True))
        found = found * part.reshape([sizes.get(name, 1) for name in marginal.by])
    return np.broadcast_to(found, marginal.shape)
