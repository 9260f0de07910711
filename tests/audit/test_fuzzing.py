"""The harness of the fuzzed doors notices what it is for."""

from __future__ import annotations

import os

import pytest

from audit import fuzzing
from understudy.errors import ParameterError

MIB = 1 << 20


def let_in(given):
    return given


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the mark is never set back here")
def test_memory_that_grows_is_noticed_after_more_of_it_was_used(monkeypatch):
    monkeypatch.setattr(fuzzing, "GROWTH", 64 * MIB)
    used = b"x" * (256 * MIB)
    del used
    kept: list[bytes] = []
    with pytest.raises(AssertionError, match="memory grew"):
        fuzzing.throw("questions", lambda given: kept.append(b"x" * (32 * MIB)), iter("abc"), 3)
    fuzzing.throw("questions", let_in, iter("abc"), 3)  # what is held now did not grow


def test_a_refusal_in_no_words_and_any_other_error_escape():
    def refuse(given):
        raise ParameterError("no")

    with pytest.raises(AssertionError, match="helps nobody"):
        fuzzing.throw("questions", refuse, iter("a"), 1)
    with pytest.raises(AssertionError, match="escaped: ZeroDivisionError"):
        fuzzing.throw("questions", lambda given: 1 / 0, iter("a"), 1)
