"""What `auto` takes: by a forecast of widths and of what a search loses, and by the first score."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from understudy.errors import ParameterError, RefusedError
from understudy.noise.samplers import SeededNoise
from understudy.validity import metrics
from understudy.validity.checking import Realised
from understudy.validity.choice import MODE_CARDS, automatic, search_loss, usual_rejections
from understudy.validity.first_score import FirstScoreDecides
from understudy.validity.holdout import Holdout
from understudy.validity.ladder import Ladder
from understudy.validity.modes import Heard, ModeTerms, SealedLook

DRAW = np.random.default_rng(0)
N, K = 2000, 100
ROWS, LABELS = DRAW.normal(size=(N, 2)), DRAW.integers(0, 2, N)
OTHER, OTHER_LABELS = DRAW.normal(size=(N // 2, 2)), DRAW.integers(0, 2, N // 2)


class Zeros:
    """An estimator that is right half of the time."""

    def predict(self, X):
        return np.zeros(len(X), dtype=np.int64)


def opened(**given) -> Holdout:
    return Holdout(ROWS, LABELS, **({"queries": K} | given))


# ---- the forecast


@pytest.mark.parametrize("name", ["bounded", "gaussian"])
@pytest.mark.parametrize("trials", [100, 500])
def test_a_search_loses_a_third_of_a_scores_deviation(name, trials):
    """Candidates spread evenly between chance and 1, scored with a mode's noise: the best less the one taken."""
    mode, draw = MODE_CARDS[name].build(ModeTerms(600, trials, 0.05)), np.random.default_rng(5)
    lost = []
    for _ in range(300):
        truth = draw.uniform(0.1, 1, trials)
        sample = draw.binomial(600, truth) / 600
        if name == "gaussian":
            told = sample + draw.normal(scale=mode.sigma, size=trials)
        else:  # cos² noise: uniform, kept with the probability cos²
            spread = draw.uniform(-1, 1, 12 * trials)
            kept = spread[draw.random(12 * trials) < np.cos(np.pi * spread / 2) ** 2]
            told = sample + mode.r * kept[:trials]
        lost.append(truth.max() - truth[int(np.argmax(told))])
    error = np.std(lost) / np.sqrt(len(lost))
    assert np.mean(lost) == pytest.approx(search_loss(mode), abs=7 * error + 0.3 * search_loss(mode))


def test_the_deviation_is_that_of_what_is_told():
    """Of noise and sample together; the sample's part is the largest there can be, that of a fair coin."""
    for name in ("bounded", "gaussian"):
        mode, noise, draw = (
            MODE_CARDS[name].build(ModeTerms(N, K, 0.05)),
            SeededNoise(2),
            np.random.default_rng(2),
        )
        told = [
            mode.say(SealedLook.at(draw.binomial(N, 0.5) / N, N), Heard(), noise=noise)["value"]
            for _ in range(1000)
        ]
        assert np.std(told) == pytest.approx(mode.deviation, rel=0.16)  # seven standard errors of 1,000 draws
    guess = MODE_CARDS["realised"].build(ModeTerms(N, K, 0.05)).deviation
    assert guess == pytest.approx(0.5 / np.sqrt(N))


def test_checked_guesses_are_taken_where_they_come_and_bounded_noise_else():
    """The choices that the weight was set for on digits, 600 rows, and what follows for more rows."""
    for rows in (600, 4000, 15_000, 10**5):
        for trials in (20, 50, 100, 200, 500, 10_000):
            fewest = rows == 600 and trials == 10_000  # there everything but the ladder says nothing
            noise = automatic(rows, trials, 0.05)
            assert noise.name == ("ladder" if fewest else "bounded"), (rows, trials)
            checked = automatic(rows, trials, 0.05, rejections=usual_rejections(trials))
            assert checked.name == ("ladder" if fewest else "realised"), (rows, trials)


def test_noise_is_taken_before_many_wrong_guesses():
    """300 wrong guesses widen it so much that noise finds as much and promises more."""
    assert automatic(4000, 500, 0.05, rejections=300).name == "bounded"
    assert automatic(4000, 500, 0.05, rejections=20).name == "realised"


def test_the_ladder_is_no_choice_where_anything_else_says_something():
    """Its certificate is the narrowest here, and a search with it finds less."""
    for rows, trials in ((600, 500), (4000, 500), (10**5, 10**4)):
        found = automatic(rows, trials, 0.05)
        assert Ladder(rows, trials, 0.05).certificate.width < found.certificate.width < 0.5
        assert Ladder(rows, trials, 0.05).eta / 2 > search_loss(found)


# ---- the first score


def test_the_first_score_decides_and_its_mode_stays():
    checked = opened()
    assert isinstance(checked.mode, FirstScoreDecides)
    first = checked.score(Zeros(), OTHER, OTHER_LABELS)
    assert (checked.mode.name, first.source) == ("realised", "checked")
    assert first.value == (OTHER_LABELS == 0).mean()
    assert checked.score(Zeros()).source == "measured"
    assert checked.mode.name == "realised"

    noisy = opened()
    noisy.score(Zeros())
    assert noisy.mode.name == "bounded"
    assert noisy.score(Zeros(), OTHER, OTHER_LABELS).source == "measured"
    assert noisy.mode.name == "bounded"
    assert noisy.left == K - 2


def test_a_scorer_checks_guesses():
    holdout = opened()
    assert holdout(Zeros(), OTHER, OTHER_LABELS) == (OTHER_LABELS == 0).mean()
    assert holdout.mode.name == "realised"
    assert holdout.width == holdout.mode.certificate.width


def test_before_the_first_score_the_certificate_is_the_wider_of_both():
    holdout = opened()
    both = holdout.mode
    assert isinstance(both, FirstScoreDecides)
    found = holdout.certificate()
    assert found["width"] == max(both.guessed.certificate.width, both.unguessed.certificate.width)
    assert "GuessAndCheck" in found["theorem"]
    assert "Theorem T" in found["theorem"]
    assert set(both.guessed.certificate.assumptions) <= set(found["assumptions"])
    assert set(both.unguessed.certificate.assumptions) <= set(found["assumptions"])
    assert "the first score decides" in repr(holdout)


def test_guesses_from_few_rows_are_not_checked():
    """Of guesses from a seventh of the rows no more than planned would be wrong; of those from 60, far more."""
    for rows, taken in ((N // 7, "realised"), (60, "bounded")):
        holdout = opened()
        holdout.score(Zeros(), OTHER[:rows], OTHER_LABELS[:rows])
        assert holdout.mode.name == taken, rows
    mode = Realised(N, K, 0.05, expected=usual_rejections(K))
    draw = np.random.default_rng(3)
    for rows in (60, 250, N):
        off = np.abs(draw.binomial(N, 0.5, 40_000) / N - draw.binomial(rows, 0.5, 40_000) / rows)
        wrong = (off > mode.eta).mean() * K
        assert wrong == pytest.approx(mode.forecast_rejections(rows), rel=0.15, abs=0.3)


def test_a_scale_takes_the_noise_that_it_is_for():
    holdout = opened()
    assert holdout.least_scale is not None
    score = holdout.score(Zeros(), OTHER, OTHER_LABELS, scale=0.2)
    assert (holdout.mode.name, score.source) == ("bounded", "measured")


def test_nothing_is_decided_where_nothing_was_told():
    holdout = opened()
    with pytest.raises(RefusedError, match="does not fit"):
        holdout.score(Zeros(), scale=1e-9)
    with pytest.raises(ParameterError):
        holdout.score_predictions(np.zeros(3))
    assert isinstance(holdout.mode, FirstScoreDecides)
    assert holdout.left == K


def test_without_features_or_with_rejections_nothing_is_left_open():
    assert Holdout(None, LABELS, queries=K).mode.name == "bounded"
    assert opened(rejections=2).mode.name == "realised"
    assert opened(mode="bounded").mode.name == "bounded"


def test_scores_without_a_guess_count_as_wrong_ones():
    """In the tree a score without a guess is one more rejection: its own width, and a wider one for the next."""
    holdout = opened()
    holdout.score(Zeros(), OTHER, OTHER_LABELS)
    scores = [holdout.score(Zeros()) for _ in range(3)]
    guessed = Holdout(ROWS, LABELS, queries=K, mode=holdout.mode)
    guessed.score(Zeros(), OTHER, OTHER_LABELS)
    wrong = [guessed.score_predictions(np.zeros(N), guess=0.0) for _ in range(3)]
    assert [s.width for s in scores] == [s.width for s in wrong]
    assert [s.value for s in scores] == [s.value for s in wrong]
    assert scores[0].width < scores[1].width < scores[2].width


def test_tolerance_is_that_of_the_mode_that_is_taken():
    both = opened().mode
    assert isinstance(both, FirstScoreDecides)
    between = (both.guessed.certificate.width + both.unguessed.certificate.width) / 2
    assert both.narrower is both.guessed
    holdout = opened(tolerance=between)
    with pytest.raises(RefusedError, match="wider than"):
        holdout.score(Zeros())
    assert holdout.left == K
    assert holdout.score(Zeros(), OTHER, OTHER_LABELS).source == "checked"
    with pytest.raises(RefusedError, match="wider than"):
        opened(tolerance=both.guessed.certificate.width / 2)


# ---- files


@pytest.mark.parametrize("guess", [True, False])
def test_a_file_goes_on_with_what_its_first_score_decided(tmp_path, guess):
    path = tmp_path / "holdout.db"
    rows = (OTHER, OTHER_LABELS) if guess else ()
    first = opened(path=path)
    beside = opened(path=path)
    said = first.score(Zeros(), *rows)
    taken = "realised" if guess else "bounded"
    assert beside.score(Zeros(), *(() if guess else (OTHER, OTHER_LABELS))).source == "measured"
    assert (first.mode.name, beside.mode.name, beside.left) == (taken, taken, K - 2)
    first.close()
    beside.close()
    again = opened(path=path)
    assert again.mode.name == taken
    assert again.history()[0][1] == said
    assert pickle.loads(pickle.dumps(again)) is again


def test_a_file_from_before_first_scores_decided_goes_on(tmp_path):
    path = tmp_path / "holdout.db"
    before = opened(path=path, mode="bounded")
    said = before.score(Zeros())
    before.close()
    resumed = opened(path=path)
    assert resumed.mode.text == before.mode.text
    assert resumed.history()[0][1] == said
    assert resumed.score(Zeros(), OTHER, OTHER_LABELS).source == "measured"


def test_a_metric_of_several_means_is_decided_once():
    target = np.linspace(0, 1, N)

    class Same:
        def predict(self, X):
            return np.linspace(0.1, 0.9, len(X))

    holdout = Holdout(ROWS, target, queries=K, metric=metrics.r2(low=0, high=1))
    assert isinstance(holdout.mode, FirstScoreDecides)
    score = holdout.score(Same(), ROWS, target)
    assert (holdout.mode.name, score.source, holdout.left) == ("realised", "checked", K - 1)
