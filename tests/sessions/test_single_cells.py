"""Counts of single cells that lead to the class of all marginals, and slices of released tables."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import understudy as us
from session_analysts import attributes, conjunction, curator, table_of
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.privacy.budget import Budget
from understudy.query.box import Box
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.marginals_class import MarginalsPurchase, can_buy, why_not
from understudy.sessions.marginals_rental import MarginalsSkiRental, cell_of
from understudy.sessions.opening import session as session_of

BINARY = table_of(attributes({}, {f"a{i}": 2 for i in range(7)}), 3000, 4)


def pairs(domain: Domain):
    for names in combinations(domain.names, 2):
        for cells in product(range(2), repeat=2):
            sides = {name: np.arange(2) == cell for name, cell in zip(names, cells, strict=True)}
            yield conjunction(domain, sides)


@pytest.mark.usefixtures("generous")
def test_single_counts_lead_to_the_class_of_marginals(monkeypatch):
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)
    session = session_of(curator(BINARY, seed=1), alpha=0.03, queries=1000)
    answers = [session.ask_marginal(question) for question in pairs(BINARY.domain)]
    kinds = [plan["kind"] for plan in session._buyer.journal.all()]
    assert "marginals" in kinds
    assert answers[-1].cost.units == 0
    for question, answer in zip(pairs(BINARY.domain), answers, strict=True):
        assert abs(answer.value - BINARY.exact(question)) <= answer.error <= session.width


def test_the_allowance_is_saved_for_a_class_of_marginals_that_is_worth_its_price(monkeypatch):
    """Small classes on the way would use up what may be spent ahead, and the class would be bought later."""
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)
    bought, spent = [], []
    saving = MarginalsSkiRental.is_worth_saving_for
    for rule in (lambda *_, **__: False, saving):
        monkeypatch.setattr(MarginalsSkiRental, "is_worth_saving_for", rule)
        session, since = session_of(curator(BINARY, seed=1), alpha=0.03, queries=1000), []
        for question in np.random.default_rng(3).permutation(list(pairs(BINARY.domain))):
            before = session.purchases
            session.ask_marginal(question)
            if session._buyer.policy._saved_for:
                since += [plan["kind"] for plan in session._buyer.journal.all()[before:]]
        bought.append(since)
        spent.append(session.curator.ledger.spent.units)
    assert bought[0] == []
    assert set(bought[1]) <= {"fresh", "look", "completing", "marginals"}
    assert "marginals" in bought[1]
    assert spent[1] <= spent[0]


def triples(domain: Domain, many: int):
    draw = np.random.default_rng(2)
    for _ in range(many):
        names = draw.choice(domain.names, draw.integers(2, 4), replace=False)
        yield conjunction(domain, {name: np.arange(2) == draw.integers(2) for name in names})


@pytest.mark.parametrize(("queries", "is_saved"), [(10_000, True), (2000, True), (600, False)])
def test_a_dear_class_of_marginals_is_saved_for_where_what_comes_after_will_repay_it(queries, is_saved):
    """Twenty attributes, whose triples cost more than 128 counts: by the time that they may be bought, enough of
    the questions that are expected has to be left.
    """
    many = table_of(attributes({}, {f"a{i:02}": 2 for i in range(20)}), 3000, 4)
    session = session_of(curator(many, seed=1), alpha=0.03, queries=queries)
    price = session.price_of_class(us.marginals(3)).amount
    assert price > 128 * session._buyer.policy._single_price
    saved = False
    for question in triples(many.domain, 130):
        session.ask_marginal(question)
        saved |= session._buyer.policy._saved_for == 3
    assert saved == is_saved
    if saved:
        assert "grids" not in {plan["kind"] for plan in session._buyer.journal.all()}
        rental, policy = session._buyer.policy._cells_rental, session._buyer.policy
        offer = MarginalsPurchase.of(policy._calibrator, session._known.knowledge, 3, 0.01)
        assert 130 < policy._permission.wait([offer], asked=130) < 1500
        assert not rental.is_worth_saving_for(offer.price, float("inf"), ahead=10**6)


def test_how_long_the_allowance_has_to_be_waited_for(monkeypatch):
    """As long as it was forecast at half of it, within a third; what costs nothing need not be waited for."""
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)
    monkeypatch.setattr("understudy.sessions.policy.PurchasePolicy._marginals", lambda *_, **__: None)
    monkeypatch.setattr("understudy.sessions.ski_rental.SkiRental.choose", lambda *_, **__: None)
    monkeypatch.setattr("understudy.sessions.policy.PurchasePolicy.preparations", lambda *_, **__: [])
    session = session_of(curator(BINARY, seed=1), alpha=0.03, queries=1000)
    permission, waits = session._buyer.policy._permission, []
    offer = MarginalsPurchase.of(permission.calibrator, session._known.knowledge, 2, 0.01)
    assert permission.wait([offer], asked=1) > 1000
    for asked, question in enumerate(pairs(BINARY.domain), 1):
        session.ask_marginal(question)
        waits.append(permission.wait([offer], asked=asked))
        if permission.permits([offer], asked=asked):
            break
    else:
        raise AssertionError("the class is never permitted")
    assert 2 / 3 * asked < asked // 2 + waits[asked // 2] < 4 / 3 * asked
    assert permission.wait([], asked=asked) == 0


def test_only_cells_of_few_attributes_count_as_rent():
    domain = BINARY.domain

    def box(names) -> Box:
        return Box(domain, {name: np.arange(2) == 0 for name in names})

    assert cell_of(box(domain.names[:3])).by == domain.names[:3]
    assert cell_of(box(domain.names[:4])) is None
    assert cell_of(Box(domain, {})) is None
    assert MarginalsSkiRental(of_cells=True)._questions(domain, 2) == 7 * 2 + 21 * 4
    assert MarginalsSkiRental()._questions(domain, 2) == 7 + 21


def test_a_class_of_marginals_of_twenty_attributes_can_be_bought():
    """A row of this table is in one of few cells: only the declared domain is large."""
    wide = attributes({}, {f"a{i:02}": 2 for i in range(20)})
    calibrator = Calibrator(curator(BINARY, seed=1), 90)
    calibrator.curator.domain = wide  # the price alone is asked for
    assert can_buy(calibrator, 2)
    assert not can_buy(calibrator, 4)
    assert MarginalsPurchase.kind == "marginals"


def test_a_class_of_marginals_of_as_many_sizes_as_the_demo_has_can_be_bought():
    sizes = (21, 3, 13, 5, 7, 8, 7, 15, 10, 20, 5, 8, 5, 2, 2, 2, 11)
    calibrator = Calibrator(curator(BINARY, seed=1), 90)
    calibrator.curator.domain = attributes({}, {f"a{i:02}": size for i, size in enumerate(sizes)})
    assert can_buy(calibrator, 2)
    assert can_buy(calibrator, 3)


def test_why_a_class_of_marginals_cannot_be_bought_is_named():
    with pytest.raises(QueryError, match=r"at once: the order is between 1 and 3"):
        session_of(curator(BINARY, seed=1), alpha=0.03, classes=[us.marginals(4)])
    with pytest.raises(QueryError, match="the budget has no delta; name conjunctions of a few attributes"):
        session_of(curator(BINARY, seed=1, budget=Budget.of(10, 0)), alpha=0.03, classes=[us.marginals(2)])
    calibrator = Calibrator(curator(BINARY, seed=1), 90)
    calibrator.curator.domain = attributes({}, {f"a{i:02}": 2 for i in range(40)})
    assert why_not(calibrator, 2) is None
    assert why_not(calibrator, 3) == "there are 10,700 sets of up to 3 attributes, more than 4,096"
    calibrator.curator.domain = attributes({}, {f"a{i:02}": 300 for i in range(3)})
    assert why_not(calibrator, 3) == "they have 27,000,000 cells, more than 8,388,608"


def test_a_table_tells_its_slices():
    session = session_of(curator(BINARY, seed=1), alpha=0.03, queries=1000)
    first, second, third = BINARY.domain.names[:3]
    session.ask_marginal(Marginal(BINARY.domain, (first, second, third)))
    where = LinearQuery.conjunction(BINARY.domain, {third: np.arange(2) == 1})
    found = session.ask_marginal(Marginal(BINARY.domain, (first, second), where))
    assert (found.source, found.cost.units) == ("pinned", 0)
    assert (np.abs(found.value - BINARY.exact(found.query)) <= found.error).all()
