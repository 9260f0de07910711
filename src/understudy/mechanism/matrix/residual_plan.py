"""How much precision each interaction of a workload's attributes gets, from public numbers alone.

A marginal over C is Σ_{A ⊆ C} of residuals: the part of the table over A that none of its smaller tables shows,
spread evenly over the cells of C. Residuals are orthogonal, so with noise of variance 1/t_A on residual A,

    variance of a question on C   var_C = Σ_{A ⊆ C} h(A, C)/t_A,   h = Π_{i ∈ A} inside_i · Π_{i ∈ C∖A} outside_i
    price                         Σ_A p_A·t_A,                     p_A = Π_{i ∈ A} max‖w‖² (what a row adds)

and the weighted sum of variances Σ_A u_A/t_A is least, at a given price, for t_A ∝ √(u_A/p_A). The largest
variance is the largest weighted mean of them, so it is least for the weights that make that sum largest; they are
found by raising the weight of what is worst.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import frexp, prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError, TooLargeError
from understudy.mechanism.matrix.bases import Basis, basis
from understudy.mechanism.matrix.many_marginals import JointStrategy, StrategyPart
from understudy.privacy.relation import Relation
from understudy.query.residuals import parts_of
from understudy.query.workload import Workload

Values = NDArray[np.float64]
Objective = Literal["sum", "largest"]

ROUNDS = 400
"""Of raising weights, at most."""

CLOSE = 1.005
"""It ends when the largest variance is proved to be within this factor of the least possible one."""

STEPS = 16
"""Precisions are taken at so many steps in each factor of 2: little is lost, and equal laws are shared."""

MANTISSA = 32
"""Bits of a precision, so that a price is a short rational."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """Which residuals a workload uses, and how much.

    `cliques` are the residuals A, smallest first; `pairs` lists each (marginal, residual) with A ⊆ C, with
    `mean` and `largest` the factor h of C's questions.
    """

    domain: Domain
    workload: Workload
    bases: Mapping[str, Basis]
    cliques: tuple[Clique, ...]
    marginal_of: NDArray[np.intp]
    residual_of: NDArray[np.intp]
    mean: Values
    largest: Values

    @classmethod
    def of(cls, workload: Workload, ranges: Sequence[str] = (), *, total: bool = True) -> Residuals:
        """Everything below the workload's marginals; without the `total`, where that is public.

        An attribute with one cell has no differences, so no residual names it.
        """
        domain = workload.domain
        ordered = set(domain.clique(ranges))
        bases = {name: basis(domain[name].size, ranges=name in ordered) for name in domain.names}
        inner = {name: one.inside for name, one in bases.items()}
        outer = {name: one.outside for name, one in bases.items()}
        place: dict[Clique, int] = {}
        rows: list[tuple[int, int, float, float]] = []
        for j, clique in enumerate(workload.cliques):
            for inside in parts_of(tuple(name for name in clique if domain[name].size > 1)):
                if inside or total:
                    at = place.setdefault(inside, len(place))
                    own = set(inside)
                    mean, largest = (
                        prod(inner[n][kind] if n in own else outer[n][kind] for n in clique)
                        for kind in (0, 1)
                    )
                    rows.append((j, at, mean, largest))
        order = sorted(place, key=lambda c: (len(c), [domain.position(name) for name in c]))
        moved = np.empty(len(order), np.intp)
        moved[[place[clique] for clique in order]] = np.arange(len(order))
        columns = np.array(rows, dtype=np.float64).reshape(-1, 4).T
        return cls(
            domain,
            workload,
            bases,
            tuple(order),
            columns[0].astype(np.intp),
            moved[columns[1].astype(np.intp)],
            columns[2],
            columns[3],
        )

    def with_bases(self, bases: Mapping[str, Basis]) -> Residuals:
        """The same residuals, measured in other bases of these attributes."""
        return replace(self, bases={**self.bases, **bases})

    @cached_property
    def cells(self) -> int:
        """How many numbers would be measured."""
        return sum(prod(self.bases[name].factor.rows for name in clique) for clique in self.cliques)

    @cached_property
    def price(self) -> Values:
        """What a row adds to each residual, squared, if its noise has variance 1."""
        return np.array([prod(float(self.bases[n].factor.own) for n in c) for c in self.cliques])

    @cached_property
    def queries(self) -> Values:
        """How many questions each marginal of the workload stands for."""
        return np.array([prod(self.bases[name].queries for name in c) for c in self.workload], np.float64)

    def used(self, weights: Values, use: Values) -> Values:
        """Σ_C weights_C·h(A, C) for each residual."""
        return np.asarray(
            np.bincount(self.residual_of, weights[self.marginal_of] * use, minlength=len(self.cliques)),
            np.float64,
        )

    def variances(self, precisions: Values, use: Values) -> Values:
        """Of each marginal's questions, in the mean or at worst."""
        return np.asarray(
            np.bincount(self.marginal_of, use / precisions[self.residual_of], minlength=len(self.workload)),
            np.float64,
        )

    def precisions(self, objective: Objective = "largest") -> Values:
        """Up to a common factor, the best precisions.

        `sum`      least Σ weight·variance over all questions
        `largest`  least largest weight·variance
        """
        if objective not in ("sum", "largest"):
            raise ParameterError(f"an objective is sum or largest, not {objective!r}")
        given = np.array([float(weight) for weight in self.workload.weights])
        if objective == "sum":
            return np.sqrt(self.used(given * self.queries, self.mean) / self.price)
        weights = given / given.sum()
        least, found = np.inf, self.price
        for _ in range(ROUNDS):
            tried = np.sqrt(self.used(weights * given, self.largest) / self.price)
            tried = tried / float(tried @ self.price)
            variance = given * self.variances(tried, self.largest)
            if variance.max() < least:
                least, found = float(variance.max()), tried
            # The weighted mean is the least that any precisions give it, so below the least largest variance.
            if least <= CLOSE * float(weights @ variance):
                break
            weights = weights * (variance / variance.max())
            weights /= weights.sum()
        return found

    def strategies(
        self, precisions: Values, relation: Relation, rho: Fraction, *, rounded: bool = False
    ) -> JointStrategy:
        """The look with these precisions, scaled until its joint price is `rho` or just below.

        With `rounded` its noise is normal and rounded, for budgets that price discrete noise otherwise.
        """
        factors = {name: self.bases[name].factor for clique in self.cliques for name in clique}
        steps = np.exp2(np.round(np.log2(precisions) * STEPS) / STEPS)

        def look(scale: float) -> JointStrategy:
            parts = zip(self.cliques, (steps * scale).tolist(), strict=True)
            short = tuple(StrategyPart(c, _short(t)) for c, t in parts)
            return JointStrategy(self.domain, factors, short, relation, rounded)

        # A first scale of about the right size: the next line finds the exact one.
        scale = 2 * float(rho) / (relation.max_rows**2 * float(steps @ self.price))
        scale *= float(rho / look(scale).rho)
        while (found := look(scale)).rho > rho:
            scale *= 1 - 1e-8
        return found


def _short(value: float) -> Fraction:
    """A positive number rounded down to `MANTISSA` bits."""
    mantissa, exponent = frexp(value)
    whole, shift = int(mantissa * (1 << MANTISSA)), exponent - MANTISSA
    return Fraction(whole << shift) if shift >= 0 else Fraction(whole, 1 << -shift)


def check_size(residuals: Residuals, limit: int) -> None:
    """Refuse what would measure too many numbers, before anything is charged."""
    if residuals.cells > limit:
        raise TooLargeError("everything below this workload's marginals", cells=residuals.cells, limit=limit)
