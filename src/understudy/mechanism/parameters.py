"""Checks that the additive mechanisms share."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.rational import Number, probability


def whole(number: object, name: str, *, at_least: int | None = None) -> None:
    """A whole number; a float, even 2.0, is refused: somebody forgot to round."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise ParameterError(f"{name} must be a whole number, not {number!r}")
    if at_least is not None and number < at_least:
        raise ParameterError(f"{name} must be a whole number of at least {at_least}, not {number}")


def lattice_sensitivity(value: int) -> None:
    """A sensitivity in lattice steps: a whole number, 0 where nobody can move the values."""
    whole(value, "a sensitivity, in lattice steps,", at_least=0)
    if value >= 2**62:
        raise ParameterError("a sensitivity must be a whole number of lattice steps below 2^62")


def scores_sensitivity(value: int) -> None:
    """How far one person can move the scores that a candidate is chosen by, in lattice steps: not 0."""
    lattice_sensitivity(value)
    if value == 0:
        raise ParameterError("scores that nobody can move need no mechanism: take the best one")


def lattice_values(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Values that noise may be added to: whole lattice steps, far from the ends of 64 bits.

    A value beyond 2^62 is moved there: that brings no two values further apart, and an error would tell that
    there was one.
    """
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer):
        raise ParameterError("noise is added to whole lattice steps: round the values first")
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(2**62))
    return np.clip(array.astype(np.int64), -(2**62), 2**62)


def share_of(beta: Number, cells: int) -> Fraction:
    """Each cell's failure probability when `cells` independent noises must all hold with 1 - `beta`.

    A rational just below 1 - (1 - β)^(1/cells), never above it: β/cells + β²(cells - 1)/(2 cells²) is the
    start of its series, all of whose terms are positive.
    """
    failure = probability(beta)
    if cells < 1:
        raise ParameterError(f"an error bound needs at least one cell, not {cells}")
    return failure if cells == 1 else _share_of(failure, cells)


@lru_cache(maxsize=1024)
def _share_of(failure: Fraction, cells: int) -> Fraction:
    return failure / cells + failure**2 * (cells - 1) / (2 * cells**2)
