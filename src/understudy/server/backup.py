"""Copies of what a server must not lose, taken while it may go on.

A backup has the ledgers, `server.db` and the witnesses, copied in this order. Notes in a witness wait meanwhile,
so that no ledger in a backup is behind its own witness. A backup is as secret as the ledger: its folder is its
owner's alone.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from understudy.errors import LedgerError, StoreError
from understudy.ledger.export import document, holds, verify
from understudy.server.backup_folder import (
    FORMAT,
    LIST,
    TableBooks,
    books_of,
    digest_of,
    sqlite_url,
    told_of,
    write_private,
)
from understudy.server.config import ServerConfig
from understudy.server.place import STATE
from understudy.server.store import ServerStore, as_text


def backup(config: ServerConfig, folder: Path) -> dict[str, Any]:
    """Copy the ledgers, `server.db` and the witnesses of a server into a new folder. Returns what is in it.

    Raises a LedgerError where a ledger does not verify, and a StoreError where the folder is not empty or cannot
    be written; a backup that failed has no list and is never restored.
    """
    _make_folder(folder)
    books = books_of(config)
    files: dict[str, str] = {}
    with _still(books), told_of(folder):
        ledgers: dict[Path, str] = {}
        for found in books:
            if found.file is not None and found.file.exists() and found.file not in ledgers:
                ledgers[found.file] = f"ledger-{len(ledgers) + 1}.db"
                _copy_database(found.file, folder / ledgers[found.file])
        if config.state.exists():
            with ServerStore(config.state, new=False) as store:
                at = store.now()
                store.copy_to(folder / STATE)
        else:
            at = None
        tables = {found.name: _described(found, ledgers, folder) for found in books}
        for path in sorted(folder.iterdir()):
            files[path.name] = digest_of(path)
    listed = {
        "format": FORMAT,
        "at": None if at is None else as_text(at),
        "tables": tables,
        "state": STATE if config.state.exists() else None,
        "files": files,
    }
    with told_of(folder):
        write_private(folder / LIST, json.dumps(listed, indent=1, sort_keys=True).encode() + b"\n")
    return listed


def _described(found: TableBooks, ledgers: dict[Path, str], folder: Path) -> dict[str, Any]:
    """How far the copied ledger of a table has come, and what its witness has seen."""
    seen = None
    if found.witness is not None and found.witness.knows(found.name):
        entries, head = found.witness.seen(found.name)
        seen = {"entries": entries, "head": head}
    if found.file is None:
        return {"ledger": None, "postgres": True, "entries": None, "head": None, "witness": seen}
    copy = ledgers.get(found.file)
    if copy is None or not holds(sqlite_url(folder / copy), found.name):
        return {"ledger": copy, "postgres": False, "entries": 0, "head": None, "witness": seen}
    verdict = verify(sqlite_url(folder / copy), found.name)
    if not verdict["sound"]:
        raise LedgerError(
            f"the ledger of {found.name!r} does not verify: {verdict['problems'][0]}",
            remedy="`understudy ledger verify` tells all; keep the last backup that was sound",
        )
    entries = document(sqlite_url(folder / copy), found.name, answers=False)["entries"]
    return {
        "ledger": copy,
        "postgres": False,
        "entries": len(entries),
        "head": entries[-1]["hash"],
        "witness": seen,
    }


def _copy_database(source: Path, target: Path) -> None:
    """A copy of a SQLite file as it is at one moment, by SQLite's own backup, while others write."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            closing(sqlite3.connect(f"file:{quote(str(source))}?mode=rw", uri=True, timeout=30)) as original,
            closing(sqlite3.connect(target)) as copy,
        ):
            original.backup(copy)
    except sqlite3.Error as error:
        raise LedgerError(
            f"the ledger {source} cannot be copied ({getattr(error, 'sqlite_errorname', type(error).__name__)})",
            remedy="`understudy ledger verify` tells whether it is sound; keep the last backup that was",
        ) from None


def _make_folder(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(f"{folder} is not empty", remedy="Name a new folder for each backup")
    with told_of(folder):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)


@contextmanager
def _still(books: list[TableBooks]) -> Generator[None, None, None]:
    """Hold every witness as it is, each file once."""
    witnesses = {found.witness.path.resolve(): found.witness for found in books if found.witness is not None}
    with ExitStack() as held:
        for _, witness in sorted(witnesses.items()):
            held.enter_context(witness.still())
        yield
