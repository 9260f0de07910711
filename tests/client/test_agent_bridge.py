"""The bridge of `understudy mcp --url`: lines in, messages to a server, lines out."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import sys
from typing import Any

import pytest
from mcp.client import Client as ProtocolClient
from mcp.client.stdio import StdioServerParameters, stdio_client

from program import call
from understudy.client.address import ServerAddress
from understudy.client.agent_bridge import AgentBridge
from understudy.client.token_file import token_in
from understudy.client.transport import Received, Transport
from understudy.errors import AccessError, ParameterError, ServerError


def bridged(transport: Any, *messages: Any) -> list[dict[str, Any]]:
    """The lines that the bridge writes for some messages, in the order of their ids."""
    out = io.StringIO()
    lines = [one if isinstance(one, str) else json.dumps(one) for one in messages]
    AgentBridge(transport, out).run(line + "\n" for line in lines)
    return sorted(map(json.loads, out.getvalue().splitlines()), key=lambda one: str(one["id"]))


def message(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def asking(id: int, question: str, **arguments: Any) -> dict[str, Any]:
    return message(id, "tools/call", name="ask", arguments={"question": question, **arguments})


@pytest.fixture
def live(server):
    transport = Transport(
        ServerAddress.read(server.url), server.token("ada"), timeout=30, patience=5, ca=None
    )
    yield transport
    transport.close()


HELLO = message(
    0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"}
)


class Recorded:
    """A transport that notes what is sent and replies what it is told to."""

    def __init__(self, *replies: Received | Exception) -> None:
        self.replies = list(replies)
        self.sent: list[tuple[dict[str, Any], dict[str, str]]] = []

    def exchange(self, path: str, data: bytes, headers: dict[str, str]) -> Received:
        assert path == "/mcp"
        self.sent.append((json.loads(data), headers))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def replied(document: Any, status: int = 200, kind: str = "application/json") -> Received:
    return Received(status, {"content-type": kind}, json.dumps(document).encode())


def test_lines_are_handed_on_and_replies_come_back_under_their_ids(live):
    told = bridged(
        live,
        HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        message(1, "tools/list"),
        asking(2, "count by sex"),
        asking(3, "count sex = f"),
        message("four", "ping"),
    )
    assert [one["id"] for one in told] == [0, 1, 2, 3, "four"]
    assert told[0]["result"]["serverInfo"]["name"] == "understudy"
    assert len(told[1]["result"]["tools"]) == 9
    assert told[2]["result"]["structuredContent"]["state"] == "answered"
    assert told[3]["result"]["isError"]
    assert "not a declared value" in told[3]["result"]["content"][0]["text"]


def test_a_question_gets_a_request_id_once_and_keeps_its_own():
    reply = replied({"jsonrpc": "2.0", "id": 1, "result": {}})
    transport = Recorded(reply, reply, reply)
    bridged(
        transport,
        asking(1, "count"),
        asking(2, "count", request="mine"),
        message(3, "tools/call", name="price"),
    )
    by_id = {sent["id"]: sent["params"].get("arguments") for sent, _ in transport.sent}
    assert len(by_id[1]["request"]) == 32
    assert by_id[2]["request"] == "mine"
    assert by_id[3] is None


def test_headers_say_what_the_message_says():
    settled = replied({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-06-18"}})
    other = replied({"jsonrpc": "2.0", "id": 1, "result": {}})
    transport = Recorded(settled, other)
    bridged(transport, HELLO, message(1, "tools/list"))
    assert [headers.get("mcp-protocol-version") for _, headers in transport.sent] == [None, "2025-06-18"]
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    for name, header in (("describe", "describe"), ("é", "=?base64?w6k=?="), (" a", "=?base64?IGE=?=")):
        transport = Recorded(other)
        bridged(transport, message(1, "tools/call", name=name, _meta=meta))
        headers = transport.sent[0][1]
        assert (headers["mcp-protocol-version"], headers["mcp-method"]) == ("2026-07-28", "tools/call")
        assert headers["mcp-name"] == header


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (ServerError("http://x cannot be reached", remedy="Check the address"), "Check the address"),
        (RuntimeError("secret"), r"the bridge failed \(RuntimeError\)"),
        (
            replied({"detail": "No token.", "hint": "Send one.", "code": "token"}, 401),
            "^No token. Send one.$",
        ),
        (Received(502, {"content-type": "text/html"}, b"<h1>bad</h1>"), "status 502"),
        (Received(500, {}, b""), "status 500"),
        (replied([1]), "status 200"),
    ],
)
def test_what_fails_is_an_error_of_that_message(reply, words):
    (told,) = bridged(Recorded(reply), message(7, "ping"))
    assert (told["id"], told["error"]["code"]) == (7, -32000)
    assert re.search(words, told["error"]["message"])
    assert "secret" not in told["error"]["message"]
    assert bridged(Recorded(reply), {"jsonrpc": "2.0", "method": "notifications/cancelled"}) == []


@pytest.mark.parametrize("line", ["{", "5", "[]", '{"id": 1}', "[" * 100_000])
def test_a_line_that_is_no_message_is_answered_and_the_next_one_too(live, line):
    told = bridged(live, line, "", message(1, "ping"))
    assert [one["id"] for one in told] == [1, None]
    assert told[1]["error"]["code"] == -32700


def test_a_revoked_token_is_told_in_words(server):
    wrong = Transport(ServerAddress.read(server.url), "us_wrong", timeout=5, patience=0, ca=None)
    (told,) = bridged(wrong, message(1, "tools/list"))
    wrong.close()
    assert "no token in this request that is valid for agents" in told["error"]["message"]
    assert told["error"]["data"]["code"] == "token"


def test_the_protocols_own_client_over_standard_streams(server, tmp_path):
    """As programs start it: the command, with a file that holds the token."""
    file = tmp_path / "agent.token"
    file.write_text(server.token("ada", doors=("mcp",)) + "\n")
    file.chmod(0o600)
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "understudy", "mcp", "--url", f"{server.url}/mcp", "--token-file", str(file)],
        env=dict(os.environ),
    )

    async def use() -> Any:
        async with ProtocolClient(stdio_client(started)) as agent:
            calls = [agent.call_tool("ask", {"question": f"count sex = {sex}"}) for sex in "FM"]
            return [one.structured_content for one in await asyncio.gather(*calls)]

    assert [one["state"] for one in asyncio.run(use())] == ["answered", "answered"]


def test_a_file_of_a_token_is_private_and_holds_one_word(tmp_path):
    file = tmp_path / "token"
    with pytest.raises(AccessError, match="no file"):
        token_in(file)
    file.write_text("us_x\n")
    file.chmod(0o644)
    with pytest.raises(AccessError, match="others may read"):
        token_in(file)
    file.chmod(0o600)
    assert token_in(file) == "us_x"
    file.write_text("two words")
    with pytest.raises(ParameterError, match="is no token"):
        token_in(file)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "either --url, for a server, or --project"),
        (("--url", "http://127.0.0.1:1", "--project", "."), "either --url"),
        (("--project", ".", "--token-file", "x"), "go with --url"),
        (("--url", "ftp://x"), "begins with https://"),
        (("--url", "http://data.example.org"), "not encrypted"),
        (("--url", "http://127.0.0.1:1"), "there is no token for http://127.0.0.1:1"),
        (("--url", "http://127.0.0.1:1", "--token-file", "nowhere"), "there is no file nowhere"),
        (("--project", "nowhere"), "neither a server.yml nor an understudy.yml"),
    ],
)
def test_the_command_says_what_it_needs(tmp_path, arguments, told):
    status = 1 if "no token" in told or "no file" in told else 2
    assert told in call("mcp", *arguments, cwd=tmp_path, status=status).stderr


def test_the_command_without_lines_ends(server, monkeypatch, tmp_path):
    monkeypatch.setenv("UNDERSTUDY_TOKEN", server.token("ada"))
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(message(1, "ping")) + "\n"))
    done = call("mcp", "--url", server.url, cwd=tmp_path)
    assert json.loads(done.stdout)["id"] == 1
