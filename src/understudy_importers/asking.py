"""Asking the custodian for what a description lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import yaml

from understudy.declaration import cells
from understudy.declaration.node import Node
from understudy.declaration.outline import Outline, OutlineEntry, objection, plain, scalar
from understudy.errors import DeclarationError
from understudy_importers.document import compose, day, entries, number, rising, text

LEAVE_OUT = "-"

UNIT = OutlineEntry(
    "unit",
    {},
    {"column": "if a person can have several rows: the column that says whose, and how many count"},
)


def complete(outline: Outline, ask: Callable[[str], str], tell: Callable[[str], None]) -> Outline:
    """The outline with what `ask` answers; an empty answer leaves a line as it is.

    `tell` hears why an answer cannot be taken; the question then comes again.
    """
    settings: list[OutlineEntry] = []
    for entry in outline.settings:
        settings.append(_completed(entry, ask, tell, attribute=False))
        if entry.key == "neighbours" and entry.lacks and settings[-1].fields.get("") == "add-remove":
            # Only now a person can have several rows; whose they are is not described either.
            unit = _completed(UNIT, ask, tell, attribute=False)
            settings += [] if unit.lacks else [unit]
    attributes = [_completed(entry, ask, tell, attribute=True) for entry in outline.attributes]
    return replace(outline, settings=tuple(settings), attributes=tuple(attributes))


def _completed(
    entry: OutlineEntry, ask: Callable[[str], str], tell: Callable[[str], None], *, attribute: bool
) -> OutlineEntry:
    for field, what in list(entry.lacks.items()):
        while answer := ask(f"{plain(entry.key)}: {plain(what)}").strip():
            if attribute and answer == LEAVE_OUT:
                return OutlineEntry.without(entry.key, "as the custodian chose")
            taken = _taken(entry, field, answer, tell, attribute=attribute)
            if taken is not None:
                entry = taken
                break
    return entry


def _taken(
    entry: OutlineEntry, field: str, answer: str, tell: Callable[[str], None], *, attribute: bool
) -> OutlineEntry | None:
    """The entry with the answer in it; None, and a word why, where a declaration would refuse it."""
    try:
        filled = answered(entry, field, answer)
        problem = objection(filled, attribute=attribute)
    except DeclarationError as error:
        problem = f"{error.problem}. {error.remedy}"
    else:
        if not problem:
            return filled
    tell(problem)
    return None


def answered(entry: OutlineEntry, field: str, answer: str) -> OutlineEntry:
    """The entry with one field as a person would write it: `0, 120` for bounds, `F, M` for values."""
    if field in ("values", "bounds", "edges"):
        items = _items(answer, field)
        null = "null" in entry.fields
        if field == "values":
            listed = cells.category(entry.key, map(text, items), null=null)
            return entry.filled(values=listed.fields["values"])
        kind = entry.fields["type"]
        read = day if kind == "date" else number
        if len(items) == 2:
            return cells.ordered(entry.key, kind, *rising(items[0], items[1], read), null=null)
        for item in items:
            read(item)
        kept = {key: value for key, value in entry.fields.items() if key != "bins"}
        edges = {"edges": f"[{', '.join(map(text, items))}]"}
        return replace(entry, fields=kept | edges, lacks={})
    if field == "epsilon":
        return entry.filled(**_amounts(answer))
    if entry is UNIT:
        items = _items(answer, field)
        if len(items) != 2:
            raise DeclarationError("two things were asked for", remedy="Write them as `person, 3`")
        return entry.filled(column=scalar(text(items[0])), max_rows=str(items[1].integer()))
    return entry.filled(**{field: scalar(answer)})


def _amounts(answer: str) -> dict[str, str]:
    """Epsilon and, where it is given, delta: as in a declaration, or one after the other."""
    if not answer.startswith("{"):
        return dict(zip(("epsilon", "delta"), map(text, _items(answer, "epsilon")), strict=False))
    root = compose(answer, file="your answer")
    given = entries(root)
    if not {"epsilon"} <= set(given) <= {"epsilon", "delta"}:
        root.fail("expected epsilon, and delta or nothing else", "Write them as `1, 1e-9`")
    return {key: text(value) for key, value in given.items()}


def _items(answer: str, field: str) -> list[Node]:
    """The items of a list that may come without its brackets."""
    written = answer if answer.startswith("[") else f"[{answer}]"
    root = compose(written, file="your answer")
    items = list(Node(root.yaml, field, root.file).items())
    if not all(isinstance(item.yaml, yaml.ScalarNode) for item in items):
        root.fail("expected single values", "Separate them by commas")
    return items
