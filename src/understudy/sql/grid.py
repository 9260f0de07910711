"""Values on a public grid: what an expression is worth in every cell of the attributes that it touches.

A cell may stand for many values (a bin), so a number is an interval with a representative inside. It may also
be missing (`null`), or be nobody knows what (`unknown`: the cell `other`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.attribute import Attribute, Mask
from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.domain.edge import as_number
from understudy.domain.instant import DAY_SECONDS
from understudy.errors import TooLargeError

MAX_REGION = 1 << 20
"""Cells over which one expression may be spread."""

MAX_TEXTS = 1 << 16
"""Cells over which one expression whose value is a text may be spread."""

Floats = Any
"""An array of float64; one without axes may also be a scalar, which pyright would not take for an array."""
Bools = NDArray[np.bool_]
NO: Any = np.False_
YES: Any = np.True_


@dataclass(frozen=True)
class Scope:
    """The axes that values may vary over, in order, with their sizes.

    `strict`: the axes are cells of attributes, where an expression that is not a finite number is a mistake.
    Otherwise they are released groups, where it is an answer that is not known.
    `whole`: integers are whole numbers; not so where counts are expected ones of a population.
    """

    sizes: Mapping[str, int]
    strict: bool = True
    whole: bool = True

    @classmethod
    def of(cls, domain: Domain) -> Scope:
        return cls({attribute.name: attribute.size for attribute in domain})

    def union(self, *cliques: Clique) -> Clique:
        """All the named axes in order; refused, from their sizes alone, when there are too many cells."""
        if all(clique == cliques[0] for clique in cliques):
            return cliques[0]
        wanted = {name for clique in cliques for name in clique}
        clique = tuple(name for name in self.sizes if name in wanted)
        self.check(clique)
        return clique

    def check(self, clique: Clique, limit: int = MAX_REGION) -> None:
        if (cells := prod(self.sizes[name] for name in clique)) > limit and self.strict:
            raise TooLargeError(f"an expression over {', '.join(clique)}", cells=cells, limit=limit)

    def spread(self, array: NDArray[Any], own: Clique, clique: Clique) -> NDArray[Any]:
        """The array over `own` as a view over `clique`."""
        if own == clique and array.ndim == len(clique):
            return array
        if array.ndim:
            array = array.reshape([self.sizes[name] if name in own else 1 for name in clique])
        return np.broadcast_to(array, tuple(self.sizes[name] for name in clique))


@dataclass(frozen=True, eq=False)
class Numbers:
    """A number in each cell: surely within [low, high], an end that is `open` left out; `point` stands for it.

    `kind` is integer, real, date (days since 1970-01-01) or timestamp (seconds since 1970-01-01 00:00:00).
    """

    clique: Clique
    point: Floats
    low: Floats
    high: Floats
    low_open: Bools = NO
    high_open: Bools = NO
    null: Bools = NO
    unknown: Bools = NO
    kind: str = "real"

    @property
    def known(self) -> Bools:
        return ~(self.null | self.unknown)

    @property
    def exact(self) -> Bools:
        return self.low == self.high

    def over(self, scope: Scope, clique: Clique) -> Numbers:
        if clique == self.clique:
            return self
        parts = (self.point, self.low, self.high, self.low_open, self.high_open, self.null, self.unknown)
        return Numbers(clique, *(scope.spread(part, self.clique, clique) for part in parts), kind=self.kind)


@dataclass(frozen=True, eq=False)
class Texts:
    """A text in each cell."""

    clique: Clique
    values: NDArray[np.object_]
    null: Bools = NO
    unknown: Bools = NO

    def over(self, scope: Scope, clique: Clique) -> Texts:
        scope.check(clique, MAX_TEXTS)
        parts = (self.values, self.null, self.unknown)
        return Texts(clique, *(scope.spread(part, self.clique, clique) for part in parts))


@dataclass(frozen=True, eq=False)
class Truths:
    """Where a condition holds and where it does not; in neither, as with a missing value, it is not known."""

    clique: Clique
    true: Bools
    false: Bools

    @property
    def null(self) -> Bools:
        return ~(self.true | self.false)

    def over(self, scope: Scope, clique: Clique) -> Truths:
        return Truths(
            clique,
            scope.spread(self.true, self.clique, clique),
            scope.spread(self.false, self.clique, clique),
        )

    def __invert__(self) -> Truths:
        return replace(self, true=self.false, false=self.true)


@dataclass(frozen=True, eq=False)
class Nothing:
    """The literal NULL, which is of every type."""

    clique: Clique = ()
    null: Bools = YES


Value = Numbers | Texts | Truths | Nothing


def constant(number: float, kind: str) -> Numbers:
    """One number, the same in every cell."""
    point = np.float64(number).reshape(())
    return Numbers((), point, point, point, kind=kind)


def text(value: str) -> Texts:
    """One text, the same in every cell."""
    values = np.empty((), object)
    values[()] = value
    return Texts((), values)


def truth(value: bool) -> Truths:  # noqa: FBT001 (a value, not a switch)
    """TRUE or FALSE."""
    return Truths((), np.array(value), np.array(not value))


TEMPORAL = ("date", "timestamp")
"""Kinds of numbers that are days or moments."""


def is_temporal(value: Numbers) -> bool:
    """Whether a value is a day or a moment."""
    return value.kind in TEMPORAL


def as_moments(value: Numbers) -> Numbers:
    """Days as their midnights; anything else as it is."""
    if value.kind != "date":
        return value
    scaled = {part: getattr(value, part) * float(DAY_SECONDS) for part in ("point", "low", "high")}
    return replace(value, **scaled, kind="timestamp")


def as_days(value: Numbers) -> Numbers:
    """Moments as the days that they are on; anything else as it is."""
    if value.kind != "timestamp":
        return value
    days = {part: np.floor(getattr(value, part) / DAY_SECONDS) for part in ("point", "low", "high")}
    return replace(value, **days, low_open=NO, high_open=NO, kind="date")


def in_one_unit(one: Numbers, other: Numbers) -> tuple[Numbers, Numbers]:
    """Two values to be compared: a day beside a moment is its midnight."""
    if "timestamp" in (one.kind, other.kind):
        return as_moments(one), as_moments(other)
    return one, other


def no_numbers(like: Numbers) -> Numbers:
    """NULL where a number is expected."""
    return replace(constant(0.0, like.kind), null=YES)


def of_mask(clique: Clique, mask: Mask) -> Truths:
    """An attribute's own answer to a comparison."""
    return Truths(clique, mask.true, mask.false)


def of_attribute(attribute: Attribute) -> Value:
    """An attribute as an expression: its declared values or bins, `other` as unknown, missing as null."""
    clique = (attribute.name,)
    cells = np.arange(attribute.size)
    null = attribute.is_null().true
    unknown = (cells >= attribute.proper_size) & ~null
    if isinstance(attribute, Bins):
        return _of_bins(attribute, null, unknown)
    if attribute.kind == "boolean":
        return Truths(clique, cells == 1, cells == 0)
    values = np.full(attribute.size, "", object)
    values[: attribute.proper_size] = attribute.proper_labels
    return Texts(clique, values, null, unknown)


def ends(attribute: Bins) -> tuple[Floats, Floats]:
    """The lowest number of each declared bin and the highest (or, in a real bin, what it stays below)."""
    points = attribute.representatives
    lows = np.array([as_number(start) for start in attribute.starts])
    return lows, 2 * points - lows


def _of_bins(attribute: Bins, null: Bools, unknown: Bools) -> Numbers:
    size, proper = attribute.size, attribute.proper_size
    lows, highs = ends(attribute)
    if not attribute.discrete:
        highs = np.append(lows[1:], float(attribute.upper))
    filled = [np.zeros(size) for _ in range(3)]
    for array, values in zip(filled, (attribute.representatives, lows, highs), strict=True):
        array[:proper] = values
    cells = np.arange(size)
    high_open = (cells < proper - 1) if not attribute.discrete else np.zeros(size, bool)
    point, low, high = filled
    if not attribute.discrete:  # a bin up to the next float holds one number
        single = (cells < proper - 1) & (np.nextafter(low, np.inf) >= high)
        point, high, high_open = (
            np.where(single, low, point),
            np.where(single, low, high),
            high_open & ~single,
        )
    return Numbers(
        (attribute.name,), point, low, high, np.zeros(size, bool), high_open, null, unknown, attribute.kind
    )
