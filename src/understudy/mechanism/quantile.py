"""Quantiles of a measure, at full resolution, by the exponential mechanism on ranks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from understudy.errors import ParameterError
from understudy.mechanism.card import Card, Family
from understudy.mechanism.exponential import ExponentialMechanism, ExponentialSelection
from understudy.mechanism.parameters import lattice_sensitivity, whole
from understudy.noise.samplers import NoiseSource, uniform_below
from understudy.noise.selection import choose
from understudy.privacy.columns import CountColumns
from understudy.privacy.event import Selection
from understudy.privacy.relation import Relation, Sensitivity
from understudy.rational import privacy_parameter

Whole = NDArray[np.int64]

MOST_ROWS = 1 << 36
"""The rows that a table can have for a quantile: moments have the same bound (`table.moments`)."""

LARGEST_LOSS = 1 << 62
"""Losses are kept in 64 bits."""

DISCRETE = 2
"""Ranks between pn and those of the two values that a quantile lies between, whatever its definition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileMechanism(ExponentialSelection):
    """Draw the p-quantile, or an end of an interval for it: step k of 0, …, K, with P[k] ∝ exp(-ε·loss(k)/(2Δ)).

    With p = a/b and n rows, of which r(k) lie below step k and R(k) at it or below, the loss of a step is how far
    b·r(k) is above the target a·n, or b·R(k) below it; 0 where neither is. For the lower end `shift` rows that
    nobody has are put at step 0, and for the upper end as many at step K with the target moved up by them: so some
    step always has loss 0, and an end that is not a bound of the measure is off by the regret at most.

    Privacy     ε-DP and ε²/8-zCDP, if one person moves the losses of all cells together by at most Δ =
                `sensitivity`. [DworkRoth14, Theorem 3.10] A row that is added moves b·r(k) - a·n by b - a or by
                -a. Cells are drawn independently, each with log-ratios in an interval of ε times its part of Δ,
                and the parts add up to at most Δ.
    Accuracy    With `shift` of at least (2Δ/(bε))·(ln(K + 1) + ln(1/β)) + 2 the lower end is at or below, and the
                upper end at or above, every value between the order statistics of ranks ⌊p(n - 1)⌋ and ⌈p(n - 1)⌉,
                except with probability β each. [Lecture 18, Theorem 0.1]
    Complexity  O(number of different values) for a cell, whatever K is: steps of equal loss are one candidate.
    Gap         None: the law is exact (`noise.selection`).
    """

    epsilon: Fraction
    sensitivity: int
    level: Fraction
    side: Literal["low", "point", "high"]
    steps: int
    shift: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", privacy_parameter(self.epsilon))
        lattice_sensitivity(self.sensitivity)
        whole(self.steps, "steps", at_least=1)
        whole(self.shift, "shift", at_least=0)
        if self.side == "point" and self.shift:
            raise ParameterError("the quantile itself is not shifted")
        if self.sensitivity == 0 or not 0 <= self.level <= 1:
            raise ParameterError("a quantile has a level between 0 and 1, and losses that somebody moves")
        if self.level.denominator * (self.shift + MOST_ROWS) >= LARGEST_LOSS:  # refused before it is paid for
            raise ParameterError(
                "the end of a quantile would lie beyond all rows at this price",
                remedy="Ask with a higher price, or for a level of fewer digits",
            )

    def losses(self, values: Whole, counts: Whole) -> tuple[Whole, list[int], Whole]:
        """For a cell of `counts` rows at steps `values`, in order: losses, multiplicities and first steps.

        Candidates are the steps that rows lie at, and the runs of steps between them, in order.
        """
        a, b = self.level.numerator, self.level.denominator
        lower, upper = (self.shift, 0) if self.side == "low" else (0, self.shift)
        target = a * int(counts.sum()) + (b * self.shift if self.side == "high" else 0)
        held = dict(zip(values.tolist(), counts.tolist(), strict=True))
        for step, more in ((0, lower), (self.steps, upper)):
            if more:
                held[step] = held.get(step, 0) + more
        losses, sizes, firsts, below, last = list[int](), list[int](), list[int](), 0, -1
        for step in sorted(held):
            if step > last + 1:
                losses.append(abs(b * below - target))
                sizes.append(step - last - 1)
                firsts.append(last + 1)
            through = below + held[step]
            losses.append(max(b * below - target, target - b * through, 0))
            sizes.append(1)
            firsts.append(step)
            below, last = through, step
        if last < self.steps:
            losses.append(abs(b * below - target))
            sizes.append(self.steps - last)
            firsts.append(last + 1)
        return np.array(losses, np.int64), sizes, np.array(firsts, np.int64)

    def draw(self, values: Whole, counts: Whole, *, noise: NoiseSource) -> int:
        """The drawn step of a cell."""
        losses, sizes, firsts = self.losses(values, counts)
        chosen = choose(losses, self.rate, noise=noise, multiplicities=sizes)
        return int(firsts[chosen]) + uniform_below(sizes[chosen], noise=noise)

    def log_law(self, values: Whole, counts: Whole) -> NDArray[np.float64]:
        """ln P[step] for each step, to float accuracy."""
        losses, sizes, _ = self.losses(values, counts)
        weights = -float(self.rate) * np.repeat(losses, sizes).astype(np.float64)
        weights -= weights.max()
        return weights - np.log(np.exp(weights).sum())


def quantile_sensitivity(level: Fraction, relation: Relation, *, one_cell_of_all: bool) -> Sensitivity:
    """How far neighbours move the losses of all cells together, each cell by its largest.

    The loss of a step k is a distance of b·r(k) - a·n, to which a row of the cell adds b - a or -a. So the losses
    of a cell move no further than a sum over its rows of weights between -a and b - a, and those of all cells no
    further than such sums side by side; with `one_cell_of_all` there is one cell, in which all rows lie.
    """
    a, b = level.numerator, level.denominator
    sums = CountColumns(1 if one_cell_of_all else 2, low=-a, high=b - a)
    return relation.moves(sums).of_distance


def shift_for(
    epsilon: Fraction, sensitivity: int, level: Fraction, *, steps: int, cells: int, beta: Fraction
) -> int:
    """The rows by which ends are shifted, so that those of all cells are on their sides but with probability β."""
    regret = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity)
    lost = float(2 * regret.sensitivity / regret.epsilon) * (log(steps + 1) + log(cells) - log(beta))
    return ceil(lost / level.denominator * (1 + 1e-12)) + DISCRETE


CARD = Card(
    name="quantile of a measure",
    family=Family.SELECTION,
    privacy="ε; ε²/8-zCDP",
    accuracy="ranks within (2Δ/ε)(ln K + ln 1/β), as an interval of values",
    source="Lecture 18, Theorem 0.1",
    events=(Selection,),
)
