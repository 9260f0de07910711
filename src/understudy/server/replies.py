"""Answers as the bytes that a door sends: made once for each answer, and the same for everybody who asks again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from understudy.answer.answer import Answer
from understudy.answer.around_answer import AroundAnswer
from understudy.answer.plain import without_infinity
from understudy.answer.sql_answer import SqlAnswer
from understudy.privacy.budget import Budget

Told = Answer | SqlAnswer


def answer_as_plain(answer: Told, budget: Budget) -> dict[str, Any]:
    """An answer as plain values: those of its `as_dict`, and `share`, the part of the whole budget that it cost.

    `noisy` lists what was released for each cell before it was cut to what is possible, where that differs from
    the values. A bound that does not exist is null: JSON has no infinity.
    """
    told = {**answer.as_dict(), "share": budget.share(answer.cost)}
    if isinstance(answer, Answer) and not np.array_equal(answer.noisy, answer.value):
        told["noisy"] = answer.noisy.ravel().tolist()
    return without_infinity(told)


def as_repeat(answer: Told) -> Told:
    """The answer as whoever asks after the first gets it: for nothing, and `repeat` where it was measured."""
    nothing = type(answer.cost)(0)
    if isinstance(answer, Answer):
        return replace(
            answer, cost=nothing, source="repeat" if answer.source == "measured" else answer.source
        )
    sources = tuple("repeat" if source == "measured" else source for source in answer.sources)
    if isinstance(answer, AroundAnswer):
        inner = tuple(as_repeat(one) for one in answer.inner)
        return replace(answer, cost=nothing, sources=sources, inner=inner)
    return replace(answer, cost=nothing, sources=sources)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)


def encoded(plain: Any) -> bytes:
    """JSON in UTF-8, without spaces and with its names in order: equal values are equal bytes."""
    return _ENCODER.encode(plain).encode()
