"""`understudy release --name`: one name is one release; what was refused leaves nothing behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

import tiny_release
from understudy.cli.app import main
from understudy.declaration.file import parse
from understudy.errors import InsufficientBudgetError, RequestConflictError
from understudy.ledger.declared import open_ledger
from understudy.ledger.store import DurableLedger
from understudy.releases import methods
from understudy.releases.folder import beside
from understudy.releases.making import release
from understudy.releases.purchases import paid_before, purchases
from understudy.releases.run import Run
from understudy.releases.unfinished import Unfinished

DELTA = tiny_release.DECLARATION.replace("{epsilon: 2}", "{epsilon: 2, delta: 1e-6}")
TINY = ("--yes", "--method", "tiny", "--workload", "1-way")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parquet.write_table(tiny_release.people(), tmp_path / "people.parquet")
    (tmp_path / "understudy.yml").write_text(tiny_release.DECLARATION)
    return tmp_path


@pytest.fixture
def program(folder, monkeypatch, capsys):
    """Run `understudy release` in the folder, with the small method among its methods: what it printed."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(methods, "METHODS", tiny_release.with_tiny())

    def program(*arguments: str, status: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["understudy", "release", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        told = capsys.readouterr()
        assert code == status, told
        return told.out, told.err

    return program


def spent(folder: Path) -> float:
    ledger = open_ledger(parse((folder / "understudy.yml").read_text()), base=folder, environ={})
    try:
        return ledger.spent.amount
    finally:
        ledger.close()


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "-wal" not in path.name}


@pytest.mark.parametrize(
    "terms",
    [
        ("--epsilon", "0.2"),
        ("--epsilon", "0.1", "--method", "mwem"),
        ("--epsilon", "0.1", "--analyst", "ada"),
    ],
)
def test_a_name_under_other_terms_is_refused_and_leaves_no_note(folder, program, terms):
    program("--out", "y", *TINY, "--epsilon", "0.1", "--name", "spring")
    before = tree(folder)
    _, told = program("--out", "z", *TINY, *terms, "--name", "spring", status=1)
    assert "the name spring belongs to a release with other terms" in told
    assert "or of another version of the table or of Understudy" in told
    assert "(epsilon 0.1 in 5 requests)" in told
    assert "Choose another --name, or give its terms" in told
    assert "not finished" not in told
    assert len(told.strip().splitlines()) == 1
    assert tree(folder) == before
    assert spent(folder) == 0.1
    program("--out", "z", *TINY, *terms[:2])  # the folder is free for a release under another name


def test_the_same_name_and_terms_spend_nothing_new(folder, program):
    told, _ = program("--out", "y", *TINY, "--epsilon", "0.1", "--name", "spring")
    assert "spent epsilon 0.1; 95% of the budget left" in told
    told, _ = program("--out", "z", *TINY, "--epsilon", "0.1", "--name", "spring")
    assert "nothing new was spent (epsilon 0.1 was, before); 95% of the budget left" in told
    reply = json.loads(program("--out", "w", *TINY, "--epsilon", "0.1", "--name", "spring", "--json")[0])
    assert (reply["spent"], reply["cost"]["amount"]) == ({"epsilon": 0.0}, 0.1)
    reply = json.loads(program("--out", "v", *TINY, "--epsilon", "0.1", "--json")[0])
    assert reply["spent"] == {"epsilon": 0.1}


def stopped_at(step: str, monkeypatch) -> None:
    measure = Run.measure

    def stopping(self, name, *arguments, **named):
        if name == step:
            raise KeyboardInterrupt
        return measure(self, name, *arguments, **named)

    monkeypatch.setattr(Run, "measure", stopping)


def test_a_run_that_goes_on_says_what_is_new(folder, program, monkeypatch):
    with monkeypatch.context() as patch:
        stopped_at("count born", patch)
        _, told = program("--out", "y", *TINY, "--epsilon", "0.5", status=130)
    assert "give the same command again" in told
    assert beside(folder / "y", "unfinished.json").exists()
    told, _ = program("--out", "y", *TINY, "--epsilon", "0.5")
    assert "spent epsilon 0.3, beside 0.2 before" in told
    assert not beside(folder / "y", "unfinished.json").exists()


def test_a_run_whose_table_has_changed_can_only_be_closed(folder, program, monkeypatch):
    with monkeypatch.context() as patch:
        stopped_at("count born", patch)
        program("--out", "y", *TINY, "--epsilon", "0.5", status=130)
    parquet.write_table(tiny_release.people(500), folder / "people.parquet")
    _, told = program("--out", "y", *TINY, "--epsilon", "0.5", status=1)
    assert "cannot go on: the table or its declaration has changed" in told
    assert "Close it with --abandon" in told
    assert "same command" not in told
    assert spent(folder) == 0.2
    program("--out", "y", "--abandon")
    program("--out", "y", *TINY, "--epsilon", "0.5")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--epsilon", "3", *TINY),
        ("--epsilon", "1", "--method", "adaptive"),
        ("--epsilon", "1", "--delta", "1e-6", *TINY),
        ("--epsilon", "1", "--ranges", "sex"),
        ("--epsilon", "1", "--method", "net"),
        ("--epsilon", "1", "--method", "mwm"),
        ("--epsilon", "1", *TINY, "--option", "rounds=3"),
        ("--epsilon", "0", *TINY),
    ],
)
def test_a_refusal_writes_nothing_at_all(folder, program, arguments):
    before = tree(folder)
    status = 1 if arguments[1] == "3" or "adaptive" in arguments or "--delta" in arguments else 2
    _, told = program("--out", "some/new/place", *arguments, status=status)
    assert "Traceback" not in told
    assert tree(folder) == before  # no note, no folder for it, no ledger


def test_folders_that_hold_something_stay(folder):
    note = Unfinished(folder / "some" / "new" / "place")
    missing = note.missing()
    assert [path.name for path in missing] == ["new", "some"]
    note.begin({}, "spring")
    (folder / "some" / "mine").write_text("x")
    note.end(folders=missing)
    assert tree(folder) == {"people.parquet", "understudy.yml", "some", "some/mine"}


def test_the_help_says_how_a_folder_is_replaced(program):
    told, _ = program("--help")
    assert "must not exist" not in told
    assert "--force replaces" in " ".join(told.split())


# ---- what a ledger holds under a name


def test_purchases_of_a_ledger_that_was_not_begun_are_none(tmp_path):
    declared = parse(DELTA.replace("attributes:", "opening: {epsilon: 0.01}\nattributes:"))
    ledger = open_ledger(declared, base=tmp_path, environ={})
    try:
        assert ledger.spent.units > 0  # the opening balance
        assert paid_before(ledger, "spring") == 0
        assert not ledger.is_begun
    finally:
        ledger.close()
    assert not list(tmp_path.iterdir())


def test_purchases_of_a_name_are_its_own(tmp_path):
    declared = parse(DELTA)
    stored = open_ledger(declared, base=tmp_path, environ={})
    try:
        for ledger in (None, stored):
            about = tiny_release.Project.frame(tiny_release.people(), declared, ledger=ledger)
            release(about, "1-way", epsilon=0.3, method=tiny_release.tiny, name="spring", analyst="ada")
            release(about, "1-way", epsilon=0.2, method=tiny_release.tiny, name="spring2")
            found = purchases(about.ledger, "spring")
            assert len(found.requests) == 5
            assert found.units + paid_before(about.ledger, "spring2") == about.ledger.spent.units
            assert found.analysts == ("ada",)
            assert "about epsilon 0.3, in 5 requests)" in found.conflict("ada")
            for other in ("bob", ""):
                told = found.conflict(other)
                assert "another analyst's release" in told
                assert not any(word in told for word in ("ada", "epsilon", "requests"))
            assert paid_before(about.ledger, "sprin") == 0
            assert about.ledger.is_begun == isinstance(about.ledger, DurableLedger)
            with pytest.raises(RequestConflictError, match="the name spring belongs"):
                release(about, "1-way", epsilon=0.1, method=tiny_release.tiny, name="spring")
            with pytest.raises(RequestConflictError, match="the name spring belongs"):
                release(about, "1-way", epsilon=0.1, method="mwem", name="spring")
    finally:
        stored.close()


def test_the_rest_of_a_release_that_cannot_be_paid_is_said_to_be_one(monkeypatch):
    about = tiny_release.project()
    with monkeypatch.context() as patch:
        stopped_at("count born", patch)
        with pytest.raises(KeyboardInterrupt):
            release(about, "1-way", epsilon=2, method=tiny_release.tiny, name="spring")
    about.ask("count by sex", epsilon=1)
    with pytest.raises(InsufficientBudgetError, match=r"costs epsilon 1\.2 and 0\.2 remains.*rest of spring"):
        release(about, "1-way", epsilon=2, method=tiny_release.tiny, name="spring")
    assert about.ledger.spent.amount == pytest.approx(1.8)
