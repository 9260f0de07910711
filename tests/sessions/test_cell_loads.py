"""What events cost each cell of a small domain, and what a session may buy ahead because of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from counted import curator_of
from session_table import DOMAIN, conjunction, curator, random_question
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.privacy.cost import UNITS
from understudy.privacy.joint import Joint
from understudy.query.box import Box
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions import cell_loads
from understudy.sessions.allowance import Allowance, _Account
from understudy.sessions.cell_loads import CellLoads
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.opening import session as session_of
from understudy.sessions.product_class import ProductPurchase
from understudy.table.source import in_memory
from understudy.table.truth import Truth

NUMBERS = tuple(Bins.integers(f"number {i}", 0, 9) for i in range(2))
ELDERLY = np.arange(10) >= 8


@pytest.fixture
def session():
    return session_of(curator(epsilon=1000.0, delta=1e-6), alpha=0.02, beta=0.05, queries=1000)


def curator_over(domain):
    """A table of 3,000 rows, in which everything is as likely as everything else."""
    draw = np.random.default_rng(2)
    table = pa.table({a.name: draw.integers(0, a.size - 1, 3000) for a in domain})
    return curator_of(Truth(in_memory(table), domain), epsilon=1000.0, delta=1e-6)


def event_of(session, question):
    calibrator = session._buyer.calibrator
    nothing = session._buyer.promise.nothing_released().knowledge
    return calibrator.charged(DirectPurchase.of(calibrator, nothing, question, 1e-5).event(calibrator))


def joint_of(session):
    return Joint(session.curator.ledger.budget.uncapped())


def test_a_narrow_count_costs_the_cells_that_it_reads_and_a_wide_one_all(session):
    joint = joint_of(session)
    narrow, wide = CellLoads(DOMAIN, joint), CellLoads(DOMAIN, joint)
    asked = event_of(session, conjunction(age=ELDERLY, sex=np.arange(3) == 1))
    price = joint.budget.price(asked).units
    narrow.add(asked)
    assert (narrow.units[8:, 1] == price).all()  # half of what a row that leaves it and its successor pay
    assert narrow.units.sum() == price * 2 * DOMAIN["town"].size
    narrow.add(asked, whole=True)
    assert (narrow.units[8:, 1] == 3 * price).all()
    asked = event_of(session, conjunction(age=~ELDERLY))
    wide.add(asked)
    assert (wide.units == joint.budget.price(asked).units).all()


@pytest.mark.parametrize("seed", range(3))
def test_joint_accounting_charges_no_less_than_the_cell_that_pays_most(session, seed):
    joint, draw = joint_of(session), np.random.default_rng(seed)
    loads, state, flat = CellLoads(DOMAIN, joint), joint.start(), 0
    for _ in range(40):
        event = event_of(session, random_question(draw))
        loads.add(event)
        state, flat = joint.after(state, event), flat + joint.budget.price(event).units
        most = min(flat, loads.units.max())
        assert most <= joint.cost(state).units * (1 + 1e-9)
    assert joint.cost(state).units <= 1.3 * most


def test_a_large_domain_has_one_number_for_all_cells(session, monkeypatch):
    monkeypatch.setattr(cell_loads, "MOST_CELLS", 100)
    loads = CellLoads(DOMAIN, joint_of(session))
    loads.add(event_of(session, conjunction(age=ELDERLY)))
    assert loads.units == 0
    loads.add(event_of(session, conjunction(age=~ELDERLY)))
    assert loads.units > 0


# ---- the allowance


def wide_questions():
    """All different, each of more than three tenths of the cells."""
    return [
        conjunction(age=np.arange(10) < cut, town=np.arange(6) != town)
        for cut in range(6, 10)
        for town in range(6)
    ]


def asked(session, questions, *, paid: bool):
    """The allowance of a session after questions that were bought by themselves, or answered for nothing."""
    allowed = session._buyer.policy._allowance
    for question in questions:
        allowed.asked(question)
        if paid:
            allowed.paid(event_of(session, question), question)
    while allowed._waiting:
        allowed._count_waiting(len(questions))
    return allowed


def test_wide_answers_for_nothing_are_a_gain_at_every_cell(session):
    allowed = asked(session, wide_questions(), paid=False)
    assert allowed._account.gain(Fraction(1), 0) == pytest.approx(allowed._direct_cost, rel=1e-6)


def test_answers_for_nothing_about_a_few_cells_are_no_gain(session):
    narrow = [conjunction(age=ELDERLY, town=np.arange(6) == town) for town in range(6)]
    allowed = asked(session, narrow, paid=False)
    assert allowed._direct_cost > 0
    assert allowed._account.gain(Fraction(1), 0) == 0


def test_what_counts_cost_is_no_gain(session):
    allowed = asked(session, wide_questions(), paid=True)
    unit = float(allowed._price(allowed._share(24, allowed._left))) * UNITS
    assert allowed._own.unmatched == 0
    assert abs(allowed._account.gain(Fraction(1), 0)) < 6 * unit  # shares of beta differ a little
    assert allowed._direct_cost > 20 * unit


def test_nothing_is_bought_after_which_counts_would_break_the_promise_by_themselves(session):
    """Whatever was gained: what comes later may be about other rows, and cost them more than 3/2 of directly."""
    allowed = asked(session, wide_questions(), paid=False)
    assert allowed._account.gain(Fraction(1), 0) > 0
    assert allowed.permits([], least_share=allowed._share(24, allowed._left) / 10, asked=24)
    assert not allowed.permits([], least_share=1e-40, asked=24)


@pytest.mark.parametrize("noted", [True, False])
def test_counts_do_not_seem_dearer_where_their_questions_are_counted_late(monkeypatch, noted):
    """Few are expected after fifty of sixty, which then get a large part of β: those before them got less."""
    if not noted:  # the mutant: nobody remembers when a question came
        monkeypatch.setattr(Allowance, "comes", lambda self, marginal, asked: None)
    session = session_of(curator(epsilon=1000.0, delta=1e-6), alpha=0.02, beta=0.05, queries=60)
    monkeypatch.setattr(Allowance, "permits", lambda *_, **__: False)  # nobody counts meanwhile
    draw = np.random.default_rng(3)
    for _ in range(50):
        session.ask_marginal(conjunction(age=draw.random(10) < 0.4, town=draw.random(6) < 0.5))
    allowed = session._buyer.policy._allowance
    while allowed._waiting:
        allowed._count_waiting(session._buyer.asked)
    assert (allowed._own.dearest < 1.25) == noted


def permitted(session, allowed, least_share):
    """What purchases ahead cost together, one after the other as long as they are permitted."""
    joint, bought = allowed._joint, []
    for question in wide_questions():
        event = event_of(session, question)
        if not allowed.permits([*bought, event], least_share=least_share, asked=40):
            break
        bought.append(event)
    state = joint.start()
    for event in bought:
        state = joint.after(state, event)
    return len(bought), joint.cost(state).units


def test_later_counts_that_are_cheap_do_not_excuse_earlier_ones(session):
    """Beside a price by itself that has become dear, later own counts may be cheap: those that were bought at the
    full price stay as dear as they were.
    """
    few = [conjunction(age=np.arange(10) == i % 10, town=np.arange(6) == i % 6) for i in range(30)]
    allowed = asked(session, few, paid=True)
    assert (allowed._own.unmatched, allowed._direct_cost > 0) == (0, True)
    unit = float(allowed._price(allowed._share(40, allowed._left))) * UNITS
    some, cost = permitted(session, allowed, 0.5)  # with such a share counts cost a tenth
    assert 0 < some < len(wide_questions())
    assert cost <= 0.5 * allowed._direct_cost + 3 * unit + max(allowed._account.gain(Fraction(1), 0), 0)


def cost_of(joint, events, law):
    """What events cost a law of rows, part by part (`joint.Load`)."""
    cells, total = CellLoads(DOMAIN, joint), 0.0
    for load in (load for event in events for load in joint.loads(event)):
        part = float((law * cells._inside(load.region)).sum()) if load.region else 1.0
        total += load.units * (min(part, 0.5) if load.halved else part)
    return total


def laws(draw, count):
    """Laws of rows: single cells, two or three of them, and such that many regions hold half of."""
    for i in range(count):
        law = np.zeros(DOMAIN.shape())
        for _ in range(1 + i % 4):
            law[tuple(draw.integers(0, DOMAIN.shape()))] += draw.choice([1.0, 1.0, 0.3])
        yield law / law.sum()


def least_over_laws(allowed, kappa, alone, paid, draw):
    return min(
        kappa * cost_of(allowed._joint, alone, law) - cost_of(allowed._joint, paid, law)
        for law in laws(draw, 300)
    )


def some_counts(draw):
    """About a few rows each, and one after the other about other rows."""
    return [
        conjunction(age=np.arange(10) // 2 == draw.integers(5), town=np.arange(6) // 2 == draw.integers(3))
        for _ in range(25)
    ] + wide_questions()[:6]


@pytest.mark.parametrize("dearer", [0.7, 1.0, 1.4])
@pytest.mark.parametrize("seed", range(3))
def test_no_law_of_rows_gains_less_than_the_allowance_counts(session, seed, dearer):
    """Also where counts cost more or less than directly, and some of them nothing."""
    draw, alone, paid = np.random.default_rng(seed), [], []
    allowed = session._buyer.policy._allowance
    for i, question in enumerate(dict.fromkeys(some_counts(draw))):
        allowed.asked(question)
        if i % 3:
            event = event_of(session, question)
            price = event.noise.variance / Fraction(dearer)
            event = replace(event, noise=replace(event.noise, variance=price))
            allowed.paid(event, question)
            paid.append(event)
        alone.append(question)
    while allowed._waiting:
        allowed._count_waiting(len(alone))
    alone = [allowed._alone_event(question, allowed._share(0, allowed._left)) for question in alone]
    kappa = Fraction(3, 2)
    gain = float((1.5 * allowed._alone.units - allowed._paid.units).min())
    assert gain <= least_over_laws(allowed, 1.5, alone, paid, draw) + 1e-6 * abs(gain)
    assert allowed._account.gain(kappa, 0) >= 0


def test_a_gain_that_divides_all_that_was_paid_is_noticed(session, monkeypatch):
    """Counts of disjoint rows that cost more than directly: two rows of them pay twice what one of them does."""
    monkeypatch.setattr(Allowance, "paid", lambda self, event, marginal: self._paid.add(event))
    draw, allowed = np.random.default_rng(0), session._buyer.policy._allowance
    paid = []
    for town in range(6):
        event = event_of(session, conjunction(age=ELDERLY, town=np.arange(6) == town))
        allowed.paid(event, conjunction())
        paid.append(event)
    gain = float((-allowed._paid.units).min())
    assert gain > least_over_laws(allowed, 1.5, [], paid, draw) * 0.9


@pytest.mark.parametrize("paid", [True, False])
def test_a_class_is_permitted_earlier_where_answers_cost_nothing(session, paid):
    """The class of ages and towns costs between 1/2 and 3/2 of what the questions cost by themselves."""
    calibrator, allowed = session._buyer.calibrator, asked(session, wide_questions(), paid=paid)
    everyone = Box(DOMAIN, {}).query
    offer = ProductPurchase.of(calibrator, ("age", "town"), everyone, 0.02)
    assert offer is not None
    event = calibrator.charged(offer.event(calibrator))
    unit = float(allowed._price(allowed._share(24, allowed._left))) * UNITS
    price = session.curator.ledger.budget.price(event).units
    assert 0.6 * allowed._direct_cost + 3 * unit < price < 1.4 * allowed._direct_cost + 3 * unit
    assert allowed.permits([event], least_share=4e-5, asked=24) is not paid


@pytest.mark.parametrize("gain", [True, False])
def test_rectangles_lead_to_their_class_because_wide_answers_cost_nothing(gain, monkeypatch):
    """Ranges of one attribute are wide, and free once it is known. Without that gain small classes use all up."""
    if not gain:
        monkeypatch.setattr(_Account, "gain", lambda account, kappa, unmatched: 0)
    domain = Domain((Bins.integers("age", 0, 7), Bins.integers("hours", 0, 7), *NUMBERS))
    session = session_of(curator_over(domain), alpha=0.02, beta=0.05, queries=1000)
    draw = np.random.default_rng(5)
    for _ in range(70):
        sides = {}
        for name in [("age",), ("hours",), ("age", "hours")][draw.integers(3)]:
            low, high = np.sort(draw.integers(0, 8, 2))
            sides[name] = (np.arange(8) >= low) & (np.arange(8) <= high)
        session.ask_marginal(Marginal.of(LinearQuery.conjunction(domain, sides)))
    assert ((("age", "hours"), ()) in session._buyer.policy._ski_rental._held) is gain
