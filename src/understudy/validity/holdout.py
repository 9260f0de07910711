"""A holdout that can be used again and again: every score comes with a width that survives the analyst.

    holdout = us.Holdout(X, y, queries=10_000)
    GridSearchCV(model, grid, scoring=holdout, cv=…)

The rows are sealed in here. A score is computed on them, told through a mode (`modes`) that generalises, and
counted. The rows that scikit-learn hands to a scorer are other rows: where a mode needs a guess, it is the
score on those.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import URL

from understudy.errors import HandleClosedError, ParameterError
from understudy.interactive.journal import Journal
from understudy.ledger.interface import Ledger
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.noise import NoiseSource, SystemNoise
from understudy.privacy.budget import Budget
from understudy.rational import Number, probability
from understudy.validity.metrics import Metric, metric_of
from understudy.validity.modes import (
    Checking,
    Gaussian,
    Heard,
    Ladder,
    Mode,
    Said,
    Thresholdout,
    automatic,
    check_worth,
)

ASSUMPTIONS = (
    "the rows are independent draws from the population (rows of one person are grouped)",
    "nothing but this holdout looks at them",
    "the number of queries and the failure probability were fixed before the first score",
)


@dataclass(frozen=True)
class Score:
    """A score in [0, 1], larger is better, within `width` of the population's, jointly with all the others."""

    value: float
    width: float
    source: str
    left: int
    """Scores that the certificate still covers."""

    def __float__(self) -> float:
        return self.value

    def as_dict(self) -> dict[str, Any]:
        return {"value": self.value, "width": self.width, "source": self.source, "left": self.left}


class Holdout:
    """A scorer for model selection, in scikit-learn's sense: ``holdout(estimator, X, y) -> float``.

    X, y        the sealed rows; `groups` names the person each belongs to, where one has several: then the
                people are what is counted, each by the mean over the rows that are theirs.
    queries     scores that will be asked for at most, fixed in advance.
    mode        "auto", "gaussian", "check", "thresholdout" or "ladder" (`modes`); `certificate` "cvar" or
                "drift" for the first. A mode whose certificate would say nothing is refused.
    path        a file in which everything said is kept: a restart goes on where it stopped. Without it, the
                memory of the holdout lasts as long as this object.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        queries: int,
        beta: Number = 0.05,
        metric: str | Metric = "accuracy",
        mode: str | Mode = "auto",
        certificate: str = "cvar",
        rejections: int = 50,
        groups: Any = None,
        path: str | Path | None = None,
        name: str = "holdout",
        noise: NoiseSource | None = None,
    ) -> None:
        self._X = X
        self._y = np.asarray(y)
        self._people = _people(groups, len(self._y))
        self.metric = metric_of(metric)
        self.queries = queries
        self._noise: NoiseSource = SystemNoise() if noise is None else noise
        if queries < 1:
            raise ParameterError("a holdout is asked at least once: give `queries`")
        rows = len(self._y) if self._people is None else int(self._people.max()) + 1
        if rows < 1:
            raise ParameterError("a holdout needs rows")
        self.rows = rows
        self.mode = _mode(mode, rows, queries, float(probability(beta)), rejections, certificate)
        if not isinstance(self.mode, Ladder):
            check_worth(self.mode)
        self._lock = RLock()
        self._heard = Heard()
        terms = f"holdout of {rows} rows by {self.metric.name}: {self.mode.text}"
        self._journal = Journal(_ledger(path, name), terms, name=name)
        self._catch_up()

    # ---- scoring

    def score(self, estimator: Any, X: Any = None, y: Any = None) -> Score:
        """The score of a fitted estimator; X and y, if given, are other rows to guess from."""
        rowwise = self.metric.estimate(estimator, self._X, self._y)
        guess = None if y is None else float(self.metric.estimate(estimator, X, np.asarray(y)).mean())
        return self._tell(self._mean(rowwise), guess)

    def score_predictions(self, predicted: Any, *, guess: float | None = None) -> Score:
        """The score of predictions for the sealed rows, in their order."""
        return self._tell(self._mean(self.metric.of(self._y, np.asarray(predicted))), guess)

    def __call__(self, estimator: Any, X: Any = None, y: Any = None, **ignored: Any) -> float:
        """As a scorer: what is sealed here is scored, and (X, y), which are other rows, serve as a guess."""
        del ignored
        return self.score(estimator, X, y).value

    @property
    def left(self) -> int:
        """Scores that the certificate still covers."""
        with self._lock:
            return self.queries - self._heard.asked

    @property
    def width(self) -> float:
        """The widest certificate that a score can have."""
        return self.mode.width

    def certificate(self) -> dict[str, Any]:
        """What is promised, on what assumptions, and what is left of it."""
        return {
            "mode": self.mode.text,
            "rows": self.rows,
            "metric": self.metric.name,
            "width": self.width,
            "queries": self.queries,
            "left": self.left,
            "assumptions": list(ASSUMPTIONS),
        }

    def _mean(self, rowwise: NDArray[np.float64]) -> float:
        if self._people is None:
            return float(rowwise.mean())
        rows = np.bincount(self._people)
        return float((np.bincount(self._people, weights=rowwise) / rows).mean())

    def _tell(self, mean: float, guess: float | None) -> Score:
        with self._lock:
            while True:
                self._catch_up()
                if self._heard.asked >= self.queries:
                    raise HandleClosedError(
                        f"all {self.queries} scores were given: the certificate covers no more. New rows make a "
                        f"new holdout"
                    )
                step = self.mode.say(mean, guess, self._heard, noise=self._noise)
                hidden = json.dumps(self._heard.secret).encode()
                if self._journal.add(f"score {self._heard.asked + 1}", step, hidden=hidden):
                    return self._scored(self.mode.read(step, self._heard))

    def _scored(self, said: Said) -> Score:
        return Score(said.value, said.width, said.source, self.queries - self._heard.asked)

    def _catch_up(self) -> None:
        for step in self._journal.later():
            try:
                self.mode.read(step, self._heard)
            except HandleClosedError:  # it halted there, and says so to whoever asks next
                continue
        # A noisy threshold belongs to the holdout, not to this process: it is never drawn again.
        self._heard.secret = {} if self._journal.hidden == b"-" else json.loads(self._journal.hidden)

    # ---- one holdout, one memory

    def __copy__(self) -> Holdout:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Holdout:
        """scikit-learn copies what it is given; there is one memory of what was said, so this is no copy."""
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Holdout cannot be sent to another process: its rows are sealed, and every score must be counted in "
            "one place. Use threads (`joblib.parallel_backend('threading')`), or n_jobs=1"
        )

    def __repr__(self) -> str:
        return f"Holdout({self.rows} rows, {self.metric.name}, {self.mode.text}, {self.left} scores left)"


def _people(groups: Any, rows: int) -> NDArray[np.intp] | None:
    if groups is None:
        return None
    named = np.asarray(groups)
    if named.shape != (rows,):
        raise ParameterError(f"{rows} rows need {rows} groups")
    return np.unique(named, return_inverse=True)[1].astype(np.intp)


def _mode(
    wanted: str | Mode, rows: int, queries: int, beta: float, rejections: int, certificate: str
) -> Mode:
    if not isinstance(wanted, str):
        return wanted
    if wanted == "auto":
        return automatic(rows, queries, beta, guesses=False)
    if wanted == "gaussian":
        return Gaussian(rows, queries, beta, certificate)
    if wanted == "ladder":
        return Ladder(rows, queries, beta)
    if wanted in ("check", "thresholdout"):
        kind = Checking if wanted == "check" else Thresholdout
        return kind(rows, queries, beta, rejections)
    raise ParameterError(f"no mode {wanted!r}; there are: auto, gaussian, check, thresholdout, ladder")


def _ledger(path: str | Path | None, name: str) -> Ledger:
    """A ledger to keep the journal in: validity is counted there, no privacy is spent."""
    budget = Budget.of(1)
    if path is None:
        return MemoryLedger(budget)
    return DurableLedger(URL.create("sqlite", database=str(Path(path).resolve())), name, budget)
