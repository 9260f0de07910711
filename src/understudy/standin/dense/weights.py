"""A stand-in that holds every cell of the domain: multiplicative weights, dense.

Cells are not normalised: their mass is carried along as a number, so an update is one pass over the support of the
query, with no exponential per cell and no division (`weights_layout` says how the support is found).
"""

from __future__ import annotations

import os
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import ceil, exp, expm1, frexp, isfinite, ldexp, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.query.linear import LinearQuery
from understudy.query.tables import RememberedTables
from understudy.standin.dense.layout import DenseLayout, Patterns

DENSE_LIMIT = 2**28
"""Cells of the largest dense histogram (1 GiB of float32)."""

Precision = Literal["float32", "float64"]

_LOG_STEP = 40.0
"""The largest logarithm of a factor that one pass applies; single precision overflows beyond 60."""

_MASS = 2.0**20
"""The stored mass is kept between 1/_MASS and _MASS, by powers of two, which round nothing."""

_RECOUNT = 64
"""Updates after which the carried mass is counted afresh, so that rounding errors cannot add up."""

_CANCELLED = 2.0**-10
"""Below this share of its largest value since it was counted, the carried mass has lost three digits."""

_REMEMBERED = 64
"""Queries whose patterns are kept, if small: together at most a sixteenth of the cells' memory, or 4 MiB."""

_SMALL = 2**16
"""Bytes of patterns that are not large whatever the domain."""

_SUMS = 2**22
"""Cells of the largest table of sums that every thread has its own of."""

_ONE_BY_ONE = 2**16
"""Queries on cliques of more cells than this are not answered from a common projection."""

_CALM = 8
"""Answers since the last update after which a projection is made and remembered: more of them will be asked."""

_SHARED = 2**21
"""Cells below which a second thread costs more than it saves."""


class DenseWeights:
    """A positive weight for every cell of a domain of up to 2^28 cells; divided by their sum they are its rates.

    Complexity  An update reads and writes the cells of the query's support once, an answer reads them once, and
                `reweight_then_answer` does both in one pass. `threads` share a pass (default: every core). After
                some answers without an update, projections are remembered, and most answers need no pass.
    Accuracy    Sums are taken in float64. In float32 a cell is rounded once in each update that touches it, by at
                most 6e-8 of itself; in float64 by 1.2e-16.
    Floor       A positive cell never falls below the smallest normal number, some 2^-106 of the mass in float32:
                no update makes a cell zero for ever, and none runs into slow subnormal numbers.
    """

    def __init__(
        self, domain: Domain, cells: NDArray[np.floating[Any]], *, threads: int | None = None
    ) -> None:
        """Take over `cells`, a C-contiguous table of at least 0, not all 0, shaped by the domain."""
        if threads is not None and threads < 1:
            raise ParameterError(f"threads must be at least 1, not {threads}")
        self._layout = DenseLayout(domain)
        self._cells = cells.reshape(self._layout.rows, self._layout.columns)
        self._threads = threads or _cores()
        self._pool: ThreadPoolExecutor | None = None
        self._floor = np.finfo(cells.dtype).tiny
        self._last: tuple[LinearQuery, float] | None = None
        self._said: OrderedDict[int, tuple[LinearQuery, Patterns]] = OrderedDict()
        self._tables = RememberedTables(domain, self.project)
        self._calm = 0
        self._recount()
        if not (isfinite(self._mass) and self._mass > 0):
            raise ParameterError("the weights of a histogram must have a positive, finite sum")
        self._keep_in_range()

    @classmethod
    def uniform(
        cls, domain: Domain, *, dtype: Precision = "float64", threads: int | None = None
    ) -> DenseWeights:
        """Every cell alike: what is known before anything is."""
        return cls(domain, np.ones(_admitted(domain), dtype), threads=threads)

    @classmethod
    def histogram(
        cls,
        domain: Domain,
        weights: ArrayLike,
        *,
        dtype: Precision = "float64",
        threads: int | None = None,
    ) -> DenseWeights:
        """A copy of public weights, one for each cell; a cell of 0 stays 0 whatever is learnt."""
        shape = _admitted(domain)
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != shape:
            raise DomainError(f"the histogram must have shape {shape}, not {given.shape}")
        if not np.isfinite(given).all() or given.min() < 0 or given.max() == 0:
            raise ParameterError("the weights of a histogram must be finite, at least 0, and not all 0")
        cells = np.divide(given, given.max(), order="C")
        # What is positive stays so in fewer digits.
        cells = np.maximum(cells, np.where(given > 0, np.finfo(dtype).tiny, 0)).astype(dtype)
        return cls(domain, cells, threads=threads)

    @classmethod
    def product(
        cls,
        domain: Domain,
        marginals: Mapping[str, ArrayLike],
        *,
        dtype: Precision = "float64",
        threads: int | None = None,
    ) -> DenseWeights:
        """Independent attributes with the given marginals; an attribute without one is uniform."""
        cells = np.ones((1,), dtype)
        shape = _admitted(domain)
        given = {domain[name].name: np.asarray(weights, np.float64) for name, weights in marginals.items()}
        for name, size in zip(domain.names, shape, strict=True):
            weights = given.get(name, np.ones(size))
            if weights.shape != (size,) or not np.isfinite(weights).all() or weights.min() < 0:
                raise ParameterError(f"the marginal of {name} must be {size} finite numbers of at least 0")
            if weights.sum() <= 0:
                raise ParameterError(f"the marginal of {name} must have a positive sum")
            # Scaled to mean 1, so that a product over many attributes neither overflows nor vanishes.
            cells = np.multiply.outer(cells, (weights / weights.mean()).astype(dtype)).reshape(-1)
        return cls(domain, cells.reshape(shape), threads=threads)

    @property
    def domain(self) -> Domain:
        return self._layout.domain

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._cells.dtype

    @property
    def threads(self) -> int:
        return self._threads

    def __repr__(self) -> str:
        return f"DenseWeights({self._cells.size:,} cells, {self.dtype}, threads={self._threads})"

    def copy(self) -> DenseWeights:
        return DenseWeights(self.domain, self._cells.copy(), threads=self._threads)

    def rates(self) -> NDArray[np.float64]:
        """Every cell of the domain, as a new array."""
        return self._cells.reshape(self.domain.shape()).astype(np.float64) / self._mass

    def project(self, clique: Clique) -> NDArray[np.float64]:
        """The marginal over `clique`, whose rates sum to 1."""
        layout, clique = self._layout, self.domain.clique(clique)
        self.domain.allocatable_shape(clique)
        leading = [i for i, name in enumerate(self.domain.names[: layout.split]) if name in clique]
        seen = tuple(size if i in leading else 1 for i, size in enumerate(layout.leading))
        ids = layout.each_row(np.arange(prod(seen)).reshape(seen))
        shape = (prod(seen), layout.columns)
        if prod(shape) > _SUMS:  # nearly all attributes: each thread's sums would be as large as the weights
            sums = self._cells.reshape(self.domain.shape())
        else:
            parts = self._pass(_kernels().project, ids, each=lambda: np.zeros(shape))
            sums = np.add.reduce(parts).reshape(*seen, *layout.trailing)
        others = tuple(i for i, name in enumerate(self.domain.names) if name not in clique)
        rates = np.asarray(sums.sum(axis=others, dtype=np.float64))
        return rates / rates.sum()

    def answer(self, query: LinearQuery) -> float:
        """The average of the query, without expanding it over more attributes than it has."""
        if self._last is None or self._last[0] is not query:
            self._calm += 1
            table = self._tables.over(query.clique) if self._calm > _CALM else None
            self._last = query, self._pass_over(query) if table is None else _read(table, query)
        return self._last[1]

    def _pass_over(self, query: LinearQuery) -> float:
        [*others, factor] = query.factors or [None]
        if factor and not others and factor.clique == self.domain.names and self.dtype == np.float64:
            return _share(float(np.vdot(self._cells, factor.weights)), self._mass)  # as it lies in memory
        said = self._patterns(query)
        parts = self._pass(_kernels().answer, said.plain)
        return _share(sum(parts), self._mass)

    def answer_many(self, queries: Iterable[LinearQuery]) -> NDArray[np.float64]:
        """The average of each query; queries on the same attributes share one pass."""
        queries = list(queries)
        by_clique: dict[Clique, list[int]] = defaultdict(list)
        for i, query in enumerate(queries):
            by_clique[query.clique].append(i)
        answers = np.empty(len(queries))
        for clique, members in by_clique.items():
            if len(members) == 1 or self.domain.size(clique) > _ONE_BY_ONE:
                for i in members:
                    answers[i] = self.answer(queries[i])
            else:
                rates = self.project(clique)
                for i in members:
                    answers[i] = np.vdot(rates, queries[i].weights())
        return answers

    def reweight(self, query: LinearQuery, log_factor: float) -> None:
        """Multiply each cell x by exp(`log_factor` · q(x)), in place."""
        for step in self._steps(query, log_factor):
            self._reweight(query, step, None)

    def reweight_then_answer(self, query: LinearQuery, log_factor: float, following: LinearQuery) -> float:
        """`reweight`, and the answer to the query that follows, in one pass."""
        steps = self._steps(query, log_factor)
        if not steps:
            return self.answer(following)
        for step in steps[:-1]:
            self._reweight(query, step, None)
        total = self._reweight(query, steps[-1], self._patterns(following))
        self._last = following, _share(total, self._mass)
        return self._last[1]

    def scale_marginal(self, clique: Clique, factors: ArrayLike) -> None:
        """Multiply each cell by the factor of its projection onto `clique`, in place; all are at least 0."""
        clique = self.domain.clique(clique)
        table = np.asarray(factors, np.float64)
        if table.shape != self.domain.shape(clique):
            raise DomainError(f"the factors must have shape {self.domain.shape(clique)}, not {table.shape}")
        if not np.isfinite(table).all() or table.min() < 0 or table.max() <= 0:
            raise ParameterError("factors must be finite, at least 0, and not all 0")
        if table.max() > exp(_LOG_STEP):
            table = table / table.max()
        said = Patterns.of_tables(self._layout, [(clique, table)], neutral=1.0)
        self._scale(said, said.values)

    # Passes --------------------------------------------------------------------------------------------------

    def _patterns(self, query: LinearQuery) -> Patterns:
        """What the query says; the last ones are kept, for a release asks the same queries again and again."""
        known = self._said.get(id(query))
        if known is not None and known[0] is query:
            return known[1]
        if query.domain is not self.domain and query.domain != self.domain:
            raise DomainError("the query and the stand-in have different domains")
        said = Patterns.of_query(self._layout, query)
        if said.values.nbytes + said.ids.nbytes <= max(_SMALL, self._cells.nbytes >> 10):
            self._said[id(query)] = query, said
            if len(self._said) > _REMEMBERED:
                self._said.popitem(last=False)
        return said

    def _steps(self, query: LinearQuery, log_factor: float) -> list[float]:
        """A factor too large for one pass, as equal parts."""
        if not isfinite(log_factor):
            raise ParameterError(f"log_factor must be finite, not {log_factor}")
        count = ceil(abs(log_factor) * query.largest / _LOG_STEP)
        return [log_factor / max(count, 1)] * count

    def _reweight(self, query: LinearQuery, step: float, asked: Patterns | None) -> float:
        """One pass. If the query is 0/1 and was just answered by s, the mass grows by (e^step - 1)s.

        In float32 it is counted all the same: there, rounding of many equal cells is no longer negligible.
        """
        said = self._patterns(query)
        grown = None
        if (
            query.is_counting
            and self._last is not None
            and self._last[0] is query
            and self.dtype == np.float64
        ):
            grown = expm1(step) * self._last[1] * self._mass
        return self._scale(said, np.exp(step * said.values), asked, grown)

    def _scale(
        self,
        said: Patterns,
        factors: NDArray[np.float64],
        asked: Patterns | None = None,
        grown: float | None = None,
    ) -> float:
        """Multiply, carry the mass along, and keep it where it can be trusted; what was asked, unnormalised."""
        self._last = None
        self._calm = 0
        self._tables.forget()
        multiply = (said.ids, factors.astype(self.dtype, copy=False), said.spans, said.flat)
        counting, total = grown is None, 0.0
        if asked is None:
            parts = self._pass(_kernels().scale, multiply, self._floor, counting)
            seen = sum(parts)
        else:
            following = asked.plain, said.joins(asked)
            parts = self._pass(_kernels().scale_then_answer, multiply, self._floor, counting, *following)
            seen, total = (sum(part) for part in zip(*parts, strict=True))
        grown = seen if grown is None else grown
        self._mass += grown
        self._largest = max(self._largest, self._mass)
        self._updates += 1
        if self._mass < _CANCELLED * self._largest or self._updates >= _RECOUNT:
            self._recount()
        return total * self._keep_in_range()

    def _recount(self) -> None:
        self._mass = self._largest = float(sum(self._pass(_kernels().mass)))
        self._updates = 0

    def _keep_in_range(self) -> float:
        """Bring the mass back to about 1 when it has wandered; the power of two by which cells were multiplied."""
        if 1 / _MASS < self._mass < _MASS:
            return 1.0
        power = ldexp(1.0, -frexp(self._mass)[1])
        parts = self._pass(_kernels().rescale, self.dtype.type(power), self._floor)
        self._mass = self._largest = float(sum(parts))
        return power

    def _pass(
        self, kernel: Callable[..., Any], *arguments: object, each: Callable[[], object] | None = None
    ) -> list[Any]:
        """Run a kernel over all cells, shared among the threads; `each` makes an argument of a thread's own."""
        rows, columns = self._cells.shape
        shares = self._threads if self._cells.size >= _SHARED else 1
        by_rows = rows >= shares
        cuts = [(rows if by_rows else columns) * i // shares for i in range(shares + 1)]
        ranges = [
            (low, high, 0, columns) if by_rows else (0, rows, low, high) for low, high in pairwise(cuts)
        ]

        def run(window: tuple[int, int, int, int]) -> object:
            own = each() if each else None
            result = kernel(self._cells, window, *arguments, *([own] if each else []))
            return own if each else result

        if shares == 1:
            return [run(ranges[0])]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="dense-weights")
        return list(self._pool.map(run, ranges))


def _share(part: float, mass: float) -> float:
    """A sum of weights in [0, 1] over the mass; rounding does not take it out of [0, 1]."""
    return min(max(part / mass, 0.0), 1.0)


def _read(table: NDArray[np.float64], query: LinearQuery) -> float:
    return min(max(float(np.vdot(table, query.weights())), 0.0), 1.0)


def _admitted(domain: Domain) -> tuple[int, ...]:
    """The shape of the histogram, refused before anything of its size is allocated."""
    if (cells := domain.size()) > DENSE_LIMIT:
        raise TooLargeError(
            "the dense stand-in (the graphical one holds larger domains)", cells=cells, limit=DENSE_LIMIT
        )
    return domain.shape()


def _cores() -> int:
    """The cores that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _kernels() -> Any:
    """The compiled loops; numba takes a second to import, and most commands never need it."""
    from understudy.standin.dense import kernels

    return kernels
