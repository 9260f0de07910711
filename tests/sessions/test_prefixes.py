"""Prefixes and cells as classes: strategies, bands, and when a session buys them; what tables say of others."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy.stats import norm

from session_table import DOMAIN, conjunction, curator
from statistical import assert_at_most
from understudy.mechanism.matrix.bases import HistogramDesign
from understudy.mechanism.matrix.ranges import minimax_prefixes
from understudy.query.box import Box
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.workload import marginals
from understudy.rational import exact
from understudy.sessions import ski_rental
from understudy.sessions.class_band import band
from understudy.sessions.families import CellFamily
from understudy.sessions.family_product import product_of
from understudy.sessions.one_way import half_widths, shape, suprema
from understudy.sessions.opening import session as session_of
from understudy.sessions.simulation import continuous, where_it_falls
from understudy.sessions.table_bounds import UpperEnds, along, around

pytestmark = pytest.mark.usefixtures("generous")


def line(*cells):
    return np.array(cells, bool)


def test_families_hold_prefixes_suffixes_and_cells():
    first, last, cells = CellFamily(4, "prefixes"), CellFamily(4, "suffixes"), CellFamily(4, "cells")
    assert first.holds(line(1, 1, 0, 0))
    assert not first.holds(line(0, 1, 1, 0))
    assert last.holds(line(0, 0, 1, 1))
    assert not last.holds(line(1, 1, 0, 0))
    assert cells.holds(line(0, 0, 1, 0))
    assert not cells.holds(line(0, 1, 1, 0))
    assert (first.holds_all, last.holds_all, cells.holds_all) == (True, True, False)
    assert (first.holds_cells, last.holds_cells, cells.holds_cells) == (False, False, True)
    for family in (first, last, cells):
        assert len(family.sets) == family.members == 4
        assert all(family.holds(member > 0) for member in family.sets)


@pytest.mark.parametrize("size", [4, 16, 32])
def test_prefixes_cost_less_than_ranges_and_than_cells(size):
    """(Largest variance) × (price of the worst cell), which scaling does not change."""

    def cost(matrix, members):
        weights = matrix.astype(float)
        variance = np.linalg.norm(members @ np.linalg.inv(weights), axis=1).max() ** 2
        return variance * (weights**2).sum(axis=0).max()

    prefixes = np.tri(size)
    found = cost(minimax_prefixes(size), prefixes)
    assert found < cost(HistogramDesign(size, ordered=True, centred=False).matrix, prefixes)
    assert found < cost(np.eye(size), prefixes)
    assert found < (1 + np.log(size) / 2) ** 2  # the square-root factorisation has about (1 + ln(size)/π)²


@pytest.mark.parametrize("kinds", [("prefixes", "subsets"), ("suffixes", "subsets"), ("cells", "subsets")])
def test_a_band_covers_all_members(kinds):
    """Fresh draws pass the band with probability at most beta; a band 20% narrower does not hold."""
    beta = 0.005
    whole = product_of((8, 2), kinds, laplace=False)
    width = band(whole, beta)
    assert width is not None
    noise = np.random.default_rng(77).normal(size=(150_000, 8, 2))
    found = whole.suprema(noise)
    assert_at_most(int((found > width).sum()), found.size, beta)
    with pytest.raises(AssertionError):
        assert_at_most(int((found > 0.8 * width).sum()), found.size, beta)


def test_roots_are_taken_from_above():
    found = where_it_falls(lambda x: float(norm.sf(x)) - 1e-3, 0.0, 10.0)
    assert float(norm.sf(found)) <= 1e-3
    assert found == pytest.approx(float(norm.isf(1e-3)), rel=1e-6)


@pytest.mark.parametrize("ordered", [True, False])
def test_the_bands_of_a_histogram_hold_for_noise_of_another_stream(ordered):
    """m_k, s_k and κ come from streams of their own; fresh noise keeps to the bands, not to narrower ones."""
    beta = 0.01
    design = HistogramDesign(12, ordered=ordered, centred=True)
    mean, deviation, kappa = shape(design, beta)
    noise = continuous((40_000, len(design.matrix)), stream=5)
    found = suprema(design.noise_of(noise), ordered=ordered)
    passed = (found > mean + kappa * deviation + 1e-9).any(axis=1)
    assert_at_most(int(passed.sum()), len(found), beta)
    mutant = (found > mean + 0.7 * kappa * deviation + 1e-9).any(axis=1)
    with pytest.raises(AssertionError):
        assert_at_most(int(mutant.sum()), len(found), beta)
    assert half_widths(design, exact(1 << 30), beta)[-1] == 0


def test_streams_are_independent():
    one, other = continuous((20_000,)), continuous((20_000,), stream=1)
    assert abs(float(np.corrcoef(one, other)[0, 1])) < 6 / np.sqrt(20_000)
    assert (one == continuous((20_000,))).all()


# ---- in a session


def sweep(place, *, label=True):
    for cut in range(1, 10):
        sides = {"age": np.arange(10) < cut, **place}
        yield conjunction(**sides)
        if label:
            yield conjunction(**sides, sex=np.arange(3) == 1)


def classes(session):
    return [(by, place, kinds) for (by, place), kinds in session._buyer.policy._ski_rental._held.items()]


def asked(session, one, questions):
    for question in questions:
        answer = session.ask_marginal(question)
        assert abs(float(answer.value) - float(one._truth.sums(question))) <= float(answer.error) + 1e-9
        assert float(answer.error) <= session.width + 1e-9


def not_small(monkeypatch):
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)


def test_prefixes_with_a_label_are_bought_as_such(monkeypatch):
    not_small(monkeypatch)
    one = curator()
    session = session_of(one, alpha=0.01, beta=0.05, queries=1000)
    asked(session, one, sweep({"town": np.arange(6) < 3}))
    [(by, place, kinds)] = [held for held in classes(session) if held[1]]
    assert set(by) == {"age", "sex"}
    assert dict(zip(by, kinds, strict=True))["age"] == "prefixes"
    assert [name for name, _ in place] == ["town"]


def test_what_does_not_vary_is_not_bought(monkeypatch):
    """Ages are asked for within one range of hours after the other: classes on towns are no use."""
    not_small(monkeypatch)
    one = curator()
    session = session_of(one, alpha=0.01, beta=0.05, queries=1000)
    for town in (np.arange(6) < 3, np.arange(6) >= 3, np.arange(6) == 1, np.arange(6) == 2):
        asked(session, one, sweep({"town": town}, label=False))
    assert all("town" not in by for by, _, _ in classes(session))


def test_each_payment_speaks_for_one_purchase_at_most(monkeypatch):
    not_small(monkeypatch)
    one = curator()
    session = session_of(one, alpha=0.01, beta=0.05, queries=1000)
    asked(session, one, sweep({"town": np.arange(6) < 3}))
    rents = session._buyer.policy._ski_rental._rent
    [(by, place, _)] = [held for held in classes(session) if held[1]]
    assert (by, place) not in rents
    payments = [paid for members in rents.values() for _, paid in members]
    assert payments
    assert not any(paid.counts for paid in payments)


def test_rents_follow_from_what_was_paid_and_bought(monkeypatch):
    """Who goes on from a checkpoint finds them so: the same classes, in the same order, with the same payments."""
    not_small(monkeypatch)
    monkeypatch.setattr(ski_rental, "MOST_RENTS", 6)
    one = curator()
    session = session_of(one, alpha=0.01, beta=0.05, queries=1000)
    asked(session, one, sweep({"town": np.arange(6) < 3}))
    asked(session, one, islice(sweep({"town": np.arange(6) == 4}, label=False), 7))
    rental = session._buyer.policy._ski_rental
    assert [held for held in classes(session) if held[1]]

    def plain():
        return [
            (
                candidate,
                [([None if s is None else s.tolist() for s in sides], paid) for sides, paid in members],
            )
            for candidate, members in rental._rent.items()
        ]

    kept = plain()
    assert 1 < len(kept) <= 6  # the others were forgotten, or a class was bought for them
    del rental.__dict__["_rent"]
    assert plain() == kept


def test_another_kind_of_range_is_bought_as_all_ranges(monkeypatch):
    not_small(monkeypatch)
    one = curator()
    session = session_of(one, alpha=0.01, beta=0.05, queries=1000)
    place = {"town": np.arange(6) < 3}
    asked(session, one, sweep(place, label=False))
    inner = [
        conjunction(age=(np.arange(10) >= low) & (np.arange(10) < high), **place)
        for low in range(1, 5)
        for high in range(low + 1, 10)
    ]
    asked(session, one, inner)
    kinds = {kinds for by, found, kinds in classes(session) if by == ("age",) and found}
    assert kinds == {("ranges",)}
    asked(session, one, sweep(place, label=False))


# ---- tables around tables


def everything(by, where):
    one = curator()
    return one._truth.sums(Marginal(DOMAIN, by, where.query)).astype(float)


def test_a_table_is_no_larger_than_those_around_it():
    generator = np.random.default_rng(8)
    tables = UpperEnds()
    boxes = [
        Box(DOMAIN, {}),
        Box(DOMAIN, {"town": np.arange(6) < 4}),
        Box(DOMAIN, {"sex": np.arange(3) == 1}),
        Box(DOMAIN, {"sex": np.arange(3) == 1, "town": np.arange(6) == 2}),
        Box(DOMAIN, {"age": np.arange(10) < 5, "town": np.arange(6) == 2}),
    ]
    told = 0
    for where in boxes:
        free = [name for name in DOMAIN.names if name not in where.sides]
        for by in {
            DOMAIN.clique(generator.choice(free, size, replace=False)) for size in range(1, len(free) + 1)
        }:
            truth = everything(by, where)
            above = tables.above(by, where)
            assert (truth <= above).all()
            told += int(np.isfinite(above).all())
            tables.learn(by, where, truth)
    assert told > 2


def test_slices_lie_along_their_axes():
    where = Box(DOMAIN, {"sex": np.arange(3) == 1})
    names = DOMAIN.clique(["age", "sex"])
    table = everything(names, Box(DOMAIN, {}))
    found = along(table, names, ("age", "town"), where)
    assert found.shape == (10, 1)
    assert (found[:, 0] == everything(("age",), where)).all()
    assert set(around(("age",), where)) == {("age",), ("sex",), names}


def test_a_panel_bounds_its_drill_downs():
    one = curator()
    session = session_of(one, alpha=0.05, beta=0.05, queries=100)
    panel = Marginal(DOMAIN, ("age", "town"), LinearQuery.conjunction(DOMAIN, {"sex": np.arange(3) < 2}))
    answer = session.ask_marginal(panel)
    inside = Box(DOMAIN, {"sex": np.arange(3) == 1})
    known = session._known.knowledge.table(("age", "town"), inside)
    assert (known.high <= answer.value + answer.error + 1e-9).all()
    assert (known.high >= everything(("age", "town"), inside)).all()


def test_marginals_bound_the_tables_of_their_slices():
    one = curator()
    session = session_of(one, alpha=0.02, beta=0.05, queries=1000, classes=[marginals(2)])
    before = one.ledger.spent
    inside = Marginal(DOMAIN, ("age",), LinearQuery.conjunction(DOMAIN, {"town": np.arange(6) == 2}))
    answer = session.ask_marginal(inside)
    assert (np.abs(answer.value - one._truth.sums(inside)) <= answer.error + 1e-9).all()
    assert one.ledger.spent == before


@pytest.mark.parametrize("order", [1, 2])
def test_the_norm_of_wide_ranges_is_the_largest_of_all(order):
    """Ranges too many to list: an inner one can have the larger norm."""
    product = product_of((70, 2, 2, 2, 2, 2), ("ranges", *["cells"] * 5), laplace=False)
    starts, ends = np.triu_indices(71, 1)
    at = np.arange(70)
    every = ((at >= starts[:, None]) & (at < ends[:, None])).astype(float)
    sets = [every, *(family.sets for family in product.families[1:])]
    norms = [
        np.linalg.norm(members @ back, ord=order, axis=1).max()
        for members, back in zip(sets, product.inverses, strict=True)
    ]
    assert product.families[0].members == len(every)
    assert product.norm(order) == pytest.approx(float(np.prod(norms)), rel=1e-12)
