"""A holdout that can be used again and again: widths hold however models were chosen by earlier scores.

    holdout = us.Holdout(X, y, queries=10_000)
    GridSearchCV(model, grid, scoring=holdout, cv=…)

The rows are sealed in here. A score is computed on them, told through a mode (`modes`) that generalises, and
counted. The rows that scikit-learn hands to a scorer are other rows: where a mode needs a guess, it is the
score on those. What a score is about depends on who saw the rows (`scope`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError, RefusedError
from understudy.ledger.journal import Journal
from understudy.ledger.store import DurableLedger
from understudy.noise.samplers import NoiseSource, SystemNoise
from understudy.pages import notebook
from understudy.rational import Number, probability
from understudy.validity.auc import about_pairs
from understudy.validity.certificate import VACUOUS, Certificate
from understudy.validity.first_score import FirstScoreDecides
from understudy.validity.frozen import predict_frozen
from understudy.validity.holdout_file import mode_of_file, promise_of, score_ledger
from understudy.validity.ladder import FreeLadder
from understudy.validity.lattice import grid
from understudy.validity.metric import Area, Metric
from understudy.validity.metrics import metric_for
from understudy.validity.modes import HoldoutMode, ModeTerms, SealedLook, check_worth
from understudy.validity.noise_filter import checked_scale
from understudy.validity.one_memory import OneMemory
from understudy.validity.predictions import guess_fault
from understudy.validity.scope import Way, about, assumptions, sentence
from understudy.validity.score import Score
from understudy.validity.sealed import SealedRows
from understudy.validity.told_scores import ToldScores
from understudy.validity.view import history_table

Guess = float | Sequence[float]
"""A guess of a score, or of each mean that a metric is made of."""


class Holdout(ToldScores, OneMemory):
    """A scorer for model selection, in scikit-learn's sense: ``holdout(estimator, X, y) -> float``.

    Scores lie in [0, 1], larger is better. With probability 1 - `beta` all of them are within their widths of what
    they are about (`certificate`), however each model was chosen after the scores before it.

    X, y        the sealed rows: features (None where only predictions will be handed in) and the target
    groups      names the person each row belongs to, where one has several: then the people are what is counted,
                each by the mean over the rows that are theirs.
    classes     the labels that there can be, public; by default those of y.
    queries     scores that will be asked for at most, fixed in advance. In a search that is candidates × splits.
    beta        the probability that some score is further off than its width.
    metric      how predictions are scored: a name, or one of `us.metrics` with its public parameters. Accuracy by
                default where y is labels; a continuous y needs a metric of its own (`metrics.metric_for`). One
                that is made of several means, such as r2, has the certificate of so many more queries.
    mode        one of `choice.MODES`; "auto" forecasts from rows, queries and beta how wide certificates will be
                and what a search loses by the noise of its scores, and takes the least of both (`choice`). Guesses
                are checked where they come: where `rejections` says how many may be wrong, or where the first
                score brings one, as scikit-learn's searches do (`first_score`). A file that was opened under an
                earlier choice of mode or theorem goes on with the mode and the certificate of that time.
    theorem     the certificate of the mode "gaussian": "tilting", Theorem T, unless another is named.
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
        made_of = {
            "X": X, "y": y, "queries": queries, "beta": beta, "metric": metric, "mode": mode, "theorem": theorem,
            "rejections": rejections, "slack": slack, "strict": strict, "tolerance": tolerance, "groups": groups,
            "classes": classes, "path": None if path is None else Path(path).resolve(), "name": name,
        }  # fmt: skip
        self._sealed = SealedRows.of(X, y, groups)
        if queries < 1:
            raise ParameterError("a holdout is asked at least once: give `queries`")
        labels = self._sealed.labels
        self._classes = self._sealed.classes if classes is None else np.asarray(classes)
        self.strict = strict or mode == "strict"
        mode = "auto" if mode == "strict" else mode
        self.metric = metric_for("auc" if mode == "auc" else metric, labels, self._classes)
        self.rows = self._sealed.persons
        terms = ModeTerms(self.rows, queries, float(probability(beta)), rejections, theorem, slack)
        chosen = mode_of_file(path, name, self._sealed, self.metric, mode, terms)
        if isinstance(chosen, FreeLadder):
            if path is not None:
                raise ParameterError(
                    "the parameter-free ladder remembers rows, and keeps no file of them: use the mode ladder, or "
                    "leave `path` out"
                )
        else:
            check_worth(chosen.narrower if isinstance(chosen, FirstScoreDecides) else chosen, tolerance)
        self._steps = grid(chosen.rows)
        """Steps between 0 and 1 for the value of one row, or person."""
        self._ledger = score_ledger(path, name)
        promise = promise_of(self._ledger, name, self._sealed, self.metric, chosen)
        ToldScores.__init__(
            self,
            Journal(self._ledger, promise, name=name, start=lambda: b"{}"),
            chosen,
            self.metric,
            queries,
            noise=SystemNoise() if noise is None else noise,
            tolerance=tolerance,
            has_features=self._sealed.features is not None,
        )
        OneMemory.__init__(self, made_of, is_repeatable=noise is not None)

    # ---- scoring

    def score(self, estimator: Any, X: Any = None, y: Any = None, *, scale: float | None = None) -> Score:
        """The score of a fitted `estimator`, which predicts the sealed rows in this process.

        Returns a `Score`, which counts as one of `queries`. `X` and `y`, if given, are other rows: the score on
        them is the guess that some modes check. The estimator is shown the sealed features, and could keep them
        for the next one: the certificate assumes that it does not, in words. A strict holdout raises a
        `RefusedError`; `score_frozen` needs no such assumption. Raises a `HandleClosedError` where all scores were
        given, or where the mode has halted.

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
        return self._tell(looks, {"way": Way.IN_PROCESS}, wanted, None if y is None else len(y))

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
        """The score of a fitted `estimator` that is frozen first: it predicts in a process of its own (`frozen`).

        Returns a `Score`, which counts as one of `queries`. As long as every score is asked for so, certificates
        are about the population, whatever the estimators do when they predict the sealed rows. What runs in this
        process, the serialising of an estimator and its guess, is assumed not to look for them. `X` and `y`, if
        given, are other rows to guess from. A `label` is kept with the score, for `history`. `scale` is that of
        the noise, as in `score`.

        An estimator that cannot be serialised and loaded by a new process is refused with a `ParameterError`, and
        not counted; so is any estimator where the holdout was given no features. One that fails at the sealed
        rows, takes longer than `seconds` or gives something else than predictions is counted, as wrong at every
        row: that it failed is told in no other way. Raises a `HandleClosedError` where all scores were given, or
        where the mode has halted.
        """
        wanted = checked_scale(scale)
        if wanted is not None:
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
        return self._tell(wrong if looks is None else looks, how, wanted, None if y is None else len(y))

    def score_predictions(
        self, predicted: Any, *, guess: Guess | None = None, label: str = "", scale: float | None = None
    ) -> Score:
        """The score of predictions for the sealed rows, `predicted`, in their order, or of probabilities.

        Those have a column for each class, in the order of classes. Returns a `Score`, which counts as one of
        `queries`. Whoever can predict knows the features. So this certifies new labels for these rows (fixed
        design), and nothing about new rows; of the area under the curve it certifies nothing without an
        assumption, and a strict holdout refuses it with a `RefusedError`. A `label` is kept with the score, for
        `history`. A `guess` is of the score; for a metric of several means, one of each (`metric.means` of other
        rows). `scale` is that of the noise, as in `score`.

        Raises a `ParameterError`, and counts nothing, where predictions are missing, of another kind than the
        labels (text for numbers) or no probabilities, and for a guess outside [0, 1]. That says nothing of the
        sealed labels but what is public: see `predictions`. Raises a `HandleClosedError` where all scores were
        given, or where the mode has halted.
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

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:
        """As a scorer: what is sealed here is scored, and (X, y), which are other rows, serve as a guess.

        A strict holdout freezes the estimator first.
        """
        return (self.score_frozen if self.strict else self.score)(estimator, X, y).value

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
        """The promise as plain values, which JSON can hold.

        They are its width and theorem, what scores are about, on which assumptions, and how many are left.
        """
        promised, left, area = self.promise.as_dict(), self.left, isinstance(self.metric, Area)
        with self._lock:
            ways, unprevented = set(self._ways), set(self._unprevented)
        scope = about(ways, has_features=self._has_features)
        promised["assumptions"] += assumptions(scope, ways, unprevented, area=area)
        named = {"mode": self.mode.text, "rows": self.rows, "metric": self.metric.text}
        said = {"about": sentence(scope, area=area)}
        return named | promised | said | {"queries": self.queries, "left": left}

    def close(self) -> None:
        """Let go of the file that the memory is kept in; the next question opens it again."""
        if isinstance(self._ledger, DurableLedger):
            self._ledger.let_go()

    def __repr__(self) -> str:
        left = self.left  # first: the mode may have been decided by a score of another process
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
