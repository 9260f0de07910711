"""A ledger that is gone, told from one that never was: by what its charges have left behind.

A table of which nothing was ever charged has no ledger, and the first charge makes one. Where the file of a
ledger was deleted or emptied, or is looked for in another place, that would begin with the whole budget anew,
and forget what was told about the people. So before a ledger is begun, in a file or in a server's database,
what only a charge can have left beside the declaration is looked for: the declaration itself, where `understudy
start` wrote it; the coded copy of the table, which the first look makes; releases that were not paid from a
ledger in memory, and notes of unfinished ones that were begun after a charge; an export of the ledger. Where
one is found nothing is opened, until the ledger is put back or, knowingly, begun anew (`understudy ledger
new`). What `check --read` writes comes before the first charge, and proves nothing. SQLite's log without its
file is refused by `file.is_there`.

This guards against a mistake, not against a custodian who removes the traces as well: that is what a witness is
for (`witness`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

from understudy.declaration.declaration import Protect
from understudy.declaration.file import copy_place, was_started
from understudy.errors import LedgerError
from understudy.ledger.store import DurableLedger

MOST_FOLDERS = 200
"""Folders beside the declaration in which a release is looked for."""

MOST_BYTES = 1 << 24
"""A certificate, a note or an export that is longer than this is not read."""


def check_not_lost(
    ledger: DurableLedger, *, base: Path, file: Path | None, protect: Protect = Protect.PRIVACY
) -> None:
    """Refuse to begin the ledger of a table anew where traces tell that there was one; writes nothing.

    A file that is empty, a store that was made anew, and one that holds ledgers of other tables alone, hold this
    ledger as little as one that is not there. `file` is the declaration's own, and None where there is none;
    `base` is its folder, and `protect` what it protects. Raises a LedgerError that names the traces.
    """
    if ledger.is_begun:
        return
    found = list(islice(_traces(ledger.name, base=base, file=file, protect=protect), 3))
    if not found or ledger.is_begun:  # another program began it meanwhile, and then left the trace
        return
    raise LedgerError(
        f"the ledger {ledger.place} {_how_lost(ledger)}, but something was charged to the ledger of "
        f"{ledger.name!r} before: {'; '.join(found)}. To begin another would forget what was spent",
        remedy="Put the ledger back from a backup, or say where it is (`ledger:` in the declaration, or "
        "UNDERSTUDY_LEDGER). If it is lost, declare what was spent as `opening: {epsilon: …}`, and "
        "`understudy ledger new` begins another. Nothing was spent now",
    )


def _how_lost(ledger: DurableLedger) -> str:
    """In words, what is where the ledger should be."""
    if ledger.url.get_backend_name() != "sqlite":
        return "holds nothing of this table"
    file = Path(ledger.place)
    if not file.exists():
        return "is not there"
    return "holds nothing of this table" if file.stat().st_size else "is an empty file"


def _traces(name: str, *, base: Path, file: Path | None, protect: Protect) -> Iterator[str]:
    """In words, what only a charge can have left behind."""
    if file is None:
        return
    if was_started(file):
        yield f"{file.name} was written by `understudy start`, which pays for what it declares"
    if protect is Protect.PRIVACY and copy_place(file).exists():
        yield f"{copy_place(file).name} was made by a look at the table, and every look is charged"
    for path in islice(sorted(base.glob("*/certificate.json")), MOST_FOLDERS):
        told = _read(path)
        if told.get("table") == name and told.get("ledger") != "in memory":
            yield f"{path.parent.name} holds a release of the table"
    for path in islice(sorted(base.glob(".*.unfinished.json")), MOST_FOLDERS):
        note = _read(path)
        asked = cast("object", note.get("asked"))
        mine = isinstance(asked, dict) and cast("dict[str, Any]", asked).get("table") == name
        if mine and note.get("charged") is True:
            yield f"{path.name} is the note of a release that was begun after a charge"
    export = base / "ledger_export.py"
    named = f'"table": {json.dumps(name)}'
    if named in _text(export):
        yield f"{export.name} is an export of the ledger"


def _read(path: Path) -> dict[str, Any]:
    """The object in a JSON file; nothing where there is none that can be read."""
    try:
        found = json.loads(_text(path))
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= MOST_BYTES else ""
    except (OSError, UnicodeDecodeError):
        return ""
