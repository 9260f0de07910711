"""Breakdowns of which some cells are known: the others alone are paid for."""

from __future__ import annotations

import numpy as np
import pytest

from session_analysts import attributes, conjunction, curator, table_of
from understudy.privacy.joint import Joint
from understudy.query.box import Box
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.asking import Asking
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.cell_loads import costs_no_cell_more
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.looks import LookPurchase
from understudy.sessions.opening import session as session_of
from understudy.sessions.session import Session
from understudy.sessions.unknown_cells import looked_at, unknown_part

TABLE = table_of(attributes({}, {"sex": 2, "job": 3, "town": 7, "kin": 4}), 6000, 3)
DOMAIN = TABLE.domain
BETA = 1e-11


def opened(seed: int = 1, **terms) -> Session:
    return session_of(curator(TABLE, seed=seed), alpha=0.02, beta=BETA, queries=100, **terms)


def cell(name: str, place: int, **others: int) -> Marginal:
    sides = {n: np.arange(DOMAIN[n].size) == i for n, i in {name: place, **others}.items()}
    return conjunction(DOMAIN, sides)


def breakdown(name: str, **where: int) -> Marginal:
    sides = {n: np.arange(DOMAIN[n].size) == i for n, i in where.items()}
    return Marginal(DOMAIN, (name,), LinearQuery.conjunction(DOMAIN, sides))


def box(name: str, place: int) -> Box:
    return Box(DOMAIN, {name: np.arange(DOMAIN[name].size) == place})


def assert_within(session: Session, question: Marginal, answer) -> None:
    assert (np.abs(answer.value - TABLE.exact(question)) <= answer.error).all()
    assert (answer.error <= session.width).all()


@pytest.mark.parametrize("place", [0, 1])
def test_a_breakdown_into_two_follows_from_the_count_of_one(place):
    session = opened()
    session.ask_marginal(cell("sex", place))
    answer = session.ask_marginal(breakdown("sex"))
    assert answer.source == "implied"
    assert answer.cost.units == 0
    assert_within(session, breakdown("sex"), answer)


def test_a_breakdown_whose_cells_were_all_counted_costs_nothing():
    session = opened()
    for place in range(3):
        session.ask_marginal(cell("job", place, town=6))
    answer = session.ask_marginal(breakdown("job", town=6))
    assert answer.source == "pinned"
    assert answer.cost.units == 0
    assert_within(session, breakdown("job", town=6), answer)


@pytest.mark.parametrize("seed", range(5))
def test_the_one_cell_that_is_not_known_costs_as_a_count(seed):
    session = opened(seed)
    for place in (0, 1):
        session.ask_marginal(cell("job", place))
    asked, step = breakdown("job"), session._buyer.journal.length
    answer = session.ask_marginal(asked)
    bought = session._buyer.journal.all()[step:]
    assert bought
    assert all(plan["part"] for plan in bought)
    single = session._buyer.policy.counts(session._buyer.known.knowledge, cell("town", 6, kin=3), asked=4)
    assert sum(float(session._buyer.policy.read(p).price.amount) for p in bought) < 1.3 * sum(
        float(price.amount) for price in getattr(single, "prices", (single.price,))
    )
    assert_within(session, asked, answer)
    last = session._buyer.known.knowledge.released[-1]
    assert last.by == ()
    assert last.where.key == box("job", 2).key
    assert session.ask_marginal(asked).source == "repeat"


def test_direct_answers_are_of_all_cells():
    session = opened(mechanism="direct")
    for place in (0, 1):
        session.ask_marginal(cell("job", place))
    session.ask_marginal(breakdown("job"))
    assert "part" not in session._buyer.journal.all()[-1]


def test_the_part_is_the_count_of_the_one_cell():
    asked = Marginal(DOMAIN, ("job", "town"), cell("sex", 1).where)
    paid = np.zeros(asked.shape, bool)
    paid[2, 3] = True
    part = unknown_part(asked, paid)
    assert part is not None
    assert part.by == ()
    assert TABLE.exact(part) == TABLE.exact(asked)[2, 3]
    assert unknown_part(cell("sex", 1), np.ones((), bool)) is None


def test_the_part_of_several_cells_is_a_breakdown_within_their_values():
    asked = Marginal(DOMAIN, ("job", "town"), cell("sex", 1).where)
    paid = np.zeros(asked.shape, bool)
    paid[2, 3] = paid[1, 5] = True
    part, there = unknown_part(asked, paid), looked_at(paid)
    assert part is not None
    assert part.by == asked.by
    assert there.sum() == 4
    assert (there & paid == paid).all()
    assert (TABLE.exact(part) == np.where(there, TABLE.exact(asked), 0)).all()
    paid[0] = True
    narrower = unknown_part(asked, paid)  # all jobs and all towns: nothing is left out
    assert narrower is None
    within = Marginal(DOMAIN, ("town",), LinearQuery.conjunction(DOMAIN, {"town": np.arange(7) < 3}))
    assert unknown_part(within, np.arange(7) < 3) is None  # the condition leaves the others out already


@pytest.mark.parametrize("seed", range(5))
def test_several_cells_that_are_not_known_are_paid_by_the_rows_in_them(seed):
    session = opened(seed)
    known = (2, 5)
    for place in known:
        session.ask_marginal(cell("town", place, sex=0))
    asked, step = breakdown("town", sex=0), session._buyer.journal.length
    answer = session.ask_marginal(asked)
    bought = [session._buyer.policy.read(plan) for plan in session._buyer.journal.all()[step:]]
    assert bought
    assert all(purchase.in_part for purchase in bought)
    unknown = ~np.isin(np.arange(7), known)
    assert all((TABLE.exact(purchase.measured) == TABLE.exact(asked) * unknown).all() for purchase in bought)
    assert_within(session, asked, answer)
    last = session._buyer.known.knowledge.released[-1]
    assert last.by == ("town",)
    assert last.where.key == Box(DOMAIN, {"sex": np.arange(2) == 0, "town": unknown}).key
    assert (last.counts[list(known)] == 0).all()
    assert session.ask_marginal(asked).source == "repeat"


def test_a_part_of_several_cells_costs_what_the_whole_does_to_the_rows_in_it_and_others_nothing():
    calibrator = Calibrator(curator(TABLE, seed=1), 120)
    joint = Joint(calibrator.curator.ledger.budget)
    asked, paid = breakdown("town", sex=0), np.arange(7) > 3
    whole = DirectPurchase(asked, paid, 1e-3, calibrator.price_of_counts(asked, 1e-3, 3))
    part = whole.of_unknown(calibrator)
    assert part is not None
    assert part.price == whole.price
    events = part.event(calibrator), whole.event(calibrator)
    assert costs_no_cell_more(joint, *events)
    assert not costs_no_cell_more(joint, *events[::-1])


def test_plans_say_that_a_part_is_looked_at_and_older_ones_do_not():
    session = opened()
    calibrator, known = session._buyer.calibrator, session._buyer.known.knowledge
    known = known.copy()
    for place in (0, 1):
        known.learn(box("job", place), (500.0, 600.0))
    whole = DirectPurchase.of(calibrator, known, breakdown("job"), 1e-3)
    part = whole.of_unknown(calibrator)
    assert part is not None
    assert float(part.price.amount) == pytest.approx(float(whole.price.amount) / 2, rel=0.01)
    again = DirectPurchase.read(calibrator, part.plain())
    assert again.in_part
    assert again.measured == part.measured
    assert again.event(calibrator) == part.event(calibrator)
    assert not DirectPurchase.read(calibrator, whole.plain()).in_part
    look = LookPurchase.split(calibrator, part, 0.5)
    assert LookPurchase.read(calibrator, look.plain()).measured == part.measured
    assert sum(float(price.amount) for price in look.prices) < 1.1 * float(part.price.amount)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("parts", [(0.3,), (0.6,), (0.3, 0.45, 0.7)])
def test_all_looks_at_a_part_answer_the_whole_breakdown(seed, parts):
    session = opened(seed)
    for place in (0, 1):
        session.ask_marginal(cell("job", place))
    buyer = session._buyer
    direct = DirectPurchase.of(buyer.calibrator, buyer.known.knowledge, breakdown("job"), 1e-12)
    unknown = direct.of_unknown(buyer.calibrator)
    assert unknown is not None
    look = LookPurchase.split(buyer.calibrator, unknown, *parts)
    for purchase in (look, *look.later):
        result = buyer.make(purchase, Asking("", buyer.nothing))
    assert result.answer is not None
    assert_within(session, breakdown("job"), result.answer)


def test_a_part_is_looked_at_only_where_the_ledger_accounts_no_more_for_it_at_any_cell():
    """A region is taken by its three narrowest attributes, and a wide count by everybody."""
    calibrator = Calibrator(curator(TABLE, seed=1), 120)
    joint = Joint(calibrator.curator.ledger.budget)

    def is_no_dearer(asked: Marginal, place: int) -> bool:
        paid = np.arange(asked.size) == place
        whole = DirectPurchase(asked, paid, 1e-3, calibrator.price_of_counts(asked, 1e-3, 1))
        part = whole.of_unknown(calibrator)
        assert part is not None
        return costs_no_cell_more(joint, part.event(calibrator), whole.of_all(calibrator).event(calibrator))

    assert is_no_dearer(breakdown("town"), 2)
    assert is_no_dearer(breakdown("sex"), 0)  # wide, of everybody
    assert is_no_dearer(breakdown("town", job=1), 2)
    wide = Marginal(DOMAIN, ("sex",), LinearQuery.conjunction(DOMAIN, {"town": np.arange(7) > 0}))
    assert not is_no_dearer(wide, 0)  # .43 of all cells, and the breakdown is not of everybody
    assert not is_no_dearer(breakdown("town", job=1, kin=0, sex=1), 2)  # four attributes: sex is left out
