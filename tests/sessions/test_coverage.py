"""Joint coverage of whole sessions: every answer within its error, and that within α of all rows, with 1 - β.

The analysts know the table. After their own questions they ask for the worst of all that was released: the set or
range of a histogram, the member of a class, the marginal with the worst cell, what follows from bought answers.
UNDERSTUDY_AUDIT=1 runs 500 sessions of each kind; UNDERSTUDY_COVERAGE names a file that gets a line for each. A
few sessions tell most at a small β: at 0.3 no number of misses would be too many for ten.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from counted import Cells
from session_analysts import (
    SMALL,
    WIDE,
    Heard,
    Interview,
    attributes,
    conjunction,
    curator,
    random_conjunction,
    random_group_by,
    table_of,
)
from statistical import assert_at_most, assert_covers
from understudy.domain.domain import Domain
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.workload import marginals
from understudy.sessions import planned_sums, product_class
from understudy.sessions.calibrator import Calibrator, coarse
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.looks import LookPurchase
from understudy.sessions.opening import session as session_of
from understudy.sessions.session import Session
from understudy.sessions.terms import conjunctions, ranges

pytestmark = pytest.mark.usefixtures("generous")

AUDIT = bool(os.environ.get("UNDERSTUDY_AUDIT"))
BETA = 0.3
SESSIONS = 500
LONG = 10_000

LARGE = table_of(attributes({"age": 12, "hours": 8}, {"sex": 3, "town": 6, "job": 4}), 40_000, 3)
"""At α = 0.02 an answer is within 800 people: enough for counts to be bought in several looks."""

Ask = Callable[[np.random.Generator, Domain], Marginal]


def rectangles(draw: np.random.Generator, domain: Domain) -> Marginal:
    return random_conjunction(draw, domain, ("age", "hours"))


def rare(draw: np.random.Generator, domain: Domain) -> Marginal:
    """Conditions on two or three attributes, each on few of its cells."""
    names = [str(n) for n in draw.choice(domain.names, draw.integers(2, 4), replace=False)]
    sides = {}
    for name in names:
        size = domain[name].size
        start = int(draw.integers(size))
        sides[name] = (np.arange(size) >= start) & (np.arange(size) <= start + draw.integers(2))
    return conjunction(domain, sides)


def pairs(draw: np.random.Generator, domain: Domain) -> Marginal:
    return random_conjunction(draw, domain, ("age", "town"))


def ages(draw: np.random.Generator, domain: Domain) -> Marginal:
    return random_conjunction(draw, domain, ("age",))


def anything(draw: np.random.Generator, domain: Domain) -> Marginal:
    """Counts of people, GROUP BYs, and GROUP BYs of some people."""
    kind = draw.integers(4)
    if kind == 0:
        return random_group_by(draw, domain)
    asked = random_conjunction(draw, domain)
    free = [name for name in domain.names if name not in asked.where.clique]
    return Marginal(domain, (str(draw.choice(free)),), asked.where) if kind == 1 else asked


@dataclass
class InThrees:
    """A large group, the part of it with some jobs, and the others, one after the other; then another group."""

    waiting: list[Marginal] = field(default_factory=list)
    draw: np.random.Generator | None = None

    def __call__(self, draw: np.random.Generator, domain: Domain) -> Marginal:
        if not self.waiting or self.draw is not draw:
            group = {"hours": np.arange(8) != draw.integers(8), "town": np.arange(6) != draw.integers(6)}
            job = np.arange(4) < 2
            parts = group, group | {"job": job}, group | {"job": ~job}
            self.waiting, self.draw = [conjunction(domain, sides) for sides in parts], draw
        return self.waiting.pop(0)


@dataclass(frozen=True)
class Kind:
    """A way of answering, and how it is questioned: `count` questions of the analyst's own, then the worst."""

    few: int
    """Sessions without an audit; none where they are slow."""
    beta: float = 0.01
    """What those few promise."""
    mutant: tuple[float, float] = (0.5, 0.8)
    """Errors so many times as large are noticed: in a few sessions, and in an audit."""
    count: int = 12
    ask: Ask = random_conjunction
    truth: Cells = WIDE
    declared: dict[str, Any] = field(default_factory=dict)
    terms: dict[str, Any] = field(default_factory=dict)
    buys: tuple[str, ...] = ("fresh",)
    """What some of many sessions must buy, or nothing is tested."""

    def open(self, seed: int, beta: float) -> Session:
        one = curator(self.truth, seed=seed, **self.declared)
        return session_of(one, **({"alpha": 0.03, "beta": beta, "queries": self.count} | self.terms))


KINDS = {
    # All subsets of an attribute share a tenth of β: much room.
    "histograms": Kind(
        20, mutant=(0.45, 0.5), count=10, ask=ages, terms={"queries": 300}, buys=("histogram",)
    ),
    "ranges announced": Kind(
        40,
        BETA,
        (0.8, 0.85),
        count=5,
        ask=rectangles,
        terms={"classes": [ranges("age", "hours")]},
        buys=("grids",),
    ),
    "conjunctions announced": Kind(
        40,
        BETA,
        (0.75, 0.8),
        count=5,
        truth=SMALL,
        terms={"classes": [conjunctions("age", "sex", "town")]},
        buys=("grids",),
    ),
    # The noise of the largest of a class varies much where its tails are those of Laplace.
    "conjunctions announced, pure epsilon": Kind(
        40,
        BETA,
        (0.5, 0.6),
        count=5,
        ask=pairs,
        truth=SMALL,
        declared={"delta": 0.0},
        terms={"alpha": 0.1, "classes": [conjunctions("age", "town")]},
        buys=("grids",),
    ),
    "marginals(2) announced": Kind(
        40,
        BETA,
        (0.8, 0.85),
        count=5,
        ask=random_group_by,
        terms={"classes": [marginals(2)]},
        buys=("histogram", "marginals"),
    ),
    "direct": Kind(20, mutant=(0.5, 0.7), terms={"mechanism": "direct"}),
    "auto": Kind(10, mutant=(0.65, 0.8), ask=anything),
    "pure epsilon": Kind(10, mutant=(0.4, 0.65), declared={"delta": 0.0}),
    "GROUP BYs, rent or buy": Kind(
        8,
        mutant=(0.8, 0.9),
        count=40,
        ask=random_group_by,
        terms={"queries": 300},
        buys=("marginals", "fresh"),
    ),
    "rectangles, rent or buy": Kind(
        8, mutant=(0.6, 0.8), count=40, ask=rectangles, terms={"queries": 300}, buys=("grids", "fresh")
    ),
    "several classes": Kind(
        8,
        mutant=(0.8, 0.9),
        count=12,
        ask=anything,
        terms={"classes": [ranges("age", "hours"), conjunctions("sex", "town"), marginals(2)]},
        buys=("grids", "marginals", "fresh"),
    ),
    # Rare conjunctions of a large table: many are told by a first look, the others by both.
    "two looks": Kind(
        0,
        mutant=(0.6, 0.85),
        count=30,
        ask=rare,
        truth=LARGE,
        terms={"alpha": 0.02, "queries": 30},
        buys=("look",),
    ),
    # Of three boxes the third is bought with the precision that two tell less.
    "planned sums": Kind(
        0,
        mutant=(0.5, 0.7),
        count=45,
        ask=InThrees(),
        truth=LARGE,
        terms={"alpha": 0.02, "queries": 1000},
        buys=("fresh", "completing"),
    ),
    "private rows": Kind(
        10, mutant=(0.5, 0.75), declared={"neighbours": Neighbours.ADD_REMOVE}, buys=("rows", "fresh")
    ),
    "private rows, pure epsilon": Kind(
        0,
        mutant=(0.5, 0.65),
        declared={"neighbours": Neighbours.ADD_REMOVE, "delta": 0.0},
        buys=("rows", "fresh"),
    ),
    "small domain, rent or buy": Kind(0, count=30, truth=SMALL, buys=("grids", "fresh")),
    "too little budget": Kind(
        0, mutant=(0.5, 0.75), ask=anything, declared={"epsilon": 0.5}, buys=("fresh",)
    ),
}


def interviewed(
    kind: Kind, seed: int, beta: float, named: Callable[[Any], str] | None = None
) -> tuple[Heard, Counter[str]]:
    """One session, by an analyst who steers after every ten questions and at the end; and what it bought.

    Counts that were bought by themselves are counted once more by the name that is given to their plans.
    """
    session = kind.open(seed, beta)
    interview, draw = Interview(session, kind.truth), np.random.default_rng(seed)
    for i in range(kind.count):
        interview.ask(kind.ask(draw, kind.truth.domain))
        if i % 10 == 9:
            interview.steer()
    interview.steer()
    plans = session._buyer.journal.all()
    bought = Counter(plan["kind"] for plan in plans)
    if named is not None:
        bought.update(named(plan) for plan in plans if plan["kind"] == "fresh")
    return interview.heard, bought


def visited(name: str, kind: Kind, sessions: int, beta: float, visit=interviewed) -> list[Heard]:
    """What became of so many sessions; a line about them goes to the file that was named."""
    start, bought, heard = process_time(), Counter(), []
    for seed in range(sessions):
        one, kinds = visit(kind, seed, beta)
        heard.append(one)
        bought.update(kinds)
    assert not AUDIT or all(bought[wanted] for wanted in kind.buys), f"only {dict(bought)} was bought"
    if path := os.environ.get("UNDERSTUDY_COVERAGE"):
        missed = sum(one.missed for one in heard)
        each = {wanted: round(number / sessions, 2) for wanted, number in bought.items()}
        asked = sum(one.asked for one in heard) / sessions
        unsure = sum(one.uncertified for one in heard) / sessions
        spent = process_time() - start
        with Path(path).open("a") as file:
            file.write(
                f"{name}: {missed} of {sessions} sessions missed ({missed / sessions:.4f}, beta {beta}); "
                f"{asked:.0f} questions each, {unsure:.1f} uncertified; bought {each}; {spent:.0f} CPU s\n"
            )
    return heard


def slow(name: str):
    return pytest.param(name, marks=pytest.mark.slow("sessions of minutes"))


def ratios(heard: list[Heard]) -> list[float]:
    """The largest part of its error that an answer was off by: above 1 just where a session missed."""
    return [inf if one.missed else min(one.nearest, 1.0) for one in heard]


@pytest.mark.parametrize("name", [name if kind.few else slow(name) for name, kind in KINDS.items()])
def test_every_answer_of_a_session_holds_together(name):
    kind = KINDS[name]
    sessions, beta = (SESSIONS, BETA) if AUDIT else (kind.few, kind.beta)
    assert_covers(ratios(visited(name, kind, sessions, beta)), beta, mutant=kind.mutant[AUDIT])


# ---- ten thousand questions in one session


def exhausting(kind: Kind, seed: int, beta: float) -> tuple[Heard, Counter[str]]:
    """Ten thousand questions, steered ones among them; every tenth was asked before."""
    session = kind.open(seed, beta)
    interview, draw, past = Interview(session, kind.truth), np.random.default_rng(seed), []
    while interview.heard.asked < LONG:
        again = past and draw.random() < 0.1
        question = past[draw.integers(len(past))] if again else kind.ask(draw, kind.truth.domain)
        interview.ask(question)
        if len(past) < 1000:
            past.append(question)
        if interview.heard.asked % 2500 == 0:
            interview.steer()
    interview.steer()
    return interview.heard, Counter(plan["kind"] for plan in session._buyer.journal.all())


EVERYTHING = [conjunctions("age", "sex", "town")]

LONGS = {
    # A single session can only miss too often where it never should.
    "10,000 questions, conjunctions announced": (
        replace(
            KINDS["conjunctions announced"],
            few=1,
            beta=1e-10,
            mutant=(0.35, 0.8),
            terms={"queries": LONG, "classes": EVERYTHING},
        ),
        SESSIONS,
    ),
    "10,000 questions, auto": (
        Kind(0, ask=anything, terms={"queries": LONG}, buys=("fresh", "histogram")),
        20,
    ),
    "10,000 questions, direct": (Kind(0, ask=anything, terms={"queries": LONG, "mechanism": "direct"}), 20),
}


@pytest.mark.parametrize("name", [name if kind.few else slow(name) for name, (kind, _) in LONGS.items()])
def test_ten_thousand_questions_hold_together(name):
    kind, sessions = LONGS[name]
    sessions, beta = (sessions, BETA) if AUDIT else (kind.few, kind.beta)
    assert_covers(
        ratios(visited(name, kind, sessions, beta, visit=exhausting)), beta, mutant=kind.mutant[AUDIT]
    )


# ---- mutants


def _a_share_for_each_question(patch):
    """β for every question, instead of for all."""
    priced = DirectPurchase.of
    patch.setattr("understudy.sessions.beta_account.BetaAccount.check", lambda self, purchase: None)
    patch.setattr("understudy.sessions.own_counts.LEAST_SHARE", -1.0)  # its β is soon used up
    patch.setattr("understudy.sessions.ski_rental.coarse", lambda share: coarse(max(share, 1e-300)))
    patch.setattr(
        DirectPurchase,
        "of",
        lambda calibrator, known, marginal, share, **_: priced(calibrator, known, marginal, BETA),
    )


def _a_share_for_each_member(patch):
    """β for every question of a class, instead of for all."""
    patch.setattr(product_class, "band", lambda product, share: norm.isf(share / 2) * product.norm(2))


def _weights_after_the_draws(patch):
    """Both looks are seen before they are weighed: the larger of the two counts gets all of the weight."""
    patch.setattr(LookPurchase, "_together", lambda look, before, noisy: np.maximum(before, noisy))


def _a_share_for_each_sum(patch):
    """β for every sum that is completed, instead of for all."""
    varied = planned_sums.variance_of_sum
    patch.setattr(
        planned_sums, "variance_of_sum", lambda width, weight, _, cells: varied(width, weight, BETA, cells)
    )


def _narrower_classes(patch):
    band: Any = product_class.band
    patch.setattr(product_class, "band", lambda *args: 0.85 * band(*args))


def _narrower_answers(patch):
    priced = Calibrator.price_of_counts
    patch.setattr(
        Calibrator,
        "price_of_counts",
        lambda calibrator, *args: priced(replace(calibrator, width=int(calibrator.width / 0.8)), *args),
    )


MORE = pytest.mark.slow("hundreds of sessions")

MUTANTS = [
    ("direct", _a_share_for_each_question, 18),
    ("ranges announced", _a_share_for_each_member, 40),
    ("ranges announced", _narrower_classes, 120),
    pytest.param("two looks", _weights_after_the_draws, SESSIONS, marks=MORE),
    pytest.param("planned sums", _a_share_for_each_sum, 30, marks=MORE),
    pytest.param("conjunctions announced", _narrower_classes, SESSIONS, marks=MORE),
    pytest.param("direct", _narrower_answers, SESSIONS, marks=MORE),
    pytest.param("pure epsilon", _a_share_for_each_question, 24, marks=MORE),
    pytest.param("rectangles, rent or buy", _a_share_for_each_member, 80, marks=MORE),
]


@pytest.mark.parametrize(("name", "mutant", "sessions"), MUTANTS)
def test_a_broken_promise_is_noticed(name, mutant, sessions, monkeypatch):
    mutant(monkeypatch)
    heard = visited(f"mutant {mutant.__name__}, {name}", KINDS[name], sessions, BETA)
    with pytest.raises(AssertionError, match="failures"):
        assert_at_most(sum(one.missed for one in heard), sessions, BETA)
