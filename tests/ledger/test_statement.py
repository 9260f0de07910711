"""The ledger as a page: who spent what and when, what is left, and whether it verifies."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from sqlalchemy.engine import URL

from page_checks import HOSTILE, read_page
from people import write_project
from program import call
from understudy.ledger.export import document, verify
from understudy.ledger.statement import statement
from understudy.ledger.store import DurableLedger
from understudy.ledger.verifier import UNITS
from understudy.privacy.budget import Budget
from understudy.privacy.event import Selection

BUDGET = Budget.of(2, 0)
SECRET = b"the state of a handle"


@pytest.fixture
def url(tmp_path):
    """A ledger that two analysts and a nameless one spent from, on three days, with answers and a hidden state."""
    url = URL.create("sqlite", database=str(tmp_path / "understudy.ledger"))
    now = [datetime(2026, 3, 1, 12, tzinfo=UTC)]
    books = DurableLedger(url, "people", BUDGET, opening=Fraction(1, 4), clock=lambda: now[0])
    for place, (who, price) in enumerate([("ada", 4), ("bob", 8), ("ada", 8), ("", 16)]):
        now[0] += timedelta(days=place % 2)
        debit = books.charge(
            Selection(epsilon=Fraction(1, price)), question=f"count {place}", request=f"r{place}", analyst=who
        )
        books.settle(debit, f"answer {place}".encode(), hidden=SECRET if place == 1 else None)
    books.close()
    return url


def page_of(url, **how):
    verdict = verify(url, "people")
    entries = document(url, "people", answers=False)["entries"]
    return statement("people", BUDGET, entries, verdict, place="understudy.ledger", **how)


def test_it_says_who_spent_what_and_when_and_what_is_left(url):
    text = page_of(url, made="Made here.")
    reader = read_page(text)
    words = " ".join(reader.words)
    assert "Verified" in text
    assert "spent 41%" in words.replace("  ", " ")  # 1/4 before, then 1/4 + 1/8 + 1/8 + 1/16 of 2
    assert "left 59%" in words
    for name, share in (("ada", "19%"), ("bob", "6.2%"), ("no name given", "3.1%"), ("spent before", "12%")):
        assert name in text
        assert f">{share}<" in text
    assert all(day in text for day in ("2026-03-01", "2026-03-02", "2026-03-03"))
    assert [f"count {place}" in text for place in range(4)] == [True] * 4
    entries = document(url, "people")["entries"]
    assert entries[-1]["total"] == sum(e["cost"] for e in entries) == 13 * UNITS // 16
    assert entries[-1]["hash"] in text


def test_hidden_states_and_answers_are_not_on_it(url):
    text = page_of(url)
    for entry in document(url, "people")["entries"][:-1]:
        for secret in (entry["state"], entry["answer"], entry["hash"]):
            assert secret is None or secret not in text
    assert SECRET.decode() not in text
    assert "answer 1" not in text


def test_the_newest_entries_come_first_and_older_ones_are_counted(url):
    text = page_of(url, last=2)
    assert "The newest 2 entries" in text
    assert "7 older ones" in text
    assert "count 3" in text
    assert "count 0" not in text
    assert text.index("for entry 8") < text.index(">count 3")


def test_digests_are_left_to_machines(url):
    entry = document(url, "people")["entries"][1]
    asked = {**entry, "question": f"count age #{'ab' * 32} @{'0f' * 8}", "request": "monthly"}
    text = statement("people", BUDGET, [asked], None, place="x")
    assert ">count age [monthly]</td>" in text
    long = statement("people", BUDGET, [{**entry, "question": "q" * 5000}], None, place="x")
    assert "q" * 241 not in long


def test_many_days_become_months(url):
    entry = document(url, "people")["entries"][1]
    day = datetime(2025, 1, 1, tzinfo=UTC)
    many = [{**entry, "at": (day + timedelta(days=i)).isoformat()} for i in range(90)]
    text = statement("people", BUDGET, many, None, place="x")
    assert "spent on each month" in text
    assert ">2025-03</text>" in text


def test_a_ledger_that_was_changed_is_shown_with_what_is_wrong(url):
    """By a hand that put words where numbers belong: the page is made all the same."""
    with sqlite3.connect(url.database) as store:
        store.execute("UPDATE understudy_entry SET cost = 'much', analyst = '<script>' WHERE number = 4")
    text = page_of(url)
    read_page(text)
    assert "NOT SOUND" in text
    assert "entry 4" in text
    assert "Verified" not in text.partition("Who spent it")[0]


@pytest.mark.parametrize("word", HOSTILE)
def test_what_analysts_write_is_inert(url, word):
    entry = document(url, "people")["entries"][1]
    evil = {**entry, "question": word, "analyst": word, "request": word, "at": word, "kind": word}
    read_page(
        statement(word, BUDGET, [entry, evil], {"sound": False, "problems": [word], "head": word}, place=word)
    )


# ---- the command


@pytest.fixture
def folder(tmp_path):
    return write_project(tmp_path)


def test_the_command_writes_a_verified_page(folder):
    fresh = call("ledger", "show", "--html", "new.html", cwd=folder).stdout
    assert fresh == "Wrote new.html: 0 entries, sound.\n"
    assert "Nothing was charged yet" in (folder / "new.html").read_text(encoding="utf-8")
    assert not (folder / "understudy.ledger").exists()
    call("ask", "count age < 18", "--epsilon", "0.1", cwd=folder)
    told = json.loads(call("ledger", "show", "--html", "page.html", "--json", cwd=folder).stdout)
    assert told == {"written": "page.html", "entries": 3, "sound": True}
    text = (folder / "page.html").read_text(encoding="utf-8")
    read_page(text)
    assert ">10%<" in text
    call("ledger", "show", "--html", "page.html", cwd=folder, status=2)
    call("ledger", "show", "--html", "page.html", "--overwrite", "--last", "1", cwd=folder)
    assert "2 older ones" in (folder / "page.html").read_text(encoding="utf-8")


def test_no_page_is_written_over_the_project_and_a_broken_ledger_has_a_status(folder):
    call("ask", "count age < 18", "--epsilon", "0.1", cwd=folder)
    for own in ("understudy.yml", "people.csv", "understudy.ledger"):
        begins = (folder / own).read_bytes()[:16]
        call("ledger", "show", "--html", own, "--overwrite", cwd=folder, status=2)
        assert (folder / own).read_bytes()[:16] == begins
    call("ledger", "verify", cwd=folder)
    with sqlite3.connect(folder / "understudy.ledger") as store:
        store.execute("UPDATE understudy_entry SET cost = 1 WHERE number = 2")
    said = call("ledger", "show", "--html", "page.html", cwd=folder, status=1).stdout
    assert "NOT SOUND" in said
    assert "NOT SOUND" in (folder / "page.html").read_text(encoding="utf-8")
