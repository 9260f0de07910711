"""Half-spaces on finitely many points, exactly: their traces, and Radon's theorem as a witness.

Coordinates are integers or rationals and stay so: near-collinear points are told apart, whatever their distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from understudy.errors import ParameterError
from understudy.rational import Number, exact
from understudy.theory.lectures9_10 import sauer_shelah
from understudy_textbook.vc import BoolMatrix

MAX_CELLS = 1 << 20
"""Largest matrix that `half_space_traces` fills, points times dichotomies as Cover counts them beforehand."""

Point = Sequence[Number]
Vector = tuple[int, ...]


def half_space_traces(points: Sequence[Point]) -> BoolMatrix:
    """All distinct traces of the half-spaces {x : a·x ≥ b} on points with rational coordinates, in any dimension.

    Exact, by the induction in Cover's count of linear dichotomies (1965): one more point can be put on either side
    of a separation of the earlier ones if and only if some separating hyperplane passes through it, which is the
    same question about the earlier points seen from the new one, in one dimension less; else it has one side only.
    m points in general position in ℝ^d have 2 Σ_{i≤d} C(m−1, i) traces, and others have fewer.
    """
    vectors = [_integral(row) for row in _homogeneous(points)]
    most = 2 * sauer_shelah(len(vectors) - 1, len(vectors[0]) - 1)
    if most * len(vectors) > MAX_CELLS:
        raise ParameterError(
            f"{len(vectors):,} points in dimension {len(vectors[0]) - 1} have up to {most:,} dichotomies; a "
            f"matrix of at most {MAX_CELLS:,} cells is filled. Give fewer points."
        )
    patterns = sorted(_strict_signs(vectors, len(vectors[0])))
    return np.array([[p >> i & 1 for i in range(len(vectors))] for p in patterns], dtype=np.bool_)


def _strict_signs(vectors: Sequence[Vector], dimension: int) -> dict[int, Vector]:
    """Every pattern of signs of (a·v)_v with no zero, as bits (1 is positive), each with one such integer a."""
    if not all(map(any, vectors)):
        return {}
    if dimension == 1:
        positive = sum((v[0] > 0) << i for i, v in enumerate(vectors))
        return {positive: (1,), positive ^ (1 << len(vectors)) - 1: (-1,)}
    signs: dict[int, Vector] = {0: (0,) * dimension}
    for i, v in enumerate(vectors):
        pivot = next(j for j, c in enumerate(v) if c)
        earlier = vectors[:i]
        through = _strict_signs([_seen_from(v, pivot, w) for w in earlier], dimension - 1)
        # Integer products that are not 0 are at least 1 in size: `far` times a wall keeps its signs under ±v.
        far = 1 + max((abs(_dot(v, w)) for w in earlier), default=0)
        grown: dict[int, Vector] = {}
        for pattern, normal in signs.items():
            if pattern in through:
                wall = _lifted(v, pivot, through[pattern])
                grown[pattern | 1 << i] = tuple(far * a + c for a, c in zip(wall, v, strict=True))
                grown[pattern] = tuple(far * a - c for a, c in zip(wall, v, strict=True))
            else:
                grown[pattern | (_dot(normal, v) > 0) << i] = normal
        signs = grown
    return signs


def _seen_from(v: Vector, pivot: int, w: Vector) -> Vector:
    """Coordinates of w modulo v: their product with a normal has the sign of w's with the `_lifted` normal."""
    side = 1 if v[pivot] > 0 else -1
    return _shortest([side * (v[pivot] * w[j] - w[pivot] * v[j]) for j in range(len(v)) if j != pivot])


def _lifted(v: Vector, pivot: int, normal: Vector) -> Vector:
    """The normal orthogonal to v that `normal` stands for in the coordinates of `_seen_from`."""
    side = 1 if v[pivot] > 0 else -1
    at_pivot = -side * _dot(normal, v[:pivot] + v[pivot + 1 :])
    scaled = [abs(v[pivot]) * a for a in normal]
    return _shortest([*scaled[:pivot], at_pivot, *scaled[pivot:]])


@dataclass(frozen=True, slots=True)
class RadonPartition:
    """Two disjoint sets of points, by index, whose hulls share `point`, the weighted mean of either."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    left_weights: tuple[Fraction, ...]
    right_weights: tuple[Fraction, ...]
    point: tuple[Fraction, ...]


def radon_partition(points: Sequence[Point]) -> RadonPartition:
    """Why half-spaces do not shatter these points: no half-space holds `left` and misses `right`, or conversely.

    There is one for any d + 2 points of ℝ^d (Radon), and for all points that are affinely dependent: three on a
    line, two that coincide. Affinely independent points are shattered, and refused.
    """
    rows = _homogeneous(points)
    dependence = _dependence(rows)
    if dependence is None:
        raise ParameterError(
            "the points are affinely independent: half-spaces shatter them, nothing parts them"
        )
    left = tuple(i for i, c in enumerate(dependence) if c > 0)
    right = tuple(i for i, c in enumerate(dependence) if c < 0)
    mass = sum((dependence[i] for i in left), Fraction(0))
    left_weights = tuple(dependence[i] / mass for i in left)
    shared = (
        sum((weight * rows[i][j] for i, weight in zip(left, left_weights, strict=True)), Fraction(0))
        for j in range(len(rows[0]) - 1)
    )
    return RadonPartition(
        left, right, left_weights, tuple(-dependence[i] / mass for i in right), tuple(shared)
    )


def _dependence(rows: Sequence[Sequence[Fraction]]) -> list[Fraction] | None:
    """Coefficients, not all zero, with which the rows add up to zero; None if they are independent."""
    basis: list[tuple[int, list[Fraction], list[Fraction]]] = []
    for i, row in enumerate(rows):
        rest = list(row)
        used = [Fraction(i == j) for j in range(len(rows))]
        for pivot, vector, combination in basis:
            factor = rest[pivot] / vector[pivot]
            rest = [a - factor * b for a, b in zip(rest, vector, strict=True)]
            used = [a - factor * b for a, b in zip(used, combination, strict=True)]
        pivot = next((j for j, c in enumerate(rest) if c), None)
        if pivot is None:
            return used
        basis.append((pivot, rest, used))
    return None


def _homogeneous(points: Sequence[Point]) -> list[tuple[Fraction, ...]]:
    """Each point x as (x, 1), so that a·x ≥ b is a sign of one product."""
    # NumPy's own integers are no `int`; its scalars know their plain value.
    plain = [[c.item() if isinstance(c, np.generic) else c for c in point] for point in points]
    rows = [tuple(exact(c, "a coordinate") for c in point) for point in plain]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise ParameterError("points must be at least one, all with the same number of coordinates")
    return [(*row, Fraction(1)) for row in rows]


def _integral(row: Sequence[Fraction]) -> Vector:
    scale = lcm(*(c.denominator for c in row))
    return _shortest([int(c * scale) for c in row])


def _shortest(vector: Sequence[int]) -> Vector:
    """The shortest integer vector in the same direction; without it, digits double with every dimension."""
    common = gcd(*vector) or 1
    return tuple(c // common for c in vector)


def _dot(a: Vector, b: Vector) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))
