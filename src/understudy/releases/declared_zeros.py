"""What the declaration says is empty, in a release: checked before anything is bought, and told as exact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from understudy.domain.domain import Domain
from understudy.errors import ParameterError, RefusedError, TooLargeError
from understudy.query.constraint import Constraint, allowed_cells
from understudy.releases.run import MarginalAnswer
from understudy.standin.graphical.model import GraphicalStandIn


def check_possible(domain: Domain, constraints: Sequence[Constraint]) -> None:
    """Refuse constraints that leave no cell, or that no stand-in of a size that can be held keeps together."""
    if not constraints:
        return
    try:
        GraphicalStandIn(domain, 1.0, (), tuple(constraints)).project(())
    except (ParameterError, TooLargeError) as error:
        raise RefusedError(f"the declared constraints cannot be kept: {error}. Nothing was spent") from None


def emptied(
    answers: Iterable[MarginalAnswer], domain: Domain, constraints: Sequence[Constraint]
) -> tuple[MarginalAnswer, ...]:
    """Answers with cells that are always empty at 0, exactly: public knowledge has no error."""
    found = []
    for answer in answers:
        allowed = allowed_cells(constraints, domain, answer.clique)
        if allowed is not None:
            told = (answer.counts, answer.low, answer.high)
            counts, low, high = (np.where(allowed, numbers, 0.0) for numbers in told)
            answer = MarginalAnswer(answer.clique, counts, low, high, answer.basis)
        found.append(answer)
    return tuple(found)
