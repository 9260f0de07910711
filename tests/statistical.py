"""Statistical assertions at one false-alarm rate. A failure is a bug, not bad luck."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
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


def assert_at_most(failures: int, trials: int, beta: float) -> None:
    """Exact binomial test that the failure probability is at most beta."""
    p = float(stats.binom.sf(failures - 1, trials, beta))
    assert p >= FALSE_ALARM, f"{failures} failures in {trials} trials: p = {p:.3g} against beta = {beta}"
