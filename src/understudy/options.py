"""What the commands share: their common options, and how they speak to machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
ProjectFile = Annotated[Path, typer.Option("--project", "-p", help="The declaration file, or its folder.")]


def emit(value: Any) -> None:
    """One line of JSON on the output."""
    typer.echo(json.dumps(value, ensure_ascii=False))
