"""What is told of a question: the documents that are kept and sent, and that it waits or was not granted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from understudy.answer.around_answer import AroundAnswer
from understudy.errors import StatementError
from understudy.privacy.budget import Budget
from understudy.server.approvals import DENIED, EXPIRED, Approval, ended
from understudy.server.asked import ANSWERED, AskedQuestion, KeptReply
from understudy.server.inquiry import Inquiry
from understudy.server.problems import Problem
from understudy.server.replies import Told, answer_as_plain, encoded
from understudy.server.served_tables import ServedTable
from understudy.server.tokens import Caller


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


def reply_of(asked: AskedBy, answer: Told, name: str, budget: Budget) -> KeptReply:
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


def passing_problem(asked: AskedBy, answer: Told) -> Problem | None:
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


def approval_as_plain(kept: Approval) -> dict[str, Any]:
    """What an analyst sees of an approval."""
    told = kept.as_dict()
    shown = ("id", "state", "currency", "price", "share", "why", "at", "expires", "decided", "reason")
    return {name: told[name] for name in shown}


def reply_of_approval(found: AskedQuestion, kept: Approval) -> GateReply:
    """What is said of a question that needs an approval: that it waits, or that it was not granted."""
    if kept.state in (DENIED, EXPIRED):
        raise ended(kept.state, kept.reason)
    told = {
        "id": found.id,
        "table": found.table,
        "request": found.request,
        "question": found.question,
        "state": "waiting",
        "approval": approval_as_plain(kept),
    }
    return GateReply(encoded(told), is_waiting=True, answer=told, id=found.id, request=found.request)


def sent_reply(found: AskedQuestion, asked: AskedBy, reply: KeptReply) -> GateReply:
    """The reply of a question that was just kept; the one that was kept before, where there was one."""
    plain = reply.plain if found.answer_text is reply.answer else found.answer
    return answered(found.id, asked, found.answer_text, plain)


def answered(id: str, asked: AskedBy, answer: str, plain: Mapping[str, Any] | None) -> GateReply:
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
