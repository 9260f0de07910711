"""How predictions are scored: by one number in [0, 1] for each row, whose mean the certificates speak of.

Larger is better. A loss is clipped to declared bounds and turned over, so that 1 is no loss at all; the bounds are
public and fixed in advance, as they are part of what is promised. `mae`, `quantile_loss`, `log_loss`, accuracy and
`brier` are such means. `rmse`, `r2` and `f1` are functions of them (`metric.Combined`): each score then asks for
one mean or two, the certificate counts them all, and the score's interval follows from theirs (`propagated`).

Each function here makes a metric for the argument `metric` of a `Holdout`, and raises a `ParameterError` where its
public parameters make no sense. A metric is also written as text, ``mae(scale=10)``, as boards keep it; accuracy,
`brier` and `auc`, the area under the curve, are written by name alone.

>>> mae(scale=10).text, mae(scale=10).scale  # a score s stands for a mean absolute error of 10·(1 - s)
('mae(scale=10)', 10.0)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.validity.metric import AUC, Area, Combined, Metric, Values
from understudy.validity.predictions import (
    as_labels,
    as_numbers,
    as_probabilities,
    is_whole,
    kind,
)
from understudy.validity.propagated import (
    explained_variance,
    harmonic_mean,
    root_mean_square,
)

FEW_LABELS = 50
"""Whole numbers with more distinct values than this, and than the root of the rows, are not taken for labels."""


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
    """The log-loss: a row scores 1 - min(-ln p, cap)/cap, where p is the probability given to its true class.

    The `cap`, in nats, is public: no row's loss counts for more. Raises a `ParameterError` unless it is positive
    and finite.
    """
    if not 0 < cap < np.inf:
        raise ParameterError(f"a log-loss is clipped at a positive number, not {cap}")

    def rowwise(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = -np.log(_held(truth, predicted, classes))
        return 1 - np.minimum(loss, cap) / cap

    text = "log_loss" if cap == 5 else f"log_loss(cap={_written(cap)})"
    return Metric("log_loss", "predict_proba", rowwise, as_probabilities, "labels", text, cap)


def quantile_loss(quantile: float = 0.5, *, scale: float) -> Metric:
    """The pinball loss of a predicted quantile: a row scores 1 - min(loss, scale)/scale.

    The loss is `quantile` times the error where the prediction is too low, and 1 - `quantile` times the error
    where it is too high; at 1/2 it is half the absolute error. The `scale` is in the unit of the target and
    public. Raises a `ParameterError` unless the quantile is between 0 and 1 and the scale positive and finite.
    """
    if not (0 < quantile < 1 and 0 < scale < np.inf):
        raise ParameterError("a quantile loss needs a quantile between 0 and 1 and a positive scale")

    def rowwise(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        del classes
        off = _difference(truth, predicted)
        return 1 - np.minimum(np.maximum(quantile * off, (quantile - 1) * off), scale) / scale

    text = f"quantile_loss(quantile={_written(quantile)}, scale={_written(scale)})"
    return Metric("quantile_loss", "predict", rowwise, as_numbers, "numbers", text, scale)


def mae(*, scale: float) -> Metric:
    """The mean absolute error: a row scores 1 - min(|y - p|, scale)/scale, where p is the prediction of y.

    The `scale` is in the unit of the target and public: a round number that few errors exceed. Raises a
    `ParameterError` unless it is positive and finite.
    """
    _check_scale("mae", scale)

    def rowwise(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        del classes
        return 1 - np.minimum(np.abs(_difference(truth, predicted)), scale) / scale

    return Metric(
        "mae", "predict", rowwise, as_numbers, "numbers", f"mae(scale={_written(scale)})", float(scale)
    )


def rmse(*, scale: float) -> Combined:
    """The root mean squared error: a score of 1 - sqrt(mean of min(|y - p|, scale)²)/scale, p predicting y.

    The `scale`, to which errors are clipped, is in the unit of the target and public. The metric asks for one
    mean, of squares: near a score of 1 its interval is wide, as a root is steep there. Raises a `ParameterError`
    unless the scale is positive and finite.
    """
    _check_scale("rmse", scale)

    def rowwise(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        del classes
        return 1 - (np.minimum(np.abs(_difference(truth, predicted)), scale) / scale) ** 2

    square = Metric("mean square", "predict", rowwise, as_numbers, "numbers")
    return Combined(
        "rmse", "predict", rowwise, as_numbers, "numbers", f"rmse(scale={_written(scale)})", float(scale),
        several=(square,),
        function=lambda means: 1 - float(np.sqrt(1 - means[0])),
        ends=root_mean_square,
        inverse=lambda score: 1 - (1 - score) ** 2,
    )  # fmt: skip


def r2(*, low: float, high: float, clip: float | None = None) -> Combined:
    """The explained variance 1 - (mean squared error)/(variance of y), at least 0, y clipped to [low, high].

    Errors are clipped to `clip`, by default to `high` - `low`; all three are public, in the unit of y. Raises a
    `ParameterError` where the bounds do not rise, or `clip` is not between 0 and their distance. Each score asks
    for the mean squared error; the first also asks for the mean of y and of its square about the middle, which do
    not change. The interval is narrow where y fills its bounds and few errors exceed a small `clip`, and useless
    where the variance is small beside (high - low)².
    """
    if not -np.inf < low < high < np.inf:
        raise ParameterError("r2 needs public bounds of the target, the lower one first")
    most = high - low if clip is None else clip
    if not 0 < most <= high - low:
        raise ParameterError(f"r2 clips errors at a positive number of at most high - low, not at {clip}")
    ratio = (most / (high - low)) ** 2

    def inside(values: NDArray[Any]) -> Values:
        return (np.clip(values.astype(np.float64), low, high) - low) / (high - low)

    def explained(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        del classes
        _check_shape(truth, predicted)
        off = (high - low) / most * np.abs(inside(truth) - inside(predicted))
        return 1 - np.minimum(off, 1) ** 2

    def centre(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        del predicted, classes
        return inside(truth)

    def square(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        del predicted, classes
        return 4 * (inside(truth) - 0.5) ** 2

    def function(means: Sequence[float]) -> float:
        variance = means[2] / 4 - (means[1] - 0.5) ** 2
        return 1 - ratio * (1 - means[0]) / variance if variance > 0 else 0.0

    clipped = "" if clip is None else f", clip={_written(clip)}"
    return Combined(
        "r2", "predict", explained, as_numbers, "numbers",
        f"r2(low={_written(low)}, high={_written(high)}{clipped})",
        several=(Metric("mean square", "predict", explained, as_numbers, "numbers"),),
        first=(Metric("mean of y", "predict", centre), Metric("mean square of y", "predict", square)),
        function=function,
        ends=lambda means: explained_variance(means, ratio=ratio),
    )  # fmt: skip


def f1(*, positive: Any = None) -> Combined:
    """The F1 score 2t/(2t + e) of a label: t is the share of true positives, e that of errors of both kinds.

    Each score asks for both means. `positive` is the label; where it is left out there must be two labels, and it
    is the greater one: a holdout with more labels then raises a `ParameterError`.
    """

    def hit(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        del classes
        _check_shape(truth, predicted)
        return ((truth == positive) & (predicted == positive)).astype(np.float64)

    def right(truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Values:
        del classes
        return ((truth == positive) == (predicted == positive)).astype(np.float64)

    def function(means: Sequence[float]) -> float:
        hits, errors = means[0], 1 - means[1]
        return 2 * hits / (2 * hits + errors) if hits > 0 else 0.0

    return Combined(
        "f1", "predict", hit, as_labels, "labels", "f1" if positive is None else f"f1(positive={positive!r})",
        several=(Metric("true positives", "predict", hit), Metric("right", "predict", right)),
        function=function,
        ends=harmonic_mean,
        of_label=(lambda label: f1(positive=label)) if positive is None else None,
        positive=positive,
    )  # fmt: skip


def _difference(truth: NDArray[Any], predicted: NDArray[Any]) -> Values:
    _check_shape(truth, predicted)
    with np.errstate(invalid="ignore"):
        return truth.astype(np.float64) - predicted.astype(np.float64)


def _check_shape(truth: NDArray[Any], predicted: NDArray[Any]) -> None:
    if predicted.shape != truth.shape:
        raise ParameterError("one prediction is needed for each row")


def _check_scale(name: str, scale: float) -> None:
    if not 0 < scale < np.inf:
        raise ParameterError(f"{name} is clipped at a positive number, its public scale, not at {scale}")


def _written(number: float) -> str:
    """A number as text that reads back as the same number."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


METRICS: dict[str, Callable[..., Metric]] = {
    "accuracy": lambda: Metric("accuracy", "predict", _right, as_labels, "labels"),
    "brier": lambda: Metric("brier", "predict_proba", _brier, as_probabilities, "labels"),
    "log_loss": log_loss,
    "f1": f1,
    "mae": mae,
    "rmse": rmse,
    "r2": r2,
    "quantile_loss": quantile_loss,
}
"""What makes each metric, by name, from its public parameters."""


def metric_of(wanted: str | Metric | Area) -> Metric | Area:
    """The metric that `wanted`, a text such as ``accuracy`` or ``mae(scale=10)``, names; a metric is one already.

    Raises a `ParameterError` where there is no such metric, or where a public parameter is missing or unknown.
    """
    if isinstance(wanted, (Metric, Area)):
        return wanted
    if not isinstance(wanted, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
        raise ParameterError(
            "a metric is a name, or a Metric: a function of truth and predictions is one as "
            "`us.metrics.Metric('mine', 'predict', rowwise)`, where rowwise(truth, predicted, classes) gives a "
            "number between 0 and 1 for each row"
        )
    name, parameters = _read(wanted)
    if name in ("roc_auc", "auc") and not parameters:
        return AUC
    if name not in METRICS:
        raise ParameterError(
            f"no metric {wanted!r}; there are: {', '.join(METRICS)}, auc, or a Metric of your own"
        )
    try:
        return METRICS[name](**parameters)
    except TypeError:
        examples = {"r2": "r2(low=0, high=100)", "f1": "f1(positive=1)", "log_loss": "log_loss(cap=5)"}
        usual = examples.get(name, f"{name}(scale=10)" if name not in ("accuracy", "brier") else name)
        raise ParameterError(
            f"{wanted} lacks a public parameter, or has an unknown one: write {usual} for instance"
        ) from None


def _read(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the parameters in a text such as ``mae(scale=10)``; a text that is no call is a name."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            return call.func.id, {str(given.arg): ast.literal_eval(given.value) for given in call.keywords}
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        pass
    return text, {}


def metric_for(
    wanted: str | Metric | Area | None, truth: NDArray[Any], classes: NDArray[Any]
) -> Metric | Area:
    """The metric that scores the target `truth`: the one that is `wanted`, or accuracy where the target is labels.

    `classes` are the distinct values that the target can have. Raises a `ParameterError` that says what to write
    where the target is continuous and the metric compares labels, or where the target is text and the metric needs
    numbers. What it depends on is public: the type of the target and its number of distinct values.
    """
    metric = metric_of("accuracy" if wanted is None else wanted)
    needs = "labels" if isinstance(metric, Area) else metric.target
    numbers = kind(truth) == "numbers"
    if needs == "labels" and numbers and not is_whole(truth):
        raise ParameterError(f"y is continuous, and {metric.name} compares labels: {_REGRESSION}")
    if needs == "numbers" and not numbers:
        raise ParameterError(f"y is {kind(truth)}, and {metric.name} needs numbers: try `metric='accuracy'`")
    if wanted is None and numbers and len(classes) > max(FEW_LABELS, len(truth) ** 0.5):
        raise ParameterError(
            f"y has {len(classes):,} distinct numbers: if they are labels, write `metric='accuracy'`; if they are "
            f"amounts, {_REGRESSION}"
        )
    return metric if isinstance(metric, Area) else metric.for_classes(classes)


_REGRESSION = (
    "write `metric='mae(scale=10)'` or `metric='rmse(scale=10)'`, with a public scale in the unit of y, or r2 "
    "with public bounds"
)
