"""Bounded noise: each proposal is kept or not as the law says, by integers or exactly, and none lies beyond."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripted_noise import Script
from statistical import assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy.noise.bounded import (
    MAX_REACH,
    BoundedSampler,
    _sine_enclosure,
    bounded,
    bounded_log_law,
)
from understudy.noise.samplers import WORD, SeededNoise

REACHES = [1, 2, 7, 100, 2000, 2**15, MAX_REACH]


def law(reach: int, power: float = 3.5) -> np.ndarray:
    weights = np.cos(np.pi * np.arange(-reach, reach + 1) / (2 * reach + 2)) ** power
    return weights / weights.sum()


@given(
    st.fractions(Fraction(1, 10**7), Fraction(1, 2), max_denominator=10**7), st.sampled_from([64, 130, 500])
)
def test_a_sine_lies_between_its_integers(w: Fraction, precision: int) -> None:
    low, high = _sine_enclosure(w, precision)
    with mpmath.workprec(precision + 100):
        exact = mpmath.sin(mpmath.pi * w.numerator / w.denominator) * mpmath.mpf(2) ** precision
        assert low <= exact <= high
    assert high - low <= precision


def kept(sampler: BoundedSampler, place: int, start: int, *more: int) -> bool | None:
    """Whether the proposal of a place with these first bits is kept; None where more words are needed."""
    script = Script(place << sampler.spare | start, *more)
    try:
        found = sampler.draw(1, script)
    except EOFError:
        return None
    assert not script.left
    assert found.size == 0 or found[0] == place - sampler.reach
    return bool(found.size)


@pytest.mark.parametrize("guard", [2.0**-40, inf], ids=["integers", "exact"])
@pytest.mark.parametrize("reach", REACHES)
def test_numbers_next_to_every_cut_are_decided_as_the_law_says(reach: int, guard: float) -> None:
    """So the law is exact: a number just below cos^(7/2) keeps its proposal, and one just above does not."""
    sampler = BoundedSampler.of(reach, guard)
    for place in {0, 1, reach // 2, reach - 1, reach + 1, 2 * reach - 1, 2 * reach} - {reach}:
        with mpmath.workprec(400):
            cosine = mpmath.cos(mpmath.pi * (place - reach) / (2 * reach + 2))
            fine = int(mpmath.floor(cosine ** mpmath.mpf("3.5") * mpmath.mpf(2) ** (sampler.spare + WORD)))
        cut, after = fine >> WORD, fine & (1 << WORD) - 1
        assert kept(sampler, place, cut) is None
        assert kept(sampler, place, cut, after) is None
        assert kept(sampler, place, cut, after - 1) is True
        assert kept(sampler, place, cut, after + 1) is False
        for far in (1 << sampler.spare - 20, 1 << max(sampler.spare - 3, 0)):
            if cut - far >= 0 and cut + far < 1 << sampler.spare:
                assert kept(sampler, place, cut - far) is True
                assert kept(sampler, place, cut + far) is False


@pytest.mark.parametrize("reach", REACHES)
def test_zero_is_always_kept_and_nothing_lies_beyond_the_reach(reach: int) -> None:
    sampler = BoundedSampler.of(reach)
    assert kept(sampler, reach, (1 << sampler.spare) - 1) is True
    if 2 * reach + 1 < 1 << WORD - sampler.spare:
        assert kept(sampler, 2 * reach + 1, 0) is False


@pytest.mark.parametrize("reach", REACHES)
def test_integers_only_filter(reach: int) -> None:
    """The exact comparison alone, forced for every proposal, makes the same of the same words."""
    by_cuts = BoundedSampler.of(reach).draw(150, SeededNoise(4))
    assert by_cuts.size > 20
    assert (by_cuts == BoundedSampler.of(reach, inf).draw(150, SeededNoise(4))).all()


@pytest.mark.parametrize(
    ("reach", "guard", "draws"),
    [(1, 2.0**-40, 60_000), (6, 2.0**-40, 60_000), (40, 2.0**-40, 150_000), (6, inf, 9_000)],
)
def test_draws_follow_the_law(reach: int, guard: float, draws: int) -> None:
    """False alarms at 1e-9; a reach that is 5% short, cos³ and cos⁴ are seen where there are draws enough."""
    found = BoundedSampler.of(reach, guard).draw(draws, SeededNoise(11))
    counts = np.bincount(found + reach, minlength=2 * reach + 1).tolist()
    assert len(counts) == 2 * reach + 1
    assert_follows(counts, law(reach).tolist())
    if guard < 1:
        assert_does_not_follow(counts, law(reach, 3.0).tolist())
        assert_does_not_follow(counts, law(reach, 4.0).tolist())
    if reach == 40:
        shorter = np.pad(law(38), 2)
        assert_does_not_follow(counts, shorter.tolist())


def test_many_draws_are_made_in_batches_and_as_many_as_were_asked_for() -> None:
    found = bounded(2000, 100_000, noise=SeededNoise(5))
    assert found.size == 100_000
    assert found.dtype == np.int64
    assert np.abs(found).max() <= 2000
    spread = float((law(2000) * np.arange(-2000, 2001) ** 2).sum()) ** 0.5
    assert float(found.std()) == pytest.approx(spread, rel=0.015)  # over 6 deviations of it
    assert bounded(5, 0, noise=SeededNoise(1)).size == 0


@given(st.integers(1, 3000))
@settings(max_examples=30)
def test_the_log_law_is_the_law(reach: int) -> None:
    points = np.arange(-reach - 2, reach + 3)
    found = np.exp(bounded_log_law(reach, points))
    assert found[:2].sum() == found[-2:].sum() == 0
    assert found[2:-2] == pytest.approx(law(reach), rel=1e-9)


@pytest.mark.parametrize("reach", [0, -1, MAX_REACH + 1])
def test_a_reach_that_cannot_be_is_refused(reach: int) -> None:
    with pytest.raises(ParameterError, match="reach"):
        bounded(reach, 1, noise=SeededNoise(1))
    with pytest.raises(ParameterError, match="size"):
        bounded(1, -1, noise=SeededNoise(1))
    with pytest.raises(TypeError):
        bounded(2.5, 1, noise=SeededNoise(1))  # type: ignore[arg-type]
