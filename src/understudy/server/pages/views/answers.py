"""The history, and the page of one question: its answer, what it cost, and what it was deduced from."""

from __future__ import annotations

import csv
import io
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from understudy.output import csv_text
from understudy.server.pages.answers import MOST_ROWS, shown_answer
from understudy.server.pages.copies import copies
from understudy.server.pages.rendering import markup
from understudy.server.pages.views.ask import base_of
from understudy.server.pages.visitor import Visit
from understudy.server.problems import Problem

LISTED = 50
MOST_EXPORTED = 10_000
"""Questions in one CSV file: the newest."""

FILTERS = ("answered", "waiting", "refused", "asking")
COLUMNS = ("at", "table", "analyst", "question", "state", "source", "share", "price", "currency", "id")


async def history(visit: Visit) -> Response:
    """Questions, the newest first: the visitor's own, or for auditors and custodians anybody's."""
    wanted = _wanted(visit)
    told = await visit.gate.history(visit.caller, after=visit.asked("after"), limit=LISTED, **wanted)
    query = {name: value for name, value in wanted.items() if value}
    return visit.page(
        "history.html",
        "history",
        questions=told["questions"],
        following=f"/history?{urlencode({**query, 'after': told['next']})}" if told["next"] else "",
        is_first=not visit.asked("after"),
        wanted=wanted,
        is_filtered=bool(query),
        states=FILTERS,
        export=f"/history.csv?{urlencode(query)}" if query else "/history.csv",
        table="",
    )


def _wanted(visit: Visit) -> dict[str, str]:
    state = visit.asked("state")
    table = visit.asked("table")
    return {
        "table": visit.table(table) if table else "",
        "analyst": visit.asked("analyst"),
        "state": state if state in FILTERS else "",
    }


async def history_csv(visit: Visit) -> Response:
    """The same questions as a file, without answers."""
    wanted = _wanted(visit)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    after, written = "", 0
    while written < MOST_EXPORTED:
        told = await visit.gate.history(visit.caller, after=after, limit=500, **wanted)
        for one in told["questions"]:
            writer.writerow(["" if one[name] is None else csv_text(str(one[name])) for name in COLUMNS])
        written += len(told["questions"])
        after = told["next"]
        if not after:
            break
    return _csv(out.getvalue(), "history.csv")


async def answer(visit: Visit) -> Response:
    """One question: its answer with bounds, what it rests on, its price, and its approval."""
    told = await visit.gate.one_asked(visit.caller, visit.path["id"])
    shown = None if told["answer"] is None else shown_answer(told["answer"])
    sessions = (
        []
        if told["terms"].get("uncertified") is None
        else await visit.gate.sessions(visit.caller, told["table"])
    )
    return visit.page(
        "answer.html",
        "answer",
        one=told,
        answer=shown,
        rests=_rests(told),
        session=next((one for one in sessions if one["name"] == told["ledger_request"]), None),
        most=MOST_ROWS,
        markup=markup,
        table=told["table"],
        copies=copies(base_of(visit), told["table"], told["question"], told["terms"]),
    )


async def answer_csv(visit: Visit) -> Response:
    """All rows of an answer as a file."""
    told = await visit.gate.one_asked(visit.caller, visit.path["id"])
    if told["answer"] is None:
        raise Problem(404, "no-answer", "This question has no answer.", hint="Its page says why.")
    return _csv(shown_answer(told["answer"]).csv(), f"answer-{told['id']}.csv")


def _csv(text: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


def _rests(told: dict[str, Any]) -> str:
    """What an answer was deduced from, in a sentence."""
    found = {
        "measured": "Noise was bought for this answer; the ledger was charged before the table was looked at.",
        "repeat": "The same question was answered before, for you or for others, and its numbers were sent again.",
        "implied": "It was deduced from answers that were bought in this session before, and from their bounds.",
        "pinned": "Answers that were bought in this session before leave exactly one value.",
        "checked": "A release that is public proves its bounds.",
        "public": "No row of the table can change it: it follows from what is declared.",
        "uncertified": "A model that was fitted to all bought answers estimates it; nobody vouches for it.",
    }
    return found.get(told["source"], "")
