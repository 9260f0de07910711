"""Multiplicative weights as database update algorithms, on a dense histogram.

All keep the potential Ψ = KL(D‖Dᵗ), which is ln|X| at most at the uniform start and never negative, and are good
for as many updates as it takes to use it up. D is the table's histogram, as rates; so are α, v and margins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError
from understudy.query.linear import LinearQuery
from understudy.rational import Number, exact, positive
from understudy.standin.dense.weights import DenseWeights, Device, Precision
from understudy.theory.arguments import whole
from understudy.theory.lecture7 import mw_updates
from understudy.theory.logarithm import floor_log_over

EDGE = 1e-9
"""A projection stops this far from 0 and 1: at them it would make cells zero for ever."""


@dataclass(frozen=True, kw_only=True)
class MultiplicativeWeights:
    """Multiplicative weights Dᵗ⁺¹(x) ∝ Dᵗ(x) exp(±s Q(x)) with a fixed step s: up if v > Q(Dᵗ), down if v < Q(Dᵗ).

    Q is a query and v its value, near the Q(D) of the table's histogram D; the start D⁰, on all cells of `domain`,
    is uniform. `step` is "tight" or "textbook", as below. `dtype` is the precision of the weights, `threads` how
    many threads update them (None for as many as pay); `device="cuda"` has a GPU hold them. Raises a
    `ParameterError` where `alpha` is not in (0, 1] or there is no such step, and, from `start`, a `TooLargeError`
    where the weights do not fit into memory.

    Accuracy    The sign of v - Q(Dᵗ) is that of Q(D) - Q(Dᵗ) [Lecture 7, Definition 1]. By Hoeffding's lemma an
                update against a gap g lowers Ψ by sg - s²/8 at least. "tight": s = 4α lowers it by 2α², so
                B(α) = ⌊ln|X|/(2α²)⌋. "textbook": s = α/2, with the B(α) = ⌊4 ln|X|/α²⌋ of [GRU12], eight times
                as many. [Lecture 7, Definition 2]
    Complexity  One pass over the query's support, and one to find Q(Dᵗ) unless it was the last thing asked.
    Privacy     Post-processing of v.
    """

    domain: Domain
    alpha: Number
    """The least gap that is updated on: half of what the Iterative Construction promises."""
    step: Literal["tight", "textbook"] = "tight"
    dtype: Precision = "float64"
    threads: int | None = None
    device: Device = "cpu"

    def __post_init__(self) -> None:
        positive(self.alpha, "alpha", at_most=1)
        if self.step not in ("tight", "textbook"):
            raise ParameterError(f"step must be 'tight' or 'textbook', not {self.step!r}")

    @property
    def log_factor(self) -> Fraction:
        """The step s."""
        return exact(self.alpha) * 4 if self.step == "tight" else exact(self.alpha) / 2

    def start(self) -> DenseWeights:
        """The hypothesis before any update: the same weight on every cell."""
        return DenseWeights.uniform(self.domain, dtype=self.dtype, threads=self.threads, device=self.device)

    def update(self, hypothesis: DenseWeights, query: LinearQuery, value: float) -> DenseWeights:
        """The `hypothesis` after one `query` and its `value`, a share of rows: it answers closer to the value.

        It is changed in place and returned.
        """
        hypothesis.reweight(query, self._signed(hypothesis, query, value))
        return hypothesis

    def update_then_answer(
        self, hypothesis: DenseWeights, query: LinearQuery, value: float, following: LinearQuery
    ) -> float:
        """`update` with `hypothesis`, `query` and `value`, in place; returns the answer to the query `following`.

        It takes one pass over the weights. The answer is a share of rows.
        """
        return hypothesis.reweight_then_answer(query, self._signed(hypothesis, query, value), following)

    def _signed(self, hypothesis: DenseWeights, query: LinearQuery, value: float) -> float:
        return float(self.log_factor) * (1 if value > hypothesis.answer(query) else -1)

    def most_updates(self, alpha: Number) -> int:
        """B(α), the most updates against gaps of α = `alpha`, a share of rows.

        At another α than this one's own it is ⌊ln|X|/(sα - s²/8)⌋. Raises a `ParameterError` where the step s need
        not come nearer against such gaps.
        """
        gap, step = positive(alpha, "alpha"), self.log_factor
        if gap == exact(self.alpha):
            return mw_updates(self.domain.size(), gap, self.step)
        if (drop := step * gap - step**2 / 8) <= 0:
            raise ParameterError(f"steps of {float(step):g} need not come nearer against gaps of {alpha}")
        return floor_log_over(self.domain.size(), drop)


@dataclass(frozen=True, kw_only=True)
class ProjectedWeights:
    """Projected weights: Dᵗ⁺¹ is nearest to Dᵗ, in KL, of all that answer Q within v ± `margin`.

    It tilts Dᵗ by exp(sQ) until Q is at the end a of that interval nearest to Q(Dᵗ): for a 0/1 query the support
    is multiplied by a/Q(Dᵗ) and the rest by (1 - a)/(1 - Q(Dᵗ)). Where Q(Dᵗ) is in the interval nothing changes.

    `domain`, `dtype`, `threads` and `device` are those of `MultiplicativeWeights`. Raises a `ParameterError` where
    `margin`, a share of rows, is not in [0, 1).

    Accuracy    While |Q(D) - v| ≤ margin, D is on the far side of a, so Ψ falls by max_s {sa - ln E exp(sQ)}, with
                Q under Dᵗ, which is 2(a - Q(Dᵗ))² at least by Hoeffding's lemma. Against a gap of α or more, a is
                at least α - 2·margin away, hence B(α) = ⌊ln|X|/(2(α - 2·margin)²)⌋. [Lecture 7, Definition 2] asks
                for estimates within α only; this needs them within `margin`, and takes the whole step where the
                gap is larger than α.
    Privacy     Post-processing of v.
    """

    domain: Domain
    margin: Number
    dtype: Precision = "float64"
    threads: int | None = None
    device: Device = "cpu"

    def __post_init__(self) -> None:
        if not 0 <= exact(self.margin, "margin") < 1:
            raise ParameterError(f"margin must be at least 0 and below 1, not {self.margin}")

    def start(self) -> DenseWeights:
        """The hypothesis before any update: the same weight on every cell."""
        return DenseWeights.uniform(self.domain, dtype=self.dtype, threads=self.threads, device=self.device)

    def update(self, hypothesis: DenseWeights, query: LinearQuery, value: float) -> DenseWeights:
        """The `hypothesis` after one `query` and its `value`, a share of rows: within the margin of the value.

        It is changed in place and returned.
        """
        project(hypothesis, query, value, float(self.margin))
        return hypothesis

    def most_updates(self, alpha: Number) -> int:
        """B(α), the most updates against gaps of α = `alpha`, a share of rows.

        Raises a `ParameterError` unless α is over twice the margin.
        """
        gap = positive(alpha, "alpha") - max(2 * exact(self.margin), exact(EDGE))
        if gap <= 0:
            raise ParameterError(f"alpha must be more than twice the margin of {self.margin}, not {alpha}")
        return mw_updates(self.domain.size(), gap)


class LearntWeights:
    """Dense weights, and the answers that they have learnt."""

    def __init__(self, weights: DenseWeights, learnt: Iterable[tuple[LinearQuery, float]] = ()) -> None:
        self.weights = weights
        self.learnt = list(learnt)

    @property
    def domain(self) -> Domain:
        return self.weights.domain

    def copy(self) -> LearntWeights:
        return LearntWeights(self.weights.copy(), self.learnt)

    def answer(self, query: LinearQuery) -> float:
        return self.weights.answer(query)

    def project(self, clique: Clique) -> NDArray[np.float64]:
        return self.weights.project(clique)


@dataclass(frozen=True, kw_only=True)
class ConsistentWeights:
    """`ProjectedWeights` that keep to what they learnt: after each answer they go back over all the earlier ones.

    A projection on one answer may take the weights out of the interval of another. Here every answer learnt so far
    is projected on again, the latest first, until a round changes nothing or `rounds` are over. `domain`,
    `margin`, `dtype`, `threads` and `device` are those of `ProjectedWeights`, and so is what is raised.

    Accuracy    While every |Qᵢ(D) - vᵢ| ≤ margin, no projection moves away from D in KL: it is on the far side of
                every end. So the rounds cost nothing of the bound: B(α) is that of `ProjectedWeights`. They save
                updates, for an answer that was bought stays answered. [Lecture 7, Definition 2]
    Complexity  An answer for each query learnt so far in each round, and a pass for each that was off.
    Privacy     Post-processing of the vᵢ.
    """

    domain: Domain
    margin: Number
    rounds: int = 3
    dtype: Precision = "float64"
    threads: int | None = None
    device: Device = "cpu"

    def __post_init__(self) -> None:
        whole(self.rounds, "rounds")
        ProjectedWeights(domain=self.domain, margin=self.margin)  # refuses a margin that is none

    @property
    def _step(self) -> ProjectedWeights:
        return ProjectedWeights(
            domain=self.domain,
            margin=self.margin,
            dtype=self.dtype,
            threads=self.threads,
            device=self.device,
        )

    def start(self) -> LearntWeights:
        """The hypothesis before any update: the same weight on every cell."""
        return LearntWeights(self._step.start())

    def update(self, hypothesis: LearntWeights, query: LinearQuery, value: float) -> LearntWeights:
        """The `hypothesis` after one `query` and its `value`, a share of rows: closer to it and to earlier ones.

        It is changed in place and returned.
        """
        margin = float(self.margin)
        hypothesis.learnt.append((query, value))
        for _ in range(self.rounds):
            moved = [
                project(hypothesis.weights, asked, told, margin)
                for asked, told in reversed(hypothesis.learnt)
            ]
            if max(moved) <= _STILL:
                break
        return hypothesis

    def most_updates(self, alpha: Number) -> int:
        """B(α), the most updates against gaps of α = `alpha`, a share of rows.

        Raises a `ParameterError` unless α is over twice the margin.
        """
        return self._step.most_updates(alpha)


def project(weights: DenseWeights, query: LinearQuery, value: float, margin: float) -> float:
    """Tilt the weights, in place, until the query is within `margin` of `value`; how far its answer was moved."""
    now = weights.answer(query)
    target = min(max(now, value - margin), value + margin)
    low, high = min(now, EDGE), max(now, 1 - EDGE)
    target = min(max(target, low), high)
    if target != now:
        weights.reweight(query, _tilt(weights, query, now, target))
    return abs(target - now)


def _tilt(weights: DenseWeights, query: LinearQuery, now: float, target: float) -> float:
    if query.is_counting:
        return _logit(target) - _logit(now) if 0 < now < 1 else 0.0
    return tilt_to(weights.project(query.clique), query.weights(), target)


def tilt_to(rates: NDArray[np.float64], weights: NDArray[np.float64], target: float) -> float:
    """The s for which the average of `weights` under rates·exp(s·weights) is `target`, or as near as 64 gets.

    The average increases with s, from the least weight that has a rate to the largest. A target at or beyond these
    is out of reach, and every rate stays positive.
    """
    held = rates > 0
    rates, weights = rates[held], weights[held]

    def average(s: float) -> float:
        tilted = rates * np.exp(s * weights - (s * weights).max())
        return float(tilted @ weights / tilted.sum())

    if weights.max() == weights.min():
        return 0.0
    low, high = -1.0, 1.0
    while average(low) > target and low > -_FURTHEST:
        low *= 2
    while average(high) < target and high < _FURTHEST:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if average(middle) < target else (low, middle)
    # The end on this side of the target: a projection must not overshoot.
    return low if average(0.0) < target else high


_FURTHEST = 64.0

_STILL = 1e-9
"""A round that moves no answer further than this has changed nothing."""


def _logit(rate: float) -> float:
    return log(rate) - log(1 - rate)
