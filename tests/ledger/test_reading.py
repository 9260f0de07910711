"""What readers of a ledger see: pages of entries, who spent what, and what a charge would cost now."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text as raw
from sqlalchemy.engine import URL

from understudy.errors import InsufficientBudgetError, LedgerError, ParameterError
from understudy.ledger import schema
from understudy.ledger.books import MAX_FREE, Books
from understudy.ledger.chain import Entry
from understudy.ledger.database import Database
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.paging import MAX_PAGE, PageRequest
from understudy.ledger.schema import ENTRY, LEDGER
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import Selection, Together
from understudy.privacy.limits import Limits

ONE = Budget.of(1)
TENTH = Selection(epsilon=Fraction(1, 10))
HUNDREDTH = Selection(epsilon=Fraction(1, 100))


def charge(ledger, event=TENTH, *, request="r", question="q", analyst=""):
    return ledger.charge(event, question=question, request=request, analyst=analyst)


def filled(ledger, times=12):
    """Debits by three analysts in turn, every second of them answered."""
    for i in range(times):
        debit = charge(
            ledger, HUNDREDTH, request=f"r{i}", question=f"q{i}", analyst=("", "ada", "bob")[i % 3]
        )
        if i % 2:
            ledger.settle(debit, b"[1]")
    return ledger


def test_pages_follow_each_other_without_gap_or_repetition(ledgers):
    ledger = filled(ledgers())
    whole = ledger.entries(limit=1000)
    assert [entry.number for entry in whole] == list(range(1, len(whole) + 1))
    for size in (1, 5, 7):
        found, after = [], 0
        while page := ledger.entries(after=after, limit=size):
            assert len(page) <= size
            found += page
            after = page[-1].number
        assert found == whole
        found, after = [], 0
        while page := ledger.entries(after=after, limit=size, newest_first=True):
            found += page
            after = page[-1].number
            if after == 1:
                break
        assert found == whole[::-1]
    assert ledger.entries(after=len(whole)) == []


def test_pages_of_one_analyst_and_of_one_kind(ledgers):
    ledger = filled(ledgers())
    for analyst in ("", "ada", "bob"):
        found = ledger.entries(analyst=analyst)
        assert [entry.analyst for entry in found] == [analyst] * 4
        assert {entry.kind for entry in found} == {"debit"}
        newest = ledger.entries(analyst=analyst, newest_first=True, limit=2)
        assert newest == found[:1:-1]
        assert ledger.entries(analyst=analyst, after=newest[-1].number, newest_first=True) == found[1::-1]
    assert ledger.entries(analyst="eve") == []
    answers = ledger.entries(kind="answer")
    assert len(answers) == 6
    debits = {entry.number: entry for entry in ledger.entries(kind="debit")}
    assert all(entry.debit in debits and entry.step == 0 for entry in answers)
    first = ledger.entries(kind="debit", limit=1)[0]
    assert (first.question, first.request, first.cost.units, first.total.units) == (
        "q0", "r0", UNITS // 100, UNITS // 100,
    )  # fmt: skip
    assert '"epsilon"' in first.event


def test_a_ledger_that_was_never_charged_has_no_pages(ledgers):
    ledger = ledgers()
    assert ledger.entries() == []
    assert ledger.spent_by() == {}


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": MAX_PAGE + 1}, {"after": -1}, {"kind": "'; DROP TABLE"}]
)
def test_pages_that_make_no_sense(ledgers, wrong):
    with pytest.raises(ParameterError):
        ledgers().entries(**wrong)


def test_a_changed_entry_is_not_shown(store):
    ledger = DurableLedger(store, "t", ONE)
    filled(ledger)
    database = Database(store)
    with database.writing() as tx:
        tx.execute(ENTRY.update().where(ENTRY.c.number == 3).values(question="nothing"))
    database.close()
    with pytest.raises(LedgerError, match="entry 3"):
        ledger.entries()
    assert len(ledger.entries(after=3)) > 5
    ledger.close()


def test_a_page_reads_an_index_and_nothing_else(sqlite):
    ledger = DurableLedger(sqlite, "t", ONE)
    filled(ledger)
    database = Database(sqlite)
    for asked, index in (
        (PageRequest(5, 10, None, None, newest_first=False), "PRIMARY KEY (ledger=? AND number>?)"),
        (PageRequest(5, 10, None, None, newest_first=True), "PRIMARY KEY (ledger=? AND number<?)"),
        (PageRequest(0, 10, None, None, newest_first=True), "PRIMARY KEY (ledger=? AND number<?)"),
        (
            PageRequest(5, 10, "ada", None, newest_first=False),
            "understudy_of_analyst (ledger=? AND analyst=? AND",
        ),
        (
            PageRequest(0, 10, "ada", "debit", newest_first=True),
            "understudy_of_analyst (ledger=? AND analyst=? AND",
        ),
    ):
        statement, values = asked.statement("t")
        text = str(statement.compile(compile_kwargs={"literal_binds": False}))
        with database.reading() as tx:
            plan = [row[-1] for row in tx.execute(raw(f"EXPLAIN QUERY PLAN {text}"), values)]
        assert len(plan) == 1, plan  # no sorting
        assert index in plan[0]
    database.close()
    ledger.close()


def test_a_store_of_version_3_gets_the_index(store):
    ledger = DurableLedger(store, "t", ONE)
    filled(ledger)
    ledger.close()
    database = Database(store)
    with database.writing() as tx:
        schema.OF_ANALYST.drop(tx)
        tx.execute(schema.SCHEMA.update().values(version=3))
    again = DurableLedger(store, "t", ONE)
    assert len(again.entries(analyst="ada")) == 4
    with database.writing() as tx:
        assert schema.version(tx) == schema.VERSION
        schema.OF_ANALYST.drop(tx)  # it was there
    database.close()
    again.close()


@pytest.mark.slow("it writes 100,000 entries")
def test_a_hundred_thousand_entries_page_in_milliseconds(sqlite):
    ledger = DurableLedger(sqlite, "t", Budget.of(100))
    filled(ledger, 3)
    last = ledger.entries(newest_first=True, limit=1)[0]
    database = Database(sqlite)
    with database.writing() as tx:
        rows, head = [], last.hash
        model = next(entry for entry in ledger.entries() if entry.kind == "debit")
        for number in range(last.number + 1, 100_001):
            entry = Entry(
                number, "debit", last.at, f"x{number}", "q", "ada" if number % 1000 else "rare", model.event, 0,
                last.total.units, None, None, None, None, None, head, "",
            ).sealed()  # fmt: skip
            head = entry.hash
            rows.append({"ledger": "t", **entry._asdict()})
        tx.execute(ENTRY.insert(), rows)
        tx.execute(LEDGER.update().values(entries=100_000, head=head))
    database.close()
    for asked in (
        {}, {"after": 50_000}, {"newest_first": True}, {"analyst": "rare"},
        {"analyst": "rare", "newest_first": True}, {"analyst": "nobody"},
    ):  # fmt: skip
        begun = time.process_time()
        ledger.entries(limit=50, **asked)
        assert time.process_time() - begun < 0.02, asked
    ledger.close()


# ---- who spent what


def test_spending_by_analyst_adds_up(ledgers):
    ledger = filled(ledgers(opening=Fraction(1, 10)))
    charge(ledger, TENTH, request="more", analyst="bob")
    spent = ledger.spent_by()
    assert {name: cost.units for name, cost in spent.items()} == {
        "bob": UNITS // 100 * 14, "": UNITS // 100 * 4, "ada": UNITS // 100 * 4,
    }  # fmt: skip
    assert next(iter(spent)) == "bob"
    assert sum(cost.units for cost in spent.values()) + UNITS // 10 == ledger.spent.units
    assert spent["bob"].currency == "epsilon"


# ---- limits by name


NAMED = Limits(
    analysts={"ada": Fraction(3, 10), "eve": Fraction(0), "*": Fraction(1, 10)}, day=Fraction(1, 2)
)


def test_named_analysts_have_their_own_limits(ledgers):
    ledger = ledgers(limits=NAMED)
    for i in range(3):
        charge(ledger, request=f"a{i}", analyst="ada")
    with pytest.raises(InsufficientBudgetError) as refused:
        charge(ledger, request="a3", analyst="ada")
    assert refused.value.limit == "analyst 'ada'"
    for name in ("bob", ""):  # each who is not named has a share of their own
        charge(ledger, request=f"{name}1", analyst=name)
        with pytest.raises(InsufficientBudgetError) as refused:
            charge(ledger, request=f"{name}2", analyst=name)
        assert refused.value.limit == f"analyst {name!r}"
    with pytest.raises(InsufficientBudgetError) as refused:
        charge(ledger, HUNDREDTH, request="e1", analyst="eve")
    assert (refused.value.limit, refused.value.remaining) == ("analyst 'eve'", 0)
    charge(ledger, Together(()), request="e2", analyst="eve")  # what costs nothing
    assert ledger.available("eve").units == 0
    assert [
        (share.name.split()[0], share.size.amount, share.used.amount) for share in ledger.shares("ada")
    ] == [
        ("analyst", 0.3, 0.3),
        ("day", 0.5, 0.5),
    ]


def test_without_a_star_whoever_is_not_named_has_the_budget(ledgers):
    ledger = ledgers(limits=Limits(analysts={"ada": Fraction(1, 10)}))
    assert ledger.available("bob").amount == 1
    assert ledger.available("ada").amount == 0.1
    assert ledger.shares("bob") == ()


def test_limits_are_raised_and_lowered_while_the_ledger_is_open(ledgers):
    ledger = ledgers(limits=Limits(analyst=Fraction(1, 10)))
    charge(ledger, request="1", analyst="ada")
    with pytest.raises(InsufficientBudgetError):
        charge(ledger, request="2", analyst="ada")
    ledger.impose(Limits(analysts={"ada": Fraction(3, 10)}))
    charge(ledger, request="2", analyst="ada")
    ledger.impose(Limits(analysts={"ada": Fraction(1, 10)}))  # below what is used
    assert ledger.available("ada").units == 0
    with pytest.raises(InsufficientBudgetError) as refused:
        charge(ledger, HUNDREDTH, request="3", analyst="ada")
    assert refused.value.remaining == 0
    assert charge(ledger, Together(()), request="4", analyst="ada").cost.units == 0  # nothing is not too much
    assert charge(ledger, request="2", analyst="ada").repeated
    assert ledger.limits.analysts == {"ada": Fraction(1, 10)}
    assert [entry.kind for entry in ledger.entries(kind="debit")] == [
        "debit"
    ] * 3  # the ledger records no limits


def test_limits_of_two_kinds_are_refused():
    with pytest.raises(ParameterError, match="not both"):
        Limits(analyst=Fraction(1), analysts={"ada": Fraction(1)})
    with pytest.raises(ParameterError, match="at least 0"):
        Limits(analysts={"ada": Fraction(-1)})
    with pytest.raises(ParameterError, match="printable"):
        Limits(analysts={"a\nb": Fraction(1)})


# ---- what a charge would cost now


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.sampled_from(["", "ada", "bob"]), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_what_is_due_is_what_is_charged(asked):
    limits = Limits(analysts={"ada": Fraction(1, 2), "*": Fraction(3, 10)}, day=Fraction(7, 10))
    ledger = MemoryLedger(ONE, limits=limits, clock=lambda: datetime(2024, 1, 1, tzinfo=UTC))
    for i, (percent, analyst, free) in enumerate(asked):
        event = Together(()) if free else Selection(epsilon=Fraction(percent, 100))
        before = ledger.spent
        due = ledger.due(event, analyst=analyst)
        assert due.available == ledger.available(analyst)
        assert ledger.spent == before
        if due.payable:
            assert charge(ledger, event, request=f"r{i}", analyst=analyst).cost == due.cost
            continue
        with pytest.raises(InsufficientBudgetError) as refused:
            charge(ledger, event, request=f"r{i}", analyst=analyst)
        assert (refused.value.requested, refused.value.remaining) == (due.cost.amount, due.available.amount)
        assert refused.value.limit == due.limit


def test_what_is_due_agrees_on_every_store(ledgers):
    ledger = ledgers(limits=NAMED)
    assert (ledger.due(TENTH, analyst="ada").cost.amount, ledger.is_begun) == (0.1, False)
    charge(ledger, request="1", analyst="ada")
    assert not ledger.due(HUNDREDTH, analyst="eve").payable
    due = ledger.due(Selection(epsilon=Fraction(1, 4)), analyst="ada")
    assert (due.payable, due.limit, due.available.amount) == (False, "analyst 'ada'", 0.2)
    with pytest.raises(ParameterError):
        ledger.due(TENTH, analyst="a\nb")


def test_a_free_question_that_the_ledger_has_no_room_for_is_not_payable():
    books = Books(ONE)
    books.free = MAX_FREE
    assert not books.due(Together(()), analyst="", at="2024-01-01").payable
    assert books.due(TENTH, analyst="", at="2024-01-01").payable


def test_a_reader_is_not_told_of_a_rollback_by_a_debit_of_another_thread(tmp_path, monkeypatch):
    """A transaction that reads sees one moment; what another thread commits later is no rollback."""
    ledger = DurableLedger(URL.create("sqlite", database=str(tmp_path / "l")), "t", ONE)
    charge(ledger, HUNDREDTH, request="first")
    check, late = schema.check, iter(["second"])

    def meanwhile(version, **given):
        check(version, **given)
        for request in late:  # between the reader's first look and its second
            thread = threading.Thread(target=charge, args=(ledger, HUNDREDTH), kwargs={"request": request})
            thread.start()
            thread.join()

    monkeypatch.setattr(schema, "check", meanwhile)
    assert ledger.remaining.amount == pytest.approx(0.99)
    assert ledger.remaining.amount == pytest.approx(0.98)
    ledger.close()
