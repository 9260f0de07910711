"""The tables that a server holds: each opened once, with the session in which it is asked.

A table whose ledger or source fails is distrusted: whoever used it gets the error, and the next who asks has it
opened anew, at most once in `RETRY_SECONDS`. So a ledger that is put back, or a table that returns, is served
again without a restart, and while they are away every question is refused before anything is spent. What was
opened before is closed when the last thread has left it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from understudy.answer.answer import Answer
from understudy.answer.sql_answer import SqlAnswer
from understudy.curator.prepared_question import PreparedQuestion
from understudy.curator.pricing import check_noise
from understudy.errors import (
    DeclarationError,
    LedgerError,
    ParameterError,
    RefusedError,
    RequestConflictError,
    SourceError,
    UnderstudyError,
)
from understudy.ledger.store import DurableLedger
from understudy.project import Project, open_project
from understudy.server.problems import away
from understudy.sessions.opening import session
from understudy.sessions.session import Session

RETRY_SECONDS = 1.0
"""Between two tries to open a table that could not be opened."""

MOST_VERSIONS = 1000
"""Versions of a table under which sessions of the same terms are looked for."""

MOST_PREPARED = 1024
"""Direct questions of which the price need not be worked out again."""

MOST_OWN_SESSIONS = 4096
"""Analysts with a session of their own that are held open at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTerms:
    """The terms under which questions are answered: those of `understudy.session`, and whose a session is.

    alpha    the error of every count, as a part of all rows
    beta     the probability that some answer of the session is further off
    queries  how many questions are expected
    noise    which noise counts get that are bought by themselves: `auto`, or one by name
    own      whether each analyst has a session of their own: then what one bought another pays for again
    """

    alpha: float
    beta: float
    queries: int
    noise: str = "auto"
    own: bool = False

    def name(self, analyst: str) -> str:
        """The name of the session in the ledger. Other terms are another session."""
        said = f"server {self.alpha:g} {self.beta:g} {self.queries}"
        said += "" if self.noise == "auto" else f" {self.noise}"
        return f"{said} of {analyst}" if self.own else said


class OpenTable:
    """A project with its sessions, as it was opened at one time; `generation` counts the openings."""

    def __init__(self, project: Project, terms: SessionTerms, generation: int) -> None:
        self.project = project
        self.generation = generation
        self._terms = terms
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self.users = 0
        self._known = lru_cache(maxsize=MOST_PREPARED)(self._prepared)

    def prepared(
        self, question: str, name: str, amount: float, noise: str
    ) -> PreparedQuestion[Answer | SqlAnswer]:
        """A question that was read and priced, by its words, the name of its price, the amount and the noise.

        It is priced anew where the noise that was best has more mass than is left by now.
        """
        found = self._known(question, name, amount, noise)
        return found if found.is_within_delta else self._prepared(question, name, amount, noise)

    def _prepared(
        self, question: str, name: str, amount: float, noise: str
    ) -> PreparedQuestion[Answer | SqlAnswer]:
        terms: dict[str, Any] = {name: amount, "noise": noise}
        return self.project.prepare(question, **terms)

    def session(self, analyst: str) -> Session:
        """The session in which an analyst asks: everybody's, or their own where the terms say so."""
        whose = analyst if self._terms.own else ""
        known = self._sessions.get(whose)
        if known is not None:
            return known
        with self._lock:
            if whose not in self._sessions:
                if len(self._sessions) >= MOST_OWN_SESSIONS:  # it goes on from the ledger when it is needed
                    self._sessions.pop(next(iter(self._sessions)))
                self._sessions[whose] = self._begun(whose)
            return self._sessions[whose]

    @property
    def sessions(self) -> list[Session]:
        """The sessions that are open."""
        with self._lock:
            return list(self._sessions.values())

    def _begun(self, whose: str) -> Session:
        """The session of the terms; under a further name where an earlier version of the table has the first."""
        terms, name = self._terms, self._terms.name(whose)
        for version in range(1, MOST_VERSIONS):
            with suppress(RequestConflictError):
                return session(
                    self.project,
                    alpha=terms.alpha,
                    beta=terms.beta,
                    queries=terms.queries,
                    noise=terms.noise,
                    name=name if version == 1 else f"{name}, table {version}",
                    lazily=True,
                )
        raise LedgerError(
            f"the ledger holds sessions of {MOST_VERSIONS} versions of the table",
            remedy="Serve it with other terms of the session",
        )


def check_session_noise(project: Project, noise: str) -> None:
    """Refuse noise of a server's sessions that a table's budget has no price for, with a `RefusedError`."""
    try:
        check_noise(project.curator.calibration, noise)
    except RefusedError as error:
        raise RefusedError(
            f"the table {project.declaration.name} cannot be served with `session.noise: {noise}` of server.yml: "
            f"{error.problem}",
            remedy="Write `noise: auto`, or leave it out, in `session` of server.yml; else serve the table from "
            "another server.yml, or under a budget that pays for this noise",
        ) from None


def _seen(project: Project) -> tuple[int, str]:
    """The end of the ledger as this process last saw it."""
    ledger = project.ledger
    return ledger.seen if isinstance(ledger, DurableLedger) else (0, "")


def _check_goes_on(project: Project, seen: tuple[int, str]) -> None:
    """Refuse a ledger that does not go on from where it was seen before.

    A file that is missing is no ledger yet, to whoever opens it; to a server that has charged to it, its budget
    would be there once more.
    """
    number, head = seen
    if number and [entry.hash for entry in project.ledger.entries(after=number - 1, limit=1)] != [head]:
        raise LedgerError(
            f"the ledger is gone or another one: it does not have entry {number}, which this server saw",
            remedy="Put it back, or its newest copy; nothing was spent",
        )


class ServedTable:
    """A declared table, opened anew when it fails. `name` is the declared one.

    Raises what `open_project` raises where it cannot be opened the first time.
    """

    def __init__(self, path: Path, terms: SessionTerms) -> None:
        self.path = path
        self._terms = terms
        self._lock = threading.Lock()
        self._next_try = 0.0
        self.generation = 0
        self._seen: tuple[int, str] = (0, "")
        self._open: OpenTable | None = self._opened()
        self.name = self._open.project.declaration.name

    def _opened(self) -> OpenTable:
        opened = OpenTable(open_project(self.path), self._terms, self.generation + 1)
        try:
            _check_goes_on(opened.project, self._seen)
            check_session_noise(opened.project, self._terms.noise)
            if not self._terms.own:
                opened.session("")
        except BaseException:
            opened.project.close()
            raise
        self.generation += 1
        return opened

    @contextmanager
    def use(self) -> Iterator[OpenTable]:
        """The open table, for as long as the caller works with it.

        Raises a `Problem` 503 while it cannot be opened. An error of the ledger or the source that is raised
        inside passes through, and has the table opened anew for the next caller.
        """
        opened = self._entered()
        try:
            yield opened
        except (LedgerError, SourceError):
            self._distrust(opened)
            raise
        finally:
            self._leave(opened)

    @property
    def is_open(self) -> bool:
        """Whether the table is open; where it is not, this tries to open it."""
        try:
            with self.use() as opened:
                opened.project.ledger.remaining  # noqa: B018  # reads the ledger
        except Exception:
            return False
        return True

    def close(self) -> None:
        with self._lock:
            opened, self._open = self._open, None
            self._next_try = float("inf")
        if opened is not None and not opened.users:
            opened.project.close()

    def _entered(self) -> OpenTable:
        with self._lock:
            if self._open is None:
                now = time.monotonic()
                if now < self._next_try:
                    raise away()
                self._next_try = now + RETRY_SECONDS
                try:
                    self._open = self._opened()
                except (DeclarationError, ParameterError):
                    raise away() from None
            self._open.users += 1
            return self._open

    def _leave(self, opened: OpenTable) -> None:
        with self._lock:
            opened.users -= 1
            is_last = opened is not self._open and not opened.users
        if is_last:
            with suppress(UnderstudyError):
                opened.project.close()

    def reload(self) -> None:
        """Have the declaration read and the table opened again for the next caller."""
        with self._lock:
            opened, self._open, self._next_try = self._open, None, 0.0
            if opened is not None:
                self._seen = max(self._seen, _seen(opened.project))
        if opened is not None and not opened.users:
            opened.project.close()

    def _distrust(self, opened: OpenTable) -> None:
        with self._lock:
            if self._open is opened:
                self._open = None
                self._seen = max(self._seen, _seen(opened.project))


class ServedTables:
    """The tables of a server by their names."""

    def __init__(self, paths: Sequence[Path], terms: SessionTerms) -> None:
        """Open every table; where one cannot be opened the others are closed again, and its error is raised."""
        self.terms = terms
        self.tables: dict[str, ServedTable] = {}
        try:
            for path in paths:
                table = ServedTable(path, terms)
                if table.name in self.tables:
                    table.close()
                    raise ParameterError(
                        f"two declarations are of a table {table.name!r}: give one of them another name"
                    )
                self.tables[table.name] = table
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every table's project: its ledger and its source."""
        for table in self.tables.values():
            table.close()
