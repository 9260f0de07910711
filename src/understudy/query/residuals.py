"""Residuals: what a marginal's table tells beyond the tables of its parts, and how tables are put together again.

The residual of a set A of attributes is u_A = ⊗_{i ∈ A} (I - J/k_i)·c_A, where c_A is the table over A, k_i the
number of cells of attribute i, and J the matrix of ones: every axis of u_A sums to 0. Residuals of different sets
are orthogonal, and the table over C is the sum of the residuals of its parts, spread evenly:

    c_C = Σ_{A ⊆ C} u_A ⊗ (1/k_i on every attribute i of C that is not in A),   with u_∅ the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

A = TypeVar("A")
"""An attribute: its name, or its place in a domain."""


def parts_of(clique: tuple[A, ...]) -> list[tuple[A, ...]]:
    """Every set within a clique, in the clique's order: the empty one first, the clique itself last."""
    found: list[tuple[A, ...]] = [()]
    for attribute in clique:
        found += [(*part, attribute) for part in found]
    return found


def centred(table: Values, axes: Iterable[int] | None = None) -> Values:
    """⊗(I - J/k) along the given axes, or along all of them: a table less its means along each axis."""
    for axis in range(table.ndim) if axes is None else axes:
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def assembled(
    clique: tuple[A, ...], sizes: Mapping[A, int], residuals: Mapping[tuple[A, ...], Values]
) -> Values:
    """The table over a clique from the residuals of its parts; one that is not given counts as 0.

    `sizes` gives the number of cells of each attribute. The residual of the empty set is the number of rows.
    """
    found = np.zeros([sizes[attribute] for attribute in clique])
    for part in parts_of(clique):
        if part in residuals:
            own = set(part)
            spread = prod(sizes[attribute] for attribute in clique if attribute not in own)
            shape = [sizes[attribute] if attribute in own else 1 for attribute in clique]
            found += residuals[part].reshape(shape) / spread
    return found
