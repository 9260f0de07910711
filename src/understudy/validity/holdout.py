"""A holdout that can be used again and again: widths hold however models were chosen by earlier scores.

    holdout = us.Holdout(X, y, queries=10_000)
    GridSearchCV(model, grid, scoring=holdout, cv=…)

The rows are sealed in here. A score is computed on them, told through a mode (`modes`) that generalises, and
counted. The rows that scikit-learn hands to a scorer are other rows: where a mode needs a guess, it is the
score on those. What a score is about depends on who saw the rows (`scope`).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from secrets import token_hex
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import URL

from understudy.errors import HandleClosedError, ParameterError, RefusedError
from understudy.ledger.asking_lock import AskingLock
from understudy.ledger.books import short_question
from understudy.ledger.interface import Ledger
from understudy.ledger.journal import Journal
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.noise.samplers import NoiseSource, SystemNoise
from understudy.pages import notebook
from understudy.privacy.budget import Budget
from understudy.rational import Number, probability
from understudy.validity.auc import about_pairs
from understudy.validity.certificate import VACUOUS, Certificate
from understudy.validity.chosen import chosen_mode
from understudy.validity.first_score import FirstScoreDecides
from understudy.validity.frozen import predict_frozen
from understudy.validity.ladder import FreeLadder
from understudy.validity.lattice import grid
from understudy.validity.metric import Area, Metric
from understudy.validity.metrics import metric_for
from understudy.validity.modes import HoldoutMode, ModeTerms, SealedLook, check_worth
from understudy.validity.noise_filter import NoiseFilter, checked_scale
from understudy.validity.predictions import guess_fault
from understudy.validity.scope import Way, about, assumptions, sentence
from understudy.validity.score import JournaledScore, Memory, Score, read_all, say_all
from understudy.validity.sealed import SealedRows
from understudy.validity.view import history_table

Guess = float | Sequence[float]
"""A guess of a score, or of each mean that a metric is made of."""


class Holdout:
    """A scorer for model selection, in scikit-learn's sense: ``holdout(estimator, X, y) -> float``.

    Scores lie in [0, 1], larger is better. With probability 1 - `beta` all of them are within their widths of what
    they are about (`certificate`), however each model was chosen after the scores before it.

    X, y        the sealed rows; `groups` names the person each belongs to, where one has several: then the
                people are what is counted, each by the mean over the rows that are theirs. `classes` are the
                labels that there can be, public; by default those of y.
    queries     scores that will be asked for at most, fixed in advance. In a search that is candidates × splits.
    beta        the probability that some score is further off than its width.
    metric      how predictions are scored: a name, or one of `us.metrics` with its public parameters. Accuracy by
                default where y is labels; a continuous y needs a metric of its own (`metrics.metric_for`). One
                that is made of several means, such as r2, has the certificate of so many more queries.
    mode        one of `choice.MODES`; "auto" forecasts from rows, queries and beta how wide certificates will be
                and what a search loses by the noise of its scores, and takes the least of both (`choice`). Guesses
                are checked where they come: where `rejections` says how many may be wrong, or where the first
                score brings one, as scikit-learn's searches do (`first_score`). `theorem` names the
                certificate of "gaussian": "tilting", Theorem T, unless another is named. A file that was opened
                under an earlier choice of either goes on with the mode and the certificate of that time.
    rejections  how many guesses may be wrong, or are expected to be, for the modes that check guesses.
    slack       how far a right guess may be from the sealed rows' score; by default 3/sqrt(n), for guesses from
                as many rows. Fewer rows to guess from need more.
    strict      `score` is refused: what is certified rests on no assumption about estimators of this process. As a
                scorer, a strict holdout freezes each estimator (`score_frozen`). The mode "strict" is "auto" with
                this.
    tolerance   a mode whose certificate would be wider is refused, with the number of rows that it would take.
    path        a file in which everything said is kept: a restart goes on where it stopped. Without it, the
                memory of the holdout lasts as long as this object. With it, the holdout can be sent to other
                processes, with its rows (`GridSearchCV(…, n_jobs=2)`): all of them count in the file.
    name        under which the scores are kept in the file.
    noise       where random numbers come from; by default the operating system. Another source is for tests.

    Raises a `ParameterError` where the arguments make no sense, a `RefusedError` where the certificate would be
    wider than `tolerance`, and a `RequestConflictError` where the file was begun with other rows or another
    promise.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        queries: int,
        beta: Number = 0.05,
        metric: str | Metric | Area | None = None,
        mode: str | HoldoutMode = "auto",
        theorem: str | None = None,
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
        self._made_of = {
            "X": X, "y": y, "queries": queries, "beta": beta, "metric": metric, "mode": mode, "theorem": theorem,
            "rejections": rejections, "slack": slack, "strict": strict, "tolerance": tolerance, "groups": groups,
            "classes": classes, "path": None if path is None else Path(path).resolve(), "name": name,
        }  # fmt: skip
        self._sealed = SealedRows.of(X, y, groups)
        if queries < 1:
            raise ParameterError("a holdout is asked at least once: give `queries`")
        labels = self._sealed.labels
        self._classes = np.unique(labels) if classes is None else np.asarray(classes)
        self.strict = strict or mode == "strict"
        mode = "auto" if mode == "strict" else mode
        self.metric = metric_for("auc" if mode == "auc" else metric, labels, self._classes)
        self.queries = queries
        self._own_noise = noise is not None
        self._noise: NoiseSource = SystemNoise() if noise is None else noise
        self.rows = self._sealed.persons
        terms = ModeTerms(self.rows, self.queries, float(probability(beta)), rejections, theorem, slack)
        self._mode = chosen_mode(self._sealed, self.metric, mode, terms)
        kept = _kept_terms(path, name)
        if kept is not None and kept not in map(short_question, self._texts(self._mode)):
            for former in ({"deciding": False}, {"earlier": True}):
                found = chosen_mode(self._sealed, self.metric, mode, terms, **former)
                if kept in map(short_question, self._texts(found)):
                    self._mode = found
                    break
        self._tolerance = tolerance
        if isinstance(self._mode, FreeLadder):
            if path is not None:
                raise ParameterError(
                    "the parameter-free ladder remembers rows, and keeps no file of them: use the mode ladder, or "
                    "leave `path` out"
                )
        else:
            opened = self._mode
            check_worth(opened.narrower if isinstance(opened, FirstScoreDecides) else opened, tolerance)
        self._steps = grid(self._mode.rows)
        """Steps between 0 and 1 for the value of one row, or person."""
        self._each, self._besides = self.metric.asked
        self._lock = AskingLock("holdout")
        self._memory = Memory()
        self._ways: set[str] = set()
        self._unprevented: set[str] = set()
        self._ledger = _ledger(path, name)
        self._journal = Journal(self._ledger, self._terms(name), name=name, start=lambda: b"{}")
        self._token = token_hex(8)
        _LIVE[self._token] = self
        self._catch_up()

    def _terms(self, name: str) -> str:
        """What is kept of the promise, so that no other one goes on under it.

        Version 0.1 named the metric without its parameters: a file that was begun so goes on so.
        """
        former, now = self._texts(self._mode)
        begun = self._ledger.find(name)
        return former if begun is not None and begun.question == short_question(former) else now

    def _texts(self, mode: HoldoutMode) -> tuple[str, str]:
        """The promise of a mode as version 0.1 wrote it, and as it is written now."""
        start = f"holdout of {self.rows} rows #{self._sealed.digest} by"
        return f"{start} {self.metric.name}: {mode.text}", f"{start} {self.metric.text}: {mode.text}"

    @property
    def mode(self) -> HoldoutMode:
        """How scores are told. Under "auto" a `FirstScoreDecides`, where the first score has still to decide."""
        if isinstance(self._mode, FirstScoreDecides):
            with self._lock:  # another process may have been told the first score
                self._catch_up()
        return self._mode

    # ---- scoring

    def score(self, estimator: Any, X: Any = None, y: Any = None, *, scale: float | None = None) -> Score:
        """The score of a fitted estimator, which predicts the sealed rows in this process.

        X and y, if given, are other rows: the score on them is the guess that some modes check. The estimator is
        shown the sealed features, and could keep them for the next one: the certificate assumes that it does not,
        in words. A strict holdout raises a `RefusedError`; `score_frozen` needs no such assumption. Raises a
        `HandleClosedError` where all scores were given, or where the mode has halted.

        `scale` is that of the noise on this score, by default the planned one: the standard deviation of the mode
        gaussian (under Theorem T), the half-width of the mode bounded. It may depend on earlier scores. A larger
        one leaves more for later scores, a smaller one takes more, and one that does not fit under what is left
        is refused with the least that does (`least_scale`), and not counted. Raises a `ParameterError` in other
        modes.
        """
        wanted = checked_scale(scale)
        if self.strict:
            raise RefusedError(
                "this holdout is strict: an estimator of this process could keep the sealed rows. Use "
                "score_frozen for a certificate about the population. Nothing was counted"
            )
        predicted = self.metric.predictions(estimator, self._sealed.features)
        guess = None if y is None else self._guess(estimator, X, y)
        looks = self._looks(predicted, getattr(estimator, "classes_", None), guess)
        return self._tell(looks, {"way": Way.IN_PROCESS}, wanted, _length(y))

    def score_frozen(
        self,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        label: str = "",
        seconds: float = 600,
        scale: float | None = None,
    ) -> Score:
        """The score of a fitted estimator that is frozen first: it predicts in a process of its own (`frozen`).

        As long as every score is asked for so, certificates are about the population, whatever the estimators do
        when they predict the sealed rows. What runs in this process, the serialising of an estimator and its
        guess, is assumed not to look for them. X and y, if given, are other rows to guess from. An estimator
        that cannot be serialised and loaded by a new process is refused, and not counted. One that fails at the
        sealed rows, takes longer than `seconds` or gives something else than predictions is counted, as wrong at
        every row: that it failed is told in no other way. `scale` is that of the noise, as in `score`.
        """
        wanted = checked_scale(scale)
        self._check_scale(wanted)
        if self._sealed.features is None:
            raise ParameterError("this holdout was given no features to predict from: hand in predictions")
        guess = None if y is None else self._guess(estimator, X, y)
        classes = getattr(estimator, "classes_", None)
        columns = len(self._classes if classes is None else classes)
        made = predict_frozen(
            estimator,
            self._sealed.features,
            self.metric.responses,
            rows=len(self._sealed),
            columns=columns,
            seconds=seconds,
        )
        how = {"way": Way.FROZEN, "label": label, "unprevented": list(made.unprevented)}
        try:
            looks = None if made.found is None else self._looks(made.found, classes, guess)
        except (ParameterError, ValueError, TypeError, IndexError):
            looks = None
        wrong = self._sealed.all_wrong(self.metric, steps=self._steps, guess=guess)
        return self._tell(wrong if looks is None else looks, how, wanted, _length(y))

    def score_predictions(
        self, predicted: Any, *, guess: Guess | None = None, label: str = "", scale: float | None = None
    ) -> Score:
        """The score of predictions for the sealed rows, in their order; probabilities in the order of classes.

        Whoever can predict knows the features. So this certifies new labels for these rows (fixed design), and
        nothing about new rows; of the area under the curve it certifies nothing without an assumption, and a
        strict holdout refuses it. A `label` is kept with the score, for `history`. Predictions that are missing,
        of another kind than the labels (text for numbers) or no probabilities, and guesses outside [0, 1], are
        refused and not counted. That says nothing of the sealed labels but what is public: see `predictions`.
        A guess is of the score; for a metric of several means, one of each (`metric.means` of other rows). `scale`
        is that of the noise, as in `score`.
        """
        wanted = checked_scale(scale)
        if self.strict and isinstance(self.metric, Area):
            raise RefusedError(
                "this holdout is strict: the area under the curve has no certificate for predictions of "
                "somebody who knows the rows. Use score_frozen. Nothing was counted"
            )
        found = np.asarray(predicted)
        if fault := self.metric.fault(found, self._classes) or guess_fault(guess):
            raise ParameterError(f"{fault}. Nothing was counted")
        guesses = self._as_guesses(guess)
        how = {"way": Way.PREDICTIONS, "label": label}
        return self._tell(self._looks(found, self._classes, guesses), how, wanted)

    def _looks(
        self, predicted: NDArray[Any], classes: Any, guess: Sequence[float] | None
    ) -> list[SealedLook]:
        return self._sealed.looks(self.metric, predicted, classes, steps=self._steps, guess=guess)

    def _guess(self, estimator: Any, X: Any, y: Any) -> tuple[float, ...]:
        """The estimator's means over other rows."""
        predicted, truth = self.metric.predictions(estimator, X), np.asarray(y)
        return self.metric.means(truth, predicted, getattr(estimator, "classes_", None))

    def _as_guesses(self, guess: Guess | None) -> tuple[float, ...] | None:
        """A guess of each mean, from one of the score or from one of each."""
        if guess is None:
            return None
        if not isinstance(guess, Sequence):
            return self.metric.guesses(guess)
        if len(guess) != self._each + self._besides:
            raise ParameterError(
                f"{self.metric.name} is made of {self._each + self._besides} means, and {len(guess)} are guessed. "
                f"Nothing was counted"
            )
        return tuple(guess)

    def history(self) -> list[tuple[str, Score]]:
        """All scores that were given, in order, each with the label under which it was asked for."""
        memory, told, ways = Memory(), [], set()
        for step in self._journal.all():
            ways.add(_way(step))
            try:
                said = read_all(self.mode, self.metric, step, memory)
            except HandleClosedError:
                continue
            told.append((step.get("label", ""), self._scored(said, memory, ways)))
        return told

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:
        """As a scorer: what is sealed here is scored, and (X, y), which are other rows, serve as a guess.

        A strict holdout freezes the estimator first.
        """
        return (self.score_frozen if self.strict else self.score)(estimator, X, y).value

    @property
    def left(self) -> int:
        """How many scores the certificate still covers, after all that any process was given under its file."""
        with self._lock:
            self._catch_up()
            return self.queries - self._scores(self._memory)

    def _scores(self, memory: Memory) -> int:
        """How many scores were told."""
        return ceil(max(memory.heard.asked - self._besides, 0) / self._each)

    @property
    def width(self) -> float:
        """The certificate's half-width, on the scale of scores.

        Where the width grows with wrong guesses, it is that of as many as `rejections` expects.
        """
        return self.mode.certificate.width

    @property
    def promise(self) -> Certificate:
        """The mode's certificate, said of scores by this metric: of areas, or of functions of means."""
        found = self.mode.certificate
        if isinstance(self.metric, Area):
            return about_pairs(found)
        if not self.metric.combines:
            return found
        once = f", and of {self._besides} more that the first asks for" if self._besides else ""
        several = "one such mean" if self._each == 1 else f"{self._each} such means"
        said = f"the width is of a mean: each score is a function of {several}{once}, with its own interval"
        return replace(found, assumptions=(*found.assumptions, said))

    def certificate(self) -> dict[str, Any]:
        """The promise in plain values: its width and theorem, what scores are about, on which assumptions, and how
        many are left.
        """
        promised, left, area = self.promise.as_dict(), self.left, isinstance(self.metric, Area)
        with self._lock:
            ways, unprevented = set(self._ways), set(self._unprevented)
        scope = about(ways, has_features=self._sealed.features is not None)
        promised["assumptions"] += assumptions(scope, ways, unprevented, area=area)
        named = {"mode": self.mode.text, "rows": self.rows, "metric": self.metric.text}
        said = {"about": sentence(scope, area=area)}
        return named | promised | said | {"queries": self.queries, "left": left}

    def close(self) -> None:
        """Let go of the file that the memory is kept in; the next question opens it again."""
        if isinstance(self._ledger, DurableLedger):
            self._ledger.let_go()

    @property
    def least_scale(self) -> float | None:
        """The least scale of noise that the next score may have, by the mode's cap; None where there is no choice.

        A score by a metric of several means asks for so much noise on each.
        """
        noise: NoiseFilter | None = getattr(self.mode, "filter", None)
        if noise is None:
            return None
        with self._lock:
            self._catch_up()
            means = self._each + (0 if self._memory.once else self._besides)
            return noise.least_scale(self._memory.heard.units, means)

    def _check_scale(self, scale: float | None) -> None:
        """Refuse a scale that the next score may not have, before anything is done for it."""
        noise: NoiseFilter | None = getattr(self.mode, "filter", None)
        if scale is not None and noise is None:
            raise ParameterError(
                f"the noise of the mode {self.mode.name} is fixed: leave `scale` out, or use the mode bounded"
            )
        if scale is not None and noise is not None:
            with self._lock:
                self._catch_up()
                means = self._each + (0 if self._memory.once else self._besides)
                noise.admit(self._memory.heard.units, scale, means)

    def _tell(
        self,
        looks: Sequence[SealedLook],
        how: dict[str, Any],
        scale: float | None = None,
        guess_rows: int | None = None,
    ) -> Score:
        """Say what the mode says of all looks of a score; `how` it was asked for is kept with the answer."""
        self._check_scale(scale)
        looks = [replace(look, scale=scale) for look in looks]
        kept = {name: value for name, value in how.items() if value}
        with self._lock:
            while True:
                self._catch_up()
                told = self._scores(self._memory)
                if told >= self.queries:
                    raise HandleClosedError(
                        f"all {self.queries} scores were given: the certificate covers no more. New rows make a "
                        f"new holdout"
                    )
                # What is drawn counts once it is kept: where another process spoke first, or the journal cannot be
                # written, nothing was said, and the noisy threshold that the journal holds stays the one.
                drawn = self._memory.copy()
                mode, decided = self._mode_for(looks[0], guess_rows)
                if len(looks) == 1:
                    step = mode.say(looks[0], drawn.heard, noise=self._noise) | kept | decided
                else:
                    parts, first = looks[: self._each], looks[self._each :]
                    step = say_all(mode, parts, first, drawn, noise=self._noise) | kept | decided
                secret = {} if isinstance(self._mode, FreeLadder) else drawn.heard.secret
                if self._journal.add(f"score {told + 1}", step, hidden=json.dumps(secret).encode()):
                    self._mode = mode
                    self._memory.heard.secret = drawn.heard.secret
                    self._asked_by(step)
                    said = read_all(self._mode, self.metric, step, self._memory)
                    return self._scored(said, self._memory, self._ways)

    def _mode_for(self, look: SealedLook, guess_rows: int | None) -> tuple[HoldoutMode, dict[str, str]]:
        """The mode of the next score, and what its step says of it: the first one decides where that is open.

        Raises a `RefusedError` where the mode that it would take is wider than the tolerance.
        """
        if not isinstance(self._mode, FirstScoreDecides):
            return self._mode, {}
        taken = self._mode.settled(look, guess_rows)
        check_worth(taken, self._tolerance)
        return taken, {"mode": taken.name}

    def _scored(self, said: JournaledScore, memory: Memory, ways: set[str]) -> Score:
        left = self.queries - self._scores(memory)
        scope = about(ways, has_features=self._sealed.features is not None)
        return Score(said.value, said.width, said.source, left, scope, said.interval, self.metric.scale)

    def _asked_by(self, step: dict[str, Any]) -> None:
        self._ways.add(_way(step))
        self._unprevented.update(step.get("unprevented", ()))

    def _catch_up(self) -> None:
        before = self._journal.length
        for step in self._journal.later():
            if isinstance(self._mode, FirstScoreDecides):
                self._mode = self._mode.told(step)
            self._asked_by(step)
            try:
                read_all(self._mode, self.metric, step, self._memory)
            except HandleClosedError:  # it halted there, and says so to whoever asks next
                continue
        if self._journal.length > before:
            # A noisy threshold belongs to the holdout, not to this process: it is never drawn again.
            self._memory.heard.secret = json.loads(self._journal.hidden)

    # ---- one holdout, one memory

    def __copy__(self) -> Holdout:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Holdout:
        """scikit-learn copies what it is given; there is one memory of what was said, so this is no copy."""
        return self

    def __reduce__(self) -> tuple[Callable[..., Holdout], tuple[type[Holdout], str, dict[str, Any]]]:
        """A holdout with a file goes to other processes with its rows, and all of them count in the file.

        Whoever can read what is sent, as a pickle in a file, can read the sealed rows. Without a file there would
        be two memories, so it is refused.
        """
        if self._made_of["path"] is None:
            raise TypeError(
                "a Holdout without a file cannot be sent to another process: every score must be counted in one "
                "place. Give it one, Holdout(…, path='holdout.db'), and n_jobs=2 works; or use threads "
                "(`joblib.parallel_backend('threading')`), or n_jobs=1"
            )
        if self._own_noise:
            raise TypeError(
                "a Holdout with a `noise` of its own cannot be sent to another process, which would draw the same "
                "noise again: leave `noise` out"
            )
        return _reopened, (type(self), self._token, self._made_of)

    def __repr__(self) -> str:
        left = self.queries - self._scores(self._memory)
        return f"Holdout({self.rows} rows, {self.metric.text}, {self.mode.text}, {left} scores left)"

    def _repr_html_(self) -> str:
        promised = self.certificate()
        known = {
            "rows": f"{self.rows:,}, sealed",
            "metric": self.metric.text,
            "mode": self.mode.name,
            "certificate": f"± {self.width:.4f} with probability {notebook.certainty(self.mode.beta)}, "
            f"by {promised['theorem']}",
            "scores are": promised["about"],
            "scores": notebook.share(1 - promised["left"] / self.queries, f"{promised['left']:,} of "
                                     f"{self.queries:,} left"),
        }  # fmt: skip
        return notebook.panel("Holdout", notebook.facts(known), history_table(self.history()))


_LIVE: WeakValueDictionary[str, Holdout] = WeakValueDictionary()
_KEPT: deque[Holdout] = deque(maxlen=4)
"""Holdouts that this process has, by their tokens; and those that came from another one, for its next task."""


def _reopened(kind: type[Holdout], token: str, made_of: dict[str, Any]) -> Holdout:
    """A holdout that was sent: the one of this process, or one over the same rows and the same file."""
    found = _LIVE.get(token)
    if found is None:
        named = {key: value for key, value in made_of.items() if key not in ("X", "y")}
        found = kind(made_of["X"], made_of["y"], **named)
        found._token = token
        _LIVE[token] = found
        _KEPT.append(found)
    return found


def _length(y: Any) -> int | None:
    """How many rows a guess comes from; None where there is none."""
    return None if y is None else len(y)


def _way(step: dict[str, Any]) -> str:
    """How a step was asked for. Version 0.1 did not say: what holds for predictions holds in any case."""
    return step.get("way", Way.PREDICTIONS)


def _ledger(path: str | Path | None, name: str) -> Ledger:
    """A ledger to keep the journal in: validity is counted there, no privacy is spent."""
    budget = Budget.of(1)
    if path is None:
        return MemoryLedger(budget)
    return DurableLedger(URL.create("sqlite", database=str(Path(path).resolve())), name, budget)


def _kept_terms(path: str | Path | None, name: str) -> str | None:
    """What a file says that the holdout of this name was opened under; None where it holds none."""
    if path is None or not Path(path).exists():
        return None
    ledger = _ledger(path, name)
    found = ledger.find(name)
    if isinstance(ledger, DurableLedger):
        ledger.close()
    return None if found is None else found.question
