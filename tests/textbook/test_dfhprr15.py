"""Dwork, Feldman, Hardt, Pitassi, Reingold and Roth: short transcripts, and Thresholdout by its exact law."""

from __future__ import annotations

from math import exp, expm1, log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from statistical import assert_does_not_follow, assert_follows
from understudy.noise.samplers import SeededNoise
from understudy.validity.modes import Heard, SealedLook
from understudy.validity.thresholdout import Thresholdout
from understudy_textbook.compression import compression_width
from understudy_textbook.thresholdout import thresholdout_params, thresholdout_rows

Array = NDArray[np.float64]


@pytest.mark.parametrize(
    ("n", "k", "bits"), [(1000, 1, 10), (1000, 100, 20), (10**4, 100, 50), (10**5, 10, 300)]
)
@pytest.mark.parametrize("beta", [0.05, 1e-6])
def test_dfhprr15_short_transcripts_on_independent_queries(n, k, bits, beta):
    """An analyst who has another k queries for each of 2^b transcripts, all about other bits of a row: exactly.

    The largest of so many gaps is above the width with probability β at most; four fifths would be too little.
    """

    def missed(width: float) -> float:
        above = stats.binom.logsf(np.floor(n * (0.5 + width)), n, 0.5) + log(2)
        return -expm1(-exp(min(above + bits * log(2) + log(k), 700.0)))

    width = compression_width(n, k, bits, beta)
    assert missed(width) <= beta
    assert missed(0.8 * width) > beta


# Thresholdout: Lap(2s) on the threshold, Lap(4s) on each comparison, Lap(s) on an answer ----------------------


def below(threshold: Array, gap: float, spread: float) -> Array:
    """P[gap + noise < threshold]."""
    return stats.laplace.cdf(threshold - gap, scale=spread)


def run_law(
    gaps: list[float], threshold: float, scale: float, spreads: tuple[float, float] = (2, 4)
) -> float:
    """P[all but the last guess pass, and the last fails], by integration over the noisy threshold."""
    on_threshold, on_gap = (factor * scale for factor in spreads)
    at = np.linspace(threshold - 40 * on_threshold, threshold + 40 * on_threshold, 40_001)
    density = stats.laplace.pdf(at, threshold, on_threshold)
    for gap in gaps[:-1]:
        density = density * below(at, gap, on_gap)
    return float(np.trapezoid(density * (1 - below(at, gaps[-1], on_gap)), at))


N, SCALE = 50, 0.04


def loss(gaps: list[float], spreads: tuple[float, float] = (2, 4)) -> float:
    """The largest privacy loss of a run: one row moves every gap by 1/n, this way or that."""
    before = run_law(gaps, 0.2, SCALE, spreads)
    passed = len(gaps) - 1
    moves = ([1] * passed + [-1], [-1] * passed + [1], [1] * (passed + 1), [-1] * (passed + 1))
    after = (
        run_law([gap + sign / N for gap, sign in zip(gaps, signs, strict=True)], 0.2, SCALE, spreads)
        for signs in moves
    )
    return max(abs(log(before / law)) for law in after)


WORST = [0.3] * 60 + [0.0]
"""Passing sixty times takes a high threshold, and failing then takes a large noise."""


@pytest.mark.parametrize(
    "gaps", [[0.1], [0.0, 0.3], [0.2, 0.2, 0.2, 0.3], [0.05] * 12 + [0.5], WORST], ids=len
)
def test_dfhprr15_a_run_costs_one_over_ns(gaps):
    """And an answer at its end, with Lap(s), as much again."""
    assert loss(gaps) <= 1 / (N * SCALE) * (1 + 1e-6)


def test_dfhprr15_a_run_with_less_noise_costs_more():
    """The worst run uses up nearly all; four fifths of either noise are too little."""
    assert loss(WORST) > 0.95 / (N * SCALE)
    for spreads in ((1.6, 4), (2, 3.2)):
        assert loss(WORST, spreads) > 1 / (N * SCALE)


def test_dfhprr15_thresholdout_follows_that_law():
    mode = Thresholdout(4000, 20, 0.05, rejections=2)
    gaps = [mode.threshold - 3 * mode.scale, mode.threshold - mode.scale, mode.threshold + 4 * mode.scale]
    noise, counts = SeededNoise(1), np.zeros(4)
    for _ in range(6000):
        heard = Heard()
        said = [
            mode.say(SealedLook.at(0.2 + gap, mode.rows, 0.2), heard, noise=noise)["accepted"] for gap in gaps
        ]
        counts[said.index(False) if False in said else 3] += 1

    def law(scale: float) -> list[float]:
        first = [run_law(gaps[: i + 1], mode.threshold, scale) for i in range(3)]
        return [*first, 1 - sum(first)]

    assert_follows(counts.astype(int).tolist(), law(mode.scale))
    assert_does_not_follow(counts.astype(int).tolist(), law(1.25 * mode.scale))


@pytest.mark.parametrize(("m", "tau", "beta"), [(10, 0.2, 0.05), (10**4, 0.05, 0.01)])
def test_dfhprr15_published_parameters_leave_room(m, tau, beta):
    """T = 3τ/4, s = τ/(96 ln(4m/β)): no noise of m rounds takes an answer further than 13τ/16 from the holdout.

    Each kind of noise passes its share, τ/48, τ/24 and τ/96, in m rounds with probability β/4.
    """
    chosen = thresholdout_params(m, tau, beta)
    for factor, share in ((2, tau / 48), (4, tau / 24), (1, tau / 96)):
        each = float(2 * stats.laplace.sf(share, scale=factor * chosen.scale))
        assert m * each == pytest.approx(beta / 4, rel=1e-9)
    assert chosen.threshold + tau / 48 + tau / 24 == pytest.approx(13 * tau / 16)


def test_dfhprr15_published_rows_grow_as_the_budget_at_first_and_as_its_root_later():
    m, tau, beta = 1000, 0.1, 0.05
    rounds = log(log(m / beta) / tau)
    assert thresholdout_rows(m, tau, beta, 1) == pytest.approx(log(m / beta) / tau**2)
    for budget in (100, 10**4):
        expected = log(m / beta) / tau**2 * sqrt(budget * rounds)
        assert thresholdout_rows(m, tau, beta, budget) == pytest.approx(expected)
