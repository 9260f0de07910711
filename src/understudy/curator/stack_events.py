"""What is charged for a stack of marginals: its noise, and the declared cells that it is about.

By the cells of earlier questions a ledger knows which of them are about other people than this one, and shares
their cost (`privacy.joint`). The region is always one of declared cells, so that it is about the same rows
whatever a question cuts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.curator.prepared_measurement import Mechanism, flat_events
from understudy.declaration.declaration import Declaration
from understudy.domain.domain import Domain
from understudy.domain.refinement import coarse_cells
from understudy.mechanism.quantile import QuantileMechanism
from understudy.mechanism.quantile_hierarchy import QuantileHierarchy
from understudy.privacy.event import Event
from understudy.privacy.region import located_stack
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal


def located_event(marginals: Sequence[Marginal], mechanism: Mechanism, declaration: Declaration) -> Event:
    """The noise of a stack with the declared cells that it is about, whatever the version of the table is."""
    if isinstance(mechanism, QuantileMechanism):
        return mechanism.event
    if isinstance(mechanism, QuantileHierarchy):  # its counts are those of a partition of these rows
        return one_event([located_event(marginals, one, declaration) for one in mechanism.rounds])
    domain, relation = declaration.domain, declaration.relation
    if marginals[0].domain == domain:
        return located_stack(marginals, mechanism.event, relation)
    # Rows of a person are left out, and a region must be about the same rows always.
    declared = [_declared_cells(marginal, domain) for marginal in marginals]
    alone = sum(m.size for m in declared) == 1 < sum(m.size for m in marginals)
    if declaration.unit is not None or alone:
        return mechanism.event
    return located_stack(declared, mechanism.event, relation)


def one_event(events: Sequence[Event]) -> Event:
    """Several events as one that is charged: one alone as it is, more by their parts."""
    return events[0] if len(events) == 1 else flat_events(events)


def _declared_cells(marginal: Marginal, domain: Domain) -> Marginal:
    """The marginal of all rows in declared cells of which a part meets its condition: a larger region."""
    held: dict[str, NDArray[np.float64]] = {}
    for factor in marginal.where.factors:
        for axis, name in enumerate(factor.clique):
            others = tuple(i for i in range(factor.weights.ndim) if i != axis)
            cells = np.zeros(domain[name].size)
            some = np.atleast_1d(factor.weights.any(axis=others) if others else factor.weights > 0)
            cells[coarse_cells(marginal.domain, domain, name)[some]] = 1.0
            held[name] = cells
    return Marginal(domain, marginal.by, LinearQuery.conjunction(domain, held))
