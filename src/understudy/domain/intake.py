"""How the text of a column is read before it is put into a cell: what a custodian declares about its writing.

A file of text has no types. What stands in it as ``€ 1.234,50``, ``13,5%``, ``31/12/2024`` or ``N/A`` is a
number, a day or nothing by agreement, and the agreement is declared. Nothing is guessed when a table is read:
text that does not follow the declared writing cannot be read, and is counted as such for the custodian.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from understudy.domain.date_format import DateFormat
from understudy.domain.instant import read_instant
from understudy.errors import DomainError

BLANKS = " \t\n\r\v\f"
"""What is taken off around a text that is read: what every engine takes off."""

DECIMALS = ".,"
SEPARATORS = " .,'_’\u00a0\u2009\u202f"
"""What may stand between groups of digits: among them the spaces that do not break a line."""

MAX_TOKENS = 1000
"""Tokens for missing values of one attribute."""


@dataclass(frozen=True)
class Intake:
    """How a column's text is read. Empty, it is read as it stands.

    formats    ways of writing a day or a moment, of which the first that a text follows decides; without any, days
               are written 2024-12-31, and moments 2024-12-31 09:30:00
    missing    texts that stand for no value; compared without the blanks around them, upper and lower case apart
    strip      texts that are taken out of a number or a day wherever they stand, such as a currency's sign
    decimal    the mark before decimals
    thousands  the mark between groups of digits; where it stands, it must stand between groups of two or
               three digits, three in the last, so that 1.5 is not read as 15 by mistake
    percent    a number may end in a percent sign, which is taken off: 13.5% is 13.5
    """

    formats: tuple[DateFormat, ...] = ()
    missing: tuple[str, ...] = ()
    strip: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    percent: bool = False

    def __post_init__(self) -> None:
        if len(self.decimal) != 1 or self.decimal not in DECIMALS:
            raise DomainError(f"the decimal mark is a point or a comma, not {self.decimal!r}")
        if self.thousands and (len(self.thousands) != 1 or self.thousands not in SEPARATORS):
            raise DomainError(
                f"thousands are separated by a point, a comma, a blank, an apostrophe or an underscore, "
                f"not by {self.thousands!r}"
            )
        if self.thousands == self.decimal:
            raise DomainError(f"{self.decimal!r} cannot be the mark before decimals and between thousands")
        if len(self.missing) > MAX_TOKENS:
            raise DomainError(f"at most {MAX_TOKENS:,} texts can stand for missing values")
        for token in (*self.missing, *self.strip):
            if not all(character.isprintable() or character in SEPARATORS for character in token):
                raise DomainError(f"{token!r} has a character that cannot be printed")
        for text in self.strip:
            if not text or any(character in "0123456789+-" + self.decimal for character in text):
                raise DomainError(
                    f"{text!r} cannot be stripped: it is empty, or has digits, a sign or the decimal mark"
                )
        object.__setattr__(self, "missing", tuple(dict.fromkeys(t.strip(BLANKS) for t in self.missing)))
        object.__setattr__(self, "strip", tuple(sorted(set(self.strip), key=lambda text: (-len(text), text))))

    def __bool__(self) -> bool:
        return self != PLAIN

    @cached_property
    def tokens(self) -> frozenset[str]:
        """The texts that stand for no value, in both forms in which Unicode writes the same characters."""
        forms = (unicodedata.normalize(form, token) for token in self.missing for form in ("NFC", "NFD"))
        return frozenset(forms)

    @property
    def reads_text_only(self) -> tuple[str, ...]:
        """The declared keys that say nothing about a column which has a type of its own."""
        told = {
            "format": bool(self.formats), "strip": bool(self.strip), "decimal": self.decimal != ".",
            "thousands": bool(self.thousands), "percent": self.percent,
        }  # fmt: skip
        return tuple(key for key, given in told.items() if given)

    @property
    def marks_numbers(self) -> bool:
        """Whether numbers are written with other marks than a decimal point alone."""
        return self.decimal != "." or bool(self.thousands)

    @cached_property
    def number_pattern(self) -> str:
        """A regular expression for the beginning of a number with these marks, without the mark of the end."""
        point = f"[{self.decimal}]"
        whole = "[0-9]+"
        if self.thousands:
            between = f"[{self.thousands}]"
            whole = f"(?:[0-9]{{1,3}}(?:{between}[0-9]{{2,3}})*{between}[0-9]{{3}}|[0-9]+)"
        return rf"^[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"

    def value(self, text: str, kind: str) -> str | float | dt.date | None:
        """What a text says for an attribute of a kind; None where it says nothing, or cannot be read.

        This is the rule that every engine's reading must agree with, for numbers of at most 300 digits.
        """
        if text.strip(BLANKS) in self.tokens:
            return None
        if kind in ("category", "boolean"):
            return text
        bare = self._bare(text)
        if kind == "date":
            formats = self.formats or (DateFormat("%Y-%m-%d"),)
            return next((format.read(bare) for format in formats if format.follows(bare)), None)
        if kind == "timestamp":
            if not self.formats:
                return read_instant(bare)
            return next((f.read_instant(bare) for f in self.formats if f.follows(bare)), None)
        if self.marks_numbers:
            if re.match(self.number_pattern + r"\Z", bare) is None:
                return None
            bare = bare.replace(self.thousands, "") if self.thousands else bare
            bare = bare.replace(self.decimal, ".")
        try:
            return float(bare)
        except ValueError:
            return None

    def written(self, value: float | dt.date, decimals: int | None = None, *, digits: bool = False) -> str:
        """A number or a day as this writing has it: the inverse of `value`. With `digits`, a day is one number.

        Numbers have the declared marks, so many `decimals` where these tell the number, and the sign of per cent
        where that is declared; signs of currencies are left out. A day is written in the first declared format
        that gives it back; where none does, since a year of two digits is in another century, as 2024-12-31. So is
        a moment of time, else as 2024-12-31 09:30:00.

        >>> Intake(decimal=",", thousands=".").written(1234.5, 2), Intake().written(1234.5), Intake().written(-7)
        ('1.234,50', '1234.5', '-7')
        """
        if isinstance(value, dt.date):
            moment = isinstance(value, dt.datetime)
            kind, plain = ("timestamp", value.isoformat(" ")) if moment else ("date", value.isoformat())
            formats = (format for format in self.formats if format.has_digits_alone or not digits)
            tried = (format.written(value) for format in formats)
            return next((text for text in tried if self.value(text, kind) == value), plain)
        text = f"{value:,}"
        if decimals is not None and float(fixed := f"{value:.{decimals}f}") == value:
            text = (
                f"{value:,.{decimals}f}" if fixed.strip("-0.") else f"{0:.{decimals}f}"
            )  # minus zero is zero
        marked = text.translate({ord(","): self.thousands, ord("."): self.decimal})
        return f"{marked}%" if self.percent else marked

    def _bare(self, text: str) -> str:
        for part in self.strip:
            text = text.replace(part, "")
        text = text.strip(BLANKS)
        return text.removesuffix("%").rstrip(BLANKS) if self.percent else text


PLAIN = Intake()
"""Text is read as it stands."""
