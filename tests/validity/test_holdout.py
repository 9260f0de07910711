from __future__ import annotations

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from joblib import parallel_backend
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, check_scoring
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.tree import DecisionTreeClassifier

import understudy as us
import warm
from understudy.errors import (
    HandleClosedError,
    LedgerError,
    ParameterError,
    RefusedError,
    RequestConflictError,
)
from understudy.noise.samplers import SeededNoise
from understudy.validity.auc import PAIRS
from understudy.validity.certificate import BOUNDED
from understudy.validity.holdout import Holdout
from understudy.validity.ladder import Ladder
from understudy.validity.metrics import log_loss, metric_of, quantile_loss
from understudy.validity.modes import Gaussian
from understudy.validity.scope import NOTHING_KEPT


def blobs(rows, seed=0, signal=1.0):
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, rows)
    return draw.normal(size=(rows, 4)) + signal * (2 * y[:, None] - 1) / 2, y


TRAIN, LABELS = blobs(1500, 1)
SEALED, TRUTH = blobs(4000, 2)


def test_a_score_is_near_the_truth_and_counted():
    holdout = us.Holdout(SEALED, TRUTH, queries=20, noise=SeededNoise(1))
    model = LogisticRegression().fit(TRAIN, LABELS)
    score = holdout.score(model)
    assert abs(score.value - model.score(*blobs(20_000, 3))) <= score.width
    assert (score.left, holdout.left, float(score)) == (19, 19, score.value)
    promised = holdout.certificate()
    assert promised["theorem"] == "Theorem T (tilting), bounded noise"
    assert len(promised["assumptions"]) == 8
    assert promised["assumptions"][-1] == NOTHING_KEPT


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"X": SEALED[1:]}, "one label for each"),
        ({"X": csr_matrix(SEALED[1:])}, "one label for each"),
        ({"y": [None, *TRUTH[1:]]}, "y has missing values"),
        ({"y": [np.nan, *TRUTH[1:]]}, "y has missing values"),
        ({"y": np.array(["yes", *TRUTH[1:]], dtype=object)}, "labels are of several kinds"),
        ({"groups": np.array(["yes", *TRUTH[1:]], dtype=object)}, "groups are of several kinds"),
        ({"groups": [None, *TRUTH[1:]]}, "groups, one for each"),
        ({"metric": accuracy_score}, "us.metrics.Metric"),
        ({"rejections": -1, "mode": "check"}, "rejections must be at least 0"),
        ({"rejections": 0, "mode": "thresholdout"}, "`rejections` be at least 1"),
    ],
)
def test_what_is_no_holdout_is_refused_before_a_score_is_spent_on_it(given, why):
    """Features of other rows made every frozen estimator wrong everywhere; the rest ended with tracebacks."""
    with pytest.raises(ParameterError, match=why):
        Holdout(**({"X": SEALED, "y": TRUTH, "queries": 4} | given))


def test_it_serves_grid_search_on_threads():
    holdout = Holdout(SEALED, TRUTH, queries=40, mode="check", rejections=20)
    search = GridSearchCV(
        LogisticRegression(), {"C": [0.01, 0.1, 1, 10]}, scoring=holdout, cv=5, n_jobs=4, refit=True
    )
    with parallel_backend("threading"):
        search.fit(TRAIN, LABELS)
    assert holdout.left == 20
    assert holdout.mode.eta > 0
    assert search.get_params()["scoring"] is holdout
    assert clone(search).scoring is holdout
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_it_serves_randomized_search_and_metadata_routing():
    import sklearn

    holdout = Holdout(SEALED, TRUTH, queries=40, mode="check", rejections=20)
    with sklearn.config_context(enable_metadata_routing=True):
        RandomizedSearchCV(
            DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 3, 4]}, n_iter=3, cv=2,
            scoring=holdout, random_state=0,
        ).fit(TRAIN, LABELS)  # fmt: skip
    assert holdout.left == 34
    assert check_scoring(LogisticRegression(), scoring=holdout) is holdout


def test_without_a_file_it_cannot_be_sent_to_another_process_and_says_what_to_do(tmp_path):
    holdout = Holdout(SEALED, TRUTH, queries=4)
    with pytest.raises(TypeError, match=r"path='holdout.db'.*n_jobs=2 works.*threads.*n_jobs=1"):
        pickle.dumps(holdout)
    own = Holdout(SEALED, TRUTH, queries=4, path=tmp_path / "holdout.db", noise=SeededNoise(1))
    with pytest.raises(TypeError, match="the same noise again"):
        pickle.dumps(own)


def test_a_holdout_shows_how_many_scores_are_left_after_those_of_other_processes(tmp_path):
    """It said that all were left after a search with `n_jobs=2`, whose scores its copies were given."""
    shown, other = (Holdout(SEALED, TRUTH, queries=4, path=tmp_path / "holdout.db") for _ in range(2))
    other.score_predictions(TRUTH)
    assert repr(shown) == repr(other)
    assert repr(shown).endswith("3 scores left)")


def test_with_a_file_it_is_one_holdout_wherever_it_is_sent(tmp_path):
    holdout = Holdout(SEALED, TRUTH, queries=4, path=tmp_path / "holdout.db")
    assert pickle.loads(pickle.dumps(holdout)) is holdout
    elsewhere = subprocess.run(
        [sys.executable, "-c", "import pickle, sys; h = pickle.load(sys.stdin.buffer); "
         "print(h.left, h.score_predictions([0] * 4000).left)"],
        input=pickle.dumps(holdout), capture_output=True, check=True,
    )  # fmt: skip
    assert elsewhere.stdout.split() == [b"4", b"3"]
    assert holdout.left == 3


@pytest.mark.parametrize(
    "backend",
    [
        "multiprocessing",
        pytest.param("loky", marks=pytest.mark.slow("its processes import everything")),
    ],
)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_it_serves_grid_search_on_processes_through_its_file(tmp_path, backend):
    holdout = Holdout(SEALED, TRUTH, queries=9, path=tmp_path / "holdout.db")
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1]}, scoring=holdout, cv=3, n_jobs=2)
    with parallel_backend(backend):
        search.fit(TRAIN, LABELS)
    assert holdout.left == 3
    assert len(holdout.history()) == 6
    scored = sorted(score.value for _, score in holdout.history())
    folds = [search.cv_results_[f"split{i}_test_score"] for i in range(3)]
    assert sorted(np.concatenate(folds)) == pytest.approx(scored)
    assert len(set(scored)) > 1  # each process draws noise of its own


def test_the_package_does_not_need_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None; sys.modules['joblib'] = None\n"
        "from understudy.validity.holdout import Holdout\n"
        "import understudy.validity.board, understudy_audit.validity, understudy.lectures.monitor\n"
        "print(Holdout([[0]]*4000, [0,1]*2000, queries=2).score_predictions([0,1]*2000).left)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_the_last_score_is_the_last():
    holdout = Holdout(SEALED, TRUTH, queries=2)
    for _ in range(2):
        holdout.score_predictions(TRUTH)
    with pytest.raises(HandleClosedError, match="all 2 scores"):
        holdout.score_predictions(TRUTH)


def test_a_vacuous_certificate_is_refused_with_the_rows_it_takes():
    with pytest.raises(RefusedError, match=r"say nothing.*[\d,]+ rows would certify 0.1"):
        Holdout(SEALED[:1000], TRUTH[:1000], queries=5000, mode="gaussian")
    with pytest.raises(RefusedError, match=r"wider than 0.05.*rows would certify 0.05"):
        Holdout(SEALED, TRUTH, queries=5, mode="gaussian", tolerance=0.05)


def test_automatic_follows_the_planner():
    assert Holdout(SEALED, TRUTH, queries=10).mode.name == "bounded"
    assert Holdout(SEALED, TRUTH, queries=100, rejections=2).mode.name == "realised"
    assert Holdout(None, TRUTH[:1000], queries=5000).mode.name == "ladder"
    planned = us.plan(rows=4000, queries=10, promise="validity").recommended
    assert planned.mechanism == "bounded"
    assert Holdout(SEALED, TRUTH, queries=10).width == pytest.approx(planned.width, abs=1e-6)


def test_realised_failures_widen_the_answer_and_then_refuse():
    holdout = Holdout(SEALED, TRUTH, queries=1000, mode="realised", rejections=3)
    wrong = np.where(np.arange(4000) % 4 == 0, TRUTH, 1 - TRUTH)
    widths, refusal = [], ""
    while not refusal:
        try:
            score = holdout.score_predictions(wrong, guess=0.9)
        except HandleClosedError as error:
            refusal = str(error)
        else:
            assert abs(score.value - 0.25) <= score.width
            widths.append(score.width)
    assert re.search(r"say nothing.*rows would certify", refusal)
    assert widths == sorted(widths)
    assert widths[-1] < 0.5
    assert len(widths) > 20
    assert holdout.left == 1000 - len(widths)  # a refusal is not counted


def test_fixed_rejections_halt():
    holdout = Holdout(SEALED, TRUTH, queries=100, mode="check", rejections=2)
    for _ in range(2):
        assert holdout.score_predictions(TRUTH, guess=0.1).source == "measured"
    for _ in range(2):
        with pytest.raises(HandleClosedError, match="more than 2 guesses"):
            holdout.score_predictions(TRUTH, guess=0.1)
    with pytest.raises(ParameterError, match="guess"):
        Holdout(SEALED, TRUTH, queries=100, mode="check").score_predictions(TRUTH)


def test_groups_are_what_is_counted():
    people = np.repeat(np.arange(1000), 4)
    holdout = Holdout(SEALED, TRUTH, queries=5, groups=people, noise=SeededNoise(3))
    assert holdout.rows == 1000
    assert holdout.width > Holdout(SEALED, TRUTH, queries=5).width
    with pytest.raises(ParameterError, match="groups"):
        Holdout(SEALED, TRUTH, queries=5, groups=people[:-1])


def test_a_restart_goes_on_where_it_stopped(tmp_path):
    settings = {"queries": 6, "mode": "thresholdout", "rejections": 2, "path": tmp_path / "holdout.db"}
    rows = SEALED.repeat(20, axis=0), TRUTH.repeat(20)
    first = Holdout(*rows, **settings, noise=SeededNoise(5))
    first.score_predictions(rows[1], guess=1.0)
    threshold = first._memory.heard.secret["threshold"]
    second = Holdout(*rows, **settings, noise=SeededNoise(6))
    assert second.left == 5
    assert second._memory.heard.secret["threshold"] == threshold  # a noisy threshold is drawn once
    second.score_predictions(rows[1], guess=1.0)
    assert first.left == 4  # what another process was told counts here as well
    first.score_predictions(rows[1], guess=1.0)
    assert first.left == 3
    with pytest.raises(
        RequestConflictError, match=r"keeps another holdout .* queries 6 .* not .* queries 7 .* begun with"
    ):
        Holdout(*rows, **(settings | {"queries": 7}))
    with pytest.raises(RequestConflictError, match="its rows or labels are others; give the rows"):
        Holdout(rows[0], 1 - rows[1], **settings)


def test_a_journal_that_cannot_be_written_leaves_the_noisy_threshold_as_it_was(tmp_path, monkeypatch):
    settings = {"queries": 6, "mode": "thresholdout", "rejections": 2, "path": tmp_path / "holdout.db"}
    rows = SEALED.repeat(20, axis=0), TRUTH.repeat(20)
    holdout = Holdout(*rows, **settings, noise=SeededNoise(5))
    holdout.score_predictions(rows[1], guess=1.0)
    threshold = holdout._memory.heard.secret["threshold"]

    def full(*step, **hidden):
        raise LedgerError("the disk is full", remedy="Make room")

    with monkeypatch.context() as broken:
        broken.setattr(holdout._journal, "add", full)
        with pytest.raises(LedgerError):
            holdout.score_predictions(rows[1], guess=0.0)  # far off: it would have ended the run
    assert holdout._memory.heard.secret["threshold"] == threshold  # no answer was given, so its run goes on
    holdout.score_predictions(rows[1], guess=1.0)
    assert holdout._memory.heard.secret["threshold"] == threshold


KILLED = """
import os, signal, sys
import numpy as np
from understudy.validity.holdout import Holdout
holdout = Holdout(np.zeros((4000, 1)), np.zeros(4000), queries=10, path=sys.argv[1])
keep = holdout._journal.add
def kept_then_killed(*step, **hidden):
    keep(*step, **hidden)
    os.kill(os.getpid(), signal.SIGKILL)
holdout._journal.add = kept_then_killed
holdout.score_predictions(np.zeros(4000))
"""


def test_a_kill_between_the_journal_and_the_answer_counts_the_score(tmp_path):
    path = tmp_path / "holdout.db"
    assert warm.completed(["-c", KILLED, str(path)]).returncode == -9
    assert Holdout(np.zeros((4000, 1)), np.zeros(4000), queries=10, path=path).left == 9


def test_two_processes_never_overspend(tmp_path):
    path = tmp_path / "holdout.db"
    code = KILLED.split("keep = ")[0].replace("queries=10", "queries=25") + (
        "from understudy.errors import HandleClosedError\n"
        "said = 0\n"
        "try:\n"
        "    while said < 20:\n"
        "        holdout.score_predictions(np.zeros(4000)); said += 1\n"
        "except HandleClosedError: pass\n"
        "print(said)"
    )
    running = [warm.Process(["-c", code, str(path)]) for _ in range(2)]
    assert sum(int(process.communicate()[0]) for process in running) == 25


# ---- metrics


def test_metrics_are_means_of_bounded_numbers():
    truth = np.array(["a", "b", "c", "a"])
    likely = np.array([[0.7, 0.2, 0.1], [np.nan, 0.5, 0.5], [0, 0, 1.0], [0.2, 0.3, 0.5]])
    classes = np.array(["a", "b", "c"])
    assert metric_of("brier").of(truth, likely, classes) == pytest.approx(
        [1 - (0.09 + 0.04 + 0.01) / 2, 0, 1, 1 - (0.64 + 0.09 + 0.25) / 2]
    )
    assert log_loss(2.0).of(truth, likely, classes) == pytest.approx(
        [1 + np.log(0.7) / 2, 1 + np.log(0.5) / 2, 1, 1 + np.log(0.2) / 2]
    )
    assert metric_of("accuracy").of(truth, np.array(["a", "b", "x", "c"])).tolist() == [1, 1, 0, 0]
    assert quantile_loss(0.5, scale=1).of(np.array([0.0, 5]), np.array([1.0, np.nan])).tolist() == [0.5, 0]


def test_a_class_that_was_never_seen_scores_nothing():
    assert metric_of("log_loss").of(
        np.array(["z"]), np.array([[0.5, 0.5]]), np.array(["a", "b"])
    ).tolist() == [0]
    assert metric_of("brier").of(np.array(["z"]), np.array([[1.0, 0]]), np.array(["a", "b"])).tolist() == [0]


def test_classes_in_another_order_keep_their_columns():
    order = np.array(["b", "a"])
    assert log_loss().of(np.array(["b"]), np.array([[1.0, 0.0]]), order).tolist() == [1]


def test_predictions_of_the_wrong_shape_are_refused():
    with pytest.raises(ParameterError, match="predictions"):
        metric_of("accuracy").of(np.zeros(3), np.zeros(2))
    with pytest.raises(ParameterError, match="columns"):
        metric_of("brier").of(np.zeros(3), np.zeros((3, 3)), np.array([0, 1]))


def test_bnsssu16_auc_has_its_own_certificate():
    rows, truth = blobs(200_000, 4)
    holdout = Holdout(rows, truth, queries=2, mode="auc", noise=SeededNoise(7))
    score = holdout.score_predictions(rows.sum(axis=1))
    from sklearn.metrics import roc_auc_score

    exact = holdout.metric.area(truth, rows.sum(axis=1))
    assert exact == pytest.approx(roc_auc_score(truth, rows.sum(axis=1)), abs=1e-12)
    assert abs(score.value - exact) < 0.05
    assert 0.1 < score.width < 0.5
    with pytest.raises(RefusedError, match="rows would certify"):
        Holdout(rows[:1000], truth[:1000], queries=2, mode="auc")
    with pytest.raises(ParameterError, match="no mean over rows"):
        Holdout(rows, truth, queries=2, metric="auc", mode="gaussian")
    ladder = Holdout(rows[:2000], truth[:2000], queries=50, metric="auc", mode="ladder")
    promised = ladder.certificate()
    assert PAIRS in promised["assumptions"]
    assert BOUNDED not in promised["assumptions"]
    assert "min(p, q) for n" in promised["theorem"]
    assert ladder.mode.rows == min(truth[:2000].sum(), 2000 - truth[:2000].sum())


def test_blumhardt15_the_free_ladder_says_that_it_is_uncertified():
    holdout = Holdout(SEALED, TRUTH, queries=20, mode="free-ladder")
    half = np.where(np.arange(4000) % 2 == 0, TRUTH, 1 - TRUTH)
    assert holdout.score_predictions(half).value == 0.5
    assert holdout.score_predictions(1 - TRUTH).source == "repeat"
    assert holdout.score_predictions(TRUTH).value == 1
    assert holdout.width == 1
    assert "no theorem" in holdout.certificate()["theorem"]
    with pytest.raises(ParameterError, match="keeps no file"):
        Holdout(SEALED, TRUTH, queries=2, mode="free-ladder", path="x.db")


def test_a_search_over_noise_is_seen_through():
    """500 candidates on pure noise: the best score of a plain holdout is luck; ladder and guesses know."""
    n = 1000
    best = []
    for seed in range(20):
        draw = np.random.default_rng(seed)
        y, guesses = draw.integers(0, 2, n), draw.integers(0, 2, (500, n))
        best.append((guesses == y).mean(axis=1).max() - 0.5)
    assert abs(np.mean(best) - 0.048) < 0.006  # the largest of 500 means: 3.04 standard deviations
    ladder = Holdout(None, y, queries=500, mode="ladder")
    check = Holdout(None, y, queries=500, mode="check", rejections=2)
    for predicted in guesses:
        assert abs(ladder.score_predictions(predicted).value - 0.5) <= ladder.width
        assert abs(check.score_predictions(predicted, guess=0.5).value - 0.5) <= check.width
    with pytest.raises(RefusedError, match="rows would certify"):
        Holdout(None, y, queries=500, mode="gaussian", theorem="cvar")


def test_a_mode_made_for_something_else_is_refused():
    labels = np.arange(200) % 2
    with pytest.raises(ParameterError, match="made for"):
        Holdout(None, labels, queries=5000, mode=Gaussian(10**6, 1, 0.05))
    with pytest.raises(ParameterError, match="made for"):
        Holdout(None, labels, queries=5, mode=Ladder(200, 5, 0.5))
    assert Holdout(None, labels, queries=5, mode=Ladder(200, 5, 0.05)).left == 5


def test_a_holdouts_file_belongs_to_its_labels(tmp_path):
    labels = np.arange(200) % 2
    Holdout(None, labels, queries=5, mode="ladder", path=tmp_path / "h.db").score_predictions(labels)
    with pytest.raises(RequestConflictError):
        Holdout(None, 1 - labels, queries=5, mode="ladder", path=tmp_path / "h.db")
