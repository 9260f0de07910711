"""A coded copy of a table in a file, kept beside its project, so that a question need not read the file again.

It holds, for every row that counts, the code of its cell in every declared attribute: no more than what any look
reads, and as sensitive as the table. So it is made only where the declaration says `coded_copy: true`, and its
owner alone can read and write it. A copy that another user owns or could have written is not used.

Which rows it is a copy of stands in its header, as `Truth.version`: a digest of how the table is read, of the
stamps of all its files, and of the declared cells. When any of these changes the copy is not used, and the next
look at the table replaces it. A checksum guards it against damage.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Domain

MARK = b"UNDERSTUDYCODES\x01"
"""The first bytes of the file. The last of them changes with its form, or with the rule that codes are made by."""

ALIGNED = 64
"""Each column begins at a multiple of so many bytes."""

BATCH_ROWS = 1 << 17

Codes = Mapping[str, NDArray[Any]]
"""For each attribute, one code for each row of a batch."""


class CodedCopy:
    """The place of a coded copy, which may be absent, stale or damaged: then `load` finds nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, version: str, domain: Domain) -> list[dict[str, NDArray[Any]]] | None:
        """The codes of the table of this version in batches of rows; None where there is no copy of it."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return None
        with open(handle, "rb") as file:
            if not _is_own(os.fstat(handle)):
                return None
            header = _header(file)
            if header is None or header["version"] != version:
                return None
            data = np.memmap(file, np.uint8, mode="c", offset=file.tell(), shape=(header["bytes"],))
        if _checksum(header, data) != header["checksum"]:
            return None
        rows, columns = header["rows"], header["columns"]
        if [column["name"] for column in columns] != list(domain.names):
            return None
        whole = {
            column["name"]: np.frombuffer(data, column["type"], rows, column["at"]) for column in columns
        }
        starts = range(0, max(rows, 1), BATCH_ROWS)
        return [{name: codes[at : at + BATCH_ROWS] for name, codes in whole.items()} for at in starts]

    def save(self, version: str, domain: Domain, batches: Sequence[Codes]) -> bool:
        """Write the copy, or replace an older one, in one step: whether that was possible.

        A folder that cannot be written to costs time at the next question, and is no error. A file of that name
        which is no copy stays as it is.
        """
        if not self._is_free():
            return False
        columns, at = [], 0
        whole = {name: np.concatenate([batch[name] for batch in batches]) for name in domain.names}
        for name, codes in whole.items():
            columns.append({"name": name, "type": codes.dtype.str, "at": at})
            at += -(-codes.nbytes // ALIGNED) * ALIGNED
        data = np.zeros(at, np.uint8)
        for column, codes in zip(columns, whole.values(), strict=True):
            data[column["at"] : column["at"] + codes.nbytes] = codes.view(np.uint8)
        header: dict[str, Any] = {
            "version": version,
            "rows": len(next(iter(whole.values()))),
            "bytes": at,
            "columns": columns,
        }
        text = json.dumps({**header, "checksum": _checksum(header, data)}).encode()
        fresh = self.path.with_name(f".{self.path.name}.{token_hex(8)}")
        try:
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(handle, "wb") as file:
                file.write(MARK + len(text).to_bytes(8, "little") + text)
                file.write(data.data)
            os.replace(fresh, self.path)
        except OSError:
            return False
        finally:  # also where somebody interrupts: nothing of the rows is left behind
            with suppress(OSError):
                fresh.unlink()
        return True

    def _is_free(self) -> bool:
        """Whether there is nothing at the copy's place, or a copy."""
        try:
            with open(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                return file.read(len(MARK)) == MARK
        except FileNotFoundError:
            return True
        except OSError:  # a link, a folder, somebody else's file
            return False


def _is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to whoever runs this program, who alone can read or write it."""
    own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return stat.S_ISREG(status.st_mode) and own and not stat.S_IMODE(status.st_mode) & 0o077


def _header(file: Any) -> dict[str, Any] | None:
    """What a copy says about itself; None for a file that is not one, or not a whole one."""
    begin = file.read(len(MARK) + 8)
    mark, length = begin[: len(MARK)], int.from_bytes(begin[len(MARK) :], "little")
    size = os.fstat(file.fileno()).st_size
    if mark != MARK or length > size:
        return None
    try:
        header = json.loads(file.read(length))
        whole = len(begin) + length + header["bytes"] == size
        known = all(key in header for key in ("version", "rows", "columns", "checksum"))
    except (ValueError, TypeError, KeyError):
        return None
    return header if whole and known else None


def _checksum(header: dict[str, Any], data: NDArray[np.uint8]) -> int:
    """Of everything that a copy says, but the checksum itself."""
    told = {key: value for key, value in header.items() if key != "checksum"}
    return zlib.crc32(data.data, zlib.crc32(json.dumps(told, sort_keys=True).encode()))
