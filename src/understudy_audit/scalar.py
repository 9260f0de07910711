"""Noise and reports whose draws are independent along a vector: millions a second through their own `release`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt

import numpy as np

from understudy.mechanism.card import KeySubject, NoiseSubject, Releases, ReportSubject
from understudy.noise.samplers import NoiseSource
from understudy.privacy.bounded_noise import BoundedNoise
from understudy.privacy.cost import epsilon, rho
from understudy.privacy.event import Event, GaussianNoise, RoundedNormal
from understudy.privacy.key_event import TruncatedGeometricKeys
from understudy_audit.claim import (
    ApproximateClaim,
    ApproximateConcentratedClaim,
    BoundedClaim,
    Claim,
    ConcentratedClaim,
    GaussianClaim,
    NormalClaim,
    PureClaim,
    RenyiClaim,
)
from understudy_audit.events import Draws
from understudy_audit.privacy import Draw, Pair


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


def noise_pairs(subject: NoiseSubject, price: Fraction) -> list[Pair]:
    """Neighbours under noise, each against the price of the mechanism's own event."""
    found = []
    for name, moved, first, second in SHIFTS:
        if subject.most is not None and moved > subject.most:
            continue
        shift = [b - a for a, b in zip(first, second, strict=True)]
        mechanism = subject.build(price, moved, shift)
        found.append(_pair(name, mechanism, first, second, _noise_claim(mechanism.event, shift)))
    return found


def _noise_claim(event: Event, shift: Sequence[int]) -> Claim:
    """The exact curve of Gaussian noise where one number moves by all of the sensitivity, else that of ρ.

    Of rounded normal noise it is the curve of the normal law, whatever moves: that is what is promised. Of bounded
    noise it is its exact curve too, and that of its divergence where several numbers move.
    """
    if isinstance(event, RoundedNormal):
        return NormalClaim(sqrt(event.l2_squared / event.variance))
    if isinstance(event, BoundedNoise):
        if len(shift) == 1:
            return BoundedClaim(shift[0], event.reach)
        return RenyiClaim(event.order, event.divergence, event.delta)
    if not isinstance(event, GaussianNoise):
        return PureClaim(epsilon(event))
    if len(shift) == 1 and abs(shift[0]) <= 1000:
        return GaussianClaim(shift[0], event.variance)
    return ConcentratedClaim(rho(event))


KEY_COUNTS: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = (
    ("a key of nobody against one person's", (0,), (1,)),
    ("two people's", (1,), (2,)),
    ("below the threshold", (2,), (3,)),
    ("at the threshold", (4,), (5,)),
    ("above it", (7,), (8,)),
    ("far above it", (1000,), (1001,)),
    ("one key beside others", (0, 50, 3), (1, 50, 3)),
)
"""Exact counts of keys on two tables that differ in one person, who holds one key."""


def key_pairs(subject: KeySubject, price: Fraction) -> list[Pair]:
    """Neighbours under a selection of keys, each against the price and the δ of its own event."""
    mechanism = subject.build(price)
    event = mechanism.event
    claim: Claim
    if isinstance(event, TruncatedGeometricKeys):
        claim = ApproximateClaim(event.epsilon * event.keys, event.delta)
    else:
        claim = ApproximateConcentratedClaim(rho(event), event.delta_cost())
    return [_pair(name, mechanism, first, second, claim) for name, first, second in KEY_COUNTS]


def report_pairs(subject: ReportSubject, price: Fraction) -> list[Pair]:
    """One row that changes, alone and beside another, for domains of many sizes."""
    found = []
    for size in (2, 3, 4, 5, 7, 10, 16, 33, 100, 1000):
        mechanism = subject.build(price, size)
        claim = PureClaim(epsilon(mechanism.event))
        found.append(_pair(f"one row, {size} values", mechanism, (0,), (size - 1,), claim))
        found.append(_pair(f"one of two rows, {size} values", mechanism, (0, 1), (1, 1), claim))
    return found
