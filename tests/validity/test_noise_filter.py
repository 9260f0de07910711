"""Noise that is chosen on the way: its law, its cap, widths at the realised sum, files that go on, and mutants."""

from __future__ import annotations

from dataclasses import replace
from math import log, pi, sqrt

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from statistical import assert_at_most, assert_does_not_follow, assert_follows
from understudy.errors import HandleClosedError, ParameterError, RefusedError
from understudy.noise.samplers import SeededNoise
from understudy.validity import metrics
from understudy.validity.bounded import Bounded
from understudy.validity.certificate import CAP, FILTER
from understudy.validity.choice import mode_of
from understudy.validity.holdout import Holdout
from understudy.validity.lattice import rounding
from understudy.validity.modes import Gaussian, Heard, SealedLook
from understudy.validity.noise_filter import UNITS
from understudy_audit.analysts.correlation import agreements, voted

N, K, BETA = 2000, 50, 0.05
LABELS = np.random.default_rng(0).integers(0, 2, N)
MODES = ["bounded", "gaussian"]


def made(name: str, rows: int = N, queries: int = K):
    return mode_of(name, rows, queries, BETA, rejections=None)


def told(mode, scales, mean: float = 0.4):
    """What a mode says of one mean, with noise of each of these scales in turn."""
    heard, noise = Heard(), SeededNoise(1)
    look = SealedLook.at(mean, mode.rows)
    said = []
    for scale in scales:
        step = mode.say(replace(look, scale=scale), heard, noise=noise)
        said.append(mode.read(step, heard))
    return said


# ---- widths


def exact_t(mode, scales, *, beta=None, noise=1.0, capped=True) -> float:
    """t by the formulas of Theorem T, with thirty digits; mutants drop β, shrink the noise or ignore its price."""
    n, alpha = mode.rows, mpmath.mpf(mode.filter.alpha)
    with mpmath.workdps(30):
        total = mpmath.mpf(0)
        for scale in scales:
            s = mpmath.mpf(mode.filter.planned if not capped else scale) / noise
            if isinstance(mode, Bounded):
                y = mpmath.pi**2 * alpha / (8 * n * s**2)
                edge = 1 / mpmath.sqrt(2 * y)
                core = mpmath.quad(
                    lambda x, y=y: mpmath.exp(y * x * x) / (1 + x * x) ** 2, [0, edge / 8, edge]
                )
                tail = 2 * y / (1 + 2 * y) * mpmath.sqrt(8 * mpmath.e * y) / mpmath.pi
                total += mpmath.log(4 / mpmath.pi * core + tail)
            else:
                total += n * alpha / (8 * (n * s) ** 2)
        failure = mpmath.mpf(mode.filter.beta if beta is None else beta)
        return float(mpmath.sqrt(alpha * (mpmath.log(1 / failure) + total) / (2 * n * (alpha - 1))))


def reach(mode, scale: float) -> float:
    """How far noise of this scale reaches: r, or the quantile of the largest of k, by bisection."""
    if isinstance(mode, Bounded):
        return scale
    low, high = 0.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        tail = -np.expm1(mode.queries * np.log1p(-2 * ndtr(-middle)))
        low, high = (middle, high) if tail > BETA - mode.filter.beta else (low, middle)
    return scale * high


@pytest.mark.parametrize("name", MODES)
def test_widths_are_those_of_theorem_t_at_the_realised_sum(name):
    mode = made(name)
    planned = mode.filter.planned
    scales = [planned, 2 * planned, planned / 2, 3 * planned, planned, planned / 1.5]
    found = told(mode, scales)
    for j, said in enumerate(found, start=1):
        exact = reach(mode, scales[j - 1]) + exact_t(mode, scales[:j]) + rounding(N)
        assert exact <= said.width * (1 + 1e-9)
        assert said.width == pytest.approx(exact, rel=1e-6)
    last = found[-1].width - rounding(N)
    mutants = {
        "noise that is 20% smaller than its price": exact_t(mode, scales, noise=0.8),
        "the price of chosen noise ignored": exact_t(mode, scales, capped=False),
        "β dropped": exact_t(mode, scales, beta=1),
    }
    for name_of, t in mutants.items():
        assert reach(mode, scales[-1]) + t < last * (1 - 1e-3), name_of


@pytest.mark.parametrize("name", MODES)
def test_planned_noise_grows_to_the_certificate_and_is_the_same_law_as_before(name):
    mode = made(name)
    widths = [said.width for said in told(mode, [None] * K)]
    assert widths == sorted(widths)
    assert widths[-1] == pytest.approx(mode.certificate.width, rel=1e-12)
    assert widths[0] < 0.9 * widths[-1]
    again = [said.value for said in told(mode, [None] * 5)]
    named = [said.value for said in told(mode, [mode.filter.planned] * 5)]
    assert again == named
    assert FILTER in mode.certificate.assumptions
    assert CAP not in mode.certificate.assumptions


def test_one_fine_score_after_many_coarse_ones():
    """What a search needs: coarse scores of all candidates, and the finalist's as fine as what is left allows."""
    mode = Bounded(10**5, 10**4, BETA)
    heard, coarse = Heard(), mode.filter.cost(2 * mode.r)
    assert coarse < UNITS / 3.5
    heard.units = 5000 * coarse
    least = mode.filter.least_scale(heard.units)
    assert least < mode.r / 20
    heard.units += mode.filter.cost(least)
    assert heard.units <= mode.filter.cap
    assert least + mode.filter.t(heard.units) < 0.6 * mode.certificate.width


# ---- the cap


@pytest.mark.parametrize("name", MODES)
def test_noise_that_does_not_fit_is_refused_with_the_least_that_does(name):
    mode = made(name)
    heard = Heard(units=mode.filter.cap - 2 * UNITS)
    look, noise = SealedLook.at(0.4, N), SeededNoise(2)
    with pytest.raises(RefusedError, match="does not fit"):
        mode.say(replace(look, scale=1e-300), heard, noise=noise)
    with pytest.raises(RefusedError, match="does not fit") as refused:
        mode.say(replace(look, scale=1e-9), heard, noise=noise)
    assert "Nothing was counted" in str(refused.value)
    least = mode.filter.least_scale(heard.units)
    assert f"scale={least:.6g}" in str(refused.value)
    with pytest.raises(RefusedError):
        mode.say(replace(look, scale=least * 0.999), heard, noise=noise)
    mode.read(mode.say(replace(look, scale=least), heard, noise=noise), heard)
    assert mode.filter.cap - UNITS / 100 < heard.units <= mode.filter.cap
    heard.units = mode.filter.cap - UNITS // 2
    with pytest.raises(RefusedError, match="does not fit"):
        mode.say(look, heard, noise=noise)
    assert mode.filter.least_scale(mode.filter.cap - mode.filter.cost(1.0)) == 1  # and not a hair more
    heard.units = mode.filter.cap
    assert mode.filter.least_scale(heard.units) is None
    with pytest.raises(HandleClosedError, match="covers no more"):
        mode.say(replace(look, scale=1.0), heard, noise=noise)


@pytest.mark.parametrize("name", MODES)
def test_units_are_never_less_than_what_noise_adds(name):
    mode = made(name)
    each = mode.filter.log_bound(mode.filter.planned)
    for factor in (0.3, 0.77, 1.0, 1.9, 12.0):
        scale = min(factor * mode.filter.planned, 1.0)
        assert mode.filter.cost(scale) * each >= mode.filter.log_bound(scale) * UNITS
    assert mode.filter.cost(1e-12) is None


def test_a_cap_that_is_ignored_is_seen_under_attack():
    """Fine noise at the price of the planned one: a vote of what is heard is further off than the width says."""
    mode, runs = Gaussian(1500, 3000, BETA), 7
    noise, fine = mode.filter, mode.filter.planned / 50
    missed = 0
    for seed in range(runs):
        draw = np.random.default_rng(seed)
        agrees = agreements(mode.rows, mode.queries - 1, draw)
        means = (agrees.mean(axis=0, dtype=np.float64) + 1) / 2
        heard = means + draw.normal(scale=fine, size=len(means))
        off = voted(agrees, np.sign(heard - 0.5)) + draw.normal(scale=fine) - 0.5
        missed += off > mode._reach(fine) + noise.t(noise.cap)
    with pytest.raises(AssertionError):
        assert_at_most(missed, runs, BETA)
    cost = noise.cost(fine)
    assert cost is not None
    assert (
        noise.cap // cost <= mode.queries / 2000
    )  # the filter ends it after the first or second of 3,000 questions


# ---- the law


@pytest.mark.parametrize("name", MODES)
def test_noise_of_a_chosen_scale_has_its_law_and_less_of_it_is_seen(name):
    mode = made(name, queries=10**6)
    scale = 0.07
    look, noise = SealedLook.at(0.5, N), SeededNoise(5)
    off = np.array(
        [mode.say(replace(look, scale=scale), Heard(), noise=noise)["value"] - 0.5 for _ in range(2500)]
    ) / scale  # fmt: skip
    edges = np.linspace(-1, 1, 21) if name == "bounded" else np.linspace(-3, 3, 25)

    def law(z):
        if name == "gaussian":
            return ndtr(z)
        z = np.clip(z, -1, 1)
        return 0.5 + z / 2 + np.sin(pi * z) / (2 * pi)

    if name == "bounded":
        assert np.abs(off).max() <= 1 + rounding(N) / scale
    counts = np.histogram(off, edges)[0].tolist()
    counts = [*counts, len(off) - sum(counts)]
    chances = np.diff(law(edges)).tolist()
    assert_follows(counts, [*chances, max(1 - sum(chances), 0.0)])
    quiet = np.diff(law(edges / 0.8)).tolist()
    assert_does_not_follow(counts, [*quiet, max(1 - sum(quiet), 0.0)])


# ---- a holdout


@pytest.mark.parametrize("name", MODES)
def test_a_holdout_takes_a_scale_and_a_file_goes_on_with_the_sum(tmp_path, name):
    path = tmp_path / "holdout.db"
    first = Holdout(None, LABELS, queries=K, mode=name, path=path)
    planned = first.mode.filter.planned
    coarse = first.score_predictions(LABELS, scale=min(3 * planned, 1.0), label="coarse")
    fine = first.score_predictions(LABELS, scale=planned / 3, label="fine")
    plain = first.score_predictions(1 - LABELS)
    assert coarse.width > plain.width > fine.width
    least = first.least_scale
    assert least is not None
    first.close()
    again = Holdout(None, LABELS, queries=K, mode=name, path=path)
    assert [score.width for _, score in again.history()] == [coarse.width, fine.width, plain.width]
    assert again.least_scale == least
    assert again.left == K - 3
    with pytest.raises(RefusedError, match="scale="):
        again.score_predictions(LABELS, scale=least / 2)
    assert again.left == K - 3
    rest = again.score_predictions(LABELS, scale=least)
    assert rest.width < again.mode.certificate.width
    assert again._memory.heard.units <= again.mode.filter.cap


@pytest.mark.parametrize("given", [{"mode": "gaussian", "theorem": "cvar"}, {"mode": "ladder"}])
def test_modes_of_fixed_noise_take_no_scale(given):
    holdout = Holdout(None, LABELS, queries=10, **given)
    assert holdout.least_scale is None
    with pytest.raises(ParameterError, match="is fixed"):
        holdout.score_predictions(LABELS, scale=0.1)
    assert holdout.left == 10


@pytest.mark.parametrize("scale", [0, -0.1, 1.5, float("nan"), float("inf"), "a"])
def test_a_scale_is_between_0_and_1(scale):
    holdout = Holdout(None, LABELS, queries=10)
    with pytest.raises(ParameterError, match="above 0 and at most 1"):
        holdout.score_predictions(LABELS, scale=scale)
    assert holdout.left == 10


def test_a_score_of_several_means_counts_each_of_them():
    target = np.linspace(0, 1, N)
    holdout = Holdout(None, target, queries=5, metric=metrics.r2(low=0, high=1), mode="gaussian")
    means = sum(holdout.metric.asked)
    before = holdout.least_scale
    holdout.score_predictions(target, scale=before)
    assert holdout.mode.filter.cap * (1 - 1e-4) < holdout._memory.heard.units <= holdout.mode.filter.cap
    alone = Holdout(None, LABELS, queries=holdout.mode.queries, mode="gaussian").least_scale
    assert before == pytest.approx(alone * sqrt(means), rel=1e-4)


def test_a_holdout_of_early_scores_is_narrower_than_its_certificate():
    holdout = Holdout(None, LABELS, queries=K)
    assert holdout.score_predictions(LABELS).width < holdout.width
    gaussian = Gaussian(10**5, 10**4, BETA)
    first = told(gaussian, [None])[0].width
    assert first == pytest.approx(0.0553, abs=1e-3)  # where all 10,000 are within ±0.0962
    assert log(1 / gaussian.filter.beta) > log(1 / BETA)
