"""How far off a release's marginals would be, method by method, before anything is spent.

The lengths of intervals follow from the prices of what a method measures, and so from public numbers alone: none
will be longer, and some are cut off at 0. An adaptive release may end otherwise: cells of values that it merges
have longer ones, and so may pairs that no round measures, and all marginals where it makes no rounds, as the noise
turns out. Where the table decides what is measured, nothing is known beforehand, and nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import pi, sqrt

import numpy as np

from understudy.domain.domain import Clique
from understudy.privacy.price import Price
from understudy.query.marginal import Marginal
from understudy.query.workload import Workload
from understudy.releases.adaptive.beta import BetaShares
from understudy.releases.adaptive.first_marginals import check_first
from understudy.releases.adaptive.one_way import OneWayShares
from understudy.releases.adaptive.rule import (
    ROWS_SHARE,
    Rule,
    bars_forecast,
    first_prices,
    least_first,
    noise_to_signal,
    rule_for,
)
from understudy.releases.adaptive.sequential import LEVELS
from understudy.releases.adaptive.sweep import SMALL, SweepPlan
from understudy.releases.adaptive.sweep_choice import pairs_below
from understudy.releases.evidence import Evidence
from understudy.releases.iterative import certified_error
from understudy.releases.method_options import Options, planning
from understudy.releases.mwem import shares
from understudy.releases.residual.residual import PLANNED_BY as RESIDUAL_PLANNED_BY
from understudy.releases.residual.residual import planned, share_of_beta
from understudy.releases.residual.tables import ResidualTables
from understudy.releases.run import Run
from understudy.releases.small_marginals import below, direct_bars
from understudy.releases.smalldb import PLANNED_BY as SMALLDB_PLANNED_BY
from understudy.releases.smalldb import smalldb_look
from understudy.releases.target import pairs_and_triples, triples_with

MEAN_ABSOLUTE = sqrt(2 / pi)
"""E|x| of a standard Gaussian."""


@dataclass(frozen=True)
class ForeseenErrors:
    """Half of the certified interval, and the usual error, of each clique.

    `rows_error` is told where the method knows a better one than follows from the usual errors, and
    `tells_below` where the 1-way and 2-way marginals below the workload are told as well.
    """

    of: Callable[[Clique], tuple[float | None, float | None]]
    rows_error: float | None = None
    tells_below: bool = False


def unknown(run: Run, options: Options) -> ForeseenErrors:
    """Nothing is known before the table was looked at, and nothing is claimed."""
    del run, options
    return ForeseenErrors(lambda _: (None, None))


def of_residual(run: Run, options: Options) -> ForeseenErrors:
    """Every interaction is measured at a price that the plan decides."""
    plan = planned(run, **planning(options, RESIDUAL_PLANNED_BY))
    if plan is None:
        return ForeseenErrors(lambda _: (0.0, 0.0))
    residuals, look = plan
    public = run.curator.relation.rows_are_public
    tables = ResidualTables(residuals, look, np.zeros(look.cells, np.int64), 0.0 if public else None)
    beta = share_of_beta(run, residuals)

    def foreseen(clique: Clique) -> tuple[float, float]:
        usual = MEAN_ABSOLUTE * float(np.sqrt(tables.variance(clique)).mean())
        return float(tables.error(clique, beta).max()), usual

    return ForeseenErrors(foreseen, tells_below=True)


def of_mwem(run: Run, options: Options) -> ForeseenErrors:
    """All marginals are measured at one price where they are few; else the table decides which are."""
    plan = shares(run, options.get("rounds"), options.get("per_round"))
    small = plan.small
    if small is None:
        return unknown(run, options)  # which marginals are measured depends on the table
    added_up = {mean.clique: mean for mean in small.means}

    def foreseen(clique: Clique) -> tuple[float, float]:
        marginal = Marginal(run.domain, clique)
        mechanism, resolution = run.curator.calibration.mechanism(marginal, small.price)
        spread = sqrt(float(mechanism.variance))
        mean = added_up.get(clique)
        if mean is not None:
            cells = sum(run.domain.size(c) for c in mean.held_by) / run.domain.size(clique)
            return mean.error, MEAN_ABSOLUTE * spread * sqrt(cells) / len(mean.held_by)
        half_width = run.curator.calibration.error(marginal, mechanism, resolution, small.beta)
        return half_width, MEAN_ABSOLUTE * spread

    return ForeseenErrors(foreseen, tells_below=True)


def of_smalldb(run: Run, options: Options) -> ForeseenErrors:
    """One proved error for every cell of the workload."""
    look, design = smalldb_look(run, **planning(options, SMALLDB_PLANNED_BY))
    return ForeseenErrors(lambda _: (design.error * look.rows, None))


def of_iterative(run: Run, options: Options) -> ForeseenErrors:
    """One proved error for every cell of the workload."""
    error = certified_error(run, alpha=options.get("alpha"))
    return ForeseenErrors(lambda _: (error, None))


def of_adaptive(run: Run, options: Options) -> ForeseenErrors:
    """The last sweep is known beforehand; what the rounds measure depends on the table."""
    rows = float(run.curator.forecast_rows)
    if not rows:
        return unknown(run, options)
    evidence = Evidence(run)
    check_first(evidence)
    precision = evidence.precision(run.total)
    rule = rule_for(
        run.domain,
        run.workload,
        precision=precision,
        rows=rows,
        memory=run.memory,
        seconds=options.get("seconds"),
        target=run.target,
    )
    rows_error = min(noise_to_signal(run.domain, precision, rows) / 2, 1.0)
    first, last = _first_marginals(run, rule), _last_sweep(evidence, rule)

    def foreseen(clique: Clique) -> tuple[float | None, float | None]:
        found = [known for known in (first(clique), last(clique)) if known is not None]
        return min(found, key=lambda known: known[0], default=(None, None))

    return ForeseenErrors(foreseen, rows_error, tells_below=True)


_Told = Callable[[Clique], tuple[float, float | None] | None]
"""Of a clique that a step measures, half of its certified interval, and its usual error, where that is known."""


def _first_marginals(run: Run, rule: Rule) -> _Told:
    """The 1-way marginals, by the price that they have before anything else is measured."""
    rounds = any(len(clique) > 1 for clique in run.workload)
    share = rule.first * (1 - rule.guard) if rounds else 1 - ROWS_SHARE
    price = first_prices(run.domain, max(run.total * share, least_first(run.domain)))
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


def _last_sweep(evidence: Evidence, rule: Rule) -> _Told:
    """What the last sweep measures, by its share of the price; merging makes it less noisy for values alone."""
    run = evidence.run
    if rule.for_bars:
        return _pairs_as_asked_directly(evidence, rule.first)
    rounds = any(len(clique) > 1 for clique in run.workload)
    swept = _swept(run, rule) if rule.guard and rounds else None
    if swept is None:
        return lambda _: None
    price, share = run.total * rule.guard * (1 - ROWS_SHARE), _shares_of_beta(run, rule).sweep
    relation = run.curator.relation
    plan = SweepPlan.of(
        relation, evidence.plain, swept.cliques, price, rounded=run.rounded, weights=swept.weights
    )
    if rule.guard_order == 0:
        plan = plan.with_small_bars(relation, price, direct_bars(run, (*swept, *below(swept))), share)
    if plan.look is None:
        return lambda _: None
    public = relation.rows_are_public
    tables = ResidualTables(
        plan.residuals, plan.look, np.zeros(plan.look.cells, np.int64), 0.0 if public else None
    )
    beta = plan.beta_of_cells(share, SMALL)

    def told(clique: Clique) -> tuple[float, float] | None:
        if clique not in beta:
            return None
        usual = MEAN_ABSOLUTE * float(np.sqrt(tables.variance(clique)).mean())
        return float(tables.error(clique, beta[clique]).max()), usual

    return told


def _pairs_as_asked_directly(evidence: Evidence, first: Fraction) -> _Told:
    """A sweep that is there for the bars of pairs alone takes as much as makes them no longer than those of direct
    questions, and no more: no shorter ones are foreseen. Counts are a stand-in's, whose errors are not.
    """
    run = evidence.run
    precision, rows = evidence.precision(run.total), float(run.curator.forecast_rows)
    found = bars_forecast(run.domain, run.workload, precision, rows)
    if found is None or not found.is_sure(first):
        return lambda _: None
    bars = direct_bars(run, found.pairs)
    return lambda clique: (bars[clique], None) if clique in bars else None


def _shares_of_beta(run: Run, rule: Rule) -> BetaShares:
    return BetaShares.of(
        run.beta,
        private_rows=not run.curator.relation.rows_are_public,
        pairs=any(len(clique) > 1 for clique in run.workload),
        sweep=bool(rule.guard),
        sweeps_workload=rule.sweeps_workload,
    )


def _swept(run: Run, rule: Rule) -> Workload:
    """What the last sweep measures, with its weights: the workload; or its pairs, and the triples with a target.

    Pairs that no round measures may weigh less in the end than is said here, which is not known beforehand.
    """
    if rule.guard_order == 0:
        return run.workload
    pairs, triples = pairs_below(run.domain, run.workload), triples_with(rule.target, run.workload)
    return pairs_and_triples(run.domain, pairs, triples, run.target)
