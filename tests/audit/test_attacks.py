"""Attacks on implementations, as tests: bits, precision, overflow, tails, forks, restarts, covert channels."""

from __future__ import annotations

import multiprocessing
import os
from fractions import Fraction

import numpy as np
import pytest

from understudy.audit.coins import FixedCoin, RecordingNoise
from understudy.audit.composite import AB, CELLS, A
from understudy.audit.neighbours import Setting, TellingLedger
from understudy.curator import Candidate
from understudy.errors import InsufficientBudgetError, UnderstudyError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.noisy_max import ReportNoisyMax
from understudy.noise import SeededNoise, SystemNoise, discrete_laplace
from understudy.privacy.budget import Budget
from understudy.privacy.neighbours import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal

ONE = Fraction(1)
SETTING = Setting(Budget.of(10), rows_at_least=1, rows_at_most=4096)
ROWS = ((0, 0),) * 7 + ((1, 2),) * 4
NEIGHBOUR = ((0, 0),) * 6 + ((1, 2),) * 5


@pytest.mark.parametrize("value", [0, 1, -7, 2**53 + 1, -(2**61)])
def test_outputs_lie_on_a_lattice_that_does_not_depend_on_the_value(value):
    """Integers in, integers out: the last bit of an answer is the noise's, whatever it was added to."""
    told = LaplaceMechanism(epsilon=Fraction(1, 10), l1=1).release(
        np.full(40_000, value), noise=SeededNoise(1)
    )
    assert told.dtype == np.int64
    for bit in range(3):
        odd = int(((told - value) >> bit & 1).sum())
        assert abs(odd - 20_000) < 6 * 100 * (1 + 2**bit)  # six deviations, and what the peak at 0 takes


def test_weighted_answers_are_multiples_of_a_public_step():
    weighted = Marginal.of(LinearQuery.conjunction(A.domain, {"b": np.array([0.0, 0.3, 1.0])}))
    setting = Setting(Budget.of(10), Neighbours.ADD_REMOVE, rows_at_least=1, rows_at_most=4096)
    steps = set()
    for rows in (ROWS, NEIGHBOUR, ROWS[:1]):
        curator = setting.curator(rows, noise=SeededNoise(2))
        _, resolution = curator.mechanism(weighted, epsilon=1)
        steps.add(resolution)
        noisy = float(curator.measure(weighted, epsilon=1).noisy)
        assert (noisy * resolution).is_integer()
    assert len(steps) == 1


def test_the_order_of_rows_does_not_matter():
    """Sums are of integers: no order, and no engine's parallelism, changes a bit of them."""
    told = []
    for rows in (ROWS, ROWS[::-1]):
        told.append(SETTING.curator(rows, noise=SeededNoise(3)).measure(AB, epsilon=1).noisy)
    assert (told[0] == told[1]).all()


@pytest.mark.parametrize("score", [2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_scores_at_the_ends_of_64_bits_do_not_wrap(score):
    for kind in (ExponentialMechanism, ReportNoisyMax):
        mechanism = kind(epsilon=ONE, sensitivity=1)
        chosen = {mechanism.choose(np.array([score, 0]), noise=SeededNoise(i)) for i in range(20)}
        assert chosen == ({0} if score > 0 else {1})


@pytest.mark.parametrize("gap", [10, 800, 8000])
def test_no_candidate_is_ever_impossible(gap):
    """At a gap of 800 a float weight would be 0; here the coins that stand for it still choose it."""
    mechanism = ExponentialMechanism(epsilon=ONE, sensitivity=1)
    assert mechanism.choose(np.array([0, gap]), noise=FixedCoin(0, rest=0)) == 0


def test_tails_reach_beyond_any_table_of_53_bits():
    """With the coin at its end the noise is far out: no 53-bit uniform number bounds it at 37 scales."""

    class End:
        def __init__(self):
            self.left = 6

        def words(self, count):
            self.left -= 1
            return np.full(count, 2**64 - 1 if self.left > 0 else 0x9E3779B97F4A7C15, np.uint64)

    assert abs(int(discrete_laplace(1, 1, noise=End())[0])) > 60


def test_coins_asked_for_do_not_depend_on_scores_or_values():
    """Time classes: the path through the samplers is the same for every table."""
    exponential = ExponentialMechanism(epsilon=ONE, sensitivity=1)
    laplace, gaussian = LaplaceMechanism(epsilon=ONE, l1=1), GaussianMechanism(rho=ONE, l2_squared=1)
    paths = []
    for value in (0, 10**6):
        tape = RecordingNoise(SeededNoise(6))
        for _ in range(30):
            exponential.choose(np.array([0, value, 1]), noise=tape)
            laplace.release(np.array([value, 0]), noise=tape)
            gaussian.release(np.array([value, 0]), noise=tape)
        paths.append(tape.calls)
    assert paths[0] == paths[1]


NOISE = SystemNoise()


def _noise() -> list[int]:
    mechanism = LaplaceMechanism(epsilon=Fraction(1, 100), l1=1)
    return mechanism.release(np.zeros(16, np.int64), noise=NOISE).tolist()


def _draw(queue) -> None:
    queue.put(_noise())


def test_forked_processes_draw_different_noise():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    children = [context.Process(target=_draw, args=(queue,)) for _ in range(3)]
    for child in children:
        child.start()
    told = [tuple(queue.get()) for _ in children]
    for child in children:
        child.join()
    assert len({*told, tuple(_noise())}) == 4


def test_a_restarted_curator_says_the_same_again_and_nothing_else():
    ledger = TellingLedger(SETTING.budget)
    told = []
    for _ in range(3):
        curator = SETTING.curator(ROWS, noise=SystemNoise(), ledger=ledger)
        told.append(curator.measure(AB, epsilon=1, request="r").noisy.tolist())
    assert told[0] == told[1] == told[2]
    assert len(ledger.debits) == 1


QUESTIONS = {
    "too dear": lambda c: c.measure(A, epsilon=100),
    "another price": lambda c: c.measure(A, epsilon=1, rho=1),
    "no candidates": lambda c: c.choose([], epsilon=1),
    "a guess beyond": lambda c: c.choose([Candidate(CELLS[0], Fraction(2**70))], epsilon=1),
    "bad beta": lambda c: c.measure(A, epsilon=1, beta=2),
    "a sparse vector of nothing": lambda c: c.sparse(threshold=1, epsilon=1, hits=0),
    "delta where there is none": lambda c: c.measure(A, rho=1),
    "exact values": lambda c: c.exact(A),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_errors_and_what_remains_carry_nothing_of_the_table(name):
    """The covert channels: the words of an error, and the budget after it."""
    seen = []
    for rows in (ROWS, NEIGHBOUR, ((0, 1),) * 11):
        curator = SETTING.curator(rows, noise=SeededNoise(1))
        with pytest.raises(UnderstudyError) as error:
            QUESTIONS[name](curator)
        seen.append((type(error.value), str(error.value), curator.ledger.remaining))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][2].units == SETTING.budget.cap.units


def test_many_cheap_questions_do_not_reconstruct_a_row():
    """Ten thousand adaptive questions (a slice here) about one secret bit, until the ledger has had enough.

    The analyst averages all answers. What they learn is bounded by the whole budget, however it is cut: with ε = 1
    in all, the secret is guessed right in at most e/(1 + e) = 73% of the games; with no noise at all it is 100%.
    """
    games, questions = (400, 10_000) if os.environ.get("UNDERSTUDY_AUDIT") else (40, 80)
    setting = Setting(Budget.of(1), rows_at_least=1, rows_at_most=64)
    secret = Marginal.of(CELLS[5])
    price = Fraction(1, questions)
    right = asked = 0
    for game in range(games):
        rows = ((0, 0),) * 7 + (((1, 2),) if game % 2 else ((0, 0),))
        curator = setting.curator(rows, noise=SeededNoise(game))
        total = 0.0
        for _ in range(questions + 5):
            try:
                total += float(curator.measure(secret, epsilon=price).noisy) - 0.5
                asked += 1
            except InsufficientBudgetError:
                break
        right += (total > 0) == bool(game % 2)
    assert asked == games * questions
    assert right / games <= 0.74 + 6 * 0.5 / games**0.5
