"""MWEM beside plain noise and a resample without privacy, on all 3-way marginals, in one run.

Run: python -m bench.mwem [table …]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from understudy.bins import Bins
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.domain import Clique, Domain
from understudy.ledger.memory import MemoryLedger
from understudy.noise import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.neighbours import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.workload import Workload
from understudy.releases.mwem import mwem
from understudy.releases.run import Run
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-9
COLUMNS: dict[str, Sequence[str] | None] = {
    "nltcs": None,
    "adult": ("workclass", "education-num", "marital-status", "relationship", "race", "sex", "income>50K"),
    "titanic": ("Survived", "Pclass", "Sex", "SibSp", "Parch", "Fare", "Embarked"),
}
"""Columns whose cells fit into a dense histogram. The rule for shares was not fitted to any of these tables."""

Table = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """Mean over the workload of half the L1 distance of rates; largest error of a cell and of a bar, as rates."""

    tvd: float
    largest: float
    bar: float
    covered: bool
    cpu: float

    def row(self, what: str, other: Score | None = None) -> str:
        ratio = "" if other is None else f"{self.tvd / other.tvd:>9.2f} {self.largest / other.largest:>9.2f}"
        return (
            f"{what:>26} {self.tvd:>8.4f} {self.largest:>8.4f} {self.bar:>8.4f} "
            f"{'yes' if self.covered else 'NO':>5} {self.cpu:>7.1f} {ratio}"
        )


def load(name: str) -> tuple[Domain, pa.Table]:
    sizes = json.loads((DATA / f"{name}-domain.json").read_text())
    columns = list(COLUMNS[name] or sizes)
    domain = Domain(tuple(Bins.integers(column, 0, sizes[column] - 1) for column in columns))
    return domain, pyarrow.csv.read_csv(DATA / f"{name}.csv").select(columns)


def generated() -> tuple[Domain, pa.Table]:
    """Sixteen yes-or-no questions that eight kinds of people answer each in their way."""
    rng = np.random.default_rng(0)
    kind = rng.choice(8, 21_574, p=rng.dirichlet(np.ones(8)))
    codes = (rng.random((21_574, 16)) < rng.beta(0.6, 0.9, (8, 16))[kind]).astype(np.int64)
    names = [f"q{i}" for i in range(16)]
    domain = Domain(tuple(Bins.integers(name, 0, 1) for name in names))
    return domain, pa.table({name: codes[:, i] for i, name in enumerate(names)})


def start(domain: Domain, table: pa.Table, epsilon: float, seed: int) -> tuple[Run, Truth]:
    budget = Budget.of(epsilon, DELTA)
    declaration = Declaration(
        name="bench",
        source=SourceSpec("-"),
        domain=domain,
        budget=budget,
        neighbours=Neighbours.ADD_REMOVE,
    )
    truth = Truth(in_memory(table), domain)
    curator = Curator(truth, MemoryLedger(budget), declaration, noise=SeededNoise(seed))
    return Run(curator, Workload.all_marginals(domain, 3), budget, "bench"), truth


def score(
    answers: dict[Clique, tuple[Table, Table]],
    exact: dict[Clique, NDArray[np.int64]],
    rows: float,
    cpu: float,
) -> Score:
    n = int(next(iter(exact.values())).sum())
    errors = [counts / rows - exact[clique] / n for clique, (counts, _) in answers.items()]
    return Score(
        float(np.mean([np.abs(e).sum() / 2 for e in errors])),
        max(float(np.abs(e).max()) for e in errors),
        max(float(bar.max()) for _, bar in answers.values()) / n,
        all(bool((np.abs(c - exact[q]) <= bar).all()) for q, (c, bar) in answers.items()),
        cpu,
    )


def simplex(counts: Table, total: float) -> Table:
    """The nearest non-negative table with that sum."""
    flat = np.sort(counts.ravel())[::-1]
    excess = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    return np.maximum(counts - excess[np.flatnonzero(flat > excess)[-1]], 0)


def plain(run: Run, exact: dict[Clique, NDArray[np.int64]]) -> Score:
    """Gaussian noise on every marginal, each projected to the simplex; the row count from their mean."""
    begin = process_time()
    marginals = [Marginal(run.domain, clique) for clique in run.workload]
    bought = run.measure(
        "all", marginals, **run.price(Fraction(1, len(marginals))), beta=run.beta / len(marginals)
    )
    rows = max(1.0, float(np.mean([answer.noisy.sum() for answer in bought])))
    answers = {a.query.by: (simplex(a.noisy, rows), a.error) for a in bought}
    cpu = process_time() - begin
    found = score(answers, exact, rows, cpu)
    held = all(bool((np.abs(a.value - exact[a.query.by]) <= a.error).all()) for a in bought)
    return Score(found.tvd, found.largest, found.bar, held, cpu)


def ours(run: Run, exact: dict[Clique, NDArray[np.int64]]) -> Score:
    begin = process_time()
    outcome = mwem(run)
    cpu = process_time() - begin
    return score({a.clique: (a.counts, a.error) for a in outcome.answers}, exact, outcome.rows, cpu)


def resampled(domain: Domain, table: pa.Table, exact: dict[Clique, NDArray[np.int64]]) -> Score:
    """As many rows drawn from the table itself, with replacement: no privacy at all."""
    begin = process_time()
    drawn = table.take(np.random.default_rng(1).integers(0, table.num_rows, table.num_rows))
    again = Truth(in_memory(drawn), domain).counts(list(exact))
    nothing = {c: (t.astype(np.float64), np.full(t.shape, np.inf)) for c, t in again.items()}
    return score(nothing, exact, table.num_rows, process_time() - begin)


def report(name: str, domain: Domain, table: pa.Table) -> None:
    _, truth = start(domain, table, 1.0, 1)
    workload = Workload.all_marginals(domain, 3)
    exact = truth.counts(workload)
    print(
        f"\n{name}: {table.num_rows:,} rows, {domain.size():,} cells, {len(workload)} marginals, delta {DELTA:g}, "
        "add-remove"
    )
    print(
        f"{'':>26} {'TVD':>8} {'max':>8} {'bar':>8} {'holds':>5} {'CPU s':>7} {'TVD/plain':>9} {'max/plain':>9}"
    )
    print(resampled(domain, table, exact).row("resample, no privacy"))
    for epsilon in EPSILONS:
        noise = plain(start(domain, table, epsilon, 1)[0], exact)
        print(noise.row(f"plain noise, eps {epsilon:g}"))
        print(ours(start(domain, table, epsilon, 2)[0], exact).row(f"mwem, eps {epsilon:g}", noise))


def main() -> None:
    names = [name for name in sys.argv[1:] if name in COLUMNS] or list(COLUMNS)
    there = [name for name in names if (DATA / f"{name}.csv").exists()]
    if not there:
        report("generated", *generated())
    for name in there:
        report(name, *load(name))


if __name__ == "__main__":
    main()
