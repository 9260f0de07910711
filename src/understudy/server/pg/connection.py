"""One client after its start: messages in, messages out, one after the other, until it leaves.

    Query                               statements of a text, each executed before the next is read
    Parse, Bind, Describe, Execute …    the same in steps; after an error everything is skipped up to Sync

A statement that is cancelled, or takes longer than `statement_timeout`, ends with an error; what was debited for
it is finished and kept under its request id, which the error tells: the same statement under it pays nothing more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from understudy.server.gate import Gate
from understudy.server.logs import log_failure, log_request
from understudy.server.metrics import Metrics
from understudy.server.pg import wire
from understudy.server.pg.asking import Asker, SharedDesk
from understudy.server.pg.copying import copied
from understudy.server.pg.frames import (
    BindMessage,
    Fields,
    ParseMessage,
    ProtocolError,
    WireFrame,
    formats_of,
)
from understudy.server.pg.lexer import StatementText, check_length, statements_of
from understudy.server.pg.notices import is_wanted
from understudy.server.pg.parameters import decoded
from understudy.server.pg.planning import StatementPlanner
from understudy.server.pg.plans import Row, StatementPlan, described
from understudy.server.pg.portals import Portal
from understudy.server.pg.session import IDLE, SqlSession
from understudy.server.pg.settings import REPORTED, Settings
from understudy.server.pg.states import Refusal, ended, refusal_of, stopping
from understudy.server.pg.transport import ClientTransport, Gone
from understudy.server.pg.values import encoded, encoders
from understudy.server.problems import Problem, problem_of
from understudy.server.tokens import Caller

DOOR = "pg"

IDLE_SECONDS = 3600.0
"""How long a connection may be silent."""

MOST_STATEMENTS = 100
"""Statements of one text."""

MOST_IN_A_ROW = 100
LONGEST_TURN = 0.005
"""Messages, and seconds, after which other connections have their turn, where more messages have come already."""


class PgConnection:
    """The conversation with one client that proved who it is."""

    def __init__(
        self,
        transport: ClientTransport,
        shared: SharedDesk,
        caller: Caller,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        self._transport = transport
        self._gate: Gate = shared.gate
        self.caller = caller
        self._metrics = metrics
        self.session = SqlSession(settings)
        self._told = {name: settings[name] for name in REPORTED}
        self._asker = Asker(shared, caller, settings, self._tell)
        self._planner = StatementPlanner(self.session, self._asker, self._tell)
        self._is_skipping = False
        self._is_busy = False
        self._cancels = 0
        self._is_stopping = False
        self._in_a_row = 0
        self._turn_began = 0.0
        self._task: asyncio.Task[Any] | None = None
        self._handlers: dict[int, Callable[[bytes], Awaitable[None]]] = {
            ord("P"): self._parse, ord("B"): self._bind, ord("D"): self._describe, ord("E"): self._execute,
            ord("C"): self._close,
        }  # fmt: skip

    # ---- from outside

    def cancel(self) -> None:
        """Have the statement that is being executed end with an error; nothing where none is."""
        if self._is_busy and self._task is not None:
            self._cancels += 1
            self._task.cancel()

    def stop(self) -> None:
        """End after the statement that is being executed, or at once where none is."""
        self._is_stopping = True
        if not self._is_busy and self._task is not None:
            self._task.cancel()

    # ---- the conversation

    async def converse(self) -> None:
        """Read and answer messages until the client leaves, is silent for too long, or must go.

        Raises `Gone`, and a `Refusal` that is fatal.
        """
        self._task = asyncio.current_task()
        while True:
            frame = await self._next()
            if frame.kind == ord("X"):
                return
            if self._is_skipping and frame.kind != ord("S"):
                continue
            try:
                await self._answered(frame)
            except asyncio.CancelledError:
                if not self._was_cancelled():
                    raise
            if self._is_stopping:
                raise stopping()

    def _was_cancelled(self) -> bool:
        """Whether a client's wish to cancel arrived here; it may come when its statement has just ended."""
        if not self._cancels or self._task is None:
            return False
        self._cancels -= 1
        self._task.uncancel()
        return True

    async def _next(self) -> WireFrame:
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                await self._let_others()
                return await self._transport.frame()
        except TimeoutError:
            raise Refusal(
                "57P05",
                "terminating connection due to idle-session timeout",
                hint="Connect again.",
                fatal=True,
            ) from None
        except ProtocolError as error:
            raise Refusal("08P01", str(error), fatal=True) from None
        except asyncio.CancelledError:
            if self._was_cancelled():
                return await self._next()
            if self._is_stopping:
                raise stopping() from None
            raise

    async def _let_others(self) -> None:
        """Let the event loop go round: messages that have come are read without waiting, however many they are."""
        self._in_a_row += 1
        now = time.monotonic()
        if self._in_a_row >= MOST_IN_A_ROW or now - self._turn_began > LONGEST_TURN:
            await asyncio.sleep(0)
            self._in_a_row, self._turn_began = 0, time.monotonic()

    async def _answered(self, frame: WireFrame) -> None:
        kind, body = frame
        transport = self._transport
        if kind == ord("S"):
            self._is_skipping = False
            self._synced()
        elif kind == ord("Q"):
            await self._tried(self._simple, body)
            self._synced()
        elif kind == ord("H"):
            transport.flush()
        elif kind in self._handlers:
            self._is_skipping = not await self._tried(self._handlers[kind], body)
        elif kind == ord("F"):
            self._refuse(Refusal("0A000", "function calls are not answered: write a SELECT"))
            self._is_skipping = False
            self._synced()
        elif kind == ord("p"):
            raise Refusal("08P01", "a password was sent where none was asked for", fatal=True)
        await transport.drained()  # CopyData and its kin are passed over outside of COPY, as Postgres does

    def _synced(self) -> None:
        """The end of what belongs together: portals outside of a transaction are over, the client may go on."""
        if self.session.state == IDLE:
            self.session.end_portals()
        changed = self.session.settings.changed_since(self._told)
        for name, value in changed.items():
            self._transport.write(wire.parameter_status(REPORTED[name], value))
            self._told[name] = value
        self._transport.write(wire.ready(self.session.state))
        self._transport.flush()

    async def _tried(self, handle: Callable[[bytes], Awaitable[None]], body: bytes | None) -> bool:
        """Do what a message says; False where that failed, which the client was told then."""
        began = time.perf_counter()
        self._is_busy = True
        self._asker.last_request = ""
        try:
            if body is None:
                raise Refusal("54000", "a message is at most 1 MiB", hint="Ask several shorter questions.")
            self._check_token()
            seconds = self.session.settings.timeout
            if seconds is None:
                await handle(body)
            else:
                async with asyncio.timeout(seconds):
                    await handle(body)
            return True
        except Refusal as refusal:
            self._refuse(refusal)
        except Problem as problem:
            if (
                problem.status >= 500 and problem.__cause__ is not None
            ):  # else it is said on purpose, as of a stop
                log_failure(problem, DOOR)
            log_request(
                DOOR, "SQL", "statement", problem.status, time.perf_counter() - began, self.caller.analyst
            )
            self._refuse(refusal_of(problem))
        except ProtocolError as error:
            self._refuse(Refusal("08P01", str(error)))
        except TimeoutError:
            self._refuse(ended("canceling statement due to statement timeout", self._asker.last_request))
        except asyncio.CancelledError:
            if not self._was_cancelled():
                raise
            self._refuse(ended("canceling statement due to user request", self._asker.last_request))
        except Gone:
            raise
        except Exception as error:  # whatever it is, the client is told that the server failed, and goes on
            log_failure(error, DOOR)
            self._refuse(refusal_of(problem_of(error)))
        finally:
            self._is_busy = False
        return False

    def _refuse(self, refusal: Refusal) -> None:
        self.session.fail()
        if refusal.fatal:
            raise refusal
        self._transport.write(refusal.encoded())
        self._transport.flush()  # some clients wait for the error before they send Sync

    def _check_token(self) -> None:
        """A token that was revoked, or expired, ends its connections with their next message."""
        if self._gate.tokens.still(self.caller.token_id, door=DOOR) is None:
            raise Refusal(
                "28000",
                "the token of this connection is not valid any more",
                hint="Connect again with another token; a custodian makes tokens.",
                fatal=True,
            )

    def _tell(self, notice: bytes, severity: str) -> None:
        if is_wanted(severity, self.session.settings["client_min_messages"]):
            self._transport.write(notice)

    # ---- simple

    async def _simple(self, body: bytes) -> None:
        fields = Fields(body)
        text = fields.text()
        fields.end()
        check_length(len(text))
        statements = statements_of(text)
        if not statements:
            self._transport.write(wire.EMPTY)
        if len(statements) > MOST_STATEMENTS:
            raise Refusal(
                "54000", f"a text has at most {MOST_STATEMENTS} statements", hint="Send it in parts."
            )
        for statement in statements:
            plan = await self._planner.plan(statement)
            if plan.parameters:
                raise Refusal(
                    "42P02", "there is no parameter $1", hint="Parameters belong to prepared statements."
                )
            await self._whole(plan)

    async def _whole(self, plan: StatementPlan) -> None:
        """Execute a statement and send all of its rows, as text."""
        self.session.check_works(plan)
        word = plan.word
        rows = await self._run(Portal(plan, ()))
        if plan.copy is None and plan.columns is not None:
            self._transport.write(described(plan.columns, plan.formats))
        await self._sent(plan, word, rows, plan.formats)

    async def _run(self, portal: Portal) -> Sequence[Row]:
        began = time.perf_counter()
        rows = await portal.rows()
        self._metrics.note_request(
            DOOR, "SQL", portal.plan.word.split(" ")[0], 200, time.perf_counter() - began
        )
        return rows

    async def _sent(
        self,
        plan: StatementPlan,
        word: str,
        rows: Sequence[Row],
        formats: tuple[int, ...],
        *,
        more: bool = False,
    ) -> None:
        transport = self._transport
        if plan.copy is not None:
            assert plan.columns is not None
            for chunk in copied(plan.columns, rows, plan.copy):
                transport.write(chunk)
                await transport.drained()
            return
        if plan.columns is not None:
            count = len(plan.columns)
            made = encoders([column.oid for column in plan.columns], formats_of(formats, count))
            for row in rows:
                transport.write(wire.data_row(encoded(row, made)))
                await transport.drained()
        if more:
            transport.write(wire.SUSPENDED)
        elif not word:
            transport.write(wire.EMPTY)
        else:
            transport.write(wire.complete(f"{word} {len(rows)}" if plan.counts else word))

    # ---- extended

    async def _parse(self, body: bytes) -> None:
        sent = ParseMessage.read(body)
        check_length(len(sent.statement))
        found = statements_of(sent.statement)
        if len(found) > 1:
            raise Refusal("42601", "cannot insert multiple commands into a prepared statement")
        plan = await self._planner.plan(found[0] if found else StatementText("", ()), sent.oids)
        self.session.check_works(plan)
        self.session.prepare(sent.name, plan)
        self._transport.write(wire.PARSED)

    async def _bind(self, body: bytes) -> None:
        sent = BindMessage.read(body)
        plan = self.session.statement(sent.statement)
        self.session.check_works(plan)
        wanted = len(plan.parameters)
        if len(sent.values) != wanted:
            raise Refusal(
                "08P01", f"bind message supplies {len(sent.values)} parameters, but {wanted} are required"
            )
        formats = formats_of(sent.formats, wanted)
        values = tuple(
            decoded(raw, oid, form)
            for raw, oid, form in zip(sent.values, plan.parameters, formats, strict=True)
        )
        if plan.columns is not None:
            formats_of(sent.result_formats, len(plan.columns))
        self.session.open(sent.portal, Portal(plan, values, sent.result_formats))
        self._transport.write(wire.BOUND)

    async def _describe(self, body: bytes) -> None:
        fields = Fields(body)
        what, name = fields.byte(), fields.text()
        fields.end()
        if what == ord("S"):
            plan = self.session.statement(name)
            self._transport.write(wire.parameter_description(plan.parameters))
            self._transport.write(described(None if plan.copy else plan.columns, ()))
        elif what == ord("P"):
            portal = self.session.portal(name)
            columns = None if portal.plan.copy else portal.plan.columns
            self._transport.write(described(columns, portal.formats))
        else:
            raise ProtocolError("a description is of a statement or of a portal")

    async def _execute(self, body: bytes) -> None:
        fields = Fields(body)
        name, most = fields.text(), fields.int32()
        fields.end()
        portal = self.session.portal(name)
        self.session.check_works(portal.plan)
        word = portal.plan.word
        if not portal.was_run:
            await self._run(portal)
        rows, more = await portal.forward(0 if portal.plan.copy else most)
        await self._sent(portal.plan, word, rows, portal.formats, more=more)

    async def _close(self, body: bytes) -> None:
        fields = Fields(body)
        what, name = fields.byte(), fields.text()
        fields.end()
        if what == ord("S"):
            self.session.prepared.pop(name, None)
        elif what == ord("P"):
            self.session.portals.pop(name, None)
        else:
            raise ProtocolError("what is closed is a statement or a portal")
        self._transport.write(wire.CLOSED)
