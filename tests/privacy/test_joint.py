"""Joint accounting against brute force over all pairs of neighbours."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import ParameterError
from understudy.privacy import joint
from understudy.privacy.budget import Budget
from understudy.privacy.event import GaussianNoise, LaplaceNoise, Located, Selection, Span, Together
from understudy.privacy.joint import Joint
from understudy.privacy.recording import as_plain, from_plain

SHAPE = {"a": 3, "b": 4, "c": 2, "d": 3}
CELLS = np.array(list(product(*map(range, SHAPE.values()))))
WIDE = Budget.of(1000, 1e-6)
PURE = Budget.of(1000)


def noise(kind: str, relation: str, price: Fraction, *, split: bool):
    """Noise of a price, for counts of 1 for each row."""
    rows = 1 if relation == "replace" else int(relation.split()[1])
    l1 = (2 if split else 1) if relation == "replace" else rows
    l2_squared = l1 if relation == "replace" else rows**2
    if kind == "laplace":
        return LaplaceNoise(l1=Fraction(l1), scale=l1 / price)
    return GaussianNoise(l2_squared=Fraction(l2_squared), variance=l2_squared / (2 * price))


ATTRIBUTES = st.sets(st.sampled_from(sorted(SHAPE)), min_size=1, max_size=4)
MASKS = {name: st.integers(1, 2**size - 1) for name, size in SHAPE.items()}
SPLIT, PRICES = st.booleans(), st.fractions(Fraction(1, 100), 1, max_denominator=1000)


@st.composite
def located(draw, kind: str, relation: str):
    region = tuple(Span(name, SHAPE[name], draw(MASKS[name])) for name in sorted(draw(ATTRIBUTES)))
    split = draw(SPLIT)
    price = draw(PRICES)
    return Located(
        noise=noise(kind, relation, price, split=split), region=region, relation=relation, split=split
    )


def inside(event: Located) -> np.ndarray:
    """The indicator of the region, over all cells of the universe."""
    names = list(SHAPE)
    found = np.ones(len(CELLS))
    for span in event.region:
        found *= span.mask >> CELLS[:, names.index(span.attribute)] & 1
    return found


def moved(event: Located, f: np.ndarray) -> np.ndarray:
    """How far replacing row x by row y moves the counts: L1, or squared Euclidean; the two agree here."""
    if event.split:  # the rows lie in different counts, at worst
        return f[:, None] + f[None, :]
    return np.abs(f[:, None] - f[None, :])


def worst_pair(events: list[Located]) -> float:
    """The largest sum of losses over all pairs of neighbours, by brute force."""
    relation = events[0].relation
    gaussian = isinstance(events[0].noise, GaussianNoise)
    unit = [float(1 / (2 * e.noise.variance) if gaussian else 1 / e.noise.scale) for e in events]
    fs = [inside(event) for event in events]
    if relation == "replace":
        return float(sum(u * moved(e, f) for u, e, f in zip(unit, events, fs, strict=True)).max())
    rows = int(relation.split()[1])
    worst = 0.0
    for people in product(
        range(len(CELLS)), repeat=rows
    ):  # a person with `rows` rows, all in one count at worst
        sums = [sum(f[x] for x in people) for f in fs]
        worst = max(worst, sum(u * (s * s if gaussian else s) for u, s in zip(unit, sums, strict=True)))
    return worst


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("relation", ["replace", "add-remove 1"])
@given(data=st.data())
@settings(max_examples=60)
def test_the_joint_price_is_never_below_the_worst_pair_nor_above_the_sum(kind, relation, data):
    events = data.draw(st.lists(located(kind, relation), min_size=1, max_size=12))
    accountant = Joint(WIDE if kind == "gaussian" else PURE)
    state, before = accountant.start(), 0
    for i, event in enumerate(events, 1):
        state = accountant.after(state, event)
        total = accountant.cost(state).amount
        assert total >= worst_pair(events[:i]) * (1 - 1e-12)
        assert total <= accountant.budget.total(events[:i]).amount
        assert total >= before
        before = total


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@given(data=st.data())
@settings(max_examples=8)
def test_several_rows_to_a_person(kind, data):
    events = data.draw(st.lists(located(kind, "add-remove 2"), min_size=1, max_size=4))
    accountant = Joint(WIDE if kind == "gaussian" else PURE)
    state = accountant.start()
    for event in events:
        state = accountant.after(state, event)
    assert accountant.cost(state).amount >= worst_pair(events) * (1 - 1e-12)


def test_the_brute_force_notices_a_price_that_forgets_the_second_row(monkeypatch):
    """The mutant: F = 1 under `replace`, as if only one of the two rows could be seen."""
    monkeypatch.setattr(joint, "_factor", lambda event: 1)
    accountant, state = Joint(WIDE), Joint(WIDE).start()
    one = Located(
        noise=noise("gaussian", "replace", Fraction(1), split=False),
        region=(Span("b", 4, 1),),
        relation="replace",
        split=False,
    )
    events = [one, replace(one, region=(Span("b", 4, 2),))]
    for event in events:
        state = accountant.after(state, event)
    assert accountant.cost(state).amount < worst_pair(events)


def test_questions_about_different_people_cost_as_one():
    accountant = Joint(WIDE)
    for relation, expected in (("replace", 2), ("add-remove 1", 1)):
        state = accountant.start()
        for cell in range(30):
            span = Span("age", 30, 1 << cell)
            state = accountant.after(
                state,
                Located(
                    noise=noise("gaussian", relation, Fraction(1), split=False),
                    region=(span,),
                    relation=relation,
                    split=False,
                ),
            )
        assert accountant.cost(state).amount == expected


def test_another_relation_or_noise_is_added_up():
    accountant = Joint(WIDE)
    spans = (Span("a", 3, 1),)
    events = [
        Located(
            noise=noise("gaussian", "replace", Fraction(1), split=False),
            region=spans,
            relation="replace",
            split=False,
        ),
        Located(
            noise=noise("gaussian", "add-remove 1", Fraction(1), split=False),
            region=(Span("a", 3, 2),),
            relation="add-remove 1",
            split=False,
        ),
        Located(
            noise=noise("laplace", "replace", Fraction(1), split=False),
            region=(Span("a", 3, 4),),
            relation="replace",
            split=False,
        ),
        Selection(epsilon=Fraction(1)),
    ]
    one_by_one = accountant.start()
    for event in events:
        one_by_one = accountant.after(one_by_one, event)
    assert accountant.cost(one_by_one) == accountant.budget.total(events)
    at_once = accountant.after(accountant.start(), Together(tuple(events)))
    assert accountant.cost(at_once) == accountant.cost(one_by_one)


def test_a_budget_that_would_be_passed_is_looked_at_again_before_it_is():
    """A chain of regions that only messages can tell apart."""
    generator = np.random.default_rng(3)
    events = []
    for _ in range(200):
        names = sorted(generator.choice(list(SHAPE), 2, replace=False))
        region = tuple(
            Span(str(name), SHAPE[name], 1 << int(generator.integers(SHAPE[name]))) for name in names
        )
        events.append(
            Located(
                noise=noise("gaussian", "add-remove 1", Fraction(1, 100), split=True),
                region=region,
                relation="add-remove 1",
                split=True,
            )
        )
    loose, state = Joint(WIDE), Joint(WIDE).start()
    for event in events:
        state = loose.after(state, event)
    swept = state
    for turn in range(50):
        swept = loose._swept(swept, swept.work, [turn])
    assert worst_pair(events) <= swept.bound() / 1e15 * (1 + 1e-12)
    assert swept.bound() <= loose.cost(state).units <= 1.06 * swept.bound()
    assert swept.bound() / 1e15 <= 1.1 * worst_pair(events)
    assert swept.bound() < loose.budget.total(events).units / 2


def test_wide_regions_and_large_cliques_count_as_everybody():
    accountant = Joint(WIDE)
    wide = Located(
        noise=noise("gaussian", "replace", Fraction(1), split=False),
        region=(Span("a", 3, 3),),
        relation="replace",
        split=False,
    )
    assert not accountant.after(accountant.start(), wide).blocks
    huge = replace(wide, region=(Span("a", 2**21, 1),), split=True)
    assert not accountant.after(accountant.start(), huge).blocks


def test_a_region_on_many_attributes_is_taken_by_the_narrowest():
    accountant = Joint(WIDE)
    cells = {"a": 7, "b": 1, "c": 3, "d": 1}
    many = Located(
        noise=noise("gaussian", "replace", Fraction(1), split=False),
        region=tuple(Span(name, 4, mask) for name, mask in cells.items()),
        relation="replace",
        split=False,
    )
    state = accountant.after(accountant.start(), many)
    assert list(state.blocks) == [(("b", 4), ("c", 4), ("d", 4))]
    assert accountant.cost(state).amount == 1
    for cell in (2, 4, 8):
        state = accountant.after(state, replace(many, region=(*many.region[:3], Span("d", 4, cell))))
    assert accountant.cost(state).amount == 2


@given(located("gaussian", "replace") | located("laplace", "add-remove 3"))
def test_a_located_event_survives_being_written_down(event):
    assert from_plain(as_plain(event)) == event


@pytest.mark.parametrize(
    "change",
    [
        {"region": []},
        {"region": [["a", 3, "8"]]},
        {"region": [["a", 3, "0"]]},
        {"region": [["b", 3, "1"], ["a", 3, "1"]]},
        {"relation": "add-remove 0"},
        {"relation": "both"},
        {"split": 1},
        {"noise": {"event": "Selection", "epsilon": "1"}},
        {"more": 1},
    ],
)
def test_a_damaged_located_event_is_not_understood(change):
    event = Located(
        noise=noise("gaussian", "replace", Fraction(1), split=False),
        region=(Span("a", 3, 1),),
        relation="replace",
        split=False,
    )
    with pytest.raises(ParameterError):
        from_plain(as_plain(event) | change)
