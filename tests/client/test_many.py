"""Many questions at once: in their order, priced before the first is asked, and told as they are answered."""

from __future__ import annotations

import threading

import pytest

from understudy.client.many import answered, batches
from understudy.errors import ApprovalNeededError, ParameterError, QueryError
from understudy.server.config import ApproveAbove


def test_answers_come_in_the_order_of_the_questions(ada, capsys):
    questions = [f"count sex = {sex} and area = {area}" for sex in "FM" for area in "nesw"]
    seen: list[tuple[int, int]] = []
    answers = ada.ask_all(questions, progress=lambda done, total: seen.append((done, total)))
    assert [answer.described for answer in answers] == [ada.ask(text).described for text in questions]
    assert seen == [(done, 8) for done in range(1, 9)]
    again = ada.ask_all(questions, at_once=8, progress=True)
    assert [one.value for one in again] == [one.value for one in answers]
    assert {one.source for one in again} <= {"repeat", "pinned"}  # as told before: nothing is bought again
    assert capsys.readouterr().err.endswith("\r8 of 8 questions answered\n")
    assert ada.ask_all([]) == []


def test_a_mistake_in_the_last_costs_nothing(server):
    ben = server.connect("ben")
    left = ben.budget().left
    questions = [*(f"count age < {age}" for age in (18, 65)), *["count by job"] * 60, "count by colour"]
    with pytest.raises(QueryError, match="no attribute 'colour'"):
        ben.ask_all(questions)
    assert ben.budget().left == left
    assert list(ben.history()) == []


def test_a_list_under_a_request_is_paid_once(server):
    cid = server.connect("cid")
    questions = ["count by sex", "count by area"]
    first = cid.ask_all(questions, error=30.0, request="both")
    left = cid.budget().left.amount
    second = cid.ask_all(questions, error=30.0, request="both")
    assert [one.value.tolist() for one in second] == [one.value.tolist() for one in first]
    assert cid.budget().left.amount == left


def test_prices_of_many_questions_in_few_requests(ada):
    questions = [f"count age < 18 and area = {area}" for area in "nesw"] * 15
    quotes = ada.table().quote_all(questions, error=50.0)
    assert len(quotes) == 60
    assert quotes[0].cost == ada.quote(questions[0], error=50.0).cost
    assert [len(part) for part in batches(questions)] == [50, 10]


def test_what_waits_for_approval_is_raised_when_the_others_are_finished(serve):
    dora = serve(approve_above=ApproveAbove(people=0, agents=0)).connect("dora")
    with pytest.raises(ApprovalNeededError):
        dora.ask_all(["count by sex", "count by area"])


def test_a_failure_stops_what_has_not_begun():
    begun: list[int] = []
    release = threading.Event()

    def ask(place: int) -> int:
        begun.append(place)
        if place == 0:
            raise ValueError("first")
        release.wait(0.2)
        return place

    with pytest.raises(ValueError, match="first"):
        answered(["q"] * 100, ask, at_once=2, progress=False)
    assert len(begun) < 20
    with pytest.raises(ParameterError, match="`at_once` is a number from 1 to 16, not 0"):
        answered(["q"], ask, at_once=0, progress=False)
