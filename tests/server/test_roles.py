"""Every endpoint, tool and role, and every way of having no token: one table, checked against what there is."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from served import Client, config, people, serving, tokens
from understudy.server.http.app import Services, admin_app, http_app
from understudy.server.mcp.tools import Toolbox
from understudy.server.metrics import Metrics
from understudy.server.store import ServerStore
from understudy.server.tokens import ROLES, Tokens

ALL, ANALYST, AUDITOR, CUSTODIAN = set(ROLES), {"analyst"}, {"auditor", "custodian"}, {"custodian"}

RIGHTS = {
    ("http", "GET", "/v1/tables"): ALL,
    ("http", "GET", "/v1/tables/{table}"): ALL,
    ("http", "GET", "/v1/tables/{table}/budget"): ALL,
    ("http", "POST", "/v1/tables/{table}/price"): ANALYST,
    ("http", "POST", "/v1/tables/{table}/ask"): ANALYST,
    ("http", "GET", "/v1/asks/{id}"): ALL,
    ("http", "GET", "/v1/history"): ALL,
    ("http", "GET", "/v1/tables/{table}/sessions"): ALL,
    ("http", "POST", "/v1/tables/{table}/sessions"): ANALYST,
    ("http", "GET", "/v1/releases"): ALL,
    ("http", "GET", "/v1/releases/{release}/{file}"): ALL,
    ("http", "POST", "/v1/releases/{release}/ask"): ALL,
    ("http", "GET", "/v1/boards"): ALL,
    ("http", "GET", "/v1/boards/{board}"): ALL,
    ("http", "POST", "/v1/boards/{board}/submissions"): ANALYST,
    ("http", "GET", "/v1/ledger/entries"): AUDITOR,
    ("http", "GET", "/v1/ledger/verify"): AUDITOR,
    ("http", "GET", "/v1/ledger/export"): AUDITOR,
    ("http", "GET", "/v1/audit"): AUDITOR,
    ("http", "GET", "/v1/audit/verify"): AUDITOR,
    ("admin", "GET", "/tokens"): CUSTODIAN,
    ("admin", "POST", "/tokens"): CUSTODIAN,
    ("admin", "DELETE", "/tokens/{id}"): CUSTODIAN,
    ("admin", "GET", "/approvals"): CUSTODIAN,
    ("admin", "POST", "/approvals/{id}"): CUSTODIAN,
    ("admin", "GET", "/limits"): CUSTODIAN,
    ("admin", "POST", "/limits"): CUSTODIAN,
    ("admin", "GET", "/pause"): CUSTODIAN,
    ("admin", "POST", "/pause"): CUSTODIAN,
    ("admin", "DELETE", "/pause/{table}"): CUSTODIAN,
    ("admin", "GET", "/releases"): CUSTODIAN,
    ("admin", "POST", "/releases"): CUSTODIAN,
    ("admin", "GET", "/metrics"): CUSTODIAN,
    ("mcp", "CALL", "list_tables"): ALL,
    ("mcp", "CALL", "describe"): ALL,
    ("mcp", "CALL", "price"): ANALYST,
    ("mcp", "CALL", "ask"): ANALYST,
    ("mcp", "CALL", "session_status"): ALL,
    ("mcp", "CALL", "history"): ALL,
    ("mcp", "CALL", "list_releases"): ALL,
    ("mcp", "CALL", "read_release"): ALL,
    ("mcp", "CALL", "ask_release"): ALL,
}
"""Who may use which endpoint, or which tool of agents. Nobody without a token may use any of them."""

PUBLIC = {
    ("http", "/healthz"),
    ("http", "/readyz"),
    ("admin", "/healthz"),
    ("http", "/openapi.json"),
    ("admin", "/openapi.json"),
}

BODIES = {
    "/v1/tables/{table}/price": {"question": "count"},
    "/v1/tables/{table}/ask": {"question": "count by sex"},
    "/tokens": {"analyst": "new"},
    "/approvals/{id}": {"decision": "approve"},
    "/limits": {"table": "people"},
    "/pause": {"table": "people"},
    "/releases": {"name": "r", "table": "people", "epsilon": 0.1},
    "price": {"question": "count"},
    "ask": {"question": "count by sex"},
    "read_release": {"release": "r"},
    "ask_release": {"release": "r", "question": "count"},
}

REFUSED = ("none", "wrong", "expired", "revoked", "other door")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A server, and a token of every role and of every kind that must not be let in."""
    configured = config(people(tmp_path_factory.mktemp("roles")))
    found = {role: tokens(configured, role, role=role)[0] for role in ROLES}
    found |= {"none": "", "wrong": "us_" + "x" * 43}
    found["other door"] = tokens(configured, "cus", role="custodian", doors=("pg",))[0]
    with ServerStore(configured.state) as store:
        kept = Tokens(store)
        gone, found["revoked"] = kept.make("cus", role="custodian")
        kept.revoke(gone.id)
        old, found["expired"] = kept.make("cus", role="custodian", days=1)
        with store.writing() as tx:
            tx.execute("UPDATE token SET expires = ? WHERE id = ?", (store.now() - 1, old.id))
    with serving(configured) as service:
        service.services.gate.rates._per_second = 1e9
        yield service, found


def routes(app: FastAPI) -> list[tuple[str, str]]:
    return [
        (method, route.path)
        for route in app.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    ]


def test_every_route_stands_in_the_table(tmp_path):
    configured = config(people(tmp_path, rows=100))
    with ExitStack() as stack:
        from understudy.server.gate import Gate

        store = stack.enter_context(ServerStore(configured.state))
        gate = Gate.opened(configured, store)
        stack.callback(gate.served.close)
        services = Services.behind(gate, Metrics())
        found = {
            (door, method, path)
            for door, app in (("http", http_app(services)), ("admin", admin_app(services)))
            for method, path in described_routes(app)
        }
        found |= {("mcp", "CALL", tool) for tool in Toolbox(gate, services.releases).tools}
    assert {route for route in found if (route[0], route[2]) not in PUBLIC} == set(RIGHTS)


def described_routes(app: FastAPI) -> list[tuple[str, str]]:
    """The operations of the application's own description: whatever holds its routes, these are served."""
    return [
        (method.upper(), path) for path, operations in app.openapi()["paths"].items() for method in operations
    ]


@pytest.mark.parametrize("who", [*ROLES, *REFUSED])
@pytest.mark.parametrize("route", sorted(RIGHTS), ids=" ".join)
def test_a_token_opens_what_its_role_may_use_and_nothing_else(house, route, who):
    service, secrets = house
    door, method, path = route
    if door == "mcp":
        check_tool(Client(service, secrets[who]), path, who)
        return
    place = path.format(table="people", id="0" * 12, release="r", file="report.html", board="b")
    if path.startswith("/v1/ledger"):
        place += "?table=people"
    body = BODIES.get(path) if method == "POST" else None
    status, told, headers = Client(service, secrets[who])(method, place, body, door=door)
    if who in REFUSED:
        assert status == 401 or (status == 429 and told["code"] == "rate"), (status, told)
        assert told["code"] in ("token", "rate")
        assert status != 401 or headers["www-authenticate"].startswith("Bearer")
    elif who in RIGHTS[route]:
        assert status not in (401, 403, 405), told
        assert status < 500 or told["code"] == "paused", told  # by a route that was tried before
    else:
        assert (status, told["code"]) == (403, "role")


def check_tool(client: Client, tool: str, who: str) -> None:
    """A tool refuses a role in its result; without a valid token there is no result."""
    called = {"name": tool, "arguments": BODIES.get(tool, {})}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    status, told, headers = client("POST", "/mcp", message, headers={"accept": "application/json"})
    if who in REFUSED:
        assert (status, told["code"]) in ((401, "token"), (429, "rate"))
        assert status != 401 or headers["www-authenticate"].startswith("Bearer")
        return
    assert status == 200
    result = told["result"]
    if who in RIGHTS["mcp", "CALL", tool]:
        code = result["_meta"]["understudy/problem"]["code"] if result["isError"] else ""
        assert code in ("", "no-release", "paused"), result
    else:
        assert result["isError"]
        assert f"role {who}" in result["content"][0]["text"]


@pytest.mark.parametrize(("door", "path"), sorted(PUBLIC))
def test_what_needs_no_token_tells_nothing_about_tables(house, door, path):
    status, told, _ = Client(house[0])("GET", path, door=door)
    assert status == 200
    assert "people" not in str(told)


def test_a_token_that_is_revoked_is_noticed_within_a_second(house):
    import time

    service, secrets = house
    keep = Client(service, secrets["custodian"])
    made = keep("POST", "/tokens", {"analyst": "soon"}, door="admin")[1]
    soon = Client(service, made["secret"])
    assert soon.get("/v1/tables")[0] == 200
    assert keep("DELETE", f"/tokens/{made['id']}", door="admin")[0] == 200
    time.sleep(0.6)
    assert soon.get("/v1/tables")[0] == 401


def test_the_admin_port_knows_no_questions_and_the_other_no_tokens(house):
    service, secrets = house
    assert (
        Client(service, secrets["analyst"])(
            "POST", "/v1/tables/people/ask", {"question": "count"}, door="admin"
        )[0]
        == 404
    )
    assert Client(service, secrets["custodian"])("GET", "/tokens")[0] == 404
