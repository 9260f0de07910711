"""The residuals of all marginals up to an order: whole combinations of counts, with one precision each.

The residual of a set A of attributes is what its marginal c tells beyond those of its parts: R = ⊗(I - J/d)·c.
The marginal of C is the sum of the residuals of its parts, spread out evenly. d·(I - J/d) is whole, so
w·⊗(dI - J)·c with whole weights w has exact noise; all residuals are drawn together, with one variance.

Privacy     The combinations of all A together are a sum over rows (`privacy.relation`). The columns of two rows
            that differ in the attributes T are apart by the sum over A of w²·2(Π d(d-1) - Π g), squared; g is
            d(d-1) if the rows agree and -d if they differ: the squared length of one, and the product of two,
            columns of dI - J. The farthest two are those of the worst set T. The L1 norm of a column is 2(d-1).
            Up to 16 attributes every T is looked at. Of more, weights are the same for sets A that look alike
            (have the same sizes): then the distance depends on how many attributes of each size are in T, and
            one T for every such list of numbers is enough. Where there are too many lists, every T is looked at
            up to 20 attributes. Of more, the sum of the largest terms, each over the T that is worst for its own
            A, bounds the largest sum: it is up to twice as large where attributes have two cells, and 1.2 to 1.4
            times where they have 2 to 20.
Accuracy    A cell of C has the variance Σ_A Π_A (1 - 1/d)·Π_{C-A} 1/d² · σ²/(w·Π_A d)².
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import combinations, product
from math import comb, prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain
from understudy.mechanism.additive import Additive, noise_for
from understudy.mechanism.look import Blocks, decided
from understudy.mechanism.matrix.many_marginals import Centred
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.privacy.relation import NOTHING, Relation, Sensitivity
from understudy.query.marginal import Marginal
from understudy.query.residuals import parts_of

Values = NDArray[np.float64]
Whole = NDArray[np.int64]

Places = tuple[int, ...]
"""A set of attributes, by their places in the domain, in its order."""

MOST_ATTRIBUTES = 16
"""Up to so many attributes each set of them has a weight of its own."""

MOST_IN_SETS = 20
"""Up to so many every set of them is looked at, where that takes less time and memory than lists do."""

MOST_PARTS = 1 << 12
"""Sets of attributes that are measured."""

MOST_LISTED = 1 << 24
"""The most lists of how many attributes of each size differ, times the sets that are measured."""

FEW_LISTED = 1 << 22
"""And the most where every set of attributes can be looked at instead."""

ROUNDS = 30
LARGEST = 1 << 20
"""The largest weight of a combination."""


@dataclass(frozen=True, eq=False)
class PartSums:
    """A square matrix over the parts with few entries, by its rows, columns and values; no threads multiply it."""

    rows: Whole
    columns: Whole
    values: Values
    size: int

    def __matmul__(self, vector: Values) -> Values:
        summed = np.bincount(self.rows, self.values * vector[self.columns], minlength=self.size)
        return summed.astype(np.float64, copy=False)

    @property
    def transposed(self) -> PartSums:
        return PartSums(self.columns, self.rows, self.values, self.size)


@dataclass(frozen=True)
class ResidualsOfOrder:
    """All sets of up to `order` attributes of the given sizes."""

    sizes: tuple[int, ...]
    order: int

    @property
    def is_feasible(self) -> bool:
        """Whether weights for so many sets can be found."""
        return self.count <= MOST_PARTS

    @property
    def count(self) -> int:
        """How many sets of attributes there are."""
        return sum(comb(len(self.sizes), size) for size in range(1, self.order + 1))

    @property
    def is_even(self) -> bool:
        """Whether sets of attributes that look alike have the same weight."""
        return len(self.sizes) > MOST_ATTRIBUTES

    @cached_property
    def _way(self) -> Literal["sets", "lists", "bound"]:
        """What is looked at: every set T of differing attributes, one for each list, or a bound of all."""
        listed = self.count * prod(count + 1 for count in Counter(self.sizes).values())
        are_sets_few = len(self.sizes) <= MOST_IN_SETS
        if not self.is_even or (are_sets_few and listed > FEW_LISTED):
            return "sets"
        return "lists" if listed <= MOST_LISTED else "bound"

    @cached_property
    def all(self) -> list[Places]:
        return [
            part for size in range(1, self.order + 1) for part in combinations(range(len(self.sizes)), size)
        ]

    @cached_property
    def place(self) -> dict[Places, int]:
        return {part: i for i, part in enumerate(self.all)}

    @cached_property
    def reach(self) -> PartSums:
        """Row C, column A: the variance of a cell of C for residuals of A with variance 1."""
        agree = [1 - 1 / size for size in self.sizes]
        return self._within(
            lambda clique, part: (
                prod(agree[i] for i in part) * prod(1 / self.sizes[i] ** 2 for i in clique if i not in part)
            )
        )

    def _within(self, value: Callable[[Places, Places], float]) -> PartSums:
        """A matrix with the given values of each set (its row) and each of its parts (its column)."""
        found = [(i, self.place[p], value(c, p)) for i, c in enumerate(self.all) for p in parts_of(c)[1:]]
        rows, columns, values = (np.array(each) for each in zip(*found, strict=True))
        return PartSums(rows, columns, values.astype(np.float64), len(self.all))

    @cached_property
    def differing(self) -> NDArray[np.bool_]:
        """The sets T of differing attributes that are looked at, one a row; one of all for the bound."""
        if self._way == "bound":
            return np.ones((1, len(self.sizes)), bool)
        if self._way == "sets":
            sets = np.arange(1, 1 << len(self.sizes))
            return (sets[:, None] >> np.arange(len(self.sizes)) & 1).astype(bool)
        sizes = np.array(self.sizes)
        alike = [np.flatnonzero(sizes == size) for size in sorted(set(self.sizes))]
        lists = list(product(*(range(places.size + 1) for places in alike)))[1:]
        found = np.zeros((len(lists), sizes.size), bool)
        for row, numbers in enumerate(lists):
            for places, number in zip(alike, numbers, strict=True):
                found[row, places[:number]] = True
        return found

    @cached_property
    def _likeness(self) -> NDArray[np.int64]:
        """For each part a number that parts of the same sizes share."""
        names = {name: i for i, name in enumerate(sorted({self._look_of(part) for part in self.all}))}
        return np.array([names[self._look_of(part)] for part in self.all])

    def _look_of(self, part: Places) -> tuple[int, ...]:
        return tuple(sorted(self.sizes[i] for i in part))

    def _evened(self, values: Values) -> Values:
        """For each part the mean over those that look alike; as it is where all sets are looked at."""
        if not self.is_even:
            return values
        like = self._likeness
        return (np.bincount(like, values) / np.bincount(like))[like]

    @cached_property
    def _agree(self) -> Values:
        return 1 - 1 / np.array(self.sizes, np.float64)

    @cached_property
    def _listed(self) -> Values:
        """Row A, a column for each listed set T of differing attributes: how far R_A moves, squared.

        Where there is a bound, one column: how far R_A moves for the T that is worst for A.
        """
        if self._way == "bound":
            areas = [prod(self.sizes[i] for i in part) for part in self.all]
            worst = zip(areas, self._worst, strict=True)
            moved = [2 * (own - least) / area**2 for area, (own, least) in worst]
            return np.array(moved, np.float64)[:, None]
        factor = np.where(self.differing, self._agree - 1, self._agree)
        parts = [list(part) for part in self.all]
        return np.array(
            [2 * (prod(self._agree[part]) - factor[:, part].prod(axis=1)) for part in parts], np.float64
        )

    @cached_property
    def _worst(self) -> list[tuple[int, int]]:
        """For each part A the squared length of its column, and the least product with that of another row."""
        found = list[tuple[int, int]]()
        for part in self.all:
            factors = [(self.sizes[i] * (self.sizes[i] - 1), -self.sizes[i]) for i in part]
            products = [prod(chosen) for chosen in product(*factors)]
            found.append((products[0], min(products)))
        return found

    @cached_property
    def _expanded(self) -> PartSums:
        """Row A, column B: the coefficient of Π_B t in how far R_A moves, where t is 1 for what differs, else 0.

        R_A moves by 2(Π_A a - Π_A (a - t)) with a = 1 - 1/d, a sum over the parts B of A.
        """
        agree = [1 - 1 / size for size in self.sizes]
        return self._within(
            lambda whole, part: (-1.0) ** (len(part) + 1) * 2 * prod(agree[i] for i in whole if i not in part)
        )

    @cached_property
    def _codes(self) -> Whole:
        """The number of each part among all sets of attributes: the sum of 2^i over its attributes i."""
        return np.array([sum(1 << i for i in part) for part in self.all], np.int64)

    def _sets(self) -> Values:
        """Zeros, one for every set of attributes, in the order of their numbers."""
        return np.zeros(1 << len(self.sizes))

    def moves(self, scales: Values) -> Values:
        """For each set T that is looked at how far all residuals together move, squared: Σ_A scale_A·|ΔR_A|².

        Where every T is looked at, |ΔR_A|² is expanded into the parts of A, and the sums over the parts of all T
        are found attribute by attribute (Yates): a table of all A and T would have millions of numbers.
        """
        if self._way != "sets":
            return scales @ self._listed
        table = self._sets()
        table[self._codes] = self._expanded.transposed @ scales
        for i in range(len(self.sizes)):
            halves = table.reshape(-1, 2, 1 << i)
            halves[:, 1] += halves[:, 0]
        return table[1:]

    def pulled(self, likely: Values) -> Values:
        """For each residual how far it moves, squared, on average over the sets T with these probabilities."""
        if self._way != "sets":
            return self._listed @ likely
        table = self._sets()
        table[1:] = likely
        for i in range(len(self.sizes)):
            halves = table.reshape(-1, 2, 1 << i)
            halves[:, 0] += halves[:, 1]
        return self._expanded @ table[self._codes]

    def precisions(self, needed: NDArray[np.bool_]) -> Values:
        """For each part its precision: all cells of the needed marginals have variance at most 1, cheaply."""
        needed = self._evened(needed.astype(np.float64)) > 0
        weight = needed / needed.sum()
        sets = len(self.differing)
        pull = self._evened(self.pulled(np.full(sets, 1 / sets)))
        best, found = np.inf, np.zeros(len(self.all))
        for _ in range(ROUNDS):
            asked = self.reach.transposed @ weight
            used = asked > 1e-13
            precision = np.where(used, np.sqrt(np.maximum(asked, 1e-14) / pull), 0.0)
            variance = self.reach @ np.where(used, 1 / np.maximum(precision, 1e-30), 0.0)
            variance[~needed] = 0.0
            precision = precision * variance.max()
            losses = self.moves(precision)
            if losses.max() < best:
                best, found = float(losses.max()), precision
            weight = weight * np.sqrt(variance / variance.max())
            weight = weight / weight.sum()
            hard = (losses / losses.max()) ** 30
            pull = 0.7 * pull + 0.3 * self._evened(self.pulled(hard / hard.sum()))
        return self._evened(found)

    def weights(self, needed: NDArray[np.bool_], *, largest: float = LARGEST) -> list[int]:
        """Whole weights w_A in proportion to the precisions, at least 1; 0 where a part is not needed.

        `largest` is the weight of a combination that the most precise part has.
        """
        areas = np.array([prod(self.sizes[i] for i in part) for part in self.all], np.float64)
        wanted = np.sqrt(self.precisions(needed))
        scale = largest / (wanted.max() if wanted.max() else 1.0)
        return [
            max(round(scale * w / area), 1) if w > 0 else 0 for w, area in zip(wanted, areas, strict=True)
        ]

    def farthest_squared(self, weights: Sequence[int]) -> int:
        """The squared distance of the farthest two columns, or a bound of it, in exact integers.

        Raises a `ValueError` where weights differ that have to be the same.
        """
        if self.is_even and not self._are_alike(weights):
            raise ValueError("sets of attributes of the same sizes need the same weight")
        if self._way == "bound":
            parts = zip(weights, self._worst, strict=True)
            return sum(w * w * 2 * (own - least) for w, (own, least) in parts)
        scales = np.array(
            [(w * prod(self.sizes[i] for i in part)) ** 2 for w, part in zip(weights, self.all, strict=True)],
            np.float64,
        )
        losses = self.moves(scales)
        # The float sums are good to 10 digits; every set that might be the largest is looked at exactly.
        near = self.differing[losses >= losses.max() * (1 - 1e-5)]
        if self._are_alike(weights):  # then sets with as many attributes of each size are equally far
            sizes = np.array(self.sizes)
            numbers = np.stack(
                [near[:, sizes == size].sum(axis=1) for size in sorted(set(self.sizes))], axis=1
            )
            near = near[np.unique(numbers, axis=0, return_index=True)[1]]
        return max(self._exact_loss(weights, differing) for differing in near.tolist())

    def _are_alike(self, weights: Sequence[int]) -> bool:
        """Whether sets of attributes of the same sizes have the same weight."""
        return len(set(zip(self._likeness.tolist(), weights, strict=True))) == self._likeness.max() + 1

    def _exact_loss(self, weights: Sequence[int], differing: Sequence[bool]) -> int:
        total = 0
        for w, part in zip(weights, self.all, strict=True):
            own = prod(self.sizes[i] * (self.sizes[i] - 1) for i in part)
            other = prod(
                -self.sizes[i] if differing[i] else self.sizes[i] * (self.sizes[i] - 1) for i in part
            )
            total += w * w * 2 * (own - other)
        return total

    def spreads(self, weights: Sequence[int]) -> Values:
        """For each marginal the deviation of its cells, for noise of deviation 1 on the combinations."""
        inverse = [
            1 / (w * prod(self.sizes[i] for i in part)) ** 2 if w else 0.0
            for w, part in zip(weights, self.all, strict=True)
        ]
        return np.sqrt(self.reach @ np.array(inverse))


@dataclass(frozen=True, eq=False)
class ResidualColumns:
    """What a row adds to the combinations w·⊗(dI - J)·c of all sets, one after the other."""

    residuals: ResidualsOfOrder
    weights: Sequence[int]

    @property
    def longest(self) -> Sensitivity:
        sizes, found = self.residuals.sizes, NOTHING
        for w, part in zip(self.weights, self.residuals.all, strict=True):
            l1 = prod(2 * (sizes[i] - 1) for i in part)
            found += Sensitivity(l1, prod(sizes[i] * (sizes[i] - 1) for i in part)) * w
        return found

    @property
    def farthest(self) -> Sensitivity:
        return Sensitivity(2 * self.longest.l1, self.residuals.farthest_squared(self.weights))


@dataclass(frozen=True, eq=False)
class ResidualLook:
    """Noisy residuals of all sets with a positive weight, w·⊗(dI - J)·c each, with noise of one scale.

    Privacy     The price, for noise that is made for the sensitivity of these weights (`ResidualColumns`).
                [CKS20, Theorem 14]
    """

    domain: Domain
    residuals: ResidualsOfOrder
    weights: tuple[int, ...]
    relation: Relation
    price: Price

    def __post_init__(self) -> None:
        decided(self.additive)

    @cached_property
    def additive(self) -> Additive:
        """The noise on every combination."""
        return noise_for(self.price, self.relation.moves(ResidualColumns(self.residuals, self.weights)))

    @property
    def mechanism(self) -> Blocks:
        """The same noise for the combinations of each set."""
        sizes = tuple(prod(self.residuals.sizes[i] for i in part) for part, _ in self._used)
        return Blocks((self.additive,) * len(sizes), sizes)

    @property
    def _used(self) -> list[tuple[Places, int]]:
        """The sets that are measured, with their weights."""
        return [(part, w) for part, w in zip(self.residuals.all, self.weights, strict=True) if w]

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """The largest sets; every other lies within one of them."""
        used = [part for part, _ in self._used]
        inner = {smaller for part in used for smaller in parts_of(part)[:-1]}
        return tuple(self._marginal(part) for part in used if part not in inner)

    def _marginal(self, part: Places) -> Marginal:
        return Marginal(self.domain, tuple(self.domain.names[i] for i in part))

    @property
    def event(self) -> Event:
        return self.additive.event

    def event_under(self, relation: Relation) -> Event:
        return self.additive.event_for(relation.moves(ResidualColumns(self.residuals, self.weights)))

    @property
    def key(self) -> str:
        return f"residuals up to {self.residuals.order} {sha256(repr(self.weights).encode()).hexdigest()}"

    def values(self, counts: Sequence[Whole]) -> Whole:
        """The combinations of every set, one after the other."""
        tables: dict[Places, Whole] = {}
        for marginal, table in zip(self.marginals, counts, strict=True):
            whole = tuple(self.domain.names.index(name) for name in marginal.by)
            for part in parts_of(whole):
                if part not in tables:
                    others = tuple(axis for axis, i in enumerate(whole) if i not in part)
                    tables[part] = table.sum(axis=others)
        return np.concatenate([combined(tables[part], w).ravel() for part, w in self._used])


def combined(counts: Whole, weight: int) -> Whole:
    """w·⊗(dI - J)·c."""
    table = counts
    for axis, size in enumerate(counts.shape):
        table = Centred(size).combine(table, axis)
    return weight * table
