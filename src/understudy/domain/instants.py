"""An ordered attribute of moments of time, cut into consecutive bins at whole seconds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from understudy.domain.attribute import Mask, Outside, Value
from understudy.domain.bins import Bins
from understudy.domain.edge import Ordered
from understudy.domain.instant import DAY_SECONDS, SECOND, instant_of, naive, read_instant, seconds_of
from understudy.domain.intake import BLANKS
from understudy.errors import DomainError, QueryError

FIRST, LAST = dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30, 23, 59, 59)
"""The least and the largest edge: so that no time zone carries one out of the calendar."""


@dataclass(frozen=True, kw_only=True)
class Instants(Bins):
    """An ordered attribute of moments of time in UTC, cut into consecutive bins.

    Edges are `datetime`s without a time zone, at whole steps of `step` seconds since 1970-01-01 00:00:00. A value
    counts as the beginning of the step that it is in; one with a time zone is brought to UTC first, and one
    without is taken as it stands. Everything else is as in `Bins`. Raises a `DomainError` where the edges do not
    rise strictly, or lie between two steps.

    >>> day = dt.datetime(2024, 3, 1)
    >>> Instants.between("opened", [day, day.replace(hour=9, minute=30), day.replace(hour=18)]).labels[0]
    '2024-03-01 00:00:00..2024-03-01 09:29:59'
    """

    step: int = field(default=1)
    """Seconds from one value to the next."""

    def __post_init__(self) -> None:
        if type(self.step) is not int or not 1 <= self.step <= 366 * DAY_SECONDS:
            raise DomainError(
                f"{self.name}: the resolution of a timestamp is a whole number of seconds, from 1"
            )
        for edge in (*self.starts, self.upper):
            if type(edge) is not dt.datetime or edge.tzinfo is not None:
                raise DomainError(
                    f"{self.name}: edges of a timestamp are datetimes in UTC, without a time zone"
                )
            if not FIRST <= edge <= LAST:
                raise DomainError(f"{self.name}: timestamps lie between {FIRST} and {LAST}")
            if edge.microsecond or seconds_of(edge) % self.step:
                raise DomainError(
                    f"{self.name}: {edge} lies between two steps of {self.step} seconds since 1970-01-01 00:00:00",
                    remedy="choose edges at whole steps, or a finer `resolution`",
                )
        super().__post_init__()
        if self.resolution is not None:
            raise DomainError(
                f"{self.name}: timestamps are not summed", remedy="the seconds of a step are `step`"
            )

    @classmethod
    def between(
        cls,
        name: str,
        edges: Sequence[Ordered],
        *,
        outside: Outside = Outside.CLAMP,
        null: bool = False,
        step: int = 1,
    ) -> Instants:
        """Bins with the given edges, two at least; the last bin includes the last edge."""
        if len(edges) < 2 or edges[-1] == edges[-2]:
            raise DomainError(f"{name}: edges must rise strictly, and there must be two at least")
        return cls(
            name=name, starts=tuple(edges[:-1]), upper=edges[-1], outside=outside, null=null, step=step
        )

    @property
    def kind(self) -> str:
        """The type of the values: `timestamp`."""
        return "timestamp"

    @property
    def spacing(self) -> float:
        """The seconds between two values."""
        return float(self.step)

    @cached_property
    def end(self) -> dt.datetime:
        """The first moment after the last bin."""
        return self._after(self.upper)

    def _after(self, value: Ordered) -> Ordered:
        return value + self.step * SECOND

    def _before(self, value: Ordered) -> Ordered:
        return value - self.step * SECOND

    def _read(self, value: object) -> Ordered | None:
        """The step of a moment, of a day's midnight, or of a text as ISO 8601 writes it; None of anything else."""
        if isinstance(value, str):
            value = read_instant(value.strip(BLANKS))
        return self._floor(naive(value)) if isinstance(value, dt.date) else None

    def _floor(self, moment: dt.datetime) -> dt.datetime:
        """The beginning of the step that a moment is in; before the calendar begins, the calendar's begin."""
        try:
            return instant_of(seconds_of(moment) // self.step * self.step)
        except OverflowError:
            return dt.datetime.min

    def compare(self, operator: str, value: Value) -> Mask:
        """The cells where a comparison holds; raises a `QueryError` where the value would cut a bin.

        A moment between two steps, such as 09:30:00.5 among whole seconds, is compared as what lies between them.
        """
        if isinstance(value, str) and value in self.labels:
            return super().compare(operator, value)
        moment = self._moment(value)
        floor = self._floor(moment)
        if floor == moment:
            return super().compare(operator, moment)
        if operator in ("=", "!="):
            nowhere = self._mask(np.zeros(self.proper_size, bool), other_is_known=False)
            return nowhere if operator == "=" else ~nowhere
        return super().compare("<" if operator in ("<", "<=") else ">=", self._after(floor))

    def _moment(self, value: Value) -> dt.datetime:
        found: object = value
        if isinstance(value, str):
            found = read_instant(value.strip(BLANKS), fraction=True)
        if not isinstance(found, dt.date):
            raise QueryError(
                f"{self.name} is a timestamp", remedy=f"write it as '2024-12-31 09:30:00', not {value!r}"
            )
        return min(max(naive(found), FIRST - dt.timedelta(hours=12)), LAST + SECOND)  # no edge lies beyond

    def _constant(self, value: Value) -> Ordered:
        return self._moment(value)
