"""What every mechanism must do, whichever it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, fields
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import ParameterError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.parameters import lattice_sensitivity, lattice_values, share_of, whole
from understudy.mechanism.randomized_response import RandomizedResponse
from understudy.mechanism.rounded_normal import RoundedNormalMechanism
from understudy.mechanism.sparse_vector import AboveThreshold, NumericSparse, SparseState
from understudy.noise.samplers import NoiseSource, SeededNoise
from understudy.privacy.cost import UNITS, concentrated, epsilon, pure, rho

VALUES = np.arange(40, dtype=np.int64)


@dataclass(frozen=True)
class Case:
    """How to build a mechanism from its privacy parameter alone, and how to run it."""

    kind: type[Any]
    parameter: str
    rest: dict[str, int]
    run: Callable[[Any, NoiseSource], Any]

    def build(self, value: Any, **changes: Any) -> Any:
        return self.kind(**{self.parameter: value, **self.rest, **changes})


def answers(mechanism: Any, noise: NoiseSource) -> list[object]:
    state, given_ = mechanism.open(noise=noise), []
    for value in range(40):
        answer, state = mechanism.ask(state, value - 20, noise=noise)
        given_.append((answer, state))
        if state.above == mechanism.hits:
            break
    return given_


CASES = [
    Case(LaplaceMechanism, "epsilon", {"l1": 3}, lambda m, noise: m.release(VALUES, noise=noise).tolist()),
    Case(
        GaussianMechanism, "rho", {"l2_squared": 3}, lambda m, noise: m.release(VALUES, noise=noise).tolist()
    ),
    Case(
        RoundedNormalMechanism,
        "rho",
        {"l2_squared": 3},
        lambda m, noise: m.release(VALUES, noise=noise).tolist(),
    ),
    Case(
        ExponentialMechanism,
        "epsilon",
        {"sensitivity": 3},
        lambda m, noise: [m.choose(VALUES, noise=noise) for _ in range(5)],
    ),
    Case(
        RandomizedResponse,
        "epsilon",
        {"size": 40},
        lambda m, noise: m.release(VALUES, noise=noise).tolist(),
    ),
    Case(AboveThreshold, "epsilon", {"sensitivity": 2, "threshold": 5, "hits": 2}, answers),
    Case(NumericSparse, "epsilon", {"sensitivity": 2, "threshold": 5, "hits": 2}, answers),
]

every_mechanism = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind.__name__)


@every_mechanism
def test_it_is_a_frozen_value(case):
    mechanism = case.build(Fraction(1, 2))
    assert mechanism == case.build(Fraction(1, 2))
    assert mechanism != case.build(Fraction(1, 3))
    assert len({mechanism, case.build(Fraction(1, 2))}) == 1
    for field in fields(mechanism):
        with pytest.raises(FrozenInstanceError):
            setattr(mechanism, field.name, 1)
    with pytest.raises((AttributeError, TypeError)):
        mechanism.misspelt = 1


def test_a_state_is_a_frozen_value():
    with pytest.raises(FrozenInstanceError):
        SparseState(3).above = 0  # type: ignore[misc]


@every_mechanism
def test_the_same_noise_gives_the_same_answer(case):
    mechanism = case.build(Fraction(1, 2))
    runs = [case.run(mechanism, SeededNoise(seed)) for seed in range(12)]
    assert runs == [case.run(mechanism, SeededNoise(seed)) for seed in range(12)]
    assert any(run != runs[0] for run in runs)


@every_mechanism
def test_noise_must_be_named(case):
    mechanism = case.build(Fraction(1, 2))
    for name in ("release", "choose", "open", "ask"):
        if hasattr(mechanism, name):
            with pytest.raises(TypeError, match="noise"):
                getattr(mechanism, name)(
                    *([VALUES, 0] if name == "ask" else [] if name == "open" else [VALUES])
                )


@every_mechanism
@pytest.mark.parametrize(
    "bad",
    [
        *(0, 0.0, -1, -0.5, Fraction(-1, 3), nan, inf, -inf, 1e308, 1001, 1e-13, True, False),
        *("1", "0.1", "", None, 1j, [1], Decimal("NaN"), Decimal("Infinity")),
    ],
    ids=repr,
)
def test_it_refuses_a_privacy_parameter_that_is_not_one(case, bad):
    with pytest.raises(ParameterError):
        case.build(bad)


@every_mechanism
def test_it_takes_a_parameter_as_it_is_written(case):
    tenth = case.build(Fraction(1, 10))
    assert tenth == case.build(0.1) == case.build(Decimal("0.1")) == case.build(np.float64(0.1))
    assert case.build(1) == case.build(1.0) == case.build(Fraction(1))
    assert getattr(tenth, case.parameter) == Fraction(1, 10)


@every_mechanism
@given(st.fractions(Fraction(1, 1000), 100, max_denominator=10**6))
def test_the_event_costs_what_was_declared(case, parameter):
    event = case.build(parameter).event
    if case.parameter == "rho":
        assert rho(event) == parameter
        assert concentrated(event).units == -(-parameter * UNITS // 1)
    else:
        assert epsilon(event) == parameter
        assert pure(event).units == -(-parameter * UNITS // 1)


@every_mechanism
@pytest.mark.parametrize("bad", [-1, 1.0, 0.5, True, "1", None, 2**62], ids=repr)
def test_it_refuses_a_sensitivity_off_the_lattice(case, bad):
    for name in {"l1", "l2_squared", "sensitivity"} & set(case.rest):
        with pytest.raises(ParameterError, match="whole number"):
            case.build(Fraction(1), **{name: bad})


@every_mechanism
@pytest.mark.parametrize("bad", [1.5, 2.5, "2"], ids=repr)
def test_it_refuses_a_count_that_is_not_whole(case, bad):
    """With 1.5 hits a sparse vector would give two and have noise for one and a half."""
    for name in {"hits", "size"} & set(case.rest):
        with pytest.raises(ParameterError):
            case.build(Fraction(1), **{name: bad})


@pytest.mark.parametrize("case", CASES[:3], ids=lambda case: case.kind.__name__)
@pytest.mark.parametrize("values", [[0.5], [1.0, 2.25], [float("nan")]], ids=repr)
def test_additive_noise_refuses_values_off_the_lattice(case, values):
    """Integer noise leaves what is behind the decimal point in plain sight."""
    with pytest.raises(ParameterError):
        case.build(Fraction(1)).release(np.array(values), noise=SeededNoise(1))


@pytest.mark.parametrize("kind", [AboveThreshold, NumericSparse])
def test_sparse_vectors_refuse_values_off_the_lattice(kind):
    mechanism = kind(epsilon=Fraction(1), sensitivity=1, threshold=0)
    state = mechanism.open(noise=SeededNoise(2))
    with pytest.raises(ParameterError):
        mechanism.ask(state, 1000.25, noise=SeededNoise(3))
    with pytest.raises(ParameterError):
        kind(epsilon=Fraction(1), sensitivity=1, threshold=0.5)


@pytest.mark.parametrize("kind", [AboveThreshold, NumericSparse])
def test_a_sparse_vector_whose_noise_cannot_be_drawn_is_refused_when_it_is_made(kind):
    """It is charged when it is opened; a refusal after that would have cost something."""
    with pytest.raises(ParameterError):
        kind(epsilon=Fraction(1, 10**11), sensitivity=1, threshold=0, hits=100)


# ---------------------------------------------------------------------------------------- shared checks


@pytest.mark.parametrize("bad", [-1, 2**62, 1.0, True, np.int64(1)])
def test_a_sensitivity_is_a_whole_number_of_lattice_steps_below_2_to_the_62(bad):
    for good in (0, 1, 2**62 - 1):
        lattice_sensitivity(good)
    with pytest.raises(ParameterError, match="whole number"):
        lattice_sensitivity(bad)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
@given(st.data())
def test_lattice_values_are_never_brought_further_apart(dtype, data):
    """Values of every width, up to both ends: a wrap-around would tear neighbours 2^63 apart."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    ends = st.sampled_from([low, low + 1, 0, high // 2, high // 2 + 1, high - 1, high])
    values = data.draw(st.lists(ends | st.integers(low, high), min_size=2, max_size=2))
    a, b = (int(value) for value in lattice_values(np.array(values, dtype=dtype)))
    assert abs(a - b) <= abs(values[0] - values[1])
    assert (a - b) * (values[0] - values[1]) >= 0
    assert max(abs(a), abs(b)) <= 2**62
    if max(map(abs, values)) <= 2**62:
        assert [a, b] == values


@pytest.mark.parametrize("bad", [2.0, 1.5, True, "2", None], ids=repr)
def test_whole_numbers_are_not_guessed(bad):
    with pytest.raises(ParameterError, match="whole"):
        whole(bad, "a count")


@given(st.fractions(Fraction(1, 10**6), Fraction(999, 1000), max_denominator=10**6), st.integers(1, 60))
def test_shares_of_a_failure_probability_are_enough_and_not_wasteful(beta, cells):
    """(1 - share)^cells ≥ 1 - β in exact rationals; at least the union bound, and most of what is possible."""
    share = share_of(beta, cells)
    assert (1 - share) ** cells >= 1 - beta
    assert share >= beta / cells
    if beta <= Fraction(1, 10):
        assert (1 - share * Fraction(1005, 1000)) ** cells < 1 - beta


@pytest.mark.parametrize("beta", [0, 1, -0.1, 1.5, nan, True, "0.05"], ids=repr)
def test_failure_probabilities_are_checked(beta):
    for mechanism in (
        LaplaceMechanism(epsilon=Fraction(1), l1=1),
        GaussianMechanism(rho=Fraction(1), l2_squared=1),
    ):
        with pytest.raises(ParameterError):
            mechanism.error(beta)


@pytest.mark.parametrize("cells", [0, -3])
def test_an_error_bound_needs_a_cell(cells):
    with pytest.raises(ParameterError):
        share_of(0.05, cells)
