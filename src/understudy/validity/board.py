"""A leaderboard: a holdout whose sealed labels, submissions and memory are files.

Creating one writes `NAME.json`, the terms, and `NAME.db`, all scores that are ever given. The first also notes how
many there are, so that an older copy of the second is recognised; neither is of any use without the other.
A submission is a table with the ids and one column of predictions (or, for probabilities, one column for each
class). A malformed one is refused with the reason, and not counted (`predictions`).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.errors import (
    ParameterError,
    RefusedError,
    RequestConflictError,
    SourceChangedError,
    SourceError,
)
from understudy.noise.samplers import NoiseSource
from understudy.pages import notebook
from understudy.validity.board_table import as_array, no_column, read_labels, read_table
from understudy.validity.choice import takes_guesses
from understudy.validity.holdout import Guess, Holdout
from understudy.validity.metric import Area, Combined, Metric
from understudy.validity.metrics import metric_of
from understudy.validity.predictions import as_labels, guess_fault, kind, missing
from understudy.validity.score import Score
from understudy.validity.view import history_table

UNCOUNTED = "Nothing was counted"
"""What every refusal of a submission ends with: it takes none of the board's scores."""

_IDS = "Give one row for each id, and write ids as the board does: 0001 and 1 are two"


@dataclass(frozen=True, kw_only=True)
class BoardTerms:
    """What a board promises, fixed when it is created, and where its labels are.

    `id` and `label` are columns of the file `labels`, of which `digest` is the hash. `public` is the share of its
    rows that guesses are made from and no score counts; which rows these are follows from `salt`, a random text.
    `queries`, `beta`, `metric`, `mode`, `theorem` and `rejections` are those of `Holdout`.
    """

    labels: str
    digest: str
    id: str
    label: str
    queries: int
    beta: float = 0.05
    metric: str = "accuracy"
    mode: str = "ladder"
    theorem: str = "cvar"
    rejections: int | None = None
    public: float = 0.0
    salt: str = ""
    name: str = "holdout"
    """Under which the memory is kept: that of another board is not taken for this one's."""
    as_written: bool = False
    """Whether ids, and labels that are codes, stay as a CSV file writes them. Version 0.1 read 007 as 7, and the
    boards that it made go on so."""


@dataclass(frozen=True)
class Standing:
    """One line of a leaderboard: the `name` of a submission, and its `score`."""

    name: str
    score: Score

    def as_dict(self) -> dict[str, Any]:
        """The line as plain values, which JSON can hold.

        Those of a submission that did not beat the board are null, and `best` is the board's.
        """
        told = {"name": self.name} | self.score.as_dict()
        if not self.score.repeats:
            return told
        nothing = dict.fromkeys(told.keys() & {"value", "low", "high", "loss", "loss_interval"})
        return told | nothing | {"best": self.score.value}


class Board:
    """An open leaderboard: `score` scores a submission, and `show` lists all scores so far.

    `path` is the file of its terms, with or without `.json`; `create` makes a new board, and alone sets `new`.
    `noise` is where random numbers come from, by default the operating system. Raises a `SourceError` where a file
    of the board is missing, damaged, or an older copy, and a `SourceChangedError` where the labels are not those
    that the board was created with; a `ParameterError` where `path` has another suffix.
    """

    def __init__(self, path: Path, *, noise: NoiseSource | None = None, new: bool = False) -> None:
        self.path = board_file(path)
        self.terms, self._noted = _read(self.path)
        self._memory = self.path.with_suffix(".db")
        if not new and not (self._memory.exists() and self._memory.stat().st_size):
            raise SourceError(
                f"{self._memory.name}, which counts the scores of {self.path.name}, is missing or empty: "
                f"put it back"
            )
        labels = self.path.parent / self.terms.labels
        if not labels.exists():
            raise SourceError(f"{labels}, with the labels of {self.path.name}, is missing: put it back")
        if sha256(labels.read_bytes()).hexdigest() != self.terms.digest:
            raise SourceChangedError(f"{labels} is not the file that the board was created with")
        metric = metric_of(self.terms.metric)
        self._ids, self._truth = read_labels(
            labels, id=self.terms.id, label=self.terms.label, as_written=self.terms.as_written,
            amounts=isinstance(metric, Metric) and metric.target == "numbers",
        )  # fmt: skip
        self._classes = np.unique(self._truth)
        if new:
            _check_positive(metric, self._classes)
        self._public = _public(self._ids, self.terms)
        self.holdout = self._opened(noise)
        scored = self.holdout.queries - self.holdout.left
        if scored < self._noted:
            raise SourceError(
                f"{self._memory.name} has {scored:,} scores and {self.path.name} has seen {self._noted:,}: it is "
                f"an older copy, or another board's. Put the newest one back"
            )

    @property
    def needs_guess(self) -> bool:
        """Whether every score must bring a guess: they are checked, and no rows are public to make one from."""
        return takes_guesses(self.holdout.mode) and not self._public.any()

    def score(self, submission: Path, *, name: str = "", guess: Guess | None = None) -> Standing:
        """Score a file of predictions, `submission`, CSV or Parquet, under a `name`, by default the file's.

        `guess` is the submitter's own guess of the score, for a board that checks guesses; without it the public
        rows give one. Returns the submission's `Standing`. Raises a `RefusedError` where the file is malformed or
        the guess does not fit: that depends on the submission and on public facts alone, and is not counted.
        Raises a `SourceError` where there is no such file, and a `HandleClosedError` where all scores were given,
        or where the board has halted.
        """
        predicted = self._aligned(submission)
        checked = self._guess(predicted, guess)
        called = name or submission.stem
        try:
            told = self.holdout.score_predictions(predicted[~self._public], guess=checked, label=called)
        finally:  # the answer that halts a board is counted, and raises
            self._note(self.holdout.queries - self.holdout.left)
        return Standing(called, told)

    def show(self) -> list[Standing]:
        """All scores that were given, in order, each with the submission's name. Counts as no score."""
        return [Standing(name, score) for name, score in self.holdout.history()]

    def close(self) -> None:
        """Close the file of the board's memory: it is whole then, and can be copied."""
        self.holdout.close()

    def _opened(self, noise: NoiseSource | None) -> Holdout:
        terms = self.terms
        try:
            return Holdout(
                None, self._truth[~self._public], queries=terms.queries, beta=terms.beta, metric=terms.metric,
                mode=terms.mode, theorem=terms.theorem, rejections=terms.rejections, classes=self._classes,
                path=self._memory, name=terms.name, noise=noise,
            )  # fmt: skip
        except RequestConflictError:
            raise SourceError(
                f"{self.path.name} does not say what {self._memory.name} was created with: the terms of a board "
                f"are fixed. Put the two files of one board back"
            ) from None

    def _note(self, scored: int) -> None:
        """Keep the number of scores outside the memory, too. A process that is overtaken may note one too few."""
        self._noted = max(scored, _read(self.path)[1], self._noted)
        _write(self.path, self.terms, self._noted)

    def __repr__(self) -> str:
        return f"Board({self.path.name!r}, {self.holdout!r})"

    def _repr_html_(self) -> str:
        told = [(standing.name, standing.score) for standing in self.show()]
        note = "– stands for a submission that was no better than the best before it."
        title = f"Leaderboard {self.path.name}, by {self.holdout.metric.text}"
        return notebook.panel(title, history_table(told), note=note)

    def _guess(self, predicted: NDArray[Any], guess: Guess | None) -> Guess | None:
        """The guess that the mode checks, if it does."""
        if not takes_guesses(self.holdout.mode):
            if guess is not None:
                mode = self.holdout.mode.name
                raise RefusedError(
                    f"the mode {mode} checks no guesses", remedy=f"leave `guess` out. {UNCOUNTED}"
                )
            return None
        if guess is not None:
            if fault := guess_fault(guess):
                raise RefusedError(fault, remedy=UNCOUNTED)
            return guess
        if self.needs_guess:
            raise RefusedError(
                "this board checks guesses and has no public rows to make them from",
                remedy=f"give `guess`, the score on other rows. {UNCOUNTED}",
            )
        truth, shown = self._truth[self._public], predicted[self._public]
        return self.holdout.metric.means(truth, shown, self._classes)

    def _aligned(self, submission: Path) -> NDArray[Any]:
        """The predictions in the order of the labels, or a refusal that says what is wrong."""
        table = self._read(submission)
        if table.column_names.count(self.terms.id) != 1:
            raise _refused(submission, *no_column(table, self.terms.id))
        columns = [name for name in table.column_names if name != self.terms.id]
        wanted = [str(label) for label in self._classes]
        columns = wanted if set(wanted) <= set(columns) else columns
        if not columns or (len(columns) > 1 and columns != wanted):
            raise _refused(submission, f"needs one column of predictions beside {self.terms.id}")
        order = self._order(submission, table[self.terms.id])
        found = [self._column(submission, table, name)[order] for name in columns]
        predicted = found[0] if len(found) == 1 else np.column_stack(found)
        if fault := self.holdout.metric.fault(predicted, self._classes):
            raise RefusedError(fault, remedy=UNCOUNTED, detail=f"{submission.name}: {fault}. {UNCOUNTED}")
        return predicted

    def _read(self, submission: Path, text: tuple[str, ...] = ()) -> pa.Table:
        """The table of a submission, with the columns in `text` as they are written."""
        wrong = partial(_refused, submission)
        return read_table(submission, wrong, id=self.terms.id, as_written=self.terms.as_written, text=text)

    def _column(self, submission: Path, table: pa.Table, name: str) -> NDArray[Any]:
        values = as_array(table[name])
        if missing(values):
            raise _refused(submission, "has missing predictions")
        as_text = submission.suffix != ".parquet" and kind(self._classes) == "text" and kind(values) != "text"
        if as_text and self.holdout.metric.fault is as_labels:
            # A CSV file has no types: "1" is a label like any other where labels are text.
            return as_array(self._read(submission, (name,))[name])
        return values

    def _order(self, submission: Path, ids: Any) -> NDArray[np.intp]:
        given = {value: place for place, value in enumerate(map(str, ids.to_pylist()))}
        wanted = set(self._ids)
        reasons = {
            "repeats ids": len(ids) - len(given),
            "lacks ids": len(wanted - set(given)),
            "has unknown ids": len(set(given) - wanted),
        }
        for reason, count in reasons.items():
            if count:
                raise _refused(submission, f"{reason} ({count:,})", _IDS if self.terms.as_written else "")
        return np.array([given[value] for value in self._ids], dtype=np.intp)


def _refused(submission: Path, why: str, remedy: str = "") -> RefusedError:
    """A file of predictions that is not scored, why, and what to do; its name is the custodian's business."""
    after = f"{remedy}. {UNCOUNTED}" if remedy else UNCOUNTED
    return RefusedError(f"the submission {why}", remedy=after, detail=f"{submission.name} {why}. {after}")


def create(path: Path, labels: Path, *, id: str, label: str, public: float = 0.0, **terms: Any) -> Board:
    """Create a board at `path` for the labels in a file, `labels`, whose columns `id` and `label` are named.

    `public` is the share of the rows that guesses are made from; `terms` are the others of `BoardTerms`, such as
    `queries`. Returns the open `Board`. Raises a `RefusedError` where there is a board of that name, which is
    never replaced, and a `ParameterError` where the terms make no sense.
    """
    if path.suffix not in ("", ".json"):
        raise ParameterError(f"a board is written as .json, not as {path.name}: give another name")
    target = board_file(path)
    for file in (target, target.with_suffix(".db")):
        if file.exists():
            raise RefusedError(
                "there is a board of this name, and a board is created once",
                remedy="give another name",
                detail=f"{file} exists, and a board is created once: give another name",
            )
    if terms.get("mode") == "free-ladder":
        raise ParameterError(
            "the parameter-free ladder remembers rows, and keeps no file: use `mode='ladder'`, or a Holdout"
        )
    if not 0 <= public < 1:
        raise ParameterError("the public share is at least 0 and below 1")
    digest = sha256(labels.read_bytes()).hexdigest()
    salt = secrets.token_hex(8)
    written = BoardTerms(
        labels=_relative(labels, target), digest=digest, id=id, label=label, public=public, salt=salt,
        name=f"board {salt}", as_written=True, **terms,
    )  # fmt: skip
    try:
        _write(target, written, 0)
        return Board(target, new=True)
    except BaseException:
        target.unlink(missing_ok=True)
        target.with_suffix(".db").unlink(missing_ok=True)
        raise


def board_file(path: Path) -> Path:
    """The file of a board's terms: the suffix `.json` of `path` may be left out; another is a `ParameterError`."""
    if path.suffix not in ("", ".json"):
        raise ParameterError(
            "this is not a board",
            remedy="a board is a .json file, which `understudy holdout create` writes",
            detail=f"{path} is not a board: a board is a .json file, which `understudy holdout create` writes",
        )
    return path.with_suffix(".json")


def _read(path: Path) -> tuple[BoardTerms, int]:
    """The terms, and how many scores were noted beside them."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        noted = found.pop("scored", 0)
        return BoardTerms(**found), int(noted)
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist: `understudy holdout create` makes a board") from None
    except (ValueError, TypeError, AttributeError):
        raise SourceError(f"{path} is no leaderboard") from None


def _write(path: Path, terms: BoardTerms, scored: int) -> None:
    """Write the file anew, whole or not at all. A new one, whose salt is a secret, is its owner's alone."""
    target = path.resolve()
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(terms) | {"scored": scored}, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, fresh)
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)


def _relative(labels: Path, target: Path) -> str:
    try:
        return str(labels.resolve().relative_to(target.resolve().parent))
    except ValueError:
        return str(labels.resolve())


def _check_positive(metric: Metric | Area, classes: NDArray[Any]) -> None:
    """Refuse a metric of a label that none of the labels can be, such as a number where they are text."""
    positive = metric.positive if isinstance(metric, Combined) else None
    if positive is not None and kind(np.asarray([positive])) != kind(classes):
        raise ParameterError(
            f"the labels are {kind(classes)}, and {metric.text} is of another kind: name a label as it is "
            f"written, such as f1(positive={classes[-1].item()!r})"
        )


def _public(ids: list[str], terms: BoardTerms) -> NDArray[np.bool_]:
    """Which rows are public: by a hash of the id and the board's salt, so that it never changes."""
    limit = int(terms.public * 2**64)
    hashed = (int.from_bytes(sha256(f"{terms.salt}/{value}".encode()).digest()[:8]) for value in ids)
    return np.array([value < limit for value in hashed], dtype=bool)
