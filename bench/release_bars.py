"""Error bars of adaptive releases: 1-way and 2-way marginals, beside direct questions at the same price.

The bar of a marginal is half of the longest of its cells' intervals, in people; one that a release does not
tell by itself is added up from the smallest told one that holds it. Medians over marginals, means over seeds.
`direct` is what a marginal would have if the whole price were spent in equal parts on direct questions to every
marginal of the workload and every 1-way and 2-way marginal below it, with bars that hold jointly. Distances are
half of L1, of rates, in the mean over the workload: of answers and of synthetic rows. `--before` names another
checkout of the program, whose bars are measured in the same run by the same code; the ratios are held to their
limits.

Run: python -m bench.release_bars [--tables adult town-pairs town-triples] [--seeds 5] [--before FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

from bench.release_score import run_over
from bench.synthesis_score import off
from bench.synthesis_tables import table
from bench.tables import ROOT, NotAtHand
from bench.verdict import Verdict, at_most, ended, not_run, verdict
from understudy.domain.domain import Clique, Domain
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours
from understudy.query.workload import Workload
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.agreement import agreeing_rows
from understudy.releases.evidence import Evidence
from understudy.releases.run import Outcome, Run
from understudy.table.source import in_memory
from understudy.table.truth import Truth
from understudy_demo import town

EPSILON = 1.0
PEOPLE = 100_000
LIMITS = {"one_way": 0.67, "pairs": 0.93}
"""Median bars over those before."""

WORSE = 1.01
"""Distances over those before: seeds leave about so much noise."""


@dataclass(frozen=True, eq=False)
class Case:
    """A table, its workload, and who is a neighbour."""

    truth: Truth
    workload: Workload
    neighbours: Neighbours

    def run(self, seed: int) -> Run:
        return run_over(self.truth, self.workload, EPSILON, seed=seed, neighbours=self.neighbours)


def _adult() -> Case:
    sheet = table("adult")
    return Case(Truth(in_memory(sheet.frame), sheet.domain), sheet.workload, Neighbours.ADD_REMOVE)


def _town(order: int) -> Case:
    truth = town.project(PEOPLE).curator._truth
    return Case(truth, Workload.all_marginals(truth.domain, order), Neighbours.REPLACE)


CASES: dict[str, Callable[[], Case]] = {
    "adult": _adult,
    "town-pairs": partial(_town, 2),
    "town-triples": partial(_town, 3),
}


def figures(case: Case, seeds: int) -> dict[str, float]:
    """Means over seeds of median bars, of the worst bar over the direct one, and of distances."""
    domain, found = case.truth.domain, []
    cliques = list(case.workload)
    exact = [np.asarray(case.truth.counts([c])[c]) for c in cliques]
    small = {order: list(combinations(domain.names, order)) for order in (1, 2)}
    for seed in range(seeds):
        run = case.run(seed)
        outcome = adaptive(run)
        bars = {order: [_bar(outcome, c) for c in small[order]] for order in small}
        direct = {order: _direct(run, small) for order in small}
        worst = {o: max(b / direct[o][c] for b, c in zip(bars[o], small[o], strict=True)) for o in small}
        answers, _ = off([a.counts for a in outcome.answers], exact)
        rows = _rows(outcome, domain, cliques, seed)
        found.append(
            {
                "one_way": float(np.median(bars[1])),
                "pairs": float(np.median(bars[2])),
                "one_way_direct": worst[1],
                "pairs_direct": worst[2],
                "answers": answers,
                "rows": off(rows, exact)[0],
            }
        )
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def _bar(outcome: Outcome, clique: Clique) -> float:
    held = [a for a in (*outcome.answers, *outcome.also) if set(clique) <= set(a.clique)]
    sums = []
    for a in held:
        others = tuple(i for i, name in enumerate(a.clique) if name not in clique)
        sums.append(float(np.max((a.high - a.low).sum(axis=others))) / 2)
    return min(sums)


def _direct(run: Run, small: dict[int, list[Clique]]) -> dict[Clique, float]:
    asked = len({*run.workload, *(c for cliques in small.values() for c in cliques)})
    noise = Evidence(run).noise(Price("rho", run.total * Fraction(999_999, 1_000_000) / asked))
    return {
        c: float(noise.error(run.beta / asked, cells=run.domain.size(c))) for cs in small.values() for c in cs
    }


def _rows(outcome: Outcome, domain: Domain, cliques: Sequence[Clique], seed: int) -> list[np.ndarray]:
    told = (*outcome.answers, *outcome.also)
    codes = agreeing_rows(outcome.standin, told, round(outcome.rows), np.random.default_rng(seed))
    found = []
    for clique in cliques:
        shape = domain.shape(clique)
        flat = np.ravel_multi_index([np.asarray(codes[name], np.int64) for name in clique], shape)
        found.append(np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape))
    return found


# ---- the run


def main(arguments: Sequence[str]) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--before", type=Path, help="another checkout of the program, to compare with")
    parser.add_argument("--json", action="store_true", help="print the figures alone, for `--before`")
    asked = parser.parse_args(arguments)
    found: list[Verdict] = []
    for name in asked.tables:
        try:
            after = figures(CASES[name](), asked.seeds)
        except NotAtHand as missing:
            found.append(not_run(f"release bars, {name}", str(missing)))
            continue
        if asked.json:
            print(json.dumps(after))
            continue
        _tell(f"{name}, epsilon {EPSILON:g}", after)
        for what, part in (("one_way_direct", "1-way"), ("pairs_direct", "2-way")):
            said = f"release bars, {name}: largest {part} bar over that of a direct question"
            found.append(verdict(said, after[what], at_most(1.0 + 1e-6, "{:.6f}")))
        if asked.before is not None:
            found += _compared(name, after, _elsewhere(asked.before, name, asked.seeds))
    for one in found:
        print(one, flush=True)
    return found


def _elsewhere(folder: Path, name: str, seeds: int) -> dict[str, float]:
    """The same figures by this benchmark, with the program of another checkout."""
    path = os.pathsep.join([str(folder.resolve() / "src"), str(ROOT)])
    command = [sys.executable, "-m", "bench.release_bars", "--tables", name, "--seeds", str(seeds), "--json"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True
    )
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def _compared(name: str, after: dict[str, float], before: dict[str, float]) -> list[Verdict]:
    _tell("  before", before)
    ratios = {what: after[what] / before[what] for what in after}
    _tell("  ratio", ratios)
    limits = {**LIMITS, "answers": WORSE, "rows": WORSE}
    return [
        verdict(f"release bars, {name}: {what}, over before", ratios[what], at_most(limit, "{:.3f}"))
        for what, limit in limits.items()
    ]


def _tell(what: str, told: dict[str, float]) -> None:
    print(f"{what:28}" + "".join(f"  {name} {value:.4g}" for name, value in told.items()), flush=True)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
