"""The gate: the one way of a question, whatever door it came through.

    caller → rate → size → compile → price → limit, approval → queue → session → log → time grid → reply

Doors find out who calls (`tokens`), translate, and call this; they decide nothing. Every method takes a `Caller` and
returns plain data, or raises a `Problem`. The gate does no mathematics: it calls `Session` and `Project`, and only the
ledger grants. What a method refuses and how long it takes depend on public values, on released answers, and on how
much work there is.

A question is asked in the session of its table, where it is free if it follows from what anybody bought, or directly,
at a price of its own. An answer that was given before is sent from memory without a thread. All others are looked up
among what is free first, on threads that no look occupies.

A request id belongs to one question of one analyst. Its answer is kept before it is sent, so that the same request
gets the same bytes; where the process was killed before, the question is asked again under the same id, and the ledger
(for a session, its journal) charges nothing twice.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from understudy.errors import LedgerError, RequestConflictError, SourceError, StoreError, UnderstudyError
from understudy.ledger.interface import fresh_request
from understudy.privacy.cost import Cost
from understudy.server import described
from understudy.server.approvals import Approval, Approvals
from understudy.server.asked import ANSWERED, Asked, AskedQuestion
from understudy.server.audit_log import AuditLog
from understudy.server.config import ServerConfig
from understudy.server.house import House, OpenTable, SessionTerms, Table
from understudy.server.inquiry import MOST_QUESTIONS, Inquiry, check_question
from understudy.server.pace import RateLimiter, ResponseGrid
from understudy.server.pauses import Pauses
from understudy.server.problems import Problem, problem_of
from understudy.server.queue import FairQueue, stopping
from understudy.server.replies import Told, answer_as_plain, as_repeat, encoded
from understudy.server.store import ServerStore
from understudy.server.tokens import Caller, Tokens

LOOK_THREADS = 12
FREE_THREADS = 4

MOST_REPLIES = 1 << 15
MOST_REPLY_BYTES = 1 << 28
"""Answers, and bytes of them, that are sent again from memory."""

PRICE_RISE = 1.1
"""What an approved question may cost when it is asked, as a multiple of the price that was approved."""

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a question: `body` is the JSON document that tells it. One that waits has no answer yet."""

    body: bytes
    is_waiting: bool = False


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """An answer as everybody who asks again gets it: as plain values, and the same as JSON."""

    plain: dict[str, Any]
    body: bytes


class AnswerShelf:
    """The answers that were given in sessions, ready to be sent again; the ones used longest ago make room."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, str], KnownAnswer] = OrderedDict()
        self._bytes = 0

    def find(self, key: tuple[str, str, str]) -> KnownAnswer | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, key: tuple[str, str, str], known: KnownAnswer) -> None:
        if key in self._kept:
            return
        self._kept[key] = known
        self._bytes += len(known.body)
        while len(self._kept) > MOST_REPLIES or self._bytes > MOST_REPLY_BYTES:
            self._bytes -= len(self._kept.popitem(last=False)[1].body)


class Gate:
    """What every door calls. Made by a running server; its coroutines belong to one event loop."""

    def __init__(self, config: ServerConfig, house: House, store: ServerStore) -> None:
        self.config = config
        self.house = house
        self.store = store
        self.tokens = Tokens(store)
        self.asked = Asked(store)
        self.approvals = Approvals(store)
        self.pauses = Pauses(store)
        self.audit = AuditLog(store)
        rates = config.rates
        self.rates = RateLimiter(rates.requests)
        self.grid = ResponseGrid(config.response_grid_ms)
        limits = {"at_once": rates.at_once, "waiting": rates.waiting}
        self.looks = FairQueue("look", threads=LOOK_THREADS, **limits)
        self.free = FairQueue("free", threads=FREE_THREADS, **limits)
        self._shelf = AnswerShelf()
        self._flying: dict[tuple[str, str, str], tuple[Inquiry, asyncio.Task[Reply]]] = {}
        self._is_stopping = False

    @classmethod
    def opened(cls, config: ServerConfig, store: ServerStore) -> Gate:
        """A gate before the declared tables, which are opened here. Raises as `House` does."""
        shared = config.session
        terms = SessionTerms(
            alpha=float(shared.alpha),
            beta=float(shared.beta),
            queries=shared.queries,
            own=config.own_sessions,
        )
        return cls(config, House(list(config.tables.values()), terms), store)

    # ---- asking

    async def ask(self, caller: Caller, inquiry: Inquiry) -> Reply:
        """Answer a question, or keep it for approval. The reply leaves on the grid of times.

        Raises a `Problem`: 402 where the budget cannot pay, 403 where the token may not ask or pay, 404 where there
        is no such table, 409 where the request id was another question's, 413 and 422 where the question is refused,
        429 where too much is asked at once, 503 where ledger, table or store are away or the table is paused.
        """
        arrived = asyncio.get_running_loop().time()
        try:
            return await self._ask(caller, inquiry)
        finally:
            await self.grid.wait(arrived)

    async def _ask(self, caller: Caller, inquiry: Inquiry) -> Reply:
        table = self._enter(caller, inquiry.table)
        self._check_asks(caller)
        inquiry.check()
        self._check_served(inquiry.table)
        if not inquiry.is_direct:
            known = self._shelf.find(self._shelved(caller, inquiry))
            if known is not None and not inquiry.request:
                return self._told_again(caller, inquiry, known)
        key = (inquiry.table, caller.analyst, inquiry.request or fresh_request())
        flying = self._flying.get(key)
        if flying is None:
            task = asyncio.create_task(self._fly(table, caller, inquiry, key[2]))
            self._flying[key] = inquiry, task
            task.add_done_callback(lambda _: self._flying.pop(key, None))
        else:
            task = flying[1]
            if not _same(flying[0], inquiry):
                raise _taken(key[2])
        return await asyncio.shield(task)  # a client that goes away does not stop what may be debited

    def _told_again(self, caller: Caller, inquiry: Inquiry, known: KnownAnswer) -> Reply:
        """The answer of somebody's earlier question, sent from memory: no thread, no look at any store."""
        request = inquiry.request or fresh_request()
        id = self.asked.note(
            inquiry.table, caller.analyst, inquiry.question, request, inquiry.terms,
            answer=known.plain, source="repeat", currency=next(iter(known.plain["cost"])),
        )  # fmt: skip
        return _answered(id, inquiry, request, known.body)

    async def _fly(self, table: Table, caller: Caller, inquiry: Inquiry, request: str) -> Reply:
        """Ask on threads: what is free on its own, then the look."""
        analyst = caller.analyst
        if inquiry.is_direct:
            work = partial(self._direct, table, caller, inquiry, request)
            return await self.looks.run(_plainly(work), analyst=analyst)
        work = partial(self._free_or_priced, table, caller, inquiry, request)
        reply = await self.free.run(_plainly(work), analyst=analyst)
        if reply is not None:
            return reply
        whose = self._shelved(caller, inquiry)[1]
        work = partial(self._bought, table, caller, inquiry, request)
        return await self.looks.run(_plainly(work), analyst=analyst, alone=f"{inquiry.table}/{whose}")

    def _free_or_priced(self, table: Table, caller: Caller, inquiry: Inquiry, request: str) -> Reply | None:
        """The reply that costs nothing: one that was sent before, a free answer, or that approval is needed.

        None where the question has to be bought, which its price permits.
        """
        sent = self._sent_before(caller, inquiry, request)
        if sent is not None:
            return sent
        with table.use() as opened:
            session = opened.session(caller.analyst)
            answer = session.known(inquiry.question, analyst=caller.analyst)
            if answer is not None:
                return self._keep(opened, caller, inquiry, request, answer, session.name)
            self._check_pays(caller)
            price = session.price(inquiry.question, caller.analyst)
            if price.units <= opened.project.ledger.available(caller.analyst).units:
                return self._waiting(opened, caller, inquiry, request, price)
        return None

    def _bought(
        self, table: Table, caller: Caller, inquiry: Inquiry, request: str, approved: Approval | None = None
    ) -> Reply:
        """Ask in the session, which buys what is missing; the answer is kept before it is sent."""
        with table.use() as opened:
            session = opened.session(caller.analyst)
            if approved is not None:
                _check_price(session.price(inquiry.question, caller.analyst), approved)
            self._begin(caller, inquiry, request, session.name)
            answer = self._noted(
                caller, inquiry, request,
                lambda: session.ask(
                    inquiry.question, uncertified=inquiry.uncertified, analyst=caller.analyst,
                    request=_ledger_request(caller, request),
                ),
            )  # fmt: skip
            return self._keep(opened, caller, inquiry, request, answer, session.name)

    def _direct(
        self, table: Table, caller: Caller, inquiry: Inquiry, request: str, approved: Approval | None = None
    ) -> Reply:
        """Measure a question by itself, at its own price."""
        sent = None if approved else self._sent_before(caller, inquiry, request)
        if sent is not None:
            return sent
        self._check_pays(caller)
        with table.use() as opened:
            prepared = opened.project.prepare(inquiry.question, **inquiry.price)  # pyright: ignore[reportArgumentType]
            price, name = prepared.quote.cost, _ledger_request(caller, request)
            if approved is not None:
                _check_price(price, approved)
            elif price.units <= opened.project.ledger.available(caller.analyst).units:
                waiting = self._waiting(opened, caller, inquiry, request, price)
                if waiting is not None:
                    return waiting
            self._begin(caller, inquiry, request, name)
            answer = self._noted(
                caller, inquiry, request, lambda: prepared.run(request=name, analyst=caller.analyst)
            )
            return self._keep(opened, caller, inquiry, request, answer, name)

    def _sent_before(self, caller: Caller, inquiry: Inquiry, request: str) -> Reply | None:
        """The reply that this request got before; a `Problem` 409 where it was another question's."""
        if not inquiry.request:
            return None
        found = self.asked.find(inquiry.table, caller.analyst, request)
        if found is None:
            return None
        if (found.question, found.terms) != (inquiry.question, inquiry.terms):
            raise _taken(request)
        if found.state == ANSWERED and found.answer is not None:
            return _answered(found.id, inquiry, request, encoded(found.answer))
        kept = self.approvals.find(inquiry.table, caller.analyst, request)
        return None if kept is None else self._of_approval(found, kept)

    def _of_approval(self, found: AskedQuestion, kept: Approval) -> Reply | None:
        if kept.state == "denied":
            raise Problem(
                403, "denied", f"The custodian denied this question: {kept.reason}",
                hint="Ask another question, or talk to the custodian; a new request id asks anew.",
            )  # fmt: skip
        if kept.state == "expired":
            raise Problem(
                403, "expired", "Nobody decided about this question within seven days.",
                hint="Ask it again under a new request id.",
            )  # fmt: skip
        return Reply(encoded(_waiting_as_plain(found, kept)), is_waiting=True)

    def _waiting(
        self, opened: OpenTable, caller: Caller, inquiry: Inquiry, request: str, price: Cost
    ) -> Reply | None:
        """Keep a question for approval where its price is above the threshold; None where it is not."""
        share = opened.project.ledger.budget.share(price)
        if share <= self.threshold(caller):
            return None
        found = self.asked.begin(
            inquiry.table, caller.analyst, inquiry.question, request, inquiry.terms,
            ledger_request=_ledger_request(caller, request),
        )  # fmt: skip
        self.approvals.ask(
            caller, inquiry.table, inquiry.question, request, inquiry.terms, price, share, inquiry.why
        )
        self.asked.wait(found.id)
        kept = self.approvals.find(inquiry.table, caller.analyst, request)
        return None if kept is None else self._of_approval(found, kept)

    def _begin(self, caller: Caller, inquiry: Inquiry, request: str, ledger_request: str) -> None:
        """Note a question before it is bought: a request id that was another question's is refused here."""
        if inquiry.request:
            self.asked.begin(
                inquiry.table, caller.analyst, inquiry.question, request, inquiry.terms,
                ledger_request=ledger_request,
            )  # fmt: skip

    def _noted(self, caller: Caller, inquiry: Inquiry, request: str, ask: Callable[[], Given]) -> Given:
        """Ask; where that is refused, the history tells why."""
        try:
            return ask()
        except (LedgerError, SourceError, StoreError):
            raise  # it will be asked again
        except UnderstudyError as error:
            found = self.asked.begin(
                inquiry.table, caller.analyst, inquiry.question, request, inquiry.terms
            )
            self.asked.refused(found.id, problem_of(error).as_plain())
            raise

    def _keep(
        self, opened: OpenTable, caller: Caller, inquiry: Inquiry, request: str, answer: Told, name: str
    ) -> Reply:
        """Keep an answer under its request and, where it may be repeated to everybody, on the shelf."""
        budget = opened.project.ledger.budget
        plain = answer_as_plain(answer, budget)
        if not inquiry.is_direct and answer.source != "uncertified":
            again = answer_as_plain(as_repeat(answer), budget)
            self._shelf.keep(self._shelved(caller, inquiry), KnownAnswer(again, encoded(again)))
        found = self.asked.begin(
            inquiry.table, caller.analyst, inquiry.question, request, inquiry.terms, ledger_request=name
        )
        share = budget.share(answer.cost)
        self.asked.answered(found.id, plain, price=answer.cost, share=share, source=answer.source)
        return _answered(found.id, inquiry, request, encoded(plain))

    # ---- what was approved

    async def run_approved(self) -> bool:
        """Ask one question that a custodian approved, priced again. Returns whether there was one.

        Where the ledger or the table is away it is asked later.
        """
        kept = await self.free.run(self.approvals.claim, analyst="")
        if kept is None:
            return False
        caller = Caller(kept.analyst, "analyst", kept.agent, False, kept.token_id)
        inquiry = Inquiry(
            table=kept.table, question=kept.question, request=kept.request, why=kept.why, **kept.terms
        )
        try:
            await self._run_one(caller, inquiry, kept)
            done: Callable[[], None] = partial(self.approvals.answered, kept.id)
        except Problem as problem:
            again = problem.status in (429, 503)
            reason = f"{problem.detail} {problem.hint}".strip()
            done = partial(self.approvals.release, kept.id) if again else partial(self.approvals.refused, kept.id, reason)
        await self.free.run(done, analyst="")
        return True

    async def _run_one(self, caller: Caller, inquiry: Inquiry, kept: Approval) -> None:
        token = self.tokens.get(caller.token_id)
        if token is None or token.revoked is not None:
            raise Problem(403, "revoked", "The token that asked was revoked.", hint="Ask with another token.")
        self._check_served(inquiry.table)
        table = self._table(inquiry.table)
        run = self._direct if inquiry.is_direct else self._bought
        work = _plainly(partial(run, table, caller, inquiry, inquiry.request, kept))
        whose = "" if inquiry.is_direct else f"{inquiry.table}/{self._shelved(caller, inquiry)[1]}"
        await self.looks.run(work, analyst=caller.analyst, alone=whose)

    def threshold(self, caller: Caller) -> float:
        """The part of the whole budget above which this caller's question needs an approval."""
        above = self.config.approve_above
        return float(above.agents if caller.agent else above.people)

    # ---- reading

    async def price(self, caller: Caller, inquiries: Sequence[Inquiry]) -> list[dict[str, Any]]:
        """What questions would cost at most, and how far off their answers could be. Never looks.

        A question that would be refused has a `problem` in place of a price.
        """
        if not 1 <= len(inquiries) <= MOST_QUESTIONS:
            raise Problem(
                422, "parameter", f"One request prices 1 to {MOST_QUESTIONS} questions.", hint="Send several requests."
            )
        table = self._enter(caller, inquiries[0].table)
        self._check_asks(caller)

        def priced() -> list[dict[str, Any]]:
            with table.use() as opened:
                return [self._priced(opened, caller, inquiry) for inquiry in inquiries]

        return await self.free.run(_plainly(priced), analyst=caller.analyst)

    def _priced(self, opened: OpenTable, caller: Caller, inquiry: Inquiry) -> dict[str, Any]:
        ledger = opened.project.ledger
        told: dict[str, Any] = {"question": inquiry.question}
        try:
            inquiry.check()
            if inquiry.is_direct:
                prepared = opened.project.prepare(inquiry.question, **inquiry.price)  # pyright: ignore[reportArgumentType]
                quote = prepared.quote
                price, error, beta = quote.cost, quote.error, quote.beta
                told["forecast"] = [
                    {"column": one.column, "unit": one.unit, "error": one.error} for one in prepared.forecast()
                ]
            else:
                session = opened.session(caller.analyst)
                price = session.price(inquiry.question, caller.analyst)
                error, beta = float(session.width), float(session.terms.beta)
        except (LedgerError, SourceError):
            raise
        except (UnderstudyError, Problem) as refusal:
            return told | {"problem": problem_of(refusal).as_plain()}
        left = ledger.available(caller.analyst)
        share = ledger.budget.share(price)
        return told | {
            "cost": {price.currency: price.amount},
            "share": share,
            "free": not price.units,
            "error": error,
            "beta": beta,
            "affordable": price.units <= left.units,
            "share_of_left": price.units / left.units if left.units else None,
            "more_like_this": left.units // price.units if price.units else None,
            "needs_approval": share > self.threshold(caller) and price.units <= left.units,
        }

    async def tables(self, caller: Caller) -> list[dict[str, Any]]:
        """The tables that are served, and what is left of each budget."""
        self.rates.admit(caller.analyst)

        def told() -> list[dict[str, Any]]:
            return [self._table_line(name, table) for name, table in self.house.tables.items()]

        return await self.free.run(_plainly(told), analyst=caller.analyst)

    def _table_line(self, name: str, table: Table) -> dict[str, Any]:
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
        return await self._read(caller, table, lambda opened: described.table_as_plain(opened.project))

    async def budget(self, caller: Caller, table: str) -> dict[str, Any]:
        """The budget of a table: the whole, what is left, the caller's own part, and about how many more counts."""
        return await self._read(caller, table, lambda opened: described.budget_as_plain(opened, caller.analyst))

    async def sessions(self, caller: Caller, table: str) -> list[dict[str, Any]]:
        """The session in which the caller asks about a table; an auditor or a custodian sees all that are open."""
        own = self.house.terms.own

        def told(opened: OpenTable) -> list[dict[str, Any]]:
            seen = opened.sessions if caller.role != "analyst" else [opened.session(caller.analyst)]
            return [described.session_as_plain(session, is_shared=not own) for session in seen]

        return await self._read(caller, table, told)

    async def history(
        self, caller: Caller, *, table: str = "", analyst: str = "", state: str = "", after: str = "", limit: int = 50
    ) -> dict[str, Any]:
        """Questions, the newest first: an analyst's own, or anybody's for an auditor or a custodian."""
        self.rates.admit(caller.analyst)
        if caller.role == "analyst":
            if analyst not in ("", caller.analyst):
                raise Problem(403, "role", "Analysts see their own questions.", hint="Leave `analyst` out.")
            analyst = caller.analyst

        def told() -> dict[str, Any]:
            found, cursor = self.asked.page(
                analyst=analyst or None, table=table or None, state=state or None, after=after, limit=limit
            )
            return {"questions": [one.as_dict() for one in found], "next": cursor}

        return await self.free.run(_plainly(told), analyst=caller.analyst)

    async def one_asked(self, caller: Caller, id: str) -> dict[str, Any]:
        """One question with its answer, its refusal, or what it waits for."""
        self.rates.admit(caller.analyst)

        def told() -> dict[str, Any]:
            found = self.asked.get(id)
            if found is None or (caller.role == "analyst" and found.analyst != caller.analyst):
                raise Problem(404, "no-question", "There is no such question of yours.", hint="See /v1/history.")
            kept = self.approvals.find(found.table, found.analyst, found.request)
            approval = None if kept is None else _approval_as_plain(kept)
            return {**found.as_dict(), "answer": found.answer, "approval": approval}

        return await self.free.run(_plainly(told), analyst=caller.analyst)

    async def _read(self, caller: Caller, name: str, read: Callable[[OpenTable], Given]) -> Given:
        table = self._enter(caller, name)

        def told() -> Given:
            with table.use() as opened:
                return read(opened)

        return await self.free.run(_plainly(told), analyst=caller.analyst)

    # ---- stopping

    async def close(self, seconds: float) -> bool:
        """Refuse new work and finish what is under way; returns whether all of it ended within `seconds`."""
        self._is_stopping = True
        ended = await self.looks.close(seconds)
        return await self.free.close(2.0) and ended

    # ---- checks

    def _enter(self, caller: Caller, table: str) -> Table:
        self.rates.admit(caller.analyst)
        if self._is_stopping:
            raise stopping()
        return self._table(table)

    def _table(self, name: str) -> Table:
        found = self.house.tables.get(name)
        if found is None:
            names = sorted(self.house.tables)
            raise Problem(
                404, "no-table", "There is no such table here.", hint="See /v1/tables.", suggestions=names[:20]
            )
        return found

    def _check_asks(self, caller: Caller) -> None:
        if caller.role != "analyst":
            raise Problem(
                403, "role", f"A token of the role {caller.role} asks nothing.",
                hint="Ask with a token of the role analyst.",
            )  # fmt: skip

    def _check_pays(self, caller: Caller) -> None:
        if caller.read_only:
            raise Problem(
                403, "read-only", "This question is not free, and a read-only token never pays.",
                hint="Ask what is known already, or ask with a token that may pay.",
            )  # fmt: skip

    def _check_served(self, table: str) -> None:
        pause = self.pauses.of(table)
        if pause is not None:
            why = f": {pause.reason}" if pause.reason else ""
            raise Problem(
                503, "paused", f"The custodian paused this table{why}.",
                hint="Ask again later under the same request id.", retry_after=60.0,
            )  # fmt: skip

    def _shelved(self, caller: Caller, inquiry: Inquiry) -> tuple[str, str, str]:
        """Where the answer of a session is kept: by table, by whose session it is, and by the question's words."""
        return inquiry.table, caller.analyst if self.house.terms.own else "", inquiry.question


def _plainly(work: Callable[[], Given]) -> Callable[[], Given]:
    """The work with every error of the library as a `Problem`; others pass, to be logged."""

    def done() -> Given:
        try:
            return work()
        except UnderstudyError as error:
            raise problem_of(error) from error

    return done


def _ledger_request(caller: Caller, request: str) -> str:
    """The name of a question in the ledger: no analyst's request is another's."""
    return f"{caller.analyst}/{request}"


def _same(one: Inquiry, other: Inquiry) -> bool:
    return (one.question, one.terms) == (other.question, other.terms)


def _taken(request: str) -> Problem:
    conflict = RequestConflictError(f"the request id {request!r} was used for another question; take a new one")
    return problem_of(conflict)


def _check_price(price: Cost, approved: Approval) -> None:
    """Refuse to ask what has become clearly dearer than what the custodian approved."""
    if price.amount > PRICE_RISE * approved.price:
        raise Problem(
            422, "price-rose",
            f"The question was approved at {approved.currency} {approved.price:.4g} and costs {price.amount:.4g} now.",
            hint="Ask it again under a new request id.",
        )  # fmt: skip


def _answered(id: str, inquiry: Inquiry, request: str, answer: bytes) -> Reply:
    head = {"id": id, "table": inquiry.table, "request": request, "question": inquiry.question, "state": ANSWERED}
    return Reply(encoded(head)[:-1] + b',"answer":' + answer + b"}")


def _waiting_as_plain(found: AskedQuestion, kept: Approval) -> dict[str, Any]:
    return {
        "id": found.id,
        "table": found.table,
        "request": found.request,
        "question": found.question,
        "state": "waiting",
        "approval": _approval_as_plain(kept),
    }


def _approval_as_plain(kept: Approval) -> dict[str, Any]:
    told = kept.as_dict()
    shown = ("id", "state", "currency", "price", "share", "why", "at", "expires", "decided", "reason")
    return {name: told[name] for name in shown}
