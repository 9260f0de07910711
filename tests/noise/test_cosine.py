"""Rounded cos² noise: cuts enclosed, each first word decided as the law says, and never beyond its half-width."""

from __future__ import annotations

from fractions import Fraction
from math import floor, inf

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripted_noise import Script, drawn
from statistical import assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy.noise import cosine
from understudy.noise.cosine import MAX_REACH, RoundedCosine, cosine_tail_enclosure, rounded_cosine
from understudy.noise.rounded import pi_enclosure
from understudy.noise.samplers import WORD, SeededNoise

REACHES = [Fraction(1, 3), Fraction(2), Fraction(7, 2), Fraction(1000), Fraction(0.0397) * 100_000 * 2**20]
PLUS = 1 << WORD - 1
"""The first bit of a word: the sign."""


def exact_tail(x: Fraction, bits: int):
    x = mpmath.mpf(x.numerator) / x.denominator
    tail = (1 - x) / 2 - mpmath.sin(mpmath.pi * x) / (2 * mpmath.pi) if x < 1 else mpmath.mpf(0)
    return tail * mpmath.mpf(2) ** bits


@given(st.fractions(Fraction(1, 10**9), 1, max_denominator=10**9), st.sampled_from([64, 128, 192, 400]))
def test_the_tail_lies_between_its_integers(x: Fraction, bits: int) -> None:
    low, high = cosine_tail_enclosure(x, bits)
    with mpmath.workprec(bits + 200):
        assert low <= exact_tail(x, bits) <= high
    assert high - low <= 3


def test_the_tail_is_0_beyond_the_half_width() -> None:
    assert cosine_tail_enclosure(Fraction(1), 64) == cosine_tail_enclosure(Fraction(5), 64) == (0, 0)


@pytest.mark.parametrize("precision", [40, 64, 500, 3000])
def test_pi_lies_between_its_integers(precision: int) -> None:
    low, high = pi_enclosure(precision)
    with mpmath.workprec(precision + 100):
        assert low < mpmath.pi * mpmath.mpf(2) ** precision < high
    assert high - low == 3


@pytest.mark.parametrize("few", [0, 4], ids=["in arrays", "one by one"])
@pytest.mark.parametrize("guard", [2.0**-48, inf], ids=["floats", "exact"])
@pytest.mark.parametrize("reach", REACHES, ids=lambda reach: f"{float(reach):.6g}")
def test_the_words_next_to_every_cut_are_decided_as_the_law_says(
    reach: Fraction, guard: float, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the law is exact: numbers just below and above T((m + 1/2)/R) make m + 1 and m."""
    monkeypatch.setattr(cosine, "_FEW", few)
    sampler, scale = RoundedCosine(reach, guard), float(reach)
    for m in {int(scale * x) for x in (0, 0.01, 0.3, 0.5, 0.7, 0.9)}:
        with mpmath.workprec(400):
            fine = int(mpmath.floor(exact_tail((m + Fraction(1, 2)) / reach, 2 * WORD)))
        if fine == 0:
            continue
        cut, after = fine >> WORD, fine & (1 << WORD) - 1
        assert drawn(sampler, PLUS | cut) is None
        assert drawn(sampler, PLUS | cut, after) is None
        assert drawn(sampler, PLUS | cut, after - 1) == m + 1
        assert drawn(sampler, PLUS | cut, after + 1) == m
        assert drawn(sampler, cut, after + 1) == -m
        below, above = (
            float(exact_tail((m + Fraction(half, 2)) / reach, 0)) if m + half / 2 > 0 else 0.5
            for half in (3, -1)
        )
        here = fine * 2.0 ** (-2 * WORD)
        for step in (above - here, below - here):  # a quarter of the way to the next cut, on either side
            far = int(2.0**WORD * step / 4)
            if abs(far) > 1 and 0 <= cut + far < PLUS:
                assert drawn(sampler, PLUS | cut + far) == (m if far > 0 else m + 1)


@pytest.mark.parametrize("reach", REACHES, ids=lambda reach: f"{float(reach):.6g}")
def test_floats_only_filter(reach: Fraction) -> None:
    """The exact comparison alone, forced for every draw, makes the same of the same words."""
    by_floats = RoundedCosine(reach).draw(300, SeededNoise(4))
    assert (by_floats == RoundedCosine(reach, guard=inf).draw(300, SeededNoise(4))).all()


@pytest.mark.parametrize("reach", REACHES, ids=lambda reach: f"{float(reach):.6g}")
def test_a_word_makes_the_same_alone_and_among_others(reach: Fraction) -> None:
    sampler = RoundedCosine(reach)
    words = SeededNoise(4).words(300)
    alone = [drawn(sampler, int(word)) for word in words]
    assert sum(one is None for one in alone) <= 3  # the few that the first word does not decide
    among = sampler.draw(300, SeededNoise(4))
    assert [one for one in alone if one is not None] == among[[one is not None for one in alone]].tolist()


def law(reach: float, most: int, power: int = 2) -> np.ndarray:
    """Of -most, …, most, by the integral of cos^power; 2 is the sampler's."""
    fine = np.linspace(-most - 0.5, most + 0.5, (2 * most + 1) * 200 + 1)
    density = np.where(np.abs(fine) < reach, np.cos(np.pi * fine / (2 * reach)) ** power, 0.0)
    masses = ((density[1:] + density[:-1]) / 2).reshape(-1, 200).sum(axis=1)
    return masses / masses.sum()


@pytest.mark.parametrize(("reach", "guard"), [(2.0, 2.0**-48), (9.5, 2.0**-48), (25.0, 2.0**-48), (9.5, inf)])
def test_draws_follow_the_law_of_rounded_cosine_noise(reach: float, guard: float) -> None:
    """False alarms at 1e-9; noise 20% too small, and the wrong power, are seen."""
    draws, most = 40_000 if guard < 1 else 5_000, floor(reach + 0.5)
    found = RoundedCosine(Fraction(reach), guard).draw(draws, SeededNoise(11))
    assert np.abs(found).max() <= most
    counts = np.bincount(found + most, minlength=2 * most + 1).tolist()
    ends = [float(exact_tail(Fraction(2 * abs(m) + 1, 2) / Fraction(reach), 0)) for m in range(most + 1)]
    outer = np.diff(np.array([*ends[::-1], 0.5]))  # most, …, 1, and half of 0
    exact = np.concatenate([outer[:-1], [2 * outer[-1]], outer[:-1][::-1]])
    exact = np.concatenate([[ends[-1]], exact, [ends[-1]]])[1:-1] if ends[-1] == 0 else exact
    assert law(reach, most) == pytest.approx(exact, abs=2e-4)
    assert_follows(counts, exact.tolist())
    assert_does_not_follow(counts, law(0.8 * reach, most).tolist())
    assert_does_not_follow(counts, law(reach, most, 3).tolist())


def test_no_word_goes_beyond_the_half_width() -> None:
    """The word of zeros, and whatever follows it: the farthest is the rounding of R."""
    for reach in (Fraction(5), Fraction(1000), Fraction(7, 2), Fraction(2**45)):
        most = floor(reach + Fraction(1, 2))
        for first in (0, PLUS):
            far = int(RoundedCosine(reach).draw(1, Script(first, *[0] * 40))[0])
            assert abs(far) <= most
            assert abs(far) >= most - most // 1000 - 1


def test_an_answer_lies_on_a_lattice_that_does_not_depend_on_the_value() -> None:
    assert rounded_cosine(3, 5, noise=SeededNoise(1)).dtype == np.int64
    assert rounded_cosine(3, 0, noise=SeededNoise(1)).size == 0


@pytest.mark.parametrize("reach", [0, -1, MAX_REACH + 1])
def test_a_half_width_that_cannot_be_is_refused(reach: int) -> None:
    with pytest.raises(ParameterError, match="reach"):
        rounded_cosine(reach, 1, noise=SeededNoise(1))
    with pytest.raises(ParameterError, match="size"):
        rounded_cosine(1, -1, noise=SeededNoise(1))
