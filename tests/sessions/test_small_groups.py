"""A group that has at most two widths of rows tells all counts within it: so its count may stand for classes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from counted import Cells
from session_analysts import attributes, conjunction, curator
from understudy.privacy.budget import Budget
from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.sessions import allowance, histogram_rent, ski_rental, small_groups
from understudy.sessions.opening import session as session_of
from understudy.sessions.purchase import PurchaseRequest
from understudy.sessions.session import Session, _least_refined
from understudy.sessions.small_groups import LIKELY, GroupCountPurchase, enough_for

DOMAIN = attributes({"age": 16, "hours": 16}, {"town": 8})
ROWS, WIDTH = 50_000, 1000
BUDGETS = {"approximate": Budget.of(1000, 1e-6), "pure": Budget.of(1000)}


@pytest.fixture
def eager(monkeypatch):
    """Classes are bought as soon as two of their questions were asked, and no histograms are."""
    monkeypatch.setattr(allowance, "FREE", 10**6)
    monkeypatch.setattr(histogram_rent, "COUNTS", 10**6)
    for name, value in {"SEEN": 2, "FORECAST": 0.1, "EVIDENCE": 0.01}.items():
        monkeypatch.setattr(ski_rental, name, value)


def table(widths: float) -> Cells:
    """Rows of which the first town has so many widths, and the others the rest."""
    shares = np.array([widths * WIDTH, *[(ROWS - widths * WIDTH) / 7] * 7]) / ROWS
    draw = np.random.default_rng(1)
    within = draw.dirichlet(np.ones(256)).reshape(16, 16)
    return Cells(DOMAIN, draw.multinomial(ROWS, np.multiply.outer(within, shares).ravel()).reshape(16, 16, 8))


def in_town(**sides) -> Marginal:
    return conjunction(DOMAIN, {**sides, "town": np.arange(8) == 0})


def opened(widths: float, *, budget: str = "approximate", **terms) -> tuple[Session, Cells]:
    truth = table(widths)
    terms = {"alpha": WIDTH / ROWS, "beta": 1e-9, "queries": 10_000, **terms}
    return session_of(curator(truth, seed=2, budget=BUDGETS[budget]), **terms), truth


def kinds(session: Session) -> list[str]:
    return [plan["kind"] for plan in session._buyer.journal.all()]


def swept(session: Session, truth: Cells, *first: Marginal) -> None:
    """Ranges of both attributes within the group; each costs at most its price, and is as promised."""
    draw, cells = np.random.default_rng(5), np.arange(16)
    ranges = [((cells >= low) & (cells <= high)) for low, high in np.sort(draw.integers(0, 16, (12, 2)))]
    for question in (*first, *(in_town(**{name: some}) for name in ("age", "hours") for some in ranges)):
        plan = session._parts.planned(_least_refined(session.curator.domain, [question]), "")
        quoted = session._buyer.funds("").quote(plan.purchases).units
        before = session.curator.ledger.spent.units
        answer = session.ask_marginal(question)
        assert session.curator.ledger.spent.units - before <= quoted
        assert abs(float(answer.value) - float(truth.exact(question))) <= float(answer.error) <= WIDTH


@pytest.mark.usefixtures("eager")
def test_the_count_of_a_small_group_stands_for_the_classes_of_its_rows(monkeypatch):
    session, truth = opened(1.2)
    swept(session, truth, in_town())
    assert "group" in kinds(session)
    assert "grids" not in kinds(session)
    assert kinds(session)[-1] == "group"
    monkeypatch.setattr(GroupCountPurchase, "of", lambda *_: None)
    without, truth = opened(1.2)
    swept(without, truth, in_town())
    assert "grids" in kinds(without)
    assert session.curator.ledger.spent.units < 0.6 * without.curator.ledger.spent.units


@pytest.mark.usefixtures("eager")
def test_a_group_that_is_no_small_one_is_counted_once_and_no_larger_one_is():
    """It is taken to be as large as its interval says; where that was wrong, the class is bought, and no more."""
    session, truth = opened(2.05)
    session._buyer.known.knowledge.learn(in_box(), (100.0, 2200.0))
    swept(session, truth)
    assert kinds(session).count("group") == 1
    assert kinds(session).index("group") < kinds(session).index("grids")
    large, truth = opened(4)
    swept(large, truth, in_town())
    assert "group" not in kinds(large)
    assert "grids" in kinds(large)


def in_box() -> Box:
    box = Box.of(in_town().where)
    assert box is not None
    return box


def test_nothing_is_counted_that_the_allowance_does_not_permit_beside_the_class(monkeypatch):
    session, _ = opened(1.2)
    policy, known = session._buyer.policy, session._buyer.known.knowledge.copy()
    known.learn(in_box(), (200.0, 2200.0))
    wanted = policy._ski_rental._offer(("age",), in_town().where, ("prefixes",), policy.beta.left, 0.0)
    assert wanted is not None
    seen = []

    def permits(self, purchases, *, asked):
        seen.append([purchase.kind for purchase in purchases])
        return False

    monkeypatch.setattr("understudy.sessions.permission.Permission.permits", permits)
    assert policy.group_count(known, wanted, asked=1) is None
    assert seen == [["group", "grids"]]
    monkeypatch.setattr("understudy.sessions.permission.Permission.permits", lambda *_, **__: True)
    group = policy.group_count(known, wanted, asked=1)
    assert group is not None
    monkeypatch.setattr(small_groups, "MOST_OF_CLASS", 0)
    monkeypatch.setattr("understudy.sessions.policy.MOST_OF_CLASS", 0)
    assert policy.group_count(known, wanted, asked=1) is None


@pytest.mark.parametrize(("queries", "asked"), [(10, 12), (25, 30)])
def test_the_count_of_a_group_takes_of_beta_what_is_left_beside_its_class(queries, asked, monkeypatch):
    """Where few questions are expected each share is a large part of what is left: both are taken of it."""
    monkeypatch.setattr(allowance, "FREE", 10**6)
    monkeypatch.setattr(allowance, "RATIO", Fraction(10**6))
    session, _ = opened(1.2, beta=0.05, queries=queries)
    policy, known = session._buyer.policy, session._buyer.known.knowledge.copy()
    known.learn(in_box(), (200.0, 2200.0))
    wanted = policy._ski_rental._offer(
        ("age", "hours"), in_town().where, ("ranges", "ranges"), policy.beta.left, 0.0
    )
    assert wanted is not None
    group = policy.group_count(known, wanted, asked=asked)
    assert group is not None
    assert group.share + wanted.share < policy.beta.left
    assert policy.group_count(known, replace(wanted, share=policy.beta.left), asked=asked) is None
    assert policy._permission.permits([group, wanted], asked=asked)
    assert not policy._permission.permits([group, wanted, group, wanted], asked=asked)  # more than is left


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_plan_is_read_back_and_its_band_holds(budget):
    session, truth = opened(1.2, budget=budget)
    calibrator, known = session._buyer.calibrator, session._buyer.known.knowledge.copy()
    known.learn(in_box(), (200.0, 2200.0))
    group = GroupCountPurchase.of(calibrator, known, in_town().where, 1e-12)
    assert group is not None
    again = GroupCountPurchase.read(calibrator, {"kind": "group", **group.plain()})
    assert (again.share, again.error, again.price) == (group.share, group.error, group.price)
    assert again.event(calibrator) == group.event(calibrator)
    result = again.make(calibrator, known, PurchaseRequest("once", ""))
    assert result.cost.units == session.curator.ledger.spent.units > 0
    low, high = known.interval(in_box())
    assert low <= float(truth.exact(in_town())) <= high
    assert high - low <= 2 * group.error
    assert known.released[-1].where.key == in_box().key
    assert GroupCountPurchase.of(calibrator, known, in_town().where, 1e-12) is None or high > 2 * WIDTH


def test_no_group_is_counted_that_is_known_to_be_small_or_is_everybody():
    session, _ = opened(1.2)
    calibrator, known = session._buyer.calibrator, session._buyer.known.knowledge.copy()
    assert GroupCountPurchase.of(calibrator, known, conjunction(DOMAIN, {}).where, 1e-6) is None
    assert GroupCountPurchase.of(calibrator, known, in_town().where, 1e-6) is None  # nothing is known of it
    known.learn(in_box(), (0.0, 2.0 * WIDTH))
    assert GroupCountPurchase.of(calibrator, known, in_town().where, 1e-6) is None


@pytest.mark.parametrize("gap", [50.0, 400.0, 900.0])
@pytest.mark.parametrize("deviation", [0.0, 30.0, 220.0])
@pytest.mark.parametrize("band", [1.5, 4.4, 9.0])
def test_the_error_is_the_largest_that_is_likely_to_be_enough(gap, deviation, band):
    def needed(error: int) -> float:
        return error + LIKELY * sqrt(deviation**2 + (error / band) ** 2)

    error = enough_for(gap, deviation, band)
    if error == 0:
        assert gap < max(needed(1), LIKELY * deviation + 1)
    else:
        assert needed(error) <= gap + 1e-6
        assert needed(error + 1) > gap
    assert enough_for(-gap, deviation, band) == 0
