"""Questions above a threshold: kept until a custodian approves or denies them.

Prices are public, so that a question waits tells nothing about the table. What is approved is run by the server:
one run at a time may claim it. A claim goes with the server that made it: after a kill the next server claims the
question again and asks it under the same request id, for which the ledger pays once.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from understudy.errors import ParameterError, RequestConflictError
from understudy.server.asked import REFUSED
from understudy.server.audit_log import AuditLog
from understudy.server.problems import Problem
from understudy.server.store import ServerStore, as_text
from understudy.server.tokens import Caller

if TYPE_CHECKING:
    from understudy.privacy.cost import Cost

WAITING, APPROVED, DENIED, EXPIRED, ANSWERED = "waiting", "approved", "denied", "expired", "answered"

LIFE_SECONDS = 7 * 86400.0
"""After which a question that was not run expires."""

SERVER = "server"
"""Who denies a question that was approved and could not be paid or asked when its turn came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question that needs approval. `price` is in `currency`, `share` its part of the whole budget.

    `terms` are the arguments it is asked with, and `most` is what the caller agreed to be charged, None for any.
    Times are seconds since 1970. `reason` is what the analyst is told
    when it is denied.
    """

    id: str
    table: str
    analyst: str
    agent: bool
    token_id: str
    request: str
    question: str
    terms: dict[str, Any]
    currency: str
    price: float
    share: float
    why: str
    at: float
    expires: float
    state: str
    decided_by: str
    decided: float | None
    reason: str
    most: float | None = None

    def as_dict(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in ("token_id", "most")}
        times = {name: plain[name] for name in ("at", "expires", "decided")}
        return plain | {name: None if at is None else as_text(at) for name, at in times.items()}


def ended(state: str, reason: str) -> Problem:
    """What the analyst of a question is told that was denied, for a `reason`, or that nobody decided about."""
    if state == DENIED:
        return Problem(
            403,
            DENIED,
            f"The custodian denied this question: {reason}",
            hint="Ask another question, or talk to the custodian; a new request id asks anew.",
        )
    return Problem(
        403,
        EXPIRED,
        "Nobody decided about this question within seven days.",
        hint="Ask it again under a new request id.",
    )


class Approvals:
    """The approvals in a store. What is decided is written into the audit log in the same transaction.

    So is what becomes of the question itself: one that was denied or has expired waits no longer, and is refused.
    """

    def __init__(self, store: ServerStore) -> None:
        self._store = store
        self._log = AuditLog(store)
        self._run = store.opening

    def ask(
        self, caller: Caller, table: str, question: str, request: str, terms: Mapping[str, Any], price: Cost,
        share: float, why: str = "", most: float | None = None,
    ) -> str:  # fmt: skip
        """Keep a question for approval; the id under which it waits.

        A request that was kept before has its id again; with another question or other terms it is a
        `RequestConflictError`.
        """
        now = self._store.now()
        told = json.dumps(dict(terms), sort_keys=True)
        with self._store.writing() as tx:
            self._expire(tx, now)
            row = tx.execute(
                "SELECT id, question, terms FROM approval WHERE of_table = ? AND analyst = ? AND request = ?",
                (table, caller.analyst, request),
            ).fetchone()
            if row is not None:
                if (row["question"], row["terms"]) != (question, told):
                    raise RequestConflictError(
                        f"the request id {request!r} was used for another question; take a new one",
                        request=request, question=row["question"], analyst=caller.analyst,
                    )  # fmt: skip
                return row["id"]
            id = secrets.token_hex(6)
            tx.execute(
                "INSERT INTO approval (id, of_table, analyst, agent, token, request, question, terms, currency, "
                "price, share, why, at, expires, state, most, decided_by, reason, claimed_by) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', '')",
                (
                    id, table, caller.analyst, caller.agent, caller.token_id, request, question, told,
                    price.currency, price.amount, share, why, now, now + LIFE_SECONDS, WAITING, most,
                ),
            )  # fmt: skip
            self._log.write_in(
                tx, caller.analyst, "ask for approval", {"approval": id, "table": table, "share": share}
            )
        return id

    def waiting(self) -> list[Approval]:
        """What waits for a decision, the oldest first."""
        return self.all(WAITING)

    def all(self, state: str | None = None, *, limit: int = 1000) -> list[Approval]:
        """The approvals in a state, or in any, the oldest first; the newest `limit` of them."""
        self.expire()
        with self._store.reading() as tx:
            rows = tx.execute(
                "SELECT * FROM approval WHERE ? IS NULL OR state = ? ORDER BY number DESC LIMIT ?",
                (state, state, limit),
            ).fetchall()
        return [_approval(row) for row in reversed(rows)]

    def get(self, id: str) -> Approval | None:
        self.expire()
        with self._store.reading() as tx:
            row = tx.execute("SELECT * FROM approval WHERE id = ?", (id,)).fetchone()
        return None if row is None else _approval(row)

    def find(self, table: str, analyst: str, request: str) -> Approval | None:
        """The approval that an analyst's request waits, or waited, for."""
        self.expire()
        with self._store.reading() as tx:
            row = tx.execute(
                "SELECT * FROM approval WHERE of_table = ? AND analyst = ? AND request = ?",
                (table, analyst, request),
            ).fetchone()
        return None if row is None else _approval(row)

    def same(self, table: str, analyst: str, question: str, terms: Mapping[str, Any]) -> Approval | None:
        """What the same question of an analyst waits for already, under any request id; None where it does not."""
        self.expire()
        with self._store.reading() as tx:
            row = tx.execute(
                "SELECT * FROM approval WHERE of_table = ? AND analyst = ? AND question = ? AND terms = ? "
                "AND state IN (?, ?) ORDER BY number LIMIT 1",
                (table, analyst, question, json.dumps(dict(terms), sort_keys=True), WAITING, APPROVED),
            ).fetchone()
        return None if row is None else _approval(row)

    def approve(self, id: str, by: str) -> Approval:
        """Let a waiting question be asked; a ParameterError where it does not wait, with its state."""
        return self._decide(id, by, APPROVED, "")

    def deny(self, id: str, by: str, reason: str) -> Approval:
        """Refuse a waiting question, with a reason that the analyst reads."""
        if not reason.strip():
            raise ParameterError("a denial needs a reason: the analyst reads it")
        return self._decide(id, by, DENIED, reason)

    def claim(self) -> Approval | None:
        """An approved question that no run of this server has taken yet, now taken; None where there is none.

        It is the caller's until `answered` or `refused` is called, or this server ends.
        """
        now = self._store.now()
        if not self._to_run():
            return None
        with self._store.writing() as tx:
            self._expire(tx, now)
            row = tx.execute(
                "UPDATE approval SET claimed_by = ? WHERE number = (SELECT min(number) FROM approval "
                "WHERE state = ? AND claimed_by <> ?) RETURNING *",
                (self._run, APPROVED, self._run),
            ).fetchone()
        return None if row is None else _approval(row)

    def answered(self, id: str) -> None:
        """The claimed question was answered."""
        self._end(id, ANSWERED, "")

    def refused(self, id: str, reason: str) -> None:
        """The claimed question could not be asked, for instance because the budget no longer suffices."""
        self._end(id, DENIED, reason)

    def release(self, id: str) -> None:
        """Give a claim back, where the ledger or the table could not be reached: it is claimed again later."""
        with self._store.writing() as tx:
            tx.execute("UPDATE approval SET claimed_by = '' WHERE id = ? AND state = ?", (id, APPROVED))

    def _to_run(self) -> bool:
        with self._store.reading() as tx:
            return bool(
                tx.execute(
                    "SELECT EXISTS (SELECT 1 FROM approval WHERE state = ? AND claimed_by <> ?)",
                    (APPROVED, self._run),
                ).fetchone()[0]
            )

    def _decide(self, id: str, by: str, state: str, reason: str) -> Approval:
        now = self._store.now()
        self.expire()
        with self._store.writing() as tx:
            row = tx.execute("SELECT * FROM approval WHERE id = ?", (id,)).fetchone()
            if row is None:
                raise ParameterError(
                    f"there is no approval {id!r}: `understudy approvals list` shows what waits"
                )
            if row["state"] != WAITING:
                raise ParameterError(f"the question {id} is {row['state']} already and waits for no decision")
            tx.execute(
                "UPDATE approval SET state = ?, decided_by = ?, decided = ?, reason = ? WHERE id = ?",
                (state, by, now, reason, id),
            )
            if state == DENIED:
                self._refuse(tx, row, DENIED, reason)
            act = "approve" if state == APPROVED else "deny"
            facts = {
                "approval": id,
                "table": row["of_table"],
                "analyst": row["analyst"],
                "share": row["share"],
            }
            self._log.write_in(tx, by, act, facts | ({"reason": reason} if reason else {}))
            row = tx.execute("SELECT * FROM approval WHERE id = ?", (id,)).fetchone()
        return _approval(row)

    def _end(self, id: str, state: str, reason: str) -> None:
        with self._store.writing() as tx:
            row = tx.execute(
                "UPDATE approval SET state = ?, reason = ?, "
                "decided_by = CASE WHEN ? = '' THEN decided_by ELSE ? END WHERE id = ? AND state = ? "
                "RETURNING of_table, analyst, request",
                (state, reason, reason, SERVER, id, APPROVED),
            ).fetchone()
            if row is not None:
                if state == DENIED:
                    self._refuse(tx, row, DENIED, reason)
                facts = {"approval": id, "table": row["of_table"]} | ({"reason": reason} if reason else {})
                self._log.write_in(
                    tx, SERVER, f"approved question {'answered' if state == ANSWERED else 'refused'}", facts
                )

    def expire(self) -> None:
        """End what nobody decided in time; what a run has claimed may have been paid for, and is left to it."""
        now = self._store.now()
        with self._store.reading() as tx:
            due = tx.execute(f"SELECT EXISTS (SELECT 1 FROM approval WHERE {_DUE})", (now,)).fetchone()[0]
        if due:
            with self._store.writing() as tx:
                self._expire(tx, now)

    def _expire(self, tx: sqlite3.Connection, now: float) -> None:
        for row in tx.execute(
            f"UPDATE approval SET state = '{EXPIRED}' WHERE {_DUE} RETURNING id, of_table, analyst, request",
            (now,),
        ).fetchall():
            self._refuse(tx, row, EXPIRED, "")
            self._log.write_in(tx, SERVER, "approval expired", {"approval": row["id"]})

    def _refuse(self, tx: sqlite3.Connection, row: sqlite3.Row, state: str, reason: str) -> None:
        """End the question of an approval, unless its run has ended it in words of its own."""
        tx.execute(
            f"UPDATE asked SET state = '{REFUSED}', finished = ?, problem = ? "
            f"WHERE of_table = ? AND analyst = ? AND request = ? AND state = '{WAITING}'",
            (
                self._store.now(), json.dumps(ended(state, reason).as_plain(), ensure_ascii=False),
                row["of_table"], row["analyst"], row["request"],
            ),
        )  # fmt: skip


_DUE = f"expires <= ? AND (state = '{WAITING}' OR (state = '{APPROVED}' AND claimed_by = ''))"


def _approval(row: sqlite3.Row) -> Approval:
    return Approval(
        id=row["id"], table=row["of_table"], analyst=row["analyst"], agent=bool(row["agent"]),
        token_id=row["token"], request=row["request"], question=row["question"], terms=json.loads(row["terms"]),
        currency=row["currency"], price=row["price"], share=row["share"], why=row["why"], at=row["at"],
        expires=row["expires"], state=row["state"], decided_by=row["decided_by"], decided=row["decided"],
        reason=row["reason"], most=row["most"],
    )  # fmt: skip
