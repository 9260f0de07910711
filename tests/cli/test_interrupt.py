"""Ctrl-C, sent as a real signal to a real process: status 130, one line, and what it says is true."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from people import write_project
from program import call
from terminals import environment
from understudy.declaration.file import read
from understudy.ledger.declared import open_ledger

HALT = """
import sys, time
from pathlib import Path
from understudy.{module} import {owner} as owner
{setup}
usual = owner.{name}
def halted(*given, **named):
    Path("halted").touch()
    time.sleep(60)
    return usual(*given, **named)
owner.{name} = halted
from understudy.cli.start import main
sys.argv[0] = "understudy"
main()
"""
"""The program, halted when it comes to a function."""


@pytest.fixture(autouse=True)
def _usual_signal():
    """A shell that starts the tests in the background ignores Ctrl-C for them, and so would their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


BEFORE = {"module": "project", "owner": "Project", "name": "prepare", "setup": ""}
LOOK = {"module": "table.truth", "owner": "Truth", "name": "sums_of", "setup": ""}


def interrupted(folder: Path, where: dict[str, str], *arguments: str) -> str:
    """What a command says that is interrupted at a function; it leaves with 130."""
    running = subprocess.Popen(
        [sys.executable, "-c", HALT.format(**where), *arguments],
        cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (folder / "halted").exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in err
    lines = [line for line in err.splitlines() if line.startswith("understudy: ")]
    assert len(lines) == 1
    return lines[0]


def spent(folder: Path) -> int:
    ledger = open_ledger(read(folder / "understudy.yml"), base=folder)
    try:
        return ledger.spent.units
    finally:
        ledger.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path)


def test_before_the_charge_nothing_is_charged(folder):
    told = interrupted(folder, BEFORE, "ask", "count by sex", "--epsilon", "0.1")
    assert told == "understudy: interrupted; nothing was charged"
    assert spent(folder) == 0


def test_during_a_look_the_request_brings_the_answer_for_nothing_more(folder):
    told = interrupted(folder, LOOK, "ask", "count by sex", "--epsilon", "0.1")
    found = re.search(r"--request (\S+)", told)
    assert found, told
    assert spent(folder) == 10**14
    call("ask", "count by sex", "--epsilon", "0.1", "--request", found[1], cwd=folder)
    assert spent(folder) == 10**14


def test_a_library_that_makes_an_error_of_the_interruption_does_not_hide_it(folder, monkeypatch):
    import os

    def wrapped(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            raise RuntimeError("Query interrupted") from None

    monkeypatch.setattr("understudy.project.Project.prepare", wrapped)
    told = call("ask", "count by sex", cwd=folder, status=130).stderr
    assert told.splitlines()[-1] == "understudy: interrupted; nothing was charged"
