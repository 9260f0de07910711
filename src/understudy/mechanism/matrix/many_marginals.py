"""Many combinations of a table's counts, each with noise of its own, bought at once: the price of the worst pair.

factor of an attribute → product of factors on a clique → noise of the clique's own precision → one debit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from math import prod
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError
from understudy.mechanism.additive import ROUNDED_KEY
from understudy.mechanism.matrix.one_marginal import MAX_WEIGHT
from understudy.noise.law import variance_parameter
from understudy.noise.normal import normal_variance, rounded_normal_of_variance
from understudy.noise.samplers import NoiseSource, discrete_gaussian
from understudy.privacy.cost import UNITS, rounded_up
from understudy.privacy.event import Event, GaussianNoise, RoundedNormal
from understudy.privacy.relation import Relation
from understudy.query.marginal import Marginal
from understudy.query.residuals import parts_of

Whole = NDArray[np.int64]
Values = NDArray[np.float64]

MAX_PATTERNS = 1 << 22
"""Up to so many ways in which two rows can differ, each is priced; beyond, a bound is taken."""

MARGIN = 1e-9
"""What is added to a price found in floats, as a share of the sum of all parts: far above their rounding."""


class AttributeFactor(Protocol):
    """What is done along one attribute: a matrix W of whole numbers with a column for each cell.

    `rows` are its rows, `largest` its largest weight. `own` is max‖w_a‖² over cells a; `others` are the extremes
    of ⟨w_a, w_b⟩ over different cells, one number where they are all alike.
    """

    @property
    def size(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def largest(self) -> int: ...
    @property
    def own(self) -> int: ...
    @property
    def others(self) -> tuple[int, ...]: ...
    @property
    def key(self) -> str: ...
    def combine(self, table: Whole, axis: int) -> Whole: ...


@dataclass(frozen=True, slots=True)
class Centred:
    """k·I - 1·1ᵀ on k cells: k times the difference of each cell from the mean, in whole numbers.

    ⟨w_a, w_b⟩ is k² - k for a = b and -k otherwise.
    """

    size: int

    @property
    def rows(self) -> int:
        return self.size

    @property
    def largest(self) -> int:
        return max(self.size - 1, 1)

    @property
    def own(self) -> int:
        return self.size * (self.size - 1)

    @property
    def others(self) -> tuple[int, ...]:
        return (-self.size,) if self.size > 1 else ()

    @property
    def key(self) -> str:
        return f"centred {self.size}"

    def combine(self, table: Whole, axis: int) -> Whole:
        return self.size * table - table.sum(axis=axis, keepdims=True)


@dataclass(frozen=True, eq=False)
class Combinations:
    """Any matrix of whole numbers."""

    matrix: Whole

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix)
        if matrix.ndim != 2 or not matrix.size or not np.issubdtype(matrix.dtype, np.integer):
            raise ParameterError("combinations need a matrix of whole numbers, a column for each cell")
        matrix = matrix.astype(np.int64)
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @property
    def size(self) -> int:
        return self.matrix.shape[1]

    @property
    def rows(self) -> int:
        return self.matrix.shape[0]

    @property
    def largest(self) -> int:
        return max(int(np.abs(self.matrix).max()), 1)

    @cached_property
    def _gram(self) -> Whole:
        return self.matrix.T @ self.matrix

    @property
    def own(self) -> int:
        return int(np.diag(self._gram).max())

    @property
    def others(self) -> tuple[int, ...]:
        apart = self._gram[~np.eye(self.size, dtype=bool)]
        return tuple(sorted({int(apart.min()), int(apart.max())})) if apart.size else ()

    @property
    def key(self) -> str:
        return f"{self.matrix.shape} {sha256(np.ascontiguousarray(self.matrix).tobytes()).hexdigest()}"

    def combine(self, table: Whole, axis: int) -> Whole:
        return np.moveaxis(np.tensordot(self.matrix, table, axes=(1, axis)), 0, axis)


@dataclass(frozen=True, slots=True)
class StrategyPart:
    """The product of the factors of a clique's attributes, with noise of variance 1/`precision`."""

    clique: Clique
    precision: Fraction


@dataclass(frozen=True, slots=True)
class PartsNoise:
    """Gaussian noise on the parts of a vector: `sizes[i]` values with noise of the parameter 1/`precisions[i]`.

    It is discrete, or, where it is `rounded`, normal and rounded to whole numbers.
    """

    precisions: tuple[Fraction, ...]
    sizes: tuple[int, ...]
    rounded: bool = False

    def event_for(self, squared: Fraction) -> GaussianNoise | RoundedNormal:
        """The event of this noise where neighbours move values by Σ precision·(move of a part)² = `squared`.

        The joint price is that of one noise of variance 1, in whole units and rounded up: it costs l2²/2.
        """
        rho = Fraction(rounded_up(squared / 2), UNITS)
        kind = RoundedNormal if self.rounded else GaussianNoise
        return kind(l2_squared=2 * rho, variance=Fraction(1))

    def at_scale(self, event: Event) -> Event:
        """The event of `event_for` as one of the least variance that is drawn, at the same ρ.

        What a GDP filter charges for discrete noise grows as its variance falls (`privacy.gdp`); for rounded
        normal noise it does not.
        """
        if not isinstance(event, GaussianNoise):
            return event
        least = 1 / max(self.precisions)
        return GaussianNoise(l2_squared=event.l2_squared * least / event.variance, variance=least)

    def draw_many(self, values: Whole, times: int, *, noise: NoiseSource) -> list[list[int]]:
        """So many independent releases; each costs as one."""
        places: dict[Fraction, list[slice]] = {}
        at = 0
        for precision, size in zip(self.precisions, self.sizes, strict=True):
            places.setdefault(precision, []).append(slice(at, at + size))
            at += size
        told = np.tile(values, (times, 1))
        draw = rounded_normal_of_variance if self.rounded else discrete_gaussian
        for precision, where in places.items():
            size = sum(p.stop - p.start for p in where)
            drawn = draw(1 / precision, times * size, noise=noise).reshape(times, size)
            start = 0
            for place in where:
                told[:, place] += drawn[:, start : start + place.stop - place.start]
                start += place.stop - place.start
        return told.tolist()


@dataclass(frozen=True, eq=False)
class JointStrategy:
    """For each part A: (⊗_{i ∈ A} W_i)·c_A + Gaussian noise of variance 1/t_A, all independent.

    The noise is discrete, or, where it is `rounded`, normal and rounded to whole numbers.

    Privacy     ρ-zCDP with ρ = max Σ_A t_A·‖x_A‖²/2, where x_A is what one person moves part A by and the maximum
                is over pairs of neighbours *of the sum*: for each pair the Rényi divergences of independent parts
                add up, and that of discrete Gaussian noise is at most α·t_A‖x_A‖²/2. [CKS20, Theorem 14]
                Rounded normal noise is moreover μ-GDP with μ² = 2ρ: the parts with normal noise, each times √t_A,
                are one vector with normal noise of variance 1, and what is told is a function of it. [DRS22]
                All parts together, each times √t_A, are one vector of sums over rows (`privacy.relation`). A row
                adds a column of the squared length Σ_A t_A·Π g(a_i), g(a) = ‖w_a‖². Under add-remove the
                longest column has each attribute at its longest, in all parts at once: ρ is exact. Under replace
                two columns are apart by Σ_A t_A·(Π g(a_i) + Π g(b_i) - 2 Π ⟨w_{a_i}, w_{b_i}⟩), squared. As a
                function of one attribute's three numbers that is linear, and not decreasing in the squared lengths
                (as no product exceeds its lengths); so it is largest with each attribute at its longest columns
                and, where a and b differ, at one end of its products.
                ρ is the maximum over all such patterns: exact where a factor's columns are all alike (`Centred`),
                else from above. Too many patterns are split by cliques, each at its own worst (`_split_bound`).
    Complexity  O(Σ cells) and Σ_i log of the patterns times the patterns: the products are never expanded.
    Gap         None in the law: integers in, integers out. A price is rounded up by 1e-9 of itself.
    """

    domain: Domain
    factors: Mapping[str, AttributeFactor]
    parts: tuple[StrategyPart, ...]
    relation: Relation
    rounded: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "factors", MappingProxyType(dict(self.factors))
        )  # prices are worked out once
        if not self.parts:
            raise ParameterError("strategies need at least one part")
        if len({part.clique for part in self.parts}) != len(self.parts):
            raise ParameterError("strategies list a clique twice; give it more precision instead")
        for part in self.parts:
            if part.clique != self.domain.clique(part.clique):
                raise ParameterError("the attributes of a part must be in domain order")
            if part.precision <= 0:
                raise ParameterError("noise needs a positive precision")
            (normal_variance if self.rounded else variance_parameter)(1 / part.precision)
            for name, size in zip(part.clique, self.domain.shape(part.clique), strict=True):
                if name not in self.factors or self.factors[name].size != size:
                    raise ParameterError(f"the factor of {name!r} needs a column for each of {size} cells")
            if prod(self.factors[name].largest for name in part.clique) > MAX_WEIGHT:
                raise ParameterError(f"the weights of a part must be at most {MAX_WEIGHT}")

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """The largest cliques alone: what they hold is summed from them."""
        return self._read

    @cached_property
    def _read(self) -> tuple[Marginal, ...]:
        return tuple(Marginal(self.domain, c) for c in maximal([part.clique for part in self.parts]))

    def shape(self, part: StrategyPart) -> tuple[int, ...]:
        """One axis of combinations for each attribute."""
        return tuple(self.factors[name].rows for name in part.clique)

    @cached_property
    def cells(self) -> int:
        """How many numbers are released."""
        return sum(self.mechanism.sizes)

    @cached_property
    def rho(self) -> Fraction:
        """The joint price, in whole units, rounded up."""
        return self.event.zcdp_cost()

    @property
    def mechanism(self) -> PartsNoise:
        """The noise of all parts."""
        return self._mechanism

    @cached_property
    def _mechanism(self) -> PartsNoise:
        sizes = tuple(prod(self.shape(part)) for part in self.parts)
        return PartsNoise(tuple(part.precision for part in self.parts), sizes, self.rounded)

    def _longest(self) -> Fraction:
        """Σ_A t_A·max‖w_a‖²: the squared length of the longest column."""
        return sum((p.precision * self._norm(p) for p in self.parts), Fraction(0))

    def _farthest(self) -> Fraction:
        """At least the squared distance of the two columns that are farthest apart."""
        return 2 * Fraction(worst_pair(self.factors, self._weighted))

    def _norm(self, part: StrategyPart) -> int:
        return prod(self.factors[name].own for name in part.clique)

    @property
    def _weighted(self) -> dict[Clique, float]:
        return {part.clique: float(part.precision * self._norm(part)) for part in self.parts}

    @property
    def event(self) -> GaussianNoise | RoundedNormal:
        """The joint price, as that of one noise."""
        return self._own_event

    @cached_property
    def _own_event(self) -> GaussianNoise | RoundedNormal:
        return self._event_under(self.relation)

    def event_under(self, relation: Relation) -> GaussianNoise | RoundedNormal:
        return self._own_event if relation == self.relation else self._event_under(relation)

    def _event_under(self, relation: Relation) -> GaussianNoise | RoundedNormal:
        return self.mechanism.event_for(relation.moves_squared(self._longest, self._farthest))

    @property
    def key(self) -> str:
        digest = sha256()
        for name in sorted(self.factors):
            digest.update(f"{name!r} {self.factors[name].key}\n".encode())
        for part in self.parts:
            digest.update(f"{part.clique!r} {part.precision}\n".encode())
        digest.update(ROUNDED_KEY if self.rounded else b"")
        for marginal in self.marginals:
            digest.update(marginal.key.encode())
        return f"{len(self.parts)} combinations of counts #{digest.hexdigest()}"

    def combine(self, part: StrategyPart, counts: Whole) -> Whole:
        """The combinations of a part, without noise, of its clique's counts."""
        table = np.asarray(counts, dtype=np.int64)
        for axis, name in enumerate(part.clique):
            table = self.factors[name].combine(table, axis)
        return table

    def values(self, counts: Sequence[Whole]) -> Whole:
        """Every part's combinations, one after the other."""
        holders = [(m.by, np.asarray(c, np.int64)) for m, c in zip(self.marginals, counts, strict=True)]
        by_clique = hosts([part.clique for part in self.parts], [clique for clique, _ in holders])
        flat = np.empty(self.cells, np.int64)
        at = 0
        for part, host in zip(self.parts, by_clique, strict=True):
            clique, table = holders[host]
            dropped = tuple(i for i, name in enumerate(clique) if name not in part.clique)
            values = self.combine(part, table.sum(axis=dropped)).ravel()
            flat[at : at + values.size] = values
            at += values.size
        return flat


def maximal(cliques: Sequence[Clique]) -> list[Clique]:
    """The cliques that lie in no other, in the order given."""
    wanted = list(dict.fromkeys(cliques))
    found: list[Clique] = []
    seen: set[frozenset[str]] = set()
    for clique in sorted(wanted, key=len, reverse=True):
        if frozenset(clique) not in seen:
            found.append(clique)
            seen.update(_subsets(clique))
    kept = set(found)
    return [clique for clique in wanted if clique in kept]


def _subsets(clique: Clique) -> list[frozenset[str]]:
    return [frozenset(part) for part in parts_of(clique)]


def hosts(cliques: Sequence[Clique], holders: Sequence[Clique]) -> list[int]:
    """For each clique the index of a holder that contains it."""
    at: dict[frozenset[str], int] = {}
    for i, holder in enumerate(holders):
        for part in _subsets(holder):
            at.setdefault(part, i)
    return [at[frozenset(clique)] for clique in cliques]


# ------------------------------------------------------------------------------------------ the worst pair


def worst_pair(factors: Mapping[str, AttributeFactor], weighted: Mapping[Clique, float]) -> float:
    """max over patterns T of Σ_A weighted_A·(1 - Π_{i ∈ A} f_i(T_i)), and `MARGIN` of Σ weighted on top.

    That is half of the squared distance of the farthest two columns, where weighted_A is that of the longest in A.
    f_i is 1 where two rows agree on attribute i, else an extreme of ⟨w_a, w_b⟩ over the longest ‖w‖².
    Every |f| is at most 1, so floats err by less than 2^-45 of Σ weighted.
    """
    names = sorted({name for clique in weighted for name in clique if factors[name].own})
    ratios = {name: [1.0, *(other / factors[name].own for other in factors[name].others)] for name in names}
    seen = {c: w for c, w in weighted.items() if w and c and all(name in ratios for name in c)}
    whole = sum(seen.values())
    if prod(len(ratios[name]) for name in names) <= MAX_PATTERNS:
        worst = whole - float(_products(names, ratios, seen).min(initial=0.0))
    else:
        worst = _split_bound(ratios, seen)
    return worst + MARGIN * whole


def _products(
    names: Sequence[str], ratios: Mapping[str, list[float]], weighted: Mapping[Clique, float]
) -> Values:
    """Σ_A weighted_A·Π f_i(T_i) for every pattern T, one attribute at a time."""
    place = {name: i for i, name in enumerate(names)}
    values = np.zeros((2,) * len(names) if names else (1,))
    for clique, weight in weighted.items():
        inside = {place[name] for name in clique}
        values[tuple(int(i in inside) for i in range(len(names)))] += weight
    flat = values.ravel()
    for name in reversed(names):  # the last axis first, which then moves to the front
        pairs = flat.reshape(-1, 2)
        flat = np.concatenate([pairs[:, 0] + ratio * pairs[:, 1] for ratio in ratios[name]])
    return flat


def _split_bound(ratios: Mapping[str, list[float]], weighted: Mapping[Clique, float]) -> float:
    """The sum of the largest cliques' own worst patterns, each part's weight shared among those that hold it."""
    held = maximal(list(weighted))
    holders: dict[frozenset[str], int] = {}
    for clique in held:
        for part in _subsets(clique):
            holders[part] = holders.get(part, 0) + 1
    total = 0.0
    for clique in held:
        inside: dict[Clique, float] = {}
        for part in _subsets(clique):
            named = tuple(name for name in clique if name in part)
            if weighted.get(named):
                inside[named] = weighted[named] / holders[part]
        total += sum(inside.values()) - float(_products(clique, ratios, inside).min())
    return total
