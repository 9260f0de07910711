"""What each method of a release would certify for a table that nobody has opened, or that is not there yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from understudy.curator.curator import Curator
from understudy.curator.unseen import UnseenTable
from understudy.declaration.declaration import Declaration
from understudy.errors import ParameterError, QueryError, RefusedError
from understudy.ledger.memory import MemoryLedger
from understudy.query.workload import Workload
from understudy.rational import Number, probability
from understudy.releases.forecast import forecast_of
from understudy.releases.method_choice import selected
from understudy.releases.methods import METHODS, obstacle, reason
from understudy.releases.run import Run


@dataclass(frozen=True)
class MethodPlan:
    """What one method of a release would certify for a planned table, or why it does not fit.

    `half_width` is half of the longest interval of the workload's cells, in people, and `width` the same as a
    rate; `chosen` is the method that `auto` would take.
    """

    method: str
    half_width: float | None
    width: float | None
    obstacle: str
    chosen: bool


def plan_release(
    declaration: Declaration, workload: Workload, *, rows: int, beta: Number = 0.05
) -> tuple[MethodPlan, ...]:
    """What each method would certify for a workload and the whole declared budget, if the table had so many rows.

    No table is opened: the declaration, the workload and the number of rows are all that is used.
    """
    if declaration.rows_at_least is None and not declaration.relation.rows_are_public:
        declaration = replace(declaration, rows_at_least=rows)
    curator = Curator(UnseenTable(rows), MemoryLedger(declaration.budget), declaration)  # type: ignore[arg-type]
    run = Run(curator, workload, declaration.budget, "plan", beta=probability(beta))
    try:
        best = selected(run, "auto", {})
    except (RefusedError, QueryError):
        best = ""
    found = []
    for method in METHODS.values():
        if method.python_only:
            continue
        why, half_width = obstacle(method, run, {}), None
        if not why:
            try:
                half_width = forecast_of(run, method.name, {}).largest_half_width
            except (RefusedError, ParameterError, QueryError) as refusal:
                why = reason(refusal)
        width = None if half_width is None else half_width / max(rows, 1)
        found.append(MethodPlan(method.name, half_width, width, why, method.name == best))
    return tuple(sorted(found, key=lambda one: (bool(one.obstacle), inf if one.width is None else one.width)))
