"""The audit log: who did what at this server, chained by hashes."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from understudy.server.pages import words
from understudy.server.pages.visitor import Visit

LISTED = 100


async def audit(visit: Visit) -> Response:
    """A page of the log, the newest first; with `verify` in the address also whether its chain is whole."""
    auditing = visit.request.app.state.auditing
    before = visit.asked("before", 20)
    verdict = await auditing.log_verdict(visit.caller) if visit.asked("verify") else None
    number, head = await visit.gate.on_free(visit.caller, lambda: visit.gate.audit.head)
    last = min(int(before) - 1, number) if before.isascii() and before.isdecimal() else number
    first = max(last - LISTED, 0)
    told = await auditing.log(visit.caller, after=first, limit=LISTED) if last > 0 else {"entries": []}
    entries = [_shown(entry) for entry in told["entries"] if entry["number"] <= last][::-1]
    return visit.page(
        "audit.html",
        "audit",
        table="",
        entries=entries,
        number=number,
        head=head,
        verdict=verdict,
        is_first=last >= number,
        following=f"/audit?before={first + 1}" if first > 0 else "",
    )


def _shown(entry: dict[str, Any]) -> dict[str, Any]:
    facts = []
    for name, value in entry["facts"].items():
        if value is False or value is None or value == "":
            continue
        shown = words.part(value) if name == "share" else words.time_of(value) if name == "expires" else value
        facts.append((name.replace("_", " "), "yes" if value is True else str(shown)))
    return entry | {"facts": facts, "at": words.time_of(entry["at"])}
