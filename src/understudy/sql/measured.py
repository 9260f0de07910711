"""Aggregates of measures: sums, averages, variances and covariances from sums of moments.

Everything is worked out in places between 0 and 1 (`query.moment`), and brought into the unit of the measure at
the end. A statement buys the sums of one family of moments (`FAMILIES`); the number of rows and the sums of t,
t² and t·s are linear in them (`Moments`). What is a ratio of two such sums lies, over a box of possible sums,
between its values at the corners of the box, since a ratio of linear functions with a positive denominator has
its extremes there. Where the noise of the sums is known, an average, a variance or a covariance has a narrower
interval, from the noise itself (`ratio_intervals`). The value of a row is
the nearest step of its measure: sums and averages are of values that are cut to the bounds and rounded to the
declared resolution, so that bins are no part of their error. Without knowledge of the noise a variance is bounded
as E(t - c)² - (E t - c)², which it is for every number c: with c at the released average the first is a ratio of
linear functions and the second is small, so that its interval is about as narrow as that of an average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal

import numpy as np

from understudy.domain.bins import Bins
from understudy.query.linear import LinearQuery
from understudy.query.moment import Moment
from understudy.sql.aggregate import Fold, Folded, nothing_known
from understudy.sql.grid import Floats, Numbers
from understudy.sql.group import AXIS, Tally
from understudy.sql.ratio_intervals import JointNoise, SpreadForms, ratio_interval, spread_interval

Family = Literal["positions", "centred", "shares"]
"""Which moments are bought: those of a session; those for Gaussian noise; those for Laplace noise."""

Form = tuple[float, ...]
"""Coefficients of the tallies of `Moments`."""


@dataclass(frozen=True)
class Moments:
    """Tallies of the moments of one or two measures over the same rows, and what is linear in them.

    `forms` has coefficients for `rows`, for the sums of places `x` and `y`, and for those of products `xx`, `xy`.
    """

    measures: tuple[Bins, ...]
    tallies: tuple[Tally, ...]
    forms: Mapping[str, Form]

    @cached_property
    def key(self) -> object:
        return tuple(tally.key for tally in self.tallies)

    def folded(self, fold: Fold) -> list[Folded]:
        return [fold(tally) for tally in self.tallies]

    def point(self, sums: Sequence[Folded], form: str) -> Floats:
        """The released value of a form."""
        return sum(c * part.value for c, part in zip(self.forms[form], sums, strict=True))

    def ends(self, sums: Sequence[Folded], form: Form) -> tuple[Floats, Floats]:
        """The least and the most that a combination of the tallies can be."""
        low = sum(c * (part.low if c > 0 else part.high) for c, part in zip(form, sums, strict=True))
        high = sum(c * (part.high if c > 0 else part.low) for c, part in zip(form, sums, strict=True))
        return low, high

    def mean_ends(
        self, sums: Sequence[Folded], form: Sequence[Floats | float], least: float, most: float
    ) -> tuple[Floats, Floats]:
        """The least and the most of a form over the number of rows, between `least` and `most` for every row.

        Coefficients may differ between groups. Where there may be no rows, nothing more is known.
        """
        low = np.full(sums[0].value.shape, np.inf)
        high = np.full(sums[0].value.shape, -np.inf)
        unknown = np.zeros(low.shape, bool)
        rows = self.forms["rows"]
        for corner in product((False, True), repeat=len(sums)):
            held = [part.high if up else part.low for part, up in zip(sums, corner, strict=True)]
            above = sum(c * part for c, part in zip(form, held, strict=True))
            below = sum(c * part for c, part in zip(rows, held, strict=True))
            unknown |= below <= 0
            with np.errstate(all="ignore"):
                ratio = np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)
            low, high = np.minimum(low, ratio), np.maximum(high, ratio)
        low, high = np.clip(low, least, most), np.clip(high, least, most)
        return np.where(unknown, least, low), np.where(unknown, most, high)

    def ratio_ends(self, sums: Sequence[Folded], form: Form) -> tuple[Floats, Floats] | None:
        """The least and the most, between 0 and 1, of a form over the number of rows, from the noise alone.

        None where that is not known. β is what the tallies have left, divided by the number of groups.
        """
        joint = JointNoise.of([part.noise for part in sums])
        return None if joint is None else ratio_interval(joint, form, self.forms["rows"], joint.beta)


_HALF, _THREE_EIGHTHS = 0.5, 0.375

FAMILIES: dict[tuple[Family, str], tuple[tuple[str, ...], dict[str, Form]]] = {
    ("positions", "x"): (("", "position x"), {"rows": (1, 0), "x": (0, 1)}),
    ("centred", "x"): (("", "centred x"), {"rows": (1, 0), "x": (_HALF, 1)}),
    ("shares", "x"): (("share low x", "share high x"), {"rows": (1, 1), "x": (0, 1)}),
    ("positions", "xx"): (
        ("", "position x", "square x"),
        {"rows": (1, 0, 0), "x": (0, 1, 0), "xx": (0, 0, 1)},
    ),
    ("centred", "xx"): (
        ("", "centred x", "centred square x"),
        {"rows": (1, 0, 0), "x": (_HALF, 1, 0), "xx": (_THREE_EIGHTHS, 1, 0.25)},
    ),
    ("shares", "xx"): (
        ("share 0 of 2 x", "share 1 of 2 x", "share 2 of 2 x"),
        {"rows": (1, 1, 1), "x": (0, _HALF, 1), "xx": (0, 0, 1)},
    ),
    ("positions", "xy"): (
        ("", "position x", "position y", "product xy"),
        {"rows": (1, 0, 0, 0), "x": (0, 1, 0, 0), "y": (0, 0, 1, 0), "xy": (0, 0, 0, 1)},
    ),
    ("centred", "xy"): (
        ("", "centred x", "centred y", "centred product xy"),
        {
            "rows": (1, 0, 0, 0),
            "x": (_HALF, 1, 0, 0),
            "y": (_HALF, 0, 1, 0),
            "xy": (0.25, _HALF, _HALF, _HALF),
        },
    ),
    ("shares", "xy"): (
        ("share low, low xy", "share low, high xy", "share high, low xy", "share high, high xy"),
        {"rows": (1, 1, 1, 1), "x": (0, 0, 1, 1), "y": (0, 1, 0, 1), "xy": (0, 0, 0, 1)},
    ),
}
"""For each family, and for what is wanted of the measures x and y, the tallies and the forms; "" counts rows."""


def moments(family: Family, wanted: str, rows: LinearQuery, measures: tuple[Bins, ...]) -> Moments:
    """The moments of the measures over the rows that a condition counts, from which `wanted` follows.

    `wanted` is ``x`` for a sum or an average, ``xx`` for a variance and ``xy`` for a covariance.
    """
    kinds, forms = FAMILIES[family, wanted]
    names = dict(zip("xy", (attribute.name for attribute in measures), strict=False))
    tallies: list[Tally] = []
    for kind in kinds:
        of, _, letters = kind.rpartition(" ")
        moment = Moment(of, tuple(names[letter] for letter in letters)) if kind else None
        tallies.append(Tally(rows, moment=moment))
    return Moments(measures, tuple(tallies), forms)


def _range(measure: Bins) -> tuple[float, float]:
    """The lower bound of a measure, and the distance to its upper one."""
    return float(measure.lower_bound), float(measure.upper_bound - measure.lower_bound)


def _numbers(point: Floats, low: Floats, high: Floats, null: Floats) -> Numbers:
    return Numbers((AXIS,), np.clip(point, low, high), low, high, null=np.asarray(null, bool), kind="real")


@dataclass(frozen=True)
class OfMoments:
    """What aggregates of moments have in common: they need all tallies of theirs."""

    moments: Moments

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return self.moments.tallies

    @property
    def key(self) -> object:
        return type(self).__name__, self.moments.key


@dataclass(frozen=True)
class MeasuredCount(OfMoments):
    """The number of rows, from moments that are bought anyway."""

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        sums = self.moments.folded(fold)
        low, high = self.moments.ends(sums, self.moments.forms["rows"])
        point = np.clip(np.rint(self.moments.point(sums, "rows")), low, high)
        return Numbers((AXIS,), point, low, high, null=np.zeros(low.shape, bool), kind="integer")


@dataclass(frozen=True)
class MeasuredSum:
    """The sum of a measure over rows; 0 over no rows. A tally on which it does not depend is not bought."""

    moments: Moments

    @cached_property
    def _form(self) -> Form:
        low, width = _range(self.moments.measures[0])
        forms = self.moments.forms
        return tuple(low * n + width * x for n, x in zip(forms["rows"], forms["x"], strict=True))

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return tuple(tally for tally, c in zip(self.moments.tallies, self._form, strict=True) if c)

    @property
    def key(self) -> object:
        return "measured sum", self.moments.key

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        used = {tally.key for tally in self.tallies}
        unused = np.zeros(fold(self.tallies[0]).value.shape)
        nothing = Folded(unused, unused, unused)
        sums = [fold(t) if t.key in used else nothing for t in self.moments.tallies]
        point = sum(c * part.value for c, part in zip(self._form, sums, strict=True))
        low, high = self.moments.ends(sums, self._form)
        return _numbers(point, low, high, np.zeros(low.shape, bool))


@dataclass(frozen=True)
class MeasuredMean(OfMoments):
    """The average of a measure; missing, its point the middle, where there are no rows, or nothing is known."""

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        sums = self.moments.folded(fold)
        rows = self.moments.point(sums, "rows")
        lowest, width = _range(self.moments.measures[0])
        found = self.moments.ratio_ends(sums, self.moments.forms["x"])
        low, high = found or self.moments.mean_ends(sums, self.moments.forms["x"], 0.0, 1.0)
        fewest = self.moments.ends(sums, self.moments.forms["rows"])[0]
        missing = (rows <= 0) | nothing_known(sums, fewest, low, high)
        with np.errstate(all="ignore"):
            place = np.where(missing, 0.5, self.moments.point(sums, "x") / np.where(missing, 1.0, rows))
        place = np.clip(place, low, high)
        point, low, high = (lowest + width * part for part in (place, low, high))
        return _numbers(point, low, high, missing)


@dataclass(frozen=True)
class MeasuredQuantile:
    """A quantile of a measure that was drawn, between two ends that were drawn; missing if it may be any value."""

    measure: Bins
    ends: tuple[Tally, ...]

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return self.ends

    @property
    def key(self) -> object:
        return "measured quantile", tuple(tally.key for tally in self.ends)

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        lowest, width = _range(self.measure)
        drawn = [fold(tally) for tally in self.ends]
        one, point, other = (part.value for part in drawn)
        low, high = np.minimum(one, other), np.maximum(one, other)
        missing = nothing_known(drawn, np.zeros(low.shape), low, high)  # how many rows there are nobody asked
        point, low, high = (lowest + width * part for part in (point, low, high))
        return _numbers(point, low, high, missing)


Spread = Literal["variance", "deviation", "covariance"]


@dataclass(frozen=True)
class MeasuredSpread:
    """A variance, a standard deviation or a covariance; missing where there are no rows, or, of a sample, not two.

    `sample` divides by one less than the number of rows, as SQL's `variance`, `stddev` and `covar_samp` do.
    """

    moments: Moments
    what: Spread
    sample: bool

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return self.moments.tallies

    @property
    def key(self) -> object:
        return self.what, self.sample, self.moments.key

    def estimate(self, fold: Fold, *, discretised: bool) -> Numbers:
        sums = self.moments.folded(fold)
        rows = self.moments.point(sums, "rows")
        some = rows > (1 if self.sample else 0)
        point, low, high = self._central(sums, np.where(rows > 0, rows, 1.0))
        joint = JointNoise.of([part.noise for part in sums])
        if joint is None:
            counted = self.moments.ends(sums, self.moments.forms["rows"])
        else:
            known = spread_interval(joint, self._forms)
            low, high, counted = known.low, known.high, known.rows
        low, high = self._scaled(counted, low, high)
        with np.errstate(all="ignore"):
            point = np.where(some, point * (rows / (rows - 1) if self.sample else 1.0), (low + high) / 2)
        widths = [_range(measure)[1] for measure in self.moments.measures]
        unit = widths[0] * widths[-1]
        point, low, high = (unit * part for part in (np.clip(point, low, high), low, high))
        if self.what == "deviation":
            point, low, high = (np.sqrt(np.maximum(part, 0.0)) for part in (point, low, high))
        return _numbers(point, low, high, ~some)

    @property
    def _forms(self) -> SpreadForms:
        forms = self.moments.forms
        second, other = ("xy", "y") if "xy" in forms else ("xx", "x")
        return SpreadForms(forms[second], forms["x"], forms[other], forms["rows"], self.what == "covariance")

    def _central(self, sums: Sequence[Folded], rows: Floats) -> tuple[Floats, Floats, Floats]:
        """E(t - c)(s - d) - (E t - c)(E s - d) with c and d at the released averages: its value and its ends."""
        forms = self.moments.forms
        second, other = ("xy", "y") if "xy" in forms else ("xx", "x")
        low_x, high_x = self.moments.mean_ends(sums, forms["x"], 0.0, 1.0)
        low_y, high_y = low_x, high_x
        if other != "x":
            low_y, high_y = self.moments.mean_ends(sums, forms[other], 0.0, 1.0)
        c = np.clip(self.moments.point(sums, "x") / rows, low_x, high_x)
        d = np.clip(self.moments.point(sums, other) / rows, low_y, high_y)
        form = [
            forms[second][i] - d * forms["x"][i] - c * forms[other][i] + c * d * forms["rows"][i]
            for i in range(len(sums))
        ]
        least = 0.0 if self.what != "covariance" else -1.0
        low, high = self.moments.mean_ends(sums, form, least, 1.0)
        off = np.maximum(high_x - c, c - low_x) * np.maximum(high_y - d, d - low_y)
        point = self.moments.point(sums, second) / rows - self.moments.point(sums, "x") / rows * (
            self.moments.point(sums, other) / rows
        )
        if self.what == "covariance":
            return point, np.maximum(low - off, -0.25), np.minimum(high + off, 0.25)
        return point, np.clip(low - off, 0.0, 0.25), np.clip(high, 0.0, 0.25)

    def _scaled(self, counted: tuple[Floats, Floats], low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The ends of a sample's, which is N/(N - 1) times that of the rows, at most twice it."""
        if not self.sample:
            return low, high
        few, many = counted
        with np.errstate(all="ignore"):
            most = np.where(few > 2, few / np.maximum(few - 1, 1), 2.0)
            least = np.where(many > 2, many / np.maximum(many - 1, 1), 1.0)
        return low * np.where(low >= 0, least, most), high * np.where(high >= 0, most, least)
