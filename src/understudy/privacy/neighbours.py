"""Neighbouring tables, and how far one person can move a vector of counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from understudy.errors import ParameterError
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
