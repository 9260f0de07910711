"""A witness against rollback: how far a ledger had come, kept outside it.

A copy of a ledger from last week is a perfectly good chain. Only something that is not restored together with it
can tell that it is old: a file on another disk, or on a share that the operator of the table cannot write back.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from understudy.errors import LedgerError


class Witness:
    """A small JSON file: for each table the number of entries and the hash of the last. It never goes back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def seen(self, name: str) -> tuple[int, str] | None:
        """How far the ledger had come when it was last noted."""
        known = self._read().get(name)
        return None if known is None else (known["entries"], known["head"])

    def check(self) -> None:
        """Refuse a witness that could not be written. Writes nothing."""
        folder = self.path.parent
        if not os.access(folder, os.W_OK | os.X_OK):
            missing = "cannot be written to" if folder.is_dir() else "is not there"
            raise LedgerError(
                f"the ledger's witness cannot be kept: the folder {folder} {missing}",
                remedy="Make it, or declare another `witness:`; nothing was spent",
            )

    def note(self, name: str, entries: int, head: str, *, kept: str = "nothing was spent") -> None:
        """Remember the end of a ledger, durably; an older one than the known is left out.

        `kept` says, to whom it fails, what became of the money.
        """
        try:
            with self._alone():
                known = self._read()
                if name in known and known[name]["entries"] >= entries:
                    return
                self._replace({**known, name: {"entries": entries, "head": head}})
        except OSError as error:
            raise LedgerError(
                f"the ledger's witness cannot be written ({type(error).__name__})",
                remedy=f"Check the witness's disk and folder; {kept}",
            ) from None

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise LedgerError(
                f"the ledger's witness cannot be read ({type(error).__name__})",
                remedy="Check the witness's disk and owner; nothing was spent",
            ) from None
        try:
            known = json.loads(text)
            found = {name: {"entries": line["entries"], "head": line["head"]} for name, line in known.items()}
            if any(type(line["entries"]) is not int or line["entries"] < 1 for line in found.values()):
                raise ValueError
            return found
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise LedgerError(
                "the ledger's witness is not readable as one",
                remedy="Restore it, or remove it if you know that the ledger is the newest",
            ) from None

    def _replace(self, known: dict[str, dict[str, Any]]) -> None:
        fresh = self.path.with_name(self.path.name + ".new")
        with open(fresh, "w", encoding="utf-8") as file:
            file.write(json.dumps(known, sort_keys=True, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def _alone(self) -> Generator[None, None, None]:
        """One writer at a time; the lock goes with the process that holds it."""
        handle = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
