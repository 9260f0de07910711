"""The rules of joint accounting: classes change no number, bounded work costs accuracy and never soundness."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import prod
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy import reference_joint
from understudy.ledger import verifier
from understudy.privacy import clique_block
from understudy.privacy.accounting_rule import (
    NEWEST,
    RULE_1,
    RULE_2,
    RULE_3,
    RULE_4,
    RULE_5,
    RULES,
    AccountingRule,
)
from understudy.privacy.budget import Budget
from understudy.privacy.event import GaussianNoise, LaplaceNoise, Located, Span, Together
from understudy.privacy.joint import Joint
from understudy.privacy.recording import as_plain
from understudy.privacy.sweeping import Sweeping

SPANS = {"a": 3, "b": 4, "c": 2, "d": 40}
NAMES = {"grant": "GRANT", "room": "ROOM", "block": "BLOCK", "attribute": "CELLS", "width": "WIDTH"}
BY_RULE = {
    "start": "STARTS",
    "once": "ONCE",
    "sweeps": "SWEEPS",
    "divided": "DIVIDED",
    "soft": "SOFT",
    "capped": "CAPPED",
    "whole": "WHOLE",
}
"""The fields of a rule, as the verifier calls them: those of all rules, and those of each."""


VARIANCES, TENTHS, SPLIT = st.fractions(1, 40, max_denominator=50), st.integers(0, 9), st.booleans()
RELATIONS = st.sampled_from(["replace", "replace", "replace", "replace", "add-remove 2"])


def located_events(sizes=SPANS):
    """What is drawn from is made once: to look up a strategy takes as long as to draw from it."""
    attributes = st.sets(st.sampled_from(sorted(sizes)), min_size=1, max_size=4)
    masks = {name: st.integers(1, 2**size - 1) for name, size in sizes.items()}

    @st.composite
    def events(draw):
        region = tuple(Span(name, sizes[name], draw(masks[name])) for name in sorted(draw(attributes)))
        variance = draw(VARIANCES) if draw(TENTHS) else None
        noise = LaplaceNoise(l1=Fraction(1), scale=Fraction(30)) if variance is None else GaussianNoise(
            l2_squared=Fraction(1), variance=variance
        )  # fmt: skip
        return Located(noise=noise, region=region, relation=draw(RELATIONS), split=draw(SPLIT))

    return events()


EVENTS = st.lists(
    located_events() | st.lists(located_events(), min_size=2, max_size=3).map(lambda e: Together(tuple(e))),
    min_size=1,
    max_size=25,
)
BUDGETS = st.sampled_from([1, 20, 900]).map(lambda epsilon: Budget.of(epsilon, 1e-6))


@pytest.mark.parametrize("rule", [RULE_1, RULE_2, RULE_3], ids=["rule 1", "rule 2", "rule 3"])
@given(events=EVENTS, budget=BUDGETS)
@settings(max_examples=25)
def test_classes_change_no_number_of_the_tables_of_all_cells(rule, events, budget):
    """Rule 2 too, where neither its caps nor its credit bind."""
    theirs, ours = reference_joint.Joint(budget), Joint(budget, rule)
    known, state = theirs.start(), ours.start()
    for event in events:
        known, state = theirs.after(known, event), ours.after(state, event)
        assert (state.others, state.shown, state.bound()) == (known.others, known.shown, known.bound())


def raises(rule, budget, events):
    """By how much each event raises the total, and what it costs by itself."""
    accountant = Joint(budget, rule)
    state = accountant.start()
    for event in events:
        for part in event.events if isinstance(event, Together) else (event,):
            before = accountant.cost(state).units
            state = accountant.after(state, part)
            yield accountant.cost(state).units - before, budget.price(part).units


@given(events=EVENTS, budget=BUDGETS)
@settings(max_examples=60)
def test_no_event_raises_the_total_by_more_than_its_own_price(events, budget):
    """By rule 5, also where rule 3 beside it gives the smaller total, and after rows of another relation."""
    assert all(0 <= raised <= price for raised, price in raises(RULE_5, budget, events))


def test_older_rules_may_raise_the_total_by_more():
    """What the test of rule 5 would notice: a second count of an area that paid as much as any other."""
    noises = [GaussianNoise(l2_squared=Fraction(1), variance=v) for v in (Fraction(5, 4), Fraction(1, 2))]

    def single(cell, noise):
        return Located(noise=noise, region=(Span("area", 9, 1 << cell),), relation="replace", split=False)

    events = [single(cell, noises[0]) for cell in range(3)] + [single(2, noises[1])]
    budget = Budget.of(900, 1e-6)
    assert any(raised > price for raised, price in raises(RULE_3, budget, events))
    assert all(raised <= price for raised, price in raises(RULE_5, budget, events))


def test_sweeps_fall_with_the_credit():
    """Sixteen at first, as few as four in the end, and as many always by older rules."""
    assert RULE_5.start is not None
    quarters = [RULE_5.start * part // 4 for part in range(5)]
    assert [RULE_5.sweeps_at(0, work) for work in quarters] == [16, 12, 8, 4, 4]
    assert RULE_5.sweeps_at(10**9, 0) == 16
    assert [RULE_4.sweeps_at(0, work) for work in quarters] == [4] * 5


TIGHT: list[dict[str, int]] = [
    {"start": 0, "grant": 0},
    {"start": 300, "grant": 60},
    {"start": 3000, "grant": 120, "once": 900},
    {"room": 700},
    {"block": 12},
    {"width": 3, "attribute": 39},
    {"start": 4000, "grant": 100, "block": 30, "width": 7, "room": 1500},
]
DIVIDING: list[dict[str, int]] = [
    {},
    {"divided": 60},
    {"divided": 500, "room": 1100},
    {"sweeps": 7, "once": 9000},
    {"start": 3000, "grant": 900, "once": 2000, "divided": 90},
]
"""And where counts are divided anew: lists that get too long are closed."""

BOUND = [(RULE_2, tight) for tight in TIGHT] + [
    (rule, tight) for rule in (RULE_4, RULE_5) for tight in (*TIGHT, *DIVIDING)
]


@pytest.mark.parametrize(("base", "tight"), BOUND, ids=lambda value: str(getattr(value, "number", value)))
@given(events=EVENTS, budget=BUDGETS)
@settings(max_examples=12)
def test_the_verifier_agrees_where_caps_and_credit_bind(base, tight, events, budget):
    rule = replace(base, **tight)
    if rule.beside is not None:  # what the verifier has one number for
        shared = {field: getattr(rule, field) for field in NAMES}
        rule = replace(rule, beside=replace(rule.beside, **shared))
    accountant = Joint(budget, rule)
    state, flat = accountant.start(), 0
    with pytest.MonkeyPatch.context() as patch:
        for field, name in NAMES.items():
            patch.setattr(verifier, name, getattr(rule, field))
        for field, name in BY_RULE.items():
            patch.setitem(getattr(verifier, name), rule.number, getattr(rule, field))
        purse = verifier.Purse("rho", budget.cap.units, rule.number)
        for event in events:
            state = accountant.after(state, event)
            parts = event.events if isinstance(event, Together) else (event,)
            flat += sum(budget.price(part).units for part in parts)
            purse.pay(json.loads(json.dumps(as_plain(event))))
            counted = (state.others, state.shown, state.work, state.room, state.joined, state.swept)
            assert counted == (
                purse.others, purse.shown, purse.work, purse.room, purse.joined, purse.swept
            )  # fmt: skip
            assert (state.dividing, state.constant) == (purse.dividing, purse.constant)
            if state.undivided is not None:
                other, same = state.undivided, purse.beside
                assert (other.others, other.shown, other.work) == (same.others, same.shown, same.work)
            assert accountant.cost(state).units == purse.total() <= flat
            credit = rule.credit(state.joined, state.work)
            assert credit is not None
            assert credit >= 0


SMALL = {"a": 3, "b": 4, "c": 2, "d": 3}
CELLS = [dict(zip(SMALL, cell, strict=True)) for cell in product(*map(range, SMALL.values()))]


def worst_pair(events: list[Located]) -> Fraction:
    """The largest sum of what each event costs for one pair of rows, by trying all that lie in other regions."""
    prices = [event.zcdp_cost() for event in events]

    def lost(first: tuple[bool, ...], second: tuple[bool, ...]) -> Fraction:
        parts = (
            price * (one + other) / 2 if event.split else price * (one != other)
            for event, price, one, other in zip(events, prices, first, second, strict=True)
        )
        return sum(parts, Fraction(0))

    within = {
        tuple(all(s.mask >> row[s.attribute] & 1 for s in event.region) for event in events) for row in CELLS
    }
    return max(lost(x, y) for x in within for y in within)


@pytest.mark.parametrize(
    ("base", "tight"), [(RULE_2, {}), *BOUND], ids=lambda value: str(getattr(value, "number", value))
)
@given(data=st.data())
@settings(max_examples=4)
def test_what_is_shown_is_never_below_the_worst_pair(base, tight, data):
    events = data.draw(st.lists(located_events(SMALL), min_size=1, max_size=9))
    events = [
        replace(event, relation="replace")
        for event in events
        if isinstance(event.noise, GaussianNoise)
    ]  # fmt: skip
    accountant = Joint(Budget.of(1000, 1e-6), replace(base, **tight))
    state = accountant.start()
    for event in events:
        state = accountant.after(state, event)
    assert state.shown >= (worst_pair(events) * 10**15 if events else 0)


def test_the_brute_force_notices_a_region_that_was_forgotten(monkeypatch):
    """The mutant: an event that is not taken costs nothing, instead of counting as everybody."""
    monkeypatch.setattr(Joint, "_added", lambda self, state, event, price: replace(
        state, relation=event.relation, factor=2, flat=state.flat + price
    ))  # fmt: skip
    event = Located(
        noise=GaussianNoise(l2_squared=Fraction(1), variance=Fraction(2)),
        region=(Span("b", 4, 1),),
        relation="replace",
        split=False,
    )
    accountant = Joint(Budget.of(1000, 1e-6))
    assert accountant.after(accountant.start(), event).shown < worst_pair([event]) * 10**15


def hostile(count: int, *, size: int = 40, names: int = 12, split: bool = True) -> list[Located]:
    """Questions of epsilon 1e-9 on three attributes, about cells that have to be told apart, on many cliques."""
    events, state = [], 1
    for i in range(count):
        masks = []
        for _ in range(3):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            masks.append((state >> 8 & (1 << size) - 1) | 1)
        first = state >> 40
        chosen = sorted({(first + step * (1 + i % 5)) % names for step in (0, 1, 2)})
        region = tuple(Span(f"a{name:02}", size, mask) for name, mask in zip(chosen, masks, strict=True))
        noise = LaplaceNoise(l1=Fraction(2), scale=Fraction(2 * 10**9))
        events.append(Located(noise=noise, region=region, relation="replace", split=split))
    return events


def divisible(count: int) -> list[Located]:
    """Single counts whose prices grow, of half of 700 attributes of two cells: tables of two numbers each."""
    return [
        Located(
            noise=LaplaceNoise(l1=Fraction(2), scale=2 * 10**9 / (1 + Fraction(i, 40))),
            region=(Span(f"a{i % 700:03}", 4, 1 << i // 700 % 4),),
            relation="replace",
            split=False,
        )
        for i in range(count)
    ]


def test_the_work_of_every_charge_is_bounded_and_all_of_it_is_linear(monkeypatch):
    """Counted in numbers touched, near the cap as far from it, and by the tables themselves as well."""
    rule = replace(RULE_2, start=1 << 18, room=1 << 15, once=1 << 16, block=1 << 12)
    touched = [0]
    raised, laid_out, swept = clique_block.CliqueBlock.raised, Sweeping.__init__, Sweeping.sweep
    rooms = {}

    def counting_raised(self, classes, weight):
        touched[0] += prod(map(len, classes))
        return raised(self, classes, weight)

    def remembered(self, blocks, beliefs, **how):
        rooms[self] = [(block.room, block.dividing) for block in blocks.values()]
        laid_out(self, blocks, beliefs, **how)

    def counting_swept(self, *, divide, shift):
        touched[0] += sum(room + (dividing if divide else 0) for room, dividing in rooms[self])
        swept(self, divide=divide, shift=shift)

    monkeypatch.setattr(clique_block.CliqueBlock, "raised", counting_raised)
    monkeypatch.setattr(Sweeping, "__init__", remembered)
    monkeypatch.setattr(Sweeping, "sweep", counting_swept)
    accountant = Joint(Budget.of(Fraction(1, 10**7)), rule)  # the cap of a hundred of them
    state, refused = accountant.start(), 0
    for event in hostile(300):
        before = touched[0]
        after = accountant.after(state, event)
        assert touched[0] - before <= rule.once + 3 * 40 + rule.block
        assert after.work - state.work <= rule.once + 3 * 40 + rule.block
        assert after.room <= rule.room
        if accountant.cost(after).units <= accountant.budget.cap.units:
            state = after
        else:
            refused += 1
        assert state.work <= rule.start + rule.grant * state.joined
    assert refused > 0
    assert state.joined > 80


def apart(count: int, attributes: int) -> list[Located]:
    """Questions of epsilon 1e-9 about random cells of attributes of 4,096 cells, to be told apart one by one."""
    draw = random.Random(1)
    noise = LaplaceNoise(l1=Fraction(2), scale=Fraction(2 * 10**9))
    masks = [draw.getrandbits(4096) | 1 for _ in range(count)]
    return [
        Located(
            noise=noise,
            region=(Span(f"a{i % attributes:02}", 4096, mask),),
            relation="replace",
            split=True,
        )
        for i, mask in enumerate(masks)
    ]


def of_price(price: Fraction) -> Located:
    noise = LaplaceNoise(l1=Fraction(2), scale=2 / price)
    return Located(noise=noise, region=(Span("zz", 2, 1),), relation="replace", split=True)


def test_prices_that_grow_with_the_bound_use_up_the_credit_and_no_more():
    """Each of them makes the bound grow by what calls for sweeps, over tables that others filled for nothing."""
    assert RULE_5.start is not None
    assert RULE_3.start is not None
    assert RULE_5.start + RULE_3.start <= 13 << 26  # numbers: the verifier takes some four CPU minutes
    rule = replace(RULE_5, start=1 << 22, beside=replace(RULE_3, start=1 << 20))
    accountant = Joint(Budget.of(1), rule)
    state = accountant.start()
    for event in [of_price(Fraction(1, 10**6)), *apart(60, 6)]:
        state = accountant.after(state, event)
    swept = 0
    for _ in range(60):
        price = Fraction(22 * accountant.cost(state).units, 1000 * 10**15)
        after = accountant.after(state, of_price(price))
        swept += after.work - state.work > state.room
        state = after
        for account, own in zip(state.accounts, (rule, rule.beside), strict=True):
            assert own is not None
            credit = own.credit(account.joined, account.work)
            assert credit is not None
            assert credit >= 0
    assert swept > 5
    assert state.work > RULE_5.grant * state.joined + (1 << 22) - state.room  # all of it was used


@pytest.mark.parametrize("cap", [Fraction(1), Fraction(1, 10**6)], ids=["granted", "turned down"])
def test_sweeps_for_all_parts_of_an_event_stay_within_once(cap):
    """Rule 5: an event of 64 parts takes no more of them than one of one part, whether there is budget for it."""
    accountant = Joint(Budget.of(cap))
    state = accountant.start()
    for event in apart(60, 8):
        state = accountant.after(state, event)
    event = Together(tuple(of_price(Fraction(i, 10**7)) for i in range(1, 65)))
    after = accountant.after(state, event)
    assert (accountant.cost(after).units > accountant.budget.cap.units) == (cap < 1)
    assert RULE_5.once is not None
    assert RULE_3.once is not None
    assert state.room < after.work - state.work <= RULE_5.once + 64 * 8
    assert state.undivided is not None
    assert after.undivided is not None
    assert after.undivided.work - state.undivided.work <= RULE_3.once + 64 * 8
    each = Joint(Budget.of(cap), replace(RULE_5, whole=False)).after(state, event)
    assert each.work - state.work > 2 * RULE_5.once


def test_an_event_is_verified_without_a_look_at_every_count_before_it(monkeypatch):
    """A list of rule 5 has thousands of counts, and whoever asks of one of them again pays for no work."""
    budget, regions = Budget.of(1), [cells for some in (1, 2, 3) for cells in combinations(range(12), some)]
    noise = LaplaceNoise(l1=Fraction(2), scale=Fraction(2 * 10**9))
    spans = [Span("a", 12, sum(1 << cell for cell in cells)) for cells in regions]
    events = [Located(noise=noise, region=(span,), relation="replace", split=False) for span in spans]
    accountant, purse, looks = Joint(budget), verifier.Purse("epsilon", budget.cap.units, NEWEST.number), 0
    state, work_of = accountant.start(), verifier.Block.work_of

    def looking(self, members):
        nonlocal looks
        looks += 1
        return work_of(self, members)

    monkeypatch.setattr(verifier.Block, "work_of", looking)
    for turn in range(2):
        looks = 0
        for event in events:
            state = accountant.after(state, event)
            purse.pay(json.loads(json.dumps(as_plain(event))))
            assert (state.shown, state.dividing) == (purse.shown, purse.dividing)
        assert turn == 0 or looks <= len(events)
    (block,) = purse.blocks.values()
    assert len(block.counts) == len(events)


@pytest.mark.slow("minutes")
@pytest.mark.parametrize(
    "events",
    [
        lambda: hostile(100_000, names=24),
        lambda: hostile(100_000, names=24, split=False),
        lambda: divisible(100_000),
    ],
    ids=["several counts", "single counts", "divided counts"],
)
def test_a_hundred_thousand_hostile_events_are_verified_in_linear_time(events):
    """CPU seconds of the verifier alone; `python -m bench ledger` measures whole ledgers."""
    budget = Budget.of(1)
    accountant, purse = Joint(budget), verifier.Purse("epsilon", budget.cap.units, NEWEST.number)
    state, seconds = accountant.start(), 0.0
    for i, event in enumerate(events()):
        state = accountant.after(state, event)
        plain = json.loads(json.dumps(as_plain(event)))
        before = process_time()
        purse.pay(plain)
        seconds += process_time() - before
        if i % 5000 == 0:
            assert (purse.shown, purse.work, purse.room) == (state.shown, state.work, state.room)
    assert (purse.shown, purse.work) == (state.shown, state.work)
    assert state.work <= NEWEST.start + NEWEST.grant * 100_000
    assert seconds < 240


def test_a_large_attribute_is_taken_by_runs_of_cells():
    accountant = Joint(Budget.of(1000, 1e-6))

    def single(size, cell):
        return Located(
            noise=GaussianNoise(l2_squared=Fraction(1), variance=Fraction(1, 2)),
            region=(Span("zip", size, 1 << cell),),
            relation="replace",
            split=False,
        )

    def cost(events):
        state = accountant.start()
        for event in events:
            state = accountant.after(state, event)
        return accountant.cost(state).amount

    far = [single(40_000, cell) for cell in range(0, 40_000, 2000)]
    assert cost(far) == 2
    near = [single(40_000, cell) for cell in range(10)]  # one run: as if they were about the same people
    assert cost(near) == 10
    assert cost([single(1 << 17, cell) for cell in range(4)]) == 4  # too large: everybody


def test_rules_never_change():
    """Ledgers name them by number: another number of cells would be another total."""
    assert AccountingRule(1, None, None, 1 << 20, 1 << 24, None, None, None, 0, None) == RULE_1
    assert AccountingRule(
        2, 1 << 16, 1 << 12, None, None, 1 << 16, 1 << 19, 1 << 25, 768, 1 << 20
    ) == RULE_2  # fmt: skip
    assert replace(RULE_2, number=3, start=1 << 26) == RULE_3
    assert (
        replace(RULE_3, number=4, start=1 << 28, once=1 << 21, sweeps=4, divided=3 << 11, beside=RULE_3)
        == RULE_4
    )
    swept = {"sweeps": 16, "fewest": 4, "growth": Fraction(51, 50), "soft": 15}
    taken = {"capped": True, "whole": True}
    assert replace(RULE_4, number=5, start=3 << 28, divided=1 << 18, **swept, **taken) == RULE_5
    assert (RULE_3.sweeps, RULE_3.growth, RULE_3.divided, RULE_3.soft) == (2, Fraction(21, 20), 0, 0)
    assert (RULE_4.fewest, RULE_4.capped, RULE_4.whole) == (None, False, False)
    assert Joint(Budget.of(1)).rule is RULE_5  # the rule of new ledgers
    for number, rule in RULES.items():
        if number > 1:
            assert all(getattr(verifier, name) == getattr(rule, field) for field, name in NAMES.items())
            assert all(getattr(verifier, name)[number] == getattr(rule, f) for f, name in BY_RULE.items())
            assert verifier.FEWEST.get(number) == rule.fewest
            growth, part = verifier.GROWTH[number]
            assert Fraction(growth, part) == rule.growth
    assert {len(getattr(verifier, name)) for name in ("STARTS", "ONCE")} == {len(RULES) - 1}
    assert (verifier.OVERHEAD, verifier.COUNT) == (clique_block.OVERHEAD, clique_block.COUNT_OVERHEAD)
    assert verifier.QUICK == clique_block.QUICK
