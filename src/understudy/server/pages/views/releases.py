"""Releases: what was published, each with its report in a frame that can run nothing, and files to download."""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from understudy.releases.folder import ANSWERS, CERTIFICATE, REPORT, SYNTHETIC
from understudy.server.pages import words
from understudy.server.pages.visitor import Visit
from understudy.server.problems import Problem

FILES = {
    REPORT: "the report",
    SYNTHETIC: "a synthetic table",
    ANSWERS: "answers to the workload, with errors",
    CERTIFICATE: "the certificate, for machines",
}

_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


async def releases(visit: Visit) -> Response:
    """The list of releases."""
    shelf = visit.request.app.state.releases
    found = await visit.gate.on_free(visit.caller, shelf.listed)
    return visit.page("releases.html", "releases", table="", releases=[_shown(one) for one in found])


async def release(visit: Visit) -> Response:
    """One release: its files, and its report in a frame."""
    found = await _one(visit, visit.path["release"])
    return visit.page("release.html", "release", table="", release=_shown(found))


async def report(visit: Visit) -> Response:
    """The report itself. It may show itself in a frame of this server; it runs, loads and sends nothing.

    Its style sheets are permitted by their hashes, whatever version of the program wrote it.
    """
    shelf = visit.request.app.state.releases
    path, kind = shelf.file(visit.path["release"], REPORT)
    body = await visit.gate.on_free(visit.caller, path.read_bytes)
    return Response(
        body,
        media_type=kind,
        headers={"content-security-policy": report_policy(body), "x-frame-options": "SAMEORIGIN"},
    )


def report_policy(body: bytes) -> str:
    """The content policy of a report: a sandbox, its own style sheets, and nothing else."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(sha256(sheet).digest()).decode()}'" for sheet in _STYLE.findall(body)
    )
    styles = hashes or "'none'"
    return (
        f"sandbox; default-src 'none'; style-src {styles}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    )


async def _one(visit: Visit, name: str) -> dict[str, Any]:
    shelf = visit.request.app.state.releases
    for found in await visit.gate.on_free(visit.caller, shelf.listed):
        if found["name"] == name:
            return found
    raise Problem(404, "no-release", "There is no such release.", hint="The page Releases lists them all.")


def _shown(one: dict[str, Any]) -> dict[str, Any]:
    place = quote(one["name"], safe="")
    cost = one.get("cost") or {}
    currency, amount = next(iter(cost.items()), ("", None)) if isinstance(cost, dict) else ("", None)
    return {
        "name": one["name"],
        "address": f"/releases/{place}",
        "report": f"/releases/{place}/report" if REPORT in one["files"] else "",
        "method": one.get("method") or "",
        "price": f"{currency} {words.number(amount)}" if amount is not None else "",
        "workload": _workload(one.get("workload")),
        "beta": one.get("beta"),
        "files": [
            {"name": name, "words": said, "address": f"/v1/releases/{place}/{quote(name, safe='')}"}
            for name, said in FILES.items()
            if name in one["files"]
        ],
    }


def _workload(told: Any) -> str:
    if isinstance(told, dict):
        return ", ".join(f"{words.number(value)} {name}" for name, value in told.items() if isinstance(value, int | float))
    return str(told or "")
