"""What sessions save by planned sums: purchases and price of each workload, with them and without.

Of a group, a part of it and the others two tell of the third (`sessions/planned_sums.py`): it is completed by a
count of less precision. So planned sums make counts cheaper rather than fewer. For each workload it prints how
many purchases a session made, how many of them completed a sum, and what it cost, in the units of
`bench.interaction`, with and without planned sums; the workloads are those of `bench.prefixes`.

Run: python -m bench.planned_sums [--workloads W1 W8] [--alpha .02] [--most 1000] [--seeds 0]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.curating import CellTruth
from bench.interaction import QUESTIONS, opened, questioned, units
from bench.prefixes import WORKLOADS, parser_of
from bench.tables import NotAtHand
from bench.verdict import Verdict, at_most, ended, not_run, shown, verdict
from understudy.sessions.completing import CompletingPurchase
from understudy.sessions.planned_sums import PlannedSums

MOST = 1.02
"""A session with planned sums may cost so many times what it costs without: the sums that it plans in vain."""


@dataclass(frozen=True)
class _Bought:
    purchases: int
    completing: int
    units: float


@contextmanager
def _without_sums() -> Iterator[None]:
    """As if no count could have used a sum so far, whatever was bought."""
    worth = PlannedSums.are_worth_it
    PlannedSums.are_worth_it = property(lambda sums: False)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        PlannedSums.are_worth_it = worth  # type: ignore[method-assign]


def _bought(name: str, truth: CellTruth, seed: int, asked: argparse.Namespace) -> _Bought:
    ours = opened(truth, asked.alpha, (), "auto", questions=QUESTIONS, seed=seed)
    questioned(WORKLOADS[name][2](truth.domain, asked.most, seed), ours, truth)
    kinds = [plan["kind"] for plan in ours._buyer.journal.all()]
    return _Bought(len(kinds), kinds.count(CompletingPurchase.kind), units(ours)[0])


def line(name: str, truth: CellTruth, seed: int, asked: argparse.Namespace) -> Verdict:
    ours = _bought(name, truth, seed, asked)
    with _without_sums():
        without = _bought(name, truth, seed, asked)
    saved = 100 * (1 - ours.units / without.units)
    print(
        f"  {name:8} seed {seed}  purchases {without.purchases:6} -> {ours.purchases:6}, "
        f"{ours.completing:5} of them completing;  units {without.units:7.1f} -> {ours.units:7.1f}, "
        f"saved {saved:5.1f}%",
        flush=True,
    )
    label = f"planned sums, {name} seed {seed}: price beside none"
    return verdict(label, ours.units / without.units, at_most(MOST, "{:.3f}"))


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    asked = parser_of(__doc__, seeds=1).parse_args(arguments)
    print(f"{asked.most:,} questions, α {asked.alpha:g}: without planned sums -> with them")
    found = list[Verdict]()
    for name in asked.workloads:
        try:
            truth = WORKLOADS[name][1]()
        except NotAtHand as missing:
            found.append(not_run(f"planned sums, {name}", str(missing)))
            continue
        found += [line(name, truth, seed, asked) for seed in asked.seeds]
    return shown(*found)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
