"""The rounded normal: cuts enclosed, each first word decided as the law says, whatever the floats' guard is."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from scripted_noise import drawn
from statistical import assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy.noise import normal
from understudy.noise.normal import MAX_SIGMA, RoundedNormalSampler, rounded_normal, tail_enclosure
from understudy.noise.samplers import WORD, SeededNoise

SIGMAS = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(1000), Fraction(0.0355) * 40_000 * 2**20]
PLUS = 1 << WORD - 1
"""The first bit of a word: the sign."""


@given(st.fractions(Fraction(1, 10**6), 30, max_denominator=10**6), st.sampled_from([64, 127, 192, 400]))
def test_the_normal_tail_lies_between_its_integers(x: Fraction, bits: int) -> None:
    low, high = tail_enclosure(x * x, bits)
    with mpmath.workprec(bits + 1500):
        tail = (
            mpmath.erfc(mpmath.mpf(x.numerator) / x.denominator / mpmath.sqrt(2)) / 2 * mpmath.mpf(2) ** bits
        )
        assert low <= tail <= high
    assert high - low <= 3


@pytest.mark.parametrize("few", [0, 4], ids=["in arrays", "one by one"])
@pytest.mark.parametrize("guard", [2.0**-40, inf], ids=["floats", "exact"])
@pytest.mark.parametrize("sigma", SIGMAS, ids=lambda sigma: f"{float(sigma):.6g}")
def test_the_words_next_to_every_cut_are_decided_as_the_law_says(
    sigma: Fraction, guard: float, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the law is exact: numbers just below and above Φ(-(m + 1/2)/σ) make m + 1 and m."""
    monkeypatch.setattr(normal, "_FEW", few)
    sampler, scale = RoundedNormalSampler(sigma**2, guard), float(sigma)
    for m in {int(scale * z) for z in (0, 0.01, 0.5, 1, 2, 3, 5, 8)}:
        with mpmath.workprec(400):
            exact = (mpmath.mpf(m) + 0.5) / (mpmath.mpf(sigma.numerator) / sigma.denominator)
            fine = int(mpmath.floor(mpmath.erfc(exact / mpmath.sqrt(2)) / 2 * mpmath.mpf(2) ** (2 * WORD)))
        cut, after = fine >> WORD, fine & (1 << WORD) - 1
        assert drawn(sampler, PLUS | cut) is None
        assert drawn(sampler, PLUS | cut, after) is None
        assert drawn(sampler, PLUS | cut, after - 1) == m + 1
        assert drawn(sampler, PLUS | cut, after + 1) == m
        assert drawn(sampler, cut, after + 1) == -m
        tail = norm.sf((m + 0.5) / scale)  # a quarter of the way to the next cut, on either side
        for step in (norm.sf((m - 0.5) / scale) - tail, norm.sf((m + 1.5) / scale) - tail):
            far = int(min(2.0**WORD * step / 4, 2.0 ** (WORD - 3)))
            if abs(far) > 1:
                assert drawn(sampler, PLUS | cut + far) == (m if far > 0 else m + 1)


@pytest.mark.parametrize("sigma", SIGMAS, ids=lambda sigma: f"{float(sigma):.6g}")
def test_floats_only_filter(sigma: Fraction) -> None:
    """The exact comparison alone, forced for every draw, makes the same of the same words."""
    by_floats = RoundedNormalSampler(sigma**2).draw(300, SeededNoise(4))
    assert (by_floats == RoundedNormalSampler(sigma**2, guard=inf).draw(300, SeededNoise(4))).all()


@pytest.mark.parametrize("sigma", SIGMAS, ids=lambda sigma: f"{float(sigma):.6g}")
def test_a_word_makes_the_same_alone_and_among_others(sigma: Fraction) -> None:
    sampler = RoundedNormalSampler(sigma**2)
    words = SeededNoise(4).words(300)
    alone = [drawn(sampler, int(word)) for word in words]
    assert sum(one is None for one in alone) <= 3  # the few that the first word does not decide
    among = sampler.draw(300, SeededNoise(4))
    assert [one for one in alone if one is not None] == among[[one is not None for one in alone]].tolist()


def law(sigma: float, reach: int) -> np.ndarray:
    """Of -reach, …, reach, with the tails at the ends."""
    cuts = norm.cdf((np.arange(-reach, reach) + 0.5) / sigma)
    return np.diff(np.concatenate([[0.0], cuts, [1.0]]))


@pytest.mark.parametrize(
    ("sigma", "guard"), [(0.4, 2.0**-40), (1.0, 2.0**-40), (6.0, 2.0**-40), (0.4, inf), (1.0, 2.0**-3)]
)
def test_draws_follow_the_law_of_a_rounded_normal(sigma: float, guard: float) -> None:
    """False alarms at 1e-9; noise 10% too small, and noise that is cut off instead of rounded, are seen."""
    draws, reach = 30_000 if guard == 2.0**-40 else 10_000, int(7 * sigma) + 2
    found = RoundedNormalSampler(Fraction(sigma) ** 2, guard).draw(draws, SeededNoise(11))
    counts = np.bincount(np.clip(found, -reach, reach) + reach, minlength=2 * reach + 1).tolist()
    assert_follows(counts, law(sigma, reach).tolist())
    assert_does_not_follow(counts, law(sigma * 0.9, reach).tolist())
    floored = np.diff(np.concatenate([[0.0], norm.cdf(np.arange(-reach, reach) / sigma + 1 / sigma), [1.0]]))
    assert_does_not_follow(counts, floored.tolist())


def test_the_tails_reach_beyond_a_word() -> None:
    """A word of zeros is further out than 9 deviations; how far, the next words say."""
    sampler = RoundedNormalSampler(Fraction(10**6))
    assert drawn(sampler, 0) is None
    near, far = drawn(sampler, 0, 1 << 62), drawn(sampler, 0, 0, 1 << 62)
    assert near is not None
    assert far is not None
    assert -9_400 < near < -9_000
    assert -13_200 < far < -12_900


def test_an_answer_lies_on_a_lattice_that_does_not_depend_on_the_value() -> None:
    assert rounded_normal(3, 5, noise=SeededNoise(1)).dtype == np.int64
    assert rounded_normal(3, 0, noise=SeededNoise(1)).size == 0


@pytest.mark.parametrize("sigma", [0, -1, MAX_SIGMA + 1])
def test_a_deviation_that_cannot_be_is_refused(sigma: int) -> None:
    with pytest.raises(ParameterError, match="sigma"):
        rounded_normal(sigma, 1, noise=SeededNoise(1))
    with pytest.raises(ParameterError, match="size"):
        rounded_normal(1, -1, noise=SeededNoise(1))
