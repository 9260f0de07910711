"""Samplers of noise, coins and integers against their exact laws; their sources, and what they refuse."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray

from scripted_noise import Script
from statistical import assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy.noise.law import (
    discrete_gaussian_log_law,
    discrete_gaussian_quantile,
    discrete_gaussian_tail,
    discrete_laplace_log_law,
    discrete_laplace_quantile,
    discrete_laplace_tail,
)
from understudy.noise.samplers import (
    WORD,
    SeededNoise,
    SystemNoise,
    _sampler,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    uniform_array,
    uniform_below,
)
from understudy.noise.selection import choose

Sampler = Callable[..., NDArray[np.int64]]

SCALES = [
    Fraction(number)
    for number in (
        "1/3",
        "1/2",
        "10/7",
        "3",
        "17/2",
        "32",
        "100/3",
        "64",
        "1000",
        "123456/7",
        "1000000",
        "1099511627776",
    )
]
VARIANCES = [
    Fraction(number)
    for number in (
        "1/9",
        "1/3",
        "2",
        "50/7",
        "100",
        "1024",
        "3333/2",
        "4097",
        "1000000",
        "1000000000/7",
        "1000000000000",
        "1152921504606846976",
    )
]


# ---------------------------------------------------------------------------------------- laws


def cells(
    tail: Callable[..., float], quantile: Callable[..., int], parameter: Fraction
) -> tuple[NDArray[np.int64], Callable[[Fraction], list[float]]]:
    """Edges of about forty cells of equal weight, and the law of any parameter over them."""
    edges = sorted({0, *(quantile(parameter, beta) for beta in np.arange(1, 20) / 20)})

    def law(other: Fraction) -> list[float]:
        tails = [tail(other, t) for t in edges]
        positive = [(a - b) / 2 for a, b in pairwise(tails)] + [tails[-1] / 2]
        return [*reversed(positive), 1 - tails[0], *positive]

    return np.array(edges), law


def tally(draws: NDArray[np.int64], edges: NDArray[np.int64]) -> list[int]:
    index = np.sign(draws) * np.searchsorted(edges, np.abs(draws), side="left")
    return np.bincount(index + len(edges), minlength=2 * len(edges) + 1).tolist()


def assert_law_and_mutants(
    sampler: Sampler, tail: Callable[..., float], quantile: Callable[..., int], parameter: Fraction, seed: int
) -> None:
    draws = sampler(parameter, 1_000_000, noise=SeededNoise(seed))
    edges, law = cells(tail, quantile, parameter)
    counts = tally(draws, edges)
    assert_follows(counts, law(parameter))
    for factor in (Fraction("0.8"), Fraction("0.97"), Fraction("1.03"), Fraction("1.25")):
        assert_does_not_follow(counts, law(parameter * factor))


@pytest.mark.parametrize("scale", [s for s in SCALES if s < 2**39])
def test_discrete_laplace_follows_its_law(scale: Fraction) -> None:
    assert_law_and_mutants(discrete_laplace, discrete_laplace_tail, discrete_laplace_quantile, scale, seed=1)


@pytest.mark.parametrize("variance", [v for v in VARIANCES if v < 2**59])
def test_discrete_gaussian_follows_its_law(variance: Fraction) -> None:
    assert_law_and_mutants(
        discrete_gaussian, discrete_gaussian_tail, discrete_gaussian_quantile, variance, seed=2
    )


def test_the_largest_parameters_follow_their_laws() -> None:
    for sampler, tail, quantile, parameter in (
        (discrete_laplace, discrete_laplace_tail, discrete_laplace_quantile, SCALES[-1]),
        (discrete_gaussian, discrete_gaussian_tail, discrete_gaussian_quantile, VARIANCES[-1]),
    ):
        counts_of = sampler(parameter, 1_000_000, noise=SeededNoise(3))
        edges, law = cells(tail, quantile, parameter)
        assert_follows(tally(counts_of, edges), law(parameter))
        assert_does_not_follow(tally(counts_of, edges), law(parameter * Fraction("0.97")))


@pytest.mark.parametrize(
    ("sampler", "log_law", "parameter"),
    [
        (discrete_laplace, discrete_laplace_log_law, Fraction(9, 2)),
        (discrete_laplace, discrete_laplace_log_law, Fraction(33)),
        (discrete_laplace, discrete_laplace_log_law, Fraction(260, 3)),
        (discrete_gaussian, discrete_gaussian_log_law, Fraction(37, 3)),
        (discrete_gaussian, discrete_gaussian_log_law, Fraction(33**2)),
        (discrete_gaussian, discrete_gaussian_log_law, Fraction(15007, 2)),
    ],
)
def test_every_integer_has_its_probability(
    sampler: Sampler, log_law: Callable[..., NDArray[np.float64]], parameter: Fraction
) -> None:
    draws = sampler(parameter, 2_000_000, noise=SeededNoise(4))
    reach = 4000
    counts = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)
    points = np.arange(-reach, reach + 1)
    assert_follows(counts.tolist(), np.exp(log_law(parameter, points)).tolist())
    assert_does_not_follow(counts.tolist(), np.exp(log_law(parameter * Fraction("1.02"), points)).tolist())


def test_the_rejection_step_is_seen() -> None:
    """The low part has a geometric law, and not the uniform one of a sampler that never rejects."""
    scale = 10**6
    sampler = _sampler(Fraction(1, scale), 1)
    never = replace(sampler, rate=sampler.rate / 10**9)
    shift = sampler.low_bits - 3
    law = np.exp(-(np.arange(8) << shift) / scale)

    def eighths(draws: NDArray[np.int64]) -> list[int]:
        return np.bincount(np.abs(draws) >> shift & 7, minlength=8).tolist()

    noise = SeededNoise(4)
    right, wrong = (np.concatenate([s.draw(1 << 15, noise) for _ in range(60)]) for s in (sampler, never))
    assert_follows(eighths(right), (law / law.sum()).tolist())
    assert_does_not_follow(eighths(wrong), (law / law.sum()).tolist())


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(40), Fraction(10**6)])
def test_laplace_parity_and_sign(scale: Fraction) -> None:
    draws = discrete_laplace(scale, 1_000_000, noise=SeededNoise(5))
    ratio = exp(-1 / float(scale))
    even = (1 + ratio**2) / (1 + ratio) ** 2
    odd_count = int((draws & 1).sum())
    assert_follows([draws.size - odd_count, odd_count], [even, 1 - even])
    assert_symmetric(draws)


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(7, 3), Fraction(2000), Fraction(10**12)])
def test_gaussian_parity_and_sign(variance: Fraction) -> None:
    draws = discrete_gaussian(variance, 1_000_000, noise=SeededNoise(6))
    points = np.arange(-600, 601)
    law = np.exp(discrete_gaussian_log_law(variance, points))
    even = float(law[points % 2 == 0].sum()) if variance < 10**4 else 0.5
    odd_count = int((draws & 1).sum())
    assert_follows([draws.size - odd_count, odd_count], [even, 1 - even])
    assert_symmetric(draws)


def assert_symmetric(draws: NDArray[np.int64]) -> None:
    counts = [int((draws > 0).sum()), int((draws < 0).sum())]
    assert_follows(counts, [0.5, 0.5])
    assert_does_not_follow(counts, [0.52, 0.48])


def test_draws_are_independent_of_their_neighbours() -> None:
    draws = np.sign(discrete_laplace(50, 400_001, noise=SeededNoise(7)))
    agree = int((draws[1:] == draws[:-1])[(draws[1:] != 0) & (draws[:-1] != 0)].sum())
    both = int(((draws[1:] != 0) & (draws[:-1] != 0)).sum())
    assert_follows([agree, both - agree], [0.5, 0.5])


# ---------------------------------------------------------------------------------------- coins, integers


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 2), Fraction(3, 1000), Fraction(99, 100)])
def test_bernoulli_follows_its_law(p: Fraction) -> None:
    ones = int(bernoulli(p, 1_000_000, noise=SeededNoise(21)).sum())
    assert_follows([ones, 1_000_000 - ones], [float(p), float(1 - p)])
    for factor in (0.8, 1.25) if p < Fraction(4, 5) else (0.99,):
        assert_does_not_follow([ones, 1_000_000 - ones], [float(p) * factor, 1 - float(p) * factor])


def test_sure_coins() -> None:
    assert not bernoulli(0, 100, noise=Script()).any()
    assert bernoulli(1, 100, noise=Script()).all()
    assert bernoulli_exp(0, 100, noise=Script()).all()
    assert not bernoulli_exp(10**9, 100, noise=SeededNoise(22)).any()


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 64, 100])
def test_uniform_below_is_uniform(bound: int) -> None:
    noise = SeededNoise(23)
    counts = np.bincount([uniform_below(bound, noise=noise) for _ in range(20_000)], minlength=bound)
    assert len(counts) == bound
    assert_follows(counts.tolist(), [1 / bound] * bound)
    if bound > 2:
        wrong = np.linspace(0.8, 1.2, bound)
        assert_does_not_follow(counts.tolist(), (wrong / wrong.sum()).tolist())


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 64, 100])
def test_uniform_array_is_uniform(bound: int) -> None:
    draws = uniform_array(bound, 60_000, noise=SeededNoise(bound))
    counts = np.bincount(draws, minlength=bound)
    assert len(counts) == bound
    assert_follows(counts.tolist(), [1 / bound] * bound)
    if bound > 2:
        skewed = np.arange(bound) + 3.0 * bound
        assert_does_not_follow(counts.tolist(), (skewed / skewed.sum()).tolist())


def test_uniform_array_rejects_rather_than_wraps() -> None:
    top = 1 << 62
    assert uniform_array(3, 2, noise=Script(3 * top, top, 0)).tolist() == [0, 1]
    assert uniform_array(3, 0, noise=Script()).tolist() == []
    for bound in (0, -1, 2**63):
        with pytest.raises(ParameterError):
            uniform_array(bound, 1, noise=SystemNoise())


def test_uniform_below_a_bound_of_many_words() -> None:
    noise, bound = SeededNoise(24), 3**200
    drawn = [uniform_below(bound, noise=noise) for _ in range(20_000)]
    assert all(0 <= x < bound for x in drawn)
    assert_follows(np.bincount([10 * x // bound for x in drawn], minlength=10).tolist(), [0.1] * 10)
    assert_follows(np.bincount([x % 10 for x in drawn], minlength=10).tolist(), [0.1] * 10)


def test_uniform_below_rejects_rather_than_wraps() -> None:
    high = 3 << WORD - 2
    assert uniform_below(3, noise=Script(high, high, 2 << WORD - 2)) == 2


# ---------------------------------------------------------------------------------------- sources, parameters


@pytest.mark.system_noise
def test_forked_processes_do_not_share_a_stream() -> None:
    source = SystemNoise()
    source.words(4)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks among threads
        child = os.fork()
    if child == 0:
        os.write(writer, source.words(4).tobytes())
        os._exit(0)
    os.close(writer)
    theirs = os.read(reader, 64)
    os.close(reader)
    os.waitpid(child, 0)
    assert len(theirs) == 32
    assert theirs != source.words(4).tobytes()


@pytest.mark.system_noise
def test_system_noise_is_uniform() -> None:
    words = SystemNoise().words(100_000)
    assert words.dtype == np.uint64
    for shift in (0, 24, 56):
        counts = np.bincount((words >> np.uint64(shift) & np.uint64(255)).astype(int), minlength=256)
        assert_follows(counts.tolist(), [1 / 256] * 256)


def test_seeded_noise_repeats() -> None:
    def everything(seed: int) -> tuple[object, ...]:
        noise = SeededNoise(seed)
        return (
            discrete_laplace(Fraction(1000, 3), 100, noise=noise).tolist(),
            discrete_gaussian(Fraction(10**7), 100, noise=noise).tolist(),
            choose(np.arange(1000), Fraction(1, 100), noise=noise),
            bernoulli(Fraction(1, 3), 50, noise=noise).tolist(),
            uniform_below(10**30, noise=noise),
        )

    assert everything(25) == everything(25)
    assert everything(25) != everything(26)


@pytest.mark.system_noise
def test_the_default_source_differs_each_time() -> None:
    a, b = (discrete_laplace(10**6, 10, noise=SystemNoise()).tolist() for _ in range(2))
    assert a != b


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("size", [0, 1, 2, 32_767, 32_769])
def test_sizes(sampler: Sampler, size: int) -> None:
    for parameter in (Fraction(1, 1000), Fraction(5), Fraction(10**6)):
        draws = sampler(parameter, size, noise=SeededNoise(27))
        assert draws.shape == (size,)
        assert draws.dtype == np.int64
    assert bernoulli(Fraction(1, 3), size, noise=SeededNoise(27)).shape == (size,)


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), 2**61, "3", True, None])
def test_bad_parameters_are_refused(sampler: Sampler, bad: object) -> None:
    with pytest.raises(ParameterError):
        sampler(bad, 10, noise=SystemNoise())


def test_other_bad_parameters_are_refused() -> None:
    noise = SystemNoise()
    for p in (-0.1, 1.5, float("nan")):
        with pytest.raises(ParameterError):
            bernoulli(p, 3, noise=noise)
    with pytest.raises(ParameterError):
        bernoulli_exp(-1, 3, noise=noise)
    with pytest.raises(ParameterError):
        uniform_below(0, noise=noise)
    for sampler in (discrete_laplace, discrete_gaussian):
        with pytest.raises(ParameterError):
            sampler(1, -1, noise=noise)
    with pytest.raises(TypeError):
        discrete_laplace(1, 2.5, noise=noise)  # pyright: ignore[reportArgumentType]


def test_tiny_scales_are_almost_always_zero() -> None:
    assert not discrete_laplace(Fraction(1, 1000), 1000, noise=SystemNoise()).any()
    assert not discrete_gaussian(Fraction(1, 1000), 1000, noise=SystemNoise()).any()
