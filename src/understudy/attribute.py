"""An attribute: a column cut into finitely many public cells.

Cells are declared, never inferred: every value of every row falls into exactly one of them, by a rule that is
fixed before the table is opened. So nothing about an attribute (its size, its labels, an error it raises) can
depend on the data.
"""

from __future__ import annotations

import datetime as dt
import difflib
import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import isfinite, isnan
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.errors import DomainError, QueryError

Value = str | int | float | bool | dt.date
"""A public constant: a category, or a number or date on an ordered attribute."""

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


class Outside(StrEnum):
    """Where a value goes that no declared cell holds."""

    CLAMP = "clamp"
    OTHER = "other"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Mask:
    """The cells where a condition surely holds and those where it surely does not (Kleene's logic).

    In neither: the null cell, and for ordered attributes the `other` cell, whose side nobody knows.
    """

    true: NDArray[np.bool_]
    false: NDArray[np.bool_]

    def __invert__(self) -> Mask:
        return Mask(self.false, self.true)

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.true & other.true, self.false | other.false)

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.true | other.true, self.false & other.false)


def same_text(text: str) -> str:
    """Text up to the ways Unicode has of writing the same characters."""
    return unicodedata.normalize("NFC", text)


def spellings(text: str) -> tuple[str, ...]:
    """The same characters composed and decomposed: the two forms in which files hold them."""
    return tuple(sorted({same_text(text), unicodedata.normalize("NFD", text)}))


@dataclass(frozen=True, kw_only=True)
class Attribute(ABC):
    """A column of the table cut into finitely many public cells, then `other` and `null` where declared."""

    name: str
    column: str = ""
    outside: Outside
    null: bool = False

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.strip():
            raise DomainError(f"an attribute needs a name without spaces around it, not {self.name!r}")
        object.__setattr__(self, "name", same_text(self.name))
        object.__setattr__(self, "column", self.column or self.name)
        if self.outside is Outside.NULL and not self.null:
            raise DomainError(f"{self.name}: `outside: null` needs a null cell; add `null: true`")

    @property
    @abstractmethod
    def proper_labels(self) -> tuple[str, ...]:
        """Labels of the declared cells, without `other` and `null`."""

    @abstractmethod
    def proper_code(self, value: object) -> int | None:
        """The declared cell of a non-null value; None when it is outside."""

    @abstractmethod
    def compare(self, operator: str, value: Value) -> Mask:
        """The cells where ``attribute operator value`` holds; refused where it would cut a cell."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The word for it in a declaration file."""

    @cached_property
    def labels(self) -> tuple[str, ...]:
        extra = (["other"] if self.outside is Outside.OTHER else []) + (["null"] if self.null else [])
        return (*self.proper_labels, *extra)

    @cached_property
    def size(self) -> int:
        return len(self.labels)

    @cached_property
    def proper_size(self) -> int:
        return len(self.proper_labels)

    @property
    def null_cell(self) -> int:
        """Where missing values go: the null cell, else the `other` cell, else the first."""
        if self.null:
            return self.size - 1
        return self.proper_size if self.outside is Outside.OTHER else 0

    @property
    def outside_cell(self) -> int:
        """Where values outside go when they are not clamped."""
        return self.null_cell if self.outside is Outside.NULL else self.proper_size

    def code(self, value: object) -> int:
        """The cell of a value: the rule that every engine's encoding must agree with.

        A missing value and a number that is not one (NaN) go to `null_cell`.
        """
        if value is None or (isinstance(value, float) and isnan(value)):
            return self.null_cell
        code = self.proper_code(value)
        return self.outside_cell if code is None else code

    def is_null(self) -> Mask:
        true = np.zeros(self.size, bool)
        if self.null:
            true[-1] = True
        return Mask(true, ~true)

    def _equals(self, cell: int, operator: str) -> Mask:
        """The mask of an unordered attribute's comparison with one of its cells."""
        if operator not in ("=", "!="):
            raise QueryError(f"{self.name} is not ordered: compare it with =, != or in, not {operator}")
        mask = self._mask(np.arange(self.proper_size) == cell, other_is_known=True)
        return mask if operator == "=" else ~mask

    def _mask(self, cells: NDArray[np.bool_], *, other_is_known: bool) -> Mask:
        true = np.zeros(self.size, bool)
        false = np.zeros(self.size, bool)
        true[: self.proper_size] = cells
        false[: self.proper_size] = ~cells
        if self.outside is Outside.OTHER and other_is_known:
            false[self.proper_size] = True
        return Mask(true, false)


def nearest(value: str, known: Sequence[str]) -> str:
    """Up to a few of the known names, those most like `value` first."""
    close = difflib.get_close_matches(value, known, n=3, cutoff=0.5) or list(known[:5])
    return ", ".join(close) + ("" if len(close) == len(known) else ", …")


@dataclass(frozen=True, kw_only=True)
class Categories(Attribute):
    """An unordered attribute: one cell for each declared value."""

    values: tuple[str, ...]
    outside: Outside = Outside.OTHER

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.values:
            raise DomainError(f"{self.name}: a category needs at least one value")
        if self.outside is Outside.CLAMP:
            raise DomainError(
                f"{self.name}: categories have no nearest value to clamp to; use `outside: other` or `null`"
            )
        seen: dict[str, str] = {}
        for value in self.values:
            if same_text(value) in seen:
                raise DomainError(f"{self.name}: the value {value!r} is declared twice (as Unicode text)")
            seen[same_text(value)] = value
        object.__setattr__(self, "values", tuple(seen))

    @property
    def kind(self) -> str:
        return "category"

    @property
    def proper_labels(self) -> tuple[str, ...]:
        return self.values

    @cached_property
    def _index(self) -> dict[str, int]:
        return {text: cell for cell, value in enumerate(self.values) for text in spellings(value)}

    def proper_code(self, value: object) -> int | None:
        return self._index.get(str(value).lower() if isinstance(value, bool) else str(value))

    def compare(self, operator: str, value: Value) -> Mask:
        cell = self.proper_code(value)
        if cell is None:
            raise QueryError(
                f"{value!r} is not a declared value of {self.name}; try: {nearest(str(value), self.values)}"
            )
        return self._equals(cell, operator)


@dataclass(frozen=True, kw_only=True)
class Boolean(Attribute):
    """A yes-or-no attribute: the cells false and true. Anything else counts as missing."""

    outside: Outside = field(default=Outside.CLAMP, init=False)

    TRUE: ClassVar = ("true", "t", "yes", "y", "1")
    FALSE: ClassVar = ("false", "f", "no", "n", "0")

    @property
    def kind(self) -> str:
        return "boolean"

    @property
    def proper_labels(self) -> tuple[str, ...]:
        return ("false", "true")

    def proper_code(self, value: object) -> int:
        text = str(value).strip().lower()
        return 1 if text in self.TRUE else 0 if text in self.FALSE else self.null_cell

    def compare(self, operator: str, value: Value) -> Mask:
        text = str(value).strip().lower()
        if text not in self.TRUE + self.FALSE:
            raise QueryError(f"{self.name} is a boolean: compare it with true or false, not {value!r}")
        return self._equals(int(text in self.TRUE), operator)


Ordered = Any
"""An int, a float or a date; all edges of one attribute are of one type (checked when it is made)."""


@dataclass(frozen=True, kw_only=True)
class Bins(Attribute):
    """An ordered attribute: consecutive bins [start, next start), the last one up to `upper` inclusive.

    `integers` and dates step by one; so do their bins when every value is a cell of its own.
    """

    starts: tuple[Ordered, ...]
    upper: Ordered
    outside: Outside = Outside.CLAMP

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.starts:
            raise DomainError(f"{self.name}: at least two edges are needed to make a bin")
        for edge in (*self.starts, self.upper):
            if type(edge) is not type(self.starts[0]):
                raise DomainError(f"{self.name}: edges must be all integers, all reals or all dates")
            if isinstance(edge, float) and not isfinite(edge):
                raise DomainError(f"{self.name}: edges must be finite numbers, not {edge}")
        if isinstance(self.starts[0], float):  # minus zero is zero
            object.__setattr__(self, "starts", tuple(s + 0.0 for s in self.starts))
            object.__setattr__(self, "upper", self.upper + 0.0)
        rising = all(a < b for a, b in zip(self.starts, self.starts[1:], strict=False))
        closed = self.upper > self.starts[-1] or (self.discrete and self.upper == self.starts[-1])
        if not (rising and closed):
            raise DomainError(f"{self.name}: edges must rise strictly")

    @classmethod
    def between(
        cls, name: str, edges: Sequence[Ordered], *, outside: Outside = Outside.CLAMP, null: bool = False
    ) -> Bins:
        """Bins with the given edges; the last bin includes the last edge.

        >>> Bins.between("age", [0, 18, 65, 120]).labels
        ('0-17', '18-64', '65-120')
        """
        if len(edges) < 2 or edges[-1] == edges[-2]:
            raise DomainError(f"{name}: edges must rise strictly, and there must be two at least")
        return cls(name=name, starts=tuple(edges[:-1]), upper=edges[-1], outside=outside, null=null)

    @classmethod
    def integers(cls, name: str, lower: int, upper: int, *, outside: Outside = Outside.CLAMP) -> Bins:
        """Every integer from `lower` to `upper` is a cell."""
        return cls(name=name, starts=tuple(range(lower, upper + 1)), upper=upper, outside=outside)

    @property
    def kind(self) -> str:
        return {int: "integer", float: "real", dt.date: "date"}[type(self.starts[0])]

    @property
    def discrete(self) -> bool:
        return not isinstance(self.starts[0], float)

    def _after(self, value: Ordered) -> Ordered:
        """The next value of a discrete attribute."""
        return value + dt.timedelta(days=1) if isinstance(value, dt.date) else value + 1

    def _before(self, value: Ordered) -> Ordered:
        return value - dt.timedelta(days=1) if isinstance(value, dt.date) else value - 1

    @property
    def proper_labels(self) -> tuple[str, ...]:
        return self._bin_labels

    @cached_property
    def _bin_labels(self) -> tuple[str, ...]:
        if not self.discrete:
            ends = [f"{end:g})" for end in self.starts[1:]] + [f"{self.upper:g}]"]
            return tuple(f"[{start:g}, {end}" for start, end in zip(self.starts, ends, strict=True))
        lasts = [*(self._before(start) for start in self.starts[1:]), self.upper]
        join = ".." if self.kind == "date" or self.starts[0] < 0 else "-"
        return tuple(
            str(start) if start == last else f"{start}{join}{last}"
            for start, last in zip(self.starts, lasts, strict=True)
        )

    @cached_property
    def representatives(self) -> NDArray[np.float64]:
        """The middle of each declared bin, as a number (dates: days since 1970-01-01)."""
        numbers = [_as_number(edge) for edge in (*self.starts, self.upper)]
        step = 1.0 if self.discrete else 0.0
        lasts = [n - step for n in numbers[1:-1]] + [numbers[-1]]
        return (np.array(numbers[:-1]) + np.array(lasts)) / 2

    def proper_code(self, value: object) -> int | None:
        number = self._read(value)
        if number is None or number != number:
            return self.null_cell
        if number < self.starts[0]:
            return 0 if self.outside is Outside.CLAMP else None
        if number > self.upper:
            return self.proper_size - 1 if self.outside is Outside.CLAMP else None
        return bisect_right(self.starts, number) - 1

    def _read(self, value: object) -> Ordered | None:
        """A number or date that can be compared with the edges; None when the value is neither."""
        if self.kind == "date":
            if isinstance(value, dt.datetime):
                return value.date()
            return value if isinstance(value, dt.date) else None
        if isinstance(value, bool | int | float | np.integer | np.floating):
            return float(value) if isinstance(value, float | np.floating) else int(value)
        return None

    def compare(self, operator: str, value: Value) -> Mask:
        constant = self._constant(value)
        if operator in ("=", "!="):
            mask = self._equal(constant)
            return mask if operator == "=" else ~mask
        cut = self._cut(constant, operator)
        if cut is None:
            raise QueryError(self._misses_edge(operator, constant))
        below = self._mask(np.arange(self.proper_size) < cut, other_is_known=False)
        return below if operator in ("<", "<=") else ~below

    def _cut(self, constant: Ordered, operator: str) -> int | None:
        """How many bins lie under the constant; None when it would cut one.

        ``x <= c`` and ``x > c`` cut after c: at the next value of a discrete attribute, nowhere in a real one.
        """
        after = operator in ("<=", ">")
        if after and constant >= self.upper:
            return self.proper_size
        if after and self.discrete:
            constant, after = self._after(constant), False
        if constant > self.upper:
            return self.proper_size
        if constant < self.starts[0]:
            return 0
        bin_of = bisect_right(self.starts, constant) - 1
        return bin_of if self.starts[bin_of] == constant and not after else None

    def _constant(self, value: Value) -> Ordered:
        wanted = type(self.starts[0])
        if wanted is dt.date:
            try:
                return value if isinstance(value, dt.date) else dt.date.fromisoformat(str(value))
            except ValueError:
                raise QueryError(f"{self.name} is a date: write it as 2024-12-31, not {value!r}") from None
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise QueryError(f"{self.name} is a number: compare it with one, not with {value!r}")
        if wanted is int and value != int(value):
            raise QueryError(f"{self.name} is an integer: compare it with one, not with {value!r}")
        return wanted(value)

    def _equal(self, constant: Ordered) -> Mask:
        if not self.discrete:
            raise QueryError(f"{self.name} is real: ask for a range, {self.name} >= a and {self.name} < b")
        if not self.starts[0] <= constant <= self.upper:
            return self._mask(np.zeros(self.proper_size, bool), other_is_known=False)
        cell = bisect_right(self.starts, constant) - 1
        end = self.starts[cell + 1] if cell + 1 < self.proper_size else self._after(self.upper)
        if self._after(constant) != end or self.starts[cell] != constant:
            whole = self.proper_labels[cell]
            raise QueryError(
                f"{self.name} = {constant} cuts the bin {whole}; ask for the whole bin as a range"
            )
        return self._mask(np.arange(self.proper_size) == cell, other_is_known=False)

    def _misses_edge(self, operator: str, constant: Ordered) -> str:
        bin_of = bisect_right(self.starts, constant) - 1
        near = [self.starts[bin_of], (*self.starts, self.upper)[bin_of + 1]]
        strict = "<" if operator in ("<", "<=") else ">="
        tries = " or ".join(f"{self.name} {strict} {edge}" for edge in near)
        if near[0] == constant:
            return f"{self.name} {operator} {constant} cuts the bin {self.proper_labels[bin_of]}: try {tries}"
        return f"{constant} is not a bin edge of {self.name}; nearest: {near[0]} and {near[1]}: try {tries}"


def _as_number(edge: Ordered) -> float:
    return float((edge - dt.date(1970, 1, 1)).days) if isinstance(edge, dt.date) else float(edge)
