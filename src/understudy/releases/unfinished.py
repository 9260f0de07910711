"""A note beside the output folder: under which name a release was begun, and what was asked of it.

What a run bought is in the ledger under its name. So whoever runs the same command again, after a crash or a
Ctrl-C, goes on under that name and pays for nothing twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.errors import RefusedError
from understudy.releases.files import CERTIFICATE
from understudy.releases.folder import beside


@dataclass(frozen=True)
class Unfinished:
    """The note of an output folder; it is there from before the first debit until the folder is."""

    folder: Path

    @property
    def path(self) -> Path:
        return beside(self.folder, "unfinished.json")

    def name(self) -> str | None:
        """The name of the run that was begun, or None."""
        note = self._read()
        return None if note is None else note["name"]

    def going_on(self, asked: Mapping[str, Any]) -> str | None:
        """The name of the run that was begun and would go on where the same is `asked`; None where there is none.

        Raises a RefusedError where something else was asked then.
        """
        note = self._read()
        if note is None:
            return None
        if note["asked"] != dict(asked):
            raise RefusedError(
                "a release of this name that asked for something else was begun and not finished",
                remedy="finish or close that one first, or take another name",
                detail=f"a release that asked for something else was begun for {self.folder} and not finished "
                f"(run {note['name']}): give its command again to finish it, or close it with --abandon",
            )
        return note["name"]

    def begin(self, asked: Mapping[str, Any], name: str, *, charged: bool = False) -> str:
        """The name to run under: the noted one where the same was asked before, else `name`, which is noted.

        The note says whether the ledger was charged before: only then does it prove that there was a ledger,
        since it is written before the first debit of the run.
        """
        begun = self.going_on(asked)
        if begun is not None:
            return begun
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            {"name": name, "asked": asked, "charged": charged}, ensure_ascii=False, sort_keys=True
        )
        new = self.path.with_suffix(".new")
        with open(new, "w", encoding="utf-8") as note_file:
            note_file.write(text + "\n")
            note_file.flush()
            os.fsync(note_file.fileno())
        os.replace(new, self.path)
        return name

    def missing(self) -> list[Path]:
        """The folders above that are not there, the deepest first: `begin` makes them."""
        return [folder for folder in self.path.parents if not folder.exists()]

    def end(self, *, folders: Iterable[Path] = ()) -> None:
        """Take the note away, and those of the folders that hold nothing."""
        self.path.unlink(missing_ok=True)
        for folder in folders:
            with suppress(OSError):
                folder.rmdir()

    def _read(self) -> dict[str, Any] | None:
        try:
            note = json.loads(self.path.read_text(encoding="utf-8"))
            kept = {"name": str(note["name"]), "asked": dict(note["asked"])}
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise RefusedError(
                "the note of an unfinished release of this name cannot be read",
                remedy="close that release, or take another name",
                detail=f"the note {self.path} of an unfinished release cannot be read ({type(error).__name__}): "
                "close it with --abandon",
            ) from None
        if self._made() == kept["name"]:  # killed after the folder took its place
            self.end()
            return None
        return kept

    def _made(self) -> str | None:
        """The run that made the folder that is there."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            return json.loads((self.folder / CERTIFICATE).read_text(encoding="utf-8"))["run"]
        return None
