"""A ledger that is gone is not begun anew by the next question, where its charges have left traces."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

import understudy as us
from people import write_project
from program import call
from understudy.cli.release import _noted
from understudy.declaration.file import copy_place, read
from understudy.errors import LedgerError
from understudy.ledger.declared import BEGUN_ANEW, begin_ledger, open_ledger, project_files
from understudy.project import open_project
from understudy.releases.unfinished import Unfinished


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("UNDERSTUDY_LEDGER", "UNDERSTUDY_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    made = write_project(tmp_path, budget="{epsilon: 1, delta: 1e-9}")
    file = made / "understudy.yml"
    file.write_text(file.read_text() + "coded_copy: true\n")
    return made


def lose(folder: Path) -> dict[Path, bytes]:
    """Delete the ledger, with what SQLite keeps beside it; what was in these files, to put it back."""
    files = [folder / f"understudy.ledger{ending}" for ending in ("", "-wal", "-shm")]
    kept = {file: file.read_bytes() for file in files if file.exists()}
    for file in kept:
        file.unlink()
    return kept


def put_back(kept: dict[Path, bytes]) -> None:
    for file, held in kept.items():
        file.write_bytes(held)


def test_a_first_use_needs_nothing(folder):
    call("check", "--read", cwd=folder)
    assert (folder / "understudy.read.json").exists()
    call("ask", "count by sex", "--dry-run", cwd=folder)
    assert "nothing was charged yet" in call("ledger", "show", cwd=folder).stdout
    call("ask", "count by sex", cwd=folder)


def test_where_the_table_was_looked_at_before_a_missing_ledger_is_refused(folder):
    call("ask", "count by sex", cwd=folder)
    assert copy_place(folder / "understudy.yml").exists()
    kept = lose(folder)
    made = ("release", "--epsilon", "0.1", "-o", "o")
    for command in (("ask", "count by sex"), ("ledger", "show"), ("check",), made):
        said = call(*command, cwd=folder, status=1).stderr
        assert "understudy.ledger is not there, but something was charged" in said
        assert "understudy.codes was made by a look at the table" in said
        assert "Put the ledger back" in said
        assert "`understudy ledger new`" in said
        assert not (folder / "understudy.ledger").exists()
    with pytest.raises(LedgerError, match="is not there"):
        us.open(folder / "understudy.yml")
    put_back(kept)  # then everything goes on
    assert "3 entries" in call("ledger", "show", cwd=folder).stdout
    call("ask", "count by sex", cwd=folder)


def _release(folder: Path) -> None:
    call("release", "--epsilon", "0.1", "--workload", "all-1-way", "-o", "out", cwd=folder)


def _export(folder: Path) -> None:
    call("ask", "count by sex", cwd=folder)
    call("ledger", "export", cwd=folder)


def _unfinished(folder: Path) -> None:
    call("ask", "count by sex", cwd=folder)
    opened = open_project(folder / "understudy.yml")
    with suppress(KeyboardInterrupt), _noted(opened, Unfinished(folder / "out"), {"table": "people"}, "r"):
        note = (folder / ".out.unfinished.json").read_text()
        raise KeyboardInterrupt
    (folder / ".out.unfinished.json").write_text(note)  # as after a power cut, which takes nothing away


def _log(folder: Path) -> None:
    call("ask", "count by sex", cwd=folder)
    (folder / "understudy.ledger").unlink()
    (folder / "understudy.ledger-wal").write_bytes(b"x")


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (_release, "out holds a release of the table"),
        (_export, "ledger_export.py is an export of the ledger"),
        (_unfinished, ".out.unfinished.json is the note of a release that was begun after a charge"),
        (_log, "understudy.ledger-wal is the log of a ledger that was in use"),
    ],
)
def test_other_traces_tell_as_well(folder, left, words):
    left(folder)
    copy_place(folder / "understudy.yml").unlink(missing_ok=True)
    if left is not _log:
        lose(folder)
    assert words in call("ask", "count by sex", cwd=folder, status=1).stderr


def test_what_another_table_left_is_no_trace_of_this_one(folder):
    _release(folder)
    _export(folder)
    other = folder / "other"
    other.mkdir()
    file = other / "understudy.yml"
    text = (folder / "understudy.yml").read_text()
    file.write_text(text.replace("name: people", "name: others").replace("coded_copy: true\n", ""))
    shutil.copy(folder / "people.csv", other)
    shutil.move(folder / "out", other)
    shutil.move(folder / "ledger_export.py", other)
    call("ask", "count by sex", cwd=other)


def test_a_release_that_was_paid_from_a_ledger_in_memory_is_no_trace(folder):
    declared = read(folder / "understudy.yml")
    people = pd.read_csv(folder / "people.csv")
    us.release(us.Project.frame(people, declared), us.marginals(1), epsilon=0.1).save(folder / "out")
    call("ask", "count by sex", cwd=folder)


def test_a_ledger_is_begun_anew_knowingly_and_says_so(folder):
    call("ask", "count by sex", cwd=folder)
    assert "is there" in call("ledger", "new", cwd=folder, status=1).stderr
    lose(folder)
    file = folder / "understudy.yml"
    file.write_text(file.read_text() + "opening: {epsilon: 0.1}\n")
    assert "Began the ledger of 'people' anew" in call("ledger", "new", cwd=folder).stdout
    declared = read(file)
    books = open_ledger(declared, base=folder, file=file)
    debit = books.find(BEGUN_ANEW)
    assert debit is not None
    assert debit.cost.units == 0
    assert books.spent.units > 0  # the opening
    books.close()
    call("ask", "count by sex", cwd=folder)
    assert "sound" in call("ledger", "verify", cwd=folder).stdout


def test_a_witness_is_not_made_for_a_ledger_that_is_gone_nor_is_one_begun_that_it_saw(folder):
    call("ask", "count by sex", cwd=folder)
    file = folder / "understudy.yml"
    file.write_text(file.read_text() + "witness: seen.json\n")
    kept = lose(folder)
    assert "is not there, but" in call("ledger", "witness", "--new", cwd=folder, status=1).stderr
    put_back(kept)
    assert "has seen 3 entries" in call("ledger", "witness", "--new", cwd=folder).stdout
    lose(folder)
    with pytest.raises(LedgerError, match="3 were seen before"):
        begin_ledger(read(file), base=folder)


def test_the_coded_copy_is_a_file_of_the_project(folder):
    file = folder / "understudy.yml"
    assert copy_place(file) in project_files(read(file), file=file)
