"""A session's memory does not grow with the questions that it is asked, only with what it buys.

UNDERSTUDY_AUDIT=1 asks a million; UNDERSTUDY_COVERAGE names a file that gets a line for every 100,000.
"""

from __future__ import annotations

import gc
import os
import tracemalloc
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from session_analysts import attributes, curator, random_conjunction, table_of
from understudy.noise import samplers
from understudy.query.marginal import Marginal
from understudy.sessions import allowance, answer_memory
from understudy.sessions.opening import session as session_of
from understudy.sessions.session import Session
from understudy.sessions.terms import ranges

pytestmark = pytest.mark.usefixtures("generous")

AUDIT = os.environ.get("UNDERSTUDY_AUDIT")
STATM = Path("/proc/self/statm")
MILLION = 1_000_000
TABLE = table_of(attributes({"age": 40, "hours": 40}, {"sex": 3, "town": 4}), 6000, 3)
"""With 672,400 rectangles of age and hours."""


def opened(epsilon: float = 2.0) -> Session:
    """A session with little budget beyond its announced class, all of it spent."""
    one = curator(TABLE, seed=3, epsilon=epsilon)
    session = session_of(one, alpha=0.03, beta=0.05, queries=MILLION, classes=[ranges("age", "hours")])
    draw, refused = np.random.default_rng(0), 0
    while refused < 5:
        asked = random_conjunction(draw, TABLE.domain, ("age", "sex", "town"))
        refused += session.ask_marginal(asked).source == "uncertified"
    return session


def questions(seed: int, *, kept: int = 10_000, new: float = 0.005) -> Iterator[Marginal]:
    """Repeats, what an announced class implies, and a few counts and GROUP BYs that nobody asked before."""
    draw, past = np.random.default_rng(seed), []
    while True:
        kind = draw.random()
        if kind < 0.5 and past:
            yield past[draw.integers(len(past))]
            continue
        if kind < 1 - new:
            question = random_conjunction(draw, TABLE.domain, ("age", "hours"))
        elif kind < 1 - 0.8 * new:
            where = random_conjunction(draw, TABLE.domain, ("age",)).where
            question = Marginal(TABLE.domain, ("town",), where)
        else:
            question = random_conjunction(draw, TABLE.domain, ("age", "sex", "town"))
        if len(past) < kept:
            past.append(question)
        elif draw.random() < 0.1:
            past[draw.integers(kept)] = question
        yield question


def ask(session: Session, stream: Iterator[Marginal], count: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for _ in range(count):
        found[session.ask_marginal(next(stream)).source] += 1
    return found


def held() -> int:
    """Bytes that are held, less the samplers' tables: one for each price, of which a bounded number is kept."""
    kept = tracemalloc.take_snapshot().filter_traces(
        [tracemalloc.Filter(inclusive=False, filename_pattern=samplers.__file__)]
    )
    return sum(found.size for found in kept.statistics("filename"))


def grown(count: int) -> float:
    """Bytes for each of `count` questions, after as many that filled every store; hardly anything is bought."""
    session, stream = opened(1.1), questions(1, kept=50, new=0.05)
    tracemalloc.start()
    try:
        ask(session, stream, count)
        bought = session._known.step
        gc.collect()
        before = held()
        sources = ask(session, stream, count)
        gc.collect()
        after = held()
    finally:
        tracemalloc.stop()
    assert min(sources[source] for source in ("repeat", "pinned", "uncertified")) > 1
    assert session._known.step - bought < count / 25
    return (after - before) / count


def test_free_and_uncertified_answers_leave_nothing_behind(monkeypatch):
    """With room for few answers, so that it is full soon."""
    monkeypatch.setattr(answer_memory, "MOST_ANSWERS", 64)
    monkeypatch.setattr(allowance, "MOST_WAITING", 16)
    assert grown(200) < 500


def test_a_session_that_nobody_holds_is_gone_at_once():
    """It holds up to thousands of questions, and is part of no circle that somebody has to find."""
    session = opened()
    gone = weakref.ref(session)
    gc.disable()
    try:
        del session
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.slow("the mutant of a short test")
def test_answers_that_stay_behind_are_noticed(monkeypatch):
    monkeypatch.setattr(answer_memory, "MOST_ANSWERS", MILLION)
    assert grown(200) > 1000


@pytest.mark.slow("a million questions")
@pytest.mark.skipif(not STATM.exists(), reason="needs Linux: reads the resident memory from /proc")
def test_a_million_questions_in_bounded_memory():
    session, stream, seen = opened(), questions(2), []
    for i in range(1, 11):
        start = process_time()
        sources = ask(session, stream, MILLION // 10)
        gc.collect()
        seen.append(int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20)
        if path := os.environ.get("UNDERSTUDY_COVERAGE"):
            rate = MILLION / 10 / (process_time() - start)
            line = f"memory after {i}00,000 questions: {seen[-1]:.0f} MiB; {session._known.step} purchases; "
            with Path(path).open("a") as file:
                file.write(f"{line}{rate:,.0f} questions a CPU second; {dict(sources)}\n")
    assert seen[-1] - seen[2] < 16, seen
