"""What a person sees at a terminal: whole words at 80 columns, help with examples that run, no codes in files."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr
from fractions import Fraction
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

import understudy as us
from people import write_project
from program import call
from terminals import Terminal, at_terminal, environment, shown
from understudy.cli import progress
from understudy.cli.app import app, program
from understudy.cli.examples import EXAMPLES
from understudy.cli.option_groups import GROUPS
from understudy.layout import cells, folded, shortened, table
from understudy.privacy.event import LaplaceNoise
from understudy.releases.run import Progress

COMMANDS = (
    "", "start", "init", "check", "ask", "keys", "plan", "release", "demo", "ledger", "ledger show",
    "ledger verify", "ledger export", "ledger new", "ledger witness", "audit", "audit privacy", "audit validity",
    "holdout", "holdout create", "holdout score", "holdout show", "serve", "token", "token new", "token list",
    "token revoke", "approvals", "approvals list", "approve", "deny", "server", "server backup", "server restore",
    "server prune", "server clock", "mcp",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path, budget="{epsilon: 1, delta: 1e-9}")


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def assert_whole(narrow: str, wide: str, columns: int) -> None:
    """The same words in the same order, none of them cut, in lines that fit."""
    narrow, wide = without_colours(narrow), without_colours(wide)
    assert narrow.split() == wide.split()
    assert max(map(cells, narrow.splitlines())) <= columns


# ---- text and tables


def test_lines_are_folded_between_words():
    assert folded("one two three", 7) == ["one two", "three"]
    assert folded("    a list of words", 12, hang=2) == ["    a list", "      of", "      words"]
    assert folded("incomprehensibilities are whole", 10) == ["incomprehensibilities", "are whole"]
    assert folded("東京 東京", 5) == ["東京", "東京"]
    assert shortened("count by age and sex", 15) == "count by age …"


def test_a_table_gives_way_without_cutting_words_or_numbers():
    rows = [("place", "people", "of them"), ("north of the river", "1,234,567", "12"), ("東京", "1", "2")]
    wide = table(rows, None, left={0})
    assert wide[1] == "north of the river  1,234,567       12"
    narrow = table(rows, 26, left={0})
    assert max(map(cells, narrow)) <= 26
    assert "1,234,567" in "\n".join(narrow)
    for word in ("north", "of", "the", "river", "people", "them"):
        assert re.search(rf"\b{word}\b", "\n".join(narrow)), narrow
    records = table(rows, 14, left={0})  # no room for columns
    assert records[:4] == ["place: north", "  of the river", "people:", "  1,234,567"]
    assert "…" in "\n".join(table([("a",), ("incomprehensibilities",), ("b c",)], 12, left={0}))


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("path", COMMANDS)
def test_help_has_whole_words_groups_and_examples(path, columns, tmp_path):
    told = shown(*path.split(), "--help", cwd=tmp_path, columns=columns)
    assert "\x1b" not in told
    text, _, examples = told.partition("\nExamples:\n")
    assert max(map(len, text.splitlines())) <= columns
    assert "..." not in text.replace("[ARGS]...", "").replace("[QUESTIONS]...", "")
    wide = shown(*path.split(), "--help", cwd=tmp_path, columns=100).partition("\nExamples:\n")[0]
    assert text.split() == wide.split()
    assert [line.strip() for line in examples.splitlines()] == list(EXAMPLES[path])
    assert set(EXAMPLES) == set(COMMANDS)


def test_commands_are_grouped(tmp_path):
    told = call("--help", cwd=tmp_path).stdout
    places = [
        told.index(f"\n{group}:\n")
        for group in ("Start", "Ask", "Publish", "Serve", "Validate", "Look after")
    ]
    assert places == sorted(places)


def test_grouped_options_exist():
    program = typer.main.get_command(app)
    for path, groups in GROUPS.items():
        command = program
        for name in path.split():
            assert isinstance(command, TyperGroup)
            command = command.commands[name]
        known = {parameter.name for parameter in command.params}
        listed = [name for names in groups.values() for name in names]
        assert set(listed) <= known, path
        assert len(listed) == len(set(listed))


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_can_be_pasted(line):
    """Every example is a command with arguments that it takes; nothing is run."""
    name, *arguments = shlex.split(line)
    assert name == "understudy"
    command = program()
    context = command.make_context("understudy", arguments[:0], resilient_parsing=True)
    while isinstance(command, TyperGroup):
        command = command.commands[arguments.pop(0)]
        context = command.make_context(command.name, [], parent=context, resilient_parsing=True)
    command.make_context(command.name, arguments, parent=context)  # raises where it cannot be parsed


def test_cheap_examples_run_as_they_stand(tmp_path):
    write_project(tmp_path, budget="{epsilon: 1, delta: 1e-9}")
    for line in (*EXAMPLES["check"][:2], *EXAMPLES["ask"], EXAMPLES["release"][0], *EXAMPLES["ledger show"]):
        call(*shlex.split(line)[1:], cwd=tmp_path)
    for line in (
        *EXAMPLES["ledger verify"],
        *EXAMPLES["ledger export"],
        EXAMPLES["plan"][0],
        EXAMPLES["plan"][2],
    ):
        call(*shlex.split(line)[1:], cwd=tmp_path)


@pytest.mark.parametrize("columns", [80, 60])
def test_what_commands_say_fits_a_terminal(columns, folder):
    call("ask", "count by age, sex", cwd=folder)
    for arguments in (
        ("check", "--read"),
        ("ask", "count by age, sex", "--dry-run"),
        ("plan", "--rows", "100000", "--queries", "100", "--epsilon", "1"),
        ("ledger", "verify"),
        ("release", "--epsilon", "0.3", "--workload", "all-2-way", "--dry-run"),
    ):
        narrow = shown(*arguments, cwd=folder, columns=columns)
        lines = without_colours(narrow).splitlines()
        assert all(cells(line) <= columns or " " not in line.strip() for line in lines), arguments
        assert "…" not in narrow, arguments
    told = shown("ask", "count by", cwd=folder, columns=columns, status=2)
    assert_whole(told, call("ask", "count by", cwd=folder, status=2).stderr, columns)
    entries = shown("ledger", "show", cwd=folder, columns=columns)
    assert all(cells(line) <= columns or "/" in line for line in entries.splitlines())  # a path is one word
    assert "count by age" in entries


def test_the_ledger_is_read_at_eighty_columns(folder):
    call("ask", "count by age, sex", "count age < 18", "--request", "r", "--analyst", "ada", cwd=folder)
    call("ask", "--session", "s", "--alpha", "0.2", "count by sex", "--yes", cwd=folder)
    told = shown("ledger", "show", cwd=folder, columns=80).splitlines()
    assert max(cells(line) for line in told if "/" not in line) <= 80
    assert told[0].split() == ["entry", "time", "(UTC)", "of", "budget", "rho", "question"]
    first = next(line for line in told if "count by age, sex" in line)
    assert "count by age, sex (ada, r 1)" in first  # one line: the words, who asked, and under which name
    assert first.split()[3].endswith("%")
    assert not any(word in " ".join(told) for word in ("for entry", "#9", "measure", "…"))
    assert sum(line[:5].strip().isdecimal() for line in told) == 1 + 2 + 1 + sum(
        "step" in line for line in told
    )
    assert "for count by sex" in " ".join(
        " ".join(told).split()
    )  # what a session asked stands with its charge
    last = " ".join(shown("ledger", "show", "--last", "1", cwd=folder, columns=80).split())
    assert "the newest 1 of" in last


def test_a_charge_that_was_never_answered_is_told(folder):
    project = us.open(folder / "understudy.yml")
    project.ledger.charge(LaplaceNoise(l1=Fraction(1), scale=Fraction(20)), question="lost", request="r")
    assert "lost, never answered (r)" in call("ledger", "show", cwd=folder).stdout


def test_a_wide_table_of_certificates_is_set_in_blocks(tmp_path):
    told = shown("plan", "--table", cwd=tmp_path, columns=80)
    assert max(map(cells, told.splitlines())) <= 80
    assert sum(line.split()[:2] == ["n", "k"] for line in told.splitlines()) == 3


# ---- colours, files, machines


def test_colours_are_for_people_at_a_terminal_who_want_them(folder, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[33m" in shown("ask", "count by sex", "--epsilon", "0.01", cwd=folder)  # a warning, in yellow
    for off in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in shown("ask", "count by sex", "--epsilon", "0.01", cwd=folder, **off)
    told = shown("ask", "count by sex", "--epsilon", "0.01", "--json", cwd=folder)
    assert "\x1b" not in told
    piped = call("ask", "count by sex", "--epsilon", "0.01", "-o", "rows.csv", cwd=folder)
    assert "\x1b" not in piped.stdout + piped.stderr + (folder / "rows.csv").read_text()


def test_a_real_terminal(folder):
    status, told = at_terminal("check", "--read", cwd=folder, columns=60)
    assert status == 0
    assert max(map(cells, without_colours(told).splitlines())) <= 60
    assert "universe" in told


# ---- courtesy


def test_the_program_alone_says_how_to_begin(tmp_path):
    told = call(cwd=tmp_path).stdout
    assert [f"understudy {name}" in told for name in ("init", "check", "ask")] == [True] * 3
    assert len(told.splitlines()) < 15


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("aks", "count"), "Did you mean 'ask'?"),
        (("realease",), "Did you mean 'release'?"),
        (("verify",), "Did you mean 'ledger verify'?"),
        (("ledger", "shwo"), "Did you mean 'show'?"),
        (("ask", "--epsilom", "1", "count"), "Did you mean --epsilon"),
        (("check",), "understudy init"),
        (("ask", "count"), "understudy init"),
        (("release", "--epsilon", "1", "--out", "o"), "understudy init"),
        (("ledger", "show"), "understudy init"),
        (("ledger", "show", "--html"), "(try understudy ledger show --help)"),
        (("ask", "count", "--epsilon"), "(try understudy ask --help)"),
        (("ledger", "--nonsense"), "(try understudy ledger --help)"),
    ],
)
def test_a_mistake_is_told_what_was_meant(arguments, words, tmp_path):
    assert words in call(*arguments, cwd=tmp_path, status=2).stderr


# ---- completion

FISH = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}


@pytest.mark.parametrize(
    ("shell", "asked", "words"),
    [
        ("bash", {"COMP_WORDS": "understudy re", "COMP_CWORD": "1"}, "release"),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "understudy ledger "}, '"verify":'),
        ("fish", {"_TYPER_COMPLETE_ARGS": "understudy ask --eps", **FISH}, "--epsilon"),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "understudy init "}, "_files"),
    ],
)  # fmt: skip
def test_shells_complete_commands_options_and_files(shell, asked, words, tmp_path):
    done = completed(shell, asked, tmp_path)
    assert words in done.stdout, done.stderr


def completed(shell: str, asked: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "understudy"],
        env=environment(_UNDERSTUDY_COMPLETE=f"complete_{shell}", **asked),
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


DECLARED = """\
understudy: 1
name: t
source: gone.csv
budget: {epsilon: 1}
ledger: nowhere.db
attributes:
  sex: {type: category, values: [F, M, "not told"]}
  smoker: {type: boolean}
  home town: {type: category, values: [Bree]}
"""


@pytest.mark.parametrize(
    ("begun", "proposed"),
    [
        ("", ["count ", "share ", "rate "]),
        ("count s", ["count sex", "count smoker"]),
        ("count sex = ", ["count sex = F", "count sex = M", "count sex = 'not told'"]),
        ("count smoker = true b", ["count smoker = true by "]),
        ("count by sex, h", []),
        ("count by sex, ", ['count by sex, "home town"', "count by sex, and "]),
        ("rate smoker = true w", ["rate smoker = true within "]),
        ("SELECT s", []),
    ],
)
def test_a_question_is_completed_from_the_declaration_alone(begun, proposed, tmp_path):
    """There is no table and no ledger: none is opened, and none is made."""
    (tmp_path / "p.yml").write_text(DECLARED, encoding="utf-8")
    line = f"understudy ask -p p.yml '{begun}"
    asked = {"COMP_WORDS": line, "COMP_CWORD": "4"}
    found = completed("bash", asked, tmp_path).stdout.splitlines()
    assert [one for one in proposed if one not in found] == []
    assert proposed or found in ([], [""])
    assert [path.name for path in tmp_path.iterdir()] == ["p.yml"]


def test_completion_is_silent_where_there_is_no_declaration(tmp_path):
    asked = {"COMP_WORDS": "understudy ask 'count s", "COMP_CWORD": "2"}
    done = completed("bash", asked, tmp_path)
    assert (done.stdout.strip(), done.stderr) == ("", "")
    (tmp_path / "understudy.yml").write_text("understudy: [", encoding="utf-8")
    done = completed("bash", asked, tmp_path)
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_program(shell, tmp_path, monkeypatch):
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: shell)
    monkeypatch.setattr("typer._completion_shared._get_shell_name", lambda: shell)
    monkeypatch.setenv("HOME", str(tmp_path))
    script = call("--show-completion", cwd=tmp_path).stdout
    assert f"_UNDERSTUDY_COMPLETE=complete_{shell}" in script
    assert "installed in" in call("--install-completion", cwd=tmp_path).stdout
    assert any("complete_" in path.read_text() for path in tmp_path.rglob("*understudy*"))


# ---- progress


@pytest.fixture
def impatient(monkeypatch) -> Terminal:
    terminal = Terminal()
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    return terminal


def wait_for(words: str, terminal: Terminal) -> None:
    for _ in range(2000):
        if words in terminal.getvalue():
            return
        progress.Event().wait(0.005)
    raise AssertionError(terminal.getvalue())


@pytest.mark.parametrize("text", ["count sex != '[/q]'", "count sex = '[red]:smile:'", "share [/]"])
def test_what_takes_long_is_told_and_questions_are_no_markup(text, impatient):
    with redirect_stderr(impatient), progress.busy(f"Looking: {text}", quiet=False):
        wait_for(text, impatient)
    assert impatient.getvalue().endswith("\x1b[2K")  # and leaves nothing behind


def test_what_is_quick_or_for_machines_is_not_told(monkeypatch, capsys):
    with progress.busy("Reading", quiet=False):  # no terminal
        pass
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.busy("Reading", quiet=False), progress.busy("Reading", quiet=True):  # less than a second
        pass
    assert terminal.getvalue() == ""
    assert capsys.readouterr() == ("", "")


def test_nothing_is_drawn_while_a_question_is_open(impatient):
    with redirect_stderr(impatient), progress.busy("Reading", quiet=False) as pause:
        wait_for("Reading", impatient)
        with pause():
            before = impatient.getvalue()
            progress.Event().wait(0.25)
            assert impatient.getvalue() == before
        impatient.truncate(0)
        wait_for("Reading", impatient)


def test_a_release_s_bar_comes_to_its_end_and_says_what_it_does(impatient):
    with redirect_stderr(impatient), progress.release_bar(quiet=False) as report:
        report(Progress("counting age", 1, 4))
        wait_for("counting age", impatient)
        report(Progress("drawing rows", 0, 3, stage="writing"))
        wait_for("drawing rows", impatient)
        wait_for(" 75%", impatient)
        report(Progress("counting again", 0, 4))  # a bar never goes back
        report(Progress("written", 3, 3, stage="writing"))
        wait_for("100%", impatient)
    assert progress.part_done(Progress("written", 3, 3, stage="writing")) == 1
    assert (
        progress.standing(Progress("fitting", 1, 4, 0.25, {"cells": 1000}))
        == "fitting · 0.25 spent · 1,000 cells"
    )


def test_the_first_compilation_is_told(impatient):
    numba = pytest.importorskip("numba")
    seen = []
    with redirect_stderr(impatient), progress.bar("fitting the stand-in", quiet=False):
        wait_for("fitting", impatient)
        from numba.core import event

        def look() -> None:
            seen.append(list(progress._compiled))

        class After(event.Listener):
            def on_start(self, event):
                look()

            def on_end(self, event):
                look()

        with event.install_listener("numba:compile", After()):
            numba.njit(lambda x: x + 1)(1)
    assert any(progress.COMPILING_EACH_TIME in now for now in seen)  # a lambda is not kept
    assert not progress._compiled


def test_a_release_reports_every_stage(tmp_path):
    import tiny_release
    from understudy.releases.making import release

    seen: list[Progress] = []
    made = release(tiny_release.project(), "1-way", epsilon=2, method=tiny_release.tiny, progress=seen.append)
    made.save(tmp_path / "out", progress=seen.append)
    said = [one.what for one in seen]
    for what in ("measuring", "fitting the stand-in", "drawing rows", "writing rows and answers", "written"):
        assert what in said
    assert progress.part_done(seen[-1]) == 1


def test_machines_get_json_alone_when_interrupted(folder, monkeypatch):
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("understudy.project.open_project", stopped)
    done = call("ask", "count by sex", "--json", cwd=folder, status=130)
    assert json.loads(done.stdout)["error"] == {
        "kind": "Interrupted",
        "message": "interrupted; nothing was charged",
    }
    assert done.stderr == ""
