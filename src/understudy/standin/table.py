"""A small table as a stand-in: rows of codes, each some whole number of times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import DomainError, ParameterError
from understudy.query.linear import LinearQuery


@dataclass(frozen=True, eq=False)
class SmallTable:
    """Row i of `codes`, in domain order, stands `counts[i]` times; in all at least one row."""

    domain: Domain
    codes: NDArray[np.int64]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        codes, counts = np.array(self.codes), np.array(self.counts)
        if codes.shape != (counts.size, len(self.domain)) or counts.ndim != 1:
            raise DomainError("a small table has one code for each attribute, and one count for each row")
        if codes.dtype.kind not in "iu" or (codes < 0).any() or (codes >= self.domain.shape()).any():
            raise DomainError("a code lies outside its attribute")
        if counts.dtype.kind not in "iu" or (counts < 0).any() or counts.sum() < 1:
            raise ParameterError("the counts of a small table are whole, none negative, and not all 0")
        for name, values in (("codes", codes), ("counts", counts)):
            values = values.astype(np.int64)
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    @classmethod
    def of_rows(cls, domain: Domain, codes: Iterable[Iterable[int]]) -> SmallTable:
        """The table of the given rows, equal ones counted together."""
        rows = np.array([list(row) for row in codes], dtype=np.int64).reshape(-1, len(domain))
        distinct, counts = np.unique(rows, axis=0, return_counts=True)
        return cls(domain, distinct, counts)

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    def project(self, clique: Clique) -> NDArray[np.float64]:
        return self.count(clique) / self.rows

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """The number of rows in each cell, exactly."""
        shape = self.domain.allocatable_shape(clique)
        cells = np.zeros(len(self.counts), np.intp)
        for name, size in zip(clique, shape, strict=True):
            cells = cells * size + self.codes[:, self.domain.position(name)]
        counts = np.zeros(self.domain.size(clique), np.int64)
        np.add.at(counts, cells, self.counts)
        return counts.reshape(shape)

    def answer(self, query: LinearQuery) -> float:
        """The average of f over the rows, for queries over any number of attributes: no cells are expanded."""
        if query.domain != self.domain:
            raise DomainError("the query is about another domain")
        codes = {name: self.codes[:, i].astype(np.uint64) for i, name in enumerate(self.domain.names)}
        return float(np.sum(query.row_weights(codes) * self.counts) / self.rows)

    def columns(self) -> Mapping[str, NDArray[np.int64]]:
        """The whole table: for each attribute the codes of all rows."""
        return {name: np.repeat(self.codes[:, i], self.counts) for i, name in enumerate(self.domain.names)}

    def sample_codes(self, rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """`rows` rows in random order: as many of each as its share says, up to one.

        Public numbers only; the generator protects nobody.
        """
        ends = np.floor(np.cumsum(self.counts) * (rows / self.rows) + rng.random()).astype(np.int64)
        ends[-1] = rows
        drawn = np.repeat(np.arange(len(ends)), np.diff(np.minimum(ends, rows), prepend=0))
        rng.shuffle(drawn)
        return {name: self.codes[drawn, i] for i, name in enumerate(self.domain.names)}
