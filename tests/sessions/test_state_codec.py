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
from understudy.query.marginal import Marginal
from understudy.sessions.answer_memory import identity
from understudy.sessions.knowledge import IntervalTable, Knowledge
from understudy.sessions.state_codec import Unreadable, Unwritable, read, written

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
