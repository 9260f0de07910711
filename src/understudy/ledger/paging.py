"""Pages of a ledger's entries: what is asked for, and how a store finds it without reading the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Select, bindparam, select

from understudy.errors import ParameterError
from understudy.ledger.chain import Entry, is_sealed
from understudy.ledger.interface import LedgerEntry
from understudy.ledger.recorded import broken
from understudy.ledger.schema import ENTRY
from understudy.privacy.cost import Cost

MAX_PAGE = 10_000
"""Entries of one page."""

BEYOND = 2**63 - 1
"""A number that no entry has."""

KINDS = ("open", "debit", "answer", "step", "snapshot")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which entries are wanted; `Ledger.entries` explains the fields."""

    after: int
    limit: int
    analyst: str | None
    kind: str | None
    newest_first: bool

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MAX_PAGE:
            raise ParameterError(f"a page has between 1 and {MAX_PAGE:,} entries, not {self.limit}")
        if self.after < 0:
            raise ParameterError(f"entries have numbers from 1 on; `after` is at least 0, not {self.after}")
        if self.kind is not None and self.kind not in KINDS:
            raise ParameterError(f"{self.kind!r} is no kind of entry", remedy=f"take {', '.join(KINDS)}")

    def selects(self, entry: LedgerEntry) -> bool:
        """Whether an entry is of the wanted analyst and kind."""
        if self.analyst is not None and (entry.kind != "debit" or entry.analyst != self.analyst):
            return False
        return self.kind is None or entry.kind == self.kind

    def statement(self, ledger: str) -> tuple[Select[Any], dict[str, Any]]:
        """The statement that reads the page from a store, and its values."""
        wanted = {"analyst": self.analyst, "kind": self.kind}
        given = {key: value for key, value in wanted.items() if value is not None}
        # A bound on the number also where there is none: SQLite else reads the whole ledger backwards.
        after = self.after or (BEYOND if self.newest_first else 0)
        values = given | {"of": ledger, "most": self.limit, "after": after}
        return _statement(tuple(given), newest_first=self.newest_first), values


@cache
def _statement(selected: tuple[str, ...], *, newest_first: bool) -> Select[Any]:
    number: Any = ENTRY.c.number
    after = bindparam("after", type_=BigInteger())
    wanted = select(ENTRY).where(ENTRY.c.ledger == bindparam("of"))
    wanted = wanted.where(number < after if newest_first else number > after)
    for name in selected:
        wanted = wanted.where(ENTRY.c[name] == bindparam(name))
    return wanted.order_by(number.desc() if newest_first else number).limit(bindparam("most"))


def readable(entry: Entry, unit: type[Cost]) -> LedgerEntry:
    """A stored entry as its readers see it; raises a `LedgerError` where it is not what was written."""
    if not is_sealed(entry):
        raise broken(entry.number)
    return LedgerEntry(
        entry.number,
        entry.kind,
        entry.at,
        entry.analyst or "",
        entry.request or "",
        entry.question or "",
        entry.event or "",
        unit(entry.cost),
        unit(entry.total),
        entry.debit,
        entry.step,
        entry.hash,
    )
