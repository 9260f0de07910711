"""Optimal residual noise beside plain noise, on all 3-way marginals of at most 10,000 cells, in one run.

Run: python -m bench.residual [--tables nltcs adult] [--epsilons 0.1 1 10] [--seeds 3]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from bench.curating import CellTruth
from bench.release_score import (
    DELTA,
    HEADING,
    Exact,
    Score,
    asked_for,
    mean,
    options,
    run_over,
    score,
    scored,
    scored_plain,
)
from bench.tables import Table
from bench.verdict import Verdict, ended
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.mechanism.matrix.ranges import range_ends
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.workload import Workload
from understudy.releases.residual.residual import predicted_error, residual
from understudy.releases.run import Run

TABLES = ("nltcs", "adult")
MOST_MARGINAL_CELLS = 10_000
SEEDS = 3


def workload(domain: Domain) -> Workload:
    triples = Workload.all_marginals(domain, 3)
    return Workload.of(domain, [c for c in triples if domain.size(c) <= MOST_MARGINAL_CELLS])


def ours(run: Run, exact: Exact) -> tuple[Score, Score]:
    """The answers, and what the stand-in alone says, which promises nothing."""
    answers, outcome = scored(residual, run, exact)
    alone = {clique: outcome.rows * outcome.standin.project(clique) for clique in exact}
    return answers, score(alone, exact, outcome.rows, answers.cpu)


def report(table: Table, neighbours: Neighbours, epsilons: Sequence[float], seeds: int) -> None:
    asked, truth = workload(table.domain), CellTruth(table)
    exact = truth.counts(asked)
    print(
        f"\n{table.name}: {table.rows:,} rows, {len(asked)} marginals, {asked.queries:,} cells, delta {DELTA:g}, "
        f"{neighbours}, means of {seeds} runs"
    )
    print(HEADING)
    for epsilon in epsilons:
        runs = [run_over(truth, asked, epsilon, seed=s, neighbours=neighbours) for s in range(2 * seeds)]
        noise = mean([scored_plain(run, exact) for run in runs[:seeds]])
        both = [ours(run, exact) for run in runs[seeds:]]
        print(noise.row(f"plain noise, eps {epsilon:g}"))
        print(mean([answers for answers, _ in both]).row(f"residual, eps {epsilon:g}", noise))
        print(mean([alone for _, alone in both]).row("its stand-in alone", noise))
        told = predicted_error(table.domain, asked, runs[0].total, Relation(neighbours)) / 2 / table.rows
        print(f"{'predicted, noise alone':>28} {told:>8.4f}", flush=True)


def range_report() -> None:
    """The mean variance of all ranges at ρ = 1, measured as cells and as ranges: public numbers, no table."""
    print("\nall ranges of ordered attributes, rho 1, add-remove: root mean variance, in people")
    print(f"{'':>28} {'cells':>8} {'ranges':>8} {'ratio':>8}")
    for sizes in ((32,), (100,), (32, 32), (100, 2)):
        domain = Domain(tuple(Bins.integers(f"x{i}", 0, size - 1) for i, size in enumerate(sizes)))
        asked = Workload.of(domain, [domain.names])
        as_cells, as_ranges = (_range_deviation(asked, ranges) for ranges in ((), domain.names))
        name = " x ".join(map(str, sizes))
        print(f"{name:>28} {as_cells:>8.2f} {as_ranges:>8.2f} {as_ranges / as_cells:>8.2f}")


def _range_deviation(asked: Workload, ranges: Sequence[str]) -> float:
    residuals = Residuals.of(asked, ranges)
    look = residuals.strategies(residuals.precisions("sum"), Relation(Neighbours.ADD_REMOVE), Fraction(1))
    total = 0.0
    for part in look.parts:
        term = float(1 / part.precision)
        for name in asked.domain.names:
            size = asked.domain[name].size
            starts, ends = range_ends(size)
            if name in part.clique:
                held = ((np.arange(size) >= starts[:, None]) & (np.arange(size) < ends[:, None])).astype(
                    float
                )
                term *= float(np.mean([(residuals.bases[name].along(row) ** 2).sum() for row in held]))
            else:
                term *= float((((ends - starts) / size) ** 2).mean())
        total += term
    return total**0.5


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = options(__doc__, TABLES)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each")
    told = parser.parse_args(arguments)
    tables, left = asked_for("residual", told.tables)
    for table in tables:
        for neighbours in (Neighbours.ADD_REMOVE, Neighbours.REPLACE):
            report(table, neighbours, told.epsilons, told.seeds)
    range_report()
    return left


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
