"""Whether the noise that a measurement will draw is the one that its counts need: asked before the charge.

A `PreparedMeasurement` is a value that anybody can build. A Curator charges the events of its mechanisms, so it
has to be certain that these mechanisms protect these counts: that each marginal is charged once, that those of
a stack have one noise, and that this noise is for as far as the declared neighbours move them. Reads no data.
"""

from __future__ import annotations

from collections.abc import Sequence

from understudy.curator.calibration import Calibration
from understudy.curator.prepared_measurement import Mechanism, PreparedMeasurement
from understudy.domain.domain import Domain
from understudy.errors import ParameterError
from understudy.mechanism.look import check_known
from understudy.mechanism.quantile import QuantileMechanism
from understudy.mechanism.quantile_hierarchy import QuantileHierarchy
from understudy.privacy.event import Event
from understudy.query.marginal import Marginal
from understudy.query.quantile_end import QuantileEnd


def noise_drawn(prepared: PreparedMeasurement) -> tuple[tuple[Event, ...], ...]:
    """For each stack the events of the noise that is drawn for its marginals, as their mechanisms have it now.

    Raises ParameterError where a marginal is in no stack or in two, and where a mechanism is not one of this
    library.
    """
    places = sorted(place for stack in prepared.stacks for place in stack)
    if places != list(range(len(prepared.marginals))):
        raise ParameterError("a measurement was prepared in which some marginal is charged never or twice")
    found: list[tuple[Event, ...]] = []
    for stack in prepared.stacks:
        mechanisms = [prepared.mechanisms[place][0] for place in stack]
        for mechanism in mechanisms:
            check_known(mechanism)
        found.append(tuple(mechanism.event for mechanism in mechanisms))
    return tuple(found)


def check_noise_fits(prepared: PreparedMeasurement, calibration: Calibration) -> None:
    """Refuse, with a ParameterError, a measurement whose noise is not for the sensitivity that its counts have.

    It depends on what is declared and on the measurement alone, which never change.
    """
    marginals, built = prepared.marginals, prepared.mechanisms
    for stack in prepared.stacks:
        members, (mechanism, resolution) = [marginals[i] for i in stack], built[stack[0]]
        one = all(built[i] == (mechanism, resolution) for i in stack)
        moved = calibration.sensitivity(*members, resolution=resolution)
        kind = _is_of_kind(mechanism, members, calibration.domain)
        if not one or mechanism.event != mechanism.event_for(moved) or not kind:
            raise ParameterError(
                "a measurement was prepared with noise for another sensitivity than its counts have under "
                f"`{calibration.relation}`: prepare it with this Curator"
            )


def _is_of_kind(mechanism: Mechanism, members: Sequence[Marginal], domain: Domain) -> bool:
    """Whether a mechanism is of the kind that marginals are released by; of quantiles, for these very ends."""
    ends = [one.moment for one in members if isinstance(one.moment, QuantileEnd)]
    if isinstance(mechanism, QuantileHierarchy):
        levels = tuple(sorted({end.level for end in ends}))
        fits = len(ends) == len(members) > 1 and mechanism.levels == levels
        return fits and mechanism.steps == ends[0].measures(domain)[0].steps
    if not isinstance(mechanism, QuantileMechanism):
        return not ends
    return len(ends) == len(members) == 1 and (mechanism.level, mechanism.side, mechanism.steps) == (
        ends[0].level,
        ends[0].side,
        ends[0].measures(domain)[0].steps,
    )
