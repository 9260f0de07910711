"""What the commands share: their common options, which files they may write, and how they speak to machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.errors import ParameterError

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
ProjectFile = Annotated[Path, typer.Option("--project", "-p", help="The declaration file, or its folder.")]

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]


def check_output(path: Path, *, overwrite: bool, belonging: Iterable[Path] = ()) -> None:
    """Refuse to write a file where one is that nobody asked to replace, and ever where the project's own are.

    `belonging` are those, existing or not: what lies in a folder of theirs is theirs, too.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise ParameterError(f"{path} cannot be written: name a file in a folder that is there")
    here = path.resolve()
    for own in belonging:
        theirs = own.resolve()
        if here.is_relative_to(theirs) or (path.exists() and own.exists() and path.samefile(own)):
            raise ParameterError(f"{path} belongs to the project: name another file")
    if path.exists() and not overwrite:
        raise ParameterError(f"{path} exists already: name another file, or replace it with --overwrite")


def emit(value: Any) -> None:
    """One line of JSON on the output."""
    typer.echo(json.dumps(value, ensure_ascii=False))


@contextmanager
def busy(what: str, *, quiet: bool) -> Iterator[None]:
    """A spinner on the error stream, for people at a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def listed(lines: list[int]) -> str:
    """The numbers of the lines of a file that a message is about, the first twelve of them."""
    return ", ".join(map(str, lines[:12])) + (", …" if len(lines) > 12 else "")
