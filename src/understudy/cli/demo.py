"""`understudy demo`: an invented town, questioned privately, with the truth beside every answer."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote
from shutil import which
from typing import Annotated

import typer

from understudy.cli.interrupt import if_interrupted
from understudy.cli.options import Json, emit
from understudy.cli.progress import busy


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where the invented town is written.")] = Path(
        "demo"
    ),
    people: Annotated[int, typer.Option(min=1, max=10_000_000, help="How many people to invent.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Another town for another number.")] = 7,
    as_json: Json = False,
) -> None:
    """Invent a town, question it privately, release it, attack its holdout: with the truth beside everything."""
    from understudy_demo.demo import run

    if_interrupted(f"the invented town in {folder} may be incomplete: give the same command again")
    with busy(f"Inventing a town of {people:,} people", quiet=as_json):
        town = run(folder, people=people, seed=seed)
    if as_json:
        emit(town.as_dict())
        return
    from understudy_demo.demo import render

    render(town, program=_program())


def _program() -> str:
    """The program as it was called, where a plain `understudy` would not be found."""
    called = Path(sys.argv[0])
    if which("understudy") is not None or called.name != "understudy" or not called.is_file():
        return "understudy"
    return quote(os.path.relpath(called) if called.resolve().is_relative_to(Path.cwd()) else str(called))
