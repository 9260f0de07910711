"""Averages, sums and quantiles in a session: what a band for ranges tells of them, for nothing."""

from __future__ import annotations

import numpy as np
import pytest

import understudy as us
from session_analysts import attributes, conjunction, table_of
from session_analysts import curator as curator_over
from understudy.declaration.file import parse
from understudy.noise.samplers import SeededNoise
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions.direct import intervals, running_sums
from understudy.sessions.knowledge import IntervalTable
from understudy.sessions.session import session as session_of
from understudy.sessions.terms import ranges
from understudy.sessions.weighted_sums import weighted_intervals
from understudy_demo import town

TRUTH = table_of(attributes({"age": 10}, {"sex": 3, "town": 6}), 4000, 8)
DOMAIN = TRUTH.domain


def weighted(weights, by=(), **sides) -> Marginal:
    where = LinearQuery.table(DOMAIN, ("age",), weights) & LinearQuery.conjunction(DOMAIN, sides)
    return Marginal(DOMAIN, by, where)


def exactly(marginal: Marginal) -> IntervalTable:
    known = np.asarray(TRUTH.exact(marginal), float)
    return IntervalTable(known, known)


@pytest.mark.parametrize(
    "weights", [np.linspace(0, 1, 10), np.linspace(1, 0.2, 10), [0, 0.5, 0.5, 1, 1, 0.3, 0, 0, 1, 0.9]]
)
@pytest.mark.parametrize("by", [(), ("town",)])
def test_levels_of_weights_add_up_to_the_sum(weights, by):
    marginal = weighted(weights, by, sex=np.arange(3) < 2)
    found = weighted_intervals(marginal, exactly)
    assert found is not None
    assert found.low == pytest.approx(TRUTH.exact(marginal))
    assert found.high == pytest.approx(found.low)


def test_a_sum_with_rising_weights_costs_nothing_once_ranges_are_known():
    session = session_of(curator_over(TRUTH, seed=2), alpha=0.02, queries=100, classes=[ranges("age")])
    asked = weighted(np.linspace(0, 1, 10))
    found = session.ask_marginal(asked)
    assert (found.source, found.cost.units) == ("implied", 0)
    assert found.error <= session.width
    assert abs(found.value - TRUTH.exact(asked)) <= found.error
    uneven = weighted([0, 1, 0.2, 0.9, 0.1, 1, 0, 0.8, 0.3, 1])  # its levels are no ranges
    assert session.ask_marginal(uneven).source == "measured"


def test_weights_on_two_attributes_are_not_taken_apart():
    both = weighted(np.linspace(0, 1, 10)).where & LinearQuery.table(DOMAIN, ("town",), np.linspace(0, 1, 6))
    assert weighted_intervals(Marginal.of(both), exactly) is None
    assert weighted_intervals(weighted(np.linspace(0, 1, 10), ("age",)), exactly) is None


def test_running_sums_are_as_narrow_as_the_band():
    session = session_of(curator_over(TRUTH, seed=2), alpha=0.02, queries=100, classes=[ranges("age", "sex")])
    for marginal in (Marginal(DOMAIN, ("age",)), Marginal(DOMAIN, ("age", "sex"))):
        ends = running_sums(session._known.knowledge, marginal, "age")
        assert ends is not None
        true = np.cumsum(TRUTH.exact(marginal), axis=0)
        assert (ends[0] <= true).all()
        assert (true <= ends[1]).all()
        assert (ends[1] - ends[0]).max() <= 2 * session.width
    assert running_sums(session._known.knowledge, Marginal(DOMAIN, ("sex",)), "age") is None
    cells = intervals(session._known.knowledge, Marginal(DOMAIN, ("age",)))
    assert cells is not None
    assert np.cumsum(cells.high - cells.low)[-1] > 5 * session.width


def test_a_median_is_as_narrow_as_the_band_of_ranges():
    edges = ", ".join(str(edge) for edge in range(0, 110, 5))
    declared = parse(
        f"""
understudy: 1
name: town
source: town.parquet
budget: {{epsilon: 100, delta: 1e-9}}
neighbours: replace
attributes:
  age: {{type: integer, edges: [{edges}]}}
  smoker: {{type: boolean}}
"""
    )
    people = town.people(5000)
    widths = {}
    for classes in ((), (ranges("age"),)):
        project = us.Project.frame(people, declared, noise=SeededNoise(4))
        session = us.session(project, alpha=0.02, queries=100, classes=classes)
        [[found]] = session.ask("SELECT median(age) FROM town").cells
        ages = np.asarray(people["age"])
        assert found.low <= float(np.median(ages)) <= found.high
        widths[bool(classes)] = found.high - found.low
    assert widths[True] <= 10
    assert widths[True] < widths[False] / 2


def test_a_conjunction_is_no_weighted_sum():
    session = session_of(curator_over(TRUTH, seed=2), alpha=0.02, queries=100, classes=[ranges("age")])
    assert session.ask_marginal(conjunction(DOMAIN, {"age": np.arange(10) < 4})).source == "implied"
