"""Processes that begin warm: forked from an interpreter that has imported the package already.

Most of what a short command costs is the start of Python and its imports. Where a test is about what a process of
its own does (a budget that processes share, a page of commands, a kill) and not about a fresh interpreter, it may
begin as a fork of one that waits with everything imported. The process is real: it has its own id, folder,
environment and standard streams, takes signals, and ends with its own status. Tests of what is imported, of the
installed program and of how Python starts must not use this.

    warm.Process(["-m", "understudy", "--version"], cwd=folder)     as `python -m understudy --version`
    warm.program(path)                                              writes a stand-in for `python` at that path
"""

from __future__ import annotations

import atexit
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
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
    """Where the interpreter that waits listens; it is started by the first call and ends with this process."""
    folder = tempfile.mkdtemp(prefix="understudy-warm-")
    address = str(Path(folder, "socket"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PLACES), "OPENBLAS_NUM_THREADS": "1"}
    waiting = subprocess.Popen(
        [sys.executable, str(HERE / "warm.py"), address],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert waiting.stdin is not None
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == b"ready\n"
    waiting.stdout.close()

    def end(pid: int = os.getpid()) -> None:
        if os.getpid() == pid:  # and not a fork of this process
            assert waiting.stdin is not None
            waiting.stdin.close()
            waiting.wait(60)
            Path(address).unlink()
            Path(folder).rmdir()

    atexit.register(end)
    return address


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


def _import_everything() -> None:
    import understudy

    for module in pkgutil.walk_packages(understudy.__path__, "understudy."):
        if not module.name.endswith("__main__"):
            __import__(module.name)
    for name in ("duckdb", "pyarrow.parquet", "sqlalchemy.dialects.sqlite", "scipy.optimize", "scipy.stats"):
        __import__(name)
    from understudy.cli.app import program

    program()


def _wait(address: str) -> None:
    import gc
    import select

    _import_everything()
    gc.collect()
    gc.freeze()  # what is shared stays shared
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    os.write(1, b"ready\n")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        readable, _, _ = select.select([0, listening], [], [])
        if 0 in readable:
            os._exit(0)
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
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
    _wait(sys.argv[1])
