"""Bands of classes by importance sampling: the identity, the bound of its mean, and what fresh noise says."""

from __future__ import annotations

from itertools import product as all_of

import numpy as np
import pytest
from scipy.special import bdtr

from statistical import assert_at_most
from understudy.sessions import class_band
from understudy.sessions.class_band import band, union_bound
from understudy.sessions.families import CellFamily
from understudy.sessions.family_product import Product, product_of
from understudy.sessions.simulation import DOUBT
from understudy.theory.normal_law import ndtr

CLASSES = [
    ((8,), ("ranges",)),
    ((8, 4), ("ranges", "ranges")),
    ((6, 2), ("prefixes", "subsets")),
    ((6, 3), ("suffixes", "cells")),
    ((3, 2, 4), ("subsets", "subsets", "ranges")),
]


def whole(sizes: tuple[int, ...], kinds: tuple) -> Product:
    return product_of(sizes, kinds, laplace=False)


def noise_of(product: Product, draws: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(draws, *(len(matrix) for matrix in product.matrices)))


@pytest.mark.parametrize(("sizes", "kinds"), CLASSES)
def test_members_above_a_width_are_counted_as_one_by_one(sizes, kinds):
    product = whole(sizes, kinds)
    noise = noise_of(product, 40, seed=3)
    tables = np.array([product.cells(draw) for draw in noise])
    found = np.zeros(len(noise), np.int64)
    width = 0.7 * float(np.median(product.suprema(noise)))
    for sets in all_of(*(family.sets for family in product.families)):
        sums = tables
        for side in reversed(sets):
            sums = sums @ side
        found += np.abs(sums) > width
    assert found.max() > 1
    assert (product.number_above(noise, width) == found).all()


@pytest.mark.parametrize(("sizes", "kinds"), CLASSES)
def test_members_have_the_deviations_and_directions_of_their_coefficients(sizes, kinds):
    product = whole(sizes, kinds)
    draw = np.random.default_rng(4)
    members = [draw.integers(family.members, size=5) for family in product.families]
    noise = noise_of(product, 7, seed=5)
    along = noise.reshape(7, -1) @ product.directions(members).T * product.deviations[tuple(members)]
    for place, each in enumerate(zip(*members, strict=True)):
        sums = np.array([product.cells(one) for one in noise])
        for family, member in reversed(list(zip(product.families, each, strict=True))):
            sums = sums @ family.sets[member]
        assert along[:, place] == pytest.approx(sums, rel=1e-9)


def chance(product: Product, width: float) -> tuple[float, float]:
    """That some member is off by more than a width, by importance sampling, and the deviation of that."""
    found = class_band._together(product, width, 8192, stream=5)
    bound = 2 * float(ndtr(-width / product.deviations).sum())
    return bound * float(found.mean()), bound * float(found.std()) / len(found) ** 0.5


@pytest.mark.parametrize(("sizes", "kinds"), CLASSES)
def test_naimanpriebe01_the_chance_that_some_member_is_off_is_that_of_plain_draws(sizes, kinds):
    """The two differ by at most 6.2 deviations, but for 6e-10; the union bound, the mutant, differs by more."""
    product = whole(sizes, kinds)
    width = union_bound(product, 0.05)
    ours, deviation = chance(product, width)
    plain = product.suprema(noise_of(product, 100_000, seed=6)) > width
    together = (deviation**2 + plain.var() / plain.size) ** 0.5
    assert abs(ours - plain.mean()) <= 6.2 * together
    never_together = 2 * float(ndtr(-width / product.deviations).sum())
    assert abs(never_together - plain.mean()) > 6.2 * together


@pytest.mark.parametrize("mean", [0.2, 0.58, 0.9])
@pytest.mark.parametrize("draws", [256, 2048])
def test_hoeffding63_theorem_1_bounds_the_mean_of_numbers_that_vary_most(mean, draws):
    """Of all numbers between 0 and 1 with a mean, 0 and 1 alone are the worst: their law is the binomial one."""
    least = class_band._not_above(mean, draws)
    doubt = DOUBT / class_band.TRIES
    assert bdtr(np.floor(mean * draws), draws, least) <= doubt
    careless = (mean + least) / 2
    assert bdtr(np.floor(mean * draws), draws, careless) > 10 * doubt
    assert class_band._not_above(1.0, draws) == 1


@pytest.mark.parametrize("beta", [0.02, 0.004])
@pytest.mark.parametrize(("sizes", "kinds"), CLASSES)
def test_a_band_holds_for_fresh_noise_and_a_narrower_one_does_not(sizes, kinds, beta):
    product = whole(sizes, kinds)
    width = band(product, beta)
    assert width is not None
    found = product.suprema(noise_of(product, 150_000, seed=77))
    assert_at_most(int((found > width).sum()), found.size, beta)
    with pytest.raises(AssertionError):
        assert_at_most(int((found > 0.9 * width).sum()), found.size, beta)


def test_ranges_get_a_narrower_band_than_by_the_union_bound_and_cells_the_same():
    for sizes, kinds in (((8,), ("ranges",)), ((16, 16), ("ranges", "ranges"))):
        product = whole(sizes, kinds)
        assert band(product, 0.01) < 0.99 * union_bound(product, 0.01)
    cells = whole((16,), ("cells",))
    assert band(cells, 0.01) == union_bound(cells, 0.01)


def test_a_class_too_large_to_be_tried_keeps_the_union_bound(monkeypatch):
    product = whole((8, 4), ("ranges", "ranges"))
    monkeypatch.setattr(class_band, "TRIED_WORK", 1)
    assert class_band._listed_band._function(product, 0.01) == union_bound(product, 0.01)


def test_a_width_that_the_draws_do_not_show_to_hold_is_not_taken(monkeypatch):
    """The first draws say that members are always off together; those that try the width do not."""
    product = whole((16,), ("ranges",))
    together = class_band._together

    def misled(product: Product, width: float, draws: int, *, stream: int) -> np.ndarray:
        found = together(product, width, draws, stream=stream)
        return 0.01 * found if stream == 0 else found

    monkeypatch.setattr(class_band, "_together", misled)
    width = class_band._listed_band._function(product, 0.01)
    found = product.suprema(noise_of(product, 150_000, seed=78))
    assert_at_most(int((found > width).sum()), found.size, 0.01)


def test_a_family_counts_its_members():
    noise = np.array([[0.0], [3.0], [-1.0], [5.0]])
    assert CellFamily(3, "ranges").number_above(noise, 3.5).tolist() == [3]  # 0 to 5, 3 to -1 and -1 to 5
    assert CellFamily(3, "prefixes").number_above(noise, 2.5).tolist() == [2]
    assert CellFamily(4, "cells").number_above(noise, 0.5).tolist() == [3]
    assert CellFamily(2, "subsets").number_above(noise[1:3], 1.5).tolist() == [2]  # the first, and both
