"""What scores are about: an estimator that memorises sealed rows, and the ways to ask that it cannot use."""

from __future__ import annotations

import os
import socket
import sys
import types
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import memorising
from memorising import Failing, Memoriser, Prober, Shaped, Turncoat, label_of
from understudy.errors import ParameterError, RefusedError
from understudy.noise.samplers import SeededNoise
from understudy.validity.board import create
from understudy.validity.frozen import predict_frozen
from understudy.validity.holdout import Holdout
from understudy.validity.scope import NOT_FITTED, NOTHING_KEPT, SENTENCES, About, Way, about

DRAW = np.random.default_rng(7)
ROWS = 4000
SEALED = DRAW.normal(size=(ROWS, 2))
OTHER = DRAW.normal(size=(ROWS, 2))
TRUTH = label_of(SEALED)


@pytest.fixture(autouse=True)
def forgetting():
    memorising.SEEN.clear()
    yield
    memorising.SEEN.clear()


def sealed(queries=10, **settings):
    return Holdout(SEALED, TRUTH, queries=queries, noise=SeededNoise(1), **settings)


def attack(score, folder="") -> tuple[float, float, float]:
    """Two estimators: what is told of the second, how far that can be off, and what is true of it."""
    first = Memoriser(folder)
    score(first)
    second = Turncoat(first)
    told = score(second)
    truth = float((second.predict(OTHER) == label_of(OTHER)).mean())
    return told.value, told.width, truth


# ---- the attack


def test_an_estimator_of_this_process_can_memorise_and_the_certificate_says_so():
    holdout = sealed()
    assert holdout.certificate()["about"] == SENTENCES[About.OPEN]
    told, width, truth = attack(holdout.score)
    assert told > 0.95
    assert truth == 0
    assert told - width > truth  # the population's value is far outside
    promised = holdout.certificate()
    assert NOTHING_KEPT in promised["assumptions"]
    assert promised["about"] == SENTENCES[About.ASSUMED]
    assert holdout.score(Memoriser()).about is About.ASSUMED


@pytest.mark.parametrize("settings", [{"strict": True}, {"mode": "strict"}], ids=str)
def test_a_strict_holdout_refuses_estimators_of_this_process(settings):
    holdout = sealed(**settings)
    with pytest.raises(RefusedError, match=r"score_frozen.*Nothing was counted"):
        attack(holdout.score)
    assert holdout.left == 10
    assert not memorising.SEEN  # it was never shown a row


def test_a_frozen_estimator_cannot_memorise(tmp_path):
    holdout = sealed(strict=True)
    told, width, truth = attack(holdout.score_frozen, str(tmp_path))
    assert abs(told - truth) <= width
    assert truth == 0
    assert not memorising.SEEN
    promised = holdout.certificate()
    assert promised["about"] == SENTENCES[About.POPULATION]
    assert NOTHING_KEPT not in promised["assumptions"]
    unprevented = [line for line in promised["assumptions"] if "does not prevent" in line]
    assert unprevented or not os.listdir(tmp_path)
    for file in tmp_path.iterdir():
        assert file.is_dir() or file.is_symlink() or file.stat().st_size == 0  # names at most, no content


def test_predictions_certify_new_labels_for_these_rows():
    """The memoriser's own predictions, handed in: right about these rows, and said to be about no others."""
    holdout = sealed(strict=True)
    score = holdout.score_predictions(TRUTH)
    assert abs(score.value - 1) <= score.width
    assert score.about is About.THESE_ROWS
    assert holdout.certificate()["about"] == SENTENCES[About.THESE_ROWS]
    assert "fixed design" in holdout.certificate()["about"]


def test_what_is_known_of_the_rows_stays_known(tmp_path):
    """A frozen estimator after one of this process: no better than that one; also after a restart."""
    path = tmp_path / "h.db"
    holdout = sealed(path=path)
    said = [
        holdout.score_frozen(Memoriser()),
        holdout.score(Memoriser()),
        holdout.score_frozen(Memoriser()),
        holdout.score_predictions(TRUTH),
        holdout.score_frozen(Memoriser()),
    ]
    found = [About.POPULATION, About.ASSUMED, About.ASSUMED, About.THESE_ROWS, About.THESE_ROWS]
    assert [score.about for score in said] == found
    holdout.close()
    again = sealed(path=path)
    assert [score.about for _, score in again.history()] == found
    assert again.certificate() == holdout.certificate()
    assert {step["way"] for step in again._journal.all()} == set(Way)


def test_steps_of_version_0_1_count_as_predictions(tmp_path):
    path = tmp_path / "h.db"
    old = sealed(path=path)
    assert old._journal.add("score 1", {"value": 0.5}, hidden=b"{}")
    old.close()
    holdout = sealed(path=path)
    assert holdout.left == 9
    assert holdout.history()[0][1].about is About.THESE_ROWS
    assert holdout.score_frozen(Memoriser()).about is About.THESE_ROWS


@pytest.mark.parametrize("has_features", [True, False])
def test_a_way_that_shows_more_never_promises_more(has_features):
    order = [About.OPEN, About.POPULATION, About.ASSUMED, About.THESE_ROWS]
    found = [about(ways, has_features=has_features) for ways in
             ((), (Way.FROZEN,), (Way.FROZEN, Way.IN_PROCESS), tuple(Way))]  # fmt: skip
    assert found == (order if has_features else [About.THESE_ROWS] * 4)


# ---- the area under the curve has no fixed design


def test_the_area_of_predictions_rests_on_an_assumption_and_strict_refuses_it():
    rows = np.random.default_rng(3).normal(size=(200_000, 1))
    truth = label_of(rows)
    holdout = Holdout(rows, truth, queries=2, mode="auc")
    holdout.score_predictions(rows[:, 0])
    promised = holdout.certificate()
    assert NOT_FITTED in promised["assumptions"]
    assert "no fixed design" in promised["about"]
    with pytest.raises(RefusedError, match="score_frozen"):
        Holdout(rows, truth, queries=2, mode="auc", strict=True).score_predictions(rows[:, 0])
    frozen = Holdout(rows, truth, queries=2, mode="auc", strict=True, noise=SeededNoise(1))
    model = LogisticRegression().fit(SEALED[:, :1], TRUTH)
    score = frozen.score_frozen(model)
    assert score.about is About.POPULATION
    assert abs(score.value - 1) <= score.width


# ---- boards


def test_a_board_says_that_it_is_about_these_rows(tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(400)), encoding="utf-8")
    board = create(tmp_path / "board.json", labels, id="id", label="label", queries=5)
    assert board.holdout.certificate()["about"] == SENTENCES[About.THESE_ROWS]
    assert board.score(labels).as_dict()["about"] == str(About.THESE_ROWS)


# ---- the process of a frozen estimator


def test_a_frozen_score_is_that_of_the_estimator():
    model = LogisticRegression().fit(OTHER, label_of(OTHER))
    holdout = sealed()
    score = holdout.score_frozen(model, label="logistic")
    assert abs(score.value - model.score(SEALED, TRUTH)) < 0.05
    assert holdout.history() == [("logistic", score)]
    likely = Holdout(SEALED, TRUTH, queries=5, metric="brier", noise=SeededNoise(2)).score_frozen(model)
    assert likely.value > 0.9


def test_a_strict_holdout_serves_a_search():
    holdout = sealed(strict=True, mode="ladder")
    GridSearchCV(LogisticRegression(), {"C": [1]}, scoring=holdout, cv=2, refit=False).fit(
        OTHER, label_of(OTHER)
    )
    assert holdout.left == 8
    assert holdout.certificate()["about"] == SENTENCES[About.POPULATION]


def test_a_failure_at_the_sealed_rows_is_counted_and_told_in_no_other_way():
    """An error whose text quotes a row, and whether it happens, would be an answer that nobody counts."""
    holdout = sealed()
    fails, works = holdout.score_frozen(Failing(0.0)), holdout.score_frozen(Failing(100.0))
    assert fails.value < 0.1
    assert works.value > 0.9
    assert holdout.left == 8


@pytest.mark.parametrize(("shape", "right"), [("short", 0), ("cube", 0), ("objects", 0), ("endless", 0)])
def test_what_is_no_prediction_counts_as_wrong(shape, right):
    score = sealed().score_frozen(Shaped(shape))
    assert abs(score.value - right) < 0.1


def test_labels_that_are_text_come_back_as_text():
    holdout = Holdout(SEALED, TRUTH.astype(str), queries=5, noise=SeededNoise(1))
    assert holdout.score_frozen(Shaped("text")).value > 0.9


def test_what_cannot_be_frozen_is_refused_and_not_counted():
    holdout = sealed()
    with pytest.raises(ParameterError, match="pickle"):
        holdout.score_frozen(lambda X: X)
    lost = types.ModuleType("lost_module")
    exec("class Lost:\n    def predict(self, X): return X", lost.__dict__)
    sys.modules["lost_module"] = lost
    try:
        with pytest.raises(ParameterError, match=r"lost_module.*can be imported"):
            holdout.score_frozen(lost.Lost())
    finally:
        del sys.modules["lost_module"]
    with pytest.raises(ParameterError, match="none of predict"):
        holdout.score_frozen(object())
    with pytest.raises(ParameterError, match="no features"):
        Holdout(None, TRUTH, queries=3).score_frozen(Memoriser())
    assert holdout.left == 10


def right_answers(what: str, **named) -> float:
    """The share of right predictions of a prober: 1 if it could do what it tried, else 0."""
    found = predict_frozen(
        Prober(what), SEALED[:50], ("predict",), rows=50, columns=2, **({"seconds": 60.0} | named)
    ).found
    assert found is not None
    return float((found == TRUTH[:50]).mean())


@pytest.mark.parametrize("what", ["environment", "crowd", "folder", "reads", "writes"])
def test_a_frozen_estimator_starts_from_nothing_and_leaves_nothing(what, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_SECRET", "rows")
    monkeypatch.setitem(sys.modules, "memorising_was_here", types.ModuleType("memorising_was_here"))
    assert right_answers(what) == 0


def test_a_frozen_estimator_cannot_call_out_where_the_system_prevents_it():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        prober = Prober("connects", listening.getsockname()[1])
        assert prober.connects()
        made = predict_frozen(prober, SEALED[:50], ("predict",), rows=50, columns=2, seconds=60)
    assert made.found is not None
    called = (made.found == TRUTH[:50]).all()
    assert not called or "network and other processes" in made.unprevented


def test_an_estimator_that_takes_too_long_is_given_up():
    made = predict_frozen(Prober("sleeps"), SEALED[:5], ("predict",), rows=5, columns=2, seconds=4)
    assert made.found is None


@pytest.mark.parametrize(("what", "seconds"), [("leaves_a_child", 60.0), ("clings", 4.0)])
def test_what_a_frozen_estimator_starts_does_not_outlive_it(what, seconds):
    made = predict_frozen(Prober(what), SEALED[:5], ("predict",), rows=5, columns=2, seconds=seconds)
    if "network and other processes" in made.unprevented:
        pytest.skip("this system grants no namespace; the group is killed, and a process can leave its group")
    # Naps that no other test takes: one beside this one may have processes of its own that sleep.
    nap = b"time.sleep(60.25)" if what == "leaves_a_child" else b"time.sleep(61.25)"
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                assert nap not in (place / "cmdline").read_bytes()
    assert not _workers()


def _workers() -> list[str]:
    """Processes of frozen estimators that are children of this one, or of nobody any more."""
    found = []
    for place in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            parent = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if b"frozen_worker" in (place / "cmdline").read_bytes() and parent in (1, os.getpid()):
                found.append(place.name)
    return found
