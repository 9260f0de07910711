"""What events take of Gaussian differential privacy, against curves that are integrated here in other ways."""

from __future__ import annotations

from fractions import Fraction
from math import erf, exp, pi, sqrt

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from understudy.errors import ParameterError, RefusedError
from understudy.ledger.verifier import lattice_surcharge
from understudy.privacy import gdp
from understudy.privacy.compose import zcdp_rho
from understudy.privacy.gdp import (
    MOST_ETA,
    STEP,
    discrete_gaussian_cost,
    gdp_cap,
    gdp_epsilon,
    is_plain,
    pure_cost,
    selection_cost,
)

MILLIONTH, BILLIONTH = Fraction(1, 10**6), Fraction(1, 10**9)
WHOLE = gdp_cap(Fraction(1), MILLIONTH)
RESERVE = WHOLE * Fraction(3, 100)
EDGES = np.linspace(-6.0, 6.0, 1201)
"""Where curves are compared, in deviations."""


def curve(mu_squared: float, epsilons):
    """δ(ε) of μ-GDP, also for negative ε."""
    mu = sqrt(mu_squared)
    here, there = log_ndtr(mu / 2 - epsilons / mu), epsilons + log_ndtr(-mu / 2 - epsilons / mu)
    return np.exp(here) * -np.expm1(there - here)


def excess(losses, chances, reserve: float, taken: float) -> float:
    """How far the curve of an event after normal noise is above that of normal noise alone, at worst.

    Relative to δ(ε) for ε ≥ 0, and to δ(ε) - (1 - exp(ε)) below, which is the same from the other side.
    """
    whole = reserve + taken
    epsilons = EDGES * sqrt(whole)
    event = sum(p * curve(reserve, epsilons - loss) for loss, p in zip(losses, chances, strict=True))
    normal = curve(whole, epsilons)
    other = normal - -np.expm1(epsilons)
    scale = np.where(epsilons >= 0, normal, np.maximum(other, 1e-300))
    usable = scale > np.where(epsilons >= 0, 1e-9, 1e-4)  # below 0 it is a difference of larger numbers
    return float(np.max(((event - normal) / scale)[usable]))


def response(epsilon: float):
    """Losses of randomised response, and their probabilities."""
    likely = 1 / (1 + exp(-epsilon))
    return (epsilon, -epsilon), (likely, 1 - likely)


def ranged(epsilon: float, top: float):
    """Losses `top` and `top` - ε, with the probabilities for which E exp(-loss) = 1."""
    likely = (exp(epsilon - top) - 1) / (exp(epsilon - top) - exp(-top))
    return (top, top - epsilon), (likely, 1 - likely)


# ---- the cap


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu", "gain"),
    [
        (1, MILLIONTH, 0.2367044, 0.1502),
        (2, MILLIONTH, 0.4483347, 0.1401),
        (2, BILLIONTH, 0.3515498, 0.1009),
    ],
)
def test_drs22_corollary_2_13_the_cap_of_a_budget(epsilon, delta, mu, gain):
    cap = gdp_cap(Fraction(epsilon), delta)
    assert sqrt(cap) == pytest.approx(mu, abs=5e-8)
    assert float(cap) / 2 / zcdp_rho(epsilon, float(delta)) - 1 == pytest.approx(gain, abs=5e-5)
    assert gdp_epsilon(cap, delta) == pytest.approx(epsilon, rel=1e-9)


def test_pins_of_the_gain_in_rho():
    assert float(WHOLE) / 2 == pytest.approx(0.0280145, abs=5e-8)
    assert zcdp_rho(1, 1e-6) == pytest.approx(0.0243560, abs=5e-8)
    assert float(WHOLE - RESERVE) / 2 / zcdp_rho(1, 1e-6) - 1 == pytest.approx(0.1157, abs=5e-5)


@given(st.floats(0.05, 8), st.integers(2, 14))
@settings(max_examples=20)
def test_the_cap_is_the_largest_whole_step_and_never_above_delta(epsilon, digits):
    price, delta = Fraction(epsilon).limit_denominator(1000) + Fraction(1, 1000), Fraction(1, 10**digits)
    cap = gdp_cap(price, delta)
    assert (cap / STEP).denominator == 1
    least = float(curve(float(cap) * (1 - 1e-9), np.array(float(price))))
    most = float(curve(float(cap) * (1 + 1e-9), np.array(float(price))))
    assert least <= float(delta) * (1 + 1e-9)
    assert most >= float(delta) * (1 - 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, MILLIONTH), (40, BILLIONTH), (150, MILLIONTH)])
def test_the_cap_does_not_depend_on_how_many_digits_it_is_found_with(epsilon, delta, monkeypatch):
    """At a large ε a tail is multiplied by exp(ε): the digits that this takes are added to those that are kept."""
    found = gdp_cap(Fraction(epsilon), delta)
    monkeypatch.setattr(gdp, "DIGITS", gdp.DIGITS + 100)
    around = [int(found / STEP) + more for more in (-1, 0, 1, 2)]
    kept = [gdp._over(steps, Fraction(epsilon), delta) <= 0 for steps in around]
    assert kept == [True, True, False, False]


def test_a_cap_needs_a_budget_with_a_delta():
    with pytest.raises(ParameterError, match="positive epsilon"):
        gdp_cap(Fraction(1), Fraction(0))


# ---- pure events


@pytest.mark.parametrize(("ratio", "dearer"), [(16, 1.01027), (4, 1.03964), (1, 1.13787)])
def test_what_a_pure_event_takes_depends_on_the_reserve_over_its_square(ratio, dearer):
    epsilon = Fraction(1, 50)
    assert float(pure_cost(epsilon, ratio * epsilon**2) / epsilon**2) == pytest.approx(dearer, abs=1e-5)


def test_pins_of_pure_events():
    assert float(pure_cost(Fraction(1, 50), Fraction(16, 10**4))) == pytest.approx(0.000415857, abs=1e-9)
    nearly_none = pure_cost(Fraction(1, 1000), Fraction(1, 10**14))
    assert float(nearly_none) * 10**6 == pytest.approx(pi / 2, rel=1e-4)
    assert pure_cost(Fraction(0), RESERVE) == 0


@pytest.mark.parametrize("epsilon", ["0.003", "0.02", "0.0369", "0.1", "0.5", "2", "7"])
@pytest.mark.parametrize("reserve", [RESERVE, RESERVE * 30, RESERVE / 20])
def test_a_pure_event_after_normal_noise_is_covered_everywhere_and_just_so(epsilon, reserve):
    """The lemma that total variation decides: nowhere above, and above if a little less is taken."""
    taken, losses = pure_cost(Fraction(epsilon), reserve), response(float(Fraction(epsilon)))
    assert excess(*losses, float(reserve), float(taken)) <= 1e-10
    assert excess(*losses, float(reserve), 0.999 * float(taken)) > 1e-7


@given(st.floats(1e-6, 30), st.floats(1e-6, 1))
@settings(max_examples=50)
def test_what_a_pure_event_takes_lies_between_its_square_and_its_price_without_a_reserve(epsilon, reserve):
    price, kept = Fraction(epsilon), Fraction(reserve)
    taken = float(pure_cost(price, kept))
    if epsilon < 20:  # sqrt(s)·Z reaches less than ε does: tanh is the variance of the loss over ε²
        assert taken >= epsilon**2 * np.tanh(epsilon / 2) / (epsilon / 2) * (1 - 1e-9) - 1e-12
        assert taken <= min(pi / 2 * epsilon**2, 8 * epsilon) * (1 + 1e-9) + 1e-12
    assert pure_cost(price, 2 * kept) <= pure_cost(price, kept)
    assert pure_cost(2 * price, kept) >= pure_cost(price, kept)


# ---- selections


def test_chords_of_a_call_are_below_the_call_of_the_larger_variance():
    """The theorem that the price of a selection rests on, on a grid beside its proof (`test_chords`).

    Over every interval of length 2h around x the chord of C₁ is at most C_(1+κ)(x). The worst interval has
    its middle at M with x = 2M - E[Z | M - h < Z < M + h]; the room grows with M².
    """

    def call(x, variance=1.0):
        spread = np.sqrt(variance)
        return spread * np.exp(-((x / spread) ** 2) / 2) / sqrt(2 * pi) - x * ndtr(-x / spread)

    middles = np.concatenate([np.linspace(0.02, 1, 50), np.linspace(1.05, 7, 120)])
    for eta in np.geomspace(1e-3, MOST_ETA, 120):
        h = sqrt(eta)
        bell = 2 / eta * (h * sqrt(pi / 2) * erf(h / sqrt(2)) - (1 - exp(-eta / 2)))
        kappa = (1 + eta * bell / 2) ** 2 - 1
        low, high = middles - h, middles + h
        between = np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)
        x = 2 * middles - between / sqrt(2 * pi) / (ndtr(-low) - ndtr(-high))
        inside = (x < high) & (call(x, 1 + kappa) - call(x) > 1e-7)
        chord = ((high - x) * call(low) + (x - low) * call(high)) / (2 * h) - call(x)
        room = 1 - chord / (call(x, 1 + kappa) - call(x))
        least = min(eta / 30, 0.03, 0.2 / eta)
        assert (room >= least * np.minimum(middles**2, 1) - 1e-7)[inside].all(), eta
        # and no other interval is worse than that one
        for at in (0.0, 0.3, 1.0, 2.0):
            ends = at - 2 * h * np.linspace(0.001, 0.999, 999)
            lines = (ends + 2 * h - at) * call(ends) + (at - ends) * call(ends + 2 * h)
            assert lines.max() / (2 * h) <= call(at, 1 + kappa) + 1e-12


@pytest.mark.parametrize("epsilon", ["0.004", "0.03", "0.0738", "0.2", "0.5", "0.9", "1.5"])
@pytest.mark.parametrize("reserve", [RESERVE, RESERVE * 30])
def test_a_selection_after_normal_noise_is_covered_for_every_pair_of_losses(epsilon, reserve):
    taken = float(selection_cost(Fraction(epsilon), reserve))
    price = float(Fraction(epsilon))
    for part in np.linspace(0.02, 0.98, 49):
        assert excess(*ranged(price, part * price), float(reserve), taken) <= 1e-10
    if price <= 1:  # not much more is taken than the middle pair needs
        assert excess(*ranged(price, price / 2), float(reserve), 0.9 * taken) > 0


def test_small_events_are_never_dearer_than_in_zcdp():
    """At (1, 10⁻⁶) with 3% in reserve: pure ones up to 0.0369, selections up to nearly twice that."""
    gain = float(WHOLE - RESERVE) / 2 / zcdp_rho(1, 1e-6)
    for thousandths in range(1, 37):
        epsilon = Fraction(thousandths, 1000)
        assert float(pure_cost(epsilon, RESERVE)) <= gain * float(epsilon**2)
        assert float(selection_cost(2 * epsilon, RESERVE)) <= gain * float(epsilon**2)
    assert float(pure_cost(Fraction("0.0369"), RESERVE)) <= gain * 0.0369**2
    assert float(pure_cost(Fraction("0.038"), RESERVE)) > gain * 0.038**2


# ---- discrete Gaussian noise


def lattice_excess(moves, variance: float, reserve: float, taken: float) -> float:
    """As `excess`, for discrete Gaussian noise on coordinates that are moved so far each."""
    reach = int(9 * sqrt(variance)) + 3
    steps = np.arange(-reach, reach + 1)
    weights = np.exp(-(steps**2) / (2 * variance))
    weights /= weights.sum()
    losses, chances = np.zeros(1), np.ones(1)
    for move in moves:
        one = (move * steps + move**2 / 2) / variance
        losses = (losses[:, None] + one[None, :]).ravel()
        chances = (chances[:, None] * weights[None, :]).ravel()
        losses, place = np.unique(np.round(losses, 12), return_inverse=True)
        chances = np.bincount(place, chances)
    return excess(losses, chances, reserve, taken)


@pytest.mark.parametrize("moves", [(1,), (2,), (1, 1)])
@pytest.mark.parametrize("variance", [1, 2, 5, 18, 60])
@pytest.mark.parametrize("times", [1, 10, 200])
def test_discrete_gaussian_noise_is_covered_wherever_it_has_a_price(moves, variance, times):
    reserve, squared = RESERVE * times, Fraction(sum(move**2 for move in moves))
    try:
        taken = discrete_gaussian_cost(squared, Fraction(variance), reserve)
    except RefusedError:
        assert variance <= 60  # only where the noise is small, and the reserve even smaller
        assert not is_plain(squared, Fraction(variance), reserve)
        return
    assert taken >= squared / variance
    assert lattice_excess(moves, variance, float(reserve), float(taken)) <= 1e-10  # `PLAIN` is in the cap


def test_discrete_gaussian_noise_of_usual_size_takes_what_normal_noise_does():
    for variance in (100, 10**4, 10**9):
        assert is_plain(Fraction(2), Fraction(variance), RESERVE)
        taken = discrete_gaussian_cost(Fraction(2), Fraction(variance), RESERVE)
        assert taken == Fraction(2, variance)
    assert discrete_gaussian_cost(Fraction(0), Fraction(1, 100), RESERVE) == 0


@pytest.mark.parametrize("reserve", [3, 17, 32])
def test_discrete_gaussian_noise_has_a_price_under_the_largest_budgets(reserve):
    """The reserve of (400, 10⁻⁶) is 17 and that of (1000, 10⁻⁶) 48: from 3 on no such noise had a price."""
    for variance in (4, 18, 60):
        taken = discrete_gaussian_cost(Fraction(1), Fraction(variance), Fraction(reserve))
        assert taken == Fraction(1, variance)
        assert lattice_excess((1,), variance, float(reserve), float(taken)) <= 1e-10
    assert is_plain(Fraction(2), Fraction(12_000**2), gdp_cap(Fraction(1000), MILLIONTH))
    with pytest.raises(RefusedError, match="so small a variance"):
        discrete_gaussian_cost(Fraction(1), Fraction(1, 2), Fraction(reserve))


@given(st.integers(1, 9), st.fractions(Fraction(1, 10), 40), st.fractions(Fraction(1, 100), 600))
def test_the_verifier_finds_the_same_surcharge(squared, variance, reserve):
    found = gdp._surcharge(Fraction(squared), variance, reserve)
    again = lattice_surcharge(Fraction(squared), variance, reserve)
    assert (found is None) == (again is None)
    if found is not None:
        assert abs(found - again) <= Fraction(2, 10**30)


def test_without_room_the_lattice_shows():
    """Noise of a step or less is really worse than normal noise: the surcharge is not for nothing."""
    assert lattice_excess((1,), 0.2, 1.0, 5.0) > 1e-4
    with pytest.raises(RefusedError, match="so small a variance"):
        discrete_gaussian_cost(Fraction(1), Fraction(1, 5), Fraction(1))


# ---- the steps of the bound for discrete noise


def upper(s: float, place):
    """H_s of a loss `place` above ε, also for complex numbers: Φ(d) - exp(-place)·Φ(d - √s)."""
    root = mpmath.sqrt(s)
    d = place / root + root / 2
    here, there = (mpmath.erfc(-at / mpmath.sqrt(2)) / 2 for at in (d, d - root))
    return here - mpmath.exp(-place) * there


@pytest.mark.parametrize("s", [1e-4, 0.02, 0.6, 3.0, 17.0, 600.0])
def test_h_in_the_complex_plane_is_bounded_by_its_real_part(s):
    """|H(u + iv)| ≤ exp(v²/2s)·H(u), and the same for K: both are normal averages of non-negative functions."""
    with mpmath.workdps(60):
        for u in (-3.0, -0.5, 0.0, 0.7, 2.0):
            for v in (0.1, 1.0, 3.0):
                real, shift = u * mpmath.sqrt(s), v * mpmath.sqrt(s)
                place = mpmath.mpc(real, shift)
                bound = mpmath.exp(shift**2 / (2 * s)) * (1 + mpmath.mpf(10) ** -30)
                assert abs(upper(s, place)) <= bound * upper(s, real)
                assert abs(upper(s, place) - (1 - mpmath.exp(-place))) <= bound * (
                    upper(s, real) - (1 - mpmath.exp(-real))
                )


@pytest.mark.parametrize("s", [1e-4, 0.02, 0.6, 3.0, 17.0, 600.0])
def test_what_is_added_covers_the_excess(s):
    """min(H, K) ≤ C√s·φ(d), and H grows by more than τ times that when 3τCs are added.

    That is so up to 3τC = 1/2 and 3τCs = 3/2; with a large s the first is not enough.
    """
    with mpmath.workdps(400):
        root = mpmath.sqrt(s)
        most = 1 + mpmath.sqrt(2 * mpmath.pi * s) * mpmath.exp(mpmath.mpf(s) / 2)
        for u in np.linspace(-7, 7, 57):
            place = float(u) * root
            density = mpmath.npdf(place / root + root / 2)
            here = upper(s, place)
            other = here - (1 - mpmath.exp(-place))
            assert other == pytest.approx(mpmath.exp(-place) * upper(s, -place), rel=1e-20)
            assert min(here, other) <= most * root * density
            for part in (1e-6, 0.01, 0.5):
                least = min(part, 1.5 / s)
                risen = upper(s * (1 + least), place) - here
                assert risen >= least / 3 * root * density
        risen = upper(1.5 * s, 0) - upper(s, 0)  # where d² grows most
        assert (risen >= root * mpmath.npdf(root / 2) / 6) == (s < 10)


# ---- the filter


def test_smiththakurta22_paths_that_choose_their_steps_stay_under_the_cap():
    """E h(total loss) over trees in which every next step depends on what was seen, worked out exactly."""
    epsilon, total = 1.0, float(WHOLE)
    price = {e: float(pure_cost(Fraction(e), RESERVE)) for e in ("0.02", "0.04")}
    select = float(selection_cost(Fraction("0.05"), RESERVE))

    def worst(loss: float, left: float, depth: int, plan: int) -> float:
        """The δ of a subtree: which event comes next is decided by the loss so far and by a plan."""
        if depth == 0 or left < max(*price.values(), select):
            return float(curve(left + float(RESERVE), np.array(epsilon - loss)))  # the rest in normal noise
        kind = (plan + depth + (loss > 0)) % 3
        if kind == 2:
            pairs, taken = ranged(0.05, 0.05 * (0.35 if loss > 0 else 0.6)), select
        else:
            name = ("0.02", "0.04")[kind]
            pairs, taken = response(float(name)), price[name]
        return sum(
            p * worst(loss + step, left - taken, depth - 1, plan) for step, p in zip(*pairs, strict=True)
        )

    for plan in range(3):
        found = worst(0.0, total - float(RESERVE), 6, plan)
        assert 2e-7 < found <= 1e-6 * (1 + 1e-9)


def test_pure_events_at_their_square_would_break_the_promise():
    """An attack on the filter: spend on normal noise, and where the loss comes near ε, end with a pure event.

    Priced ε² (as ρ = ε²/2 would be) it lifts δ above its cap; priced by what it takes at the reserve it does not.
    """
    (up, down), (likely, unlikely) = response(0.1)
    bought = float(pure_cost(Fraction(1, 10), RESERVE))

    def told(first: float, kept: float) -> float:
        """δ at ε = 1 where `first` goes to normal noise and the best of two ends follows, at `kept` of reserve."""
        mean, spread = first / 2, sqrt(first)
        losses = mean + spread * np.linspace(-9, 9, 200_001)
        density = np.exp(-(((losses - mean) / spread) ** 2) / 2) / (spread * sqrt(2 * pi))
        pure = likely * curve(kept, 1 - losses - up) + unlikely * curve(kept, 1 - losses - down)
        normal = curve(float(WHOLE) - first, 1 - losses)
        return float(np.trapezoid(density * np.maximum(pure, normal), losses))

    assert told(float(WHOLE) - 0.01, 1e-12) > 1.01e-6
    assert told(float(WHOLE) - bought - float(RESERVE), float(RESERVE)) <= 1e-6 * (1 + 1e-6)
