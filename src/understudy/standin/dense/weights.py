"""A stand-in that holds every cell of the domain: multiplicative weights, dense.

Cells are not normalised: their mass is carried along as a number, so an update is one pass over the support of the
query, with no exponential per cell and no division (`weights_layout` says how the support is found).
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from math import ceil, exp, expm1, frexp, isfinite, ldexp
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import DomainError, ParameterError, TooLargeError
from understudy.query.linear import LinearQuery
from understudy.query.tables import RememberedTables
from understudy.standin.dense import device as cuda
from understudy.standin.dense.device import DeviceCells
from understudy.standin.dense.host import HostCells
from understudy.standin.dense.layout import DenseLayout, Patterns

DENSE_LIMIT = 2**28
"""Cells of the largest dense histogram (1 GiB of float32)."""

Precision = Literal["float32", "float64"]

Device = Literal["cpu", "cuda"]
"""Where the cells are: in the machine's memory, or in that of its first CUDA device."""

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

_ONE_BY_ONE = 2**16
"""Queries on cliques of more cells than this are not answered from a common projection."""

_CALM = 8
"""Answers since the last update after which a projection is made and remembered: more of them will be asked."""


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

    def __init__(self, cells: HostCells | DeviceCells) -> None:
        """Take over cells of at least 0, not all 0."""
        self._cells = cells
        self._layout = cells.layout
        self._last: tuple[LinearQuery, float] | None = None
        self._said: OrderedDict[int, tuple[LinearQuery, Patterns]] = OrderedDict()
        self._tables = RememberedTables(self.domain, self.project)
        self._calm = 0
        self._recount()
        if not (isfinite(self._mass) and self._mass > 0):
            raise ParameterError("the weights of a histogram must have a positive, finite sum")
        self._keep_in_range()

    @classmethod
    def uniform(
        cls,
        domain: Domain,
        *,
        dtype: Precision = "float64",
        threads: int | None = None,
        device: Device = "cpu",
    ) -> DenseWeights:
        """Every cell alike: what is known before anything is."""
        if device == "cuda":
            return cls(DeviceCells.filled(_on_device(domain), dtype))
        check_device(device)
        return cls(HostCells(DenseLayout(domain), np.ones(_admitted(domain), dtype), threads=threads))

    @classmethod
    def histogram(
        cls,
        domain: Domain,
        weights: ArrayLike,
        *,
        dtype: Precision = "float64",
        threads: int | None = None,
        device: Device = "cpu",
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
        if device == "cuda":
            return cls(DeviceCells.of(_on_device(domain), cells))
        check_device(device)
        return cls(HostCells(DenseLayout(domain), cells, threads=threads))

    @classmethod
    def product(
        cls,
        domain: Domain,
        marginals: Mapping[str, ArrayLike],
        *,
        dtype: Precision = "float64",
        threads: int | None = None,
        device: Device = "cpu",
    ) -> DenseWeights:
        """Independent attributes with the given marginals; an attribute without one is uniform."""
        given = {domain[name].name: np.asarray(weights, np.float64) for name, weights in marginals.items()}
        for name, weights in given.items():
            size = domain[name].size
            if weights.shape != (size,) or not np.isfinite(weights).all() or weights.min() < 0:
                raise ParameterError(f"the marginal of {name} must be {size} finite numbers of at least 0")
            if weights.sum() <= 0:
                raise ParameterError(f"the marginal of {name} must have a positive sum")
        # Scaled to mean 1, so that a product over many attributes neither overflows nor vanishes.
        scaled = {name: weights / weights.mean() for name, weights in given.items()}
        if device == "cuda":
            placed = cls.uniform(domain, dtype=dtype, device=device)
            for name, weights in scaled.items():
                placed.scale_marginal((name,), weights)
            return placed
        check_device(device)
        shape, cells = _admitted(domain), np.ones((1,), dtype)
        for name, size in zip(domain.names, shape, strict=True):
            weights = scaled.get(name, np.ones(size))
            cells = np.multiply.outer(cells, weights.astype(dtype)).reshape(-1)
        return cls(HostCells(DenseLayout(domain), cells, threads=threads))

    @property
    def domain(self) -> Domain:
        return self._layout.domain

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._cells.dtype

    @property
    def threads(self) -> int:
        return self._cells.threads

    def __repr__(self) -> str:
        where = f"threads={self.threads}" if isinstance(self._cells, HostCells) else "on a CUDA device"
        return f"DenseWeights({self._layout.rows * self._layout.columns:,} cells, {self.dtype}, {where})"

    def copy(self) -> DenseWeights:
        return DenseWeights(self._cells.copy())

    def rates(self) -> NDArray[np.float64]:
        """Every cell of the domain, as a new array."""
        return self._cells.table() / self._mass

    def project(self, clique: Clique) -> NDArray[np.float64]:
        """The marginal over `clique`, whose rates sum to 1."""
        clique = self.domain.clique(clique)
        self.domain.allocatable_shape(clique)
        rates = self._cells.project(clique)
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
        is_whole = factor is not None and not others and factor.clique == self.domain.names
        total = self._cells.dot(factor.weights) if factor is not None and is_whole else None
        return _share(self._cells.answer(self._patterns(query)) if total is None else total, self._mass)

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
        self._scale(said, None)

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
        return self._scale(said, step, asked, grown)

    def _scale(
        self,
        said: Patterns,
        step: float | None,
        asked: Patterns | None = None,
        grown: float | None = None,
    ) -> float:
        """Multiply, carry the mass along, and keep it where it can be trusted; what was asked, unnormalised."""
        self._last = None
        self._calm = 0
        self._tables.forget()
        seen, total = self._cells.scale(said, step, asked, counting=grown is None)
        grown = seen if grown is None else grown
        self._mass += grown
        self._largest = max(self._largest, self._mass)
        self._updates += 1
        if self._mass < _CANCELLED * self._largest or self._updates >= _RECOUNT:
            self._recount()
        return total * self._keep_in_range()

    def _recount(self) -> None:
        self._mass = self._largest = self._cells.mass()
        self._updates = 0

    def _keep_in_range(self) -> float:
        """Bring the mass back to about 1 when it has wandered; the power of two by which cells were multiplied."""
        if 1 / _MASS < self._mass < _MASS:
            return 1.0
        power = ldexp(1.0, -frexp(self._mass)[1])
        self._mass = self._largest = self._cells.rescale(power)
        return power


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


def _on_device(domain: Domain) -> DenseLayout:
    """The layout of cells on a device: longer rows, of which there are fewer to number."""
    return DenseLayout(domain, row=cuda.ROW)


def check_device(device: str) -> None:
    """Raise a `ParameterError` where there is no such device: cells cannot be placed on it."""
    if device == "cuda":
        cuda.check_present()
    elif device != "cpu":
        raise ParameterError(f"device must be 'cpu' or 'cuda', not {device!r}")
