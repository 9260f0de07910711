"""How far synthetic rows are from the table, beside the answers of their release, order by order.

Judged are the adaptive release and, where `auto` takes another method, that one too; `--method` names others.
Each line is a release of all 3-way marginals of at most 10,000 cells (of 110 attributes: of all pairs) and as many
rows as there are people. Distances are means over the answered marginals of one order of half the L1 distance from
the table: those of the answers, of the rows, and their ratio, means over seeds. CPU seconds are those of the
release and of its rows; memory is the most that a process of its own held, the table and the figures included.

Run: python -m bench.synthetic_rows [--tables adult long-16] [--epsilons 1 10] [--method residual] [--seeds 1]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

from bench.clock import clocked, peak_mib
from bench.synthesis_bars import OURS
from bench.synthesis_score import meant_by_auto, off, open_run
from bench.synthesis_tables import LONG, generated, table
from bench.tables import ROOT, NotAtHand
from bench.verdict import Verdict, at_most, ended, not_run, shown, verdict
from understudy.releases.agreement import agreeing_rows
from understudy.releases.method_choice import perform

TABLES = ("adult", "nltcs", "classes-12", "copula-16", "network-20", *LONG, "mixed-110")
BEHIND = 1.1
"""Times as far from the table as the answers: what rows may be, in every order."""

LONG_SECONDS = 10.0
"""CPU seconds for a million rows."""


def one(name: str, method: str, epsilon: float, seed: int) -> dict:
    """One release and its rows, judged, in a process that has released a small table before."""
    small = generated("classes", rows=2_000, attributes=6, largest=8, seed=1)
    made = perform(open_run(small, 1.0, 0), "adaptive", {})
    agreeing_rows(made.standin, made.answers, 2_000, np.random.default_rng(0))
    sheet = table(name)
    run = open_run(sheet, epsilon, seed)
    outcome, cpu = clocked(lambda: perform(run, method, {}))
    every = (*outcome.answers, *outcome.also)
    rng, count = np.random.default_rng(seed), round(outcome.rows)
    codes, rows_cpu = clocked(lambda: agreeing_rows(outcome.standin, every, count, rng))
    told, orders = {answer.clique: answer.counts for answer in every}, {}
    for order in (1, 2, 3):
        parts = {part for clique in sheet.workload for part in combinations(clique, order)}
        asked = [clique for clique in sorted(parts) if clique in told]
        if asked:
            exact = sheet.counts(asked)
            answers, _ = off([told[c] for c in asked], exact)
            orders[order] = answers, off(sheet.counts(asked, codes), exact)[0]
    return {"orders": orders, "release": cpu, "rows": rows_cpu, "mib": peak_mib(), "count": count}


def judged_methods(name: str, epsilon: float) -> list[str]:
    """The adaptive release, and the method that `auto` takes where it is another."""
    return list(dict.fromkeys((OURS, meant_by_auto(table(name), epsilon))))


def _in_a_process(*asked: object) -> dict:
    told = subprocess.run(
        [sys.executable, "-m", "bench.synthetic_rows", "--one", *map(str, asked)],
        check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ).stdout  # fmt: skip
    return json.loads(told.strip().splitlines()[-1])


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--method", help="one alone; unless said, adaptive, and what auto takes")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.one:
        name, method, epsilon, seed = asked.one
        print(json.dumps(one(name, method, float(epsilon), int(seed))))
        sys.exit(0)  # what it found is what it printed
    verdicts: list[Verdict] = []
    for name in asked.tables:
        try:
            table(name)
        except NotAtHand as error:
            verdicts.append(not_run(f"synthetic rows, {name}", str(error)))
            continue
        cases = [
            (epsilon, method)
            for epsilon in asked.epsilons
            for method in ([asked.method] if asked.method else judged_methods(name, epsilon))
        ]
        for epsilon, method in cases:
            found = [_in_a_process(name, method, epsilon, seed) for seed in range(asked.seeds)]
            means = {
                key: float(np.mean([f[key] for f in found])) for key in ("release", "rows", "mib", "count")
            }
            ratios, told = [], []
            for order in found[0]["orders"]:
                answers, rows = np.mean([f["orders"][order] for f in found], axis=0).tolist()
                ratios.append(rows / max(answers, 1e-9))
                told.append(f"{order}: {answers:.5f} {rows:.5f} x {ratios[-1]:.2f}")
            print(
                f"{name}, {method}, epsilon {epsilon:g}, {means['count']:,.0f} rows: {'  '.join(told)}  "
                f"release {means['release']:.1f} CPU s, rows {means['rows']:.1f}, {means['mib']:.0f} MB",
                flush=True,
            )
            what = f"synthetic rows, {name}, {method}, epsilon {epsilon:g}"
            verdicts.append(verdict(f"{what}: over the answers", max(ratios), at_most(BEHIND, "{:.2f}")))
            if name in LONG:
                verdicts.append(verdict(f"{what}: CPU s", means["rows"], at_most(LONG_SECONDS, "{:.1f}")))
    return shown(*verdicts)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
