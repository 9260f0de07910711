"""Checks that the additive mechanisms share."""

from __future__ import annotations

from fractions import Fraction

from understudy.errors import ParameterError
from understudy.rational import Number, probability


def lattice_sensitivity(value: int) -> None:
    """A sensitivity in lattice steps: a whole number, 0 where nobody can move the values."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ParameterError(
            f"a sensitivity must be a whole number of lattice steps below 2^62, not {value!r}"
        )


def share_of(beta: Number, cells: int) -> Fraction:
    """Each cell's failure probability when `cells` independent noises must all hold with 1 - `beta`.

    A rational just below 1 - (1 - β)^(1/cells), never above it: β/cells + β²(cells - 1)/(2 cells²) is the
    start of its series, all of whose terms are positive.
    """
    failure = probability(beta)
    if cells < 1:
        raise ParameterError(f"an error bound needs at least one cell, not {cells}")
    return failure / cells + failure**2 * (cells - 1) / (2 * cells**2)
