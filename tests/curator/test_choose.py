"""Choosing by exponential weights: exact on both sides of every boundary of its law."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from scripted_noise import Script
from statistical import assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy.noise.law import exp_enclosure
from understudy.noise.samplers import WORD, NoiseSource, SeededNoise, SystemNoise
from understudy.noise.selection import _SelectionSampler, choose, choose_many


def selection_law(
    levels: Sequence[int], rate: Fraction, counts: Sequence[int], bits: int = 1500
) -> list[Fraction]:
    """Cumulative law of `choose`, within 2^-300."""
    low = min(level for level, count in zip(levels, counts, strict=True) if count)
    weights = [
        count * exp_enclosure(rate * max(0, level - low), bits)[0]
        for level, count in zip(levels, counts, strict=True)
    ]
    return [Fraction(c, sum(weights)) for c in accumulate(weights)]


CASES: list[tuple[list[int], Fraction, list[int] | None]] = [
    ([0, 0, 0], Fraction(1), None),
    ([5, -3, 0, 12, -3], Fraction(1, 4), None),
    ([0, 30, 31], Fraction(1), None),
    ([-(2**63), 2**63 - 1, -(2**63) + 1], Fraction(1, 3), None),
    ([0, 460, 3], Fraction(1), [1, 10**200, 3]),
    ([0, 100, 200], Fraction(0), [10**300, 2 * 10**300, 10**299]),
    ([7, 0, 9], Fraction(2, 3), [3, 0, 10]),
    ([10**15, -(10**15), 10**15 + 1], Fraction(1, 3), [1, 0, 1]),
    (list(range(300)), Fraction(1, 100), None),
]


def select(levels: Sequence[int], rate: Fraction, counts: Sequence[int] | None, noise: NoiseSource) -> int:
    return choose(np.array(levels, dtype=np.int64), rate, noise=noise, multiplicities=counts)


@pytest.mark.parametrize(("levels", "rate", "counts"), CASES)
def test_choose_is_exact_on_both_sides_of_every_boundary(
    levels: list[int], rate: Fraction, counts: list[int] | None
) -> None:
    """The uniform number is set next to each boundary of the law: one word away, then one word in 2⁶⁴ away."""
    cumulative = selection_law(levels, rate, counts or [1] * len(levels))
    for words in (1, 2):
        unit = 1 << WORD * words
        for cut in {boundary * unit // 1 for boundary in cumulative[:: 1 + len(levels) // 12]}:
            for u in (cut - 1, cut + 1):
                if not 0 <= u < unit or any(boundary * unit // 1 == u for boundary in cumulative):
                    continue
                script = Script(*(u >> WORD * i & (1 << WORD) - 1 for i in reversed(range(words))), 1 << 63)
                assert select(levels, rate, counts, script) == bisect_right(cumulative, Fraction(u, unit))


def test_a_tie_asks_for_more_words() -> None:
    cumulative = selection_law([0, 1], Fraction(1), [1, 1])
    with pytest.raises(EOFError):
        select([0, 1], Fraction(1), None, Script(int(cumulative[0] * 2**64)))


def test_a_gap_of_ten_thousand_is_unlikely_and_not_impossible() -> None:
    """Candidate 0 has probability e^-10000: it is chosen by a uniform number below that, and by none above."""
    bits = 1 << 14  # 64 · 2^8, as `choose` doubles its uniform number until it is decided
    tiny = exp_enclosure(Fraction(10**4), bits + 100)[0]
    cut = tiny * (1 << bits) // ((1 << bits + 100) + tiny)
    assert 0 < cut.bit_length() < 2000  # e^-10000 is 2^-14427
    for u, chosen in ((cut - 1, 0), (cut + 1, 1)):
        words, last = [], bits
        for first in [0, *(WORD << i for i in range(8))]:
            size = (first or WORD) // WORD
            last -= size * WORD
            part = u >> last & (1 << size * WORD) - 1
            words += [part >> WORD * i & (1 << WORD) - 1 for i in range(size)]  # least significant first
        script = Script(*words)
        assert select([10**4, 0], Fraction(1), None, script) == chosen
        assert script.left == []


def test_choose_follows_its_law() -> None:
    levels, rate, noise = [0, 3, 1, 8, 3, -1], Fraction(2, 5), SeededNoise(16)
    counts = np.bincount([select(levels, rate, None, noise) for _ in range(20_000)], minlength=6)
    for factor, check in (
        (1.0, assert_follows),
        (0.8, assert_does_not_follow),
        (1.25, assert_does_not_follow),
    ):
        weights = np.exp(-float(rate) * factor * np.array(levels))
        check(counts.tolist(), (weights / weights.sum()).tolist())


def test_choose_follows_its_law_with_multiplicities() -> None:
    levels, rate, noise = [0, 460, 461, 900], Fraction(1), SeededNoise(17)
    multiplicities = [3, 10**200, 2 * 10**200, 10**391]
    drawn = [select(levels, rate, multiplicities, noise) for _ in range(20_000)]
    logs = np.array([log(m) for m in multiplicities]) - np.array(levels)
    for factor, check in (
        (1.0, assert_follows),
        (0.8, assert_does_not_follow),
        (1.25, assert_does_not_follow),
    ):
        weights = np.exp(factor * (logs - logs.max()))
        check(np.bincount(drawn, minlength=4).tolist(), (weights / weights.sum()).tolist())


def test_the_exact_path_alone_makes_the_law() -> None:
    gaps, noise = np.array([0, 2, 5, 1, 1, 9], dtype=np.uint64), SeededNoise(18)
    selection = _SelectionSampler(gaps, Fraction(1, 3), margin=1.0)
    assert selection.by_floats(np.array([1 << 62], np.uint64)).tolist() == [-1]
    counts = np.bincount(selection.draw(8_000, noise), minlength=6)
    for factor, check in (
        (1.0, assert_follows),
        (0.8, assert_does_not_follow),
        (1.25, assert_does_not_follow),
    ):
        weights = np.exp(-gaps.astype(float) / 3 * factor)
        check(counts.tolist(), (weights / weights.sum()).tolist())


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(-(10**4), 10**4), min_size=1, max_size=300),
    st.fractions(min_value=0, max_value=5, max_denominator=1000),
    st.integers(0, 2**64 - 1),
    st.integers(0, 10**6),
)
def test_floats_never_contradict_integers(levels: list[int], rate: Fraction, word: int, pick: int) -> None:
    """At any uniform number, also close to a boundary, floats give the exact answer or none."""
    cumulative = selection_law(levels, rate, [1] * len(levels))
    selection = _SelectionSampler((np.array(levels) - min(levels)).astype(np.uint64), rate)
    boundary = int(cumulative[pick % len(levels)] * 2**64)
    for start in (word, *(boundary + offset for offset in (-(2**12), -(2**9), -3, 3, 2**9, 2**12))):
        if 0 <= start < 2**64:
            (found,) = selection.by_floats(np.array([start], np.uint64))
            assert found in (-1, bisect_right(cumulative, Fraction(2 * start + 1, 2**65)))


def test_choose_among_a_million() -> None:
    """All but a few first words are settled by floats, and agree with the exact path."""
    rng = np.random.default_rng(19)
    levels = rng.integers(0, 50, 1_000_000)
    selection = _SelectionSampler((levels - levels.min()).astype(np.uint64), Fraction(1, 7))
    starts = [int(word) for word in SeededNoise(20).words(3)]
    distinct, groups = np.unique(selection.gaps, return_inverse=True)
    for start in starts:
        (found,) = selection.by_floats(np.array([start], np.uint64))
        assert found == selection.by_integers(distinct.tolist(), groups.tolist(), start, 64)
    chosen = [choose(levels, Fraction(1, 7), noise=SeededNoise(seed)) for seed in range(40)]
    assert np.mean(levels[chosen]) < 15


@pytest.mark.parametrize("size", [1, 2, 64, 65, 5_000])
def test_many_choices_are_those_of_one_at_a_time(size: int) -> None:
    """Each first word settles its draw, whether it comes alone or among others."""
    levels = np.random.default_rng(size).integers(0, 40, size)
    many = choose_many(levels, Fraction(1, 9), 300, noise=SeededNoise(21))
    noise = SeededNoise(21)
    assert many.tolist() == [choose(levels, Fraction(1, 9), noise=noise) for _ in range(300)]
    assert choose_many(levels, Fraction(1, 9), 0, noise=noise).size == 0
    with pytest.raises(ParameterError):
        choose_many(levels, Fraction(1, 9), -1, noise=noise)


def test_choose_alone() -> None:
    assert select([17], Fraction(3), None, SystemNoise()) == 0
    assert select([17, -4], Fraction(3), [1, 0], SystemNoise()) == 0


@pytest.mark.parametrize(
    ("levels", "rate", "multiplicities"),
    [
        (np.array([], dtype=np.int64), 1, None),
        (np.array([0.5, 1.0]), 1, None),
        (np.array([[1, 2]]), 1, None),
        (np.array([1, 2], dtype=np.uint64), 1, None),
        (np.array([1, 2]), -1, None),
        (np.array([1, 2]), float("nan"), None),
        (np.array([1, 2]), 2**41, None),
        (np.array([1, 2]), Fraction(1, 2**201), None),
        (np.array([1, 2]), 1, [1]),
        (np.array([1, 2]), 1, [0, 0]),
        (np.array([1, 2]), 1, [3, -1]),
    ],
)
def test_choose_refuses_bad_parameters(
    levels: NDArray[np.int64], rate: Fraction, multiplicities: list[int] | None
) -> None:
    with pytest.raises(ParameterError):
        choose(levels, rate, noise=SystemNoise(), multiplicities=multiplicities)
