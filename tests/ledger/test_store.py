"""The durable ledger: restarts, several programs at once, versions, locks and clocks."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import event as hooks
from sqlalchemy import update

from ledger.durable import ONE, TENTH, TINY, charge, opened, sound
from understudy.errors import InsufficientBudgetError, LedgerError, RequestConflictError
from understudy.ledger import export, recorded, schema
from understudy.ledger.database import Database
from understudy.ledger.store import DurableLedger
from understudy.privacy.accounting_rule import RULE_3, RULE_5
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS, PureDP, pure
from understudy.privacy.event import Selection, SparseVector

# ---- restarts


def test_a_restart_goes_on_where_it_was(store):
    first = opened(store)
    answered = charge(first, request="a")
    first.settle(answered, b"\x00\xff answer")
    charge(first, request="lost")  # a crash before its answer
    handle = charge(first, SparseVector(epsilon=Fraction(1, 10)), request="h")
    first.settle(handle, b"opened", hidden=b"secret 0")
    first.advance(handle, step=0, question="one", answer=b"true", state=b"secret 1")
    first.close()
    second = opened(store)
    assert second.spent.amount == 0.3
    again = charge(second, request="a")
    assert again == answered
    assert second.answered(again) == b"\x00\xff answer"
    lost = charge(second, request="lost")
    assert lost.repeated
    assert second.answered(lost) is None
    assert second.settle(lost, b"completed") == b"completed"
    assert second.hidden(handle).state == b"secret 1"
    assert second.advance(handle, step=1, question="two", answer=b"false", state=b"secret 2")
    second.close()
    assert sound(store)["entries"] == 9


def test_two_programs_share_one_budget(store):
    one, two = opened(store), opened(store)
    for i in range(5):
        charge(one)
        charge(two)
        assert one.spent == two.spent
        assert one.spent.units == (i + 1) * UNITS // 5
    for ledger in (one, two):
        with pytest.raises(InsufficientBudgetError):
            charge(ledger)
    one.close()
    two.close()


def test_one_store_keeps_several_tables_apart(store):
    one = DurableLedger(store, "one", ONE)
    two = DurableLedger(store, "two", Budget.of(2, 1e-6))
    charge(one, request="r")
    assert not charge(two, request="r").repeated
    assert (one.spent.amount, two.spent.amount) == (0.1, 0.00125)
    for ledger in (one, two):
        ledger.close()
        assert export.verify(store, ledger.name)["sound"]


def test_the_recorded_terms_rule(store):
    first = opened(store, opening=Fraction(1, 4))
    charge(first)
    first.close()
    with pytest.raises(LedgerError, match="epsilon 1, the declaration says epsilon 2"):
        DurableLedger(store, "t", Budget.of(2))
    with pytest.raises(LedgerError, match="opening balance"):
        opened(store)
    again = opened(store, opening=Fraction(1, 4))
    assert again.spent.amount == 0.35
    again.close()


def test_an_answer_needs_a_debit_of_this_ledger(store):
    here, there = DurableLedger(store, "here", ONE), DurableLedger(store, "there", ONE)
    debit = charge(there, request="r")
    with pytest.raises(LedgerError, match="does not hold the debit"):
        here.settle(debit, b"x")
    charge(here, TINY, request="r")
    with pytest.raises(LedgerError, match="does not hold the debit"):
        here.advance(debit, step=0, question="q", answer=b"", state=b"")
    here.close()
    there.close()


def test_superseded_states_are_erased(sqlite):
    ledger = opened(sqlite)
    debit = charge(ledger)
    ledger.settle(debit, b"", hidden=b"secret-0")
    for step in range(3):
        ledger.advance(debit, step=step, question="q", answer=b"", state=b"secret-%d" % (step + 1))
    ledger.close()
    rows = sqlite3.connect(sqlite.database).execute("SELECT state, salt FROM understudy_kept").fetchall()
    assert [state for state, _ in rows] == [None, None, None, b"secret-3"]
    assert [salt is None for _, salt in rows] == [True, True, True, False]


def test_every_look_up_uses_an_index(sqlite):
    ledger = opened(sqlite)
    charge(ledger)
    seen: list[str] = []
    hooks.listen(
        ledger._database._engine, "before_cursor_execute", lambda c, k, text, p, x, m: seen.append(text)
    )
    debit = charge(ledger)
    ledger.settle(debit, b"", hidden=b"")
    ledger.advance(debit, step=0, question="q", answer=b"", state=b"")
    ledger.answered(debit)
    ledger.hidden(debit)
    ledger.close()
    plans = sqlite3.connect(sqlite.database)
    for text in {t for t in seen if t.startswith("SELECT")}:
        plan = plans.execute(f"EXPLAIN QUERY PLAN {text}", ["x"] * text.count("?")).fetchall()
        for *_, line in plan:
            if "understudy_entry" in line or "understudy_kept" in line or "other" in line:
                assert "SEARCH" in line, (text, plan)
                assert "=? AND" in line, (text, plan)


def test_a_conflict_is_told_across_programs(store):
    one, two = opened(store), opened(store)
    charge(one, request="r")
    with pytest.raises(RequestConflictError):
        charge(two, TINY, request="r")
    one.close()
    two.close()


# ---- versions


def test_a_newer_program_s_ledger_is_left_alone(store):
    ledger = opened(store)
    charge(ledger)
    database = Database(store)
    with database.writing() as tx:
        tx.execute(update(schema.SCHEMA).values(version=schema.VERSION + 1))
    with pytest.raises(LedgerError, match="newer program"):
        charge(ledger)  # it was upgraded while we had it open
    with pytest.raises(LedgerError, match="newer program"):
        opened(store)
    with pytest.raises(LedgerError, match="newer program"):
        export.verify(store, "t")
    with database.writing() as tx:
        tx.execute(update(schema.SCHEMA).values(version=schema.VERSION))
    database.close()
    assert ledger.spent.amount == 0.1
    ledger.close()


VERSION_1 = Path(__file__).with_name("version_1.sql")


def test_a_file_of_version_1_is_upgraded(sqlite):
    raw = sqlite3.connect(sqlite.database)
    raw.executescript(VERSION_1.read_text(encoding="utf-8"))
    assert raw.execute("SELECT count(*) FROM understudy_kept WHERE state IS NOT NULL").fetchone() == (3,)
    raw.close()
    with pytest.raises(LedgerError, match="schema 1"):
        export.verify(sqlite, "t")
    ledger = opened(sqlite, opening=Fraction(1, 4))
    handle = ledger.charge(
        SparseVector(epsilon=Fraction(1, 4)), question="sparse", request="h", analyst="ada"
    )
    assert handle.repeated
    assert (ledger.spent.amount, ledger.hidden(handle).step) == (0.6, 2)
    assert ledger.hidden(handle).state == b"state 2"
    answered = ledger.charge(TENTH, question="count", request="a")
    assert ledger.answered(answered) == b"[42]"
    charge(ledger)
    ledger.close()
    sound(sqlite)
    raw = sqlite3.connect(sqlite.database)
    assert raw.execute("SELECT version FROM understudy_schema").fetchone() == (schema.VERSION,)
    assert raw.execute("SELECT count(*) FROM understudy_kept WHERE state IS NOT NULL").fetchone() == (1,)
    indices = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert {"understudy_one_answer", "understudy_one_request"} <= indices
    raw.close()


def test_a_postgres_store_of_version_1_is_upgraded(postgres):
    ledger = opened(postgres)
    handle = charge(ledger, request="h")
    ledger.settle(handle, b"", hidden=b"state 0")
    ledger.advance(handle, step=0, question="q", answer=b"", state=b"state 1")
    ledger.close()
    database = Database(postgres)
    with database.writing() as tx:
        schema.ONE_ANSWER.drop(tx)
        schema.OF_ANALYST.drop(tx)
        schema.SNAPSHOT.drop(tx)
        tx.execute(update(schema.SCHEMA).values(version=1))
        tx.execute(update(schema.KEPT).where(schema.KEPT.c.number == 3).values(state=b"state 0", salt=b"s"))
    database.close()
    again = opened(postgres)
    assert again.hidden(handle).state == b"state 1"
    again.close()
    sound(postgres)


# ---- locks, clocks


def test_a_lock_held_for_too_long(sqlite):
    ledger = opened(sqlite, timeout=0.2)
    charge(ledger)
    other = sqlite3.connect(sqlite.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked for too long"):
        charge(ledger, request="r")
    assert ledger.spent.amount == 0.1  # reading goes on
    other.execute("ROLLBACK")
    other.close()
    assert not charge(ledger, request="r").repeated
    ledger.close()


def test_a_row_locked_for_too_long(postgres):
    ledger = opened(postgres, timeout=0.2)
    charge(ledger)
    database = Database(postgres)
    with database.writing() as tx:
        tx.exec_driver_sql("SELECT * FROM understudy_ledger FOR UPDATE")
        with pytest.raises(LedgerError, match="locked for too long"):
            charge(ledger, request="r")
    database.close()
    assert not charge(ledger, request="r").repeated
    ledger.close()


def test_time_never_runs_backwards(store):
    now = [datetime(2024, 5, 1, tzinfo=UTC)]
    ledger = opened(store, clock=lambda: now[0])
    for hours in (0, -5, 1, -100, 2):
        now[0] = datetime(2024, 5, 1, tzinfo=UTC) + timedelta(hours=hours)
        charge(ledger)
    ledger.close()
    times = [entry["at"][8:13] for entry in export.document(store, "t")["entries"]]
    assert times == ["01T00", "01T00", "01T00", "01T01", "01T01", "01T02"]
    sound(store)


# ---- joint prices


class WorseNeighbour:
    """A family priced jointly: each event hurts one of two neighbours, and the total is the worse one's sum."""

    def start(self):
        return (0, 0)

    def after(self, state, event):
        left, right = state
        units = pure(event).units
        return (left + units, right) if isinstance(event, Selection) else (left, right + units)

    def cost(self, state):
        return PureDP(max(state))


def test_a_family_may_be_priced_jointly(store):
    ledger = opened(store, accountant=WorseNeighbour())
    other = opened(store, accountant=WorseNeighbour())
    half = Fraction(1, 2)
    assert charge(ledger, Selection(epsilon=half)).cost.amount == 0.5
    assert charge(other, SparseVector(epsilon=half)).cost.amount == 0  # the other neighbour's, so far
    assert charge(ledger, SparseVector(epsilon=half)).cost.amount == 0.5
    assert charge(other, Selection(epsilon=half)).cost.amount == 0
    for opened_one in (ledger, other):
        assert opened_one.remaining.units == 0
        with pytest.raises(InsufficientBudgetError):
            charge(opened_one, TINY)
        opened_one.close()


def test_what_was_just_charged_is_not_parsed_again_to_be_settled(store):
    """The entry is compared with the debit as it is written; a debit that the entry does not say is refused."""
    ledger = opened(store)
    debit = charge(ledger, Selection(epsilon=Fraction(1, 7)), request="mine")
    before = recorded._event.cache_info()
    assert ledger.settle(debit, b"1") == b"1"
    assert recorded._event.cache_info() == before
    for other in (
        replace(debit, event=Selection(epsilon=Fraction(1, 8))),
        replace(debit, cost=type(debit.cost)(debit.cost.units + 1)),
        replace(debit, question="another"),
        replace(debit, number=debit.number + 1),
    ):
        with pytest.raises(LedgerError, match="does not hold the debit"):
            ledger.settle(other, b"2")
    ledger.close()


def test_a_ledger_goes_on_by_the_rule_of_accounting_that_it_began_with(sqlite):
    """A new ledger has the newest; who opens one finds its own before the first charge."""
    first = opened(sqlite)
    assert first.accounting is RULE_5
    first._rule = RULE_3  # as a program before rule 4 began it
    first._blank = first._recorded = first._empty()
    charge(first)
    assert opened(sqlite).accounting is RULE_3
    assert opened(sqlite)._now().books.accountant.rule is RULE_3
    sound(sqlite)
