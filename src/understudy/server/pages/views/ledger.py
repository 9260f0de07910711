"""The ledger for auditors: who spent what and when, the running total, and the verifier's verdict."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from understudy.ledger.statement import KINDS, question_words
from understudy.pages.bars import PlotBar, bars
from understudy.server.pages import words
from understudy.server.pages.rendering import markup
from understudy.server.pages.visitor import Visit
from understudy.server.problems import Problem

LISTED = 100
MOST_SUMMED = 1000
"""Entries whose prices are added up by day: the newest."""

MOST_DAYS = 31


async def ledger(visit: Visit) -> Response:
    """A page of entries, the newest first; with `verify` in the address also the verdict on the whole ledger."""
    auditing = visit.request.app.state.auditing
    table = visit.table(visit.asked("table"))
    after, analyst = visit.asked("after", 20), visit.asked("analyst", 64)
    budget = await visit.gate.budget(visit.caller, table)
    told = await auditing.entries(
        visit.caller, table, after=int(after) if after.isascii() and after.isdecimal() else 0, limit=LISTED,
        analyst=analyst or None, newest_first=True,
    )  # fmt: skip
    verdict: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None
    if visit.asked("verify"):
        try:
            verdict = await auditing.verdict(visit.caller, table)
        except Problem as refused:
            problem = refused.as_plain()
    cap = budget["cap"]["amount"]
    query = {"table": table} | ({"analyst": analyst} if analyst else {})
    return visit.page(
        "ledger.html",
        "ledger",
        table=table,
        budget=budget,
        entries=[_entry(entry, cap) for entry in told["entries"]],
        analyst=analyst,
        is_first=not after,
        following=f"/ledger?{urlencode({**query, 'after': told['next']})}" if told["next"] else "",
        verdict=verdict,
        problem=problem,
        spending=markup(await _spending(visit, table)),
        days=markup(await days_drawn(visit, table, cap)),
        export=f"/v1/ledger/export?{urlencode({'table': table})}",
        choose="/ledger?table=NAME",
    )


async def _spending(visit: Visit, table: str) -> str:
    """What each analyst spent, drawn; empty where nobody spent anything."""
    found = next((one for one in await visit.gate.limits(visit.caller) if one["table"] == table), None)
    return "" if found is None else spending_drawn(found)


def spending_drawn(limits: dict[str, Any]) -> str:
    """What each analyst spent of a table's budget, the most first."""
    spent = sorted(limits["spent_by"].items(), key=lambda one: -one[1])[:40]
    if not spent or not limits["cap"]:
        return ""
    lines = [
        PlotBar(
            name or "no name given",
            100 * amount / limits["cap"],
            hint=f"{name}: {words.part(amount, limits['cap'])}",
        )
        for name, amount in spent
    ]
    return bars(lines, words="Part of the budget that each analyst spent", unit="% of the whole budget")


async def days_drawn(visit: Visit, table: str, cap: float) -> str:
    """What was spent on each day, of the newest entries; empty where nothing was spent."""
    told = await visit.request.app.state.auditing.entries(
        visit.caller, table, after=0, limit=MOST_SUMMED, analyst=None, newest_first=True
    )
    spent = Counter[str]()
    for entry in told["entries"]:
        if entry["cost"] > 0:
            spent[str(entry["at"])[:10]] += entry["cost"]
    if not spent or not cap:
        return ""
    lines = [
        PlotBar(day, 100 * amount / cap, hint=f"{day}: {words.part(amount, cap)}")
        for day, amount in sorted(spent.items())[-MOST_DAYS:]
    ]
    return bars(lines, words="Part of the budget that was spent on each day", unit="% of the whole budget")


def _entry(entry: dict[str, Any], cap: float) -> dict[str, Any]:
    share = entry["cost"] / cap if cap else 0.0
    return entry | {
        "kind": KINDS.get(entry["kind"], entry["kind"]),
        "question": question_words(entry),
        "share": share,
        "so_far": entry["total"] / cap if cap else 0.0,
        "at": words.time_of(entry["at"]),
    }
