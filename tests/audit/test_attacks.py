"""Attacks on implementations, as tests: bits, precision, overflow, tails, forks, restarts, covert channels."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from audit.coins import FixedCoin, RecordingNoise
from understudy.curator.candidates import Candidate
from understudy.errors import UnderstudyError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.gap import Guess, NoisyGaps
from understudy.mechanism.gaussian import GaussianMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.mechanism.noisy_max import ReportNoisyMax
from understudy.noise.samplers import SeededNoise, SystemNoise, discrete_laplace
from understudy.privacy.budget import Budget
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy_audit.acts import AB, CELLS, A
from understudy_audit.neighbours import Setting, TellingLedger

ONE = Fraction(1)
SETTING = Setting(Budget.of(10), rows_at_least=1, rows_at_most=4096)
ROWS = ((0, 0),) * 7 + ((1, 2),) * 4
NEIGHBOUR = ((0, 0),) * 6 + ((1, 2),) * 5
WEIGHTED = Marginal.of(LinearQuery.conjunction(A.domain, {"b": np.array([0.0, 0.3, 1.0])}))


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
    setting = Setting(Budget.of(10), Neighbours.ADD_REMOVE, rows_at_least=1, rows_at_most=4096)
    steps = set()
    for rows in (ROWS, NEIGHBOUR, ROWS[:1]):
        curator = setting.curator(rows, noise=SeededNoise(2))
        _, resolution = curator.calibration.mechanism(WEIGHTED, Price.of(epsilon=1))
        steps.add(resolution)
        noisy = float(curator.measure(WEIGHTED, epsilon=1).noisy)
        assert (noisy * resolution).is_integer()
    assert len(steps) == 1


@pytest.mark.parametrize("marginal", [AB, WEIGHTED], ids=["counts", "weights"])
def test_the_order_of_rows_does_not_matter(marginal):
    """Sums are of integers: no order, and no engine's parallelism, changes a bit of them."""
    told = []
    for rows in (ROWS, ROWS[::-1], ROWS[5:] + ROWS[:5]):
        told.append(SETTING.curator(rows, noise=SeededNoise(3)).measure(marginal, epsilon=1).noisy.tobytes())
    assert len(set(told)) == 1


@pytest.mark.parametrize("most", [1, 12, 2**20, 2**40])
def test_sums_of_weights_cannot_overflow(most):
    """The lattice of weights is chosen by the declared number of rows: all of them together stay below 2⁶²."""
    setting = Setting(Budget.of(1), Neighbours.ADD_REMOVE, rows_at_least=1, rows_at_most=most)
    _, resolution = setting.curator(ROWS, noise=SeededNoise(1)).calibration.mechanism(
        WEIGHTED, Price.of(epsilon=1)
    )
    assert resolution >= 2
    assert resolution * most < 2**62


@pytest.mark.parametrize("value", [2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_values_at_the_ends_of_64_bits_do_not_wrap(value):
    """Beyond 2⁶² a value is moved there: no two are further apart for it, and no error tells of one."""
    kept = max(-(2**62), min(value, 2**62))
    for mechanism in (LaplaceMechanism(epsilon=ONE, l1=1), GaussianMechanism(rho=ONE, l2_squared=1)):
        told = mechanism.release(np.full(200, value), noise=SeededNoise(1))
        assert max(abs(int(number) - kept) for number in told) < 100


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


DRAWS = {
    "exponential": lambda v, n: ExponentialMechanism(epsilon=ONE, sensitivity=1).choose(
        np.array([0, v, 1]), noise=n
    ),
    "laplace": lambda v, n: LaplaceMechanism(epsilon=ONE, l1=1).release(np.array([v, 0]), noise=n),
    "gaussian": lambda v, n: GaussianMechanism(rho=ONE, l2_squared=1).release(np.array([v, 0]), noise=n),
    "a marginal": lambda v, n: SETTING.curator(((0, 0),) * v, noise=n).measure(AB, epsilon=1),
    "gaps": lambda v, n: SETTING.curator(((1, 1),) * v, noise=n)._buy(
        NoisyGaps((Guess(A, np.array([6, 6])),), Relation(Neighbours.REPLACE), Price.of(epsilon=1))
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_coins_asked_for_do_not_depend_on_scores_or_values(name):
    """Time classes: the path through the samplers is the same for every table."""
    paths = []
    for value in (1, 900):
        tape = RecordingNoise(SeededNoise(6))
        for _ in range(30):
            DRAWS[name](value, tape)
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


FRESH = """
import numpy
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise.samplers import SystemNoise
print(LaplaceMechanism(epsilon=1, l1=100).release(numpy.zeros(16, numpy.int64), noise=SystemNoise()).tolist())
"""


def test_new_processes_draw_different_noise():
    """Nothing of the generator is in the program: a restart does not begin the same stream again."""
    told = [
        subprocess.run([sys.executable, "-c", FRESH], capture_output=True, check=True).stdout for _ in "ab"
    ]
    assert told[0] != told[1]


def test_a_restarted_curator_says_the_same_again_and_nothing_else():
    ledger = TellingLedger(SETTING.budget)
    told = []
    for _ in range(3):
        curator = SETTING.curator(ROWS, noise=SystemNoise(), ledger=ledger)
        told.append(curator.measure(AB, epsilon=1, request="r").noisy.tolist())
    assert told[0] == told[1] == told[2]
    assert len(ledger.debits()) == 1


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


PAID = {
    "a marginal": lambda c: c.measure(AB, epsilon=1),
    "weights": lambda c: c.measure(WEIGHTED, epsilon=1),
    "a choice": lambda c: c.choose([Candidate(query, Fraction(2)) for query in CELLS], epsilon=1),
    "a sparse vector that says no or yes": lambda c: c.sparse(threshold=5, epsilon=1).ask(CELLS[0]),
    "a sparse vector with numbers": lambda c: c.sparse(threshold=5, epsilon=1, numeric=True).ask(CELLS[0]),
}


@pytest.mark.parametrize("name", PAID)
def test_what_is_charged_depends_on_no_answer(name):
    """The covert channel of what remains: the price is that of the question, whatever came out."""
    left = set()
    for rows in (ROWS, NEIGHBOUR, ((1, 2),) * 11):
        for seed in range(8):
            curator = SETTING.curator(rows, noise=SeededNoise(seed))
            PAID[name](curator)
            left.add(curator.ledger.remaining.units)
    assert len(left) == 1


def test_what_is_kept_of_an_answer_is_whole_numbers():
    """No float stands for a noisy count on its way to the analyst: no bits for rounding to hide in."""
    kept = []

    class Listening(TellingLedger):
        def settle(self, debit, answer, *, hidden=None):
            kept.append(json.loads(answer) if hidden is None else 0)
            return super().settle(debit, answer, hidden=hidden)

    curator = SETTING.curator(ROWS, noise=SeededNoise(1), ledger=Listening(SETTING.budget))
    for act in PAID.values():
        act(curator)
    flat = list(_leaves(kept))
    assert len(flat) > 6
    assert all(type(value) is int for value in flat)


def _leaves(told):
    if isinstance(told, list):
        for part in told:
            yield from _leaves(part)
    else:
        yield told
