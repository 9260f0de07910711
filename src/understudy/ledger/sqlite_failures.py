"""What the failures of SQLite mean: a cause that people know, and what to do about it.

What SQLite says itself is never passed on: its words may hold what was to be stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal["opening", "locking", "writing"]

_CAUSES: tuple[tuple[str, Stage, str, str], ...] = (
    ("SQLITE_FULL", "writing", "the disk that holds {what} is full", "Free some space"),
    (
        "SQLITE_IOERR",
        "writing",
        "the disk that holds {what} failed, or its quota is used up",
        "Check the disk",
    ),
    ("SQLITE_READONLY", "writing", "{what} is read-only", "Make {file} and its folder writable"),
    ("SQLITE_PERM", "opening", "{what} may not be read", "Check the owner of {file} and its folder"),
    ("SQLITE_CANTOPEN", "opening", "{what} cannot be opened", "Its folder must exist and be writable"),
    ("SQLITE_BUSY", "locking", "{what} was locked for too long", "Try again"),
    ("SQLITE_LOCKED", "locking", "{what} was locked for too long", "Try again"),
)
"""SQLite's names of failures, when they happen, what they mean, and what to do."""

_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A failure in words: when it happened, the problem, and what to do about it."""

    stage: Stage
    problem: str
    remedy: str


def failure_name(error: BaseException | None) -> str:
    """SQLite's name of a failure, such as `SQLITE_BUSY`; empty where it has none."""
    return str(getattr(error, "sqlite_errorname", None) or "")


def known_failure(error: BaseException | None, *, what: str, file: str) -> KnownFailure | None:
    """What a failure means, in words; None where it is none of the usual ones.

    `what` names that which is kept, such as "the ledger", and `file` the file that it is in. A damaged file has
    another remedy for each of them, and is not told here (`is_damaged`).
    """
    name = failure_name(error)
    for prefix, stage, problem, remedy in _CAUSES:
        if name.startswith(prefix):
            return KnownFailure(stage, problem.format(what=what), remedy.format(file=file))
    return None


def is_damaged(error: BaseException | None) -> bool:
    """Whether SQLite found a file to be damaged, or to be none of its own."""
    return failure_name(error).startswith(_DAMAGED)
