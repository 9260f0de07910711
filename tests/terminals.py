"""Terminals for tests: streams that say they are one, and a real one for a process of its own."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from unittest.mock import patch

from program import call

SOURCE = Path(__file__).resolve().parents[1] / "src"


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def environment(**more: str) -> dict[str, str]:
    """That of a process that runs this tree's program."""
    kept = {
        key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")
    }
    return {**kept, "PYTHONPATH": str(SOURCE), "TERM": "xterm-256color", **more}


def shown(*arguments: str, cwd: Path, columns: int = 80, status: int = 0, **more: str) -> str:
    """What a person sees of a command, output and errors, at a terminal of so many columns; in this process."""
    with (
        patch.dict(os.environ, {"COLUMNS": str(columns), "TERM": "xterm-256color", **more}),
        patch("program.io.StringIO", Terminal),
    ):
        done = call(*arguments, cwd=cwd, status=status)
    return done.stdout + done.stderr


def at_terminal(*arguments: str, cwd: Path, columns: int = 80, **more: str) -> tuple[int, str]:
    """The status of a process at a real terminal, and all that it wrote there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    running = subprocess.Popen(
        [sys.executable, "-m", "understudy", *arguments],
        cwd=cwd, env=environment(**more), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    told = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the process is gone, and its end of the terminal with it
            break
        if not part:
            break
        told += part
    os.close(ours)
    return running.wait(timeout=60), told.decode().replace("\r\n", "\n")
