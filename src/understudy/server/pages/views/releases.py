"""Releases: what was published, each with questions to it, its report in a frame that runs nothing, and files."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from understudy.releases.files import ANSWERS, CERTIFICATE, README, REPORT, SYNTHETIC, SYNTHETIC_CSV
from understudy.server.inquiry import MOST_CHARACTERS
from understudy.server.pages import words
from understudy.server.pages.answers import MOST_ROWS, ShownAnswer, shown_answer
from understudy.server.pages.rendering import markup
from understudy.server.pages.visitor import Visit
from understudy.server.problems import Problem

FILES = {
    REPORT: "the report",
    SYNTHETIC: "a synthetic table",
    SYNTHETIC_CSV: "the same rows as text",
    ANSWERS: "answers to the workload, with errors",
    CERTIFICATE: "the certificate, for machines",
    README: "what is in the folder, what the bars mean, how to cite it",
}


async def releases(visit: Visit) -> Response:
    """The list of releases."""
    releases = visit.request.app.state.releases
    found = await visit.gate.on_free(visit.caller, releases.listed)
    return visit.page("releases.html", "releases", table="", releases=[_shown(one) for one in found])


async def release(visit: Visit) -> Response:
    """One release: the answer to `question` in the address, its files, and its report in a frame.

    A question to a release changes nothing and costs nothing, so that its page is an address like any other.
    """
    found = await _one(visit, visit.path["release"])
    question = visit.asked("question", MOST_CHARACTERS)
    answer, problem = None, None
    if question.strip():
        answer, problem = await _asked(visit, found["name"], question)
    return visit.page(
        "release.html",
        "release",
        200 if problem is None else problem.status,
        table="",
        release=_shown(found),
        question=question,
        answer=answer,
        problem=None if problem is None else problem.as_plain(),
        most=MOST_ROWS,
        markup=markup,
    )


async def _asked(visit: Visit, name: str, question: str) -> tuple[ShownAnswer | None, Problem | None]:
    """The answer of a release for a page, or why there is none."""
    answers = visit.request.app.state.releases.answers
    try:
        told = await visit.gate.on_free(
            visit.caller, lambda: answers.answer(name, question), alone=f"release {name}"
        )
    except Problem as problem:
        if problem.status in (429, 503):
            raise
        return None, problem
    return shown_answer(told["answer"]), None


async def _one(visit: Visit, name: str) -> dict[str, Any]:
    releases = visit.request.app.state.releases
    for found in await visit.gate.on_free(visit.caller, releases.listed):
        if found["name"] == name:
            return found
    raise Problem(404, "no-release", "There is no such release.", hint="The page Releases lists them all.")


def _shown(one: dict[str, Any]) -> dict[str, Any]:
    place = quote(one["name"], safe="")
    return {
        "name": one["name"],
        "address": f"/releases/{place}",
        "report": f"/v1/releases/{place}/{REPORT}" if REPORT in one["files"] else "",
        "method": one.get("method") or "",
        "privacy": _privacy(one.get("privacy")),
        "workload": _workload(one.get("workload")),
        "beta": one.get("beta"),
        "files": [
            {"name": name, "words": said, "address": f"/v1/releases/{place}/{quote(name, safe='')}"}
            for name, said in FILES.items()
            if name in one["files"]
        ],
    }


def _privacy(told: Any) -> str:
    if not isinstance(told, dict) or not isinstance(told.get("epsilon"), int | float):
        return ""
    delta = told.get("delta")
    said = f"epsilon {words.number(told['epsilon'])}"
    return f"{said}, delta {words.chance(delta)}" if isinstance(delta, int | float) and delta else said


def _workload(told: Any) -> str:
    if isinstance(told, dict):
        return ", ".join(
            f"{words.number(value)} {name}" for name, value in told.items() if isinstance(value, int | float)
        )
    return str(told or "")
