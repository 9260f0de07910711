"""Prices of events: exact, rounded up, refused where unknown; and the conversions behind them on exact laws."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from understudy.errors import ParameterError, RefusedError
from understudy.noise.law import discrete_gaussian_log_law, discrete_laplace_log_law
from understudy.privacy.cost import (
    UNITS,
    ZCDP,
    PureDP,
    concentrated,
    epsilon,
    pure,
    rho,
    rounded_up,
)
from understudy.privacy.event import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedReport,
    Selection,
    SparseVector,
    SpentBefore,
    Together,
)
from understudy.privacy.recording import as_plain, from_plain

ROUNDING = 1e-9
ORDERS = (1.001, 1.3, 2.0, 3.5, 8.0, 40.0, 500.0)

parameters = st.fractions(Fraction(1, 10**6), 50, max_denominator=10**9)
pure_events = st.one_of(
    st.builds(LaplaceNoise, l1=st.integers(0, 99).map(Fraction), scale=parameters),
    st.builds(Selection, epsilon=parameters),
    st.builds(
        SparseVector,
        epsilon=parameters,
        hits=st.integers(1, 10**6),
        told=st.fractions(0, 1, max_denominator=99),
    ),
    st.builds(RandomizedReport, epsilon=parameters),
    st.builds(SpentBefore, epsilon=parameters),
)
events = pure_events | st.builds(
    GaussianNoise, l2_squared=st.integers(0, 99).map(Fraction), variance=parameters
)


def renyi(here: ArrayLike, there: ArrayLike, order: float) -> float:
    """D_order between two laws given by their logarithms."""
    return float(np.logaddexp.reduce(order * np.asarray(here) + (1 - order) * np.asarray(there))) / (
        order - 1
    )


# ---------------------------------------------------------------------------------------- units


@given(st.fractions(0, 10**4))
def test_units_cover_the_amount_and_at_most_one_more(amount):
    units = rounded_up(amount)
    assert isinstance(units, int)
    assert 0 <= Fraction(units, UNITS) - amount < Fraction(1, UNITS)


@given(events)
def test_prices_are_never_below_the_exact_ones(event):
    assert 0 <= Fraction(concentrated(event).units, UNITS) - rho(event) < Fraction(1, UNITS)
    if not isinstance(event, GaussianNoise):
        assert 0 <= Fraction(pure(event).units, UNITS) - epsilon(event) < Fraction(1, UNITS)


@pytest.mark.parametrize(
    ("event", "pure_price", "rho_price"),
    [
        (LaplaceNoise(l1=Fraction(3), scale=Fraction(6)), "1/2", "1/8"),
        (LaplaceNoise(l1=Fraction(0), scale=Fraction(6)), "0", "0"),
        (Selection(epsilon=Fraction(1)), "1", "1/8"),
        (SparseVector(epsilon=Fraction(1)), "1", "1/2"),
        (SparseVector(epsilon=Fraction(1), hits=10), "1", "1/20"),
        (SparseVector(epsilon=Fraction(1), hits=10, told=Fraction(1, 9)), "1", "65/1620"),
        (SparseVector(epsilon=Fraction(1), hits=2, told=Fraction(1)), "1", "1/4"),
        (RandomizedReport(epsilon=Fraction(2)), "2", "2"),
        (SpentBefore(epsilon=Fraction(1, 2)), "1/2", "1/8"),
        (SpentBefore(epsilon=Fraction(0)), "0", "0"),
        (GaussianNoise(l2_squared=Fraction(0), variance=Fraction(5)), "0", "0"),
    ],
)
def test_prices_by_hand(event, pure_price, rho_price):
    assert pure(event) == PureDP(rounded_up(Fraction(pure_price)))
    assert concentrated(event) == ZCDP(rounded_up(Fraction(rho_price)))


# ---------------------------------------------------------------------------------------- refusals


@dataclass(frozen=True)
class Unheard:
    """An event that nobody has priced."""


@pytest.mark.parametrize("price", [pure, concentrated, epsilon, rho])
def test_an_unknown_event_is_refused_and_named(price: Callable[[Any], object]) -> None:
    unheard: Any = Unheard()
    for event in (unheard, Together((Selection(epsilon=Fraction(1)), unheard))):
        with pytest.raises(ParameterError, match="Unheard"):
            price(event)


def test_gaussian_noise_has_no_pure_price():
    gaussian = GaussianNoise(l2_squared=Fraction(1), variance=Fraction(10**9))
    for event in (gaussian, Together((gaussian,))):
        with pytest.raises(RefusedError, match=r"delta.*Laplace"):
            pure(event)


@pytest.mark.parametrize(
    "build",
    [
        lambda: LaplaceNoise(l1=Fraction(-1), scale=Fraction(1)),
        lambda: LaplaceNoise(l1=Fraction(1), scale=Fraction(0)),
        lambda: LaplaceNoise(l1=Fraction(1), scale=Fraction(-1)),
        lambda: GaussianNoise(l2_squared=Fraction(-1), variance=Fraction(1)),
        lambda: GaussianNoise(l2_squared=Fraction(1), variance=Fraction(0)),
        lambda: GaussianNoise(l2_squared=Fraction(1), variance=Fraction(-1)),
    ],
)
def test_noise_that_cannot_be_is_refused(build):
    with pytest.raises(ParameterError):
        build()


@pytest.mark.parametrize("kind", [Selection, SparseVector, RandomizedReport, SpentBefore])
def test_an_event_cannot_earn_budget(kind):
    with pytest.raises(ParameterError):
        kind(epsilon=Fraction(-1))
    with pytest.raises(ParameterError):
        from_plain({"event": kind.__name__, "epsilon": "-1"})


@pytest.mark.parametrize(
    "numbers",
    [{"hits": 0}, {"hits": Fraction(3, 2)}, {"hits": -1}, {"told": Fraction(-1)}, {"told": Fraction(2)}],
)
def test_a_sparse_vector_that_cannot_be_is_refused(numbers):
    with pytest.raises(ParameterError):
        SparseVector(epsilon=Fraction(1), **numbers)


def test_a_sparse_vector_of_version_0_1_keeps_its_price():
    """What was recorded without a number of hits is written the same again, and costs ε²/2."""
    plain = {"event": "SparseVector", "epsilon": "1/5"}
    event = from_plain(plain)
    assert as_plain(event) == plain
    assert rho(event) == Fraction(1, 50)
    assert event == SparseVector(epsilon=Fraction(1, 5), hits=1)
    refreshed = {"event": "SparseVector", "epsilon": "1/5", "hits": "4", "told": "1/9"}
    assert as_plain(from_plain(refreshed)) == refreshed


def test_events_are_frozen():
    event = Selection(epsilon=Fraction(1))
    with pytest.raises(FrozenInstanceError):
        event.epsilon = Fraction(0)  # type: ignore[misc]


# ---------------------------------------------------------------------------------------- as plain values


@given(
    st.recursive(events, lambda parts: st.lists(parts, max_size=3).map(lambda some: Together(tuple(some))))
)
def test_an_event_written_down_is_read_back_the_same(event):
    plain = as_plain(event)
    assert from_plain(json.loads(json.dumps(plain))) == event
    assert rho(from_plain(plain)) == rho(event)


@pytest.mark.parametrize(
    "plain",
    [
        {},
        {"event": "Unheard"},
        {"event": "Event"},
        {"event": "Selection"},
        {"event": "Selection", "epsilon": "1", "delta": "0"},
        {"event": "LaplaceNoise", "l1": "1"},
        {"event": "LaplaceNoise", "l1": "1", "scale": "0"},
        {"event": "Together", "events": [{"event": "Unheard"}]},
    ],
    ids=repr,
)
def test_a_record_that_is_not_understood_is_refused(plain):
    with pytest.raises(ParameterError):
        from_plain(plain)


# ---------------------------------------------------------------------------------------- currencies


@given(st.integers(0, 10**18), st.integers(0, 10**18))
def test_currencies_never_mix(a, b):
    assert PureDP(a) + PureDP(b) == PureDP(a + b)
    assert ZCDP(a) + ZCDP(b) == ZCDP(a + b)
    assert PureDP(a) != ZCDP(a)
    mixed: list[Callable[[], object]] = [
        lambda: PureDP(a) + ZCDP(b),  # type: ignore[operator]
        lambda: ZCDP(a) + PureDP(b),  # type: ignore[operator]
        lambda: PureDP(a) + b,  # type: ignore[operator]
        lambda: b + ZCDP(a),  # type: ignore[operator]
        lambda: PureDP(a) < ZCDP(b),  # type: ignore[operator]
        lambda: ZCDP(a) <= PureDP(b),  # type: ignore[operator]
        lambda: PureDP(a) > b,  # type: ignore[operator]
    ]
    for mix in mixed:
        with pytest.raises(TypeError):
            mix()


def test_currencies_are_named_and_read_as_floats():
    assert (PureDP(UNITS // 4).amount, PureDP.currency) == (0.25, "epsilon")
    assert (ZCDP(UNITS // 8).amount, ZCDP.currency) == (0.125, "rho")
    assert PureDP(1) < PureDP(2)


# ---------------------------------------------------------------------------------------- composition


@given(st.lists(pure_events, max_size=6))
def test_lecture4_theorem_8_together_adds_up(parts):
    """Exactly, before anything is rounded; also when nested."""
    together = Together(tuple(parts))
    assert epsilon(together) == sum(map(epsilon, parts))
    assert epsilon(Together((together, together))) == 2 * epsilon(together)
    assert pure(together).units <= sum(pure(part).units for part in parts)


@given(st.lists(events, max_size=6))
def test_bunsteinke16_lemma_1_7_together_adds_up(parts):
    together = Together(tuple(parts))
    assert rho(together) == sum(map(rho, parts))
    assert rho(Together((together, together))) == 2 * rho(together)
    assert concentrated(together).units <= sum(concentrated(part).units for part in parts)


def response(e: float, *, truth: bool) -> dict[bool, float]:
    """ln P[report] of a two-valued randomised response."""
    normaliser = np.logaddexp(0, e)
    return {report: (e if report == truth else 0.0) - normaliser for report in (False, True)}


@given(
    st.fractions(Fraction(1, 100), 3),
    st.fractions(Fraction(1, 100), 3),
    st.fractions(Fraction(1, 10), 1),
    st.booleans(),
    st.sampled_from(ORDERS),
)
def test_bunsteinke16_lemma_1_7_on_the_exact_law(first, second, share, swapped, order):
    """The first report chooses the second mechanism: its parameter, at most `second`, and its direction."""

    def joint(*, truth: bool) -> list[float]:
        law = []
        for report, later in product((False, True), repeat=2):
            chosen = float(second if report else second * share)
            conditional = response(chosen, truth=truth != (swapped and report))
            law.append(response(float(first), truth=truth)[report] + conditional[later])
        return law

    paid = rho(Together((RandomizedReport(epsilon=first), RandomizedReport(epsilon=second))))
    assert renyi(joint(truth=True), joint(truth=False), order) <= order * paid + ROUNDING


# ---------------------------------------------------------------------------------------- exact laws


@st.composite
def close_laws(draw: st.DrawFn) -> tuple[float, np.ndarray, np.ndarray]:
    """Two finite laws, and the ε by which they are close."""
    weights = st.lists(st.floats(0.05, 1), min_size=2, max_size=6)
    here = np.array(draw(weights))
    tilt = np.array(draw(st.lists(st.floats(-2, 2), min_size=len(here), max_size=len(here))))
    p, q = here / here.sum(), here * np.exp(tilt) / (here * np.exp(tilt)).sum()
    return float(np.abs(np.log(p) - np.log(q)).max()), np.log(p), np.log(q)


@given(close_laws(), st.sampled_from(ORDERS))
def test_bunsteinke16_proposition_1_4_on_any_laws(case, order):
    e, here, there = case
    assert renyi(here, there, order) <= order * e**2 / 2 + ROUNDING


@given(st.fractions(Fraction(1, 1000), 20), st.integers(2, 9), st.sampled_from(ORDERS))
def test_bunsteinke16_proposition_1_4_on_randomised_response(e, size, order):
    laws = np.zeros((2, size))
    laws[0, 0] = laws[1, 1] = float(e)
    laws -= np.logaddexp.reduce(laws, axis=1, keepdims=True)
    price = rho(RandomizedReport(epsilon=e))
    assert price == e**2 / 2
    assert renyi(laws[0], laws[1], order) <= order * price + ROUNDING


@pytest.mark.parametrize("scale", ["1/4", "1", "7/2", "40"])
@pytest.mark.parametrize("shift", [1, 3])
def test_bunsteinke16_proposition_1_4_on_the_discrete_laplace(scale, shift):
    points = np.arange(-2500, 2501)
    here = discrete_laplace_log_law(Fraction(scale), points)
    there = discrete_laplace_log_law(Fraction(scale), points - shift)
    price = rho(LaplaceNoise(l1=Fraction(shift), scale=Fraction(scale)))
    for order in ORDERS:
        assert renyi(here, there, order) <= order * price + ROUNDING


def test_bunsteinke16_proposition_1_4_leaves_nothing_to_save():
    """At small ε randomised response comes within 1% of ε²/2, so a price 5% lower would be wrong."""
    e = Fraction(1, 10)
    here, there = (list(response(float(e), truth=truth).values()) for truth in (True, False))
    assert renyi(here, there, 1.001) > 1.001 * rho(RandomizedReport(epsilon=e)) * Fraction(95, 100)


@pytest.mark.parametrize("variance", ["1/3", "1", "25"])
@pytest.mark.parametrize("shift", [1, 2])
def test_cks20_theorem_14_is_what_gaussian_noise_costs(variance, shift):
    points = np.arange(-1500, 1501)
    here = discrete_gaussian_log_law(Fraction(variance), points)
    there = discrete_gaussian_log_law(Fraction(variance), points - shift)
    event: Event = GaussianNoise(l2_squared=Fraction(shift**2), variance=Fraction(variance))
    assert rho(event) == shift**2 / (2 * Fraction(variance))
    for order in ORDERS:
        if order * shift < 1000:
            assert renyi(here, there, order) <= order * rho(event) * (1 + ROUNDING) + ROUNDING
    assert renyi(here, there, 2) > 2 * rho(event) * Fraction(95, 100)


@pytest.mark.parametrize("e", [Fraction(1, 10), Fraction(1), Fraction(6)])
def test_cesarrogers21_is_what_a_selection_costs(e):
    """Two candidates moved against each other: ±ε/2 around even odds, from every starting gap."""
    assert rho(Selection(epsilon=e)) == e**2 / 8
    for gap in np.linspace(-12, 12, 49):
        here, there = (np.array([0, g]) - np.logaddexp(0, g) for g in (gap, gap + float(e)))
        for order in ORDERS:
            assert renyi(here, there, order) <= order * e**2 / 8 + ROUNDING
    even, tilted = np.log([0.5, 0.5]), np.array([0, 0.1]) - np.logaddexp(0, 0.1)
    assert renyi(even, tilted, 1.001) > 1.001 * 0.1**2 / 8 * 0.95
