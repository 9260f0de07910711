"""What a session knows is the same after it was written and read; what cannot be is refused."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections import OrderedDict, deque
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest

from session_table import DOMAIN, conjunction
from understudy.domain.attribute import Outside
from understudy.domain.refinement import refined
from understudy.privacy.cost import ZCDP
from understudy.privacy.event import Span
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import identity
from understudy.sessions.knowledge import IntervalTable, Knowledge
from understudy.sessions.state_codec import StateWriter, Unreadable, Unwritable, read, written

KINDS = [
    None,
    True,
    -(2**80),
    0.1 + 0.2,
    -0.0,
    math.inf,
    "é\n\x00",
    b"\x00\xff\n",
    (),
    (1, 1.0, True),
    [[], {}],
    {"b": 1, "a": (2, b"")},
    {("x", b"y"): {1, 2}},
    frozenset({"a", "b"}),
    OrderedDict([("z", 1), ("a", 2)]),
    MappingProxyType({"a": 1}),
    deque([1, 2], maxlen=3),
    Fraction(2, 7),
    dt.date(2024, 2, 29),
    np.float64(0.1),
    Outside.CLAMP,
    ZCDP(17),
]


@pytest.mark.parametrize("value", KINDS, ids=lambda value: type(value).__name__)
def test_a_value_is_read_as_it_was_written(value):
    again = read(written(value, {}), {})
    assert type(again) is type(value)
    assert again == value
    if not isinstance(value, frozenset):  # whose order says nothing
        assert repr(again) == repr(value)
    assert written(again, {}) == written(value, {})


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "i8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_an_array_is_read_as_it_was_written(dtype, shape):
    value = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    transposed = value.T
    transposed.flags.writeable = False
    one, other = read(written([value, transposed], {}), {})
    assert (one.dtype, one.shape, one.tolist()) == (value.dtype, shape, value.tolist())
    assert (other.shape, other.tolist()) == (transposed.shape, transposed.tolist())
    assert one.flags.writeable
    assert not other.flags.writeable


def test_what_was_one_object_is_one_object_and_what_was_two_is_two():
    one, other = [1], [1]
    held, twin = np.zeros(2), np.zeros(2)
    found = read(written({"a": one, "b": one, "c": other, "x": held, "y": held, "z": twin}, {}), {})
    assert found["a"] is found["b"]
    assert found["a"] is not found["c"]
    found["x"][0] = 1.0
    assert (found["y"][0], found["z"][0]) == (1.0, 0.0)


def test_equal_values_that_cannot_change_are_written_once():
    """And only those that are the same in every bit: 0.0 and -0.0 are not, nor are 1 and true."""
    spans = [Span("age", 10, 7) for _ in range(100)]
    few, other = written([*spans[:2]], {}), written([*spans], {})
    assert len(other) - len(few) < 100 * len("[1],")
    back = read(other, {})
    assert back == spans
    assert back[0] is back[-1]
    assert [one.mask for one in read(written([Span("age", 10, 7), Span("age", 10, 6)], {}), {})] == [7, 6]
    pairs = [(1, "a"), (True, "a"), (0.0, "a"), (-0.0, "a"), (0, "a"), (None, "a")]
    assert repr(read(written(pairs, {}), {})) == repr(pairs)


def test_equal_arrays_become_one_only_where_nobody_writes_into_them():
    tables = [np.arange(4.0) for _ in range(4)]
    for table in tables[2:]:
        table.flags.writeable = False
    back = read(written({"tables": tables}, {}), {})["tables"]
    assert back[2] is back[3]
    assert [table.flags.writeable for table in back] == [True, True, False, False]
    back[0][0] = 7.0
    assert [table[0] for table in back] == [7.0, 0.0, 0.0, 0.0]


def test_questions_and_knowledge_are_read_as_they_were_written():
    knowledge = Knowledge.__new__(Knowledge)
    knowledge.__dict__.update(total=(1.0, 2.0), first_looks={"a": IntervalTable(np.ones(2), np.ones(2))})
    cut = Marginal(refined(DOMAIN, "age", [3]), ("age",))
    asked = [conjunction(age=np.arange(10) < 4), cut]
    again = read(written([knowledge, *asked], {"domain": DOMAIN}), {"domain": DOMAIN})
    assert again[0].total == (1.0, 2.0)
    assert again[0].first_looks["a"].low.tolist() == [1.0, 1.0]
    assert [identity(one) for one in again[1:]] == [identity(one) for one in asked]
    assert again[1].domain is DOMAIN


@pytest.mark.parametrize(
    "value",
    [lambda: 1, threading.Lock(), np.array(["a"]), np.array([None]), ValueError(), int, iter([]), 1j],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_written_is_refused(value):
    with pytest.raises(Unwritable):
        written({"deep": [value]}, {})


def test_a_circle_is_refused():
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(Unwritable):
        written(circle, {})


@pytest.mark.parametrize(
    "whole",
    [
        b"",
        b"{}\n",
        b"no json\n",
        b'{"classes":[],"nodes":[]}\n',
        b'{"classes":[],"nodes":[["t",[7]]]}\n',
        b'{"classes":[],"nodes":[["a","<f8",0,[9],true]]}\n1234',
        b'{"classes":[["os","system",[]]],"nodes":[["o",0]]}\n',
        b'{"classes":[["understudy.sessions.state_codec","read",[]]],"nodes":[["o",0]]}\n',
        b'{"classes":[["understudy.nowhere","X",[]]],"nodes":[["o",0]]}\n',
        b'{"classes":[],"nodes":[["k","missing"]]}\n',
    ],
)
def test_bytes_that_were_not_written_here_are_refused(whole):
    with pytest.raises(Unreadable):
        read(whole, {})


def test_of_good_bytes_a_part_is_refused_or_read():
    """No beginning of them, and no byte changed, does anything but raise `Unreadable` or be read."""
    whole = written({"a": [1, (2.5, b"xy")], "b": ZCDP(3), "c": np.arange(3)}, {})
    for at in range(len(whole)):
        for other in (whole[:at], whole[:at] + bytes([whole[at] ^ 5]) + whole[at + 1 :]):
            try:
                read(other, {})
            except Unreadable:
                continue


# ---- one state after the other


def same(writer: StateWriter, state: object) -> None:
    """What a writer writes now is read as what is written in one go."""
    again = read(writer.whole(state), {"domain": DOMAIN})
    assert written(again, {"domain": DOMAIN}) == written(state, {"domain": DOMAIN})


def asked(i: int) -> Marginal:
    return conjunction(age=np.arange(10) <= i % 9, sex=np.arange(3) == i % 2)


def test_a_state_that_grows_is_written_by_what_is_new(monkeypatch):
    state: dict[str, object] = {"asked": {}, "log": deque(maxlen=3), "frozen": ()}
    writer = StateWriter({"domain": DOMAIN})
    seen: list[object] = []
    node = StateWriter._node
    monkeypatch.setattr(StateWriter, "_node", lambda self, value: seen.append(value) or node(self, value))
    steps = []
    for i in range(60):
        state["asked"][identity(asked(i))] = IntervalTable(np.full(2, float(i)), np.full(2, i + 1.0))
        state["log"].append((asked(i), [i], np.array([i])))
        state["frozen"] = (*state["frozen"], ZCDP(i))
        seen.clear()
        writer.whole(state)
        steps.append(len(seen))
        same(writer, state)
    seen.clear()
    written(state, {"domain": DOMAIN})
    assert sorted(steps)[50] < len(seen) / 3


@pytest.mark.parametrize("change", ["array", "list", "mapping", "order", "flag"])
def test_whatever_changes_in_place_is_written_as_it_is_then(change):
    held = {"array": IntervalTable(np.zeros(2), np.ones(2)), "list": (1, [2]), "mapping": {"b": 1, "a": (2,)}}
    writer = StateWriter({})
    for _ in range(2):
        same(writer, held)
    if change == "array":
        held["array"].low[0] = 7.0
    elif change == "list":
        held["list"][1].append(3)
    elif change == "mapping":
        held["mapping"]["a"] = (3,)
    elif change == "order":
        held["mapping"]["b"] = held["mapping"].pop("b")
    else:
        held["array"].low.flags.writeable = False
    same(writer, held)
    again = read(writer.whole(held), {})
    assert again["array"].low.tolist() == held["array"].low.tolist()
    assert again["array"].low.flags.writeable == held["array"].low.flags.writeable
    assert list(again["mapping"].items()) == list(held["mapping"].items())
    assert again["list"] == held["list"]


@pytest.mark.parametrize("first", ["loose", "held"])
def test_an_array_in_what_moves_and_in_what_does_not_stays_one_array(first):
    array = np.zeros(2)
    parts = {"loose": [array], "held": IntervalTable(array, np.ones(2))}
    state = {first: parts.pop(first), **parts}
    writer = StateWriter({})
    for _ in range(2):
        again = read(writer.whole(state), {})
        assert again["held"].low is again["loose"][0]


def test_what_a_state_no_longer_holds_is_left_out_before_long():
    writer = StateWriter({})
    sizes = [len(writer.whole({"now": [(f"{i} {j}", (i, j)) for j in range(50)]})) for i in range(40)]
    assert max(sizes) < 5 * sizes[0]


def test_after_a_state_that_cannot_be_written_the_next_one_is():
    writer, table = StateWriter({}), IntervalTable(np.zeros(2), np.ones(2))
    with pytest.raises(Unwritable):
        writer.whole({"table": table, "wrong": threading.Lock()})
    table.low[0] = 1.0
    same(writer, {"table": table})
