"""AIM: its price, its annealing, its resumption, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest

from adaptive_table import (
    ADD,
    DOMAIN,
    REPLACE,
    codes,
    independent,
    make,
    mean_tvd,
)
from counted import Killed, Rows
from release_runs import covered, same
from understudy.errors import RefusedError
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.query.workload import Workload
from understudy.releases.aim import aim

PAIRS = Workload.all_marginals(DOMAIN, 2)


@pytest.mark.parametrize("neighbours", [ADD, REPLACE])
@pytest.mark.parametrize("epsilon", [0.05, 1, 20])
def test_the_price_is_spent_and_never_exceeded(neighbours, epsilon):
    run = make(epsilon=epsilon, neighbours=neighbours, workload=PAIRS)
    outcome = aim(run)
    ledger = run.curator.ledger
    total = ledger.budget.total([debit.event for debit in ledger.debits()])
    assert total.units == run.spent.units
    assert 0.999 * ledger.budget.cap.units <= total.units <= ledger.budget.cap.units
    assert outcome.proof["rounds"] <= 16 * len(DOMAIN)


def test_a_round_takes_nine_tenths_for_its_measurement():
    run = make(workload=PAIRS)
    aim(run)
    prices = {step.name: step.cost.units for step in run.steps}
    for t in range(1, 4):
        measure, select = prices[f"round {t} measure"], prices[f"round {t} select"]
        assert measure / (measure + select) == pytest.approx(0.9, abs=1e-3)


def test_better_than_independent_attributes_and_covered():
    run = make(epsilon=3)
    outcome = aim(run)
    assert mean_tvd(run, outcome) < 0.4 * mean_tvd(run, independent(run))
    assert covered(run, outcome)
    assert {a.basis for a in outcome.answers} <= {"measured", "bounded"}


def test_a_run_that_was_killed_goes_on():
    whole = make(epsilon=0.3, workload=PAIRS)
    expected = aim(whole)
    for last in range(0, whole.curator._truth.looks, 7):
        ledger = MemoryLedger(Budget.of(0.3, 1e-6))
        dying = Rows(DOMAIN, codes(), dies_at=last)
        first = make(epsilon=0.3, workload=PAIRS, ledger=ledger, truth=dying)
        with pytest.raises(Killed):
            aim(first)
        again = make(epsilon=0.3, workload=PAIRS, ledger=ledger)
        again.curator._noise = first.curator._noise
        again.check_affordable = lambda worst: None
        assert same(aim(again), expected)


def test_decisions_depend_on_released_values_alone():
    ledger = MemoryLedger(Budget.of(1, 1e-6))
    expected = aim(make(ledger=ledger, workload=PAIRS))
    other = Rows(DOMAIN, codes(seed=4), dies_at=0)  # it is never looked at: all answers are in the ledger
    again = make(ledger=ledger, workload=PAIRS, truth=other)
    again.check_affordable = lambda worst: None
    assert same(aim(again), expected)


def test_the_model_stays_within_its_limit():
    run = make(epsilon=10)
    outcome = aim(run, model_bytes=8 * 400)
    assert outcome.proof["cells"] <= 400
    assert np.isfinite(outcome.rows)


def test_a_pure_budget_is_refused():
    run = make(delta=0)
    with pytest.raises(RefusedError, match="mwem"):
        aim(run)
    assert run.curator._truth.looks == 0
