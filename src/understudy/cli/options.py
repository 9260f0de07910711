"""What the commands share: their common options, which files they may write, and how they speak to machines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.terminal import say
from understudy.errors import ParameterError
from understudy.output import check_no_dangling_link, check_no_database

if TYPE_CHECKING:
    from understudy.project import Project

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
ProjectFile = Annotated[Path, typer.Option("--project", "-p", help="The declaration file, or its folder.")]


class FilterChoice(StrEnum):
    """The privacy filters by name, as `privacy.filter` has them: commands load that only where they need it."""

    ZCDP = "zcdp"
    RENYI = "renyi"
    GDP = "gdp"


Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]


def check_output(path: Path, *, overwrite: bool, belonging: Iterable[Path] = ()) -> None:
    """Refuse to write a file where one is that nobody asked to replace, and ever where the project's own are.

    `belonging` are those, existing or not: what lies in a folder of theirs is theirs, too.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise ParameterError(f"{path} cannot be written: name a file in a folder that is there")
    check_no_dangling_link(path)
    here = path.resolve()
    for own in belonging:
        theirs = own.resolve()
        if here.is_relative_to(theirs) or (path.exists() and own.exists() and path.samefile(own)):
            raise ParameterError(f"{path} belongs to the project: name another file")
    if path.exists() and not overwrite:
        raise ParameterError(f"{path} exists already: name another file, or replace it with --overwrite")
    check_no_database(path)


ARGUMENTS = frozenset(
    (
        "alpha",
        "as_it_is",
        "delta",
        "device",
        "epsilon",
        "error",
        "force",
        "guess",
        "max_cells",
        "memory",
        "method",
        "metric",
        "mode",
        "name",
        "noise",
        "rejections",
        "rho",
        "rows",
        "target",
    )
)
"""What the library's messages speak of that is an option of a command under the same name."""

_ARGUMENT = re.compile(r"([a-z_]+)(?:='?([^,'`]+)'?)?")


def as_options(message: str) -> str:
    """A message of the library as a command says it: arguments of Python, in backquotes, become options.

    The first must be an option of a command; further ones are options of a method. Other words in backquotes stay.

    >>> as_options("take `method='mwem'`, leave `delta` out, replace it with `force=True`; ask `count`")
    'take --method mwem, leave --delta out, replace it with --force; ask `count`'
    >>> as_options("let it hold every cell: `method='mwem', cells=500`")
    'let it hold every cell: --method mwem --option cells=500'
    >>> as_options("write `metric='mae(scale=10)'`")
    "write --metric 'mae(scale=10)'"
    >>> as_options("allow `memory=108000000`, at most `rows=500`")
    'allow --memory 108MB, at most --rows 500'
    """
    return re.sub(r"`([^`]+)`", lambda found: _as_option(found[1]) or found[0], message)


def _as_option(code: str) -> str:
    """The options for arguments as they are written in Python; empty where the first is none."""
    parts = [_ARGUMENT.fullmatch(part) for part in code.split(", ")]
    if parts[0] is None or parts[0][1] not in ARGUMENTS:
        return ""
    written: list[str] = []
    for part in parts:
        if part is None:
            return ""
        name, value = part[1], part[2]
        if name not in ARGUMENTS:
            written.append(f"--option {name}={value}")
        else:
            option = name.replace("_", "-")
            told = _amount(value) if name == "memory" and value else value
            written.append(f"--{option}" if told in (None, "True") else f"--{option} {quote(told)}")
    return " ".join(written)


def _amount(value: str) -> str:
    """Bytes with a unit, where the unit loses nothing."""
    from understudy.memory import as_text

    short = as_text(int(value)).replace(" ", "") if value.isdigit() else value
    number = re.fullmatch(r"([\d.]+)([KMGT])B", short)
    exact = number is not None and float(number[1]) * 1000 ** " KMGT".index(number[2]) == int(value)
    return short if exact else value


def project_option(file: Path) -> str:
    """The option that names a project for a shell, with a space before it; empty where none is needed.

    >>> project_option(Path("understudy.yml")), project_option(Path("our people.yml"))
    ('', " --project 'our people.yml'")
    """
    return "" if file in (Path("understudy.yml"), Path()) else f" --project {quote(str(file))}"


def emit(value: Any) -> None:
    """One line of JSON on the output."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def tell_unread(project: Project, file: Path, *, quiet: bool) -> None:
    """Say what the custodian has left undone: lines to review, and a table that was never read through.

    `file` is the declaration, or its folder. `quiet` is a command that speaks to machines.
    """
    from understudy.declaration.file import located
    from understudy.declaration.outline import unreviewed

    if quiet:
        return
    marked = unreviewed(located(file).read_text(encoding="utf-8"))
    if marked:
        say(
            f"{len(marked)} lines of the declaration are still marked READ OFF THE DATA: they are public and tell "
            f"what the table holds. Review them; `understudy check{project_option(file)}` names them.",
            fg="yellow",
            err=True,
        )
    if project.curator.reading is None:
        say(
            f"As it is now, this table was never read through by `understudy check --read{project_option(file)}`: "
            "whether its columns are written as declared is not known.",
            fg="yellow",
            err=True,
        )


def listed(lines: list[int]) -> str:
    """The numbers of the lines that a message is about, in rising order; at most twelve stretches of them.

    >>> listed([11, 12, 13, 20, 22, 23])
    '11 to 13, 20, 22, 23'
    """
    stretches: list[list[int]] = []
    for line in lines:
        if stretches and line == stretches[-1][-1] + 1:
            stretches[-1].append(line)
        else:
            stretches.append([line])
    told = [f"{one[0]} to {one[-1]}" if len(one) > 2 else ", ".join(map(str, one)) for one in stretches]
    return ", ".join(told[:12]) + (", …" if len(told) > 12 else "")
