"""A disk that remembers every write and sync of SQLite, and the states a power cut could leave it in.

Run as a program, ``python recording_disk.py FOLDER LOG [SETTING …]`` keeps a ledger in FOLDER through a virtual
file system that records what it passes on, and pickles the record to LOG. Exit status 3: this Python's SQLite
cannot be reached. The settings are PRAGMAs for every connection.
"""

from __future__ import annotations

import ctypes
import pickle
import random
import sqlite3
import sys
from collections.abc import Iterator
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.engine import URL

from understudy.ledger import database
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.event import Selection, SparseVector

BUDGET = Budget.of(1)
SECTOR = 512
CREATED = 0x4
SIDE_FILE = 0x800 | 0x80000
RECORDED = 0x100 | SIDE_FILE
"""Flags of a main database, its rollback journal and its write-ahead log."""


class Op(NamedTuple):
    """Something that happened: a write, truncate, sync or delete of a file, a sync of the folder (which makes
    deletions last), or a promise to the outside.
    """

    kind: str
    file: str = ""
    offset: int = 0
    data: object = b""


# ---- the recording


class Vfs(ctypes.Structure):
    """sqlite3_vfs, as far as it is replaced."""

    _fields_ = (
        ("iVersion", c_int), ("szOsFile", c_int), ("mxPathname", c_int), ("pNext", c_void_p),
        ("zName", c_char_p), ("pAppData", c_void_p), ("xOpen", c_void_p), ("xDelete", c_void_p),
        ("others", c_void_p * 14),
    )  # fmt: skip


class Methods(ctypes.Structure):
    """sqlite3_io_methods, as far as it is replaced."""

    _fields_ = (
        ("iVersion", c_int), ("xClose", c_void_p), ("xRead", c_void_p), ("xWrite", c_void_p),
        ("xTruncate", c_void_p), ("xSync", c_void_p), ("others", c_void_p * 13),
    )  # fmt: skip


class File(ctypes.Structure):
    """sqlite3_file."""

    _fields_ = (("pMethods", POINTER(Methods)),)


# Names are passed on as the pointers they are: SQLite keeps parameters in the bytes around them.
OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
DELETE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)
WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
SYNC = CFUNCTYPE(c_int, c_void_p, c_int)


def _name(pointer: int) -> str:
    return Path(ctypes.string_at(pointer).decode()).name


class Recorder:
    """Registers itself as the default file system of the SQLite that this Python uses."""

    def __init__(self) -> None:
        self.log: list[Op] = []
        self._files: dict[int, str] = {}
        self._new: set[int] = set()
        self._patched: dict[int, Methods] = {}
        self._kept: list[object] = []
        library = ctypes.CDLL("libsqlite3.so.0")
        library.sqlite3_libversion.restype = c_char_p
        if library.sqlite3_libversion().decode() != sqlite3.sqlite_version:
            raise OSError("another SQLite")
        library.sqlite3_vfs_find.restype = POINTER(Vfs)
        self._real = library.sqlite3_vfs_find(None)
        self._vfs = Vfs.from_buffer_copy(self._real.contents)
        self._vfs.zName = b"recording"
        self._vfs.xOpen = self._pointer(OPEN(self._open))
        self._vfs.xDelete = self._pointer(DELETE(self._delete))
        library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)

    def _pointer(self, function: object) -> int | None:
        self._kept.append(function)
        return ctypes.cast(function, c_void_p).value

    def _open(self, _, name, file, flags, out) -> int:
        real = OPEN(self._real.contents.xOpen)
        status = real(ctypes.cast(self._real, c_void_p).value, name, file, flags, out)
        handle = File.from_address(file)
        if status == 0 and handle.pMethods and flags & RECORDED:
            self._files[file] = _name(name)
            self._new.discard(file)
            if flags & CREATED and flags & SIDE_FILE:
                self._new.add(file)
            handle.pMethods = ctypes.pointer(self._recording(handle.pMethods))
        return status

    def _recording(self, methods) -> Methods:
        key = ctypes.cast(methods, c_void_p).value
        if key not in self._patched:
            write, truncate = WRITE(methods.contents.xWrite), TRUNCATE(methods.contents.xTruncate)
            sync = SYNC(methods.contents.xSync)

            def on_write(file, data, amount, offset) -> int:
                self.log.append(Op("write", self._files[file], offset, ctypes.string_at(data, amount)))
                return write(file, data, amount, offset)

            def on_truncate(file, size) -> int:
                self.log.append(Op("truncate", self._files[file], size))
                return truncate(file, size)

            def on_sync(file, flags) -> int:
                status = sync(file, flags)
                self.log.append(Op("sync", self._files[file]))
                if file in self._new:  # SQLite syncs the folder of a new journal or log with its first sync
                    self._new.remove(file)
                    self.log.append(Op("folder"))
                return status

            copy = Methods.from_buffer_copy(methods.contents)
            copy.xWrite = self._pointer(WRITE(on_write))
            copy.xTruncate = self._pointer(TRUNCATE(on_truncate))
            copy.xSync = self._pointer(SYNC(on_sync))
            self._patched[key] = copy
        return self._patched[key]

    def _delete(self, _, name, directory) -> int:
        self.log.append(Op("delete", _name(name)))
        status = DELETE(self._real.contents.xDelete)(ctypes.cast(self._real, c_void_p).value, name, directory)
        if directory:
            self.log.append(Op("folder"))
        return status


def worked(folder: Path, recorder: Recorder) -> None:
    """A day in the life of a ledger, with every promise noted at the moment it is made."""
    promise = recorder.log.append
    url = URL.create("sqlite", database=str(folder / "understudy.ledger"))
    for day in range(2):
        ledger = DurableLedger(url, "t", BUDGET)
        handle = ledger.charge(SparseVector(epsilon=Fraction(1, 100)), question="h", request="h")
        if not handle.repeated:
            ledger.settle(handle, b"opened", hidden=b"0")
        for i in range(8):
            request = f"{day} {i}"
            debit = ledger.charge(Selection(epsilon=Fraction(1, 1000)), question="q", request=request)
            promise(Op("charged", data=request))
            if i % 4 != 3:
                answer = ledger.settle(debit, f"answer to {request} ".encode() * (1 + 40 * (i % 3)))
                promise(Op("released", data=(request, answer)))
            latest = ledger.hidden(handle)
            said = b"%d" % (int(latest.state) + 1)
            ledger.advance(handle, step=latest.step, question="q", answer=said, state=said)
            promise(Op("moved", data=int(said)))
        ledger.close()


# ---- the power cut


def states_after(log: list[Op], point: int, chance: random.Random) -> Iterator[dict[str, bytes]]:
    """States that a cut after the first `point` operations may leave: what was synced, and any part of the rest.

    Nothing of the rest; all of it; a prefix whose last write is torn; a random part in which any write is
    missing, whole or torn. Files are independent of each other.
    """
    by_file: dict[str, list[Op]] = {}
    for op in log[:point]:
        if op.kind == "folder":
            for name, ops in by_file.items():
                if ops[-1].kind == "delete":
                    ops.append(Op("sync", name))
        elif op.file:
            by_file.setdefault(op.file, []).append(op)
    cut = {name: _split(ops) for name, ops in by_file.items()}
    yield _disk(cut, lambda pending: [])
    if not any(pending for _, pending in cut.values()):
        return
    yield _disk(cut, lambda pending: pending)
    yield _disk(cut, lambda pending: _prefix(pending, chance))
    yield _disk(cut, lambda pending: _part(pending, chance))


def _split(ops: list[Op]) -> tuple[list[Op], list[Op]]:
    last = max((i for i, op in enumerate(ops) if op.kind == "sync"), default=-1)
    return ops[: last + 1], ops[last + 1 :]


def _prefix(pending: list[Op], chance: random.Random) -> list[Op]:
    if not pending:
        return []
    count = chance.randrange(len(pending))
    return [*pending[:count], _torn(pending[count], chance)]


def _part(pending: list[Op], chance: random.Random) -> list[Op]:
    kept = []
    for op in pending:
        fate = chance.randrange(3)
        if fate:
            kept.append(op if fate == 1 else _torn(op, chance))
    return kept


def _torn(op: Op, chance: random.Random) -> Op:
    """The first sectors of a write, or its first bytes."""
    if op.kind != "write":
        return op
    size = chance.randrange(len(op.data) + 1)
    return op._replace(data=op.data[: size if chance.random() < 0.3 else size // SECTOR * SECTOR])


def _disk(cut: dict[str, tuple[list[Op], list[Op]]], choose) -> dict[str, bytes]:
    disk: dict[str, bytearray] = {}
    for name, (synced, pending) in cut.items():
        for op in [*synced, *choose(pending)]:
            if op.kind == "delete":
                disk.pop(name, None)
            if op.kind in ("delete", "sync"):
                continue
            content = disk.setdefault(name, bytearray())
            if op.kind == "truncate":
                content[op.offset :] = b"\0" * (op.offset - len(content))
            elif op.kind == "write" and op.data:
                content.extend(b"\0" * (op.offset - len(content)))
                content[op.offset : op.offset + len(op.data)] = op.data
    return {name: bytes(content) for name, content in disk.items()}


if __name__ == "__main__":
    try:
        recording = Recorder()
    except (OSError, ValueError, AttributeError):
        sys.exit(3)
    database._SQLITE_SETTINGS += tuple(f"PRAGMA {setting}" for setting in sys.argv[3:])
    worked(Path(sys.argv[1]), recording)
    Path(sys.argv[2]).write_bytes(pickle.dumps([tuple(op) for op in recording.log]))
