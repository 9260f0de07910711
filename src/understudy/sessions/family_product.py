"""Products of families: the members of a class of questions on several attributes, and the noise in each.

A class is a product of families, one for each attribute (`families`): all rectangles, or all conjunctions on a few
attributes. Its strategy is the product of the families' own, so that variances multiply, and so do sensitivities.

Promise     A band for all members at once can be found from the noise alone (`class_band`).
Why         A member is a fixed linear function of the noise N on the combinations that are measured, so that the
            largest error over all members is a function of N alone, whoever chooses which members to look at and
            when.
Rounding    The weights of combinations are whole multiples of the largest over a resolution r. Nothing rests on
            the weights that were rounded: what is measured, inverted, simulated and priced are the whole numbers
            W themselves. So for any r at which W has full rank, W⁺·(W·c + N) = c + W⁺·N, the band holds, and the
            price is that of W's own columns. What r decides is how near W is to the best weights, which is a
            matter of price, and how far one step of the lattice reaches (`slack`), in people Σ|W⁺| ~ 1/r for each
            axis; and how large the noise is in steps, of which there can be 2^30. Hence r is as large as the noise
            permits (`product_class.resolution_for`): noise that is large in people needs few steps to each.
Cost        No privacy: N is simulated with a public seed (`simulation`). Time: for each draw a maximum over every
            member, along the largest family by its extreme (a maximum of prefix sums, of cells, or a sum of
            positive parts), along the others one member after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.matrix.one_marginal import MAX_WEIGHT
from understudy.sessions.families import MOST_MEMBERS, CellFamily, Kind

Values = NDArray[np.float64]

DRAWS = 1 << 12
"""Draws of the noise that a band is simulated with at least."""

WORK = 1 << 30
"""Numbers that a simulation may go through: a class that needs more is not bought."""


@dataclass(frozen=True)
class Product:
    """A product of families, one for each axis of a table: its members are products of members.

    `resolution` is the largest weight along each axis; None stands for `finest`.
    """

    families: tuple[CellFamily, ...]
    resolution: int | None = None

    @property
    def matrices(self) -> tuple[NDArray[np.int64], ...]:
        """The combinations that are measured, along each axis."""
        if "_matrices" not in vars(self):
            for family in self.families:
                if not family.laplace:
                    family.minimax()  # here, since a cached property has a lock, and a plan may wait for its own
        return self._matrices

    @cached_property
    def _matrices(self) -> tuple[NDArray[np.int64], ...]:
        each = self.finest if self.resolution is None else self.resolution
        return tuple(family.matrix(each) for family in self.families)

    @property
    def finest(self) -> int:
        """The largest resolution at which the sums of all rows stay within 64 bits."""
        return min(1024, int(MAX_WEIGHT ** (1 / len(self.families))))

    @property
    def inverses(self) -> tuple[Values, ...]:
        """The cells from the combinations, along each axis."""
        return self._inverses if self.matrices else ()

    @cached_property
    def _inverses(self) -> tuple[Values, ...]:
        return tuple(
            np.asarray(np.linalg.pinv(matrix.astype(np.float64)), np.float64) for matrix in self._matrices
        )

    @property
    def members(self) -> int:
        """How many members the product has."""
        return prod(family.members for family in self.families)

    @property
    def sizes(self) -> dict[int, int]:
        """How many members there are of each number of cells."""
        found = {1: 1}
        for family in self.families:
            pairs = [(a * b, x * y) for a, x in found.items() for b, y in family.sizes.items()]
            found = dict.fromkeys((size for size, _ in pairs), 0)
            for size, number in pairs:
                found[size] += number
        return found

    @property
    def work(self) -> int:
        """How many numbers the largest error of one draw of the noise takes to compute."""
        others = sorted(family.members for family in self.families)[:-1]
        return prod(others) * max(family.size for family in self.families)

    @property
    def is_feasible(self) -> bool:
        """Whether the band can be simulated in the time that is allowed."""
        others = sorted(family.members for family in self.families)[:-1]
        return self.work * DRAWS <= WORK and all(members <= MOST_MEMBERS for members in others)

    def cells(self, combinations: Values) -> Values:
        """The table from its noisy combinations."""
        table = combinations
        for axis, inverse in enumerate(self.inverses):
            table = np.moveaxis(np.tensordot(inverse, table, axes=(1, axis)), 0, axis)
        return table

    def norm(self, order: int) -> float:
        """The largest `order`-norm of a member's coefficients on the combinations."""
        return _norm(self, order)

    @property
    def _largest(self) -> tuple[int, int | None]:
        """The axis of most members, and the next one where its members are ranges: differences of running sums."""
        first, *others = sorted(
            range(len(self.families)), key=lambda axis: (-self.families[axis].members, -axis)
        )
        return first, others[0] if others and self.families[others[0]].kind == "ranges" else None

    @cached_property
    def _seen(self) -> tuple[Values, ...]:
        """What `suprema` looks at along each axis: running sums or cells of the largest families, else members."""
        return tuple(
            family.sums if axis in self._largest else family.sets for axis, family in enumerate(self.families)
        )

    @property
    def at_once(self) -> int:
        """How many numbers `suprema` holds for one draw of the noise."""
        return prod(len(seen) for seen in self._seen)

    @cached_property
    def _coefficients(self) -> tuple[Values, ...]:
        """Of every member of each family, on the combinations along its axis."""
        parts = zip(self.families, self.inverses, strict=True)
        return tuple(np.asarray(family.sets @ inverse, np.float64) for family, inverse in parts)

    @cached_property
    def deviations(self) -> Values:
        """Of the noise in every member, an axis for each family, where that on the combinations has deviation 1.

        Raises a `ValueError` where the members of a family are too many to list.
        """
        found = np.ones(())
        for each in self._coefficients:
            found = np.multiply.outer(found, np.linalg.norm(each, axis=1))
        return found

    def directions(self, members: Sequence[NDArray[np.intp]]) -> Values:
        """The coefficients of some members, scaled to length 1; `members` has their places along each axis."""
        found = np.ones((len(members[0]), 1))
        for each, places in zip(self._coefficients, members, strict=True):
            mine = each[places] / np.linalg.norm(each[places], axis=1, keepdims=True)
            found = np.einsum("ij,ik->ijk", found, mine).reshape(len(mine), -1)
        return found

    def suprema(self, noise: Values, arrays: ReusedArrays | None = None) -> Values:
        """The largest |noise| over all members, for draws (along the first axis) of noise on the combinations.

        `arrays` are those of the blocks of draws before.
        """
        family, found = self.families[self._largest[0]], np.zeros(len(noise))
        for sums in self._sums(noise, arrays or ReusedArrays()):
            np.maximum(found, _over_all(family.extreme(sums)), out=found)
        return found

    def number_above(
        self, noise: Values, width: float, arrays: ReusedArrays | None = None
    ) -> NDArray[np.int64]:
        """In how many members |noise| is above `width`, for draws as in `suprema`.

        Few members are looked at one by one, and all of them at once: those of a family of which the largest is
        above.
        """
        family = self.families[self._largest[0]]
        draws, looked_at = list[NDArray[np.intp]](), list[Values]()
        for sums in self._sums(noise, arrays or ReusedArrays()):
            are_above = family.extreme(sums) > width
            draws.append(np.nonzero(are_above)[-1])
            looked_at.append(sums[:, are_above])
        found = np.zeros(len(noise), np.int64)
        np.add.at(found, np.concatenate(draws), family.number_above(np.concatenate(looked_at, axis=1), width))
        return found

    def _sums(self, noise: Values, arrays: ReusedArrays) -> Iterator[Values]:
        """Noise on the `sums` of the largest family, along the first axis, for all members of the others.

        Draws lie along the last axis, so that maxima are taken over long vectors. Ranges of the second largest
        family are not listed: all that begin at one cell are taken at a time.
        """
        through = [seen @ inverse for seen, inverse in zip(self._seen, self.inverses, strict=True)]
        table = np.moveaxis(noise, 0, -1)
        grows = [len(matrix) / matrix.shape[1] for matrix in through]
        for axis in sorted(range(len(grows)), key=lambda axis: (grows[axis], -axis)):  # what grows, last
            table = _taken_through(through[axis], table, axis, arrays)
        first, second = self._largest
        if second is None:
            yield np.moveaxis(table, first, 0)
            return
        table = np.moveaxis(table, (second, first), (0, 1))
        for start in range(len(table) - 1):
            later = table[start + 1 :]
            ranges = np.subtract(later, table[start], out=arrays.of("ranges", later.shape))
            yield np.moveaxis(ranges, 1, 0)


class ReusedArrays:
    """Arrays that are used again for block after block: fresh memory takes as long as what is computed in it."""

    def __init__(self) -> None:
        self._kept: dict[str, Values] = {}

    def of(self, name: str, shape: tuple[int, ...]) -> Values:
        """An array of this shape that holds anything; it is the same memory for the same name."""
        kept = self._kept.get(name)
        if kept is None or kept.size < prod(shape):
            kept = self._kept[name] = np.empty(prod(shape))
        return kept[: prod(shape)].reshape(shape)


def _taken_through(matrix: Values, table: Values, axis: int, arrays: ReusedArrays) -> Values:
    """The products of a matrix with the vectors of a table along an axis, which is not the last one."""
    before, after = table.shape[:axis], table.shape[axis + 1 :]
    room = arrays.of(f"axis {axis}", (*before, len(matrix), *after))
    if axis == table.ndim - 2:
        return np.matmul(matrix, table, out=room)  # also where draws vary slowest in memory, without a copy
    flat = table.reshape(prod(before), table.shape[axis], prod(after))
    np.matmul(matrix, flat, out=room.reshape(prod(before), len(matrix), prod(after)))
    return room


def _over_all(extremes: Values) -> Values:
    """The largest for each draw, which are along the last axis."""
    return extremes.reshape(-1, extremes.shape[-1]).max(axis=0)


def _largest_norm(family: CellFamily, inverse: Values, order: int) -> float:
    """Of the members' coefficients; ranges that are too many to list are differences of two prefixes each."""
    if family.kind != "ranges" or family.members <= MOST_MEMBERS:
        return float(np.linalg.norm(family.largest @ inverse, ord=order, axis=1).max())
    prefixes = np.vstack([np.zeros(inverse.shape[1]), np.cumsum(inverse, axis=0)])
    return max(
        float(np.linalg.norm(prefixes[i + 1 :] - prefixes[i], ord=order, axis=1).max())
        for i in range(family.size)
    )


def slack(product: Product) -> float:
    """How far, in people, one step of noise in every combination can move a member."""
    return product.norm(1)


def product_of(
    sizes: Sequence[int], kinds: Sequence[Kind], *, laplace: bool, resolution: int | None = None
) -> Product:
    """The product of families of these sizes: the same object for the same ones, which keeps what it finds out."""
    return _product(tuple(sizes), tuple(kinds), laplace=laplace, resolution=resolution)


@lru_cache(maxsize=64)
def _product(
    sizes: tuple[int, ...], kinds: tuple[Kind, ...], *, laplace: bool, resolution: int | None
) -> Product:
    families = tuple(CellFamily(size, kind, laplace) for size, kind in zip(sizes, kinds, strict=True))
    return Product(families, resolution)


@lru_cache(maxsize=1024)
def _norm(product: Product, order: int) -> float:
    parts = zip(product.families, product.inverses, strict=True)
    return prod(_largest_norm(family, inverse, order) for family, inverse in parts)
