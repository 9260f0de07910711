"""Answers after the budget is spent: a stand-in that is fitted to everything that was released.

The stand-in is a graphical model (`standin.graphical`) of all released marginals that fit into a tree of limited
size, those first that are furthest from independence. Everything else that was released, counts of conjunctions
and marginals of some rows included, is applied to the answers that contain it: the model's table is scaled along
it until the two agree as far as the noise warrants. Parts of bins that a question cuts get their share of the bin
by the rule of `query.within_bins`.

Promise     None of accuracy: its answers are `uncertified`, with an infinite error. They lie in every interval
            that is known to hold.
Privacy     It costs nothing: all of this is post-processing of released numbers.
Cost        Time: a fit after each purchase that is followed by such a question, from where the last one ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.query.moment import Moment
from understudy.query.within_bins import EvenlySpread, averaged, spread
from understudy.sessions.direct import intervals
from understudy.sessions.knowledge import UNBOUNDED, Knowledge, ReleasedTable
from understudy.sessions.marginals_class import ReleasedMarginals
from understudy.sessions.product_class import ReleasedProduct
from understudy.standin.graphical.model import FitSettings, GraphicalStandIn, fit, model_cells
from understudy.standin.local_fit import LEAST_SLACK, Observation, locally_fitted
from understudy.standin.measurement import Measurement

Values = NDArray[np.float64]

MOST_SCALED_CELLS = 1 << 18
"""Cells of the tree, and of a table that is scaled."""

MOST_SCALED = 64
"""Releases that one table is scaled along; the latest ones."""

BAND = 4.0
"""The half-width of a band is taken as so many deviations of its noise."""

SETTLED = 1e-12
"""How closely a table is scaled, in its logarithm."""

NOBODY = 1e-9
"""The least count of a cell, in people: one of 0 could never be scaled up again."""

SETTINGS = FitSettings(most_passes=100, noise_share=0.05)


@dataclass(frozen=True, eq=False)
class FittedStandin:
    """A graphical model of `rows` rows, and the released tables that do not fit into it."""

    model: GraphicalStandIn
    rows: float
    beside: tuple[tuple[frozenset[str], ReleasedTable], ...]
    """Released tables that are not in the model, each with the attributes that it is about."""

    @classmethod
    def of(cls, knowledge: Knowledge, *, start: GraphicalStandIn | None = None) -> FittedStandin:
        """The stand-in of everything that was released so far; `start` is a model to begin the fit from."""
        domain, rows = knowledge.grid.domain, _rows(knowledge)
        everything = [*_histograms(knowledge), *_classes(knowledge), *knowledge.released]
        whole = [r for r in everything if r.by and not r.where.sides]
        shares = _shares(domain, whole)
        whole.sort(key=lambda r: -_told(r, shares, rows))
        tree: list[Clique] = []
        for r in whole:
            if r.by not in tree and model_cells(domain, [*tree, r.by]) <= MOST_SCALED_CELLS:
                tree.append(r.by)
        inside = [r for r in whole if r.by in tree]
        measured = [Measurement(r.by, r.counts, r.variance) for r in inside]
        model = fit(domain, measured, total=rows, start=start, settings=SETTINGS)
        fitted = set(map(id, inside))
        beside = [(frozenset((*r.by, *r.where.sides)), r) for r in everything if id(r) not in fitted]
        return cls(model, rows, tuple((names, r) for names, r in beside if names))

    def counts(self, knowledge: Knowledge, marginal: Marginal) -> Values:
        """The stand-in's counts of a marginal's cells, in people, moved into the intervals that are known."""
        domain = marginal.domain
        if domain.size(marginal.reads) <= MOST_SCALED_CELLS:
            scaled = spread(self._scaled(marginal.reads), marginal.reads, domain, self.model.domain)
            table = scaled * marginal.grid_weights()
            gone = tuple(i for i, name in enumerate(marginal.reads) if name not in marginal.by)
            counts = table.sum(axis=gone)
        elif isinstance(marginal.moment, Moment):  # as if all values lay in the middle
            middle = marginal.moment.value([np.full(1, 0.5)] * len(marginal.moment.names))
            counts = middle * self.counts(knowledge, replace(marginal, moment=None))
            counts = counts.reshape(marginal.shape)
        elif not marginal.by:
            counts = np.array(self.rows * self.model.answer(averaged(marginal.where, self.model.domain)))
        else:
            evenly = EvenlySpread(self.model, domain)
            shares = {name: evenly.project((name,)) for name in marginal.clique}
            counts = self.rows * _independent(marginal, shares)
        known = intervals(knowledge, marginal)
        return counts if known is None else np.clip(counts, known.low, known.high)

    def _scaled(self, clique: Clique) -> Values:
        """The counts of a clique's cells after scaling along every release about its attributes."""
        table = np.maximum(self.model.project(clique) * self.rows, NOBODY)
        inside = [r for names, r in self.beside if names.issubset(clique)][-MOST_SCALED:]
        seen = [Observation(r.by, r.counts, r.variance, _mask(clique, r.where)) for r in inside]
        return locally_fitted(clique, table, seen, self.rows, settled=SETTLED, least=NOBODY)


def _mask(clique: Clique, where: Box) -> Values | None:
    """1 in the cells of a clique that lie in a box, else 0; nothing where all cells do."""
    if not where.sides:
        return None
    mask = np.ones((1,) * len(clique))
    for axis, name in enumerate(clique):
        if name in where.sides:
            mask = mask * where.sides[name].reshape([-1 if i == axis else 1 for i in range(len(clique))])
    return mask


# ---- what was released


def _rows(knowledge: Knowledge) -> float:
    least, most = knowledge.total
    return least if most >= UNBOUNDED else (least + most) / 2


def _histograms(knowledge: Knowledge) -> Iterable[ReleasedTable]:
    everyone = Box(knowledge.grid.domain, {})
    for name, known in knowledge.one_ways.items():
        spread = max(float(known.half_widths[1]) / BAND, LEAST_SLACK)
        yield ReleasedTable((name,), everyone, known.counts, spread**2)


def _classes(knowledge: Knowledge) -> Iterable[ReleasedTable]:
    for where, held in knowledge.classes():
        if isinstance(held, ReleasedProduct):
            yield ReleasedTable(held.by, where, held.counts, (held.width / BAND) ** 2)
    for held in knowledge.marginals:
        if isinstance(held, ReleasedMarginals):
            yield from held.released()


# ---- independence


def _shares(domain: Domain, whole: Sequence[ReleasedTable]) -> Mapping[str, Values]:
    """A distribution of every attribute, from the best release that has it; all cells alike without any."""
    found = {attribute.name: np.full(attribute.size, 1 / attribute.size) for attribute in domain}
    for r in sorted(whole, key=lambda r: (-len(r.by), -r.variance)):  # the best one last
        for axis, name in enumerate(r.by):
            counts = r.counts.sum(axis=tuple(i for i in range(len(r.by)) if i != axis)).clip(min=0)
            if counts.sum() > 0:
                found[name] = counts / counts.sum()
    return found


def _told(r: ReleasedTable, shares: Mapping[str, Values], rows: float) -> float:
    """How far a marginal is from independence, less what noise alone would seem to be; single attributes first."""
    if len(r.by) == 1:
        return np.inf
    far = float(np.abs(r.counts - rows * _product(r.by, shares)).sum())
    return far - 0.8 * r.variance**0.5 * r.counts.size


def _product(by: Clique, shares: Mapping[str, Values]) -> Values:
    found: Values = np.ones((1,) * len(by))
    for axis, name in enumerate(by):
        found = found * shares[name].reshape([-1 if i == axis else 1 for i in range(len(by))])
    return found


def _independent(marginal: Marginal, shares: Mapping[str, Values]) -> Values:
    """The answer of independent attributes: a product over the parts of the condition."""
    axes = {name: i for i, name in enumerate(marginal.by)}
    found = _product(marginal.by, shares)
    for factor in marginal.where.factors:
        part: Values = factor.weights
        for axis in reversed(range(len(factor.clique))):
            if factor.clique[axis] not in axes:
                part = np.tensordot(part, shares[factor.clique[axis]], axes=(axis, 0))
        left = [name for name in factor.clique if name in axes]
        sizes = dict(zip(left, part.shape, strict=True))
        found = found * part.reshape([sizes.get(name, 1) for name in marginal.by])
    return np.broadcast_to(found, marginal.shape)
