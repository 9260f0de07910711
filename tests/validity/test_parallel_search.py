"""A search with n_jobs=2: workers share one holdout through its file, and every score is counted once."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import _RemoteTraceback
from sklearn.datasets import load_digits
from sklearn.model_selection import RandomizedSearchCV, ShuffleSplit
from sklearn.tree import DecisionTreeClassifier

from understudy.errors import HandleClosedError
from understudy.validity.holdout import Holdout
from understudy.validity.score import Score

DRAW = np.random.default_rng(1)
SEALED, TRUTH = DRAW.normal(size=(2000, 2)), DRAW.integers(0, 2, 2000)
OTHER, LABELS = DRAW.normal(size=(1000, 2)), DRAW.integers(0, 2, 1000)

BACKENDS = [
    "threading",
    "multiprocessing",
    pytest.param("loky", marks=pytest.mark.slow("its processes import everything")),
]
forks = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


class Threshold:
    """An estimator that compares the first feature with a number."""

    def __init__(self, at: float) -> None:
        self.at = at

    def predict(self, X):
        return (X[:, 0] > self.at).astype(np.int64)


def asked(holdout: Holdout, at: float, *, guess: bool) -> Score | None:
    """One score, or None where none is left."""
    try:
        return holdout.score(Threshold(at), *((OTHER, LABELS) if guess else ()))
    except HandleClosedError:
        return None


def told(holdout: Holdout, backend: str, trials: int, guesses: int = 2) -> list[Score]:
    """What two workers are told for so many candidates; of each `guesses` one brings none."""
    tasks = (delayed(asked)(holdout, i / trials, guess=bool(i % guesses)) for i in range(trials))
    found = Parallel(n_jobs=2, backend=backend, batch_size=1)(tasks)
    return [score for score in found if score is not None]


def assert_counted_once(scores: list[Score], holdout: Holdout) -> None:
    """Every score has a place of its own in the file, and was told there at the width that the file has for it."""
    places = sorted(scores, key=lambda score: -score.left)
    assert [score.left for score in places] == list(range(holdout.queries - 1, -1, -1))[: len(scores)]
    assert places == [score for _, score in holdout.history()]
    assert holdout.left == holdout.queries - len(scores)


@forks
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", ["auto", "bounded", "ladder"])
def test_two_workers_share_one_holdout(tmp_path, backend, mode):
    """Under auto one of the workers decides the mode for both, by whoever is told the first score."""
    holdout = Holdout(SEALED, TRUTH, queries=60, mode=mode, path=tmp_path / "holdout.db")
    scores = told(holdout, backend, 20)
    assert len(scores) == 20
    assert_counted_once(scores, holdout)
    assert holdout.mode.name in (("realised", "bounded") if mode == "auto" else (mode,))
    if mode == "bounded":
        assert len({score.value for score in scores}) > 15  # each worker draws noise of its own


@forks
@pytest.mark.parametrize("backend", BACKENDS)
def test_two_workers_get_no_more_scores_than_are_left(tmp_path, backend):
    holdout = Holdout(SEALED, TRUTH, queries=7, mode="bounded", path=tmp_path / "holdout.db")
    scores = told(holdout, backend, 16)
    assert len(scores) == 7
    assert_counted_once(scores, holdout)


def test_threads_share_a_holdout_without_a_file():
    holdout = Holdout(SEALED, TRUTH, queries=30)
    scores = told(holdout, "threading", 20, guesses=1)
    assert_counted_once(scores, holdout)


@forks
@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_processes_need_a_file_and_are_told_so(backend):
    """joblib hides the reason in the cause of its own error; a traceback shows both."""
    holdout = Holdout(SEALED, TRUTH, queries=30)
    with pytest.raises(Exception) as refused:  # noqa: PT011 - TypeError here, joblib's own from loky
        told(holdout, backend, 4)
    said = [refused.value, refused.value.__cause__]
    assert any(isinstance(one, TypeError | _RemoteTraceback) for one in said)
    assert any("Holdout(…, path='holdout.db'), and n_jobs=2 works" in str(one) for one in said)
    assert holdout.left == 30


@pytest.mark.slow("500 trials of two processes")
def test_a_search_of_500_trials_with_two_jobs(tmp_path):
    """scikit-learn's own, on digits: every trial is scored once, and what it was told is what the file has."""
    X, y = load_digits(return_X_y=True)
    places = np.random.default_rng(0).permutation(len(y))
    sealed, train, fresh = places[:600], places[600:1200], places[1200:]
    holdout = Holdout(X[sealed], y[sealed], queries=500, path=tmp_path / "holdout.db")
    grid = {
        "max_depth": list(range(1, 13)),
        "min_samples_leaf": list(range(1, 40)),
        "max_features": np.linspace(0.05, 1, 40).tolist(),
    }
    search = RandomizedSearchCV(
        DecisionTreeClassifier(random_state=0), grid, n_iter=500, scoring=holdout, n_jobs=2, random_state=0,
        cv=ShuffleSplit(1, test_size=0.3, random_state=0),
    )  # fmt: skip
    search.fit(X[train], y[train])
    assert (holdout.left, holdout.mode.name) == (0, "realised")
    scored = [score for _, score in holdout.history()]
    assert sorted(search.cv_results_["split0_test_score"]) == pytest.approx(sorted(s.value for s in scored))
    taken = float((search.best_estimator_.predict(X[fresh]) == y[fresh]).mean())
    assert abs(taken - search.best_score_) <= scored[-1].width + 0.15  # fresh rows are 597
