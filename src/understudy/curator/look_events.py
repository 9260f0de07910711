"""What a look is charged: the event of the noise that its mechanism draws, for this project's neighbours.

How far one person moves the values of a look is the look's own word. What follows from that for its noise is
worked out here again: no look is charged for another event than that of what it draws, none is free by mistake.
"""

from __future__ import annotations

from collections.abc import Sequence

from understudy.curator.calibration import Calibration
from understudy.errors import ParameterError
from understudy.mechanism.look import Look, checked_event
from understudy.mechanism.matrix.many_marginals import PartsNoise
from understudy.privacy.budget import Budget
from understudy.privacy.event import Event, is_immovable
from understudy.privacy.relation import Relation
from understudy.query.marginal import Marginal


def look_event(look: Look, relation: Relation, budget: Budget) -> Event:
    """The event that a look is charged, without the version of the table; raises as `checked_event`.

    Noise of several variances is recorded as one of variance 1, at the same ρ; where the budget's filter prices
    discrete noise by its variance, as one of the least variance that is drawn.
    """
    event, drawn = checked_event(look, relation), look.mechanism
    if isinstance(drawn, PartsNoise) and budget.filter.reads_variance:
        return drawn.at_scale(event)
    return event


def check_look_price(
    event: Event, marginals: Sequence[Marginal], budget: Budget, calibration: Calibration
) -> None:
    """Refuse a look that costs nothing, unless nobody can move what it reads or what gets the noise.

    The latter is so where all cells are merged into one and the number of rows is public: then the event is noise
    for a sensitivity of 0.
    """
    if budget.price(event).units or is_immovable(event):
        return
    if any(calibration.sensitivity(marginal).l1 for marginal in marginals):
        raise ParameterError("a look at counts that a person can move has a price, and this one names none")
