"""How days are written: formats in the notation of `strptime`, as regular expressions that every engine has.

A format reads the same days on every engine, and in Python, because all of them are given the same patterns:
runs of ASCII digits, English names of months, and the characters between them. A field of one or two digits
may lack its leading zero, unless it touches another field of digits (``%Y%m%d``).
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import cached_property

from understudy.domain.instant import DAY_SECONDS, read_instant
from understudy.errors import DomainError

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

PIVOT = 69
"""A year of two digits from here on is in the 20th century, one below in the 21st (POSIX)."""

_NUMBERS = {
    "d": ("0?[1-9]|[12][0-9]|3[01]", "0[1-9]|[12][0-9]|3[01]"),
    "m": ("0?[1-9]|1[0-2]", "0[1-9]|1[0-2]"),
    "y": ("[0-9]{2}", "[0-9]{2}"),
    "Y": ("[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9]",) * 2,
    **dict.fromkeys("HIMS", ("[0-9]{1,2}", "[0-9]{2}")),
    "f": ("[0-9]{1,9}", "[0-9]{1,9}"),
}
"""Fields of digits: as they may stand, and as they must stand beside another field of digits."""

_WORDS = {
    "b": MONTHS,
    "B": _LONG_MONTHS,
    "a": tuple(day[:3] for day in _WEEKDAYS),
    "A": _WEEKDAYS,
    "p": ("am", "pm"),
}
_ZONE = "(?:[zZ]|[+-][0-9]{2}:?[0-9]{2})"
_BLANK = "[ ]+"

_FIELD = re.compile(r"%(.)|([^%])", re.DOTALL)

YEARS, MONTH_NUMBERS, MONTH_NAMES, DAYS = ("Y", "y"), ("m",), ("b", "B"), ("d",)
"""Fields that say the year, the month in digits, the month by its name, and the day of the month."""

MINUTE_SECONDS, HOUR_SECONDS = 60, 3600

TIMES = ("H", "I", "M", "S", "p", "z")
"""Fields that say the time of day, in whole seconds."""


@dataclass(frozen=True)
class DateFormat:
    """One way of writing a day, such as ``%d/%m/%Y`` or ``%d %b %Y %H:%M``, or a moment (`read_instant`).

    Known fields: %d %m %b %B %y %Y, and of the time %H %I %M %S %f %p %z, and the weekday %a %A. Names are
    English, in upper or lower case. A year of two digits is between 1969 and 2068. The day is the one that is
    written, in whatever time zone it was written, and the time of day is read over. A moment is brought to UTC
    where the format has a %z, and taken as it stands where it has none; what the format does not say is 0.
    """

    text: str

    def __post_init__(self) -> None:
        fields = self.fields
        for known in (YEARS, MONTH_NUMBERS + MONTH_NAMES, DAYS):
            if sum(fields.count(field) for field in known) != 1:
                raise DomainError(
                    f"the format {self.text!r} must say the day, the month and the year, each once",
                    remedy="such as %d/%m/%Y",
                )
        if len(set(fields)) < len(fields):
            raise DomainError(f"the format {self.text!r} has a field twice")

    @cached_property
    def _parts(self) -> tuple[tuple[str, str], ...]:
        """Fields and what stands between them: (letter, "") or ("", character)."""
        parts: list[tuple[str, str]] = []
        place = 0
        while place < len(self.text):
            found = _FIELD.match(self.text, place)
            if found is None or not (found[0] == "%%" or found[2] or _is_known(found[1])):
                raise DomainError(
                    f"the format {self.text!r} is not understood at {self.text[place : place + 2]!r}",
                    remedy="fields are %d %m %b %B %y %Y %H %I %M %S %f %p %z %a %A",
                )
            character = "%" if found[0] == "%%" else found[2]
            if character and not character.isprintable():
                raise DomainError(f"the format {self.text!r} has a character that cannot be printed")
            parts.append(("", character) if character else (found[1], ""))
            place = found.end()
        return tuple(parts)

    @property
    def fields(self) -> tuple[str, ...]:
        """The letters of its fields, in order."""
        return tuple(field for field, _ in self._parts if field)

    @property
    def seconds(self) -> int:
        """From one moment that it tells to the next: 60 where it says minutes and no seconds.

        >>> [DateFormat(text).seconds for text in ("%d/%m/%Y", "%d/%m/%Y %I %p", "%d/%m/%Y %H:%M", "%Y%m%d%H%M%S")]
        [86400, 3600, 60, 1]
        """
        said = self.fields
        if "H" not in said and "I" not in said:
            return DAY_SECONDS
        return HOUR_SECONDS if "M" not in said else MINUTE_SECONDS if "S" not in said else 1

    @property
    def has_digits_alone(self) -> bool:
        """Whether what it writes is one row of digits, as 20241231 is."""
        return all(field in _NUMBERS for field, _ in self._parts)

    def pattern(self, capture: tuple[str, ...] = ()) -> str:
        """A regular expression for the beginning of a text, without the mark of the end.

        The fields that are among `capture` are its only groups.
        """
        written = "^"
        previous = ""
        for i, (field, character) in enumerate(self._parts):
            if character == " ":
                written += "" if previous == " " else _BLANK
                previous = " "
                continue
            previous = field or character
            if not field:
                written += _escaped(character)
                continue
            inner = self._field(i)
            written += f"({inner})" if field in capture else inner
        return written

    def _field(self, i: int) -> str:
        field = self._parts[i][0]
        if field in _WORDS:
            return "(?:" + "|".join(_any_case(word) for word in _WORDS[field]) + ")"
        if field == "z":
            return _ZONE
        beside = [self._parts[j][0] for j in (i - 1, i + 1) if 0 <= j < len(self._parts)]
        return f"(?:{_NUMBERS[field][any(neighbour in _NUMBERS for neighbour in beside)]})"

    @cached_property
    def _whole(self) -> tuple[re.Pattern[str], tuple[int, int, int]]:
        """An expression for a whole text, and the numbers of its groups for the year, the month and the day."""
        kinds = (YEARS, MONTH_NUMBERS + MONTH_NAMES, DAYS)
        named = [field for field in self.fields if any(field in kind for kind in kinds)]
        year, month, day = (next(i for i, field in enumerate(named, 1) if field in kind) for kind in kinds)
        return re.compile(self.pattern(tuple(named)) + r"\Z"), (year, month, day)

    def follows(self, text: str) -> bool:
        """Whether a text without blanks around it is written in this format, be it a day of no calendar."""
        return self._whole[0].match(text) is not None

    def read(self, text: str) -> dt.date | None:
        """The day that a text without blanks around it says; None where it says none in this format."""
        expression, places = self._whole
        found = expression.match(text)
        if found is None:
            return None
        written, named, day = (found[place] for place in places)
        year = int(written)
        if "y" in self.fields:
            year += 1900 if year >= PIVOT else 2000
        month = int(named) if "m" in self.fields else MONTHS.index(named[:3].lower()) + 1
        try:
            return dt.date(year, month, int(day))
        except ValueError:
            return None

    def read_instant(self, text: str) -> dt.datetime | None:
        """The moment in UTC that a text without blanks around it says, in whole seconds; None where it says none.

        >>> DateFormat("%d/%m/%Y %I:%M %p").read_instant("29/2/2024 12:05 am")
        datetime.datetime(2024, 2, 29, 0, 5)
        """
        day = self.read(text)
        times = tuple(field for field in self.fields if field in TIMES)
        found = re.match(self.pattern(times) + r"\Z", text)
        if day is None or found is None:
            return None
        said = dict(zip(times, found.groups(), strict=True))
        hour = said.get("H", said.get("I", "0"))
        if "I" in said and "H" not in said:
            if not 1 <= int(hour) <= 12:
                return None
            half = 12 if said.get("p", "").lower() == "pm" else 0
            hour = str(int(hour) % 12 + half) if "p" in said else hour
        clock = f"{int(hour):02}:{int(said.get('M', 0)):02}:{int(said.get('S', 0)):02}"
        return read_instant(f"{day.isoformat()} {clock}{said.get('z', '')}")

    def written(self, day: dt.date) -> str:
        """The day, or the moment in UTC, as this format writes it; a day is written as its midnight.

        `read` gives the day back, except that a year of two digits tells only those from 1969 to 2068.

        >>> [DateFormat(text).written(dt.date(1987, 3, 9)) for text in ("%d/%m/%Y", "%a %d-%b-%y")]
        ['09/03/1987', 'Mon 09-Mar-87']
        """
        at = day if isinstance(day, dt.datetime) else dt.datetime.combine(day, dt.time())
        texts = {
            "d": f"{day.day:02}", "m": f"{day.month:02}", "Y": f"{day.year:04}", "y": f"{day.year % 100:02}",
            "b": MONTHS[day.month - 1].title(), "B": _LONG_MONTHS[day.month - 1].title(),
            "a": _WEEKDAYS[day.weekday()][:3].title(), "A": _WEEKDAYS[day.weekday()].title(),
            "H": f"{at.hour:02}", "I": f"{(at.hour + 11) % 12 + 1:02}", "M": f"{at.minute:02}",
            "S": f"{at.second:02}", "f": "000000", "p": "PM" if at.hour >= 12 else "AM", "z": "+0000",
        }  # fmt: skip
        return "".join(texts[field] if field else character for field, character in self._parts)


def _is_known(letter: str | None) -> bool:
    return letter is not None and (letter in _NUMBERS or letter in _WORDS or letter == "z")


def _any_case(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter}]" for letter in word)


def _escaped(character: str) -> str:
    return "\\" + character if character.isascii() and not character.isalnum() else character
