"""The file that an auditor is given: of a ledger that verifies, or of one that says that it does not."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from people import write_project
from program import call
from understudy.errors import RefusedError
from understudy.ledger.export import NOT_SOUND, exported, self_contained


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("UNDERSTUDY_LEDGER", "UNDERSTUDY_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    made = write_project(tmp_path, budget="{epsilon: 1, delta: 1e-9}")
    call("ask", "count by sex", cwd=made)
    return made


def tamper(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "understudy.ledger")) as raw:
        raw.execute(statement)
        raw.commit()


def checked(file: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-I", str(file)], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


CHANGED = "UPDATE understudy_entry SET cost = 1 WHERE number = 2"


def test_a_ledger_that_does_not_verify_is_not_exported(folder):
    call("ledger", "export", "-o", "sound.py", cwd=folder)
    before = (folder / "sound.py").read_text()
    tamper(folder, CHANGED)
    for more in ((), ("--no-answers",)):
        said = call("ledger", "export", "-o", "e.py", *more, cwd=folder, status=1).stderr
        assert (
            "the ledger of 'people' is not sound, and was not exported: entry 2: its hash does not fit"
            in said
        )
        assert "--as-it-is" in said
        assert not (folder / "e.py").exists()
    told = json.loads(call("ledger", "export", "-o", "e.py", "--json", cwd=folder, status=1).stdout)
    assert "is not sound" in told["error"]["message"]
    call("ledger", "export", "-o", "sound.py", "--overwrite", cwd=folder, status=1)
    assert (folder / "sound.py").read_text() == before  # the one that was sound stays


def test_what_is_there_is_exported_on_demand_and_never_calls_itself_sound(folder):
    tamper(folder, CHANGED)
    said = call("ledger", "export", "-o", "e.py", "--as-it-is", cwd=folder, status=1).stdout
    assert "WRONG  entry 2: its hash does not fit" in said
    assert "NOT SOUND, and the file says so" in said
    assert (folder / "e.py").read_text().startswith(NOT_SOUND)
    status, words = checked(folder / "e.py")
    assert status == 1
    assert "NOT SOUND" in words
    told = json.loads(
        call("ledger", "export", "-o", "f.py", "--as-it-is", "--json", cwd=folder, status=1).stdout
    )
    assert (told["written"], told["sound"], told["entries"]) == ("f.py", False, 3)
    assert any("entry 2" in problem for problem in told["problems"])


def test_what_only_the_owner_can_check_is_told_by_the_file(folder):
    """The books of a snapshot and hidden states are in no export, which would verify without them."""
    books = "INSERT INTO understudy_snapshot VALUES ('people', 2, x'00')"
    tamper(folder, books)
    said = call("ledger", "export", cwd=folder, status=1).stderr
    assert "the books that are kept are those of entry 2, which is not the newest snapshot" in said
    call("ledger", "export", "-o", "e.py", "--as-it-is", cwd=folder, status=1)
    status, words = checked(folder / "e.py")
    assert status == 1
    assert "WRONG when it was exported  the books that are kept" in words


def test_a_ledger_behind_its_witness_is_not_exported(folder):
    file = folder / "understudy.yml"
    file.write_text(file.read_text() + "witness: seen.json\n")
    call("ledger", "witness", "--new", cwd=folder)
    place = folder / "understudy.ledger"
    with closing(sqlite3.connect(place)) as now, closing(sqlite3.connect(folder / "old")) as old:
        now.backup(old)
    call("ask", "count by sex", cwd=folder)
    for file in folder.glob("understudy.ledger*"):
        file.unlink()
    (folder / "old").rename(place)
    assert "rolled back" in call("ledger", "export", cwd=folder, status=1).stderr


def test_a_sound_ledger_is_exported_as_before_whatever_was_allowed(folder):
    for more in ((), ("--as-it-is",)):
        said = call("ledger", "export", "-o", "e.py", "--overwrite", *more, cwd=folder).stdout
        assert "`python e.py` verifies it" in said
        status, words = checked(folder / "e.py")
        assert status == 0
        assert "SOUND: every price" in words
    told = json.loads(call("ledger", "export", "-o", "f.py", "--json", cwd=folder).stdout)
    assert told["sound"]
    assert "problems" not in told


def test_in_python_the_refusal_speaks_of_arguments(folder):
    tamper(folder, CHANGED)
    place = URL.create("sqlite", database=str(folder / "understudy.ledger"))
    with pytest.raises(RefusedError, match="`as_it_is=True`"):
        exported(place, "people")
    assert exported(place, "people", as_it_is=True).problems
    assert not self_contained({"entries": [], "answers": None}).startswith(NOT_SOUND)
