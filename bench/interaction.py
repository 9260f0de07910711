"""Interactive answering: what 10,000 questions cost under one joint promise, in direct answers.

Unit: the price of one count with Gaussian noise that is within α except with probability β/k. Every answer of a
session is within α, all together with probability 1 - β = .95. Exact discrete noise, replace-one neighbours.
Beside the automatic session: each distinct question bought by itself, added up; the same with joint accounting.

Run: python -m bench.interaction
UNDERSTUDY_BENCH_QUESTIONS (default 10000), UNDERSTUDY_BENCH_ALPHAS (default .05,.02,.01) and
UNDERSTUDY_BENCH_WORKLOADS (default W1,W2,W3,W3d,W4,W4d,W5,W6,W6d) make a short run; UNDERSTUDY_BENCH_BASELINES=0
leaves the other ways out; UNDERSTUDY_BENCH_SEEDS (default 0) names the seeds of the questions and the noise.

The last column says whether the session keeps to its bar, and to the cheaper of the other ways and a twentieth.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from math import inf
from time import process_time
from typing import Any

import numpy as np

from bench.interaction_workloads import (
    Analyst,
    ArrayTruth,
    adult,
    clinic,
    conjunctions,
    dashboards,
    group_bys,
    pool,
    rectangles,
    tree,
)
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.interactive.session import Session, session
from understudy.interactive.terms import conjunctions as announced
from understudy.interactive.terms import ranges
from understudy.ledger.memory import MemoryLedger
from understudy.noise import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.neighbours import Neighbours
from understudy.query.workload import marginals

QUESTIONS = int(os.environ.get("UNDERSTUDY_BENCH_QUESTIONS", 10_000))
ALPHAS = [float(text) for text in os.environ.get("UNDERSTUDY_BENCH_ALPHAS", ".05,.02,.01").split(",")]
NAMES = os.environ.get("UNDERSTUDY_BENCH_WORKLOADS", "W1,W2,W3,W3d,W4,W4d,W5,W6,W6d").split(",")
BASELINES = os.environ.get("UNDERSTUDY_BENCH_BASELINES", "1") == "1"
SEEDS = [int(text) for text in os.environ.get("UNDERSTUDY_BENCH_SEEDS", "0").split(",")]
BETA = 0.05
MARGIN = 1.05
"""A session may cost so many times the cheapest of the other ways."""

WORKLOADS: dict[str, tuple[str, Callable[..., Analyst], tuple[Any, ...], tuple[float, ...]]] = {
    "W1": ("conjunctions on 1-3 attributes", conjunctions, (), (1400, 1800, 1950)),
    "W2": ("dashboards with drill-downs", dashboards, (), (720, 830, 880)),
    "W3": ("GROUP BYs", group_bys, (), (760, 860, 900)),
    "W3d": ("GROUP BYs, announced", group_bys, (marginals(3),), (760, 860, 900)),
    "W4": ("rectangles", rectangles, (), (135,) * 3),
    "W4d": ("rectangles, announced", rectangles, (ranges("age", "hours-per-week"),), (75,) * 3),
    "W5": ("a decision tree", tree, (), (950,) * 3),
    "W6": ("a pool on 128 cells", pool, (), (48,) * 3),
    "W6d": (
        "a pool on 128 cells, announced",
        pool,
        (announced("positive", "sex", "age-group", "ethnicity"),),
        (28,) * 3,
    ),
}


def opened(
    truth: ArrayTruth, alpha: float, classes: tuple[Any, ...], mechanism: str, seed: int = 0
) -> Session:
    declared = Declaration(
        name="adult",
        source=SourceSpec("-"),
        domain=truth.domain,
        budget=Budget.of(1000, 1e-9),
        neighbours=Neighbours.REPLACE,
    )
    curator = Curator(truth, MemoryLedger(declared.budget), declared, noise=SeededNoise(5 + seed))  # type: ignore[arg-type]
    return session(curator, alpha=alpha, beta=BETA, queries=QUESTIONS, classes=classes, mechanism=mechanism)


def questioned(analyst: Analyst, asked: Session, truth: ArrayTruth) -> tuple[Counter[str], float]:
    """Where the answers came from, and the worst of their errors as a part of α."""
    sources: Counter[str] = Counter()
    worst, rows = 0.0, truth.rows
    question = next(analyst, None)
    while question is not None:
        answer = asked.ask_marginal(question)
        sources[answer.source] += 1
        if answer.source != "repeat":
            off = np.abs(answer.value - truth.sums(question)).max()
            worst = max(worst, float(off) / asked.width)
        try:
            question = analyst.send(answer.value / rows)
        except StopIteration:
            question = None
    return sources, worst


def units(asked: Session) -> tuple[float, float]:
    """What was spent, jointly and added up, in direct answers."""
    ledger = asked.curator.ledger
    unit = asked._chooser._unit
    flat = sum(ledger.budget.price(debit.event).units for debit in ledger.debits)  # type: ignore[attr-defined]
    return ledger.spent.units / UNITS / unit, flat / UNITS / unit


def _analyst(name: str, truth: ArrayTruth, alpha: float, seed: int) -> Analyst:
    """Only the tree looks at how good its answers are."""
    make = WORKLOADS[name][1]
    return make(truth.domain, QUESTIONS, seed, **({"alpha": alpha} if make is tree else {}))


def line(name: str, truth: ArrayTruth, alpha: float, bar: float, seed: int) -> None:
    title, _, classes, _ = WORKLOADS[name]
    start = process_time()
    auto = opened(truth, alpha, classes, "auto", seed)
    sources, worst = questioned(_analyst(name, truth, alpha, seed), auto, truth)
    seconds = process_time() - start
    paid = units(auto)[0]
    best, baselines = inf, f"{'':17}"
    if BASELINES and not name.endswith("d"):
        direct = opened(truth, alpha, (), "direct", seed)
        questioned(_analyst(name, truth, alpha, seed), direct, truth)
        joint, flat = units(direct)
        best, baselines = min(joint, flat), f"{flat:8.0f} {joint:8.0f}"
    found = f"{name:4} α {alpha:<5g} seed {seed} {title:32} {baselines} {paid:9.0f}   bar {bar:.0f}"
    verdict = "ok" if paid <= bar and paid <= MARGIN * best else "over"
    print(f"  {found}   {_tail(sources, worst, seconds)}; {verdict}", flush=True)


def _tail(sources: Counter[str], worst: float, seconds: float) -> str:
    found = ", ".join(f"{count} {source}" for source, count in sources.most_common())
    return f"worst {worst:.2f} α; {seconds:.0f} CPU s; {found}"


def main() -> None:
    table = adult()
    print(f"{QUESTIONS:,} questions; direct + cache, with joint accounting, the session")
    for name in NAMES:
        truth = clinic() if name.startswith("W6") else table
        if truth is None:
            print(f"  {name}: the Adult table is not there")
            continue
        for alpha, bar in zip((0.05, 0.02, 0.01), WORKLOADS[name][3], strict=True):
            if alpha in ALPHAS:
                for seed in SEEDS:
                    line(name, truth, alpha, bar, seed)


if __name__ == "__main__":
    main()
