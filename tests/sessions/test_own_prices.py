"""Own counts beside the same questions by themselves: the ratio that the allowance reckons with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.privacy.event import Span
from understudy.privacy.joint import Load
from understudy.sessions import own_prices
from understudy.sessions.own_prices import OwnPrices

SIZE = 4
SOME, FEW = (Span("a", SIZE, 0b0111),), (Span("a", SIZE, 0b0010),)
REGIONS = [(), SOME, FEW, (Span("a", SIZE, 0b1000),)]


def test_counts_that_cost_more_than_directly_are_told_by_their_ratio():
    own = OwnPrices()
    own.pay(1, [Load(60, SOME, halved=True)])
    assert (own.dearest, own.unmatched) == (1.0, 30)  # nobody knows yet what it costs directly
    own.count(1, [Load(100, SOME, halved=True)])
    assert (own.dearest, own.unmatched) == (1.0, 0)
    own.pay(1, [Load(90, SOME, halved=True)])  # its second look
    assert own.dearest == pytest.approx(1.5)
    assert own.unmatched == 0
    assert own.shared(1) == Load(100, SOME, halved=True)


def test_what_everybody_pays_for_directly_is_compared_with_the_most_that_a_row_pays():
    own = OwnPrices()
    own.pay(1, [Load(90, FEW, halved=True)])
    own.count(1, [Load(50)])
    assert own.dearest == 1.0  # 45 of 50
    assert own.paid_by_some(1) == 45


def test_what_cannot_be_compared_stays_unmatched():
    own = OwnPrices()
    own.pay(1, [Load(10, SOME), Load(5)])
    own.pay(2, [Load(10, SOME)])
    own.count(2, [Load(20, FEW)])
    own.pay(3, [Load(7, SOME)])
    own.pay(3, [Load(7, FEW)])
    assert own.dearest == 1.0
    assert own.unmatched == 15 + 10 + 14


def most_of(load: Load, law: np.ndarray) -> float:
    """What a law of rows pays of a load."""
    part = sum(law[c] for c in range(SIZE) if all(span.mask >> c & 1 for span in load.region))
    return load.units * (min(part, 0.5) if load.halved else part)


LOADS = st.tuples(st.integers(1, 50), st.sampled_from(REGIONS), st.booleans()).map(
    lambda drawn: Load(drawn[0], drawn[1], drawn[2] and bool(drawn[1]))
)


@given(
    questions=st.lists(st.tuples(LOADS, LOADS, st.booleans()), min_size=1, max_size=5),
    law=st.lists(st.floats(0, 1), min_size=SIZE, max_size=SIZE).filter(lambda law: sum(law) > 0.1),
)
def test_no_law_of_rows_pays_more_than_the_ratio_and_what_is_unmatched(questions, law):
    law, own = np.array(law) / sum(law), OwnPrices()
    paid = alone = 0.0
    for question, (bought, directly, is_first) in enumerate(questions):
        steps = [
            lambda q=question, b=bought: own.pay(q, [b]),
            lambda q=question, d=directly: own.count(q, [d]),
        ]
        for step in steps if is_first else [*steps, steps[0]]:
            step()
        paid += most_of(bought, law) * (1 if is_first else 2)
        alone += most_of(directly, law)
    assert paid <= own.dearest * alone + own.unmatched + 1e-9


def test_a_ratio_that_forgets_that_counts_are_divided_is_noticed(monkeypatch):
    monkeypatch.setattr(own_prices, "_ratio", lambda paid, alone: paid.units / alone.units)
    compare = test_no_law_of_rows_pays_more_than_the_ratio_and_what_is_unmatched.hypothesis.inner_test
    bought, directly = Load(10, SOME), Load(10, SOME, halved=True)
    with pytest.raises(AssertionError):
        compare([(bought, directly, True)], [0.0, 1.0, 0.0, 0.0])
