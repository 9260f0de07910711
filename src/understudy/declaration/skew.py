"""Where to cut the range of a column whose values are not spread evenly, such as an income or a price.

Bins of equal width put almost everybody into one of them there, and questions can cut only where bins do. Values
that span several powers of ten are cut at 1, 2 and 5 times those powers; others at round numbers near quantiles.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

BINS = 20
"""About as many bins as an ordered attribute is cut into when nobody says how many."""

ENOUGH = 50
"""Values of a sample, without the most frequent one, of which fewer do not tell how a column is spread."""

CROWDED = 0.5
"""A bin with more of the sample than this is one too many people are in."""

COMMON = 0.2
"""A value with more of the sample than this, zero for instance, is in one bin however the range is cut."""

STEPS = {(1, 2, 5): "1, 2 and 5 times ", (1, 3): "1 and 3 times ", (1,): ""}
"""Multiples of powers of ten at which a range is cut, in words: the first that make at most `2 * BINS` bins."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Edges of bins, and in words why they are not equally far apart; empty where they are."""

    edges: tuple[Fraction, ...]
    why: str = ""


def cut_of(equal: Sequence[Fraction], sample: Sequence[float], *, whole: bool) -> Cut:
    """The range from the first to the last of `equal` edges, cut so that no bin is crowded with the sample.

    `whole` says that the values are whole numbers, and so the edges.

    >>> cut = cut_of([Fraction(10_000 * i) for i in range(11)], [1.08**i for i in range(150)], whole=False)
    >>> [int(edge) for edge in cut.edges][-7:]
    [1000, 2000, 5000, 10000, 20000, 50000, 100000]
    >>> cut.why
    'cut at 1, 2 and 5 times powers of ten: of equal bins one would hold 80% of the rows'
    """
    told = _without_common(sample)
    crowd = _crowd(equal, told)
    if len(told) < ENOUGH or crowd <= CROWDED:
        return Cut(tuple(equal))
    low, high = equal[0], equal[-1]
    powers, multiples = _powers(low, high, told, whole=whole)
    named = f"cut at {multiples}powers of ten"
    tried = [
        (powers, named),
        (_quantiles(low, high, told, whole=whole), "cut at round numbers near quantiles"),
    ]
    edges, how = next(
        ((edges, how) for edges, how in tried if _crowd(edges, told) <= CROWDED),
        min(tried, key=lambda one: _crowd(one[0], told)),
    )
    if _crowd(edges, told) >= crowd:
        return Cut(tuple(equal))
    return Cut(tuple(edges), f"{how}: of equal bins one would hold {crowd:.0%} of the rows")


def _without_common(sample: Sequence[float]) -> list[float]:
    """The sample in order, without a value that many rows have."""
    values = sorted(sample)
    if values:
        value, times = Counter(values).most_common(1)[0]
        if times > COMMON * len(values):
            return [other for other in values if other != value]
    return values


def _crowd(edges: Sequence[Fraction], sample: Sequence[float]) -> float:
    """The part of the sample in the bin that holds most of it."""
    if not sample:
        return 0.0
    starts = [float(edge) for edge in edges[:-1]]
    return max(Counter(bisect_right(starts, value) for value in sample).values()) / len(sample)


def _powers(
    low: Fraction, high: Fraction, sample: Sequence[float], *, whole: bool
) -> tuple[list[Fraction], str]:
    """Both bounds, zero where it lies between them, and steps that grow with the distance from zero.

    The smallest step is that of the smallest values but for one in twenty.
    """
    sizes = sorted(abs(value) for value in sample if value)
    least = Fraction(sizes[len(sizes) // 20])
    tried: list[tuple[list[Fraction], str]] = []
    for multiples, said in STEPS.items():
        steps = list(_rising(least, max(abs(low), abs(high)), multiples, whole=whole))
        inner = {*(-step for step in steps), Fraction(0), *steps}
        tried.append((sorted({low, high, *(edge for edge in inner if low < edge < high)}), said))
    return next((one for one in tried if len(one[0]) <= 2 * BINS + 1), tried[-1])


def _rising(least: Fraction, most: Fraction, multiples: Iterable[int], *, whole: bool) -> Iterable[Fraction]:
    unit = Fraction(10) ** (Decimal(least.numerator) / Decimal(least.denominator)).adjusted()
    unit = max(unit, Fraction(1)) if whole else unit
    while unit <= most:
        yield from (unit * multiple for multiple in multiples if unit * multiple >= least)
        unit *= 10


def _quantiles(low: Fraction, high: Fraction, sample: Sequence[float], *, whole: bool) -> list[Fraction]:
    """Both bounds, and for each of `BINS` quantiles the roundest number between it and its neighbours."""
    places = [
        Fraction(sample[min(len(sample) * i // (2 * BINS), len(sample) - 1)]) for i in range(1, 2 * BINS)
    ]
    inner = {_roundest(below, above, whole=whole) for below, above in pairwise(places[::2])}
    return sorted({low, high, *(edge for edge in inner if low < edge < high)})


def _roundest(below: Fraction, above: Fraction, *, whole: bool) -> Fraction:
    """The number between two others that is a multiple of the largest of 1, 2 and 5 times a power of ten.

    >>> _roundest(Fraction(1385), Fraction(1720), whole=True)
    Fraction(1500, 1)
    """
    if above <= below:
        return Fraction(ceil(below)) if whole else below
    gap = above - below
    unit = Fraction(10) ** ((Decimal(gap.numerator) / Decimal(gap.denominator)).adjusted() + 1)
    for step in (unit * part for part in (Fraction(1), Fraction(1, 2), Fraction(1, 5), Fraction(1, 10))):
        if (found := floor(above / step) * step) >= below:
            return Fraction(ceil(found)) if whole else found
    return Fraction(ceil(below)) if whole else below
