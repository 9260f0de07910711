"""An agent for tests: the protocol's messages over plain HTTP, without the package `mcp`."""

from __future__ import annotations

from typing import Any

from served import Client

VERSION = "2025-11-25"
ACCEPTS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": VERSION}


class Agent:
    """Sends messages to `/mcp` of a server."""

    def __init__(self, service: Any, token: str = "") -> None:
        self._client = Client(service, token)

    def post(self, body: Any = None, **given: Any) -> tuple[int, Any, dict[str, str]]:
        """Status, document and headers of the reply to a body."""
        headers = ACCEPTS | given.pop("headers", {})
        return self._client("POST", "/mcp", body, headers=headers, **given)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """The document of the reply to a request."""
        return self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})[1]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool gives; it must not refuse."""
        result = self.send("tools/call", name=tool, arguments=arguments)["result"]
        assert not result["isError"], result
        return result["structuredContent"]

    def refused(self, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """The words and the problem with which a tool refuses."""
        result = self.send("tools/call", name=tool, arguments=arguments)["result"]
        assert result["isError"], result
        assert "structuredContent" not in result, "clients compare it with the schema of what the tool gives"
        return result["content"][0]["text"], result["_meta"]["understudy/problem"]
