"""Weights of synthetic rows by iterative proportional fitting (raking), and rows drawn by these weights.

Where a long table has few different rows, as one of yes-or-no questions does, each of them stands for many people.
Moving these one by one is slow; giving each kind of row a weight, table by table of the targets, is quick. Rows
are then drawn by systematic sampling, so that every kind of row has its weight up to one row. No row comes into
being that was not there before, so that cells which are declared to be empty stay empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.releases.row_weights import rake
from understudy.releases.run import MarginalAnswer
from understudy.releases.synthetic import Codes, systematic
from understudy.releases.table_places import TablePlaces

ALIKE = 4
"""People that a kind of row must stand for, on average; with fewer, weights would be mostly rounding."""

SWEEPS = 6
"""How often all targets are met, one after the other."""

RAKING_WORK = 1_600_000_000
"""Kinds of rows, times targets, times sweeps: two to three nanoseconds each."""


def raked_rows(
    domain: Domain, codes: Codes, asked: Sequence[MarginalAnswer], rng: np.random.Generator
) -> Codes | None:
    """As many rows, of the same kinds, by weights that agree with the targets; None where the kinds are too many.

    Targets that are met last are met best.
    """
    rows = next(iter(codes.values())).size
    found = _kinds(domain, codes, rows // ALIKE)
    if found is None or not asked:
        return None
    kinds, weights = found[0], found[1].astype(np.float64)
    tables = [[domain.position(name) for name in answer.clique] for answer in asked]
    places = TablePlaces.of(domain.shape(), tables)
    wanted = np.concatenate([np.maximum(a.counts, 0.0).ravel() * (rows / _total(a)) for a in asked])
    sweeps = min(SWEEPS, max(RAKING_WORK // (kinds.shape[1] * len(asked)), 1))
    rake(kinds, weights, places.members, places.width, places.starts, places.strides, wanted, sweeps)
    drawn = systematic(weights, rows, rng)
    rng.shuffle(drawn)
    return {name: kinds[a, drawn].astype(np.int64) for a, name in enumerate(domain.names)}


def _total(answer: MarginalAnswer) -> float:
    return max(float(np.maximum(answer.counts, 0.0).sum()), 1e-9)


def _kinds(domain: Domain, codes: Codes, most: int) -> tuple[NDArray[np.int32], NDArray[np.int64]] | None:
    """The different rows, one line for each attribute, and how often each is there; None for more than `most`."""
    key, size = np.zeros(next(iter(codes.values())).size, np.int64), 1
    for name in domain.names:
        if size > 2 * key.size:  # name the keys so far by their places among themselves
            known, key = np.unique(key, return_inverse=True)
            size = known.size
            if size > most:
                return None
        key = key * domain[name].size + codes[name]
        size *= domain[name].size
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    if first.size > most:
        return None
    return np.stack([codes[name][first].astype(np.int32) for name in domain.names]), counts
