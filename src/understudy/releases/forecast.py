"""What a release would say and cost, before anything is spent: from public numbers alone.

For each marginal of the workload, the error that would be certified, where it follows from the price, and the
error that noise usually leaves in a cell; for the synthetic rows, in how many of them a marginal would differ
from the table's by noise alone. What a method gets wrong because it did not measure it comes on top, and
depends on the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, isfinite, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from understudy.curator.curator import Curator
from understudy.curator.unseen import UnseenTable
from understudy.declaration.declaration import Declaration
from understudy.domain.domain import Clique, Domain
from understudy.errors import ParameterError, QueryError, RefusedError
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.privacy.cost import Cost
from understudy.privacy.price import Price
from understudy.project import Project
from understudy.query.marginal import Marginal
from understudy.query.workload import AllMarginals, Workload
from understudy.rational import Number, probability
from understudy.releases import demand
from understudy.releases.adaptive.beta import BetaShares, beta_of_cells
from understudy.releases.adaptive.one_way import OneWayShares
from understudy.releases.adaptive.rule import ROWS_SHARE, Rule, first_prices, noise_to_signal, rule_for, told
from understudy.releases.adaptive.sequential import LEVELS
from understudy.releases.demand import Demand
from understudy.releases.evidence import Evidence
from understudy.releases.iterative import certified_error
from understudy.releases.methods import METHODS, named, obstacle, selected
from understudy.releases.mwem import REACH, shares
from understudy.releases.purchases import most_charged
from understudy.releases.residual.residual import REACHES, planned, share_of_beta
from understudy.releases.residual.tables import ResidualTables
from understudy.releases.run import Run
from understudy.releases.small_marginals import below, direct_bars
from understudy.releases.smalldb import smalldb_look
from understudy.releases.target import targeted
from understudy.releases.workload_file import as_workload

Options = Mapping[str, Any]

MEAN_ABSOLUTE = sqrt(2 / pi)
"""E|x| of a standard Gaussian."""


@dataclass(frozen=True)
class MarginalForecast:
    """What would be known of one marginal of the workload.

    clique  the names of its attributes
    cells   the number of its cells
    error   the largest half-width that would be certified for its cells, in people; None where it is not known
            beforehand
    usual   the mean error that noise leaves in a cell, in people; None likewise
    """

    clique: Clique
    cells: int
    error: float | None
    usual: float | None


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
    columns     the 1-way marginals that would be told, in the workload or beside it, where their error is known
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
    columns: tuple[MarginalForecast, ...] = ()

    @property
    def noisy(self) -> tuple[int, int, str]:
        """How many columns would be mostly noise, of how many, and what was judged: `columns`, or `marginals`.

        One is so where the error would be at least as large as the count of each of its cells if all cells were
        equally frequent. Where no error of a column is known, the marginals of the workload are judged.
        """
        known = [one for one in self.columns if one.error is not None]
        judged = known or [one for one in self.marginals if one.error is not None]
        noisy = sum((one.error or 0.0) * one.cells >= self.people for one in judged) if self.people else 0
        return noisy, len(judged), "columns" if known else "marginals"

    @property
    def is_noise(self) -> bool | None:
        """Whether most of what is judged would be mostly noise, as `noisy` says; None where nobody can know.

        That is so where no number of people is public or declared, and where no error is known beforehand.
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
            f"Mostly noise: in {noisy:,} of {judged:,} {what} the error would be at least as large as the counts, "
            "if all cells were equally frequent. The numbers would say little about the people. Fewer or smaller "
            "marginals, wider ranges, a larger epsilon or more people would help."
        )

    @property
    def largest_error(self) -> float | None:
        """The largest error of all cells of the workload, in people; None where some are not known beforehand."""
        errors = [one.error for one in self.marginals]
        return None if None in errors else max((e for e in errors if e is not None), default=0.0)

    def as_dict(self) -> dict[str, Any]:
        """The forecast as plain values, which JSON can hold; what is not known beforehand is null."""
        return {
            "method": self.method,
            "largest_error": self.largest_error,
            "rows_error": self.rows_error,
            "marginals": [
                {"by": list(one.clique), "cells": one.cells, "error": one.error, "usual_error": one.usual}
                for one in self.marginals
            ],
            "memory": self.need.total,
            "cost": {self.cost.currency: self.cost.amount},
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
    **options: Any,
) -> ReleaseForecast:
    """What `release` with the same arguments would say and cost. Reads no data and spends nothing.

    `project`, `workload`, `epsilon`, `delta`, `method`, `alpha`, `beta`, `memory`, `rows`, `target` and the
    `options` of the method are those of `release`. Returns a `ReleaseForecast`. Raises what `release` would refuse
    before its first debit, except that the ledger may not be able to pay: that is told by `share` and by the
    ledger.
    """
    budget = project.declaration.budget.alone(epsilon, delta)
    asked = targeted(as_workload(project.domain, workload), target)
    run = Run(
        project.curator,
        asked,
        budget,
        "forecast",
        beta=probability(beta),
        memory=memory,
        synthetic=rows,
        target=target,
    )
    given = {key: value for key, value in {"alpha": alpha, **options}.items() if value is not None}
    return forecast_of(run, selected(run, method, given), given)


def forecast_of(run: Run, method: str, options: Options) -> ReleaseForecast:
    """The forecast of a method that fits the run."""
    found = _FORECASTS.get(method, _unknown)(run, options)
    workload = run.workload
    marginals = tuple(
        MarginalForecast(clique, run.domain.size(clique), *(_known(number) for number in found.of(clique)))
        for clique in workload
    )
    rows_error = found.rows_error
    if rows_error is None and (people := _people(run)):
        usual = [one.usual for one in marginals]
        if None not in usual:
            parts = [min(one.cells * (one.usual or 0.0) / (2 * people), 1.0) for one in marginals]
            rows_error = float(np.average(parts, weights=[float(weight) for weight in workload.weights]))
    ledger = run.curator.ledger.budget
    cost = most_charged(ledger, run.budget.epsilon, run.budget.delta)
    need = Demand({**demand.common(run).parts, **demand.stand_in(run, method, options).parts})
    return ReleaseForecast(
        method,
        named(method).summary,
        marginals,
        rows_error,
        need,
        cost,
        ledger.share(cost),
        float(run.beta),
        _people(run),
        _columns(run, found),
    )


def _columns(run: Run, found: _Errors) -> tuple[MarginalForecast, ...]:
    """The 1-way marginals that would be told: those of the workload, and below it where the method tells them."""
    asked = {clique[0] for clique in run.workload if len(clique) == 1}
    if found.tells_columns:
        asked |= {name for clique in run.workload for name in clique}
    return tuple(
        MarginalForecast((name,), run.domain.size((name,)), *(_known(number) for number in found.of((name,))))
        for name in run.domain.names
        if name in asked
    )


def _known(number: float | None) -> float | None:
    return None if number is None or not isfinite(number) else float(number)


def _people(run: Run) -> float:
    """The number of rows, or the declared bound on it that is there; 0 where nothing is public."""
    declared = run.curator.declaration
    if run.curator.relation.rows_are_public:
        return float(run.curator.rows)
    return float(declared.rows_at_least or declared.rows_at_most or 0)


# ---- method by method


@dataclass(frozen=True)
class _Errors:
    """The certified and the usual error of each clique; `rows_error` where the method knows a better one.

    `tells_columns` where the 1-way marginals below the workload are told as well.
    """

    of: Callable[[Clique], tuple[float | None, float | None]]
    rows_error: float | None = None
    tells_columns: bool = False


def _unknown(run: Run, options: Options) -> _Errors:
    del run, options
    return _Errors(lambda _: (None, None))


def _residual(run: Run, options: Options) -> _Errors:
    known = {key: options[key] for key in ("cells_limit", "ranges", "objective") if key in options}
    plan = planned(run, **known)
    if plan is None:
        return _Errors(lambda _: (0.0, 0.0))
    residuals, look = plan
    public = run.curator.relation.rows_are_public
    tables = ResidualTables(residuals, look, np.zeros(look.cells, np.int64), 0.0 if public else None)
    beta = share_of_beta(run, residuals)
    direct = direct_bars(run, (*run.workload, *below(run.workload)))

    def error(clique: Clique) -> tuple[float, float]:
        deviation = np.sqrt(tables.variance(clique))
        half, reach = float(tables.error(clique, beta).max()), REACHES[-1] * float(deviation.max())
        return _told(half, reach, direct.get(clique)), MEAN_ABSOLUTE * float(deviation.mean())

    return _Errors(error, tells_columns=True)


def _mwem(run: Run, options: Options) -> _Errors:
    plan = shares(run, options.get("rounds"), options.get("per_round"))
    small = plan.small
    if small is None:
        return _unknown(run, options)  # which marginals are measured depends on the table
    added_up = {mean.clique: mean for mean in small.means}
    direct = direct_bars(run, (*run.workload, *below(run.workload)))

    def error(clique: Clique) -> tuple[float, float]:
        marginal = Marginal(run.domain, clique)
        mechanism, resolution = run.curator.calibration.mechanism(marginal, small.price)
        spread = sqrt(float(mechanism.variance))
        mean = added_up.get(clique)
        if mean is not None:
            cells = sum(run.domain.size(c) for c in mean.held_by) / run.domain.size(clique)
            return _told(mean.error, inf, direct[clique]), MEAN_ABSOLUTE * spread * sqrt(cells) / len(
                mean.held_by
            )
        half = run.curator.calibration.error(marginal, mechanism, resolution, small.beta)
        return _told(half, REACH * spread, direct.get(clique)), MEAN_ABSOLUTE * spread

    return _Errors(error, tells_columns=True)


def _told(half: float, reach: float, direct: float | None) -> float:
    """The largest error of an interval of that half-width.

    An answer need not lie in the middle of its interval, and its error reaches to the farther end: an answer is up
    to `reach` away from what was measured, and never outside. That of a 1-way or 2-way marginal is moved towards
    the middle until its error is at most that of a direct question, where the interval is short enough.
    """
    most = half + min(reach, half)
    return min(most, direct) if direct is not None and half <= direct else most


def _smalldb(run: Run, options: Options) -> _Errors:
    known = {key: options[key] for key in ("alpha", "size") if key in options}
    look, design = smalldb_look(run, **known)
    return _Errors(lambda _: (design.error * look.rows, None))


def _iterative(run: Run, options: Options) -> _Errors:
    error = certified_error(run, alpha=options.get("alpha"))
    return _Errors(lambda _: (error, None))


def _adaptive(run: Run, options: Options) -> _Errors:
    """The last sweep is known beforehand; what the rounds measure depends on the table."""
    people = _people(run)
    if not people:
        return _unknown(run, options)
    evidence = Evidence(run)
    precision = evidence.precision(run.total)
    rule = rule_for(
        run.domain,
        run.workload,
        precision=precision,
        rows=people,
        memory=run.memory,
        seconds=options.get("seconds"),
    )
    rows_error = min(noise_to_signal(run.domain, precision, people) / 2, 1.0)
    first, last = _first_marginals(run, rule), _last_sweep(run, rule)
    direct = evidence.direct_bars((*run.workload, *below(run.workload)), told(run.domain, run.workload))

    def error(clique: Clique) -> tuple[float | None, float | None]:
        found = [known for known in (first(clique), last(clique)) if known is not None]
        if not found:
            return None, None
        half, usual = min(found)
        return _told(half, inf, direct.get(clique)), usual

    return _Errors(error, rows_error, tells_columns=True)


_Told = Callable[[Clique], tuple[float, float] | None]
"""Of a clique that a step measures, its certified and its usual error."""


def _first_marginals(run: Run, rule: Rule) -> _Told:
    """The 1-way marginals, by the price that they have before anything else is measured."""
    rounds = any(len(clique) > 1 for clique in run.workload)
    share = rule.first * (1 - rule.guard) if rounds else 1 - ROWS_SHARE
    price = first_prices(run.domain, run.total * share)
    public = run.curator.relation.rows_are_public
    again = LEVELS if rounds else ()
    parts = _shares_of_beta(run, rule).one_way
    beta = OneWayShares.of(run.domain, run.domain.names[0], parts, again, rows_public=public).own

    def told(clique: Clique) -> tuple[float, float] | None:
        if len(clique) != 1:
            return None
        marginal = Marginal(run.domain, clique)
        mechanism, resolution = run.curator.calibration.mechanism(marginal, Price("rho", price[clique[0]]))
        usual = MEAN_ABSOLUTE * sqrt(float(mechanism.variance))
        return run.curator.calibration.error(marginal, mechanism, resolution, beta), usual

    return told


def _last_sweep(run: Run, rule: Rule) -> _Told:
    """What the last sweep measures, by its share of the price; merging rare values only makes it less noisy."""
    rounds = any(len(clique) > 1 for clique in run.workload)
    swept = _swept(run.domain, run.workload, rule.guard_order) if rule.guard and rounds else None
    private = not run.curator.relation.rows_are_public
    residuals = Residuals.of(swept, total=private) if swept is not None else None
    if swept is None or residuals is None or not residuals.cliques:
        return lambda _: None
    price = run.total * rule.guard * (1 - ROWS_SHARE)
    relation, rounded = run.curator.relation, run.rounded
    look = residuals.strategies(residuals.precisions(), relation, price, rounded=rounded)
    tables = ResidualTables(residuals, look, np.zeros(look.cells, np.int64), None if private else 0.0)
    share = _shares_of_beta(run, rule).sweep
    told_of = dict.fromkeys((*swept, *(pair for clique in swept for pair in combinations(clique, 2))))
    beta = beta_of_cells(run.domain, told_of, share, rows_public=not private)

    def told(clique: Clique) -> tuple[float, float] | None:
        if clique not in beta:
            return None
        usual = MEAN_ABSOLUTE * float(np.sqrt(tables.variance(clique)).mean())
        return float(tables.error(clique, beta[clique]).max()), usual

    return told


def _shares_of_beta(run: Run, rule: Rule) -> BetaShares:
    return BetaShares.of(
        run.beta,
        private_rows=not run.curator.relation.rows_are_public,
        pairs=any(len(clique) > 1 for clique in run.workload),
        sweep=bool(rule.guard),
        sweeps_workload=bool(rule.guard) and rule.guard_order == 0,
    )


def _swept(domain: Domain, workload: Workload, order: int) -> Workload:
    """What the last sweep measures, with its weights: the workload, or its pairs, which all weigh the same."""
    if order == 0:
        return workload
    pairs = {(a, b) for c in workload for i, b in enumerate(c) for a in c[:i]}
    return Workload.of(domain, sorted(domain.clique(pair) for pair in pairs))


def _aim(run: Run, options: Options) -> _Errors:
    return _unknown(run, options)  # what it measures depends on the table


_FORECASTS: Mapping[str, Callable[[Run, Options], _Errors]] = {
    "adaptive": _adaptive,
    "aim": _aim,
    "ic": _iterative,
    "mwem": _mwem,
    "residual": _residual,
    "smalldb": _smalldb,
}


# ---- without a table


@dataclass(frozen=True)
class MethodPlan:
    """What one method of a release would certify for a planned table: a `width` as a rate, or why it does not fit.

    `chosen` is the one that `auto` would take.
    """

    method: str
    error: float | None
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
        reason, error = obstacle(method, run, {}), None
        if not reason:
            try:
                error = forecast_of(run, method.name, {}).largest_error
            except (RefusedError, ParameterError, QueryError) as refusal:
                reason = str(refusal).split(". ")[0].rstrip(".")
        width = None if error is None else error / max(rows, 1)
        found.append(MethodPlan(method.name, error, width, reason, method.name == best))
    return tuple(sorted(found, key=lambda one: (bool(one.obstacle), inf if one.width is None else one.width)))
