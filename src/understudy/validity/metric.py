"""What a metric is: a mean of one number in [0, 1] for each row, a function of such means, or an area.

`metrics` lists the ones that there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.validity.predictions import Fault, as_numbers, no_fault
from understudy.validity.propagated import Interval

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """A score in [0, 1] for each row, of which a holdout tells the mean.

    name      what it is called
    response  the method of an estimator that makes the predictions, such as `predict`
    rowwise   a function of the true values, the predictions and the classes: an array of one number for each row
    fault     says what is wrong with predictions that somebody hands in, from them and the classes alone
    target    what y must be: `labels`, `numbers`, or anything where it is empty
    text      the metric with its public parameters, as `metric_of` reads it; the name where there are none
    scale     a score s stands for a loss of scale·(1 - s), in the unit of the target; None where it is no loss
    """

    name: str
    response: str
    rowwise: Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], Values]
    fault: Fault = no_fault
    target: str = ""
    text: str = ""
    scale: float | None = None
    combines: ClassVar[bool] = False
    """Whether the score is another number than its mean."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text or self.name)

    def of(self, truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any] | None = None) -> Values:
        """One number in [0, 1] for each row; anything else that a prediction gives counts as 0.

        `truth` has the true values, `predicted` the predictions, and `classes` the labels that there can be (None:
        those of `truth`). Raises a `ParameterError` unless there is one prediction for each row.
        """
        if np.ndim(predicted) < 1 or len(predicted) != len(truth):
            raise ParameterError(f"{len(truth)} rows need {len(truth)} predictions, one for each")
        labels = np.unique(truth) if classes is None else np.asarray(classes)
        found = np.asarray(self.rowwise(truth, np.asarray(predicted), labels), dtype=np.float64)
        return np.clip(np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)

    @property
    def parts(self) -> tuple[Metric, ...]:
        """The means that each score asks for: the metric itself."""
        return (self,)

    @property
    def once(self) -> tuple[Metric, ...]:
        """The means that are asked for with the first score alone: none."""
        return ()

    @property
    def asked(self) -> tuple[int, int]:
        """How many means each score asks for, and the first one besides."""
        return len(self.parts), len(self.once)

    def interval(self, means: Sequence[Interval]) -> Interval:
        """The interval of the score, from the intervals of its `means`: that of the only one."""
        return means[0]

    def value(self, means: Sequence[float]) -> float:
        """The score, from its `means`: the only one."""
        return means[0]

    def guesses(self, score: float) -> tuple[float, ...]:
        """The means that a guessed `score` stands for: itself."""
        return (score,)

    def means(
        self, truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any] | None = None
    ) -> tuple[float, ...]:
        """The means over given rows of all that a first score asks for.

        `truth`, `predicted` and `classes` are those of `of`, which says what is raised.
        """
        return tuple(float(part.of(truth, predicted, classes).mean()) for part in (*self.parts, *self.once))

    @property
    def responses(self) -> tuple[str, ...]:
        """Methods of an estimator that make the predictions: the first that it has."""
        return (self.response,)

    def predictions(self, estimator: Any, X: Any) -> NDArray[Any]:
        """The predictions of an `estimator` for the rows of `X`, made in this process.

        Raises a `ParameterError` where the estimator has none of the methods in `responses`.
        """
        return _predictions(estimator, X, self.responses, self.name)

    def for_classes(self, classes: NDArray[Any]) -> Metric:
        """The metric for the labels `classes`: the same, unless it is of one of them."""
        del classes
        return self


@dataclass(frozen=True)
class Combined(Metric):
    """A score that is a function of several means, each of one number in [0, 1] for each row.

    several   the means that each score asks for; larger is better for each of them
    first     means of the target alone, which the first score asks for besides
    function  the score, of all of these means in their order
    ends      the interval of the score, of theirs
    inverse   the mean that a score stands for, where there is a single one
    of_label  makes the metric of one of the labels, where it has yet to be said which
    positive  the label that the metric is of, where it is of one
    """

    several: tuple[Metric, ...] = ()
    first: tuple[Metric, ...] = ()
    function: Callable[[Sequence[float]], float] = lambda means: means[0]
    ends: Callable[[Sequence[Interval]], Interval] = lambda means: means[0]
    inverse: Callable[[float], float] | None = None
    of_label: Callable[[Any], Metric] | None = None
    positive: Any = None
    combines: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[Metric, ...]:
        return self.several

    @property
    def once(self) -> tuple[Metric, ...]:
        return self.first

    def interval(self, means: Sequence[Interval]) -> Interval:
        """The interval of the score, from those of its means."""
        return self.ends(means)

    def value(self, means: Sequence[float]) -> float:
        """The score, from its means."""
        return min(max(self.function(means), 0.0), 1.0)

    def guesses(self, score: float) -> tuple[float, ...]:
        """The mean that a guessed score stands for; a score of several means stands for none of them."""
        if self.inverse is None:
            raise ParameterError(
                f"{self.name} is made of {len(self.parts) + len(self.once)} means, and one guess cannot say all "
                f"of them: give one for each, as `means` computes them from other rows"
            )
        return (self.inverse(score),)

    def for_classes(self, classes: NDArray[Any]) -> Metric:
        """The metric of the greater of two labels, where none was named; any other number of them is refused."""
        if self.of_label is None:
            return self
        if len(classes) != 2:
            raise ParameterError(
                f"{self.name} is of one label, and there are {len(classes)}: write "
                f"`metric='{self.name}(positive={np.unique(classes)[-1].item()})'`, or another of them"
            )
        return self.of_label(np.unique(classes)[-1].item())


def _predictions(estimator: Any, X: Any, responses: tuple[str, ...], metric: str) -> NDArray[Any]:
    for response in responses:
        predict = getattr(estimator, response, None)
        if predict is not None:
            return np.asarray(predict(X))
    wanted, kind = " or ".join(responses), type(estimator).__name__
    raise ParameterError(f"{metric} needs an estimator with {wanted}; {kind} has none")


@dataclass(frozen=True)
class Area:
    """The area under the ROC curve: no mean over rows, and certified as such (`auc`).

    The greater of two labels is the positive one. A tie counts half; a score that is no number ranks last. `name`,
    `text`, `scale` and `fault` are as those of a `Metric`.
    """

    name: str = "auc"
    text: str = "auc"
    scale: float | None = None
    fault: Fault = as_numbers

    @property
    def asked(self) -> tuple[int, int]:
        """How many numbers each score asks for, and the first one besides: itself, and none."""
        return 1, 0

    @property
    def responses(self) -> tuple[str, ...]:
        """The decision function, or the probability of the positive class: the first that an estimator has."""
        return ("decision_function", "predict_proba")

    def predictions(self, estimator: Any, X: Any) -> NDArray[Any]:
        """The scores of an `estimator` for the rows of `X`, made in this process.

        Raises a `ParameterError` where the estimator has none of the methods in `responses`.
        """
        return _predictions(estimator, X, self.responses, self.name)

    def means(
        self, truth: NDArray[Any], scores: NDArray[Any], classes: NDArray[Any] | None = None
    ) -> tuple[float, ...]:
        """The area over given rows, as a guess: of the true labels `truth` and the `scores` of an estimator.

        `classes` are not needed. Raises a `ParameterError` as `half_pairs` does.
        """
        del classes
        return (self.area(truth, scores),)

    def guesses(self, score: float) -> tuple[float, ...]:
        """What a guessed `score` stands for: itself."""
        return (score,)

    def area(self, truth: NDArray[Any], scores: NDArray[Any]) -> float:
        """The share of pairs, a positive and a negative row by `truth`, that the `scores` put in the right order.

        Raises a `ParameterError` as `half_pairs` does.
        """
        right, pairs = self.half_pairs(truth, scores)
        return right / pairs

    def half_pairs(self, truth: NDArray[Any], scores: NDArray[Any]) -> tuple[int, int]:
        """The area as whole numbers: pairs in the right order count 2, ties 1; and twice the number of pairs.

        `truth` and `scores` are those of `area`. Raises a `ParameterError` unless there is one score for each row,
        and where all rows are of one class.
        """
        from scipy.stats import rankdata  # late: it takes most of a second to load

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
