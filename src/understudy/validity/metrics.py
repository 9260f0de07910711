"""Scores that are means of one number in [0, 1] for each row: what the certificates speak of.

Larger is better. A loss is clipped to declared bounds and turned over, so that 1 is no loss at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from understudy.errors import ParameterError
from understudy.validity.predictions import Fault, as_labels, as_numbers, as_probabilities, no_fault

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """A score for each row. `response` is the method of an estimator that makes the predictions.

    `fault` says what is wrong with predictions that somebody hands in, from them and the classes alone.
    """

    name: str
    response: str
    rowwise: Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], Values]
    fault: Fault = no_fault

    def of(self, truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any] | None = None) -> Values:
        """One number in [0, 1] for each row; anything else that a prediction gives counts as 0."""
        if np.ndim(predicted) < 1 or len(predicted) != len(truth):
            raise ParameterError(f"{len(truth)} rows need {len(truth)} predictions, one for each")
        labels = np.unique(truth) if classes is None else np.asarray(classes)
        found = np.asarray(self.rowwise(truth, np.asarray(predicted), labels), dtype=np.float64)
        return np.clip(np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)

    @property
    def responses(self) -> tuple[str, ...]:
        """Methods of an estimator that make the predictions: the first that it has."""
        return (self.response,)

    def predictions(self, estimator: Any, X: Any) -> NDArray[Any]:
        """An estimator's predictions for the rows of X, made in this process."""
        return _predictions(estimator, X, self.responses, self.name)


def _predictions(estimator: Any, X: Any, responses: tuple[str, ...], metric: str) -> NDArray[Any]:
    for response in responses:
        predict = getattr(estimator, response, None)
        if predict is not None:
            return np.asarray(predict(X))
    wanted, kind = " or ".join(responses), type(estimator).__name__
    raise ParameterError(f"{metric} needs an estimator with {wanted}; {kind} has none")


def _right(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
    del classes
    if predicted.shape != truth.shape:
        raise ParameterError("accuracy needs one prediction for each row")
    return (truth == predicted).astype(np.float64)


def _columns(predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
    """One column of probabilities for each class; a single one is that of the second of two."""
    found = np.asarray(predicted, dtype=np.float64)
    if found.ndim == 1:
        found = np.column_stack([1 - found, found])
    if found.shape[1] != len(classes):
        raise ParameterError(f"{len(classes)} classes need {len(classes)} columns of probabilities")
    return found


def _held(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
    """The probability that was given to the true class; 0 for a class that was never seen."""
    predicted = _columns(predicted, classes)
    order = np.argsort(classes)
    classes, predicted = classes[order], predicted[:, order]
    place = np.searchsorted(classes, truth)
    known = (place < len(classes)) & (classes[np.minimum(place, len(classes) - 1)] == truth)
    found = predicted[np.arange(len(truth)), np.where(known, place, 0)]
    return np.where(known, found, 0.0)


def _brier(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
    predicted = _columns(predicted, classes)
    hit = classes[None, :] == truth[:, None]
    unseen = 1.0 - hit.any(axis=1)
    return 1 - (((predicted - hit) ** 2).sum(axis=1) + unseen) / 2


def log_loss(cap: float = 5.0) -> Metric:
    """1 - min(-ln p, cap)/cap, for the probability p of the true class."""
    if not 0 < cap < np.inf:
        raise ParameterError(f"a log-loss is clipped at a positive number, not {cap}")

    def rowwise(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = -np.log(_held(truth, predicted, classes))
        return 1 - np.minimum(loss, cap) / cap

    return Metric("log_loss", "predict_proba", rowwise, as_probabilities)


def quantile_loss(quantile: float = 0.5, *, scale: float) -> Metric:
    """1 - min(pinball loss, scale)/scale; at 1/2 it is half the absolute error."""
    if not (0 < quantile < 1 and 0 < scale < np.inf):
        raise ParameterError("a quantile loss needs a quantile between 0 and 1 and a positive scale")

    def rowwise(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        del classes
        off = truth.astype(np.float64) - predicted.astype(np.float64)
        return 1 - np.minimum(np.maximum(quantile * off, (quantile - 1) * off), scale) / scale

    return Metric("quantile_loss", "predict", rowwise, as_numbers)


METRICS = {
    "accuracy": Metric("accuracy", "predict", _right, as_labels),
    "brier": Metric("brier", "predict_proba", _brier, as_probabilities),
    "log_loss": log_loss(),
}


def metric_of(wanted: str | Metric) -> Metric | Area:
    """A metric by its name."""
    if isinstance(wanted, Metric):
        return wanted
    if wanted in ("roc_auc", "auc"):
        return AUC
    if wanted not in METRICS:
        raise ParameterError(
            f"no metric {wanted!r}; there are: {', '.join(METRICS)}, auc, or a Metric of your own"
        )
    return METRICS[wanted]


@dataclass(frozen=True)
class Area:
    """The area under the ROC curve: no mean over rows, and certified as such (`auc`).

    The greater of two labels is the positive one. A tie counts half; a score that is no number ranks last.
    """

    name: str = "auc"
    fault: Fault = as_numbers

    @property
    def responses(self) -> tuple[str, ...]:
        """The decision function, or the probability of the positive class: the first that an estimator has."""
        return ("decision_function", "predict_proba")

    def predictions(self, estimator: Any, X: Any) -> NDArray[Any]:
        """An estimator's scores for the rows of X, made in this process."""
        return _predictions(estimator, X, self.responses, self.name)

    def area(self, truth: NDArray[Any], scores: NDArray[Any]) -> float:
        """The share of pairs, a positive and a negative row, that the scores put in the right order."""
        right, pairs = self.half_pairs(truth, scores)
        return right / pairs

    def half_pairs(self, truth: NDArray[Any], scores: NDArray[Any]) -> tuple[int, int]:
        """The area as whole numbers: pairs in the right order count 2, ties 1; and twice the number of pairs."""
        found = np.asarray(scores, dtype=np.float64)
        found = found[:, 1] if found.ndim == 2 else found
        if found.shape != truth.shape:
            raise ParameterError(f"{len(truth)} rows need {len(truth)} scores")
        positive = truth == np.unique(truth)[-1]
        twice = np.rint(2 * rankdata(np.nan_to_num(found, nan=-np.inf))).astype(np.int64)
        count = int(positive.sum())
        if not 0 < count < len(truth):
            raise ParameterError("the area under the curve needs rows of both classes")
        return int(twice[positive].sum()) - count * (count + 1), 2 * count * (len(truth) - count)


AUC = Area()
