"""How a column of text is written: a guess from some of its values, for a custodian to review.

A column is what most of its values are. One in ten may be something else: a word for a missing value, or a
mistake. Nothing is guessed when a table is read: what is found here becomes part of a declaration, or nothing
does.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from math import ceil, isfinite

import numpy as np

from understudy.domain.attribute import Boolean
from understudy.domain.date_format import DateFormat
from understudy.domain.intake import BLANKS, PLAIN, Intake

MAJORITY = 0.9
"""The part of a column's values that must be of one kind for the column to be of that kind."""

TOKENS = frozenset(
    ("", "n/a", "na", "n.a.", "n.a", "#n/a", "#na", "#value!", "#ref!", "nan", "null", "nul", "none", "nil",
     "\\n", "-", "--", "---", "–", "—", ".", "..", "?", "??", "x", "unknown", "missing", "not available", "k.a.",
     "s.o.", "0000-00-00", "0000-00-00 00:00:00", "00/00/0000", "00.00.0000", "00-00-0000")
)  # fmt: skip
"""Texts, in lower case, that stand for missing values in many files."""

TICK = "x"
"""The one among them that is as often a tick: a value, where most rows have it."""

CURRENCIES = frozenset(
    ("usd", "eur", "gbp", "chf", "jpy", "sek", "nok", "dkk", "pln", "czk", "huf", "aud", "cad", "inr", "cny",
     "brl", "zar", "kr", "kr.", "fr.", "rs", "rs.", "zł", "kč", "us$", "a$", "c$", "r$")
)  # fmt: skip

MOST_DECIMALS = 6
"""Numbers with more decimals than this are taken for ones that nobody rounded."""

ROUNDED = 0.95
"""The part of a column's numbers that must have no more decimals than are declared."""

_MARKS = (
    (".", ""), (".", ","), (",", "."), (",", ""), (".", " "), (",", " "), (".", "'"), (",", "'"), (".", "’"),
    (",", "\u00a0"), (",", "\u202f"), (".", "\u00a0"), (".", "\u202f"),
)  # fmt: skip
"""Decimal marks and marks between thousands, the usual ones first: they win where the values do not tell."""

_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S", " %H:%M:%S.%f")
_DAYS = (
    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y",
    "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%d-%b-%y", "%Y.%m.%d",
)  # fmt: skip
FORMATS = (*(DateFormat(day + time) for day in _DAYS for time in _TIMES),)
SHORTEST_DAY = len("1/1/99")
COMPACT = DateFormat("%Y%m%d")

_ISO = re.compile(r"^[0-9]{4}([-/])[0-9]{1,2}\1[0-9]{1,2}($|[^0-9])")
_AMOUNT = re.compile(r"^([^0-9]*?)([.,]?[0-9](?:.*[0-9])?[.,]?)([^0-9]*)$", re.DOTALL)
_CODE = re.compile(r"^[0-9]+$")


@dataclass(frozen=True, slots=True)
class Writing:
    """What a column's text seems to be: number, date, boolean or text, how it is written, and why that was taken.

    `decimals` are those that its numbers have, where these are rounded; `words` are those of a boolean for
    true and false, where each is always spelled alike; `why` is empty where there is nothing to say.
    """

    kind: str = "text"
    intake: Intake = PLAIN
    decimals: int | None = None
    why: str = ""
    words: tuple[str, str] = Boolean.words


def is_token(text: str) -> bool:
    """Whether a text stands for a missing value in many files."""
    return text.strip(BLANKS).lower() in TOKENS


def reads_as_value(text: str) -> bool:
    """Whether a text is a number or a day, in whatever writing: no name of a column."""
    bare = text.strip(BLANKS)
    return (
        _is_number(bare)
        or bool(_ISO.match(bare))
        or _amount(bare) is not None
        or any(format.read(bare) for format in FORMATS[:: len(_TIMES)])
    )


def writing_of(sample: Sequence[str]) -> Writing:
    """How the values of a column are written, from some of them."""
    bare = [text.strip(BLANKS) for text in sample]
    ticked = sum(text.lower() == TICK for text in bare) > len(bare) / 2
    values = [text for text in bare if not is_token(text) or (ticked and text.lower() == TICK)]
    if not values:
        return Writing()
    if _share(values, lambda text: text.lower() in ("true", "false")) >= MAJORITY:
        return Writing("boolean", words=_spelled(values))
    if _share(values, lambda text: bool(_CODE.match(text))) >= MAJORITY:
        return _of_digits(values)
    if _share(values, _is_number) >= MAJORITY:
        return _of_numbers(values)
    if _share(values, _is_iso) >= MAJORITY:
        return Writing("date")
    return _of_days(values) or _of_amounts(values) or Writing()


def _spelled(values: Sequence[str]) -> tuple[str, str]:
    """The words for true and false; the usual ones where one is spelled in several ways, or does not occur."""
    true, false = ({text for text in values if text.lower() == word} for word in Boolean.words)
    return (true.pop(), false.pop()) if len(true) == len(false) == 1 else Boolean.words


def _share(values: Sequence[str], holds: Callable[[str], bool]) -> float:
    return sum(map(holds, values)) / len(values)


def _of_digits(values: Sequence[str]) -> Writing:
    """Whole numbers, days without marks, or codes that must not lose their zeros."""
    digits = [text for text in values if _CODE.match(text)]
    if any(len(text) > 1 and text.startswith("0") for text in digits):
        return Writing(why="codes with leading zeros stay text")
    if _share(values, lambda text: len(text) == 8 and _is_recent(COMPACT.read(text))) >= 0.98:
        return Writing("date", Intake((COMPACT,)), why=f"days are written {COMPACT.text}")
    return _of_numbers(values)


def _of_numbers(values: Sequence[str]) -> Writing:
    return Writing("number", decimals=_decimals([text for text in values if _is_number(text)], "."))


def _is_recent(day: dt.date | None) -> bool:
    return day is not None and 1900 <= day.year <= 2100


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text)) and text[-1:] in "0123456789."
    except ValueError:
        return False


def _is_iso(text: str) -> bool:
    if not _ISO.match(text):
        return False
    year, month, day = (int(part) for part in re.findall("[0-9]+", text)[:3])
    try:
        dt.date(year, month, day)
    except ValueError:
        return False
    return True


def _may_be_day(text: str) -> bool:
    """Whether a text is long enough for a day in any format, and has a number that is one."""
    return len(text) >= SHORTEST_DAY and any(character.isdigit() for character in text)


def _of_days(values: Sequence[str]) -> Writing | None:
    """The formats in which most values are days: the best one, and others that read a hundredth more."""
    if _share(values, _may_be_day) < MAJORITY:  # some hundred formats need not be tried
        return None
    begun = values[:50]
    likely = [format for format in FORMATS if any(format.read(text) for text in begun)]
    left, taken = list(values), list[DateFormat]()
    alike = ""
    while likely and left:
        counts = [sum(format.read(text) is not None for text in left) for format in likely]
        most = max(counts)
        if most < max(len(values) / 100, 1):
            break
        best = [format for format, count in zip(likely, counts, strict=True) if count == most]
        if not taken and len(best) > 1:
            alike = f"; {best[1].text} reads them as well, so look which it is"
        taken.append(best[0])
        left = [text for text in left if best[0].read(text) is None]
        likely = [format for format in likely if format is not best[0]]
    if not taken or 1 - len(left) / len(values) < MAJORITY:
        return None
    written = " or ".join(format.text for format in taken)
    return Writing("date", Intake(tuple(taken)), why=f"days are written {written}{alike}")


def _amount(text: str) -> tuple[tuple[str, ...], str, bool] | None:
    """A number with a currency or a percent sign: what is to be stripped, the rest, and whether it is percent."""
    found = _AMOUNT.match(text)
    if found is None:
        return None
    around = (found[1] + " " + found[3]).replace("+", " ").replace("-", " ")
    percent = found[3].rstrip(BLANKS).endswith("%")
    if percent:
        around = around.replace("%", " ", 1)
    spaces = tuple(sorted(set(around) & {"\u00a0", "\u2009", "\u202f"}))
    parts = around.split()
    if not all(_is_currency(part) for part in parts) or (not parts and not percent and spaces):
        return None
    strip = (*dict.fromkeys(parts), *spaces)
    if any(not set(part).isdisjoint("0123456789+-.,") and part.lower() not in CURRENCIES for part in strip):
        return None
    rest = text
    for part in sorted(strip, key=len, reverse=True):
        rest = rest.replace(part, "")
    return strip, rest, percent


def _is_currency(part: str) -> bool:
    return part.lower() in CURRENCIES or all(unicodedata.category(character) == "Sc" for character in part)


def _of_amounts(values: Sequence[str]) -> Writing | None:
    """Numbers with other marks than a decimal point, with a currency, or with percent signs."""
    read = [amount for text in values if (amount := _amount(text)) is not None]
    if len(read) < MAJORITY * len(values):
        return None
    strip = tuple(
        dict.fromkeys(part for parts, _, _ in read for part in parts if "." not in part and "," not in part)
    )
    percent = any(percent for _, _, percent in read)
    best, most = None, 0
    for decimal, thousands in _MARKS:
        tried = Intake(strip=strip, decimal=decimal, thousands=thousands, percent=percent)
        count = sum(tried.value(text, "real") is not None for text in values)
        if count > most:
            best, most = tried, count
    if best is None or most < MAJORITY * len(values):
        return None
    grouped = bool(best.thousands) and any(best.thousands in rest for _, rest, _ in read)
    intake = best if grouped else Intake(strip=strip, decimal=best.decimal, percent=percent)
    said = []
    if strip:
        said.append(f"{' and '.join(map(repr, strip))} is taken out")
    if intake.decimal != ".":
        said.append("decimals stand after a comma")
    if intake.thousands:
        said.append(f"thousands stand apart by {intake.thousands!r}")
    if percent:
        said.append("13.5% is read as 13.5")
    rest = [
        amount[1] for text in values if intake.value(text, "real") is not None and (amount := _amount(text))
    ]
    decimals = _decimals(rest, intake.decimal, of=2 if strip else None)
    return Writing("number", intake, decimals, ", ".join(said))


def decimals_of(numbers: Sequence[float | Decimal], *, single: bool = False) -> int | None:
    """How many decimals rounded numbers have, in their shortest writing; None where nobody rounded them.

    None also of whole numbers. With `single` they are floats of 32 bits.
    """
    kind = np.float32 if single else np.float64
    written = [
        f"{number:f}" if isinstance(number, Decimal) else np.format_float_positional(kind(number), trim="-")
        for number in numbers
        if isfinite(number)
    ]
    return _decimals(written, ".")


def _decimals(values: Sequence[str], mark: str, of: int | None = None) -> int | None:
    """The decimals that all but a few values stay within, where these are few; `of` where that is the most.

    Files leave zeros at the end out, so that 5.7 may stand beside 5.73. Where all but a few are whole, it is the
    most that any has.
    """
    counts = sorted(map(partial(_decimals_in, mark=mark), values))
    if not counts or counts[-1] == 0:
        return None
    if of is not None:
        return of if counts[-1] <= of else None
    found = counts[ceil(ROUNDED * len(counts)) - 1] or counts[-1]
    return found if found <= MOST_DECIMALS else None


def _decimals_in(text: str, mark: str) -> int:
    """The decimals of one number; one with an exponent has more than anybody rounds to."""
    if "e" in text.lower():
        return MOST_DECIMALS + 1
    return len(text.rstrip("% ").rpartition(mark)[2]) if mark in text else 0
