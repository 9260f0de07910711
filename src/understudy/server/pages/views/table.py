"""The page of a table: what is declared, and nothing that was counted."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from understudy.server.pages import words
from understudy.server.pages.visitor import Visit

MOST_CELLS = 60
"""Cells of an attribute that are listed at once; the others are folded away."""

MOST_EDGES = 40

_OUTSIDE = {
    "clamp": "A value beyond the edges counts in the nearest cell.",
    "other": "A value that is not listed counts as “other”.",
    "null": "A value that is not listed counts as missing.",
}


async def table(visit: Visit) -> Response:
    """What is declared about a table: attributes, cells, edges, rows and the budget."""
    name = visit.table(visit.path["table"])
    described = await visit.gate.describe(visit.caller, name)
    budget = await visit.gate.budget(visit.caller, name)
    pauses = {one["name"]: one for one in await visit.gate.tables(visit.caller)}
    return visit.page(
        "table.html",
        "table",
        table=name,
        described=described,
        budget=budget,
        rows=_rows(described),
        attributes=[_attribute(attribute, name) for attribute in described["attributes"]],
        most=MOST_CELLS,
        paused=pauses.get(name, {}).get("paused"),
        choose="/tables/NAME",
    )


def _rows(described: dict[str, Any]) -> tuple[str, str]:
    """What is public about the number of rows, and why."""
    if described["rows"] is not None:
        return words.number(described["rows"]), "Their number is public; what is in any one row is protected."
    least, most = described["rows_at_least"], described["rows_at_most"]
    bounds = [f"at least {words.number(least)}"] * (least is not None) + [f"at most {words.number(most)}"] * (
        most is not None
    )
    return " and ".join(bounds) or "not public", "Whether somebody is in the table at all is protected."


def _attribute(attribute: dict[str, Any], table: str) -> dict[str, Any]:
    """An attribute with, for each of its cells, the condition that selects it."""
    name = attribute["name"]
    cells = [
        {"label": label, "condition": _condition(attribute, place)}
        for place, label in enumerate(attribute["labels"])
    ]
    return attribute | {
        "asking": f"/tables/{quote(table, safe='')}/ask?question={quote(f'count by {_word(name)}', safe='')}",
        "listed": cells,
        "shown_edges": _edges(attribute),
        "note": _OUTSIDE.get(attribute["outside"], "") if attribute["type"] != "boolean" else "",
        "by": f"count by {_word(name)}",
    }


def _edges(attribute: dict[str, Any]) -> list[str]:
    """The edges between cells; none where every whole number is a cell."""
    edges = attribute.get("edges") or []
    if attribute["cells"] - attribute["null"] != len(edges) - 1 or edges[-2:-1] == edges[-1:]:
        return []
    shown = [words.number(edge) for edge in edges[:MOST_EDGES]]
    return [*shown, "…"] if len(edges) > MOST_EDGES else shown


def _condition(attribute: dict[str, Any], place: int) -> str:
    """The words that select one cell in a question; empty where a question has none for it."""
    name, edges, labels = _word(attribute["name"]), attribute.get("edges"), attribute["labels"]
    if attribute["null"] and place == attribute["cells"] - 1:
        return f"{name} is null"
    if edges is None or labels[place] == "other":
        return f"{name} = {_word(str(labels[place]))}"
    if place + 1 >= len(edges):
        return ""
    low, high, is_last = edges[place], edges[place + 1], place + 2 == len(edges)
    if low == high or (attribute["type"] == "integer" and not is_last and high - low == 1):
        return f"{name} = {low}"
    return f"{name} >= {low}" if is_last else f"{name} >= {low} and {name} < {high}"


def _word(text: str) -> str:
    """A name or a value as the question language reads it: quoted where it is more than one word."""
    return (
        text
        if text.replace("_", "").isalnum() and not text[:1].isdigit()
        else "'" + text.replace("'", "''") + "'"
    )
