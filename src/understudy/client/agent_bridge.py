"""An agent's program that speaks over standard input and output, handed on to a server's `/mcp`.

Programs that start a tool as a child process, and cannot send a header with a token, start `understudy mcp`. Every
line that they write is a message of the Model Context Protocol; it is sent to the server with the token, and the
reply is written as a line. The bridge changes one thing: a question without a request id gets one, so that it can
be sent again where a connection breaks, and is paid once. It needs nothing but the standard library.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TextIO

from understudy.client.transport import Received, Transport
from understudy.errors import UnderstudyError

PATH = "/mcp"
AT_ONCE = 8
"""Messages that are under way at a time: a quick one does not wait for a slow one."""

FAILED, UNREAD = -32000, -32700
"""Codes of JSON-RPC: the server cannot be reached or refuses; the line is no message."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""Where a message of the newer protocol says its version, of which HTTP wants a header."""

_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")

Message = dict[str, Any]


class AgentBridge:
    """Hands messages from one program to one server, and the replies back."""

    def __init__(self, transport: Transport, output: TextIO) -> None:
        self._transport = transport
        self._output = output
        self._lock = threading.Lock()
        self._version = ""

    def run(self, lines: Iterable[str]) -> None:
        """Hand on every line until there are no more, and wait for the replies that are under way."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="bridge") as pool:
            for line in lines:
                message = self._read(line)
                if message is None:
                    continue
                if message.get("method") == "initialize":
                    self._hand_on(message)  # later messages carry the version that its reply settles
                else:
                    pool.submit(self._hand_on, message)

    def _read(self, line: str) -> Message | None:
        """The message in a line; None, and a reply that says so, where there is none."""
        if not line.strip():
            return None
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if type(found) is dict and found.get("jsonrpc") == "2.0":
            return found
        self._write(_error(None, UNREAD, "The line is not one JSON-RPC 2.0 message."))
        return None

    def _hand_on(self, message: Message) -> None:
        """Send a message, and write the reply; a notification has none, also where it fails."""
        id = message.get("id")
        try:
            reply = self._reply(_safe_to_repeat(message))
        except UnderstudyError as error:
            reply = _error(id, FAILED, str(error))
        except Exception as error:  # whatever it is, the program must not wait forever
            reply = _error(id, FAILED, f"the bridge failed ({type(error).__name__}). Try again.")
        if id is not None and reply is not None:
            self._write(reply)

    def _reply(self, message: Message) -> Message | None:
        received = self._transport.exchange(PATH, _encoded(message), self._headers(message))
        if not received.body.strip():
            return None if received.status < 300 else _refusal(message.get("id"), received, {})
        found = received.document() if received.is_json else {}
        if type(found) is not dict or found.get("jsonrpc") != "2.0":
            return _refusal(message.get("id"), received, found if type(found) is dict else {})
        if message.get("method") == "initialize" and "result" in found:
            self._version = str(found["result"].get("protocolVersion", ""))
        return {**found, "id": message.get("id")}

    def _headers(self, message: Message) -> dict[str, str]:
        """What HTTP wants in headers: the version and, with the newer protocol, what is called."""
        headers = {"accept": "application/json, text/event-stream"}
        params = message.get("params")
        params = params if isinstance(params, Mapping) else {}
        meta = params.get("_meta")
        version = meta.get(VERSION_KEY) if isinstance(meta, Mapping) else None
        if version is None:
            return headers | ({"mcp-protocol-version": self._version} if self._version else {})
        method = str(message.get("method", ""))
        headers |= {"mcp-protocol-version": _header(version), "mcp-method": _header(method)}
        name = params.get(_NAMED.get(method, ""))
        return headers | ({"mcp-name": _header(name)} if name is not None else {})

    def _write(self, reply: Message) -> None:
        line = _encoded(reply).decode()
        with self._lock:
            self._output.write(line + "\n")
            self._output.flush()


def _safe_to_repeat(message: Message) -> Message:
    """The message; a question without a request id gets one, under which it is paid once, however often sent."""
    params = message.get("params")
    if message.get("method") != "tools/call" or not isinstance(params, dict) or params.get("name") != "ask":
        return message
    arguments = params.get("arguments")
    if not isinstance(arguments, dict) or arguments.get("request") is not None:
        return message
    return {**message, "params": {**params, "arguments": {**arguments, "request": secrets.token_hex(16)}}}


def _refusal(id: Any, received: Received, problem: Mapping[str, Any]) -> Message:
    """The error of a reply that is no message: a problem of the server, or something that a proxy said."""
    detail = str(problem.get("detail") or f"the server replied with status {received.status}")
    hint = str(problem.get("hint") or "Check the address, and whether the server runs.")
    return _error(id, FAILED, f"{detail.rstrip('.')}. {hint}", dict(problem))


def _error(id: Any, code: int, message: str, data: Mapping[str, Any] | None = None) -> Message:
    error: Message = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": id, "error": error | ({"data": data} if data else {})}


def _encoded(message: Message) -> bytes:
    """One line: JSON escapes every line break inside a text, and what cannot be written in UTF-8."""
    return json.dumps(message, separators=(",", ":")).encode()


def _header(value: Any) -> str:
    """A value as a header carries it; what is not plain text is wrapped, as the protocol says."""
    text = str(value)
    if _PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="
