"""Ledgers that a Rényi or a GDP filter keeps: written, read back, verified by code of its own, and never mixed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import URL

from events import any_events
from understudy.declaration.file import parse
from understudy.errors import DeclarationError, InsufficientBudgetError, LedgerError, RefusedError
from understudy.ledger import export, verifier
from understudy.ledger.chain import Entry, canonical, digest
from understudy.ledger.export import document
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import (
    GaussianNoise,
    LaplaceNoise,
    Located,
    RoundedNormal,
    Selection,
    Span,
    SparseVector,
    Together,
)
from understudy.privacy.key_event import TruncatedGeometricKeys
from understudy.privacy.recording import as_plain

ONE, DELTA = Fraction(1), Fraction(1, 10**6)
KEPT = {
    "renyi": {"filter": "renyi"},
    "renyi of order 63": {"filter": "renyi", "order": 63},
    "gdp": {"filter": "gdp"},
    "gdp with a tenth": {"filter": "gdp", "reserve": Fraction(1, 10)},
}
BUDGETS = {name: Budget.of(1, DELTA, key_delta=DELTA / 10, **kept) for name, kept in KEPT.items()}
NOISE = GaussianNoise(l2_squared=ONE, variance=Fraction(3000))


def located(cell: int, noise=NOISE) -> Located:
    return Located(noise=noise, region=(Span("town", 6, 1 << cell),), relation="replace", split=False)


EVENTS = (
    *(located(cell) for cell in range(6)),
    located(1, RoundedNormal(l2_squared=ONE, variance=Fraction(2500))),
    located(2, GaussianNoise(l2_squared=ONE, variance=Fraction(60))),
    Selection(epsilon=Fraction(3, 100)),
    LaplaceNoise(l1=ONE, scale=Fraction(40)),
    SparseVector(epsilon=Fraction(1, 20), hits=4, told=Fraction(1, 9)),
    Together(
        (Selection(epsilon=Fraction(1, 100)), GaussianNoise(l2_squared=Fraction(2), variance=Fraction(10**5)))
    ),
    TruncatedGeometricKeys(epsilon=Fraction(1, 30), keys=2, reach=600, delta=Fraction(1, 10**8)),
)


@pytest.fixture
def url(tmp_path):
    return URL.create("sqlite", database=str(tmp_path / "t.ledger"))


def spend(url: URL, budget: Budget, events=EVENTS) -> DurableLedger:
    ledger = DurableLedger(url, "t", budget)
    for number, event in enumerate(events):
        ledger.settle(ledger.charge(event, question=f"q{number}", request=f"r{number}"), b"%d" % number)
    return ledger


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_what_was_written_is_read_back_and_verified(url, budget):
    ledger = spend(url, budget)
    spent = ledger.spent
    ledger.close()
    verdict = export.verify(url, "t")
    assert verdict["sound"], verdict["problems"]
    assert (verdict["spent_units"], verdict["filter"]) == (spent.units, budget.filter.name)
    again = DurableLedger(url, "t", budget)
    assert again.spent == spent
    again.close()
    memory = MemoryLedger(budget)
    for number, event in enumerate(EVENTS):
        memory.charge(event, question="q", request=f"r{number}")
    assert memory.spent == spent


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_the_exported_file_verifies_itself_without_this_library(url, budget, tmp_path):
    spend(url, budget).close()
    (file := tmp_path / "check.py").write_text(export.self_contained(document(url, "t")), encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert f"privacy filter {budget.filter.name!r}" in done.stdout
    assert "SOUND" in done.stdout


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@given(
    any_events
    | st.fractions(Fraction(1, 10**9), 30, max_denominator=10**9).map(lambda e: Selection(epsilon=e))
)
@settings(max_examples=25)
def test_the_verifier_prices_every_event_to_the_unit(budget, event):
    kept = verifier.kept_by({"currency": "rho", **budget.filter.terms()})
    try:
        ours = budget.price(event).units
    except RefusedError:
        with pytest.raises(verifier.Wrong, match="no price in GDP"):
            verifier.units(as_plain(event), kept)
        return
    assert verifier.units(as_plain(event), kept) == ours


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_the_verifier_sees_a_cap_that_is_one_unit_too_large(url, budget):
    terms = json.loads(_first(url, budget)["terms"])
    verifier.check_cap(terms)
    more = {key: terms[key] + 1 for key in ("cap", "total_units") if key in terms}
    with pytest.raises(verifier.Wrong, match="does not imply"):
        verifier.check_cap(terms | more)
    with pytest.raises(verifier.Wrong, match=r"not the one|not what its reserve leaves"):
        verifier.check_cap(terms | {"cap": terms["cap"] * 9 // 10})


def test_the_verifier_sees_another_reserve_and_another_order(url, tmp_path):
    terms = json.loads(_first(url, BUDGETS["gdp"])["terms"])
    for wrong in ({"reserve": "1/50"}, {"reserve_units": terms["reserve_units"] - 1}, {"reserve_units": 0}):
        with pytest.raises(verifier.Wrong, match="reserve"):
            verifier.check_cap(terms | wrong)
    other = URL.create("sqlite", database=str(tmp_path / "other.ledger"))
    terms = json.loads(_first(other, BUDGETS["renyi"])["terms"])
    for order in ("30", "21", "1", "1/2"):
        with pytest.raises((verifier.Wrong, ArithmeticError)):
            verifier.check_cap(terms | {"order": order})


def _first(url: URL, budget: Budget) -> dict:
    spend(url, budget, EVENTS[:1]).close()
    return document(url, "t")["entries"][0]


# ---- one filter for ever


def test_the_first_charge_fixes_the_filter(url):
    spend(url, BUDGETS["renyi"], EVENTS[:2]).close()
    for name, budget in BUDGETS.items():
        if name != "renyi":
            with pytest.raises(LedgerError, match=r"was opened with a budget of .* order 2"):
                DurableLedger(url, "t", budget)
    with pytest.raises(LedgerError, match="The recorded budget rules"):
        DurableLedger(url, "t", Budget.of(1, DELTA, key_delta=DELTA / 10))
    DurableLedger(url, "t", BUDGETS["renyi"]).close()


def test_a_ledger_without_a_filter_stays_one_of_zcdp(url):
    plain = Budget.of(1, DELTA)
    spend(url, plain, EVENTS[:2]).close()
    terms = json.loads(document(url, "t")["entries"][0]["terms"])
    assert not terms.keys() & {"filter", "order", "reserve"}
    with pytest.raises(
        LedgerError, match="the declaration says epsilon 1, delta 1e-06, kept by a GDP filter"
    ):
        DurableLedger(url, "t", Budget.of(1, DELTA, filter="gdp"))
    assert DurableLedger(url, "t", plain).spent.units > 0


def test_a_filter_of_a_later_program_is_not_guessed(url):
    """The terms are forged and the chain is made anew, as a later version would write it."""
    spend(url, BUDGETS["gdp"], ()).close()
    ledger = DurableLedger(url, "t", BUDGETS["gdp"])
    ledger.charge(EVENTS[0], question="q", request="r")
    ledger.close()
    raw = sqlite3.connect(url.database)
    row = raw.execute("select * from understudy_entry where number = 1").fetchone()
    entry = Entry._make(row[1:])
    terms = json.loads(entry.terms or "") | {"filter": "zeta"}
    forged = entry._replace(terms=canonical(terms))
    forged = forged._replace(hash=digest(forged))
    raw.execute(
        "update understudy_entry set terms = ?, hash = ? where number = 1", (forged.terms, forged.hash)
    )
    raw.commit()
    raw.close()
    with pytest.raises(LedgerError, match="privacy filter that this program does not know"):
        DurableLedger(url, "t", BUDGETS["gdp"])


# ---- caps and refusals


@pytest.mark.parametrize("name", ["renyi", "gdp"])
def test_a_ledger_is_spent_to_its_cap_and_not_beyond(url, name):
    budget = Budget.of(1, DELTA, filter=name)
    ledger = DurableLedger(url, "t", budget)
    part = budget.epsilon_within(budget.whole / 10, Selection(epsilon=ONE))
    for number in range(10):
        ledger.charge(Selection(epsilon=part), question="q", request=f"r{number}")
    assert 0 <= ledger.remaining.units < 100_000
    with pytest.raises(InsufficientBudgetError):
        ledger.charge(Selection(epsilon=part), question="q", request="more")
    assert export.verify(url, "t")["sound"]


def test_at_one_order_more_pure_questions_are_answered():
    """At (1, 10⁻⁶), questions of pure ε = 0.1: four under zCDP, seven at the one order, three in GDP."""
    answered = {}
    for name in ("zcdp", "renyi", "gdp"):
        ledger = MemoryLedger(Budget.of(1, DELTA, filter=name))
        answered[name] = 0
        while True:
            try:
                ledger.charge(
                    LaplaceNoise(l1=ONE, scale=Fraction(10)), question="q", request=f"r{answered[name]}"
                )
            except InsufficientBudgetError:
                break
            answered[name] += 1
    assert answered == {"zcdp": 4, "renyi": 7, "gdp": 3}


def test_gdp_answers_a_ninth_more_questions_with_gaussian_noise():
    event = GaussianNoise(l2_squared=ONE, variance=Fraction(20_000))
    found = {}
    for name in ("zcdp", "renyi", "gdp"):
        budget = Budget.of(1, DELTA, filter=name)
        found[name] = budget.cap.units // budget.price(event).units
    assert found["zcdp"] == found["renyi"] == 974
    assert found["gdp"] == 1086
    assert ceil(Fraction(BUDGETS["gdp"].price(event).units, UNITS) * 10**9) == 25_000


# ---- the declaration

TEXT = """\
understudy: 1
name: people
source: people.csv
budget: {%s}
attributes:
  sex: {type: category, values: [F, M]}
"""


def test_a_declaration_names_the_filter():
    written = "epsilon: 1, delta: 1.0e-6, key_delta: 1.0e-7, filter: renyi, order: 63"
    assert parse(TEXT % written).budget == BUDGETS["renyi of order 63"]
    written = "epsilon: 1, delta: 1.0e-6, key_delta: 1.0e-7, filter: gdp, reserve: 0.1"
    assert parse(TEXT % written).budget == BUDGETS["gdp with a tenth"]
    assert parse(TEXT % "epsilon: 1, delta: 1.0e-6, filter: zcdp").budget == Budget.of(1, DELTA)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("epsilon: 1, filter: gdp", "pure epsilon"),
        ("epsilon: 1, delta: 1.0e-6, filter: rdp", "zcdp, renyi, gdp"),
        ("epsilon: 1, delta: 1.0e-6, order: 20", "belongs to the filter renyi"),
        ("epsilon: 1, delta: 1.0e-6, filter: renyi, order: 3", "nothing to spend"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused_with_its_line(written, said):
    with pytest.raises(DeclarationError, match=said):
        parse(TEXT % written)


@pytest.mark.parametrize(
    ("name", "why"), [("renyi", "one Rényi order"), ("gdp", "the reserve"), ("zcdp", "")]
)
def test_the_epsilon_of_a_first_charge_is_explained_where_it_starts_high(name, why):
    """Under one order anything that was charged comes to the order's own loss, however little it was."""
    budget = Budget.of(1, 1e-6, filter=name)
    least, little = budget.floor_told(), type(budget.cap)(budget.cap.units // 500)
    assert (why in least) if why else not least
    floor = budget.filter.floor(budget.conversion_delta)
    assert floor <= budget.spent_epsilon(little) <= floor + 0.15
    assert budget.spent_epsilon(type(budget.cap)(0)) == 0
    assert f"{floor:.3g}" in least or not why
