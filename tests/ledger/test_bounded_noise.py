"""Bounded noise before whoever verifies a ledger, and before a second accountant."""

from __future__ import annotations

from fractions import Fraction
from math import log, log1p

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import RefusedError
from understudy.ledger import pld, verifier
from understudy.privacy.bounded_noise import BoundedNoise
from understudy.privacy.budget import Budget
from understudy.privacy.event import Event, Located, RoundedNormal, Selection, Span, Together
from understudy.privacy.recording import as_plain

ORDER = Fraction(22)


def numbers(event: Event) -> dict[str, Fraction]:
    return {name: Fraction(text) for name, text in as_plain(event).items() if name != "event"}


noises = st.builds(
    lambda reach, largest, times, more, order: BoundedNoise.priced(
        reach=reach, l1=largest * times, largest=largest, set_aside=largest + more, order=order
    ),
    st.integers(200, 500),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 4),
    st.fractions(Fraction(3, 2), 20, max_denominator=10),
)


@given(noises)
@settings(max_examples=40)
def test_the_verifier_finds_the_price_of_bounded_noise_on_its_own(noise: BoundedNoise) -> None:
    """Its own sums are below what is recorded, and above all of it but what six digits round up."""
    assert verifier.bounded_noise(numbers(noise), ("renyi", noise.order)) == noise.divergence / noise.order
    divergence, mass = verifier.bounded_sums(noise.reach, noise.largest, noise.set_aside, noise.order)
    aside = float(noise.delta) / (float(noise.order) - 1)  # which the product does not take off
    assert float(noise.divergence) <= (noise.l1 * divergence + aside) * 1.00003
    assert float(noise.delta) <= noise.l1 * mass * 1.00002


@given(noises, st.sampled_from(["divergence", "delta", "reach", "l1"]))
@settings(max_examples=40)
def test_the_verifier_sees_noise_that_was_charged_too_little(noise: BoundedNoise, name: str) -> None:
    recorded = numbers(noise)
    changed = {
        "divergence": recorded["divergence"] * Fraction(9, 10),
        "delta": recorded["delta"] * Fraction(999, 1000),
        "reach": recorded["reach"] // 2,
        "l1": recorded["l1"] * 2,
    }
    with pytest.raises(verifier.Wrong):
        verifier.bounded_noise({**recorded, name: Fraction(changed[name])}, ("renyi", noise.order))


@pytest.mark.parametrize(
    "changes",
    [
        {"reach": Fraction(1, 2)}, {"reach": Fraction(0)}, {"reach": Fraction(1 << 18)}, {"largest": Fraction(0)},
        {"largest": Fraction(2)}, {"set_aside": Fraction(0)}, {"set_aside": Fraction(2001)},
        {"delta": Fraction(1)}, {"order": Fraction(1)}, {"order": Fraction(10**7)},
        {"l1": Fraction(64), "largest": Fraction(64), "set_aside": Fraction(64), "reach": Fraction(1 << 17)},
    ],
    ids=str,
)  # fmt: skip
def test_the_verifier_does_not_price_noise_that_cannot_be(changes: dict[str, Fraction]) -> None:
    noise = BoundedNoise.priced(reach=2000, l1=1, largest=1, set_aside=5, order=ORDER)
    with pytest.raises(verifier.Wrong):
        verifier.bounded_noise(
            {**numbers(noise), "divergence": Fraction(9), "delta": Fraction(9, 10), **changes},
            ("renyi", ORDER),
        )


def test_a_ledger_in_epsilon_or_in_rho_has_no_price_for_it() -> None:
    """Neither the product nor the verifier takes it in there, unless nobody can move the numbers."""
    noise = BoundedNoise.priced(reach=2000, l1=1, largest=1, set_aside=5, order=ORDER)
    free = BoundedNoise.priced(reach=2000, l1=0, largest=1, set_aside=5, order=ORDER)
    for budget, currency in ((Budget.of(1), "epsilon"), (Budget.of(1, 1e-6), "rho")):
        with pytest.raises(RefusedError, match="bounded noise"):
            budget.price(noise)
        with pytest.raises(verifier.Wrong, match="bounded noise"):
            verifier.price(as_plain(noise), currency)
        assert budget.price(free).units == verifier.price(as_plain(free), currency) == 0


def test_the_verifier_counts_the_delta_of_bounded_noise_wherever_it_stands() -> None:
    noise = BoundedNoise.priced(reach=2000, l1=1, largest=1, set_aside=5, order=ORDER)
    located = Located(noise=noise, region=(Span("age", 4, 3),), relation="replace", split=False)
    for event in (
        noise,
        located,
        Together((located, Selection(epsilon=Fraction(1)))),
        Together((noise, noise)),
    ):
        assert verifier.delta(as_plain(event)) == event.delta_cost() > 0


def test_the_verifier_prices_rounded_normal_noise_jointly_with_gaussian_noise() -> None:
    """As the product does: two counts of different people cost as one, whichever of the two noises each has."""
    noise = RoundedNormal(l2_squared=Fraction(1), variance=Fraction(100))
    assert verifier.price(as_plain(noise), "rho") == Fraction(1, 200)
    with pytest.raises(verifier.Wrong, match="epsilon"):
        verifier.price(as_plain(noise), "epsilon")


# ---------------------------------------------------------------------------------------- a second accountant


def by_divergence(events: list[Event], delta: float) -> float:
    """The ε of events at one order, by [CKS20, Corollary 13] for what they leave of δ."""
    a = float(ORDER)
    left = delta - float(sum(event.delta_cost() for event in events))
    bonus = (log(1 / left) + (a - 1) * log1p(-1 / a) - log(a)) / (a - 1)
    return float(sum(event.renyi_cost(ORDER) for event in events)) + bonus


@pytest.mark.parametrize(
    ("l1", "largest", "set_aside", "times"), [(1, 1, 5, 1000), (2, 1, 5, 1000), (2, 2, 14, 500)], ids=str
)
def test_privacy_loss_distributions_are_never_above_the_sum(l1, largest, set_aside, times) -> None:
    """The exact law of bounded noise, composed, costs less than its divergences at one order add up to."""
    noise = BoundedNoise.priced(reach=2000, l1=l1, largest=largest, set_aside=set_aside, order=ORDER)
    module = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    theirs = pld._composed_epsilon(module, pld._counted([noise] * times), 1e-6)
    assert 0.3 * by_divergence([noise] * times, 1e-6) < theirs <= by_divergence([noise] * times, 1e-6)
