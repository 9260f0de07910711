"""Counts in several looks: what they cost, what later ones are made of, and that their bands hold together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from counted import Cells, curator_of
from session_analysts import attributes, conjunction, table_of
from statistical import assert_at_most
from understudy.privacy.cost import UNITS
from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.sessions import looks
from understudy.sessions.asking import Asking
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.looks import FIRST, LEAST_WIDTH, LOOKS, LookPurchase
from understudy.sessions.opening import session as session_of
from understudy.sessions.session import Session

TOWN = table_of(attributes({"age": 12}, {"sex": 3, "town": 6}), 30_000, 5)
"""At α = 0.02 an answer is within 600 people."""

RARE = conjunction(TOWN.domain, {"age": np.arange(12) == 0, "sex": np.arange(3) == 2})
LARGE = conjunction(TOWN.domain, {"age": np.arange(12) == 7, "sex": np.arange(3) == 1})
"""Expected to be near 0, and some thousands."""

LARGE_BOX = Box(TOWN.domain, {"age": np.arange(12) == 7, "sex": np.arange(3) == 1})


def opened(*, seed: int = 1, truth: Cells = TOWN, name: str = "", **terms) -> Session:
    one = curator_of(truth, epsilon=1000.0, delta=1e-6, seed=seed)
    return session_of(one, **({"alpha": 0.02, "queries": 1000, "name": name} | terms))


def kinds(session: Session) -> list[tuple[str, int, int]]:
    """What was bought, and of looks from which of the planned ones to which."""
    plans = session._buyer.journal.all()
    return [(plan["kind"], plan.get("made", 0), plan.get("upto", 0)) for plan in plans]


def test_a_small_count_is_bought_in_one_look_for_about_a_third():
    session, direct = opened(), opened(mechanism="direct")
    found, alone = session.ask_marginal(RARE), direct.ask_marginal(RARE)
    assert kinds(session) == [("look", 0, 1)]
    assert found.source == "measured"
    assert found.error <= session.width
    assert abs(found.value - TOWN.exact(RARE)) <= found.error
    assert 0.15 < found.cost.units / alone.cost.units < 0.4
    assert session.ask_marginal(RARE).source == "repeat"


def test_a_count_that_needs_all_looks_costs_little_more_than_in_one():
    """The first tells that no early look can be enough: the others are made at once."""
    session = opened(beta=0.01)
    first = looked(session, LARGE)
    assert first.is_first
    assert [look.share for look in first.later] == [0.0] * (LOOKS - 1)
    found = session.ask_marginal(LARGE)
    assert kinds(session) == [("look", 0, 1), ("look", 1, LOOKS)]
    assert found.error <= session.width
    one = session.curator.ledger.budget.price(
        _direct(opened(beta=0.01), LARGE).event(session._buyer.calibrator)
    )
    assert found.cost.units <= 1.04 * one.units
    assert session.price(LARGE).amount == 0.0


def _direct(session: Session, marginal: Marginal) -> DirectPurchase:
    return session._buyer.policy.direct(session._known.knowledge, marginal, asked=1)


def looked(session: Session, marginal: Marginal) -> LookPurchase:
    found = LookPurchase.of(session._buyer.calibrator, session._known.knowledge, _direct(session, marginal))
    assert found is not None
    return found


@pytest.mark.parametrize(("off", "upto"), [(0.1, 2), (0.5, 3), (1.9, LOOKS)])
def test_the_next_look_is_the_first_that_may_be_enough(off, upto):
    """What was told so far is so many widths from 0, and a deviation more."""
    session = opened()
    calibrator, knowledge, first = session._buyer.calibrator, session._known.knowledge, looked(session, RARE)
    noisy = np.array(off * calibrator.width + first._deviation(calibrator, 1))
    following = first.following(calibrator, knowledge, noisy)
    assert (following.made, following.upto) == (1, upto)
    assert following.price.amount == sum(price.amount for price in first.prices[1:upto])


def test_the_price_is_that_of_all_looks():
    session = opened()
    quoted = session.price(RARE).amount
    assert session.ask_marginal(RARE).cost.amount < 0.4 * quoted
    assert session.price(LARGE).amount * UNITS >= session.ask_marginal(LARGE).cost.units


def test_the_share_of_beta_is_taken_once():
    session = opened()
    before = session._buyer.policy.beta.left
    session.ask_marginal(LARGE)
    first, second = session._buyer.journal.all()
    assert session._buyer.policy.beta.left == pytest.approx(before - first["of beta"])
    assert session._buyer.policy.beta.counts_bought == 1
    assert first["looks"] == second["looks"]
    assert session._buyer.policy.read(second).share == 0.0


def test_plans_of_two_looks_are_read_as_they_were_written():
    """Older plans have two, and say which of them they are of."""
    session = opened()
    calibrator = session._buyer.calibrator
    first = LookPurchase.split(calibrator, _direct(session, LARGE), 0.5)
    for look, second in zip((first, *first.later), (False, True), strict=True):
        old = {key: value for key, value in look.plain().items() if key not in ("made", "upto")}
        read = LookPurchase.read(calibrator, {**old, "second": second})
        assert (read.plain(), read._width(calibrator)) == (look.plain(), look._width(calibrator))
        assert read.plain() == LookPurchase.read(calibrator, look.plain()).plain()


def test_under_a_pure_epsilon_and_on_small_tables_counts_are_bought_in_one_look():
    pure = session_of(curator_of(TOWN, epsilon=1000.0, delta=0, seed=1), alpha=0.02)
    pure.ask_marginal(RARE)
    assert "look" not in {kind for kind, *_ in kinds(pure)}
    narrow = opened(alpha=(LEAST_WIDTH - 1) / TOWN.rows)
    narrow.ask_marginal(RARE)
    assert {kind for kind, *_ in kinds(narrow)} == {"fresh"}


@pytest.mark.parametrize("beta", [0.28, 0.3, 0.5, 0.9, 0.999])
def test_a_large_share_of_beta_leaves_no_early_look_and_the_count_is_bought_in_one(beta):
    session = opened(beta=beta, queries=1, noise="gaussian")
    answer = session.ask_marginal(RARE)
    assert kinds(session) == [("look", 0, 1) if beta < 0.29 else ("fresh", 0, 0)]
    assert answer.error <= session.width


def test_all_looks_are_weighed_by_their_precisions():
    session = opened()
    session.ask_marginal(LARGE)
    first, second = (session._buyer.policy.read(plan) for plan in session._buyer.journal.all())
    one, other = (float(look.price.amount) for look in (first, second))
    seen, both = (float(kept.counts) for kept in session._known.knowledge.released)
    again = (both * (one + other) - one * seen) / other
    assert again == pytest.approx(round(again), abs=1e-6)  # a noisy count of its own, in whole people
    assert session.ask_marginal(LARGE).noisy == both
    assert not second.is_first
    assert second.is_last


def test_a_look_that_does_not_follow_what_is_known_tells_nothing():
    session = opened()
    buyer, first = session._buyer, looked(session, LARGE)
    buyer.make(first, Asking("", buyer.nothing))
    before = buyer.known.knowledge.interval(LARGE_BOX)
    assert buyer.make(first.later[1], Asking("", buyer.nothing)).answer is None  # the second was left out
    assert buyer.known.knowledge.interval(LARGE_BOX) == before


def test_a_session_that_was_stopped_between_two_looks_makes_the_rest_alone(monkeypatch):
    session, make = opened(name="mine"), LookPurchase.make

    def stopped(self, *rest):
        if not self.is_first:
            raise KeyboardInterrupt
        return make(self, *rest)

    monkeypatch.setattr(LookPurchase, "make", stopped)
    with pytest.raises(KeyboardInterrupt):
        session.ask_marginal(LARGE)
    monkeypatch.undo()
    assert kinds(session) == [("look", 0, 1)]
    again = session_of(session.curator, name="mine")
    found = again.ask_marginal(LARGE)
    assert kinds(again) == [("look", 0, 1), ("look", 1, LOOKS)]
    assert found.error <= again.width
    assert found.cost.units < again.curator.ledger.spent.units


# ---- the band

TRIALS = 200_000


def each(plan: LookPurchase) -> list[LookPurchase]:
    """All planned looks, one by one."""
    return [replace(plan, made=made, upto=made + 1) for made in range(len(plan.prices))]


def bands(calibrator: Calibrator, plan: LookPurchase) -> list[float]:
    return [look._width(calibrator) for look in each(plan)]


def drawn(look: LookPurchase, calibrator: Calibrator, draw: np.random.Generator) -> np.ndarray:
    """The errors of one look by itself: normal noise, rounded to whole people."""
    mechanism, _ = calibrator.curator.calibration.mechanism(look.measured, look.price)
    return np.rint(draw.normal(size=TRIALS) * float(mechanism.variance) ** 0.5)


def errors(plan: LookPurchase, calibrator: Calibrator, seed: int) -> list[np.ndarray]:
    """The errors after each look, together with those before it."""
    draw, found = np.random.default_rng(seed), list[np.ndarray]()
    for look in each(plan):
        new = drawn(look, calibrator, draw)
        found.append(look._together(found[-1], new) if found else new)
    return found


@pytest.fixture(scope="module")
def planned():
    session = opened()
    return session._buyer.calibrator, replace(looked(session, LARGE), of_beta=0.05)


def misses(found: list[np.ndarray], widths: list[float]) -> np.ndarray:
    """Whether any of the errors is beyond its band."""
    return np.any([np.abs(off) > width for off, width in zip(found, widths, strict=True)], axis=0)


def test_the_bands_of_all_looks_hold_together(planned):
    calibrator, plan = planned
    found, widths = errors(plan, calibrator, 3), bands(calibrator, plan)
    missed = misses(found, widths)
    assert len(found) == LOOKS
    assert_at_most(int(missed.sum()), missed.size, plan.of_beta)
    for off, width in zip(found[:-1], widths[:-1], strict=True):
        part = float((np.abs(off) > width).mean())
        assert part == pytest.approx(FIRST / (LOOKS - 1) * plan.of_beta, rel=0.2)
    with pytest.raises(AssertionError):
        assert_at_most(int((np.abs(found[-1]) > 0.9 * widths[-1]).sum()), TRIALS, plan.of_beta)


def test_a_whole_share_for_each_look_is_noticed(planned, monkeypatch):
    """What nobody notices who looks at one band alone."""
    calibrator, plan = planned
    found = errors(plan, calibrator, 3)
    monkeypatch.setattr(looks, "_tails", lambda share, cells, looks: [-norm.ppf(share / cells / 2)] * looks)
    widths = [plan._half_width(calibrator, upto) for upto in range(1, LOOKS + 1)]
    for off, width in zip(found, widths, strict=True):
        assert_at_most(int((np.abs(off) > width).sum()), TRIALS, plan.of_beta)
    with pytest.raises(AssertionError):
        assert_at_most(int(misses(found, widths).sum()), TRIALS, plan.of_beta)


def test_weights_chosen_after_the_draw_break_the_band(planned):
    """Whoever knows the table and takes the worst look alone is further off than the band says."""
    calibrator, plan = planned
    draw = np.random.default_rng(4)
    alone = np.array([drawn(look, calibrator, draw) for look in each(plan)])
    chosen = np.take_along_axis(alone, np.abs(alone).argmax(axis=0)[None], axis=0)[0]
    missed = np.abs(chosen) > bands(calibrator, plan)[-1]
    with pytest.raises(AssertionError):
        assert_at_most(int(missed.sum()), chosen.size, plan.of_beta)


def test_looks_only_where_those_before_were_far_off_keep_the_bands(planned):
    """The analyst steers: looks again only where the last error was large, and keeps what is worst."""
    calibrator, plan = planned
    found, widths = errors(plan, calibrator, 5), bands(calibrator, plan)
    goes_on, missed = np.ones(TRIALS, bool), np.zeros(TRIALS, bool)
    for off, width in zip(found, widths, strict=True):
        missed |= goes_on & (np.abs(off) > width)
        goes_on &= np.abs(off) > 0.5 * width
    assert_at_most(int(missed.sum()), missed.size, plan.of_beta)


def test_looks_that_are_made_at_once_keep_the_bands(planned):
    """The analyst steers: where the first error is positive the others are made at once, and else one by one."""
    calibrator, plan = planned
    found, widths = errors(plan, calibrator, 6), bands(calibrator, plan)
    rest = replace(plan, made=1, upto=LOOKS)
    at_once = rest._together(found[0], drawn(rest, calibrator, np.random.default_rng(7)))
    last = np.where(found[0] > 0, at_once, found[-1])
    missed = misses([found[0], last], [widths[0], widths[-1]]) | (
        (found[0] <= 0) & misses(found[1:-1], widths[1:-1])
    )
    assert_at_most(int(missed.sum()), missed.size, plan.of_beta)
    assert float(last.std()) == pytest.approx(plan._deviation(calibrator, LOOKS), rel=0.01)
    halved = np.where(found[0] > 0, found[0], found[-1]) / 2 + last / 2  # as if both were as precise
    with pytest.raises(AssertionError):
        assert_at_most(int((np.abs(halved) > widths[-1]).sum()), TRIALS, plan.of_beta)


def test_looks_made_at_once_have_the_precision_of_those_made_one_by_one(planned):
    calibrator, plan = planned

    def precision(look: LookPurchase) -> float:
        return 1 / float(calibrator.curator.calibration.mechanism(look.measured, look.price)[0].variance)

    for made in range(LOOKS):
        for upto in range(made + 1, LOOKS + 1):
            single = sum(precision(look) for look in each(plan)[made:upto])
            assert precision(replace(plan, made=made, upto=upto)) == pytest.approx(single, rel=1e-5)
    assert plan._deviation(calibrator, LOOKS) ** -2 == pytest.approx(
        sum(map(precision, each(plan))), rel=1e-5
    )


def test_the_last_band_is_the_session_s_width_at_most():
    for alpha in (0.015, 0.02, 0.05):
        session = opened(alpha=alpha)
        calibrator, plan = session._buyer.calibrator, looked(session, LARGE)
        last = plan.later[-1]
        assert last._width(calibrator) <= calibrator.width
        assert last._width(calibrator) >= 0.99 * calibrator.width
        early = -norm.ppf(FIRST / (LOOKS - 1) * plan.of_beta / 2)
        tails = [early] * (LOOKS - 1) + [-norm.ppf((1 - FIRST) * plan.of_beta / 2)]
        assert looks._tails(plan.of_beta, 1, LOOKS) == pytest.approx(tails)


def test_a_guess_only_decides_how_a_count_is_bought():
    session = opened()
    knowledge = session._known.knowledge
    assert looks.predicted(knowledge, LARGE) == pytest.approx(TOWN.rows / 36)
    assert looks.predicted(knowledge, Marginal(TOWN.domain, ("town",), LARGE.where)).shape == (6,)
