"""Noise that is too small, of the wrong shape, or on the wrong numbers: caught by the statistics of many draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np

from audit.mutants.mutant import ERROR, ONE, Mutant
from understudy.mechanism.bounded_noise import BoundedMechanism
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.randomized_response import RandomizedResponse
from understudy.mechanism.rounded_normal import RoundedNormalMechanism
from understudy.noise.bounded import bounded
from understudy.noise.normal import rounded_normal
from understudy.noise.samplers import SeededNoise, discrete_laplace
from understudy_audit.claim import (
    BoundedClaim,
    ConcentratedClaim,
    GaussianClaim,
    NormalClaim,
    PureClaim,
)
from understudy_audit.privacy import Pair, audit_pair
from understudy_audit.scalar import repeated


def vector_caught(mechanism, first, second, claim, *, samples=1_000_000) -> bool:
    pair = Pair("mutant", repeated(mechanism, first), repeated(mechanism, second), claim)
    return any(f.excess for f in audit_pair(pair, samples=samples, error=ERROR, noise=SeededNoise(11)))


@dataclass(frozen=True)
class Releasing:
    """A mechanism given by a function of values and noise."""

    how: Callable

    def release(self, values, *, noise):
        return self.how(values, noise)


def float_laplace(values, noise):
    """The textbook sampler in floats; what is looked at is the bit pattern of what is released."""
    uniform = (noise.words(values.size) >> np.uint64(11)) * 2.0**-53 - 0.5
    drawn = -np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
    return (values + drawn).view(np.int64)


def shared_noise(values, noise):
    cells = values.reshape(-1, 2)
    return (cells + discrete_laplace(2, len(cells), noise=noise)[:, None]).ravel()


def truncated(values, noise):
    return values + np.clip(discrete_laplace(1, values.size, noise=noise), -5, 5)


def narrow(values, noise):
    return values.astype(np.int32).astype(np.int64) + discrete_laplace(1, values.size, noise=noise)


def clipped(values, noise):
    """Moved into the range of the data, as if that were public."""
    return np.minimum(values + discrete_laplace(1, values.size, noise=noise), values.max())


def positive_only(values, noise):
    return values + np.abs(discrete_laplace(1, values.size, noise=noise))


def float_totals(values, noise):
    """Exact counts kept as floats of 24 bits before the noise."""
    return values.astype(np.float32).astype(np.int64) + discrete_laplace(1, values.size, noise=noise)


def seen_values(values, noise):
    """Randomised response over the values that occur in the table."""
    domain = np.unique(values)
    lie = noise.words(values.size) % np.uint64(3) == 0
    return np.where(lie, domain[(noise.words(values.size) % np.uint64(domain.size)).astype(np.int64)], values)


def biased_coin(values, noise):
    """The coin of randomised response from one byte, rounded the wrong way."""
    keep = (noise.words(values.size) >> np.uint64(56)) < round(256 * (exp(1) / (1 + exp(1)) + 0.02))
    return np.where(keep, values, 1 - values)


def made_even(values, noise):
    """Rounding that comes before the noise: it moves some neighbours apart by two."""
    return values // 2 * 2 + rounded_normal(2, values.size, noise=noise)


def cut_off(values, noise):
    """What lies beyond four fifths of the reach is drawn anew."""
    drawn = bounded(40, 2 * values.size, noise=noise)
    return values + drawn[np.abs(drawn) <= 32][: values.size]


def bounded_noise(reach):
    return BoundedMechanism(reach=reach, l1=1, largest=1, set_aside=2, order=Fraction(2))


def laplace(epsilon=ONE, l1=1):
    return LaplaceMechanism(epsilon=Fraction(epsilon), l1=l1)


NOISE = [
    Mutant("Laplace noise 5% too small", "statistical",
           lambda: vector_caught(laplace(Fraction(100, 95)), (0,), (1,), PureClaim(ONE))),
    Mutant("Laplace noise 0.5% too small", "statistical",
           lambda: vector_caught(laplace(Fraction(1000, 995)), (0,), (1,), PureClaim(ONE)),
           escapes="0.005 is inside the margin of a million draws (0.02) or four million (0.007); the tests of "
                   "the sampler against its exact law see it"),
    Mutant("Laplace sensitivity halved", "statistical",
           lambda: vector_caught(laplace(l1=1), (4, 6), (5, 5), PureClaim(ONE))),
    Mutant("Gaussian noise 5% too small", "statistical",
           lambda: vector_caught(GaussianMechanism(rho=Fraction(200, 361), l2_squared=1), (0,), (1,),
                                 GaussianClaim(1, ONE), samples=2_000_000)),
    Mutant("Gaussian noise for one moved cell where two move", "statistical",
           lambda: vector_caught(GaussianMechanism(rho=Fraction(2), l2_squared=1), (4, 6), (5, 5),
                                 ConcentratedClaim(Fraction(2)))),
    Mutant("Gaussian noise that forgets the sensitivity", "statistical",
           lambda: vector_caught(GaussianMechanism(rho=Fraction(1, 2), l2_squared=1), (0,), (3,),
                                 GaussianClaim(3, Fraction(9)), samples=200_000)),
    Mutant("rounded normal noise 5% too small", "statistical",
           lambda: vector_caught(RoundedNormalMechanism(rho=Fraction(200, 361 * 400), l2_squared=1), (0,), (20,),
                                 NormalClaim(1.0), samples=1_500_000)),
    Mutant("rounded normal noise for one moved cell where two move", "statistical",
           lambda: vector_caught(RoundedNormalMechanism(rho=Fraction(1, 2), l2_squared=1), (4, 6), (5, 5),
                                 NormalClaim(1.0), samples=300_000)),
    Mutant("counts made even before rounded normal noise for a step of one", "statistical",
           lambda: vector_caught(Releasing(made_even), (1,), (2,), NormalClaim(0.5), samples=200_000)),
    Mutant("bounded noise 5% short", "statistical",
           lambda: vector_caught(bounded_noise(38), (0,), (8,), BoundedClaim(8, 40))),
    Mutant("bounded noise for one moved cell where two move", "statistical",
           lambda: vector_caught(bounded_noise(40), (0, 8), (8, 0), BoundedClaim(8, 40), samples=200_000)),
    Mutant("bounded noise whose ends were cut off", "statistical",
           lambda: vector_caught(Releasing(cut_off), (0,), (8,), BoundedClaim(8, 40), samples=400_000)),
    Mutant("float noise", "statistical",
           lambda: vector_caught(Releasing(float_laplace), (0,), (1,), PureClaim(ONE), samples=200_000)),
    Mutant("one draw of noise for two cells", "statistical",
           lambda: vector_caught(Releasing(shared_noise), (5, 5), (4, 6), PureClaim(ONE), samples=50_000)),
    Mutant("noise cut off at five steps", "statistical",
           lambda: vector_caught(Releasing(truncated), (0,), (1,), PureClaim(ONE), samples=200_000)),
    Mutant("one-sided noise", "statistical",
           lambda: vector_caught(Releasing(positive_only), (0,), (1,), PureClaim(ONE), samples=50_000)),
    Mutant("counts that overflow 32 bits", "statistical",
           lambda: vector_caught(Releasing(narrow), (2**31 - 1,), (2**31,), PureClaim(ONE), samples=50_000)),
    Mutant("counts summed in 24-bit floats", "statistical",
           lambda: vector_caught(Releasing(float_totals), (2**25 + 2,), (2**25 + 3,), PureClaim(ONE))),
    Mutant("answers clipped to the data's own range", "statistical",
           lambda: vector_caught(Releasing(clipped), (0,), (1,), PureClaim(ONE), samples=50_000)),
    Mutant("randomised response 5% too honest", "statistical",
           lambda: vector_caught(RandomizedResponse(epsilon=Fraction(105, 100)), (0,), (1,), PureClaim(ONE))),
    Mutant("randomised response with a coarse coin", "statistical",
           lambda: vector_caught(Releasing(biased_coin), (0,), (1,), PureClaim(ONE))),
    Mutant("randomised response over the values that occur", "statistical",
           lambda: vector_caught(Releasing(seen_values), (0, 0), (0, 1), PureClaim(ONE), samples=50_000)),
]  # fmt: skip
