"""Questions in words, and repeats that cost nothing, in every algorithm of the notes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.declaration.file import parse
from understudy.errors import HandleClosedError, ParameterError, QueryError
from understudy.lectures import asking

ROWS = np.random.default_rng(3).random((10_000, 2)) < [0.3, 0.6]
TABLE = pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1]})
RATE = float(ROWS[:, 0].mean())


def project(protect="privacy", epsilon=10):
    return us.Project.frame(
        TABLE,
        parse(
            f"{{understudy: 1, name: bits, source: bits.parquet, protect: {protect}, "
            f"budget: {{epsilon: {epsilon}}}, attributes: {{a: {{type: boolean}}, b: {{type: boolean}}}}}}"
        ),
    )


def terms(**given):
    return us.lectures.CheckTerms(
        **({"eta": Fraction(1, 20), "queries": 3, "beta": Fraction(1, 20), "rejections": 1} | given)
    )


def test_the_names_of_the_notes_are_public():
    assert "lectures" in us.__all__
    for name in ("GuessAndCheck", "MedianMechanism", "PrivateMultiplicativeWeights", "SmallDatabase"):
        assert name in us.lectures.__all__


def test_a_question_in_words_is_the_linear_query():
    curator = project("validity").curator
    reader = asking.QueryReader(curator)
    query = us.LinearQuery.conjunction(curator.domain, {"a": [0, 1]})
    assert {reader.read(text).key for text in ("count a = true", "share a = true", query)} == {query.key}
    for several in ("count by a", "rate a = true within b"):
        with pytest.raises(QueryError, match="one number"):
            reader.read(several)
    for statement in ("SELECT count(*) FROM bits", "SELECT a, count(*) FROM bits GROUP BY a"):
        with pytest.raises(QueryError, match="read no SQL") as refusal:
            reader.read(statement)
        assert "write 'count" in str(refusal.value)
    with pytest.raises(QueryError):
        reader.read("count nobody = 3")


def test_guesses_in_words_and_repeats_that_are_not_counted():
    checker = us.lectures.GuessAndCheck(project("validity"), terms())
    first = checker.check("share a = true", 0.3)
    assert first.accepted
    assert abs(first.value - RATE) <= 0.05
    assert all(checker.check("count a = true", 0.3) == first for _ in range(10))
    assert checker.asked == 1
    wrong = checker.check("share a = true", 0.9)  # another guess is another comparison
    assert not wrong.accepted
    assert (checker.asked, checker.failures) == (2, 1)
    # What was told after a wrong guess is told again, whatever is guessed now.
    assert all(checker.check("share a = true", guess) == wrong for guess in (0.9, 0.8, 0.0))
    assert (checker.asked, checker.failures) == (2, 1)
    checker.check("share b = true", 0.6)
    with pytest.raises(HandleClosedError):
        checker.check("share b = false", 0.4)
    assert checker.check("share a = true", 0.3) == first  # and still told when all queries were asked


def test_a_repeat_is_what_was_said_whatever_the_guesser_would_say_now():
    guesser = us.lectures.ConstantGuess()
    checker = us.lectures.GuessAndCheck(project("validity"), terms())
    told = checker.ask("share a = true", guesser)
    assert not told.accepted
    assert checker.ask("share a = true", guesser) == told
    assert (checker.asked, checker.failures) == (1, 1)


def test_a_value_that_was_told_is_told_again_by_whoever_goes_on():
    """In another process, after `ask`, and where it was told elsewhere in the meantime."""
    poll = project("validity")
    first, second = (us.lectures.GuessAndCheck(poll, terms(), name="shared") for _ in range(2))
    told = first.ask("share a = true", us.lectures.ConstantGuess())
    assert not told.accepted
    assert first.check("share a = true", 0.8) == told
    assert second.check("share a = true", 0.7) == told
    assert second.ask("share a = true", us.lectures.ConstantGuess()) == told
    assert us.lectures.GuessAndCheck(poll, terms(), name="shared").check("share a = true", 0.6) == told
    assert [(one.asked, one.failures) for one in (first, second)] == [(1, 1), (1, 1)]


@pytest.mark.parametrize("make", [
    lambda: us.lectures.MedianMechanism(project("validity"), queries=2),
    lambda: us.lectures.Truncation(project("validity"), queries=2),
], ids=["median", "truncation"])  # fmt: skip
def test_validity_in_words(make):
    mechanism = make()
    told = [mechanism.ask("share a = true") for _ in range(5)]
    assert len({one.value for one in told}) == 1
    assert abs(told[0].value - RATE) <= told[0].error
    mechanism.ask("share b = true")
    with pytest.raises(HandleClosedError):
        mechanism.ask("share b = false")


def test_private_multiplicative_weights_for_a_price():
    """The theorem's error is kept, the price is not passed, and a repeat costs nothing."""
    table = project(epsilon=50)
    weights = us.lectures.PrivateMultiplicativeWeights(table, queries=4, epsilon=40, beta=1e-9)
    exact = {"count a = true": ROWS[:, 0].sum(), "count a = true and b = true": ROWS.all(axis=1).sum()}
    for words, count in exact.items():
        told = weights.ask(words)
        assert abs(float(told.value) - count) <= float(told.error) <= weights.error < 10_000
    spent = table.ledger.spent
    again = weights.ask("count a = true")
    assert (again.source, again.cost.units, table.ledger.spent) == ("repeat", 0, spent)
    assert weights.asked == 2
    assert spent.amount <= 40


def test_private_multiplicative_weights_for_an_error():
    table = project(epsilon=100)
    bounded = us.lectures.PrivateMultiplicativeWeights(table, queries=50, alpha=0.2)
    assert bounded.terms.is_bounded
    assert bounded.error <= 2000
    few = us.lectures.PrivateMultiplicativeWeights(project(epsilon=100), queries=50, alpha=0.2, updates=1)
    assert not few.terms.is_bounded
    assert few.terms.run_epsilon < bounded.terms.run_epsilon


@pytest.mark.parametrize("given", [{}, {"epsilon": 1, "alpha": 0.1}, {"epsilon": 1, "updates": 3}])
def test_a_price_or_an_error(given):
    with pytest.raises(ParameterError, match=r"give either|go with alpha"):
        us.lectures.PrivateMultiplicativeWeights(project(), queries=10, **given)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(asking, "MOST_ANSWERS", 2)
    memory = asking.RepeatMemory()
    for i in range(3):
        memory.keep(i, str(i))
    assert [memory.find(i) for i in range(3)] == [None, "1", "2"]
