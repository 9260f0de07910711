"""A place in a YAML file: what stands there, as the kind of value that is expected, or a complaint that names it.

YAML is walked as nodes, not as Python values: each field knows what it expects, so a category written `no` stays
the text "no", and a key that is not understood is an error, never ignored.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import NoReturn, TypeVar

import yaml

from understudy.domain.instant import read_instant
from understudy.errors import DeclarationError, DomainError, ParameterError, QueryError

MAX_BYTES = 16 << 20
"""Of a file that people write."""

Result = TypeVar("Result")


def text_of(path: Path, *, absent: str, large: str, most: int = MAX_BYTES) -> str:
    """The text of a file that people write, of so many bytes at `most`.

    `absent` and `large` are remedies where there is no file, or too much in it.
    """
    try:
        if path.stat().st_size > most:
            raise DeclarationError(f"the file is larger than {most >> 20} MiB", remedy=large, file=str(path))
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DeclarationError("there is no such file", remedy=absent, file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DeclarationError(
            f"the file cannot be read ({type(error).__name__})",
            remedy="It must be UTF-8 text",
            file=str(path),
        ) from None


def root_of(text: str, *, file: str, empty: str, otherwise: str = "not YAML") -> Node:
    """The outermost node of a YAML text; `empty` is the remedy where the text holds nothing.

    A text that cannot be read is said to be what `otherwise` says.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise DeclarationError(
            f"this is {otherwise}: {getattr(error, 'problem', None) or 'it cannot be parsed'}",
            remedy="Check indentation, colons and brackets",
            line=None if mark is None else mark.line + 1,
            file=file,
        ) from None
    except RecursionError:
        raise DeclarationError("the YAML is nested too deeply", remedy="Flatten it", file=file) from None
    except (ValueError, OverflowError):  # an escape beyond Unicode
        raise DeclarationError(
            f"this is {otherwise}: an escape stands for no character",
            remedy="Write the character itself",
            file=file,
        ) from None
    if root is None:
        raise DeclarationError("the file is empty", remedy=empty, file=file)
    return Node(root, "", file)


@dataclass(frozen=True)
class Node:
    """A YAML node that knows where it stands."""

    yaml: yaml.Node
    field: str
    file: str

    def fail(self, problem: str, remedy: str) -> NoReturn:
        mark = self.yaml.start_mark  # of what was never text there is none
        line = None if mark is None else mark.line + 1
        raise DeclarationError(problem, remedy=remedy, field=self.field, line=line, file=self.file)

    def guard(self, build: Callable[[], Result], remedy: str) -> Result:
        """Build a value; what it complains about is reported at this place."""
        try:
            return build()
        except (DomainError, ParameterError, QueryError) as error:
            self.fail(str(error), remedy)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written here: no value, or a mapping or list of none."""
        return not self.yaml.value or self.yaml.tag == "tag:yaml.org,2002:null"

    def mapping(self, known: tuple[str, ...] | None) -> dict[str, Node]:
        """The children by key; unknown and repeated keys are refused."""
        if not isinstance(self.yaml, yaml.MappingNode):
            self.fail("expected `key: value` lines here", "Write a mapping")
        children: dict[str, Node] = {}
        for key, value in self.yaml.value:
            place = Node(key, self.field, self.file)
            name = place.text()
            if name in children:
                place.fail(f"{name!r} stands here twice", "Keep one of them")
            if known is not None and name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"Did you mean {close[0]!r}?" if close else f"Known here: {', '.join(known)}"
                place.fail(f"{name!r} is not understood", hint)
            children[name] = Node(value, f"{self.field}.{name}" if self.field else name, self.file)
        return children

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Keys and values of a mapping whose keys are data."""
        if not isinstance(self.yaml, yaml.MappingNode):
            self.fail("expected `value: value` pairs here", "Write a mapping")
        for key, value in self.yaml.value:
            yield Node(key, self.field, self.file), Node(value, self.field, self.file)

    def items(self) -> Iterator[Node]:
        if not isinstance(self.yaml, yaml.SequenceNode):
            self.fail("expected a list here", "Write it as [a, b, c]")
        for i, item in enumerate(self.yaml.value):
            yield Node(item, f"{self.field}[{i}]", self.file)

    def text(self) -> str:
        """The scalar as it is written, before YAML makes a boolean or a date of it."""
        if not isinstance(self.yaml, yaml.ScalarNode):
            self.fail("expected a single value here", "Write one word, number or quoted text")
        return self.yaml.value

    def choice(self, options: tuple[str, ...]) -> str:
        text = self.text()
        if text not in options:
            self.fail(f"{text!r} is not one of the choices", f"Write one of: {', '.join(options)}")
        return text

    def flag(self) -> bool:
        return self.choice(("true", "false")) == "true"

    def integer(self) -> int:
        text = self.text().replace("_", "")
        if not re.fullmatch(r"[+-]?\d{1,30}", text):
            self.fail(f"{self.text()!r} is not a whole number", "Write digits, such as 100")
        return int(text)

    def number(self) -> Fraction:
        text = self.text().replace("_", "")
        try:
            value = Decimal(text)
        except InvalidOperation:
            value = Decimal("nan")
        if not value.is_finite() or abs(value.adjusted()) > 400:
            self.fail(f"{self.text()!r} is not a finite number", "Write it as 0.5 or 1e-9")
        return Fraction(value)

    def real(self) -> float:
        value = self.number()
        if abs(value) > sys.float_info.max:
            self.fail(f"{self.text()!r} is too large", "Write a number below 1e308")
        return float(value)

    def instant(self) -> dt.datetime:
        """A moment of time in whole seconds; an offset is brought to UTC, and a day is its midnight."""
        found = read_instant(self.text().strip(), fraction=True)
        if found is None or found.microsecond:
            self.fail(
                f"{self.text()!r} is not a moment in whole seconds",
                'Write it as "2024-12-31 09:30:00", in UTC, or with an offset such as +02:00',
            )
        return found

    def date(self) -> dt.date:
        try:
            return dt.date.fromisoformat(self.text())
        except ValueError:
            self.fail(f"{self.text()!r} is not a day", "Write it as 2024-12-31")
