"""Totals that are too small."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from audit.accounting import against_distributions, exact_total, joint_is_enough, table_of_events
from audit.mutants.mutant import ONE, Mutant
from understudy.privacy import joint
from understudy.privacy.budget import Budget
from understudy.privacy.cost import UNITS, ZCDP, PureDP
from understudy.privacy.event import LaplaceNoise, Located, Selection, Span


def located(mask, *, split, price=ONE):
    region = (Span("x", 4, mask),)
    return Located(
        noise=LaplaceNoise(l1=ONE, scale=1 / price), region=region, relation="replace", split=split
    )


EVENTS = [located(0b0001, split=True), located(0b0010, split=True), located(0b0100, split=True)]


def joint_total(factor=None) -> PureDP:
    """The joint accountant's total of EVENTS; with `factor`, as if that were what two rows can cost."""
    accountant = joint.Joint(Budget.of(100))
    state = accountant.start()
    if factor is None:
        for event in EVENTS:
            state = accountant.after(state, event)
        return accountant.cost(state)  # type: ignore[return-value]
    for event in EVENTS:
        state = replace(accountant._added(state, event, UNITS), factor=factor)
    return PureDP(factor * max(block.largest for block in state.blocks.values()))


def wrong_pair_total() -> PureDP:
    """What the events cost the pair of rows that is worst for the first of them: a row inside it, one outside."""
    inside, outside = {"x": 0}, {"x": 3}
    loss = sum(
        (Fraction(held_by(event, inside) + held_by(event, outside), 2) for event in EVENTS), Fraction(0)
    )
    return PureDP(int(loss * UNITS))


def same_row_total() -> PureDP:
    """The joint total over one row, as if its neighbour lacked it and had none in its place."""
    held = (sum((Fraction(held_by(event, {"x": i}), 2) for event in EVENTS), Fraction(0)) for i in range(4))
    return PureDP(int(max(held) * UNITS))


def held_by(event: Located, row: dict[str, int]) -> int:
    return int(all(span.mask >> row[span.attribute] & 1 for span in event.region))


LIFE = table_of_events(times=300)


def pld_caught(price) -> bool:
    """Whether the total of a table's life is below what privacy-loss distributions say."""
    total = ZCDP(sum(price(event) for event in LIFE))
    found = against_distributions(LIFE, total, 1e-6, interval=1e-4)
    return found.ours < found.low


def honest_price(event) -> int:
    return Budget.of(1, 1e-6).price(event).units


def cheaper(kind, factor):
    return lambda event: honest_price(event) // factor if isinstance(event, kind) else honest_price(event)


def float_sum_caught() -> bool:
    """Ten tenths in floats, rounded down to units: less than one."""
    events = [LaplaceNoise(l1=ONE, scale=Fraction(10))] * 10
    total = 0.0
    for _ in events:
        total += 0.1
    return Fraction(int(total * UNITS), UNITS) < exact_total(events, pure=True)


ACCOUNTING = [
    Mutant("joint accounting with factor 1", "accounting",
           lambda: bool(joint_is_enough(joint_total(factor=1), EVENTS, pure=True))),
    Mutant("joint accounting over the pair that is worst for the first question", "accounting",
           lambda: bool(joint_is_enough(wrong_pair_total(), EVENTS, pure=True))),
    Mutant("joint accounting over single rows", "accounting",
           lambda: bool(joint_is_enough(same_row_total(), EVENTS, pure=True))),
    Mutant("Laplace noise priced at a quarter of ε² in ρ", "accounting",
           lambda: pld_caught(cheaper(LaplaceNoise, 2))),
    Mutant("everything at three quarters of its ρ", "accounting",
           lambda: pld_caught(lambda event: honest_price(event) * 3 // 4)),
    Mutant("a selection priced at ε²/16", "accounting",
           lambda: pld_caught(cheaper(Selection, 2)),
           escapes="selections are a ninth of this table's ρ, and the conversion has 8% of slack: half of a ninth "
                   "hides in it; alone, 1000 selections show it"),
    Mutant("costs added up in floats", "accounting", float_sum_caught),
    Mutant("a conversion that forgets half of the tail", "accounting",
           lambda: 0.1125 + (0.1125 * np.log(1e6)) ** 0.5 < zcdp_floor()),
]  # fmt: skip


def zcdp_floor() -> float:
    events = table_of_events()
    return against_distributions(events, Budget.of(100, 1e-6).total(events), 1e-6, interval=1e-4).low


ACCOUNTING_HONEST = [
    Mutant("joint accounting", "accounting", lambda: bool(joint_is_enough(joint_total(), EVENTS, pure=True))),
    Mutant("the price of a table's life", "accounting", lambda: pld_caught(honest_price)),
]
