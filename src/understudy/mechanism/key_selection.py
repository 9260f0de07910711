"""Key selection: which values of a column nobody listed are held by enough people to be told.

A key is a value such as the name of a town. How many people hold each key is a vector of counts whose very
index set is private: a key that one person alone holds must not be told, and neither must be that it is
missing. So each count gets noise, and a key is told, with its noisy count, where that passes a threshold.
`at_least` is the least number of people that a key is ever told for, with certainty: keys of fewer people are
left out before any noise is drawn.

Let m be `at_least`. Two neighbours differ in the counts of at most c keys, each by one (`keys_moved`): of the
keys of one person, of whom each holds d keys at most, c = d under add-remove and c = 2d under replace.

**Truncated geometric noise.** X on -k, …, k with P[x] ∝ exp(-ε|x|); a key of n ≥ m people is told where
n + X ≥ m + k. Write p for the law of X and δ₁ = p(k).

    Claim    For counts n and n + 1 of one key there are events of probability 1 - δ₁, one for each, given
             which the two laws of what is told are within a factor of e^ε of each other.
    Proof    Let n ≥ m. On the side of n exclude X = -k, on that of n + 1 exclude X = k: each has probability
             δ₁. Given the rest, n + X and n + 1 + X both have the support n - k + 1, …, n + k, with
             probabilities p(y - n)/(1 - δ₁) and p(y - n - 1)/(1 - δ₁), and p changes by a factor of at most
             e^ε from one integer to the next. What is told is a function of that number. Let n = m - 1: on
             this side nothing is told. A key of m people is told where X = k; exclude that, and nothing is
             told here either. ∎

    So c keys, whose noises are independent, are cδ₁-approximately cε²/2-zCDP, and (cε, cδ₁)-DP. No mechanism
    that is (ε, δ₁)-DP for one key tells any count with a higher probability π(n), for m = 1: by the
    definition π(n) ≤ e^ε·π(n - 1) + δ₁ and 1 - π(n - 1) ≤ e^ε·(1 - π(n)) + δ₁, and this noise makes the
    smaller of the two an equality for every n. (Desfontaines, Voss, Gipson and Mandayam 2020; the tests
    enumerate it.)

**Gaussian noise** of variance σ², for people of many keys each; a key of n ≥ m people is told where
n + X ≥ m + t.

    Claim    dP[X ≥ t]-approximately c/(2σ²)-zCDP.
    Proof    Call a key marginal that has m people on one side and m - 1 on the other. On the latter side it
             is never told. On either side at most d keys are marginal ones of m people there, those of the
             one person who is added or put there; exclude that noise lifts one of them over the threshold,
             which has probability dP[X ≥ t] at most. Given that, marginal keys are told on neither side. The
             other keys have noisy counts on both sides, which differ by one in c of them at most: discrete
             Gaussian noise with a squared sensitivity of c. [CKS20, Theorem 14] Which keys are marginal
             depends on the two tables alone, and noises are independent, so that nothing else changes by
             conditioning. ∎
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.mechanism.card import Card, Family, KeySubject
from understudy.mechanism.look import decided
from understudy.mechanism.parameters import lattice_values, whole
from understudy.noise.law import discrete_gaussian_quantile, scale_parameter, variance_parameter
from understudy.noise.samplers import NoiseSource, discrete_gaussian, truncated_geometric
from understudy.privacy.event import Pure
from understudy.privacy.filter import ZCDP_FILTER, Filter
from understudy.privacy.key_event import GaussianKeys, TruncatedGeometricKeys
from understudy.privacy.relation import Relation
from understudy.privacy.tails import ROOM, gaussian_tail, truncated_geometric_end
from understudy.rational import Number, exact, positive, probability

MAX_REACH = 1 << 40
"""No threshold is farther from the least count: far above every table."""

Whole = NDArray[np.int64]


def keys_moved(relation: Relation, keys_each: int) -> int:
    """How many keys neighbours can differ in, where each person holds at most `keys_each` keys: c of the proofs.

    Counts are of people: whatever rows a person has with one key, they are one.
    """
    whole(keys_each, "the number of keys that one person can hold", at_least=1)
    return keys_each * relation.cells_of_a_difference


class SelectsKeys(Protocol):
    """A selection of keys by their exact counts."""

    @property
    def at_least(self) -> int: ...

    @property
    def threshold(self) -> int:
        """The least noisy count that is told."""
        ...

    def release(self, values: Whole, *, noise: NoiseSource) -> Whole:
        """The noisy count of each key that is told, and 0 for every other."""
        ...


@dataclass(frozen=True, kw_only=True)
class TruncatedGeometricSelection:
    """Tell the keys whose counts pass a threshold after truncated geometric noise; the best there is for one key.

    Privacy     δ-approximately cε²/2-zCDP, if neighbours move the counts of at most c = `keys` keys, each by one;
                δ = c·P[X = k]. Proof above.
    Accuracy    A told count is off by k at most, with certainty. A key of `at_least` + 2k people or more is told.
    Complexity  O(1) draws for each key of at least `at_least` people.
    Gap         None: integers in, integers out, the law is exact; δ is rounded up.
    """

    epsilon: Fraction
    reach: int
    keys: int = 1
    at_least: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        _checked(self.reach, self.keys, self.at_least)
        scale_parameter(1 / self.epsilon)  # refused here, not after it was paid for
        decided(self.event)  # whose numbers are checked there

    @classmethod
    def of(
        cls,
        *,
        rho: Number,
        delta: Number,
        relation: Relation,
        keys_each: int = 1,
        at_least: int = 1,
        kept: Filter = ZCDP_FILTER,
    ) -> TruncatedGeometricSelection:
        """The selection that costs `rho` and `delta` at most, for people of at most `keys_each` keys.

        `kept` is the filter of the ledger that pays, which says what an ε costs.
        The noise reaches as far as δ demands: k is the least with c·P[X = k] ≤ δ.
        """
        moved = keys_moved(relation, keys_each)
        epsilon = kept.most_epsilon(positive(rho, "rho") / moved, Pure(epsilon=Fraction(1)))
        most = float(probability(delta, "delta")) / moved / (1 + 4 * ROOM)
        enough = max(1, ceil(log(1 / most) / float(epsilon)) + 1)  # P[X = k] ≤ exp(-εk)
        reach = _least_reach(lambda k: truncated_geometric_end(epsilon, k) <= most, enough)
        return cls(epsilon=epsilon, reach=reach, keys=moved, at_least=at_least)

    @property
    def event(self) -> TruncatedGeometricKeys:
        delta = _above(self.keys * truncated_geometric_end(self.epsilon, self.reach))
        return TruncatedGeometricKeys(epsilon=self.epsilon, keys=self.keys, reach=self.reach, delta=delta)

    @property
    def threshold(self) -> int:
        return self.at_least + self.reach

    def error(self, beta: Number) -> int:
        """How far a told count can be off; never more, whatever `beta` is."""
        probability(beta)
        return self.reach

    def release(self, values: Whole, *, noise: NoiseSource) -> Whole:
        return _told(
            self, values, lambda size: truncated_geometric(self.epsilon, self.reach, size, noise=noise)
        )

    def law(self, count: int) -> dict[int, float]:
        """What is told of a key of so many people, with its probability; 0 stands for nothing."""
        if count < self.at_least:
            return {0: 1.0}
        steps = np.arange(-self.reach, self.reach + 1)
        weights = np.exp(-float(self.epsilon) * np.abs(steps))
        return _as_told(self, count, steps, weights / weights.sum())


@dataclass(frozen=True, kw_only=True)
class GaussianSelection:
    """Tell the keys whose counts pass a threshold after discrete Gaussian noise: for people of many keys each.

    Privacy     δ-approximately c/(2σ²)-zCDP, if neighbours move the counts of at most c = `moved` keys, each by
                one, of which at most d = `keys` belong to either of them; δ = d·P[X ≥ t]. Proof above.
    Accuracy    `error` inverts the exact tail of the noise. A told count is `at_least` + t at least.
    Complexity  O(1) draws for each key of at least `at_least` people.
    Gap         The tail of the discrete law is bounded by that of the normal law one step before it.
    """

    variance: Fraction
    reach: int
    keys: int = 1
    moved: int = 1
    at_least: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive(self.variance, "variance"))
        _checked(self.reach, self.keys, self.at_least)
        if not self.keys <= self.moved <= 2 * self.keys:
            raise ParameterError("neighbours move the keys of one person, or of two")
        variance_parameter(self.variance)
        decided(self.event)  # whose numbers are checked there

    @classmethod
    def of(
        cls,
        *,
        rho: Number,
        delta: Number,
        relation: Relation,
        keys_each: int = 1,
        at_least: int = 1,
        kept: Filter = ZCDP_FILTER,
    ) -> GaussianSelection:
        """The selection that costs `rho` and `delta` at most, for people of at most `keys_each` keys.

        Gaussian noise costs the same under every filter, so that `kept` changes nothing.
        """
        del kept
        moved = keys_moved(relation, keys_each)
        variance = moved / (2 * positive(rho, "rho"))
        most = float(probability(delta, "delta")) / keys_each / (1 + 4 * ROOM)
        enough = 2
        while gaussian_tail(variance, enough) > most and enough < MAX_REACH:
            enough *= 2
        reach = _least_reach(lambda t: gaussian_tail(variance, t) <= most, enough)
        return cls(variance=variance, reach=reach, keys=keys_each, moved=moved, at_least=at_least)

    @property
    def event(self) -> GaussianKeys:
        delta = _above(self.keys * gaussian_tail(self.variance, self.reach))
        return GaussianKeys(
            l2_squared=Fraction(self.moved),
            variance=self.variance,
            keys=self.keys,
            reach=self.reach,
            delta=delta,
        )

    @property
    def threshold(self) -> int:
        return self.at_least + self.reach

    def error(self, beta: Number) -> int:
        """t such that the noise on one count is within t, except with probability `beta`."""
        return discrete_gaussian_quantile(self.variance, probability(beta))

    def release(self, values: Whole, *, noise: NoiseSource) -> Whole:
        return _told(self, values, lambda size: discrete_gaussian(self.variance, size, noise=noise))

    def law(self, count: int) -> dict[int, float]:
        """What is told of a key of so many people, with its probability; 0 stands for nothing."""
        if count < self.at_least:
            return {0: 1.0}
        spread = 12 * ceil(sqrt(self.variance) + 1)
        steps = np.arange(-spread, spread + 1)
        weights = np.exp(-(steps.astype(float) ** 2) / (2 * float(self.variance)))
        return _as_told(self, count, steps, weights / weights.sum())


KeySelection = TruncatedGeometricSelection | GaussianSelection


def best_selection(
    *,
    rho: Number,
    delta: Number,
    relation: Relation,
    keys_each: int = 1,
    at_least: int = 1,
    kept: Filter = ZCDP_FILTER,
) -> KeySelection:
    """The one of the two, at this price, whose threshold is lower: decided by public numbers alone."""
    found = [
        kind.of(rho=rho, delta=delta, relation=relation, keys_each=keys_each, at_least=at_least, kept=kept)
        for kind in (TruncatedGeometricSelection, GaussianSelection)
    ]
    return min(found, key=lambda selection: selection.threshold)


def delta_again(delta: Fraction) -> Fraction:
    """A delta for which `best_selection` makes the selection again whose event has this `delta`.

    The event of a selection of reach k has its tail at k times 1 + 3 ROOM, and `of` divides by 1 + 4 ROOM: with
    two more the reach is k again. The delta is below the one that the selection was made for, where the other kind
    of noise had no lower threshold, and with less it has a higher one or the same.
    """
    return delta * (1 + 2 * exact(ROOM, "room"))


def _least_reach(holds: Callable[[int], bool], enough: int) -> int:
    """The least reach from 1 to `enough` that `holds`, or `enough`; whatever is above one that holds does too."""
    low, high = 0, enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _checked(reach: int, keys: int, at_least: int) -> None:
    whole(reach, "the reach of a selection of keys", at_least=1)
    whole(keys, "the number of keys that neighbours can move", at_least=1)
    whole(at_least, "the least number of people of a key", at_least=1)
    if max(reach, at_least) > MAX_REACH:
        raise ParameterError(
            "no table has so many people that a key would be told at this price",
            remedy="Ask for a higher price, or a larger delta",
        )


def _told(selection: SelectsKeys, values: Whole, noise: Callable[[int], Whole]) -> Whole:
    """Noise on the counts of `at_least` people or more, of which those are kept that pass the threshold."""
    counts = lattice_values(values)
    told = np.zeros(counts.shape, np.int64)
    large = counts >= selection.at_least
    noisy = counts[large] + noise(int(large.sum()))
    told[large] = np.where(noisy >= selection.threshold, noisy, 0)
    return told


def _as_told(
    selection: SelectsKeys, count: int, steps: Whole, chances: NDArray[np.float64]
) -> dict[int, float]:
    noisy = count + steps
    told = noisy >= selection.threshold
    found = dict(zip(noisy[told].tolist(), chances[told].tolist(), strict=True))
    found[0] = float(chances[~told].sum())
    return found


def _above(tail: float) -> Fraction:
    """A δ that covers a tail, with room for the rounding of floats, as a number that is written in few digits."""
    return Fraction(f"{tail * (1 + 3 * ROOM):.14e}")


def certain_at(selection: SelectsKeys, error: int) -> int:
    """A number of people from which a key is told wherever the noise is within `error`."""
    return selection.threshold + error


def _geometric_subject(epsilon: Fraction) -> TruncatedGeometricSelection:
    return TruncatedGeometricSelection(epsilon=epsilon, reach=max(1, round(3 / float(epsilon))))


def _gaussian_subject(epsilon: Fraction) -> GaussianSelection:
    rho = epsilon**2 / 2
    return GaussianSelection(variance=1 / (2 * rho), reach=max(2, round(2.5 / float(epsilon))))


CARD = Card(
    name="key selection, by truncated geometric or Gaussian noise",
    family=Family.SELECTION,
    privacy="δ-approximately ρ-zCDP",
    accuracy="no key of fewer people than the least; the threshold is 1 + ln(1/2δ)/ε, or 1 + σΦ⁻¹(1-δ), about",
    source="Desfontaines, Voss, Gipson, Mandayam 2020",
    events=(TruncatedGeometricKeys, GaussianKeys),
    audited=(
        KeySubject(
            "truncated-geometric-keys",
            "mechanism.key_selection.TruncatedGeometricSelection.release",
            _geometric_subject,
        ),
        KeySubject("gaussian-keys", "mechanism.key_selection.GaussianSelection.release", _gaussian_subject),
    ),
)
