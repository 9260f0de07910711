"""Why no precision keeps the error that a question to a session asks for, in words that say what to do.

Four things can stand in the way, and each asks for something else. The rows that a number is divided by may be
none. Something else that it is divided by may be 0. The bins of an attribute put a sum off however exactly their
rows are counted. And no sum is bought within less than a small part of a person. Which one it is follows from
what the answer would be off by with counts that are exact, and with the closest ones that are bought, at all
places where they can come to lie. Only released numbers are read for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

from understudy.errors import RefusedError
from understudy.sessions.interval_widths import LEAST, WidthSearch
from understudy.sessions.knowledge import IntervalTable

OR_LEAVE = "or leave `error` out, which tells what is known"


@dataclass(frozen=True, eq=False)
class UnkeptError:
    """An error that no widths keep.

    search      the places where intervals of the marginals can come to lie
    tables      what is known, or expected to be known, of the marginals
    off         how far an answer can be off by intervals for the marginals, in its unit
    error       the error that was asked for, and of it the part that is aimed at, `aim`
    told_error  the error with its unit, as it is told
    fewest      the least and the most rows of the group that may have the fewest; None where nothing is counted
    groups      what the answer lists: "" for one number, "cells" for declared cells, "expressions" for others
    so_far      what was bought before the refusal, as a sentence
    """

    search: WidthSearch
    tables: Sequence[IntervalTable]
    off: Callable[[Sequence[IntervalTable]], float]
    error: float
    aim: float
    told_error: str
    fewest: tuple[float, float] | None
    groups: str
    so_far: str

    def refusal(self) -> RefusedError:
        """The refusal with its reason: rows or another divisor that may be 0, bins, or the least precision."""
        if not self.tables:
            return self._refused("it is about no rows", "change the condition, which no declared value meets")
        exact = self._offs(0.0)
        if not isfinite(max(exact)):
            return self._divided_by_nothing()
        if max(exact) > self.aim:
            return self._bins(min(exact), max(exact))
        closest = max(self._offs(LEAST))
        if not isfinite(closest):
            return self._divided_by_nothing()
        return self._refused(
            f"counts and sums are bought within 1/{1 / LEAST:.0f} of a person at the closest, by which the answer "
            f"can be off by {_plainly(closest)}",
            f"ask for a wider `error`, {OR_LEAVE}"
            if self.search.of_ratios
            else f"ask for a wider `error` first: that tells how large it is, and may allow this; {OR_LEAVE}",
        )

    def _offs(self, width: float) -> list[float]:
        return [self.off(placed) for placed in self.search.placed(self.tables, [width] * len(self.tables))]

    def _wanted(self, off: float) -> str:
        """An error that is kept where the answer is off by so much, rounded up."""
        wanted = off * self.error / self.aim
        rounded = float(f"{wanted:.3g}")
        return _plainly(rounded if rounded >= wanted else rounded * 1.01)

    def _divided_by_nothing(self) -> RefusedError:
        if self.fewest is None or self.fewest[0] > LEAST:
            return self._refused(
                "by what is known the number that it divides by may be 0",
                f"ask for both numbers of the ratio by themselves, each with an `error`, {OR_LEAVE}",
            )
        rows = f"there are at most {self.fewest[1]:,.0f}, and perhaps none"
        if not self.groups:
            return self._refused(
                f"of the rows that it is about {rows}",
                "ask for their number with a small `error` first: if there are some, this has a price; "
                + OR_LEAVE,
            )
        if self.groups == "cells":
            return self._refused(
                f"of the rows of one of its groups {rows}",
                "leave small groups out by WHERE, or ask for the numbers of rows of the groups with a small "
                f"`error` first; {OR_LEAVE}",
            )
        return self._refused(
            "one of its groups may have no rows",
            "leave that group out by WHERE; or group by columns as they are, where groups of few rows keep the "
            f"bounds that they have; {OR_LEAVE}",
        )

    def _bins(self, least: float, most: float) -> RefusedError:
        bins = f"the bins alone can put the answer off by {_plainly(most)}, however exactly they are counted"
        declared = "have a `resolution` declared for the attribute, whose values are then summed as they are"
        if least <= self.aim:
            return self._refused(
                f"{bins}, as far as it is known where the values lie",
                "ask without `error` first, or with a wider one: that tells where they lie, and may allow this; "
                f"or {declared}",
            )
        return self._refused(
            bins, f"ask for an `error` above {self._wanted(most)}, {OR_LEAVE}; or {declared}"
        )

    def _refused(self, reason: str, remedy: str) -> RefusedError:
        return RefusedError(
            f"no precision is sure to keep an error of {self.told_error}: {reason}; {self.so_far}",
            remedy=remedy,
        )


def dearer_than_told(
    *, error: str, price: str, fewest: tuple[float, float] | None, expected: float | None
) -> RefusedError:
    """The refusal of an error whose `price`, once the rows were counted, is beyond the one told before.

    `fewest` is what is known now of the group that may have the fewest rows, and `expected` how few the price
    that was told went by. Where the rows are not fewer, nothing is said of them.
    """
    why = ""
    if fewest is not None and expected is not None and fewest[0] < expected:
        why = (
            f", and of some there may be as few as {fewest[0]:,.0f}, where the price that was told went by "
            f"{expected:,.0f} at least"
        )
    return RefusedError(
        f"the rows were counted first{why}; by what is known now an error of {error} costs {price} more, which is "
        "beyond what was told",
        remedy="ask again: the price now goes by the number of rows that is known; or ask for a wider `error`",
    )


def short_of(*, error: str) -> RefusedError:
    """The refusal of an error that is not kept by all that its price allowed.

    So it is where bands contradict each other, or where the worst case of a formula was not among those tried.
    """
    return RefusedError(
        f"what was bought does not keep an error of {error}",
        remedy="ask again, which buys more precision; or leave `error` out",
    )


def _plainly(number: float) -> str:
    """A number, rounded to three digits, as people write it.

    >>> _plainly(50_000.0), _plainly(0.031251)
    ('50,000', '0.0313')
    """
    return f"{float(f'{number:.3g}'):,.10g}"
