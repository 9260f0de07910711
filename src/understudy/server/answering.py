"""A question on the server's threads: what is free, what needs an approval, what is bought and what is kept.

The order is the promise. The ledger charges before the library looks, under the request id of the question; the
answer is kept before it is sent. Where the process dies in between, the same request finds how far it came: an
answer that was kept is sent again, and a question that was charged is asked again under the same name in the
ledger, which charges nothing twice, refuses another question under it, and tells what was charged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from understudy.answer.around_answer import AroundAnswer
from understudy.errors import (
    LedgerError,
    RequestConflictError,
    SourceError,
    StatementError,
    StoreError,
    UnderstudyError,
)
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.project import PreparedQuestion, QuestionPurchase
from understudy.server.approvals import Approval, Approvals
from understudy.server.asked import ANSWERED, Asked, AskedQuestion, KeptReply
from understudy.server.config import ServerConfig
from understudy.server.house import OpenTable, ServedTable
from understudy.server.inquiry import Inquiry
from understudy.server.problems import Problem, problem_of
from understudy.server.replies import Told, answer_as_plain, as_repeat, encoded
from understudy.server.shelf import AnswerShelf, Key, KnownAnswer
from understudy.server.tokens import Caller

PRICE_RISE = 1.1
"""What an approved question may cost when it is asked, as a multiple of the price that was approved."""

Given = TypeVar("Given")

Portions = Iterator[list[tuple[int, Given]]]
"""Outcomes of some questions as they come: the place of each among them, and its own."""


@dataclass(frozen=True, slots=True)
class GateReply:
    """What became of a question: `body` is the JSON document that tells it. One that waits has no answer yet.

    `answer` is the part of the document that is the answer (of one that waits: all of it), for doors that send no
    JSON; `id` and `request` are those of the question.
    """

    body: bytes
    is_waiting: bool = False
    answer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True)
class AskedBy:
    """A question, who asks it, of which table, and the request id under which it stands."""

    table: ServedTable
    caller: Caller
    inquiry: Inquiry
    request: str

    @property
    def ledger_request(self) -> str:
        """The name of the question in the ledger: no analyst's request is another's."""
        return f"{self.caller.analyst}/{self.request}"


class Answering:
    """The steps of a question that work with tables and the store; safe for threads."""

    def __init__(self, config: ServerConfig, asked: Asked, approvals: Approvals) -> None:
        self._config = config
        self._asked = asked
        self._approvals = approvals
        self._shelf = AnswerShelf()

    def threshold(self, caller: Caller) -> float:
        """The part of the whole budget above which this caller's question needs an approval."""
        above = self._config.approve_above
        return float(above.agents if caller.agent else above.people)

    def whose(self, caller: Caller) -> str:
        """Whose session a caller asks in: everybody's, or their own."""
        return caller.analyst if self._config.own_sessions else ""

    def known(self, asked: AskedBy) -> KnownAnswer | None:
        """The answer of somebody's earlier question in the session, which may be sent again without a look."""
        if asked.inquiry.is_direct:
            return None
        return self._shelf.find(self._key(asked, asked.table.generation))

    def noted(self, asked: AskedBy, known: KnownAnswer) -> GateReply:
        """A known answer for a caller who gave no request id: written down soon, and sent at once."""
        inquiry = asked.inquiry
        id = self._asked.note(
            inquiry.table,
            asked.caller.analyst,
            inquiry.question,
            asked.request,
            inquiry.terms,
            answer=known.text,
            source="repeat",
            currency=known.nothing.currency,
        )
        return _answered(id, asked, known.text, known.plain)

    def kept_known(self, given: list[tuple[AskedBy, KnownAnswer]]) -> Portions[GateReply | None]:
        """Known answers for callers who gave request ids: kept, in one transaction, before they are sent.

        So the same request gets the same bytes even after a kill. None where something is known of the request
        already: then the question goes the way of all others.
        """
        ids = self._asked.keep_new(
            [
                KeptReply(
                    table=asked.inquiry.table,
                    analyst=asked.caller.analyst,
                    question=asked.inquiry.question,
                    request=asked.request,
                    terms=asked.inquiry.terms,
                    answer=known.text,
                    price=known.nothing,
                    share=0.0,
                    source="repeat",
                )
                for asked, known in given
            ]
        )
        yield [
            (place, _answered(id, asked, known.text, known.plain) if id else None)
            for place, (id, (asked, known)) in enumerate(zip(ids, given, strict=True))
        ]

    def free_or_none(self, asked: AskedBy) -> GateReply | None:
        """The reply that costs nothing: one that was sent before, a free answer, or that approval is needed.

        None where the question has to be bought, which its price permits.
        """
        sent = self.sent_before(asked)
        if sent is not None:
            return sent
        caller, question = asked.caller, asked.inquiry.question
        with asked.table.use() as opened:
            session = opened.session(caller.analyst)
            answer = session.known(question, analyst=caller.analyst, request=asked.ledger_request)
            if answer is not None:
                return self._keep(opened, asked, answer, session.name)
            _check_pays(caller)
            return self._waiting(opened, asked, session.price(question, caller.analyst))

    def bought(self, asked: AskedBy, approved: Approval | None = None) -> GateReply:
        """Ask in the session, which buys what is missing; the answer is kept before it is sent."""
        caller, inquiry = asked.caller, asked.inquiry
        with asked.table.use() as opened:
            session = opened.session(caller.analyst)
            price = session.price(inquiry.question, caller.analyst)
            if approved is not None:
                _check_price(price, approved)
            elif (waiting := self._waiting(opened, asked, price)) is not None:
                return waiting  # it became dearer in the queue, where others' questions were before it
            answer = self._noted(
                asked,
                lambda: session.ask(
                    inquiry.question,
                    uncertified=inquiry.uncertified,
                    analyst=caller.analyst,
                    request=asked.ledger_request,
                ),
            )
            return self._keep(opened, asked, answer, session.name)

    def direct(self, asked: AskedBy, approved: Approval) -> GateReply:
        """Measure an approved question by itself, at its own price."""
        _check_pays(asked.caller)
        analyst, name = asked.caller.analyst, asked.ledger_request
        with asked.table.use() as opened:
            prepared = self._prepared(opened, asked)
            _check_price(prepared.due(request=name, analyst=analyst).cost, approved)
            answer = self._noted(asked, lambda: prepared.run(request=name, analyst=analyst))
            return self._keep(opened, asked, answer, name)

    def direct_all(self, table: ServedTable, asked: list[AskedBy]) -> Portions[GateReply | Exception]:
        """Measure questions to one table, each by itself and at its own price; debits and replies share commits.

        Yields portions of outcomes: a reply, or what is raised for its question.
        """
        with table.use() as opened:
            told: list[tuple[int, GateReply | Exception]] = []
            bought: list[tuple[int, QuestionPurchase]] = []
            for place, one in enumerate(asked):
                try:
                    _check_pays(one.caller)
                    prepared = self._prepared(opened, one)
                    waiting = self._direct_waiting(opened, one, prepared)
                    if waiting is None:
                        bought.append(
                            (place, QuestionPurchase(prepared, one.ledger_request, one.caller.analyst))
                        )
                    else:
                        told.append((place, waiting))
                except Exception as error:
                    told.append((place, error))
            if told:
                yield told
            failure: Exception | None = None
            for portion in opened.project.run_all([purchase for _, purchase in bought]):
                outcomes = [(bought[i][0], asked[bought[i][0]], outcome) for i, outcome in portion]
                yield self._kept_all(opened, outcomes)
                for _, _, outcome in outcomes:
                    failure = outcome if isinstance(outcome, (LedgerError, SourceError)) else failure
            if failure is not None:
                raise failure  # has the table opened anew, as where a question fails by itself

    def _kept_all(
        self, opened: OpenTable, outcomes: list[tuple[int, AskedBy, Told | Exception]]
    ) -> list[tuple[int, GateReply | Exception]]:
        """Keep the answers of direct questions, in one transaction, and note why others were refused."""
        budget = opened.project.ledger.budget
        told: list[tuple[int, GateReply | Exception]] = []
        answers: list[tuple[int, AskedBy, KeptReply]] = []
        for place, asked, outcome in outcomes:
            if not isinstance(outcome, Exception) and (passing := _passing(asked, outcome)) is not None:
                told.append((place, passing))
            elif isinstance(outcome, Exception):
                told.append((place, outcome))
                self._note_refusal(asked, outcome)
            else:
                answers.append((place, asked, _reply(asked, outcome, asked.ledger_request, budget)))
        kept = self._asked.keep_all([reply for _, _, reply in answers]) if answers else []
        for (place, asked, reply), found in zip(answers, kept, strict=True):
            told.append((place, found if isinstance(found, Exception) else _sent(found, asked, reply)))
        return told

    def _prepared(self, opened: OpenTable, asked: AskedBy) -> PreparedQuestion[Told]:
        inquiry = asked.inquiry
        ((name, amount),) = inquiry.price.items()
        return opened.prepared(inquiry.question, name, amount)

    # ---- what is known of a request

    def _found(self, asked: AskedBy) -> AskedQuestion | None:
        """What the store knows of a request id; a `Problem` 409 where it is another question's."""
        inquiry = asked.inquiry
        if not inquiry.request:
            return None
        found = self._asked.find(inquiry.table, asked.caller.analyst, asked.request)
        if found is not None and (found.question, found.terms) != (inquiry.question, inquiry.terms):
            raise taken(asked.request)
        return found

    def sent_before(self, asked: AskedBy) -> GateReply | None:
        """The reply that this request got before, or that it waits for an approval; None where it got none."""
        found = self._found(asked)
        if found is None:
            return None
        if found.state == ANSWERED and found.answer_text:
            return _answered(found.id, asked, found.answer_text, found.answer)
        kept = self._approvals.find(asked.inquiry.table, asked.caller.analyst, asked.request)
        return None if kept is None else _of_approval(found, kept)

    def _direct_waiting(
        self, opened: OpenTable, asked: AskedBy, prepared: PreparedQuestion[Told]
    ) -> GateReply | None:
        """As `_waiting`, for a question that is measured by itself, by what it would be charged now.

        Jointly with what was charged before that may be up to twice the quote; for a request that was charged
        before, by a server that did not live to answer, it is nothing. Most questions are far below the
        threshold, and the ledger is not asked for them.
        """
        cost = prepared.quote.cost
        most = type(cost)(2 * cost.units)
        if opened.project.ledger.budget.share(most) <= self.threshold(asked.caller):
            return None
        due = prepared.due(request=asked.ledger_request, analyst=asked.caller.analyst)
        return self._waiting(opened, asked, due.cost)

    def _waiting(self, opened: OpenTable, asked: AskedBy, price: Cost) -> GateReply | None:
        """Keep a question for approval where its price is above the threshold; None where it is not.

        What the caller cannot pay needs no approval: the ledger refuses it, or the session answers uncertified.
        A question that waits already, because the same analyst asked the same before, is not put before the
        custodian again where it came without a request id or from an agent: these ask again of their own accord.
        """
        caller, inquiry, ledger = asked.caller, asked.inquiry, opened.project.ledger
        share = ledger.budget.share(price)
        if share <= self.threshold(caller) or price.units > ledger.available(caller.analyst).units:
            return None
        is_repeated = caller.agent or not inquiry.request
        if is_repeated and (before := self._waits_already(asked)) is not None:
            return before
        self._approvals.ask(
            caller, inquiry.table, inquiry.question, asked.request, inquiry.terms, price, share, inquiry.why
        )
        found = self._noted_question(asked, asked.ledger_request)
        self._asked.wait(found.id)
        kept = self._approvals.find(inquiry.table, caller.analyst, asked.request)
        return None if kept is None else _of_approval(found, kept)

    def _waits_already(self, asked: AskedBy) -> GateReply | None:
        analyst, inquiry = asked.caller.analyst, asked.inquiry
        kept = self._approvals.same(inquiry.table, analyst, inquiry.question, inquiry.terms)
        found = None if kept is None else self._asked.find(inquiry.table, analyst, kept.request)
        return None if kept is None or found is None else _of_approval(found, kept)

    def _noted_question(self, asked: AskedBy, name: str) -> AskedQuestion:
        inquiry = asked.inquiry
        return self._asked.begin(
            inquiry.table,
            asked.caller.analyst,
            inquiry.question,
            asked.request,
            inquiry.terms,
            ledger_request=name,
        )

    def _noted(self, asked: AskedBy, ask: Callable[[], Given]) -> Given:
        """Ask; where that is refused, the history tells why."""
        try:
            return ask()
        except UnderstudyError as error:
            self._note_refusal(asked, error)
            raise

    def _note_refusal(self, asked: AskedBy, error: Exception) -> None:
        """Keep why a question was refused, for the history; not of one that may be debited and is asked again."""
        if isinstance(error, UnderstudyError) and not isinstance(
            error, (LedgerError, SourceError, StoreError)
        ):
            found = self._noted_question(asked, "")
            self._asked.refused(found.id, problem_of(error).as_plain())

    def _keep(self, opened: OpenTable, asked: AskedBy, answer: Told, name: str) -> GateReply:
        """Keep an answer under its request and, where it may be repeated to everybody, on the shelf.

        An answer that has a problem in the place of rows is told to its own request alone: whoever asks next has
        the outer statement run again, on rows that are known by then.
        """
        budget = opened.project.ledger.budget
        if (passing := _passing(asked, answer)) is not None:
            raise passing
        failed = isinstance(answer, AroundAnswer) and bool(answer.problem)
        if not asked.inquiry.is_direct and answer.source != "uncertified" and not failed:
            again = as_repeat(answer)
            plain = answer_as_plain(again, budget)
            known = KnownAnswer(plain, encoded(plain).decode(), again.cost)
            self._shelf.keep(self._key(asked, opened.generation), known)
        reply = _reply(asked, answer, name, budget)
        return _sent(self._asked.keep(reply), asked, reply)

    def _key(self, asked: AskedBy, generation: int) -> Key:
        return asked.inquiry.table, generation, self.whose(asked.caller), asked.inquiry.question


def _reply(asked: AskedBy, answer: Told, name: str, budget: Budget) -> KeptReply:
    """An answer as it is kept under its request, and sent."""
    inquiry, plain = asked.inquiry, answer_as_plain(answer, budget)
    return KeptReply(
        table=inquiry.table,
        analyst=asked.caller.analyst,
        question=inquiry.question,
        request=asked.request,
        terms=inquiry.terms,
        answer=encoded(plain).decode(),
        plain=plain,
        price=answer.cost,
        share=budget.share(answer.cost),
        source=answer.source,
        ledger_request=name,
    )


def _passing(asked: AskedBy, answer: Told) -> Problem | None:
    """The refusal in the place of an answer that is not kept, since the desk was not to be had; None for others.

    What was paid for is found again: by the session, or in the ledger under the request id. A question that is
    measured by itself and came without a request id would pay once more: its inner answers are sent, and say why
    there is no more than these. So are those of a statement that took too long or too much, as it would again.
    """
    if not isinstance(answer, AroundAnswer) or not answer.is_passing:
        return None
    if asked.inquiry.is_direct and not asked.inquiry.request:
        return None
    return Problem(
        503,
        StatementError.code,
        answer.problem,
        hint="Ask again, under the same request id if there was one: nothing is paid twice.",
        more={"reason": answer.reason},
        retry_after=1.0,
    )


def plainly(work: Callable[[], Given]) -> Callable[[], Given]:
    """The work with every error of the library as a `Problem`; others pass, to be logged."""

    def done() -> Given:
        try:
            return work()
        except UnderstudyError as error:
            raise as_problem(error) from error

    return done


def as_problem(error: Exception) -> Exception:
    """An error of the library as a `Problem` that it caused; another error as it is."""
    if not isinstance(error, UnderstudyError):
        return error
    problem = problem_of(error)
    problem.__cause__ = error
    return problem


def taken(request: str) -> Problem:
    """The refusal of a request id that belongs to another question."""
    return problem_of(
        RequestConflictError(
            f"the request id {request!r} was used for another question; take a new one", request=request
        )
    )


def approval_as_plain(kept: Approval) -> dict[str, Any]:
    """What an analyst sees of an approval."""
    told = kept.as_dict()
    shown = ("id", "state", "currency", "price", "share", "why", "at", "expires", "decided", "reason")
    return {name: told[name] for name in shown}


def _check_pays(caller: Caller) -> None:
    if caller.read_only:
        raise Problem(
            403,
            "read-only",
            "This question is not free, and a read-only token never pays.",
            hint="Ask what is known already, or ask with a token that may pay.",
        )


def _check_price(price: Cost, approved: Approval) -> None:
    """Refuse to ask what has become clearly dearer than what the custodian approved."""
    if price.amount > PRICE_RISE * approved.price:
        now, then = f"{price.amount:.4g}", f"{approved.currency} {approved.price:.4g}"
        raise Problem(
            422,
            "price-rose",
            f"The question was approved at {then} and costs {now} now.",
            hint="Ask it again under a new request id.",
        )


def _of_approval(found: AskedQuestion, kept: Approval) -> GateReply:
    """What is said of a question that needs an approval: that it waits, or that it was not granted."""
    if kept.state == "denied":
        raise Problem(
            403,
            "denied",
            f"The custodian denied this question: {kept.reason}",
            hint="Ask another question, or talk to the custodian; a new request id asks anew.",
        )
    if kept.state == "expired":
        raise Problem(
            403,
            "expired",
            "Nobody decided about this question within seven days.",
            hint="Ask it again under a new request id.",
        )
    told = {
        "id": found.id,
        "table": found.table,
        "request": found.request,
        "question": found.question,
        "state": "waiting",
        "approval": approval_as_plain(kept),
    }
    return GateReply(encoded(told), is_waiting=True, answer=told, id=found.id, request=found.request)


def _sent(found: AskedQuestion, asked: AskedBy, reply: KeptReply) -> GateReply:
    """The reply of a question that was just kept; the one that was kept before, where there was one."""
    plain = reply.plain if found.answer_text is reply.answer else found.answer
    return _answered(found.id, asked, found.answer_text, plain)


def _answered(id: str, asked: AskedBy, answer: str, plain: Mapping[str, Any] | None) -> GateReply:
    """The document of an answer, put together from parts that are JSON already: ids need no escapes."""
    question, table = _quoted(asked.inquiry.question), _quoted(asked.inquiry.table)
    return GateReply(
        f'{{"answer":{answer},"id":"{id}","question":{question},"request":"{asked.request}",'
        f'"state":"{ANSWERED}","table":{table}}}'.encode(),
        answer=plain or {},
        id=id,
        request=asked.request,
    )


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
