"""Single counts that are divided between the rows of their regions and everybody, anew by every second sweep."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from understudy.privacy import joint
from understudy.privacy.accounting_rule import RULE_3, RULE_4, RULE_5
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import GaussianNoise, Located, Span
from understudy.privacy.joint import Joint

SIZES = {"a": 3, "b": 4, "c": 2}
CELLS = [dict(zip(SIZES, cell, strict=True)) for cell in product(*map(range, SIZES.values()))]
BUDGET = Budget.of(1000, 1e-6)


def count(price: float | Fraction, **masks: int) -> Located:
    """A single count of a region under `replace` that costs `price` in ρ."""
    region = tuple(Span(name, SIZES[name], mask) for name, mask in sorted(masks.items()))
    noise = GaussianNoise(l2_squared=Fraction(1), variance=1 / (2 * Fraction(price)))
    return Located(noise=noise, region=region, relation="replace", split=False)


ATTRIBUTES = st.sets(st.sampled_from(sorted(SIZES)), min_size=1, max_size=3)
MASKS = {name: st.integers(1, 2**size - 1) for name, size in SIZES.items()}
SPLIT, PRICES = st.booleans(), st.fractions(Fraction(1, 50), 1, max_denominator=50)


@st.composite
def counts(draw):
    masks = {name: draw(MASKS[name]) for name in sorted(draw(ATTRIBUTES))}
    price = draw(PRICES)
    return replace(count(price, **masks), split=draw(SPLIT))


def inside(event: Located) -> np.ndarray:
    """1 at the cells of an event's region."""
    return np.array([all(s.mask >> x[s.attribute] & 1 for s in event.region) for x in CELLS], float)


def least_of_all_divisions(events: list[Located]) -> float:
    """2·minₜ maxₓ Σ u·φ, as a linear program in t: φ = t·f + (1 - t)/2 for single counts, and f for others."""
    single = [e for e in events if not e.split]
    fixed = sum((float(e.zcdp_cost()) / 2 * inside(e) for e in events if e.split), np.zeros(len(CELLS)))
    price = np.array([float(e.zcdp_cost()) for e in single])
    slopes = np.array([p * (inside(e) - 0.5) for p, e in zip(price, single, strict=True)]).T
    slopes = slopes.reshape(len(CELLS), len(single))
    found = linprog(
        [0.0] * len(single) + [1.0],
        A_ub=np.hstack([slopes, -np.ones((len(CELLS), 1))]),
        b_ub=-fixed - price.sum() / 2,
        bounds=[(0, 1)] * len(single) + [(None, None)],
    )
    return 2 * found.fun


def largest_over_laws(events: list[Located]) -> float:
    """The most that a law μ of rows pays: 2·Σ p·min(μ(f), 1/2) for single counts, Σ p·μ(f) for others."""
    single = [e for e in events if not e.split]
    linear = sum((float(e.zcdp_cost()) * inside(e) for e in events if e.split), np.zeros(len(CELLS)))
    price = np.array([float(e.zcdp_cost()) for e in single])
    regions = np.array([inside(e) for e in single]).reshape(len(single), len(CELLS))
    found = linprog(
        -np.concatenate([linear, 2 * price]),  # the law, and for each count what is at most μ(f) and 1/2
        A_ub=np.hstack([-regions, np.eye(len(single))]) if single else None,
        b_ub=np.zeros(len(single)) if single else None,
        A_eq=np.concatenate([np.ones(len(CELLS)), np.zeros(len(single))])[None],
        b_eq=[1.0],
        bounds=[(0, 1)] * len(CELLS) + [(None, 0.5)] * len(single),
    )
    return -found.fun


def worst_pair(events: list[Located]) -> float:
    """The largest sum of what each event costs for one pair of rows, by trying all of them."""
    first, second = (np.array([inside(e) for e in events])[:, i] for i in np.indices((24, 24)))
    split = np.array([e.split for e in events])[:, None, None]
    price = np.array([float(e.zcdp_cost()) for e in events])[:, None, None]
    return float((price * np.where(split, (first + second) / 2, first != second)).sum(axis=0).max())


def shown(events: list[Located], rule=RULE_4) -> float:
    accountant = Joint(BUDGET, rule)
    state = accountant.start()
    for event in events:
        state = accountant.after(state, event)
    return accountant.cost(state).units / UNITS


@given(events=st.lists(counts(), min_size=1, max_size=10))
@settings(max_examples=60)
def test_minimax_theorem_of_divided_counts(events):
    """The best division costs as much as the law of rows that pays most, and never less than a pair of rows."""
    least = least_of_all_divisions(events)
    assert least == pytest.approx(largest_over_laws(events), rel=1e-7)
    assert least >= worst_pair(events) * (1 - 1e-7)
    flat = sum(float(e.zcdp_cost()) for e in events)
    assert shown(events) >= min(flat, least) * (1 - 1e-7)
    assert shown(events, RULE_5) >= min(flat, least) * (1 - 1e-7)


@given(one=st.lists(counts(), min_size=1, max_size=6), other=st.lists(counts(), min_size=1, max_size=6))
@settings(max_examples=60)
def test_two_sets_of_events_cost_at_most_one_after_the_other(one, other):
    together = least_of_all_divisions(one + other)
    parts = [least_of_all_divisions(events) for events in (one, other)]
    assert max(parts) * (1 - 1e-7) <= together <= sum(parts) * (1 + 1e-7)


@given(
    t=st.floats(0, 1),
    values=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    within=st.tuples(st.booleans(), st.booleans()),
)
def test_every_division_covers_what_two_rows_move(t, values, within):
    """Also the sum of values from 0 to 1 of the rows of a region, not only their number."""
    moved = abs(values[0] * within[0] - values[1] * within[1])
    divided = [t * float(one) + (1 - t) / 2 for one in within]
    assert max(moved, moved**2) <= sum(divided) * (1 + 1e-12)


def test_counts_of_the_rows_that_paid_most_cost_half():
    """All about one cell, each beside other conditions: everybody pays a part of what its rows would pay."""
    events = [
        count(1, **masks)
        for masks in (
            {"a": 1, "b": 1},
            {"a": 1, "c": 1},
            {"b": 1, "c": 1},
            {"a": 1, "b": 9},
            {"b": 3, "c": 1},
        )
    ] * 4
    assert worst_pair(events) == 20
    assert shown(events, RULE_3) == 20  # never more than the sum
    assert shown(events) == 20
    several = events + [replace(count(1, b=4, c=2), split=True)] * 20
    assert shown(several) < 0.8 * shown(several, RULE_3)
    assert shown(several) >= least_of_all_divisions(several) * (1 - 1e-9)


@given(events=st.lists(counts(), min_size=1, max_size=25))
@settings(max_examples=20)
def test_machine_code_finds_the_same_numbers(events):
    accountant = Joint(BUDGET)
    with pytest.MonkeyPatch.context() as patch:
        states = []
        for least in (0, 1 << 60):
            patch.setattr(joint, "COMPILED", least)
            patch.setattr(joint, "is_loaded", lambda: False)
            state = accountant.start()
            for event in events:
                state = accountant.after(state, event)
            states.append(state)
    fast, slow = states
    assert (fast.shown, fast.bound(), fast.constant, fast.work) == (
        slow.shown, slow.bound(), slow.constant, slow.work
    )  # fmt: skip
    for one, other in zip(fast.blocks.values(), slow.blocks.values(), strict=True):
        assert (one.table == other.table).all()
        assert (one.counts.weights == other.counts.weights).all()
        assert one.largest == other.largest


def test_what_was_divided_adds_up():
    """The table holds what the regions pay, everybody half of the rest, and no count more than its price."""
    draw = np.random.default_rng(3)
    accountant, state = Joint(BUDGET), Joint(BUDGET).start()
    wide = 0
    for _ in range(150):
        masks = {name: int(draw.integers(1, 2**size - 1)) for name, size in SIZES.items()}
        event = count(Fraction(int(draw.integers(1, 50)), 50), **masks)
        state = accountant.after(state, event)
        if not accountant.loads(event)[0].region:
            wide += -(-BUDGET.price(event).units // 2)
    (block,) = state.blocks.values()
    divided = block.counts
    assert (divided.weights >= 0).all()
    assert (divided.weights <= divided.prices).all()
    assert (divided.weights < divided.prices).any()
    paid = np.einsum("n,ni,nj,nk->ijk", divided.weights, *(m.astype(np.int64) for m in divided.members))
    assert (paid == block.table).all()
    assert state.constant == wide + sum(-(-int(rest) // 2) for rest in divided.prices - divided.weights)


class Forgetful(Joint):
    """A mutant: what everybody pays of a count that was divided is forgotten."""

    def _swept(self, state, before, turns):
        return replace(super()._swept(state, before, turns), constant=state.constant)


def test_the_brute_force_notices_what_nobody_pays():
    draw = np.random.default_rng(5)
    for _ in range(50):
        events = [
            count(1, **{name: int(draw.integers(1, 2**size - 1)) for name, size in SIZES.items()})
            for _ in range(12)
        ]
        accountant = Forgetful(BUDGET)
        state = accountant.start()
        for event in events:
            state = accountant.after(state, event)
        if accountant.cost(state).units / UNITS < worst_pair(events) * (1 - 1e-9):
            return
    pytest.fail("nothing was noticed")


def ranges_of_towns(towns: int, ranges: int) -> list[Located]:
    """Different ranges of an age, of one town after the other: each list of counts is full of one town."""
    spans = [(low, high) for low in range(16) for high in range(low + 1, 17) if high - low < 16][:ranges]
    return [
        Located(
            noise=GaussianNoise(l2_squared=Fraction(1), variance=Fraction(500)),
            region=(Span("age", 16, (1 << high) - (1 << low)), Span("town", 32, 1 << town)),
            relation="replace",
            split=False,
        )
        for town in range(towns)
        for low, high in spans
    ]


def test_no_order_of_questions_costs_more_than_without_divisions():
    """Counts of a first town are best paid by everybody; those of twenty towns by their own rows."""
    events = ranges_of_towns(20, 60)
    undivided, divided = shown(events, RULE_3), shown(events)
    assert divided <= undivided
    assert shown(events, replace(RULE_4, beside=None)) > 1.5 * undivided  # why both are kept
    assert shown(events, RULE_5) <= undivided


@given(events=st.lists(counts(), min_size=1, max_size=25))
@settings(max_examples=30)
def test_newer_rules_cost_no_more_than_rule_3(events):
    undivided = shown(events, RULE_3)
    assert shown(events) <= undivided
    assert shown(events, RULE_5) <= undivided


def test_counts_of_one_region_are_one_count():
    """Also where a class of cells was cut and the count divided in between: the region is the same."""
    accountant, state = Joint(BUDGET), Joint(BUDGET).start()
    others = [count(Fraction(1, 3), a=1 + i % 6, b=1 + i, c=1) for i in range(6)]
    for event in (count(1, a=1, b=3, c=2), *others, count(Fraction(1, 2), a=1, b=3, c=2), *others):
        state = accountant.after(state, event)
    (block,) = state.blocks.values()
    assert sorted(block.counts.prices / UNITS) == pytest.approx([2 / 3] * 6 + [3 / 2])
    assert (block.counts.weights <= block.counts.prices).all()


def test_lists_that_get_too_long_are_closed():
    accountant = Joint(BUDGET, replace(RULE_4, divided=200))
    state = accountant.start()
    for i in range(60):
        state = accountant.after(state, count(Fraction(1, 100), a=1 + i % 6, b=1 + i % 14, c=1 + i % 2))
        assert state.dividing == sum(block.dividing for block in state.blocks.values()) <= 200
