"""Tables that a custodian has paused: nothing is bought of them until they are resumed."""

from __future__ import annotations

import time
from dataclasses import dataclass

from understudy.server.audit_log import AuditLog
from understudy.server.store import ServerStore

REMEMBERED_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Pause:
    """Who paused a table, when (seconds since 1970) and why."""

    table: str
    by: str
    reason: str
    at: float


class Pauses:
    """The pauses in a store; another process's are noticed within a second."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store
        self._log = AuditLog(store)
        self._known: tuple[dict[str, Pause], float] = {}, 0.0

    def pause(self, table: str, *, by: str, reason: str = "") -> None:
        with self._store.writing() as tx:
            tx.execute(
                "INSERT OR REPLACE INTO pause VALUES (?, ?, ?, ?)", (table, by, reason, self._store.now())
            )
            self._log.write_in(tx, by, "pause", {"table": table, "reason": reason})
        self._known = {}, 0.0

    def resume(self, table: str, *, by: str) -> None:
        with self._store.writing() as tx:
            if tx.execute("DELETE FROM pause WHERE of_table = ?", (table,)).rowcount:
                self._log.write_in(tx, by, "resume", {"table": table})
        self._known = {}, 0.0

    def of(self, table: str) -> Pause | None:
        """The pause of a table, or None while it is served."""
        known, until = self._known
        if until <= time.monotonic():
            known = {pause.table: pause for pause in self.all()}
            self._known = known, time.monotonic() + REMEMBERED_SECONDS
        return known.get(table)

    def all(self) -> list[Pause]:
        with self._store.reading() as tx:
            return [Pause(*row) for row in tx.execute("SELECT * FROM pause ORDER BY of_table").fetchall()]
