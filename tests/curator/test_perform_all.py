"""Many measurements at once: each charged before its own look, refused alone, and told as soon as it is kept."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from counted import Killed
from understudy.curator.batch import MeasurementOrder
from understudy.curator.curator import Curator
from understudy.curator.prepared_question import QuestionPurchase
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import (
    InsufficientBudgetError,
    LedgerError,
    ParameterError,
    RequestConflictError,
    SourceError,
)
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.price import Price
from understudy.project import Project
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal

DOMAIN = Domain((Bins.integers("age", 0, 9), Categories(name="sex", values=("F", "M"))))
YOUNG = Marginal.of(LinearQuery.conjunction(DOMAIN, {"age": np.arange(10) < 3}))
BY_SEX = Marginal(DOMAIN, ("sex",))
TENTH = Price.of(epsilon=Fraction(1, 10))


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A time that only a test moves: how busy the machine is decides nothing."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("understudy.curator.batch.time", clock)
    return clock


class Rows:
    """A truth that writes down when it is looked at, and does at each look what `at_look` says."""

    is_file, version, former_version, rows, domain = False, "0", None, 200, DOMAIN

    def __init__(self, calls):
        self.calls = calls
        self.at_look = lambda number: None
        self.looks = 0

    def check_unchanged(self):
        pass

    def check_size(self, marginals):
        pass

    def sums_of(self, marginals, *, resolution=1):
        self.looks += 1
        self.calls.append("look")
        self.at_look(self.looks)
        return [np.full(marginal.shape, 100) for marginal in marginals]


class Noting(MemoryLedger):
    """A ledger that writes down when it is charged and when answers are kept."""

    def __init__(self, budget, calls):
        super().__init__(budget)
        self.calls = calls

    def charge_all(self, wanted):
        self.calls.append(f"charge {len(wanted)}")
        return super().charge_all(wanted)

    def settle_all(self, answers):
        self.calls.append(f"keep {len(answers)}")
        return super().settle_all(answers)


def build(budget=1):
    calls = []
    declared = Declaration(name="t", source=SourceSpec("-"), domain=DOMAIN, budget=Budget.of(budget))
    rows = Rows(calls)
    curator = Curator(rows, Noting(declared.budget, calls), declared, noise=SeededNoise(1))
    return curator, rows, calls


def outcomes(curator, orders):
    found = {}
    for portion in curator.perform_all(orders):
        found.update(portion)
    return [found[place] for place in range(len(orders))]


def test_all_debits_are_written_before_the_first_look_and_all_answers_before_the_first_is_told():
    curator, _, calls = build()
    young, sexes = (
        curator.calibration.prepare([YOUNG], TENTH),
        curator.calibration.prepare([BY_SEX, YOUNG], TENTH),
    )
    found = outcomes(
        curator, [MeasurementOrder(young, "a"), MeasurementOrder(sexes, "b"), MeasurementOrder(young)]
    )
    assert calls == ["charge 3", "look", "look", "look", "keep 3"]
    assert [len(answers) for answers in found] == [1, 2, 1]
    assert found[1][0].value.shape == BY_SEX.shape
    total = sum(answer.cost.units for answers in found for answer in answers)
    assert curator.ledger.spent.units == total > 0
    alone, _, _ = build()
    for prepared, request in ((young, "a"), (sexes, "b"), (young, None)):
        alone.perform(prepared, request=request)
    assert alone.ledger.spent == curator.ledger.spent


def test_one_that_is_refused_leaves_the_others_alone():
    curator, rows, _ = build()
    young = curator.calibration.prepare([YOUNG], TENTH)
    dear = curator.calibration.prepare([YOUNG], Price.of(epsilon=2))
    curator.perform(young, request="known")
    sexes = curator.calibration.prepare([BY_SEX], TENTH)
    foreign = curator.calibration.prepare([YOUNG], TENTH)
    object.__setattr__(foreign.mechanisms[0][0], "l1", 7)  # noise for other counts
    orders = [
        MeasurementOrder(dear, "dear"),
        MeasurementOrder(sexes, "known"),
        MeasurementOrder(foreign, "foreign"),
        MeasurementOrder(young, "known"),
        MeasurementOrder(young, "fine"),
    ]
    rows.looks = 0
    found = outcomes(curator, orders)
    assert [type(one) for one in found[:3]] == [InsufficientBudgetError, RequestConflictError, ParameterError]
    assert found[3][0].value == curator.perform(young, request="known")[0].value
    assert (len(found[4]), rows.looks) == (1, 1)


def test_a_mechanism_that_was_changed_after_it_was_examined_is_examined_again():
    curator, rows, _ = build()
    young = curator.calibration.prepare([YOUNG], TENTH)
    curator.perform(young)
    spent, rows.looks = curator.ledger.spent, 0
    for name, value in (("epsilon", Fraction(50)), ("l1", 0)):
        before = getattr(young.mechanisms[0][0], name)
        object.__setattr__(young.mechanisms[0][0], name, value)
        young.mechanisms[0][0].__dict__.pop("scale", None)
        if name == "l1":
            (found,) = outcomes(curator, [MeasurementOrder(young)])
            assert isinstance(found, ParameterError)
            assert rows.looks == 0
        else:  # what is charged is the noise that is drawn now, which nobody could pay
            (found,) = outcomes(curator, [MeasurementOrder(young)])
            assert isinstance(found, InsufficientBudgetError)
        object.__setattr__(young.mechanisms[0][0], name, before)
        young.mechanisms[0][0].__dict__.pop("scale", None)
    assert curator.ledger.spent == spent


def test_a_marginal_that_is_charged_never_twice_or_is_none_is_refused():
    curator, rows, _ = build()
    young = curator.calibration.prepare([YOUNG], TENTH)
    for stacks in ((), ((0,), (0,)), ((0, 0),), ((0,), (7,)), ((-1,),)):
        (found,) = outcomes(curator, [MeasurementOrder(replace(young, stacks=stacks))])
        assert isinstance(found, ParameterError)
        with pytest.raises(ParameterError, match="never or twice"):
            curator.perform(replace(young, stacks=stacks))
    assert (rows.looks, curator.ledger.spent.units) == (0, 0)


def test_answers_are_told_as_they_come_where_looks_take_long(clock):
    curator, rows, calls = build()

    def slow(number):
        clock.now += 1.0 if number == 2 else 0.001

    rows.at_look = slow
    young = curator.calibration.prepare([YOUNG], TENTH)
    portions = list(curator.perform_all([MeasurementOrder(young, name) for name in "abcd"]))
    assert [[place for place, _ in portion] for portion in portions] == [[0, 1], [2, 3]]
    assert calls == ["charge 4", "look", "look", "keep 2", "look", "look", "keep 2"]


def test_a_look_that_fails_is_paid_and_looked_at_again_under_its_request():
    curator, rows, _ = build()

    def fail(number):
        if number == 2:
            raise SourceError("the engine could not read the table")

    rows.at_look = fail
    young = curator.calibration.prepare([YOUNG], TENTH)
    orders = [MeasurementOrder(young, name) for name in "abc"]
    found = outcomes(curator, orders)
    assert [type(one) for one in found] == [list, SourceError, list]
    spent = curator.ledger.spent
    again = outcomes(curator, orders)
    assert [type(one) for one in again] == [list, list, list]
    assert (curator.ledger.spent, rows.looks) == (spent, 4)
    assert [one[0].value for one in (again[0], again[2])] == [one[0].value for one in (found[0], found[2])]


def test_a_kill_between_debit_and_answer_pays_nothing_twice():
    curator, rows, _ = build()
    orders = [MeasurementOrder(curator.calibration.prepare([YOUNG], TENTH), name) for name in "abc"]

    def die(number):
        if number == 2:
            raise Killed

    rows.at_look = die
    with pytest.raises(Killed):
        outcomes(curator, orders)
    spent = curator.ledger.spent
    rows.at_look = lambda number: None
    assert all(len(answers) == 1 for answers in outcomes(curator, orders))
    assert curator.ledger.spent == spent


def test_a_ledger_that_fails_is_told_before_anybody_looks():
    curator, rows, _ = build()

    def gone(wanted):
        raise LedgerError("the disk is full", remedy="Free some space")

    curator.ledger.charge_all = gone
    with pytest.raises(LedgerError):
        list(curator.perform_all([MeasurementOrder(curator.calibration.prepare([YOUNG], TENTH))]))
    assert rows.looks == 0


def test_prepared_questions_run_together_and_speak_the_currency_that_was_asked_in():
    curator, _, _ = build(budget=1)
    project = Project(curator.declaration, curator)
    first, second = (
        project.prepare("count age < 3", epsilon=0.1),
        project.prepare("share by sex", epsilon=0.1),
    )
    dear = project.prepare("count", epsilon=0.1), project.prepare("count age < 5", epsilon=3)
    purchases = [
        QuestionPurchase(first, "a"),
        QuestionPurchase(second, "b", "ada"),
        QuestionPurchase(dear[0], "public"),
        QuestionPurchase(dear[1], "dear"),
        QuestionPurchase(first, "no#name"),
    ]
    found = {}
    for portion in project.run_all(purchases):
        found.update(portion)
    assert found[0].value == first.run(request="a").value
    assert found[1].unit == "share of all rows"
    assert (found[2].source, found[2].cost.units) == ("public", 0)
    assert isinstance(found[3], InsufficientBudgetError)
    assert isinstance(found[4], ParameterError)
    assert project.ledger.spent_by()["ada"].units == found[1].cost.units > 0
