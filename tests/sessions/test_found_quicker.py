"""What a session keeps, or finds in a shorter way, to be quick: the same as found anew, and never too many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from counted import curator_of
from session_analysts import attributes, conjunction, table_of
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.box import Box, Grid
from understudy.query.linear import LinearQuery
from understudy.sessions import calibrator as calibrators
from understudy.sessions import marginals_class
from understudy.sessions.box_bounds import BoxBounds
from understudy.sessions.family_product import product_of
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.one_way import OneWay
from understudy.sessions.opening import session as session_of

DOMAIN = Domain(
    (Bins.integers("age", 0, 4), Categories(name="sex", values=("F", "M")), Bins.integers("x", 0, 69))
)
GRID = Grid(DOMAIN)
TOWN = table_of(attributes({"age": 12}, {"sex": 3, "town": 6}), 30_000, 5)


@st.composite
def boxes(draw):
    sides = {}
    for name in draw(st.sets(st.sampled_from(DOMAIN.names))):
        size = DOMAIN[name].size
        cells = draw(st.lists(st.booleans(), min_size=size, max_size=size).filter(any))
        sides[name] = np.array(cells)
    return Box.of(LinearQuery.conjunction(DOMAIN, sides))


@given(
    learnt=st.lists(st.tuples(boxes(), st.integers(0, 50), st.integers(50, 99)), max_size=12), asked=boxes()
)
@settings(max_examples=60)
def test_one_box_is_bounded_as_one_of_several(learnt, asked):
    bounds = BoxBounds(GRID)
    assert not bounds
    for box, low, high in learnt:
        bounds.learn(box, (float(low), float(high)))
    low, high = bounds.intervals([asked])
    assert bounds.interval(asked) == (low[0], high[0])
    assert bool(bounds) == bool(learnt)


def test_cells_that_histograms_do_not_tell_are_those_of_the_whole_knowledge():
    draw, total = np.random.default_rng(3), (1000.0, 1000.0)
    histograms = {}
    for name in (None, "sex", "age", "x"):
        if name is not None:
            size = DOMAIN[name].size
            counts = draw.dirichlet(np.ones(size)) * 1000
            widths = np.full(size + 1, 20.0)
            histograms[name] = OneWay(counts, widths, name != "sex")
        knowledge = Knowledge(GRID, total, dict(histograms))
        for part in ((), (0,), (1,), (0, 1), (1, 2), (0, 1, 2)):
            by = tuple(DOMAIN.names[i] for i in part)
            own = tuple((name, histograms[name]) for name in by if name in histograms)
            table = knowledge.table(by, Box(DOMAIN, {}))
            unknown = marginals_class._unknown(GRID, total, own, part, 30)
            assert (unknown == (table.high - table.low > 60)).all()


def test_events_are_those_found_anew_and_few_are_kept(monkeypatch):
    monkeypatch.setattr(calibrators, "MOST_EVENTS", 4)
    asking = session_of(curator_of(TOWN, epsilon=1000.0, delta=1e-6, seed=1), alpha=0.02, queries=1000)
    calibrator, policy = asking._buyer.calibrator, asking._buyer.policy
    for cell in range(12):
        marginal = conjunction(TOWN.domain, {"age": np.arange(12) == cell, "sex": np.arange(3) == cell % 3})
        purchase = policy.direct(asking._known.knowledge, marginal, asked=1)
        for price in (purchase.price, replace(purchase.price, amount=purchase.price.amount * 2)):
            mechanism, _ = calibrator.curator.calibration.mechanism(marginal, price)
            event = calibrator.curator.located([marginal], mechanism)
            assert replace(purchase, price=price).event(calibrator) == event
            assert calibrator.event_of_counts(marginal, price) is calibrator.event_of_counts(marginal, price)
            assert len(calibrator._events) <= 4


def test_a_product_is_made_once_and_is_another_at_another_resolution():
    one = product_of([6, 3], ["ranges", "cells"], laplace=False)
    assert product_of((6, 3), ("ranges", "cells"), laplace=False) is one
    for other in (
        product_of([6, 3], ["ranges", "cells"], laplace=False, resolution=16),
        product_of([6, 3], ["prefixes", "cells"], laplace=False),
        product_of([3, 6], ["cells", "ranges"], laplace=False),
    ):
        assert other != one
    for order in (1, 2):
        members = np.multiply.outer(
            *(f.sets @ inverse for f, inverse in zip(one.families, one.inverses, strict=True))
        )
        norms = np.linalg.norm(np.moveaxis(members, 2, 1).reshape(-1, 18), order, axis=1)
        assert np.isclose(one.norm(order), norms.max())


def test_cells_that_a_class_would_tell_go_with_their_session():
    """Two histograms tell a marginal anew, and nothing of a grid that nobody holds stays."""
    domain = Domain(tuple(Bins.integers(name, 0, 9) for name in "ab"))
    grid, before = Grid(domain), len(marginals_class._KEPT)
    size = domain["a"].size

    def histograms():
        return tuple(
            (name, OneWay(np.full(size, 50.0), np.full(size + 1, 5.0), ordered=True)) for name in "ab"
        )

    first, second = histograms(), histograms()
    found = marginals_class._unknown(grid, (500.0, 500.0), first, (0, 1), 10)
    assert marginals_class._unknown(grid, (500.0, 500.0), first, (0, 1), 10) is found
    assert marginals_class._unknown(grid, (500.0, 500.0), second, (0, 1), 10) is not found
    assert (len(marginals_class._KEPT), len(marginals_class._KEPT[grid])) == (before + 1, 1)
    del grid
    assert len(marginals_class._KEPT) == before
