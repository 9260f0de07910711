"""What a measurement tells: the exact counts of its marginals, each with the noise that it was prepared with.

This is the look that a Curator makes once a measurement is paid for. Everything here is exact or private: what
leaves it was drawn by the very mechanisms whose events were charged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.curator.prepared_measurement import PreparedMeasurement
from understudy.mechanism.quantile import QuantileMechanism
from understudy.mechanism.quantile_hierarchy import QuantileHierarchy
from understudy.noise.samplers import NoiseSource
from understudy.query.marginal import Marginal
from understudy.query.quantile_end import QuantileEnd
from understudy.table.truth import Truth


def drawn(prepared: PreparedMeasurement, truth: Truth, noise: NoiseSource) -> list[list[int]]:
    """For each marginal of a measurement its cells with noise, in order, in steps of its resolution.

    `truth` is what counts the cells that the marginals are about: the declared ones, or parts of them.
    """
    marginals, built = prepared.marginals, prepared.mechanisms
    summed = [i for i, m in enumerate(marginals) if not isinstance(m.moment, QuantileEnd)]
    sums = _sums(truth, [marginals[i] for i in summed], [built[i][1] for i in summed])
    values = dict(zip(summed, sums, strict=True))
    told = dict[int, list[int]]()
    for stack in prepared.stacks:
        mechanism = built[stack[0]][0]
        if isinstance(mechanism, QuantileMechanism):
            tables = truth.step_tables(marginals[stack[0]])
            told[stack[0]] = [mechanism.draw(*table, noise=noise) for table in tables]
        elif isinstance(mechanism, QuantileHierarchy):
            found = mechanism.draw_all(truth.step_tables(marginals[stack[0]]), noise=noise)
            told.update((place, _ends_of(marginals[place], mechanism, found)) for place in stack)
        else:
            for place in stack:
                told[place] = mechanism.release(values[place], noise=noise).ravel().tolist()
    return [told[place] for place in range(len(marginals))]


def _sums(truth: Truth, marginals: Sequence[Marginal], resolutions: Sequence[int]) -> list[NDArray[np.int64]]:
    """Sums in steps of each marginal's own resolution; one pass for each resolution that occurs."""
    found: dict[int, NDArray[np.int64]] = {}
    for resolution in set(resolutions):
        places = [i for i, own in enumerate(resolutions) if own == resolution]
        sums = truth.sums_of([marginals[i] for i in places], resolution=resolution)
        found.update(zip(places, sums, strict=True))
    return [found[i] for i in range(len(marginals))]


def _ends_of(
    marginal: Marginal, mechanism: QuantileHierarchy, found: Sequence[Sequence[tuple[int, int, int]]]
) -> list[int]:
    """What was found for a marginal in each of its cells: one end of one level, or the estimate."""
    end = marginal.moment
    assert isinstance(end, QuantileEnd)
    level, side = mechanism.levels.index(end.level), ("low", "point", "high").index(end.side)
    return [cell[level][side] for cell in found]
