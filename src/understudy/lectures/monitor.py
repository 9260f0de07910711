"""The Monitor of Lecture 18: run a procedure on T fresh samples, and measure by how much it overfits.

The Monitor is a device of a proof, written as a program: it needs the population (a sampler and the true
expectations), so it runs in simulations, on synthetic data, or on a table so large that it can play the
population.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.noise.samplers import NoiseSource, SystemNoise
from understudy.rational import Number, exact
from understudy.theory.lecture18 import monitor_ceiling, monitor_gain

STEPS = 1 << 10
"""Lattice steps for a change of one row."""

Query = Callable[[Any], NDArray[np.float64]]
"""A statistical query: one number in [0, 1] for each row of a sample."""


@dataclass(frozen=True)
class Overfit:
    """What T runs showed. `errors` are q_t(S_t) - q_t(D), one for each run: exact, and so for simulations alone.

    The exponential mechanism picked one of the 2T queries q_t and 1 - q_t, the Monitor's output: `run` is its t
    from 0 on, `negated` says whether it is 1 - q_t, and `chosen` is its error. All errors are differences of
    rates.
    """

    errors: NDArray[np.float64]
    chosen: float
    run: int
    negated: bool

    @property
    def largest(self) -> float:
        """S_max: the worst generalisation error of all runs."""
        return float(np.abs(self.errors).max())

    def exceeded(self, alpha: float) -> float:
        """The share of runs whose error reached α = `alpha`, a difference of rates: an estimate of p_α."""
        return float((np.abs(self.errors) >= alpha).mean())

    def gain(self, alpha: float) -> float:
        """α(1 - (1 - p_α)^T) for α = `alpha`: what E[S_max] is at least. [Lecture 18, Claim 0.3]"""
        return monitor_gain(alpha, self.exceeded(alpha), len(self.errors))

    def ceiling(self, eps: Number, delta: Number = 0) -> float:
        """(e^ε - 1) + Tδ: what the expected error of the chosen query is at most. [Lecture 18, Lemma 0.4]

        ε = `eps` is that of the procedure together with the Monitor's own choice, and δ = `delta` likewise.
        """
        return monitor_ceiling(eps, delta, len(self.errors))


def monitor(
    procedure: Callable[[Any], Query],
    sample: Callable[[], Any],
    expectation: Callable[[Query], float],
    *,
    runs: int = 100,
    epsilon: Number = 1,
    noise: NoiseSource | None = None,
) -> Overfit:
    """Run `procedure` on fresh samples and choose the query that generalises worst. [Lecture 18, Algorithm 2]

    procedure    takes a sample and returns a query, which gives a number in [0, 1] for each row of a sample
    sample       draws a fresh sample from the population; all have the same number m of rows
    expectation  the true mean of a query over the population
    runs         the number T of samples
    epsilon      the price of the Monitor's own choice
    noise        where random numbers come from; by default the operating system

    Returns an `Overfit`. Raises a `ParameterError` where there is no run, where a query gives something else than
    a number for each row, or where samples differ in size.

    Privacy     ε of the procedure plus `epsilon`: the samples are disjoint, so the runs cost as one; the score
                q(S) - q(D) of each of the 2T queries moves by 1/m when a row of one sample does, and D is no data.
    """
    if runs < 1:
        raise ParameterError("the Monitor needs at least one run")
    errors, sizes = [], set()
    for _ in range(runs):
        rows = sample()
        query = procedure(rows)
        values = np.clip(np.asarray(query(rows), dtype=np.float64), 0, 1)
        if values.ndim != 1 or values.size == 0:
            raise ParameterError("a query gives one number for each row of a sample")
        sizes.add(values.size)
        errors.append(float(values.mean()) - float(expectation(query)))
    if len(sizes) != 1:
        raise ParameterError("all samples must have the same number of rows")
    found = np.array(errors)
    place = _worst(found, sizes.pop(), exact(epsilon, "epsilon"), noise or SystemNoise())
    run, negated = place % runs, place >= runs
    return Overfit(found, float(-found[run] if negated else found[run]), run, negated)


def choice_law(errors: NDArray[np.float64], rows: int, epsilon: Number) -> NDArray[np.float64]:
    """How likely the Monitor chooses each of q_1, …, q_T, 1 - q_1, …, 1 - q_T, given their errors."""
    return np.exp(_mechanism(exact(epsilon, "epsilon")).log_law(_scores(errors, rows)))


def _worst(errors: NDArray[np.float64], rows: int, epsilon: Fraction, noise: NoiseSource) -> int:
    return _mechanism(epsilon).choose(_scores(errors, rows), noise=noise)


def _mechanism(epsilon: Fraction) -> ExponentialMechanism:
    """A row moves a rounded score by a step more than `STEPS`."""
    return ExponentialMechanism(epsilon=epsilon, sensitivity=STEPS + 1)


def _scores(errors: NDArray[np.float64], rows: int) -> NDArray[np.int64]:
    steps = np.rint(errors * rows * STEPS).astype(np.int64)
    return np.concatenate([steps, -steps])
