"""Questions in words, and repeats that cost nothing, in every algorithm of the notes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from counted import Killed
from understudy.declaration.file import parse
from understudy.errors import HandleClosedError, ParameterError, QueryError
from understudy.lectures import asking
from understudy.ledger.journal import Journal

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


# ---- going on by name

SEVERAL = ("count a = true", "count b = true", "count a = true and b = true")
OPENED = {
    "median of privacy": lambda table: us.lectures.private_median(
        table, alpha=0.1, queries=5, updates=4, name="it"
    ),
    "weights": lambda table: us.lectures.PrivateMultiplicativeWeights(
        table, queries=5, epsilon=40, beta=1e-9, name="it"
    ),
    "median": lambda table: us.lectures.MedianMechanism(table, queries=5, eta=0.3, name="it"),
    "truncation": lambda table: us.lectures.Truncation(table, queries=5, name="it"),
    "guess and check": lambda table: Guessing(table),
}
PRIVATE = ("median of privacy", "weights")


class Guessing:
    """GuessAndCheck with guesses that are right, right and wrong, each by another way of asking."""

    def __init__(self, table):
        self.checker = us.lectures.GuessAndCheck(table, terms(queries=5, rejections=4), name="it")

    def ask(self, question):
        if question == SEVERAL[0]:
            return self.checker.check(question, 0.3)
        return self.checker.ask(question, us.lectures.ConstantGuess(0.6))


def opened(name, table):
    """The algorithm, and how many questions it counts."""
    it = OPENED[name](table)
    return it, lambda: getattr(it, "checker", it).asked


def said(answer):
    """The numbers of an answer, without whence they come now."""
    if isinstance(answer, us.Answer):
        return float(answer.value), float(answer.error)
    return answer


def table_of(name):
    return project(epsilon=100) if name in PRIVATE else project("validity")


@pytest.mark.parametrize("name", OPENED)
def test_what_was_told_is_told_again_by_whoever_goes_on(name):
    """In another process, for nothing, without being counted, and also once all questions were asked."""
    table = table_of(name)
    first, count = opened(name, table)
    told = [first.ask(question) for question in SEVERAL]
    assert count() == 3
    spent = table.ledger.spent
    again, counted = opened(name, table)
    for _ in range(2):
        repeated = [again.ask(question) for question in SEVERAL]
        assert [said(one) for one in repeated] == [said(one) for one in told]
    if name in PRIVATE:
        assert {(one.source, one.cost.units) for one in repeated} == {("repeat", 0)}
        assert {one.source for one in told} & {"measured", "checked"}
    assert counted() == 3
    assert table.ledger.spent == spent
    again.ask("count a = false")
    again.ask("count b = false")
    assert counted() == 5
    assert said(first.ask("count b = false")) == said(
        again.ask("count b = false")
    )  # told elsewhere meanwhile
    with pytest.raises(HandleClosedError):
        opened(name, table)[0].ask("count a = false and b = false")
    assert said(opened(name, table)[0].ask(SEVERAL[1])) == said(told[1])


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("name", OPENED)
def test_what_is_told_was_kept_before(monkeypatch, name, kept):
    """Killed as an answer is kept: who goes on tells that one, or asks anew if it was not kept."""
    table = table_of(name)
    it, _ = opened(name, table)
    writes = []
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", counting(Journal.add, writes))
        told = it.ask(SEVERAL[0])
    last = len(writes)
    table = table_of(name)
    it, _ = opened(name, table)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", dying(Journal.add, last, kept=kept))
        with pytest.raises(Killed):
            it.ask(SEVERAL[0])
    spent = table.ledger.spent
    again, counted = opened(name, table)
    answered = again.ask(SEVERAL[0])
    if name not in PRIVATE:
        assert answered == told
        assert counted() == 1
    elif kept:
        assert counted() == 1
        assert answered.source == "repeat"
        assert said(opened(name, table)[0].ask(SEVERAL[0])) == said(answered)
    else:
        assert counted() == 2  # a question is counted before it is compared
        assert answered.source != "repeat"
        assert answered.cost.units == table.ledger.spent.units - spent.units


def counting(add, writes):
    def counted(self, *given, **named):
        writes.append(given)
        return add(self, *given, **named)

    return counted


def dying(add, last, *, kept):
    """The write of this number, from 1, is the last: done or not."""
    writes = []

    def dies(self, *given, **named):
        writes.append(given)
        if len(writes) < last:
            return add(self, *given, **named)
        if kept:
            add(self, *given, **named)
        raise Killed

    return dies


def test_journals_of_version_0_1_go_on():
    """They say of accepted and of truncated answers, and of the stand-in's, not what was asked."""
    table = project("validity")
    checker = us.lectures.GuessAndCheck(table, terms(), name="it")
    checker._journal.add("a in (true)?0.3", {"accepted": True, "value": "3/10"})
    again = us.lectures.GuessAndCheck(table, terms(), name="it")
    assert again.asked == 1
    assert again.check("share a = true", 0.3).accepted
    assert again.asked == 2
    truncation = us.lectures.Truncation(table, queries=2, name="other")
    truncation._journal.add("a in (true)", {"cell": 0})
    later = us.lectures.Truncation(table, queries=2, name="other")
    assert abs(later.ask("share a = true").value - RATE) <= 0.1
    assert later.asked == 2


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
