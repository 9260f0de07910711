"""What was asked of a server before: one's own questions, page by page."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from understudy.client.decode import CURRENCIES
from understudy.client.transport import Transport
from understudy.pages import notebook
from understudy.percent import percent_of

PAGE = 100
"""Questions that are fetched at once."""


@dataclass(frozen=True, slots=True, repr=False)
class AskedBefore:
    """A question that was put to a server.

    id        under which a connection's `answer` fetches its answer
    table     the name of the table that it was put to
    analyst   who asked it
    request   the request id under which it was asked
    question  its text
    terms     the price or the error that it was asked with, or whether an uncertified answer was welcome
    at        when it was asked, in UTC
    finished  when it was answered or refused, in UTC; None before that
    state     `answered`, `waiting` (for approval), `refused` (also where it was denied, or expired), or `asking`
    source    where the answer came from, as in `Answer.source`; empty without one
    currency  of the price: `epsilon` or `rho`
    price     what was charged, in `currency`; None where there is no answer
    share     the part of the whole budget that this is
    problem   why it was refused, in words; empty where it was not
    """

    id: str
    table: str
    analyst: str
    request: str
    question: str
    terms: Mapping[str, Any]
    at: dt.datetime
    finished: dt.datetime | None
    state: str
    source: str
    currency: str
    price: float | None
    share: float | None
    problem: str

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> AskedBefore:
        """A question in a server's reply, `plain`."""
        same = ("id", "table", "analyst", "request", "question", "terms", "state", "source", "price", "share")
        return cls(
            **{name: plain[name] for name in same},
            at=dt.datetime.fromisoformat(plain["at"]),
            finished=None if plain["finished"] is None else dt.datetime.fromisoformat(plain["finished"]),
            currency=plain["currency"] if plain["currency"] in CURRENCIES else "",
            problem="" if plain["problem"] is None else str(plain["problem"].get("detail", "")),
        )

    def __repr__(self) -> str:
        return f"AskedBefore({self.id!r}, {self.question!r}, {self.state})"

    @property
    def outcome(self) -> str:
        """What became of it, in a word or two: where the answer came from, or the state."""
        return self.source or self.state

    def _repr_html_(self) -> str:
        known = {
            "table": self.table,
            "asked": f"{self.at:%Y-%m-%d %H:%M:%S} UTC",
            "outcome": self.outcome,
            **({} if self.share is None else {"part of the budget": percent_of(self.share)}),
            **({"refused": self.problem} if self.problem else {}),
            "id": self.id,
        }
        return notebook.panel(self.question, notebook.facts(known))


class History:
    """Questions that were asked, the newest first: a loop over it fetches them page by page, as far as it goes.

    An analyst sees their own; an auditor or a custodian everybody's. `Connection.history` makes one: `filters`
    choose questions, and `transport` sends the requests, each of which can raise an `AccessError` or a
    `ServerError`.
    """

    def __init__(self, transport: Transport, filters: Mapping[str, str]) -> None:
        self._transport = transport
        self._filters = dict(filters)

    def __iter__(self) -> Iterator[AskedBefore]:
        after = ""
        while True:
            wanted = {**self._filters, "after": after, "limit": str(PAGE)}
            page = self._transport.get("history", parameters=wanted)
            for plain in page["questions"]:
                yield AskedBefore.from_plain(plain)
            after = page["next"] or ""
            if not after:
                return

    def __repr__(self) -> str:
        chosen = ", ".join(f"{name}={value!r}" for name, value in self._filters.items() if value)
        return f"History({chosen})"

    def _repr_html_(self) -> str:
        found = list(islice(self, notebook.MOST_ROWS + 1))
        rows = [
            [
                f"{one.at:%Y-%m-%d %H:%M}",
                one.question,
                one.outcome,
                "" if one.share is None else percent_of(one.share),
                one.id,
            ]
            for one in found[: notebook.MOST_ROWS]
        ]
        heads = ["asked (UTC)", "question", "outcome", "part of the budget", "id"]
        note = "There are older ones: loop over the history." if len(found) > notebook.MOST_ROWS else ""
        return notebook.panel("History", notebook.table(heads, rows), note=note)
