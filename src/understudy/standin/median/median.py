"""The median of all small databases that survive: a stand-in, and two ways to cut it.

By sign it is a database update algorithm of Lecture 7; by distance it is the surviving set of Lecture 4's
MedianMechanism. The set is held in full: all multisets of n' rows over the cells of a small domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, comb, floor, log, log2
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from understudy.domain.domain import Clique, Domain
from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.query.linear import LinearQuery
from understudy.rational import Number, positive
from understudy.theory.arguments import whole
from understudy.theory.lecture4 import claim1_size_min
from understudy.theory.lecture7 import median_updates
from understudy.theory.logarithm import log_binomial

CANDIDATE_LIMIT = 10**8
"""Databases of the largest set that is held."""

BYTE_LIMIT = 2**31
"""Memory of the largest set that is held, without its weights."""

KEPT_NUMBERS = 2**22
"""Lists of databases with no more numbers than this are kept for the next set of the same size."""

Weighting = Literal["multisets", "sequences"]
"""Each multiset alike, or each as often as it occurs among the sequences X^n'."""

_FINE = 2**12
"""Bins in which a real-valued median is first looked for."""


class SurvivingSet:
    """The databases of `size` rows over a small domain that have not been dropped.

    Its answer to a query is the weighted median of the databases' answers: at most half of the weight lies
    strictly below it, and at most half strictly above. That is no average over one distribution: answers to
    several queries need not fit together, and `project`, the mean over the survivors, does not give the median.

    Complexity  For a 0/1 query the answers lie on the n' + 1 points of a lattice, so the median is read off a
                tally. A byte for each database and cell (or row, if those are fewer), and a few nanoseconds a
                database for the median and the cut together.
    """

    def __init__(self, domain: Domain, size: int, weighting: Weighting = "multisets") -> None:
        cells = domain.size()
        count = _admitted(cells, whole(size, "size"))
        width = min(cells, size)
        if weighting not in ("multisets", "sequences"):
            raise ParameterError(f"weighting must be 'multisets' or 'sequences', not {weighting!r}")
        self.domain = domain
        self.size = size
        self._by_counts = cells <= size
        listed = _listed_of_late if width * count <= KEPT_NUMBERS else _listed
        self._parts = listed(cells, size, count)  # shared between sets: it is replaced and never written to
        self._masses = np.ones(count, np.uint8) if weighting == "multisets" else self._multinomial()
        self._weight = self._start = float(self._masses.sum(dtype=np.float64))
        self._alive = count
        self._last: tuple[LinearQuery, NDArray[Any], float] | None = None

    def __len__(self) -> int:
        """How many databases survive."""
        return self._alive

    @property
    def halvings(self) -> float:
        """log₂ of how many times heavier the set was at the start."""
        return log2(self._start / self._weight)

    def databases(self) -> NDArray[np.int64]:
        """The survivors, as counts of each cell: one row for each, in the order of the domain's cells."""
        parts = self._parts[:, self._masses > 0].T.astype(np.int64)
        if self._by_counts:
            return parts
        return np.array([np.bincount(rows, minlength=self.domain.size()) for rows in parts])

    def answer(self, query: LinearQuery) -> float:
        """The median of the survivors' answers."""
        return self._median(query)[1] / self.size

    def project(self, clique: Clique) -> NDArray[np.float64]:
        """The mean of the survivors' marginals, which answers with means, not with medians."""
        sums = np.zeros(self.domain.size())
        (_kernels().total_counts if self._by_counts else _kernels().total_rows)(
            self._parts, self._masses, sums
        )
        rates = sums.reshape(self.domain.shape()) / sums.sum()
        clique = self.domain.clique(clique)
        return rates.sum(axis=tuple(i for i, name in enumerate(self.domain.names) if name not in clique))

    def cut_by_sign(self, query: LinearQuery, value: float) -> bool:
        """Drop the databases on the wrong side of the median, and those at it; at most half of the weight is left.

        If `value` is below the median, every database that answers as the median or more goes, else every one that
        answers as the median or less. False, and nothing is dropped, if none would be left: then `value`
        contradicts what was learnt before.
        """
        values, median = self._median(query)
        if value < median / self.size:
            return self._keep(values, -np.inf, np.nextafter(median, -np.inf))
        return self._keep(values, np.nextafter(median, np.inf), np.inf)

    def cut_by_distance(self, query: LinearQuery, value: float, distance: float) -> bool:
        """Drop the databases whose answer is more than `distance` from `value`; False as in `cut_by_sign`.

        After a rejected guess of the MedianMechanism, with `value` within η/4 of the truth and `distance` η/2, at
        most half of the weight is left, and whatever is within η/4 of the truth stays. [Lecture 4, Theorem 2]
        """
        values, _ = self._median(query)
        middle, reach = value * self.size, distance * self.size
        slack = 1e-12 * self.size  # a database at exactly the distance stays
        return self._keep(values, middle - reach - slack, middle + reach + slack)

    def _keep(self, values: NDArray[Any], low: float, high: float) -> bool:
        """Drop what lies outside [low, high], unless that is all."""
        if values.dtype.kind == "u":  # whole numbers are compared as such
            low, high = ceil(max(low, 0)), floor(min(high, self.size))
        alive, weight = _kernels().within(values, self._masses, low, high)
        if not alive:
            return False
        _kernels().drop(values, self._masses, low, high)
        self._alive, self._weight, self._last = alive, weight, None
        if alive * 4 <= len(self._masses):
            self._compact()
        return True

    def _compact(self) -> None:
        """Forget the dropped, once they are three in four."""
        kept = np.empty(self._alive + 1, np.int32)
        _kernels().positions(self._masses, kept)
        kept = kept[:-1]
        parts = np.empty((len(self._parts), len(kept)), self._parts.dtype)
        _kernels().gather(self._parts, kept, parts)
        self._parts, self._masses = parts, self._masses[kept]

    def _multinomial(self) -> NDArray[np.float64]:
        """n'!/Π c_x!, up to a constant: how many sequences of X^n' each multiset stands for."""
        logs = np.zeros(self._parts.shape[1])
        if self._by_counts:
            table = gammaln(np.arange(self.size + 1) + 1.0)
            for column in self._parts:
                logs -= table[column]
        else:  # the j-th of equal rows divides by j
            run = np.ones(len(logs))
            for before, column in zip(self._parts, self._parts[1:], strict=False):
                run = np.where(before == column, run + 1, 1)
                logs -= np.log(run)
        return np.exp(logs - logs.max())

    def _median(self, query: LinearQuery) -> tuple[NDArray[Any], float]:
        if self._last is None or self._last[0] is not query:
            if query.domain is not self.domain and query.domain != self.domain:
                raise DomainError("the query and the stand-in have different domains")
            weights = query.weights(self.domain.names).reshape(-1)
            values = self._values(weights, counting=query.is_counting)
            median = self._on_lattice(values) if values.dtype.kind == "u" else self._on_line(values)
            self._last = query, values, median
        return self._last[1], self._last[2]

    def _values(self, weights: NDArray[np.float64], *, counting: bool) -> NDArray[Any]:
        """n' times each database's answer."""
        dtype = np.float64 if not counting else np.uint8 if self.size < 2**8 else np.uint32
        values = np.empty(len(self._masses), dtype)
        if not self._by_counts:
            _kernels().look_up(self._parts, weights.astype(dtype), values)
        elif not counting:
            _kernels().add_weighted(self._parts, weights, values)
        else:
            inside = np.flatnonzero(weights)
            outside = np.flatnonzero(weights == 0)
            _kernels().add_columns(self._parts, min(inside, outside, key=len), values)
            if len(outside) < len(inside):
                np.subtract(dtype(self.size), values, out=values)
        return values

    def _tally(self, values: NDArray[Any], points: int) -> NDArray[Any]:
        sums = np.zeros((4, points), np.int64 if self._masses.dtype.kind == "u" else np.float64)
        _kernels().tally(values, self._masses, sums)
        return sums.sum(axis=0)

    def _on_lattice(self, values: NDArray[Any]) -> float:
        sums = np.cumsum(self._tally(values, self.size + 1))
        return float(np.searchsorted(2 * sums, sums[-1]))

    def _on_line(self, values: NDArray[np.float64]) -> float:
        """The lower median: first its bin, then its place there."""
        bins = np.minimum(values * (_FINE / self.size), _FINE - 1).astype(np.uint32)
        sums = np.cumsum(self._tally(bins, _FINE))
        at = int(np.searchsorted(2 * sums, sums[-1]))
        there = np.flatnonzero((bins == at) & (self._masses > 0))
        there = there[np.argsort(values[there], kind="stable")]
        before = sums[at - 1] if at else 0
        reached = 2 * (before + np.cumsum(self._masses[there], dtype=sums.dtype))
        place = min(int(np.searchsorted(reached, sums[-1])), len(there) - 1)
        return float(values[there[place]])


@dataclass(frozen=True, kw_only=True)
class MedianUpdate:
    """The median update: Dᵗ is the median of the surviving databases of n' rows, cut by the sign of v - Q(Dᵗ).

    Q is a query and v its value, near the Q(D) of the table D. The databases are over the cells of `domain`.
    `alpha`, a share of rows, is the least gap that is updated on; `weighting` counts each multiset of rows once
    ("multisets"), or as often as it occurs among the sequences ("sequences"). Raises a `ParameterError` where a
    number is out of range or there is no such weighting, and, from `start`, a `TooLargeError` where the databases
    do not fit into memory.

    Accuracy    n' = ⌊ln(2|C|)/(2α²)⌋ + 1 rows are enough for one database S* to be within less than α of the
                table on all |C| = `queries` queries [Lecture 4, Claim 1]. If |Q(D) - Q(Dᵗ)| ≥ α then S* is on the
                right side of the median and survives; at most half of the weight does. So B(α) = ⌊log₂ W⌋ with W
                the weight of all databases over that of S*: C(n' + |X| - 1, n') multisets, or |X|^n' sequences at
                most. [Lecture 7, Definition 2]
    Privacy     Post-processing of v.
    Gap         Cutting by distance |Q(S') - v| instead could drop S*, unless v is much nearer to Q(D) than α.
    """

    domain: Domain
    queries: int
    alpha: Number
    weighting: Weighting = "multisets"

    def __post_init__(self) -> None:
        whole(self.queries, "queries")
        positive(self.alpha, "alpha", at_most=1)
        if self.weighting not in ("multisets", "sequences"):
            raise ParameterError(f"weighting must be 'multisets' or 'sequences', not {self.weighting!r}")

    @cached_property
    def size(self) -> int:
        """n', the rows of each database."""
        return claim1_size_min(self.queries, self.alpha)

    def start(self) -> SurvivingSet:
        """The hypothesis before any update: every small database survives."""
        return SurvivingSet(self.domain, self.size, self.weighting)

    def update(self, hypothesis: SurvivingSet, query: LinearQuery, value: float) -> SurvivingSet:
        """The `hypothesis` after one `query` and its `value`, a share of rows: databases on the wrong side go.

        It is changed in place and returned.
        """
        hypothesis.cut_by_sign(query, value)
        return hypothesis

    def most_updates(self, alpha: Number) -> int:
        """B(α), the most updates against gaps of α = `alpha`, a share of rows: the same for all from its own on.

        Raises a `ParameterError` for a smaller α, at which S* need not exist.
        """
        if positive(alpha, "alpha") < positive(self.alpha, "alpha"):
            raise ParameterError(
                f"databases of {self.size} rows are chosen for alpha {self.alpha}, not {alpha}"
            )
        return median_updates(
            self.queries, self.domain.size(), self.alpha, multiset=self.weighting == "multisets"
        )


def candidates(cells: int, size: int) -> int:
    """How many multisets of `size` rows there are; a bound where they are too many to write down."""
    digits = log_binomial(size + cells - 1, size) / log(10)
    return comb(size + cells - 1, size) if digits < 1000 else 10**1000


def can_be_held(cells: int, size: int) -> bool:
    """Whether all databases of `size` rows fit into memory: a function of public numbers."""
    return candidates(cells, size) <= _most(cells, size)


def _most(cells: int, size: int) -> int:
    return min(CANDIDATE_LIMIT, BYTE_LIMIT // min(cells, size))


def _admitted(cells: int, size: int) -> int:
    """How many multisets of `size` rows there are, refused before anything of their size is allocated."""
    count, limit = candidates(cells, size), _most(cells, size)
    if count > limit:
        raise TooLargeError(f"the set of databases of {size} rows", cells=count, limit=limit)
    return count


def _listed(cells: int, size: int, count: int) -> NDArray[Any]:
    """Every database of `size` rows, one in each column: by counts of cells where those are fewer than rows."""
    by_counts = cells <= size
    top = size if by_counts else cells - 1
    kind = np.uint8 if top < 2**8 else np.uint16 if top < 2**16 else np.uint32
    parts = np.empty((min(cells, size), count), kind)
    if by_counts:
        _kernels().compositions(parts, size)
    else:
        _kernels().selections(parts, cells)
    return parts


_listed_of_late = lru_cache(maxsize=4)(_listed)


def _kernels() -> Any:
    """The compiled loops; numba takes a second to import, and most commands never need it."""
    from understudy.standin.median import kernels as median_kernels

    return median_kernels
