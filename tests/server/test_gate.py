"""Questions through a running server: prices, free answers, request ids, approvals, and who may do what."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from served import Client, config, people, serving, tokens
from understudy.desk.desk import Desk
from understudy.desk.refusal import refusal
from understudy.errors import StoreError
from understudy.ledger.store import DurableLedger
from understudy.server.answering import Answering
from understudy.server.asked import Asked
from understudy.server.config import ApproveAbove, Rates, SharedSession
from understudy.server.served_tables import ServedTable
from understudy.sessions.session import Session


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """A server for tests that do not mind what others asked before."""
    configured = config(people(tmp_path_factory.mktemp("town")))
    ada, bob = tokens(configured, "ada", "bob")
    [reader] = tokens(configured, "eve", read_only=True)
    [auditor] = tokens(configured, "aud", role="auditor")
    with serving(configured) as service:
        yield {
            "ada": Client(service, ada),
            "bob": Client(service, bob),
            "eve": Client(service, reader),
            "aud": Client(service, auditor),
        }


def test_an_answer_has_value_error_price_and_source_and_is_free_for_everybody_afterwards(tmp_path):
    configured = config(people(tmp_path), session=SharedSession(beta=Fraction(1, 10**9)))
    ada, bob = tokens(configured, "ada", "bob")
    with serving(configured) as service:
        status, first = Client(service, ada).ask("count by sex")
        again = Client(service, bob).ask("count by sex")[1]["answer"]
    assert status == 200
    answer = first["answer"]
    assert [row["cell"] for row in answer["rows"]] == [["F"], ["M"], ["other"]]
    assert abs(answer["rows"][0]["value"] - 1000) <= answer["rows"][0]["error"] <= 0.02 * 2000
    assert answer["source"] == "measured"
    assert answer["cost"]["rho"] > 0
    assert again["rows"] == answer["rows"]
    assert (again["source"], again["cost"], again["share"]) == ("repeat", {"rho": 0}, 0)


def test_a_price_is_what_is_charged_at_most_and_nothing_once_it_is_known(town):
    [price] = town["ada"]("POST", "/v1/tables/people/price", {"questions": ["count by area"]})[1]["prices"]
    assert price["affordable"]
    assert not price["free"]
    cost = town["ada"].ask("count by area")[1]["answer"]["cost"]["rho"]
    assert 0 < cost <= price["cost"]["rho"] * (1 + 1e-9)
    assert town["bob"]("POST", "/v1/tables/people/price", {"question": "count by area"})[1]["free"]


def test_a_select_statement_is_answered_with_its_columns(town):
    told = town["ada"].ask("SELECT job, count(*) AS n FROM people GROUP BY job")[1]["answer"]
    assert [column["name"] for column in told["columns"]] == ["job", "n"]
    assert {"value", "low", "high"} <= set(told["rows"][0][1])


def test_a_select_around_selects_is_answered_without_bounds_and_with_what_it_is_made_of(town):
    text = "SELECT job, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS place FROM people GROUP BY job"
    [price] = town["ada"]("POST", "/v1/tables/people/price", {"questions": [text]})[1]["prices"]
    told = town["ada"].ask(text)[1]["answer"]
    assert told["bounds"] == "none"
    assert [(column["name"], column["kind"]) for column in told["columns"]] == [
        ("job", "derived"), ("n", "derived"), ("place", "derived"),
    ]  # fmt: skip
    assert {"value", "low", "high"} <= set(told["inner"][0]["rows"][0][1])
    assert (
        sum(one["cost"]["rho"] for one in told["inner"])
        == told["cost"]["rho"]
        <= price["cost"]["rho"] * (1 + 1e-9)
    )
    again = town["bob"].ask(text)[1]["answer"]
    assert (again["rows"], again["cost"], again["inner"][0]["cost"]) == (told["rows"], {"rho": 0}, {"rho": 0})
    status, refused = town["ada"].ask(text.replace("rank()", "getenv('HOME')"))
    assert (status, refused["code"]) == (422, "statement")


RANKED = "SELECT job, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS place FROM people GROUP BY job"


def failing_desk(monkeypatch, reason):
    """Have the desk refuse to run statements (it describes them as ever), for this reason of its own."""

    def refused(self, statement, tables, **more):
        raise refusal(reason, limits=self.limits)

    monkeypatch.setattr(Desk, "run", refused)


@pytest.mark.parametrize("reason", ["busy", "unavailable"])
@pytest.mark.parametrize("terms", [{}, {"rho": 1e-4}])
def test_an_outer_select_that_nothing_could_run_is_run_when_it_is_asked_again_and_paid_once(
    tmp_path, monkeypatch, reason, terms
):
    configured = config(people(tmp_path))
    ada, bob = tokens(configured, "ada", "bob")
    with serving(configured) as service:
        client = Client(service, ada)
        with monkeypatch.context() as patched:
            failing_desk(patched, reason)
            for _ in range(2):
                status, refused = client.ask(RANKED, request="r1", **terms)
                assert (status, refused["code"], refused["reason"]) == (503, "statement", reason)
                assert "nothing is paid twice" in refused["hint"]
        left = client.get("/v1/tables/people/budget")[1]["left"]["amount"]
        status, told = client.ask(RANKED, request="r1", **terms)
        assert (status, told["answer"]["problem"], len(told["answer"]["rows"])) == (200, "", 2)
        assert client.get("/v1/tables/people/budget")[1]["left"]["amount"] == left
        assert client.ask(RANKED, request="r1", **terms) == (status, told)
        if not terms:
            assert Client(service, bob).ask(RANKED)[1]["answer"]["rows"] == told["answer"]["rows"]


@pytest.mark.parametrize("reason", ["time", "size", "value"])
def test_an_answer_with_a_problem_is_not_everybodys(tmp_path, monkeypatch, reason):
    configured = config(people(tmp_path))
    ada, bob = tokens(configured, "ada", "bob")
    with serving(configured) as service:
        with monkeypatch.context() as patched:
            failing_desk(patched, reason)
            status, first = Client(service, ada).ask(RANKED, request="r1")
            assert (status, first["answer"]["rows"]) == (200, [])
            assert first["answer"]["problem"]
            assert first["answer"]["inner"][0]["rows"]
        for asks in (bob, ada):
            told = Client(service, asks).ask(RANKED)[1]["answer"]
            assert (told["problem"], len(told["rows"]), told["cost"]) == ("", 2, {"rho": 0})
        assert Client(service, ada).ask(RANKED, request="r1") == (status, first)


def test_a_direct_question_without_a_request_id_gets_what_it_paid_for_where_the_desk_is_busy(
    tmp_path, monkeypatch
):
    configured = config(people(tmp_path))
    [ada] = tokens(configured, "ada")
    failing_desk(monkeypatch, "busy")
    with serving(configured) as service:
        status, told = Client(service, ada).ask(RANKED, rho=1e-4)
    assert (status, told["answer"]["rows"], len(told["answer"]["inner"][0]["rows"])) == (200, [], 2)
    assert "other statements are being run" in told["answer"]["problem"]


def test_a_request_gets_the_same_bytes_and_pays_once_and_is_nobody_elses(town):
    asked = {"question": "count age < 18", "rho": 0.001, "request": "r-1"}
    first = town["ada"]("POST", "/v1/tables/people/ask", asked)
    before = town["ada"].get("/v1/tables/people/budget")[1]["left"]["amount"]
    assert town["ada"]("POST", "/v1/tables/people/ask", asked)[:2] == first[:2]
    assert town["ada"].get("/v1/tables/people/budget")[1]["left"]["amount"] == before
    status, told = town["ada"].ask("count age < 65", rho=0.001, request="r-1")
    assert (status, told["code"]) == (409, "request-conflict")
    assert town["ada"].ask("count age < 18", rho=0.002, request="r-1")[0] == 409
    assert town["bob"].ask("count age < 65", rho=0.001, request="r-1")[0] == 200  # another analyst's name


def test_a_session_question_under_a_request_is_kept_with_what_it_cost(town):
    first = town["ada"].ask("count by age, sex", request="s-1")[1]
    again = town["ada"].ask("count by age, sex", request="s-1")[1]
    assert first == again
    assert first["answer"]["cost"]["rho"] > 0
    assert town["ada"].ask("count by age, sex")[1]["answer"]["cost"]["rho"] == 0
    assert town["ada"].ask("count by age, sex", request="s-1", uncertified=False)[0] == 409


def test_a_read_only_token_gets_prices_and_what_is_free(town):
    town["ada"].ask("count by job")
    assert town["eve"]("POST", "/v1/tables/people/price", {"question": "count by area, job"})[0] == 200
    assert town["eve"].ask("count by job")[0] == 200
    for given in ({}, {"rho": 0.001}):
        status, told = town["eve"].ask("count area = n and job = true and age < 18", **given)
        assert (status, told["code"]) == (403, "read-only")


def test_an_auditor_asks_nothing_and_sees_all_history_an_analyst_only_their_own(town):
    town["ada"].ask("count by area, sex")
    town["bob"].ask("count")
    assert town["aud"].ask("count")[0] == 403
    seen = {one["analyst"] for one in town["aud"].get("/v1/history?limit=500")[1]["questions"]}
    assert {"ada", "bob"} <= seen
    mine = town["bob"].get("/v1/history?limit=500")[1]["questions"]
    assert {one["analyst"] for one in mine} == {"bob"}
    assert town["bob"].get("/v1/history?analyst=ada")[0] == 403
    theirs = town["ada"].get("/v1/history")[1]["questions"][0]["id"]
    assert town["bob"].get(f"/v1/asks/{theirs}")[0] == 404
    assert town["aud"].get(f"/v1/asks/{theirs}")[1]["answer"]


def test_pages_of_a_history_follow_each_other(town):
    for _ in range(5):
        town["bob"].ask("count")
    whole = [one["id"] for one in town["bob"].get("/v1/history?limit=500")[1]["questions"]]
    found, cursor = [], ""
    while True:
        page = town["bob"].get(f"/v1/history?limit=2&after={cursor}")[1]
        found += [one["id"] for one in page["questions"]]
        cursor = page["next"]
        if not cursor:
            break
    assert found == whole


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"question": "count by nothing"}, 422, "question"),
        ({"question": "count sexx = F"}, 422, "question"),
        ({"question": "SELECT * FROM people"}, 422, "question"),
        ({"question": ""}, 422, "question"),
        ({"question": "count " + "x" * 10_000}, 413, "too-long"),
        ({"question": "count " * 2_001}, 413, "too-long"),
        ({"question": "count", "epsilon": -1}, 422, "parameter"),
        ({"question": "count", "epsilon": 1, "rho": 1}, 422, "parameter"),
        ({"question": "count", "epsilon": True}, 422, "parameter"),
        ({"question": "count", "epsilon": 10**400}, 422, "parameter"),
        ({"question": "count", "request": "a b"}, 422, "request-id"),
        ({"question": "count", "request": "x" * 129}, 422, "request-id"),
        ({"question": "count", "analyst": "bob"}, 422, "body"),
        ({"question": 5}, 422, "body"),
        ({"question": "count", "uncertified": "yes"}, 422, "body"),
        ({"question": "count \ud800"}, 422, "question"),
        ({"question": "count \0"}, 422, "question"),
        ({}, 422, "body"),
    ],
)  # fmt: skip
def test_a_question_that_is_none_is_refused_in_one_shape_and_costs_nothing(town, body, status, code):
    before = town["ada"].get("/v1/tables/people/budget")[1]["left"]
    found, told, headers = town["ada"]("POST", "/v1/tables/people/ask", body)
    assert (found, told["code"], told["status"]) == (status, code, status), told
    assert headers["content-type"] == "application/problem+json"
    assert set(told) >= {"type", "title", "status", "code", "detail", "hint", "suggestions"}
    assert town["ada"].get("/v1/tables/people/budget")[1]["left"] == before


def test_the_budget_refuses_with_its_numbers_and_answers_on_uncertified(tmp_path):
    configured = config(people(tmp_path, budget="{epsilon: 0.01}"))
    [ada] = tokens(configured, "ada")
    with serving(configured) as service:
        ask = Client(service, ada).ask
        status, told = ask("count by sex", epsilon=1)
        assert (status, told["code"]) == (402, "budget")
        assert told["requested"] > told["remaining"] > 0
        assert (told["currency"], told["limit"]) == ("epsilon", "")
        assert ask("count by sex, area", uncertified=False)[0] == 402
        answer = ask("count by sex, area")[1]["answer"]
        assert answer["source"] == "uncertified"
        assert answer["rows"][0]["error"] is None
        states = [one["state"] for one in Client(service, ada).get("/v1/history")[1]["questions"]]
        assert states == ["answered", "refused", "refused"]


def test_a_limit_of_one_analyst_leaves_others_their_part(tmp_path):
    folder = people(tmp_path, budget="{epsilon: 1}", more="limits: {analysts: {ada: 0.01, '*': 0.5}}\n")
    configured = config(folder)
    ada, bob = tokens(configured, "ada", "bob")
    with serving(configured) as service:
        status, told = Client(service, ada).ask("count age < 18", epsilon=0.02)
        assert (status, told["limit"]) == (402, "analyst 'ada'")
        assert Client(service, bob).ask("count age < 18", epsilon=0.02)[0] == 200
        mine = Client(service, bob).get("/v1/tables/people/budget")[1]["yours"]
        assert mine["spent"]["amount"] == pytest.approx(0.02)
        assert mine["limit"]["amount"] == 0.5


def test_a_question_above_the_threshold_waits_is_approved_and_asked_by_the_server(tmp_path):
    configured = config(
        people(tmp_path), approve_above=ApproveAbove(people=Fraction(1, 100), agents=Fraction(1, 10**6))
    )
    [ada] = tokens(configured, "ada")
    [robot] = tokens(configured, "robot", agent=True)
    [keeper] = tokens(configured, "cus", role="custodian")
    with serving(configured) as service:
        ask, keep = Client(service, ada).ask, Client(service, keeper)
        status, kept = ask("count age < 18", rho=2, request="w", why="a study")
        assert (status, kept["state"], kept["approval"]["state"]) == (202, "waiting", "waiting")
        assert ask("count age < 18", rho=2, request="w") == (status, kept)
        assert ask("count age < 65", rho=2, request="w")[0] == 409
        assert ask("count age < 18", rho=0.001)[0] == 200
        assert Client(service, robot).ask("count age < 18", rho=0.001, request="x")[0] == 202
        waiting = keep("GET", "/approvals?state=waiting", door="admin")[1]["approvals"]
        assert [(one["analyst"], one["why"]) for one in waiting] == [("ada", "a study"), ("robot", "")]
        first, second = (one["id"] for one in waiting)
        assert keep("POST", f"/approvals/{second}", {"decision": "deny"}, door="admin")[0] == 422
        denied = {"decision": "deny", "reason": "too much"}
        assert keep("POST", f"/approvals/{second}", denied, door="admin")[0] == 200
        assert keep("POST", f"/approvals/{second}", denied, door="admin")[0] == 409
        status, told = Client(service, robot).ask("count age < 18", rho=0.001, request="x")
        assert (status, told["code"]) == (403, "denied")
        assert "too much" in told["detail"]
        for one in (Client(service, robot).get("/v1/history")[1]["questions"][0],
                    Client(service, robot).get("/v1/history?state=refused")[1]["questions"][0]):  # fmt: skip
            assert (one["state"], one["problem"]["code"]) == ("refused", "denied")
            looked = Client(service, robot).get(f"/v1/asks/{one['id']}")[1]
            assert (looked["state"], looked["approval"]["state"]) == ("refused", "denied")
            assert looked["finished"] == looked["approval"]["decided"] is not None
            assert looked["problem"] == told
        assert keep("POST", f"/approvals/{first}", {"decision": "approve"}, door="admin")[0] == 200
        for _ in range(100):
            status, told = ask("count age < 18", rho=2, request="w")
            if status == 200:
                break
            time.sleep(0.05)
        assert told["answer"]["cost"] == {"rho": 2}
        for _ in range(100):  # the answer is kept, and may be had, a moment before the approval says so
            state = Client(service, ada).get(f"/v1/asks/{kept['id']}")[1]["approval"]["state"]
            if state != "approved":
                break
            time.sleep(0.05)
        assert state == "answered"


def test_a_paused_table_refuses_questions_and_tells_why(town, tmp_path):
    configured = config(people(tmp_path))
    [ada] = tokens(configured, "ada")
    [keeper] = tokens(configured, "cus", role="custodian")
    with serving(configured) as service:
        ask, keep = Client(service, ada).ask, Client(service, keeper)
        assert keep("POST", "/pause", {"table": "people", "reason": "audit"}, door="admin")[0] == 200
        status, told = ask("count by sex")
        assert (status, told["code"]) == (503, "paused")
        assert "audit" in told["detail"]
        assert keep("DELETE", "/pause/people", door="admin")[0] == 200
        assert ask("count by sex")[0] == 200


def test_who_asks_too_fast_is_told_when_to_come_back(tmp_path):
    configured = config(people(tmp_path), rates=Rates(requests=2.0, at_once=4, waiting=64))
    ada, bob = tokens(configured, "ada", "bob")
    with serving(configured) as service:
        found = [Client(service, ada)("GET", "/v1/tables") for _ in range(4)]
        assert [status for status, _, _ in found][:2] == [200, 200]
        status, told, headers = found[-1]
        assert (status, told["code"]) == (429, "rate")
        assert 1 <= int(headers["retry-after"]) <= 2
        assert Client(service, bob).get("/v1/tables")[0] == 200


def test_own_sessions_pay_for_themselves(tmp_path):
    configured = config(people(tmp_path), own_sessions=True)
    ada, bob = tokens(configured, "ada", "bob")
    with serving(configured) as service:
        for token in (ada, bob):
            client = Client(service, token)
            assert client("POST", "/v1/tables/people/sessions")[0] == 201
            assert client.ask("count by sex")[1]["answer"]["source"] == "measured"
            [mine] = client.get("/v1/tables/people/sessions")[1]["sessions"]
            assert (mine["shared"], mine["purchases"]) == (False, 1)


def test_a_question_needs_an_approval_by_what_it_is_charged_not_by_what_it_would_cost_alone(tmp_path):
    """Jointly with what was charged before, a direct question may cost its quote, a part of it, or nothing."""
    configured = config(
        people(tmp_path), approve_above=ApproveAbove(people=Fraction(3, 200), agents=Fraction(1, 10**6))
    )
    [ada] = tokens(configured, "ada")
    with serving(configured) as service:
        ask = Client(service, ada)
        rho = ask.get("/v1/tables/people/budget")[1]["cap"]["amount"] / 100

        def left():
            return ask.get("/v1/tables/people/budget")[1]["left"]["amount"]

        for area in ("n", "e", "s"):
            assert ask.ask(f"count area = {area}", rho=rho)[0] == 200
        before, asked = left(), 1.6 * rho

        def price(area):
            question = {"question": f"count area = {area}", "rho": asked}
            return ask("POST", "/v1/tables/people/price", question)[1]

        prices = {area: price(area) for area in ("s", "w")}
        told = prices["s"]["cost"]["rho"]
        assert told == pytest.approx(asked, rel=1e-6)  # its rows have paid as much as any others
        assert prices["s"]["needs_approval"]
        status, told = ask.ask("count area = s", rho=asked, request="again")
        assert (status, told.get("state"), left()) == (202, "waiting", before)
        assert told["approval"]["price"] == pytest.approx(asked, rel=1e-6)
        assert prices["w"]["cost"]["rho"] < asked / 2
        assert ask.ask("count area = w", rho=asked)[0] == 200  # dear alone, and cheap beside the others


def test_a_question_that_became_dearer_in_the_queue_waits_for_approval(tmp_path, monkeypatch):
    """What others ask meanwhile can make a class of answers due, which costs more than a question's own counts.

    So the price that is compared with the threshold is found in the question's turn, and nowhere else.
    """
    configured = config(
        people(tmp_path), approve_above=ApproveAbove(people=Fraction(1, 2), agents=Fraction(1, 10**6))
    )
    [ada] = tokens(configured, "ada")
    asked, price = [], Session.price

    def rising(self, question, analyst=None, *, error=None):
        asked.append(question)
        told = price(self, question, analyst, error=error)
        return told if len(asked) == 1 else type(told)(self.remaining.units * 3 // 4)

    monkeypatch.setattr(Session, "price", rising)
    with serving(configured) as service:
        client = Client(service, ada)
        told = client("POST", "/v1/tables/people/price", {"question": "count area = n and job = true"})[1]
        assert told["needs_approval"] is False
        before = client.get("/v1/tables/people/budget")[1]["left"]["amount"]
        status, told = client.ask("count area = n and job = true", request="later")
        assert (status, told["state"], len(asked)) == (202, "waiting", 2)
        assert client.get("/v1/tables/people/budget")[1]["left"]["amount"] == before


@pytest.mark.parametrize("how", ["revoked", "paused"])
def test_what_waits_in_line_is_not_bought_once_its_token_is_revoked_or_its_table_paused(
    tmp_path, monkeypatch, how
):
    configured = config(people(tmp_path))
    ada, bob = tokens(configured, "ada", "bob")
    begun, goes_on, ask = threading.Event(), threading.Event(), Session.ask

    def slowly(self, question, **given):
        begun.set()
        assert goes_on.wait(30)
        return ask(self, question, **given)

    monkeypatch.setattr(Session, "ask", slowly)
    with serving(configured) as service, ThreadPoolExecutor(2) as crowd:
        gate = service.gate
        first = crowd.submit(Client(service, ada).ask, "count area = n and job = true")
        assert begun.wait(30)
        second = crowd.submit(Client(service, bob).ask, "count area = s and job = true and age < 18")
        while not gate.looks.length:  # the session is asked by one at a time
            time.sleep(0.01)
        if how == "revoked":
            [id] = [token.id for token in gate.tokens.all() if token.analyst == "bob"]
            gate.tokens.revoke(id)
        else:
            gate.pauses.pause("people", by="custodian", reason="stop")
        goes_on.set()
        status, told = second.result(30)
        assert first.result(30)[0] == 200
        assert (status, told["code"]) == ((403, "revoked") if how == "revoked" else (503, "paused"))
        with gate.table("people").use() as opened:
            assert "bob" not in opened.project.ledger.spent_by()


def test_a_crowd_without_tokens_does_not_keep_what_was_approved_from_being_asked(tmp_path, monkeypatch):
    """Whether the server is ready may be asked by anybody, as often as they like: theirs is another line."""
    configured = config(
        people(tmp_path),
        approve_above=ApproveAbove(people=Fraction(1, 10**6), agents=Fraction(1, 10**6)),
        rates=Rates(requests=1e6, at_once=1, waiting=1),
    )
    [ada] = tokens(configured, "ada")
    [keeper] = tokens(configured, "kim", role="custodian")
    goes_on = threading.Event()
    monkeypatch.setattr(ServedTable, "is_open", property(lambda _: goes_on.wait(30)))
    with serving(configured) as service, ThreadPoolExecutor(2) as crowd:
        ask = Client(service, ada)
        kept = ask.ask("count by sex")[1]
        waiting = [crowd.submit(Client(service).get, "/readyz") for _ in range(2)]
        try:
            while not service.gate.free.length:
                time.sleep(0.01)
            assert Client(service).get("/readyz")[0] == 429
            approve = f"/approvals/{kept['approval']['id']}"
            assert Client(service, keeper)("POST", approve, {"decision": "approve"}, door="admin")[0] == 200
            until = time.monotonic() + 10
            while ask.get(f"/v1/asks/{kept['id']}")[1]["state"] != "answered" and time.monotonic() < until:
                time.sleep(0.05)
            assert ask.get(f"/v1/asks/{kept['id']}")[1]["state"] == "answered"
        finally:
            goes_on.set()
        assert [one.result(30)[0] for one in waiting] == [200, 200]


def test_direct_questions_that_wait_together_share_commits_and_are_each_charged_once(tmp_path, monkeypatch):
    configured = config(people(tmp_path))
    names = [f"analyst {i}" for i in range(12)]
    secrets = tokens(configured, *names)
    (reader,) = tokens(configured, "reader", read_only=True)
    begun, goes_on, direct_all = threading.Event(), threading.Event(), Answering.direct_all
    batches, commits, submit_all = [], [], DurableLedger._submit_all

    def held(self, table, asked):
        batches.append(len(asked))
        if not begun.is_set():
            begun.set()
            assert goes_on.wait(30)
        return direct_all(self, table, asked)

    def counted(self, operations):
        commits.append(len(operations))
        return submit_all(self, operations)

    monkeypatch.setattr(Answering, "direct_all", held)
    monkeypatch.setattr(DurableLedger, "_submit_all", counted)
    monkeypatch.setattr("understudy.curator.batch.PORTION_SECONDS", 60.0)  # whatever else the machine does
    with serving(configured) as service, ThreadPoolExecutor(20) as crowd:
        client = Client(service, secrets[0])
        first = crowd.submit(client.ask, "count age < 18", rho=1e-4, request="first")
        assert begun.wait(30)
        others = [
            crowd.submit(Client(service, secret).ask, "count age < 18", rho=1e-4, request="mine")
            for secret in secrets
        ]
        twice = crowd.submit(client.ask, "count age < 18", rho=1e-4, request="mine")
        refused = crowd.submit(Client(service, reader).ask, "count age < 18", rho=1e-4)
        wrong = crowd.submit(client.ask, "count agee < 18", rho=1e-4)
        dear = crowd.submit(client.ask, "count by sex", rho=1e4)
        deadline = time.monotonic() + 30
        while service.gate.looks.length < 15 and time.monotonic() < deadline:
            time.sleep(0.01)
        goes_on.set()
        told = [other.result(30) for other in others]
        assert [first.result(30)[0], *(status for status, _ in told)] == [200] * 13
        assert [one.result(30)[0] for one in (refused, wrong, dear)] == [403, 422, 402]
        assert twice.result(30) == told[0]  # the same request, sent twice at once
        assert batches == [1, 15]
        # The first question's two, and two of all others, of which the dear one was refused.
        assert commits == [1, 1, 13, 12]
        with service.gate.table("people").use() as opened:
            ledger = opened.project.ledger
            assert len([entry for entry in ledger.entries(kind="debit", limit=500) if entry.cost.units]) == 13
            assert sum(cost.units for cost in ledger.spent_by().values()) == ledger.spent.units
        assert client.ask("count age < 18", rho=1e-4, request="mine") == told[0]
        states = [one["state"] for one in client.get("/v1/history")[1]["questions"]]
        assert sorted(states) == ["answered", "answered", "refused"]


def test_a_known_answer_under_a_request_id_is_kept_before_it_is_sent(tmp_path, monkeypatch):
    configured = config(people(tmp_path))
    ada, bob = tokens(configured, "ada", "bob")
    with serving(configured) as service:
        assert Client(service, ada).ask("count by sex")[0] == 200
        client = Client(service, bob)
        kept, keep_new = [], Asked.keep_new

        def failing(self, replies):
            raise StoreError("the disk that holds the server's state is full", remedy="Free some space")

        monkeypatch.setattr(Asked, "keep_new", failing)
        status, problem = client.ask("count by sex", request="r1")
        assert (status, problem["code"]) == (503, "store")
        monkeypatch.setattr(
            Asked, "keep_new", lambda self, replies: kept.append(len(replies)) or keep_new(self, replies)
        )
        first = client.ask("count by sex", request="r1")
        assert (first[0], kept) == (200, [1])
        assert client.ask("count by sex", request="r1") == first
        assert client.ask("count", request="r1")[0] == 409
        begun = service.gate.asked.begin("people", "bob", "count by sex", "r2", {"uncertified": True})
        told = client.ask("count by sex", request="r2")[1]
        assert (told["id"], told["state"]) == (begun.id, "answered")
    with serving(configured) as service:
        assert Client(service, bob).ask("count by sex", request="r1") == first


def test_a_request_id_that_is_used_for_another_question_while_the_first_is_under_way_is_refused(
    tmp_path, monkeypatch
):
    configured = config(people(tmp_path))
    (ada,) = tokens(configured, "ada")
    begun, goes_on, direct_all = threading.Event(), threading.Event(), Answering.direct_all

    def held(self, table, asked):
        begun.set()
        assert goes_on.wait(30)
        return direct_all(self, table, asked)

    monkeypatch.setattr(Answering, "direct_all", held)
    with serving(configured) as service, ThreadPoolExecutor(2) as crowd:
        client = Client(service, ada)
        first = crowd.submit(client.ask, "count age < 18", rho=1e-4, request="mine")
        assert begun.wait(30)
        for other in ({"question": "count age < 65", "rho": 1e-4}, {"question": "count age < 18"}):
            status, told = client.ask(**other, request="mine")
            assert (status, told["code"]) == (409, "request-conflict")
        same = crowd.submit(client.ask, "count age < 18", rho=1e-4, request="mine")
        goes_on.set()
        assert same.result(30) == first.result(30)
        with service.gate.table("people").use() as opened:
            assert len(opened.project.ledger.debits("ada/mine")) == 1
