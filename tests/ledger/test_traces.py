"""A ledger that is gone is not begun anew by the next question, where its charges have left traces."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import create_engine

import understudy as us
from people import write_project
from program import call
from understudy.cli.release import _noted
from understudy.declaration.file import copy_place, read
from understudy.errors import LedgerError
from understudy.ledger.declared import BEGUN_ANEW, begin_ledger, open_ledger, project_files
from understudy.ledger.schema import migrate
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
        (_log, "half of the ledger is missing: understudy.ledger-wal is there, and understudy.ledger is not"),
    ],
)
def test_other_traces_tell_as_well(folder, left, words):
    left(folder)
    copy_place(folder / "understudy.yml").unlink(missing_ok=True)
    if left is not _log:
        lose(folder)
    assert words in call("ask", "count by sex", cwd=folder, status=1).stderr


def _emptied(folder: Path) -> str:
    lose(folder)
    (folder / "understudy.ledger").touch()
    return "understudy.ledger is an empty file"


def _fresh_database(folder: Path) -> str:
    lose(folder)
    with closing(sqlite3.connect(folder / "understudy.ledger")) as made:
        made.executescript("PRAGMA journal_mode=WAL; CREATE TABLE other (x)")
    return "understudy.ledger holds nothing of this table"


def _fresh_tables(folder: Path) -> str:
    lose(folder)
    engine = create_engine(f"sqlite:///{folder / 'understudy.ledger'}")
    with engine.begin() as tx:
        migrate(tx)
    engine.dispose()
    return "understudy.ledger holds nothing of this table"


def _leads_nowhere(folder: Path) -> str:
    lose(folder)
    (folder / "understudy.ledger").symlink_to(folder / "elsewhere.ledger")
    return "elsewhere.ledger is not there"


def _renamed(folder: Path) -> str:
    file = folder / "understudy.yml"
    file.write_text(file.read_text().replace("name: people", "name: persons"))
    return "understudy.ledger holds nothing of this table"


@pytest.mark.parametrize("left", [_emptied, _fresh_database, _fresh_tables, _leads_nowhere, _renamed])
def test_a_file_that_holds_nothing_of_the_ledger_is_no_ledger(folder, left):
    call("ask", "count by sex", cwd=folder)
    words = left(folder)
    file = folder / "understudy.ledger"
    page = ("ledger", "show", "--html", "page.html")
    session = ("ask", "count by sex", "--session", "s", "--alpha", "0.2")
    made = ("release", "--epsilon", "0.1", "--workload", "all-1-way", "-o", "o")
    for command in (("ask", "count by sex"), session, made, ("ledger", "show"), page, ("check",)):
        said = call(*command, cwd=folder, status=1).stderr
        assert f"{words}, but something was charged" in said
    assert not (folder / "page.html").exists()
    with pytest.raises(LedgerError, match="To begin another would forget what was spent"):
        us.open(folder / "understudy.yml")
    if left is _emptied:
        assert not file.read_bytes()  # looking writes nothing
    assert "Began the ledger" in call("ledger", "new", cwd=folder).stdout
    call("ask", "count by sex", cwd=folder)


def test_an_empty_file_without_a_trace_is_a_first_use(folder):
    """A file of no bytes may be what a program left that ended before its first charge."""
    (folder / "understudy.ledger").touch()
    assert "nothing was charged yet" in call("ledger", "show", cwd=folder).stdout
    assert (folder / "understudy.ledger").stat().st_size == 0
    call("ask", "count by sex", cwd=folder)


def test_a_database_that_holds_nothing_of_the_ledger_is_no_ledger(folder, postgres, monkeypatch):
    call("ask", "count by sex", cwd=folder)
    monkeypatch.setenv("UNDERSTUDY_LEDGER", postgres.render_as_string(hide_password=False))
    for command in (("ask", "count by sex"), ("ledger", "show"), ("check",)):
        said = call(*command, cwd=folder, status=1).stderr
        assert "holds nothing of this table, but something was charged" in said
    call("ledger", "new", cwd=folder)
    call("ask", "count by sex", cwd=folder)


def test_a_declaration_that_was_paid_for_is_a_trace_of_its_ledger(tmp_path, monkeypatch):
    for name in ("UNDERSTUDY_LEDGER", "UNDERSTUDY_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i % 50},{i % 7}\n" for i in range(3_000)))
    begin = ("start", "t.csv", "--epsilon", "1")
    call(*begin, cwd=tmp_path)
    kept = lose(tmp_path)
    words = "understudy.yml was written by `understudy start`, which pays for what it declares"
    session = ("ask", "count", "--session", "s", "--alpha", "0.2")
    made = ("release", "--epsilon", "0.1", "--workload", "all-1-way", "-o", "o")
    for emptied in (False, True):
        if emptied:
            (tmp_path / "understudy.ledger").touch()
        dry = (*begin, "--dry-run", "--overwrite")
        for command in (("ask", "count"), session, made, ("check",), begin, (*begin, "--overwrite"), dry):
            assert words in call(*command, cwd=tmp_path, status=1).stderr, command
        with pytest.raises(LedgerError, match="was written by `understudy start`"):
            us.open(tmp_path)
        assert words in call("serve", "--check", cwd=tmp_path, status=1).stderr
    put_back(kept)
    call("ask", "count", cwd=tmp_path)


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
