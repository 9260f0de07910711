"""Marginals of a junction tree on any clique, inside the tree or across it, without sampling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import CELL_LIMIT
from understudy.errors import TooLargeError
from understudy.standin.graphical.belief import Beliefs
from understudy.standin.graphical.compile import compiled
from understudy.standin.graphical.program import project
from understudy.standin.graphical.tree import Attributes, JunctionTree, Layout, Values

Named = tuple[Attributes, Values]
"""Attributes in the order of a table's axes, and the table."""

SMALL_TREE = 24
"""Cliques of a tree of which all are tried as the beginning of a question."""

KEPT_CELLS = 1 << 24
"""Cells of tables that are kept between questions (128 MiB)."""


class Answers:
    """Answers from one set of beliefs; what one question works out is kept for the next.

    A question on attributes that no clique holds together starts at one clique and meets the others by conditional
    rates P(a | separator), contracted by matrix products. Parts of the model that are not connected are joined by
    empty separators.
    """

    def __init__(self, layout: Layout, tree: JunctionTree, beliefs: Beliefs) -> None:
        self._layout, self._tree, self._beliefs = layout, tree, beliefs
        self._parents = tuple(p if p >= 0 else (0 if j else -1) for j, p in enumerate(tree.parents))
        self._ways = _directions(len(layout.sizes), tree, self._parents).tolist()
        self._homes = [_home(layout, tree, a) for a in range(len(layout.sizes))]
        self._kept_cells = 0
        self._most = CELL_LIMIT
        self._projected: dict[tuple[int, Attributes], Values] = {}
        self._conditional: dict[tuple[int, int, Attributes], Named] = {}

    def marginals(self, questions: Sequence[Attributes], most: int = CELL_LIMIT) -> list[Values]:
        """Flat rates over each; refused where a table on the way would have more than `most` cells."""
        self._most = most
        return [self._from(self._start(question), question) for question in questions]

    def _from(self, start: int, question: Attributes) -> Values:
        names, table = self._gather(start, None, question)
        axes = [names.index(a) for a in question]
        return table.transpose(axes).ravel()

    def _separator(self, j: int, k: int) -> Attributes:
        return self._tree.separators[k] if self._parents[k] == j else self._tree.separators[j]

    def _project(self, j: int, onto: Attributes) -> Values:
        """The belief of clique j on some of its attributes, shaped."""
        key = (j, onto)
        table = self._projected.get(key)
        if table is None:
            flat = project(self._layout, self._tree.cliques[j], self._beliefs.clique(j), onto)
            table = flat.reshape(self._layout.shape(onto))
            self._make_room(table.size)
            self._projected[key] = table
        return table

    def _make_room(self, cells: int) -> None:
        """Forget everything once too much is kept; what is needed again is worked out again."""
        self._kept_cells += cells
        if self._kept_cells > KEPT_CELLS:
            self._projected.clear()
            self._conditional.clear()
            self._kept_cells = cells

    def _gather(self, j: int, came_from: int | None, wanted: Attributes) -> Named:
        """Rates of `wanted` seen from clique j, given the separator that we came by."""
        entry = () if came_from is None else self._separator(j, came_from)
        ways: dict[int, list[int]] = {}
        kept = set(entry)
        for a in wanted:
            way = self._ways[j][a]
            if way < 0:
                kept.add(a)
            else:
                ways.setdefault(way, []).append(a)
        needed = kept.union(*(self._separator(j, k) for k in ways))
        names: Attributes = tuple(sorted(needed))
        table = self._project(j, names)
        if entry:
            mass = self._project(j, entry).reshape(
                [n if a in entry else 1 for a, n in zip(names, table.shape, strict=True)]
            )
            table = np.divide(table, mass, out=np.zeros_like(table), where=mass > 0)
        left = dict(ways)
        while left:
            k = min(left, key=lambda way: self._size_after(names, kept, left, j, way))
            attributes = tuple(left.pop(k))
            keep = kept.union(*(self._separator(j, other) for other in left))
            names, table = self._meet((names, table), self._given(j, k, attributes), keep)
            kept.update(attributes)
        return names, table

    def _size_after(
        self, names: Attributes, kept: set[int], left: dict[int, list[int]], j: int, way: int
    ) -> tuple[int, int]:
        needed = kept.union(*(self._separator(j, other) for other in left if other != way))
        return self._layout.cells([*(a for a in names if a in needed), *left[way]]), way

    def _given(self, j: int, k: int, wanted: Attributes) -> Named:
        """P(wanted | separator of j and k), where `wanted` lies on the side of k."""
        given = self._conditional.get((j, k, wanted))
        if given is None:
            if len(wanted) == 1:  # from the far end, so that long ways need no deep recursion
                for here, there in reversed(self._edges(k, wanted[0])):
                    self._keep(here, there, wanted)
            given = self._keep(j, k, wanted)
        return given

    def _edges(self, j: int, attribute: int) -> list[tuple[int, int]]:
        """The way from clique j to the nearest one that holds the attribute."""
        edges: list[tuple[int, int]] = []
        while (there := self._ways[j][attribute]) >= 0:
            edges.append((j, there))
            j = there
        return edges

    def _keep(self, j: int, k: int, wanted: Attributes) -> Named:
        key = (j, k, wanted)
        given = self._conditional.get(key)
        if given is None:
            given = self._gather(k, j, wanted)
            if len(wanted) <= 2:  # what is known of few attributes serves many questions
                self._make_room(given[1].size)
                self._conditional[key] = given
        return given

    def _meet(self, left: Named, right: Named, keep: set[int]) -> Named:
        """Multiply two tables and sum out what is neither kept nor new."""
        (a_names, a), (b_names, b) = left, right
        gone = tuple(i for i, name in enumerate(a_names) if name not in b_names and name not in keep)
        if gone:
            a = a.sum(axis=gone)
            a_names = tuple(name for i, name in enumerate(a_names) if i not in gone)
        shared = [name for name in a_names if name in b_names]
        batch, summed = [n for n in shared if n in keep], [n for n in shared if n not in keep]
        rows, columns = [n for n in a_names if n not in b_names], [n for n in b_names if n not in a_names]
        names = (*batch, *rows, *columns)
        shape = self._layout.shape(names)
        if (cells := prod(shape)) > self._most:
            raise TooLargeError("a table on the way to this marginal", cells=cells, limit=self._most)
        sizes = [self._layout.cells(group) for group in (batch, rows, summed, columns)]
        a = a.transpose([a_names.index(n) for n in (*batch, *rows, *summed)])
        b = b.transpose([b_names.index(n) for n in (*batch, *summed, *columns)])
        return names, _multiply(a.ravel(), b.ravel(), *sizes).reshape(shape)

    def _start(self, question: Attributes) -> int:
        """Where to begin: the clique at which the tables met are smallest.

        In a large tree only those are looked at that hold an attribute, or where the ways to the others part.
        """
        if len(self._tree.cliques) <= SMALL_TREE:
            places: Iterable[int] = range(len(self._tree.cliques))
        else:
            homes = [self._homes[a] for a in question]
            places = sorted({0, *homes, *(self._parting(home, question) for home in homes)})
        shared = {j: self._shared_ways(j, question) for j in places}
        fewest = min(shared.values())
        return min((j for j in shared if shared[j] == fewest), key=lambda j: (self._cost(j, question), j))

    def _shared_ways(self, j: int, question: Attributes) -> int:
        """How many attributes lie behind a neighbour of clique j behind which another one lies too.

        What is kept about a single attribute serves many questions, what is kept about a pair few.
        """
        outside = [way for a in question if (way := self._ways[j][a]) >= 0]
        return len(outside) - len(set(outside))

    def _parting(self, j: int, question: Attributes) -> int:
        """Go from clique j towards the attributes that it lacks, while they all lie one way."""
        came_from = -1
        while True:
            ways = {self._ways[j][a] for a in question} - {-1}
            if len(ways) != 1 or came_from in ways:
                return j
            came_from, j = j, ways.pop()

    def _cost(self, j: int, question: Attributes) -> float:
        """Cells of the tables met when clique j is where a question starts."""
        outside = [a for a in question if self._ways[j][a] >= 0]
        if not outside:
            return self._layout.cells(self._tree.cliques[j]) / 1024
        needed = {a for a in question if self._ways[j][a] < 0}
        needed = needed.union(*(self._separator(j, self._ways[j][a]) for a in outside))
        return float(self._layout.cells(needed)) * self._layout.cells(outside)


def _home(layout: Layout, tree: JunctionTree, attribute: int) -> int:
    home = tree.host((attribute,), layout)
    assert home is not None, "a tree holds every attribute"
    return home


def _directions(n: int, tree: JunctionTree, parents: Sequence[int]) -> NDArray[np.int64]:
    """For each clique and attribute, the neighbouring clique on the way to it; -1 where the clique holds it."""
    m = len(tree.cliques)
    below = np.zeros((m, n), np.bool_)
    for j in reversed(range(m)):
        below[j, list(tree.cliques[j])] = True
        if parents[j] >= 0:
            below[parents[j]] |= below[j]
    toward = np.repeat(np.array(parents, np.int64)[:, None], n, axis=1)
    for j in range(m):
        if parents[j] >= 0:
            toward[parents[j], below[j]] = j
    for j in range(m):
        toward[j, list(tree.cliques[j])] = -1
    return toward


@compiled
def _multiply(a, b, batches, rows, inner, columns):
    """Flat matrix products out[i] = a[i] b[i], on one thread: matrices here are too small to be worth more."""
    n, k_end, c_end = np.uint64(rows), np.uint64(inner), np.uint64(columns)
    out = np.zeros(batches * rows * columns)
    for batch in range(np.uint64(batches)):
        for i in range(n):
            to = (batch * n + i) * c_end
            for k in range(k_end):
                share = a[(batch * n + i) * k_end + k]
                row = (batch * k_end + k) * c_end
                if share != 0.0:
                    for j in range(c_end):
                        out[to + j] += share * b[row + j]
    return out
