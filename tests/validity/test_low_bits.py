"""Labels were read off the low bits of scores. What is told now lies on a grid that does not depend on them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from low_bits import AllBits, read_labels
from statistical import FALSE_ALARM
from understudy.noise.samplers import SeededNoise, SystemNoise
from understudy.validity.auc import Auc
from understudy.validity.bounded import Bounded
from understudy.validity.checking import Checking, Realised
from understudy.validity.holdout import Holdout
from understudy.validity.ladder import FreeLadder, Ladder
from understudy.validity.lattice import FINEST, grid, rounding
from understudy.validity.modes import Gaussian, Heard, SealedLook
from understudy.validity.thresholdout import Thresholdout

BETA = 0.05


def rightly_read(kind: type[Gaussian], rows: int, times: int, seed: int) -> int:
    """Of so many labels, how many the analyst reads rightly, from scores whose noise is many counts."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, rows)
    mode = kind(rows, -(-rows // 3) * times, BETA)
    assert mode.sigma * rows > 9
    holdout = Holdout(
        None, labels, queries=mode.queries, mode=mode, classes=[0, 1], tolerance=9.0, noise=SeededNoise(seed)
    )
    found = read_labels(
        lambda p: holdout.score_predictions(p).value, rows, mode.sigma, times=times, draw=draw
    )
    return int((found == labels).sum())


def test_labels_cannot_be_read_off_the_low_bits_of_a_score():
    """The analyst reads all labels of a holdout that tells all bits, and is at chance here."""
    rows = 90
    assert rightly_read(AllBits, rows, 30, 1) >= rows - 2
    right = rightly_read(Gaussian, rows, 30, 1)
    assert binom.sf(right - 1, rows, 0.5) > FALSE_ALARM
    assert right < rows - 10


@pytest.mark.slow("the size at which it was found")
@pytest.mark.parametrize("kind", [AllBits, Gaussian])
def test_labels_cannot_be_read_where_they_were(kind):
    """n = k = 40,000, fair coins, noise of 1,420 counts: the labels of 900 rows, 40 questions for a triple."""
    rows, read = 40_000, 900
    draw = np.random.default_rng(5)
    labels = draw.integers(0, 2, rows)
    mode = kind(rows, rows, BETA)
    holdout = Holdout(None, labels, queries=rows, mode=mode, classes=[0, 1], noise=SystemNoise())
    found = read_labels(
        lambda p: holdout.score_predictions(p).value, rows, mode.sigma, times=40, draw=draw, read=read
    )
    right = int((found == labels[:read]).sum())
    at_chance = binom.sf(right - 1, read, 0.5) > FALSE_ALARM
    assert right > 0.999 * read if kind is AllBits else at_chance


# ---- every mode tells points of a grid that is public


def on_grid(value: float, steps: int) -> bool:
    """Whether a float is the nearest one to a multiple of 1/steps."""
    return value == round(Fraction(value) * steps) / steps


ROWS, QUERIES = 200, 12
NOISY = [
    Bounded(ROWS, QUERIES, BETA),
    Gaussian(ROWS, QUERIES, BETA),
    Thresholdout(ROWS, QUERIES, BETA, rejections=12),
]


@pytest.mark.parametrize("metric", ["accuracy", "brier", "log_loss"])
@pytest.mark.parametrize("mode", NOISY, ids=lambda mode: mode.name)
def test_scores_with_noise_lie_on_one_grid_whatever_the_rows_are(mode, metric):
    draw = np.random.default_rng(3)
    for labels in (draw.integers(0, 2, ROWS), np.arange(ROWS) % 2):
        holdout = Holdout(
            None, labels, queries=QUERIES, mode=mode, metric=metric, classes=[0, 1], tolerance=99.0,
            noise=SeededNoise(9),
        )  # fmt: skip
        for _ in range(QUERIES):
            guesses = draw.integers(0, 2, ROWS) if metric == "accuracy" else draw.random(ROWS)
            score = holdout.score_predictions(guesses, guess=0.0)
            assert on_grid(score.value, ROWS * FINEST) or score.source == "checked"


def test_people_with_several_rows_are_rounded_to_the_same_grid():
    people = np.repeat(np.arange(70), 3)[:ROWS]
    labels = np.arange(ROWS) % 2
    mode = Gaussian(67, QUERIES, BETA)
    holdout = Holdout(None, labels, queries=QUERIES, mode=mode, groups=people, tolerance=9.0)
    values = [holdout.score_predictions(np.roll(labels, i // 2)).value for i in range(QUERIES)]
    assert all(on_grid(value, 67 * FINEST) for value in values)


def test_areas_lie_on_the_grid_of_half_pairs():
    labels = np.arange(ROWS) % 3 == 0
    positive = int(labels.sum())
    mode = Auc(positive, ROWS - positive, QUERIES, BETA)
    holdout = Holdout(None, labels, queries=QUERIES, mode=mode, metric="auc", tolerance=9.0)
    draw = np.random.default_rng(1)
    steps = 2 * positive * (ROWS - positive)
    values = [holdout.score_predictions(draw.random(ROWS).round(2)).value for _ in range(QUERIES)]
    assert all(on_grid(value, steps) for value in values)


@pytest.mark.parametrize(
    ("mode", "steps"),
    [
        (Checking(ROWS, QUERIES, BETA, rejections=QUERIES), lambda mode: 2 * mode.grid),
        (Realised(ROWS, QUERIES, BETA, 3), lambda mode: 2 * mode.grid),
        (FreeLadder(ROWS, QUERIES, BETA), lambda mode: ROWS),
    ],
    ids=["check", "realised", "free-ladder"],
)
def test_modes_without_noise_tell_points_of_a_grid(mode, steps):
    draw = np.random.default_rng(2)
    heard = Heard()
    for _ in range(QUERIES):
        step = mode.say(SealedLook.of(draw.random(ROWS), FINEST, 0.0), heard, noise=SeededNoise(1))
        value = step.get("value", step.get("best"))
        assert value is None or on_grid(value, steps(mode))


def test_a_ladder_tells_multiples_of_its_step():
    mode, draw, heard = Ladder(ROWS, QUERIES, BETA), np.random.default_rng(2), Heard()
    looks = [SealedLook.of(draw.random(ROWS) ** (3 / (i + 1)), FINEST) for i in range(QUERIES)]
    told = [mode.say(look, heard, noise=SeededNoise(1))["best"] for look in looks]
    told = [best for best in told if best is not None]
    assert told
    assert all(best in {i * mode.eta for i in range(int(1 / mode.eta) + 1)} for best in told)


# ---- what rounding costs


@pytest.mark.parametrize("rows", [1, 3, 200, 2**20, 2**22 - 1, 2**22, 10**8, 2**40])
def test_the_grid_fits_its_samplers_and_rounding_is_stated(rows):
    steps = grid(rows)
    assert rows * steps < 2**43
    assert rounding(rows) == (0.5 + 0.5 / rows) / steps
    assert rows >= 2**22 or rounding(rows) <= 1 / FINEST
    drawn = np.random.default_rng(1).random(min(rows, 1000))
    look = SealedLook.of(drawn, steps)
    assert abs(look.total / look.steps - drawn.mean()) <= 0.5 / steps + 1e-12


def test_the_width_says_what_rounding_moves():
    from understudy.validity.transfer import gaussian

    mode = Gaussian(4000, 10, BETA)
    ideal = gaussian(4000, 10, BETA, sigma=mode.sigma).width
    assert mode.certificate.width == pytest.approx(ideal + rounding(4000), abs=1e-8)
    assert mode.certificate.width > ideal


# ---- a threshold that version 0.1 drew


def test_a_threshold_that_was_kept_as_a_float_is_still_the_threshold():
    mode = Thresholdout(80_000, 6, BETA, rejections=2)
    for threshold, accepted in ((10.0, True), (-10.0, False)):
        heard = Heard(secret={"threshold": threshold})
        step = mode.say(SealedLook.at(0.5, 80_000, 0.5), heard, noise=SeededNoise(1))
        assert step["accepted"] is accepted
