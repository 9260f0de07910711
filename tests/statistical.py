"""Statistical assertions at one false-alarm rate. A failure is a bug, not bad luck."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FALSE_ALARM = 1e-9


def p_value_follows(counts: Sequence[int], law: Sequence[float]) -> float:
    """Chi-square p-value of observed counts against a law; cells expecting under 10 are pooled."""
    observed = np.asarray(counts, dtype=float)
    expected = np.asarray(law, dtype=float) * observed.sum()
    assert abs(float(np.sum(law)) - 1) < 1e-9, "the law must sum to 1: include the tails"
    rare = expected < 10
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] == 0:
            assert observed[-1] == 0, "an impossible outcome was drawn"
            observed, expected = observed[:-1], expected[:-1]
    if len(expected) < 2:
        return 1.0
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def assert_follows(counts: Sequence[int], law: Sequence[float]) -> None:
    p = p_value_follows(counts, law)
    assert p >= FALSE_ALARM, f"p = {p:.3g} < {FALSE_ALARM} (false alarms at that rate)"


def assert_does_not_follow(counts: Sequence[int], law: Sequence[float]) -> None:
    """The power check: a mutant law must be rejected at the same rate."""
    p = p_value_follows(counts, law)
    assert p < FALSE_ALARM, f"a wrong law passed with p = {p:.3g}: the check has no power"


def p_value_at_most(failures: int, trials: int, beta: float) -> float:
    """Probability of as many failures or more, if each trial fails with probability beta: exact binomial."""
    return float(stats.binom.sf(failures - 1, trials, beta))


def assert_at_most(failures: int, trials: int, beta: float) -> None:
    """The failure probability is at most beta. A call that would stay green if every trial failed is an error.

    That one is no AssertionError, lest a mutant count as noticed where nothing could be.

    >>> assert_at_most(2, 20, 0.2)
    >>> assert_at_most(0, 2, 0.2)
    Traceback (most recent call last):
    ValueError: 2 trials are too few to tell anything against beta = 0.2
    """
    if beta**trials >= FALSE_ALARM:
        raise ValueError(f"{trials} trials are too few to tell anything against beta = {beta}")
    p = p_value_at_most(failures, trials, beta)
    assert p >= FALSE_ALARM, f"{failures} failures in {trials} trials: p = {p:.3g} against beta = {beta}"


def assert_covers(ratios: Sequence[float] | NDArray[np.float64], beta: float, *, mutant: float) -> None:
    """Error bars hold except with probability beta, and shorter ones would be seen not to.

    `ratios` holds for each of several independent trials the error over its bar: the largest such ratio, where
    bars are promised to hold jointly. A trial fails above 1 (and a billionth, for sums of floats). `mutant` is the
    power of the check: bars so many times as long must be rejected at the same rate of false alarms. It is as near
    to 1 as so many trials can tell; 0.8 is what to aim at. A promise that is kept with room to spare (a union
    bound, a theorem for the worst table) is only seen broken below that room, and the caller says so.

    >>> ratios = np.abs(np.random.default_rng(1).normal(size=1000)) / stats.norm.isf(0.05)
    >>> assert_covers(ratios, 0.1, mutant=0.8)

    One that asks for more power than there is, and bars that are too short:

    >>> from pytest import raises
    >>> with raises(AssertionError, match="no power"):
    ...     assert_covers(ratios, 0.1, mutant=0.95)
    >>> with raises(AssertionError, match="failures"):
    ...     assert_covers(ratios / 0.8, 0.1, mutant=0.5)
    """
    found = np.asarray(ratios, dtype=float)
    if not 0 < mutant < 1 or np.isnan(found).any():
        raise ValueError("a mutant's bars are shorter, and a ratio is a number")
    assert_at_most(int((found > 1 + 1e-9).sum()), found.size, beta)
    noticed = int((found > mutant * (1 + 1e-9)).sum())
    p = p_value_at_most(noticed, found.size, beta)
    assert p < FALSE_ALARM, (
        f"bars {mutant} times as long fail in {noticed} of {found.size} trials and pass with p = {p:.3g} against "
        f"beta = {beta}: the check has no power"
    )
