"""Joint pricing within bounds: what hostile questions of hardly any price can make a ledger do."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from understudy.ledger import verifier
from understudy.privacy import joint
from understudy.privacy.budget import Budget
from understudy.privacy.event import LaplaceNoise, Located, Span, as_plain
from understudy.privacy.joint import Joint

ONE = Budget.of(1)
SIZES = (100, 100, 100)


def question(epsilon: Fraction, at: int, *, sizes: tuple[int, ...] = SIZES, first: int = 0) -> Located:
    """A count of half of every attribute but the last, and of one cell of that."""
    half = [Span(f"a{first + i}", size, (1 << size // 2) - 1) for i, size in enumerate(sizes[:-1])]
    last = Span(f"a{first + len(half)}", sizes[-1], 1 << at % sizes[-1])
    noise = LaplaceNoise(l1=Fraction(1), scale=1 / epsilon)
    return Located(noise=noise, region=(*half, last), relation="replace", split=False)


def swept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The cells of every sweep from now on."""
    found, sweep = [], joint._swept

    def counted(state):
        found.append(state.cells)
        return sweep(state)

    monkeypatch.setattr(joint, "_swept", counted)
    return found


def test_questions_of_hardly_any_price_make_no_work(monkeypatch):
    sweeps = swept(monkeypatch)
    bounded, state = Joint(ONE), Joint(ONE).start()
    for i in range(150):
        state = bounded.after(state, question(Fraction(1, 10**9), i))
    assert (sweeps, state.blocks, state.work) == ([], {}, 0)
    assert bounded.cost(state).units == 150 * 10**6  # the plain sum: never below the joint price
    before = Joint(ONE, 1)
    old = before.after(before.start(), question(Fraction(1, 10**9), 0))
    assert sweeps == [10**6] * 2  # the rule of version 0.1 swept a million cells for it
    assert old.blocks


def test_work_is_paid_for_and_ends():
    """However many questions there are and whatever they cost, the steps stay below a fixed number."""
    accountant = Joint(ONE)
    state, most = accountant.start(), 0
    for i in range(600):
        price = Fraction(1, (40, 400, 4000)[i % 3])
        before = state.work + state.sweeping
        state = accountant.after(state, question(price, i // 3, sizes=(30, 30, 90), first=i % 7))
        most = max(most, state.work + state.sweeping - before)
        assert state.work <= joint.WORK
        assert state.sweeping <= joint.SWEEP_WORK
        assert state.cells <= joint.ALL_CELLS
    assert 0 < most <= joint.LAST_WORK + joint.WORK // 16
    assert accountant.cost(state).units <= sum(
        ONE.price(question(Fraction(1, (40, 400, 4000)[i % 3]), i // 3, sizes=(30, 30, 90))).units
        for i in range(600)
    )


def test_a_refusal_takes_a_bounded_number_of_sweeps(monkeypatch):
    accountant, state = Joint(ONE), Joint(ONE).start()
    for first in range(3):
        state = accountant.after(state, question(Fraction(3, 10), 0, first=3 * first))
    assert state.cells == 3 * 10**6
    sweeps = swept(monkeypatch)
    refused = accountant.after(state, question(Fraction(1), 1))
    assert accountant.cost(refused).units > ONE.cap.units
    assert joint.SWEPT_CELL * sum(sweeps) <= joint.SWEEP_WORK


def test_prices_that_a_person_would_ask_at_are_still_joint():
    """A thousand disjoint questions at a thousandth of the budget cost as one, or hardly more."""
    for rule, times in ((1, 2), (2, 3)):
        accountant = Joint(ONE, rule)
        state = accountant.start()
        for i in range(1000):
            event = question(Fraction(1, 1000), i, sizes=(20, 1000))
            state = accountant.after(state, event)
        assert accountant.cost(state).units <= times * 10**12


def test_a_region_that_costs_too_much_work_is_taken_by_fewer_attributes():
    accountant, state = Joint(ONE), Joint(ONE).start()
    for i in range(100):
        state = accountant.after(state, question(Fraction(1, 1000), i))
    assert list(state.blocks) == [(("a0", 100), ("a2", 100))]
    assert accountant.cost(state).units <= 3 * 10**12


def test_the_bounds_are_those_of_the_verifier():
    """Where a price pays for the work to the last step, and where it misses by one."""
    at = replace(question(Fraction(1, 4), 0), region=(Span("a1", 1 << 11, 1),))
    steps = joint._steps(Joint(ONE).start(), (("a1", 1 << 11),), at.region)
    assert steps == 1 + 2**11 // 16 + 2**11
    enough = -(-steps * ONE.cap.units // joint.WORK)
    for units, pays in ((enough, True), (enough - 1, False)):
        noise = LaplaceNoise(l1=Fraction(units), scale=Fraction(10**15))
        event = replace(at, noise=noise)
        state = Joint(ONE).after(Joint(ONE).start(), event)
        purse = verifier.Purse("epsilon", ONE.cap.units)
        assert purse.pay(json.loads(json.dumps(as_plain(event)))) == units
        assert bool(state.blocks) == bool(purse.blocks) == pays
        assert (state.work > 0) == pays
    smallest = ONE.cap.units // joint.SMALLEST + 1
    for units, located in ((smallest, 1), (smallest - 1, 0)):
        event = replace(at, noise=LaplaceNoise(l1=Fraction(units), scale=Fraction(10**15)))
        event = replace(event, region=(Span("x", 4, 1),))
        purse = verifier.Purse("epsilon", ONE.cap.units)
        purse.pay(json.loads(json.dumps(as_plain(event))))
        assert len(Joint(ONE).after(Joint(ONE).start(), event).blocks) == len(purse.blocks) == located
