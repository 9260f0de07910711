"""The gate: the one way of a question, whatever door it came through.

    caller → rate → size → compile → price → limit, approval → queue → session → log → time grid → reply

Rates and queues, and so whose turn it is, are those of its base (`turns`).

Doors find out who calls (`tokens`), translate, and call this; they decide nothing. Every method takes a `Caller`
and returns plain data, or raises a `Problem`. The gate does no mathematics: it calls `Session` and `Project`, and
only the ledger grants. What a method refuses and how long it takes depend on public values, on released answers,
and on how much work there is.

A question is asked in the session of its table, where it is free if it follows from what anybody bought, or
directly, at a price of its own. An answer that was given before is sent from memory without a thread. All others
are looked up among what is free first, on threads that no look occupies.

A request id belongs to one question of one analyst. Its answer is kept before it is sent, so that the same
request gets the same bytes; where the process was killed before, the question is asked again under the same id,
and the ledger (for a session, its journal) charges nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from understudy.errors import LedgerError, SourceError, StoreError, UnderstudyError
from understudy.ledger.interface import fresh_request
from understudy.server import described
from understudy.server.answer_cache import KnownAnswer
from understudy.server.answering import Answering, Portions, as_problem, plainly, taken
from understudy.server.approvals import Approval, Approvals
from understudy.server.asked import WAITING, Asked, AskedQuestion
from understudy.server.audit_log import AuditLog
from understudy.server.config import ServerConfig
from understudy.server.gate_reply import AskedBy, GateReply, approval_as_plain
from understudy.server.inquiry import MOST_QUESTIONS, Inquiry
from understudy.server.pace import ResponseGrid
from understudy.server.pauses import Pauses
from understudy.server.prices import priced, priced_together
from understudy.server.problems import Problem, problem_of
from understudy.server.queue import SharedWork
from understudy.server.served_tables import OpenTable, ServedTable, ServedTables, SessionTerms
from understudy.server.store import ServerStore
from understudy.server.tokens import Caller, Tokens
from understudy.server.turns import Turns

OWN_LINE = "/server"
"""The line of the server's own work in the queues: no analyst has this name, and it is not that of nobody."""


class Gate(Turns):
    """What every door calls. Made by a running server; its coroutines belong to one event loop."""

    def __init__(self, config: ServerConfig, served: ServedTables, store: ServerStore) -> None:
        super().__init__(config, served)
        self.store = store
        self.tokens = Tokens(store)
        self.asked = Asked(store)
        self.approvals = Approvals(store)
        self.pauses = Pauses(store)
        self.audit = AuditLog(store)
        self.grid = ResponseGrid(config.response_grid_ms)
        self.answering = Answering(config, self.asked, self.approvals)
        self._keeping = SharedWork(self._keep_known)
        self._direct = {
            name: SharedWork(partial(self._direct_all, table)) for name, table in served.tables.items()
        }
        self._flying: dict[tuple[str, str, str], tuple[Inquiry, asyncio.Task[GateReply]]] = {}

    @classmethod
    def opened(cls, config: ServerConfig, store: ServerStore) -> Gate:
        """A gate before the declared tables, which are opened here. Raises as `ServedTables` does."""
        shared = config.session
        terms = SessionTerms(
            alpha=float(shared.alpha),
            beta=float(shared.beta),
            queries=shared.queries,
            noise=shared.noise,
            own=config.own_sessions,
        )
        return cls(config, ServedTables(list(config.tables.values()), terms), store)

    # ---- asking

    async def ask(self, caller: Caller, inquiry: Inquiry) -> GateReply:
        """Answer a question, or keep it for approval. The reply leaves on the grid of times.

        Raises a `Problem`: 402 where the budget cannot pay, 403 where the token may not ask or pay, 404 where
        there is no such table, 409 where the request id was another question's, 413 and 422 where the question is
        refused, 429 where too much is asked at once, 503 where ledger, table or store are away or the table is
        paused.
        """
        arrived = asyncio.get_running_loop().time()
        try:
            return await self._ask(caller, inquiry)
        finally:
            await self.grid.wait(arrived)

    async def _ask(self, caller: Caller, inquiry: Inquiry) -> GateReply:
        self.admit(caller)
        _check_asks(caller)
        table = self.table(inquiry.table)
        inquiry.check()
        self._check_served(inquiry.table)
        asked = AskedBy(table, caller, inquiry, inquiry.request or inquiry.fresh or fresh_request())
        key = (inquiry.table, caller.analyst, asked.request)
        flying = self._flying.get(key) if inquiry.request else None
        if flying is None:
            reply = await self._known(asked)
            if reply is not None:
                return reply
            flying = self._flying.get(key)  # it may have come a second time meanwhile
        if flying is None:
            flying = inquiry, asyncio.create_task(self._fly(asked))
            self._flying[key] = flying
            flying[1].add_done_callback(lambda _: self._flying.pop(key, None))
        elif not inquiry.is_same(flying[0]):
            raise taken(asked.request)
        return await asyncio.shield(flying[1])  # a client that goes away does not stop what may be debited

    async def _known(self, asked: AskedBy) -> GateReply | None:
        """The reply to a question that was answered before, in its session or under its request; else None."""
        try:
            known = self.answering.known(asked)
            if known is None:
                is_named = asked.inquiry.is_direct and asked.inquiry.request
                return self.answering.sent_before(asked) if is_named else None
            if not asked.inquiry.request:
                return self.answering.noted(asked, known)
        except StoreError as error:
            raise problem_of(error) from error
        return await self.free.run_together(self._keeping, (asked, known), analyst=asked.caller.analyst)

    async def _fly(self, asked: AskedBy) -> GateReply:
        """Ask on threads: what is free on its own, then the look."""
        if asked.inquiry.is_direct:
            direct = self._direct[asked.inquiry.table]
            return await self.looks.run_together(direct, asked, analyst=asked.caller.analyst)
        work = partial(self.answering.free_or_none, asked)
        reply = await self.free.run(plainly(work), analyst=asked.caller.analyst)
        return await self._look(asked) if reply is None else reply

    def _keep_known(self, given: list[tuple[AskedBy, KnownAnswer]]) -> Portions[GateReply | None]:
        try:
            yield from self.answering.kept_known(given)
        except UnderstudyError as error:
            raise as_problem(error) from error

    def _direct_all(self, table: ServedTable, asked: list[AskedBy]) -> Portions[GateReply | Exception]:
        """Measure questions of one table by themselves, after a last look at who asks; errors are `Problem`s."""
        left: list[tuple[int, AskedBy]] = []
        for place, one in enumerate(asked):
            try:
                self._check_still(one.caller.token_id, one.inquiry.table)
                left.append((place, one))
            except Problem as problem:
                yield [(place, problem)]
        try:
            for portion in self.answering.direct_all(table, [one for _, one in left]):
                yield [
                    (left[i][0], as_problem(told) if isinstance(told, Exception) else told)
                    for i, told in portion
                ]
        except UnderstudyError as error:
            raise as_problem(error) from error

    async def _look(self, asked: AskedBy, approved: Approval | None = None) -> GateReply:
        """Have a question bought: in the session, one at a time, or, where it was approved, by itself."""
        is_direct = asked.inquiry.is_direct
        alone = "" if is_direct else f"{asked.inquiry.table}/{self.answering.whose(asked.caller)}"

        def looked() -> GateReply:
            self._check_still(asked.caller.token_id, asked.inquiry.table)
            if is_direct and approved is not None:
                return self.answering.direct(asked, approved)
            return self.answering.bought(asked, approved)

        return await self.on_looks(asked.caller, looked, alone=alone)

    async def run_approved(self) -> bool:
        """Ask one question that a custodian approved, priced again. Returns whether there was one.

        Where the ledger or the table is away it is asked later.
        """
        kept = await self.free.run(self.approvals.claim, analyst=OWN_LINE)
        if kept is None:
            return False
        try:
            await self._look(self._approved(kept), kept)
            done = partial(self.approvals.answered, kept.id)
        except Problem as problem:
            reason = f"{problem.detail}. {problem.hint}".replace("..", ".")
            is_passing = problem.status in (429, 503)
            done = (
                partial(self.approvals.release, kept.id)
                if is_passing
                else partial(self.approvals.refused, kept.id, reason)
            )
            if is_passing:  # do not come back at once
                await asyncio.sleep(1.0)
        await self.free.run(done, analyst=OWN_LINE)
        return True

    def _approved(self, kept: Approval) -> AskedBy:
        """The question that was approved, asked by whoever asked it; refused where the token was revoked since."""
        self._check_still(kept.token_id, kept.table)
        caller = Caller(
            analyst=kept.analyst, role="analyst", agent=kept.agent, read_only=False, token_id=kept.token_id
        )
        inquiry = Inquiry(
            table=kept.table,
            question=kept.question,
            request=kept.request,
            why=kept.why,
            most=kept.most,
            **kept.terms,
        )
        return AskedBy(self.table(kept.table), caller, inquiry, kept.request)

    def threshold(self, caller: Caller) -> float:
        """The part of the whole budget above which this caller's question needs an approval."""
        return self.answering.threshold(caller)

    # ---- reading

    async def price(self, caller: Caller, inquiries: Sequence[Inquiry]) -> list[dict[str, Any]]:
        """What questions would cost at most, and how far off their answers could be. Never looks.

        A question that would be refused has a `problem` in place of a price. Of several, each tells what it costs
        `together` with those before it.
        """
        if not 1 <= len(inquiries) <= MOST_QUESTIONS:
            raise Problem(
                422,
                "parameter",
                f"One request prices 1 to {MOST_QUESTIONS} questions.",
                hint="Send several requests.",
            )
        _check_asks(caller)

        def told(opened: OpenTable) -> list[dict[str, Any]]:
            found = [priced(opened, caller, inquiry, self.threshold(caller)) for inquiry in inquiries]
            priced_together(opened, caller, inquiries, found)
            return found

        return await self.read(caller, inquiries[0].table, told)

    async def tables(self, caller: Caller) -> list[dict[str, Any]]:
        """The tables that are served, and what is left of each budget."""

        def told() -> list[dict[str, Any]]:
            return [self._table_line(name, table) for name, table in self.served.tables.items()]

        return await self.on_free(caller, told)

    def _table_line(self, name: str, table: ServedTable) -> dict[str, Any]:
        pause = self.pauses.of(name)
        line: dict[str, Any] = {"name": name, "paused": None if pause is None else pause.reason}
        try:
            with table.use() as opened:
                ledger = opened.project.ledger
                left = ledger.budget.share(ledger.remaining)
                return line | {"available": True, "left": left, "attributes": len(opened.project.domain)}
        except (LedgerError, SourceError, Problem):
            return line | {"available": False, "left": None, "attributes": None}

    async def describe(self, caller: Caller, table: str) -> dict[str, Any]:
        """What is declared about a table."""
        return await self.read(caller, table, lambda opened: described.table_as_plain(opened.project))

    async def budget(self, caller: Caller, table: str) -> dict[str, Any]:
        """The budget of a table: the whole, what is left, the caller's own part, about how many more counts."""
        return await self.read(
            caller, table, lambda opened: described.budget_as_plain(opened, caller.analyst)
        )

    async def sessions(self, caller: Caller, table: str) -> list[dict[str, Any]]:
        """The session in which the caller asks about a table; an auditor or a custodian sees all that are open."""
        own = self.served.terms.own

        def told(opened: OpenTable) -> list[dict[str, Any]]:
            seen = opened.sessions if caller.role != "analyst" else [opened.session(caller.analyst)]
            return [described.session_as_plain(session, is_shared=not own) for session in seen]

        return await self.read(caller, table, told)

    async def limits(self, caller: Caller) -> list[dict[str, Any]]:
        """The limits of every table and what each analyst spent, for a custodian."""

        def told() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            for table in self.served.tables.values():
                with table.use() as opened:
                    found.append(described.limits_as_plain(opened.project))
            return found

        return await self.on_free(caller, told)

    async def reload(self, caller: Caller, table: str) -> dict[str, Any]:
        """Read a table's declaration again; returns its limits as they are now."""

        def told() -> dict[str, Any]:
            self.table(table).reload()
            with self.table(table).use() as opened:
                self.audit.write(caller.analyst, "reload", {"table": table})
                return described.limits_as_plain(opened.project)

        self.table(table)
        return await self.on_free(caller, told)

    async def history(
        self,
        caller: Caller,
        *,
        table: str = "",
        analyst: str = "",
        state: str = "",
        after: str = "",
        limit: int = 50,
    ) -> dict[str, Any]:
        """Questions, the newest first: an analyst's own, or anybody's for an auditor or a custodian."""
        if caller.role == "analyst":
            if analyst not in ("", caller.analyst):
                raise Problem(403, "role", "Analysts see their own questions.", hint="Leave `analyst` out.")
            analyst = caller.analyst

        def told() -> dict[str, Any]:
            self.approvals.expire()
            found, cursor = self.asked.page(
                analyst=analyst or None, table=table or None, state=state or None, after=after, limit=limit
            )
            return {"questions": [self._listed(one) for one in found], "next": cursor}

        return await self.on_free(caller, told)

    def _listed(self, one: AskedQuestion) -> dict[str, Any]:
        """A line of the history: one that waits tells how far its approval is."""
        kept = self.approvals.find(one.table, one.analyst, one.request) if one.state == WAITING else None
        return {**one.as_dict(), "approval": None if kept is None else approval_as_plain(kept)}

    async def one_asked(self, caller: Caller, id: str) -> dict[str, Any]:
        """One question with its answer, its refusal, or what it waits for."""

        def told() -> dict[str, Any]:
            self.approvals.expire()
            found = self.asked.get(id)
            if found is None or (caller.role == "analyst" and found.analyst != caller.analyst):
                raise Problem(
                    404, "no-question", "There is no such question of yours.", hint="Your history lists them."
                )
            kept = self.approvals.find(found.table, found.analyst, found.request)
            approval = None if kept is None else approval_as_plain(kept)
            more = {"answer": found.answer, "approval": approval, "ledger_request": found.ledger_request}
            return found.as_dict() | more

        return await self.on_free(caller, told)

    # ---- who may still ask

    def _check_still(self, token_id: str, table: str) -> None:
        """Refuse to buy what waited where its token was revoked meanwhile or its table paused."""
        if not self.tokens.is_unrevoked(token_id):
            raise Problem(403, "revoked", "The token that asked was revoked.", hint="Ask with another token.")
        self._check_served(table)

    def _check_served(self, table: str) -> None:
        pause = self.pauses.of(table)
        if pause is not None:
            why = f": {pause.reason}" if pause.reason else ""
            raise Problem(
                503,
                "paused",
                f"The custodian paused this table{why}.",
                hint="Ask again later under the same request id.",
                retry_after=60.0,
            )


def _check_asks(caller: Caller) -> None:
    if caller.role != "analyst":
        raise Problem(
            403,
            "role",
            f"A token of the role {caller.role} asks nothing.",
            hint="Ask with a token of the role analyst.",
        )
