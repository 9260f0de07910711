"""The sealed rows of a holdout: the one place where predictions meet labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.validity.metric import Area, Metric
from understudy.validity.modes import SealedLook
from understudy.validity.predictions import missing


@dataclass(frozen=True, eq=False)
class SealedRows:
    """Features (None where there are none), labels, and the person of each row, where one has several rows."""

    features: Any
    labels: NDArray[Any]
    people: NDArray[np.intp] | None

    @classmethod
    def of(cls, X: Any, y: Any, groups: Any) -> SealedRows:
        """Checked rows. Raises a `ParameterError` where there are none, or not one label or group for each."""
        labels = np.asarray(y)
        if labels.ndim != 1 or len(labels) < 1 or _rows(X) not in (None, len(labels)):
            raise ParameterError("a holdout needs rows, and one label for each")
        if missing(labels):
            raise ParameterError("y has missing values: leave the rows out that have none")
        if groups is None:
            return cls(X, labels, None)
        named = np.asarray(groups)
        if named.shape != labels.shape or missing(named):
            raise ParameterError(f"{len(labels)} rows need {len(labels)} groups, one for each")
        return cls(X, labels, _distinct(named, "groups")[1].astype(np.intp))

    @property
    def classes(self) -> NDArray[Any]:
        """The distinct labels, in order; raises a `ParameterError` where they have none."""
        return _distinct(self.labels, "labels")[0]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def persons(self) -> int:
        """How many people the rows belong to: as many as rows, where nothing else is told."""
        return len(self) if self.people is None else int(self.people.max()) + 1

    @property
    def digest(self) -> str:
        """A name for the sealed labels: a file's memory belongs to them alone."""
        return sha256(repr(self.labels.tolist()).encode()).hexdigest()[:16]

    def looks(
        self,
        metric: Metric | Area,
        predicted: NDArray[Any],
        classes: Any,
        *,
        steps: int,
        guess: Sequence[float] | None,
    ) -> list[SealedLook]:
        """A look for each mean that a score asks for, then for each that the first score asks for besides.

        `steps` are those between 0 and 1 for the value of one person.
        """
        if isinstance(metric, Area):
            right, pairs = metric.half_pairs(self.labels, predicted)
            return [SealedLook(right / pairs, right, pairs, None if guess is None else guess[0])]
        parts = (*metric.parts, *metric.once)
        return [
            SealedLook.of(self._by_person(part.of(self.labels, predicted, classes)), steps, guessed)
            for part, guessed in zip(parts, guess or (None,) * len(parts), strict=True)
        ]

    def all_wrong(
        self, metric: Metric | Area, *, steps: int, guess: Sequence[float] | None
    ) -> list[SealedLook]:
        """Looks at predictions that are right nowhere."""
        anything = np.zeros(len(self))
        if isinstance(metric, Area):
            pairs = metric.half_pairs(self.labels, anything)[1]
            return [SealedLook(0.0, 0, pairs, None if guess is None else guess[0])]
        each = len(metric.parts)
        guesses = guess or (None,) * (each + len(metric.once))
        wrong = [SealedLook.of(np.zeros(self.persons), steps, guessed) for guessed in guesses[:each]]
        return wrong + [
            SealedLook.of(self._by_person(part.of(self.labels, anything)), steps, guessed)
            for part, guessed in zip(metric.once, guesses[each:], strict=True)
        ]

    def _by_person(self, rowwise: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.people is None:
            return rowwise
        return np.bincount(self.people, weights=rowwise) / np.bincount(self.people)


def _rows(features: Any) -> int | None:
    """How many rows features have; None where there are none, or nobody can tell before a model reads them."""
    shape = getattr(features, "shape", None)  # a sparse matrix has no length
    return shape[0] if shape else len(features) if hasattr(features, "__len__") else None


def _distinct(values: NDArray[Any], named: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The distinct values in order, and the place of each value among them."""
    try:
        return np.unique(values, return_inverse=True)
    except TypeError:
        raise ParameterError(
            f"the {named} are of several kinds, which have no order: write all as text, or all as numbers"
        ) from None
