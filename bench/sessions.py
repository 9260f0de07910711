"""What a question costs in time: answers for nothing, joint accounting, and the ledger's part of a session.

Adult (48,842 rows, 15 attributes). Rates are of CPU seconds in one thread, beside the least that anybody could do
in the same run: a look into a dictionary for a repeat, one product of the class's counts with the ranges asked for
(numpy) for an implied answer. Joint accounting is beside a ledger that only adds up the prices. On a durable
ledger the write transactions are counted: each waits for the disk, so they are what a purchase takes in time.

Run: python -m bench.sessions [--questions 2000]; joint accounting is over five times as many.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
from sqlalchemy.engine import URL

from bench.clock import clocked, rate
from bench.curating import CellTruth, curator_over
from bench.interaction_workloads import adult, conjunctions, rectangles
from bench.tables import NotAtHand
from bench.verdict import Verdict, at_least, at_most, ended, not_run, shown, verdict
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.privacy.budget import Budget
from understudy.privacy.event import Event, unversioned
from understudy.privacy.region import located
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import AnswerMemory
from understudy.sessions.opening import session
from understudy.sessions.session import Session
from understudy.sessions.terms import ranges

QUESTIONS = 2000
BUDGET = Budget.of(1000, 1e-9)
ROUNDS = 3
WRITTEN = 20
"""Questions that are asked on a durable ledger, to count what is written."""
FREE_BAR, JOINT_BAR = 2000, 2.0
ROW = "{:<42} {:>12} {:>20} {:>8}"


class TimedLedger(MemoryLedger):
    """A ledger that counts the CPU seconds spent in it."""

    seconds = 0.0

    def charge(self, event: Event, **rest: Any) -> Any:
        start = process_time()
        try:
            return super().charge(event, **rest)
        finally:
            self.seconds += process_time() - start

    def quote(self, event: Event) -> Any:
        start = process_time()
        try:
            return super().quote(event)
        finally:
            self.seconds += process_time() - start


def opened(truth: CellTruth, classes: Sequence[Any] = (), mechanism: str = "auto") -> Session:
    curator = curator_over(
        truth, truth.domain, BUDGET, neighbours=Neighbours.REPLACE, seed=5, ledger=TimedLedger(BUDGET)
    )
    return session(curator, alpha=0.02, beta=0.05, queries=10_000, classes=list(classes), mechanism=mechanism)


def sides(question: Marginal, names: Sequence[str]) -> list[np.ndarray]:
    """The ranges that a question asks for, along each attribute of a class."""
    held = {factor.clique[0]: factor.weights for factor in question.where.factors}
    domain = question.domain
    return [np.array(held.get(name, np.ones(domain[name].size))) for name in names]


def free(truth: CellTruth, questions: int) -> list[Verdict]:
    """Answers that cost nothing."""
    names = ("age", "hours-per-week")
    asked = opened(truth, [ranges(*names)])
    listed = list(islice(rectangles(truth.domain, 10 * questions, 1), questions))
    texts = [f"count age < {1 + i % 60} and hours-per-week >= {i % 40}" for i in range(0, questions, 4)]

    counts = np.random.default_rng(1).random(truth.domain.shape(names))
    prepared = [sides(question, names) for question in listed]
    product = rate(lambda pair: (counts @ pair[1]) @ pair[0], prepared, ROUNDS)
    new = show("implied by an announced class, new", rate(anew(asked), listed, ROUNDS), product, "numpy")
    for question in listed:
        asked.ask_marginal(question)
    keys = dict(enumerate(listed))
    lookup = rate(keys.get, range(questions), ROUNDS)
    repeats = show("repeats", rate(asked.ask_marginal, listed, ROUNDS), lookup, "dict")
    for text in texts:
        asked.ask(text)
    return [new, repeats, show("repeats, as text", rate(asked.ask, texts, ROUNDS), lookup, "dict")]


def anew(asked: Session) -> Callable[[Marginal], object]:
    """Asks, and forgets the free answers."""

    def ask(question: Marginal) -> object:
        asked._buyer.memory = AnswerMemory()
        return asked.ask_marginal(question)

    return ask


def show(title: str, found: float, limit: float, peer: str) -> Verdict:
    print(ROW.format(title, f"{found:,.0f}/s", f"1/{limit / found:,.0f} of {peer}", ""), flush=True)
    return verdict(f"sessions, {title}", found, at_least(FREE_BAR, "{:,.0f} a CPU second"))


def paid(truth: CellTruth, questions: int) -> list[Verdict]:
    """Joint accounting of fresh answers, and the ledger's part of a whole session."""
    direct = opened(truth, mechanism="direct")
    seconds = questioned(direct, conjunctions(truth.domain, questions, 0))
    ledger: Any = direct.curator.ledger
    events = located_events(truth, 5 * questions)
    joint, plain = (_charging(kept) for kept in (events, [unversioned(event) for event in events]))
    title = f"joint accounting of {len(events):,}, a charge"
    print(ROW.format(title, f"{joint:.3f} ms", f"{joint / plain:.0f}x sums", ""), flush=True)
    charge = verdict("sessions, joint accounting of a charge", joint, at_most(JOINT_BAR, "{:.3f} ms"))
    _part("direct session", ledger.seconds, seconds, questions)
    auto = opened(truth)
    seconds = questioned(auto, conjunctions(truth.domain, questions, 0))
    _part("automatic session", auto.curator.ledger.seconds, seconds, questions)  # type: ignore[attr-defined]
    listed = [q for q in conjunctions(truth.domain, questions, 7) if auto._known.intervals(q) is not None][
        :500
    ]
    product = rate(lambda weights: weights @ weights, [q.where.factors[0].weights for q in listed], ROUNDS)
    title = f"implied beside {auto._known.step:,} purchases, new"
    return [charge, show(title, rate(anew(auto), listed, ROUNDS), product, "numpy")]


BEFORE, BEFORE_FIRST = 3, 11
"""Write transactions in version 0.1: of a later purchase, and of opening a session with its first question.

Counted by the trace of SQLite over 2,000 rows: 2 to open, 9 for `count age<30 by sex`, 3 for each further count.
"""


class CountingLedger(DurableLedger):
    """A durable ledger that counts its write transactions."""

    writes = 0

    def _commit(self, tickets: Any) -> None:
        self.writes += 1
        super()._commit(tickets)


def written(truth: CellTruth, folder: Path) -> list[Verdict]:
    """Write transactions of a session on a durable ledger: of its opening, and of each purchase."""
    place = URL.create("sqlite", database=str(folder / "understudy.ledger"))
    ledger = CountingLedger(place, "adult", BUDGET)
    curator = curator_over(truth, truth.domain, BUDGET, neighbours=Neighbours.REPLACE, seed=5, ledger=ledger)
    verdicts = []
    for title, lazily in (("named when opened", False), ("named by its first purchase", True)):
        before = ledger.writes
        asked = session(curator, alpha=0.02, beta=0.05, queries=10_000, name=title, lazily=lazily)
        opening, counts = ledger.writes - before, []
        for question in islice(conjunctions(truth.domain, QUESTIONS, 0), WRITTEN):
            before, bought = ledger.writes, asked._known.step
            asked.ask_marginal(question)
            counts.append((asked._known.step - bought, ledger.writes - before))
        made, writes = counts[0]
        of_first = f"{opening + writes} for {made} purchases"
        print(ROW.format(f"writes, {title}", f"{opening} to open", of_first, "first"), flush=True)
        each = sum(writes for _, writes in counts) / sum(made for made, _ in counts)
        then = f"{BEFORE} in version 0.1, {BEFORE_FIRST} with the first"
        print(ROW.format("", f"{each:.2f} a purchase", then, "before"), flush=True)
        verdicts.append(verdict(f"sessions, writes of a purchase, {title}", each, at_most(2.0, "{:.2f}")))
    ledger.close()
    return verdicts


def located_events(truth: CellTruth, charges: int) -> list[Event]:
    """What a session of so many different conjunctions would be charged one by one."""
    noise = GaussianMechanism(rho=Fraction(1, 10**5), l2_squared=1).event
    listed = {question.key: question for question in conjunctions(truth.domain, charges, 0)}
    return [located(question, noise, Relation(Neighbours.REPLACE)) for question in listed.values()]


def questioned(asked: Session, analyst: Any) -> float:
    """CPU seconds for all questions of an analyst."""
    return clocked(lambda: [asked.ask_marginal(question) for question in analyst])[1]


def _charging(events: Sequence[Event]) -> float:
    """Milliseconds for each of several charges, from the first one on."""
    ledger, numbered = MemoryLedger(BUDGET), list(enumerate(events))
    return 1e3 / rate(
        lambda one: ledger.charge(one[1], question="bench", request=f"request {one[0]}"), numbered
    )


def _part(title: str, ledger: float, whole: float, count: int) -> None:
    times = f"{1e3 * ledger / count:.2f} ms ledger"
    print(
        ROW.format(f"{title}, a question", f"{1e3 * whole / count:.2f} ms", times, f"{ledger / whole:.0%}"),
        flush=True,
    )


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    questions = parser.parse_args(arguments).questions
    try:
        truth = adult()
    except NotAtHand as missing:
        return shown(not_run("sessions", str(missing)))
    print(ROW.format(f"{questions:,} questions, CPU time", "measured", "beside", ""))
    found = [*free(truth, questions), *paid(truth, questions)]
    with TemporaryDirectory() as folder:
        counted = written(truth, Path(folder))
    return shown(*(one.of_full_size("questions", questions, QUESTIONS) for one in found), *counted)


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
