"""DualQuery by its exact law on a small table, and in full on a class that it must learn."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, product
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray

from statistical import assert_at_most, assert_covers
from understudy_textbook.dual_query import DualQueryParams, dual_query_eps, dual_query_params, dual_query_rho

Array = NDArray[np.float64]

QUERIES = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
"""Two queries on three records, each with its complement."""


def weights(rates: Array, records: tuple[int, ...], eta: float) -> Array:
    """∝ exp(η Σₛ (q(D) - q(xₛ))): queries on which the records so far are too small weigh more."""
    logs = eta * (len(records) * rates - QUERIES[:, list(records)].sum(axis=1))
    raised = np.exp(logs - logs.max())
    return raised / raised.sum()


def best_record(drawn: tuple[int, ...]) -> int:
    return int(QUERIES[list(drawn)].sum(axis=0).argmax())


def transcript_law(
    rows: tuple[int, ...], params: DualQueryParams
) -> dict[tuple[tuple[int, ...], ...], float]:
    """The probability of all draws of all rounds."""
    rates = QUERIES[:, list(rows)].mean(axis=1)
    law: dict[tuple[tuple[int, ...], ...], float] = {(): 1.0}
    for _ in range(params.T):
        longer = {}
        for drawn, chance in law.items():
            now = weights(rates, tuple(map(best_record, drawn)), params.eta)
            for draws in product(range(len(QUERIES)), repeat=params.s):
                longer[*drawn, draws] = chance * float(now[list(draws)].prod())
        law = longer
    return law


@cache
def losses(n: int, params: DualQueryParams) -> tuple[float, float]:
    """The largest privacy loss between neighbours, and the largest expected one."""
    tables = list(combinations_with_replacement(range(3), n))
    laws = {table: np.array(list(transcript_law(table, params).values())) for table in tables}
    worst, mean = 0.0, 0.0
    for here, there in product(tables, repeat=2):
        if sum(abs(here.count(x) - there.count(x)) for x in range(3)) == 2:
            loss = np.log(laws[here]) - np.log(laws[there])
            worst, mean = max(worst, float(loss.max())), max(mean, float(laws[here] @ loss))
    return worst, mean


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize(
    "params", [DualQueryParams(3, 0.2, 1), DualQueryParams(3, 0.5, 2), DualQueryParams(4, 1.0, 1)]
)
def test_gghrw14_the_price_on_the_exact_law(n, params):
    """No transcript of any two neighbours tells more than ηT(T-1)s/n, and half of that is too little; so for ρ."""
    worst, mean = losses(n, params)
    assert worst <= dual_query_eps(n, params) * (1 + 1e-9)
    assert mean <= dual_query_rho(n, params) * (1 + 1e-9)  # zCDP bounds every order, 1 among them
    assert worst > 0.5 * dual_query_eps(n, params)
    assert mean > 0.6 * dual_query_rho(n, params)


def played(rates: Array, queries: Array, params: DualQueryParams, draw: np.random.Generator) -> float:
    """The largest error of the records that it finds."""
    logs, found = np.zeros(len(queries)), np.zeros(queries.shape[1])
    for _ in range(params.T):
        now = np.exp(logs - logs.max())
        counts = draw.multinomial(params.s, now / now.sum())
        record = int((counts @ queries).argmax())
        found[record] += 1
        logs += params.eta * (rates - queries[:, record])
    return float(np.abs(queries @ found / params.T - rates).max())


def test_gghrw14_records_answer_all_queries():
    """All within α but for β: T = ⌈16 ln|Q|/α²⌉ rounds of s = ⌈48 ln(2|X|T/β)/α²⌉ draws with η = α/4."""
    draw, alpha, beta = np.random.default_rng(0), 0.25, 0.05
    errors, few, idle = [], [], []
    for _ in range(10):
        half = draw.integers(0, 2, (20, 40)).astype(float)
        queries = np.concatenate([half, 1 - half])
        rates = queries @ draw.dirichlet(np.full(40, 0.1))
        params = dual_query_params(len(queries), 40, alpha, beta)
        assert int(16 * log(40) / alpha**2) + 1 == params.T
        errors.append(played(rates, queries, params, draw) / alpha)
        few.append(played(rates, queries, DualQueryParams(3, params.eta, params.s), draw) / alpha)
        idle.append(played(rates, queries, DualQueryParams(params.T, 0.0, params.s), draw) / alpha)
    assert_covers(errors, beta, mutant=0.01)  # a theorem for the worst table, far from these
    for mutant in (few, idle):  # three rounds do not learn it, nor do weights that stay
        with pytest.raises(AssertionError):
            assert_at_most(sum(error > 1 for error in mutant), len(mutant), beta)
