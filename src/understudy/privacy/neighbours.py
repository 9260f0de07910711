"""Neighbouring tables, and how far one person can move a vector of counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from understudy.errors import ParameterError
from understudy.privacy.event import Event, GaussianNoise, LaplaceNoise, Located, Span
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal


class Neighbours(StrEnum):
    """Which two tables must be hard to tell apart.

    REPLACE     one row is exchanged for another; the number of rows n is public [Lecture 4, Definition 3(a)].
    ADD_REMOVE  one person's rows are added or removed; n is private.
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far neighbouring tables can be apart, in lattice steps: exact integers."""

    l1: int
    l2_squared: int


def lattice_bounds(query: LinearQuery, resolution: int) -> tuple[int, int]:
    """Smallest and largest weight after rounding to multiples of 1/resolution.

    Rounding and float products of non-negative numbers are monotone, so the bounds of the product are the
    products of the bounds, exactly as the rows will see them.
    """
    low, high = np.rint(np.array([query.smallest, query.largest]) * resolution)
    return int(low), int(high)


def sensitivity(
    marginal: Marginal, neighbours: Neighbours, *, resolution: int = 1, max_rows: int = 1
) -> Sensitivity:
    """Sensitivity of the vector of sums of `marginal`, in steps of 1/resolution.

    A row adds its weight, between `low` and `high`, to the one cell it lies in. Removing up to `max_rows` rows
    of one person moves the vector by at most max_rows·high in either norm (all in one cell). Replacing a row
    moves it by at most `high` down in one cell and `high` up in another, or, when there is one cell only, by
    high - low. As a rate of n public rows, a normalised linear query so has sensitivity
    (high - low)/(resolution·n) ≤ 1/n. [Lectures 9-10, Definition 2]
    """
    if max_rows < 1:
        raise ParameterError(f"a person has at least one row, not {max_rows}")
    low, high = lattice_bounds(marginal.where, resolution)
    if neighbours is Neighbours.ADD_REMOVE:
        return Sensitivity(max_rows * high, (max_rows * high) ** 2)
    if max_rows != 1:
        raise ParameterError(
            "a privacy unit of several rows needs `neighbours: add-remove`: replacing a person "
            "changes the number of rows"
        )
    if marginal.size == 1:
        return Sensitivity(high - low, (high - low) ** 2)
    return Sensitivity(2 * high, 2 * high**2)


def located(
    marginal: Marginal, noise: LaplaceNoise | GaussianNoise, neighbours: Neighbours, max_rows: int = 1
) -> Event:
    """The noise on a marginal's counts, with the region whose rows can move them where it is not everybody.

    A condition on several attributes at once is taken by its extent along each: a region may be too large,
    which costs accuracy of the accounting, never soundness.
    """
    moved = noise.l1 if isinstance(noise, LaplaceNoise) else noise.l2_squared
    if moved == 0 or not marginal.where.is_counting:
        return noise
    spans = []
    for factor in marginal.where.factors:
        for axis, name in enumerate(factor.clique):
            others = tuple(i for i in range(factor.weights.ndim) if i != axis)
            held = np.atleast_1d(factor.weights.any(axis=others) if others else factor.weights > 0)
            if not held.any():  # a condition that nobody meets: no region, and the noise's own price
                return noise
            if not held.all():
                mask = sum(1 << int(cell) for cell in np.flatnonzero(held))
                spans.append(Span(marginal.domain[name].identity, held.size, mask))
    if not spans:
        return noise
    relation = "replace" if neighbours is Neighbours.REPLACE else f"add-remove {max_rows}"
    region = tuple(sorted(spans, key=lambda span: span.attribute))
    return Located(noise=noise, region=region, relation=relation, split=marginal.size > 1)
