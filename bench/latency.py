"""How long one waits in a session, in CPU time: for free answers, for prices, for purchases, and for going on.

Conjunctions on one to three attributes of Adult and of NLTCS, in sessions on a durable ledger in a file: 1,000
questions, each priced (`price`, a dry run) and then asked. Prices are planned one at a time, all but the numbers
that take long to find (`sessions/found_once.py`): what is left of another one's plan when a question comes in the
midst of it is printed too. Then the session is opened again as another process would: once reading every purchase,
as without a checkpoint, and once from its checkpoint, in turn, in one run.
BLAS has one thread: several spin while they wait for each other, and the time of all threads is counted.

Bars: a free answer takes 1 ms (median) and 20 ms (99 in 100); no price takes more than 250 ms; and from a
checkpoint a session of 1,000 purchases is opened in a tenth of the time, or one at its last purchase, after which
20,000 questions cost nothing.

Run: python -m bench.latency [--questions 1000] [--purchases 1000] [--tables adult nltcs]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar
from unittest.mock import patch

import numpy as np
from sqlalchemy.engine import URL

from bench.clock import clocked
from bench.curating import CellTruth, curator_over
from bench.interaction_workloads import adult, conjunctions
from bench.prefixes import coded
from bench.tables import NotAtHand
from bench.verdict import Verdict, at_least, at_most, ended, not_run, shown, verdict
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.sessions import found_once
from understudy.sessions.checkpoint import SessionCheckpoint
from understudy.sessions.opening import session
from understudy.sessions.session import Session

Result = TypeVar("Result")

QUESTIONS = PURCHASES = 1000
BUDGET = Budget.of(1000, 1e-9)
FREE_MEDIAN, FREE_P99, PRICE_MOST, RESUME = 1.0, 20.0, 250.0, 10.0
TURNS = 3
MS = "{:.2f} ms"
ROW = "{:<8} {:<22} {:>7} {:>12} {:>12} {:>12}"


def opened(truth: CellTruth, path: Path) -> Session:
    ledger = DurableLedger(URL.create("sqlite", database=str(path)), "bench", BUDGET)
    curator = curator_over(truth, truth.domain, BUDGET, neighbours=Neighbours.REPLACE, seed=5, ledger=ledger)
    return session(curator, alpha=0.02, beta=0.05, queries=10_000, name="mine")


def asked(name: str, truth: CellTruth, asking: Session, questions: int) -> list[Verdict]:
    """Milliseconds of each price and each answer."""
    times: dict[str, list[float]] = {"free answers": [], "prices": [], "purchases": []}
    plans: list[float] = []
    for question in conjunctions(truth.domain, questions, 0):
        (_, priced), apart = found_apart(lambda question=question: clocked(lambda: asking.price(question)))
        plans.append(1e3 * (priced - apart))
        before = asking.purchases
        _, told = clocked(lambda question=question: asking.ask_marginal(question))
        times["prices"].append(1e3 * priced)
        times["free answers" if asking.purchases == before else "purchases"].append(1e3 * told)
    for title, each in (*times.items(), ("left of another's plan", left_of(plans))):
        figures = (np.median(each), np.quantile(each, 0.99), max(each)) if each else ()
        print(ROW.format(name, title, len(each), *(f"{one:.2f} ms" for one in figures)), flush=True)
    free, prices = times["free answers"], times["prices"]
    found = [
        verdict(f"latency, {name}, free answers, median", float(np.median(free)), at_most(FREE_MEDIAN, MS)),
        verdict(f"latency, {name}, free answers, p99", float(np.quantile(free, 0.99)), at_most(FREE_P99, MS)),
        verdict(f"latency, {name}, the dearest price", max(prices), at_most(PRICE_MOST, MS)),
    ]
    return [one.of_full_size("questions", questions, QUESTIONS) for one in found]


def found_apart(job: Callable[[], Result]) -> tuple[Result, float]:
    """What a job returns, and the CPU seconds in which it found numbers outside the lock of plans."""
    seconds, find_apart = [0.0], found_once.find_apart

    def timed(find: Callable[[], object]) -> None:
        find_apart(lambda: seconds.append(clocked(find)[1]))

    with patch.object(found_once, "find_apart", timed):
        return job(), sum(seconds)


def left_of(plans: Sequence[float]) -> list[float]:
    """How long a plan that is being made still takes, at 1,000 even moments of the time that all took."""
    ends = np.cumsum(plans)
    moments = (np.arange(1000) + 0.5) / 1000 * ends[-1]
    return [float(left) for left in ends[np.searchsorted(ends, moments, side="right")] - moments]


def gone_on(name: str, truth: CellTruth, asking: Session, path: Path, purchases: int) -> list[Verdict]:
    """CPU seconds to open the session again, with every purchase read and from the checkpoint."""
    more = conjunctions(truth.domain, 20 * purchases, 1)
    question = next(more, None)
    while asking.purchases < purchases and question is not None:
        asking.ask_marginal(question)
        question = next(more, None)
    made, is_last = asking.purchases, question is None and purchases >= PURCHASES
    asking.curator.ledger.close()
    taken: dict[str, list[float]] = {"every purchase read": [], "from the checkpoint": []}
    for _ in range(TURNS):
        for title, each in taken.items():
            again, seconds = clocked(lambda title=title: _again(truth, path, title))
            assert again.purchases == made
            again.curator.ledger.close()
            each.append(seconds)
    least = {title: min(each) for title, each in taken.items()}
    for title, seconds in least.items():
        print(ROW.format(name, f"go on, {title}"[:22], made, f"{seconds:.3f} s", "", ""), flush=True)
    ratio = least["every purchase read"] / least["from the checkpoint"]
    when = f" at its last purchase, {made}" if is_last else ""
    found = verdict(f"latency, {name}, going on{when}", ratio, at_least(RESUME, "{:.1f} times less"))
    return [found if is_last else found.of_full_size("purchases", made, PURCHASES)]


def _again(truth: CellTruth, path: Path, title: str) -> Session:
    if title == "from the checkpoint":
        return opened(truth, path)
    with patch.object(SessionCheckpoint, "load", lambda _: None):
        return opened(truth, path)


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--purchases", type=int, default=PURCHASES)
    parser.add_argument("--tables", nargs="+", choices=("adult", "nltcs"), default=["adult", "nltcs"])
    given = parser.parse_args(arguments)
    print(ROW.format("table", "", "number", "median", "p99", "max"))
    found: list[Verdict] = []
    for name in given.tables:
        try:
            truth = adult() if name == "adult" else coded(name)
        except NotAtHand as missing:
            found.append(not_run(f"latency, {name}", str(missing)))
            continue
        with TemporaryDirectory() as folder:
            path = Path(folder) / "understudy.ledger"
            asking = opened(truth, path)
            found += asked(name, truth, asking, given.questions)
            found += gone_on(name, truth, asking, path, given.purchases)
    return shown(*found)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
