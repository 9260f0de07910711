"""Which description a file is."""

from __future__ import annotations

from pathlib import Path

from understudy.declaration.outline import Outline
from understudy_importers import frictionless, smartnoise
from understudy_importers.document import is_mapping, load


def read(path: Path, table: str = "") -> Outline:
    """The draft of a declaration from SmartNoise metadata, or from a Frictionless schema or data package.

    `table` says which table, where the file describes several. The tables themselves are not opened.
    """
    root = load(path)
    if not is_mapping(root):
        root.fail("this is no description of a table", "Name SmartNoise metadata or a Frictionless schema")
    if frictionless.is_frictionless(root):
        return frictionless.outline(root, folder=path.parent, table=table)
    return smartnoise.outline(root, table=table)
