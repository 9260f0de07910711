"""Averages, sums and quantiles in a session: what a band for ranges tells of them, for nothing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import understudy as us
from session_analysts import attributes, conjunction, table_of
from session_analysts import curator as curator_over
from understudy.declaration.file import parse
from understudy.noise.samplers import SeededNoise
from understudy.privacy.limits import Limits
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions import quantile_search
from understudy.sessions.direct import intervals, running_sums
from understudy.sessions.knowledge import IntervalTable
from understudy.sessions.opening import session as session_of
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


PEOPLE = town.people(5000)
EDGES = ", ".join(str(edge) for edge in range(0, 110, 5))
DECLARED = parse(
    f"""
understudy: 1
name: town
source: town.parquet
budget: {{epsilon: 100, delta: 1e-9}}
neighbours: replace
attributes:
  age: {{type: integer, edges: [{EDGES}]}}
  smoker: {{type: boolean}}
"""
)
MEDIAN = "SELECT median(age) FROM town"


def opened(project=None, **terms):
    project = project or us.Project.frame(PEOPLE, DECLARED, noise=SeededNoise(4))
    return us.session(project, **({"alpha": 0.02, "beta": 1e-6, "queries": 1000} | terms))


def bought(session) -> list[tuple[str, object]]:
    return [(plan["kind"], plan.get("kinds")) for plan in session._buyer.journal.all()]


LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
QUANTILES = f"SELECT {', '.join(f'quantile_cont(age, {level})' for level in LEVELS)} FROM town"


@pytest.mark.parametrize("mechanism", ["auto", "direct"])
def test_a_median_is_searched_for_by_counts(mechanism):
    """The errors of cells would add up to many times as much, and all ranges would cost more."""
    session, ages = opened(mechanism=mechanism), np.asarray(PEOPLE["age"])
    [[found]] = session.ask(MEDIAN).cells
    assert found.low <= float(np.median(ages)) <= found.high
    assert found.high - found.low <= 10
    assert {kind for kind, _ in bought(session)} <= {"fresh", "look"}
    assert all(plan["question"]["by"] == [] for plan in session._buyer.journal.all())
    [marginal] = session._reader.read(MEDIAN).marginals
    whole = opened(mechanism=mechanism)._buyer.policy.ranges(marginal, "age", most=99, asked=1)
    assert session.curator.ledger.spent.amount < 0.9 * whole.price.amount


@pytest.mark.parametrize("mechanism", ["auto", "direct"])
@pytest.mark.parametrize("question", [MEDIAN, MEDIAN + " WHERE smoker", QUANTILES])
def test_what_quantiles_need_is_priced_and_told_and_bought_once(question, mechanism):
    session = opened(mechanism=mechanism)
    quoted = session.price(question)
    assert session.known(question) is None
    answer = session.ask(question)
    assert quoted.units >= answer.cost.units == session.curator.ledger.spent.units > 0
    assert answer.source == "measured"
    assert session.price(question).units == 0
    assert session.known(question).cells == session.ask(question).cells == answer.cells
    assert session.ask(question).cost.units == 0


@pytest.mark.parametrize("mechanism", ["auto", "direct"])
def test_several_quantiles_buy_the_ranges_where_these_cost_less(mechanism):
    session, ages = opened(mechanism=mechanism), np.asarray(PEOPLE["age"])
    for level, found in zip(LEVELS, session.ask(QUANTILES).cells[0], strict=True):
        assert found.low <= float(np.quantile(ages, level)) <= found.high
    assert bought(session) == [("grids", ["ranges"])]
    if mechanism == "auto":
        for free in (
            MEDIAN,
            "SELECT quantile_cont(age, 0.95), count(*) FROM town",
            "SELECT avg(age) FROM town",
        ):
            assert session.price(free).units == 0
            assert session.known(free) is not None
            assert session.ask(free).cost.units == 0


def test_a_quantile_that_ranges_tell_counts_as_the_counts_that_it_replaces():
    """Who asks directly buys these counts: so what a class spares there is allowed for others."""
    session = opened(classes=[ranges("age")])
    session.ask(MEDIAN)
    waiting = session._buyer.policy._allowance._waiting
    session._buyer.plans._tell_served()
    assert 4 <= len(waiting) <= 7
    assert all(not asked.by for asked, _ in waiting)


def test_a_search_ends_where_the_price_that_was_told_is_reached(monkeypatch):
    """The counts are planned: here all but the first, which is much too narrow an interval for the price."""
    session = opened()
    with monkeypatch.context() as patch:
        patch.setattr(quantile_search.QuantileSearch, "most", 2)
        quoted = session.price(MEDIAN)
        answer = session.ask(MEDIAN)
    assert answer.cost.units <= quoted.units
    [[found]] = answer.cells
    assert found.low <= float(np.median(np.asarray(PEOPLE["age"]))) <= found.high
    assert session.ask(MEDIAN).cost.units == 0  # told is told, however wide it is
    assert session.ask(MEDIAN).cells == answer.cells


def test_a_group_of_few_people_is_not_searched_in_vain():
    """Fewer than twice the error: no count could tell on which side of it the median is."""
    session = opened(alpha=0.3)
    session.ask(MEDIAN + " WHERE smoker")
    assert len({plan["question"]["where"].__repr__() for plan in session._buyer.journal.all()}) == 1


def test_a_request_pays_for_a_median_once():
    session = opened()
    first, again = (session.ask(MEDIAN, request="one") for _ in range(2))
    assert first.cost.units == again.cost.units == session.curator.ledger.spent.units > 0


@pytest.mark.parametrize("where", ["", " WHERE smoker"])
def test_what_was_paid_for_is_measured_with_a_request_and_without(where):
    project = us.Project.frame(PEOPLE, DECLARED, noise=SeededNoise(4))
    paid = opened(project, name="s").ask(MEDIAN + where, request="one")
    assert paid.source == opened().ask(MEDIAN + where).source == "measured"
    assert paid.cost.units > 0
    again = opened(project, name="s").ask(MEDIAN + where, request="one")  # deduced anew, as after a restart
    assert (again.source, again.cost) == ("measured", paid.cost)


def test_medians_of_groups_buy_ranges_in_every_group():
    session = opened()
    by_group = "SELECT smoker, median(age) FROM town GROUP BY smoker"
    rows = session.ask(by_group).cells
    assert [sorted(kinds) for _, kinds in bought(session)] == [["cells", "ranges"]]
    smokes, ages = np.asarray(PEOPLE["smoker"]), np.asarray(PEOPLE["age"])
    for smoker, (_, found) in zip((False, True), rows, strict=True):
        assert found.low <= float(np.median(ages[smokes == smoker])) <= found.high
    assert session.price("SELECT median(age) FROM town WHERE smoker").units == 0


def test_a_median_inside_another_statement_buys_ranges_too():
    session = opened()
    session.ask(
        "SELECT max(m) - min(m) FROM (SELECT smoker, median(age) AS m FROM town GROUP BY smoker) AS t"
    )
    assert bought(session)[0][0] == "grids"


@pytest.mark.parametrize("question", [MEDIAN, QUANTILES])
def test_another_process_knows_what_a_quantile_bought(question):
    project = us.Project.frame(PEOPLE, DECLARED, noise=SeededNoise(4))
    one = opened(project, name="one").ask(question)
    again = opened(project, name="one")
    assert again.price(question).units == 0
    assert again.ask(question).cells == one.cells
    allowed = again._buyer.policy._allowance
    assert allowed._ahead == allowed._joint.start()  # it was asked for, and is no purchase ahead


def test_a_median_is_made_of_cells_where_a_search_cannot_be_paid():
    half = 0.5 * float(opened().price(MEDIAN).amount)
    limited = replace(DECLARED, limits=Limits(analysts={"ada": Fraction(half)}))
    session = opened(us.Project.frame(PEOPLE, limited, noise=SeededNoise(4)), analyst="ada")
    assert session.ask(MEDIAN).source == "measured"
    assert {kind for kind, _ in bought(session)} == {"fresh"}


def test_a_conjunction_is_no_weighted_sum():
    session = session_of(curator_over(TRUTH, seed=2), alpha=0.02, queries=100, classes=[ranges("age")])
    assert session.ask_marginal(conjunction(DOMAIN, {"age": np.arange(10) < 4})).source == "implied"
