"""One process of a desk: started afresh, asked one thing at a time, ended when it takes too long."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "sys.modules.update(dict.fromkeys(('numpy', 'pandas', 'polars', 'pyarrow'))); "
    "from understudy.desk.child import main; main()"
)
"""The process does not import frames: DuckDB would, at its first parameter, for half a second and 50 MB."""
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""Variables without which some interpreters do not start. No other is handed on."""
_START_SECONDS = 60.0
_MOST_REPLY = 65 * 2**20


class WorkerEndedError(Exception):
    """The process is gone: it `overran` the time that it had, or else it died, as it does of too much memory."""

    def __init__(self, *, overran: bool) -> None:
        super().__init__(overran)
        self.overran = overran


class Worker:
    """A child process that holds databases in memory. It is used by one thread at a time.

    The interpreter is started by name, not forked: of this process it has neither memory nor open files, and of
    the environment only what an interpreter needs to find its own libraries. It is told where modules are
    imported from, and no other path.
    """

    def __init__(self, *, megabytes: int) -> None:
        self.loaded: set[str] = set()
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=os.path.abspath(os.sep),
            close_fds=True,
        )
        self._first = json.dumps([path for path in sys.path if path]).encode() + b"\n"
        self._first += json.dumps({"megabytes": megabytes}).encode() + b"\n"
        self._ready = False

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, request: dict[str, Any], *, seconds: float) -> dict[str, Any]:
        """The reply to a request; raises `WorkerEndedError` if none came in that time, and ends the process."""
        if not self._ready:
            self._exchange(self._first, _START_SECONDS)
            self._ready = True
        return self._exchange(json.dumps(request).encode() + b"\n", seconds)

    def _exchange(self, sent: bytes, seconds: float) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        began = time.monotonic()
        alarm = threading.Timer(seconds, self._process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            stdin.write(sent)
            stdin.flush()
            line = stdout.readline(_MOST_REPLY)
            reply = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError, RecursionError):
            reply = None
        finally:
            alarm.cancel()
        if not isinstance(reply, dict):
            self.end()
            raise WorkerEndedError(overran=time.monotonic() - began >= seconds)
        return reply

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what could not be written any more
                    pipe.close()
        self._process.wait()
