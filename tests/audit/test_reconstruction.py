"""Ten thousand cheap adaptive questions against 400 secret bits: what differential privacy permits, and no more.

The analyst knows everybody in the table and one public number of each; the other column is a secret bit. They ask
for sums of bits over subsets of their choice, solve for the bits by least squares, and choose the next subsets
among the bits that they are least sure of.

What is permitted: for an ε-private table and uniform bits, given all that was released and all other bits, a bit
is guessed right with probability at most p = e^ε/(1 + e^ε), since flipping it is replacing a row. So the number of
right guesses is, in distribution, at most binomial with 400 tries and p, and one game decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest

from counted import Rows
from statistical import assert_at_most
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import InsufficientBudgetError
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise, discrete_laplace
from understudy.privacy.budget import Budget
from understudy.privacy.event import LaplaceNoise
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.opening import session

FULL = bool(os.environ.get("UNDERSTUDY_AUDIT"))
PEOPLE, QUESTIONS, BATCH = (400, 10_000, 100) if FULL else (100, 1_000, 50)
EPSILON = 1
MOST = exp(EPSILON) / (1 + exp(EPSILON))
DOMAIN = Domain((Bins.integers("bit", 0, 1), Bins.integers("who", 0, PEOPLE - 1)))
SECRET = np.random.default_rng(17).integers(0, 2, PEOPLE)


def subset_sum(subset: np.ndarray) -> Marginal:
    """How many of a set of people have the bit."""
    return Marginal.of(
        LinearQuery.conjunction(DOMAIN, {"bit": np.array([0.0, 1.0]), "who": subset.astype(float)})
    )


def curator(kind: type[Curator] = Curator, *, epsilon: Any = EPSILON) -> Curator:
    truth: Any = Rows(DOMAIN, [SECRET, np.arange(PEOPLE)])
    budget = Budget.of(epsilon)
    declared = Declaration(name="secret", source=SourceSpec("-"), domain=DOMAIN, budget=budget)
    return kind(truth, MemoryLedger(budget), declared, noise=SeededNoise(23))


def reconstructed(
    ask: Callable[[np.ndarray], float | None], questions: int = QUESTIONS
) -> tuple[np.ndarray, int]:
    """The analyst's bits after so many questions, or as many as were answered; how many these were."""
    draw = np.random.default_rng(5)
    inner, outer, asked = np.eye(PEOPLE) * 1e-3, np.full(PEOPLE, 0.5e-3), 0
    unsure = np.arange(PEOPLE)
    for _ in range(questions // BATCH):
        subsets = (draw.random((BATCH, PEOPLE)) < 0.5).astype(float)
        subsets[:, np.setdiff1d(np.arange(PEOPLE), unsure)] *= draw.random() < 0.5
        heard = [(subset, told) for subset in subsets if (told := ask(subset)) is not None]
        asked += len(heard)
        for subset, told in heard:
            inner += np.outer(subset, subset)
            outer += subset * told
        bits = np.linalg.solve(inner, outer)
        unsure = np.argsort(np.abs(bits - 0.5))[: PEOPLE // 2]
        if len(heard) < BATCH:
            break
    return bits > 0.5, asked


def right(bits: np.ndarray) -> int:
    return int((bits == SECRET).sum())


def until_refused(told: Callable[[np.ndarray], float]) -> Callable[[np.ndarray], float | None]:
    def ask(subset: np.ndarray) -> float | None:
        try:
            return told(subset)
        except InsufficientBudgetError:
            return None

    return ask


# ------------------------------------------------------------------------------------------ mutants: it succeeds


def test_noise_that_does_not_scale_with_the_questions_is_undone():
    """Each answer is private on its own, and nobody adds up."""
    noise = SeededNoise(3)

    def ask(subset: np.ndarray) -> float:
        return float(subset @ SECRET) + int(discrete_laplace(Fraction(2), 1, noise=noise)[0])

    bits, asked = reconstructed(ask)
    assert asked == QUESTIONS
    assert right(bits) >= 0.98 * PEOPLE
    with pytest.raises(AssertionError):
        assert_at_most(right(bits), PEOPLE, MOST)


def test_a_ledger_that_is_not_asked_is_undone():
    class Free(Curator):
        """Charges nothing for a question of ε = 1/2."""

        def _paid(self, event, question, terms, look):
            nothing = LaplaceNoise(l1=Fraction(0), scale=Fraction(1))
            return super()._paid(nothing, question, terms, look)

    attacked = curator(Free)
    bits, _ = reconstructed(lambda s: float(attacked.measure(subset_sum(s), epsilon=Fraction(1, 2)).noisy))
    assert attacked.ledger.spent.units == 0
    assert right(bits) >= 0.98 * PEOPLE


def test_a_budget_of_several_times_what_is_declared_is_seen():
    """The power of the bound: bit by bit the guesses are too good for ε = 1.

    Four times among 400 people, where prices of 400·5 in all would be more than is priced jointly.
    """
    epsilon = 4 if FULL else 10
    with pytest.raises(AssertionError):
        assert_at_most(right(bit_by_bit(curator(epsilon=epsilon), epsilon)), PEOPLE, MOST)


# ------------------------------------------------------------------------------------------ the product: it fails


def test_many_cheap_questions_learn_no_more_than_one():
    """ε = 1 cut into as many questions as there are; the ledger then refuses, and least squares finds little."""
    attacked = curator()
    price = Fraction(EPSILON, QUESTIONS)
    ask = until_refused(lambda s: float(attacked.measure(subset_sum(s), epsilon=price).noisy))
    bits, asked = reconstructed(ask)
    assert asked == QUESTIONS
    assert_at_most(right(bits), PEOPLE, MOST)
    assert right(bits) < 0.65 * PEOPLE


def test_a_few_dear_questions_learn_no_more_either():
    attacked = curator()
    ask = until_refused(lambda s: float(attacked.measure(subset_sum(s), epsilon=Fraction(1, 20)).noisy))
    bits, asked = reconstructed(ask)
    assert 20 <= asked < QUESTIONS
    assert_at_most(right(bits), PEOPLE, MOST)


def bit_by_bit(attacked: Curator, epsilon: int) -> np.ndarray:
    """One question about each person: all share one price, since a replaced row is in two of them at most."""
    price = Fraction(epsilon, 2)
    told = [float(attacked.measure(subset_sum(one), epsilon=price).noisy) for one in np.eye(PEOPLE)]
    return np.array(told) > 0.5


def test_asking_about_everybody_is_permitted_once_and_then_refused():
    """Each bit at ε/2, all of them at ε: guesses as good as that allows, and nothing is left."""
    attacked = curator()
    found = right(bit_by_bit(attacked, EPSILON))
    assert_at_most(found, PEOPLE, MOST)
    assert found > PEOPLE * (exp(EPSILON / 2) / (1 + exp(EPSILON / 2)) - 0.15)
    assert attacked.ledger.remaining.units < 10**9
    with pytest.raises(InsufficientBudgetError):
        attacked.measure(subset_sum(np.arange(PEOPLE) < 9), epsilon=Fraction(1, 1000))


@pytest.mark.parametrize(("alpha", "questions"), [(0.1, 2_000), (0.3, QUESTIONS)] if FULL else [(0.3, 100)])
def test_a_session_is_asked_to_the_end_of_its_budget(alpha, questions):
    """Adaptive questions in a session: when it cannot pay, it answers from what it knows, and spends no more."""
    opened = session(curator(), alpha=alpha, queries=questions, name="attacked")
    bits, asked = reconstructed(lambda s: float(opened.ask(subset_sum(s).where).value), questions)
    assert asked == questions
    assert_at_most(right(bits), PEOPLE, MOST)
