"""Joint coverage of the mechanisms beside the session: online construction, GuessAndCheck, truncation.

Their analysts know the table, or the population, and ask where the mechanism is worst. The promises rest on union
bounds and are kept with much to spare; the mutants say from where on a broken one is noticed.
"""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from counted import ROUNDING, Cells
from statistical import assert_at_most, assert_covers
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, Protect, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.lectures import online_terms
from understudy.lectures.guess_and_check import CheckTerms, GuessAndCheck
from understudy.lectures.online import OnlineConstruction
from understudy.lectures.online_terms import practical_terms
from understudy.lectures.truncation import Truncation
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.standin.multiplicative import MultiplicativeWeights

pytestmark = pytest.mark.usefixtures("forgetful")

AUDIT = bool(os.environ.get("UNDERSTUDY_AUDIT"))
RUNS, BETA = (500, 0.3) if AUDIT else (32, 0.01)
"""A few runs tell most at a small β."""
CELLS = 6
DOMAIN = Domain((Bins.integers("x", 0, CELLS - 1),))
SETS = [np.isin(np.arange(CELLS), held) for size in (1, 2, 3) for held in combinations(range(CELLS), size)]
QUERIES = [LinearQuery.conjunction(DOMAIN, {"x": held}) for held in SETS]


def curator(
    counts: np.ndarray, *, seed: int, delta: float = 0.0, protect: Protect = Protect.PRIVACY
) -> Curator:
    declared = Declaration(
        name="t",
        source=SourceSpec("-"),
        domain=DOMAIN,
        budget=Budget.of(1000, delta),
        neighbours=Neighbours.REPLACE,
        protect=protect,
    )
    truth = Cells(DOMAIN, counts)
    return Curator(truth, MemoryLedger(declared.budget), declared, noise=SeededNoise(seed))  # type: ignore[arg-type]


# ---- online construction


def online_ratios(delta: float) -> list[float]:
    """Each time the analyst asks for the set of cells on which the stand-in is most wrong: errors over bars."""
    ratios = []
    for seed in range(RUNS):
        draw = np.random.default_rng(seed)
        counts = draw.multinomial(20_000, draw.dirichlet(np.full(CELLS, 0.3)))
        one = curator(counts, seed=seed, delta=delta)
        terms = practical_terms(one, alpha=0.1, queries=25, updates=12, beta=BETA)
        update = MultiplicativeWeights(domain=DOMAIN, alpha=Fraction(terms.gap, 20_000), threads=1)
        asked, furthest = OnlineConstruction(one, update, terms), 0.0
        for _ in range(25):
            gaps = [abs(asked.hypothesis.answer(q) * 20_000 - counts[held].sum()) for q, held in _pairs()]
            worst = int(np.argmax(gaps))
            answer = asked.ask(QUERIES[worst])
            if answer.source != "uncertified":
                off = max(abs(float(answer.value) - counts[SETS[worst]].sum()) - ROUNDING, 0)
                furthest = max(furthest, off / float(answer.error))
        ratios.append(furthest)
    return ratios


def _pairs() -> list[tuple[LinearQuery, np.ndarray]]:
    return list(zip(QUERIES, SETS, strict=True))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_all_answers_of_an_online_construction_hold_together(delta):
    assert_covers(online_ratios(delta), BETA, mutant=0.65)


def test_comparisons_that_are_too_noisy_are_noticed(monkeypatch):
    """The slack is many times the noise of one comparison, and a wrong one matters far from the threshold only."""
    shared = online_terms.shared_slack
    monkeypatch.setattr(online_terms, "shared_slack", lambda *args, **kwargs: shared(*args, **kwargs) // 30)
    missed = sum(ratio > 1 for ratio in online_ratios(0.0))
    with pytest.raises(AssertionError, match="failures"):
        assert_at_most(missed, RUNS, BETA)


# ---- validity: answers against the population

RARE = 1e-3
"""Their widths hardly grow with 1/β: a small one tells more."""


def overfitted(ask, population: np.ndarray) -> float:
    """Ask for each cell, then for all that seem too full or too empty: the largest error over its width."""
    found, seen = [], []
    for cell in range(CELLS):
        held = np.arange(CELLS) == cell
        found.append((ask(held), held))
        seen.append(found[-1][0].value - population[cell])
    for held in (np.array(seen) > 0, np.array(seen) <= 0):
        if held.any() and not held.all():
            found.append((ask(held), held))
    return max(abs(answer.value - population[held].sum()) / answer.population_error for answer, held in found)


def validity_ratios(kind: str, runs: int) -> list[float]:
    ratios = []
    for seed in range(runs):
        draw = np.random.default_rng(seed)
        population = draw.dirichlet(np.full(CELLS, 2.0))
        one = curator(draw.multinomial(400, population), seed=seed, protect=Protect.VALIDITY)
        ask = guesses(one) if kind == "guess and check" else truncated(one)
        ratios.append(overfitted(ask, population))
    return ratios


def guesses(one: Curator):
    terms = CheckTerms(eta=Fraction(1, 20), queries=8, beta=Fraction(RARE), rejections=8)
    checking = GuessAndCheck(one, terms)
    return lambda held: checking.check(LinearQuery.conjunction(DOMAIN, {"x": held}), 0)


def truncated(one: Curator):
    mechanism = Truncation(one, queries=8, beta=RARE)
    return lambda held: mechanism.ask(LinearQuery.conjunction(DOMAIN, {"x": held}))


@pytest.mark.parametrize("kind", ["guess and check", "truncation"])
def test_all_answers_hold_against_the_population(kind):
    """The widths are a union over all transcripts there could be: few runs come to a third of them."""
    assert_covers(validity_ratios(kind, 8 * RUNS), RARE, mutant=0.3)
