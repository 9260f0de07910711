"""Marginals put together from noisy residuals: their counts, the exact variance of each cell, and error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import ParameterError, QueryError
from understudy.mechanism.matrix.many_marginals import JointStrategy
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.query.residuals import assembled, parts_of
from understudy.rational import Number, probability
from understudy.releases.residual.half_width import GaussianLaw, half_width
from understudy.standin.measurement import Interaction

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ResidualTables:
    """Noisy residuals, and the marginals below which they lie.

    `released` is what `look` released; `rows` the number of rows where it is public, else nothing, and the
    total was measured. The interaction of A's attributes is u_A = (⊗ W_i⁺)(released), and a table over C is

        Σ_{A ⊆ C} u_A ⊗ (1/k_i on every other attribute),   with variance  Σ v_A·Π_{i ∈ A} d_i(x_i)·Π 1/k_i²

    in cell x, where v_A is the parameter of the noise's law (its own variance is no larger, or where it is rounded
    by 1/12 at most) and d_i the squared length of row x_i of W_i⁺.
    """

    residuals: Residuals
    look: JointStrategy
    released: NDArray[np.int64]
    rows: float | None = None

    def __post_init__(self) -> None:
        if len(self.released) != self.look.cells:
            raise ParameterError("there is one released number for each combination")
        if self.rows is None and () not in self.residuals.cliques:
            raise ParameterError("the total is public, or measured")

    @cached_property
    def interactions(self) -> dict[Clique, Values]:
        """u_A for each residual A; each axis sums to 0."""
        found: dict[Clique, Values] = {}
        at = 0
        for part in self.look.parts:
            shape = self.look.shape(part)
            size = prod(shape)
            table = self.released[at : at + size].reshape(shape).astype(np.float64)
            for axis, name in enumerate(part.clique):
                table = self.residuals.bases[name].unmix(table, axis)
            found[part.clique] = table
            at += size
        if self.rows is not None:
            found[()] = np.array(float(self.rows))
        return found

    @cached_property
    def noise(self) -> dict[Clique, float]:
        """v_A: the parameter of each residual's noise."""
        return {part.clique: float(1 / part.precision) for part in self.look.parts}

    def _inside(self, clique: Clique) -> list[Clique]:
        wide = tuple(name for name in clique if self.residuals.domain[name].size > 1)
        return [part for part in parts_of(wide) if part in self.noise]

    def table(self, clique: Clique) -> Values:
        """The counts of a marginal: unbiased, and those of two marginals agree on what they share."""
        return assembled(clique, self._sizes, self.interactions)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {attribute.name: attribute.size for attribute in self.residuals.domain}

    def variance(self, clique: Clique) -> Values:
        """Of every cell."""
        domain = self.residuals.domain
        own, even = self._spreads
        found = np.zeros(domain.shape(clique))
        for part in self._inside(clique):
            term = np.array(self.noise[part])
            for name in clique:
                term = np.multiply.outer(term, own[name] if name in part else even[name])
            found += term
        return found

    @cached_property
    def _spreads(self) -> tuple[dict[str, Values], dict[str, Values]]:
        """The variance that each attribute's cells get from a residual with it, and from one without."""
        bases = self.residuals.bases
        own = {name: bases[name].spread for name in self._sizes}
        return own, {name: np.full(size, 1 / size**2) for name, size in self._sizes.items()}

    def told(self) -> list[Interaction]:
        """Every interaction, with the mean variance of its coordinates."""
        return [Interaction(c, counts, self.coordinates(c)) for c, counts in self.interactions.items() if c]

    def coordinates(self, part: Clique) -> float:
        """The mean variance of a residual's coordinates in an orthonormal basis."""
        spreads = [self.residuals.bases[name].spread for name in part]
        return self.noise[part] * prod(float(one.sum()) / (one.size - 1) for one in spreads)

    @cached_property
    def _numbers(self) -> dict[Clique, int]:
        return {part.clique: prod(self.look.shape(part)) for part in self.look.parts}

    def law(self, part: Clique) -> GaussianLaw:
        """The law of a residual's noise."""
        return GaussianLaw(self.noise[part], self.look.rounded)

    def lift(self, clique: Clique) -> float:
        """The sum of the lifts of the noises that a marginal's cells are made of (`half_width`)."""
        return sum((self._numbers[part] * self.law(part).lift for part in self._inside(clique)), 0.0)

    def looseness(self, clique: Clique) -> float:
        """The largest looseness of these noises (`half_width`)."""
        return max((self.law(part).looseness for part in self._inside(clique)), default=1.0)

    def reach(self, clique: Clique) -> float:
        """The largest sum of the absolute weights with which noises enter a cell of a marginal (`half_width`)."""
        domain, bases = self.residuals.domain, self.residuals.bases
        even = prod(1 / domain[name].size for name in clique)
        reach = prod(1 / domain[name].size + bases[name].reach for name in clique)
        return reach if self.rows is None else reach - even

    def error(self, clique: Clique, beta: Number) -> Values:
        """Half-widths that hold for each cell alone with probability 1 - `beta`."""
        return half_width(
            self.variance(clique),
            probability(beta),
            reach=self.reach(clique),
            lift=self.lift(clique),
            looseness=self.looseness(clique),
        )

    def sums(self, weights: Mapping[str, Values], beta: Number) -> tuple[Values, Values]:
        """Counts of product weights, such as a range of each attribute, and half-widths of each at 1 - `beta`.

        Each attribute has questions in rows, with a weight for each of its cells; the products of one row of each
        are asked, in domain order. The attributes must lie together in a marginal of the workload.
        """
        domain, bases = self.residuals.domain, self.residuals.bases
        clique = domain.clique(weights)
        if not any(set(clique) <= set(asked) for asked in self.residuals.workload):
            raise QueryError("the question's attributes lie in no marginal of the workload")
        given = {name: np.atleast_2d(np.asarray(weights[name], np.float64)) for name in clique}
        even = {name: given[name].mean(axis=1) for name in clique}
        along = {name: bases[name].along(given[name]) for name in clique}
        lengths = {name: (along[name] ** 2).sum(axis=1) for name in clique}
        reaches = {name: np.abs(along[name]).sum(axis=1) for name in clique}
        inside = self._inside(clique)
        value, variance, reach = (np.zeros([len(given[name]) for name in clique]) for _ in range(3))
        for part in dict.fromkeys((*inside, ())):
            own = set(part)
            value += _product([None if name in own else even[name] for name in clique]) * np.reshape(
                _combined(self.interactions[part], [given[name] for name in part]),
                [len(given[name]) if name in own else 1 for name in clique],
            )
            if part in self.noise:
                variance += self.noise[part] * _product(
                    [lengths[name] if name in own else even[name] ** 2 for name in clique]
                )
                reach += _product([reaches[name] if name in own else np.abs(even[name]) for name in clique])
        lift, loose = self.lift(clique), self.looseness(clique)
        widest = float(reach.max(initial=0.0))
        return value, half_width(variance, probability(beta), reach=widest, lift=lift, looseness=loose)


def _product(vectors: Sequence[Values | None]) -> Values:
    """The outer product of one vector for each axis, where None stands for an axis that is left to be filled."""
    found = np.ones([1] * len(vectors))
    for axis, vector in enumerate(vectors):
        if vector is not None:
            found = found * vector.reshape([-1 if i == axis else 1 for i in range(len(vectors))])
    return found


def _combined(table: Values, rows: Sequence[Values]) -> Values:
    """A table with each axis replaced by its sums along rows of weights."""
    for axis, weights in enumerate(rows):
        table = np.moveaxis(np.tensordot(weights, table, axes=(1, axis)), 0, axis)
    return table
