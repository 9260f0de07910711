from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.errors import ParameterError
from understudy.validity.metrics import Metric, quantile_loss
from understudy.validity.predictions import as_labels, as_probabilities, kind

N = 2000
TRUTH = np.random.default_rng(0).integers(0, 2, N)
WORDS = np.where(TRUTH == 1, "yes", "no")


def holdout(labels=TRUTH, **terms):
    return us.Holdout(None, labels, queries=10, **({"mode": "ladder"} | terms))


@pytest.mark.parametrize(
    ("labels", "metric", "predicted", "reason"),
    [
        (TRUTH, "accuracy", WORDS, "text and the labels are numbers"),
        (TRUTH, "accuracy", TRUTH.astype(str), "text and the labels are numbers"),
        (TRUTH, "accuracy", pd.Series(TRUTH.astype(str)), "text and the labels are numbers"),
        (TRUTH, "accuracy", np.array(["yes", 1] * (N // 2), dtype=object), "other values and the labels"),
        (TRUTH, "accuracy", np.full(N, 0.7), "not probabilities"),
        (TRUTH, "accuracy", np.where(TRUTH == 1, 1.0, np.nan), "missing"),
        (TRUTH, "accuracy", pd.Series([None, *TRUTH[1:]], dtype="Int64"), "missing"),
        (TRUTH, "accuracy", TRUTH[:, None], "one prediction is needed"),
        (WORDS, "accuracy", TRUTH, "numbers and the labels are text"),
        (WORDS, "accuracy", [None, *WORDS[1:]], "missing"),
        (TRUTH, "brier", np.full(N, 5.0), "between 0 and 1"),
        (TRUTH, "brier", np.full(N, -0.01), "between 0 and 1"),
        (TRUTH, "brier", np.full(N, np.inf), "between 0 and 1"),
        (TRUTH, "brier", np.full(N, np.nan), "missing"),
        (TRUTH, "brier", TRUTH.astype(str), "text, not numbers"),
        (TRUTH, "log_loss", np.ones((N, 2)), "add up to 1"),
        (TRUTH, "log_loss", np.ones((N, 3)) / 3, "2 classes need 2 columns"),
        (np.arange(N) % 3, "log_loss", np.full(N, 0.5), "3 classes need 3 columns"),
        (TRUTH, "auc", WORDS, "text, not numbers"),
        (TRUTH, "auc", np.where(TRUTH == 1, 0.3, np.nan), "missing"),
        (TRUTH, quantile_loss(0.5, scale=1), WORDS, "text, not numbers"),
    ],
)
def test_malformed_predictions_are_refused_and_not_counted(labels, metric, predicted, reason):
    asked = holdout(labels, metric=metric)
    with pytest.raises(ParameterError, match=reason):
        asked.score_predictions(predicted)
    assert asked.left == 10


@pytest.mark.parametrize("guess", [7, -0.1, 1.0001, float("nan"), float("inf")])
def test_guesses_outside_the_range_of_scores_are_refused_and_not_counted(guess):
    asked = holdout(mode="realised")
    with pytest.raises(ParameterError, match="between 0 and 1"):
        asked.score_predictions(TRUTH, guess=guess)
    assert asked.left == 10
    assert asked.score_predictions(TRUTH, guess=1.0).source == "checked"


def test_what_means_the_same_is_scored():
    asked = holdout(TRUTH.astype(bool))
    assert asked.score_predictions(TRUTH).value == pytest.approx(1, abs=asked.width)
    for values in (TRUTH.astype(float), TRUTH.astype(bool), [Decimal(int(y)) for y in TRUTH]):
        same = holdout()
        assert same.score_predictions(values).source == "measured"
    probabilities = np.column_stack([1 - TRUTH, TRUTH]).astype(np.float32) + np.float32(1e-7)
    assert holdout(metric="brier").score_predictions(probabilities).source == "measured"


def test_a_refusal_does_not_depend_on_which_row_has_which_label():
    """The same submissions are refused, with the same words, against every arrangement of the labels."""
    draw = np.random.default_rng(1)
    given = (WORDS, np.full(N, 0.5), np.full(N, 7), np.zeros(N), np.where(TRUTH, np.nan, 0), TRUTH[:, None])
    told = []
    for _ in range(4):
        asked, said = holdout(draw.permutation(TRUTH)), []
        for predicted in given:
            try:
                asked.score_predictions(predicted)
                said.append("")
            except ParameterError as error:
                said.append(str(error))
        told.append((said, asked.left))
    assert all(found == told[0] for found in told)
    assert told[0][0][2] == ""  # a class that never occurs: to refuse it would say so
    assert told[0][1] == 8


def test_an_estimator_that_sees_the_sealed_rows_is_never_refused_for_what_it_predicts():
    """Else a refusal, which is not counted, would tell whatever the estimator wants to know of the sealed rows."""

    class Spy:
        def predict(self, X):
            return np.where(X[:, 0] > 0.999, np.nan, 1.0)

        def predict_proba(self, X):
            return np.column_stack([X[:, 0] * 9, X[:, 0]])

    X = np.random.default_rng(2).random((N, 1))
    for metric in ("accuracy", "brier", "log_loss"):
        asked = us.Holdout(X, TRUTH, queries=10, mode="ladder", metric=metric)
        asked.score(Spy())
        assert asked.left == 9


def test_a_metric_of_ones_own_takes_what_it_wants():
    near = Metric("near", "predict", lambda truth, predicted, classes: 1 - np.abs(truth - predicted[:, 0]))
    assert holdout(metric=near).score_predictions(TRUTH[:, None] * 0.9).source == "measured"


def test_kinds():
    assert [kind(np.array(values)) for values in ([1], [True], [1.5], ["a"], [date(2020, 1, 1)])] == [
        "numbers", "numbers", "numbers", "text", "dates",
    ]  # fmt: skip
    assert kind(np.array(["2020-01-01"], dtype="datetime64[D]")) == "dates"
    assert kind(np.array([1, "a", None], dtype=object)) == "other values"
    other = np.array([b"a", b"b"])
    assert as_labels(np.array([1, 2]), other) == ""  # of labels that are neither, nothing is demanded
    assert as_labels(np.array(["NaT"], dtype="datetime64[D]"), np.array([date(2020, 1, 1)])) != ""
    assert as_probabilities(np.array([0.333, 0.333, 0.333])[None], np.arange(3)) == ""  # rounded in a file
