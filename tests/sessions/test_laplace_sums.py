"""Classes with Laplace noise whose share of β is small: bands without a simulation, and sessions that buy them."""

from __future__ import annotations

from math import comb, exp, log, prod

import numpy as np
import pyarrow
import pytest

import understudy as us
from statistical import assert_at_most
from understudy.declaration.file import parse
from understudy.sessions.class_band import band
from understudy.sessions.families import CellFamily
from understudy.sessions.family_product import Product, product_of
from understudy.sessions.laplace_sums import MOST_SIZES, tails, union_bound
from understudy.sessions.terms import ranges


@pytest.mark.parametrize("at", [0.25, 1.0, 7.0, 40.0])
def test_the_tail_of_one_and_of_two_noises_is_the_known_one(at):
    assert tails((1, 2), at) == pytest.approx([exp(-at) / 2, (2 + at) / 4 * exp(-at)], rel=1e-8)


def test_the_tail_is_that_of_the_law_convolved():
    """On a fine grid, against the density of 9 noises that were added up there."""
    step = 0.005
    at = np.arange(-12_000, 12_001) * step
    one = np.exp(-np.abs(at))
    one /= one.sum()
    law = np.fft.irfft(np.fft.rfft(np.fft.ifftshift(np.pad(one, 12_000))) ** 9)
    law = np.fft.fftshift(law)
    where = (np.arange(law.size) - law.size // 2) * step
    for q in (2.0, 8.0, 20.0):
        assert tails((9,), q)[0] == pytest.approx(law[where > q].sum(), rel=0.01)


def test_tails_grow_with_the_number_of_noises():
    """So that sizes may be rounded up."""
    for at in (0.5, 3.0, 30.0):
        assert (np.diff(tails(tuple(range(1, 90)), at)) > 0).all()


@pytest.mark.parametrize("kind", ["ranges", "prefixes", "suffixes", "subsets", "cells"])
def test_members_are_counted_by_their_number_of_cells(kind):
    whole = product_of((4, 3), (kind, "subsets"), laplace=True)
    sizes = [family.sets.sum(axis=1).astype(int) for family in whole.families]
    found = np.multiply.outer(*sizes).ravel()
    assert whole.sizes == {int(size): int((found == size).sum()) for size in np.unique(found)}
    assert sum(whole.sizes.values()) == whole.members == prod(family.members for family in whole.families)


def test_sizes_that_are_rounded_up_make_the_bound_larger_and_hardly_so():
    many = CellFamily(10 * MOST_SIZES, "ranges").sizes
    bound = union_bound(many, 1e-6)
    cells, numbers = tuple(many), np.array(list(many.values()), float)
    assert 2 * float(numbers @ tails(cells, bound)) <= 1e-6
    assert 2 * float(numbers @ tails(cells, 0.98 * bound)) > 1e-6


@pytest.mark.parametrize(("sizes", "kinds"), [((8,), ("ranges",)), ((5, 3), ("ranges", "subsets"))])
def test_a_band_for_a_rare_failure_covers_all_members(sizes, kinds):
    """Fresh draws pass it with probability at most β, too rare to simulate; one 25% narrower does not hold."""
    beta = 1e-3
    whole = product_of(sizes, kinds, laplace=True)
    width = band(whole, beta)
    assert width is not None
    noise = np.random.default_rng(41).laplace(size=(150_000, *sizes))
    found = whole.suprema(noise)
    assert_at_most(int((found > width).sum()), found.size, beta)
    with pytest.raises(AssertionError):
        assert_at_most(int((found > 0.75 * width).sum()), found.size, beta)


def test_a_rarer_failure_has_a_wider_band_also_where_it_is_no_longer_simulated():
    whole = product_of((12,), ("subsets",), laplace=True)
    widths = [band(whole, beta) or 0.0 for beta in (0.05, 0.01, 2e-3, 1.4e-3, 1e-4, 1e-9)]
    assert widths == sorted(widths)
    assert widths[-1] < widths[-2] + 1.5 * log(1e-4 / 1e-9)  # a noise's own tail falls by e with each step


def test_sets_that_are_too_many_for_floats_have_no_band():
    whole = Product((CellFamily(600, "subsets", laplace=True),))
    assert whole.members > comb(600, 300)
    assert band(whole, 1e-6) is None


def town():
    declared = parse(
        "understudy: 1\nname: town\nsource: town.parquet\nbudget: {epsilon: 100}\nneighbours: replace\n"
        "attributes:\n  age: {type: integer, bounds: [0, 99], width: 5}\n  smoker: {type: boolean}\n"
    )
    draw = np.random.default_rng(5)
    rows = pyarrow.table({"age": draw.integers(0, 100, 20_000), "smoker": draw.random(20_000) < 0.3})
    return us.Project.frame(rows, declared)


def test_a_session_with_a_small_beta_buys_classes_under_a_pure_epsilon():
    """There was no price for the class: 60 ranges, each by itself, cost as much as 41 counts."""
    session = us.session(town(), alpha=0.02, beta=0.0005, queries=1000)
    assert 0 < session.price_of_class(ranges("age")).units < 8 * session.price("count age < 30").units
    draw, begun = np.random.default_rng(6), session.remaining.units
    price = session.price("count age < 30").units
    for _ in range(60):
        low, high = sorted(draw.choice(21, 2, replace=False).tolist())
        session.ask(f"count age >= {5 * low} and age < {5 * high}")
    assert begun - session.remaining.units < 20 * price
