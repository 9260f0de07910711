"""The histogram of largest entropy near noisy interactions, over every cell of a small domain.

With y_m the noisy interaction of clique m, v_m its variance and n the number of rows, the histogram is
p ∝ exp(Σ θ_m), one table of potentials for each clique, where the potentials minimise

    n·ln Σ_x exp(Σ θ_m(x)) - Σ ⟨θ_m, y_m⟩ + (κ/2) Σ v_m ‖θ_m‖²,

the dual of: minimise Σ ‖n·M_m p - y_m‖²/(2 v_m) + κn·KL(p ‖ uniform) over histograms p, M_m being the interaction
of m. So noise is weighted by its variance, and cells that nothing was measured about stay as even as they can.
This is multiplicative weights on all past measurements at once: replaying each until nothing changes is descent
in θ. All of it is post-processing.

Few coordinates are solved for by Newton's method (`newton`), many by following gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError
from understudy.query.constraint import Constraint, allowed_cells
from understudy.query.residuals import centred
from understudy.standin.interactions import Interaction, Projections, projections_of
from understudy.standin.newton import NoCurvatureError, coordinates, newton, normalised

Values = NDArray[np.float64]

NEWTON_LIMIT = 2048
"""Coordinates up to which second derivatives are held and solved for; beyond, gradients alone are followed."""

PASSES = 300
"""Of following gradients, at most."""


@dataclass(frozen=True, eq=False)
class EntropyFit:
    """A histogram over all cells, shaped like its domain; `potentials` are those of the fit, by clique."""

    domain: Domain
    histogram: Values
    potentials: dict[Clique, Values]

    @classmethod
    def uniform(cls, domain: Domain, constraints: Sequence[Constraint] = ()) -> EntropyFit:
        """All cells alike, but for those that the constraints forbid."""
        rates, _ = normalised(np.zeros(domain.size()) + _forbidden(domain, constraints))
        return cls(domain, rates.reshape(domain.shape()), {})

    def project(self, clique: Clique) -> Values:
        """Rates of the clique's cells."""
        kept = self.domain.clique(clique)
        gone = tuple(axis for axis, name in enumerate(self.domain.names) if name not in kept)
        return self.histogram.sum(axis=gone)


def coordinates_of(domain: Domain, told: Sequence[Interaction]) -> int:
    """How many numbers the interactions are, in orthonormal bases."""
    return sum(prod(size - 1 for size in domain.shape(part.clique)) for part in told if part.clique)


def fit_histogram(domain: Domain, told: Sequence[Interaction], *, rows: float, entropy: float) -> Values:
    """Rates of every cell, shaped like the domain. The same arguments give the same bits on one machine.

    `entropy` is κ times the standard deviation of the noise, in people. With every clique its smaller ones must be
    told too.
    """
    told = [part for part in told if part.clique]
    if rows < 0 or any(part.variance <= 0 for part in told):
        raise ParameterError("a fit needs a number of rows, and interactions with noise")
    if not told or rows == 0:
        return np.full(domain.shape(), 1 / domain.size())
    if coordinates_of(domain, told) <= NEWTON_LIMIT:
        sizes = [prod(size - 1 for size in domain.shape(part.clique)) for part in told]
        variance = np.repeat([part.variance for part in told], sizes)
        wanted = np.concatenate([coordinates(part.counts).ravel() for part in told])
        cliques = tuple(part.clique for part in told)
        try:
            return newton(domain, cliques, wanted, _ridge(variance, entropy), rows)
        except NoCurvatureError:
            pass  # rounding left nothing to solve for: gradients are followed instead
    return maximum_entropy(
        domain, told, rows=rows, entropy=entropy, passes=PASSES, tolerance=1e-6, fall=1e-12
    ).histogram


def maximum_entropy(
    domain: Domain,
    told: Sequence[Interaction],
    *,
    rows: float,
    entropy: float,
    start: EntropyFit | None = None,
    constraints: Sequence[Constraint] = (),
    passes: int = 200,
    tolerance: float = 1e-2,
    fall: float = 0.0,
) -> EntropyFit:
    """Follow gradients from the potentials of `start`; cells that `constraints` forbid stay empty.

    It ends after `passes` evaluations, or when no potential's gradient, in people, is above `tolerance` times the
    standard deviation of its noise, or when the loss falls by less than a share `fall` of itself. `entropy` is κ
    times the standard deviation of the noise, in people.
    """
    told = [part for part in told if part.clique]
    if rows <= 0 or not told:
        return start or EntropyFit.uniform(domain, constraints)
    dual = _Dual(domain, tuple(told), rows, entropy, _forbidden(domain, constraints))
    known = {} if start is None else start.potentials
    first = [known.get(part.clique, np.zeros_like(part.counts)) for part in told]
    potentials = dual.follow(np.concatenate([t.ravel() for t in first]), passes, tolerance, fall)
    histogram = dual.histogram(potentials)[0].reshape(domain.shape())
    tables = dual.projections.split(potentials)
    return EntropyFit(domain, histogram, {p.clique: t for p, t in zip(told, tables, strict=True)})


def _ridge(variance: Values, entropy: float) -> Values:
    """κv of each coordinate, κ being in units of the noise's geometric mean."""
    return variance * (entropy / sqrt(float(np.exp(np.mean(np.log(variance))))))


@dataclass(frozen=True, eq=False)
class _Dual:
    """The dual in potentials, each scaled by `unit`, the root of its curvature: rows of a cell, and the ridge."""

    domain: Domain
    told: tuple[Interaction, ...]
    rows: float
    entropy: float
    forbidden: Values | float

    @cached_property
    def projections(self) -> Projections:
        return projections_of(self.domain, tuple(part.clique for part in self.told))

    @cached_property
    def _sizes(self) -> list[int]:
        return [part.counts.size for part in self.told]

    @cached_property
    def variance(self) -> Values:
        return np.repeat([part.variance for part in self.told], self._sizes)

    @cached_property
    def ridge(self) -> Values:
        return _ridge(self.variance, self.entropy)

    @cached_property
    def unit(self) -> Values:
        sizes = np.repeat(np.asarray(self._sizes, dtype=np.float64), self._sizes)
        return 1 / np.sqrt(self.rows / sizes + self.ridge)

    @cached_property
    def wanted(self) -> Values:
        return np.concatenate([part.counts.ravel() for part in self.told])

    def histogram(self, potentials: Values) -> tuple[Values, float]:
        """The histogram, flat, and the logarithm of what it was divided by."""
        return normalised(self.projections.lift(potentials) + self.forbidden)

    def loss(self, scaled: Values) -> tuple[float, Values]:
        potentials = scaled * self.unit
        histogram, log_total = self.histogram(potentials)
        tables = self.projections.split(self.projections.project(histogram))
        found = np.concatenate([centred(table).ravel() for table in tables])
        gradient = self.rows * found - self.wanted + self.ridge * potentials
        value = self.rows * log_total - float(potentials @ self.wanted)
        return value + 0.5 * float(self.ridge @ potentials**2), gradient * self.unit

    def follow(self, first: Values, passes: int, tolerance: float, fall: float) -> Values:
        """Quasi-Newton steps from gradients."""
        limit = tolerance * float(np.min(np.sqrt(self.variance) * self.unit))
        options = {"maxfun": passes, "maxiter": passes, "maxcor": 20, "ftol": fall, "gtol": limit}
        found = minimize(self.loss, first / self.unit, jac=True, method="L-BFGS-B", options=options)
        return found.x * self.unit


def _forbidden(domain: Domain, constraints: Sequence[Constraint]) -> Values | float:
    """What is added to the logits: -∞ in cells that are always empty."""
    allowed = allowed_cells(constraints, domain, domain.names)
    if allowed is None:
        return 0.0
    if not allowed.any():
        raise ParameterError("the constraints forbid every cell")
    return np.where(allowed.ravel(), 0.0, -np.inf)
