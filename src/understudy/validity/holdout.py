"""A holdout that can be used again and again: every score comes with a width that survives the analyst.

    holdout = us.Holdout(X, y, queries=10_000)
    GridSearchCV(model, grid, scoring=holdout, cv=…)

The rows are sealed in here. A score is computed on them, told through a mode (`modes`) that generalises, and
counted. The rows that scikit-learn hands to a scorer are other rows: where a mode needs a guess, it is the
score on those.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import URL

from understudy.errors import HandleClosedError, ParameterError
from understudy.ledger.interface import Ledger
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.noise.samplers import NoiseSource, SystemNoise
from understudy.privacy.budget import Budget
from understudy.rational import Number, probability
from understudy.validity.auc import about_pairs
from understudy.validity.certificate import VACUOUS
from understudy.validity.choice import auc_mode_of, mode_of
from understudy.validity.ladder import FreeLadder
from understudy.validity.memory import Memory
from understudy.validity.metrics import Area, Metric, metric_of
from understudy.validity.modes import Heard, HoldoutMode, Said, SealedLook, check_worth
from understudy.validity.predictions import guess_fault


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
                people are what is counted, each by the mean over the rows that are theirs. `classes` are the
                labels that there can be, public; by default those of y.
    queries     scores that will be asked for at most, fixed in advance. In a search that is candidates × splits.
    mode        one of `choice.MODES`; "auto" takes the narrowest certificate, with guesses only where
                `rejections` says how many of them may be wrong. `theorem` names the certificate of "gaussian".
    slack       how far a right guess may be from the sealed rows' score; by default 3/sqrt(n), for guesses from
                as many rows. Fewer rows to guess from need more.
    tolerance   a mode whose certificate would be wider is refused, with the number of rows that it would take.
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
        mode: str | HoldoutMode = "auto",
        theorem: str = "cvar",
        rejections: int | None = None,
        slack: float | None = None,
        tolerance: float = VACUOUS,
        groups: Any = None,
        classes: Any = None,
        path: str | Path | None = None,
        name: str = "holdout",
        noise: NoiseSource | None = None,
    ) -> None:
        self._X = X
        self._y = np.asarray(y)
        if self._y.ndim != 1 or len(self._y) < 1:
            raise ParameterError("a holdout needs rows, and one label for each")
        if queries < 1:
            raise ParameterError("a holdout is asked at least once: give `queries`")
        self._people = _people(groups, len(self._y))
        self._classes = np.unique(self._y) if classes is None else np.asarray(classes)
        self.metric = metric_of("auc" if mode == "auc" else metric)
        self.queries = queries
        self._noise: NoiseSource = SystemNoise() if noise is None else noise
        self.rows = len(self._y) if self._people is None else int(self._people.max()) + 1
        self.mode = self._chosen(mode, float(probability(beta)), rejections, slack, theorem)
        if isinstance(self.mode, FreeLadder):
            if path is not None:
                raise ParameterError(
                    "the parameter-free ladder remembers rows, and keeps no file of them: use the mode ladder, or "
                    "leave `path` out"
                )
        else:
            check_worth(self.mode, tolerance)
        self._lock = RLock()
        self._heard = Heard()
        terms = f"holdout of {self.rows} rows #{_digest(self._y)} by {self.metric.name}: {self.mode.text}"
        self._ledger = _ledger(path, name)
        self._memory = Memory(self._ledger, terms, name=name)
        self._catch_up()

    def _chosen(
        self,
        wanted: str | HoldoutMode,
        beta: float,
        rejections: int | None,
        slack: float | None,
        theorem: str,
    ) -> HoldoutMode:
        if not isinstance(wanted, str):
            terms = (wanted.queries, wanted.beta, wanted.rows <= self.rows)
            if terms != (self.queries, beta, True):
                raise ParameterError(
                    f"the mode is made for {wanted.queries} queries on {wanted.rows} rows at beta {wanted.beta}, "
                    f"the holdout for {self.queries} on {self.rows} at {beta}"
                )
            return wanted
        if not isinstance(self.metric, Area):
            return mode_of(
                wanted, self.rows, self.queries, beta, rejections=rejections, slack=slack, theorem=theorem
            )
        if self._people is not None:
            raise ParameterError("the area under the curve counts pairs of rows: it knows no groups")
        positive = int((self._y == np.unique(self._y)[-1]).sum())
        negative = len(self._y) - positive
        return auc_mode_of(wanted, positive, negative, self.queries, beta, rejections=rejections, slack=slack)

    # ---- scoring

    def score(self, estimator: Any, X: Any = None, y: Any = None) -> Score:
        """The score of a fitted estimator; X and y, if given, are other rows to guess from."""
        if isinstance(self.metric, Area):
            look = SealedLook(
                self.metric.estimate(estimator, self._X, self._y),
                None if y is None else self.metric.estimate(estimator, X, np.asarray(y)),
            )
            return self._tell(look)
        values = self._by_person(self.metric.estimate(estimator, self._X, self._y))
        guess = None if y is None else float(self.metric.estimate(estimator, X, np.asarray(y)).mean())
        return self._tell(SealedLook(float(values.mean()), guess, values))

    def score_predictions(self, predicted: Any, *, guess: float | None = None, label: str = "") -> Score:
        """The score of predictions for the sealed rows, in their order; probabilities in the order of classes.

        A `label` is kept with the score, for `history`. Predictions that are missing, of another kind than the
        labels (text for numbers) or no probabilities, and guesses outside [0, 1], are refused and not counted.
        That says nothing of the sealed labels but what is public: see `predictions`.
        """
        found = np.asarray(predicted)
        if fault := self.metric.fault(found, self._classes) or guess_fault(guess):
            raise ParameterError(f"{fault}. Nothing was counted")
        if isinstance(self.metric, Area):
            return self._tell(SealedLook(self.metric.area(self._y, found), guess), label)
        values = self._by_person(self.metric.of(self._y, found, self._classes))
        return self._tell(SealedLook(float(values.mean()), guess, values), label)

    def history(self) -> list[tuple[str, Score]]:
        """Everything that was said, in order, with the labels it was asked under."""
        heard, told = Heard(), []
        for step in self._memory.all():
            try:
                said = self.mode.read(step, heard)
            except HandleClosedError:
                continue
            score = Score(said.value, said.width, said.source, self.queries - heard.asked)
            told.append((step.get("label", ""), score))
        return told

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:
        """As a scorer: what is sealed here is scored, and (X, y), which are other rows, serve as a guess."""
        return self.score(estimator, X, y).value

    @property
    def left(self) -> int:
        """Scores that the certificate still covers."""
        with self._lock:
            return self.queries - self._heard.asked

    @property
    def width(self) -> float:
        """The certificate's half-width; with realised failures, that of as many as were expected."""
        return self.mode.certificate.width

    def certificate(self) -> dict[str, Any]:
        """What is promised, on what assumptions, and what is left of it."""
        found = self.mode.certificate
        promised = (about_pairs(found) if isinstance(self.metric, Area) else found).as_dict()
        about = {"mode": self.mode.text, "rows": self.rows, "metric": self.metric.name}
        return about | promised | {"queries": self.queries, "left": self.left}

    def close(self) -> None:
        """Let go of the file that the memory is kept in; the next question opens it again."""
        if isinstance(self._ledger, DurableLedger):
            self._ledger.close()

    def _by_person(self, rowwise: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._people is None:
            return rowwise
        return np.bincount(self._people, weights=rowwise) / np.bincount(self._people)

    def _tell(self, look: SealedLook, label: str = "") -> Score:
        with self._lock:
            while True:
                self._catch_up()
                if self._heard.asked >= self.queries:
                    raise HandleClosedError(
                        f"all {self.queries} scores were given: the certificate covers no more. New rows make a "
                        f"new holdout"
                    )
                step = self.mode.say(look, self._heard, noise=self._noise) | (
                    {"label": label} if label else {}
                )
                secret = {} if isinstance(self.mode, FreeLadder) else self._heard.secret
                if self._memory.keep(f"score {self._heard.asked + 1}", step, secret):
                    return self._scored(self.mode.read(step, self._heard))
                # another process spoke first: what was drawn here was never said
                self._heard.secret = dict(self._memory.secret)

    def _scored(self, said: Said) -> Score:
        return Score(said.value, said.width, said.source, self.queries - self._heard.asked)

    def _catch_up(self) -> None:
        later = self._memory.later()
        for step in later:
            try:
                self.mode.read(step, self._heard)
            except HandleClosedError:  # it halted there, and says so to whoever asks next
                continue
        if later:  # a noisy threshold belongs to the holdout, not to this process: it is never drawn again
            self._heard.secret = dict(self._memory.secret)

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


def _ledger(path: str | Path | None, name: str) -> Ledger:
    """A ledger to keep the journal in: validity is counted there, no privacy is spent."""
    budget = Budget.of(1)
    if path is None:
        return MemoryLedger(budget)
    return DurableLedger(URL.create("sqlite", database=str(Path(path).resolve())), name, budget)


def _digest(truth: NDArray[Any]) -> str:
    """A name for the sealed labels: a file's memory belongs to them alone."""
    return sha256(repr(truth.tolist()).encode()).hexdigest()[:16]
