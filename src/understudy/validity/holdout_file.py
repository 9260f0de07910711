"""The file of a holdout: the ledger that its scores are kept in, and the promise that it was begun under.

A file goes on with the mode and the certificate of the time when it was begun, whatever `auto` would choose
today, and is refused where its rows or its promise are others.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import URL

from understudy.errors import RequestConflictError
from understudy.ledger.books import short_question
from understudy.ledger.interface import Ledger
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.validity.chosen import chosen_mode
from understudy.validity.metric import Area, Metric
from understudy.validity.modes import HoldoutMode, ModeTerms
from understudy.validity.sealed import SealedRows


def score_ledger(path: str | Path | None, name: str) -> Ledger:
    """A ledger to keep the journal in: validity is counted there, no privacy is spent."""
    budget = Budget.of(1)
    if path is None:
        return MemoryLedger(budget)
    return DurableLedger(URL.create("sqlite", database=str(Path(path).resolve())), name, budget)


def promise_of(
    ledger: Ledger, name: str, sealed: SealedRows, metric: Metric | Area, mode: HoldoutMode
) -> str:
    """What is kept of the promise, so that no other one goes on under it.

    Version 0.1 named the metric without its parameters: a file that was begun so goes on so. Raises a
    `RequestConflictError` where the file was begun with other rows or another promise.
    """
    former, now = _texts(sealed, metric, mode)
    begun = ledger.find(name)
    if begun is None or begun.question == short_question(now):
        return now
    if begun.question == short_question(former):
        return former
    same_rows = begun.question.startswith(_of_rows(sealed))
    raise RequestConflictError(
        f"the file keeps another holdout under the name {name!r}: "
        + (f"{begun.question}, not {now}" if same_rows else "its rows or labels are others"),
        remedy="give the rows and the terms that it was begun with, or another path or name",
        request=name,
        question=begun.question,
    )


def mode_of_file(
    path: str | Path | None,
    name: str,
    sealed: SealedRows,
    metric: Metric | Area,
    mode: str | HoldoutMode,
    terms: ModeTerms,
) -> HoldoutMode:
    """The mode that is asked for; where the file was begun under an earlier choice, the mode of then."""
    now, kept = chosen_mode(sealed, metric, mode, terms), _kept_promise(path, name)
    if kept is None or kept in map(short_question, _texts(sealed, metric, now)):
        return now
    for former in ({"deciding": False}, {"earlier": True}):
        found = chosen_mode(sealed, metric, mode, terms, **former)
        if kept in map(short_question, _texts(sealed, metric, found)):
            return found
    return now


def _texts(sealed: SealedRows, metric: Metric | Area, mode: HoldoutMode) -> tuple[str, str]:
    """The promise of a mode as version 0.1 wrote it, and as it is written now."""
    start = _of_rows(sealed)
    return f"{start} {metric.name}: {mode.text}", f"{start} {metric.text}: {mode.text}"


def _of_rows(sealed: SealedRows) -> str:
    """The beginning of every promise about the sealed rows."""
    return f"holdout of {sealed.persons} rows #{sealed.digest} by"


def _kept_promise(path: str | Path | None, name: str) -> str | None:
    """What a file says that the holdout of this name was opened under; None where it holds none."""
    if path is None or not Path(path).exists():
        return None
    ledger = score_ledger(path, name)
    found = ledger.find(name)
    if isinstance(ledger, DurableLedger):
        ledger.close()
    return None if found is None else found.question
