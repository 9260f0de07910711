"""`understudy release` as a person or a script would run it; killed, interrupted and run again."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as parquet
import pytest

import program
import tiny_release
import warm
from understudy.cli import prices
from understudy.declaration.file import parse
from understudy.ledger.declared import open_ledger
from understudy.ledger.export import verify
from understudy.releases import methods
from understudy.releases.folder import beside
from understudy.releases.release import Release
from understudy.releases.unfinished import Unfinished

TINY = ("--yes", "--method", "tiny", "--workload", "1-way", "--epsilon", "2")


@pytest.fixture
def run(monkeypatch):
    """The program in this process, with a method that is quick to run."""
    monkeypatch.setattr(methods, "METHODS", tiny_release.with_tiny())
    return partial(program.call, "release")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parquet.write_table(tiny_release.people(), tmp_path / "people.parquet")
    (tmp_path / "understudy.yml").write_text(tiny_release.DECLARATION)
    return tmp_path


def spent(folder: Path) -> int:
    ledger = open_ledger(parse(tiny_release.DECLARATION), base=folder, environ={})
    try:
        assert verify(ledger.url, ledger.name)["sound"]
        return ledger.spent.units
    finally:
        ledger.close()


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"understudy.ledger-wal", "understudy.ledger-shm"}


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir()}


HOME = {"people.parquet", "understudy.yml", "understudy.ledger"}


def test_a_release_for_people_and_for_machines(folder, run):
    done = run("--out", "out", *TINY, "--rows", "50", cwd=folder)
    assert "50 synthetic rows; 18 answers in 5 marginals" in done.stdout
    assert "spent epsilon 2; 0% of the budget left" in done.stdout
    assert done.stderr.startswith("As it is now, this table was never read through")
    assert visible(folder) == HOME | {"out"}
    assert parquet.read_metadata(folder / "out" / "synthetic.parquet").num_rows == 50
    made = Release.load(folder / "out")
    reply = json.loads(
        run("--out", "more/again", *TINY, "--name", made.certificate["run"], "--json", cwd=folder).stdout
    )
    assert reply["run"] == made.certificate["run"]
    assert reply["largest_half_width"] == made.largest_half_width
    assert reply["largest_half_width_beside"] is made.largest_half_width_beside is None
    assert reply["cost"] == {"currency": "epsilon", "amount": 2.0, "units": 2 * 10**15}
    assert reply["remaining"] == {"epsilon": 0.0}
    assert (reply["written"], reply["rows"], reply["resumed"]) == ("more/again", 600, False)
    assert (folder / "more" / "again" / "answers.parquet").read_bytes() == (
        folder / "out" / "answers.parquet"
    ).read_bytes()


def test_a_script_must_say_yes_to_a_release_of_more_than_a_quarter(folder, run):
    refused = run("--out", "out", *TINY[1:], cwd=folder, status=2).stderr
    assert "this takes up to 100% of the budget (epsilon 2); 100% of the budget left" in refused
    assert "Nothing was spent. Say --yes" in refused
    assert "--yes" in run("--out", "out", *TINY[1:], "--json", cwd=folder, status=2).stdout
    assert visible(folder) == HOME - {"understudy.ledger"}
    done = run("--out", "small", *TINY[1:-1], "0.4", "--name", "r", cwd=folder)  # a fifth
    assert "spent epsilon 0.4" in done.stdout
    run("--out", "again", *TINY[1:-1], "0.4", "--name", "r", cwd=folder)  # it was paid


@pytest.mark.parametrize(("answer", "status"), [(True, 0), (False, 1)])
def test_a_person_is_asked_before_a_release_of_more_than_a_twentieth(
    folder, run, monkeypatch, answer, status
):
    asked: list[str] = []

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return answer

    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(prices.typer, "confirm", confirm)
    monkeypatch.setattr(prices, "sys", SimpleNamespace(stdin=terminal, stderr=terminal))
    done = run("--out", "out", *TINY[1:-1], "0.2", cwd=folder, status=status)
    assert asked == [
        "This takes up to 10% of the budget (epsilon 0.2); 100% of the budget left: epsilon 2 of 2. Make it?"
    ]
    assert ("Nothing was released, and nothing was spent" in done.stderr) != answer
    assert visible(folder) == (HOME | {"out"} if answer else HOME - {"understudy.ledger"})
    run("--out", "other", *TINY[:-1], "0.2", cwd=folder)  # --yes
    run("--out", "cheap", *TINY[1:-1], "0.05", cwd=folder)
    assert len(asked) == 1


def test_what_the_command_tells_is_what_the_folder_holds(folder, run):
    (folder / "understudy.yml").write_text(
        tiny_release.DECLARATION.replace("{epsilon: 2}", "{epsilon: 2, delta: 1e-6}")
    )
    options = ("--method", "residual", "--workload", "2-way", "--epsilon", "0.02")
    done = run("--out", "out", *options, "--rows", "10", cwd=folder)
    held = parquet.read_metadata(folder / "out" / "answers.parquet").num_rows
    made = Release.load(folder / "out")
    workload = made.certificate["workload"]["queries"]
    assert made.also
    assert held == made.answered_cells > workload
    assert f"{held} answers of which {workload} in 10 marginals" in done.stdout
    assert f"and {held - workload} in {len(made.also)} marginals beside the workload" in done.stdout
    assert f"at most ± {made.largest_half_width:,.0f}, and" in done.stdout
    assert f"the workload, at most ± {made.largest_half_width_beside:,.0f}; all hold" in done.stdout
    # Six hundred people at a fiftieth of one epsilon are mostly noise: the command says it before and after.
    assert (
        "Mostly noise. In 5 of 5 columns and 10 of 10 pairs most people are in cells whose error"
        in done.stderr
    )
    dry = run("--dry-run", *options, cwd=folder)
    assert "Mostly noise: in 5 of 5 columns the error bar would be at least as large" in dry.stderr
    assert json.loads(run("--dry-run", *options, "--json", cwd=folder).stdout)["mostly_noise"]
    reply = json.loads(run("--out", "json", *options, "--rows", "10", "--json", cwd=folder).stdout)
    assert (reply["answers"], reply["mostly_noise"]) == (held, True)


def test_a_dry_run_does_not_say_whether_a_private_number_of_people_is_mostly_noise(folder, run):
    options = ("--dry-run", "--json", "--method", "residual", "--workload", "2-way", "--epsilon", "0.02")
    told = {}
    for more in ("", "rows: {at_least: 20}\n", "rows: {at_least: 100000000}\n"):
        declared = tiny_release.DECLARATION.replace("{epsilon: 2}", "{epsilon: 2, delta: 1e-6}")
        (folder / "understudy.yml").write_text(f"{declared}neighbours: add-remove\n{more}")
        told[more] = json.loads(run(*options, cwd=folder).stdout)["mostly_noise"]
    assert [*told.values()] == [None, True, False]


def test_noise_in_the_pairs_alone_is_told_as_the_page_tells_it(folder, run):
    (folder / "understudy.yml").write_text(
        tiny_release.DECLARATION.replace("{epsilon: 2}", "{epsilon: 2, delta: 1e-6}")
    )
    done = run(
        "--out", "out", "--yes", "--method", "residual", "--workload", "2-way", "--epsilon", "0.5", "--rows", "10",
        cwd=folder,
    )  # fmt: skip
    page = (folder / "out" / "report.html").read_text()
    said = re.search(r"Some parts are mostly noise\. (In .*pairs of columns .*as the count\.)", done.stderr)
    assert said
    assert said[1] in page


def test_a_good_release_is_not_called_noise(folder, run):
    done = run("--out", "out", *TINY, "--rows", "10", cwd=folder)
    assert "oise" not in done.stderr


@pytest.mark.parametrize(("how", "status"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_run_that_was_stopped_goes_on_and_pays_once(folder, run, how, status):
    halted = folder / "halted"
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        running = warm.Process(
            ["-m", "tiny_release", "release", "--out", "out", *TINY],
            cwd=folder,
            env={**os.environ, "TINY_HALT_AT": "born", "TINY_HALTED": str(halted)},
            stderr=errors,
        )
        begun = time.monotonic()
        while not halted.exists():
            assert time.monotonic() - begun < 60
            time.sleep(0.02)
        halted.unlink()
        running.send_signal(how)
        running.communicate(timeout=60)
        errors.seek(0)
        told = errors.read()
    assert running.returncode == status
    assert "Traceback" not in told
    note = beside(folder / "out", "unfinished.json")
    assert visible(folder) == HOME | {note.name}  # no folder, whole or half
    assert spent(folder) == 8 * 10**14  # two of five steps, each with its debit
    if how == signal.SIGINT:
        assert "give the same command again" in told

    refused = run("--out", "out", *TINY[:-1], "1", cwd=folder, status=1)
    assert "asked for something else" in refused.stderr
    reply = json.loads(run("--out", "out", *TINY, "--json", cwd=folder).stdout)
    assert reply["resumed"]
    assert spent(folder) == 2 * 10**15  # what a single run costs
    assert visible(folder) == HOME | {"out"}
    run("--out", "single", *TINY, "--name", reply["run"], cwd=folder)  # never stopped, the same draws
    assert contents(folder / "single") == contents(folder / "out")
    assert spent(folder) == 2 * 10**15


def test_an_unfinished_run_can_be_closed(folder, run):
    note = Unfinished(folder / "out")
    note.begin({"table": "people"}, "release-1")
    closed = run("--out", "out", "--abandon", cwd=folder)
    assert "release-1" in closed.stdout
    assert visible(folder) == HOME - {"understudy.ledger"}  # which the first charge makes
    assert "no unfinished release" in run("--out", "out", "--abandon", cwd=folder, status=2).stderr


def test_a_dry_run_of_what_cannot_be_paid_ends_as_the_release_would(folder, run):
    run("--out", "out", *TINY[:-1], "1.5", cwd=folder)
    dear = ("--method", "tiny", "--workload", "1-way", "--epsilon", "1")
    dry = run("--dry-run", *dear, cwd=folder, status=1)
    assert (
        "this costs epsilon 1 and 0.5 remains. Nothing was spent. Give a smaller --epsilon: at most 0.5"
        in (dry.stderr)
    )
    assert (
        dry.stderr.splitlines()[-1]
        == (run("--out", "more", *dear, "--yes", cwd=folder, status=1).stderr.splitlines()[-1])
    )
    plain = json.loads(run("--dry-run", *dear, "--json", cwd=folder, status=1).stdout)
    assert plain["payable"] is False
    assert "0.5 remains" in plain["refusal"]["message"]
    plain = json.loads(run("--dry-run", *dear[:-1], "0.5", "--json", cwd=folder).stdout)
    assert plain["payable"] is True
    assert plain["rest"] == plain["cost"] == {"epsilon": 0.5}


def test_a_dry_run_goes_on_where_the_release_would(folder, run, monkeypatch):
    """A run that was stopped is told with what it has bought, and what it would still cost."""

    def stopped(*_: object, **__: object) -> None:
        raise RuntimeError("stopped after the last step")

    with monkeypatch.context() as patched:
        patched.setattr(Release, "save", stopped)
        with pytest.raises(RuntimeError):
            run("--out", "out", *TINY[:-1], "1.5", "--name", "mine", cwd=folder)
    before = visible(folder)
    same = ("--dry-run", "--out", "out", *TINY[1:-1], "1.5")
    said = run(*same, cwd=folder).stdout
    assert (
        "mine was begun before, and 75% of the budget (epsilon 1.5) that it bought is not paid again" in said
    )
    assert "for at most 0% of the budget (epsilon 0) more" in said
    plain = json.loads(run(*same, "--json", cwd=folder).stdout)
    assert (plain["run"], plain["paid"], plain["rest"]) == ("mine", {"epsilon": 1.5}, {"epsilon": 0.0})
    by_name = json.loads(run("--dry-run", *TINY[1:-1], "1.5", "--name", "mine", "--json", cwd=folder).stdout)
    assert by_name["rest"] == {"epsilon": 0.0}
    assert "asked for something else" in run(*same[:-1], "1.2", cwd=folder, status=1).stderr
    assert "is called mine" in run(*same, "--name", "yours", cwd=folder, status=2).stderr
    assert visible(folder) == before  # a dry run leaves the note as it is
    unknown = json.loads(run("--dry-run", *TINY[1:], "--name", "mine", "--json", cwd=folder).stdout)
    assert unknown["rest"] == {"epsilon": 0.5}
    run("--out", "out", *TINY[:-1], "1.5", cwd=folder)
    assert "out exists" in run(*same, cwd=folder, status=1).stderr


def test_a_dry_run_closes_no_release(folder, run):
    note = Unfinished(folder / "out")
    note.begin({"table": "people"}, "release-1")
    assert (
        "leave one of them out" in run("--out", "out", "--abandon", "--dry-run", cwd=folder, status=2).stderr
    )
    assert note.name() == "release-1"
    assert "name the folder" in run("--abandon", cwd=folder, status=2).stderr


def test_notes(folder, run):
    note = Unfinished(folder / "out")
    assert note.begin({"a": 1}, "first") == "first"
    assert note.begin({"a": 1}, "second") == "first"
    assert note.name() == "first"
    (folder / "out").mkdir()
    (folder / "out" / "certificate.json").write_text(
        '{"run": "first", "format": 1, "domain": {}, "answers": []}'
    )
    assert note.name() is None  # finished, and killed before the note was taken away
    assert note.begin({"a": 2}, "third") == "third"
    note.path.write_text("{")
    refused = run("--out", "out", *TINY, "--force", cwd=folder, status=1)
    assert "cannot be read" in refused.stderr
    reply = json.loads(run("--out", "out", "--abandon", "--json", cwd=folder).stdout)
    assert reply["abandoned"] == ""


def test_refusals_spend_nothing_and_leave_nothing(folder, run):
    (folder / "taken").mkdir()
    (folder / "w.csv").write_text("age\nbirthday\n")
    for status, words, arguments in (
        (1, "costs epsilon 3 and 2 remains", ("--out", "o", *TINY[:-1], "3")),
        (1, "exists already", ("--out", "taken", *TINY)),
        (1, "Leave --delta out", ("--out", "o", *TINY, "--delta", "1e-6")),
        (2, "a method is one of auto", ("--out", "o", "--method", "magic", "--epsilon", "1")),
        (2, "does not take rounds", ("--out", "o", *TINY, "--option", "rounds=3")),
        (2, "NAME=VALUE", ("--out", "o", *TINY, "--option", "rounds")),
        (2, "--epsilon 1", ("--out", "o", *TINY[:5])),
        (2, "w.csv, line 2", ("--out", "o", *TINY, "--workload", "w.csv")),
        (2, "no 9-way marginals; take all-5-way", ("--out", "o", *TINY, "--workload", "all-9-way")),
        (2, "is no workload", ("--out", "o", *TINY, "--workload", "most")),
        (2, "more than 1 cells", ("--out", "o", *TINY, "--max-cells", "1")),
        (2, "uniform or middle", ("--out", "o", *TINY, "--within", "edge")),
        (2, "--out", TINY),
        (2, "beta", ("--out", "o", *TINY, "--beta", "2")),
        (2, "name of a release", ("--out", "o", *TINY, "--name", "x" * 101)),
    ):
        done = run(*arguments, cwd=folder, status=status)
        assert words in done.stderr, done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert visible(folder) == (HOME - {"understudy.ledger"}) | {"taken", "w.csv"}  # no charge, no ledger
    reply = json.loads(run("--out", "taken", *TINY, "--json", cwd=folder, status=1).stdout)
    assert reply["error"]["kind"] == "RefusedError"


def test_options_reach_the_method(folder, run):
    run("--out", "out", *TINY, "--option", "speed=2", "--alpha", "0.1", "--force", cwd=folder)
    assert (folder / "out" / "report.html").exists()
