"""How alike neighbouring cells of an attribute are, and slack that prefers them to be.

Whether somebody is married depends on their age, and hardly differently at 41 and at 42. Where that is so, noise
in the two cells can be told from what the table says, since it moves them apart. So log potentials are taken for
a stationary Markov chain along each attribute, with the correlation that the measurements show (a Gaussian Markov
random field: Rue and Held 2005). Of categories in any order the correlation is near 0, which changes nothing:
nobody has to say which attributes are ordered.

Shown       Of two attributes, let c be the noisy counts of their cells and m what the counts of single attributes
            let expect if the two had nothing to do with each other. (c - m)/m tells how they depend on each other
            at a cell, with noise of variance v/m². Noise in two neighbouring cells is all but unrelated, so their
            product tells how alike they are. The correlation of an attribute is the sum of such products over the
            sum of squares less the noise in them, of all its pairs: weighed by how well they are known, and told
            too small by one standard deviation of the noise in both sums.
Privacy     Post-processing of what was measured.
Complexity  O(cells of the pairs) to find; O(cells) for each product with a matrix or its inverse, since that of a
            chain has three diagonals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.standin.graphical.compile import compiled
from understudy.standin.graphical.program import TableRegion
from understudy.standin.graphical.residual import Reconciled, ResidualSpace
from understudy.standin.graphical.tree import Values

KNOWN = 2.0
"""Standard deviations of its noise that a cell's expected people must be, to show anything, and so those with
either of its values."""

USUAL = 0.1
"""Mean square of a dependence, beside whose noise cells are weighed."""

LEAST, MOST = 0.1, 0.95
"""A smaller correlation is not worth the work, and a larger one is not believed."""

FEWEST = 3
"""Cells of an attribute that has neighbours to compare: of two, what one has more the other has less."""


@compiled
def _times_precision(values, axes, correlations):
    """Multiply, in place, by the inverse of a chain's correlations along each axis in turn."""
    for k in range(axes.shape[0]):
        start, outer, size, inner = axes[k]
        r = correlations[k]
        scale = 1 / (1 - r * r)
        for o in range(outer):
            for i in range(inner):
                at = start + o * size * inner + i
                before = 0.0
                for j in range(size):
                    here = values[at]
                    after = values[at + inner] if j + 1 < size else 0.0
                    own = 1.0 + r * r if 0 < j < size - 1 else 1.0
                    values[at] = scale * (own * here - r * (before + after))
                    before = here
                    at += inner


@compiled
def _times_correlations(values, axes, correlations):
    """Multiply, in place, by a chain's correlations r^|i - j| along each axis in turn."""
    for k in range(axes.shape[0]):
        start, outer, size, inner = axes[k]
        r = correlations[k]
        for o in range(outer):
            for i in range(inner):
                at = start + o * size * inner + i
                for _ in range(size - 1):  # what comes from below, with the cell's own
                    values[at + inner] += r * values[at]
                    at += inner
                above = 0.0
                for j in range(size):
                    own = values[at] - (r * values[at - inner] if j + 1 < size else 0.0)
                    values[at] += r * above
                    above = own + r * above
                    at -= inner


@dataclass(frozen=True)
class Smoothness:
    """The correlation of neighbouring log potentials along some attributes of a space's layout.

    Of a part of several attributes it is the product of theirs; parts of one attribute have none.
    """

    space: ResidualSpace
    correlations: Mapping[int, float]

    @classmethod
    def shown(cls, reconciled: Reconciled, total: float) -> Smoothness:
        """What the pairs among the measurements show."""
        evidence: dict[int, _Likeness] = {}
        place = reconciled.space.place
        for part in reconciled.space.parts:
            if len(part.attributes) == 2 and all((attribute,) in place for attribute in part.attributes):
                dependence, noise, known = _dependence(reconciled, part, total)
                for axis, attribute in enumerate(part.attributes):
                    if dependence.shape[axis] >= FEWEST:
                        seen = _Likeness.of(*(np.moveaxis(v, axis, 0) for v in (dependence, noise, known)))
                        evidence[attribute] = evidence.get(attribute, _Likeness()) + seen
        found = {attribute: min(seen.correlation, MOST) for attribute, seen in sorted(evidence.items())}
        return cls(reconciled.space, {attribute: r for attribute, r in found.items() if r >= LEAST})

    def __bool__(self) -> bool:
        return bool(self.correlations)

    @cached_property
    def _axes(self) -> tuple[NDArray[np.int64], Values]:
        """Where each axis with a correlation begins, its outer, own and inner size; and the correlations."""
        layout = self.space.layout
        places: list[tuple[int, int, int, int]] = []
        correlations: list[float] = []
        for part in self.space.parts:
            shape = layout.shape(part.attributes)
            for axis, attribute in enumerate(part.attributes if len(part.attributes) > 1 else ()):
                if attribute in self.correlations:
                    places.append((part.start, prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])))
                    correlations.append(self.correlations[attribute])
        return np.array(places, np.int64).reshape(-1, 4), np.array(correlations, np.float64)

    def times_precision(self, parts: Values) -> Values:
        """The product of the inverse of the correlations with functions on the cells of every part."""
        found = parts.copy()
        _times_precision(found, *self._axes)
        return found

    def times_correlations(self, parts: Values) -> Values:
        """The product of the correlations with functions on the cells of every part."""
        found = parts.copy()
        _times_correlations(found, *self._axes)
        return found

    @cached_property
    def diagonal(self) -> Values:
        """The diagonal of the inverse of the correlations, away from the ends of an axis."""
        one = {a: (1 + r * r) / (1 - r * r) for a, r in self.correlations.items()}
        return self.space.spread(
            {
                s: prod(one.get(attribute, 1.0) for attribute in s) if len(s) > 1 else 1.0
                for s in self.space.sets
            }
        )


def _dependence(reconciled: Reconciled, part: TableRegion, total: float) -> tuple[Values, Values, Values]:
    """Of the cells of a pair: how the attributes depend on each other, its noise, and which cells show it."""
    space, place = reconciled.space, reconciled.space.place
    shape = space.layout.shape(part.attributes)
    first, second = (
        reconciled.estimate[place[(a,)].start : place[(a,)].stop] + total / size
        for a, size in zip(part.attributes, shape, strict=True)
    )
    sure = [
        counts > KNOWN * sqrt(reconciled.variance[(a,)])
        for a, counts in zip(part.attributes, (first, second), strict=True)
    ]
    own = reconciled.estimate[part.start : part.stop].reshape(shape)
    counts = own + first[:, None] / shape[1] + second[None, :] / shape[0] - total / prod(shape)
    expected = np.maximum(first, 0)[:, None] * np.maximum(second, 0)[None, :] / total
    variance = reconciled.variance[part.attributes] * prod(1 - 1 / size for size in shape)
    known = (expected > KNOWN * sqrt(variance)) & np.logical_and.outer(*sure)
    divisor = np.where(known, expected, 1.0)
    return (counts - expected) / divisor * known, variance / divisor**2, known.astype(np.float64)


@dataclass(frozen=True)
class _Likeness:
    """Weighed sums over pairs of neighbouring cells: of products, of squares less noise, and of the weights.

    A weight is the inverse of the variance that a product of two cells of `USUAL` dependence has, so that the sum
    of the weights is the variance of the sum of the products.
    """

    products: float = 0.0
    squares: float = 0.0
    weights: float = 0.0

    @classmethod
    def of(cls, dependence: Values, noise: Values, known: Values) -> _Likeness:
        """Of neighbours along the first axis."""
        low, high = slice(None, -1), slice(1, None)
        weight = known[low] * known[high] / ((noise[low] + USUAL) * (noise[high] + USUAL))
        squares = sum(dependence[side] ** 2 - noise[side] for side in (low, high)) / 2
        products = dependence[low] * dependence[high]
        return cls(float((weight * products).sum()), float((weight * squares).sum()), float(weight.sum()))

    def __add__(self, other: _Likeness) -> _Likeness:
        return _Likeness(
            self.products + other.products, self.squares + other.squares, self.weights + other.weights
        )

    @property
    def correlation(self) -> float:
        """Told too small by a standard deviation of the noise; 0 where nothing is known."""
        noise = sqrt(self.weights)
        most = self.squares + noise
        return max(self.products - noise, 0.0) / most if most > 0 else 0.0
