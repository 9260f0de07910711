"""What recorded workloads cost with bounded noise among the noises to choose from, and without it.

The workloads are those of `python -m bench interaction`. The budget, (20, 10⁻⁶) with a tenth of δ set aside, is
kept at one Rényi order. Two sessions of each kind ask the same questions: one may take bounded noise for single
counts, the other takes Gaussian noise. What the ledger charged for all of them is compared.

Run: python -m bench.bounded [--workloads W1 W6] [--questions 300]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bench.curating import CellTruth, curator_over
from bench.interaction import BETA, WORKLOADS, questioned
from bench.interaction_workloads import adult, clinic
from bench.tables import NotAtHand
from bench.verdict import Verdict, at_most, ended, not_run, shown, verdict
from understudy.privacy.bounded_noise import BoundedNoise
from understudy.privacy.budget import Budget
from understudy.privacy.event import unversioned
from understudy.privacy.relation import Neighbours
from understudy.sessions.opening import session

ALPHA = 0.05
BUDGET = Budget.of(20, 1e-6, key_delta=1e-7, filter="renyi")
ROW = "{:36}{:>10}{:>12}{:>12}{:>10}{:>12}"


def charged(name: str, truth: CellTruth, *, questions: int, mechanism: str, noise: str) -> tuple[int, int]:
    """What all questions of a workload were charged, in units of the ledger, and how many counts were bounded."""
    _, analyst, classes, _ = WORKLOADS[name]
    curator = curator_over(truth, truth.domain, BUDGET, neighbours=Neighbours.REPLACE, seed=5)
    asked = session(
        curator,
        alpha=ALPHA,
        beta=BETA,
        queries=10_000,
        classes=() if mechanism == "direct" else classes,
        mechanism=mechanism,
        noise=noise,
    )
    settings = {"alpha": ALPHA} if name == "W5" else {"seed": 1}
    questioned(analyst(truth.domain, questions, **settings), asked, truth)
    events = [unversioned(debit.event) for debit in curator.ledger.debits()]
    return curator.ledger.spent.units, sum(isinstance(event, BoundedNoise) for event in events)


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--workloads", nargs="*", default=list(WORKLOADS))
    given = parser.parse_args(arguments)
    print(ROW.format("charged, ρ", "session", "auto", "gaussian", "ratio", "bounded"))
    found: list[Verdict] = []
    for name in given.workloads:
        words = WORKLOADS[name][0]
        try:
            truth = clinic() if name.startswith("W6") else adult()
        except NotAtHand as error:
            found.append(not_run(f"{name} {words}", str(error)))
            continue
        for mechanism in ("auto", "direct"):
            terms = {"questions": given.questions, "mechanism": mechanism}
            new, many = charged(name, truth, noise="auto", **terms)
            old, _ = charged(name, truth, noise="gaussian", **terms)
            amounts = [f"{units / 1e15:.4g}" for units in (new, old)]
            print(ROW.format(f"{name} {words}"[:35], mechanism, *amounts, f"{new / old:.3f}", many))
            figure = verdict(f"{name} {mechanism}: never dearer", new / old, at_most(1.0, "{:.4f}"))
            found.append(figure)
    return shown(*found)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
