"""The systemd unit and the container start what the program has, with as few rights as are needed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from understudy.cli.app import app
from understudy.server.run import STOP_SECONDS

ROOT = Path(__file__).parents[2]
UNIT = (ROOT / "deploy" / "understudy.service").read_text(encoding="utf-8")
CONTAINER = (ROOT / "Containerfile").read_text(encoding="utf-8")


def settings() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in UNIT.splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize("name", ["ExecStartPre", "ExecStart"])
def test_the_unit_starts_commands_that_exist(name):
    (line,) = settings()[name]
    words = shlex.split(line)
    assert words[0].endswith("/understudy")
    command = typer.main.get_command(app).commands[words[1]]  # type: ignore[attr-defined]
    context = command.make_context(words[1], words[2:])
    assert str(context.params["file"]) == "server.yml"
    assert context.params["check"] is (name == "ExecStartPre")


def test_a_stop_leaves_time_to_answer_what_was_debited():
    assert float(settings()["TimeoutStopSec"][0]) > STOP_SECONDS
    assert settings()["KillSignal"] == ["SIGTERM"]
    waits = re.search(r"--stop-timeout (\d+)", CONTAINER)
    assert waits is not None
    assert float(waits[1]) > STOP_SECONDS


def test_nothing_of_the_process_is_left_behind_or_gained():
    found = settings()
    assert found["LimitCORE"] == ["0"]
    for name in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices"):
        assert found[name] == ["yes"], name
    assert found["ProtectSystem"] == ["strict"]
    assert found["User"] == ["understudy"]
    assert found["UMask"] == ["0077"]
    for words in ("--cap-drop ALL", "no-new-privileges", "--ulimit core=0", "--read-only"):
        assert words in CONTAINER
    assert re.search(r"^USER understudy$", CONTAINER, re.MULTILINE)
    assert "[postgres,server,validity]" in CONTAINER
