"""Sums of noisy counts whose weights are fixed before each draw: their law, what is planned, and what it saves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from counted import curator_of
from session_analysts import attributes, conjunction, table_of
from statistical import assert_at_most
from understudy.privacy.budget import Budget
from understudy.query.box import Box
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions import planned_sums
from understudy.sessions.completing import CompletingPurchase
from understudy.sessions.direct import can_plan_sum
from understudy.sessions.opening import session as session_of
from understudy.sessions.planned_sums import FILL, WEIGHT, PlannedSums, tail, variance_of_sum
from understudy.sessions.purchase import PurchaseRequest
from understudy.sessions.session import Session

TOWN = table_of(attributes({"age": 6, "hours": 4}, {"sex": 2, "town": 4, "job": 3}), 30_000, 5)
DOMAIN = TOWN.domain
WOMEN, MEN = np.arange(2) == 0, np.arange(2) == 1
TRIALS, SHARE = 200_000, 0.02


# ---- the law


def sums(draw: np.random.Generator, *, spoilt: str = "") -> int:
    """How many of many sums leave their band, against an analyst who knows all noise that was drawn before.

    Each sees the first term, then chooses how precise the second one is, so that its variance depends on that
    draw, and the third makes up what is missing of V. `spoilt` breaks a condition of the theorem.
    """
    width = 1000.0
    most = variance_of_sum(width, WEIGHT, SHARE, 1)
    spread = width - 1 - WEIGHT
    first_variance = 0.9 * most
    first = draw.normal(0, first_variance**0.5, TRIALS)
    low, high = 0.5 * most, 1.3 * most
    second_variance = np.where(np.abs(first) > first_variance**0.5, low, high)
    choices = 5 if spoilt == "chosen after the draw" else 1
    drawn = draw.normal(0, second_variance**0.5, (choices, TRIALS))
    second = drawn[np.argmax(np.sign(first) * drawn, axis=0), np.arange(TRIALS)]
    told = 0.8 if spoilt == "variance understated" else 1.0
    left = most - told * WEIGHT**2 * (first_variance + second_variance)
    third_variance = left / (1 - WEIGHT) ** 2 * (1 - FILL * draw.random(TRIALS)) / told
    third = draw.normal(0, third_variance**0.5)
    found = WEIGHT * (first + second) + (1 - WEIGHT) * third
    return int((np.abs(found) > spread).sum())


def test_a_planned_sum_is_within_its_band_whoever_decides_its_terms():
    failures = sums(np.random.default_rng(1))
    assert_at_most(failures, TRIALS, SHARE)
    assert failures > 0.9 * SHARE * TRIALS  # and the band is no wider than it has to be


@pytest.mark.parametrize("spoilt", ["chosen after the draw", "variance understated"])
def test_a_sum_that_was_not_planned_is_noticed(spoilt):
    with pytest.raises(AssertionError, match="failures"):
        assert_at_most(sums(np.random.default_rng(2), spoilt=spoilt), TRIALS, SHARE)


def test_the_band_of_several_cells_shares_the_failures():
    for cells in (1, 7, 1000):
        z = tail(SHARE, cells)
        assert cells * 2 * norm.sf(z) <= SHARE
        assert cells * 2 * norm.sf(z) >= 0.97 * SHARE


# ---- which sums are planned


def box(**sides: np.ndarray) -> Box:
    return Box(DOMAIN, sides)


def bought(book: PlannedSums, where: Box, value: float, *, share: float = 0.01) -> None:
    book.begin((), where, share=share, weight=WEIGHT)
    book.finish((), where, np.array(value), 100.0)


THREE = {
    "a part": (box(town=np.arange(4) < 2), box(town=np.arange(4) < 1), box(town=np.arange(4) == 1), 7.0),
    "a whole": (box(town=np.arange(4) < 1), box(town=np.arange(4) < 2), box(town=np.arange(4) == 1), -7.0),
    "more conditions": (
        box(job=np.arange(3) == 1),
        box(job=np.arange(3) == 1, sex=WOMEN),
        box(job=np.arange(3) == 1, sex=MEN),
        7.0,
    ),
    "both halves": (
        box(job=np.arange(3) == 1, sex=WOMEN),
        box(job=np.arange(3) == 1, sex=MEN),
        box(job=np.arange(3) == 1),
        13.0,
    ),
}


@pytest.mark.parametrize("name", THREE)
def test_two_boxes_tell_of_the_third(name):
    first, second, third, estimate = THREE[name]
    book = PlannedSums(DOMAIN)
    bought(book, first, 10.0)
    bought(book, second, 3.0)
    known = book.terms((), third, 1000.0)
    assert known is not None
    assert float(known.estimate) == estimate
    most = variance_of_sum(1000.0, WEIGHT, 0.01, 1)
    assert WEIGHT**2 * 200 + (1 - WEIGHT) ** 2 * known.variance == pytest.approx(most)


def test_every_purchase_plans_one_sum_and_none_without_a_share():
    book = PlannedSums(DOMAIN)
    bought(book, box(job=np.arange(3) == 0), 10.0)
    bought(book, box(job=np.arange(3) == 0, sex=WOMEN), 3.0, share=0.0)
    bought(book, box(job=np.arange(3) == 0, town=np.arange(4) == 0), 2.0, share=0.0)
    assert book.terms((), box(job=np.arange(3) == 0, sex=MEN), 1000.0) is not None
    assert book.terms((), box(job=np.arange(3) == 0, town=np.arange(4) > 0), 1000.0) is None


def test_a_sum_is_completed_once():
    book = PlannedSums(DOMAIN)
    first, second, third, _ = THREE["a part"]
    bought(book, first, 10.0)
    bought(book, second, 3.0)
    book.completed((), third, np.array(7.0), 50.0)
    assert book.terms((), third, 1000.0) is None


def test_what_was_drawn_before_becomes_no_second_term():
    """Its noise is known to whoever asks now: the weight of a draw is fixed before it."""
    first, second, third, _ = THREE["a part"]
    book = PlannedSums(DOMAIN)
    bought(book, second, 3.0, share=0.0)
    bought(book, first, 10.0)
    assert book.terms((), third, 1000.0) is None
    bought(book, second, 4.0)
    assert book.terms((), third, 1000.0) is None


def test_forgotten_counts_take_their_sums_with_them(monkeypatch):
    monkeypatch.setattr(planned_sums, "MOST_OBSERVED", 2)
    first, second, third, _ = THREE["a part"]
    book = PlannedSums(DOMAIN)
    bought(book, first, 10.0)
    bought(book, second, 3.0)
    assert book.terms((), third, 1000.0) is not None
    bought(book, box(sex=MEN), 1.0)
    assert book.terms((), third, 1000.0) is None
    bought(book, first, 11.0)
    assert book.terms((), third, 1000.0) is None


def test_a_copy_is_added_to_alone():
    book = PlannedSums(DOMAIN)
    first, second, third, _ = THREE["a part"]
    bought(book, first, 10.0)
    other = book.copy()
    bought(other, second, 3.0)
    assert other.terms((), third, 1000.0) is not None
    assert book.terms((), third, 1000.0) is None


# ---- in a session


def opened(curator=None, *, seed: int = 1, **terms) -> Session:
    one = curator or curator_of(TOWN, epsilon=1000.0, delta=1e-6, seed=seed)
    return session_of(one, **({"alpha": 0.02, "beta": 1e-6, "queries": 1000} | terms))


def in_threes(groups: int, seed: int = 1) -> list[Marginal]:
    """All, the women and the men of random large groups."""
    draw, found = np.random.default_rng(seed), []
    for _ in range(groups):
        names = draw.choice(["age", "hours", "town", "job"], 2, replace=False)
        base = {
            str(name): np.arange(DOMAIN[str(name)].size) != draw.integers(DOMAIN[str(name)].size)
            for name in names
        }
        found += [conjunction(DOMAIN, base | side) for side in ({}, {"sex": WOMEN}, {"sex": MEN})]
    return found


def plans(session: Session, kind: str) -> list[dict]:
    return [plan for plan in session._buyer.journal.all() if plan["kind"] == kind]


def test_the_third_of_three_boxes_buys_what_is_missing():
    session = opened()
    for question in in_threes(8):
        before, left = session.price(question), session._buyer.policy.beta.left
        count = len(plans(session, "completing"))
        answer = session.ask_marginal(question)
        assert answer.cost.amount <= before.amount
        assert (np.abs(answer.value - TOWN.exact(question)) <= answer.error).all()
        assert (answer.error <= session.width).all()
        if len(plans(session, "completing")) > count:
            assert session._buyer.policy.beta.left == left  # its share was taken with the first term
    completing, fresh = plans(session, "completing"), plans(session, "fresh")
    assert len(completing) >= 2
    cheapest = min(Fraction(plan["rho"]) for plan in fresh)
    assert all(Fraction(plan["rho"]) < 0.8 * cheapest for plan in completing)


@pytest.mark.parametrize("filter", ["zcdp", "gdp", "renyi"])
def test_under_every_filter_what_completes_a_sum_tells_it_and_is_bought_once(filter):
    """Noise that is a rounded normal number has a larger variance than the normal one, by which sums are made."""
    curator = curator_of(TOWN, budget=Budget.of(1000, 1e-6, filter=filter), seed=1)
    session = opened(curator, noise="gaussian", beta=1e-9)
    make, told = CompletingPurchase.make, []

    def seen(self, *given):
        result = make(self, *given)
        told.append(result.answer is not None)
        assert all(told)  # else it is bought again and again
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompletingPurchase, "make", seen)
        for question in in_threes(8):
            answer = session.ask_marginal(question)
            assert (np.abs(answer.value - TOWN.exact(question)) <= answer.error).all()
    assert len(told) >= 2


def test_a_breakdown_is_completed_cell_by_cell():
    session, by = opened(), ("hours",)
    for question in in_threes(7):
        session.ask_marginal(
            Marginal(
                DOMAIN,
                by,
                LinearQuery.conjunction(
                    DOMAIN, {name: cells for name, cells in _sides(question).items() if name not in by}
                ),
            )
        )
    assert plans(session, "completing")


def _sides(question: Marginal) -> dict[str, np.ndarray]:
    found = Box.of(question.where)
    assert found is not None
    return dict(found.sides)


def test_another_process_knows_the_same_sums():
    curator, asked = curator_of(TOWN, epsilon=1000.0, delta=1e-6, seed=1), in_threes(8)
    first = opened(curator, name="one")
    for question in asked[:-1]:
        first.ask_marginal(question)
    assert plans(first, "completing")
    again = opened(curator, name="one")
    mine, theirs = first._known.knowledge.sums, again._known.knowledge.sums
    assert (mine.recent, mine._planned, mine._taken) == (theirs.recent, theirs._planned, theirs._taken)
    assert again.price(asked[-1]) == first.price(asked[-1])


def test_sums_are_not_planned_for_whoever_asks_for_none():
    session, draw = opened(), np.random.default_rng(3)
    for _ in range(25):
        sides = {"age": np.arange(6) != draw.integers(6), "town": np.arange(4) != draw.integers(4)}
        session.ask_marginal(conjunction(DOMAIN, sides))
    assert not any("sum" in plan for plan in session._buyer.journal.all())


@pytest.mark.parametrize(
    ("rows", "delta", "moment"), [(30_000, 0.0, False), (1000, 1e-6, False), (30_000, 1e-6, True)]
)
def test_sums_need_normal_noise_wide_bands_and_boxes(rows, delta, moment):
    session = opened(curator_of(table_of(DOMAIN, rows, 3), epsilon=1000.0, delta=delta, seed=1))
    either = {"age": np.arange(6) < 2, "hours": np.arange(4) < 1}
    cells = np.logical_or.outer(either["age"], either["hours"]).astype(float)
    asked = (
        Marginal.of(LinearQuery(DOMAIN, (Factor(("age", "hours"), cells),))) if moment else in_threes(1)[0]
    )
    assert not can_plan_sum(session._buyer.calibrator, asked)
    assert can_plan_sum(opened()._buyer.calibrator, in_threes(1)[0])


def test_sums_cost_no_more_than_none(monkeypatch):
    """Planned sums make a count a fiftieth dearer, and are planned where they save more than that."""
    for questions, least in ((in_threes(7), 0.9), (in_threes(7)[::2], 0.97)):
        spent = []
        for often in (planned_sums.OFTEN, np.inf):
            monkeypatch.setattr(planned_sums, "OFTEN", often)
            session = opened()
            for question in questions:
                session.ask_marginal(question)
            spent.append(session.curator.ledger.spent.units)
        assert spent[0] <= 1.005 * spent[1]
        assert spent[0] >= least * spent[1]


def test_noise_other_than_planned_teaches_nothing():
    session = opened()
    asked = in_threes(8)
    for question in asked:
        known = session._known.knowledge
        offer = CompletingPurchase.of(session._buyer.calibrator, known, question)
        if offer is not None:
            break
        session.ask_marginal(question)
    else:
        raise AssertionError("no sum was planned")
    box_ = Box.of(question.where)
    assert box_ is not None
    wrong = CompletingPurchase(question, type(offer.price)("rho", offer.price.amount / 2))
    draft = known.copy()
    result = wrong.make(session._buyer.calibrator, draft, PurchaseRequest("wrong", ""))
    assert result.answer is None
    assert draft.interval(box_) == known.interval(box_)
    assert CompletingPurchase.of(session._buyer.calibrator, draft, question) is None  # it is not sold again
