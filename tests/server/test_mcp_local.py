"""`understudy mcp --project`: one agent at one project on this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pytest
from mcp.client import Client as ProtocolClient
from mcp.client.stdio import StdioServerParameters, stdio_client

from program import call
from served import people
from understudy.errors import StoreError
from understudy.project import open_project
from understudy.server.approvals import Approvals
from understudy.server.audit_log import AuditLog
from understudy.server.config import ServerConfig
from understudy.server.mcp import local, protocol
from understudy.server.one_server import only_server
from understudy.server.store import ServerStore
from understudy.server.tokens import Tokens


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "start_logging", lambda: None)
    return people(tmp_path, rows=500, budget="{epsilon: 5, delta: 1e-9}")


def used(project, monkeypatch, use) -> list[Any]:
    """What `use` finds with the protocol's own client, which stands where the standard streams are."""
    found: list[Any] = []

    async def streams(server) -> None:
        async with ProtocolClient(server) as agent:
            found.append(await use(agent))

    monkeypatch.setattr(protocol, "on_standard_streams", streams)
    local.serve_agent(ServerConfig.single(project), analyst="claude", by="me (terminal)")
    return found


def test_an_agent_asks_at_the_ledger_of_the_project_under_its_name(project, monkeypatch):
    async def use(agent) -> Any:
        (table,) = (await agent.call_tool("list_tables", {})).structured_content["tables"]
        assert (table["name"], table["left"]) == ("people", 1)
        price = (await agent.call_tool("price", {"question": "count", "error": 400})).structured_content
        assert not price["prices"][0]["needs_approval"]
        status = (await agent.call_tool("session_status", {})).structured_content["caller"]
        assert status == {"analyst": "claude", "agent": True, "read_only": False, "approval_above": 0.001}
        return (await agent.call_tool("ask", {"question": "count by sex", "error": 400})).structured_content

    (answer,) = used(project, monkeypatch, use)
    assert answer["state"] == "answered"
    with open_project(project) as opened:
        assert opened.ledger.spent_by()["claude"].amount > 0
    with ServerStore(project / "server.db") as store:
        assert [token.revoked is None for token in Tokens(store).all()] == [False]
        told = [(entry.who, entry.act) for entry in AuditLog(store).entries()]
    assert told == [("me (terminal)", "make token"), ("me (terminal)", "revoke token")]


def test_a_dear_question_is_approved_at_a_terminal_while_the_agent_runs(project, monkeypatch):
    async def use(agent) -> Any:
        dear = {"question": "count by sex", "error": 20}
        waiting = (await agent.call_tool("ask", dear)).structured_content
        assert waiting["state"] == "waiting"
        with ServerStore(project / "server.db") as store:
            (kept,) = Approvals(store).waiting()
            assert kept.agent
        await asyncio.to_thread(call, "approve", kept.id, cwd=project)
        while True:
            (one,) = (await agent.call_tool("history", {"id": waiting["id"]})).structured_content["questions"]
            if one["state"] == "answered":
                return one["answer"]
            await asyncio.sleep(0.05)

    (answer,) = used(project, monkeypatch, use)
    assert answer["share"] > 0.001
    assert len(answer["rows"]) == 3


def test_there_is_one_at_a_time(project):
    config = ServerConfig.single(project)
    with (
        only_server(config.state, config.sqlite_ledgers),
        pytest.raises(StoreError, match=f"process {os.getpid()} serves this state folder already"),
    ):
        local.serve_agent(config, analyst="claude", by="me")


@pytest.mark.slow("it starts the program, which loads the server and the protocol")
def test_the_program_over_standard_streams(project):
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "understudy", "mcp", "--project", str(project), "--name", "claude"],
        env=dict(os.environ),
    )

    async def use() -> Any:
        async with ProtocolClient(stdio_client(started)) as agent:
            return await agent.call_tool("ask", {"question": "count", "error": 400})

    result = asyncio.run(use())
    assert result.structured_content["state"] == "answered"
    with ServerStore(project / "server.db") as store:
        assert [token.revoked is None for token in Tokens(store).all()] == [False]
