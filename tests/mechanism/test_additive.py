"""What Laplace and Gaussian noise have in common: their error bars, and releases that follow their laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from statistical import assert_at_most, assert_covers, assert_does_not_follow, assert_follows
from understudy.mechanism.additive import noise_for, usual_reach
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import Cost, concentrated, pure
from understudy.privacy.price import Price
from understudy.privacy.relation import Sensitivity

Additive = LaplaceMechanism | GaussianMechanism
ROUNDING = 1e-9
"""What floats may add to a probability here; the mutants exceed their bounds by far more."""


@dataclass(frozen=True)
class Kind:
    """One kind of noise: how it is built, what it costs, and what the tests of it vary."""

    build: Callable[[Fraction, int], Additive]
    priced: Callable[..., Cost]
    parameter: str
    parameters: tuple[Fraction, Fraction]
    sensitivities: tuple[int, ...]

    def any(self) -> st.SearchStrategy[Additive]:
        parameters = st.fractions(*self.parameters, max_denominator=1000)
        return st.builds(self.build, parameters, st.sampled_from(self.sensitivities))


LAPLACE = Kind(
    lambda epsilon, l1: LaplaceMechanism(epsilon=epsilon, l1=l1),
    pure,
    "epsilon",
    (Fraction(1, 100), Fraction(20)),
    tuple(range(1, 41)),
)
GAUSSIAN = Kind(
    lambda rho, l2_squared: GaussianMechanism(rho=rho, l2_squared=l2_squared),
    concentrated,
    "rho",
    (Fraction(1, 200), Fraction(8)),
    (1, 2, 3, 4, 5, 9, 13, 25),
)
KINDS = [pytest.param(LAPLACE, id="laplace"), pytest.param(GAUSSIAN, id="gaussian")]


def support(mechanism: Additive) -> NDArray[np.int64]:
    """Integers beyond which nothing is left."""
    if isinstance(mechanism, LaplaceMechanism):
        reach = int(40 * mechanism.scale)
    else:
        reach = int(13 * float(mechanism.variance) ** 0.5) + 13
    return np.arange(-reach, reach + 1)


def tail(mechanism: Additive, t: int) -> float:
    """P[|noise| > t] as one minus the sum of the law."""
    return 1 - float(np.exp(mechanism.log_law(0, np.arange(-t, t + 1))).sum())


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), beta=st.sampled_from([0.001, 0.05, 0.3, 0.9]), cells=st.sampled_from([1, 2, 17]))
def test_the_error_is_the_smallest_that_holds_for_all_cells(kind, data, beta, cells):
    mechanism = data.draw(kind.any())
    t = mechanism.error(beta, cells=cells)
    assert (1 - tail(mechanism, t)) ** cells >= 1 - beta - ROUNDING
    alone = mechanism.error(beta)
    assert alone == 0 or tail(mechanism, alone - 1) > beta - ROUNDING


@pytest.mark.parametrize(
    ("kind", "parameter", "seed"), [(LAPLACE, Fraction(1, 10), 11), (GAUSSIAN, Fraction(1, 100), 21)]
)
def test_the_error_covers_a_vector(kind, parameter, seed):
    """Also rejects an error bar made for one cell only, and one a little shorter."""
    mechanism = kind.build(parameter, 2)
    trials, cells = 4000, 50
    draws = mechanism.release(np.zeros((trials, cells), dtype=np.int64), noise=SeededNoise(seed))
    furthest = np.abs(draws).max(axis=1)
    assert_covers(furthest / mechanism.error(0.05, cells=cells), 0.05, mutant=0.93)
    with pytest.raises(AssertionError):
        assert_at_most(int((furthest > mechanism.error(0.05)).sum()), trials, 0.05)


@pytest.mark.parametrize(
    ("kind", "parameter", "sensitivity", "seed"),
    [
        *((LAPLACE, Fraction(value), l1, 12) for value, l1 in (("1/2", 1), ("7/10", 2), ("2", 9))),
        *((GAUSSIAN, Fraction(value), l2, 22) for value, l2 in (("2", 1), ("1/2", 2), ("1/100", 9))),
    ],
)
def test_releases_follow_the_law(kind, parameter, sensitivity, seed):
    mechanism = kind.build(parameter, sensitivity)
    released = mechanism.release(np.full(200_000, 7), noise=SeededNoise(seed))
    outputs = support(mechanism) + 7
    counts = np.bincount(released - outputs[0], minlength=len(outputs)).tolist()
    assert_follows(counts, np.exp(mechanism.log_law(7, outputs)).tolist())
    for factor in (Fraction(8, 10), Fraction(125, 100)):
        wrong = np.exp(replace(mechanism, **{kind.parameter: parameter * factor}).log_law(7, outputs))
        assert_does_not_follow(counts, (wrong / wrong.sum()).tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_releases_keep_their_shape_and_leave_the_values_alone(kind):
    mechanism = kind.build(Fraction(1), 1)
    for shape in [(), (0,), (3,), (2, 3), (2, 1, 4)]:
        values = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
        before = values.copy()
        released = mechanism.release(values, noise=SeededNoise(13))
        assert np.asarray(released).shape == shape
        assert np.asarray(released).dtype == np.int64
        np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_nobody_can_move_are_exact_and_free(kind):
    mechanism = kind.build(Fraction(1, 2), 0)
    values = np.array([4, 5, 6])
    released = mechanism.release(values, noise=SeededNoise(14))
    np.testing.assert_array_equal(released, values)
    assert released is not values
    assert mechanism.error(0.05, cells=3) == 0
    assert kind.priced(mechanism.event).units == 0


@pytest.mark.parametrize("beta", [0.2, 0.05, 1e-6])
@pytest.mark.parametrize("price", [Price("epsilon", Fraction(1, 5000)), Price("rho", Fraction(1, 10**8))])
def test_the_reach_of_the_usual_noise_is_that_of_the_noise_which_a_price_buys(price: Price, beta: float):
    """Noise of thousands of steps: what is whole and what is not differ by less than a thousandth."""
    mechanism = noise_for(price, Sensitivity(1, 1))
    deviation = float(mechanism.variance) ** 0.5
    assert mechanism.error(beta) == pytest.approx(usual_reach(price.currency, beta) * deviation, rel=1e-3)
