"""What recorded workloads cost under each privacy filter, at (1, 10⁻⁶): the same events, charged three times.

The workloads are those of `python -m bench interaction`: six ways to question a table in a session. What a
session was charged is replayed, with joint accounting, under budgets that are kept in zCDP, at one Rényi
order and in GDP. Below them are lists of single events. A filter is compared by the part of its own cap that
the events take.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction

from bench.interaction import BUDGET, WORKLOADS, opened, questioned
from bench.interaction_workloads import adult, clinic
from bench.tables import NotAtHand
from bench.verdict import Verdict, at_most, ended, not_run, shown, verdict
from understudy.privacy.budget import Budget
from understudy.privacy.event import Event, GaussianNoise, LaplaceNoise, Selection, SparseVector
from understudy.privacy.filter import FILTERS
from understudy.privacy.joint import Joint

QUESTIONS = 1000
ALPHA = 0.05
BUDGETS = {name: Budget.of(1, 1e-6, filter=name) for name in FILTERS}
ROW = "{:42}{:>12}{:>12}{:>12}"

LISTS: dict[str, list[Event]] = {
    "1,000 answers with Gaussian noise": [GaussianNoise(l2_squared=Fraction(1), variance=Fraction(20_000))]
    * 1000,
    "4 answers with Laplace noise, ε = 0.1": [LaplaceNoise(l1=Fraction(1), scale=Fraction(10))] * 4,
    "400 answers with Laplace noise, ε = 0.01": [LaplaceNoise(l1=Fraction(1), scale=Fraction(100))] * 400,
    "10 selections, ε = 0.1": [Selection(epsilon=Fraction(1, 10))] * 10,
    "a sparse vector of 10 hits, ε = 0.5": [SparseVector(epsilon=Fraction(1, 2), hits=10)],
}
"""Single events, each list of which takes about the whole budget, or a part of it, under zCDP."""


def shares(events: Sequence[Event]) -> dict[str, float]:
    """The part of each budget that the events take, with joint accounting."""
    found: dict[str, float] = {}
    for name, budget in BUDGETS.items():
        joint = Joint(budget.uncapped())
        state = joint.start()
        for event in events:
            state = joint.after(state, event)
        found[name] = joint.cost(state).units / budget.cap.units
    return found


def recorded(name: str, questions: int) -> list[Event]:
    """What a session on a workload was charged."""
    _, analyst, classes, _ = WORKLOADS[name]
    truth = clinic() if name.startswith("W6") else adult()
    asked = opened(truth, ALPHA, classes, "auto", questions=questions)
    settings = {"alpha": ALPHA} if name == "W5" else {"seed": 1}
    questioned(analyst(truth.domain, questions, **settings), asked, truth)
    assert asked.curator.ledger.budget == BUDGET
    return [debit.event for debit in asked.curator.ledger.debits()]


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    questions = parser.parse_args(arguments).questions
    print(ROW.format("of the cap at (1, 1e-6)", *FILTERS))
    found: list[Verdict] = []
    listed = dict(LISTS)
    missing = ""
    for name, (words, *_) in WORKLOADS.items():
        try:
            listed[f"{name} {words}"] = recorded(name, questions)
        except NotAtHand as error:
            missing = str(error)
    for words, events in listed.items():
        taken = shares(events)
        print(ROW.format(words, *(f"{share:.4g}" for share in taken.values())))
        ratio = taken["renyi"] / taken["zcdp"]
        found.append(verdict(f"{words}: renyi beside zcdp", ratio, at_most(1.0, "{:.6g}")))
    if missing:
        found.append(not_run("the workloads of sessions", missing))
    return shown(*found)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
