"""Synthetic data: the adaptive release beside AIM on the same engine, plain noise, and peers on the same tables.

Error is the mean over the workload (three-way marginals of at most 10,000 cells) of half the L1 distance between
normalised marginals, of the released answers and of synthetic rows, and the largest error of a cell as a rate. All
noise is exact and discrete; neighbours add or remove a row; delta = 1e-9. CPU seconds of this process, counting
included; the first line of a fresh machine also pays for compiling (`--cold` tells how much).

Run: python -m bench.synthesis [--tables adult nltcs] [--epsilons 0.1 1 10] [--seeds 5] [--wide] [--peers all]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

from bench.synthesis_peer import PEERS
from bench.synthesis_peers import run_peer
from bench.synthesis_tables import SMALL, Codes, Sheet, small_tables, wide_tables
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.ledger.memory import MemoryLedger
from understudy.noise import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.neighbours import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.merging import simplex
from understudy.releases.adaptive import adaptive
from understudy.releases.aim import aim
from understudy.releases.run import MarginalAnswer, Outcome, Run
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DELTA = 1e-9
BARS = {("adult", 0.1): (0.135, 1.5), ("adult", 1.0): (0.053, 4.0), ("adult", 10.0): (0.025, 6.0)}
"""Mean error and CPU seconds that the adaptive release is held to."""

PUBLISHED = {("adult", 1.0): {"dpsynth SWIFT": (0.0634, 186), "mbi MST": (0.0871, 129)}}
"""Peers that cannot be installed from the package index: mean error and CPU seconds, as measured once."""

Method = Callable[[Run], Outcome]


@dataclass(frozen=True)
class Score:
    """One line of the table."""

    answers: float
    rows: float
    largest: float
    cpu: float


def open_run(sheet: Sheet, epsilon: float, seed: int) -> Run:
    budget = Budget.of(epsilon, DELTA)
    declaration = Declaration(
        name=sheet.name,
        source=SourceSpec("-"),
        domain=sheet.domain,
        budget=budget,
        neighbours=Neighbours.ADD_REMOVE,
    )
    truth = Truth(in_memory(sheet.frame), sheet.domain)
    curator = Curator(truth, MemoryLedger(budget), declaration, noise=SeededNoise(seed))
    return Run(curator, sheet.workload, budget, "bench")


def plain(run: Run) -> Outcome:
    """Gaussian noise on every marginal of the workload, moved onto the simplex: no stand-in."""
    price = run.total / len(run.workload) * Fraction(999_999, 1_000_000)
    marginals = [Marginal(run.domain, c) for c in run.workload]
    found = run.measure("all", marginals, rho=price)
    rows = max(float(np.mean([answer.noisy.sum() for answer in found])), 1.0)
    told = tuple(
        MarginalAnswer(c, simplex(answer.noisy, rows), answer.error, "measured")
        for c, answer in zip(run.workload, found, strict=True)
    )
    return Outcome("plain", None, rows, told, {})  # type: ignore[arg-type]


METHODS: dict[str, Method] = {"adaptive": adaptive, "aim": aim, "plain noise": plain}


def rows_error(sheet: Sheet, truth: Sequence[np.ndarray], codes: Codes, cliques: Sequence) -> float:
    found = sheet.counts(cliques, {a: np.asarray(c).astype(np.int64) for a, c in codes.items()})
    return float(
        np.mean([0.5 * np.abs(f / f.sum() - t / t.sum()).sum() for f, t in zip(found, truth, strict=True)])
    )


def score(sheet: Sheet, method: Method, epsilon: float, seed: int, truth: Sequence[np.ndarray]) -> Score:
    run = open_run(sheet, epsilon, seed)
    start = time.process_time()
    outcome = method(run)
    cpu = time.process_time() - start
    off = [
        np.abs(a.counts / a.counts.sum() - t / t.sum()) for a, t in zip(outcome.answers, truth, strict=True)
    ]
    rows = np.nan
    if outcome.standin is not None:
        codes = outcome.standin.sample_codes(round(outcome.rows), rng=np.random.default_rng(seed))  # type: ignore[attr-defined]
        rows = rows_error(sheet, truth, codes, list(sheet.workload))
    return Score(float(np.mean([0.5 * o.sum() for o in off])), rows, float(max(o.max() for o in off)), cpu)


def compare(
    sheet: Sheet, epsilon: float, seeds: int, peers: Sequence[str], limit: float, folder: Path
) -> None:
    truth = sheet.counts(list(sheet.workload))
    print(f"{sheet.name}: {sheet.rows:,} rows, {len(sheet.domain)} attributes, {len(sheet.workload)} marginals, "
          f"epsilon {epsilon:g}")  # fmt: skip
    print(f"  {'':16}{'answers':>9}{'rows':>9}{'largest':>9}{'CPU s':>9}{'x ours':>8}")
    ours = None
    for name, method in METHODS.items():
        found = [score(sheet, method, epsilon, seed, truth) for seed in range(seeds)]
        mean = Score(*(float(np.mean([getattr(f, part) for f in found])) for part in Score.__annotations__))
        ours = mean if ours is None else ours
        print(f"  {name:16}{mean.answers:9.4f}{mean.rows:9.4f}{mean.largest:9.4f}{mean.cpu:9.2f}"
              f"{mean.answers / ours.answers:8.2f}")  # fmt: skip
    assert ours is not None
    rho = float(open_run(sheet, epsilon, 0).total)
    for peer in peers:
        run = run_peer(peer, sheet, epsilon=epsilon, delta=DELTA, rho=rho, limit=limit, folder=folder)
        if run.codes is None:
            print(f"  {peer:16}{'':27}{run.cpu:9.1f}  {run.problem}")
            continue
        rows = rows_error(sheet, truth, run.codes, list(sheet.workload))
        print(
            f"  {peer:16}{'':9}{rows:9.4f}{'':9}{run.cpu:9.1f}{rows / ours.rows:8.2f}  {run.megabytes:.0f} MB"
        )
    for peer, (error, cpu) in PUBLISHED.get((sheet.name, epsilon), {}).items():
        print(f"  {peer:16}{'':9}{error:9.4f}{'':9}{cpu:9.1f}{error / ours.rows:8.2f}  measured elsewhere")
    bar = BARS.get((sheet.name, epsilon))
    if bar is not None:
        met = ours.answers <= bar[0] and ours.cpu <= bar[1] and ours.rows <= ours.answers + 0.004
        print(f"  {'met' if met else 'MISSED'}: {bar[0]} in {bar[1]} s, rows at most 0.004 worse")


def compare_wide(epsilon: float) -> None:
    for sheet in wide_tables():
        run = open_run(sheet, epsilon, 0)
        start = time.process_time()
        outcome = adaptive(run)
        cpu = time.process_time() - start
        step = max(1, len(sheet.workload) // 2000)
        cliques = list(sheet.workload)[::step]
        truth = sheet.counts(cliques)
        off = [0.5 * np.abs(a.counts / a.counts.sum() - t / t.sum()).sum()
               for a, t in zip(outcome.answers[::step], truth, strict=True)]  # fmt: skip
        codes = outcome.standin.sample_codes(round(outcome.rows), rng=np.random.default_rng(0))  # type: ignore[attr-defined]
        rows = rows_error(sheet, truth, codes, cliques)
        print(f"{sheet.name}: {len(sheet.workload):,} marginals, epsilon {epsilon:g}: answers {np.mean(off):.4f}, "
              f"rows {rows:.4f}, {cpu:.1f} CPU s, {'met' if cpu < 60 else 'MISSED'}: 60 s")  # fmt: skip


def cold() -> None:
    """A first run in an environment without compiled code, beside the second."""
    import tempfile

    command = [sys.executable, "-m", "bench.synthesis", "--tables", "adult", "--epsilons", "1", "--once"]
    with tempfile.TemporaryDirectory() as place:
        for what in ("cold", "warm"):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, env={**os.environ, "NUMBA_CACHE_DIR": place})
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            print(f"  {what}: {after.ru_utime - before.ru_utime:.1f} CPU s with start and loading")


def once(sheet: Sheet, epsilon: float) -> None:
    run = open_run(sheet, epsilon, 0)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.process_time()
    adaptive(run)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  {sheet.name} epsilon {epsilon:g}: {time.process_time() - start:.2f} CPU s, peak {peak:.0f} MB "
          f"({base:.0f} MB before)")  # fmt: skip


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tables", nargs="*", default=list(SMALL), choices=SMALL, help="default: all of them"
    )
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--wide", action="store_true", help="also 48 and 110 attributes")
    parser.add_argument("--peers", nargs="*", default=[], choices=[*PEERS, "all"])
    parser.add_argument("--limit", type=float, default=600.0, help="seconds that a peer may take")
    parser.add_argument("--environments", type=Path, default=Path("bench/data/peers"))
    parser.add_argument("--cold", action="store_true", help="what a first run costs")
    parser.add_argument("--once", action="store_true", help="one run, its time and memory")
    asked = parser.parse_args(arguments)
    if asked.cold:
        return cold()
    peers = list(PEERS) if "all" in asked.peers else asked.peers
    for sheet in small_tables(asked.tables):
        for epsilon in asked.epsilons:
            if asked.once:
                once(sheet, epsilon)
            else:
                compare(sheet, epsilon, asked.seeds, peers, asked.limit, asked.environments)
    if asked.wide:
        compare_wide(1.0)


if __name__ == "__main__":
    main(sys.argv[1:])
