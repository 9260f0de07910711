"""Randomised response: each row reports for itself."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.mechanism.card import Card, Family, ReportSubject
from understudy.mechanism.parameters import whole
from understudy.noise.samplers import NoiseSource, bernoulli_exp, uniform_array
from understudy.privacy.event import RandomizedReport
from understudy.rational import privacy_parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """Report the true one of `size` values with probability e^ε/(e^ε + size - 1), else each other one equally.

    `epsilon` is ε. Raises a `ParameterError` where it is out of range, or where `size` is below 2.

    No project, session or release uses it, and no ledger is charged: it is for whoever collects values from people
    who do not trust them. Each person's value is replaced by its report before anybody else sees it, and every
    further report about the same person costs ε again. So it is imported from here:

    >>> import numpy as np
    >>> from understudy.mechanism.randomized_response import RandomizedResponse
    >>> from understudy.noise.samplers import SystemNoise
    >>> asked = RandomizedResponse(epsilon=2)
    >>> reports = asked.release(np.array([1] * 6_000 + [0] * 14_000), noise=SystemNoise())
    >>> abs(asked.estimate(reports, 1) - 0.3) < 0.1  # ± 0.0046 is its standard deviation
    True

    Privacy     ε-DP for every row, without a trusted curator: the law of a report has ratio e^ε at most.
                [Warner65]
    Accuracy    The estimate of a value's share is unbiased, with standard deviation at most
                (e^ε + 1)/(2(e^ε - 1)√n) for two values.
    Complexity  O(1) draws for each row (rejection whose rate does not depend on the row's value).
    Gap         None: the law is exact.
    """

    epsilon: Fraction
    size: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", privacy_parameter(self.epsilon))
        whole(self.size, "the number of values", at_least=2)

    @property
    def event(self) -> RandomizedReport:
        """What one report costs: ε, for the person whom it is about."""
        return RandomizedReport(epsilon=self.epsilon)

    def release(self, values: NDArray[np.integer], *, noise: NoiseSource) -> NDArray[np.int64]:
        """One report for each row of `values`, which are whole numbers from 0 to `size` - 1.

        `noise` is where random bits come from. Propose a uniform value and accept the truth always, another with
        probability exp(-ε). Raises a `ParameterError` where a value is none of these.
        """
        if np.ndim(values) != 1 or not np.issubdtype(np.asarray(values).dtype, np.integer):
            raise ParameterError("values must be a vector of whole codes, one for each row")
        truth = np.asarray(values, dtype=np.int64)
        if truth.size and not 0 <= truth.min() <= truth.max() < self.size:
            raise ParameterError(f"values must be codes below {self.size}")
        reports = np.empty_like(truth)
        waiting = np.arange(truth.size)
        while waiting.size:
            proposed = uniform_array(self.size, waiting.size, noise=noise)
            lucky = bernoulli_exp(self.epsilon, waiting.size, noise=noise)
            accepted = (proposed == truth[waiting]) | lucky
            reports[waiting[accepted]] = proposed[accepted]
            waiting = waiting[~accepted]
        return reports

    @property
    def _truth(self) -> float:
        """P[report the truth], in a form that stays finite however large ε is."""
        return 1 / (1 + (self.size - 1) * exp(-float(self.epsilon)))

    def estimate(self, reports: NDArray[np.integer], value: int) -> float:
        """The unbiased estimate, from all `reports`, of the share of rows whose true value is `value`.

        It may lie outside [0, 1], by chance.
        """
        chance = exp(-float(self.epsilon)) * self._truth
        is_value: NDArray[np.bool_] = np.equal(reports, value)
        return (float(is_value.mean()) - chance) / (self._truth - chance)

    def standard_deviation(self, n: int) -> float:
        """The most that the standard deviation of `estimate` can be from `n` rows, for two values."""
        e = float(self.epsilon)
        return (1 + exp(-e)) / (-2 * expm1(-e) * sqrt(n))

    def law(self, value: int) -> NDArray[np.float64]:
        """P[report] for each of the `size` reports of a row with the given `value`."""
        chances = np.full(self.size, exp(-float(self.epsilon)))
        chances[value] = 1
        return chances / chances.sum()


CARD = Card(
    name="randomised response",
    family=Family.REPORT,
    privacy="ε, per row",
    accuracy="unbiased, sd ≤ (e^ε+1)/(2(e^ε-1)√n)",
    source="Warner 1965",
    events=(RandomizedReport,),
    audited=(
        ReportSubject(
            "randomized-response",
            "mechanism.randomized_response.RandomizedResponse.release",
            lambda epsilon, size: RandomizedResponse(epsilon=epsilon, size=size),
        ),
    ),
)
