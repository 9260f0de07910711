"""The way back from a backup.

Restoring puts back what is missing, damaged or older than the copy, and nothing else. It refuses a ledger that the
witness has seen go further, or go another way: what was spent since would be forgotten. What it replaces is moved
aside and kept.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from sqlalchemy.engine import URL

from understudy.errors import LedgerError, StoreError
from understudy.ledger.export import document, holds, verify
from understudy.server.audit_log import AuditLog
from understudy.server.backup_folder import (
    TableBooks,
    books_of,
    digest_of,
    listed_in,
    sqlite_url,
    told_of,
    write_private,
)
from understudy.server.config import ServerConfig
from understudy.server.one_server import only_server
from understudy.server.place import STATE
from understudy.server.store import ServerStore

_BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file: it belongs to that file and to no other."""

_ON_POSTGRES = "it is on Postgres, and in no backup of ours"


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of one part when a backup was restored: `restored`, `kept` or `absent`, and why."""

    what: str
    state: str
    why: str


def restore(config: ServerConfig, folder: Path) -> list[Restored]:
    """Put back from a backup what is missing, damaged or older than it. Returns what became of each part.

    Everything is checked before anything is written. Raises a LedgerError where a ledger of the backup is behind
    its witness or is another one, and a StoreError where the backup is not whole or a server is running.
    """
    listed = listed_in(folder)
    books = books_of(config)
    ledgers = sorted({found.file for found in books if found.file is not None})
    with only_server(config.state, ledgers), _unpacked(folder, listed, config.folder) as copies:
        replaced: dict[Path, Path] = {}
        done: list[Restored] = []
        for file in ledgers:
            inside = [found for found in books if found.file == file]
            copy, told = _plan(inside, listed["tables"], copies)
            done += told
            if copy is not None:
                replaced[file] = copy
        done += [
            Restored(f"ledger of {found.name}", "kept", _ON_POSTGRES) for found in books if found.file is None
        ]
        keeps_state = _is_sound_state(config.state)
        with told_of(config.folder):
            for file, copy in replaced.items():
                _put(copy, file)
            for found in books:
                done += _restore_witness(found, listed["tables"].get(found.name))
            done.append(_restore_state(config, copies, listed, keeps=keeps_state))
    return done


@contextmanager
def _unpacked(folder: Path, listed: dict[str, Any], beside: Path) -> Generator[Path, None, None]:
    """The files of a backup, whole, in a folder of their own: SQLite may write beside what it reads."""
    with told_of(beside), TemporaryDirectory(prefix=".restoring-", dir=beside) as made:
        for name, wanted in listed["files"].items():
            path = folder / name
            if Path(name).name != name or not path.is_file():
                raise _not_whole(folder, name)
            write_private(Path(made) / name, path.read_bytes())
            if digest_of(Path(made) / name) != wanted:
                raise _not_whole(folder, name)
        yield Path(made)


def _not_whole(folder: Path, name: str) -> StoreError:
    return StoreError(
        f"the backup in {folder} is not whole: {name} is missing or was changed", remedy="Restore another one"
    )


def _plan(
    inside: list[TableBooks], listed: dict[str, Any], copies: Path
) -> tuple[Path | None, list[Restored]]:
    """What to put in the place of a ledger's file, None for nothing, and what to say about each of its tables.

    A file may hold the ledgers of several tables, also of some that are served elsewhere: it is replaced as a
    whole, so that none of them may be newer than its copy. Raises a LedgerError where one is.
    """
    told = [listed.get(found.name) for found in inside]
    names = sorted({table["ledger"] for table in told if table is not None and table["ledger"] is not None})
    if not names:
        return None, [
            Restored(f"ledger of {found.name}", "kept", "the backup has no entries of it") for found in inside
        ]
    place, copy = inside[0].url, copies / names[0]
    older: list[str] = []
    newer: list[str] = []
    said: list[Restored] = []
    for name in sorted({*_names(sqlite_url(copy)), *_names(place), *(found.name for found in inside)}):
        had, has = _entries(sqlite_url(copy), name) or [], _entries(place, name)
        if has is not None and has[: len(had)] == had:
            newer += [name] if len(has) > len(had) else []
            said.append(
                Restored(f"ledger of {name}", "kept", f"{len(has)} entries, and {len(had)} in the backup")
            )
            continue
        if has is not None and had[: len(has)] != has:
            raise LedgerError(
                f"the ledger of {name!r} that is there went another way than the one in the backup",
                remedy="Find out which one is right; nothing was restored",
            )
        older.append(name)
        _check_seen(name, had, inside, listed)
        before = "there was none that is sound" if has is None else f"{len(has)} were there"
        said.append(Restored(f"ledger of {name}", "restored", f"{len(had)} entries; {before}"))
    if older and newer:
        raise LedgerError(
            f"one file holds the ledgers of {', '.join(older + newer)}, and that of {newer[0]!r} is newer "
            f"than its backup",
            remedy="Restore a newer backup; nothing was restored",
        )
    return (copy if older else None), said


def _check_seen(name: str, had: list[str], inside: list[TableBooks], listed: dict[str, Any]) -> None:
    """Refuse a copy that its witness has seen go further, or that it has not seen at all."""
    found = next((table for table in inside if table.name == name), None)
    seen = None if found is None else _seen(found, listed.get(name))
    if seen is None:
        return
    entries, head = seen
    if entries > len(had):
        raise LedgerError(
            f"the ledger of {name!r} in the backup has {len(had)} entries, and its witness has seen {entries}: "
            f"what was spent since would be forgotten",
            remedy="Restore a newer backup, or declare a new table with what was spent as its `opening`; nothing "
            "was restored",
        )
    if entries and had[entries - 1] != head:
        raise LedgerError(
            f"the ledger of {name!r} in the backup is not the one that its witness has seen",
            remedy="Find out which one is right; nothing was restored",
        )


def _names(url: URL) -> list[str]:
    """The tables whose ledgers are in a file; none where it is missing or cannot be read."""
    if not Path(url.database or "").exists():
        return []
    try:
        with closing(
            sqlite3.connect(f"file:{quote(url.database or '')}?mode=rw", uri=True, timeout=30)
        ) as file:
            return [str(row[0]) for row in file.execute("SELECT name FROM understudy_ledger ORDER BY name")]
    except sqlite3.Error:
        return []


def _entries(url: URL, name: str) -> list[str] | None:
    """The hashes of a ledger's entries; None where there is none, or none that is sound."""
    try:
        if not holds(url, name) or not verify(url, name)["sound"]:
            return None
        return [entry["hash"] for entry in document(url, name, answers=False)["entries"]]
    except LedgerError:
        return None


def _seen(found: TableBooks, listed: dict[str, Any] | None) -> tuple[int, str] | None:
    """How far the witness has seen a ledger go: the one that is there, else the one in the backup."""
    if found.witness is not None and found.witness.knows(found.name):
        return found.witness.seen(found.name)
    kept = None if listed is None else listed["witness"]
    return None if kept is None else (kept["entries"], kept["head"])


def _restore_witness(found: TableBooks, listed: dict[str, Any] | None) -> list[Restored]:
    if found.witness is None:
        return []
    what = f"witness of {found.name}"
    if found.witness.knows(found.name):
        return [Restored(what, "kept", "a witness never goes back")]
    if listed is None or listed["witness"] is None:
        return [Restored(what, "absent", "the backup has none; `understudy ledger witness --new` makes one")]
    found.witness.make(found.name, listed["witness"]["entries"], listed["witness"]["head"])
    return [Restored(what, "restored", f"it has seen {listed['witness']['entries']} entries")]


def _restore_state(config: ServerConfig, copies: Path, listed: dict[str, Any], *, keeps: bool) -> Restored:
    if keeps:
        return Restored(STATE, "kept", "it is sound, and newer than the backup")
    if listed["state"] is None:
        return Restored(STATE, "absent", "the backup has none: make new tokens")
    with ServerStore(copies / STATE, new=False) as store, store.writing() as tx:
        tx.execute("DELETE FROM login")
        AuditLog(store).write_in(tx, "restore", "restore server.db", {"backup": listed["at"]})
    _put(copies / STATE, config.state)
    return Restored(
        STATE,
        "restored",
        f"as of {listed['at']}: tokens that were revoked since are valid again, revoke them anew",
    )


def _is_sound_state(path: Path) -> bool:
    if not path.exists():
        return False
    try:
        with ServerStore(path, new=False) as store, store.reading() as tx:
            return tx.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
    except StoreError:
        return False


def _put(copy: Path, place: Path) -> None:
    """Put a copy where a file was. The old one is moved aside with what SQLite keeps beside it."""
    fresh = place.with_name(place.name + ".restoring")
    with suppress(FileNotFoundError):
        fresh.unlink()
    write_private(fresh, copy.read_bytes())
    aside, number = place.with_name(f"{place.name}.before-restore"), 1
    while aside.exists():
        number += 1
        aside = place.with_name(f"{place.name}.before-restore-{number}")
    for ending in ("", *_BESIDE):
        old = Path(f"{place}{ending}")
        if old.exists():
            os.rename(old, f"{aside}{ending}")
    os.rename(fresh, place)
    handle = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
