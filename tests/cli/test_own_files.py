"""What belongs to a project is never taken for something else, and what is half lost is never called new."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import partial

import duckdb
import pytest

import understudy as us
from people import declaration, write_project
from program import call
from understudy.declaration.file import parse
from understudy.errors import LedgerError, ParameterError, SourceError
from understudy.ledger.file import is_there
from understudy.ledger.place import ledger_place
from understudy.output import write_file
from understudy.releases.methods import METHODS
from understudy.table.draft_file import write

BUDGET = "{epsilon: 1, delta: 1e-9}"


@pytest.fixture
def folder(tmp_path):
    return write_project(tmp_path, budget=BUDGET)


def test_a_draft_replaces_declarations_alone(folder):
    ledger = folder / "understudy.ledger"
    ledger.write_bytes(b"SQLite format 3\x00\xff")
    with pytest.raises(SourceError, match="no declaration"):
        write(folder / "people.csv", ledger, overwrite=True)
    assert ledger.read_bytes() == b"SQLite format 3\x00\xff"
    write(folder / "people.csv", folder / "understudy.yml", overwrite=True)


def test_a_release_is_not_written_over_the_project(folder):
    """The ledger is not there before the first charge, and its place is taken all the same."""
    for out, status in (("understudy.ledger", 2), ("people.csv", 1), (".", 1)):
        call("release", "--epsilon", "0.1", "--workload", "all-1-way", "-o", out, cwd=folder, status=status)
    assert not (folder / "understudy.ledger").exists()


def test_half_a_ledger_is_not_a_new_one(tmp_path):
    file = tmp_path / "understudy.ledger"
    assert not is_there(file)
    log = tmp_path / "understudy.ledger-wal"
    log.write_bytes(b"entries")
    for size in (None, 0):
        if size is not None:
            file.write_bytes(b"")
        with pytest.raises(LedgerError, match="half of the ledger"):
            is_there(file)
    assert log.read_bytes() == b"entries"
    sqlite3.connect(file).executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    log.write_bytes(b"entries")
    assert is_there(file)


def test_a_start_writes_neither_its_declaration_nor_its_page_over_its_ledger(tmp_path, monkeypatch):
    for name in ("UNDERSTUDY_LEDGER", "UNDERSTUDY_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i % 50},{i % 7}\n" for i in range(3_000)))
    ledger = tmp_path / "understudy.ledger"
    for begun in (False, True):
        if begun:
            call("start", "t.csv", cwd=tmp_path)
        before = ledger.read_bytes() if begun else None
        for name in ("understudy.ledger", "understudy.ledger-wal", "t.csv"):
            if begun or name != "t.csv":
                call("start", "t.csv", "-o", name, "--overwrite", cwd=tmp_path, status=1)
            call("start", "t.csv", "--report", name, cwd=tmp_path, status=2)
        assert (ledger.read_bytes() if ledger.exists() else None) == before  # nothing was bought, either
    assert "sound" in call("ledger", "verify", cwd=tmp_path).stdout


def test_no_output_replaces_a_database(folder, tmp_path):
    """Another project's ledger is as little replaced as one's own, whatever --overwrite says."""
    call("ask", "count by sex", cwd=folder)
    other = folder / "other.db"
    for make in (
        lambda: sqlite3.connect(other).executescript("CREATE TABLE t (x)"),
        lambda: duckdb.connect(other).close(),
    ):
        make()
        before = other.read_bytes()
        for command in (
            ("ledger", "export", "-o", "other.db", "--overwrite"),
            ("ledger", "show", "--html", "other.db", "--overwrite"),
            ("start", "people.csv", "-o", "new.yml", "--report", "other.db"),
        ):
            assert "is a database" in call(*command, cwd=folder, status=2).stderr
        with pytest.raises(ParameterError, match="is a database"):
            write_file(other, "text", overwrite=True)
        assert other.read_bytes() == before
        other.unlink()


def test_what_is_no_file_is_no_ledger(folder):
    place = folder / "understudy.ledger"
    commands = [("ask", "count by sex"), ("ledger", "show"), ("ledger", "verify"), ("check",)]
    for make, remove, words in (
        (place.mkdir, place.rmdir, "is a folder"),
        (partial(os.mkfifo, place), place.unlink, "is no file"),
        (partial(place.symlink_to, place), place.unlink, "cannot be looked at: Too many levels of symbolic"),
    ):
        make()
        for command in commands:
            assert f"understudy.ledger {words}" in call(*command, cwd=folder, status=1).stderr
        remove()


def test_a_ledger_whose_place_a_folder_takes_is_not_said_to_have_two_names(folder):
    opened = us.open(folder / "understudy.yml")
    opened.ask("count by sex", epsilon=0.1)
    (folder / "understudy.ledger").unlink()
    (folder / "understudy.ledger").mkdir()
    with pytest.raises(LedgerError, match="is a folder"):
        opened.ask("count by sex", epsilon=0.1)
    opened.close()


def test_a_ledger_that_does_not_say_its_version_is_told_so(folder):
    call("ask", "count by sex", cwd=folder)
    with closing(sqlite3.connect(folder / "understudy.ledger")) as raw:
        raw.executescript("DELETE FROM understudy_schema")
    for command in (("ask", "count by sex"), ("ledger", "show"), ("ledger", "verify"), ("ledger", "export")):
        assert "does not say by which program it was written" in call(*command, cwd=folder, status=1).stderr


def test_a_ledger_that_cannot_be_looked_at_is_not_called_absent(tmp_path, monkeypatch):
    def denied(self, **rest):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.stat", denied)
    with pytest.raises(LedgerError, match="cannot be looked at"):
        is_there(tmp_path / "understudy.ledger")


def test_a_witness_is_not_the_ledger(folder):
    (folder / "understudy.yml").write_text(declaration(budget=BUDGET, more="witness: understudy.ledger\n"))
    for command in (("check",), ("ask", "count by sex", "--epsilon", "0.1")):
        found = call(*command, cwd=folder, status=1)
        assert "witness cannot be the ledger" in found.stderr
    assert not (folder / "understudy.ledger").exists()


def test_a_ledger_that_its_witness_saw_is_missed_by_verify(folder):
    (folder / "understudy.yml").write_text(declaration(budget=BUDGET, more="witness: seen.json\n"))
    call("ledger", "witness", "--new", cwd=folder)
    call("ask", "count by sex", "--epsilon", "0.05", cwd=folder)
    for name in ("understudy.ledger", "understudy.ledger-wal", "understudy.ledger-shm"):
        if (folder / name).exists():
            os.remove(folder / name)
    found = call("ledger", "verify", cwd=folder, status=1)
    assert "witness saw" in found.stderr


def test_a_request_does_not_take_a_session_s_place(folder):
    for question in ("count by sex", "SELECT count(*) FROM people GROUP BY sex"):
        found = call("ask", question, "--epsilon", "0.05", "--request", "q#1", cwd=folder, status=2)
        assert "numbers the purchases of a session" in found.stderr
    assert not (folder / "understudy.ledger").exists()


def test_cells_are_a_number(folder):
    class Small:
        class domain:
            @staticmethod
            def size():
                return 6

    with pytest.raises(ParameterError):
        METHODS["mwem"].obstacle(Small, {"cells": "abc"})


@pytest.mark.parametrize("given", [(), ("--overwrite",)])
def test_nothing_is_written_through_a_link_to_nothing(given, folder):
    """Whoever can make a link in a folder would choose where the custodian's file appears."""
    call("ask", "count", cwd=folder)
    elsewhere = folder / "elsewhere"
    for name in ("export.py", "draft.yml", "plot.svg", "audit.html"):
        (folder / name).symlink_to(elsewhere)
    wanted = [
        ("ledger", "export", "-o", "export.py", *given),
        ("init", "people.csv", "-o", "draft.yml", *given),
        ("plan", "--rows", "1000", "--queries", "10", "--plot", "plot.svg", *given),
        ("audit", "privacy", "--mechanism", "laplace", "--out", "audit.html"),
    ]
    for command in wanted:
        assert "link" in call(*command, cwd=folder, status=2).stderr
        assert not elsewhere.exists(), command


def test_a_file_or_link_that_appears_after_the_check_is_neither_replaced_nor_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("theirs")
    link.symlink_to(target)
    for path in (target, link):
        with pytest.raises(ParameterError, match="exists already"):
            write_file(path, "mine")
    assert target.read_text() == "theirs"
    write_file(target, "mine", overwrite=True)
    assert target.read_text() == "mine"
    write_file(tmp_path / "new", b"mine", overwrite=True)
    assert (tmp_path / "new").read_text() == "mine"


def test_a_port_that_is_no_number_is_told_in_words(folder):
    text = (folder / "understudy.yml").read_text()
    for line in (
        "source: postgresql://h:abc/db\ntable: t",
        "source: people.csv\nledger: postgresql://h:abc/db",
    ):
        (folder / "understudy.yml").write_text(text.replace("source: people.csv", line))
        assert "not a URL" in call("check", cwd=folder, status=2).stderr
    with pytest.raises(LedgerError, match="cannot be read"):
        ledger_place("", base=folder, environ={"UNDERSTUDY_LEDGER": "postgresql://h:abc/db"})
    several = declaration().replace("people.csv", "postgresql://h:5432,i:5433/db\ntable: t")
    assert parse(several).source.location == "postgresql://h:5432,i:5433/db"
