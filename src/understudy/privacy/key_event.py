"""The events of key selection: keys that nobody listed were found in the table, each at a δ of its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from understudy.errors import ParameterError, RefusedError
from understudy.privacy import gdp
from understudy.privacy.event import Event, PrivacyLoss
from understudy.privacy.renyi import checked_order, pure_divergence
from understudy.privacy.tails import covers, gaussian_tail, truncated_geometric_end


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeySelection(Event):
    """What the selections of keys have in common: each is paid for with a δ, and none has a pure ε."""

    keys: int
    reach: int
    delta: Fraction

    def __post_init__(self) -> None:
        """Whole numbers for the ledger's fractions, and a δ that can be one."""
        for name in ("keys", "reach"):
            object.__setattr__(self, name, _whole(getattr(self, name)))
        if not 0 < self.delta < 1:
            raise ParameterError("a selection of keys has a delta between 0 and 1")

    def pure_cost(self) -> Fraction:
        raise RefusedError(
            "keys that nobody listed are found with a delta, and this budget of pure epsilon has none",
            remedy="declare a budget with a delta of which a part is for keys: "
            "`budget: {epsilon: 1, delta: 1e-9, key_delta: 5e-10}`, or list the keys",
        )

    def delta_cost(self) -> Fraction:
        return self.delta


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedGeometricKeys(_KeySelection):
    """Keys were told whose counts, with noise on -`reach`, …, `reach` of rate `epsilon`, pass a threshold.

    Neighbours move the counts of at most `keys` keys, each by one, and `delta` covers the ends of the noise on all
    of them (`mechanism.key_selection` has the proof).
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        _KeySelection.__post_init__(self)
        if self.epsilon <= 0:
            raise ParameterError("a selection of keys by geometric noise has a positive epsilon")
        if not covers(self.delta, truncated_geometric_end(self.epsilon, self.reach), self.keys):
            raise ParameterError("the delta of a selection of keys does not cover the ends of its noise")

    def zcdp_cost(self) -> Fraction:
        """Each key is δ/c-approximately ε-DP, hence ε²/2-zCDP, and c keys add up."""
        return self.keys * self.epsilon**2 / 2

    def gdp_cost_at(self, reserve: Fraction) -> Fraction:
        """Each key is ε-DP where its noise is not at an end, and c keys add up."""
        return self.keys * gdp.pure_cost(self.epsilon, reserve)

    def renyi_cost(self, order: Fraction) -> Fraction:
        """Each key is ε-DP where its noise is not at an end, and c keys add up."""
        return self.keys * pure_divergence(self.epsilon, order)

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        pure = PrivacyLoss("pure", float(self.epsilon), self.keys)
        return (pure, PrivacyLoss("failure", float(self.delta)))


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianKeys(_KeySelection):
    """Keys were told whose counts, with discrete Gaussian noise, are `reach` or more above the least count.

    Neighbours move the counts by at most sqrt(`l2_squared`), and `keys` of them at most become keys of the least
    count in either table; `delta` covers that noise lifts one of these (`mechanism.key_selection`).
    """

    l2_squared: Fraction
    variance: Fraction

    def __post_init__(self) -> None:
        _KeySelection.__post_init__(self)
        if self.l2_squared <= 0 or self.variance <= 0:
            raise ParameterError("a selection of keys by Gaussian noise has a variance and a sensitivity")
        if not covers(self.delta, gaussian_tail(self.variance, self.reach), self.keys):
            raise ParameterError("the delta of a selection of keys does not cover the tail of its noise")

    def zcdp_cost(self) -> Fraction:
        """Discrete Gaussian noise on integers: Δ²/(2σ²). [CKS20, Theorem 14]"""
        return self.l2_squared / (2 * self.variance)

    def gdp_cost_at(self, reserve: Fraction) -> Fraction:
        """That of its noise: given that none of the keys of one table alone is lifted, the others are told by
        it.
        """
        return gdp.discrete_gaussian_cost(self.l2_squared, self.variance, reserve)

    def renyi_cost(self, order: Fraction) -> Fraction:
        """a·ρ: what zCDP says of order a."""
        return checked_order(order) * self.zcdp_cost()

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        normal = PrivacyLoss("gaussian", sqrt(self.variance / self.l2_squared))
        return (normal, PrivacyLoss("failure", float(self.delta)))


def _whole(number: Fraction | int) -> int:
    if int(number) != number or number < 1:
        raise ParameterError("a selection of keys counts keys and steps in whole numbers of at least 1")
    return int(number)
