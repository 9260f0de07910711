"""Ten million rows from a Parquet file: what a release costs beside one exact count of the same marginals.

Each figure is that of a process of its own on one thread, which has released a small table before: what is loaded
or compiled once is not counted. CPU seconds from the opened table to the answers; peak memory of the process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

from bench.counting import NAMES, SIZES, generate, table_path
from bench.synthesis_score import open_run
from bench.synthesis_tables import generated
from understudy.bins import Bins
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.domain import Domain
from understudy.ledger.memory import MemoryLedger
from understudy.noise import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.neighbours import Neighbours
from understudy.query.workload import Workload
from understudy.releases.adaptive import adaptive
from understudy.releases.run import Run
from understudy.table.source import open_source
from understudy.table.truth import Truth

ROWS = 10_000_000
ROOT = Path(__file__).resolve().parents[1]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _opened(rows: int) -> tuple[Domain, Truth]:
    path = table_path(rows)
    domain = Domain(tuple(Bins.integers(n, 0, size - 1) for n, size in zip(NAMES, SIZES, strict=True)))
    return domain, Truth(open_source(SourceSpec(path.name), base=path.parent), domain)


def _count(rows: int) -> dict[str, float]:
    _, truth = _opened(rows)
    start = _cpu()
    truth.counts(itertools.combinations(NAMES, 3))
    return {"cpu": _cpu() - start}


def _release(rows: int, epsilon: float) -> dict[str, float]:
    domain, truth = _opened(rows)
    budget = Budget.of(epsilon, 1e-9)
    declaration = Declaration(
        name="census",
        source=SourceSpec(table_path(rows).name),
        domain=domain,
        budget=budget,
        neighbours=Neighbours.ADD_REMOVE,
    )
    curator = Curator(truth, MemoryLedger(budget), declaration, noise=SeededNoise(0))
    workload = Workload.of(domain, list(itertools.combinations(NAMES, 3)))
    run = Run(curator, workload, budget, "bench", beta=Fraction(1, 20))
    start = _cpu()
    outcome = adaptive(run)
    cpu = _cpu() - start
    true = truth.counts(workload)
    off = [0.5 * np.abs(a.counts / a.counts.sum() - true[a.clique] / rows).sum() for a in outcome.answers]
    return {"cpu": cpu, "error": float(np.mean(off)), "rounds": float(outcome.proof["rounds"])}


def _warm_up() -> None:
    sheet = generated("classes", rows=2_000, attributes=6, largest=8, seed=1)
    adaptive(open_run(sheet, 1.0, 0))


def in_fresh_process(job: str, *, rows: int, epsilon: float) -> dict[str, float]:
    """Run `count`, `release` or `generate` in a process of its own."""
    told = subprocess.run(
        [sys.executable, "-m", "bench.synthesis_large", job, str(rows), str(epsilon)],
        check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ).stdout  # fmt: skip
    return json.loads(told.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=["generate", "count", "release"])
    parser.add_argument("rows", type=int)
    parser.add_argument("epsilon", type=float)
    asked = parser.parse_args()
    if asked.job == "generate":
        if not table_path(asked.rows).exists():
            generate(asked.rows)
        return print("{}")
    _warm_up()
    found = _count(asked.rows) if asked.job == "count" else _release(asked.rows, asked.epsilon)
    found["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


if __name__ == "__main__":
    main()
