"""A linear query: a few attributes and a table of numbers in [0, 1] over their cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import DomainError, QueryError
from understudy.query.projection import Projection

Weights = NDArray[np.float64]

PACKED = 2**12
"""A factor of more cells than this, all 0 or 1, is named by its bits: a digest of numbers would take longer than
to answer it."""


@dataclass(frozen=True, eq=False)
class Factor:
    """Weights in [0, 1] over the cells of a clique: one independent part of a query.

    `clique` names the attributes, and `weights` is an array with an axis for each. Raises a `QueryError` where a
    weight lies outside [0, 1] or is no number.
    """

    clique: Clique
    weights: Weights

    def __post_init__(self) -> None:
        weights = np.asarray(np.array(self.weights, dtype=np.float64) + 0.0)  # minus zero is zero
        if not np.isfinite(weights).all() or weights.min(initial=0) < 0 or weights.max(initial=0) > 1:
            raise QueryError("the weights of a linear query must be numbers in [0, 1]")
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    @cached_property
    def is_counting(self) -> bool:
        """Whether every weight is 0 or 1."""
        return bool(((self.weights == 0) | (self.weights == 1)).all())

    @cached_property
    def name(self) -> tuple[Clique, bytes]:
        """A name for the factor: two of equal names have equal weights on the same clique."""
        return self.clique, sha256(self.weights.tobytes()).digest()


@dataclass(frozen=True, eq=False, repr=False)
class LinearQuery:
    """A weight f(x) in [0, 1] for every cell x of a domain, kept as a product of factors on disjoint cliques.

    Its answer about a table is the average of f over the rows [Lectures 9-10, Definition 2]: where weights are 0
    and 1, the share of the rows that it counts. `domain` is that of the cells, and `factors` are the parts of the
    product. `everyone`, `table` and `conjunction` make queries, and ``f & g`` is the product of two. A conjunction
    over ten attributes is ten short vectors and is never expanded; a table over one clique is a single factor.
    Raises a `QueryError` where weights lie outside [0, 1] or do not fit the cells of their attributes, and a
    `DomainError` where an attribute is unknown or in two factors. Sensitivity: a row contributes f(row), so one
    row moves the sum by at most max f, and replacing a row by at most max f - min f (`privacy.columns`).
    """

    domain: Domain
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        names = [name for factor in self.factors for name in factor.clique]
        self.domain.clique(names)  # disjoint, and declared
        for factor in self.factors:
            if factor.clique != self.domain.clique(factor.clique):
                raise QueryError("the attributes of a factor must be in domain order")
            if factor.weights.shape != self.domain.shape(factor.clique):
                raise QueryError(
                    f"the weights over {', '.join(factor.clique)} must have shape "
                    f"{self.domain.shape(factor.clique)}, not {factor.weights.shape}"
                )
        kept = [factor for factor in self.factors if not (factor.weights == 1).all()]
        order = {name: i for i, name in enumerate(self.domain.names)}
        object.__setattr__(
            self, "factors", tuple(sorted(kept, key=lambda f: [order[name] for name in f.clique]))
        )

    @classmethod
    def everyone(cls, domain: Domain) -> LinearQuery:
        """The query with weight 1 on every cell of a `domain`, which counts every row."""
        return cls(domain, ())

    @classmethod
    def table(cls, domain: Domain, names: Iterable[str], weights: ArrayLike) -> LinearQuery:
        """The query on a `domain` with one table of `weights`, an axis for each attribute in the order of `names`.

        Raises a `QueryError` where weights lie outside [0, 1] or do not fit the cells, and a `DomainError` for a
        name that the domain lacks.
        """
        names = tuple(names)
        clique = domain.clique(names)
        values = np.asarray(weights, dtype=np.float64)
        if values.ndim != len(names):
            raise QueryError(
                f"a table over {len(names)} attributes needs {len(names)} axes, not {values.ndim}"
            )
        return cls(domain, (Factor(clique, values.transpose([names.index(name) for name in clique])),))

    @classmethod
    def conjunction(cls, domain: Domain, parts: Mapping[str, ArrayLike]) -> LinearQuery:
        """The query on a `domain` that is the product of a vector of weights for each attribute named in `parts`.

        A vector has a number in [0, 1] for each cell of its attribute. Raises as `table` does.

        >>> from understudy.domain.attribute import Boolean
        >>> domain = Domain((Boolean(name="smoker"), Boolean(name="retired")))
        >>> LinearQuery.conjunction(domain, {"smoker": [0, 1], "retired": [1, 0]})
        LinearQuery('smoker in (true) and retired in (false)')
        """
        return cls(domain, tuple(Factor(domain.clique([name]), np.asarray(w)) for name, w in parts.items()))

    @cached_property
    def clique(self) -> Clique:
        """The attributes that the query reads, in the order of the domain."""
        return self.domain.clique(name for factor in self.factors for name in factor.clique)

    @cached_property
    def is_counting(self) -> bool:
        """Whether every weight is 0 or 1, so that the query counts rows."""
        return all(factor.is_counting for factor in self.factors)

    @cached_property
    def sides(self) -> Mapping[str, NDArray[np.bool_]] | None:
        """The cells that it counts of each attribute that it has a condition on.

        None where it is no product of such conditions, or counts nothing.
        """
        if not self.is_counting or any(len(factor.clique) != 1 for factor in self.factors):
            return None
        found = {factor.clique[0]: factor.weights > 0 for factor in self.factors}
        return found if all(cells.any() for cells in found.values()) else None

    @cached_property
    def largest(self) -> float:
        """The largest weight of a cell."""
        return prod(float(f.weights.max()) for f in self.factors)

    @cached_property
    def smallest(self) -> float:
        """The smallest weight of a cell."""
        return prod(float(f.weights.min()) for f in self.factors)

    @cached_property
    def key(self) -> str:
        """A name for the function f itself: two queries with equal keys have equal factors."""
        digest = sha256()
        for factor in self.factors:
            digest.update("\x1f".join(factor.clique).encode() + b"\x1e")
            if factor.weights.size > PACKED and self.is_counting:
                digest.update(b"bits\x1e" + np.packbits(factor.weights > 0).tobytes())
            else:
                digest.update(np.ascontiguousarray(factor.weights).tobytes())
        return digest.hexdigest()

    def describe(self) -> str:
        """The query in words, for people who read a ledger; `key` is what identifies it."""
        return " and ".join(_describe(self.domain, factor) for factor in self.factors) or "everyone"

    def __repr__(self) -> str:
        return f"LinearQuery({self.describe()!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearQuery) and self.domain == other.domain and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def weights(self, names: Iterable[str] | None = None) -> Weights:
        """The table of weights over the attributes `names`, by default the query's own, in the domain's order.

        Raises a `QueryError` where the query reads another attribute, and a `TooLargeError` where the table would
        have more than `CELL_LIMIT` cells.
        """
        clique = self.clique if names is None else self.domain.clique(names)
        self.domain.allocatable_shape(clique)
        table = np.ones((1,) * len(clique))
        for factor in self.factors:
            if not set(factor.clique) <= set(clique):
                raise QueryError("the query touches attributes that the clique does not have")
            table = table * factor.weights.reshape(_broadcast(factor, clique))
        return np.broadcast_to(table, self.domain.shape(clique))

    def row_weights(self, codes: Mapping[str, NDArray[np.unsignedinteger]]) -> Weights | float:
        """f(row) for rows that are given by their `codes`, an array of cells' positions for each attribute.

        They are the same products, in the same order, as those of `weights`; one number where all rows have it.
        """
        value: Weights | float = 1.0
        for factor in self.factors:
            value = value * factor.weights[tuple(codes[name] for name in factor.clique)]
        return value

    def answer(self, projection: Projection) -> float:
        """The average of f over the rows (or the mass) of `projection`: a share between 0 and 1, for a table."""
        return float(np.vdot(projection.project(self.clique), self.weights()))

    def complement(self) -> LinearQuery:
        """The query 1 - f, as one table over the same clique; raises as `weights` does."""
        return LinearQuery(self.domain, (Factor(self.clique, 1 - self.weights()),))

    def __and__(self, other: LinearQuery) -> LinearQuery:
        """The product f·g; factors are merged into one table only where their attributes overlap."""
        if self.domain != other.domain:
            raise DomainError("two queries over different domains cannot be combined")
        factors = list(self.factors)
        for new in other.factors:
            overlapping = [f for f in factors if set(f.clique) & set(new.clique)]
            factors = [f for f in factors if f not in overlapping]
            factors.append(product_table(self.domain, [*overlapping, new]))
        return LinearQuery(self.domain, tuple(factors))


def _describe(domain: Domain, factor: Factor) -> str:
    names = ", ".join(factor.clique)
    if len(factor.clique) > 1 or not ((factor.weights == 0) | (factor.weights == 1)).all():
        return f"weights on {names}"
    held = [label for label, weight in zip(domain[names].labels, factor.weights, strict=True) if weight]
    shown = ", ".join(held[:3]) + (f", … ({len(held)} cells)" if len(held) > 3 else "")
    return f"{names} in ({shown})"


def _broadcast(factor: Factor, clique: Sequence[str]) -> tuple[int, ...]:
    sizes = dict(zip(factor.clique, factor.weights.shape, strict=True))
    return tuple(sizes.get(name, 1) for name in clique)


def product_table(domain: Domain, factors: Sequence[Factor]) -> Factor:
    """The product of factors, as one table over all of their attributes; raises as `LinearQuery.weights` does."""
    clique = domain.clique({name for factor in factors for name in factor.clique})
    domain.allocatable_shape(clique)
    weights = np.ones((1,) * len(clique))
    for factor in factors:
        weights = weights * factor.weights.reshape(_broadcast(factor, clique))
    return Factor(clique, weights)
