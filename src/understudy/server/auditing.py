"""What auditors and custodians read: ledgers, the verdict on them, and the server's own audit log.

That a ledger was verified or taken away is itself written into the audit log.
"""

from __future__ import annotations

from typing import Any

from understudy.errors import RefusedError
from understudy.ledger.declared import declared_witness
from understudy.ledger.export import ExportedLedger, exported, verify
from understudy.ledger.interface import LedgerEntry
from understudy.ledger.store import DurableLedger
from understudy.server.gate import Gate
from understudy.server.served_tables import OpenTable
from understudy.server.tokens import Caller


class Auditing:
    """The auditor's part of a gate. Its callers' role is checked by the door."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def entries(
        self, caller: Caller, table: str, *, after: int, limit: int, analyst: str | None, newest_first: bool
    ) -> dict[str, Any]:
        """A page of a ledger's entries, and the number to go on from; 0 where this is the last page."""

        def told(opened: OpenTable) -> dict[str, Any]:
            ledger = opened.project.ledger
            found = ledger.entries(after=after, limit=limit + 1, analyst=analyst, newest_first=newest_first)
            page = found[:limit]
            return {
                "table": table,
                "currency": ledger.budget.currency,
                "entries": [_entry(entry) for entry in page],
                "next": page[-1].number if len(found) > limit else 0,
            }

        return await self._gate.read(caller, table, told)

    async def verdict(self, caller: Caller, table: str) -> dict[str, Any]:
        """The independent verifier's verdict on a stored ledger, with what its witness says."""

        def told(opened: OpenTable) -> dict[str, Any]:
            ledger = _stored(opened)
            base = self._gate.table(table).path.parent
            witness = declared_witness(opened.project.declaration, base=base)
            found = verify(ledger.url, ledger.name, witness=witness)
            self._gate.audit.write(caller.analyst, "verify ledger", {"table": table, "sound": found["sound"]})
            return found

        return await self._gate.read(caller, table, told, alone="verify")

    async def export(self, caller: Caller, table: str, *, as_it_is: bool = False) -> ExportedLedger:
        """The ledger as one Python file that verifies itself, without the released answers.

        One that does not verify is refused, unless it is wanted `as_it_is`: then the file says what is wrong.
        """

        def told(opened: OpenTable) -> ExportedLedger:
            ledger = _stored(opened)
            base = self._gate.table(table).path.parent
            witness = declared_witness(opened.project.declaration, base=base)
            found = exported(ledger.url, ledger.name, answers=False, witness=witness, as_it_is=as_it_is)
            about = {"table": table, "sound": not found.problems}
            self._gate.audit.write(caller.analyst, "export ledger", about)
            return found

        return await self._gate.read(caller, table, told, alone="verify")

    async def log(self, caller: Caller, *, after: int, limit: int) -> dict[str, Any]:
        """A page of the audit log, and the number to go on from; 0 where this is the last page."""

        def told() -> dict[str, Any]:
            found = self._gate.audit.entries(after=after, limit=limit + 1)
            page = found[:limit]
            return {
                "entries": [entry.as_dict() for entry in page],
                "next": page[-1].number if len(found) > limit else 0,
            }

        return await self._gate.on_free(caller, told)

    async def log_verdict(self, caller: Caller) -> dict[str, Any]:
        """Whether the audit log's chain is whole, and its last number and hash."""

        def told() -> dict[str, Any]:
            problems = self._gate.audit.verify()
            number, hashed = self._gate.audit.head
            return {"sound": not problems, "problems": problems, "entries": number, "head": hashed}

        return await self._gate.on_free(caller, told, alone="verify")


def _entry(entry: LedgerEntry) -> dict[str, Any]:
    told = {name: getattr(entry, name) for name in LedgerEntry.__slots__}
    return told | {"cost": entry.cost.amount, "total": entry.total.amount}


def _stored(opened: OpenTable) -> DurableLedger:
    ledger = opened.project.ledger
    if not isinstance(ledger, DurableLedger) or not ledger.is_begun:
        raise RefusedError(
            "nothing was charged to this table yet, so that it has no ledger",
            remedy="Come back after a question",
        )
    return ledger
