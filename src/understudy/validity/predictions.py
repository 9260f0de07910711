"""What predictions must look like: malformed ones are refused before they are scored, and not counted.

A refusal is an answer that no certificate pays for. So it may depend on the submission and on public facts only:
the number of rows, the names and the number of classes, and the type of the labels (whole numbers, numbers, text,
dates or other values). It never depends on which row has which label; and a label that never occurs is no fault,
since the refusal would say that it does not. For the same reason predictions that an estimator makes here, from
the sealed rows, are never refused for their values: they count as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-6
"""How far a probability may be outside [0, 1]: arithmetic in single precision gives no better."""

TOTAL_ROUNDING = 0.01
"""How far the probabilities of a row may be from 1 together: a file may have rounded each of them."""

Fault = Callable[[NDArray[Any], NDArray[Any]], str]
"""What is wrong with predictions, given the classes; empty if nothing is."""

_KINDS = {
    "b": "numbers",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "U": "text",
    "T": "text",
    "M": "dates",
}
_OBJECTS = ((str, "text"), (Number, "numbers"), (date, "dates"), (np.datetime64, "dates"))


def kind(values: NDArray[Any]) -> str:
    """Numbers, text or dates; else "other values". True and false are numbers."""
    if values.dtype.kind != "O":
        return _KINDS.get(values.dtype.kind, "other values")
    for one, name in _OBJECTS:
        if values.size and all(isinstance(value, one) for value in values.flat):
            return name
    return "other values"


def no_fault(predicted: NDArray[Any], classes: NDArray[Any]) -> str:
    """Anything goes: of a metric that says nothing else."""
    del predicted, classes
    return ""


def as_labels(predicted: NDArray[Any], classes: NDArray[Any]) -> str:
    """One label for each row, of the same kind as the labels. A class that never occurs is no fault."""
    if predicted.ndim != 1:
        return "one prediction is needed for each row"
    if missing(predicted):
        return "predictions are missing"
    given, wanted = kind(predicted), kind(classes)
    if given != wanted and wanted != "other values":
        return f"the predictions are {given} and the labels are {wanted}: predict labels as they are written"
    if wanted == "numbers" and is_whole(classes) and not is_whole(predicted):
        return "the labels are whole numbers and the predictions are not: predict labels, not probabilities"
    return ""


def is_whole(values: NDArray[Any]) -> bool:
    """Whether all of these numbers are whole."""
    if values.dtype.kind == "O":
        return all(value == value // 1 for value in values.flat)
    return values.dtype.kind in "biu" or bool((values == np.floor(values)).all())


def as_probabilities(predicted: NDArray[Any], classes: NDArray[Any]) -> str:
    """Numbers between 0 and 1: one for each row and class, which add up to 1, or the second of two classes."""
    if predicted.ndim not in (1, 2) or predicted.shape[1:] not in ((), (len(classes),)):
        return f"{len(classes)} classes need {len(classes)} columns of probabilities"
    if predicted.ndim == 1 and len(classes) != 2:
        return f"{len(classes)} classes need {len(classes)} columns of probabilities"
    if fault := as_numbers(predicted, classes):
        return fault
    found = predicted.astype(np.float64)
    if (found < -ROUNDING).any() or (found > 1 + ROUNDING).any():
        return "a probability is a number between 0 and 1"
    if found.ndim == 2 and (np.abs(found.sum(axis=1) - 1) > TOTAL_ROUNDING).any():
        return "the probabilities of a row add up to 1"
    return ""


def as_numbers(predicted: NDArray[Any], classes: NDArray[Any]) -> str:
    """Numbers, none of them missing."""
    del classes
    if missing(predicted):
        return "predictions are missing"
    return "" if kind(predicted) == "numbers" else f"the predictions are {kind(predicted)}, not numbers"


def missing(values: NDArray[Any]) -> bool:
    """Whether any value is None, or no number."""
    if values.dtype.kind in "fMm":
        return bool(np.isnat(values).any() if values.dtype.kind in "Mm" else np.isnan(values).any())
    return values.dtype.kind == "O" and any(_is_missing(value) for value in values.flat)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas' NA is neither equal to itself nor not
        return True


def guess_fault(guess: float | Sequence[float] | None) -> str:
    """A guess is one of a score, or of each mean that it is made of, and all of these are in [0, 1]."""
    fine = guess is None or all(0 <= one <= 1 for one in np.atleast_1d(np.asarray(guess, dtype=np.float64)))
    return "" if fine else "a guess is a number between 0 and 1, as every score is"
