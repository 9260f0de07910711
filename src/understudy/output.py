"""Files that somebody asked for by name: written where the name says, and never where a link says instead."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from understudy.errors import ParameterError

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,'’_ \u00a0\u2009\u202f]*(?:[eE][+-]?[0-9]+)?%?")


def csv_text(words: str) -> str:
    """A text for a CSV file, which a spreadsheet does not take for a formula.

    One that it might take for a formula gets an apostrophe. Numbers with a sign are none, and stay as they are.

    >>> csv_text("=1+1"), csv_text("@SUM(A1)"), csv_text("-12.5"), csv_text("01067")
    ("'=1+1", "'@SUM(A1)", '-12.5', '01067')
    """
    return f"'{words}" if _FORMULA.match(words) and not _NUMBER.fullmatch(words) else words


def check_no_dangling_link(path: Path) -> None:
    """Refuse a link to nothing: what is written through it would appear wherever its maker wants."""
    if path.is_symlink() and not path.exists():
        raise ParameterError(
            "the file to write is a link to a file that is not there",
            remedy="name the file itself",
            detail=f"{path} is a link to a file that is not there: name the file itself",
        )


def check_no_database(path: Path) -> None:
    """Refuse to replace a database: a ledger, a server's state, a table. What is written here is never one."""
    if not path.is_file():
        return
    with open(path, "rb") as file:
        start = file.read(16)
    if start.startswith(b"SQLite format 3") or start[8:12] == b"DUCK":
        raise ParameterError(
            "the file to write is a database, perhaps a ledger, and is not replaced",
            remedy="name another file",
            detail=f"{path} is a database, perhaps a ledger, and is not replaced: name another file",
        )


def write_file(path: Path, content: str | bytes, *, overwrite: bool = False, private: bool = False) -> None:
    """Write a new file, or with `overwrite` one that is there; text as UTF-8. Raises as `new_file`.

    A new file that is `private` can be read by its owner alone.
    """
    with new_file(path, overwrite=overwrite, private=private) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def new_file(path: Path, *, overwrite: bool = False, private: bool = False) -> Iterator[BinaryIO]:
    """A new file to write into, or with `overwrite` one that is there, emptied.

    Whether a file is there is decided by the very call that opens it: a file or a link that appeared after a check
    is neither replaced nor followed. Raises ParameterError where one is in the way, and for a database.
    """
    check_no_dangling_link(path)
    if overwrite:
        check_no_database(path)
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    flags = os.O_WRONLY | os.O_TRUNC if overwrite and path.exists() else new
    try:
        handle = os.open(path, flags, 0o600 if private else 0o666)
    except FileExistsError:
        raise ParameterError(
            "the file exists already",
            remedy="name another file, or let it be replaced",
            detail=f"{path} exists already: name another file, or replace it with --overwrite",
        ) from None
    with open(handle, "wb") as file:
        yield file
