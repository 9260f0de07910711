"""Tails of sums of noises: never below the exact ones, and near them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from understudy.noise.law import discrete_gaussian_log_law, discrete_laplace_log_law
from understudy.noise.normal import rounded_normal_log_law
from understudy.noise.sums import NoiseLaw, quick_bounds, sum_bound, weighted_bound

LAWS = [
    NoiseLaw("laplace", Fraction(1, 2)),
    NoiseLaw("laplace", Fraction(6)),
    NoiseLaw("gaussian", Fraction(1, 3)),
    NoiseLaw("gaussian", Fraction(4)),
    NoiseLaw("gaussian", Fraction(40)),
    NoiseLaw("rounded", Fraction(1, 3)),
    NoiseLaw("rounded", Fraction(40)),
]
LOG_LAWS = {
    "laplace": discrete_laplace_log_law,
    "gaussian": discrete_gaussian_log_law,
    "rounded": rounded_normal_log_law,
}


def law_of_sum(law: NoiseLaw, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Values and exact probabilities of a sum of noises, by convolution."""
    most = 360 if law.kind == "laplace" else 120
    at = np.arange(-most, most + 1)
    one, found = np.exp(LOG_LAWS[law.kind](law.parameter, at)), np.ones(1)
    for _ in range(count):
        found = np.convolve(found, one)
    return np.arange(-most * count, most * count + 1), found


def tail(law: NoiseLaw, cells: tuple[int, int], weight: Fraction, at: float) -> float:
    """P[w·S + w'·S' ≥ at], exactly but for floats."""
    (values, chances), (others, more) = (law_of_sum(law, count) for count in cells)
    beyond = np.append(np.cumsum(more[::-1])[::-1], 0.0)
    if weight == 1:
        return float(chances[values >= at - 1e-9].sum())
    need = np.ceil((at - float(weight) * values) / float(1 - weight) - 1e-9) - others[0]
    return float(chances @ beyond[np.clip(need, 0, more.size).astype(int)])


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(
    ("cells", "weight"), [((1, 1), Fraction(1, 2)), ((3, 2), Fraction(1, 10)), ((2, 4), Fraction(1))]
)
@pytest.mark.parametrize("beta", [0.3, 0.025, 1e-4, 1e-11])
def test_a_bound_is_passed_with_no_more_than_its_probability(law, cells, weight, beta):
    bound = sum_bound(law, cells, weight, beta)
    assert tail(law, cells, weight, bound + 1e-6) <= beta
    quick = float(quick_bounds(law, sum(cells), weight, beta)[cells[0] - 1])
    assert bound <= quick + 1e-9
    if beta > 1e-9:  # and it is near: a little below it, it is passed more often
        assert tail(law, cells, weight, bound - 2.1 - 0.05 * bound) > beta


def test_the_law_of_large_noises_is_that_of_their_scale():
    one, other = (
        sum_bound(NoiseLaw("laplace", Fraction(scale)), (3, 4), Fraction(1, 4), 0.01) / scale
        for scale in (10**3, 10**9)
    )
    assert one == pytest.approx(other, rel=1e-3)
    normal = sum_bound(NoiseLaw("gaussian", Fraction(10**12)), (2, 2), Fraction(1, 2), 0.025) / 10**6
    assert normal == pytest.approx(1.959964, rel=1e-5)


@pytest.mark.parametrize(
    "law", [NoiseLaw("laplace", Fraction(6)), NoiseLaw("gaussian", Fraction(1, 3))], ids=str
)
@pytest.mark.parametrize("cells", [3000, 10**6])
def test_a_sum_of_very_many_noises_is_bounded_at_once_and_nearly_as_a_normal_number_is(law, cells):
    bound = weighted_bound(law, ((cells, 1.0),), 1e-4)
    normal = 3.719 * law.deviation * cells**0.5
    assert normal * 0.95 < bound < 1.25 * normal


def test_nothing_that_is_weighed_has_no_noise():
    assert sum_bound(LAWS[0], (0, 3), Fraction(1), 0.05) == 0.0


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_bound_of_three_sums_is_passed_with_no_more_than_its_probability(law):
    bound = weighted_bound(law, ((1, 3.0), (2, 2.0), (1, 0.5)), 0.05)
    values, chances = np.zeros(1), np.ones(1)
    for count, weight in ((1, 6), (2, 4), (1, 1)):  # in halves
        more, also = law_of_sum(law, count)
        stretched = np.zeros((more.size - 1) * weight + 1)
        stretched[::weight] = also
        values = np.arange(values[0] + weight * more[0], values[-1] + weight * more[-1] + 1)
        chances = np.convolve(chances, stretched)
    assert chances[values / 2 >= bound + 1e-6].sum() <= 0.05
    assert chances[values / 2 >= 0.95 * bound - 6].sum() > 0.05
