"""A sweep that is made for bars alone: what is kept for it, by forecast and exactly, and what needs none."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_table import ADD, REPLACE, codes, make
from counted import Cells
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.merging import Merging
from understudy.query.workload import Workload
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.adaptive.bars_sweep import CLOSE, MOST, BarsForecast, BarsReserve
from understudy.releases.adaptive.beta import BetaShares
from understudy.releases.adaptive.rule import bars_forecast, told
from understudy.releases.adaptive.sweep import PAIRS, SweepPlan
from understudy.releases.adaptive.sweep_choice import pairs_below
from understudy.releases.evidence import Evidence, Interval, ProvedIntervals
from understudy.releases.run import Run
from understudy.releases.small_marginals import direct_bars
from understudy.releases.target import weighted_for

BETA = Fraction(3, 100)


def _domain(sizes) -> Domain:
    return Domain(tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate(sizes)))


def _run(sizes, order=3, neighbours=REPLACE, epsilon=0.1, rows=6000) -> Run:
    domain = _domain(sizes)
    return make(
        epsilon=epsilon,
        domain=domain,
        workload=Workload.all_marginals(domain, order),
        table=codes(rows=rows, sizes=sizes),
        neighbours=neighbours,
    )


def _forecast(run: Run, rows: float = 1e5) -> BarsForecast:
    pairs, asked = pairs_below(run.domain, run.workload), told(run.domain, run.workload)
    return BarsForecast(run.domain, pairs, asked, Evidence(run).precision(run.total), rows)


def _reserve(run: Run, share: Fraction, most: Fraction = Fraction(1)) -> BarsReserve:
    pairs = tuple(pairs_below(run.domain, run.workload))
    plain = Merging.none(run.domain)

    def plan(cliques, price):
        return SweepPlan.of(run.curator.relation, plain, cliques, price, rounded=run.rounded)

    direct = direct_bars(run, pairs)
    return BarsReserve(
        run.domain, ProvedIntervals(), plan, direct, BETA, most * run.total, pairs, share * run.total
    )


def _longest(reserve: BarsReserve, price: Fraction) -> float:
    plan = reserve.plan(reserve.missing, price)
    widest = {pair: reserve.widest[pair] for pair in reserve.missing}
    return max(plan.bars_over(widest, reserve.betas(plan)).values())


TEN = (2, 3, 4, 5, 2, 3, 4, 3, 2, 4)


@settings(max_examples=15)
@given(
    st.lists(st.integers(2, 9), min_size=9, max_size=12),
    st.sampled_from([ADD, REPLACE]),
    st.sampled_from([Fraction(1, 1000), Fraction(1, 20), Fraction(1)]),
)
def test_the_price_that_is_kept_is_the_least_for_bars_as_short_as_direct_ones(sizes, neighbours, first):
    """Sought from far too little and far too much on; 3% less is not enough, as a bar falls by 1.5% at most."""
    reserve = _reserve(_run(sizes, neighbours=neighbours), first)
    assert CLOSE <= _longest(reserve, reserve.price) <= 1
    assert _longest(reserve, reserve.price * Fraction(97, 100)) > 1


@settings(max_examples=15)
@given(st.lists(st.integers(2, 9), min_size=9, max_size=14))
def test_the_forecast_is_the_price_that_is_kept_where_nothing_is_merged(sizes):
    run = _run(sizes)
    assert float(_reserve(run, Fraction(1, 10)).price / run.total) == pytest.approx(
        _forecast(run).needed, rel=0.15
    )


def test_merging_makes_it_cheaper():
    run = _run([9] * 10)
    halves = Merging(run.domain, (np.array([0, 3, 6]),) * 10, (np.full(9, 1 / 3),) * 10)
    pairs = tuple(pairs_below(run.domain, run.workload))

    def plan(cliques, price):
        return SweepPlan.of(run.curator.relation, halves, cliques, price, rounded=run.rounded)

    whole = _reserve(run, Fraction(1, 10))
    merged = BarsReserve(
        run.domain, ProvedIntervals(), plan, whole.widest, BETA, whole.most, pairs, whole.price
    )
    assert merged.price < 0.8 * whole.price


def test_what_is_sure_beforehand_and_what_is_not_worth_a_look():
    """Pairs alone take much, and may take less in the end; large noise tells nothing, or cannot be drawn."""
    few = _forecast(_run(TEN))
    assert few.is_sure(Fraction(1, 10))
    assert not few.is_sure(Fraction(9, 10))  # half of a tenth is too little
    alone = _forecast(_run(TEN, order=2))
    assert alone.is_worth_a_look
    assert not alone.is_sure(Fraction(1, 10))
    assert alone.needed > 3 * _forecast(_run(TEN)).needed
    assert not _forecast(_run(TEN), rows=50).is_worth_a_look
    small = _run((100,) * 5, epsilon=1e-5)
    assert not _forecast(small, rows=1e9).is_worth_a_look
    assert _forecast(_run((100,) * 5, epsilon=1e-2), rows=1e9).is_worth_a_look
    ones = Workload.all_marginals(_domain((1, 1, 1)), 3)
    assert bars_forecast(ones.domain, ones, 1.0, 1e5) is None


def test_what_a_round_measures_closely_is_not_paid_for_again():
    run = _run(TEN)
    reserve = _reserve(run, Fraction(1, 10))
    before, pairs = reserve.price, reserve.missing
    beta = Fraction(1, 600)

    def measured(cliques, part):
        """A round's plan for some cliques, at that part of the whole price."""
        return reserve.plan(cliques, part * run.total)

    reserve.measured(measured(pairs[:3], Fraction(1, 2000)), beta)
    assert (reserve.missing, reserve.price) == (pairs, before)  # too coarse
    reserve.measured(measured(pairs[:12], Fraction(1, 4)), beta)
    assert reserve.missing == pairs[12:]
    assert reserve.price < 0.9 * before
    triple = ("a7", "a8", "a9")
    reserve.measured(measured([triple], Fraction(1, 4)), beta)
    held = set(combinations(triple, 2))
    assert reserve.missing == tuple(
        pair for pair in pairs[12:] if pair not in held
    )  # pairs below it are told
    reserve.measured(measured(pairs, Fraction(1)), beta)
    assert (reserve.missing, reserve.price) == ((), 0)


def _within(clique, low, high) -> Interval:
    return Interval(clique, np.asarray(low, float), np.asarray(high, float), "measured")


def test_pairs_whose_columns_or_gaps_bound_them_are_left_out():
    """Where no value has more people than two direct bars, no cell with it has; a gap's bound is told as it is."""
    run = _run(TEN)
    reserve = _reserve(run, Fraction(1, 10))
    pairs, before = reserve.missing, reserve.price
    direct = {pair: reserve.widest[pair] for pair in pairs}
    least = min(direct.values())
    reserve.intervals.add(_within(("a4",), [0, 0], [2.01 * least, 2.01 * max(direct.values())]))
    reserve.bounded({})
    assert reserve.missing == pairs  # in the second value there may be more
    reserve.intervals.add(_within(("a4",), [0, 0], [1.99 * least, 1.99 * least]))
    reserve.bounded({})
    assert reserve.missing == tuple(pair for pair in pairs if "a4" not in pair)
    assert reserve.price < before
    left, (one, other) = reserve.missing, reserve.missing[:2]
    bounds = {
        pair: _within(
            pair, np.full(run.domain.shape(pair), 500.0), np.full(run.domain.shape(pair), 500.0 + by)
        )
        for pair, by in ((one, 1.99 * direct[one]), (other, 2.01 * direct[other]))
    }
    reserve.bounded(bounds)
    assert reserve.missing == left[1:]


def test_a_round_is_judged_by_its_own_part_of_beta():
    """A plan that is just close enough with all of β is not with the smallest part of it."""
    run = _run(TEN)
    reserve = _reserve(run, Fraction(1, 10))
    plan = reserve.plan(reserve.missing, reserve.price)
    assert set(plan.beta_of_cells(BETA, PAIRS)) == set(reserve.missing)
    reserve.measured(plan, Fraction(1, 10**9))
    assert len(reserve.missing) == len(pairs_below(run.domain, run.workload))
    reserve.measured(plan, 2 * BETA)
    assert reserve.missing == ()


def test_no_more_is_kept_than_is_allowed_and_nothing_that_is_not_enough():
    run = _run(TEN)
    needed = _reserve(run, Fraction(1, 10)).price
    assert _reserve(run, Fraction(1, 10), most=Fraction(1, 50)).price == 0
    just = _reserve(run, Fraction(1, 10), most=needed / run.total)
    assert just.price == needed
    assert just.missing == tuple(pairs_below(run.domain, run.workload))


def test_nothing_is_kept_for_pairs_of_which_a_sweep_would_tell_nothing():
    """Columns of one group each, where the number of rows is public, have no residuals."""
    run = _run(TEN)
    pairs = tuple(pairs_below(run.domain, run.workload))
    groups = [[0] if i < 3 else range(n) for i, n in enumerate(TEN)]
    merging = Merging(run.domain, tuple(np.array(g) for g in groups), tuple(np.full(n, 1 / n) for n in TEN))

    def plan(cliques, price):
        return SweepPlan.of(run.curator.relation, merging, cliques, price, rounded=run.rounded)

    direct, start = direct_bars(run, pairs), run.total / 10
    reserve = BarsReserve(run.domain, ProvedIntervals(), plan, direct, BETA, run.total, pairs, start)
    assert reserve.price > 0
    told = {(f"a{i}",): np.full(n, 1.9 * min(direct.values())) for i, n in enumerate(TEN) if i >= 3}
    for clique, high in told.items():
        reserve.intervals.add(_within(clique, np.zeros(high.shape), high))
    reserve.bounded({})
    assert reserve.missing == (("a0", "a1"), ("a0", "a2"), ("a1", "a2"))
    assert reserve.price == 0


def test_columns_of_one_value_have_pairs_that_need_no_sweep():
    """Where the number of rows is public, so is a pair of them: its direct bar is 0, and so is what is told."""
    outcome = adaptive(_run((1, 1, *TEN), rows=30_000))
    assert 0 < outcome.proof["shares"]["guard"] < MOST
    (told,) = (answer for answer in outcome.also if answer.clique == ("a0", "a1"))
    assert (told.low, told.high) == (30_000, 30_000)


def test_the_certificate_tells_the_shares_of_beta_that_bars_were_made_by():
    """All that was kept for a sweep may go to the last round: the sweep's part of β was set aside all the same."""
    run = _run((3, 7, 7, 4, 4, 7, 4), epsilon=0.2, rows=2920)
    outcome = adaptive(run)
    assert outcome.proof["shares"]["guard"] == 0
    used = BetaShares.of(run.beta, private_rows=False, pairs=True, sweep=True, sweeps_workload=False)
    told = {name: float(share) for name, share in vars(used).items() if share}
    assert outcome.proof["bars"]["beta"] == told


def test_a_sweep_for_bars_leaves_each_round_enough_to_look_at_gaps():
    """At an epsilon so small that noise for the gaps could not be drawn beside what such a sweep takes."""
    domain = _domain((100, 3, 10))
    rng = np.random.default_rng(349)
    rates = [rng.dirichlet(np.full(n, 0.3)) for n in domain.shape()]
    table = rates[0][:, None, None] * rates[1][:, None] * rates[2]
    run = make(
        truth=Cells(domain, np.rint(1_112_600 * table / table.sum()).astype(np.int64)),
        domain=domain,
        workload=weighted_for(Workload.all_marginals(domain, 2), "a0"),
        epsilon=Fraction(1, 25_019),
        delta=Fraction(1, 10**7),
        neighbours=ADD,
        seed=349,
    )
    assert adaptive(replace(run, target="a0")).proof["shares"]["guard"] == 0
