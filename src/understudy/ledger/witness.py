"""A witness against rollback: how far a ledger had come, kept outside it.

A copy of a ledger from last week is a perfectly good chain. Only something that is not restored together with it
can tell that it is old: a file on another disk, or on a share that the operator of the table cannot write back.

A witness that is missing is not a new one: whoever can empty its folder could else make it forget. It is made
once, by `understudy ledger witness --new`, for the ledger as it stands, and from then on it must be there.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from understudy.errors import LedgerError
from understudy.ledger.file import PRIVATE


class Witness:
    """A small JSON file: for each table the number of entries and the hash of the last. It never goes back.

    A table of which nothing was charged yet has 0 entries in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def seen(self, name: str) -> tuple[int, str]:
        """How far the ledger had come when it was last noted; a LedgerError where the witness knows of none."""
        known = self._read().get(name)
        if known is None:
            raise self._unknown(name)
        return known["entries"], known["head"]

    def knows(self, name: str) -> bool:
        """Whether the witness was made for a table."""
        return name in self._read()

    def check(self, name: str) -> None:
        """Refuse a witness that was not made for a table, or that could not be written. Writes nothing."""
        self.check_folder()
        if not self.knows(name):
            raise self._unknown(name)

    def check_folder(self) -> None:
        """Refuse a folder in which no witness could be kept."""
        folder = self.path.parent
        if not os.access(folder, os.W_OK | os.X_OK):
            missing = "cannot be written to" if folder.is_dir() else "is not there"
            raise LedgerError(
                f"the ledger's witness cannot be kept: the folder {folder} {missing}",
                remedy="Make it, or declare another `witness:`; nothing was spent",
            )

    def make(self, name: str, entries: int, head: str) -> None:
        """Begin to witness a ledger as it stands, durably. One that is witnessed already is never begun anew."""
        self.check_folder()
        with self._writing("nothing was spent"):
            known = self._read()
            if name in known:
                raise LedgerError(
                    f"the witness {self.path} has seen {known[name]['entries']} entries of {name!r} already",
                    remedy="It is not replaced: what it saw is what it is for",
                )
            self._replace({**known, name: {"entries": entries, "head": head}})

    def note(self, name: str, entries: int, head: str, *, kept: str = "nothing was spent") -> None:
        """Remember the end of a ledger, durably; an older one than the known is left out.

        `kept` says, to whom it fails, what became of the money.
        """
        with self._writing(kept):
            known = self._read()
            if name not in known:
                raise self._unknown(name, kept)
            if known[name]["entries"] < entries:
                self._replace({**known, name: {"entries": entries, "head": head}})

    @contextmanager
    def still(self) -> Generator[None, None, None]:
        """Hold the witness as it is: whoever wants to note an entry waits until this is left.

        What a ledger holds while this is held is at least what the witness has seen, since an entry is noted after
        it was committed. One holder at a time, in all processes.
        """
        self.check_folder()
        with self._writing("nothing was spent"):
            yield

    def _unknown(self, name: str, kept: str = "nothing was spent") -> LedgerError:
        found = "has no line of" if self.path.exists() else "is not there, to tell of"
        return LedgerError(
            f"the declared witness {self.path} {found} the ledger of {name!r}",
            remedy="Put it back if it was lost; if there never was one, `understudy ledger witness --new` makes "
            f"it for the ledger as it stands; {kept}",
        )

    @contextmanager
    def _writing(self, kept: str) -> Generator[None, None, None]:
        """Alone, and with what the system says as a LedgerError that tells what became of the money."""
        try:
            with self._alone():
                yield
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
            if any(type(line["entries"]) is not int or line["entries"] < 0 for line in found.values()):
                raise ValueError
            return found
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise LedgerError(
                "the ledger's witness is not readable as one",
                remedy="Restore it; or, if you know that the ledger is the newest, remove it and make another "
                "with `understudy ledger witness --new`",
            ) from None

    def _replace(self, known: dict[str, dict[str, Any]]) -> None:
        fresh = self.path.with_name(self.path.name + ".new")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        with open(handle, "w", encoding="utf-8") as file:
            if self.path.exists():
                os.fchmod(handle, stat.S_IMODE(self.path.stat().st_mode))  # as its keeper set it
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
        handle = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, PRIVATE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
