"""An attribute: a column cut into finitely many public cells.

Cells are declared, never inferred: every value of every row falls into exactly one of them, by a rule that is
fixed before the table is opened. So nothing about an attribute (its size, its labels, an error it raises) can
depend on the data.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from math import isnan
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.domain.intake import BLANKS, PLAIN, Intake
from understudy.errors import DomainError, QueryError

Value = str | int | float | bool | dt.date
"""A public constant: a category, or a number or date on an ordered attribute."""

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


WHOLE_FLOAT = 2**53
"""Up to here every whole number is a float of 64 bits."""


class Outside(StrEnum):
    """Where a value goes that no declared cell holds."""

    CLAMP = "clamp"
    OTHER = "other"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Mask:
    """The cells where a condition surely holds and those where it surely does not (Kleene's logic).

    `true` and `false` are arrays with a truth value for each cell. In neither: the null cell, and for ordered
    attributes the `other` cell, whose side nobody knows.
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


def as_asked(name: str) -> str:
    """An attribute's name as a question has it: an unusual one in double quotes.

    >>> as_asked("age"), as_asked("income (€)")
    ('age', '"income (€)"')
    """
    return name if re.fullmatch(r"[^\W\d]\w*", name) else '"' + name.replace('"', '""') + '"'


def spellings(text: str) -> tuple[str, ...]:
    """The same characters composed and decomposed: the two forms in which files hold them."""
    return tuple(sorted({same_text(text), unicodedata.normalize("NFD", text)}))


@dataclass(frozen=True, kw_only=True)
class Attribute(ABC):
    """A column of the table cut into finitely many public cells, then `other` and `null` where declared.

    `name` is what questions call it, and `column` what the table does, where that differs. `outside` says where a
    value goes that no declared cell holds; `null` says that missing values have a cell of their own. `intake` says
    how the column's text is read. `unreadable` is the share of the rows that may be unreadable before the
    custodian's reading of the table fails; None stands for what is declared for the whole table. Raises a
    `DomainError` where the name is empty or has spaces around it, where there is no such `outside`, or it is
    `null` and missing values have no cell, and where `unreadable` is no share.
    """

    name: str
    column: str = ""
    outside: Outside
    null: bool = False
    # Not in the representation: the names that version 0.1 gave to attributes were made of it.
    intake: Intake = field(default=PLAIN, repr=False)
    unreadable: Fraction | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.strip():
            raise DomainError(f"an attribute needs a name without spaces around it, not {self.name!r}")
        object.__setattr__(self, "name", same_text(self.name))
        object.__setattr__(self, "column", self.column or self.name)
        if self.outside not in tuple(Outside):
            raise DomainError(f"{self.name}: `outside` is clamp, other or null, not {self.outside!r}")
        object.__setattr__(self, "outside", Outside(self.outside))
        if self.outside is Outside.NULL and not self.null:
            raise DomainError(f"{self.name}: `outside: null` needs a null cell", remedy="add `null: true`")
        if self.unreadable is not None and not 0 <= self.unreadable <= 1:
            raise DomainError(f"{self.name}: a share of the rows is between 0 and 1, not {self.unreadable}")

    @property
    @abstractmethod
    def proper_labels(self) -> tuple[str, ...]:
        """Labels of the declared cells, without `other` and `null`."""

    @abstractmethod
    def proper_code(self, value: object) -> int | None:
        """The position of the declared cell of a `value` that is not missing; None when it lies in none."""

    @abstractmethod
    def compare(self, operator: str, value: Value) -> Mask:
        """The cells where ``attribute operator value`` holds; a `QueryError` where it would cut a cell.

        `operator` is one of =, !=, <, <=, > and >=, and `value` what the cells' values are compared with.
        """

    @property
    @abstractmethod
    def kind(self) -> str:
        """The word for it in a declaration file."""

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The names of all cells: the declared ones, then those of other and of missing values, if any."""
        other = [self.other_label] if self.outside is Outside.OTHER else []
        return (*self.proper_labels, *other, *([self.null_label] if self.null else []))

    @cached_property
    def other_label(self) -> str:
        """What the cell of values that are not declared is called, where there is one: a name of no other cell."""
        return unique_label("other", self.proper_labels)

    @cached_property
    def null_label(self) -> str:
        """What the cell of missing values is called, where there is one: a name of no other cell."""
        return unique_label("null", self.proper_labels)

    @cached_property
    def size(self) -> int:
        """The number of all cells."""
        return self.proper_size + (self.outside is Outside.OTHER) + self.null

    @cached_property
    def identity(self) -> str:
        """A name for the attribute with its column and its cells: another one when it is read or cut otherwise."""
        return f"{self.name} {sha256(self.meaning.encode()).hexdigest()[:16]}"

    @property
    def meaning(self) -> str:
        """All that decides which cell a value falls into."""
        return f"{self!r} {self.intake!r}" if self.intake else repr(self)

    @cached_property
    def proper_size(self) -> int:
        """The number of cells, those for other and for missing values apart."""
        return len(self.proper_labels)

    @property
    def null_cell(self) -> int:
        """The position of the cell for missing values: the null cell, else the `other` cell, else the first."""
        if self.null:
            return self.size - 1
        return self.proper_size if self.outside is Outside.OTHER else 0

    @property
    def outside_cell(self) -> int:
        """The position of the cell for values that no declared cell holds, where they are not clamped."""
        return self.null_cell if self.outside is Outside.NULL else self.proper_size

    def code(self, value: object) -> int:
        """The position of the cell of a `value`: the rule that every engine's encoding must agree with.

        A missing value and a number that is not one (NaN) go to `null_cell`. Where cells are not ordered, a float
        is read as the whole number that it is, and as nothing declared where it is none: frames hold whole numbers
        as floats where some are missing. Text is read as `intake` says, where that says anything.
        """
        if isinstance(value, str) and self.intake:
            value = self.intake.value(value, self.kind)
        if value is None or (isinstance(value, float) and isnan(value)):
            return self.null_cell
        if isinstance(value, float) and self.kind in ("category", "boolean"):
            if not (abs(value) <= WHOLE_FLOAT and value.is_integer()):
                return self.outside_cell if self.kind == "category" else self.null_cell
            value = int(value)
        code = self.proper_code(value)
        return self.outside_cell if code is None else code

    def is_null(self) -> Mask:
        """The cell of missing values, as a mask of cells; no cell where missing values are not declared."""
        true = np.zeros(self.size, bool)
        if self.null:
            true[-1] = True
        return Mask(true, ~true)

    def _equals(self, cell: int, operator: str) -> Mask:
        """The mask of an unordered attribute's comparison with one of its cells."""
        if operator not in ("=", "!="):
            raise QueryError(
                f"{self.name} is not ordered", remedy=f"compare it with =, != or in, not {operator}"
            )
        mask = self._mask(np.arange(self.proper_size) == cell, other_is_known=True)
        if cell == self.proper_size:  # the cell of all other values, asked for by its label
            mask.true[cell], mask.false[cell] = True, False
        return mask if operator == "=" else ~mask

    def _mask(self, cells: NDArray[np.bool_], *, other_is_known: bool) -> Mask:
        true = np.zeros(self.size, bool)
        false = np.zeros(self.size, bool)
        true[: self.proper_size] = cells
        false[: self.proper_size] = ~cells
        if self.outside is Outside.OTHER and other_is_known:
            false[self.proper_size] = True
        return Mask(true, false)


def unique_label(word: str, taken: Collection[str]) -> str:
    """The word, in as many brackets as it takes to be none of the names that are taken.

    >>> unique_label("other", ["red"]), unique_label("other", ["red", "other"])
    ('other', '(other)')
    """
    while word in taken:
        word = f"({word})"
    return word


MOST_NAMED = 12
"""Choices that a message names, all of them; of more it names the nearest, and says where all are listed."""


def close_to(value: str, known: Sequence[str]) -> tuple[str, ...]:
    """Up to three of the known names, those most like `value` first, whatever their case; else the first five."""
    alike = {name.casefold(): name for name in reversed(known)}
    found = difflib.get_close_matches(value.casefold(), list(alike)[::-1], n=3, cutoff=0.5)
    return tuple(alike[name] for name in found) or tuple(known[:5])


def listed(close: Sequence[str], known: Sequence[str], where: str) -> str:
    """Names in a row, the close ones first and all of a few; of many, the close ones and `where` all of them are.

    >>> listed(["smoker"], ["age", "sex", "smoker"], "`domain.names`")
    'smoker, age, sex'
    >>> listed(["Town 7"], [f"Town {i}" for i in range(40)], "`domain.names`")
    'Town 7, … (40 in all: see the declaration, or `domain.names` in Python)'
    """
    if len(known) <= MOST_NAMED:
        return ", ".join((*close, *(name for name in known if name not in close)))
    return f"{', '.join(close)}, … ({len(known):,} in all: see the declaration, or {where} in Python)"


@dataclass(frozen=True, kw_only=True)
class Categories(Attribute):
    """An unordered attribute: one cell for each declared value, of which there is at least one.

    `values` are the declared ones, as text, in the order of their cells. Values are compared as text, whichever
    way Unicode writes its characters. One that is not declared goes to a cell of its own, `other`, or where
    `outside` is `null` to the missing values. Raises a `DomainError` where a value is declared twice, or where
    `outside` is `clamp`.

    >>> Categories(name="colour", values=("red", "blue"), null=True).labels
    ('red', 'blue', 'other', 'null')
    """

    values: tuple[str, ...]
    outside: Outside = Outside.OTHER

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.values:
            raise DomainError(f"{self.name}: a category needs at least one value")
        if self.outside is Outside.CLAMP:
            raise DomainError(
                f"{self.name}: categories have no nearest value to clamp to",
                remedy="use `outside: other` or `null`",
            )
        seen: dict[str, str] = {}
        for value in self.values:
            if same_text(value) in seen:
                raise DomainError(f"{self.name}: the value {value!r} is declared twice (as Unicode text)")
            seen[same_text(value)] = value
        object.__setattr__(self, "values", tuple(seen))

    @property
    def kind(self) -> str:
        """The type of the attribute: `category`."""
        return "category"

    @property
    def proper_labels(self) -> tuple[str, ...]:
        """The declared values."""
        return self.values

    @cached_property
    def _index(self) -> dict[str, int]:
        return {text: cell for cell, value in enumerate(self.values) for text in spellings(value)}

    def proper_code(self, value: object) -> int | None:
        """The position of the cell of a `value`; None where the value is not declared."""
        return self._index.get(str(value).lower() if isinstance(value, bool) else str(value))

    def compare(self, operator: str, value: Value) -> Mask:
        """The cells that equal a declared `value`, or differ from it; raises a `QueryError` for any other value.

        `operator` is = or !=; any other is refused with a `QueryError`, as the values have no order. The cell of
        all other values may be named by its label, which is `other`, unless that is a declared value.
        """
        cell = self.proper_code(value)
        if cell is None and self.outside is Outside.OTHER and value == self.other_label:
            return self._equals(self.proper_size, operator)
        if cell is None:
            close = close_to(str(value), self.values)
            raise QueryError(
                f"{value!r} is not a declared value of {self.name}",
                remedy=f"try: {listed(close, self.values, f'`domain[{self.name!r}].values`')}",
                suggestions=close,
            )
        return self._equals(cell, operator)


USUAL_WORDS = ("true", "false")
"""What true and false are called where nothing else is declared."""


@dataclass(frozen=True, kw_only=True)
class Boolean(Attribute):
    """A yes-or-no attribute: the cells false and true.

    Text is read as `TRUE` and `FALSE` list it, in any case. Anything else counts as missing: it goes to the null
    cell where `null` is true, else to the cell false. `words` are the two texts by which synthetic rows say true
    and false; a `DomainError` is raised where they are not two texts, and where others than the usual ones are not
    read as that.

    >>> Boolean(name="smoker").labels, Boolean(name="smoker").code("Yes")
    (('false', 'true'), 1)
    """

    outside: Outside = field(default=Outside.CLAMP, init=False)
    # Not in the representation, of which names in ledgers are made: it decides no cell.
    words: tuple[str, str] = field(default=USUAL_WORDS, repr=False)

    TRUE: ClassVar = ("true", "t", "yes", "y", "1")
    FALSE: ClassVar = ("false", "f", "no", "n", "0")

    def __post_init__(self) -> None:
        super().__post_init__()
        given: object = self.words
        if (
            not isinstance(given, tuple | list)
            or len(given) != 2
            or not all(isinstance(word, str) for word in given)
        ):
            raise DomainError(
                f"{self.name}: `words` are two texts, not {given!r}",
                remedy="name the word for true, then the one for false, as in words=('yes', 'no')",
            )
        object.__setattr__(self, "words", tuple(given))
        if self.words == USUAL_WORDS:  # a table may take `false` for a missing value
            return
        for word, told, known in zip(self.words, USUAL_WORDS, (self.TRUE, self.FALSE), strict=True):
            if word.lower() not in known or word in self.intake.tokens:
                raise DomainError(
                    f"{self.name}: {word!r} is not read as {told}",
                    remedy=f"name the word for true, then the one for false; {told} is any of {', '.join(known)}",
                )

    @property
    def kind(self) -> str:
        """The type of the attribute: `boolean`."""
        return "boolean"

    @property
    def proper_labels(self) -> tuple[str, ...]:
        """The names of the two cells."""
        return ("false", "true")

    def proper_code(self, value: object) -> int:
        """The position of the cell of a `value`: 0 for false, 1 for true, else that of missing values."""
        text = str(value).strip(BLANKS).lower()
        return 1 if text in self.TRUE else 0 if text in self.FALSE else self.null_cell

    def compare(self, operator: str, value: Value) -> Mask:
        """The cells that equal a truth `value`, or differ from it: true or false, or a word of `TRUE` or `FALSE`.

        `operator` is = or !=. Raises a `QueryError` for any other operator, and where the value is no truth value.
        """
        text = str(value).strip(BLANKS).lower()
        if text not in self.TRUE + self.FALSE:
            raise QueryError(
                f"{self.name} is a boolean", remedy=f"compare it with true or false, not {value!r}"
            )
        return self._equals(int(text in self.TRUE), operator)
