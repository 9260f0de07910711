"""Ten million rows from a Parquet file: what a release costs beside one exact count of the same marginals.

Each figure is that of a process of its own on one thread, which has released a small table before: what is loaded
or compiled once is not counted. CPU seconds from the opened table to the answers; peak memory of the process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

from bench.clock import clocked, peak_mib
from bench.counting import NAMES, SIZES, generate, table_path
from bench.release_score import run_over
from bench.synthesis_score import open_run
from bench.synthesis_tables import generated
from bench.tables import ROOT
from understudy.declaration.declaration import SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.workload import Workload
from understudy.releases.adaptive.adaptive import adaptive
from understudy.table.source import open_source
from understudy.table.truth import Truth

ROWS = 10_000_000


def _opened(rows: int) -> tuple[Domain, Truth]:
    path = table_path(rows)
    domain = Domain(tuple(Bins.integers(n, 0, size - 1) for n, size in zip(NAMES, SIZES, strict=True)))
    return domain, Truth(open_source(SourceSpec(path.name), base=path.parent), domain)


def _count(rows: int) -> dict[str, float]:
    _, truth = _opened(rows)
    return {"cpu": clocked(lambda: truth.counts(itertools.combinations(NAMES, 3)))[1]}


def _release(rows: int, epsilon: float) -> dict[str, float]:
    domain, truth = _opened(rows)
    workload = Workload.of(domain, list(itertools.combinations(NAMES, 3)))
    run = run_over(truth, workload, epsilon, seed=0)
    outcome, cpu = clocked(lambda: adaptive(run))
    true = truth.counts(workload)
    off = [0.5 * np.abs(a.counts / a.counts.sum() - true[a.clique] / rows).sum() for a in outcome.answers]
    return {"cpu": cpu, "error": float(np.mean(off))}


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
    found["mib"] = peak_mib()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
