"""A session's promise, its prices, and that nothing is lost with the process."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from statistical import assert_at_most
from understudy.attribute import Categories
from understudy.bins import Bins
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.domain import Domain
from understudy.errors import InsufficientBudgetError, ParameterError, QueryError, RefusedError
from understudy.interactive.session import open_session
from understudy.ledger.memory import MemoryLedger
from understudy.noise import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.neighbours import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.table.source import in_memory
from understudy.table.truth import Truth

DOMAIN = Domain(
    (
        Bins.integers("age", 0, 9),
        Categories(name="sex", values=("F", "M")),
        Categories(name="town", values=("a", "b", "c", "d", "e")),
    )
)
_R = np.random.default_rng(1)
ROWS = 4000
AGE = np.minimum(_R.geometric(0.25, ROWS) - 1, 9)
TABLE = pa.table(
    {
        "age": AGE,
        "sex": np.where(_R.random(ROWS) < 0.3 + 0.04 * AGE, "F", "M"),
        "town": np.array(list("abcde"))[_R.integers(0, 5, ROWS)],
    }
)


def curator(*, epsilon=500.0, delta=1e-6, seed=1, ledger=None, **declared) -> Curator:
    declaration = Declaration(
        name="t",
        source=SourceSpec("-"),
        domain=DOMAIN,
        budget=Budget.of(epsilon, delta),
        **({"neighbours": Neighbours.REPLACE} | declared),
    )
    truth = Truth(in_memory(TABLE), DOMAIN)
    return Curator(truth, ledger or MemoryLedger(declaration.budget), declaration, noise=SeededNoise(seed))


def conjunction(**sides) -> Marginal:
    return Marginal.of(LinearQuery.conjunction(DOMAIN, sides))


def random_question(generator) -> Marginal:
    names = generator.choice(DOMAIN.names, generator.integers(1, 4), replace=False)
    sides = {}
    for name in names:
        size = DOMAIN[name].size
        if name == "age":
            low, high = np.sort(generator.integers(0, size, 2))
            sides[str(name)] = (np.arange(size) >= low) & (np.arange(size) <= high)
        else:
            cells = generator.random(size) < 0.5
            cells[generator.integers(size)] = True
            sides[str(name)] = cells
    where = LinearQuery.conjunction(DOMAIN, sides)
    free = [name for name in DOMAIN.names if name not in sides]
    by = (free[0],) if free and generator.random() < 0.2 else ()
    return Marginal(DOMAIN, by, where)


@pytest.mark.parametrize(
    "declared",
    [
        {},
        {"delta": 0.0},
        {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000, "rows_at_most": 9000},
    ],
)
def test_every_answer_of_a_session_holds_with_the_promised_probability(declared):
    """Sessions of 60 questions, half random and half steered to where a released histogram is worst."""
    failed, sessions, beta = 0, 40, 0.2
    exact = {}
    for seed in range(sessions):
        one = curator(seed=seed, **declared)
        session = open_session(one, alpha=0.02, beta=beta, queries=60)
        generator = np.random.default_rng(seed)
        bad = False
        for i in range(60):
            question = random_question(generator) if i % 2 else steered(session, one)
            answer = session.ask_marginal(question)
            if question.key not in exact:
                exact[question.key] = one._truth.sums(question)
            bad |= bool((np.abs(answer.value - exact[question.key]) > answer.error + 1e-9).any())
            assert (answer.error <= session.width + 1e-9).all()
        failed += bad
    assert_at_most(failed, sessions, beta)


def steered(session, one) -> Marginal:
    """The worst subset of a released histogram, by an analyst who knows the table."""
    known = session._knowledge.one_ways.get("town")
    if known is None:
        return conjunction(town=np.arange(6) < 3)
    off = known.counts - one._truth.count(("town",))
    return conjunction(town=off > 0)


def test_answers_name_their_source_and_free_ones_cost_nothing():
    one = curator()
    session = open_session(one, alpha=0.02, beta=0.05, queries=1000)
    found = Counter()
    generator = np.random.default_rng(0)
    for _ in range(300):
        question = random_question(generator)
        before, quoted = one.ledger.spent.units, session.price(question).units
        answer = session.ask_marginal(question)
        paid = one.ledger.spent.units - before
        found[answer.source] += 1
        assert answer.cost.units == paid == quoted
        assert (paid == 0) or answer.source == "measured"
        again = session.ask_marginal(question)
        assert again.source == "repeat"
        assert again.cost.units == 0
        assert (again.value == answer.value).all()
        assert one.ledger.spent.units == before + paid
    assert min(found[source] for source in ("measured", "implied", "pinned")) > 0


def test_a_killed_session_goes_on_where_it_was():
    ledger = MemoryLedger(Budget.of(500, 1e-6))
    first = curator(ledger=ledger, seed=1)
    session = open_session(first, alpha=0.02, beta=0.05, queries=200, name="mine")
    generator = np.random.default_rng(3)
    questions = [random_question(generator) for _ in range(60)]
    answers = [session.ask_marginal(question) for question in questions]
    spent = ledger.spent
    again = open_session(curator(ledger=ledger, seed=2), alpha=0.02, beta=0.05, queries=200, name="mine")
    assert again._left == session._left
    for question, answer in zip(questions, answers, strict=True):
        repeated = again.ask_marginal(question)
        if answer.source == "measured":
            assert (repeated.value == answer.value).all()
        assert (np.abs(repeated.value - answer.value) <= repeated.error + answer.error).all()
        assert repeated.cost.units == 0
    assert ledger.spent == spent
    with pytest.raises(RefusedError, match="another question"):
        open_session(curator(ledger=ledger), alpha=0.03, beta=0.05, queries=200, name="mine")


def test_a_purchase_that_was_written_down_is_finished():
    """Killed between the plan and the debit, or between the debit and the answer."""
    ledger = MemoryLedger(Budget.of(500, 1e-6))
    one = curator(ledger=ledger)
    session = open_session(one, alpha=0.02, beta=0.05, queries=200, name="mine")
    question = conjunction(age=np.arange(10) < 4, sex=np.arange(3) < 1, town=np.arange(6) < 2)

    def killed(*args, **kwargs):
        raise KeyboardInterrupt

    one._paid = killed
    with pytest.raises(KeyboardInterrupt):
        session.ask_marginal(question)
    again = open_session(curator(ledger=ledger, seed=9), alpha=0.02, beta=0.05, queries=200, name="mine")
    answer = again.ask_marginal(question)
    assert answer.source == "repeat"
    assert abs(float(answer.value) - one._truth.sums(question)) <= 2 * session.width


def test_a_session_that_cannot_pay_refuses_and_keeps_answering_what_is_free():
    one = curator(epsilon=0.5)
    session = open_session(one, alpha=0.05, beta=0.05, queries=50)
    generator = np.random.default_rng(0)
    refused = free = 0
    for _ in range(200):
        before = one.ledger.spent
        try:
            answer = session.ask_marginal(random_question(generator))
        except InsufficientBudgetError:
            refused += 1
            assert one.ledger.spent == before
        else:
            free += answer.source != "measured"
    assert refused > 0
    assert free > 0
    assert one.ledger.spent.units <= one.ledger.budget.cap.units


def test_bad_input_is_refused_and_costs_nothing():
    one = curator()
    for bad in ({"alpha": 0}, {"alpha": 2}, {"alpha": 1e-6}, {"beta": 0}, {"queries": 0}):
        with pytest.raises(ParameterError):
            open_session(one, **({"alpha": 0.02, "beta": 0.05, "queries": 10} | bad))
    with pytest.raises(RefusedError, match="at_least"):
        open_session(curator(neighbours=Neighbours.ADD_REMOVE), alpha=0.1)
    session = open_session(one, alpha=0.02, queries=10)
    before = one.ledger.spent
    with pytest.raises(QueryError, match="another domain"):
        session.ask_marginal(Marginal(Domain((DOMAIN["sex"],)), ()))
    assert one.ledger.spent == before
