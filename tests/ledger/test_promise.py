"""The first charge binds a ledger to what is promised, and to whom: other promises are not added up with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import understudy as us
from people import write_project
from program import call
from understudy.errors import LedgerError
from understudy.ledger.export import document
from understudy.ledger.interface import NOTHING
from understudy.ledger.store import DurableLedger
from understudy.ledger.verifier import verify
from understudy.privacy.budget import Budget


@pytest.fixture(autouse=True)
def _no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UNDERSTUDY_LEDGER", "UNDERSTUDY_WITNESS"):
        monkeypatch.delenv(name, raising=False)


def test_a_declaration_that_promises_something_else_is_refused(tmp_path: Path):
    folder = write_project(tmp_path, budget="{epsilon: 1}")
    file = folder / "understudy.yml"
    before = file.read_text()
    call("ask", "count by sex", "--dry-run", cwd=folder)
    for more in ("neighbours: add-remove\n", ""):  # nothing was charged yet: it may be declared anew
        file.write_text(before + more)
        call("check", cwd=folder)
    call("ask", "count by sex", "--epsilon", "0.1", cwd=folder)
    call("ledger", "export", "-o", "e.py", cwd=folder)
    told = subprocess.run([sys.executable, "-I", folder / "e.py"], capture_output=True, text=True, check=True)
    assert "promised: privacy of each row, neighbours replace" in told.stdout
    unit = "neighbours: add-remove\nunit: {column: age, max_rows: 3}\n"
    for more in ("neighbours: add-remove\n", "protect: validity\n", unit):
        file.write_text(before + more)
        for command in (("ask", "count by sex", "--epsilon", "0.1"), ("check",), ("ledger", "show")):
            said = call(*command, cwd=folder, status=1).stderr
            assert "was begun under another promise (privacy of each row, neighbours replace)" in said
        with pytest.raises(LedgerError, match="declare `protect`, `neighbours` and `unit` as they were"):
            us.open(folder)
    file.write_text(before)
    call("ask", "count by sex", "--epsilon", "0.1", cwd=folder)


def test_the_most_rows_of_a_person_may_change(tmp_path: Path):
    folder = write_project(tmp_path, budget="{epsilon: 1}")
    file = folder / "understudy.yml"
    before = file.read_text()
    for most in (3, 5):
        file.write_text(f"{before}neighbours: add-remove\nunit: {{column: age, max_rows: {most}}}\n")
        call("ask", "count by sex", "--epsilon", "0.1", cwd=folder)
    file.write_text(f"{before}neighbours: add-remove\nunit: {{column: sex, max_rows: 5}}\n")
    said = call("ask", "count by sex", "--epsilon", "0.1", cwd=folder, status=1).stderr
    assert "another promise (privacy of each 'age', neighbours add-remove)" in said


def test_what_a_start_promised_holds_for_its_declaration(tmp_path: Path):
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i % 50},{i % 7}\n" for i in range(3_000)))
    call("start", "t.csv", cwd=tmp_path)
    call("ask", "count", cwd=tmp_path)
    said = call("start", "t.csv", "--neighbours", "add-remove", "--overwrite", cwd=tmp_path, status=1).stderr
    assert "another promise" in said
    file = tmp_path / "understudy.yml"
    file.write_text(file.read_text().replace("neighbours: replace", "neighbours: add-remove"))
    assert "another promise" in call("ask", "count", cwd=tmp_path, status=1).stderr


def test_a_ledger_that_does_not_say_what_was_promised_goes_on(store):
    ledger = DurableLedger(store, "t", Budget.of(1))
    ledger.charge(NOTHING, question="q", request="r")
    ledger.close()
    again = DurableLedger(store, "t", Budget.of(1), promise="privacy of each row, neighbours replace")
    assert again.is_begun
    again.close()
    assert verify(document(store, "t"))["sound"]


def test_the_promise_is_part_of_what_the_first_entry_seals(store):
    ledger = DurableLedger(store, "t", Budget.of(1), promise="validity")
    ledger.charge(NOTHING, question="q", request="r")
    ledger.close()
    found = document(store, "t")
    assert verify(found)["promise"] == "validity"
    first = found["entries"][0]
    for changed in ('"promise":"privacy"', '"promise":7'):
        first["terms"] = first["terms"].replace('"promise":"validity"', changed)
        assert not verify(found)["sound"]
    with pytest.raises(LedgerError, match="another promise"):
        DurableLedger(store, "t", Budget.of(1), promise="privacy of each row, neighbours replace")
