"""Docstrings as Markdown: labelled lines become definitions, doctests become code, layouts stay as they are.

A label is a claim's (`Privacy`), a parameter's or a field's, or several of these with commas between them.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

LABELLED = re.compile(r"^([^\W\d][\w ,*-]*?) {2,}(\S.*)$")


class HouseDocstrings(Extension):
    """Rewrites each docstring once, before mkdocstrings reads it."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring and not obj.is_alias:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """Paragraph by paragraph; a paragraph of ``Label   claim`` lines is a list of definitions."""
    return "\n\n".join(_paragraph(part) for part in re.split(r"\n\s*\n", text))


def _paragraph(part: str) -> str:
    lines = part.split("\n")
    if lines[0].startswith(">>> "):
        return "```pycon\n" + part + "\n```"
    if not LABELLED.match(lines[0]):
        return part
    defined: list[str] = []
    for line in lines:
        if labelled := LABELLED.match(line):
            defined.append(f"{labelled[1]}\n:   {labelled[2]}")
        elif line.startswith(" "):
            defined[-1] += " " + line.strip()
        else:
            return part
    return "\n\n".join(defined)
