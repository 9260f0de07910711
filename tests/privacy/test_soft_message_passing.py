"""Soft sweeps of joint accounting: they are what their formulas say, and no bound is too small for them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from understudy.privacy import soft_message_passing as soft
from understudy.privacy.accounting_rule import RULE_3, RULE_4, RULE_5
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS
from understudy.privacy.event import GaussianNoise, Located, Span
from understudy.privacy.joint import Joint, JointState
from understudy.privacy.sweeping import Sweeping

SIZES = {"a": 4, "b": 5, "c": 3, "d": 6}
BUDGET = Budget.of(1000, 1e-6)
LARGE_SHIFT = 40
"""Of a step so large that a soft maximum is far from the largest value."""


def counts(seed: int, some: int, names: str = "abc") -> list[Located]:
    """Single counts of random regions, at random prices."""
    draw = np.random.default_rng(seed)
    return [
        Located(
            noise=GaussianNoise(l2_squared=Fraction(1), variance=Fraction(int(draw.integers(20, 60)), 2)),
            region=tuple(
                Span(name, SIZES[name], int(draw.integers(1, 2 ** SIZES[name] - 1))) for name in names
            ),
            relation="replace",
            split=False,
        )
        for _ in range(some)
    ]


def charged(events: list[Located], rule=RULE_5) -> JointState:
    accountant = Joint(BUDGET, rule)
    state = accountant.start()
    for event in events:
        state = accountant.after(state, event)
    return state


def test_tables_of_whole_numbers_do_not_depend_on_the_last_bit_of_a_float():
    """Else two machines could find other totals: no number before rounding is near the middle of two."""
    with localcontext(prec=40):
        exact = [
            *(
                Decimal(1 << 16) * (Decimal(-step) / soft.STEPS).exp()
                for step in range(-soft.REACH, soft.REACH)
            ),
            *(soft.FINE * (1 + (part + Decimal("0.5")) / 64).ln() for part in range(64)),
            *(soft.FINE * Decimal(2).ln() * power for power in range(63)),
        ]
    told = [*soft.POWERS, *soft.LOGS, *soft.DOUBLINGS]
    assert all(abs(number - value) < Decimal("0.4999") for number, value in zip(told, exact, strict=True))
    # Floats of e^11 units have a unit of 2^-21 in the last place: 0.0001 is far more than any error of exp.
    assert max(told) < 1 << 33


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shift", [soft.LEAST_SHIFT, 30, LARGE_SHIFT])
def test_a_soft_sweep_gives_each_attribute_its_share_of_soft_maxima(seed, shift):
    """Of one clique, by the formula, over all cells of the table: within a hundredth of the temperature."""
    state = charged(counts(seed, 12))
    ((clique, block),) = state.blocks.items()
    sweeping = Sweeping(state.blocks, state.beliefs, fast=False, soft=True)
    sweeping.sweep(divide=False, shift=shift)
    temperature = float(soft.STEPS << shift)
    beliefs = {attribute: belief.astype(float) for attribute, belief in state.beliefs.items()}
    tops = [
        np.array([(beliefs[a] - m)[label == name].max() for name in range(size)])
        for a, m, label, size in zip(clique, block.messages, block.labels, block.table.shape, strict=True)
    ]
    told = block.table + tops[0][:, None, None] + tops[1][None, :, None] + tops[2][None, None, :]
    for axis, attribute in enumerate(clique):
        others = tuple(i for i in range(3) if i != axis)
        most = told.max(axis=others, keepdims=True)
        masses = np.exp((told - told.max()) / temperature).sum(axis=others)
        near = masses * (1 << 16) >= 2 * soft.LEAST_MASS
        shares = np.where(near, told.max() + temperature * np.log(np.maximum(masses, 1e-300)), most.ravel())
        arriving = beliefs[attribute] - block.messages[axis]
        wanted = (arriving + (shares - tops[axis])[block.labels[axis]]) / 3
        found = sweeping.beliefs()[attribute]
        far = np.abs(found - wanted)[near[block.labels[axis]]]
        assert far.max(initial=0) <= temperature * (0.5 / soft.STEPS + 0.01) + 2
    after = sweeping.blocks()[clique]
    rest = after.table[np.ix_(*after.labels)].astype(object)
    for axis, message in enumerate(after.messages):
        rest = rest - message.reshape([-1 if i == axis else 1 for i in range(3)])
    assert after.largest == rest.max()  # what bounds the total is no soft maximum


@pytest.mark.parametrize("shift", [soft.LEAST_SHIFT, 36, LARGE_SHIFT])
def test_counts_are_moved_to_where_masses_inside_and_outside_are_equal(shift):
    """One count by itself: sweeps end where the formula has no further to go, or at an end of what is allowed."""
    for seed in range(6):
        (event,) = counts(seed, 1)
        state = charged([event, *(replace(e, split=True) for e in counts(50 + seed, 9))])
        blocks, beliefs = dict(state.blocks), dict(state.beliefs)
        for _ in range(80):
            sweeping = Sweeping(blocks, beliefs, fast=True, soft=True)
            sweeping.sweep(divide=True, shift=shift)
            blocks, beliefs = sweeping.blocks(), sweeping.beliefs()
        (block,) = blocks.values()
        (weight,), (price,) = block.counts.weights.tolist(), block.counts.prices.tolist()
        (clique,) = blocks
        tops = [
            np.array([(beliefs[a] - m)[label == name].max() for name in range(size)])
            for a, m, label, size in zip(clique, block.messages, block.labels, block.table.shape, strict=True)
        ]
        told = (
            block.table + tops[0][:, None, None] + tops[1][None, :, None] + tops[2][None, None, :]
        ).astype(float)
        inside = np.einsum("i,j,k->ijk", *(member[0] for member in block.counts.members)).astype(bool)
        temperature = float(soft.STEPS << shift)

        def soft_max(values: np.ndarray, temperature: float = temperature) -> float:
            top = float(values.max())
            return top + temperature * float(np.log(np.exp((values - top) / temperature).sum()))

        further = soft_max(told[~inside]) - soft_max(told[inside])
        if weight == 0:
            assert further <= 0.2 * temperature + 8
        elif weight == price:
            assert further >= -0.2 * temperature - 8
        else:
            assert abs(further) <= 0.2 * temperature + 8


def test_machine_code_finds_the_same_numbers():
    state = charged([*counts(1, 20), *counts(2, 6, "bd"), *counts(3, 4, "d")])
    found = []
    for fast in (True, False):
        sweeping = Sweeping(state.blocks, state.beliefs, fast=fast, soft=True)
        for turn in range(5):
            sweeping.sweep(divide=turn != 1, shift=34)
        found.append((sweeping.blocks(), sweeping.beliefs(), sweeping.raised))
    (blocks, beliefs, raised), (others, same, also) = found
    assert raised == also
    assert all((beliefs[name] == same[name]).all() for name in beliefs)
    for clique, block in blocks.items():
        other = others[clique]
        assert (block.table == other.table).all()
        assert (block.counts.weights == other.counts.weights).all()
        assert (block.counts.weights != state.blocks[clique].counts.weights).any()
        assert block.largest == other.largest


def test_what_was_divided_adds_up_after_soft_sweeps():
    """The table holds what the regions pay, everybody half of the rest, and no count more than its price."""
    events = [event for event in counts(3, 150) if Joint(BUDGET).loads(event)[0].region]
    state = charged(events)
    (block,) = state.blocks.values()
    divided = block.counts
    assert (divided.weights >= 0).all()
    assert (divided.weights <= divided.prices).all()
    assert (divided.weights < divided.prices).any()
    paid = np.einsum("n,ni,nj,nk->ijk", divided.weights, *(m.astype(np.int64) for m in divided.members))
    assert (paid == block.table).all()
    assert state.constant == sum(-(-int(rest) // 2) for rest in divided.prices - divided.weights)


# ---- counts of many cells, and then of wide regions

SIDE = 16


def on_cube(price: Fraction, masks: tuple[int, ...]) -> Located:
    return Located(
        noise=GaussianNoise(l2_squared=Fraction(1), variance=1 / (2 * price)),
        region=tuple(Span(name, SIDE, mask) for name, mask in zip("abc", masks, strict=True)),
        relation="replace",
        split=False,
    )


def cells_and_wide_counts() -> list[Located]:
    """Counts of 1,200 cells, at prices that grow and every second one in two looks; then twenty wide counts."""
    draw = np.random.default_rng(1)
    cells = list(product(range(SIDE), repeat=3))
    draw.shuffle(cells)
    events = list[Located]()
    for i, cell in enumerate(cells[:1200]):
        event = on_cube(Fraction(300 + i, 3000), tuple(1 << int(place) for place in cell))
        events += [event, event] if i % 2 else [event]
    for _ in range(20):
        sides = draw.random((3, SIDE)) < 0.66
        sides[:, 0] = True
        events.append(on_cube(Fraction(1), tuple(sum(1 << int(i) for i in np.flatnonzero(s)) for s in sides)))
    return events


def worst_pair(events: list[Located]) -> float:
    """The largest sum of prices of counts that two cells tell apart."""
    sides = [[[span.mask >> i & 1 for i in range(SIDE)] for span in event.region] for event in events]
    inside = np.array([np.einsum("i,j,k->ijk", *np.array(side, float)).ravel() for side in sides])
    price = np.array([float(event.zcdp_cost()) for event in events])
    alone = price @ inside
    return float((alone[:, None] + alone[None, :] - 2 * (inside * price[:, None]).T @ inside).max())


def test_wide_counts_after_thousands_of_cells_cost_little_more_than_their_worst_pair():
    """The lists of earlier rules are too short for so many counts: what was divided first stays as it is."""
    events = cells_and_wide_counts()
    exact = worst_pair(events) * UNITS
    found = {
        rule.number: Joint(BUDGET, rule).cost(charged(events, rule)).units
        for rule in (RULE_3, RULE_4, RULE_5)
    }
    assert exact <= found[5] <= 1.1 * exact
    assert found[3] > 1.3 * exact
    assert found[4] > 1.15 * exact


def test_the_work_of_dividing_counts_goes_by_their_regions():
    """Small regions in a large table: a list of a thousand cells is still divided."""
    state = charged(cells_and_wide_counts())
    (block,) = state.blocks.values()
    assert len(block.counts) > 1200
    shape = block.table.shape
    regions = sum(int(np.prod([m[i].sum() for m in block.counts.members])) for i in range(len(block.counts)))
    assert state.dividing == regions + len(block.counts) * ((sum(shape) + 32) // 4) <= RULE_5.divided
