"""Noise for a price: the one place that decides which noise is added to a vector of whole numbers.

A price in epsilon buys discrete Laplace noise, made for the L1 sensitivity of the vector; one in rho buys
discrete Gaussian noise, or rounded normal noise, made for the Euclidean one. The mechanism's event costs just
the price in its own currency, so what is charged and what is added cannot differ.
"""

from __future__ import annotations

from functools import lru_cache
from math import log, sqrt
from typing import Literal

from understudy.mechanism.bounded_noise import BoundedMechanism
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.rounded_normal import RoundedNormalMechanism
from understudy.noise.sums import NoiseLaw
from understudy.privacy.price import Currency, Price
from understudy.privacy.relation import Sensitivity
from understudy.rational import Number
from understudy.theory.normal_law import ndtri

ROUNDED_KEY = b"rounded normal noise\n"
"""Part of the key of a look that buys rounded normal noise for its price in rho, and not discrete noise."""

CURRENCY_OF: dict[str, Currency] = {"laplace": "epsilon", "gaussian": "rho", "bounded": "rho"}
"""What each noise that a question can name (`privacy.noise_name`) is paid in."""

Additive = LaplaceMechanism | GaussianMechanism | RoundedNormalMechanism | BoundedMechanism


def noise_for(price: Price, moved: Sensitivity, *, rounded: bool = False) -> Additive:
    """The mechanism that keeps to `price` for a vector that one person moves by at most `moved`.

    With `rounded`, a price in rho buys normal noise that is rounded, for budgets that price discrete noise
    otherwise.

    A new one at every call: marginals that share a noise are known by sharing the object. Raises ParameterError
    for a price that is no privacy parameter, and for noise that cannot be drawn.
    """
    if price.currency == "epsilon":
        return LaplaceMechanism(epsilon=price.amount, l1=moved.l1)
    kind = RoundedNormalMechanism if rounded else GaussianMechanism
    return kind(rho=price.amount, l2_squared=moved.l2_squared)


def usual_noise(currency: Currency) -> Literal["laplace", "gaussian"]:
    """The noise that `noise_for` adds for a price in `currency` where nothing else is asked for."""
    return "laplace" if currency == "epsilon" else "gaussian"


def usual_reach(currency: Currency, beta: float) -> float:
    """The standard deviations that the usual noise of one count exceeds with probability `beta`, about.

    Laplace noise of scale b has the tail exp(-x/b) on both sides together, and the deviation √2·b. For plans of
    prices alone: what is told of an answer rests on the law of the noise that was drawn (`Additive.error`).
    """
    spreads = usual_spreads(currency, beta)
    return spreads / sqrt(2) if usual_noise(currency) == "laplace" else spreads


def usual_spreads(currency: Currency, beta: float) -> float:
    """The same in spreads of the noise (`amount_for`): the scale b of Laplace noise, the deviation of Gaussian."""
    return log(1 / beta) if usual_noise(currency) == "laplace" else -float(ndtri(beta / 2))


def law_of(mechanism: Additive) -> NoiseLaw | None:
    """The law of the noise on one entry; None of bounded noise, for whose sums no bound is known here."""
    match mechanism:
        case LaplaceMechanism():
            return NoiseLaw("laplace", mechanism.parameter)
        case GaussianMechanism():
            return NoiseLaw("gaussian", mechanism.parameter)
        case RoundedNormalMechanism():
            return NoiseLaw("rounded", mechanism.parameter)
        case BoundedMechanism():
            return None


def adds_noise(mechanism: Additive) -> bool:
    """Whether somebody can move the values, so that there is noise on them."""
    return bool(
        mechanism.l1 if isinstance(mechanism, LaplaceMechanism | BoundedMechanism) else mechanism.l2_squared
    )


@lru_cache(
    maxsize=4096, typed=True
)  # a float and a fraction that compare equal may stand for different numbers
def error_of(mechanism: Additive, beta: Number, cells: int) -> int:
    """`mechanism.error`, found once for equal arguments, which are all public."""
    return mechanism.error(beta, cells=cells)


def amount_for(currency: Currency, moved: Sensitivity, spread: float) -> float:
    """The price, in `currency`, at which `noise_for` adds noise of the given `spread`: Δ₁/b, or Δ²/(2σ²)."""
    return moved.l1 / spread if currency == "epsilon" else moved.l2_squared / (2 * spread**2)
