"""Counts in two looks: what they cost, what the second is made of, and that their bands hold together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from counted import Cells, curator_of
from session_analysts import attributes, conjunction, table_of
from statistical import assert_at_most
from understudy.privacy.cost import UNITS
from understudy.query.marginal import Marginal
from understudy.sessions import looks
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.looks import FIRST, LEAST_WIDTH, LookPurchase
from understudy.sessions.opening import session as session_of
from understudy.sessions.session import Session

TOWN = table_of(attributes({"age": 12}, {"sex": 3, "town": 6}), 30_000, 5)
"""At α = 0.02 an answer is within 600 people."""

RARE = conjunction(TOWN.domain, {"age": np.arange(12) == 0, "sex": np.arange(3) == 2})
LARGE = conjunction(TOWN.domain, {"age": np.arange(12) == 7, "sex": np.arange(3) == 1})
"""Expected to be near 0, and some thousands."""


def opened(*, seed: int = 1, truth: Cells = TOWN, name: str = "", **terms) -> Session:
    one = curator_of(truth, epsilon=1000.0, delta=1e-6, seed=seed)
    return session_of(one, **({"alpha": 0.02, "queries": 1000, "name": name} | terms))


def kinds(session: Session) -> list[tuple[str, bool]]:
    return [(plan["kind"], plan.get("second", False)) for plan in session._buyer.journal.all()]


def test_a_small_count_is_bought_in_one_look_for_about_half():
    session, direct = opened(), opened(mechanism="direct")
    found, alone = session.ask_marginal(RARE), direct.ask_marginal(RARE)
    assert kinds(session) == [("look", False)]
    assert found.source == "measured"
    assert found.error <= session.width
    assert abs(found.value - TOWN.exact(RARE)) <= found.error
    assert 0.2 < found.cost.units / alone.cost.units < 0.65
    assert session.ask_marginal(RARE).source == "repeat"


def test_a_count_that_needs_both_looks_costs_little_more_than_in_one():
    session = opened(beta=0.01)
    shares = LookPurchase.of(session._buyer.calibrator, session._known.knowledge, _direct(session, LARGE))
    assert shares is not None
    assert shares.share == 0.0 or not shares.second
    found = session.ask_marginal(LARGE)
    assert kinds(session) == [("look", False), ("look", True)]
    assert found.error <= session.width
    one = session.curator.ledger.budget.price(
        _direct(opened(beta=0.01), LARGE).event(session._buyer.calibrator)
    )
    assert found.cost.units <= 1.04 * one.units
    assert session.price(LARGE).amount == 0.0


def _direct(session: Session, marginal: Marginal) -> DirectPurchase:
    return session._buyer.policy.direct(session._known.knowledge, marginal, asked=1)


def test_the_price_is_that_of_both_looks():
    session = opened()
    quoted = session.price(RARE).amount
    assert session.ask_marginal(RARE).cost.amount < 0.65 * quoted
    assert session.price(LARGE).amount * UNITS >= session.ask_marginal(LARGE).cost.units


def test_the_share_of_beta_is_taken_once():
    session = opened()
    before = session._buyer.policy.beta.left
    session.ask_marginal(LARGE)
    first, second = session._buyer.journal.all()
    assert session._buyer.policy.beta.left == pytest.approx(before - first["of beta"])
    assert first["looks"] == second["looks"]
    assert session._buyer.policy.read(second).share == 0.0


def test_under_a_pure_epsilon_and_on_small_tables_counts_are_bought_in_one_look():
    pure = session_of(curator_of(TOWN, epsilon=1000.0, delta=0, seed=1), alpha=0.02)
    pure.ask_marginal(RARE)
    assert "look" not in dict(kinds(pure))
    narrow = opened(alpha=(LEAST_WIDTH - 1) / TOWN.rows)
    narrow.ask_marginal(RARE)
    assert dict(kinds(narrow)) == {"fresh": False}


def test_both_looks_are_weighed_by_their_precisions():
    session = opened()
    session.ask_marginal(LARGE)
    first, second = (session._buyer.policy.read(plan) for plan in session._buyer.journal.all())
    one, other = (float(price.amount) for price in first.prices)
    seen, both = (float(kept.counts) for kept in session._known.knowledge.released)
    again = (both * (one + other) - one * seen) / other
    assert again == pytest.approx(round(again), abs=1e-6)  # a noisy count of its own, in whole people
    assert session.ask_marginal(LARGE).noisy == both
    assert second.second


def test_a_session_that_was_stopped_between_two_looks_makes_the_second_alone(monkeypatch):
    session, make = opened(name="mine"), LookPurchase.make

    def stopped(self, *rest):
        if self.second:
            raise KeyboardInterrupt
        return make(self, *rest)

    monkeypatch.setattr(LookPurchase, "make", stopped)
    with pytest.raises(KeyboardInterrupt):
        session.ask_marginal(LARGE)
    monkeypatch.undo()
    assert kinds(session) == [("look", False)]
    again = session_of(session.curator, name="mine")
    found = again.ask_marginal(LARGE)
    assert kinds(again) == [("look", False), ("look", True)]
    assert found.error <= again.width
    assert found.cost.units < again.curator.ledger.spent.units


# ---- the band


def bands(calibrator: Calibrator, plan: LookPurchase) -> tuple[float, float]:
    return plan._width(calibrator), plan.next._width(calibrator)


def errors(
    plan: LookPurchase, calibrator: Calibrator, draws: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The errors after the first and after both looks, of normal noise rounded to whole people."""
    draw = np.random.default_rng(seed)
    first, second = (
        np.rint(draw.normal(size=draws) * variance**0.5) for variance in plan._variances(calibrator)
    )
    return first, plan._together(calibrator, first, second)


@pytest.fixture(scope="module")
def planned():
    session = opened()
    plan = LookPurchase.of(session._buyer.calibrator, session._known.knowledge, _direct(session, LARGE))
    assert plan is not None
    return session._buyer.calibrator, replace(plan, of_beta=0.05)


def test_the_bands_of_both_looks_hold_together(planned):
    calibrator, plan = planned
    widths = bands(calibrator, plan)
    first, both = errors(plan, calibrator, 200_000, 3)
    missed = (np.abs(first) > widths[0]) | (np.abs(both) > widths[1])
    assert_at_most(int(missed.sum()), missed.size, plan.of_beta)
    assert float((np.abs(first) > widths[0]).mean()) == pytest.approx(FIRST * plan.of_beta, rel=0.2)
    with pytest.raises(AssertionError):
        assert_at_most(int((np.abs(both) > 0.9 * widths[1]).sum()), both.size, plan.of_beta)


def test_weights_chosen_after_the_draw_break_the_band(planned):
    """Whoever knows the table and weighs the worse look more is further off than the band says."""
    calibrator, plan = planned
    first, both = errors(plan, calibrator, 200_000, 4)
    variances = plan._variances(calibrator)
    draw = np.random.default_rng(4)
    second = np.rint(draw.normal(size=(2, first.size))[1] * variances[1] ** 0.5)
    chosen = np.where(np.abs(first) > np.abs(second), first, second)
    width = bands(calibrator, plan)[1]
    with pytest.raises(AssertionError):
        assert_at_most(int((np.abs(chosen) > width).sum()), chosen.size, plan.of_beta)
    assert both.size == chosen.size


def test_a_second_look_only_where_the_first_was_far_off_keeps_the_band(planned):
    """The analyst steers: looks again only where the first error was large, and keeps what is worse."""
    calibrator, plan = planned
    widths = bands(calibrator, plan)
    first, both = errors(plan, calibrator, 200_000, 5)
    far = np.abs(first) > 0.5 * widths[0]
    missed = np.where(far, np.abs(both) > widths[1], np.abs(first) > widths[0])
    assert_at_most(int(missed.sum()), missed.size, plan.of_beta)


def test_the_second_band_is_the_session_s_width_at_most():
    for alpha in (0.015, 0.02, 0.05):
        session = opened(alpha=alpha)
        calibrator = session._buyer.calibrator
        plan = LookPurchase.of(calibrator, session._known.knowledge, _direct(session, LARGE))
        assert plan is not None
        assert plan.next._width(calibrator) <= calibrator.width
        assert plan.next._width(calibrator) >= 0.99 * calibrator.width
        tails = -norm.ppf(FIRST * plan.of_beta / 2), -norm.ppf((1 - FIRST) * plan.of_beta / 2)
        assert looks._tails(plan.of_beta, 1) == pytest.approx(tails)


def test_a_guess_only_decides_how_a_count_is_bought():
    session = opened()
    knowledge = session._known.knowledge
    assert looks.predicted(knowledge, LARGE) == pytest.approx(TOWN.rows / 36)
    assert looks.predicted(knowledge, Marginal(TOWN.domain, ("town",), LARGE.where)).shape == (6,)
