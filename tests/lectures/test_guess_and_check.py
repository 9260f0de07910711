"""GuessAndCheck and truncation, on tables whose truth is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from statistical import assert_covers
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, Protect, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import HandleClosedError, ParameterError, ProtectionError, QueryError
from understudy.lectures.guess_and_check import CheckTerms, GuessAndCheck
from understudy.lectures.guessers import ConstantGuess, GuessFunction, MedianGuess, OtherData, WeightsGuess
from understudy.lectures.truncation import Truncation
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.standin.dense.weights import DenseWeights
from understudy.standin.median.median import SurvivingSet
from understudy.table.source import in_memory
from understudy.table.truth import Truth
from understudy.theory.guess_and_check import gnc_failures_width, gnc_width

pytestmark = pytest.mark.usefixtures("forgetful")

CELLS = 4
DOMAIN = Domain((Bins.integers("x", 0, CELLS - 1),))


def curator(rows, *, protect=Protect.VALIDITY, ledger=None) -> Curator:
    declaration = Declaration(
        name="t",
        source=SourceSpec("-"),
        domain=DOMAIN,
        budget=Budget.of(1),
        neighbours=Neighbours.REPLACE,
        protect=protect,
    )
    truth = Truth(in_memory(pa.table({"x": rows})), DOMAIN)
    return Curator(truth, ledger or MemoryLedger(declaration.budget), declaration)


def query(weights) -> LinearQuery:
    return LinearQuery.table(DOMAIN, ("x",), np.asarray(weights, float))


def terms(**changed) -> CheckTerms:
    usual = {"eta": Fraction(1, 10), "queries": 100, "beta": Fraction(1, 20), "rejections": 3}
    return CheckTerms(**(usual | changed))


ROWS = [0] * 50 + [1] * 30 + [2] * 20


def test_the_threshold_is_exact_and_the_answer_is_on_the_grid():
    checker = GuessAndCheck(curator(ROWS), terms(eta=0.1))
    edge = checker.check(query([1, 0, 0, 0]), Fraction(4, 10))  # |1/2 - 2/5| = 1/10: not more than eta
    assert (edge.value, edge.accepted, edge.source) == (0.4, True, "checked")
    over = checker.check(query([1, 0, 0, 0]), Fraction(4, 10) - Fraction(1, 10**12))
    assert (over.accepted, over.source) == (False, "measured")
    assert over.value == 0.525  # the midpoint of [1/2, 11/20)
    assert abs(over.value - 0.5) <= over.error + 1e-15 == 0.025 + 1e-15
    assert edge.population_error == pytest.approx(gnc_width(100, 100, 3, 0.1, 0.05))
    assert over.population_error == pytest.approx(edge.population_error - 0.075)
    everyone = checker.check(query([1, 1, 1, 1]), 0)
    assert everyone.value == 0.975  # the last cell of the grid


def test_weights_that_are_not_whole_are_checked_too():
    checker = GuessAndCheck(curator(ROWS), terms())
    found = checker.check(query([0, 0.5, 1, 0]), 0.35)
    assert found.accepted
    assert not checker.check(query([0, 0.5, 1, 0]), 0.6).accepted


def test_it_survives_m_rejections_and_halts_on_the_next():
    checker = GuessAndCheck(curator(ROWS), terms(rejections=2))
    for _ in range(2):
        assert not checker.check(query([1, 0, 0, 0]), 0).accepted
    assert checker.rejections_left == 0
    assert checker.check(query([1, 0, 0, 0]), 0.5).accepted
    with pytest.raises(HandleClosedError, match="wrong"):
        checker.check(query([1, 0, 0, 0]), 0)
    with pytest.raises(HandleClosedError, match="wrong"):
        checker.check(query([1, 0, 0, 0]), 0.5)
    assert checker.past[-1]["value"] is None


def test_no_more_queries_than_were_counted():
    checker = GuessAndCheck(curator(ROWS), terms(queries=2))
    for _ in range(2):
        checker.check(query([1, 0, 0, 0]), 0.5)
    with pytest.raises(HandleClosedError, match="queries"):
        checker.check(query([1, 0, 0, 0]), 0.5)


@pytest.mark.parametrize("guess", [2, 1.5, -0.5, 3000, 1.001, -1e-9])
def test_a_guess_that_is_no_rate_is_refused_and_not_counted(guess):
    checker = GuessAndCheck(curator(ROWS), terms(rejections=0))
    with pytest.raises(ParameterError, match="between 0 and 1"):
        checker.check(query([1, 0, 0, 0]), guess)
    assert (checker.asked, checker.failures) == (0, 0)
    assert checker.check(query([1, 1, 1, 1]), 1).accepted
    assert checker.check(query([0, 0, 0, 1]), 0).accepted


def test_without_a_limit_the_width_grows_with_the_failures():
    checker = GuessAndCheck(curator(ROWS), terms(rejections=None))
    widths = []
    for i in range(6):
        found = checker.check(query([1, 0, 0, 0]), 0 if i % 2 else 0.5)
        assert found.accepted == (i % 2 == 0)
        assert abs(found.value - 0.5) <= found.error <= 0.1
        widths.append(found.population_error)
        assert widths[-1] == gnc_failures_width(100, 100, checker.failures, Fraction(1, 10), Fraction(1, 20))
    assert widths == sorted(widths)


def test_it_goes_on_where_it_stopped_and_teaches_a_new_guesser():
    ledger = MemoryLedger(Budget.of(1))
    first = GuessAndCheck(curator(ROWS, ledger=ledger), terms(), name="mine")
    first.check(query([1, 0, 0, 0]), 0)
    first.check(query([0, 1, 0, 0]), 0.3)
    again = GuessAndCheck(curator(ROWS, ledger=ledger), terms(), name="mine")
    assert (again.asked, again.failures) == (2, 1)
    told = []

    class Pupil(ConstantGuess):
        def learn(self, query, value):
            told.append((query.key, value))

    again.teach(Pupil())
    assert told == [(query([1, 0, 0, 0]).key, 0.525)]
    first.check(query([0, 0, 0, 1]), 0)
    again.check(query([0, 0, 0, 1]), 0)
    assert (again.asked, again.failures) == (4, 1)


def test_only_where_validity_alone_is_protected():
    checker = GuessAndCheck(curator(ROWS, protect=Protect.PRIVACY), terms())
    with pytest.raises(ProtectionError):
        checker.check(query([1, 0, 0, 0]), 0)
    with pytest.raises(QueryError):
        GuessAndCheck(curator(ROWS), terms()).check(
            LinearQuery.everyone(Domain((Bins.integers("y", 0, 1),))), 1
        )
    for bad in ({"eta": 0}, {"eta": 2}, {"queries": 0}, {"rejections": -1}, {"beta": 1}):
        with pytest.raises(ParameterError):
            terms(**bad)


def test_a_guesser_that_goes_on_is_told_what_was_rejected_elsewhere():
    """Two processes, one journal: each guess is that of the whole transcript."""
    ledger = MemoryLedger(Budget.of(1))
    here, there = (GuessAndCheck(curator(ROWS, ledger=ledger), terms(), name="mine") for _ in range(2))

    class Pupil(ConstantGuess):
        def learn(self, query, value):
            told.append(value)

    told: list[float] = []
    pupil, other = Pupil(0.0), ConstantGuess(0.0)
    assert here.ask(query([0, 0, 0, 1]), pupil).accepted
    assert not there.ask(query([1, 0, 0, 0]), other).accepted
    assert told == []
    assert here.ask(query([0, 0, 0, 1]), pupil).accepted
    assert told == [0.525]
    assert not here.ask(query([0, 1, 0, 0]), pupil).accepted  # its own, once
    assert told == [0.525, 0.325]
    assert here.failures == 2


class Uniform:
    domain = DOMAIN

    def project(self, clique):
        return np.full(DOMAIN.shape(clique), 1 / DOMAIN.size(clique))


@pytest.mark.parametrize(
    "made",
    [
        ConstantGuess,
        lambda: OtherData(Uniform()),
        lambda: GuessFunction(lambda asked: float(asked.weights().mean())),
        lambda: WeightsGuess(DenseWeights.uniform(DOMAIN), 0.1),
        lambda: MedianGuess(SurvivingSet(DOMAIN, 20), 0.1),
    ],
    ids=["constant", "other data", "function", "weights", "median"],
)
def test_any_guesser_will_do(made):
    guesser = made()  # here, since some need compiled loops, and every worker collects every test
    checker = GuessAndCheck(curator(ROWS), terms(rejections=40))
    generator = np.random.default_rng(0)
    for _ in range(30):
        asked = query(generator.random(CELLS) < 0.5)
        found = checker.ask(asked, guesser)
        truth = sum(asked.weights(("x",))[row] for row in ROWS) / len(ROWS)
        assert abs(found.value - truth) <= found.error + 1e-12


# ---- truncation


def test_truncated_answers_are_on_the_grid_and_counted():
    ledger = MemoryLedger(Budget.of(1))
    mechanism = Truncation(curator(ROWS, ledger=ledger), queries=3, name="mine")
    found = mechanism.ask(query([1, 0, 0, 0]))
    assert abs(found.value - 0.5) <= found.error == 1 / (2 * mechanism.grid)
    again = Truncation(curator(ROWS, ledger=ledger), queries=3, name="mine")
    again.ask(query([0, 0.5, 1, 0]))
    mechanism.ask(query([0, 1, 0, 0]))
    with pytest.raises(HandleClosedError):
        again.ask(query([1, 0, 0, 0]))  # nothing is remembered here


def test_widths_hold_against_the_population():
    """An analyst picks, after each answer, the cells that look too frequent; the widths cover the truth."""
    ratios, beta = [], 1e-3
    for seed in range(60):
        generator = np.random.default_rng(seed)
        rows = generator.integers(0, CELLS, 400)
        mechanism = Truncation(curator(rows), queries=8, beta=beta)
        weights, worst = np.array([1.0, 0, 0, 0]), 0.0
        for _ in range(8):
            found = mechanism.ask(query(weights))
            worst = max(worst, abs(found.value - weights.mean()) / found.population_error)
            weights = (np.bincount(rows, minlength=CELLS) > 100).astype(float)
            weights[generator.integers(CELLS)] = 1
        ratios.append(worst)
    # The widths are a union over every transcript that could be; this analyst follows one, where rounding is most.
    assert_covers(ratios, beta, mutant=0.3)


def test_what_is_written_of_a_guess_does_not_depend_on_whether_it_is_right():
    checker = GuessAndCheck(curator(ROWS), terms(queries=3))
    endless = Fraction(1, 2) + Fraction(1, 10**5000)
    for asked in ([1, 0, 0, 0], [0, 0, 0, 1]):
        with pytest.raises(ParameterError, match="fewer digits"):
            checker.check(query(asked), endless)
    long = Fraction(1, 2) + Fraction(1, 10**1000)
    assert checker.check(query([1, 0, 0, 0]), long).accepted
    assert not checker.check(query([0, 0, 0, 1]), long).accepted
    assert checker.asked == 2
    with pytest.raises(ParameterError):
        checker.check(query([1, 0, 0, 0]), 10**9)
