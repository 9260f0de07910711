"""Where the cells of many tables stand in one array: what the compiled loops over synthetic rows are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class AttributeTables(NamedTuple):
    """Tables by attribute: those of attribute a are `tables[at[a]:at[a + 1]]`."""

    at: NDArray[np.int64]
    tables: NDArray[np.int64]


class TablePlaces(NamedTuple):
    """Where the cells of many tables stand in one array, each table in C order.

    Of table t, `members[t]` are the positions of its attributes, the first `width[t]` of them, `starts[t]` is the
    place of its first cell, and `strides[t]` how far a step of each attribute reaches.
    """

    members: NDArray[np.int64]
    width: NDArray[np.int64]
    starts: NDArray[np.int64]
    strides: NDArray[np.int64]

    @classmethod
    def of(cls, sizes: Sequence[int], tables: Sequence[Sequence[int]]) -> TablePlaces:
        """Tables over these attributes, one after another."""
        most = max(map(len, tables), default=1)
        members, strides = (np.zeros((len(tables), most), np.int64) for _ in range(2))
        starts, begin = np.zeros(len(tables), np.int64), 0
        for t, attributes in enumerate(tables):
            starts[t], step = begin, 1
            for k in reversed(range(len(attributes))):
                members[t, k], strides[t, k] = attributes[k], step
                step *= sizes[attributes[k]]
            begin += step
        return cls(members, np.array([len(t) for t in tables], np.int64), starts, strides)

    def by_last(self, attributes: int) -> AttributeTables:
        """Tables by their last attribute."""
        tables = np.arange(self.width.size)
        return _listed(attributes, self.members[tables, self.width - 1], tables)

    def by_member(self, attributes: int) -> AttributeTables:
        """The same by every attribute that they hold."""
        tables = np.repeat(np.arange(self.width.size), self.width)
        held = self.members[np.arange(self.members.shape[1]) < self.width[:, None]]
        return _listed(attributes, held, tables)


def _listed(keys: int, key: NDArray[np.int64], tables: NDArray[np.int64]) -> AttributeTables:
    order = np.argsort(key, kind="stable")
    at = np.searchsorted(key[order], np.arange(keys + 1))
    return AttributeTables(at.astype(np.int64), tables[order].astype(np.int64))
