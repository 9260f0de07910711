"""What hostile clients send: sizes, nesting, hosts, silence; and what every reply carries."""

from __future__ import annotations

import json
import socket
import time

import pytest

from served import Client, config, people, serving, tokens
from understudy.server.http import protocol


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    configured = config(people(tmp_path_factory.mktemp("safety")))
    [ada] = tokens(configured, "ada")
    with serving(configured) as service:
        yield service, Client(service, ada)


ASK = "/v1/tables/people/ask"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("raw", "headers", "status"),
    [
        (b"x" * 70_000, JSON, 413),
        (b'{"question": "' + b"x" * 1_000_000 + b'"}', JSON, 413),
        (b"[" * 60_000, JSON, 400),
        (b'{"question": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", JSON, 400),
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b'"count"', JSON, 400),
        (b"", JSON, 400),
        (b'{"question": "count", "epsilon": NaN}', JSON, 400),
        (b'{"question": "count", "epsilon": Infinity}', JSON, 400),
        (b"\xff\xfe", JSON, 400),
        (b'{"question": "count"}', {"content-type": "text/plain"}, 415),
        (b"question=count", {"content-type": "application/x-www-form-urlencoded"}, 415),
        (b'{"question": "count"}', JSON | {"host": "evil.example"}, 421),
        (b'{"question": "count"}', JSON | {"host": "127.0.0.1.evil.example"}, 421),
    ],
)
def test_a_bad_body_or_host_is_refused_at_once(house, raw, headers, status):
    began = time.process_time()
    found, told, _ = house[1]("POST", ASK, raw=raw, headers=headers)
    assert (found, told["status"]) == (status, status)
    assert time.process_time() - began < 1.5


def test_a_body_in_pieces_is_counted_as_it_comes(house):
    service, client = house
    with socket.create_connection(("127.0.0.1", service.addresses["http"].port), timeout=20) as sock:
        head = f"POST {ASK} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {client.token}\r\n"
        sock.sendall((head + "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").encode())
        piece = b"2000\r\n" + b"x" * 0x2000 + b"\r\n"
        for _ in range(16):  # 128 KiB
            try:
                sock.sendall(piece)
            except OSError:
                break
        assert sock.recv(4096).startswith(b"HTTP/1.1 413")


def test_every_reply_has_the_headers_that_browsers_need(house):
    for method, path in (("GET", "/healthz"), ("GET", "/v1/tables"), ("GET", "/nothing"), ("POST", ASK)):
        headers = house[1](method, path)[2]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "server" not in headers
        assert not [name for name in headers if name.startswith("access-control-")]


def test_no_other_origin_may_read_or_send(house):
    status, _, headers = house[1]("OPTIONS", ASK, headers={"origin": "https://evil.example"})
    assert status == 405
    assert not [name for name in headers if name.startswith("access-control-")]


def test_paths_do_not_lead_out_of_the_releases(house):
    for path in (
        "/v1/releases/../server.db",
        "/v1/releases/..%2f..%2fetc/passwd",
        "/v1/releases/.hidden/report.html",
    ):
        assert house[1]("GET", path)[0] == 404


def test_silence_and_dripping_heads_are_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(protocol, "BODY_SECONDS", 0.3)
    with serving(config(people(tmp_path, rows=100))) as service:
        place = ("127.0.0.1", service.addresses["http"].port)
        for sent in (
            b"",
            b"GET / HTTP/1.1\r\nhost: a",
            f"POST {ASK} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n{{".encode(),
        ):
            with socket.create_connection(place, timeout=20) as sock:
                sock.sendall(sent)
                assert sock.recv(4096).startswith(b"HTTP/1.1 408")
                while sock.recv(4096):
                    pass
        with socket.create_connection(place, timeout=20) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n" + b"x: y\r\n" * 10_000)
            assert sock.recv(4096).startswith(b"HTTP/1.1 431")
        for body in (b"", b"content-length: 2\r\n"):  # a whole head, which may come in one piece
            with socket.create_connection(place, timeout=20) as sock:
                head = b"POST /v1/price HTTP/1.1\r\nhost: 127.0.0.1\r\n" + body
                sock.sendall(head + b"x: " + b"y" * 33_000 + b"\r\n\r\n" + (b"{}" if body else b""))
                told = b""
                while part := sock.recv(4096):
                    told += part
                assert told.count(b"HTTP/1.1") == 1
                assert told.startswith(b"HTTP/1.1 431")
        assert Client(service).get("/healthz")[0] == 200


def test_too_many_connections_are_closed_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "MOST_CONNECTIONS", 8)
    with serving(config(people(tmp_path, rows=100))) as service:
        place = ("127.0.0.1", service.addresses["http"].port)
        held = [socket.create_connection(place, timeout=20) for _ in range(8)]
        try:
            late = socket.create_connection(place, timeout=20)
            try:
                closed = late.recv(1) == b""
            except ConnectionResetError:
                closed = True
            late.close()
            assert closed
            held[0].sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert held[0].recv(4096).startswith(b"HTTP/1.1 200")
        finally:
            for sock in held:
                sock.close()


def test_nothing_that_was_said_is_in_the_log(tmp_path):
    import io

    from understudy.server.logs import start_logging

    log = io.StringIO()
    configured = config(people(tmp_path))
    [ada] = tokens(configured, "ada")
    handler = start_logging(log)
    try:
        with serving(configured) as service:
            client = Client(service, ada)
            value = client.ask("count by sex")[1]["answer"]["rows"][0]["value"]
            client.ask("count by secret_word")
            Client(service, "us_wrong").ask("count")
            (tmp_path / "people.csv").unlink()
    finally:
        handler.setStream(io.StringIO())
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert {line["status"] for line in lines if line["event"] == "request"} == {422, 401}
    for word in (ada, "us_wrong", "secret_word", "count by", str(value)):
        assert word not in log.getvalue()
