"""What `check --read` found is written down for the custodian, and what it says binds questions."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

import understudy
from people import declaration, write_project
from program import call
from understudy.declaration.file import read, record_place
from understudy.errors import SourceError, UnreadableError
from understudy.ledger.declared import project_files
from understudy.project import open_project
from understudy.releases.making import release
from understudy.table.read_record import read_record
from understudy.table.source import open_source

DATES = """\
understudy: 1
name: loans
source: loans.csv
budget: {{epsilon: 1, delta: 1e-9}}
{more}attributes:
  day: {{type: date, edges: [2014-01-01, 2018-01-01, 2024-01-01]{day}}}
  amount: {{type: integer, bounds: [0, 99], width: 10}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A column of days as 31/12/2017, 600 of 2,000 before 2018, declared as if they were written 2017-12-31."""
    days = [f"{i % 28 + 1:02}/{i % 12 + 1:02}/{2017 if i % 10 < 3 else 2019},{i % 100}" for i in range(2000)]
    (tmp_path / "loans.csv").write_text("day,amount\n" + "\n".join(days) + "\n")
    declare(tmp_path)
    return tmp_path


def declare(folder: Path, *, day: str = "", more: str = "") -> None:
    (folder / "understudy.yml").write_text(DATES.format(day=day, more=more))


def test_a_column_that_cannot_be_read_fails_the_check_and_is_refused(folder):
    """The answer was 2,000 where the truth is 600, and nobody was told."""
    never = call("ask", "count day < 2018-01-01", "--rho", "0.001", cwd=folder)
    assert never.stderr.count("was never read through by `understudy check --read`") == 1
    checked = call("check", "--read", cwd=folder, status=1)
    assert "day: 2,000 of 2,000 rows cannot be read as date" in checked.stderr
    assert "`format`" in checked.stderr
    before = open_project(folder).ledger.remaining
    for command in (
        ("ask", "count day < 2018-01-01"),
        ("ask", "SELECT count(*) FROM loans WHERE day < DATE '2018-01-01'", "--json"),
        ("ask", "count amount < 50 by day", "--dry-run"),
        ("ask", "count day < 2018-01-01", "--session", "s", "--alpha", "0.2"),
        ("release", "--epsilon", "0.1", "--workload", "all-1-way", "-o", "out"),
    ):
        refused = call(*command, cwd=folder, status=1)
        said = refused.stdout + refused.stderr
        assert "the custodian's reading of" in said
        assert "2,000" not in said
    assert open_project(folder).ledger.remaining == before
    assert call("ask", "count amount < 50", "--rho", "0.0001", cwd=folder).stderr == ""


def test_a_declared_format_makes_the_answers_true(folder):
    declare(folder, day=', format: "%d/%m/%Y"')
    call("check", "--read", cwd=folder)
    answer = open_project(folder).ask("count day < 2018-01-01", rho=0.01, beta=1e-9)
    assert abs(float(answer.value) - 600) <= float(answer.error)


def test_sessions_and_releases_refuse_in_python(folder):
    call("check", "--read", cwd=folder, status=1)
    project = open_project(folder)
    with pytest.raises(UnreadableError) as refused:
        project.ask("count by day")
    assert refused.value.attributes == ("day",)
    session = understudy.session(project, alpha=0.2, queries=10)
    for ask in (session.ask, session.price):
        with pytest.raises(UnreadableError):
            ask("count day < 2018-01-01")
    assert session.ask("count amount < 50")
    with pytest.raises(UnreadableError):
        release(project, "all-1-way", epsilon=0.1)


@pytest.mark.parametrize(
    ("day", "more", "fails"),
    [
        ("", "", True),
        ("", "unreadable: 1\n", False),
        (", unreadable: 1", "", False),
        (", unreadable: 0.5", "unreadable: 1\n", True),
    ],
)
def test_what_is_tolerated_is_declared_for_the_table_or_an_attribute(folder, day, more, fails):
    declare(folder, day=day, more=more)
    call("check", "--read", cwd=folder, status=int(fails))


def test_a_share_up_to_the_tolerated_one_is_no_failure(tmp_path):
    write_project(tmp_path, rows=100)
    with open(tmp_path / "people.csv", "a") as file:
        file.write("old,F\n")
    (tmp_path / "understudy.yml").write_text(declaration(more="unreadable: 0.0099\n"))
    call("check", "--read", cwd=tmp_path, status=1)
    (tmp_path / "understudy.yml").write_text(declaration(more="unreadable: 0.01\n"))
    call("check", "--read", cwd=tmp_path)


def test_the_record_is_the_owners_alone_and_the_project_s_own_file(folder):
    os.umask(0o022)
    call("check", "--read", cwd=folder, status=1)
    record = record_place(folder / "understudy.yml")
    assert record.name == "understudy.read.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    kept = json.loads(record.read_text())
    assert (kept["rows"], kept["attributes"]["day"]["unreadable"], kept["unreadable"]) == (
        2000,
        2000,
        ["day"],
    )
    assert record in project_files(read(folder / "understudy.yml"), file=folder / "understudy.yml")
    assert not list(folder.glob("*.new"))


@pytest.mark.parametrize("change", ["rows", "format", "tolerance", "cells"])
def test_a_record_stands_for_one_table_under_one_declaration(folder, change):
    call("check", "--read", cwd=folder, status=1)
    record = record_place(folder / "understudy.yml")

    def found():
        declared = read(folder / "understudy.yml")
        return read_record(record, declared, open_source(declared.source, base=folder))

    assert found().unreadable == {"day"}
    if change == "rows":
        with open(folder / "loans.csv", "a") as file:
            file.write("01/01/2019,1\n")
    elif change == "cells":
        declare(folder, day=", null: true")
    elif change == "format":
        declare(folder, day=', format: "%d/%m/%Y"')
    else:
        declare(folder, more="unreadable: 0.5\n")
    assert found() is None


def test_a_verdict_is_read_and_never_made_anew(folder):
    """Who can ask and not check learns one fixed statement: it does not follow the counts."""
    call("check", "--read", cwd=folder, status=1)
    record = record_place(folder / "understudy.yml")
    kept = json.loads(record.read_text())
    kept["attributes"]["day"]["unreadable"] = 0
    record.write_text(json.dumps(kept))
    with pytest.raises(UnreadableError):
        open_project(folder).ask("count by day")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_a_record_that_cannot_be_read_is_no_permission(folder, text):
    record_place(folder / "understudy.yml").write_text(text)
    with pytest.raises(SourceError, match="record of the last reading"):
        open_project(folder)


def test_a_latin_1_file_without_its_encoding_is_refused_as_a_whole(tmp_path):
    rows = "".join(f"{i % 100},{'Orléans' if i % 5 else 'Bree'}\n" for i in range(500))
    (tmp_path / "people.csv").write_bytes(("age,town\n" + rows).encode("latin-1"))
    town = "attributes:\n  town: {type: category, values: [Bree, Orléans]}\n"
    start = "understudy: 1\nname: people\nsource: people.csv\nbudget: {epsilon: 1}\n"
    (tmp_path / "understudy.yml").write_text(start + town)
    checked = call("check", "--read", cwd=tmp_path, status=1)
    told = " ".join(checked.stderr.split())
    assert told.startswith(
        "The file is not UTF-8: its bytes read as cp1252. Declare `encoding: cp1252` (or latin-1"
    )
    assert "400 of 500 lines (lines 3, 4, 5, 6, 8, …) are no rows" in told
    assert told.count("are no rows") == 1
    refused = call("ask", "count by town", "--epsilon", "0.1", cwd=tmp_path, status=1)
    assert "too many lines" in refused.stderr
    (tmp_path / "understudy.yml").write_text(start + "encoding: latin-1\n" + town)
    assert "500 rows were read" in call("check", "--read", cwd=tmp_path).stdout
    answer = open_project(tmp_path).ask("count town = Orléans", epsilon=1, beta=1e-9)
    assert abs(float(answer.value) - 400) <= float(answer.error)
