"""A stand-in for universes of any size: a product of log factors on cliques, answered by a junction tree.

What it needs grows with the tables of the tree's cliques (`model_cells`), not with the universe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.domain.domain import CELL_LIMIT, Clique, Domain
from understudy.errors import ParameterError, TooLargeError
from understudy.query.constraint import Constraint
from understudy.query.linear import LinearQuery
from understudy.standin.graphical.answer import Answers
from understudy.standin.graphical.belief import Beliefs, Propagator
from understudy.standin.graphical.fit import FitProblem, FitReport, FitSettings, solved
from understudy.standin.graphical.residual import OwnPart, ResidualCounts, maximal, reconcile
from understudy.standin.graphical.sample import sample
from understudy.standin.graphical.tree import (
    Attributes,
    CandidateSizes,
    JunctionTree,
    Layout,
    Values,
    junction_tree,
    model_cells,
)
from understudy.standin.measurement import Interaction, Measurement

__all__ = [
    "CandidateSizes",
    "Constraint",
    "FitReport",
    "FitSettings",
    "GraphicalStandIn",
    "LogFactor",
    "estimated_total",
    "fit",
    "model_cells",
]


EXPANDED_CELLS = 1 << 16
"""Queries on cliques of up to this many cells are answered from the clique's marginal."""


@dataclass(frozen=True, eq=False)
class LogFactor:
    """A table of finite logarithms over a clique's cells, in domain order: one factor of a model."""

    clique: Clique
    logs: NDArray[np.float64]

    def __post_init__(self) -> None:
        logs = np.array(self.logs, dtype=np.float64)
        if logs.ndim != len(self.clique) or not np.isfinite(logs).all():
            raise ParameterError("a log factor is one finite number for each cell of its clique")
        logs.flags.writeable = False
        object.__setattr__(self, "logs", logs)


@dataclass(frozen=True)
class _Frame:
    """Everything about a model that does not depend on its numbers; shared by models over the same cliques."""

    layout: Layout
    factors: tuple[Attributes, ...]
    zeros: tuple[Attributes, ...]

    @cached_property
    def tree(self) -> JunctionTree:
        tree = junction_tree(self.layout, [*self.factors, *self.zeros])
        if (cells := tree.cells(self.layout)) > CELL_LIMIT:
            raise TooLargeError("the model over these cliques", cells=cells, limit=CELL_LIMIT)
        return tree

    @cached_property
    def propagator(self) -> Propagator:
        return Propagator(self.layout, self.tree, self.factors, self.zeros)


@dataclass(frozen=True, eq=False)
class GraphicalStandIn:
    """The distribution ∝ exp(sum of the factors) on the cells that constraints allow, standing for `total` rows.

    A value: nothing about it changes once it is made; what is worked out on the first question is kept.
    """

    domain: Domain
    total: float
    factors: tuple[LogFactor, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    report: FitReport | None = None
    _shared: _Frame | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.total < inf:
            raise ParameterError(f"a total is a finite number of at least 0, not {self.total}")
        for table in (*self.factors, *self.constraints):
            values = table.logs if isinstance(table, LogFactor) else table.allowed
            self.domain.allocatable_shape(table.clique)
            if table.clique != self.domain.clique(table.clique) or values.shape != self.domain.shape(
                table.clique
            ):
                raise ParameterError("factors and constraints are shaped by their cliques, in domain order")

    @cached_property
    def _frame(self) -> _Frame:
        if self._shared is not None:
            return self._shared
        layout = Layout(self.domain)
        factors = tuple(layout.attributes(factor.clique) for factor in self.factors)
        return _Frame(layout, factors, tuple(layout.attributes(c.clique) for c in self.constraints))

    @cached_property
    def _tables(self) -> tuple[list[Values], tuple[Values, ...]]:
        """The factors and the constraints in the layout."""
        frame = self._frame
        logs = [frame.layout.inward(a, f.logs) for a, f in zip(frame.factors, self.factors, strict=True)]
        return logs, _inward_zeros(frame, self.constraints)

    @cached_property
    def _beliefs(self) -> Beliefs:
        return self._frame.propagator.propagate(*self._tables)

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self._frame.layout, self._frame.tree, self._beliefs)

    @property
    def cells(self) -> int:
        """Cells of the tree's tables."""
        return self._frame.tree.cells(self._frame.layout)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The cliques of the tree."""
        return tuple(map(self._frame.layout.clique, self._frame.tree.cliques))

    def project(self, clique: Clique) -> Values:
        """Rates that sum to 1, shaped in domain order; exact for any clique that can be held."""
        return self.project_many([clique])[0]

    def project_many(self, cliques: Iterable[Clique], *, most: int = CELL_LIMIT) -> list[Values]:
        """The projections on many cliques; what they have in common is worked out once.

        Raises a `TooLargeError` where a table on the way to one of them would have more than `most` cells.
        """
        layout = self._frame.layout
        named = [self.domain.clique(clique) for clique in cliques]
        for clique in named:
            self.domain.allocatable_shape(clique)
        questions = [layout.attributes(clique) for clique in named]
        answers = self._answers.marginals(questions, most)
        return [layout.outward(q, answer) for q, answer in zip(questions, answers, strict=True)]

    def answer(self, query: LinearQuery) -> float:
        """The average of a query, also where its table of weights could never be written out.

        A product over many attributes is taken into the tree factor by factor, and the masses with and without it
        are compared.
        """
        if self.domain.size(query.clique) <= EXPANDED_CELLS:
            return query.answer(self)
        frame, (logs, zeros) = self._frame, self._tables
        cliques = tuple(frame.layout.attributes(factor.clique) for factor in query.factors)
        weights = [frame.layout.inward(a, f.weights) for a, f in zip(cliques, query.factors, strict=True)]
        wider = _Frame(frame.layout, frame.factors, (*frame.zeros, *cliques))
        return exp(min(0.0, wider.propagator.log_mass(logs, [*zeros, *weights]) - self._beliefs.log_mass))

    def reweight(self, clique: Clique, log_factor: ArrayLike) -> GraphicalStandIn:
        """The model times exp(log_factor) on a clique's cells (in domain order), with the clique in its tree.

        This is the step of multiplicative weights: log_factor = η·q makes p(x) ∝ p(x) exp(η q(x)).
        """
        clique = self.domain.clique(clique)
        new = LogFactor(clique, np.asarray(log_factor, dtype=np.float64))
        holders = [i for i, factor in enumerate(self.factors) if set(clique) <= set(factor.clique)]
        if holders:
            i = min(holders, key=lambda i: (self.factors[i].logs.size, i))
            grown = LogFactor(self.factors[i].clique, _sum(self.factors[i].clique, [self.factors[i], new]))
            factors = (*self.factors[:i], grown, *self.factors[i + 1 :])
            return GraphicalStandIn(self.domain, self.total, factors, self.constraints, None, self._frame)
        inside = [factor for factor in self.factors if set(factor.clique) <= set(clique)]
        factors = (
            *(factor for factor in self.factors if factor not in inside),
            LogFactor(clique, _sum(clique, [*inside, new])),
        )
        model = GraphicalStandIn(self.domain, self.total, factors, self.constraints)
        _ = model._frame.tree  # refuses now what would be too large later
        return model

    def sample_codes(self, rows: int, *, rng: np.random.Generator) -> dict[str, NDArray[np.unsignedinteger]]:
        """Synthetic rows as codes, one array for each attribute.

        This is post-processing of public numbers, so its randomness protects nobody and `rng` may be seeded.
        """
        if rows < 0:
            raise ParameterError(f"the number of rows is at least 0, not {rows}")
        layout = self._frame.layout
        codes = sample(layout, self._frame.tree, self._beliefs, rows, rng)
        place = {layout.order[a]: a for a in codes}
        return {name: codes[place[position]] for position, name in enumerate(self.domain.names)}


def _sum(clique: Clique, factors: Sequence[LogFactor]) -> Values:
    """Factors on parts of a clique, added up over its cells."""
    total: Values | float = 0.0
    for factor in factors:
        sizes = dict(zip(factor.clique, factor.logs.shape, strict=True))
        total = total + factor.logs.reshape([sizes.get(name, 1) for name in clique])
    return np.asarray(total)


def _inward_zeros(frame: _Frame, constraints: Sequence[Constraint]) -> tuple[Values, ...]:
    return tuple(frame.layout.inward(a, c.allowed) for a, c in zip(frame.zeros, constraints, strict=True))


def _inward_counts(
    domain: Domain, layout: Layout, measurements: Iterable[Measurement]
) -> list[ResidualCounts]:
    counts: list[ResidualCounts] = []
    for m in measurements:
        if m.clique != domain.clique(m.clique) or m.counts.shape != domain.shape(m.clique):
            raise ParameterError("a measurement is shaped by its clique, in domain order")
        attributes = layout.attributes(m.clique)
        counts.append(ResidualCounts(attributes, layout.inward(attributes, m.counts), m.variance))
    return counts


def _inward_part(domain: Domain, layout: Layout, told: Interaction) -> OwnPart:
    if told.clique != domain.clique(told.clique) or told.counts.shape != domain.shape(told.clique):
        raise ParameterError("an interaction is shaped by its clique, in domain order")
    attributes = layout.attributes(told.clique)
    return OwnPart(attributes, layout.inward(attributes, told.counts), told.variance)


def estimated_total(domain: Domain, measurements: Sequence[Measurement]) -> float:
    """The number of rows that all measurements together say best, at least 0 (0 without any)."""
    counts = _inward_counts(domain, Layout(domain), measurements)
    return max(0.0, reconcile(Layout(domain), counts).total) if counts else 0.0


def fit(
    domain: Domain,
    measurements: Sequence[Measurement],
    *,
    total: float,
    interactions: Sequence[Interaction] = (),
    start: GraphicalStandIn | None = None,
    constraints: Sequence[Constraint] = (),
    settings: FitSettings | None = None,
) -> GraphicalStandIn:
    """The model of most entropy near all measurements at once (`FitProblem`), standing for `total` rows.

    `interactions` are measurements of single residuals; those of all sets within each must be told too, by them or
    by the measurements: a `ParameterError` says so where they are not. `start` is an earlier model, over the same
    domain, to begin from; it changes the work and not the outcome. The same arguments give the same bits on one
    machine.
    """
    settings = FitSettings() if settings is None else settings
    if not 0 <= total < inf:
        raise ParameterError(f"a total is a finite number of at least 0, not {total}")
    layout = Layout(domain)
    counts = _inward_counts(domain, layout, measurements)
    parts = [_inward_part(domain, layout, told) for told in interactions]
    cliques = maximal(c.attributes for c in (*counts, *parts) if c.attributes)
    frame = _Frame(layout, cliques, tuple(layout.attributes(c.clique) for c in constraints))
    if not cliques:
        return GraphicalStandIn(domain, total, (), tuple(constraints), None, frame)
    propagator = frame.propagator
    reconciled = reconcile(layout, counts, parts)
    problem = FitProblem.of(
        propagator,
        reconciled,
        total=max(total, 1.0),
        settings=settings,
        allowed=_inward_zeros(frame, constraints),
    )
    point, report = solved(problem, _beginning(layout, problem, start), settings)
    factors = tuple(
        LogFactor(layout.clique(t.attributes), layout.outward(t.attributes, point.theta[t.start : t.stop]))
        for t in reconciled.space.tables
    )
    return GraphicalStandIn(domain, total, factors, tuple(constraints), report, frame)


def _beginning(layout: Layout, problem: FitProblem, start: GraphicalStandIn | None) -> Values:
    """Log potentials to begin with: the earlier model's, and one-way rates for attributes that it lacks."""
    space = problem.reconciled.space
    theta = np.zeros(space.cells)
    known: set[int] = set()
    given = [] if start is None else [(layout.attributes(f.clique), f.logs) for f in start.factors]
    for attributes, logs in given:
        host = next((t for t in space.tables if set(attributes) <= set(t.attributes)), None)
        if host is not None:
            known.update(attributes)
            _add(layout, theta, host.start, host.attributes, attributes, layout.inward(attributes, logs))
    for a in sorted({a for t in space.tables for a in t.attributes} - known):
        host = next(t for t in space.tables if a in t.attributes)
        part = space.place.get((a,))
        if part is not None:
            level = problem.total / layout.sizes[a]
            counts = np.maximum(problem.reconciled.estimate[part.start : part.stop] + level, 0.1 * level)
            _add(layout, theta, host.start, host.attributes, (a,), np.log(counts / problem.total))
    return theta


def _add(
    layout: Layout, theta: Values, start: int, host: Attributes, attributes: Attributes, logs: Values
) -> None:
    shape = [layout.sizes[a] if a in attributes else 1 for a in host]
    table = theta[start : start + layout.cells(host)].reshape(layout.shape(host))
    table += logs.reshape(shape)
