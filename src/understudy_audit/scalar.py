"""Subjects whose draws are independent along a vector: millions a second through the mechanism's own `release`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.randomized_response import RandomizedResponse
from understudy.noise.samplers import NoiseSource
from understudy.privacy.cost import epsilon, rho
from understudy_audit.claim import Claim, ConcentratedClaim, GaussianClaim, PureClaim
from understudy_audit.events import Draws
from understudy_audit.privacy import Draw, Pair, Subject


class Releases(Protocol):
    """A mechanism that treats every entry of an array alike and independently."""

    def release(self, values: NDArray[np.int64], *, noise: NoiseSource) -> NDArray[np.int64]: ...


def repeated(mechanism: Releases, values: Sequence[int]) -> Draw:
    """Runs of a mechanism on a vector of values: one release of that vector many times over."""

    def draw(count: int, noise: NoiseSource) -> Draws:
        told = mechanism.release(np.tile(np.array(values, np.int64), count), noise=noise)
        return np.asarray(told, np.int64).reshape(count, len(values))

    return draw


def _pair(name: str, mechanism: Releases, first: Sequence[int], second: Sequence[int], claim: Claim) -> Pair:
    return Pair(name, repeated(mechanism, first), repeated(mechanism, second), claim)


SHIFTS: tuple[tuple[str, int, tuple[int, ...], tuple[int, ...]], ...] = (
    ("0 against 1", 1, (0,), (1,)),
    ("nobody against one person", 1, (0,), (-1,)),
    ("large counts", 1, (2**40,), (2**40 + 1,)),
    ("beyond 53 bits", 1, (2**53,), (2**53 + 1,)),
    ("negative", 1, (-(2**33),), (-(2**33) + 1,)),
    ("sensitivity 2", 2, (10,), (12,)),
    ("sensitivity 3", 3, (0,), (3,)),
    ("sensitivity 7", 7, (-3,), (4,)),
    ("sensitivity 33", 33, (0,), (33,)),
    ("sensitivity 100", 100, (0,), (100,)),
    ("sensitivity 1000", 1000, (500,), (-500,)),
    ("sensitivity 2^20", 2**20, (0,), (2**20,)),
    ("two cells, both moved", 2, (5, 5), (4, 6)),
    ("two cells, one moved", 2, (5, 5), (7, 5)),
    ("three cells, two moved", 2, (0, 1, 2), (0, 2, 1)),
    ("four cells, all moved", 4, (0, 0, 0, 0), (1, -1, 1, -1)),
    ("a rare cell appears", 2, (100, 0), (99, 1)),
    ("a cell of 2^32", 2, (2**32, 7), (2**32 - 1, 8)),
    ("half of the sensitivity", 2, (0,), (1,)),
    ("two steps of one", 1, (3, 0), (4, 0)),
)
"""Name, sensitivity, and the exact values on two neighbouring tables: 20 pairs."""


def laplace_pairs(price: Fraction) -> list[Pair]:
    """Neighbours under Laplace noise, each against the price of the mechanism's own event."""
    found = []
    for name, moved, first, second in SHIFTS:
        mechanism = LaplaceMechanism(epsilon=price, l1=moved)
        found.append(_pair(name, mechanism, first, second, PureClaim(epsilon(mechanism.event))))
    return found


def gaussian_pairs(price: Fraction) -> list[Pair]:
    """The exact curve where one number moves by all of the sensitivity, else that of ρ."""
    found = []
    for name, _, first, second in SHIFTS:
        apart = [b - a for a, b in zip(first, second, strict=True)]
        squares = sum(step * step for step in apart)
        mechanism = GaussianMechanism(rho=price, l2_squared=squares)
        claim: Claim = ConcentratedClaim(rho(mechanism.event))
        if len(apart) == 1 and abs(apart[0]) <= 1000:
            claim = GaussianClaim(apart[0], mechanism.variance)
        found.append(_pair(name, mechanism, first, second, claim))
    return found


def response_pairs(price: Fraction) -> list[Pair]:
    """One row that changes, alone and beside another, for domains of many sizes."""
    found = []
    for size in (2, 3, 4, 5, 7, 10, 16, 33, 100, 1000):
        mechanism = RandomizedResponse(epsilon=price, size=size)
        claim = PureClaim(epsilon(mechanism.event))
        found.append(_pair(f"one row, {size} values", mechanism, (0,), (size - 1,), claim))
        found.append(_pair(f"one of two rows, {size} values", mechanism, (0, 1), (1, 1), claim))
    return found


def scalar_subjects(price: Fraction = Fraction(1)) -> list[Subject]:
    """Laplace and Gaussian noise and randomised response, at ε = `price` (ρ = price²/2)."""
    return [
        Subject(
            "laplace", "mechanism.laplace.LaplaceMechanism.release", "vector", lambda: laplace_pairs(price)
        ),
        Subject(
            "gaussian",
            "mechanism.gaussian.GaussianMechanism.release",
            "vector",
            lambda: gaussian_pairs(price**2 / 2),
        ),
        Subject(
            "randomized-response",
            "mechanism.randomized_response.RandomizedResponse.release",
            "vector",
            lambda: response_pairs(price),
        ),
    ]
