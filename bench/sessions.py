"""What a question costs in time: answers for nothing, joint accounting, and the ledger's part of a session.

Adult (48,842 rows, 15 attributes). Rates are of CPU seconds in one thread, beside the least that anybody could do
in the same run: a look into a dictionary for a repeat, one product of the class's counts with the ranges asked for
(numpy) for an implied answer. Joint accounting is beside a ledger that only adds up the prices.

Run: python -m bench.sessions
UNDERSTUDY_BENCH_QUESTIONS (default 2000) makes a short run; joint accounting is over five times as many.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import islice
from time import process_time
from typing import Any

import numpy as np

from bench.interaction_workloads import ArrayTruth, adult, conjunctions, rectangles
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.interactive.session import Session, session
from understudy.interactive.terms import ranges
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.noise import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.event import Event, unversioned
from understudy.privacy.neighbours import Neighbours, located
from understudy.query.marginal import Marginal

QUESTIONS = int(os.environ.get("UNDERSTUDY_BENCH_QUESTIONS", 2000))
BUDGET = Budget.of(1000, 1e-9)
CHARGES = 5 * QUESTIONS
ROUNDS = 3
FREE_BAR, JOINT_BAR = 2000, 2.0
ROW = "{:<42} {:>12} {:>8} {:>14} {:>8}"


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


def opened(truth: ArrayTruth, classes: Sequence[Any] = (), mechanism: str = "auto") -> Session:
    declared = Declaration(
        name="adult",
        source=SourceSpec("-"),
        domain=truth.domain,
        budget=BUDGET,
        neighbours=Neighbours.REPLACE,
    )
    curator = Curator(truth, TimedLedger(BUDGET), declared, noise=SeededNoise(5))  # type: ignore[arg-type]
    return session(curator, alpha=0.02, beta=0.05, queries=10_000, classes=list(classes), mechanism=mechanism)


def rate(ask: Callable[[Any], object], things: Sequence[Any]) -> float:
    """How many of the things are done in a CPU second; the best of a few rounds."""
    best = 0.0
    for _ in range(ROUNDS):
        start = process_time()
        for thing in things:
            ask(thing)
        best = max(best, len(things) / (process_time() - start))
    return best


def sides(question: Marginal, names: Sequence[str]) -> list[np.ndarray]:
    """The ranges that a question asks for, along each attribute of a class."""
    held = {factor.clique[0]: factor.weights for factor in question.where.factors}
    domain = question.domain
    return [np.array(held.get(name, np.ones(domain[name].size))) for name in names]


def free(truth: ArrayTruth) -> None:
    """Answers that cost nothing."""
    names = ("age", "hours-per-week")
    asked = opened(truth, [ranges(*names)])
    listed = list(islice(rectangles(truth.domain, 10 * QUESTIONS, 1), QUESTIONS))
    texts = [f"count age < {1 + i % 60} and hours-per-week >= {i % 40}" for i in range(0, QUESTIONS, 4)]

    counts = np.random.default_rng(1).random(truth.domain.shape(names))
    prepared = [sides(question, names) for question in listed]
    product = rate(lambda pair: (counts @ pair[1]) @ pair[0], prepared)
    show("implied by an announced class, new", rate(anew(asked), listed), product, "numpy")
    for question in listed:
        asked.ask_marginal(question)
    keys = dict(enumerate(listed))
    lookup = rate(lambda i: keys.get(i), range(QUESTIONS))
    show("repeats", rate(asked.ask_marginal, listed), lookup, "dict")
    for text in texts:
        asked.ask(text)
    show("repeats, as text", rate(asked.ask, texts), lookup, "dict")


def anew(asked: Session) -> Callable[[Marginal], object]:
    """Asks, and forgets the free answers."""

    def ask(question: Marginal) -> object:
        asked._free.clear()
        return asked.ask_marginal(question)

    return ask


def show(title: str, found: float, limit: float, peer: str) -> None:
    verdict = "ok" if found >= FREE_BAR else "BELOW"
    times = f"1/{limit / found:,.0f} of {peer}"
    print(ROW.format(title, f"{found:,.0f}/s", f"{FREE_BAR:,}", times, verdict), flush=True)


def paid(truth: ArrayTruth) -> None:
    """Joint accounting of fresh answers, and the ledger's part of a whole session."""
    direct = opened(truth, mechanism="direct")
    seconds = questioned(direct, conjunctions(truth.domain, QUESTIONS, 0))
    ledger: Any = direct.curator.ledger
    events = located_events(truth)
    joint, plain = (_charging(kept) for kept in (events, [unversioned(event) for event in events]))
    verdict, beside = "ok" if joint <= JOINT_BAR else "ABOVE", f"{joint / plain:.0f}x sums"
    print(
        ROW.format(
            f"joint accounting of {len(events):,}, a charge", f"{joint:.3f} ms", JOINT_BAR, beside, verdict
        ),
        flush=True,
    )
    _part("direct session", ledger.seconds, seconds, QUESTIONS)
    auto = opened(truth)
    seconds = questioned(auto, conjunctions(truth.domain, QUESTIONS, 0))
    _part("automatic session", auto.curator.ledger.seconds, seconds, QUESTIONS)  # type: ignore[attr-defined]
    listed = [q for q in conjunctions(truth.domain, QUESTIONS, 7) if auto._deduce(q) is not None][:500]
    product = rate(lambda weights: weights @ weights, [q.where.factors[0].weights for q in listed])
    show(f"implied beside {auto._step:,} purchases, new", rate(anew(auto), listed), product, "numpy")


def located_events(truth: ArrayTruth) -> list[Event]:
    """What a session of `CHARGES` different conjunctions would be charged one by one."""
    noise = GaussianMechanism(rho=Fraction(1, 10**5), l2_squared=1).event
    listed = {question.key: question for question in conjunctions(truth.domain, CHARGES, 0)}
    return [located(question, noise, Neighbours.REPLACE) for question in listed.values()]


def questioned(asked: Session, analyst: Any) -> float:
    """CPU seconds for all questions of an analyst."""
    start = process_time()
    for question in analyst:
        asked.ask_marginal(question)
    return process_time() - start


def _charging(events: Sequence[Event]) -> float:
    """Milliseconds for each of several charges, from the first one on."""
    ledger = MemoryLedger(BUDGET)
    start = process_time()
    for i, event in enumerate(events):
        ledger.charge(event, question="bench", request=f"request {i}")
    return 1e3 * (process_time() - start) / len(events)


def _part(title: str, ledger: float, whole: float, count: int) -> None:
    times = f"{1e3 * ledger / count:.2f} ms ledger"
    print(
        ROW.format(
            f"{title}, a question", f"{1e3 * whole / count:.2f} ms", "", times, f"{ledger / whole:.0%}"
        ),
        flush=True,
    )


def main() -> None:
    truth = adult()
    if truth is None:
        print("the Adult table is not there")
        return
    print(ROW.format(f"{QUESTIONS:,} questions, CPU time", "measured", "bar", "beside", ""))
    free(truth)
    paid(truth)


if __name__ == "__main__":
    main()
