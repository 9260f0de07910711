"""Gaps of whole marginals: sensitivities over all neighbours, privacy of the selection, noise on the gaps."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp

import numpy as np
import pytest

from statistical import assert_does_not_follow, assert_follows
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, QueryError
from understudy.mechanism.gap import MAX_COUNT, Guess, NoisyGaps, WorstGuess
from understudy.mechanism.look import released
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import epsilon, rho
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation, Sensitivity
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy_textbook.stability import add_remove_neighbours, privacy_curve, replace_neighbours

DOMAIN = Domain((Bins.integers("a", 0, 1), Bins.integers("b", 0, 1)))
UNIVERSE = ((0, 0), (0, 1), (1, 0), (1, 1))
A, B, AB = Marginal(DOMAIN, ("a",)), Marginal(DOMAIN, ("b",)), Marginal(DOMAIN, ("a", "b"))
ADD, REPLACE = Relation(Neighbours.ADD_REMOVE), Relation(Neighbours.REPLACE)
PAIRS = {ADD: add_remove_neighbours, REPLACE: replace_neighbours}


def counts(marginal: Marginal, rows) -> np.ndarray:
    table = np.zeros(marginal.shape, np.int64)
    for row in rows:
        table[tuple(row[DOMAIN.position(name)] for name in marginal.by)] += 1
    return table


def guesses(**kwargs) -> tuple[Guess, ...]:
    return (
        Guess(A, np.array([4, 0])),
        Guess(B, np.array([0, 2]), **kwargs),
        Guess(AB, np.array([[0, 0], [3, 0]])),
    )


def scores_of(look: WorstGuess, rows) -> np.ndarray:
    return look.values([counts(m, rows) for m in look.marginals])


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("marginal", [A, AB])
def test_one_person_moves_a_gap_by_no_more_than_stated_and_by_that_much(neighbours, marginal):
    guess = Guess(marginal, np.ones(marginal.shape))
    moved = max(
        abs(guess.gap(counts(marginal, one)) - guess.gap(counts(marginal, other)))
        for one, other in PAIRS[neighbours](UNIVERSE, 3)
    )
    assert guess.sensitivity(neighbours) == Sensitivity(moved, moved**2)


def test_a_person_with_several_rows_moves_a_gap_by_all_of_them():
    several = Relation(Neighbours.ADD_REMOVE, 5)
    assert Guess(A, np.array([1, 1])).sensitivity(several) == Sensitivity(5, 25)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("weighted", [{}, {"weight": Fraction(1, 3), "offset": Fraction(5, 2)}])
def test_the_selection_is_as_private_as_it_says(neighbours, weighted):
    look = WorstGuess(guesses(**weighted), Fraction(3), neighbours)
    pairs = list(PAIRS[neighbours](UNIVERSE, 3))

    def law(rate: float):
        def of(rows):
            scores = scores_of(look, rows)
            weights = np.exp(rate * (scores - scores.max()))
            return dict(enumerate((weights / weights.sum()).tolist()))

        return of

    rate = float(look.mechanism.rate)
    assert privacy_curve(law(rate), pairs).is_stable(3, 0)
    assert not privacy_curve(law(2.5 * rate), pairs).is_stable(3, 0)


def test_the_score_is_the_weighted_gap_less_its_offset():
    look = WorstGuess(guesses(weight=Fraction(1, 2), offset=Fraction(3)), Fraction(1), ADD)
    assert look.steps == (2**16, 2**15, 2**16)
    rows = ((0, 0), (1, 1))
    gap_a, gap_b, gap_ab = 3 + 1, 1 + 1, 1 + 0 + 3 + 1
    np.testing.assert_array_equal(scores_of(look, rows), [2**16 * gap_a, 2**15 * (gap_b - 3), 2**16 * gap_ab])
    assert look.mechanism.sensitivity == 2**16
    assert WorstGuess(guesses(), Fraction(1), REPLACE).mechanism.sensitivity == 2


def test_choices_follow_the_exponential_law():
    look = WorstGuess(guesses(), Fraction(2), ADD)
    rows = ((0, 0), (0, 1), (1, 1))
    shown = [counts(m, rows) for m in look.marginals]
    noise = SeededNoise(7)
    drawn = Counter(released(look, shown, noise=noise) for _ in range(4000))
    law = np.exp(look.mechanism.log_law(scores_of(look, rows)))
    assert_follows([drawn[i] for i in range(3)], law.tolist())
    assert_does_not_follow([drawn[i] for i in range(3)], [1 / 3] * 3)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
def test_noisy_gaps_cost_what_the_vector_of_gaps_moves(neighbours):
    moved = [g.sensitivity(neighbours).l1 for g in guesses()]
    laplace = NoisyGaps(guesses(), neighbours, Price.of(epsilon=Fraction(1, 2)))
    assert laplace.mechanism.l1 == sum(moved)
    assert epsilon(laplace.event) == Fraction(1, 2)
    gaussian = NoisyGaps(guesses(), neighbours, Price.of(rho=Fraction(1, 8)))
    assert gaussian.mechanism.l2_squared == sum(m * m for m in moved)
    assert rho(gaussian.event) == Fraction(1, 8)
    far = max(
        sum(abs(g.gap(counts(g.marginal, one)) - g.gap(counts(g.marginal, other))) for g in guesses())
        for one, other in PAIRS[neighbours](UNIVERSE, 3)
    )
    assert far <= laplace.mechanism.l1


def test_noisy_gaps_follow_the_law_around_the_gaps():
    look = NoisyGaps(guesses(), ADD, Price.of(epsilon=3))
    rows = ((0, 0), (1, 1))
    shown = [counts(m, rows) for m in look.marginals]
    gaps = np.array([4, 2, 5])
    noise = SeededNoise(8)
    errors = np.array([released(look, shown, noise=noise) for _ in range(2000)]) - gaps
    q = exp(-float(look.price.amount) / 3)
    law = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-15, 16)]
    seen = Counter(np.clip(errors.ravel(), -16, 16).tolist())
    observed = [seen[k] for k in range(-16, 17)]
    tail = (1 - sum(law)) / 2
    assert_follows(observed, [tail, *law, tail])
    shifted = [tail, *law[1:], law[0], tail]
    assert_does_not_follow(observed, shifted)


def test_keys_tell_public_parameters_apart():
    one = WorstGuess(guesses(), Fraction(1), ADD)
    assert one.key == WorstGuess(guesses(), Fraction(1), ADD).key
    assert one.key != WorstGuess(guesses(offset=Fraction(1)), Fraction(1), ADD).key
    assert one.key != WorstGuess(guesses(weight=Fraction(2)), Fraction(1), ADD).key
    assert one.key != WorstGuess(guesses()[:2], Fraction(1), ADD).key


def test_what_is_refused():
    half = LinearQuery.conjunction(DOMAIN, {"a": [0.5, 1]})
    with pytest.raises(QueryError, match="counting"):
        Guess(Marginal.of(half), np.array(1))
    with pytest.raises(QueryError, match="each cell"):
        Guess(A, np.array([1, 2, 3]))
    with pytest.raises(ParameterError):
        Guess(A, np.array([2 * MAX_COUNT, 1]))
    with pytest.raises(ParameterError):
        Guess(A, np.array([1, 1]), weight=Fraction(0))
    with pytest.raises(ParameterError):
        Guess(A, np.array([1, 1]), offset=Fraction(2 * MAX_COUNT))
    with pytest.raises(ParameterError):
        WorstGuess((), Fraction(1), ADD)
    with pytest.raises(ParameterError):
        NoisyGaps((), ADD, Price.of(epsilon=1))
    with pytest.raises(ParameterError, match="epsilon"):
        NoisyGaps(guesses(), ADD, Price("epsilon", Fraction(0)))
    with pytest.raises(ParameterError):
        WorstGuess(guesses(), Fraction(0), ADD)


def test_guesses_are_rounded_clipped_and_frozen():
    guess = Guess(A, np.array([1.5, np.nan]))
    assert guess.counts.tolist() == [2, 0]
    assert guess.counts.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        guess.counts[0] = 1
    huge = Guess(A, np.array([0, 0]))
    assert huge.gap(np.array([2**62, 0])) == MAX_COUNT
