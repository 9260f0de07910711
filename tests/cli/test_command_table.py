"""Commands are made when they are wanted, and are those that typer makes of the same signatures."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import typer

from understudy.cli import command_table
from understudy.cli.app import app
from understudy.cli.command_table import CommandTable, listed, with_table


def test_the_table_has_the_commands_of_typer_in_their_order() -> None:
    lazy: Any = with_table(app)
    whole: Any = typer.main.get_command(app)
    assert list(lazy.commands) == list(whole.commands)
    assert len(lazy.commands) == len(whole.commands)
    assert [option.name for option in lazy.params] == [option.name for option in whole.params]
    for name, command in whole.commands.items():
        made = lazy.commands[name]
        assert type(made) is type(command)
        assert [option.name for option in made.params] == [option.name for option in command.params]
        assert list(getattr(made, "commands", ())) == list(getattr(command, "commands", ()))


def test_a_list_says_the_same_of_commands_before_and_after_they_are_made() -> None:
    table = CommandTable(app)
    before = listed(table)
    for name in table:
        assert table[name] is table[name]
    assert listed(table) == before == listed(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert all(one.help and one.panel for one in before)


def test_a_list_makes_no_command_and_a_look_up_makes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    one, group = typer.main.get_command_from_info, typer.main.get_group_from_info
    monkeypatch.setattr(
        command_table.typer_main,
        "get_command_from_info",
        lambda info, **rest: made.append("one") or one(info, **rest),
    )
    monkeypatch.setattr(
        command_table.typer_main,
        "get_group_from_info",
        lambda info, **rest: made.append("group") or group(info, **rest),
    )
    table = CommandTable(app)
    listed(table)
    assert "ask" in table
    assert made == []
    table["ask"]
    assert made == ["one"]


def test_commands_can_be_added_and_taken_away() -> None:
    table = CommandTable(app)
    table["again"] = table["ask"]
    assert list(table)[-1] == "again"
    del table["again"], table["ask"]
    assert "again" not in table
    assert "ask" not in table
    with pytest.raises(KeyError):
        del table["ask"]
    with pytest.raises(KeyError):
        table["ask"]


def test_help_of_the_program_makes_no_command() -> None:
    """In a process of its own, as a shell starts it."""
    code = (
        "import sys; from understudy.cli.app import program; group = program()\n"
        "try:\n    group(['--help'], standalone_mode=False)\nexcept BaseException:\n    pass\n"
        "print(sorted(group.commands._made), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    assert "understudy" in ran.stdout
    assert "ledger" in ran.stdout
