"""The folder of a backup, and the ledgers that it is of: what taking one and restoring it share."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL

from understudy.declaration.file import read as read_declaration
from understudy.errors import StoreError
from understudy.ledger.declared import declared_witness
from understudy.ledger.place import ledger_place
from understudy.ledger.witness import Witness
from understudy.server.config import ServerConfig

LIST = "backup.json"
"""What is in a backup, and the hash of each file. It is written last: a folder without it is no backup."""

FORMAT = 1


@dataclass(frozen=True, slots=True)
class TableBooks:
    """The ledger of one table, and its witness where one is declared."""

    name: str
    url: URL
    witness: Witness | None

    @property
    def file(self) -> Path | None:
        """The ledger's file; None where it is kept on Postgres."""
        return Path(self.url.database or "") if self.url.get_backend_name() == "sqlite" else None


def books_of(config: ServerConfig) -> list[TableBooks]:
    """The ledgers and witnesses of the tables that a server serves."""
    found: list[TableBooks] = []
    for name, path in config.tables.items():
        declaration, base = read_declaration(path), path.parent
        url = ledger_place(declaration.ledger, base=base, environ=os.environ)
        found.append(TableBooks(name, url, declared_witness(declaration, base=base)))
    return found


def listed_in(folder: Path) -> dict[str, Any]:
    """The list of a backup; a StoreError where the folder is none."""
    try:
        listed = json.loads((folder / LIST).read_text(encoding="utf-8"))
        if listed["format"] != FORMAT:
            raise StoreError(
                f"the backup in {folder} was written by a newer program",
                remedy="Use that version of understudy",
            )
        files, tables = dict(listed["files"]), dict(listed["tables"])
    except FileNotFoundError:
        raise StoreError(
            f"{folder} is no backup: it has no {LIST}",
            remedy="Name a folder that `understudy server backup` wrote",
        ) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise StoreError(
            f"the list of the backup in {folder} cannot be read", remedy="Take another backup"
        ) from None
    return {**listed, "files": files, "tables": tables}


def sqlite_url(path: Path) -> URL:
    """The URL of a ledger in a file."""
    return URL.create("sqlite", database=str(path.resolve()))


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that its owner alone may read, durably."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def told_of(folder: Path) -> Generator[None, None, None]:
    """What the system says about writing into a folder, as a StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written ({error.strerror or type(error).__name__})",
            remedy="Check the disk and the owner of the folder",
        ) from None
