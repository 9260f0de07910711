"""The options that a caller gives to a release method: which it takes, and by which of them it is planned."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from understudy.errors import ParameterError

Options = Mapping[str, Any]


def planning(options: Options, by: Collection[str]) -> dict[str, Any]:
    """Those of the options by which a method is planned."""
    return {key: options[key] for key in by if key in options}


def takes(function: Callable[..., Any], option: str) -> bool:
    """Whether the function has a parameter of that name."""
    return option in inspect.signature(function).parameters


def accepted(
    function: Callable[..., Any], options: Options, name: str | None = None, *, python_only: bool = False
) -> dict[str, Any]:
    """The options, if the function takes them and gets all that it needs; `name` is what a refusal calls it."""
    called = getattr(function, "__name__", "this method") if name is None else name
    given = {key: value for key, value in options.items() if value is not None}
    parameters = [*inspect.signature(function).parameters.values()][1:]
    takes = {p.name for p in parameters}
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    unknown = [key for key in given if key not in takes and not open_ended]
    if unknown:
        listed = ", ".join(sorted(takes)) or "no options"
        raise ParameterError(f"{called} does not take {', '.join(unknown)}; it takes {listed}")
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.KEYWORD_ONLY]
    missing = [key for key in needed if key not in given]
    if missing:
        only = ", which it is given from Python only" if python_only else ""
        raise ParameterError(f"{called} needs {', '.join(missing)}{only}")
    return given
