"""SmallDB: one draw of the exponential mechanism among all databases of a few rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from math import ceil, inf, log, nextafter, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import QueryError, RefusedError
from understudy.mechanism.look import decided
from understudy.mechanism.small_database.chain import Chain
from understudy.mechanism.small_database.classes import DistinctQueries
from understudy.mechanism.small_database.levels import Enumeration
from understudy.mechanism.small_database.shells import Kind
from understudy.mechanism.small_database.tree import Tree
from understudy.noise.samplers import NoiseSource
from understudy.privacy.columns import ONE_COUNT
from understudy.privacy.event import Selection
from understudy.privacy.relation import Relation
from understudy.query.marginal import Marginal
from understudy.rational import Number, positive, privacy_parameter
from understudy.theory.arguments import whole
from understudy.theory.lecture18 import em_error_log
from understudy.theory.lectures9_10 import smalldb_log_candidates, smalldb_size


class Databases(Protocol):
    """All multisets of m rows over the classes, and the law of the exponential mechanism on them."""

    @property
    def rate(self) -> Fraction: ...

    @property
    def candidates(self) -> int: ...

    def levels(self, answers: NDArray[np.int64]) -> dict[int, int]: ...

    def draw(self, answers: NDArray[np.int64], *, noise: NoiseSource) -> list[int]: ...

    def draw_many(self, values: NDArray[np.int64], times: int, *, noise: NoiseSource) -> list[list[int]]: ...


_WHOLE = {Kind.TREE: 1.0, Kind.CHAIN: 0.5}
"""α·m where it is known from how the sets lie."""

_KINDS = {Kind.CHAIN: Chain, Kind.TREE: Tree, Kind.ANY: Enumeration}


@dataclass(frozen=True, slots=True)
class Cover:
    """How near to every table some database of m rows is, on all queries of a class, by several arguments.

    sampling  m rows drawn from the table: α = sqrt(ln(2|Q|)/(2m)), the size of [Lectures 9-10, Theorem 5]. The
              size of [Lectures 9-10, Theorem 11] is never smaller for a class that is written down: its |Q| traces
              are no more than Φ_d(K), and the size that is free of K needs ln|Q| > 200.
    rounding  m·p of a table's shares p on the K classes, rounded to integers: the R classes with the largest
              fractional parts up, the others down, so that the sum stays m. Let t part the fractional parts, and
              let a set hold u ≤ R of those rounded up. It gains at most u(1-t); and at most what all the others
              lose together, (K-R)t; so at most u(K-R)/(u+K-R) ≤ u(K-u)/K. Losses are alike, and of a set and
              its complement the smaller counts: α = s(K-s)/(Km), if no set holds more than s ≤ K/2 classes.
    tree      sets that are nested or disjoint: their incidence matrix is totally unimodular, so among the points
              whose counts are at most m·f(x) rounded up and at least that rounded down, of which m·x/n is one,
              there is one of integers, and α = 1/m.
    chain     thresholds: each m·f(x) rounded to the nearest integer is again a distribution function, so
              α = 1/(2m).
    """

    queries: int
    classes: int
    largest: int
    kind: Kind = Kind.ANY

    def arguments(self) -> dict[str, tuple[float, int]]:
        """By argument c and k with α = c/m^(1/k)."""
        found = {
            "sampling": (sqrt(log(2 * self.queries) / 2), 2),
            "rounding": (float(self._rounding), 1),
        }
        return found | {kind.value: (c, 1) for kind, c in _WHOLE.items() if kind is self.kind}

    @property
    def _rounding(self) -> Fraction:
        return Fraction(self.largest * (self.classes - self.largest), self.classes)

    def alpha(self, size: int) -> tuple[float, str]:
        """The least α that m = `size` rows reach, and by which argument."""
        found = [(nextafter(c / size ** (1 / k), inf), name) for name, (c, k) in self.arguments().items()]
        return min(found)

    def size(self, alpha: Number) -> int:
        """The fewest rows that reach `alpha`: m = ⌊ln(2|Q|)/(2α²)⌋ + 1, or fewer by another argument."""
        target = positive(alpha, "alpha")
        whole_part = min(self._rounding, Fraction(_WHOLE.get(self.kind, self._rounding)))
        return min(smalldb_size(self.queries, alpha), ceil(whole_part / target))


@dataclass(frozen=True, slots=True)
class SmallDatabaseDesign:
    """A size m, the α that it reaches and by which argument, and the certified error, all as rates."""

    size: int
    alpha: float
    argument: str
    error: float


@dataclass(frozen=True, eq=False)
class SmallDatabase:
    """SmallDB(x, Q, ε, α): a database y of m = `size` rows with probability ∝ exp(εn·u(x, y)/2), where
    u(x, y) = -max_f |f(x) - f(y)|. [Lectures 9-10, Algorithm 1]

    `queries` are the class Q, `size` is m, `rows` is n and `epsilon` is ε. Raises a `QueryError` where every query
    is constant, a `ParameterError` where a number is out of range, and a `RefusedError` where so many databases
    cannot be counted, which public sizes decide.

    The candidates are the C(m+K-1, m) multisets of m rows over the K classes that the queries tell apart, each
    once: as if the universe held one row of each class. The lecture's own candidates are multisets over the
    universe itself, where a class of many rows has more of them; that is another law, and these are other
    candidates of the same mechanism. What is proved of SmallDB holds for them with |X| := K.

    Privacy     ε-DP (and ε²/8-zCDP) where one row is replaced and n = `rows` is public: u moves by at most 1/n.
                In levels of 1/(mn), L moves by at most m, and the rate is ε/(2m). [Lectures 9-10, Theorem 3]
    Accuracy    α + (2/(εn))(ln C(m+K-1, m) + ln(1/β)), with α from `Cover`. [Lectures 9-10, Proposition 6]
    Complexity  That of `Chain` for thresholds, of `Tree` for hierarchies, else of `Enumeration`; admitted by
                public sizes when it is made.
    Gap         None in the law: counts and weights are integers. For time, see `Counted` and `Enumeration`.
    """

    queries: DistinctQueries
    size: int
    rows: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", privacy_parameter(self.epsilon))
        cover(self.queries)
        whole(self.size, "the size of a small database")
        whole(self.rows, "the number of rows")
        decided(self.databases)

    @property
    def mechanism(self) -> Databases:
        """The law that draws the database: `databases`."""
        return self.databases

    @cached_property
    def databases(self) -> Databases:
        """The exact law of the database that is drawn, in the form that fits the class."""
        return _KINDS[self.queries.shape.kind](self.queries.matrix, self.size, self.rows, self.rate)

    @property
    def rate(self) -> Fraction:
        """How much the logarithm of a database's weight falls with each level of its error: ε/(2m)."""
        return self.epsilon / (2 * self.size)

    @property
    def marginals(self) -> Sequence[Marginal]:
        """The marginals whose exact counts are read."""
        return self.queries.marginals

    @property
    def event(self) -> Selection:
        """What is charged: a selection at ε."""
        return Selection(epsilon=self.epsilon)

    def event_under(self, relation: Relation) -> Selection:
        """The event of the same draw where neighbours move a count as `relation` says, and levels m times that."""
        moved = relation.moves(ONE_COUNT).of_distance * self.size
        return Selection(epsilon=2 * self.databases.rate * moved.l1)

    @property
    def key(self) -> str:
        """A text that is equal for equal queries, size and rows: the question that the ledger keeps."""
        asked = sha256(f"{self.queries.key} {self.size} {self.rows}".encode()).hexdigest()
        return f"a database of {self.size:,} rows for {self.queries.queries:,} queries #{asked}"

    def values(self, counts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The exact counts of the queries, given the `counts` of `marginals`: all that is known of the table."""
        return self.queries.answers(counts)

    def design(self, beta: Number) -> SmallDatabaseDesign:
        """The size, the α that it reaches, and the error that holds except with probability `beta`, as rates."""
        return _design(cover(self.queries), self.size, self.rows, self.epsilon, beta)


def cover(queries: DistinctQueries) -> Cover:
    """How near small databases come to every table on these `queries`; a `QueryError` where all are constant."""
    if queries.classes < 2:
        raise QueryError(
            "every query of this class is constant: its answer is public, and needs no mechanism"
        )
    sets = queries.matrix.sum(axis=1)
    largest = int(np.minimum(sets, queries.classes - sets).max())
    return Cover(queries.queries, queries.classes, largest, queries.shape.kind)


def best_design(queries: DistinctQueries, *, rows: int, epsilon: Number, beta: Number) -> SmallDatabaseDesign:
    """The size of least certified error among those whose work is admitted. Public numbers alone.

    With α = c/m or c/sqrt(m) the error first falls and then rises with m (see `theory.smalldb_best`), so for each
    argument bisection on the sign of one step finds its minimum.
    """
    n, price = whole(rows, "the number of rows"), privacy_parameter(epsilon)
    ways = cover(queries)

    def admitted(size: int) -> bool:
        return _KINDS[ways.kind].admits(queries.shape, size, n, price / (2 * size))

    if not admitted(1):
        raise RefusedError(
            f"SmallDB cannot count even the databases of one row over {ways.classes:,} kinds of rows. Ask fewer "
            f"queries, or take the methods `mwem` or `adaptive`. Nothing was spent."
        )
    most = _last(admitted, 1 << 62)
    designs: list[SmallDatabaseDesign] = []
    for c, k in ways.arguments().values():

        def falls(size: int, c: float = c, k: int = k) -> bool:
            gain = c / size ** (1 / k) - c / (size + 1) ** (1 / k)
            return gain > 2 / float(price * n) * log((size + ways.classes) / (size + 1))

        size = _last(lambda size, falls=falls: size == 1 or falls(size - 1), most)
        designs.append(_design(ways, size, n, price, beta))
    return min(designs, key=lambda design: design.error)


def _last(holds: Callable[[int], bool], limit: int) -> int:
    """The last size, up to `limit`, at which `holds` is true: it is at 1, and never again once it is not."""
    low, high = 1, 2
    while high <= limit and holds(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _design(ways: Cover, size: int, rows: int, epsilon: Fraction, beta: Number) -> SmallDatabaseDesign:
    alpha, argument = ways.alpha(size)
    candidates = smalldb_log_candidates(ways.classes, size)
    return SmallDatabaseDesign(
        size, alpha, argument, alpha + em_error_log(Fraction(1, rows), epsilon, candidates, beta)
    )
