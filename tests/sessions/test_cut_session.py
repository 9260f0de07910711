"""Sessions whose questions cut declared cells: what is free, what is bought, joint coverage, and deaths."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

import understudy as us
from counted import Killed, curator_of
from cut_rows import DOMAIN, ValueRows, between, count, table
from statistical import assert_covers
from understudy.domain.refinement import refined
from understudy.errors import InsufficientBudgetError, QueryError
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.opening import session
from understudy.sessions.session import Session

AUDIT = bool(os.environ.get("UNDERSTUDY_AUDIT"))
TRUTH = table()
TERMS = {"alpha": 0.03, "queries": 40}


def opened(seed: int = 1, *, truth: ValueRows = TRUTH, ledger=None, name: str = "", **more) -> Session:
    given = {"epsilon": 500.0, "delta": 1e-6} | more
    terms = TERMS | {key: given.pop(key) for key in ("beta", "queries", "mechanism") if key in given}
    return session(curator_of(truth, seed=seed, ledger=ledger, **given), name=name, **terms)


def test_repetitions_other_spellings_and_complements_are_free():
    asked = opened()
    first = asked.ask("count age < 28")
    assert (first.source, first.cost.units > 0) == ("measured", True)
    for again in (
        "count age < 28",
        "count age <= 27",
        "share age < 28",
        "SELECT count(*) FROM t WHERE age < 28",
    ):
        told = asked.ask(again)
        assert (told.source, told.cost.units) == ("repeat", 0), again
    other = asked.ask("count age >= 28")
    assert (other.source, other.cost.units) == ("implied", 0)
    assert float(other.value) == pytest.approx(TRUTH.rows - float(first.value))
    spent = asked.curator.ledger.spent
    assert asked.price("count age > 27").units == 0
    assert asked.known("count not age < 28") is not None
    assert asked.known("count age < 29") is None
    assert asked.price("count age < 29").units > 0
    assert asked.curator.ledger.spent == spent


def test_differences_of_prefixes_are_free_where_they_are_within_the_error():
    """A prefix that is nearly everybody leaves nearly nobody to be counted after it: bounds tell that."""
    asked = opened()
    asked.ask("count age < 95")
    spent = asked.curator.ledger.spent
    for low, high in ((95, 97), (96, 101), (97, 99)):
        told = asked.ask(f"count age >= {low} and age < {high}")
        assert (told.source, told.cost.units) == ("implied", 0)
        assert abs(float(told.value) - float(count(TRUTH, between(low, high)))) <= float(told.error)
        assert float(told.error) <= asked.width
    assert asked.curator.ledger.spent == spent
    both = asked.ask("count age < 28 by sex")
    again = asked.ask("SELECT sex, count(*) FROM t WHERE NOT age >= 28 GROUP BY sex")
    assert both.source == "measured"
    assert again.cost.units == 0
    assert [row[1] for row in again.rows] == both.value.tolist()


def test_a_group_of_cut_rows_answers_the_count_of_that_group():
    asked = opened()
    groups = asked.ask("count age < 28 by sex")
    spent = asked.curator.ledger.spent
    for place, sex in enumerate("FM"):
        for question in (f"count age < 28 and sex = {sex}", f"count sex = {sex} and age <= 27"):
            told = asked.ask(question)
            assert told.cost.units == 0, question
            assert abs(float(told.value) - float(groups.value[place])) <= asked.width
    assert asked.curator.ledger.spent == spent
    assert asked.price("count age < 29 and sex = F").units > 0


def test_a_union_of_declared_cells_is_as_free_as_without_cuts():
    asked = opened()
    asked.ask("count age < 20")
    asked.ask("count age < 28")
    assert asked.ask("count age <= 19").source == "repeat"
    assert asked.ask("SELECT count(*) FROM t WHERE age < 20 OR age * 2 < 30").source == "repeat"


def test_every_answer_is_within_its_error_on_random_questions():
    draw = np.random.default_rng(2)
    asked = opened(3)
    for _ in range(15):
        low, high = np.sort(draw.choice(101, 2, replace=False)).tolist()
        sex = str(draw.choice(["", "F", "M"]))
        question = between(low, high, sex=sex, by=("sex",) if not sex and draw.random() < 0.3 else ())
        told = asked.ask(question)
        assert (np.abs(told.value - count(TRUTH, question)) <= told.error + 1e-9).all()
        assert (told.error <= asked.width + 1e-6).all()


def test_groups_by_the_attribute_that_is_cut_and_moments_of_cut_rows():
    asked = opened()
    told = asked.ask("count age < 28 by age")
    assert [labels[0] for labels, _, _ in told.rows()] == ["0-19", "20-27", "28-49", "50-100"]
    exact = [float(count(TRUTH, between(low, high))) for low, high in ((0, 20), (20, 28))]
    assert (np.abs(told.value[:2] - exact) <= told.error[:2]).all()
    assert told.value[2:].tolist() == [0.0, 0.0]
    part = asked.ask("count age >= 20 and age < 28")  # a group that was bought tells its range
    assert (part.cost.units, part.source) == (0, "implied")
    assert abs(float(part.value) - exact[1]) <= float(part.error)


def test_sums_of_measures_over_cut_rows_are_no_counts():
    draw = np.random.default_rng(4)
    frame = pd.DataFrame({"age": draw.integers(0, 101, 800), "pay": draw.integers(0, 1001, 800)})
    attributes = {"age": {"edges": [0, 50, 100]}, "pay": {"bounds": [0, 1000], "resolution": 1}}
    with us.declare(frame, attributes=attributes, name="t", epsilon=500, delta=1e-6) as project:
        asked = us.session(project, alpha=0.05, beta=1e-9, queries=20)
        told = asked.ask("avg pay where age < 28")
        assert abs(float(told.value) - frame["pay"][frame["age"] < 28].mean()) <= float(told.error)
        assert asked.ask("count age < 28").source == "repeat"  # the number of rows of the average
        older = asked.ask("count age >= 28")
        assert (older.source, older.cost.units) == ("implied", 0)
        assert abs(float(older.value) - (frame["age"] >= 28).sum()) <= float(older.error)


def worst_ratio(seed: int, beta: float) -> float:
    """The largest error over its promised size in one session of an analyst who knows the table.

    After a few cuts the analyst asks for what follows from the one that came out worst: its complement, parts with
    one more condition, and ranges between its edge and others.
    """
    draw, asked, worst = np.random.default_rng(seed), opened(seed, beta=beta, queries=12), 0.0
    cuts = draw.choice(np.arange(1, 100), 4, replace=False).tolist()
    bad = 0, 0.0

    def ask(low: int, high: int, sex: str = "") -> float:
        question = between(low, high, sex=sex)
        told = asked.ask(question)
        off = abs(float(told.value) - float(count(TRUTH, question)))
        assert float(told.error) <= asked.width + 1e-6
        return off / max(float(told.error), 1e-9) if off > 1e-6 else 0.0

    for cut in cuts:
        ratio = ask(0, cut)
        worst, bad = max(worst, ratio), max(bad, (cut, ratio), key=lambda known: known[1])
    edge = bad[0] or cuts[0]
    for low, high in [(edge, 101), *(sorted((edge, cut)) for cut in cuts if cut != edge)]:
        worst = max(worst, ask(low, high))
    return max(worst, ask(0, edge, "F"), ask(edge, 101, "M"))


def test_all_answers_of_a_session_hold_together():
    sessions, beta, mutant = (300, 0.01, 0.7) if AUDIT else (5, 0.001, 0.3)
    assert_covers([worst_ratio(seed, beta) for seed in range(sessions)], beta, mutant=mutant)


@pytest.mark.parametrize("neighbours", [Neighbours.REPLACE, Neighbours.ADD_REMOVE])
def test_a_cut_is_charged_as_its_declared_cells_and_priced_as_any_count(neighbours):
    bounds = {"rows_at_least": 1500, "rows_at_most": 6000} if neighbours is Neighbours.ADD_REMOVE else {}
    asked = opened(neighbours=neighbours, mechanism="direct", **bounds)
    price = asked.price("count age < 28")
    told = asked.ask("count age < 28")
    assert 0 < told.cost.units <= price.units
    assert abs(float(told.value) - float(count(TRUTH, between(0, 28)))) <= float(told.error)


def test_after_the_budget_parts_of_bins_get_their_share_and_stay_within_what_is_known():
    asked = opened(epsilon=0.35)
    told = None
    for cut in range(3, 99, 4):
        told = asked.ask(f"count age < {cut}")
        if told.source == "uncertified":
            break
    assert told is not None
    assert told.source == "uncertified"
    assert np.isinf(told.error)
    assert 0 <= float(told.value) <= TRUTH.rows
    with pytest.raises(InsufficientBudgetError):
        asked.ask("count age < 64 and sex = M", uncertified=False)


# ---- deaths

QUESTIONS = [
    "count age < 28",
    "count age >= 28",
    "count age < 61",
    "count age < 28 by sex",
    "count pay < 99.5 by age",
]


def dying_truth(after: int) -> ValueRows:
    return ValueRows(DOMAIN, TRUTH.values, dies_at=after)


@pytest.mark.parametrize("after", range(5))
def test_a_session_that_died_goes_on_and_pays_for_nothing_twice(after):
    ledger = MemoryLedger(Budget.of(500, 1e-6))
    first = opened(1, truth=dying_truth(after), ledger=ledger, name="mine")
    told = []
    try:
        told += [first.ask(question) for question in QUESTIONS]
    except Killed:
        pass
    else:
        assert after > 3
    spent = ledger.spent
    again = opened(2, ledger=ledger, name="mine")  # makes the purchase that was charged and not made
    assert ledger.spent == spent
    for question, before in zip(QUESTIONS, told, strict=False):
        answer = again.ask(question)
        assert answer.cost.units == 0
        if before.source == "measured":
            assert answer.value.tolist() == before.value.tolist()
    assert ledger.spent == spent
    more = [again.ask(question) for question in QUESTIONS]
    third = opened(3, ledger=ledger, name="mine")
    assert third.purchases == again.purchases
    for question, before in zip(QUESTIONS, more, strict=True):
        assert third.known(question) is not None
        assert (np.abs(third.ask(question).value - before.value) <= 2 * before.error + 1e-9).all()


def test_the_journal_names_edges_only_where_there_are_new_ones():
    ledger = MemoryLedger(Budget.of(500, 1e-6))
    asked = opened(1, ledger=ledger, name="mine", mechanism="direct")
    asked.ask("count age < 20")
    asked.ask("count age < 28")
    steps = list(ledger.steps(asked._buyer.journal.debit))
    assert "edges" not in str(steps[0])
    assert '"edges"' in str(steps[1])


# ---- what is refused, and hostile words


@pytest.mark.parametrize(
    "question",
    [
        "count age < '28; DROP TABLE t'",
        "count age < 28); DELETE FROM t; --",
        "count age < \"28' OR '1'='1\"",
        "SELECT count(*) FROM t WHERE age < '28'' OR 1=1 --'",
        "SELECT count(*) FROM t WHERE age < (SELECT max(age) FROM t)",
        "SELECT count(*) FROM t WHERE age < 28 /* */ ; DROP TABLE t",
        "count age < 1e999",
        "count age < 28.5",
        "count pay < nan",
    ],
)
def test_no_words_of_a_question_become_an_edge(question):
    asked = opened()
    with pytest.raises(QueryError):
        asked.ask(question)
    assert asked.curator.ledger.spent.units == 0


def test_edges_have_the_type_of_the_attribute():
    asked = opened()
    for question in ("SELECT count(*) FROM t WHERE age < '28'", "SELECT count(*) FROM t WHERE pay < '99.5'"):
        asked.ask(question)
    for fact in asked._known.knowledge.cuts._boxes:
        for name, side in fact.sides.items():
            kind = type(DOMAIN[name].starts[0])
            assert all(type(edge[1]) is kind for run in side for edge in run if edge[0] == 0)


def test_questions_about_other_domains_are_refused():
    other = refined(DOMAIN, "age", [13]).project(["age", "sex"])
    with pytest.raises(QueryError, match="another domain"):
        opened().ask(Marginal(other, (), LinearQuery.everyone(other)))
