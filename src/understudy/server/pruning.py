"""Forgetting old questions: what `server.db` need not hold for ever.

Questions that ended, approvals that were decided, and logins that ran out are removed once they are old enough.
Tokens and the audit log stay. No budget depends on what is removed: the ledger holds what was charged under every
request, so that a request that was paid for gets its answer again, from the ledger, and pays nothing. A free
answer that is asked for again under an old request id is deduced anew, within its error again, and may be another
number.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from understudy.errors import ParameterError
from understudy.server.approvals import APPROVED, WAITING
from understudy.server.audit_log import AuditLog
from understudy.server.store import ServerStore, as_text

LEAST_DAYS = 8.0
"""Nothing younger is removed: an approval may be waited for during seven days."""

ROWS = 500
"""Rows that one transaction removes, so that a server that runs waits for none of them long."""

_DAY = 86400.0

_OPEN = (
    "EXISTS (SELECT 1 FROM approval WHERE approval.of_table = asked.of_table AND approval.analyst = "
    f"asked.analyst AND approval.request = asked.request AND approval.state IN ('{WAITING}', '{APPROVED}'))"
)
_OLD = {
    "asked": f"coalesce(finished, at) < :before AND NOT {_OPEN}",
    "approval": f"coalesce(decided, expires) < :before AND state NOT IN ('{WAITING}', '{APPROVED}')",
    "login": "expires < :before",
}


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed: how many questions, approvals and logins from before a time (seconds since 1970)."""

    before: float
    questions: int
    approvals: int
    logins: int


def prune(store: ServerStore, *, days: float, by: str) -> Pruned:
    """Remove what ended more than `days` ago; who does so (`by`) is written into the audit log first.

    It may be called while a server runs, and again where it was interrupted. The space is used for what comes: the
    file does not grow until it is needed, and does not shrink either. Raises a `ParameterError` for fewer days
    than `LEAST_DAYS`.
    """
    if not days >= LEAST_DAYS:
        raise ParameterError(
            f"what is kept must be at least {LEAST_DAYS:g} days old before it is removed, not {days:g}",
            remedy="an approval may be waited for during seven days",
        )
    store.flush()
    before = store.now() - days * _DAY
    AuditLog(store).write(by, "prune", {"before": as_text(before)})
    questions, approvals, logins = (
        _removed(store, table, before) for table in ("asked", "approval", "login")
    )
    return Pruned(before, questions, approvals, logins)


def _removed(store: ServerStore, table: str, before: float) -> int:
    key = "hash" if table == "login" else "number"
    statement = (
        f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {_OLD[table]} LIMIT {ROWS})"
    )
    found = 0
    while removed := _in_one(store, statement, before):
        found += removed
    return found


def _in_one(store: ServerStore, statement: str, before: float) -> int:
    with store.writing(durable=False) as tx:
        done: sqlite3.Cursor = tx.execute(statement, {"before": before})
        return done.rowcount
