"""What spends nothing leaves no ledger: the first charge that is granted begins it, and fixes its terms."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import inspect
from sqlalchemy.engine import URL, create_engine

from ledger.durable import ONE, TENTH, TINY, charge, opened, sound, witnessed
from understudy.errors import InsufficientBudgetError, LedgerError, ParameterError
from understudy.ledger import export
from understudy.ledger.interface import Debit
from understudy.ledger.store import DurableLedger
from understudy.ledger.witness import Witness
from understudy.privacy.budget import Budget
from understudy.privacy.cost import PureDP
from understudy.privacy.event import Selection
from understudy.privacy.limits import Limits

TWO = Selection(epsilon=Fraction(2))


def is_untouched(url: URL) -> bool:
    if url.get_backend_name() == "sqlite":
        return list(Path(url.database or "").parent.iterdir()) == []
    engine = create_engine(url)
    tables = inspect(engine).get_table_names()
    engine.dispose()
    return tables == []


def test_looking_quoting_and_being_refused_write_nothing(store):
    ledger = opened(store, opening=Fraction(1, 4), limits=Limits(analyst=Fraction(1, 2)))
    debit = Debit(2, TENTH, PureDP(10**14), "q", "r")
    assert (ledger.spent.amount, ledger.remaining.amount) == (0.25, 0.75)
    assert (ledger.available("ada").amount, ledger.quote(TENTH).amount) == (0.5, 0.1)
    assert (ledger.answered(debit), ledger.hidden(debit), ledger.steps(debit)) == (None, None, [])
    assert (ledger.find("r"), ledger.debits(), ledger.debits("r")) == (None, [], [])
    for event in (TWO, Selection(epsilon=Fraction(3, 5))):  # more than the budget; more than the share
        with pytest.raises(InsufficientBudgetError):
            charge(ledger, event)
    for answered in (
        lambda: ledger.settle(debit, b"x"),
        lambda: ledger.advance(debit, step=0, question="q", answer=b"", state=b""),
    ):
        with pytest.raises(LedgerError, match="does not hold the debit"):
            answered()
    assert not ledger.is_begun
    ledger.close()
    assert is_untouched(store)


def test_a_budget_that_was_never_spent_from_may_be_declared_anew(store):
    with pytest.raises(InsufficientBudgetError):
        charge(opened(store), TWO)
    other = DurableLedger(store, "t", Budget.of(3), opening=Fraction(1, 2))
    charge(other, TWO)
    assert other.spent.amount == 2.5
    other.close()
    assert [entry["kind"] for entry in export.document(store, "t")["entries"]] == ["open", "debit"]
    sound(store)
    with pytest.raises(LedgerError, match=r"epsilon 3, the declaration says epsilon 1"):
        opened(store)


def test_the_first_entry_and_the_first_debit_are_one_transaction(store, monkeypatch):
    ledger = opened(store)

    def cut(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("understudy.ledger.store.StoredPage.look_up", cut)  # after the first entry was sent
        with pytest.raises(KeyboardInterrupt):
            charge(ledger)
    assert not ledger.is_begun
    with pytest.raises(LedgerError, match="there is no ledger of 't'"):
        export.document(store, "t")
    charge(ledger)
    ledger.close()
    assert sound(store)["debits"] == 1


def test_whoever_charges_first_sets_the_terms(store):
    small, large = opened(store), DurableLedger(store, "t", Budget.of(5))
    charge(small)
    with pytest.raises(LedgerError, match="epsilon 1, the declaration says epsilon 5"):
        charge(large, TWO)
    with pytest.raises(LedgerError, match="epsilon 1, the declaration says epsilon 5"):
        large.remaining  # noqa: B018
    again = opened(store)
    assert again.spent.amount == 0.1
    for ledger in (small, again, large):
        ledger.close()
    assert sound(store)["debits"] == 1


def test_who_looked_before_the_first_charge_sees_what_others_charged(store):
    early, other = opened(store), opened(store)
    assert early.spent.units == 0
    debit = charge(other, request="r")
    other.settle(debit, b"answer")
    assert early.spent.amount == 0.1
    again = early.charge(TENTH, question="q", request="r")
    assert (again.repeated, early.answered(again)) == (True, b"answer")
    assert early.find("r") == debit
    assert early.debits() == [debit]
    early.close()
    other.close()


def test_first_charges_at_once_begin_one_ledger(store):
    """Each thread has a ledger of its own, as a process would."""
    crowd = 6
    barrier = Barrier(crowd)
    ledgers = [opened(store) for _ in range(crowd)]

    def first(ledger: DurableLedger) -> int:
        barrier.wait()
        return charge(ledger, TINY).number

    with ThreadPoolExecutor(crowd) as pool:
        numbers = sorted(pool.map(first, ledgers))
    for ledger in ledgers:
        ledger.close()
    assert numbers == list(range(2, crowd + 2))
    assert sound(store)["entries"] == crowd + 1


def test_an_opening_balance_above_the_budget_is_refused_at_once(store):
    with pytest.raises(ParameterError, match="more than the budget"):
        opened(store, opening=2)
    assert is_untouched(store)


@pytest.mark.parametrize(
    "loss",
    [
        "DROP TABLE understudy_schema",
        "DROP TABLE understudy_ledger",
        "DELETE FROM understudy_ledger",
        "DELETE FROM understudy_entry",
        "DROP TABLE understudy_entry",
    ],
)
def test_a_ledger_that_lost_a_part_is_not_taken_for_a_new_one(loss, store):
    ledger = opened(store)
    charge(ledger)
    ledger.close()
    engine = create_engine(store, isolation_level="AUTOCOMMIT")
    with engine.connect() as hand:
        hand.exec_driver_sql(loss)
    engine.dispose()
    try:
        again = opened(store)
    except LedgerError:
        return
    assert again.spent.amount == 0.1  # all was there but the version
    again.close()


# ---- the witness


def test_a_witness_that_cannot_be_kept_is_found_before_anything_is_spent(store, tmp_path):
    folder = tmp_path / "not" / "there"
    ledger = opened(store, witness=Witness(folder / "witness.json"))
    with pytest.raises(LedgerError, match=r"the folder .* is not there\. .*; nothing was spent"):
        charge(ledger, request="r")
    assert ledger.spent.units == 0
    folder.mkdir(parents=True)
    witnessed(folder / "witness.json")
    assert not charge(ledger, request="r").repeated
    assert "t" in (folder / "witness.json").read_text()
    ledger.close()


def test_a_ledger_that_is_gone_is_no_new_one_to_its_witness(sqlite, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    witness = witnessed(folder / "witness.json")
    early = opened(sqlite, witness=witness)
    ledger = opened(sqlite, witness=witness)
    charge(ledger)
    ledger.close()
    for ending in ("", "-wal", "-shm"):
        Path(f"{sqlite.database}{ending}").unlink(missing_ok=True)
    with pytest.raises(LedgerError, match="rolled back: it has 0 entries, and 2 were seen"):
        opened(sqlite, witness=witness)
    with pytest.raises(LedgerError, match="rolled back: it has 0 entries, and 2 were seen"):
        charge(early)
    early.close()
    assert not Path(sqlite.database or "").exists()


def test_the_witness_of_an_open_ledger_says_that_nothing_was_spent(sqlite, tmp_path):
    ledger = DurableLedger(sqlite, "t", ONE)
    charge(ledger)
    ledger.close()
    with pytest.raises(LedgerError, match=r"witness .* is not there.*; nothing was spent"):
        opened(sqlite, witness=Witness(tmp_path / "not there" / "witness.json"))
