"""The proof that chords of a call's price lie below the call of a larger variance, step by step in many digits.

Names are those of the proof in `understudy_textbook.chords`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from understudy_textbook import chords

HALVES = [0.05, 0.4, 1.0, 2.5, 12.0]
MIDDLES = [0.0, 0.01, 0.3, 0.8, 1.5, 2.7, 4.0, 9.0]


@dataclass(frozen=True)
class Window:
    """An interval of half-length h around m, and what the proof says of it."""

    h: mpmath.mpf
    m: mpmath.mpf

    @cached_property
    def ends(self):
        return self.m - self.h, self.m + self.h

    @cached_property
    def mass(self):
        return mpmath.ncdf(-self.ends[0]) - mpmath.ncdf(-self.ends[1])

    @cached_property
    def delta(self):
        return self.mass / (2 * self.h)

    @cached_property
    def mean(self):
        return (mpmath.npdf(self.ends[0]) - mpmath.npdf(self.ends[1])) / self.mass

    @cached_property
    def variance(self):
        low, high = self.ends
        return 1 + (low * mpmath.npdf(low) - high * mpmath.npdf(high)) / self.mass - self.mean**2

    @cached_property
    def slope(self):
        """P: minus the chord's slope."""
        return (call(self.ends[0]) - call(self.ends[1])) / (2 * self.h)

    @cached_property
    def intercept(self):
        """α."""
        return call(self.ends[0]) + self.slope * self.ends[0]

    @cached_property
    def xi(self):
        return -mpmath.sqrt(2) * mpmath.erfinv(2 * self.slope - 1)

    @cached_property
    def x(self):
        return 2 * self.m - self.mean

    @property
    def ratio(self):
        """R."""
        return self.intercept / mpmath.npdf(self.xi)

    @property
    def bend(self):
        """k: the logarithmic derivative of ξ'."""
        return self.xi * self.delta / mpmath.npdf(self.xi) - self.mean


def call(x):
    return mpmath.npdf(x) - x * mpmath.ncdf(-x)


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(120):  # far windows have little mass
        yield


def windows(h: float) -> list[Window]:
    return [Window(mpmath.mpf(h), mpmath.mpf(m)) for m in MIDDLES]


def derivative(h: float, m: float, of):
    return mpmath.diff(lambda at: of(Window(mpmath.mpf(h), at)), mpmath.mpf(m), h=mpmath.mpf(10) ** -30)


@pytest.mark.parametrize("h", HALVES)
def test_the_derivatives_of_the_proof(h):
    for m in (0.3, 1.5, 4.0):
        at = Window(mpmath.mpf(h), mpmath.mpf(m))
        y = at.delta / mpmath.npdf(at.xi)
        facts = [
            (lambda w: w.slope, -at.delta),
            (lambda w: w.intercept, -at.x * at.delta),
            (lambda w: w.delta, -at.mean * at.delta),
            (lambda w: w.mean, 1 - at.variance),
            (lambda w: w.xi, y),
            (lambda w: w.ratio, y * (at.ratio * at.xi - at.x)),
            (lambda w: w.bend, y**2 + at.xi * y * at.bend - (1 - at.variance)),
        ]
        for of, expected in facts:
            assert derivative(h, m, of) == pytest.approx(expected, rel=1e-12, abs=1e-20)


@pytest.mark.parametrize("h", HALVES)
def test_each_step_of_the_proof(h):
    found = windows(h)
    for at, after in pairwise(found):
        assert 0 <= at.variance <= 1
        assert after.variance < at.variance  # step 2
        assert at.bend >= 0  # step 3
        assert at.x >= at.ratio * at.xi  # step 4
        assert after.ratio < at.ratio
        if at.m:
            assert after.x / after.xi < at.x / at.xi
    assert found[0].ratio == pytest.approx(chords.largest_ratio(h), rel=1e-13)


def test_the_ratio_is_that_of_the_middle():
    """Of an interval around 0 it is the root of 1 + κ; for small h about 1 + h²/2, for large ones h·sqrt(π/2)."""
    assert chords.largest_ratio(1e-3) == pytest.approx(1 + 5e-7, abs=1e-12)
    assert chords.largest_ratio(40.0) == pytest.approx(40 * np.sqrt(np.pi / 2))
    assert float(windows(1.0)[0].intercept * mpmath.sqrt(2 * mpmath.pi)) == pytest.approx(
        chords.largest_ratio(1.0)
    )


def test_every_chord_is_below_the_call_of_the_larger_variance():
    """The statement itself, and that nothing smaller would do."""
    for h in (0.2, 1.0, 3.0):
        s = chords.largest_ratio(h)
        for part in (0.02, 0.2, 0.5, 0.7, 0.98):
            for x in (-3.0, -0.4, 0.0, 0.1, 1.0, 2.5):
                low = x - 2 * h * part
                chord = (1 - part) * call(low) + part * call(low + 2 * h)
                assert chord <= s * call(mpmath.mpf(x) / s) * (1 + mpmath.mpf(10) ** -15)
        middle = (call(mpmath.mpf(-h)) + call(mpmath.mpf(h))) / 2
        assert middle > 0.999 * s * call(mpmath.mpf(0))
