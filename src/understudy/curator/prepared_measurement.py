"""A measurement as it will be charged and made: marginals, the noise of each, and how far off it can be.

It is a value that is made without data (`curator.calibration`), shown in quotes and forecasts, and performed by a
Curator, which examines it before it charges (`curator.examination`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from understudy.mechanism.additive import Additive, adds_noise, law_of
from understudy.mechanism.bounded_noise import BoundedMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.quantile import QuantileMechanism
from understudy.mechanism.quantile_hierarchy import QuantileHierarchy
from understudy.noise.sums import NEARLY_NORMAL, NoiseLaw, weighted_bound
from understudy.privacy.event import Event, Together
from understudy.query.cell_noise import CellNoise
from understudy.query.marginal import Marginal
from understudy.rational import Number, probability

Mechanism = Additive | QuantileMechanism | QuantileHierarchy
"""What a marginal, or a stack of them, is released by."""


def noise_name(mechanism: Mechanism) -> str:
    """What a mechanism adds to sums, by its name; `exponential` where quantiles are drawn by ranks."""
    if isinstance(mechanism, QuantileMechanism):
        return "exponential"
    drawn = mechanism.rounds[0] if isinstance(mechanism, QuantileHierarchy) else mechanism
    if isinstance(drawn, BoundedMechanism):
        return "bounded"
    return "laplace" if isinstance(drawn, LaplaceMechanism) else "gaussian"


@dataclass(frozen=True, eq=False)
class PreparedMeasurement:
    """Marginals, and for each the mechanism that will measure it and its lattice resolution; made without data.

    `errors` are half-widths in people, one for each marginal; all cells of a marginal hold together with
    probability 1 - `beta`. `stacks` are the places of marginals that get one noise as one vector, since no row
    counts in two of them, or by no more than 1 in all, or that follow from the same counts (`query.disjoint`): all
    of a stack have the same mechanism, and one event. `rows_at_most` bounds the number of rows where weights are
    rounded.
    """

    marginals: tuple[Marginal, ...]
    mechanisms: tuple[tuple[Mechanism, int], ...]
    errors: tuple[float, ...]
    beta: Number
    stacks: tuple[tuple[int, ...], ...]
    rows_at_most: int = 0

    @property
    def noises(self) -> tuple[CellNoise | None, ...]:
        """For each marginal the noise on its cells, in people, where it is nearly normal or Laplace noise."""
        if self.beta == 0:  # bounded noise: what is certain is certain, and normal noise never is
            return (None,) * len(self.marginals)
        return tuple(
            _cell_noise(marginal, *built, float(probability(self.beta)), self.rows_at_most)
            for marginal, built in zip(self.marginals, self.mechanisms, strict=True)
        )

    @property
    def event(self) -> Together:
        """The noise of all of them together, wherever it is added."""
        return flat_events([self.mechanisms[stack[0]][0].event for stack in self.stacks])

    @property
    def charged(self) -> Event:
        """The same as a ledger records it: the noise of one marginal, or of one stack, stands alone."""
        return self.event.events[0] if len(self.event.events) == 1 else self.event


def _cell_noise(
    marginal: Marginal, mechanism: Mechanism, resolution: int, beta: float, rows: int
) -> CellNoise | None:
    """The noise on a marginal's cells: on the lattice it is within a step of normal or of Laplace noise.

    (`sessions.simulation` says why; rounded normal noise is within half a step of what was rounded.) The sum of
    a moment is rounded once, by half a step, and weights other than 0 and 1 row by row, by half a step in each
    of at most `rows`.
    """
    rounding = 0.0 if marginal.moment is None else 0.5
    if not marginal.where.is_counting:
        rounding = rows / 2
    if isinstance(mechanism, QuantileMechanism | QuantileHierarchy) or (law := law_of(mechanism)) is None:
        return None
    if not adds_noise(mechanism):
        return CellNoise(0.0, 0.0, 0.0)
    step = 0.5 if law.kind == "rounded" else 1.0
    variance = mechanism.variance if law.kind == "laplace" else law.parameter
    plain = LatticeSums(law, resolution)
    bound = plain if law.kind == "laplace" else None
    spread, off = float(variance) / resolution**2, (step + rounding) / resolution
    coarse = law.kind == "gaussian" and variance < NEARLY_NORMAL
    return CellNoise(spread, off, beta, bound, plain, rounding / resolution, coarse)


@dataclass(frozen=True)
class LatticeSums:
    """How far weighted sums of noises of one law, on a lattice, reach, in people: a `WeightedBound`."""

    law: NoiseLaw
    resolution: int

    def __call__(self, summed: tuple[tuple[int, int], ...], beta: float) -> float:
        return weighted_bound(self.law, tuple((n, float(w)) for n, w in summed), beta) / self.resolution


def flat_events(events: Iterable[Event]) -> Together:
    """Events together, those that are made of several by their parts."""
    return Together(
        tuple(
            part for event in events for part in (event.events if isinstance(event, Together) else (event,))
        )
    )
