"""The questions that were asked: for the history, and so that a repeated request has the same answer.

Answers are released values, kept here as the JSON that was sent: whoever reads server.db reads them. Only the
ledger says what was paid. A question whose answer is not here, because the server was killed, is put to the
library again under its request id.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from understudy.errors import ParameterError, RequestConflictError, UnderstudyError
from understudy.server.store import ServerStore, as_text
from understudy.server.store_connection import check_text

if TYPE_CHECKING:
    from understudy.privacy.cost import Cost

ASKING, WAITING, ANSWERED, REFUSED = "asking", "waiting", "answered", "refused"

MOST_NOTED = 4096
"""Free answers that are found in memory; those before them are in the file by then."""

MOST_LISTED = 500
"""Questions in one page of a history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """One question. `state` is asking, waiting (for approval), answered, or refused: also by whoever approves.

    `terms` are the arguments it was asked with; `price` is what the ledger charged, in `currency`, and `share` its
    part of the whole budget, both None where it was refused and nothing was charged; `source` says where the
    answer came from. `ledger_request` is its name in the ledger.
    `answer_text` is the JSON of the answer that was sent, empty where there is none, and `answer` what it says;
    `problem` is what was told in its place. Times are seconds since 1970.
    """

    number: int
    id: str
    table: str
    analyst: str
    request: str
    question: str
    terms: dict[str, Any]
    at: float
    state: str
    finished: float | None
    currency: str
    price: float | None
    share: float | None
    source: str
    ledger_request: str
    answer_text: str
    problem: dict[str, Any] | None

    @property
    def answer(self) -> dict[str, Any] | None:
        """The answer as plain values; None where there is none."""
        return json.loads(self.answer_text) if self.answer_text else None

    def as_dict(self) -> dict[str, Any]:
        """For a history: without the number, which tells how much others ask, and without the answer."""
        hidden = ("number", "answer_text", "ledger_request")
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in hidden}
        finished = None if self.finished is None else as_text(self.finished)
        return plain | {"at": as_text(self.at), "finished": finished}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReply:
    """A question with the JSON of its answer, as it is to be kept; what each part is says `AskedQuestion`.

    `plain` is what that JSON says, for whoever sends it.
    """

    table: str
    analyst: str
    question: str
    request: str
    terms: Mapping[str, Any]
    answer: str
    price: Cost
    share: float
    source: str
    ledger_request: str = ""
    plain: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def check(self) -> None:
        """Refuse a text that cannot be written down, with a `ParameterError`."""
        told = (self.table, self.analyst, self.question, self.request, self.answer, self.source)
        for text in (*told, self.ledger_request):
            check_text(text)


class Asked:
    """The questions in a store."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store
        self._noted: dict[tuple[str, str, str], AskedQuestion] = {}
        self._noting = threading.Lock()

    def begin(
        self, table: str, analyst: str, question: str, request: str, terms: Mapping[str, Any], *,
        ledger_request: str = "", state: str = ASKING,
    ) -> AskedQuestion:  # fmt: skip
        """Note a question before it is asked; one of the same request is returned as it stands.

        A request that was used for another question, or with other terms, is a `RequestConflictError`.
        """
        told = _text(terms)
        if (table, analyst, request) in self._noted:
            self._store.flush()
        with self._store.writing(durable=False) as tx:
            tx.execute(_INSERT, self._row(table, analyst, question, request, told, state, ledger_request))
            row = tx.execute(_OF_REQUEST, (table, analyst, request)).fetchone()
        return _same(row, question, told)

    def note(
        self, table: str, analyst: str, question: str, request: str, terms: Mapping[str, Any], *,
        answer: str, source: str, currency: str, ledger_request: str = "",
    ) -> str:  # fmt: skip
        """Note a question that was answered free of charge with some JSON; its id. Written soon, with others.

        It is for free answers to callers who gave no request id, and so cannot ask for the same reply again: a
        kill within a tenth of a second forgets it.
        """
        row = list(self._row(table, analyst, question, request, _text(terms), ANSWERED, ledger_request))
        row[8:15] = (row[6], currency, 0.0, 0.0, source, ledger_request, answer)
        found = AskedQuestion(
            number=0, id=row[0], table=table, analyst=analyst, request=request, question=question,
            terms=dict(terms), at=row[6], state=ANSWERED, finished=row[6], currency=currency, price=0.0,
            share=0.0, source=source, ledger_request=ledger_request, answer_text=answer, problem=None,
        )  # fmt: skip
        with self._noting:
            self._noted[table, analyst, request] = found
            if len(self._noted) > MOST_NOTED:
                del self._noted[next(iter(self._noted))]
        self._store.later(_INSERT, row)
        return found.id

    def keep(self, reply: KeptReply) -> AskedQuestion:
        """As `begin` and then `answered`, in one transaction: the question as it is kept from now on."""
        (kept,) = self.keep_all([reply])
        if isinstance(kept, Exception):
            raise kept
        return kept

    def keep_all(self, replies: Sequence[KeptReply]) -> list[AskedQuestion | UnderstudyError]:
        """`keep` for several questions, in one transaction: for each what it returns, or raises for it alone."""
        found: list[AskedQuestion | UnderstudyError | None] = []
        for reply in replies:
            try:
                reply.check()
                found.append(None)
            except ParameterError as refusal:
                found.append(refusal)
        rows = [self._answered_row(reply) for reply in replies]

        def kept(tx: sqlite3.Connection) -> list[AskedQuestion | UnderstudyError]:
            return [
                self._kept_in(tx, reply, row) if known is None else known
                for reply, row, known in zip(replies, rows, found, strict=True)
            ]

        return self._store.together(kept)

    def keep_new(self, replies: Sequence[KeptReply]) -> list[str]:
        """Keep replies to requests of which nothing is known yet, in one transaction: their ids.

        An id is empty, and nothing was kept, where something was known of the request.
        """
        rows = [self._answered_row(reply) for reply in replies]

        def kept(tx: sqlite3.Connection) -> list[str]:
            return [row[0] if tx.execute(_INSERT, row).rowcount == 1 else "" for row in rows]

        return self._store.together(kept)

    def _answered_row(self, reply: KeptReply) -> list[Any]:
        row = list(
            self._row(
                reply.table, reply.analyst, reply.question, reply.request, _text(reply.terms), ANSWERED,
                reply.ledger_request,
            )
        )  # fmt: skip
        row[8:15] = (
            row[6], reply.price.currency, reply.price.amount, reply.share, reply.source, reply.ledger_request,
            reply.answer,
        )  # fmt: skip
        return row

    def _kept_in(
        self, tx: sqlite3.Connection, reply: KeptReply, row: list[Any]
    ) -> AskedQuestion | UnderstudyError:
        """Keep a reply in a transaction that others share; a refusal has written nothing."""
        price = reply.price
        written = tx.execute(_INSERT, row)
        if written.rowcount == 1:  # nothing was known of the request
            return AskedQuestion(
                number=written.lastrowid or 0, id=row[0], table=reply.table, analyst=reply.analyst,
                request=reply.request, question=reply.question, terms=dict(reply.terms), at=row[6],
                state=ANSWERED, finished=row[6], currency=price.currency, price=price.amount, share=reply.share,
                source=reply.source, ledger_request=reply.ledger_request, answer_text=reply.answer, problem=None,
            )  # fmt: skip
        of_request = (reply.table, reply.analyst, reply.request)
        try:
            found = _same(tx.execute(_OF_REQUEST, of_request).fetchone(), reply.question, _text(reply.terms))
        except RequestConflictError as conflict:
            return conflict
        values = {"currency": price.currency, "price": price.amount, "share": reply.share}
        self._end(tx, found.id, ANSWERED, **values, source=reply.source, answer=reply.answer)
        return _question(tx.execute(_OF_REQUEST, of_request).fetchone())

    def find(self, table: str, analyst: str, request: str) -> AskedQuestion | None:
        """The question of an analyst's request."""
        row = self._store.row(_OF_REQUEST, (table, analyst, request))
        return self._noted.get((table, analyst, request)) if row is None else _question(row)

    def get(self, id: str) -> AskedQuestion | None:
        self._store.flush()
        with self._store.reading() as tx:
            row = tx.execute("SELECT * FROM asked WHERE id = ?", (id,)).fetchone()
        return None if row is None else _question(row)

    def wait(self, id: str) -> None:
        """The question waits for approval."""
        with self._store.writing() as tx:
            self._end(tx, id, WAITING)

    def answered(self, id: str, answer: Mapping[str, Any], *, price: Cost, share: float, source: str) -> None:
        """Keep an answer with what was paid for it. The first one stays: it is the one that was sent."""
        values = {"currency": price.currency, "price": price.amount, "share": share, "source": source}
        with self._store.writing(durable=False) as tx:
            self._end(tx, id, ANSWERED, **values, answer=_text(answer))

    def refused(
        self, id: str, problem: Mapping[str, Any], *, price: Cost | None = None, share: float | None = None
    ) -> None:
        """Keep why a question was not answered, and what was charged for it all the same; None for nothing.

        It may be answered later, when it is asked again.
        """
        paid = {} if price is None else {"currency": price.currency, "price": price.amount, "share": share}
        with self._store.writing(durable=False) as tx:
            self._end(tx, id, REFUSED, problem=_text(problem), **paid)

    def page(
        self, *, analyst: str | None = None, table: str | None = None, state: str | None = None, after: str = "",
        limit: int = 50,
    ) -> tuple[list[AskedQuestion], str]:  # fmt: skip
        """Questions, the newest first, and the cursor of the next page, empty where this is the last.

        `analyst` is whose; all people's where it is None. `after` is the cursor that an earlier page gave;
        questions that are asked meanwhile do not move it.
        """
        if not 1 <= limit <= MOST_LISTED:
            raise ParameterError(f"a page has 1 to {MOST_LISTED} questions, not {limit}")
        below = self._below(after)
        filters = {"analyst": analyst, "of_table": table, "state": state}
        wanted = "".join(f" AND {name} = :{name}" for name, value in filters.items() if value is not None)
        self._store.flush()
        with self._store.reading() as tx:
            rows = tx.execute(
                f"SELECT * FROM asked WHERE number < :below{wanted} ORDER BY number DESC LIMIT :limit",
                {"below": below, "limit": limit + 1, **filters},
            ).fetchall()
        found = [_question(row) for row in rows[:limit]]
        return found, found[-1].id if len(rows) > limit else ""

    def _below(self, after: str) -> int:
        """A cursor is the id of the last question that was shown, which tells nothing about anybody else's."""
        if not after:
            return (1 << 63) - 1
        found = self.get(after)
        if found is None:
            raise ParameterError(f"{after!r} is no cursor: take the one that the page before gave")
        return found.number

    def _row(
        self,
        table: str,
        analyst: str,
        question: str,
        request: str,
        terms: str,
        state: str,
        ledger_request: str,
    ) -> tuple[Any, ...]:
        id = secrets.token_hex(10)
        now = self._store.now()
        return (
            id, table, analyst, request, question, terms, now, state, None, "", None, None, "", ledger_request,
            None, None,
        )  # fmt: skip

    def _end(self, tx: sqlite3.Connection, id: str, state: str, **values: Any) -> None:
        finished = None if state == WAITING else self._store.now()
        changes = "".join(f", {name} = :{name}" for name in values)
        tx.execute(
            f"UPDATE asked SET state = :state, finished = :finished{changes} "
            "WHERE id = :id AND state <> 'answered'",
            {"id": id, "state": state, "finished": finished, **values},
        )


_OF_REQUEST = "SELECT * FROM asked WHERE of_table = ? AND analyst = ? AND request = ?"

_INSERT = (
    "INSERT OR IGNORE INTO asked (id, of_table, analyst, request, question, terms, at, state, finished, currency, "
    "price, share, source, ledger_request, answer, problem) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), sort_keys=True, ensure_ascii=False)


def _same(row: sqlite3.Row, question: str, terms: str) -> AskedQuestion:
    if (row["question"], row["terms"]) != (question, terms):
        raise RequestConflictError(
            f"the request id {row['request']!r} was used for another question; take a new one",
            request=row["request"], question=row["question"], analyst=row["analyst"],
        )  # fmt: skip
    return _question(row)


def _question(row: sqlite3.Row) -> AskedQuestion:
    return AskedQuestion(
        number=row["number"], id=row["id"], table=row["of_table"], analyst=row["analyst"], request=row["request"],
        question=row["question"], terms=json.loads(row["terms"]), at=row["at"], state=row["state"],
        finished=row["finished"], currency=row["currency"], price=row["price"], share=row["share"],
        source=row["source"], ledger_request=row["ledger_request"], answer_text=row["answer"] or "",
        problem=_plain(row["problem"]),
    )  # fmt: skip


def _plain(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)
