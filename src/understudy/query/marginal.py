"""A marginal: one linear query for each cell of a clique, optionally of the rows that meet a condition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.domain.refinement import RefinedDomain
from understudy.errors import QueryError
from understudy.query.linear import LinearQuery
from understudy.query.moment import Moment
from understudy.query.projection import Projection
from understudy.query.quantile_end import QuantileEnd


@dataclass(frozen=True, repr=False)
class Marginal:
    """How many rows are in each cell of the attributes `by`, a row counting with its weight f under `where`.

    `domain` is that of the table. With an empty `by` this is the single query `where`; where `where` is left out
    every row counts, which is the plain marginal. Cells are disjoint, so one row contributes to one of them:
    adding a row moves the vector by max f in one place, and replacing a row moves it by at most max f in each of
    two (`privacy.columns`). With a `moment` a row does not count by its weight alone: it adds what the moment is
    of its measured values, if the condition, which then only counts, holds for it; with a `QuantileEnd` nothing is
    summed, and each cell has one end of an interval for a quantile of its rows. Raises a `DomainError` where an
    attribute is unknown or named twice, a `TooLargeError` where there are more than `CELL_LIMIT` cells, and a
    `QueryError` where a moment is of what is no measure.

    >>> from understudy.domain.attribute import Boolean, Categories
    >>> domain = Domain((Categories(name="sex", values=("F", "M")), Boolean(name="smoker")))
    >>> Marginal(domain, ("sex", "smoker"))
    Marginal('everyone by sex, smoker', 6 cells)
    """

    domain: Domain
    by: Clique
    where: LinearQuery = field(default=None)  # type: ignore[assignment]  # None stands for everyone
    moment: Moment | QuantileEnd | None = None
    shape: tuple[int, ...] = field(init=False, compare=False)
    """The number of cells along each attribute of `by`."""
    size: int = field(init=False, compare=False)
    """The number of cells, each of which is a linear query."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", self.domain.clique(self.by))
        if self.where is None:
            object.__setattr__(self, "where", LinearQuery.everyone(self.domain))
        object.__setattr__(self, "shape", self.domain.allocatable_shape(self.by))
        object.__setattr__(self, "size", prod(self.shape))
        if self.moment is not None:
            self.moment.measures(self.domain)
            if not self.where.is_counting:
                raise QueryError("the condition of a moment has weights of 0 and 1")

    def __repr__(self) -> str:
        return f"Marginal({self.describe()!r}, {self.size:,} cells)"

    @classmethod
    def of(cls, query: LinearQuery) -> Marginal:
        """A single `query`, as the marginal with one cell."""
        return cls(query.domain, (), query)

    @cached_property
    def clique(self) -> Clique:
        """Every attribute whose cells are read, by `by` or by `where`, in the order of the domain."""
        return self.domain.clique({*self.by, *self.where.clique})

    @cached_property
    def reads(self) -> Clique:
        """Every attribute that is read, by its cells or as a measure, in the order of the domain."""
        return self.domain.clique({*self.clique, *(self.moment.names if self.moment else ())})

    @cached_property
    def key(self) -> str:
        """A name for the question: its words, and what identifies it; equal for two spellings of it."""
        meaning = repr([self.where.key, [self.domain[name].identity for name in self.clique]])
        if self.moment is not None:
            meaning += self.moment.key(self.domain)
        return f"{self.describe()} #{sha256(meaning.encode()).hexdigest()}"

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """What is equal for equal questions about one declared domain, and quicker to make and compare than `key`.

        Where the question cuts declared bins, the edges are part of it.
        """
        known = (self.by, self.moment, *((f.clique, f.weights.tobytes()) for f in self.where.factors))
        return (*known, self.key) if isinstance(self.domain, RefinedDomain) else known

    def describe(self) -> str:
        """The question in words, for people who read a ledger."""
        by = f" by {', '.join(self.by)}" if self.by else ""
        summed = f"{self.moment.describe()} over " if self.moment else ""
        return f"{summed}{self.where.describe()}{by}"

    def answer(self, projection: Projection) -> NDArray[np.float64]:
        """The share of the rows of `projection` that is in each cell, weighted, as an array of the `shape`.

        `projection` is whatever has counts of cells: a table, a stand-in, a release. For a moment every row is
        taken to have the representative of its bin.
        """
        rates = projection.project(self.reads) * self.grid_weights()
        return rates.sum(axis=tuple(i for i, name in enumerate(self.reads) if name not in self.by))

    def grid_weights(self) -> NDArray[np.float64]:
        """What a row in each cell of `reads` adds, if it has the representatives of its bins.

        Returns an array with an axis for each attribute of `reads`. Raises a `QueryError` for a quantile, which is
        no sum over rows.
        """
        weights = self.where.weights(self.reads)
        if self.moment is None:
            return weights
        if isinstance(self.moment, QuantileEnd):
            raise QueryError("a quantile is no sum of what rows add")
        places = []
        for attribute in self.moment.measures(self.domain):
            shape = [attribute.size if name == attribute.name else 1 for name in self.reads]
            places.append(attribute.positions.reshape(shape))
        return weights * self.moment.value(places)

    @cached_property
    def excluded(self) -> NDArray[np.bool_] | None:
        """The cells that no row can count in, whatever the table holds; None where there are none.

        They are those whose own values a factor of the condition rules out: `count age < 30 by age`.
        """
        found = np.zeros(self.shape, bool)
        for factor in self.where.factors:
            kept = [i for i, name in enumerate(factor.clique) if name in self.by]
            if not kept:
                continue
            never = ~factor.weights.any(axis=tuple(set(range(len(factor.clique))) - set(kept)))
            found |= never.reshape(
                [n if name in factor.clique else 1 for name, n in zip(self.by, self.shape, strict=True)]
            )
        return found if found.any() else None

    def labels(self) -> list[tuple[str, ...]]:
        """The labels of all cells in C order: for each cell a label of each attribute of `by`."""
        return list(self.cell_labels())

    def cell_labels(self) -> Iterator[tuple[str, ...]]:
        """What `labels` lists, one cell after the other, for questions with many cells."""
        return product(*(self.domain[name].labels for name in self.by))
