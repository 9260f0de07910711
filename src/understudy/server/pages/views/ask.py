"""The page on which questions are asked: the budget, a question with its price, and the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from secrets import token_hex
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from understudy.server.inquiry import AUTO, Inquiry
from understudy.server.pages.answers import MOST_ROWS, shown_answer
from understudy.server.pages.copies import copies
from understudy.server.pages.drawings import budget_bar
from understudy.server.pages.rendering import markup, page
from understudy.server.pages.visitor import Visit, see
from understudy.server.problems import Problem

LAST = 6
"""Of the visitor's last questions that the page lists."""


async def first(visit: Visit) -> Response:
    """The first page: asking, for an analyst; the table, for everybody else."""
    place = f"/tables/{quote(visit.table(), safe='')}"
    return see(f"{place}/ask" if visit.caller.role == "analyst" else place)


async def ask(visit: Visit) -> Response:
    """The page before anything is asked; `question` in the address fills the box."""
    question = visit.asked("question", 10_000)
    return await _page(visit, visit.table(visit.path["table"]), _fields(question=question))


async def priced(visit: Visit) -> Response:
    """The price of what stands in the form: for the script its part of the page alone."""
    table = visit.table(visit.path["table"])
    fields = _sent(visit)
    price = await _price(visit, table, fields)
    if visit.is_part:
        return page("price.html", price=price)
    return await _page(visit, table, fields, price=price)


async def asked(visit: Visit) -> Response:
    """Ask what stands in the form, and show the answer, the refusal, or that a custodian has to approve it."""
    table = visit.table(visit.path["table"])
    fields = _sent(visit)
    try:
        inquiry = _inquiry(table, fields, visit.sent("nonce"))
        reply = await visit.gate.ask(visit.caller, inquiry)
    except Problem as problem:
        return await _page(visit, table, fields, status=problem.status, problem=problem.as_plain())
    told = json.loads(reply.body)
    answer = None if reply.is_waiting else told["answer"]
    return await _page(
        visit, table, fields, told=told, answer=answer, status=202 if reply.is_waiting else 200
    )


async def _price(visit: Visit, table: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:
    if not fields["question"]:
        return None
    try:
        found = await visit.gate.price(visit.caller, [_inquiry(table, fields, "")])
    except Problem as problem:
        if problem.status in (429, 503):
            raise
        return {"problem": problem.as_plain()}
    return found[0] | {
        "direct": bool(fields["error"])
    }  # which has no estimate without bounds, in the session too


async def _page(
    visit: Visit,
    table: str,
    fields: Mapping[str, Any],
    *,
    status: int = 200,
    price: dict[str, Any] | None = None,
    told: dict[str, Any] | None = None,
    answer: dict[str, Any] | None = None,
    problem: dict[str, Any] | None = None,
) -> Response:
    gate, caller = visit.gate, visit.caller
    described = await gate.describe(caller, table)
    budget = await gate.budget(caller, table)
    history = await gate.history(caller, table=table, limit=LAST)
    (session,) = (await gate.sessions(caller, table))[:1] or [None]
    shown = None if answer is None else shown_answer(answer)
    terms: dict[str, Any] = {} if fields["error"] is None else {"error": fields["error"]}
    if fields["shared"]:
        terms["in_session"] = True
    if fields["sure"]:
        terms["noise"] = "bounded"
    return visit.page(
        "ask.html",
        "ask",
        status,
        table=table,
        choose="/tables/NAME/ask",
        described=described,
        budget=budget,
        bar=markup(budget_bar(budget)),
        last=history["questions"],
        session=session,
        fields=fields,
        nonce=token_hex(12),
        price=price,
        told=told,
        answer=shown,
        most=MOST_ROWS,
        markup=markup,
        problem=problem,
        copies=copies(base_of(visit), table, fields["question"], terms) if told else {},
    )


def base_of(visit: Visit) -> str:
    """The address of this server, as the visitor's browser knows it."""
    return f"{visit.request.url.scheme}://{visit.request.headers['host']}"


def _fields(
    *,
    question: str,
    error: float | None = None,
    why: str = "",
    certified: bool = False,
    sure: bool = False,
    shared: bool = False,
    wrong: str = "",
) -> dict[str, Any]:
    told = {"question": question, "error": error, "why": why, "wrong": wrong}
    return {**told, "certified": certified, "sure": sure, "shared": shared}


def _sent(visit: Visit) -> dict[str, Any]:
    """What stands in the form. An error that is no number is kept as it was written, to be refused."""
    text = visit.sent("error").replace(",", "").replace("\N{NO-BREAK SPACE}", "")
    error, wrong = None, ""
    if text:
        try:
            error = float(text)
        except ValueError:
            wrong = text[:40]
    return _fields(
        question=visit.sent("question"), error=error, why=visit.sent("why"), wrong=wrong,
        certified=bool(visit.sent("certified")), sure=bool(visit.sent("sure")),
        shared=bool(visit.sent("shared")),
    )  # fmt: skip


def _inquiry(table: str, fields: Mapping[str, Any], nonce: str) -> Inquiry:
    """The question of the form. Sent twice, it is one request: the page's number and the question name it."""
    if fields["wrong"]:
        raise Problem(
            422, "parameter", f"The error {fields['wrong']!r} is no number.",
            hint="Write a number of people, such as 250, or leave it empty.",
        )  # fmt: skip
    inquiry = Inquiry(
        table=table, question=fields["question"], error=fields["error"], why=fields["why"],
        uncertified=not fields["certified"], noise="bounded" if fields["sure"] else AUTO,
        in_session=bool(fields["shared"]),
    )  # fmt: skip
    if not nonce.isalnum() or len(nonce) > 64:
        return inquiry
    said = json.dumps([inquiry.question, inquiry.terms], sort_keys=True)
    return replace(inquiry, request=f"page-{nonce}-{sha256(said.encode()).hexdigest()[:16]}")
