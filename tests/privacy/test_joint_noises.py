"""Joint accounting of rounded normal and of bounded noise: never below the worst pair of rows, by brute force."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.ledger import verifier
from understudy.noise.bounded import bounded_log_law
from understudy.privacy.bounded_noise import BoundedNoise
from understudy.privacy.budget import Budget
from understudy.privacy.event import AdditiveNoise, GaussianNoise, Located, RoundedNormal, Span
from understudy.privacy.joint import Joint
from understudy.privacy.recording import as_plain

SHAPE = {"a": 3, "b": 4, "c": 2}
CELLS = list(product(*map(range, SHAPE.values())))
ORDER = Fraction(5)
KEPT = Budget.of(500, 1e-6, key_delta=5e-7, filter="renyi", order=ORDER)
REACH, ASIDE = 40, 4


def noise(kind: str, relation: str, *, split: bool, variance: int) -> AdditiveNoise:
    """Noise on counts of 1 for each row."""
    rows = 1 if relation == "replace" else int(relation.split()[1])
    l1 = (2 if split else 1) if relation == "replace" else rows
    if kind == "bounded":
        largest = 1 if relation == "replace" else rows
        return BoundedNoise.priced(reach=REACH, l1=l1, largest=largest, set_aside=ASIDE, order=ORDER)
    made = GaussianNoise if kind == "gaussian" else RoundedNormal
    squared = l1 if relation == "replace" else rows**2
    return made(l2_squared=Fraction(squared), variance=Fraction(variance))


@st.composite
def located(draw, relation: str, kinds: tuple[str, ...]) -> Located:
    names = sorted(draw(st.sets(st.sampled_from(sorted(SHAPE)), min_size=1, max_size=3)))
    region = tuple(Span(name, SHAPE[name], draw(st.integers(1, 2 ** SHAPE[name] - 1))) for name in names)
    split = draw(st.booleans())
    made = noise(draw(st.sampled_from(kinds)), relation, split=split, variance=draw(st.integers(20, 90)))
    return Located(noise=made, region=region, relation=relation, split=split)


@cache
def bounded_loss(moved: int, largest: int) -> float:
    """D/a of the exact law where a number moves so far, with its part of the outcomes set aside."""
    if moved == 0:
        return 0.0
    aside, a = -(-ASIDE * moved // largest), float(ORDER)
    outputs = np.arange(-REACH, REACH + 1)[aside:]
    here, there = bounded_log_law(REACH, outputs), bounded_log_law(REACH, outputs - moved)
    return float(np.logaddexp.reduce(a * here + (1 - a) * there)) / (a - 1) / a


def loss(event: Located, moves: list[int]) -> float:
    """What the event costs a pair of tables, of which it sees counts that move so far."""
    made = event.noise
    if isinstance(made, BoundedNoise):
        return sum(bounded_loss(move, made.largest) for move in moves)
    assert isinstance(made, GaussianNoise | RoundedNormal)
    return sum(move**2 for move in moves) / (2 * float(made.variance))


def sees(event: Located, cell: tuple[int, ...]) -> int:
    place = dict(zip(SHAPE, cell, strict=True))
    return int(all(span.mask >> place[span.attribute] & 1 for span in event.region))


def worst_pair(events: list[Located]) -> float:
    rows = None if events[0].relation == "replace" else int(events[0].relation.split()[1])
    worst = 0.0
    for people in product(CELLS, repeat=2 if rows is None else rows):
        total = 0.0
        for event in events:
            held = [sees(event, cell) for cell in people]
            if rows is None:
                moves = held if event.split else [abs(held[0] - held[1])]
                total += loss(event, moves)
            else:  # all of a person's rows in one count, or each in its own
                total += max(loss(event, [sum(held)]), loss(event, held) if event.split else 0.0)
        worst = max(worst, total)
    return worst


@pytest.mark.parametrize("relation", ["replace", "add-remove 1", "add-remove 2"])
@given(data=st.data())
@settings(max_examples=8)
def test_the_joint_price_of_mixed_noises_is_never_below_the_worst_pair_nor_above_the_sum(
    relation, data
) -> None:
    """At one Rényi order; and the verifier finds the same on its own."""
    kinds = ("gaussian", "rounded", "bounded", "bounded")
    events = data.draw(st.lists(located(relation, kinds), min_size=1, max_size=5))
    joint = Joint(KEPT)
    state, purse = joint.start(), verifier.Purse(("renyi", ORDER), KEPT.cap.units, joint.rule.number)
    for event in events:
        before = joint.cost(state).units
        state = joint.after(state, event)
        assert purse.pay(as_plain(event)) == joint.cost(state).units - before
    assert joint.cost(state).amount >= worst_pair(events) * (1 - 1e-9)
    assert joint.cost(state).amount <= KEPT.total(events).amount


def test_bounded_noise_on_different_people_costs_as_one() -> None:
    joint, costs = Joint(KEPT), []
    state = joint.start()
    for mask in (1, 2, 4, 1):
        noise_of_two = noise("bounded", "replace", split=True, variance=1)
        event = Located(noise=noise_of_two, region=(Span("a", 3, mask),), relation="replace", split=True)
        after = joint.after(state, event)
        costs.append(joint.cost(after).units - joint.cost(state).units)
        state = after
    price = KEPT.price(noise("bounded", "replace", split=True, variance=1)).units
    assert costs[0] == pytest.approx(price, abs=2)
    assert costs[1:3] == [0, 0]
    assert costs[3] == pytest.approx(price, abs=4)


@given(st.lists(located("replace", ("gaussian", "rounded")), min_size=1, max_size=8))
@settings(max_examples=15)
def test_rounded_normal_noise_is_priced_jointly_as_gaussian_noise_is(events: list[Located]) -> None:
    joint = Joint(Budget.of(1000, 1e-6))
    mixed = gaussian = joint.start()
    for event in events:
        made = event.noise
        assert isinstance(made, GaussianNoise | RoundedNormal)
        same = GaussianNoise(l2_squared=made.l2_squared, variance=made.variance)
        alike = Located(noise=same, region=event.region, relation=event.relation, split=event.split)
        mixed, gaussian = joint.after(mixed, event), joint.after(gaussian, alike)
        assert joint.cost(mixed) == joint.cost(gaussian)
