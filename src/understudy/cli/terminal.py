"""What is said to people: folded at words to the width of their terminal, and coloured there alone.

Where an output is a file or a pipe, lines are whole, so that a script finds in one line what was said in one, and
no code of a terminal is ever written. `NO_COLOR`, `TERM=dumb` and `--json` switch colours off at a terminal, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from typing import TextIO

import typer

from understudy.layout import folded, table

WIDTH = 80
"""Columns of a terminal that does not say how many it has."""

NARROWEST = 20


def columns_of(stream: TextIO) -> int | None:
    """How many columns a stream's terminal has; None where it is no terminal, and lines may be of any length."""
    if not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return max(NARROWEST, int(told))
    try:
        return max(NARROWEST, os.get_terminal_size(stream.fileno()).columns or WIDTH)
    except (OSError, ValueError):
        return WIDTH


def is_coloured(stream: TextIO) -> bool:
    """Whether colours may be written to a stream: to a terminal of a person who has not refused them."""
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or "--json" in sys.argv
    return stream.isatty() and not refused


def say(text: str = "", *, err: bool = False, fg: str | None = None, hang: int = 0) -> None:
    """Lines of text on the output, or on the error stream, folded where it is a terminal."""
    stream = sys.stderr if err else sys.stdout
    colour = fg if fg and is_coloured(stream) else None
    for line in folded(text, columns_of(stream), hang=hang):
        typer.echo(typer.style(line, fg=colour) if colour else line, err=err)


def warn(text: str) -> None:
    """A warning, on the error stream."""
    say(text, err=True, fg="yellow")


def say_table(
    rows: Sequence[Sequence[str]], *, left: Collection[int] = (), heads: bool = True, indent: int = 0
) -> None:
    """A table on the output; `layout.table` says how it fits a narrow terminal."""
    for line in table(rows, columns_of(sys.stdout), left=left, heads=heads, indent=indent):
        typer.echo(line)


def as_question(text: str, answer: int = 10) -> str:
    """A question for a prompt on the error stream, folded so that the last line has room for the answer."""
    columns = columns_of(sys.stderr)
    return "\n".join(folded(text, None if columns is None else columns - answer))
