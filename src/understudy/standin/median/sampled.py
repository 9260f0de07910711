"""The surviving set by sampling, for domains too large to hold every small database.

In the place of databases of n' rows stand all histograms, uniformly: the points of the simplex that obey every
cut so far, of which a few thousand particles are kept by hit-and-run. What a check against the table certifies
holds whatever the guesses were; but that every cut halves the set, and hence B(α), is here an observation and no
theorem: the median is off by the sampling error, and nothing bounds the time in which hit-and-run mixes. On many
cells the start is narrow, and a cut that no particle obeys is common: then each is drawn into the set along the
line to its deepest point, from where it walks on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import block_array, eye_array

from understudy.domain.domain import Clique, Domain
from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.query.linear import LinearQuery
from understudy.rational import Number, positive
from understudy.theory.arguments import whole

NUMBER_LIMIT = 2**24
"""Particles times cells of the largest sample."""

_MANY, _FEW = 2000, 200
_USUAL = 2**18
"""Particles times cells of the usual sample, between `_FEW` and `_MANY` particles."""

_BETWEEN = 8
"""Rounds of exchanges between two chords."""

_DEEP = 1e-9
"""A set whose deepest point is nearer than this share to some boundary is taken for empty."""


def usual_particles(cells: int) -> int:
    """As many as walk in about a second a cut: 2,000 on few cells, 200 on thousands."""
    return max(min(_MANY, _USUAL // cells), _FEW)


class SampledSurvivors:
    """Particles in {p : p ≥ 0, Σp = 1, low_j ≤ q_j·p ≤ high_j for every cut j}; answers are their medians.

    A median of M particles is at rank ½ ± 1/sqrt(M) or so of the set's. As in the exact set, `project` is the
    mean, whose answers are not the medians.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        particles: int | None = None,
        rounds: int = 32,
        generator: np.random.Generator,
    ) -> None:
        """After each cut every particle walks for `rounds` steps a cell. The generator is no source of privacy."""
        cells = domain.size()
        count = self.check_size(cells, particles)
        self.domain = domain
        self._rounds = whole(rounds, "rounds")
        self._generator = generator
        self._points = generator.dirichlet(np.ones(cells), size=count)
        self._queries = np.empty((0, cells))
        self._bounds = np.empty((0, 2))

    @staticmethod
    def check_size(cells: int, particles: int | None = None) -> int:
        """The number of particles, refused before anything of their size is allocated."""
        count = usual_particles(cells) if particles is None else whole(particles, "particles")
        if cells * count > NUMBER_LIMIT:
            raise TooLargeError(
                f"a sample of {count} histograms (fewer particles, or the dense stand-in)",
                cells=cells * count,
                limit=NUMBER_LIMIT,
            )
        return count

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
        """Keep the side of the median on which `value` is; False, and no cut, if nothing is there."""
        median = self.answer(query)
        low, high = (-np.inf, median) if value < median else (median, np.inf)
        return self.keep_between(query, low, high)

    def cut_by_distance(self, query: LinearQuery, value: float, distance: float) -> bool:
        """Keep what answers within `distance` of `value`; False, and no cut, if nothing does."""
        return self.keep_between(query, value - distance, value + distance)

    def _values(self, query: LinearQuery) -> NDArray[np.float64]:
        if query.domain is not self.domain and query.domain != self.domain:
            raise DomainError("the query and the stand-in have different domains")
        return self._points @ query.weights(self.domain.names).reshape(-1)

    def keep_between(self, query: LinearQuery, low: float, high: float) -> bool:
        """Keep what answers between `low` and `high`; False, and no cut, if nothing that obeys the rest does."""
        values = self._values(query)
        asked = np.vstack((self._queries, query.weights(self.domain.names).reshape(1, -1)))
        bounds = np.vstack((self._bounds, [low, high]))
        # Not those at the edge, from which no direction might lead back in.
        inside = np.flatnonzero((values > low) & (values < high))
        if len(inside):
            chosen = self._generator.choice(inside, len(values) - len(inside))
            points = np.concatenate((self._points[inside], self._points[chosen]))
        else:
            deepest = _deepest(asked, bounds)
            if deepest is None:
                return False
            points = _drawn_in(self._points, deepest, asked, bounds, self._generator)
        self._queries, self._bounds, self._points = asked, bounds, points
        self._walk()
        return True

    def _walk(self) -> None:
        """Hit-and-run for every particle: exchanges between two cells, and now and then a chord in any direction.

        An exchange costs a look at each cut, and moves further in many dimensions than a chord does.
        """
        points, kernels = np.ascontiguousarray(self._points), _kernels()
        if points.shape[1] == 1:
            return
        for _ in range(-(-self._rounds // _BETWEEN)):
            kernels.exchange(points, self._queries, self._bounds, _BETWEEN, self._generator)
            kernels.chord(points, self._queries, self._bounds, self._generator)
            points /= points.sum(axis=1, keepdims=True)
        self._points = points


def _deepest(queries: NDArray[np.float64], bounds: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The histogram whose smallest distance to any boundary is largest, each as a share of what it could be.

    A linear program over the atoms: cells that no query tells apart get the same rate. None if there is no inside.
    """
    cells = queries.shape[1]
    atoms, place, counts = np.unique(queries, axis=1, return_inverse=True, return_counts=True)
    low, high = np.clip(bounds[:, 0], 0, 1), np.clip(bounds[:, 1], 0, 1)
    half = (high - low) / 2
    if (half <= 0).any():
        return None
    # A bound that only says what is true of every histogram is none.
    lower, upper = bounds[:, 0] >= 0, bounds[:, 1] <= 1
    sides = block_array(
        [
            [-atoms[lower], half[lower, None]],
            [atoms[upper], half[upper, None]],
            [-eye_array(len(counts)), counts[:, None] / cells],
        ],
        format="csr",
    )
    limits = np.concatenate((-low[lower], high[upper], np.zeros(len(counts))))
    everyone = np.append(np.ones(len(counts)), 0)[None, :]
    found = linprog(
        np.append(np.zeros(len(counts)), -1),
        A_ub=sides,
        b_ub=limits,
        A_eq=everyone,
        b_eq=[1],
        bounds=(0, None),
    )
    if not found.success or found.x[-1] <= _DEEP:
        return None
    rates = (found.x[:-1] / counts)[place.reshape(-1)]
    return rates / rates.sum()


def _drawn_in(
    points: NDArray[np.float64],
    deepest: NDArray[np.float64],
    queries: NDArray[np.float64],
    bounds: NDArray[np.float64],
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Each point moved towards the deepest one, to a uniform place of what of that line is inside."""
    there, here = queries @ deepest, points @ queries.T
    with np.errstate(divide="ignore", invalid="ignore"):
        # The share of the way at which each query enters its bounds; the way to an inner point never leaves again.
        enters = np.where(here < bounds[:, 0], (bounds[:, 0] - here) / (there - here), 0)
        enters = np.where(here > bounds[:, 1], (here - bounds[:, 1]) / (here - there), enters)
    share = enters.max(axis=1)
    share += (1 - share) * generator.random(len(points))
    return points + share[:, None] * (deepest - points)


@dataclass(frozen=True, kw_only=True)
class SampledMedianUpdate:
    """`MedianUpdate` on sampled histograms (particles): cuts by sign, at most `cap` of them.

    The histograms are over the cells of `domain`. Raises a `ParameterError` where `cap` is no whole number or
    `generator` no numpy Generator, and, from `start`, a `TooLargeError` where the particles do not fit into
    memory. The number of `particles` follows from that of the cells unless it is given; after each cut every one
    of them walks for `rounds` steps a cell. The `generator` is no source of privacy.

    Accuracy    None is proven: `cap` is what the caller allows, and what is answered after it is uncertified.
    Privacy     Post-processing of v.
    """

    domain: Domain
    cap: int
    generator: np.random.Generator = field(repr=False, compare=False)
    particles: int | None = None
    rounds: int = 32
    is_proven: ClassVar[bool] = False
    """`most_updates` is what is allowed, and no theorem."""

    def __post_init__(self) -> None:
        whole(self.cap, "cap")
        if not isinstance(self.generator, np.random.Generator):
            raise ParameterError("generator must be a numpy Generator")

    def start(self) -> SampledSurvivors:
        """The hypothesis before any update: a sample of all databases."""
        return SampledSurvivors(
            self.domain, particles=self.particles, rounds=self.rounds, generator=self.generator
        )

    def update(self, hypothesis: SampledSurvivors, query: LinearQuery, value: float) -> SampledSurvivors:
        """The `hypothesis` after one `query` and its `value`, a share of rows: databases on the wrong side go.

        It is changed in place and returned.
        """
        hypothesis.cut_by_sign(query, value)
        return hypothesis

    def most_updates(self, alpha: Number) -> int:
        """The `cap`, at any α = `alpha`: the most updates that the caller allows, as no theorem gives a number."""
        positive(alpha, "alpha")
        return self.cap


def _kernels() -> Any:
    """The compiled loops; numba takes a second to import, and most commands never need it."""
    from understudy.standin.median import kernels as median_kernels

    return median_kernels
