"""The arguments of a call, checked against the schema of its tool before anything else is done with them.

Their names, types and sizes are checked, and refusals say in words what the tool takes. Of JSON Schema the few
words are known that the inputs in `schemas` use, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from understudy.server.inquiry import is_text
from understudy.server.mcp.schemas import Schema
from understudy.server.problems import Problem


def checked(tool: str, schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, as they are; a `Problem` where they are not what the tool takes."""
    known: Schema = schema["properties"]
    takes = f"{tool} takes: {', '.join(known) or 'nothing'}."
    for name in arguments:
        if name not in known:
            shown = name[:40] if is_text(name) else "?"
            raise _unfit(f"{tool} has no argument {shown!r}.", takes, list(known))
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in schema["required"]:
        if name not in given:
            raise _unfit(f"{tool} needs the argument {name!r}.", takes)
    for name, value in given.items():
        wrong = _wrong(known[name], value)
        if wrong:
            raise _unfit(
                f"The argument {name!r} of {tool} {wrong}.", known[name].get("description", "") or takes
            )
    return given


def _unfit(detail: str, hint: str, suggestions: list[str] | None = None) -> Problem:
    return Problem(422, "arguments", detail, hint=hint, suggestions=suggestions or ())


def _wrong(schema: Schema, value: Any) -> str:
    """What is wrong with a value; empty where nothing is."""
    kind = schema["type"]
    if kind == "string":
        if type(value) is not str or not is_text(value):
            return "must be a text"
        if "enum" in schema:
            return "" if value in schema["enum"] else f"must be one of {', '.join(schema['enum'])}"
        if len(value) > schema["maxLength"]:
            return f"has {len(value):,} characters; at most {schema['maxLength']:,} are read"
        if len(value) < schema.get("minLength", 0):
            return "is empty"
    elif kind == "boolean":
        return "" if type(value) is bool else "must be true or false"
    elif kind == "integer":
        if type(value) is not int:
            return "must be a whole number"
        if not schema["minimum"] <= value <= schema["maximum"]:
            return f"must be between {schema['minimum']} and {schema['maximum']}"
    elif kind == "number":
        return "" if _is_positive(value) else "must be a positive number"
    else:
        return _wrong_list(schema, value)
    return ""


def _is_positive(value: Any) -> bool:
    try:
        number = float(value) if type(value) in (int, float) else 0.0
    except OverflowError:
        return False
    return isfinite(number) and number > 0


def _wrong_list(schema: Schema, value: Any) -> str:
    if type(value) is not list:
        return "must be a list of texts"
    if not schema["minItems"] <= len(value) <= schema["maxItems"]:
        return f"must have {schema['minItems']} to {schema['maxItems']} texts"
    for number, item in enumerate(value, 1):
        wrong = _wrong(schema["items"], item)
        if wrong:
            return f"has a text, number {number}, that {wrong}"
    return ""
