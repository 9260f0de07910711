"""The junction tree of a set of cliques, and its size before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.standin.graphical import elimination

Attributes = tuple[int, ...]
"""Attributes by their place in a `Layout`, ascending."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """A domain's attributes from the smallest to the largest.

    With every clique ascending and every table in C order, a table and its projections keep their axes in one
    order, and the last axis, along which loops run, is the longest. Axes are swapped at the borders only.
    """

    domain: Domain

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Positions in the domain."""
        shape = self.domain.shape()
        return tuple(sorted(range(len(shape)), key=lambda position: (shape[position], position)))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        shape = self.domain.shape()
        return tuple(shape[position] for position in self.order)

    @cached_property
    def logs(self) -> Values:
        return np.array([log(size) for size in self.sizes])

    @cached_property
    def _places(self) -> dict[str, int]:
        names = self.domain.names
        return {names[position]: place for place, position in enumerate(self.order)}

    def attributes(self, clique: Clique) -> Attributes:
        return tuple(sorted(self._places[name] for name in self.domain.clique(clique)))

    def clique(self, attributes: Attributes) -> Clique:
        names = self.domain.names
        return tuple(names[position] for position in sorted(self.order[a] for a in attributes))

    def shape(self, attributes: Attributes) -> tuple[int, ...]:
        return tuple(map(self.sizes.__getitem__, attributes))

    def cells(self, attributes: Iterable[int]) -> int:
        return prod(map(self.sizes.__getitem__, attributes))

    def axes(self, attributes: Attributes) -> tuple[int, ...]:
        """Where the axes of a table of this layout are found in domain order."""
        by_position = sorted(range(len(attributes)), key=lambda i: self.order[attributes[i]])
        return tuple(by_position)

    def outward(self, attributes: Attributes, flat: Values) -> Values:
        """A flat table of this layout, shaped in domain order."""
        shaped = flat.reshape(self.shape(attributes)).transpose(self.axes(attributes))
        return np.array(shaped, order="C")

    def inward(self, attributes: Attributes, table: NDArray[np.generic]) -> Values:
        """A table in domain order, flat in this layout."""
        back = np.argsort(self.axes(attributes))
        return np.array(table.transpose(tuple(back)), dtype=np.float64, order="C").ravel()


@dataclass(frozen=True)
class JunctionTree:
    """Cliques that cover those they were made for, joined so that each attribute's cliques hang together.

    `parents[j]` is -1 for the root of each connected part, parents stand before their children, and
    `separators[j]` is what clique j shares with its parent.
    """

    cliques: tuple[Attributes, ...]
    parents: tuple[int, ...]
    separators: tuple[Attributes, ...]

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        below: list[list[int]] = [[] for _ in self.cliques]
        for j, parent in enumerate(self.parents):
            if parent >= 0:
                below[parent].append(j)
        return tuple(map(tuple, below))

    @cached_property
    def members(self) -> tuple[frozenset[int], ...]:
        return tuple(map(frozenset, self.cliques))

    def cells(self, layout: Layout) -> int:
        """Cells of all cliques together, as an exact integer."""
        return sum(map(layout.cells, self.cliques))

    def host(self, attributes: Attributes, layout: Layout) -> int | None:
        """The smallest clique that holds the attributes, if one does."""
        wanted = frozenset(attributes)
        holding = [j for j, members in enumerate(self.members) if wanted <= members]
        return min(holding, key=lambda j: (layout.cells(self.cliques[j]), j), default=None)


def adjacency(n: int, cliques: Iterable[Attributes]) -> NDArray[np.bool_]:
    """Which attributes share a clique."""
    adjacent = np.zeros((n, n), np.bool_)
    for clique in cliques:
        adjacent[np.ix_(clique, clique)] = True
    np.fill_diagonal(adjacent, False)  # noqa: FBT003
    return adjacent


def junction_tree(layout: Layout, cliques: Iterable[Attributes]) -> JunctionTree:
    """Triangulate by eliminating the attribute with the smallest table first, and join what is maximal.

    The clique of an eliminated attribute hangs on that of its first neighbour to go, which holds all the others;
    where it holds nothing else it is taken over by the child.
    """
    n = len(layout.sizes)
    members, sizes, order = np.empty((n, n), np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    adjacent = adjacency(n, cliques)
    elimination.eliminate(
        adjacent, elimination.costs(adjacent, layout.logs), layout.logs, members, sizes, order
    )
    contained = elimination.absorbed(members, sizes, order)
    steps = [tuple(sorted(map(int, members[t, : sizes[t]]))) for t in range(n)]
    above = [min((int(order[a]) for a in members[t, 1 : sizes[t]]), default=-1) for t in range(n)]
    stands_for = list(range(n))
    for t in range(n):  # children come first, so what a clique stands for is settled when it is met
        parent = above[t]
        if parent >= 0 and stands_for[parent] == parent and sizes[parent] == sizes[t] - 1:
            stands_for[parent] = stands_for[t]
    return _rooted(layout, steps, above, stands_for, contained)


def _rooted(
    layout: Layout,
    steps: Sequence[Attributes],
    above: Sequence[int],
    stands_for: Sequence[int],
    contained: NDArray[np.bool_],
) -> JunctionTree:
    """The maximal cliques with their links, each part rooted at its largest clique."""
    kept = [t for t in range(len(steps)) if not contained[t]]
    links: dict[int, list[int]] = {t: [] for t in kept}
    for t, parent in enumerate(above):
        if parent >= 0 and stands_for[t] != stands_for[parent]:
            links[stands_for[t]].append(stands_for[parent])
            links[stands_for[parent]].append(stands_for[t])
    ordered: list[int] = []
    parent_of: dict[int, int] = {}
    for root in sorted(kept, key=lambda t: (-layout.cells(steps[t]), t)):
        if root in parent_of:
            continue
        parent_of[root] = -1
        ordered.append(root)
        queue = [root]
        while queue:
            t = queue.pop(0)
            for u in sorted(links[t]):
                if u not in parent_of:
                    parent_of[u] = t
                    ordered.append(u)
                    queue.append(u)
    place = {t: j for j, t in enumerate(ordered)}
    parents = tuple(place[parent_of[t]] if parent_of[t] >= 0 else -1 for t in ordered)
    cliques = tuple(steps[t] for t in ordered)
    separators = tuple(
        tuple(sorted(set(cliques[j]) & set(cliques[p]))) if p >= 0 else () for j, p in enumerate(parents)
    )
    return JunctionTree(cliques, parents, separators)


def model_cells(domain: Domain, cliques: Iterable[Clique]) -> int:
    """Cells of the tables that a model over these cliques would hold; nothing is allocated."""
    layout = Layout(domain)
    return junction_tree(layout, [layout.attributes(clique) for clique in cliques]).cells(layout)


class CandidateSizes:
    """What a model would cost with one clique more, for many candidates at once and round after round."""

    def __init__(self, domain: Domain, candidates: Sequence[Clique]) -> None:
        self._layout = Layout(domain)
        members = [self._layout.attributes(candidate) for candidate in candidates]
        self._starts = np.cumsum([0, *map(len, members)], dtype=np.int64)
        self._members = np.array([a for candidate in members for a in candidate], dtype=np.int64)

    def cells(self, cliques: Iterable[Clique]) -> Values:
        """For each candidate, the cells of the model over `cliques` and that candidate alone."""
        layout = self._layout
        adjacent = adjacency(len(layout.sizes), [layout.attributes(clique) for clique in cliques])
        return elimination.cells_with_each(adjacent, layout.logs, self._starts, self._members)


class GrowingTree:
    """The tree of a model that takes in cliques one after another while it has at most `most` cells.

    It holds the `cliques` that it begins with whatever their size. What it decides is what `model_cells` would
    say of all that was taken in; what is shared by the candidates is worked out once.
    """

    def __init__(self, domain: Domain, cliques: Iterable[Clique], most: int) -> None:
        self._layout, self._most = Layout(domain), most
        self._adjacent = adjacency(
            len(self._layout.sizes), [self._layout.attributes(clique) for clique in cliques]
        )
        self.cells = self._with(())

    def _with(self, attributes: Attributes) -> float:
        ends, members = np.array([0, len(attributes)], np.int64), np.array(attributes, np.int64)
        return float(elimination.cells_with_each(self._adjacent, self._layout.logs, ends, members)[0])

    def grown(self, clique: Clique) -> float:
        """The cells that the tree would have with one clique more; infinite beyond floats."""
        attributes = self._layout.attributes(clique)
        inside = self._adjacent[np.ix_(attributes, attributes)].sum() == len(attributes) * (
            len(attributes) - 1
        )
        return self.cells if inside else self._with(attributes)

    def take(self, clique: Clique) -> bool:
        """Take a clique in, if the tree then has at most `most` cells; whether it does."""
        cells = self.grown(clique)
        if cells > self._most:
            return False
        attributes = self._layout.attributes(clique)
        self._adjacent[np.ix_(attributes, attributes)] = True
        np.fill_diagonal(self._adjacent, False)  # noqa: FBT003
        self.cells = cells
        return True
