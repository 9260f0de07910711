"""Small databases against a hierarchy of queries, in polynomial time: a tree of sets.

The cells of one marginal are disjoint; the bins of an attribute, and coarser bins made of them, are nested or
disjoint. Queries of which each two (or their complements) are nested or disjoint are the sets of a tree whose
leaves are the classes. How many ways there are to put s units into a set, with every set inside it within its
band, is the product of such polynomials over the parts of the set, cut to the band of the set itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from understudy.errors import QueryError
from understudy.mechanism.small_database.shells import Band, Counted, Kind, Shape


@dataclass(frozen=True, slots=True)
class ClassNode:
    """A set of classes: other sets first, by their number, then `leaves` classes of its own."""

    sets: tuple[int, ...]
    leaves: tuple[int, ...]

    @property
    def is_class(self) -> bool:
        return not self.sets and len(self.leaves) == 1


def set_tree(matrix: NDArray[np.bool_]) -> list[ClassNode] | None:
    """The queries as the sets of a tree, each the side without the first class; None if they are no tree.

    Set q is query q; the last set is the whole. Sets are taken from the smallest to the largest: each must be a
    union of the largest sets so far and of single classes.
    """
    queries, classes = matrix.shape
    if queries > 2 * classes - 3:  # no tree has more sets
        return None
    sides = matrix != matrix[:, :1]
    sizes = np.append(sides.sum(axis=1), classes)
    # A class that is in no set yet is on its own.
    owner: NDArray[np.int64] = np.arange(queries + 1, queries + 1 + classes, dtype=np.int64)
    nodes: list[ClassNode] = [ClassNode((), ())] * (queries + 1)
    for q in [*np.argsort(sizes[:-1], kind="stable").tolist(), queries]:
        inside = sides[q] if q < queries else np.ones(classes, bool)
        parts = np.unique(owner[inside]).tolist()
        sets = tuple(part for part in parts if part <= queries)
        leaves = tuple(part - queries - 1 for part in parts if part > queries)
        if sizes[list(sets)].sum() + len(leaves) != sizes[q]:  # a set reaches out of this one
            return None
        nodes[q] = ClassNode(sets, leaves)
        owner[inside] = q
    return nodes


def tree_shape(nodes: list[ClassNode], classes: int) -> Shape:
    """What the work on a tree depends on."""
    large = [sum(not nodes[part].is_class for part in node.sets) for node in nodes]
    small = [len(node.sets) > many for node, many in zip(nodes, large, strict=True)]
    merges = sum(max(many - 1 + mixed, 0) for many, mixed in zip(large, small, strict=True) if many)
    return Shape(Kind.TREE, len(nodes) - 1, classes, merges)


@dataclass(frozen=True, slots=True)
class Ways:
    """Numbers of ways by number of units, from `low` on; none elsewhere."""

    low: int
    counts: list[int]

    def __getitem__(self, units: int) -> int:
        place = units - self.low
        return self.counts[place] if 0 <= place < len(self.counts) else 0

    def cut(self, least: int, most: int) -> Ways:
        low, high = max(self.low, least), min(self.low + len(self.counts) - 1, most)
        return Ways(low, self.counts[low - self.low : high - self.low + 1] if low <= high else [])

    def with_leaf(self, most: int) -> Ways:
        """Together with a class that may have any number of units; up to `most` units in all."""
        sums = list(accumulate(self.counts[: max(most - self.low + 1, 0)]))
        total = sums[-1] if sums else 0
        return Ways(self.low, sums + [total] * (most - self.low + 1 - len(sums)))

    def with_run(self, least: int, most: int, cap: int) -> Ways:
        """Together with a class that has from `least` to `most` units."""
        if least > most:
            return Ways(0, [])
        sums = self.with_leaf(cap - least).counts
        width = most - least + 1
        counts = sums[:width] + [a - b for a, b in zip(sums[width:], sums, strict=False)]
        last = max(self.low + len(self.counts) - 1 + most, 0)
        return Ways(self.low + least, counts).cut(0, min(cap, last))

    def times(self, other: Ways, cap: int) -> Ways:
        """Both together: the product of polynomials, as one product of long integers."""
        if not self.counts or not other.counts:
            return Ways(0, [])
        bits = max(self.counts).bit_length() + max(other.counts).bit_length()
        width = (bits + min(len(self.counts), len(other.counts)).bit_length() + 7) // 8
        product = _packed(self.counts, width) * _packed(other.counts, width)
        length = len(self.counts) + len(other.counts) - 1
        digits = product.to_bytes(length * width, "little")
        counts = [int.from_bytes(digits[i : i + width], "little") for i in range(0, len(digits), width)]
        return Ways(self.low + other.low, counts).cut(0, cap)


def _packed(counts: Sequence[int], width: int) -> int:
    return int.from_bytes(b"".join(count.to_bytes(width, "little") for count in counts), "little")


class Mode(Enum):
    """Which databases of a set are meant: those within a band, or those within the outer one only."""

    OUTER = "outer"
    INNER = "inner"
    OWED = "outer and not inner"


@dataclass(frozen=True, eq=False)
class Tree(Counted):
    """A hierarchy: one count takes O((K+|Q|)·m) additions, and a product of polynomials where large sets meet."""

    def __post_init__(self) -> None:
        if self.nodes is None:
            raise QueryError("these queries are no hierarchy: two of them overlap without being nested")
        super().__post_init__()

    @staticmethod
    def additions(shape: Shape, size: int, width: int) -> float:
        # The units of a set of many classes range over more than a band's width. Long integers of d digits of 30
        # bits are multiplied in d^1.585 steps.
        del width
        digits = (size + 1) * (shape.nats(size) / 20 + 1)
        product = 100 * (size + 1) + digits**1.585 / 12
        return (shape.queries + shape.classes) * (8 * size + 72) + shape.merges * product

    @property
    def shape(self) -> Shape:
        assert self.nodes is not None
        return tree_shape(self.nodes, self.matrix.shape[1])

    @cached_property
    def nodes(self) -> list[ClassNode] | None:
        return set_tree(self.matrix)

    @cached_property
    def _postorder(self) -> list[int]:
        assert self.nodes is not None
        order: list[int] = []
        stack = [len(self.matrix)]
        while stack:
            node = stack.pop()
            order.append(node)
            stack.extend(self.nodes[node].sets)
        return order[::-1]

    def _sides(self, band: Band) -> Band:
        """The band of each node's own set, which is the query's or its complement's; all units are in the last."""
        m = self.size
        flipped = self.matrix[:, 0].tolist()
        sides = [
            (m - most, m - least) if flip else (least, most)
            for (least, most), flip in zip(band, flipped, strict=True)
        ]
        return [*sides, (m, m)]

    def within(self, band: Band) -> int:
        sides = self._sides(band)
        found: dict[int, Ways] = {}
        for node in self._postorder:
            *_, found[node] = self._products(node, sides, found)
        return found[len(self.matrix)][self.size]

    def _products(self, node: int, sides: Band, found: dict[int, Ways]) -> list[Ways]:
        """The ways of the node's parts, one part more each time, and last the ways of the node itself."""
        assert self.nodes is not None
        least, most = sides[node]
        parts = self.nodes[node]
        partial = [Ways(0, [1])]
        for child in parts.sets:
            if self.nodes[child].is_class:
                partial.append(partial[-1].with_run(*sides[child], most))
            elif len(partial) == 1:
                partial.append(found[child].cut(0, most))
            else:
                partial.append(partial[-1].times(found[child], most))
        for _ in parts.leaves:
            partial.append(partial[-1].with_leaf(most))
        return [*partial, partial[-1].cut(least, most)]

    def ranked(self, outer: Band, inner: Band, rank: int) -> list[int]:
        """From the whole down to the classes: at each set, which share of its units its last part has.

        A set that must leave its inner band owes nothing if its own count is outside; else one of its parts owes:
        an earlier one, and then the last is free, or the last alone.
        """
        assert self.nodes is not None
        tables: list[tuple[Band, dict[int, list[Ways]]]] = []
        for sides in (self._sides(outer), self._sides(inner)):
            products: dict[int, list[Ways]] = {}
            found: dict[int, Ways] = {}
            for node in self._postorder:
                products[node] = self._products(node, sides, found)
                found[node] = products[node][-1]
            tables.append((sides, products))
        (_, ways), (inner_sides, inside) = tables
        units = [0] * self.matrix.shape[1]
        stack = [(len(self.matrix), self.size, Mode.OWED, rank)]
        while stack:
            node, count, mode, rank = stack.pop()
            least, most = inner_sides[node]
            if mode is Mode.OWED and not least <= count <= most:
                mode = Mode.OUTER
            parts = [*self.nodes[node].sets, *(~leaf for leaf in self.nodes[node].leaves)]
            for place in reversed(range(len(parts))):
                before = ways[node][place], inside[node][place]
                part = parts[place]
                last = (ways[part][-1], inside[part][-1]) if part >= 0 else None
                share, mode, last_mode, rank, last_rank = _split(before, last, count, mode, rank)
                count -= share
                if part < 0:
                    units[~part] = share
                else:
                    stack.append((part, share, last_mode, last_rank))
        return units


def _split(
    before: tuple[Ways, Ways], last: tuple[Ways, Ways] | None, count: int, mode: Mode, rank: int
) -> tuple[int, Mode, Mode, int, int]:
    """How many of `count` units the last part has; then the mode and the rank of the others, and of the last part.

    `last` is None for a class, which may have any number of units and has one way for each.
    """
    share = 0
    while True:
        a, inner_a = before[0][count - share], before[1][count - share]
        b, inner_b = (1, 1) if last is None else (last[0][share], last[1][share])
        for modes, others, own in (
            ((Mode.OUTER, Mode.OUTER), a, b),
            ((Mode.INNER, Mode.INNER), inner_a, inner_b),
            ((Mode.OWED, Mode.OUTER), a - inner_a, b),
            ((Mode.INNER, Mode.OWED), inner_a, b - inner_b),
        ):
            if (mode is Mode.OWED) != (Mode.OWED in modes) or (
                mode is not Mode.OWED and mode is not modes[0]
            ):
                continue
            if rank < others * own:
                return share, modes[0], modes[1], rank // own, rank % own
            rank -= others * own
        share += 1
