"""A finite class of counting queries, and the universe as far as the class can see it.

Two rows on which every query of the class agrees are one and the same to every mechanism that scores databases by
the class. So the universe is collapsed into its *classes*: the distinct columns of the matrix of queries by rows.
That matrix is never written down. Attributes that share no factor are collapsed apart, values of an attribute that
no factor tells apart are merged first, and products are collapsed again after each attribute; so a universe of
10^30 rows is no trouble where the class sees few kinds of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from math import prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import QueryError, RefusedError
from understudy.mechanism.small_database.chain import chain_order
from understudy.mechanism.small_database.shells import Kind, Shape
from understudy.mechanism.small_database.tree import set_tree, tree_shape
from understudy.query.family import prefixes
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.workload import Workload

MATRIX_LIMIT = 1 << 26
"""Largest number of entries, cells by queries, that are compared at once (64 MiB)."""

BoolMatrix = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class DistinctQueries:
    """Counting queries on a `domain`, up to what no mechanism can tell apart.

    `of`, `of_queries`, `of_workload` and `thresholds` make one. `matrix` has one row for each query that matters,
    of which `sources` names one place among all cells of `marginals`, and one column for each class of rows.
    Constant queries are left out: every database answers them exactly. So are repetitions and complements: |f(x) -
    f(y)| is the same for 1 - f. `codes` is one row of the universe for each class, and `sizes` says for how many
    rows it stands. Where the class is `cumulative`, query i is the sum of the cells up to i; a `QueryError` is
    raised where it is so of several marginals.
    """

    domain: Domain
    marginals: tuple[Marginal, ...]
    matrix: BoolMatrix
    sources: NDArray[np.intp]
    codes: NDArray[np.int64]
    sizes: tuple[int, ...]
    cumulative: bool = False

    def __post_init__(self) -> None:
        if self.cumulative and len(self.marginals) != 1:
            raise QueryError(
                "cumulative queries are the sums of one marginal's cells, of which a row is in one"
            )

    @classmethod
    def of(cls, marginals: Iterable[Marginal]) -> DistinctQueries:
        """The class whose queries are all cells of the given `marginals`.

        Raises a `QueryError` where there is none, where they are not about one domain, or where weights are other
        than 0 and 1, and a `RefusedError` where the class sees too many kinds of rows, which public sizes decide.
        """
        asked = tuple(marginals)
        if not asked:
            raise QueryError("a class of queries needs at least one query")
        domain = asked[0].domain
        if any(marginal.domain != domain for marginal in asked):
            raise QueryError("the queries of a class must be about one domain")
        if not all(marginal.where.is_counting for marginal in asked):
            raise QueryError("SmallDB is for counting queries: weights must be 0 or 1")
        queries = sum(marginal.size for marginal in asked)
        # Plain marginals tell all values of their attributes apart, so the product is known to be as large.
        told_apart = {name for marginal in asked if not marginal.where.factors for name in marginal.by}
        _check(domain.size(told_apart), queries)
        classes = _everything(domain, queries)
        for part in _parts(asked):
            classes = classes.times(part)
        matrix = classes.matrix.T
        sources = _essential(matrix)
        return cls(domain, asked, matrix[sources], sources, classes.codes, tuple(classes.sizes.tolist()))

    @classmethod
    def of_queries(cls, queries: Iterable[LinearQuery]) -> DistinctQueries:
        """The class of some counting `queries`; raises as `of` does."""
        return cls.of(Marginal.of(query) for query in queries)

    @classmethod
    def of_workload(cls, workload: Workload) -> DistinctQueries:
        """The class of all cells of the marginals of a `workload`; raises as `of` does."""
        return cls.of(Marginal(workload.domain, clique) for clique in workload)

    @classmethod
    def thresholds(cls, domain: Domain, name: str) -> DistinctQueries:
        """Every prefix of the ordered attribute `name` of a `domain`, without writing them down one by one.

        They are the queries of `family.prefixes`: the rows up to a bin, for each bin. Values outside the bins are
        one class, beyond the last bin. Raises a `QueryError` where the attribute has no order, and a `DomainError`
        where there is none of that name.
        """
        bins = prefixes(domain, name).size
        attribute = domain[name]
        classes = min(bins + 1, attribute.size)
        codes = np.zeros((classes, len(domain)), np.int64)
        codes[:, domain.position(name)] = np.arange(classes)
        inside, rest = [1] * bins, attribute.size - bins
        each = domain.size() // attribute.size
        sizes = tuple(each * many for many in ([*inside, rest] if rest else inside))
        matrix = np.tri(classes - 1, classes, dtype=bool)
        marginals = (Marginal(domain, (name,)),)
        return cls(domain, marginals, matrix, np.arange(classes - 1), codes, sizes, cumulative=True)

    @property
    def queries(self) -> int:
        """|Q|, as far as it matters: the number of queries that are neither constant nor repeated."""
        return len(self.matrix)

    @property
    def classes(self) -> int:
        """|X|, as far as it matters: the number of kinds of rows that the queries tell apart."""
        return len(self.codes)

    @cached_property
    def shape(self) -> Shape:
        """How the queries lie to each other: what decides how databases can be counted."""
        if chain_order(self.matrix) is not None:
            return Shape(Kind.CHAIN, self.queries, self.classes)
        tree = set_tree(self.matrix)
        return Shape(Kind.ANY, self.queries, self.classes) if tree is None else tree_shape(tree, self.classes)

    @property
    def key(self) -> str:
        """A digest that is equal for equal classes."""
        words = [marginal.key for marginal in self.marginals]
        return sha256("\n".join(["cumulative", *words] if self.cumulative else words).encode()).hexdigest()

    def answers(self, counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The count of each query that matters, given the `counts` of the `marginals`, an array for each."""
        cells = np.concatenate([np.ravel(count) for count in counts]).astype(np.int64)
        return (np.cumsum(cells) if self.cumulative else cells)[self.sources]


@dataclass(frozen=True, eq=False)
class _Classes:
    """Rows of some attributes up to the part of the queries that is about them.

    Column q of `matrix` is 1 where the factors of query q on these attributes are.
    """

    matrix: BoolMatrix
    codes: NDArray[np.int64]
    sizes: NDArray[np.object_]

    def times(self, other: _Classes) -> _Classes:
        """Both together, for disjoint attributes (the codes of the other's are 0 here, and the reverse)."""
        rows, queries = len(self.matrix) * len(other.matrix), self.matrix.shape[1]
        _check(rows, queries)
        return _Classes(
            (self.matrix[:, None] & other.matrix[None]).reshape(rows, queries),
            (self.codes[:, None] + other.codes[None]).reshape(rows, -1),
            (self.sizes[:, None] * other.sizes[None]).ravel(),
        ).distinct()

    def distinct(self) -> _Classes:
        """One row for each kind, in the order in which they first occur."""
        first, inverse = _unique_rows(self.matrix)
        sizes = np.zeros(len(first), dtype=object)
        np.add.at(sizes, inverse, self.sizes)
        return _Classes(self.matrix[first], self.codes[first], sizes)


def _everything(domain: Domain, queries: int) -> _Classes:
    """The one class of rows when no query has been looked at."""
    _check(1, queries)
    return _Classes(
        np.ones((1, queries), bool), np.zeros((1, len(domain)), np.int64), np.array([1], dtype=object)
    )


def _check(rows: int, queries: int) -> None:
    if rows * queries > MATRIX_LIMIT:
        raise RefusedError(
            f"the queries see the universe as {rows:,} kinds of rows or more, too many to compare on "
            f"{queries:,} queries. Ask about fewer attributes, or take the methods `mwem` or `adaptive`."
        )


def _unique_rows(matrix: BoolMatrix) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First occurrence of each distinct row, in order of occurrence; and for each row which of them it is."""
    if matrix.shape[1] == 0:
        return np.zeros(1, np.intp), np.zeros(len(matrix), np.intp)
    packed = np.ascontiguousarray(np.packbits(matrix, axis=1))
    words = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, inverse = np.unique(words, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[inverse.ravel()]


def _essential(matrix: BoolMatrix) -> NDArray[np.intp]:
    """The first of each set of queries that are equal up to complement, without the constant ones."""
    from_zero = matrix ^ matrix[:, :1]
    first, _ = _unique_rows(from_zero)
    return first[from_zero[first].any(axis=1)]


@dataclass(eq=False)
class _ConnectedAttributes:
    """Attributes that factors connect, and what each query says about them."""

    names: Clique
    factors: list[tuple[slice, Factor]] = field(default_factory=list[tuple[slice, Factor]])
    cells: list[tuple[slice, str, NDArray[np.intp]]] = field(
        default_factory=list[tuple[slice, str, NDArray[np.intp]]]
    )

    def classes(self, domain: Domain, queries: int) -> _Classes:
        kept = [self._told_apart(name, domain[name].size) for name in self.names]
        rows = prod(len(values) for values, _ in kept)
        _check(rows, queries)
        codes = np.zeros((rows, len(domain)), np.int64)
        grid = np.meshgrid(*(values for values, _ in kept), indexing="ij")
        for name, values in zip(self.names, grid, strict=True):
            codes[:, domain.position(name)] = values.ravel()
        sizes = np.ones(1, dtype=object)
        for _, counts in kept:
            sizes = (sizes[:, None] * counts[None]).ravel()
        return _Classes(self._matrix(domain, codes, queries), codes, sizes).distinct()

    def _matrix(self, domain: Domain, codes: NDArray[np.int64], queries: int) -> BoolMatrix:
        matrix = np.ones((len(codes), queries), bool)
        for which, factor in self.factors:
            places = tuple(codes[:, domain.position(name)] for name in factor.clique)
            matrix[:, which] &= (factor.weights[places] == 1)[:, None]
        for which, name, wanted in self.cells:
            matrix[:, which] &= codes[:, domain.position(name), None] == wanted[None]
        return matrix

    def _told_apart(self, name: str, size: int) -> tuple[NDArray[np.intp], NDArray[np.object_]]:
        """One value for each set of values that no factor tells apart, and how many are in it."""
        if any(name == asked for _, asked, _ in self.cells):
            return np.arange(size), np.ones(size, dtype=object)
        slices = [
            np.moveaxis(factor.weights, factor.clique.index(name), 0).reshape(size, -1) == 1
            for _, factor in self.factors
            if name in factor.clique
        ]
        first, inverse = _unique_rows(np.concatenate(slices, axis=1))
        return first, np.bincount(inverse, minlength=len(first)).astype(object)


def _parts(marginals: Sequence[Marginal]) -> Iterable[_Classes]:
    """The universe as a product of parts that no factor connects."""
    domain, queries = marginals[0].domain, sum(marginal.size for marginal in marginals)
    cliques = [factor.clique for marginal in marginals for factor in marginal.where.factors]
    cliques += [(name,) for marginal in marginals for name in marginal.by]
    parts = {
        name: part for part in map(_ConnectedAttributes, _connected(domain, cliques)) for name in part.names
    }
    start = 0
    for marginal in marginals:
        which = slice(start, start := start + marginal.size)
        for factor in marginal.where.factors:
            parts[factor.clique[0]].factors.append((which, factor))
        if marginal.by:
            for name, codes in zip(marginal.by, np.indices(marginal.shape), strict=True):
                parts[name].cells.append((which, name, codes.ravel()))
    for part in dict.fromkeys(parts.values()):
        yield part.classes(domain, queries)
    untouched = [attribute.size for attribute in domain if attribute.name not in parts]
    rest = _everything(domain, queries)
    yield _Classes(rest.matrix, rest.codes, np.array([prod(untouched)], dtype=object))


def _connected(domain: Domain, cliques: Iterable[Clique]) -> list[Clique]:
    """The attributes that are touched, with those together that some clique holds together."""
    sets: list[set[str]] = []
    for clique in cliques:
        joined = set(clique)
        apart: list[set[str]] = []
        for other in sets:
            if other & joined:
                joined |= other
            else:
                apart.append(other)
        sets = [*apart, joined]
    return sorted((domain.clique(names) for names in sets), key=lambda names: domain.position(names[0]))
