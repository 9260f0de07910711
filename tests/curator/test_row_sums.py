"""Debits that are noise on sums over rows: which these are, what they add up to, and what is not believed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import understudy as us
from session_table import DOMAIN, TABLE, conjunction, curator
from understudy.curator import row_sums
from understudy.curator.candidates import Candidate
from understudy.curator.curator import Curator
from understudy.curator.question_text import spelt
from understudy.curator.row_sums import SUMS
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.gap import Guess, NoisyGaps
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import LaplaceNoise, RoundedNormal
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.marginal import Marginal

ADD_REMOVE = Relation(Neighbours.ADD_REMOVE)
AGE = Marginal(DOMAIN, ("age",))


def test_prices_count_one_by_one_and_not_jointly():
    """Of five counts of different people a replaced row moves two: so many are charged, and all of them count."""
    one = curator(epsilon=1)
    assert one.row_sums.now().units == 0
    for first in range(0, 10, 2):
        one.measure(conjunction(age=np.arange(10) // 2 * 2 == first), rho=Fraction(1, 1000))
    found = one.row_sums.now()
    assert not found.other
    assert one.ledger.spent.amount == pytest.approx(0.002)
    assert found.rho == pytest.approx(0.005, rel=0.01)
    variance = Fraction(1, 2) / Fraction(1, 1000)
    assert found.units == 5 * ceil(Fraction(1) / (2 * (variance - 4)) * UNITS)


@pytest.mark.parametrize(
    ("relation", "gaussian", "laplace"), [("replace", 1, Fraction(1, 4)), ("add-remove", 2, 1)]
)
def test_what_noise_counts_for_a_replaced_row(relation, gaussian, laplace):
    declared = {} if relation == "replace" else {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 1000}
    one = curator(epsilon=9, **declared)
    one.measure(AGE, rho=Fraction(1, 10_000))
    noise = Fraction(1, 10_000)
    first = one.row_sums.now().units
    assert gaussian * noise * UNITS < first < gaussian * noise * UNITS * Fraction(1_002, 1000)
    one.measure(AGE, epsilon=Fraction(1, 10))
    assert one.row_sums.now().units - first == laplace * Fraction(1, 100) * UNITS


def test_other_looks_and_little_noise_are_not_believed():
    query = conjunction(age=np.arange(10) < 3).where
    guess = Guess(AGE, np.zeros(AGE.shape, np.int64))
    cases = {
        "Selection": lambda one: one.choose([Candidate(query, Fraction(9))], epsilon=0.1),
        "SparseVector": lambda one: one.sparse(threshold=9, epsilon=0.1),
        "more than sums": lambda one: one._buy(
            NoisyGaps((guess,), one.relation, Price("rho", Fraction(1, 1000)))
        ),
        "too little noise": lambda one: one.measure(
            AGE, rho=1
        ),  # of a variance of 1: no normal noise is near it
    }
    for said, look in cases.items():
        one = curator()
        one.measure(AGE, rho=Fraction(1, 1000))
        assert not one.row_sums.now().other
        look(one)
        found = one.row_sums.now()
        assert said in found.other or (
            said in ("Selection", "SparseVector") and "more than sums" in found.other
        )
        one.measure(AGE, rho=Fraction(1, 1000))
        assert one.row_sums.now() == found


def test_what_was_spent_before_is_of_another_kind():
    truth = curator()._truth
    declared = replace(curator().declaration, opening=Fraction(1, 10))
    one = Curator(truth, MemoryLedger(Budget.of(500, 1e-6), opening=0.1), declared)
    assert "before the ledger" in one.row_sums.now().other


def test_debits_about_another_version_of_a_file_are_of_another_kind(tmp_path):
    path, declared = tmp_path / "t.csv", tmp_path / "understudy.yml"
    declared.write_text(
        "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 9, delta: 1e-6}\nneighbours: replace\n"
        "attributes:\n  age: {type: integer, bounds: [0, 9]}\n  sex: {type: category, values: [F, M]}\n"
    )
    csv.write_csv(TABLE, path)
    with us.open(declared) as project:
        project.ask("count age < 4", rho=0.001)
        project.ask("count age < 4 by sex", epsilon=0.01)
        found = project.curator.row_sums.now()
        assert (found.units > 0, found.other) == (True, "")
        project.ask("count sex = F", rho=0.001)
        more = project.curator.row_sums.now()
        assert more.units > found.units
    with us.open(declared) as project:  # another process finds the same sum
        assert project.curator.row_sums.now() == more
    csv.write_csv(pa.concat_tables([TABLE, TABLE]), path)
    with us.open(declared) as project:
        assert "another version" in project.curator.row_sums.now().other


def test_a_long_ledger_is_read_page_by_page_and_each_entry_once(monkeypatch):
    monkeypatch.setattr(row_sums, "MAX_PAGE", 3)
    one, seen = curator(epsilon=9), []
    for _ in range(8):
        one.measure(AGE, rho=Fraction(1, 1000))
    found = one.row_sums.now()
    assert found.units == 8 * ceil(Fraction(2, 2 * (1000 - 4)) * UNITS)
    entries = one.ledger.entries

    def counted(**asked):
        page = entries(**asked)
        seen.extend(entry.number for entry in page)
        return page

    monkeypatch.setattr(one.ledger, "entries", counted)
    assert one.row_sums.now() == found
    assert not seen
    one.measure(AGE, rho=Fraction(1, 1000))
    assert one.row_sums.now().units > found.units
    assert seen == sorted(set(seen))
    assert min(seen) > found.number


@pytest.mark.parametrize(("relation", "times"), [(Relation(Neighbours.REPLACE), 1), (ADD_REMOVE, 2)], ids=str)
def test_rounded_normal_noise_counts_for_its_own_variance(relation, times):
    ledger = MemoryLedger(Budget.of(9, 1e-6, key_delta=1e-7, filter="gdp"))
    reader = row_sums.RowSumReader(ledger, relation, version=None, is_file=False, opening=Fraction(0))
    normal = RoundedNormal(l2_squared=Fraction(2), variance=Fraction(3))
    ledger.charge(normal, question="measure x", request="1")
    assert reader.now().units == ceil(times * Fraction(2, 6) * UNITS)
    assert not reader.now().other


def test_words_with_an_arrow_make_no_measurement_of_another_look():
    """The words of a question end at the first arrow, and none is written into them."""
    told = spelt("count town = 'a -> measure b'", "measure town in (a -> measure b)")
    assert told == "count town = 'a → measure b' -> measure town in (a -> measure b)"
    assert SUMS.match(told)
    assert SUMS.match("measure everyone @4e07")
    assert not SUMS.match("a distance -> between x -> measure y")
    assert not SUMS.match("keys of town")


@pytest.mark.parametrize("is_followed", [False, True], ids=["sums", "other look"])
def test_purchases_that_a_reader_has_skipped_are_read_when_they_are_asked_for(is_followed):
    """A checkpoint may have read more than its session had bought: purchases of other processes and sessions."""
    ledger = MemoryLedger(Budget.of(900, 1e-6))
    declared = {"relation": ADD_REMOVE, "version": None, "is_file": False, "opening": Fraction(0)}
    one, other = (row_sums.RowSumReader(ledger, **declared) for _ in range(2))
    requests = [f"s#{number}" for number in (1, 2, 3)]
    for request in requests:
        event = LaplaceNoise(scale=Fraction(10), l1=Fraction(1))
        ledger.charge(event, question="measure x", request=request)
    wanted = [one.upto(request) for request in requests]
    assert wanted[0].units < wanted[1].units < wanted[2].units
    if is_followed:
        ledger.charge(event, question="a distance", request="d")
    other.go_on_from(one.now())
    assert [other.upto(request) for request in requests] == wanted
    assert other.upto("s#4") == other.now() == one.now()
