"""From the declaration to its ledger: places, passwords, limits, and the Curator on a durable ledger."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import understudy as us
from people import declaration
from program import call
from understudy.declaration.file import parse, read
from understudy.errors import DeclarationError, InsufficientBudgetError, LedgerError
from understudy.ledger.declared import new_witness
from understudy.ledger.export import verify
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.place import ledger_place, witness_place
from understudy.ledger.store import DurableLedger
from understudy.query.linear import LinearQuery

TEXT = declaration()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.delenv("UNDERSTUDY_LEDGER", raising=False)
    monkeypatch.delenv("UNDERSTUDY_WITNESS", raising=False)
    (tmp_path / "people.csv").write_text("age,sex\n" + "30,F\n70,M\n" * 50)
    (tmp_path / "understudy.yml").write_text(TEXT)
    return tmp_path


def declare(folder: Path, *lines: str) -> None:
    (folder / "understudy.yml").write_text(TEXT + "".join(line + "\n" for line in lines))


def test_places():
    base = Path("/srv/project")
    assert ledger_place("", base=base, environ={}).database == "/srv/project/understudy.ledger"
    assert ledger_place("books/x", base=base, environ={}).database == "/srv/project/books/x"
    given = {"UNDERSTUDY_LEDGER": "postgresql://ada:secret@db/books", "UNDERSTUDY_WITNESS": "/w"}
    url = ledger_place("books/x", base=base, environ=given)
    assert (url.drivername, url.password, url.host) == ("postgresql+psycopg", "secret", "db")
    assert ledger_place("sqlite:////srv/x", base=base, environ={}).database == "/srv/x"
    assert witness_place("", base=base, environ={}) is None
    assert witness_place("w", base=base, environ={}) == base / "w"
    assert witness_place("w", base=base, environ=given) == Path("/w")
    for variable, place in (("UNDERSTUDY_LEDGER", ledger_place), ("UNDERSTUDY_WITNESS", witness_place)):
        with pytest.raises(LedgerError, match="relative path"):
            place("", base=base, environ={variable: "some/file"})
    for wrong in ("mysql://host/x", "sqlite://", "sqlite:///relative", "://"):
        with pytest.raises(LedgerError):
            ledger_place("", base=base, environ={"UNDERSTUDY_LEDGER": wrong})


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("ledger: postgresql://ada:secret@db/books", "UNDERSTUDY_LEDGER"),
        ("ledger: postgresql://db/books?password=secret", "UNDERSTUDY_LEDGER"),
        ("opening: {epsilon: -1}", "0 or more"),
        ("opening: {epsilon: 2}", "more than the budget"),
        ("opening: {}", "epsilon"),
        ("limits: {analyst: 0}", "positive"),
        ("limits: {week: 1}", "analyst, analysts, day, month"),
        ("limits: {analysts: {ada: -1}}", "at least 0"),
        ("limits: {analysts: [ada]}", "key: value"),
        ("limits: {analysts: {ada: much}}", "finite number"),
        ("limits: {analyst: 1, analysts: {ada: 1}}", "not both"),
        ("limits: {analysts: {ada: 1, ada: 2}}", "twice"),
    ],
)
def test_declarations_that_are_refused(line, hint):
    with pytest.raises(DeclarationError, match=hint) as refused:
        parse(TEXT + line + "\n")
    assert "secret" not in str(refused.value)


def test_what_is_declared_is_read():
    declared = parse(
        TEXT + "ledger: postgresql://db/books\nwitness: /mnt/w\nopening: {epsilon: 0.3}\n"
        "limits: {analyst: 0.2, month: 0.5}\n"
    )
    assert (declared.ledger, declared.witness) == ("postgresql://db/books", "/mnt/w")
    assert declared.opening == Fraction(3, 10)
    assert (declared.limits.analyst, declared.limits.day) == (Fraction(1, 5), None)


def test_open_keeps_its_budget_from_one_opening_to_the_next(folder):
    first = us.open(folder)
    assert isinstance(first.ledger, DurableLedger)
    answer = first.ask("count sex=F", epsilon=0.4, request="monday")
    second = us.open(folder)
    assert second.ledger.remaining.amount == 0.6
    again = second.ask("count sex=F", epsilon=0.4, request="monday")
    assert (again.value, again.noisy) == (answer.value, answer.noisy)
    with pytest.raises(InsufficientBudgetError):
        second.ask("count sex=M", epsilon=0.7)
    assert (folder / "understudy.ledger").exists()
    declare(folder, "opening: {epsilon: 0.1}")
    with pytest.raises(LedgerError, match="opening"):
        us.open(folder)


def test_the_environment_moves_the_ledger(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_LEDGER", str(tmp_path / "elsewhere.ledger"))
    monkeypatch.setenv("UNDERSTUDY_WITNESS", str(tmp_path / "witness.json"))
    with pytest.raises(LedgerError, match="understudy ledger witness --new"):
        us.open(folder).ask("count sex=F", epsilon=0.4)
    assert new_witness(read(folder / "understudy.yml"), base=folder)[1] == 0
    us.open(folder).ask("count sex=F", epsilon=0.4)
    assert not (folder / "understudy.ledger").exists()
    assert (tmp_path / "elsewhere.ledger").exists()
    assert "people" in (tmp_path / "witness.json").read_text()


def test_limits_and_opening_are_declared(folder):
    declare(folder, "opening: {epsilon: 0.3}", "limits: {analyst: 0.2}")
    project = us.open(folder)
    project.ask("count sex=F", epsilon=0.2, analyst="ada")
    with pytest.raises(InsufficientBudgetError) as refused:
        project.ask("count sex=M", epsilon=0.2, analyst="ada")
    assert refused.value.limit == "analyst 'ada'"
    project.ask("count sex=M", epsilon=0.2, analyst="bob")
    assert project.ledger.spent.amount == 0.7


def test_limits_by_name_are_declared(folder):
    declare(folder, 'limits: {analysts: {ada: 0.3, "*": 0.1}, day: 0.5}')
    project = us.open(folder)
    project.ask("count sex=F", epsilon=0.3, analyst="ada")
    for name, question in (("ada", "count sex=M"), ("bob", "count age<18")):
        with pytest.raises(InsufficientBudgetError) as refused:
            project.ask(question, epsilon=0.2, analyst=name)
        assert refused.value.limit == f"analyst {name!r}"
    project.ask("count age<18", epsilon=0.1, analyst="bob")
    assert {name: cost.amount for name, cost in project.ledger.spent_by().items()} == {"ada": 0.3, "bob": 0.1}
    project.ledger.close()
    said = " ".join(call("check", cwd=folder).stdout.split())
    assert "limit: analyst 'ada' may take 0.3 (epsilon), 30% of the budget" in said
    assert "limit: each analyst who is not named may take 0.1 (epsilon), 10% of the budget" in said
    assert verify(project.ledger.url, "people")["sound"]


def test_check_warns_of_a_limit_above_the_whole_budget(folder):
    """A limit is an amount: 0.3 of rho 0.015 is no 30% of it, and binds nobody."""
    file = folder / "understudy.yml"
    text = TEXT.replace("budget: {epsilon: 1}", "budget: {epsilon: 1, delta: 1.0e-9}")
    assert text != TEXT
    file.write_text(text + "limits: {analysts: {ada: 0.3, ben: 0.001}, month: 2}\n", encoding="utf-8")
    done = call("check", cwd=folder)
    said, warned = " ".join(done.stdout.split()), " ".join(done.stderr.split())
    assert "limit: analyst 'ada' may take 0.3 (rho), 2,004% of the budget" in said
    assert "limit: analyst 'ben' may take 0.001 (rho), 6.7% of the budget" in said
    assert "analyst 'ada' may take 0.3 (rho), which is above the whole budget and limits nothing" in warned
    assert "an amount in rho, not a part of the budget. 30% of it would be 0.00449." in warned
    assert "one month may take 2 (rho), which is above the whole budget" in warned
    assert "200%" not in warned
    assert "ben" not in warned
    file.write_text(text + "limits: {analyst: 0.002}\n", encoding="utf-8")
    assert "limits nothing" not in call("check", cwd=folder).stderr


def test_a_frame_s_budget_is_in_memory_unless_a_ledger_is_passed(sqlite):
    declared = parse(TEXT + "opening: {epsilon: 0.25}\n")
    people = pd.DataFrame({"age": [30, 70], "sex": ["F", "M"]})
    project = us.Project.frame(people, declared)
    assert isinstance(project.ledger, MemoryLedger)
    assert project.ledger.spent.amount == 0.25
    ledger = DurableLedger(sqlite, "people", declared.budget, opening=declared.opening)
    us.Project.frame(people, declared, ledger=ledger).ask("count sex=F", epsilon=0.25)
    assert ledger.spent.amount == 0.5
    ledger.close()


def test_a_sparse_vector_survives_a_restart_also_one_before_its_state_was_stored(folder, monkeypatch):
    curator = us.open(folder).curator
    query = LinearQuery.conjunction(curator.domain, {"sex": np.array([1.0, 0, 0])})
    handle = curator.sparse(threshold=10, epsilon=0.5, hits=1, request="sv")
    assert handle.ask(query, guess=50) in (True, False)
    left = handle.hits_left
    again = us.open(folder).curator.sparse(threshold=10, epsilon=0.5, hits=1, request="sv")
    assert again.hits_left == left

    charge = curator.ledger.charge

    def charged(
        *args, hidden, **kwargs
    ):  # as version 0.1 did: the state in a transaction of its own, which was lost
        charge(*args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(curator.ledger, "charge", charged)
        with pytest.raises(KeyboardInterrupt):
            curator.sparse(threshold=10, epsilon=0.25, request="lost")
    assert curator.ledger.hidden(curator.ledger.find("lost")) is None
    assert us.open(folder).curator.sparse(threshold=10, epsilon=0.25, request="lost").hits_left == 1
    assert curator.ledger.spent.amount == 0.75
