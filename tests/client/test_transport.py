"""Requests that break on their way: sent again within bounds, and told clearly where that does not help."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path

import pytest

import understudy as us
from understudy.client import transport as sending
from understudy.client.address import ServerAddress
from understudy.client.transport import Transport
from understudy.errors import AccessError, ClosedError, LedgerError, ParameterError, RefusedError, ServerError

HERE = Path(__file__).parent
PROBLEM = {
    "status": 503,
    "code": "ledger",
    "detail": "the ledger is away",
    "hint": "Try again",
    "suggestions": [],
}


def http(
    status: int,
    body: bytes | object,
    *headers: str,
    kind: str = "application/json",
    length: int | None = None,
):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"HTTP/1.1 {status} x",
        f"content-type: {kind}",
        f"content-length: {length or len(data)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


FINE = http(200, {"fine": True})
CLOSE = b""


class Script:
    """A server that replies to each request with the next line of a script; an empty one closes the connection."""

    def __init__(self, replies: list[bytes], tls: ssl.SSLContext | None = None) -> None:
        self._replies = replies
        self._tls = tls
        self.requests: list[bytes] = []
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while self._replies:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            try:
                if self._tls is not None:
                    client = self._tls.wrap_socket(client, server_side=True)
                with client:
                    client.settimeout(5)
                    while self._replies and self._answered(client):
                        pass
            except OSError:
                client.close()

    def _answered(self, client: socket.socket) -> bool:
        held = b""
        while b"\r\n\r\n" not in held:
            piece = client.recv(65536)
            if not piece:
                return False
            held += piece
        head, _, body = held.partition(b"\r\n\r\n")
        length = next(
            (
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            ),
            0,
        )
        while len(body) < length:
            body += client.recv(65536)
        self.requests.append(head + b"\r\n\r\n" + body)
        reply = self._replies.pop(0)
        client.sendall(reply)
        return reply != CLOSE and b"connection: close" not in reply

    def end(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for a connection
        self._listening.close()
        self._thread.join(10)


@contextmanager
def scripted(*replies: bytes, tls: ssl.SSLContext | None = None) -> Iterator[Script]:
    script = Script(list(replies), tls)
    try:
        yield script
    finally:
        script._replies.clear()
        with socket.socket() as waker:
            waker.connect_ex(("127.0.0.1", script.port))
        script.end()


@contextmanager
def to(script: Script, *, patience: float = 5, timeout: float = 5) -> Iterator[Transport]:
    made = Transport(
        ServerAddress("http", "127.0.0.1", script.port), "us_t", timeout=timeout, patience=patience, ca=None
    )
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def slept(monkeypatch) -> list[float]:
    """The pauses that were made; none of them is waited for. Other threads of the process sleep as they would."""
    found: list[float] = []
    here, sleep = threading.get_ident(), time.sleep

    def noted(seconds: float) -> None:
        found.append(seconds) if threading.get_ident() == here else sleep(seconds)

    monkeypatch.setattr(sending.time, "sleep", noted)
    return found


def test_a_connection_is_kept():
    with scripted(FINE, FINE, FINE) as script, to(script) as made:
        for _ in range(3):
            assert made.get("tables") == {"fine": True}
        assert script.connections == 1
        assert script.requests[0].startswith(b"GET /v1/tables HTTP/1.1\r\n")
        assert b"authorization: Bearer us_t\r\n" in script.requests[0]


def test_a_kept_connection_that_was_closed_meanwhile_is_replaced_at_once(slept):
    with scripted(FINE, CLOSE, FINE) as script, to(script) as made:
        made.get("tables")
        assert made.get("tables") == {"fine": True}
        assert (script.connections, slept) == (2, [])


@pytest.mark.parametrize(
    "broken",
    [
        CLOSE,
        http(200, b'{"fine"', length=100, kind="application/json\r\nconnection: close"),
        http(502, b"<html>", kind="text/html"),
        http(503, b"<html>", kind="text/html"),
        http(504, b"", kind="text/html"),
        http(503, PROBLEM, "retry-after: 2", kind="application/problem+json"),
        http(429, {**PROBLEM, "status": 429}, "retry-after: 1", kind="application/problem+json"),
        b"what is this\r\n\r\n",
    ],
)
def test_what_breaks_in_passing_is_sent_again_under_the_same_id(broken, slept):
    with scripted(broken, broken, FINE) as script, to(script) as made:
        assert made.post("tables", "a b", "ask", body={"request": "r"}, request="r") == (200, {"fine": True})
        assert len(slept) >= 1
        assert len({request.partition(b"\r\n\r\n")[2] for request in script.requests}) == 1
        assert script.requests[0].startswith(b"POST /v1/tables/a%20b/ask HTTP/1.1\r\n")


def test_the_server_says_how_long_to_wait_and_otherwise_pauses_grow(slept):
    told = http(503, PROBLEM, "retry-after: 2", kind="application/problem+json")
    with scripted(told, FINE) as script, to(script) as made:
        made.get("tables")
    assert slept == [2.0]
    slept.clear()
    with scripted(*[http(502, b"", kind="text/html")] * 4, FINE) as script, to(script) as made:
        made.get("tables")
    assert len(slept) == 4
    for pause, most in zip(slept, (0.1, 0.2, 0.4, 0.8), strict=True):
        assert most / 2 <= pause <= most


def test_patience_ends(slept, monkeypatch):
    clock = iter(range(0, 100_000, 3))
    monkeypatch.setattr(sending.time, "monotonic", lambda: float(next(clock)))
    with scripted(*[http(502, b"", kind="text/html")] * 50) as script, to(script, patience=10) as made:
        with pytest.raises(ServerError, match="cannot answer at the moment") as caught:
            made.post("tables", "t", "ask", body={}, request="r9")
        assert caught.value.request == "r9"
        assert len(script.requests) < 6


def test_a_pause_longer_than_patience_is_told_at_once(slept):
    paused = {**PROBLEM, "code": "paused", "detail": "The custodian paused this table."}
    reply = http(503, paused, "retry-after: 60", kind="application/problem+json")
    told = pytest.raises(RefusedError, match="The custodian paused this table")
    with scripted(reply) as script, to(script) as made, told:
        made.get("tables")
    assert slept == []


def test_a_server_that_says_that_waiting_does_not_help_is_believed(slept):
    told = pytest.raises(LedgerError, match="the ledger is away")
    with scripted(http(503, PROBLEM, kind="application/problem+json")) as script, to(script) as made, told:
        made.get("tables")
    assert slept == []


def test_a_reply_that_does_not_come_in_time_is_asked_for_again():
    release = threading.Event()

    class Slow(Script):
        def _answered(self, client: socket.socket) -> bool:
            if self.connections == 1:
                release.wait(5)
                return False
            release.set()
            return super()._answered(client)

    slow = Slow([FINE, FINE])
    threading.Timer(0.3, release.set).start()
    try:
        with to(slow, timeout=0.1) as made:
            assert made.get("tables") == {"fine": True}
    finally:
        slow._replies.clear()
        slow.end()


def test_a_server_that_is_not_there_is_named(slept):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(
        ServerError, match=rf"http://127.0.0.1:{port} cannot be reached \(Connection refused\)"
    ) as caught:
        us.connect(f"http://127.0.0.1:{port}", "us_t")
    assert isinstance(caught.value, ConnectionError)
    assert "understudy serve" in caught.value.remedy
    assert max(slept) <= 3


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (http(302, b"", "location: https://evil.example.org/"), ServerError, "a token is not sent after it"),
        (
            http(200, b"<html>Welcome", kind="text/html"),
            ServerError,
            "does not reply as a server of Understudy",
        ),
        (http(404, b"<html>", kind="text/html"), ServerError, "does not reply as a server of Understudy"),
        (http(403, b"<html>", kind="text/html"), AccessError, "before a server of Understudy saw it"),
        (http(200, b'{"half'), ServerError, "not understood"),
    ],
)
def test_what_is_no_server_of_ours_is_told_as_such(reply, kind, words):
    with scripted(reply) as script, to(script) as made:
        with pytest.raises(kind, match=words) as caught:
            made.get("tables")
        assert "evil" not in str(caught.value)
        assert len(script.requests) == 1


def test_a_file_is_begun_again_where_it_breaks(tmp_path, slept):
    cut = http(200, b"abc", length=9, kind="application/octet-stream\r\nconnection: close")
    whole = http(200, b"abcdefghi", kind="application/octet-stream")
    busy = http(503, PROBLEM, "retry-after: 1", kind="application/problem+json")
    with scripted(cut, busy, whole) as script, to(script) as made, (tmp_path / "f").open("wb") as file:
        made.save(file, "releases", "r", "f")
    assert (tmp_path / "f").read_bytes() == b"abcdefghi"
    gone = http(404, {**PROBLEM, "status": 404, "code": "no-release"}, kind="application/problem+json")
    with scripted(gone) as script, to(script) as made, BytesIO() as file, pytest.raises(RefusedError):
        made.save(file, "releases", "r", "f")


def test_threads_share_a_transport():
    with scripted(*[FINE] * 40) as script, to(script) as made:
        found: list[object] = []
        threads = [
            threading.Thread(target=lambda: found.extend(made.get("tables") for _ in range(2)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
            thread.join()
        assert found == [{"fine": True}] * 8


def test_a_child_does_not_use_its_parents_connection(monkeypatch):
    with scripted(FINE, FINE) as script, to(script) as made:
        made.get("tables")
        kept = made._idle[0]
        mine = os.getpid()
        monkeypatch.setattr(sending.os, "getpid", lambda: mine + 1)
        assert made._kept() is None
        kept.close()


def test_a_closed_transport_says_so():
    with scripted(FINE) as script, to(script) as made:
        made.get("tables")
        made.close()
        with pytest.raises(ClosedError, match="was closed"):
            made.get("tables")


def served_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(HERE / "certificate.pem", HERE / "key.pem")
    return context


def test_certificates_are_verified(slept):
    """The certificate of the tests was signed by nobody: it is trusted only where it is given."""
    with scripted(FINE, FINE, FINE, tls=served_tls()) as script:
        url = f"https://localhost:{script.port}"
        began = time.monotonic()
        with pytest.raises(ServerError, match=r"is not trusted .*self.signed.*`ca=`"):
            us.connect(url, "us_t")
        assert (slept, time.monotonic() - began < 30) == ([], True)
        address = ServerAddress.read(url)
        made = Transport(address, "us_t", timeout=5, patience=0, ca=HERE / "certificate.pem")
        assert made.get("tables") == {"fine": True}
        made.close()
        named_otherwise = ServerAddress("https", "127.0.0.2", script.port)
        other = Transport(named_otherwise, "us_t", timeout=5, patience=0, ca=HERE / "certificate.pem")
        with pytest.raises(ServerError, match=r"is not trusted|cannot be reached"):
            other.get("tables")


@pytest.mark.parametrize(
    "make",
    [
        lambda: us.connect("https://localhost", "us_t", ca=HERE / "missing.pem"),
        lambda: us.connect("https://localhost", "us_t", ca=HERE / "key.pem"),
        lambda: us.connect("http://localhost", "us_t", timeout=0),
        lambda: us.connect("http://localhost", "us_t", patience=-1),
    ],
)
def test_bad_parameters_are_refused(make: Callable[[], object]):
    with pytest.raises(ParameterError):
        make()
