"""The process that a frozen estimator predicts in. Run as a script, with the standard library alone until it has
walls.

It reads from its standard input a JSON line, the serialised estimator, and, once it has answered that it is
ready, the rows; it answers with a JSON line and the predictions, and ends. `frozen` is the other side, and says
what is enforced.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import pickle
import resource
import signal
import sys
from typing import Any, BinaryIO, NoReturn

NEW_IPC, NEW_USER, NEW_PROCESSES, NEW_NETWORK = 0x08000000, 0x10000000, 0x20000000, 0x40000000
LANDLOCK_CREATE, LANDLOCK_RESTRICT = 444, 446
PARENT_DEATH_SIGNAL, NO_NEW_PRIVILEGES = 1, 38


def main() -> None:
    """Read the terms and the estimator, say that it is ready, read the rows, answer, end."""
    request, reply = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    told = json.loads(request.readline())
    limits(told["seconds"])
    unprevented = walls()
    sys.path[:] = told["path"]
    try:
        estimator = pickle.loads(
            request.read(told["size"])
        )  # it is the caller's own, from the caller's own process
        predict = next(
            (getattr(estimator, name) for name in told["responses"] if hasattr(estimator, name)), None
        )
        if predict is None:
            raise AttributeError(f"it has none of {', '.join(told['responses'])}")
    except Exception as error:
        line(reply, {"fault": f"{type(error).__name__}: {error}"})  # no sealed row has been seen yet
        return
    line(reply, {"unprevented": unprevented})
    reply.write(predictions(predict(pickle.load(request))))
    reply.flush()


def line(reply: BinaryIO, said: dict[str, Any]) -> None:
    """One line of the answer."""
    reply.write(json.dumps(said).encode() + b"\n")
    reply.flush()


def predictions(found: Any) -> bytes:
    """Predictions as the bytes of one array of plain values: nothing that is unpickled on the other side."""
    import numpy as np

    array = np.asarray(found)
    if array.dtype == object:
        array = np.array(array.tolist())
    kept = io.BytesIO()
    np.save(kept, array, allow_pickle=False)
    return kept.getvalue()


def limits(seconds: int) -> None:
    """No file grows, no core is dumped, processor time ends."""
    for which, most in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, seconds),
    ):
        resource.setrlimit(which, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write fails with an error, as in a full file system


def walls() -> list[str]:
    """Shut what this system lets us shut; what stays open is named."""
    unprevented = []
    if not alone():
        unprevented.append("network and other processes")
    if not without_files():
        unprevented.append("new and changed file names")
    return unprevented


def alone() -> bool:
    """Namespaces of its own (Linux): no network, no process to talk to; what it starts ends with it."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if libc.unshare(NEW_USER | NEW_NETWORK | NEW_IPC | NEW_PROCESSES) == 0:
            child = os.fork()  # the first process of the new namespace: all others in it are killed with it
            if child:
                guard(child)
            libc.prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
            return True
    return False


def guard(child: int) -> NoReturn:
    """Outside of the namespace, and without a word of the rows: end its first process when told to, or with it."""
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    for stream in range(3, 10):
        with contextlib.suppress(OSError):
            os.close(stream)
    os.waitpid(child, 0)
    os._exit(0)


def without_files() -> bool:
    """Landlock (Linux 5.13): no file or folder is made, removed, renamed or opened for writing, anywhere."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        abi = libc.syscall(LANDLOCK_CREATE, None, 0, 1)
        if abi < 1:
            return False
        writing = 1 << 1 | sum(1 << bit for bit in range(4, 13))
        writing |= (1 << 13 if abi >= 2 else 0) | (1 << 14 if abi >= 3 else 0)
        handled = ctypes.c_uint64(writing)
        rules = libc.syscall(LANDLOCK_CREATE, ctypes.byref(handled), ctypes.sizeof(handled), 0)
        if rules < 0 or libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            return False
        return libc.syscall(LANDLOCK_RESTRICT, rules, 0) == 0
    return False


if __name__ == "__main__":
    main()
