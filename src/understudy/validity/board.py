"""A leaderboard: sealed labels in a file, submissions as files, and a memory beside them.

Creating one writes `NAME.json`, the terms, and `NAME.db`, everything that is ever said. A submission is a table
with the ids and one column of predictions (or, for probabilities, one column for each class). A malformed one is
refused with the reason, and not counted.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, parquet

from understudy.errors import ParameterError, RefusedError, SourceChangedError, SourceError
from understudy.noise import NoiseSource
from understudy.validity.holdout import Holdout, Score
from understudy.validity.metrics import Area


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a board promises, fixed when it is created. `public` is the share of rows that guesses come from."""

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


@dataclass(frozen=True)
class Standing:
    """One line of the table."""

    name: str
    score: Score

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name} | self.score.as_dict()


class Board:
    """An open leaderboard: `score` submissions, `show` what was said."""

    def __init__(self, path: Path, *, noise: NoiseSource | None = None) -> None:
        self.path = path.with_suffix(".json")
        try:
            self.terms = Terms(**json.loads(self.path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            raise SourceError(f"{self.path} is no leaderboard") from None
        labels = self.path.parent / self.terms.labels
        if sha256(labels.read_bytes()).hexdigest() != self.terms.digest:
            raise SourceChangedError(f"{labels} is not the file that the board was created with")
        self._ids, truth = _labels(labels, self.terms.id, self.terms.label)
        self._classes = np.unique(truth)
        self._public = _public(self._ids, self.terms)
        self._truth = truth
        sealed = ~self._public
        self.holdout = Holdout(
            None, truth[sealed], queries=self.terms.queries, beta=self.terms.beta, metric=self.terms.metric,
            mode=self.terms.mode, theorem=self.terms.theorem, rejections=self.terms.rejections,
            classes=self._classes, path=self.path.with_suffix(".db"), noise=noise,
        )  # fmt: skip

    def score(self, submission: Path, *, name: str = "", guess: float | None = None) -> Standing:
        """Score a file of predictions; `guess` is the submitter's own, else the public rows give one."""
        predicted = self._aligned(submission)
        if guess is None and self._public.any():
            metric, truth, shown = self.holdout.metric, self._truth[self._public], predicted[self._public]
            if isinstance(metric, Area):
                guess = metric.area(truth, shown)
            else:
                guess = float(metric.of(truth, shown, self._classes).mean())
        called = name or submission.stem
        return Standing(
            called, self.holdout.score_predictions(predicted[~self._public], guess=guess, label=called)
        )

    def show(self) -> list[Standing]:
        """Everything that was said, in order."""
        return [Standing(name, score) for name, score in self.holdout.history()]

    def _aligned(self, submission: Path) -> NDArray[Any]:
        """The predictions in the order of the labels, or a refusal that says what is wrong."""
        table = _table(submission)
        if self.terms.id not in table.column_names:
            raise RefusedError(f"{submission.name} has no column {self.terms.id}. Nothing was counted")
        columns = [name for name in table.column_names if name != self.terms.id]
        wanted = [str(label) for label in self._classes]
        columns = wanted if set(wanted) <= set(columns) else columns
        if not columns or (len(columns) > 1 and columns != wanted):
            raise RefusedError(
                f"{submission.name} needs one column of predictions beside {self.terms.id}. Nothing was counted"
            )
        order = self._order(submission, table[self.terms.id])
        found = []
        for name in columns:
            values = table[name].to_pylist()
            if any(value is None or value != value for value in values):
                raise RefusedError(f"{submission.name} has missing predictions. Nothing was counted")
            found.append(np.asarray(values)[order])
        return found[0] if len(found) == 1 else np.column_stack(found).astype(np.float64)

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
                raise RefusedError(f"{submission.name} {reason} ({count:,}). Nothing was counted")
        return np.array([given[value] for value in self._ids], dtype=np.intp)


def create(path: Path, labels: Path, *, id: str, label: str, public: float = 0.0, **terms: Any) -> Board:
    """Create a board beside nothing else: an existing one is never replaced."""
    target = path.with_suffix(".json")
    if target.exists() or target.with_suffix(".db").exists():
        raise RefusedError(f"{target} exists: a board is created once")
    if not 0 <= public < 1:
        raise ParameterError("the public share is at least 0 and below 1")
    digest = sha256(labels.read_bytes()).hexdigest()
    place = _relative(labels, target)
    written = Terms(
        labels=place, digest=digest, id=id, label=label, public=public, salt=secrets.token_hex(8), **terms
    )
    target.write_text(json.dumps(asdict(written), indent=1), encoding="utf-8")
    try:
        return Board(target)
    except BaseException:
        target.unlink()
        raise


def _relative(labels: Path, target: Path) -> str:
    try:
        return str(labels.resolve().relative_to(target.resolve().parent))
    except ValueError:
        return str(labels.resolve())


def _table(path: Path) -> pa.Table:
    try:
        return parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SourceError(f"{path.name} cannot be read: {str(error).splitlines()[0]}") from None


def _labels(path: Path, id: str, label: str) -> tuple[list[str], NDArray[Any]]:
    table = _table(path)
    for name in (id, label):
        if name not in table.column_names:
            raise SourceError(f"{path.name} has no column {name}")
    ids = list(map(str, table[id].to_pylist()))
    if len(set(ids)) != len(ids):
        raise SourceError(f"{path.name} repeats ids")
    if table[label].null_count:
        raise SourceError(f"{path.name} has missing labels")
    return ids, np.asarray(table[label].to_pylist())


def _public(ids: list[str], terms: Terms) -> NDArray[np.bool_]:
    """Which rows are public: by a hash of the id and the board's salt, so that it never changes."""
    limit = int(terms.public * 2**64)
    hashed = (int.from_bytes(sha256(f"{terms.salt}/{value}".encode()).digest()[:8]) for value in ids)
    return np.array([value < limit for value in hashed], dtype=bool)
