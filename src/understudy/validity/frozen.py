"""Predictions of an estimator that was frozen first: from a process of its own, which keeps nothing of the rows.

A certificate about the population needs that nothing but the mechanism reads the sealed rows. An estimator of this
process reads them to predict, and can remember them for the next one. So it is serialised before it sees a row,
and a new process starts from these bytes, gets the rows, and gives back predictions alone.

Enforced            a new interpreter (no fork: no inherited memory, files or environment), an empty folder to work
                    in, which is removed, no input or output but the predictions, an array of plain values with one
                    entry for each row; no file grows, no core dump, limits on processor time and waiting; it is
                    killed with its group when it has answered
on Linux, besides   where the kernel grants it, Landlock: no file or folder is made, removed or opened for writing,
                    anywhere; namespaces: no network, no other process in sight, what it starts dies with it. What
                    was not granted is named in the certificate
Not enforced        time (how long it takes can be seen), the processor's caches, time stamps and modes of the
                    user's own files; it may read whatever the user may read: labels must not lie about in files
"""

from __future__ import annotations

import io
import json
import os
import pickle
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError

_WORKER = Path(__file__).with_name("frozen_worker.py")
_PLAIN = "biufUM"
"""Kinds of arrays that predictions may be: numbers, text, dates."""

_ENTRY = 512
"""Bytes of one prediction at most."""

_GUARDIAN = 5.0
"""Seconds that a process has to end all that it started, before it is killed itself."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a frozen estimator gave: an array with one entry for each row, or nothing that is one.

    `unprevented` names what the system did not keep the process from.
    """

    found: NDArray[Any] | None
    unprevented: tuple[str, ...]


class _TooLate(Exception):
    """The process has not answered in time, or has answered too much."""


def predict_frozen(
    estimator: Any, X: Any, responses: tuple[str, ...], *, rows: int, columns: int, seconds: float
) -> Predicted:
    """Predictions for the rows of X, by the first of the methods `responses` that the estimator has.

    An estimator that cannot be serialised, or not be loaded, is refused before it sees a row. Whatever goes wrong
    after that (an error, too long, another shape) gives no predictions and no words: they could tell of the rows.
    """
    try:
        frozen = pickle.dumps(estimator)
    except Exception as error:
        raise ParameterError(
            f"the estimator cannot be frozen ({type(error).__name__}: {error}): it must be possible to pickle it. "
            f"Nothing was counted"
        ) from None
    deadline = monotonic() + seconds
    with TemporaryDirectory(prefix="understudy-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", str(_WORKER)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder,
            env=_environment(), start_new_session=True, close_fds=True,
        )  # fmt: skip
        try:
            return _conversation(process, frozen, X, responses, rows, columns, seconds, deadline)
        finally:
            process.terminate()  # where it has a namespace, its guardian ends all that is in there
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_GUARDIAN)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    cast("IO[bytes]", stream).close()
            process.wait()


def _conversation(
    process: subprocess.Popen[bytes], frozen: bytes, X: Any, responses: tuple[str, ...], rows: int, columns: int,
    seconds: float, deadline: float,
) -> Predicted:  # fmt: skip
    path = [str(Path(place).resolve()) if place in ("", ".") else place for place in sys.path]
    terms = {"path": path, "responses": responses, "seconds": int(seconds) + 1, "size": len(frozen)}
    _send(process, json.dumps(terms).encode() + b"\n" + frozen)
    try:
        ready = json.loads(_read(process, deadline, most=1 << 16, line=True) or "{}")
    except (_TooLate, ValueError):
        ready = {}
    if "unprevented" not in ready:
        fault = ready.get("fault", "it ended")
        raise ParameterError(
            f"the estimator cannot be loaded in a process of its own ({fault}): its class must be in a module "
            f"that can be imported. Nothing was counted"
        )
    unprevented = tuple(map(str, ready["unprevented"]))
    _send(process, pickle.dumps(X))
    try:
        answered = _read(process, deadline, most=_ENTRY * rows * max(columns, 1) + (1 << 12))
        found = np.load(io.BytesIO(answered), allow_pickle=False)
    except (_TooLate, ValueError, EOFError, OSError):
        return Predicted(None, unprevented)
    fits = found.ndim in (1, 2) and len(found) == rows and found.dtype.kind in _PLAIN
    return Predicted(found if fits else None, unprevented)


def _send(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write from a thread: a process that does not read must not hold up the one that waits for it."""

    def write() -> None:
        with suppress(OSError, ValueError):
            stream = cast("IO[bytes]", process.stdin)
            stream.write(data)
            stream.flush()

    Thread(target=write, daemon=True).start()


def _read(process: subprocess.Popen[bytes], deadline: float, *, most: int, line: bool = False) -> bytes:
    """All that the process says, or its next line."""
    pipe = cast("IO[bytes]", process.stdout).fileno()
    found = bytearray()
    while True:
        left = deadline - monotonic()
        if left <= 0 or len(found) > most or not select.select([pipe], [], [], left)[0]:
            raise _TooLate
        piece = os.read(pipe, 1 if line else 1 << 16)
        found += piece
        if not piece or (line and piece == b"\n"):
            return bytes(found)


def _environment() -> dict[str, str]:
    """Nothing of this process's environment; one thread for each library, which is all that predicting needs."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {"PATH": os.defpath, "LANG": "C.UTF-8"} | single
