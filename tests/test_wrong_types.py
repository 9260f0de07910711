"""What is given in the wrong type at the doors of the library is told in words, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import understudy as us
from understudy.errors import ParameterError, UnderstudyError

FRAME = pa.table({"age": [1, 2, 3] * 200, "sex": ["F", "M", "F"] * 200})
CELLS = {"age": range(5), "sex": ["F", "M"]}


def project(**given: Any) -> us.Project:
    return us.declare(FRAME, CELLS, **({"epsilon": 10, "delta": 1e-6} | given))


def checked() -> us.lectures.GuessAndCheck:
    terms = us.lectures.CheckTerms(eta=Fraction(1, 20), queries=10, beta=Fraction(1, 20), rejections=1)
    return us.lectures.GuessAndCheck(project(protect="validity"), terms)


class Given:
    """Arguments as untyped code gives them: nothing here is checked before it is called."""

    frame: Any = FRAME
    text: Any = "count sex = F"
    ranges: Any = us.ranges("age")
    half: Any = 0.5
    number: Any = 7


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: us.session(Given.frame, alpha=0.2),
            r"the table is a project, not a Table; open one with us\.open",
        ),
        (lambda: us.session("understudy.yml", alpha=0.2), "the table is a project, not a str"),  # type: ignore[arg-type]
        (lambda: us.lectures.Truncation(Given.frame, queries=3), "the table is a project"),
        (lambda: us.release(Given.frame, us.marginals(1), epsilon=1), "a release is of a project"),
        (lambda: us.release(project(), Given.number, epsilon=1), "'7' is no workload: write all-3-way"),
        (lambda: us.session(project(), alpha=0.2, classes=Given.ranges), r"write `classes=\[us\.ranges"),
        (lambda: us.session(project(), alpha=0.2, expected=Given.ranges), r"write `expected=\[us\.ranges"),
        (lambda: us.session(project(), alpha=0.2, name=Given.number), "a session's name is text, not 7"),
        (lambda: us.session(project(), alpha=0.2).several(Given.text), "several questions are a list"),
        (lambda: us.session(project(), alpha=0.2).dry_run(Given.text), "several questions are a list"),
        (lambda: us.pool([Given.text]), "`us.conjunctions"),
        (lambda: project(neighbours="add"), "neighbours is replace or add-remove, not 'add'"),
        (lambda: project(protect="all"), "protect is privacy or validity, not 'all'"),
        (lambda: project().ask("count sex = F", request=Given.number), "a request's name is text, not 7"),
        (lambda: checked().ask("share sex = F", Given.half), r"`check\(question, guess\)`"),
    ],
)
def test_a_door_says_what_to_write_in_place_of_what_it_was_given(call: Callable[[], object], told: str):
    with pytest.raises(UnderstudyError, match=told) as caught:
        call()
    assert isinstance(caught.value, ParameterError) or "workload" in told
