"""A holdout that can be used again and again: every score comes with a width that survives the analyst.

    holdout = us.Holdout(X, y, queries=10_000)
    GridSearchCV(model, grid, scoring=holdout, cv=…)

The rows are sealed in here. A score is computed on them, told through a mode (`modes`) that generalises, and
counted. The rows that scikit-learn hands to a scorer are other rows: where a mode needs a guess, it is the
score on those. What a score is about depends on who saw the rows (`scope`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import URL

from understudy.errors import HandleClosedError, ParameterError, RefusedError
from understudy.ledger.asking_lock import AskingLock
from understudy.ledger.interface import Ledger
from understudy.ledger.journal import Journal
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.noise.samplers import NoiseSource, SystemNoise
from understudy.privacy.budget import Budget
from understudy.rational import Number, probability
from understudy.validity.auc import about_pairs
from understudy.validity.certificate import VACUOUS
from understudy.validity.choice import auc_mode_of, mode_of
from understudy.validity.frozen import predict_frozen
from understudy.validity.ladder import FreeLadder
from understudy.validity.lattice import grid
from understudy.validity.metrics import Area, Metric, metric_of
from understudy.validity.modes import Heard, HoldoutMode, Said, SealedLook, check_worth
from understudy.validity.predictions import guess_fault
from understudy.validity.scope import About, Way, about, assumptions, sentence


@dataclass(frozen=True)
class Score:
    """A score in [0, 1], larger is better, within `width` of what it is about, jointly with all the others."""

    value: float
    width: float
    source: str
    left: int
    """Scores that the certificate still covers."""
    about: About = About.THESE_ROWS
    """The population, or new labels for these rows: by how this score and those before it were asked for."""

    def __float__(self) -> float:
        return self.value

    def as_dict(self) -> dict[str, Any]:
        return {"value": self.value, "width": self.width, "source": self.source, "left": self.left,
                "about": str(self.about)}  # fmt: skip


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
    strict      `score` is refused: what is certified rests on no assumption about estimators of this process. As a
                scorer, a strict holdout freezes each estimator (`score_frozen`). The mode "strict" is "auto" with
                this.
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
        strict: bool = False,
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
        self.strict = strict or mode == "strict"
        mode = "auto" if mode == "strict" else mode
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
        self._lock = AskingLock("holdout")
        self._heard = Heard()
        self._ways: set[str] = set()
        self._unprevented: set[str] = set()
        terms = f"holdout of {self.rows} rows #{_digest(self._y)} by {self.metric.name}: {self.mode.text}"
        self._ledger = _ledger(path, name)
        self._journal = Journal(self._ledger, terms, name=name, start=lambda: b"{}")
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
        """The score of a fitted estimator, which predicts in this process; X and y, if given, are rows to guess
        from.

        The estimator is shown the sealed features, and could keep them for the next one: the certificate assumes
        that it does not, in words. A strict holdout refuses this; `score_frozen` needs no such assumption.
        """
        if self.strict:
            raise RefusedError(
                "this holdout is strict: an estimator of this process could keep the sealed rows. Use "
                "score_frozen for a certificate about the population. Nothing was counted"
            )
        predicted = self.metric.predictions(estimator, self._X)
        look = self._look(predicted, getattr(estimator, "classes_", None), self._guess(estimator, X, y))
        return self._tell(look, {"way": Way.IN_PROCESS})

    def score_frozen(
        self, estimator: Any, X: Any = None, y: Any = None, *, label: str = "", seconds: float = 600
    ) -> Score:
        """The score of a fitted estimator that is frozen first: it predicts in a process of its own (`frozen`).

        As long as every score is asked for so, certificates are about the population, whatever the estimators do
        when they predict the sealed rows. What runs in this process, the serialising of an estimator and its
        guess, is assumed not to look for them. X and y, if given, are other rows to guess from. An estimator
        that cannot be serialised and loaded by a new process is refused, and not counted. One that fails at the
        sealed rows, takes longer than `seconds` or gives something else than predictions is counted, as wrong at
        every row: that it failed is told in no other way.
        """
        if self._X is None:
            raise ParameterError("this holdout was given no features to predict from: hand in predictions")
        guess = self._guess(estimator, X, y)
        classes = getattr(estimator, "classes_", None)
        columns = len(self._classes if classes is None else classes)
        made = predict_frozen(
            estimator, self._X, self.metric.responses, rows=len(self._y), columns=columns, seconds=seconds
        )
        how = {"way": Way.FROZEN, "label": label, "unprevented": list(made.unprevented)}
        try:
            look = None if made.found is None else self._look(made.found, classes, guess)
        except (ParameterError, ValueError, TypeError, IndexError):
            look = None
        return self._tell(self._all_wrong(guess) if look is None else look, how)

    def score_predictions(self, predicted: Any, *, guess: float | None = None, label: str = "") -> Score:
        """The score of predictions for the sealed rows, in their order; probabilities in the order of classes.

        Whoever can predict knows the features. So this certifies new labels for these rows (fixed design), and
        nothing about new rows; of the area under the curve it certifies nothing without an assumption, and a
        strict holdout refuses it. A `label` is kept with the score, for `history`. Predictions that are missing,
        of another kind than the labels (text for numbers) or no probabilities, and guesses outside [0, 1], are
        refused and not counted. That says nothing of the sealed labels but what is public: see `predictions`.
        """
        if self.strict and isinstance(self.metric, Area):
            raise RefusedError(
                "this holdout is strict: the area under the curve has no certificate for predictions of "
                "somebody who knows the rows. Use score_frozen. Nothing was counted"
            )
        found = np.asarray(predicted)
        if fault := self.metric.fault(found, self._classes) or guess_fault(guess):
            raise ParameterError(f"{fault}. Nothing was counted")
        look = self._look(found, self._classes, guess)
        return self._tell(look, {"way": Way.PREDICTIONS, "label": label})

    @property
    def _steps(self) -> int:
        """Steps between 0 and 1 for the value of one row, or person."""
        return grid(self.mode.rows)

    def _look(self, predicted: NDArray[Any], classes: Any, guess: float | None) -> SealedLook:
        if isinstance(self.metric, Area):
            right, pairs = self.metric.half_pairs(self._y, predicted)
            return SealedLook(right / pairs, right, pairs, guess)
        return SealedLook.of(self._by_person(self.metric.of(self._y, predicted, classes)), self._steps, guess)

    def _all_wrong(self, guess: float | None) -> SealedLook:
        """A look at predictions that are right nowhere."""
        if isinstance(self.metric, Area):
            return SealedLook(0.0, 0, self.metric.half_pairs(self._y, np.zeros(len(self._y)))[1], guess)
        return SealedLook.of(np.zeros(self.rows), self._steps, guess)

    def _guess(self, estimator: Any, X: Any, y: Any) -> float | None:
        """The estimator's score on other rows, if there are any."""
        if y is None:
            return None
        predicted, truth = self.metric.predictions(estimator, X), np.asarray(y)
        if isinstance(self.metric, Area):
            return self.metric.area(truth, predicted)
        return float(self.metric.of(truth, predicted, getattr(estimator, "classes_", None)).mean())

    def history(self) -> list[tuple[str, Score]]:
        """Everything that was said, in order, with the labels it was asked under."""
        heard, told, ways = Heard(), [], set()
        for step in self._journal.all():
            ways.add(_way(step))
            try:
                said = self.mode.read(step, heard)
            except HandleClosedError:
                continue
            score = Score(said.value, said.width, said.source, self.queries - heard.asked, self._about(ways))
            told.append((step.get("label", ""), score))
        return told

    def _about(self, ways: set[str]) -> About:
        return about(ways, has_features=self._X is not None)

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:
        """As a scorer: what is sealed here is scored, and (X, y), which are other rows, serve as a guess.

        A strict holdout freezes the estimator first.
        """
        return (self.score_frozen if self.strict else self.score)(estimator, X, y).value

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
        """What is promised about what, on which assumptions, and what is left of it."""
        found, area = self.mode.certificate, isinstance(self.metric, Area)
        promised = (about_pairs(found) if area else found).as_dict()
        with self._lock:
            ways, unprevented = set(self._ways), set(self._unprevented)
        scope = self._about(ways)
        promised["assumptions"] += assumptions(scope, ways, unprevented, area=area)
        named = {"mode": self.mode.text, "rows": self.rows, "metric": self.metric.name}
        said = {"about": sentence(scope, area=area)}
        return named | promised | said | {"queries": self.queries, "left": self.left}

    def close(self) -> None:
        """Let go of the file that the memory is kept in; the next question opens it again."""
        if isinstance(self._ledger, DurableLedger):
            self._ledger.close()

    def _by_person(self, rowwise: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._people is None:
            return rowwise
        return np.bincount(self._people, weights=rowwise) / np.bincount(self._people)

    def _tell(self, look: SealedLook, how: dict[str, Any]) -> Score:
        """Say what the mode says of a look; `how` it was asked for is kept with the answer."""
        kept = {name: value for name, value in how.items() if value}
        with self._lock:
            while True:
                self._catch_up()
                if self._heard.asked >= self.queries:
                    raise HandleClosedError(
                        f"all {self.queries} scores were given: the certificate covers no more. New rows make a "
                        f"new holdout"
                    )
                # What is drawn counts once it is kept: where another process spoke first, or the journal cannot be
                # written, nothing was said, and the noisy threshold that the journal holds stays the one.
                drawn = replace(self._heard, secret=dict(self._heard.secret))
                step = self.mode.say(look, drawn, noise=self._noise) | kept
                hidden = json.dumps({} if isinstance(self.mode, FreeLadder) else drawn.secret).encode()
                if self._journal.add(f"score {self._heard.asked + 1}", step, hidden=hidden):
                    self._heard.secret = drawn.secret
                    self._asked_by(step)
                    return self._scored(self.mode.read(step, self._heard))

    def _scored(self, said: Said) -> Score:
        left = self.queries - self._heard.asked
        return Score(said.value, said.width, said.source, left, self._about(self._ways))

    def _asked_by(self, step: dict[str, Any]) -> None:
        self._ways.add(_way(step))
        self._unprevented.update(step.get("unprevented", ()))

    def _catch_up(self) -> None:
        before = self._journal.length
        for step in self._journal.later():
            self._asked_by(step)
            try:
                self.mode.read(step, self._heard)
            except HandleClosedError:  # it halted there, and says so to whoever asks next
                continue
        if self._journal.length > before:
            # A noisy threshold belongs to the holdout, not to this process: it is never drawn again.
            self._heard.secret = json.loads(self._journal.hidden)

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


def _way(step: dict[str, Any]) -> str:
    """How a step was asked for. Version 0.1 did not say: what holds for predictions holds in any case."""
    return step.get("way", Way.PREDICTIONS)


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
