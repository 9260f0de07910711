from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from statistical import assert_at_most
from understudy.curator.candidates import Candidate, WorstCandidate
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, Protect, SourceSpec, Unit
from understudy.domain.attribute import Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import (
    HandleClosedError,
    InsufficientBudgetError,
    ParameterError,
    ProtectionError,
    QueryError,
    RefusedError,
    RequestConflictError,
    SourceChangedError,
    SourceError,
)
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import Selection
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.table.source import in_memory, open_source
from understudy.table.truth import Truth

DOMAIN = Domain((Bins.integers("age", 0, 9), Categories(name="sex", values=("F", "M"))))
AGES = [i % 10 for i in range(200)]
TABLE = pa.table({"age": AGES, "sex": ["F", "M"] * 100, "who": [i // 4 for i in range(200)]})
YOUNG = Marginal.of(LinearQuery.conjunction(DOMAIN, {"age": np.arange(10) < 3}))
HALF = Marginal.of(LinearQuery.conjunction(DOMAIN, {"age": np.linspace(0, 1, 10)}))
BY_SEX = Marginal(DOMAIN, ("sex",))


def curator(*, epsilon=1.0, delta=0.0, source=None, seed=1, **declared) -> Curator:
    declaration = Declaration(
        name="t", source=SourceSpec("-"), domain=DOMAIN, budget=Budget.of(epsilon, delta), **declared
    )
    truth = Truth(source or in_memory(TABLE), DOMAIN, declaration.unit)
    return Curator(truth, MemoryLedger(declaration.budget), declaration, noise=SeededNoise(seed))


class Spy:
    """A truth that notes when it is looked at."""

    def __init__(self, truth, ledger):
        self._truth = truth
        self._ledger = ledger
        self.seen: list[int] = []

    def sums_of(self, *args, **kwargs):
        self.seen.append(self._ledger.spent.units)
        return self._truth.sums_of(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._truth, name)


def test_the_charge_comes_before_the_look():
    c = curator()
    c._truth = Spy(c._truth, c.ledger)
    c.measure(YOUNG, epsilon=0.25)
    assert c._truth.seen == [UNITS // 4]


def test_a_refused_question_costs_nothing_and_is_never_looked_at():
    c = curator()
    c._truth = Spy(c._truth, c.ledger)
    with pytest.raises(InsufficientBudgetError) as refused:
        c.measure(YOUNG, epsilon=1.5)
    assert (refused.value.requested, refused.value.remaining) == (1.5, 1.0)
    for bad in (0, -1, float("nan"), float("inf"), 1e308, "1"):
        with pytest.raises(ParameterError):
            c.measure(YOUNG, epsilon=bad)
    with pytest.raises(ParameterError):
        c.measure(YOUNG)
    with pytest.raises(ParameterError):
        c.measure(YOUNG, epsilon=0.1, rho=0.1)
    for beta in (0, 1, -0.1, float("nan")):
        with pytest.raises(ParameterError):
            c.measure(YOUNG, epsilon=0.1, beta=beta)
    with pytest.raises(QueryError):
        c.measure(Marginal(Domain((DOMAIN["sex"],)), ()), epsilon=0.1)
    with pytest.raises(RefusedError, match="delta"):
        c.measure(YOUNG, rho=0.1)
    assert c._truth.seen == []
    assert c.ledger.spent.units == 0


def test_several_at_once_are_all_paid_or_none():
    c = curator()
    with pytest.raises(InsufficientBudgetError):
        c.measure_all([YOUNG, BY_SEX], Price.of(epsilon=0.6))
    assert c.ledger.spent.units == 0
    one, two = c.measure_all([YOUNG, BY_SEX], Price.of(epsilon=0.5))
    assert one.value.shape == ()
    assert two.value.shape == (3,)
    assert c.ledger.remaining.units == 0
    assert c.measure_all([], Price.of(epsilon=0.5)) == []


def test_the_budget_can_be_spent_to_the_last_unit_and_not_beyond():
    c = curator()
    for _ in range(10):
        c.measure(YOUNG, epsilon=0.1)
    assert c.ledger.remaining.units == 0
    with pytest.raises(InsufficientBudgetError):
        c.measure(YOUNG, epsilon=1e-12)


def test_threads_cannot_overspend():
    c = curator()
    granted = []

    def spend():
        for _ in range(20):
            try:
                granted.append(c.measure(YOUNG, epsilon=0.01).cost.units)
            except InsufficientBudgetError:
                return

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == UNITS == c.ledger.spent.units


def test_error_bars_hold_and_a_narrower_one_does_not():
    c = curator(epsilon=1000)
    trials = 2000
    answers = [c.measure(BY_SEX, epsilon=0.4, beta=0.1) for _ in range(trials)]
    errors = np.array([np.abs(a.noisy - [100, 100, 0]).max() for a in answers])
    promised = float(answers[0].error[0])
    assert_at_most(int((errors > promised).sum()), trials, 0.1)
    with pytest.raises(AssertionError):
        assert_at_most(int((errors > promised * 0.7).sum()), trials, 0.1)
    assert all((a.value >= 0).all() and (a.value <= 200).all() for a in answers)


def test_gaussian_answers_are_paid_in_rho():
    c = curator(epsilon=1, delta=1e-6)
    answer = c.measure(BY_SEX, rho=0.01)
    assert answer.cost.currency == "rho"
    assert answer.cost.amount == 0.01
    assert c.measure(YOUNG, epsilon=0.1).cost.amount == pytest.approx(0.005)


def test_what_is_public_is_free_and_exact():
    c = curator()
    answer = c.measure(Marginal(DOMAIN, ()), epsilon=0.5)
    assert (float(answer.value), float(answer.error), answer.cost.units) == (200, 0, 0)
    assert answer.source == "public"
    assert c.rows == 200


def test_add_remove_keeps_the_number_of_rows_private():
    c = curator(neighbours=Neighbours.ADD_REMOVE)
    with pytest.raises(RefusedError, match="private"):
        _ = c.rows
    with pytest.raises(RefusedError, match="at_least"):
        _ = c.rows_at_least
    answer = c.measure(Marginal(DOMAIN, ()), epsilon=0.5)
    assert float(answer.error) > 0
    assert answer.cost.amount == 0.5
    with pytest.raises(RefusedError, match="at_most"):
        c.measure(HALF, epsilon=0.1)
    assert curator(neighbours=Neighbours.ADD_REMOVE, rows_at_least=50).rows_at_least == 50


def test_units_multiply_the_noise():
    one = curator(neighbours=Neighbours.ADD_REMOVE)
    three = curator(neighbours=Neighbours.ADD_REMOVE, unit=Unit("who", 3))
    assert float(three.measure(YOUNG, epsilon=0.1).error) > 2.8 * float(one.measure(YOUNG, epsilon=0.1).error)


@pytest.mark.parametrize("bounds", [{}, {"neighbours": Neighbours.ADD_REMOVE, "rows_at_most": 10**6}])
def test_real_weights_are_rounded_to_the_lattice_and_the_rounding_is_in_the_error(bounds):
    c = curator(epsilon=1000, **bounds)
    mechanism, resolution = c.calibration.mechanism(HALF, Price.of(epsilon=1))
    assert resolution >= 128 * 200
    bound = c.rows_at_most
    assert c.calibration.error(HALF, mechanism, resolution, 0.05) > mechanism.error(0.05) / resolution
    assert bound / (2 * resolution) < 0.01
    truth = sum(np.linspace(0, 1, 10)[a] for a in AGES)
    answer = c.measure(HALF, epsilon=900)
    assert abs(float(answer.noisy) - truth) <= float(answer.error)


def test_a_tiny_price_coarsens_the_lattice_instead_of_overflowing():
    c = curator()
    _, resolution = c.calibration.mechanism(HALF, Price.of(epsilon=1e-11))
    assert resolution < 128 * 200
    c.measure(HALF, epsilon=1e-11)


def test_price_of_an_error_is_the_smallest():
    c = curator()
    price = c.calibration.price_of(BY_SEX, error=30, beta=0.05)
    mechanism, resolution = c.calibration.mechanism(BY_SEX, price)
    assert c.calibration.error(BY_SEX, mechanism, resolution, 0.05) <= 30
    cheaper, resolution = c.calibration.mechanism(BY_SEX, price * Fraction(99, 100))
    assert c.calibration.error(BY_SEX, cheaper, resolution, 0.05) > 30
    assert c.ledger.spent.units == 0
    with pytest.raises(ParameterError):
        c.calibration.price_of(BY_SEX, error=-1)


def test_request_ids():
    c = curator()
    first = c.measure(YOUNG, epsilon=0.1, request="r1")
    again = c.measure(YOUNG, epsilon=0.1, request="r1")
    assert (again.noisy, again.error, again.cost) == (first.noisy, first.error, first.cost)
    assert c.ledger.spent.units == UNITS // 10
    with pytest.raises(RequestConflictError):
        c.measure(BY_SEX, epsilon=0.1, request="r1")
    with pytest.raises(RequestConflictError):
        c.measure(YOUNG, epsilon=0.2, request="r1")
    assert c.ledger.spent.units == UNITS // 10


def test_a_failed_look_keeps_the_debit_and_may_be_completed_once(tmp_path):
    c = curator()
    whole = c._truth

    class Broken:
        def __getattr__(self, name):
            return getattr(whole, name)

        def sums_of(self, *args, **kwargs):
            raise SourceError("the connection was lost")

    c._truth = Broken()
    with pytest.raises(SourceError):
        c.measure(YOUNG, epsilon=0.1, request="r")
    assert c.ledger.spent.units == UNITS // 10
    c._truth = whole
    answer = c.measure(YOUNG, epsilon=0.1, request="r")
    assert c.ledger.spent.units == UNITS // 10
    assert c.measure(YOUNG, epsilon=0.1, request="r").noisy == answer.noisy


def test_a_table_that_changed_is_refused_before_the_charge(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age,sex\n1,F\n")
    c = curator(source=open_source(SourceSpec("t.csv"), base=tmp_path))
    c.measure(YOUNG, epsilon=0.1)
    path.write_text("age,sex\n1,F\n2,M\n")
    with pytest.raises(SourceChangedError):
        c.measure(YOUNG, epsilon=0.1)
    path.unlink()
    with pytest.raises(SourceError):
        c.measure(YOUNG, epsilon=0.1)
    assert c.ledger.spent.units == UNITS // 10


def test_exact_values_only_under_validity():
    with pytest.raises(ProtectionError):
        curator().exact(YOUNG)
    assert int(curator(protect=Protect.VALIDITY).exact(YOUNG)) == 60


def test_selection_finds_the_worst_guess():
    c = curator(epsilon=1000)
    candidates = [
        Candidate(YOUNG.where, Fraction(60)),
        Candidate(LinearQuery.conjunction(DOMAIN, {"sex": [1, 0, 0]}), Fraction(0)),
        Candidate(LinearQuery.conjunction(DOMAIN, {"age": np.arange(10) == 9}), Fraction("19.5")),
    ]
    assert c.choose(candidates, epsilon=2) == 1
    assert c.ledger.spent.amount == 2
    with pytest.raises(ParameterError):
        c.choose([], epsilon=1)
    with pytest.raises(QueryError):
        c.choose([Candidate(HALF.where, Fraction(1))], epsilon=1)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_choice_is_recorded_under_its_queries_and_guesses(neighbours: Neighbours) -> None:
    """As version 0.1 recorded it: a request of that time is answered again, and costs nothing."""
    c = curator(epsilon=4, neighbours=neighbours)
    candidates = [
        Candidate(YOUNG.where, Fraction(123, 2)),
        Candidate(LinearQuery.everyone(DOMAIN), Fraction(0)),
    ]
    chosen = c.choose(candidates, epsilon=1, request="r")
    debit = c.ledger.find("r")
    assert debit is not None
    named = [Marginal.of(candidate.query).key for candidate in candidates]
    assert debit.question == f"choose {named[0]}?62 {named[1]}?0"
    assert debit.event == Selection(epsilon=Fraction(1))
    assert (c.choose(candidates, epsilon=1, request="r"), c.ledger.spent) == (chosen, debit.cost)
    look = WorstCandidate.of(candidates, 1, c.relation)
    assert look.mechanism.sensitivity == c.calibration.sensitivity(YOUNG).l1
    assert look.event_under(c.relation) == look.event == debit.event


def test_a_choice_that_was_made_for_other_neighbours_is_refused_before_the_charge() -> None:
    c = curator(unit=Unit("who", 4), neighbours=Neighbours.ADD_REMOVE)
    look = WorstCandidate.of([Candidate(YOUNG.where, Fraction(5))], 1, curator().relation)
    with pytest.raises(ParameterError, match="must be charged the event of the noise"):
        c._buy(look)
    assert c.ledger.spent.units == 0


def test_sparse_vector_is_charged_once_and_closes():
    c = curator(epsilon=1000)
    handle = c.sparse(threshold=30, epsilon=50, hits=2, request="sv")
    spent = c.ledger.spent.units
    low = LinearQuery.conjunction(DOMAIN, {"age": np.arange(10) == 0, "sex": [0, 1, 0]})
    for _ in range(20):
        assert handle.ask(low) is False
    assert handle.ask(YOUNG.where) is True
    again = c.sparse(threshold=30, epsilon=50, hits=2, request="sv")  # the same handle, never started afresh
    assert again.hits_left == handle.hits_left == 1
    assert again.ask(YOUNG.where, guess=0) is True
    with pytest.raises(HandleClosedError):
        handle.ask(low)
    with pytest.raises(QueryError):
        c.sparse(threshold=1, epsilon=1).ask(HALF.where)
    assert c.ledger.spent.units - spent == UNITS


def test_numeric_sparse_tells_the_value():
    c = curator(epsilon=1000)
    handle = c.sparse(threshold=30, epsilon=300, hits=1, numeric=True)
    assert handle.ask(YOUNG.where, guess=60) is None
    assert abs(handle.ask(YOUNG.where) - 60) <= 5
    assert handle.hits_left == 0


def test_guesses_cannot_turn_a_comparison_into_an_error():
    """Otherwise whether it fails would tell, for next to nothing, on which side of the guess the count lies."""
    c = curator()
    for guess in (2**62 + 50, -(2**63 - 1 - 50), 2**60 + 1):
        with pytest.raises(ParameterError, match="guess"):
            c.choose(
                [Candidate(YOUNG.where, Fraction(guess)), Candidate(YOUNG.where, Fraction(0))], epsilon=1e-9
            )
        handle = c.sparse(threshold=1, epsilon=0.01)
        with pytest.raises(ParameterError, match="guess"):
            handle.ask(YOUNG.where, guess=guess)


def test_a_choice_among_weights_other_than_0_and_1_is_refused_as_a_question():
    """Also where no weight is 1, so that nobody moves a whole count."""
    c = curator()
    halves = LinearQuery.conjunction(DOMAIN, {"age": (np.arange(10) < 3) / 2})
    for query in (halves, HALF.where):
        with pytest.raises(QueryError, match="weights must be 0 or 1"):
            c.choose([Candidate(query, Fraction(0))], epsilon=0.1)
    assert c.ledger.spent.units == 0


def test_queries_of_another_domain_are_refused_everywhere():
    """A query over more cells would be added up once for each of them."""
    other = Domain((Bins.integers("age", 0, 999), DOMAIN["sex"]))
    foreign = LinearQuery.conjunction(other, {"age": np.ones(1000) * (np.arange(1000) > 0)})
    c = curator()
    with pytest.raises(QueryError, match="another domain"):
        c.choose([Candidate(foreign, Fraction(0))], epsilon=0.1)
    with pytest.raises(QueryError, match="another domain"):
        c.measure(Marginal.of(foreign), epsilon=0.1)
    assert c.ledger.spent.units == 0
    with pytest.raises(QueryError, match="another domain"):
        c.sparse(threshold=1, epsilon=0.1).ask(foreign)
    with pytest.raises(QueryError, match="another domain"):
        curator(protect=Protect.VALIDITY).exact(Marginal.of(foreign))


def test_what_is_too_large_is_refused_before_the_charge(monkeypatch):
    monkeypatch.setattr("understudy.table.truth.CELL_LIMIT", 5)
    c = curator()
    with pytest.raises(QueryError, match="cells"):
        c.measure(Marginal(DOMAIN, ("age", "sex")), epsilon=0.1)
    assert c.ledger.spent.units == 0


def test_gaussian_noise_on_real_weights_of_many_rows():
    c = curator(epsilon=1, delta=1e-6, neighbours=Neighbours.ADD_REMOVE, rows_at_most=2**25)
    answer = c.measure(HALF, rho=0.01)
    assert float(answer.error) < 100


def test_a_request_id_does_not_survive_other_bins():
    coarse = Domain((Bins.between("age", [0, 5, 9]), DOMAIN["sex"]))
    fine = Domain((Bins.between("age", [0, 1, 9]), DOMAIN["sex"]))
    assert Marginal(coarse, ("age",)).key != Marginal(fine, ("age",)).key


# ---- one version of the table


def reopened(folder, rows, ledger, **declared) -> Curator:
    """A Curator over a file that was written anew."""
    path = folder / "people.parquet"
    path.unlink(missing_ok=True)
    parquet.write_table(rows, path)
    domain = declared.pop("domain", DOMAIN)
    declaration = Declaration(
        name="t", source=SourceSpec("people.parquet"), domain=domain, budget=Budget.of(10), **declared
    )
    truth = Truth(open_source(declaration.source, base=folder), domain, declaration.unit)
    return Curator(truth, ledger, declaration, noise=SeededNoise(1))


def one_age(age, domain=DOMAIN) -> Marginal:
    return Marginal.of(LinearQuery.conjunction(domain, {"age": np.arange(10) == age}))


def test_disjoint_questions_about_one_version_cost_as_one_and_about_two_versions_as_two(tmp_path):
    """A person may have moved from one question's region to the other's before the table was written again."""
    ledger = MemoryLedger(Budget.of(10))
    first = reopened(tmp_path, TABLE, ledger, neighbours=Neighbours.ADD_REMOVE)
    first.measure(one_age(1), epsilon=1)
    first.measure(one_age(2), epsilon=1)
    assert ledger.spent.amount == 1
    again = Curator(first._truth, ledger, first.declaration)
    again.measure(one_age(3), epsilon=1)
    assert ledger.spent.amount == 1
    moved = TABLE.set_column(0, "age", pa.array(AGES[::-1]))
    reopened(tmp_path, moved, ledger, neighbours=Neighbours.ADD_REMOVE).measure(one_age(2), epsilon=1)
    assert ledger.spent.amount == 2


def test_another_declaration_of_the_same_rows_is_another_version(tmp_path):
    ledger = MemoryLedger(Budget.of(10))
    unit = Unit("who", 1)
    settings = {"neighbours": Neighbours.ADD_REMOVE, "unit": unit}
    first = reopened(tmp_path, TABLE, ledger, **settings)
    first.measure(one_age(1), epsilon=1)
    wider = Domain((*DOMAIN.attributes, Bins.integers("who", 0, 49)))
    declaration = Declaration(
        name="t", source=SourceSpec("people.parquet"), domain=wider, budget=Budget.of(10), **settings
    )
    source = open_source(declaration.source, base=tmp_path)
    second = Curator(Truth(source, wider, unit), ledger, declaration, noise=SeededNoise(2))
    second.measure(one_age(2, wider), epsilon=1)
    assert ledger.spent.amount == 2


def test_an_attribute_that_is_cut_or_read_otherwise_has_another_identity():
    fine = Bins.between("x", [1_000_000.0, 1_000_000.5, 1_000_002.0])
    coarse = Bins.between("x", [1_000_000.0, 1_000_001.0, 1_000_002.0])
    assert fine.labels == coarse.labels
    assert len({fine.identity, coarse.identity, replace(fine, column="y").identity}) == 3
    keys = {
        Marginal(Domain((attribute,)), ("x",)).key
        for attribute in (fine, coarse, replace(fine, column="y"), replace(fine, outside=Outside.OTHER))
    }
    assert len(keys) == 4


def test_a_debit_for_another_version_that_was_never_answered_is_not_answered_from_this_one(tmp_path):
    ledger = MemoryLedger(Budget.of(10))
    first = reopened(tmp_path, TABLE, ledger)
    first._truth.sums_of = lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        first.measure(YOUNG, epsilon=1, request="mine")
    answered = reopened(tmp_path, TABLE, ledger)
    with pytest.raises(RequestConflictError):
        answered.measure(YOUNG, epsilon=1, request="mine")


def test_a_sparse_vector_whose_opening_was_interrupted_is_opened_by_the_next():
    """The charge and the first state are one transaction; in 0.1 they were two, and a crash came between them."""
    c = curator()
    charge = c.ledger.charge

    def charged(*args, hidden, **kwargs):
        charge(*args, **kwargs)
        raise KeyboardInterrupt

    c.ledger.charge = charged
    with pytest.raises(KeyboardInterrupt):
        c.sparse(threshold=10, epsilon=0.5, request="mine")
    c.ledger.charge = charge
    assert c.ledger.hidden(c.ledger.find("mine")) is None
    handle = c.sparse(threshold=10, epsilon=0.5, request="mine")
    assert handle.hits_left == 1
    state = c.ledger.hidden(c.ledger.find("mine"))
    c.sparse(threshold=10, epsilon=0.5, request="mine")
    assert c.ledger.hidden(c.ledger.find("mine")) == state
    assert c.ledger.spent.amount == 0.5


def test_noise_that_cannot_be_drawn_is_refused_before_it_is_paid_for():
    c = curator(epsilon=900, delta=1e-6)
    with pytest.raises(ParameterError):
        c._buy(Strategy(BY_SEX, (np.array([[2**22, 0, 0]]),), c.relation, Price.of(epsilon=1e-12)))
    with pytest.raises(ParameterError):
        c._buy(Strategy(BY_SEX, (np.array([[2**22, 0, 0]]),), c.relation, Price.of(rho=1e-12)))
    with pytest.raises(ParameterError):
        c.measure(BY_SEX, epsilon=1e-13)
    assert c.ledger.spent.units == 0


def test_a_request_that_was_answered_from_another_version_of_a_file_is_another_one(tmp_path):
    """Else a resumed run or session would mix two tables, and certify what is true of neither."""
    ledger = MemoryLedger(Budget.of(10))
    first = reopened(tmp_path, TABLE, ledger)
    answer = first.measure(YOUNG, epsilon=1, request="mine")
    assert first.measure(YOUNG, epsilon=1, request="mine").value == answer.value
    with pytest.raises(RequestConflictError):
        reopened(tmp_path, TABLE, ledger).measure(YOUNG, epsilon=1, request="mine")
    first = reopened(tmp_path, TABLE, ledger)
    first.sparse(threshold=5, epsilon=1, request="sparse")
    with pytest.raises(RequestConflictError):
        reopened(tmp_path, TABLE, ledger).sparse(threshold=5, epsilon=1, request="sparse")
