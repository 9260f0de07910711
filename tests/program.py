"""The program, run as a person or a script would run it: in a process of its own, or in this one."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer import testing

import warm
from understudy.cli.app import main, program

PROGRAM = Path(sys.executable).with_name("understudy")

Done = subprocess.CompletedProcess[str]


def run(*arguments: str, cwd: Path, status: int = 0) -> Done:
    """The installed program in a process of its own, for how it starts and what it imports."""
    done = subprocess.run([str(PROGRAM), *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    return _checked(done, status)


def apart(*arguments: str, cwd: Path, status: int = 0) -> Done:
    """The program in a process of its own that begins warm, for what crosses processes: budgets, ledgers."""
    return _checked(warm.completed(["-m", "understudy", *arguments], cwd=cwd), status)


def call(*arguments: str, cwd: Path, status: int = 0) -> Done:
    """The same entry point in this process, for what is said: it spares the start, which is most of a command."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    words = ["understudy", *arguments]
    with chdir(cwd), patch.object(sys, "argv", words), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    assert isinstance(code, int), code
    return _checked(subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue()), status)


class Runner(testing.CliRunner):
    """Typer's runner, of the program as people run it: its commands are made once, and not for every call."""

    def invoke(self, *given: Any, **how: Any) -> testing.Result:
        with patch.object(testing, "_get_command", lambda app: program()):
            return super().invoke(*given, **how)


def _checked(done: Done, status: int) -> Done:
    """It must end with that status, and never show its insides."""
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done
