"""The answers of a measurement that was paid for: what was released for each marginal, and its part of the cost.

All of it is post-processing of what was released, and of public values.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import numpy as np
from numpy.typing import NDArray

from understudy.answer.answer import Answer
from understudy.curator.calibration import Calibration
from understudy.curator.prepared_measurement import PreparedMeasurement, noise_name
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost
from understudy.privacy.event import Event
from understudy.query.moment import Moment
from understudy.query.quantile_end import QuantileEnd
from understudy.rational import exact


def measured_answers(
    prepared: PreparedMeasurement,
    released: Sequence[Sequence[int]],
    charged: Cost,
    events: Sequence[Event],
    calibration: Calibration,
) -> list[Answer]:
    """An answer for each marginal: its noisy counts, clipped to what is possible, and its part of the cost.

    `released` are the steps that were told for each marginal, `charged` what they cost together, and `events`
    what was charged for each stack.
    """
    costs = shared_cost(charged, prepared.stacks, events, calibration.budget)
    most, beta = calibration.rows_at_most(), float(exact(prepared.beta))
    answers: list[Answer] = []
    for marginal, steps, cost, (mechanism, resolution), error in zip(
        prepared.marginals, released, costs, prepared.mechanisms, prepared.errors, strict=True
    ):
        public = calibration.is_public(marginal)
        noisy = np.array(steps, np.int64).reshape(marginal.shape) / resolution
        answers.append(
            Answer(
                query=marginal,
                value=_possible(noisy, marginal.moment, most),
                error=np.full(marginal.shape, float(error)),
                noisy=noisy,
                cost=cost,
                beta=beta,
                source="public" if public else "measured",
                noise=None if public else noise_name(mechanism),
            )
        )
    return answers


def _possible(
    noisy: NDArray[np.float64], moment: Moment | QuantileEnd | None, most: int | None
) -> NDArray[np.float64]:
    """Counts clipped to what is possible with so many rows at most: never further from the truth than before."""
    if isinstance(moment, QuantileEnd):
        return noisy
    if moment is None:
        return np.clip(noisy, 0, most)
    if most is None:
        return noisy if moment.low else np.maximum(noisy, 0.0)
    return np.clip(noisy, float(moment.low) * most, float(moment.high) * most)


def shared_cost(
    cost: Cost, stacks: Sequence[Sequence[int]], events: Sequence[Event], budget: Budget
) -> list[Cost]:
    """What was charged, shared out among the marginals; the parts add up to it.

    In proportion to what each stack costs on its own: those of a stack share its price equally.
    """
    whole = lcm(*map(len, stacks))
    weights: dict[int, int] = {}
    for stack, event in zip(stacks, events, strict=True):
        units = budget.price(event).units
        weights.update(dict.fromkeys(stack, units * (whole // len(stack))))
    shares: list[Cost] = []
    left, weight = cost.units, sum(weights.values())
    for place in range(len(weights)):
        part = left * weights[place] // weight if weight else 0
        shares.append(type(cost)(part))
        left, weight = left - part, weight - weights[place]
    return shares
