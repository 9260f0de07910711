"""Shares of a budget: what one analyst, one day or one month may take of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from types import MappingProxyType
from unicodedata import normalize

from understudy.errors import ParameterError
from understudy.percent import percent_of
from understudy.privacy.cost import UNITS, Cost
from understudy.rational import positive

EVERYBODY_ELSE = "*"
"""Among the limits of named analysts: what each of those may take who are not named."""


MAX_NAME = 200
"""Characters of the name of an analyst or a request: what every store of ledgers can keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What some may take of a budget, in its own currency. Limits only narrow: the budget itself binds everybody.

    analyst   what each analyst may take
    analysts  what each named analyst may take; `*` stands for each of those who are not named. It is given instead
              of `analyst`. A limit of 0 leaves what costs nothing. Without a `*`, whoever is not named is bound by
              the other limits and the budget alone.
    day       what all analysts together may take in one day, of UTC
    month     and in one month

    A name is the same in whatever Unicode form it is written: é is one letter, or e and an accent. Raises a
    `ParameterError` where both `analyst` and `analysts` are given, a name is given twice or cannot be kept, or a
    limit is out of range.
    """

    analyst: Fraction | None = None
    analysts: Mapping[str, Fraction] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    day: Fraction | None = None
    month: Fraction | None = None

    def __post_init__(self) -> None:
        for name in ("analyst", "day", "month"):
            value = getattr(self, name)
            if value is not None:
                positive(value, f"the limit of a {name}" if name != "analyst" else "the limit of an analyst")
        if self.analyst is not None and self.analysts:
            raise ParameterError(
                "limits say `analyst`, for everybody, or `analysts`, by name, and not both",
                remedy=f"Write {EVERYBODY_ELSE!r} among the names for everybody else",
            )
        named: dict[str, Fraction] = {}
        for given, value in self.analysts.items():
            name = same_name(given)
            if name in named:
                raise ParameterError(f"the analyst {name!r} has two limits", remedy="Write one of them")
            named[name] = value
            if not name.isprintable() or len(name) > MAX_NAME:
                raise ParameterError(f"an analyst's name is printable text of at most {MAX_NAME} characters")
            if value < 0:
                raise ParameterError(f"the limit of the analyst {name!r} is at least 0, not {float(value):g}")
        object.__setattr__(self, "analysts", MappingProxyType(named))

    def __reduce__(self) -> tuple[object, ...]:
        return _limits, (self.analyst, dict(self.analysts), self.day, self.month)

    def of_analyst(self, analyst: str) -> Fraction | None:
        """What an analyst may take; None where no limit of analysts binds them."""
        if not self.analysts:
            return self.analyst
        return self.analysts.get(same_name(analyst), self.analysts.get(EVERYBODY_ELSE))

    def described(self, cap: Cost) -> tuple[str, ...]:
        """The limits in words, each with its part of the budget `cap`; none where nothing is limited."""
        said = [
            f"{who} may take {_shown(size)} ({cap.currency}), {_part(size, cap)}"
            for who, size in self._each()
        ]
        if self.analysts and EVERYBODY_ELSE not in self.analysts:
            said.append('analysts who are not named have no limit of their own (write "*" for them)')
        return tuple(said)

    def without_effect(self, cap: Cost) -> tuple[str, ...]:
        """What to say of each limit above the whole budget `cap`: it binds nobody, and may be meant as a part."""
        return tuple(
            f"{who} may take {_shown(size)} ({cap.currency}), which is above the whole budget and limits nothing: "
            f"a limit is an amount in {cap.currency}, not a part of the budget"
            + (f". {_shown(100 * size)}% of it would be {float(size) * cap.amount:.3g}" if size <= 1 else "")
            for who, size in self._each()
            if size * UNITS > cap.units
        )

    def _each(self) -> Iterator[tuple[str, Fraction]]:
        """Every limit: in words whose it is, and its size."""
        if self.analyst is not None:
            yield "each analyst", self.analyst
        for name, size in self.analysts.items():
            yield "each analyst who is not named" if name == EVERYBODY_ELSE else f"analyst {name!r}", size
        yield from ((f"one {name}", size) for name, size in self._of_time() if size is not None)

    def _of_time(self) -> tuple[tuple[str, Fraction | None], ...]:
        return (("day", self.day), ("month", self.month))

    def binding(self, *, analyst: str, at: str) -> Iterator[tuple[str, int]]:
        """The name of each share that a request at the ISO time `at` draws on, and its size in units.

        Whoever gives no name draws on one share, together with all others who give none.
        """
        own = self.of_analyst(analyst)
        if own is not None:
            yield f"analyst {analyst!r}", floor(own * UNITS)
        if self.day is not None:
            yield f"day {at[:10]}", floor(self.day * UNITS)
        if self.month is not None:
            yield f"month {at[:7]}", floor(self.month * UNITS)


def same_name(name: str) -> str:
    """A name in the one Unicode form (NFC) in which names are compared.

    >>> same_name("Zoe\u0308") == "Zo\u00eb"
    True
    """
    return name if name.isascii() else normalize("NFC", name)


def _shown(size: Fraction) -> str:
    return f"{float(size):g}"


def _part(size: Fraction, cap: Cost) -> str:
    return f"{percent_of(size.numerator * UNITS, size.denominator * cap.units)} of the budget"


def _limits(
    analyst: Fraction | None, analysts: Mapping[str, Fraction], day: Fraction | None, month: Fraction | None
) -> Limits:
    """Limits that went to another process."""
    return Limits(analyst=analyst, analysts=analysts, day=day, month=month)
