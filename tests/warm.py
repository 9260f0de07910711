"""Processes that begin warm: forked from an interpreter that has imported the package already.

Most of what a short command costs is the start of Python and its imports. Where a test is about what a process of
its own does (a budget that processes share, a page of commands, a kill) and not about a fresh interpreter, it may
begin as a fork of one that waits with everything imported. The process is real: it has its own id, folder,
environment and standard streams, takes signals, and ends with its own status. Tests of what is imported, of the
installed program and of how Python starts must not use this. All workers of a test run share one that waits: the
first that needs it starts it, and it ends with the last of them.

    warm.Process(["-m", "understudy", "--version"], cwd=folder)     as `python -m understudy --version`
    warm.program(path)                                              writes a stand-in for `python` at that path
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

HERE = Path(__file__).resolve().parent
IMPORTED = ("understudy",)
"""Packages of which the interpreter that waits has imported every module."""
STARTER_SECONDS = 60
"""How long an interpreter that nobody uses waits for the one that started it."""
PLACES = [str(HERE.parent / "src"), str(HERE)]

CLIENT = """\
#!{python} -IS
import os, signal, socket, sys, json
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
asked = json.dumps([{before!r} + sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(connection, [len(asked).to_bytes(8, "big")], [0, 1, 2])
connection.sendall(asked)
told = connection.makefile()
status = [int(told.readline()) for _ in "ab"][1]
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
    os.kill(os.getpid(), -status)
os._exit(status)
"""
"""A program that has a process forked for its words, with its own streams, and ends as that ends."""


@cache
def _address() -> str:
    """Where the interpreter that waits listens; it is started by the first call and ends with its last user."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or token_hex(6)
    folder = Path(tempfile.gettempdir(), f"understudy-warm-{run[:12]}")
    with _locked(folder):
        lease = _lease_in(folder)
        if lease is None:
            _start(folder)
            lease = _lease_in(folder)
    assert lease is not None

    def end(lease: socket.socket = lease, pid: int = os.getpid()) -> None:
        if os.getpid() == pid:  # and not a fork of this process
            lease.shutdown(socket.SHUT_WR)
            lease.recv(1)  # it has heard of it, and is gone if nobody else uses it
            lease.close()

    atexit.register(end)
    return str(folder / "socket")


def _locked(folder: Path) -> IO[str]:
    """The lock of a folder, which is there as long: one process holds it at a time, until it closes the file."""
    path = folder / "lock"
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            file = path.open("w")
            fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
            file.close()  # whoever had the lock has removed the folder


def _lease_in(folder: Path) -> socket.socket | None:
    """A connection for as long as the interpreter shall wait; None where there is none that waits."""
    lease = socket.socket(socket.AF_UNIX)
    try:
        lease.connect(str(folder / "lease"))
    except (FileNotFoundError, ConnectionRefusedError):
        lease.close()
        return None
    return lease


def _start(folder: Path) -> None:
    for name in ("socket", "lease"):
        (folder / name).unlink(missing_ok=True)  # of one that was killed
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PLACES), "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, str(HERE / "warm.py"), str(folder), *IMPORTED],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as starting:
        assert starting.stdout is not None
        assert starting.stdout.readline() == b"ready\n"


def program(path: Path, *before: str) -> None:
    """Write a program that stands in for `python`, or for `python` with some words before those it is given."""
    path.write_text(
        CLIENT.format(python=sys.executable, address=_address(), before=list(before)),
        encoding="utf-8",
    )
    path.chmod(0o755)


class Process:
    """A process that does what `python` would do with these words: ``-m MODULE``, ``-c CODE`` or a file's name."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stderr: IO[Any] | None = None,
    ) -> None:
        ours, theirs = os.pipe()
        self.stdout = os.fdopen(ours, encoding="utf-8")
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(_address())
        asked = [list(words), str(cwd or Path.cwd()), dict(os.environ if env is None else env)]
        sent = json.dumps(asked).encode()
        with open(os.devnull, "rb") as nothing:
            streams = [nothing.fileno(), theirs, 2 if stderr is None else stderr.fileno()]
            socket.send_fds(self._connection, [len(sent).to_bytes(8, "big")], streams)
        os.close(theirs)
        self._connection.sendall(sent)
        self._told = self._connection.makefile()
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """The status, negative for the signal that ended it; TimeoutError where it goes on for longer."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            self.returncode = int(self._told.readline())
            self._told.close()
            self._connection.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """All that it writes to its standard output, at its end."""
        with self.stdout:
            written = self.stdout.read()
        self.wait(timeout)
        return written, None


def completed(
    words: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The end of such a process, with all that it wrote."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        process = Process(words, cwd=cwd, env=env, stderr=errors)
        written, _ = process.communicate()
        errors.seek(0)
        return subprocess.CompletedProcess(list(words), process.wait(), written, errors.read())


# ---- the interpreter that waits


def _import_all(packages: Sequence[str]) -> None:
    """Every module of these packages, and what they import late."""
    for package in packages:
        for module in pkgutil.walk_packages(__import__(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                __import__(module.name)
    if "understudy" not in packages:
        return
    for name in ("duckdb", "pyarrow.parquet", "sqlalchemy.dialects.sqlite", "scipy.optimize", "scipy.stats"):
        __import__(name)
    from understudy.cli.app import program

    program()


def _wait(folder: Path, packages: Sequence[str]) -> None:
    if os.fork():  # it is nobody's child, and may outlive the worker that started it
        os._exit(0)
    _import_all(packages)
    gc.collect()
    gc.freeze()  # what is shared stays shared
    listening, leasing = _listening(folder / "socket"), _listening(folder / "lease")
    os.write(1, b"ready\n")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    leases = list[socket.socket]()
    until = time.monotonic() + STARTER_SECONDS
    while True:
        unused = not leases and time.monotonic() > until
        readable, _, _ = select.select([listening, leasing, *leases], [], [], None if leases else 0.02)
        if unused and not readable and _removed(folder, listening, leasing):
            os._exit(0)
        for lease in [one for one in leases if one in readable]:
            leases.remove(lease)
            until = 0.0
            if leases or not _removed(folder, listening, leasing):
                lease.close()
            else:
                os._exit(0)
        if leasing in readable:
            leases.append(leasing.accept()[0])
        if listening not in readable:
            continue
        connection, _ = listening.accept()
        if os.fork() == 0:
            for other in (listening, leasing, *leases):
                other.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            break
        connection.close()
    words, cwd, environment, streams = _received(connection)
    pid = os.fork()
    if pid:
        for stream in (*streams, 0, 1):
            os.close(stream)
        connection.sendall(f"{pid}\n".encode())
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        connection.sendall(f"{status}\n".encode())
        connection.recv(1)  # until its end was read, no other process gets its id
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    _leave(_status_of(words))


def _listening(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen(64)
    return listening


def _removed(folder: Path, *listening: socket.socket) -> bool:
    """Whether the folder is gone, so that this process may end: not while somebody is about to use it."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if select.select(listening, [], [], 0)[0]:
            return False
        for name in ("socket", "lease", "lock"):
            (folder / name).unlink()
        folder.rmdir()
        return True


def _status_of(words: list[str]) -> int:
    """Run, and say what the interpreter would end with."""
    try:
        _run(words)
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        sys.stderr.write(f"{stop.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _leave(status: int) -> None:
    """As the interpreter ends, but for the destructors of C++ libraries, which abort in a fork."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status & 0xFF)


def _received(connection: socket.socket) -> tuple[list[str], str, dict[str, str], list[int]]:
    length, streams, _, _ = socket.recv_fds(connection, 8, 3)
    wanted, parts = int.from_bytes(length, "big"), b""
    while len(parts) < wanted:
        parts += connection.recv(wanted - len(parts))
    words, cwd, environment = json.loads(parts)
    return words, cwd, environment, streams


def _run(words: list[str]) -> None:
    """As the interpreter does with its own words."""
    match words:
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            sys.path.insert(0, "")
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})  # as `python -c`
        case ["-m", module, *rest]:
            sys.argv = [module, *rest]
            sys.path.insert(0, os.getcwd())
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [file, *rest]:
            sys.argv = [file, *rest]
            sys.path.insert(0, str(Path(file).resolve().parent))
            runpy.run_path(file, run_name="__main__")
        case _:
            raise SystemExit("a warm process needs words")


if __name__ == "__main__":
    sys.path[:] = [place for place in sys.path if place != str(HERE)] + [str(HERE)]
    _wait(Path(sys.argv[1]), sys.argv[2:])
