"""Optimal residual noise beside plain noise, on all 3-way marginals of at most 10,000 cells, in one run.

Run: python -m bench.residual [table …]
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
from understudy.releases.ranges import range_ends
from understudy.releases.residual import predicted_error, residual
from understudy.releases.residual_plan import Residuals
from understudy.releases.run import Run
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-9
MOST_CELLS = 10_000
SEEDS = 3

Table = NDArray[np.float64]
Exact = dict[Clique, NDArray[np.int64]]


class Seen:
    """Exact counts, counted once: what is measured below is the release alone."""

    def __init__(self, truth: Truth, cliques: list[Clique]) -> None:
        self.counts: Exact = truth.counts(cliques)
        self.rows = truth.rows

    def check_unchanged(self) -> None:
        pass

    def check_size(self, marginals: object) -> None:
        pass

    def sums_of(self, marginals: list[Marginal], *, resolution: int = 1) -> list[NDArray[np.int64]]:
        assert resolution == 1
        return [self.counts[marginal.by] for marginal in marginals]


@dataclass(frozen=True)
class Score:
    """Mean over the workload of half the L1 distance of rates; largest error of a cell and of a bar, as rates."""

    tvd: float
    largest: float
    bar: float
    covered: float
    cpu: float

    def row(self, what: str, other: Score | None = None) -> str:
        ratio = "" if other is None else f"{self.tvd / other.tvd:>9.2f} {self.largest / other.largest:>9.2f}"
        return (
            f"{what:>28} {self.tvd:>8.4f} {self.largest:>8.4f} {self.bar:>8.4f} {self.covered:>6.2f} "
            f"{self.cpu:>7.2f} {ratio}"
        )


def mean(scores: list[Score]) -> Score:
    return Score(*np.mean([[s.tvd, s.largest, s.bar, s.covered, s.cpu] for s in scores], axis=0).tolist())


def load(name: str) -> tuple[Domain, pa.Table]:
    sizes = json.loads((DATA / f"{name}-domain.json").read_text())
    domain = Domain(tuple(Bins.integers(column, 0, size - 1) for column, size in sizes.items()))
    return domain, pyarrow.csv.read_csv(DATA / f"{name}.csv").select(list(sizes))


def generated() -> tuple[Domain, pa.Table]:
    """Sixteen yes-or-no questions that eight kinds of people answer each in their way."""
    rng = np.random.default_rng(0)
    kind = rng.choice(8, 21_574, p=rng.dirichlet(np.ones(8)))
    codes = (rng.random((21_574, 16)) < rng.beta(0.6, 0.9, (8, 16))[kind]).astype(np.int64)
    names = [f"q{i}" for i in range(16)]
    domain = Domain(tuple(Bins.integers(name, 0, 1) for name in names))
    return domain, pa.table({name: codes[:, i] for i, name in enumerate(names)})


def workload(domain: Domain) -> Workload:
    triples = Workload.all_marginals(domain, 3)
    return Workload.of(domain, [c for c in triples if domain.size(c) <= MOST_CELLS])


def start(asked: Workload, seen: Seen, epsilon: float, seed: int, neighbours: Neighbours) -> Run:
    budget = Budget.of(epsilon, DELTA)
    declaration = Declaration(
        name="bench", source=SourceSpec("-"), domain=asked.domain, budget=budget, neighbours=neighbours
    )
    curator = Curator(seen, MemoryLedger(budget), declaration, noise=SeededNoise(seed))  # type: ignore[arg-type]
    return Run(curator, asked, budget, "bench")


def score(
    answers: dict[Clique, tuple[Table, Table]], exact: Exact, rows: float, *, covered: bool, cpu: float
) -> Score:
    n = int(next(iter(exact.values())).sum())
    errors = [counts / rows - exact[clique] / n for clique, (counts, _) in answers.items()]
    return Score(
        float(np.mean([np.abs(e).sum() / 2 for e in errors])),
        max(float(np.abs(e).max()) for e in errors),
        max(float(bar.max()) for _, bar in answers.values()) / n,
        float(covered),
        cpu,
    )


def simplex(counts: Table, total: float) -> Table:
    """The nearest non-negative table with that sum."""
    flat = np.sort(counts.ravel())[::-1]
    excess = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    return np.maximum(counts - excess[np.flatnonzero(flat > excess)[-1]], 0)


def plain(run: Run, exact: Exact) -> Score:
    """Gaussian noise on every marginal, each projected to the simplex; the row count from their mean."""
    begin = process_time()
    marginals = [Marginal(run.domain, clique) for clique in run.workload]
    bought = run.measure(
        "all", marginals, **run.price(Fraction(1, len(marginals))), beta=run.beta / len(marginals)
    )
    rows = max(1.0, float(np.mean([answer.noisy.sum() for answer in bought])))
    answers = {a.query.by: (simplex(a.noisy, rows), a.error) for a in bought}
    cpu = process_time() - begin
    held = all(bool((np.abs(a.value - exact[a.query.by]) <= a.error).all()) for a in bought)
    return score(answers, exact, rows, covered=held, cpu=cpu)


def ours(run: Run, exact: Exact) -> tuple[Score, Score]:
    """The answers, and what the stand-in alone says."""
    begin = process_time()
    outcome = residual(run)
    cpu = process_time() - begin
    answers = {a.clique: (a.counts, a.error) for a in outcome.answers}
    held = all(bool((np.abs(c - exact[q]) <= bar).all()) for q, (c, bar) in answers.items())
    alone = {q: (outcome.rows * outcome.standin.project(q), np.full(exact[q].shape, np.inf)) for q in answers}
    return (
        score(answers, exact, outcome.rows, covered=held, cpu=cpu),
        score(alone, exact, outcome.rows, covered=True, cpu=cpu),
    )


def report(name: str, domain: Domain, table: pa.Table, neighbours: Neighbours) -> None:
    asked = workload(domain)
    seen = Seen(Truth(in_memory(table), domain), list(asked))
    print(
        f"\n{name}: {table.num_rows:,} rows, {len(asked)} marginals, {asked.queries:,} cells, delta {DELTA:g}, "
        f"{neighbours}, means of {SEEDS} runs"
    )
    print(
        f"{'':>28} {'TVD':>8} {'max':>8} {'bar':>8} {'holds':>6} {'CPU s':>7} {'TVD/plain':>9} {'max/plain':>9}"
    )
    for epsilon in EPSILONS:
        runs = [start(asked, seen, epsilon, seed, neighbours) for seed in range(2 * SEEDS)]
        noise = mean([plain(run, seen.counts) for run in runs[:SEEDS]])
        both = [ours(run, seen.counts) for run in runs[SEEDS:]]
        print(noise.row(f"plain noise, eps {epsilon:g}"))
        print(mean([answers for answers, _ in both]).row(f"residual, eps {epsilon:g}", noise))
        print(mean([alone for _, alone in both]).row("its stand-in alone", noise))
        told = predicted_error(domain, asked, runs[0].total, neighbours) / 2 / table.num_rows
        print(f"{'predicted, noise alone':>28} {told:>8.4f}")


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
    look = residuals.strategies(residuals.precisions("sum"), Neighbours.ADD_REMOVE, 1, Fraction(1))
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


def main() -> None:
    names = sys.argv[1:] or ["nltcs", "adult"]
    there = [name for name in names if (DATA / f"{name}.csv").exists()]
    for name, (domain, table) in {n: load(n) for n in there}.items() or {"generated": generated()}.items():
        for neighbours in (Neighbours.ADD_REMOVE, Neighbours.REPLACE):
            report(name, domain, table, neighbours)
    range_report()


if __name__ == "__main__":
    main()
