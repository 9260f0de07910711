"""Keys that are told too early, without noise, or by the number of those that are not: caught by many draws."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from audit.mutants.mutant import Mutant
from audit.mutants.noise import Releasing, vector_caught
from understudy.mechanism.key_selection import GaussianSelection, TruncatedGeometricSelection
from understudy.noise.samplers import truncated_geometric
from understudy.privacy.cost import rho
from understudy_audit.claim import ApproximateClaim, ApproximateConcentratedClaim

GEOMETRIC = TruncatedGeometricSelection(epsilon=Fraction(1), reach=3)
GAUSSIAN = GaussianSelection(variance=Fraction(1), reach=3)
CLAIM = ApproximateClaim(Fraction(1), GEOMETRIC.event.delta)
NORMAL = ApproximateConcentratedClaim(rho(GAUSSIAN.event), GAUSSIAN.event.delta)


def early(values, noise):
    """The threshold one step too near, for keys that exist."""
    noisy = values + truncated_geometric(1, 3, values.size, noise=noise)
    return np.where((values > 0) & (noisy >= GEOMETRIC.threshold - 1), noisy, 0)


def exact_counts(values, noise):
    """The noisy count decides, and the exact one is told."""
    return np.where(GEOMETRIC.release(values, noise=noise) > 0, values, 0)


def plain_threshold(values, noise):
    """Keys of four people or more, as suppression rules tell them."""
    del noise
    return np.where(values >= 4, 1, 0)


KEYS = [
    Mutant("a key's threshold is one step too near", "statistical",
           lambda: vector_caught(Releasing(early), (0,), (1,), CLAIM)),
    Mutant("a key is told with its exact count", "statistical",
           lambda: vector_caught(Releasing(exact_counts), (7,), (8,), CLAIM)),
    Mutant("keys by a threshold without noise", "statistical",
           lambda: vector_caught(Releasing(plain_threshold), (3,), (4,), CLAIM)),
    Mutant("a key's Gaussian noise is half as wide", "statistical",
           lambda: vector_caught(replace(GAUSSIAN, variance=Fraction(1, 4)), (7,), (8,), NORMAL)),
]  # fmt: skip

KEYS_HONEST = [
    Mutant("truncated geometric keys", "statistical",
           lambda: any(vector_caught(GEOMETRIC, (n,), (n + 1,), CLAIM, samples=200_000) for n in (0, 3, 7))),
    Mutant("Gaussian keys", "statistical",
           lambda: any(vector_caught(GAUSSIAN, (n,), (n + 1,), NORMAL, samples=200_000) for n in (0, 3, 7))),
]  # fmt: skip
