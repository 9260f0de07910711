"""What a SELECT does when it is executed: a question to the gate, or rows of the desk; and what EXPLAIN tells.

A connection gives one statement after the other. Where an analyst asks faster than their rate, a statement waits
for its turn, within `PATIENCE`, instead of being refused: programs that speak Postgres do not try again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from understudy.ledger.interface import fresh_request
from understudy.query.column import Column
from understudy.server.answering import plainly
from understudy.server.gate import Gate
from understudy.server.gate_reply import GateReply
from understudy.server.inquiry import AUTO, Inquiry
from understudy.server.pace import RateLimiter
from understudy.server.pg import notices
from understudy.server.pg.lexer import statements_of
from understudy.server.pg.parameters import with_lists
from understudy.server.pg.plans import Row, Select, Values
from understudy.server.pg.routing import SYNTHETIC, PublicResult, PublicRows, Router, SelectReader
from understudy.server.pg.settings import Settings
from understudy.server.pg.states import Refusal
from understudy.server.pg.values import as_text
from understudy.server.problems import Problem
from understudy.server.tokens import Caller

PATIENCE = 30.0
"""Seconds that a statement waits where its analyst asks faster than their rate."""

CATALOG_RATE = 200.0
"""Statements a second that an analyst's programs may have read or answered by the desk, and as many at once."""

Given = TypeVar("Given")


class PublicAnswers(PublicRows, Protocol):
    """What answers SQL on public rows."""

    def answer(self, sql: str, user: str, settings: Mapping[str, str]) -> PublicResult:
        """The rows of a statement, and the settings that it makes."""
        ...


class SharedDesk:
    """What all connections of the door share: the gate, the reader of SELECTs, and what answers on public rows."""

    def __init__(self, gate: Gate, catalog: PublicAnswers, synthetic: PublicAnswers) -> None:
        self.gate = gate
        self.catalog = catalog
        self.synthetic = synthetic
        self.router = Router(gate.served, catalog, synthetic)
        self.pace = RateLimiter(CATALOG_RATE)


class Asker:
    """Asks for one connection. `tell` is given the notices of answers.

    `last_request` is the request id of the question that was asked last, known before it is asked: whoever cancels
    the statement is told it.
    """

    def __init__(
        self, shared: SharedDesk, caller: Caller, settings: Settings, tell: Callable[[bytes, str], None]
    ) -> None:
        self._shared = shared
        self._caller = caller
        self._settings = settings
        self._tell = tell
        self.last_request = ""

    # ---- reading

    async def read(self, statement: Any, oids: Sequence[int]) -> Select:
        """Where a SELECT goes and what comes back, without asking it."""
        router = self._shared.router
        bounds = self._settings.is_on("understudy.bounds")
        known = router.known(statement, oids, bounds=bounds)
        if known is not None:
            return known
        reader = SelectReader(self._caller.analyst, self._settings.as_dict(), bounds)
        return await self._on_desk(partial(router.read, statement, oids, reader))

    async def _on_desk(self, work: Callable[[], Given]) -> Given:
        """Have public work done in turn with other analysts', no faster than the desk's rate."""
        await _patiently(self._admitted)
        return await self._shared.gate.free.run(plainly(work), analyst=self._caller.analyst)

    async def _admitted(self) -> None:
        self._shared.pace.admit(self._caller.analyst)

    # ---- asking

    async def rows(self, select: Select, values: Values) -> Sequence[Row]:
        """Execute a SELECT: its rows as the columns that it was described with."""
        text = select.filled(values)
        if select.goes_to != "gate":
            return await self._public(select, text)
        inquiry = self._inquiry(select, text)
        self.last_request = inquiry.request or inquiry.fresh
        try:
            reply = await _patiently(partial(self._asked, inquiry))
        except Problem as problem:
            if problem.status < 500 and problem.status != 429:
                self._forget_request()
            raise
        self._forget_request()
        if reply.is_waiting:
            raise notices.waits(reply)
        if reply.answer.get("problem"):
            raise notices.not_made(reply)
        severity = "warning" if reply.answer.get("source") == "uncertified" else "notice"
        self._tell(notices.answered(reply, select.names), severity)
        return self._answer_rows(select, reply)

    async def _asked(self, inquiry: Inquiry) -> GateReply:
        return await self._shared.gate.ask(self._caller, inquiry)

    def _forget_request(self) -> None:
        """The name is that of one question, which got its reply; without one it stays, to be asked again."""
        if self._settings["understudy.request"]:
            self._settings.set("understudy.request", "")

    def _inquiry(self, select: Select, text: str) -> Inquiry:
        settings = self._settings
        if select.parameters:
            text = with_lists(statements_of(text)[0]).text
        inquiry = Inquiry(
            table=select.table,
            question=text,
            request=settings["understudy.request"],
            fresh=fresh_request(),
            uncertified=settings.is_on("understudy.uncertified"),
            epsilon=settings.number("understudy.epsilon"),
            rho=settings.number("understudy.rho"),
            error=settings.number("understudy.error"),
            in_session=settings.is_on("understudy.in_session"),
            noise=settings["understudy.noise"],
            why=settings["understudy.why"],
        )
        if inquiry.noise != AUTO and not inquiry.is_direct:
            raise Refusal(
                "22023",
                "understudy.noise is for questions with a price of their own; the session has noise of its own",
                hint="SET understudy.error = 100 (people), or RESET understudy.noise.",
            )
        return inquiry

    def _answer_rows(self, select: Select, reply: GateReply) -> Sequence[Row]:
        """The rows of an answer in the columns that were described, with bounds where they are wanted."""
        assert select.asks is not None
        told = [(column["name"], column["kind"]) for column in reply.answer["columns"]]
        if told != [(column.name, column.kind) for column in select.asks]:
            raise _changed()
        types = zip(select.asks, (column["type"] for column in reply.answer["columns"]), strict=True)
        if reply.answer["rows"] and any(was.type not in (now, "text") for was, now in types):
            raise _changed()  # fewer groups may have a narrower type than all have; no other change is possible
        bounds = len(select.columns) != len(select.asks)
        makers = [_maker(column, bounds=bounds) for column in select.asks]
        found: list[Row] = []
        for row in reply.answer["rows"]:
            cells: list[Any] = []
            for make, cell in zip(makers, row, strict=True):
                make(cells, cell)
            found.append(cells)
        return found

    async def _public(self, select: Select, text: str) -> Sequence[Row]:
        shared = self._shared
        run = shared.synthetic if select.goes_to == SYNTHETIC else shared.catalog
        user, settings = self._caller.analyst, self._settings.as_dict()
        result = await self._on_desk(lambda: run.answer(text, user, settings))
        found = result.rows
        for name, value in result.settings.items():
            self._settings.set(name, value)
        if [column.type.oid for column in found.columns] != [column.oid for column in select.columns]:
            raise Refusal(
                "0A000", "cached plan must not change result type", hint="Give the statement again."
            )
        if select.goes_to == SYNTHETIC:
            self._tell(notices.SYNTHETIC_ROWS, "notice")
        return found.rows

    # ---- prices

    async def explained(self, select: Select, values: Values, form: str) -> Sequence[Row]:
        """The rows of EXPLAIN: what the question would cost. Never looks."""
        text = select.filled(values)
        if select.goes_to != "gate":
            told: dict[str, Any] = {"free": True, "about": select.goes_to}
            lines: Sequence[str] = [f"Public rows of the {select.goes_to} (free: nothing private is read)"]
        else:
            told = await self._priced(select, text)
            lines = notices.explained(told, self._how())
        return [[json.dumps([{"Plan": told}], indent=2)]] if form == "json" else [[line] for line in lines]

    async def _priced(self, select: Select, text: str) -> dict[str, Any]:
        inquiry = self._inquiry(select, text)
        gate = self._shared.gate
        (told,) = await _patiently(lambda: gate.price(self._caller, [inquiry]))
        problem = told.get("problem")
        if problem is not None:
            known = ("type", "title", "status", "code", "detail", "hint", "suggestions")
            more = {name: value for name, value in problem.items() if name not in known}
            raise Problem(
                problem["status"],
                problem["code"],
                problem["detail"],
                hint=problem["hint"],
                suggestions=problem["suggestions"],
                more=more,
            )
        return told

    def _how(self) -> str:
        for name in ("epsilon", "rho", "error"):
            value = self._settings[f"understudy.{name}"]
            if value and self._settings.is_on("understudy.in_session"):
                return f"in the session, within {name} {value}"
            if value:
                noise = self._settings["understudy.noise"]
                named = "" if noise == AUTO else f" and {noise} noise"
                return f"by itself, with {name} {value}{named}"
        whose = "you" if self._shared.gate.served.terms.own else "anybody"
        return f"in the session, where what {whose} bought is free"


def _maker(column: Column, *, bounds: bool) -> Callable[[list[Any], Any], None]:
    """What adds a cell of a column to a row: its value, and its bounds where they are wanted and there are any.

    A label that is a number among labels that are not is sent as the text that its column was described as.
    """
    if column.kind == "value" and bounds:

        def wide(cells: list[Any], cell: Any) -> None:
            cells += (cell["value"], cell["low"], cell["high"])

        return wide
    if column.kind == "value":
        return lambda cells, cell: cells.append(cell["value"])
    if column.type == "text":
        return lambda cells, cell: cells.append(
            cell if cell is None or isinstance(cell, str) else as_text(cell).decode()
        )
    return list.append


def _changed() -> Refusal:
    return Refusal(
        "0A000",
        "cached plan must not change result type",
        hint="Prepare the statement again, and execute it.",
    )


async def _patiently(work: Callable[[], Any]) -> Any:
    """Do work, waiting where the analyst's rate says so; a `Problem` where that takes longer than `PATIENCE`."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while True:
        try:
            return await work()
        except Problem as problem:
            wait = problem.retry_after or 0.0
            if problem.code != "rate" or loop.time() + wait > end:
                raise
            await asyncio.sleep(wait + 0.001)
