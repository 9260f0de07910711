"""MWEM beside plain noise and a resample without privacy, on all 3-way marginals, in one run.

Run: python -m bench.mwem [--tables adult nltcs titanic] [--epsilons 0.1 1 10]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from bench.clock import clocked
from bench.curating import CellTruth
from bench.release_score import (
    DELTA,
    HEADING,
    Exact,
    Score,
    asked_for,
    options,
    run_over,
    score,
    scored,
    scored_plain,
)
from bench.tables import Table
from bench.verdict import Verdict, ended
from understudy.query.workload import Workload
from understudy.releases.mwem import mwem

COLUMNS: dict[str, Sequence[str]] = {
    "adult": ("workclass", "education-num", "marital-status", "relationship", "race", "sex", "income>50K"),
    "titanic": ("Survived", "Pclass", "Sex", "SibSp", "Parch", "Fare", "Embarked"),
}
"""Columns whose cells fit into a dense histogram. The rule for shares was not fitted to any of these tables."""


def resampled(table: Table, exact: Exact) -> Score:
    """As many rows drawn from the table itself, with replacement: no privacy at all."""
    again, cpu = clocked(lambda: table.drawn(np.random.default_rng(1).integers(0, table.rows, table.rows)))
    return score({c: again.count(c).astype(np.float64) for c in exact}, exact, table.rows, cpu)


def report(table: Table, epsilons: Sequence[float]) -> None:
    asked, truth = Workload.all_marginals(table.domain, 3), CellTruth(table)
    exact = truth.counts(asked)
    print(
        f"\n{table.name}: {table.rows:,} rows, {table.domain.size():,} cells, {len(asked)} marginals, "
        f"delta {DELTA:g}, add-remove"
    )
    print(HEADING)
    print(resampled(table, exact).row("resample, no privacy"))
    for epsilon in epsilons:
        noise = scored_plain(run_over(truth, asked, epsilon, seed=1), exact)
        print(noise.row(f"plain noise, eps {epsilon:g}"))
        ours, _ = scored(mwem, run_over(truth, asked, epsilon, seed=2), exact)
        print(ours.row(f"mwem, eps {epsilon:g}", noise), flush=True)


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    told = options(__doc__).parse_args(arguments)
    tables, left = asked_for("mwem", told.tables)
    for table in tables:
        report(table.select(COLUMNS.get(table.name, table.domain.names)), told.epsilons)
    return left


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
