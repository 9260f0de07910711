"""Totals against brute force and against privacy-loss distributions; and what every Curator owes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.accounting import (
    against_distributions,
    exact_total,
    joint_is_enough,
    table_of_events,
    worst_pair,
)
from audit.contract import (
    answers_again,
    charges_first,
    counts_hits,
    handle_survives,
    keeps_the_charge,
)
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse
from understudy.noise.samplers import SeededNoise, SystemNoise
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import GaussianNoise, LaplaceNoise, Located, Selection, Span, SparseVector
from understudy.privacy.joint import Joint
from understudy_audit.acts import AB, CELLS, ONE_CELL, A
from understudy_audit.neighbours import Setting, TellingLedger

DELTA = 1e-6
SETTING = Setting(Budget.of(10), rows_at_least=1, rows_at_most=4096)
ROWS = ((0, 0),) * 6 + ((1, 2),) * 5


@pytest.mark.parametrize("kinds", [(LaplaceNoise,), (Selection,), (GaussianNoise,), (object,)], ids=str)
def test_a_total_is_never_below_privacy_loss_distributions_and_at_most_a_tenth_above(kinds):
    """1000 each of Laplace(0.01), a selection of 0.01 and Gaussian noise of 100, at delta 1e-6."""
    events = [event for event in table_of_events() if isinstance(event, kinds)]
    found = against_distributions(events, Budget.of(100, DELTA).total(events), DELTA)
    assert found.low <= found.high <= found.ours <= 1.10 * found.low


@pytest.mark.parametrize("told", [Fraction(0), Fraction(1, 9)])
def test_sparse_vectors_are_never_priced_below_privacy_loss_distributions(told):
    """100 of ten runs of 0.01 each: within a sixth above, and far below 100 runs of 0.1 each."""
    events = [SparseVector(epsilon=Fraction(1, 10), hits=10, told=told)] * 100
    found = against_distributions(events, Budget.of(100, DELTA).total(events), DELTA)
    assert found.low <= found.high <= found.ours <= 1.17 * found.low
    once = [SparseVector(epsilon=Fraction(1, 10))] * 100
    assert against_distributions(once, Budget.of(100, DELTA).total(once), DELTA).low > 2 * found.ours


def test_a_pure_total_is_the_plain_sum():
    events = table_of_events(times=10)[:20]
    total = Budget.of(100).total(events)
    assert Fraction(total.units, UNITS) == exact_total(events, pure=True)


@st.composite
def located_events(draw):
    found = []
    for _ in range(draw(st.integers(1, 5))):
        mask = draw(st.integers(1, 6))
        price = Fraction(draw(st.integers(1, 20)), 10)
        noise = LaplaceNoise(l1=Fraction(1), scale=1 / price)
        region = [Span("x", 3, mask)]
        if draw(st.booleans()):
            region.append(Span("y", 2, draw(st.integers(1, 2))))
        found.append(
            Located(noise=noise, region=tuple(region), relation="replace", split=draw(st.booleans()))
        )
    return found


@settings(max_examples=60)
@given(located_events())
def test_the_joint_accountant_covers_the_worst_pair_of_rows(events):
    accountant = Joint(Budget.of(1000))
    state = accountant.start()
    for event in events:
        state = accountant.after(state, event)
    cost = accountant.cost(state)
    assert joint_is_enough(cost, events, pure=True) == []
    assert worst_pair(events, pure=True) <= exact_total(events, pure=True)


def opened(ledger):
    return SETTING.curator(ROWS, noise=NOISE, ledger=ledger)


NOISE = SystemNoise()


def test_the_curator_keeps_its_contract():
    def act(curator):
        curator.measure(A, epsilon=1)
        curator.sparse(threshold=5, epsilon=1).ask(CELLS[0])

    assert charges_first(opened(None), act) == []
    assert answers_again(opened, TellingLedger(SETTING.budget), AB, 1) == []
    assert handle_survives(opened, TellingLedger(SETTING.budget), ONE_CELL) == []


def test_a_failure_keeps_the_charge():
    curator = opened(None)

    def fail(*arguments, **named):
        raise RuntimeError("the engine went away")

    curator._truth = type("Broken", (), {"__getattr__": lambda s, n: fail if n == "sums_of" else lambda *a: None,
                                         "version": None})()  # fmt: skip
    assert keeps_the_charge(curator, lambda c: c.measure(A, epsilon=1)) == []
    assert curator.ledger.spent.units == UNITS


@pytest.mark.parametrize("kind", [AboveThreshold, NumericSparse])
def test_a_sparse_vector_counts_its_hits(kind):
    mechanism = kind(epsilon=Fraction(1), sensitivity=1, threshold=0, hits=3)
    assert counts_hits(mechanism, hits=3, noise=SeededNoise(1)) == []
