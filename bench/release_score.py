"""Releases of marginals and how far off they are, beside plain noise on every marginal.

CPU seconds are those of the release alone: the marginals are counted before.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bench.clock import clocked
from bench.curating import CellTruth, Counts, curator_over
from bench.tables import GENERATED, REAL, Table, at_hand, generated
from bench.verdict import Verdict, not_run, shown
from understudy.domain.domain import Clique
from understudy.privacy.budget import Budget
from understudy.privacy.filter import FilterName
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.merging import simplex
from understudy.query.workload import Workload
from understudy.releases.run import MarginalAnswer, Outcome, Run
from understudy.table.truth import Truth

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-9
RESERVE = Fraction(1, 10_000)
"""The part of a budget kept in GDP that is never spent: small, as all noise of these releases is normal."""

Method = Callable[[Run], Outcome]
Numbers = NDArray[np.float64]
Exact = Mapping[Clique, Counts]


@dataclass(frozen=True)
class Score:
    """Mean over the workload of half the L1 distance of rates, and the largest error of a cell, as a rate.

    `bar` is the largest error bar, as a rate, and `holds` the share of runs whose bars all hold; no numbers where
    nothing is promised.
    """

    tvd: float
    largest: float
    cpu: float
    bar: float = np.nan
    holds: float = np.nan

    def row(self, what: str, other: Score | None = None) -> str:
        ratio = "" if other is None else f"{self.tvd / other.tvd:>9.2f} {self.largest / other.largest:>9.2f}"
        bar, holds = _number(self.bar, ".4f"), _number(self.holds, ".2f")
        return (
            f"{what:>28} {self.tvd:>8.4f} {self.largest:>8.4f} {bar:>8} {holds:>6} {self.cpu:>7.2f} {ratio}"
        )


HEADING = (
    f"{'':>28} {'TVD':>8} {'max':>8} {'bar':>8} {'holds':>6} {'CPU s':>7} {'TVD/plain':>9} {'max/plain':>9}"
)


def _number(value: float, shape: str) -> str:
    return "-" if np.isnan(value) else format(value, shape)


def mean(scores: Sequence[Score]) -> Score:
    return Score(*np.mean([astuple(score) for score in scores], axis=0).tolist())


def score(
    found: Mapping[Clique, Numbers],
    exact: Exact,
    rows: float,
    cpu: float,
    promised: Sequence[MarginalAnswer] = (),
) -> Score:
    """Judge tables for `rows` people, and the bars of what is promised, if anything is."""
    n = int(next(iter(exact.values())).sum())
    errors = [np.abs(counts / rows - exact[clique] / n) for clique, counts in found.items()]
    tvd, largest = float(np.mean([e.sum() / 2 for e in errors])), max(float(e.max()) for e in errors)
    bars = [answer.error.max() for answer in promised]
    if not np.isfinite(bars).all() or not bars:
        return Score(tvd, largest, cpu)
    held = all(bool(((a.low <= exact[a.clique]) & (exact[a.clique] <= a.high)).all()) for a in promised)
    return Score(tvd, largest, cpu, float(max(bars)) / n, float(held))


def run_over(
    truth: Truth | CellTruth,
    asked: Workload,
    epsilon: float,
    *,
    seed: int,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    kept_by: FilterName = "zcdp",
) -> Run:
    """A release under way, for the whole of a budget that is kept by a filter."""
    reserve = RESERVE if kept_by == "gdp" else None
    budget = Budget.of(epsilon, DELTA, filter=kept_by, reserve=reserve)
    curator = curator_over(truth, asked.domain, budget, neighbours=neighbours, seed=seed)
    return Run(curator, asked, budget, "bench")


def plain(run: Run) -> tuple[Outcome, list[MarginalAnswer]]:
    """Gaussian noise on every marginal, moved onto the simplex; and what the bars are about, the noisy counts.

    There is no stand-in; the number of rows is the mean of what the marginals sum to.
    """
    marginals = [Marginal(run.domain, clique) for clique in run.workload]
    share = Fraction(1, len(marginals)) * Fraction(999_999, 1_000_000)  # prices are rounded up one by one
    bought = run.measure("all", marginals, run.price(share), beta=run.beta / len(marginals))
    rows = max(1.0, float(np.mean([answer.noisy.sum() for answer in bought])))
    raw = [MarginalAnswer.around(a.query.by, a.value, a.error, "measured") for a in bought]
    told = tuple(
        MarginalAnswer.around(
            a.query.by, simplex(a.noisy, rows), np.full(a.error.shape, np.inf), "uncertified"
        )
        for a in bought
    )
    return Outcome("plain", None, rows, told, {}), raw  # type: ignore[arg-type]


def scored_plain(run: Run, exact: Exact) -> Score:
    (outcome, raw), cpu = clocked(lambda: plain(run))
    return score({a.clique: a.counts for a in outcome.answers}, exact, outcome.rows, cpu, raw)


def scored(method: Method, run: Run, exact: Exact) -> tuple[Score, Outcome]:
    """A release by a method, judged by its answers."""
    outcome, cpu = clocked(lambda: method(run))
    found = {answer.clique: answer.counts for answer in outcome.answers}
    return score(found, exact, outcome.rows, cpu, outcome.answers), outcome


def options(description: str | None, names: Sequence[str] = REAL) -> argparse.ArgumentParser:
    """What benchmarks of releases can be told."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    choices = [*REAL, GENERATED]
    parser.add_argument("--tables", nargs="+", default=list(names), choices=choices)
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    return parser


def asked_for(benchmark: str, names: Sequence[str]) -> tuple[list[Table], list[Verdict]]:
    """The tables named, as far as they are at hand, else the generated one; the others are not run."""
    found, missing = at_hand(names)
    left = shown(*(not_run(f"{benchmark}, {name}", why) for name, why in missing.items()))
    return found or [generated()], left
