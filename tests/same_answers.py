"""When two answers are the same to whoever holds them."""

from __future__ import annotations

from understudy.answer.answer import Answer
from understudy.answer.sql_answer import SqlAnswer


def check_same(ours: Answer | SqlAnswer, theirs: Answer | SqlAnswer) -> None:
    """Fail where an answer is another one: in its plain values, its words, its page, its frame or its plot."""
    assert type(ours) is type(theirs)
    assert theirs.as_dict() == ours.as_dict()
    assert repr(theirs) == repr(ours)
    assert theirs._repr_html_() == ours._repr_html_()
    assert theirs.to_frame().equals(ours.to_frame())
    assert theirs.to_frame().schema == ours.to_frame().schema
    assert theirs.plot().to_dict() == ours.plot().to_dict()
    assert theirs.cost == ours.cost
