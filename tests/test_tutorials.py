"""Every tutorial is run as it stands: its terminal sessions here, its Python as doctests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console_pages import Command, SavedFile, Terminal, agree, commands, steps

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs_and_prints_what_it_shows(page: Path, tmp_path: Path):
    terminal = Terminal(tmp_path)
    for step in steps(page.read_text(encoding="utf-8")):
        printed = terminal.take(step)
        if isinstance(step, Command):
            assert agree(list(step.shown), printed), f"{step.text}\nprints:\n" + "\n".join(printed)
    for declared in sorted(terminal.folder.glob("*.yml")):
        assert not misfits(terminal, declared.name)


def misfits(terminal: Terminal, declared: str) -> list[str]:
    """What the custodian would be warned of: values of the table that fit no declared cell."""
    read = terminal.run(Command(f"understudy check --read --json --project {declared}", ()))
    return json.loads("\n".join(read))["read"]["warnings"]


def test_a_table_that_fits_no_declared_cells_is_noticed(tmp_path: Path):
    terminal = Terminal(tmp_path)
    declared = ["understudy: 1", "name: t", "source: t.csv", "budget: {epsilon: 1}"]
    attributes = ["attributes:", "  a: {type: category, values: [x, y]}", ""]
    terminal.take(SavedFile("t.yml", "\n".join(declared + attributes)))
    terminal.take(SavedFile("t.csv", "a\n" + "x\n" * 10))
    assert not misfits(terminal, "t.yml")
    terminal.take(SavedFile("t.csv", "a\n" + "z\n" * 10))
    assert any("fit no declared cell" in warning for warning in misfits(terminal, "t.yml"))


def test_numbers_may_differ_and_words_may_not():
    assert agree(["count 1,234 ± 18"], ["count  987 ± 7"])
    assert not agree(["count 1,234 ± 18"], ["counts 1,234 ± 18"])
    assert agree(["  0-17  162  ± 150"], ["  0-17  120  ± 150  consistent with 0"])
    assert not agree(["  0-17  162  ± 150"], ["  0-17  120  ± 150  nothing known"])
    assert agree(["0-17  0 ± 150"], ["0-17  92 ± 150  consistent with 0"])
    assert not agree(["0-17  0 ± 150"], ["0-17  92 ± 150  consistent with 1"])
    assert not agree(["one"], ["one", "two"])
    assert agree(["one", "…", "four"], ["one", "two", "three", "four"])
    assert not agree(["one", "…", "four"], ["one", "two"])


def test_a_command_goes_on_after_a_backslash():
    body = "$ one \\\n  two\nprinted\n$ three  # status 2\n"
    found = list(commands(body))
    assert [command.text for command in found] == ["one \\\n  two", "three  # status 2"]
    assert [command.status for command in found] == [0, 2]
    assert found[0].shown == ("printed",)


def test_a_failed_command_is_noticed(tmp_path: Path):
    with pytest.raises(AssertionError, match="status 3"):
        Terminal(tmp_path).run(Command("exit 3", ()))
