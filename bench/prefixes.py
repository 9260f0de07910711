"""What a session costs at every length, beside asking directly: most analysts ask 20 to 200 questions.

For each workload, after k questions: what the session has cost, what each distinct question bought by itself has
(both with the ledger's joint accounting), what it costs to buy all marginals of order 2 first and ask then, and
private multiplicative weights with projections (where the table has few enough cells). Unit: the price of one
count with Gaussian noise that is within α except with probability β/k, as in `bench.interaction`. 10,000 questions
are announced; every answer is within α of all rows, all together with probability .95. The mean over the seeds of
questions and noise, and in brackets the least and the most.

A session is held to 3/2 of direct answers and three counts at every k and every seed (`sessions/allowance.py`);
dashboards, trees and agents to .7 of direct answers after 1,000 questions, in the mean over the seeds.

All of it takes hours. What one way costs for one seed is kept in a file as soon as it is known, under the settings
and the code that found it: a run that was stopped goes on where it was.

Run: python -m bench.prefixes [--workloads W1 W7] [--alpha .02] [--most 1000] [--seeds 0 1 2 3 4]
                              [--record FILE] [--fresh]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.curating import CellTruth, curator_over
from bench.interaction import BETA, BUDGET, QUESTIONS, opened, units
from bench.interaction_workloads import (
    Analyst,
    adult,
    agent,
    attributes,
    clinic,
    comparisons,
    conjunctions,
    dashboards,
    pool,
    rectangles,
    tree,
)
from bench.pmw_cost import GAP_SHARE
from bench.synthesis_record import Record, digest
from bench.tables import KEPT, ROOT, NotAtHand, load
from bench.verdict import Verdict, at_most, ended, not_run, shown, verdict
from understudy.errors import InsufficientBudgetError, RefusedError
from understudy.lectures.online import OnlineConstruction, warm_start
from understudy.lectures.online_terms import practical_terms
from understudy.privacy.cost import UNITS
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.workload import marginals
from understudy.sessions.session import Session
from understudy.standin.multiplicative import ConsistentWeights, LearntWeights

LENGTHS = (5, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
RATIO, FREE = 1.5, 3
SAVING, SAVING_AT, SAVED_BY = 0.7, 1000, ("W2", "W5", "W7")
"""After so many questions of these workloads a session may cost that part of direct answers."""

PMW_CELLS = 1 << 17
"""Multiplicative weights keep a weight for each cell: on more cells they are not run."""

Spent = dict[int, float]
"""Units after so many questions."""

USED = ("curating", "interaction", "interaction_workloads", "pmw_cost", "prefixes", "tables")
"""What the benchmark's own figures depend on, beside the program."""


def coded(name: str) -> CellTruth:
    table = load(name)
    sizes = dict(zip(table.domain.names, table.domain.shape(), strict=True))
    return CellTruth(replace(table, domain=attributes(sizes)))


def _tree(domain: Any, k: int, seed: int, alpha: float = 0.02) -> Analyst:
    """The tree draws nothing: its seed is that of the noise alone."""
    return tree(domain, k, alpha=alpha)


WORKLOADS: dict[str, tuple[str, Callable[[], CellTruth], Callable[..., Analyst]]] = {
    "W1": ("adult, conjunctions on 1-3 attributes", adult, conjunctions),
    "W2": ("adult, dashboards with drill-downs", adult, dashboards),
    "W4": ("adult, rectangles", adult, rectangles),
    "W5": ("adult, a decision tree", adult, _tree),
    "W6": ("clinic, a pool on 128 cells", clinic, pool),
    "W7": ("adult, an agent that follows what stands out", adult, agent),
    "W8": ("adult, a group, a part of it and the others", adult, comparisons),
    "nltcs": ("nltcs, conjunctions", lambda: coded("nltcs"), conjunctions),
    "titanic": ("titanic, conjunctions", lambda: coded("titanic"), conjunctions),
}


def followed(
    analyst: Analyst, ask: Callable[[Marginal], Any], rows: int, spent: Callable[[], float]
) -> Spent:
    """Put an analyst's questions, and note what was spent at each length; shorter where the budget ends."""
    found: Spent = {}
    question, asked = next(analyst, None), 0
    while question is not None:
        try:
            answer = ask(question)
        except (InsufficientBudgetError, RefusedError):
            break
        asked += 1
        if asked in LENGTHS:
            found[asked] = spent()
        try:
            question = analyst.send(answer.value / rows)
        except StopIteration:
            question = None
    return found


def in_session(
    name: str,
    truth: CellTruth,
    seed: int,
    asked: argparse.Namespace,
    *,
    mechanism: str = "auto",
    classes: tuple[Any, ...] = (),
) -> Spent:
    ours: Session = opened(
        truth,
        asked.alpha,
        classes,
        mechanism,
        questions=QUESTIONS,
        seed=seed,
    )
    analyst = WORKLOADS[name][2](truth.domain, asked.most, seed)
    return followed(analyst, ours.ask_marginal, truth.rows, lambda: units(ours)[0])


def by_weights(name: str, truth: CellTruth, seed: int, asked: argparse.Namespace, unit: float) -> Spent:
    """Projected multiplicative weights; they answer single counts, so that a workload of breakdowns has none."""
    if truth.domain.size() > PMW_CELLS:
        return {}
    curator = curator_over(truth, truth.domain, BUDGET, neighbours=Neighbours.REPLACE, seed=5 + seed)
    most = min(max(round(10 / asked.alpha), 100), QUESTIONS)
    terms = practical_terms(
        curator, alpha=asked.alpha, queries=QUESTIONS, updates=most, beta=BETA, gap_share=GAP_SHARE
    )
    update = ConsistentWeights(domain=truth.domain, margin=Fraction(terms.gap, 2 * truth.rows), threads=1)
    start = LearntWeights(warm_start(curator, error=terms.gap, request="start"))
    weights, known = OnlineConstruction(curator, update, terms, start=start), dict[str, Any]()

    def ask(question: Marginal) -> Any:
        if question.by:
            raise RefusedError("weights answer single counts")
        if question.where.key not in known:
            known[question.where.key] = weights.ask(question.where)
        return known[question.where.key]

    analyst = WORKLOADS[name][2](truth.domain, asked.most, seed)
    return followed(analyst, ask, truth.rows, lambda: curator.ledger.spent.units / UNITS / unit)


def _said(found: Sequence[Spent], beside: Sequence[Spent] | None, k: int, absent: str = "-") -> str:
    """The mean over seeds and its range; as a ratio to another way where that is given; `absent` without any."""
    values = [one[k] / (1.0 if beside is None else beside[i][k]) for i, one in enumerate(found) if k in one]
    if not values:
        return absent.ljust(22)
    digits = 0 if beside is None else 2
    return f"{np.mean(values):8.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]".ljust(22)


@cache
def code() -> str:
    """The program's code and this benchmark's, as they are on disk now."""
    return digest(ROOT / "src" / "understudy", *(ROOT / "bench" / f"{name}.py" for name in USED))


def _kept(
    record: Record, asked: argparse.Namespace, name: str, seed: int, way: str, run: Callable[[], Spent]
) -> Spent:
    """What a way costs at every length for one seed: as the record has it, or as a run finds it."""
    key = {
        "workload": name,
        "alpha": asked.alpha,
        "most": asked.most,
        "seed": seed,
        "way": way,
        "code": code(),
    }
    found = record.measured(key, lambda: {str(k): units for k, units in run().items()})
    return {int(k): units for k, units in found.value.items()}


def report(name: str, asked: argparse.Namespace, record: Record) -> list[Verdict]:
    title, make, _ = WORKLOADS[name]
    try:
        truth = make()
    except NotAtHand as missing:
        return [not_run(f"prefixes, {name}", str(missing))]
    unit = opened(truth, asked.alpha, (), "direct", questions=QUESTIONS)._buyer.policy._single_price
    ways: dict[str, list[Spent]] = {"direct": [], "session": [], "marginals(2) first": [], "weights": []}
    for seed in asked.seeds:
        runs: dict[str, Callable[[], Spent]] = {
            "direct": lambda seed=seed: in_session(name, truth, seed, asked, mechanism="direct"),
            "session": lambda seed=seed: in_session(name, truth, seed, asked),
            "marginals(2) first": lambda seed=seed: in_session(
                name, truth, seed, asked, classes=(marginals(2),)
            ),
            "weights": lambda seed=seed: by_weights(name, truth, seed, asked, unit),
        }
        for way, run in runs.items():
            ways[way].append(_kept(record, asked, name, seed, way, run))
    size = truth.domain.size()
    large = f"{size:,}" if size < 10**7 else f"{size:.0e}"
    absent = {"weights": f"not run: {large} cells"} if size > PMW_CELLS else {}
    print(f"{name}: {title}, α {asked.alpha:g}; direct in units, the others as ratios to it")
    print(f"  {'questions':>9}  " + "".join(way.ljust(24) for way in ways))
    for k in LENGTHS:
        if any(k in found for found in ways["direct"]):
            cells = [
                _said(found, None if way == "direct" else ways["direct"], k, absent.get(way, "-"))
                for way, found in ways.items()
            ]
            print(f"  {k:9}  " + "  ".join(cells), flush=True)
    excess = max(
        ours[k] - RATIO * alone[k]
        for ours, alone in zip(ways["session"], ways["direct"], strict=True)
        for k in ours.keys() & alone.keys()
    )
    held_to = at_most(FREE, "{:.2f} counts")
    above = verdict(f"prefixes, {name}: most above 3/2 of direct answers", excess, held_to)
    return [above, *saved(name, ways["session"], ways["direct"])]


def saved(name: str, session: Sequence[Spent], direct: Sequence[Spent]) -> list[Verdict]:
    """Whether a workload that is held to it saves enough at `SAVING_AT`; a shorter run is not judged."""
    if name not in SAVED_BY:
        return []
    what = f"prefixes, {name}: of direct answers after {SAVING_AT:,} questions"
    both = [
        (ours, alone)
        for ours, alone in zip(session, direct, strict=True)
        if SAVING_AT in ours and SAVING_AT in alone
    ]
    if len(both) < len(session):
        return [Verdict(what, "not judged", f"the run is shorter than {SAVING_AT:,} questions")]
    ratio = float(np.mean([ours[SAVING_AT] / alone[SAVING_AT] for ours, alone in both]))
    return [verdict(what, ratio, at_most(SAVING, "{:.2f}"))]


def parser_of(description: str | None, *, seeds: int) -> argparse.ArgumentParser:
    """The options of a run over workloads: which, at what α, how many questions of each, and with which seeds."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=list(WORKLOADS))
    parser.add_argument("--alpha", type=float, default=0.02)
    parser.add_argument("--most", type=int, default=1000, help="questions of each workload")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(seeds)))
    return parser


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = parser_of(__doc__, seeds=5)
    parser.add_argument("--record", type=Path, default=KEPT / "prefixes.jsonl", help="where figures are kept")
    parser.add_argument("--fresh", action="store_true", help="measure again what the record has")
    asked = parser.parse_args(arguments)
    record = Record(asked.record, fresh=asked.fresh)
    found = [one for name in asked.workloads for one in report(name, asked, record)]
    if record.reused:
        print(f"{record.reused} figures were kept from an earlier run")
    return shown(*found)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
