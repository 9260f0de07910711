"""What a release would say and cost, before anything is spent: from public numbers alone.

For each marginal of the workload, and each single column and pair that would be told beside it, half of the
longest interval that would be certified, where it follows from the price, and the error that noise usually leaves
in a cell; for the synthetic rows, in how many of them a marginal would differ from the table's by noise alone.
What a method gets wrong because it did not measure it comes on top, and depends on the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from understudy.domain.domain import Clique
from understudy.errors import InsufficientBudgetError
from understudy.privacy.cost import Cost
from understudy.project import Project
from understudy.query.workload import AllMarginals, Workload
from understudy.rational import Number, probability
from understudy.releases import demand
from understudy.releases.demand import Demand
from understudy.releases.forecast_errors import ForeseenErrors
from understudy.releases.making import checked, checked_memory
from understudy.releases.method_choice import selected
from understudy.releases.method_options import Options
from understudy.releases.methods import named
from understudy.releases.purchases import most_charged, paid_before
from understudy.releases.run import Run
from understudy.releases.small_marginals import below
from understudy.releases.target import targeted
from understudy.releases.workload_file import as_workload


@dataclass(frozen=True)
class MarginalForecast:
    """What would be known of one marginal, of the workload or beside it.

    clique      the names of its attributes
    cells       the number of its cells
    half_width  half of the length of the longest interval that would be certified for its cells, in people; None
                where it is not known beforehand. An answer need not lie in the middle of its interval
    usual       the mean error that noise leaves in a cell, in people; None likewise
    """

    clique: Clique
    cells: int
    half_width: float | None
    usual: float | None

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, which JSON can hold."""
        return {
            "by": list(self.clique),
            "cells": self.cells,
            "half_width": self.half_width,
            "usual_error": self.usual,
        }


@dataclass(frozen=True)
class ReleaseForecast:
    """What a release would say of each marginal, of its rows, and what it would cost.

    method      the name of the method that would make it
    summary     what that method would do, in a sentence
    marginals   what would be known of each marginal of the workload
    rows_error  the part of the synthetic rows in which a marginal would differ from the table's, on average over
                the workload, by noise alone; None where it is not known beforehand
    need        the memory that it would take
    cost        the most that it would be charged, in the budget's currency
    share       the part of the whole budget that this is
    beta        the probability with which some certified error would not hold
    people      the number of people that the table is taken to have; 0 where none is public or declared
    beside      what would be known of the 1-way and 2-way marginals that would be told beside the workload, where
                the method always tells them; their bars may be longer than those of the workload
    paid        what a run of the given name has bought before, which is not paid again; nothing without a name
    refusal     why the ledger would not pay for the release, or for the rest of it; None where it would, or where
                only the method knows what its steps come to. A run that has bought all of its steps is still made
    """

    method: str
    summary: str
    marginals: tuple[MarginalForecast, ...]
    rows_error: float | None
    need: Demand
    cost: Cost
    share: float
    beta: float
    people: float = 0.0
    beside: tuple[MarginalForecast, ...] = ()
    paid: Cost | None = None
    refusal: InsufficientBudgetError | None = None

    @property
    def rest(self) -> Cost:
        """The most that would still be charged: `cost` without what was `paid`."""
        paid = 0 if self.paid is None else self.paid.units
        return type(self.cost)(max(self.cost.units - paid, 0))

    @property
    def is_payable(self) -> bool | None:
        """Whether the ledger would pay for it now; None where that depends on what a run has bought before."""
        if self.refusal is None:
            return True
        return None if self.paid is not None and self.paid.units else False

    @property
    def columns(self) -> tuple[MarginalForecast, ...]:
        """The 1-way marginals that would be told, in the workload or beside it, where that is known."""
        return tuple(one for one in (*self.marginals, *self.beside) if len(one.clique) == 1)

    @property
    def noisy(self) -> tuple[int, int, str]:
        """How many columns would be mostly noise, of how many, and what was judged: `columns`, or `marginals`.

        One is so where half of an interval would be at least as long as the count of each of its cells if all
        cells were equally frequent. Where no interval of a column is known, the marginals of the workload are
        judged.
        """
        known = [one for one in self.columns if one.half_width is not None]
        judged = known or [one for one in self.marginals if one.half_width is not None]
        noisy = (
            sum((one.half_width or 0.0) * one.cells >= self.people for one in judged) if self.people else 0
        )
        return noisy, len(judged), "columns" if known else "marginals"

    @property
    def is_noise(self) -> bool | None:
        """Whether most of what is judged would be mostly noise, as `noisy` says; None where nobody can know.

        That is so where no number of people is public or declared, and where no interval is known beforehand.
        """
        noisy, judged, _ = self.noisy
        return 2 * noisy > judged if self.people and judged else None

    @property
    def noise_words(self) -> str:
        """A warning for people where it would be mostly noise; empty where it would not, or nobody knows."""
        noisy, judged, what = self.noisy
        if not self.is_noise:
            return ""
        return (
            f"Mostly noise: in {noisy:,} of {judged:,} {what} the error bar would be at least as large as the "
            "counts, if all cells were equally frequent. The numbers would say little about the people. Fewer or "
            "smaller marginals, wider ranges, a larger epsilon or more people would help."
        )

    @property
    def largest_half_width(self) -> float | None:
        """Half of the longest interval of the workload's cells, in people; None where some cannot be known yet."""
        return _longest(self.marginals)

    @property
    def largest_half_width_beside(self) -> float | None:
        """The same of the marginals `beside` the workload; None also where none is known to be told there."""
        return _longest(self.beside) if self.beside else None

    def as_dict(self) -> dict[str, Any]:
        """The forecast as plain values, which JSON can hold; what is not known beforehand is null."""
        return {
            "method": self.method,
            "largest_half_width": self.largest_half_width,
            "largest_half_width_beside": self.largest_half_width_beside,
            "rows_error": self.rows_error,
            "marginals": [one.as_dict() for one in self.marginals],
            "beside": [one.as_dict() for one in self.beside],
            "memory": self.need.total,
            "cost": {self.cost.currency: self.cost.amount},
            "rest": {self.rest.currency: self.rest.amount},
            "payable": self.is_payable,
            "share": self.share,
            "beta": self.beta,
            "mostly_noise": self.is_noise,
        }


def forecast(
    project: Project,
    workload: Workload | AllMarginals | str | Path,
    *,
    epsilon: Number,
    delta: Number | None = None,
    method: str = "auto",
    alpha: Number | None = None,
    beta: Number = 0.05,
    memory: int | None = None,
    rows: int | None = None,
    target: str | None = None,
    name: str | None = None,
    analyst: str = "",
    **options: Any,
) -> ReleaseForecast:
    """What `release` with the same arguments would say and cost. Reads no data and spends nothing.

    `project`, `workload`, `epsilon`, `delta`, `method`, `alpha`, `beta`, `memory`, `rows`, `target`, `name`,
    `analyst` and the `options` of the method are those of `release`. Returns a `ReleaseForecast`. Raises what
    `release` would refuse before its first debit, except that the ledger may not be able to pay: that is told by
    its `refusal`.
    """
    budget = project.declaration.budget.alone(epsilon, delta)
    asked = targeted(as_workload(project.domain, workload), target)
    run = Run(
        project.curator,
        asked,
        budget,
        "forecast" if name is None else checked(name),
        beta=probability(beta),
        analyst=analyst,
        memory=checked_memory(memory),
        synthetic=rows,
        target=target,
    )
    given = {key: value for key, value in {"alpha": alpha, **options}.items() if value is not None}
    found = forecast_of(run, selected(run, method, given), given)
    bought = 0 if name is None else paid_before(project.ledger, name)
    paid = type(found.cost)(bought)
    return replace(found, paid=paid, refusal=_not_paid(run, replace(found, paid=paid).rest))


def _not_paid(run: Run, rest: Cost) -> InsufficientBudgetError | None:
    """Why the ledger would not pay for what is not bought yet; None where it would, or only the method knows."""
    if run.budget.is_pure == run.curator.ledger.budget.is_pure:
        try:
            run.check_affordable(rest)
        except InsufficientBudgetError as refusal:
            return refusal
    return None


def forecast_of(run: Run, method: str, options: Options) -> ReleaseForecast:
    """The forecast of a method that fits the run."""
    known = named(method)
    found = known.foreseen(run, options)
    workload = run.workload
    marginals = _foreseen(run, found, workload)
    rows_error = found.rows_error
    people = float(run.curator.forecast_rows)
    if rows_error is None and people:
        usual = [one.usual for one in marginals]
        if None not in usual:
            parts = [min(one.cells * (one.usual or 0.0) / (2 * people), 1.0) for one in marginals]
            rows_error = float(np.average(parts, weights=[float(weight) for weight in workload.weights]))
    ledger = run.curator.ledger.budget
    cost = most_charged(ledger, run.budget.epsilon, run.budget.delta)
    need = demand.need_of(run, known, options)
    return ReleaseForecast(
        method,
        known.told.summary,
        marginals,
        rows_error,
        need,
        cost,
        ledger.share(cost),
        float(run.beta),
        people,
        _foreseen(run, found, below(workload)) if found.tells_below else (),
    )


def _foreseen(run: Run, found: ForeseenErrors, cliques: Iterable[Clique]) -> tuple[MarginalForecast, ...]:
    return tuple(
        MarginalForecast(clique, run.domain.size(clique), *(_known(number) for number in found.of(clique)))
        for clique in cliques
    )


def _longest(told: Sequence[MarginalForecast]) -> float | None:
    """Half of the longest interval, in people; None where some cannot be known yet."""
    halves = [one.half_width for one in told]
    return None if None in halves else max((half for half in halves if half is not None), default=0.0)


def _known(number: float | None) -> float | None:
    return None if number is None or not isfinite(number) else float(number)
