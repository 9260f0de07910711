"""The questions asked: one answer for one request, pages that stand still, nobody else's questions."""

from __future__ import annotations

import json
import threading

import pytest

from understudy.errors import ParameterError, RequestConflictError
from understudy.privacy.cost import ZCDP
from understudy.server.asked import Asked, KeptReply
from understudy.server.store import ServerStore


@pytest.fixture
def asked(store: ServerStore) -> Asked:
    return Asked(store)


def reply(question, request, terms, answer, **given):
    """A reply of ada's that is kept; its answer is given as plain values."""
    text = json.dumps(answer)
    return KeptReply(
        table="town", analyst="ada", question=question, request=request, terms=terms, answer=text, **given
    )


def test_a_request_keeps_its_first_answer_across_starts(state):
    with ServerStore(state) as store:
        asked = Asked(store)
        begun = asked.begin("town", "ada", "count", "r1", {"rho": 0.1}, ledger_request="ada/r1")
        assert (begun.state, begun.answer) == ("asking", None)
        asked.answered(begun.id, {"value": 5, "unit": "ü"}, price=ZCDP(10**14), share=0.1, source="bought")
        asked.answered(begun.id, {"value": 6}, price=ZCDP(0), share=0, source="bought")
        asked.refused(begun.id, {"detail": "late"})
    with ServerStore(state) as store:
        asked = Asked(store)
        again = asked.begin("town", "ada", "count", "r1", {"rho": 0.1})
        assert again.answer == {"value": 5, "unit": "ü"}
        assert (again.id, again.price, again.currency) == (begun.id, 0.1, "rho")
        assert (again.state, again.ledger_request) == ("answered", "ada/r1")
        assert asked.find("town", "ada", "r1") == asked.get(begun.id) == again


def test_one_request_is_one_question(asked):
    asked.begin("town", "ada", "count", "r1", {"rho": 0.1})
    for question, terms in (("count by sex", {"rho": 0.1}), ("count", {"rho": 0.2})):
        with pytest.raises(RequestConflictError) as told:
            asked.begin("town", "ada", question, "r1", terms)
        assert told.value.question == "count"
    # Another analyst's request, and another table's, are their own.
    assert asked.begin("town", "bob", "sum", "r1", {}).analyst == "bob"
    assert asked.begin("visits", "ada", "sum", "r1", {}).table == "visits"


def test_a_refused_question_can_be_answered_later(asked):
    id = asked.begin("town", "ada", "count", "r1", {}).id
    asked.refused(id, {"code": "budget"})
    assert (asked.get(id).state, asked.get(id).problem) == ("refused", {"code": "budget"})
    asked.wait(id)
    assert (asked.get(id).state, asked.get(id).finished) == ("waiting", None)
    asked.answered(id, {"value": 1}, price=ZCDP(1), share=0.0, source="bought")
    assert asked.get(id).state == "answered"


def test_free_answers_are_noted_and_found_at_once(asked):
    id = asked.note(
        "town", "ada", "count", "r1", {}, answer=json.dumps({"value": 1}), source="repetition", currency="rho"
    )
    found = asked.get(id)
    assert (found.state, found.answer, found.price, found.source) == (
        "answered",
        {"value": 1},
        0.0,
        "repetition",
    )
    assert found.finished == found.at
    asked.note(
        "town", "ada", "count", "r1", {}, answer=json.dumps({"value": 2}), source="repetition", currency="rho"
    )
    assert asked.begin("town", "ada", "count", "r1", {}).answer == {"value": 1}


def test_pages_are_newest_first_and_stand_still(asked):
    for i in range(7):
        asked.begin("town", "ada", f"q{i}", f"r{i}", {})
        asked.begin("town", "bob", f"secret {i}", f"r{i}", {})
    first, cursor = asked.page(analyst="ada", limit=3)
    assert [found.question for found in first] == ["q6", "q5", "q4"]
    asked.begin("town", "ada", "new", "new", {})
    second, cursor = asked.page(analyst="ada", limit=3, after=cursor)
    assert [found.question for found in second] == ["q3", "q2", "q1"]
    third, end = asked.page(analyst="ada", limit=3, after=cursor)
    assert ([found.question for found in third], end) == (["q0"], "")
    everybody, _ = asked.page(limit=500)
    assert len(everybody) == 15


def test_pages_are_filtered(asked):
    asked.begin("town", "ada", "a", "1", {})
    id = asked.begin("visits", "ada", "b", "2", {}).id
    asked.refused(id, {})
    assert [found.id for found in asked.page(table="visits")[0]] == [id]
    assert [found.id for found in asked.page(state="refused", analyst="ada")[0]] == [id]
    assert asked.page(analyst="nobody") == ([], "")
    for wrong in ({"after": "x"}, {"limit": 0}, {"limit": 501}):
        with pytest.raises(ParameterError):
            asked.page(**wrong)


def test_a_history_tells_neither_numbers_nor_answers(asked):
    id = asked.begin("town", "ada", "count", "r1", {}).id
    asked.answered(id, {"value": 5}, price=ZCDP(1), share=0.1, source="bought")
    told = asked.get(id).as_dict()
    assert not {"number", "answer", "ledger_request"} & told.keys()
    assert told["finished"].endswith("Z")


def test_half_a_character_is_refused_and_blocks_nothing(asked):
    for text in ("\ud800", "a\udfff"):
        with pytest.raises(ParameterError, match="half a character"):
            asked.note(
                "town", "ada", text, "r1", {}, answer=json.dumps({}), source="repetition", currency="rho"
            )
        with pytest.raises(ParameterError, match="half a character"):
            asked.begin("town", "ada", text, "r1", {})
        with pytest.raises(ParameterError, match="half a character"):
            asked.find("town", "ada", text)
    id = asked.note(
        "town", "ada", "count", "r1", {}, answer=json.dumps({}), source="repetition", currency="rho"
    )
    assert asked.get(id) is not None


def test_an_answer_is_kept_in_one_step_and_only_once(asked):
    terms = {"rho": 0.1}
    given = {"price": ZCDP(10**14), "share": 0.1, "source": "bought", "ledger_request": "ada/r1"}
    kept = asked.keep(reply("count", "r1", terms, {"value": 5}, **given))
    again = asked.keep(reply("count", "r1", terms, {"value": 6}, **given))
    assert kept == again == asked.find("town", "ada", "r1")
    assert (kept.state, kept.answer, kept.price, kept.ledger_request) == (
        "answered",
        {"value": 5},
        0.1,
        "ada/r1",
    )
    with pytest.raises(RequestConflictError):
        asked.keep(reply("sum", "r1", terms, {"value": 5}, **given))
    begun = asked.begin("town", "ada", "sum", "r2", terms)
    assert asked.keep(reply("sum", "r2", terms, {"value": 1}, **given)).id == begun.id


def test_answers_that_are_kept_together_do_not_fail_together(asked):
    given = {"price": ZCDP(10**14), "share": 0.1, "source": "bought"}
    asked.keep(reply("count", "taken", {}, {"value": 0}, **given))
    failed, barrier = [], threading.Barrier(9)

    def keep(number):
        barrier.wait()
        for i in range(20):
            name = "taken" if number == 0 else "\ud800" if number == 1 else f"r{number} {i}"
            try:
                kept = asked.keep(reply(f"count {i}", name, {}, {"value": i}, **given))
                assert kept.answer == {"value": i}
            except (RequestConflictError, ParameterError):
                failed.append(number)

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(failed) == [0] * 20 + [1] * 20
    for number in range(2, 9):
        for i in range(20):
            assert asked.find("town", "ada", f"r{number} {i}").answer == {"value": i}


def test_notes_are_found_before_they_are_written_and_do_not_fill_the_memory(asked, monkeypatch):
    monkeypatch.setattr("understudy.server.asked.MOST_NOTED", 3)
    monkeypatch.setattr(asked._store, "flush", lambda: None)
    for i in range(5):
        asked.note(
            "town",
            "ada",
            "count",
            f"r{i}",
            {},
            answer=json.dumps({"v": i}),
            source="repetition",
            currency="rho",
        )
    assert [asked.find("town", "ada", f"r{i}").answer for i in (2, 3, 4)] == [{"v": 2}, {"v": 3}, {"v": 4}]
    assert len(asked._noted) == 3
