"""What is thrown at the door for agents: bodies that are none, hosts and origins of others, types, and noise."""

from __future__ import annotations

import json
from ipaddress import ip_network

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents import ACCEPTS, Agent
from served import Client, config, people, serving, tokens
from understudy.server.logins import Logins


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    configured = config(people(tmp_path_factory.mktemp("hostile"), rows=200))
    (token,) = tokens(configured, "ada")
    with serving(configured) as service:
        Agent(service, token).call("list_tables")
        yield service, token


@pytest.fixture
def agent(house):
    return Agent(*house)


JSON = {"content-type": "application/json"}

BODIES = {
    "nothing": b"",
    "half": b"{",
    "bytes": bytes(range(256)),
    "text": b'"tools/call"',
    "number": b"5",
    "endless number": b"1" * 5000,
    "empty object": b"{}",
    "batch": b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    "deep": b"[" * 30_000,
    "deep object": b'{"a":' * 10_000,
    "deep params": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":'
    + b"[" * 900
    + b"]" * 900
    + b"}}",
    "old protocol": b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    "reply": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "no method": b'{"jsonrpc":"2.0","id":1}',
    "method number": b'{"jsonrpc":"2.0","id":1,"method":5}',
    "params list": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}',
    "half a character": b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    "half a character in a name": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\udfff"}}',
    "odd id": b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}',
    "true id": b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    "unknown method": b'{"jsonrpc":"2.0","id":1,"method":"tools/rm"}',
    "no tool": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}',
    "no such tool": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"drop_table"}}',
    "arguments list": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":["x"]}}',
    "another resource": b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
    "subscribe": b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}',
    "set level": b'{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}',
    "cancelled": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
}


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", "2024-01-01", "x" * 500])
@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_no_request_is_refused_and_changes_nothing(house, agent, name, version):
    before = house[0].gate.served.tables["people"].generation
    status, told, _ = agent.post(raw=BODIES[name], headers=JSON | {"mcp-protocol-version": version})
    assert status in (200, 202, 400, 404, 406), told
    if status == 200:
        assert "error" in told, told
    elif status != 202:
        assert "error" in told
        assert "Traceback" not in str(told)
    assert house[0].gate.served.tables["people"].generation == before
    assert "result" in agent.send("ping")


def test_bodies_that_no_message_has_are_told_in_words(agent):
    for name in ("half", "batch", "reply", "params list"):
        status, told, _ = agent.post(raw=BODIES[name], headers=JSON)
        assert (status, told["id"], told["error"]["code"]) == (400, None, -32600)
        assert "Send one" in told["error"]["message"] or "needs a method" in told["error"]["message"]
    error = agent.send("tools/call", name="drop_table")["error"]
    assert error["message"].startswith("There is no such tool. Tools are: list_tables, describe")
    error = agent.send("resources/read", uri="understudy://people/rows")["error"]
    assert "understudy://{table}/declaration" in error["message"]
    assert (
        agent.send("resources/read", uri="understudy://%00/declaration")["error"]["data"]["code"]
        == "no-table"
    )
    assert "how_to_ask" in agent.send("prompts/get", name="x")["error"]["message"]


def test_what_is_too_large_is_refused_before_it_is_read(agent):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask"}}
    large = json.dumps(message | {"x": "y" * 70_000}).encode()
    status, told, _ = agent.post(raw=large, headers=JSON)
    assert (status, told["code"]) == (413, "too-large")
    words, problem = agent.refused("ask", question="count " * 2_000)
    assert (problem["code"], "at most 10,000 are read" in words) == ("arguments", True)
    assert agent.refused("ask", question="a " * 2_001)[1]["code"] == "too-long"
    assert agent.refused("ask", question="(" * 9_000)[1]["status"] in (413, 422)
    assert agent.refused("price", questions=["count"] * 51)[1]["code"] == "arguments"


@pytest.mark.parametrize("content", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_type_of_content_is_refused(agent, content):
    """A form on another site can send these without asking."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    assert agent.post(raw=body, headers={"content-type": content})[0] == 400


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1.evil:80", "x"]
)
def test_a_page_of_another_site_is_refused(agent, origin):
    status, told, _ = agent.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={"origin": origin})
    assert (status, told["code"]) == (403, "cross-site")


def test_another_host_is_refused_and_the_own_origin_is_not(house, agent):
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert agent.post(ping, headers={"host": "evil.example"})[0] == 421
    host = f"localhost:{house[0].addresses['http'].port}"
    assert agent.post(ping, headers={"host": host, "origin": f"http://{host}"})[0] == 200


def test_behind_a_proxy_any_host_is_answered_and_another_sites_page_is_not(tmp_path):
    configured = config(people(tmp_path, rows=50), behind=(ip_network("127.0.0.1/32"),))
    (token,) = tokens(configured, "ada")
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with serving(configured) as service:
        agent = Agent(service, token)
        host = {"host": "data.example.org"}
        assert agent.post(ping, headers=host)[0] == 200
        assert agent.post(ping, headers=host | {"origin": "https://data.example.org"})[0] == 200
        assert agent.post(ping, headers=host | {"origin": "https://evil.example"})[0] == 403


def test_nothing_is_subscribed_to_in_the_newer_protocol_either(agent):
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscriptions/listen",
        "params": {"_meta": meta, "filter": {}},
    }
    sent = {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
    status, told, headers = agent.post(body, headers=sent)
    assert (status in (400, 404), "error" in told) == (True, True)
    assert "event-stream" not in headers["content-type"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"])
def test_there_is_nothing_to_listen_to(house, method):
    service, token = house
    status, _, headers = Client(service, token)(method, "/mcp", headers={"accept": "text/event-stream"})
    assert (status, headers["allow"]) == (405, "POST")
    assert Client(service)(method, "/mcp")[0] in (401, 429)


def test_a_cookie_opens_nothing_here(house):
    service, _ = house
    _, secret = service.gate.tokens.make("browser")
    opened = Logins(service.gate.store, service.gate.tokens).open(secret)
    assert opened is not None
    cookie = opened[1]
    sent = {"cookie": f"understudy={cookie}", "sec-fetch-site": "same-origin"}
    assert Client(service)("GET", "/v1/tables", headers=sent)[0] == 200
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert Client(service)("POST", "/mcp", body, headers=ACCEPTS | sent)[0] in (401, 429)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=20)
    | st.sampled_from(["count by sex", "people", "answers", "certificate", "SELECT 1", "\0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_NAMES = st.sampled_from(
    ["table", "question", "questions", "request", "why", "error", "rho", "id", "state", "after", "limit",
     "release", "part", "marginal", "attribute", "uncertified"]
)  # fmt: skip
_TOOLS = st.sampled_from(
    [
        "list_tables",
        "describe",
        "price",
        "ask",
        "session_status",
        "history",
        "list_releases",
        "read_release",
        "ask_release",
    ]
)


@settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(tool=_TOOLS, arguments=st.dictionaries(_NAMES, _VALUES, max_size=4))
def test_any_arguments_get_a_result_or_a_refusal(agent, tool, arguments):
    reply = agent.send("tools/call", name=tool, arguments=arguments)
    result = reply["result"]
    if result["isError"]:
        problem = result["_meta"]["understudy/problem"]
        assert problem["status"] < 500, result
        assert problem["detail"]
