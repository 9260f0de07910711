"""Every public callable names its parameters and the errors that it raises, in its docstring or its class's."""

from __future__ import annotations

from functools import cache

import pytest

from public_api import ERRORS, Described, described, names_parameter, public_callables, raised_in
from understudy.errors import ParameterError, QueryError


@cache
def callables() -> dict[str, Described]:
    """The public callables by their names; they are looked up where a test needs them, and not in every worker."""
    return {one.name: one for one in public_callables()}


def test_the_list_holds_what_people_call():
    wanted = {
        "Answer.to_frame", "Board.score", "Budget.of", "Connection.ask", "Curator.sparse", "Domain.size",
        "Holdout.score", "Holdout.history", "InsufficientBudgetError", "Ledger.charge", "OpenSparseVector.ask",
        "Project.frame", "Release.sample", "RemoteTable.ask_all", "Session.ask", "declare", "forecast",
        "lectures.GuessAndCheck.check", "lectures.monitor", "metrics.r2", "open", "plan", "release", "session",
    }  # fmt: skip
    assert wanted <= set(callables())
    assert len(callables()) > 600


def test_every_public_callable_says_something_of_its_own():
    assert [name for name, one in callables().items() if len(one.docstrings[0].split()) < 2] == []


def test_every_parameter_and_every_raised_error_is_named():
    assert {name: one.missing() for name, one in callables().items() if one.missing()} == {}


# ---- what the checks are worth


class Told:
    """A table of `cells`; raises a `ParameterError` where there are none."""

    def __init__(self, cells: int) -> None:
        if cells < 1:
            raise ParameterError("no cells")
        self.cells = cells

    def shrink(self, by: int) -> int:
        """Fewer cells, by so many."""
        if by > self.cells:
            raise QueryError("too few")
        return self.cells - by


def told(name: str) -> Described:
    (found,) = (one for one in described("Told", Told) if one.name == name)
    return found


def test_a_parameter_and_an_error_that_nobody_names_are_found(monkeypatch):
    monkeypatch.setattr(Told, "__module__", "understudy.told")
    for member in (Told.__init__, Told.shrink):
        monkeypatch.setattr(member, "__module__", "understudy.told")
    assert told("Told").missing() == []
    assert told("Told.shrink").missing() == ["by", "QueryError"]


def test_a_docstring_that_loses_a_parameter_or_an_error_is_found():
    """The mutant: the docstring of a public function without one of its words."""
    declare = callables()["declare"]
    text = declare.docstrings[0]
    for word in ("rows_at_most", "ParameterError"):
        cut = Described(declare.name, declare.function, (text.replace(word, "it"),), declare.parameters)
        assert cut.missing() == [word]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The `cells` of it.", True),
        ("With `cells=True` all of them.", True),
        ("The keywords `**cells`.", True),
        ("    cells  how many there are", True),
        ("    rows, cells  how many there are", True),
        ("The cells of it.", False),
        ("The `cells_of` it.", False),
        ("cells how many", False),
    ],
)
def test_a_parameter_is_named_in_backticks_or_in_a_list(text, named):
    assert names_parameter(text, "cells") is named


def test_errors_are_read_from_the_body_alone():
    body = "def f(x):\n    if x:\n        raise QueryError('a')\n    raise ValueError('b') from None\n"
    assert raised_in(body) == {"QueryError"}
    assert {"UnderstudyError", "ClosedError"} <= ERRORS
