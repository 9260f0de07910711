"""Leaderboards: standings with their certified widths, and the upload of predictions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from starlette.datastructures import UploadFile
from starlette.responses import Response

from understudy.pages.bars import PlotBar, bars
from understudy.server.pages.rendering import markup
from understudy.server.pages.visitor import Visit
from understudy.server.problems import Problem

PART = 1 << 16
MOST_DRAWN = 30
MOST_LISTED = 500


async def boards(visit: Visit) -> Response:
    """The list of boards."""
    found = await visit.request.app.state.boards.listed(visit.caller)
    listed = [one | {"address": f"/boards/{quote(one['name'], safe='')}"} for one in found]
    return visit.page("boards.html", "boards", table="", boards=listed)


async def board(visit: Visit) -> Response:
    """One board: every score that was told, and a form for predictions."""
    return await _board(visit)


async def submitted(visit: Visit) -> Response:
    """Score an uploaded file, and show the board with its score or with why it was refused."""
    file = visit.upload("file")
    try:
        if file is None:
            raise Problem(422, "form", "No file was chosen.", hint="Choose a CSV or a Parquet file.")
        is_parquet = (file.filename or "").lower().endswith(".parquet")
        standing = await visit.request.app.state.boards.submit(
            visit.caller,
            visit.path["board"],
            label=visit.sent("name"),
            kind="application/vnd.apache.parquet" if is_parquet else "text/csv",
            guess=_guess(visit.sent("guess")),
            parts=_parts(file),
        )
    except Problem as problem:
        if problem.status in (404, 429, 503):
            raise
        return await _board(visit, status=problem.status, problem=problem.as_plain())
    finally:
        await visit.form.close()
    return await _board(visit, standing=standing)


async def _board(
    visit: Visit,
    *,
    status: int = 200,
    standing: dict[str, Any] | None = None,
    problem: dict[str, Any] | None = None,
) -> Response:
    told = await visit.request.app.state.boards.standings(visit.caller, visit.path["board"])
    standings = told["standings"]
    scored = [one for one in standings if one["value"] is not None]
    best = max(scored, key=lambda one: one["value"], default=None)
    return visit.page(
        "board.html",
        "board",
        status,
        table="",
        board=told,
        best=best,
        drawn=markup(_drawn(scored)),
        scored=len(scored),
        listed=standings[::-1][:MOST_LISTED],
        total=len(standings),
        standing=standing,
        problem=problem,
        place=f"/boards/{quote(told['name'], safe='')}",
        sent=visit.sent("name"),
    )


def _drawn(scored: list[dict[str, Any]]) -> str:
    """The scores that were told, with their certified widths, the best first."""
    if not scored:
        return ""
    best = sorted(scored, key=lambda one: -one["value"])[:MOST_DRAWN]
    lines = [
        PlotBar(
            one["name"], one["value"], one["low"], one["high"],
            hint=f"{one['name']}: {one['value']:.4f}, between {one['low']:.4f} and {one['high']:.4f}",
        )
        for one in best
    ]  # fmt: skip
    return bars(lines, words="Scores with their certified widths, the best first", unit="score")


def _guess(text: str) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise Problem(
            422, "parameter", "The guess is no number.", hint="Write a number from 0 to 1, or leave it empty."
        ) from None


async def _parts(file: UploadFile) -> AsyncIterator[bytes]:
    while part := await file.read(PART):
        yield part
