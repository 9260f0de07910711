"""The surviving set by sampling, for domains too large to hold every small database.

In the place of databases of n' rows stand all histograms, uniformly: the points of the simplex that obey every
cut so far, of which a few thousand particles are kept by hit-and-run. What a check against the table certifies
holds whatever the guesses were; but that every cut halves the set, and hence B(α), is here an observation and no
theorem: the median is off by the sampling error, and nothing bounds the time in which hit-and-run mixes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.domain import Clique, Domain
from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.query.linear import LinearQuery
from understudy.rational import Number, positive
from understudy.theory.arguments import whole

NUMBER_LIMIT = 2**24
"""Particles times cells of the largest sample."""


class SampledSurvivors:
    """Particles in {p : p ≥ 0, Σp = 1, low_j ≤ q_j·p ≤ high_j for every cut j}; answers are their medians.

    A median of M particles is at rank ½ ± 1/sqrt(M) or so of the set's. As in the exact set, `project` is the
    mean, whose answers are not the medians.
    """

    def __init__(
        self, domain: Domain, *, particles: int = 2000, steps: int = 64, generator: np.random.Generator
    ) -> None:
        """`steps` of hit-and-run follow each cut. The generator is no source of privacy."""
        cells, count = domain.size(), whole(particles, "particles")
        if cells * count > NUMBER_LIMIT:
            raise TooLargeError(
                f"a sample of {count} histograms (fewer particles, or the dense stand-in)",
                cells=cells * count,
                limit=NUMBER_LIMIT,
            )
        self.domain = domain
        self._steps = whole(steps, "steps")
        self._generator = generator
        self._points = generator.dirichlet(np.ones(cells), size=count)
        self._queries = np.empty((0, cells))
        self._bounds = np.empty((0, 2))

    @property
    def cuts(self) -> int:
        return len(self._queries)

    def particles(self) -> NDArray[np.float64]:
        """A copy of the sample: one histogram in each row."""
        return self._points.copy()

    def answer(self, query: LinearQuery) -> float:
        """The median over the particles."""
        return float(np.median(self._values(query)))

    def project(self, clique: Clique) -> NDArray[np.float64]:
        """The mean of the particles' marginals."""
        clique = self.domain.clique(clique)
        rates = self._points.mean(axis=0).reshape(self.domain.shape())
        rates = rates.sum(axis=tuple(i for i, name in enumerate(self.domain.names) if name not in clique))
        return rates / rates.sum()

    def cut_by_sign(self, query: LinearQuery, value: float) -> bool:
        """Keep the side of the median on which `value` is; False, and no cut, if no particle is there."""
        median = self.answer(query)
        low, high = (-np.inf, median) if value < median else (median, np.inf)
        return self._cut(query, low, high)

    def cut_by_distance(self, query: LinearQuery, value: float, distance: float) -> bool:
        """Keep what answers within `distance` of `value`; False, and no cut, if no particle does."""
        return self._cut(query, value - distance, value + distance)

    def _values(self, query: LinearQuery) -> NDArray[np.float64]:
        if query.domain is not self.domain and query.domain != self.domain:
            raise DomainError("the query and the stand-in have different domains")
        return self._points @ query.weights(self.domain.names).reshape(-1)

    def _cut(self, query: LinearQuery, low: float, high: float) -> bool:
        values = self._values(query)
        # Not those at the edge, from which no direction might lead back in.
        inside = np.flatnonzero((values > low) & (values < high))
        if not len(inside):
            return False
        self._queries = np.vstack((self._queries, query.weights(self.domain.names).reshape(1, -1)))
        self._bounds = np.vstack((self._bounds, [low, high]))
        chosen = self._generator.choice(inside, len(values) - len(inside))
        self._points = np.concatenate((self._points[inside], self._points[chosen]))
        for step in range(self._steps):
            self._walk(exchange=step % 2 == 1)
        return True

    def _walk(self, *, exchange: bool) -> None:
        """One step of hit-and-run for every particle: to a uniform point of a random chord through it.

        Directions are Gaussian, or an exchange between two cells, which moves further in many dimensions.
        """
        points, draw = self._points, self._generator
        if points.shape[1] == 1:
            return
        if exchange:
            direction = np.zeros_like(points)
            every = np.arange(len(points))
            one = draw.integers(points.shape[1], size=len(points))
            other = (one + draw.integers(1, points.shape[1], size=len(points))) % points.shape[1]
            direction[every, one], direction[every, other] = 1, -1
        else:
            direction = draw.standard_normal(points.shape)
            direction -= direction.mean(axis=1, keepdims=True)
        positions = np.hstack((points, points @ self._queries.T))
        speeds = np.hstack((direction, direction @ self._queries.T))
        floor = np.concatenate((np.zeros(points.shape[1]), self._bounds[:, 0]))
        ceiling = np.concatenate((np.ones(points.shape[1]), self._bounds[:, 1]))
        still = np.abs(speeds) < 1e-15
        speeds[still] = 1
        ends = np.stack(((floor - positions) / speeds, (ceiling - positions) / speeds))
        low = np.where(still, -np.inf, ends.min(axis=0)).max(axis=1)
        high = np.where(still, np.inf, ends.max(axis=0)).min(axis=1)
        far = np.where(high > low, low + (high - low) * draw.random(len(points)), 0)
        points = np.maximum(points + far[:, None] * direction, 0)
        self._points = points / points.sum(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class SampledMedianUpdate:
    """`MedianUpdate` on particles: cuts by sign, as often as `cap` says.

    Accuracy    None is proven: `cap` is what the caller allows, and what is answered after it is uncertified.
    Privacy     Post-processing of v.
    """

    domain: Domain
    cap: int
    generator: np.random.Generator = field(repr=False, compare=False)
    particles: int = 2000
    steps: int = 64

    def __post_init__(self) -> None:
        whole(self.cap, "cap")
        if not isinstance(self.generator, np.random.Generator):
            raise ParameterError("generator must be a numpy Generator")

    def start(self) -> SampledSurvivors:
        return SampledSurvivors(
            self.domain, particles=self.particles, steps=self.steps, generator=self.generator
        )

    def update(self, hypothesis: SampledSurvivors, query: LinearQuery, value: float) -> SampledSurvivors:
        hypothesis.cut_by_sign(query, value)
        return hypothesis

    def most_updates(self, alpha: Number) -> int:
        """The cap, at any α: no theorem gives a number."""
        positive(alpha, "alpha")
        return self.cap
