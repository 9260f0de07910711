"""Exact counts over many cliques in one pass over batches of codes.

Rows are counted over a clique cover (`cover.py`) and the cover's tables are summed down to the requested cliques.
The work on a row is index arithmetic and one increment for each clique of the cover. Both are kept cheap: rows are
gathered into blocks whose intermediate arrays stay in the processor's cache, cliques that begin with the same
attributes share the beginning of their index, and an index is 16 bits wide until its last attribute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.table.cover import CACHED_CELLS, Clique, clique_cover

WholeCounts = NDArray[np.int64]
"""Counts of a clique's cells, one axis for each attribute, in C order."""

BLOCK_ROWS = 2**18
"""Rows counted at once: enough to pay for adding up a table of `CACHED_CELLS` cells, few enough to stay cached."""

MAX_CELLS = 2**32 - 1
"""More cells than this, or the size of an attribute alone, do not fit into 32 bits."""


class MarginalCounter:
    """Exact tables of `cliques`, positions into `sizes`, from batches of codes.

    `attributes` are the positions that some clique needs, ascending: `add` takes one array of codes for each.

    Accuracy    Exact: integers only, int64 accumulators.
    Complexity  O(rows × cover) time; memory for the cover's tables, the requested tables and one block of rows,
                however many rows or batches are added.
    Gap         Not safe for concurrent calls.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        cliques: Iterable[Clique],
        *,
        limit: int = CACHED_CELLS,
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        if block_rows < 1:
            raise ParameterError(f"block_rows must be at least 1, not {block_rows}")
        self.cliques = tuple(dict.fromkeys(cliques))
        self.cover = tuple(clique_cover(self.cliques, sizes, limit=limit))
        self.attributes = tuple(sorted({a for clique in self.cover for a in clique}))
        self.rows = 0
        self._sizes = tuple(sizes)
        for clique in self.cover:
            if (cells := prod(sizes[a] for a in clique)) > MAX_CELLS:
                raise TooLargeError(f"the clique {clique}", cells=cells, limit=MAX_CELLS)
        self._steps = tuple(_steps([(c, frozenset(c)) for c in self.cover], (), self._sizes))
        self._counts = {step.clique: np.zeros(step.cells, np.int64) for step in self._steps if step.clique}
        self._staged = 0
        self._stage = {a: np.empty(block_rows, _index_type(sizes[a])) for a in self.attributes}
        self._scratch = {
            (step.depth, step.dtype): np.empty(block_rows, step.dtype) for step in self._steps if step.depth
        }
        self._index = np.empty(block_rows, np.intp)

    def add(self, codes: Sequence[NDArray[np.unsignedinteger]], *, rows: int | None = None) -> None:
        """Count one batch: `codes[i]` holds the codes of `attributes[i]`. A batch that is refused counts nothing.

        `rows` must be given where no attribute is needed, for then no array says how many rows there are.
        """
        rows = self._checked(codes, rows)
        taken = 0
        while taken < rows:
            step = min(rows - taken, len(self._index) - self._staged)
            for stage, column in zip(self._stage.values(), codes, strict=True):
                stage[self._staged : self._staged + step] = column[taken : taken + step]
            taken += step
            self._staged += step
            if self._staged == len(self._index):
                self._count_block()
        self.rows += rows

    def tables(self) -> dict[Clique, WholeCounts]:
        """The counts of all rows added so far, for each requested clique. More rows may be added afterwards."""
        self._count_block()
        counted = {clique: np.array(self.rows, np.int64) for clique in self.cover if not clique}
        for step in self._steps:
            if step.clique:
                table = self._counts[step.clique].reshape([self._sizes[a] for a in step.path])
                counted[step.clique] = table.transpose(np.argsort(step.path))
        return roll_up(counted, self.cliques)

    def _checked(self, codes: Sequence[NDArray[np.unsignedinteger]], rows: int | None) -> int:
        """The number of rows in a batch that is sound: a code outside its attribute would count elsewhere."""
        if len(codes) != len(self.attributes):
            raise ParameterError(f"a batch has {len(self.attributes)} arrays of codes, not {len(codes)}")
        if rows is None:
            if not codes:
                raise ParameterError("no attribute is needed, so say how many rows the batch has")
            rows = len(codes[0])
        if rows < 0:
            raise ParameterError("a batch cannot have fewer than no rows")
        for attribute, column in zip(self.attributes, codes, strict=True):
            if column.dtype.kind != "u" or column.shape != (rows,):
                raise ParameterError(
                    f"the codes of attribute {attribute} must be one unsigned integer for each row of the batch"
                )
            size = self._sizes[attribute]
            if rows and np.iinfo(column.dtype).max >= size and column.max() >= size:
                raise DomainError(
                    f"attribute {attribute} has a code that is not below its declared size {size}"
                )
        return rows

    def _count_block(self) -> None:
        """Count the staged rows. Steps come parents first, so a depth's scratch holds what its children need."""
        rows, self._staged = self._staged, 0
        if not rows:
            return
        prefixes: dict[int, NDArray[np.unsignedinteger]] = {}
        for step in self._steps:
            index = column = self._stage[step.path[-1]][:rows]
            if step.depth:
                prefix = prefixes[step.depth - 1]
                index = self._scratch[step.depth, step.dtype][:rows]
                if prefix.dtype != index.dtype:
                    # Widening by a copy of its own keeps the arithmetic in one type, where numpy is fastest.
                    np.copyto(index, prefix)
                    prefix = index
                np.multiply(prefix, step.scale, out=index)
                np.add(index, column, out=index)
            prefixes[step.depth] = index
            if step.clique:
                counts, cells = self._counts[step.clique], self._index[:rows]
                np.copyto(cells, index)
                if rows < len(counts) // 2:
                    # A large table is not worth a pass over all its cells for few rows.
                    np.add.at(counts, cells, np.int64(1))
                else:
                    counts += np.bincount(cells, minlength=len(counts))


@dataclass(frozen=True, slots=True)
class _IndexStep:
    """One more attribute of an index: index(path) = index(path without its last) · scale + codes of the last."""

    path: Clique
    """Attributes in the order of the index, the last one fastest."""
    scale: int
    cells: int
    clique: Clique
    """The clique of the cover that is complete here; empty within one."""
    depth: int
    """How many attributes come before the last."""
    dtype: np.dtype[np.unsignedinteger]


def _steps(
    pending: list[tuple[Clique, frozenset[int]]], path: Clique, sizes: Sequence[int]
) -> Iterator[_IndexStep]:
    """Steps for cliques of which `path` is done and a set is left, parents before children, depth first.

    The most frequent attribute goes first, so that as many cliques as possible share the step. No clique is
    within another, so a clique that is complete has no children.
    """
    pending = [(clique, left) for clique, left in pending if left]
    while pending:
        frequency = Counter(a for _, left in pending for a in left)
        attribute = max(frequency, key=lambda a: (frequency[a], -a))
        here = (*path, attribute)
        inside = [(clique, left - {attribute}) for clique, left in pending if attribute in left]
        pending = [(clique, left) for clique, left in pending if attribute not in left]
        cells = prod(sizes[a] for a in here)
        complete = [clique for clique, left in inside if not left]
        done = complete[0] if complete else ()
        yield _IndexStep(here, sizes[attribute], cells, done, len(path), _index_type(cells))
        yield from _steps(inside, here, sizes)


def _index_type(cells: int) -> np.dtype[np.unsignedinteger]:
    """The narrowest type with fast arithmetic that holds the number of cells, for it is also a factor."""
    return np.dtype(np.uint16) if cells < 2**16 else np.dtype(np.uint32)


def roll_up(tables: Mapping[Clique, WholeCounts], cliques: Iterable[Clique]) -> dict[Clique, WholeCounts]:
    """The tables of `cliques`, each summed from the smallest of `tables` that contains it.

    >>> roll_up({(0, 3): np.array([[1, 2], [3, 4]])}, [(3,), ()])
    {(3,): array([4, 6]), (): array(10)}
    """
    cliques = tuple(cliques)
    found = {clique: np.array(tables[clique], order="C") for clique in cliques if clique in tables}
    largest_last = sorted((table.size, clique) for clique, table in tables.items())
    inside = [clique for clique in cliques if clique not in found]
    masks = [(clique, _mask(clique)) for _, clique in largest_last] if inside else []
    wanted: dict[Clique, list[Clique]] = {}
    for clique in inside:
        mask = _mask(clique)
        base = next((base for base, held in masks if mask & held == mask), None)
        if base is None:
            raise DomainError(f"the clique {clique} is within none of the counted ones")
        wanted.setdefault(base, []).append(clique)
    for base, parts in wanted.items():
        found.update(_sums(np.array(tables[base], order="C"), base, parts))
    return {clique: found[clique] for clique in cliques}


def _mask(clique: Clique) -> int:
    return sum(1 << attribute for attribute in clique)


def _sums(table: WholeCounts, axes: Clique, wanted: list[Clique]) -> Iterator[tuple[Clique, WholeCounts]]:
    """Sum out the attribute that most of the wanted cliques lack, once for all of them."""
    if axes in wanted:
        yield axes, table
    pending = [clique for clique in wanted if clique != axes]
    while pending:
        lacking = {a: sum(a not in clique for clique in pending) for a in axes}
        position = max(range(len(axes)), key=lambda i: (lacking[axes[i]], table.shape[i]))
        attribute = axes[position]
        rest = axes[:position] + axes[position + 1 :]
        shape = table.shape[:position] + table.shape[position + 1 :]
        # Three axes are as many as it takes, and numpy adds up three much faster than seven.
        flat = table.reshape(prod(table.shape[:position]), table.shape[position], -1)
        summed = flat.sum(axis=1).reshape(shape)
        yield from _sums(summed, rest, [clique for clique in pending if attribute not in clique])
        pending = [clique for clique in pending if attribute in clique]
