"""A debit may carry a δ: ledgers keep it apart, keep it under its own cap, and every reader of them knows it."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from ledger.forging import resealed
from understudy.declaration.file import parse
from understudy.errors import (
    DeclarationError,
    InsufficientBudgetError,
    LedgerError,
    ParameterError,
    RefusedError,
)
from understudy.ledger import export, pld, verifier
from understudy.ledger.books import Books
from understudy.ledger.chain import canonical
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.snapshot import _restore, encoded
from understudy.ledger.store import DurableLedger
from understudy.mechanism.key_selection import GaussianSelection, TruncatedGeometricSelection
from understudy.privacy.budget import Budget
from understudy.privacy.compose import zcdp_rho
from understudy.privacy.cost import DELTA_UNITS, delta_units, rho
from understudy.privacy.event import GaussianNoise, Together
from understudy.privacy.recording import as_plain, from_plain
from understudy.privacy.relation import Neighbours, Relation

ADD = Relation(Neighbours.ADD_REMOVE)
BUDGET = Budget.of(1, 1e-6, key_delta=5e-7)
KEYS = GaussianSelection.of(rho=Fraction(1, 1000), delta=Fraction(2, 10**7), relation=ADD, keys_each=3).event
ONE_KEY = TruncatedGeometricSelection.of(rho=Fraction(1, 1000), delta=Fraction(1, 10**7), relation=ADD).event
NOISE = GaussianNoise(l2_squared=Fraction(1), variance=Fraction(200))


def charged(ledger, *events):
    for number, event in enumerate(events):
        debit = ledger.charge(event, question=f"keys {number}", request=f"r{number}")
        ledger.settle(debit, b"[]")
    return ledger


# ---------------------------------------------------------------------------------------- budgets


def test_only_the_rest_of_delta_turns_rho_into_epsilon():
    assert Budget.of(1, 1e-6).cap.amount == pytest.approx(zcdp_rho(1, 1e-6))
    assert BUDGET.cap.amount == pytest.approx(zcdp_rho(1, 5e-7))
    assert BUDGET.conversion_delta + BUDGET.key_delta == BUDGET.delta
    assert BUDGET.epsilon_of(BUDGET.cap) == pytest.approx(1)
    assert BUDGET.part(1).amount <= BUDGET.whole.amount
    assert "5e-07 of it for keys" in str(BUDGET)


@pytest.mark.parametrize("keys", [-1e-7, 1e-6, 1])
def test_the_delta_for_keys_is_a_part_of_delta(keys):
    with pytest.raises(ParameterError, match="part of delta"):
        Budget.of(1, 1e-6, key_delta=keys)
    with pytest.raises(ParameterError, match="part of delta"):
        Budget.of(1, key_delta=1e-9)


def test_a_declaration_says_it():
    text = (
        "understudy: 1\nname: t\nsource: t.csv\nattributes:\n  a: {type: boolean}\n"
        "budget: {epsilon: 1, delta: 1e-6, key_delta: KEYS}\n"
    )
    assert parse(text.replace("KEYS", "5e-7")).budget == BUDGET
    with pytest.raises(DeclarationError, match="part of delta"):
        parse(text.replace("KEYS", "1e-6"))


# ---------------------------------------------------------------------------------------- charging


def test_a_debit_is_charged_rho_and_delta_and_both_have_a_cap():
    ledger = MemoryLedger(BUDGET)
    charged(ledger, KEYS, NOISE, Together((ONE_KEY, NOISE)))
    assert ledger.delta_spent == Fraction(delta_units(KEYS) + delta_units(ONE_KEY), DELTA_UNITS)
    assert float(rho(KEYS) + rho(ONE_KEY) + 2 * rho(NOISE)) == pytest.approx(ledger.spent.amount)
    assert ledger.due(KEYS).payable
    charged_before, spent = ledger.delta_spent, ledger.spent
    ledger.charge(KEYS, question="more", request="more")
    assert not ledger.due(KEYS).payable
    with pytest.raises(InsufficientBudgetError, match=r"delta .* remains"):
        ledger.charge(KEYS, question="too much", request="too much")
    assert ledger.delta_spent == charged_before + Fraction(delta_units(KEYS), DELTA_UNITS)
    assert ledger.spent > spent
    ledger.charge(NOISE, question="noise has no delta", request="noise")


@pytest.mark.parametrize(
    ("budget", "word"),
    [(Budget.of(1), "no delta|pure epsilon"), (Budget.of(1, 1e-6), "turns rho into epsilon")],
)
def test_a_ledger_without_a_delta_for_keys_refuses_and_says_what_to_declare(budget, word):
    ledger = MemoryLedger(budget)
    for ask in (ledger.quote, lambda event: ledger.charge(event, question="q", request="r")):
        with pytest.raises(RefusedError, match=word) as caught:
            ask(KEYS)
        assert "key_delta" in caught.value.remedy
    assert ledger.spent.units == 0
    assert ledger.find("r") is None


def test_events_that_carry_a_delta_are_written_and_read():
    for event in (KEYS, ONE_KEY, Together((KEYS, ONE_KEY))):
        assert from_plain(as_plain(event)) == event
    plain = as_plain(KEYS)
    with pytest.raises(ParameterError):
        from_plain({**plain, "delta": "1/100000000000"})


# ---------------------------------------------------------------------------------------- stored


@pytest.fixture
def url(tmp_path: Path):
    return URL.create("sqlite", database=str(tmp_path / "ledger.db"))


def test_a_stored_ledger_remembers_it_and_its_terms(url):
    charged(DurableLedger(url, "t", BUDGET), KEYS, NOISE).close()
    again = DurableLedger(url, "t", BUDGET)
    assert again.delta_spent == Fraction(delta_units(KEYS), DELTA_UNITS)
    again.charge(KEYS, question="more", request="more")
    with pytest.raises(InsufficientBudgetError, match="delta"):
        again.charge(KEYS, question="too much", request="too much")
    again.close()
    with pytest.raises(LedgerError, match="budget of"):
        DurableLedger(url, "t", Budget.of(1, 1e-6))


def test_terms_of_a_budget_without_it_are_what_they_were(url):
    charged(DurableLedger(url, "t", Budget.of(1, 1e-6)), NOISE).close()
    terms = json.loads(export.document(url, "t")["entries"][0]["terms"])
    assert "key_delta" not in terms


def test_a_snapshot_holds_it_and_books_without_it_have_the_bytes_that_they_had():
    books = Books(BUDGET)
    books.enter(NOISE, analyst="", at="")
    assert b'"delta"' not in encoded(books)
    books.enter(KEYS, analyst="", at="")
    other = Books(BUDGET)
    _restore(other, encoded(books))
    assert other.delta == books.delta == delta_units(KEYS)


def exported(url):
    charged(DurableLedger(url, "t", BUDGET), KEYS, NOISE, ONE_KEY).close()
    return export.document(url, "t")


def test_the_verifier_prices_it_by_itself(url, tmp_path):
    document = exported(url)
    verdict = verifier.verify(document)
    assert verdict["sound"], verdict["problems"]
    assert verdict["key_delta_spent"] == pytest.approx(float(KEYS.delta + ONE_KEY.delta))
    alone = tmp_path / "export.py"
    alone.write_text(export.self_contained(document))
    said = subprocess.run([sys.executable, "-I", alone], capture_output=True, text=True, check=True).stdout
    assert "of delta, for keys" in said
    assert "SOUND" in said


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"delta": "1/1000000000"}, "smaller than the tail"),
        ({"reach": "2"}, "smaller than the tail"),
        ({"variance": "100000"}, "smaller than the tail"),
        ({"keys": "3000"}, "smaller than the tail"),
        ({"keys": "1/2"}, "not understood"),
        ({"delta": "9/10"}, "delta for keys is overspent"),
        ({"l2_squared": "0"}, "smaller than the tail"),
        ({"more": "1"}, "not understood"),
    ],
)
def test_the_verifier_sees_a_delta_that_does_not_follow_from_the_noise(url, change, problem):
    def forge(entries):
        debit = next(entry for entry in entries if entry["kind"] == "debit")
        debit["event"] = canonical({**json.loads(debit["event"]), **change})

    verdict = verifier.verify(resealed(exported(url), forge))
    assert any(problem in told for told in verdict["problems"]), verdict["problems"]


@pytest.mark.parametrize("keys", ["1/1000000", "0", "1/100"])
def test_the_verifier_sees_terms_whose_parts_of_delta_do_not_add_up(url, keys):
    def forge(entries):
        terms = json.loads(entries[0]["terms"])
        entries[0]["terms"] = canonical({**terms, "key_delta": keys})

    assert not verifier.verify(resealed(exported(url), forge))["sound"]


def test_the_second_accountant_is_not_above(url):
    compared = pld.compare(exported(url))
    assert compared["agrees"], compared
    assert 0 < compared["pld_epsilon"] <= compared["ledger_epsilon"]


def test_the_second_accountant_sees_the_delta(url):
    """Without the δ of the events it would find less: a ledger that forgot it would be told apart."""
    document = exported(url)
    events = [from_plain(json.loads(e["event"])) for e in document["entries"] if e["event"]]
    laws = {loss.law for event in events for loss in event.privacy_losses()}
    assert laws == {"gaussian", "pure", "failure"}
