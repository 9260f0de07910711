"""How connections begin and end: who is let in, versions, limits, cancelling, revoking, stopping, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from served import WITH_POSTGRES, config, people, serving, tokens
from served_wire import RawClient, WireTown, error_fields, served_wire
from understudy.server.config import Rates, Tls
from understudy.server.pg import connection, door, start
from understudy.server.pg.exchange import ScramError, ScramExchange
from understudy.server.scram import ScramVerifier, salt_of


def fields_of(messages: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """The fields of the error that ends what was received."""
    (body,) = [body for kind, body in messages if kind == b"E"]
    return error_fields(body)


def first_salt(client: RawClient, user: str) -> bytes:
    client.start(user)
    assert client.receive()[1][:4] == struct.pack("!i", 10)
    first = b"n,,n=,r=abc"
    client.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
    return client.receive()[1].split(b",s=")[1].split(b",")[0]


def test_a_token_opens_the_door_and_a_wrong_one_does_not(town: WireTown) -> None:
    client = RawClient(town.port)
    told = client.login("ada", town.tokens["ada"])
    assert told[-1] == (b"Z", b"I")
    status = dict(body.split(b"\0")[:2] for kind, body in told if kind == b"S")
    assert status[b"server_version"] == b"15.0"
    assert status[b"session_authorization"] == b"ada"
    client.close()
    for user, password in (("ada", town.tokens["ben"]), ("nobody", town.tokens["ada"]), ("ada", "")):
        client = RawClient(town.port)
        refused = fields_of(client.login(user, password))
        assert refused["C"] == "28P01"
        assert refused["S"] == "FATAL"
        assert "token" in refused["H"]
        client.close()


def test_a_token_without_this_door_does_not_open_it(town: WireTown) -> None:
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        psycopg.connect(town.dsn("web"))


def test_a_name_has_one_salt_whether_or_not_it_exists(town: WireTown) -> None:
    def salt(user: str) -> bytes:
        client = RawClient(town.port)
        try:
            return first_salt(client, user)
        finally:
            client.close()

    assert salt("ada") == salt("ada")
    assert salt("stranger") == salt("stranger")
    assert len({salt("ada"), salt("ben"), salt("stranger")}) == 3
    assert len(salt("stranger")) == len(salt("ada"))


def test_each_token_of_a_name_is_tried(tmp_path: Path) -> None:
    configured = config(people(tmp_path / "p"), listen=WITH_POSTGRES)
    secrets = [tokens(configured, "ada")[0] for _ in range(3)]
    with serving(configured) as service:
        for secret in secrets:
            client = RawClient(service.addresses["postgres"].port)
            assert client.login("ada", secret)[-1][0] == b"Z"
            client.close()


def test_a_proof_is_of_one_exchange() -> None:
    salt = salt_of("ada", key=b"k")
    exchange = ScramExchange(salt, [ScramVerifier.of("secret", salt)])
    with pytest.raises(ScramError):
        exchange.first(b"p=tls-server-end-point,,n=,r=abc")
    with pytest.raises(ScramError):
        exchange.first(b"n,,n=,r=")
    first = exchange.first(b"n,,n=,r=abc")
    assert first.startswith(b"r=abc")
    for wrong in (b"c=biws,r=abc,p=AAAA", first, b"", b"\xff", b"c=biws,r=" + first[2:27] + b",p=!"):
        with pytest.raises(ScramError):
            exchange.final(wrong)


def test_a_later_minor_version_is_negotiated_down(town: WireTown) -> None:
    client = RawClient(town.port)
    told = client.login("ada", town.tokens["ada"], minor=2, **{"_pq_.something": "1"})
    assert told[0][0] == b"v"
    assert told[0][1][:4] == struct.pack("!i", 3 << 16)
    assert b"_pq_.something" in told[0][1]
    assert told[-1][0] == b"Z"
    client.close()


def test_what_is_no_start_is_refused(town: WireTown) -> None:
    for raw, state in (
        (struct.pack("!ii", 8, 2 << 16), "0A000"),
        (struct.pack("!ii", 2**31 - 1, 3 << 16), "08P01"),
        (struct.pack("!ii", 12, 3 << 16) + b"us\0\0", "08P01"),
        (struct.pack("!ii", 9, 3 << 16) + b"\0", "28000"),
    ):
        with socket.create_connection(("127.0.0.1", town.port), timeout=10) as sock:
            sock.sendall(raw)
            told = b""
            while part := sock.recv(4096):
                told += part
        assert error_fields(told[5:])["C"] == state
    with pytest.raises(psycopg.OperationalError, match="replication"):
        psycopg.connect(town.dsn(replication="database"))
    with pytest.raises(psycopg.OperationalError, match="nothing_like_that"):
        psycopg.connect(town.dsn(options="-c nothing_like_that=1"))


def test_who_does_not_say_who_it_is_must_go(town: WireTown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "START_SECONDS", 0.2)
    silent = [socket.create_connection(("127.0.0.1", town.port), timeout=10) for _ in range(30)]
    try:
        half = RawClient(town.port)
        half.start("ada")
        half.receive()
        with psycopg.connect(town.dsn()) as other:  # the others are served meanwhile
            assert other.execute("SHOW datestyle").fetchone() == ("ISO, MDY",)
        assert [sock.recv(1) for sock in silent] == [b""] * 30
        assert half.receive() == (b"", b"")
        half.close()
    finally:
        for sock in silent:
            sock.close()


def test_a_silent_connection_is_ended(town: WireTown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.1)
    client = RawClient(town.port)
    told = client.login("ada", town.tokens["ada"]) + client.until(b"E")
    assert fields_of(told)["C"] == "57P05"
    client.close()


def test_connections_are_limited(town: WireTown, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = [psycopg.connect(town.dsn("bot")) for _ in range(door.MOST_OF_A_TOKEN)]
    try:
        with pytest.raises(psycopg.OperationalError, match="16 connections already"):
            psycopg.connect(town.dsn("bot"))
        monkeypatch.setattr(door, "MOST_CONNECTIONS", 3)
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            psycopg.connect(town.dsn("ben"))
    finally:
        for one in opened:
            one.close()
    monkeypatch.undo()
    until = time.monotonic() + 10
    while time.monotonic() < until:  # the server notices that they went
        try:
            psycopg.connect(town.dsn("bot")).close()
            return
        except psycopg.OperationalError:
            pass
    raise AssertionError("connections that ended are still counted")


def test_wrong_proofs_are_slowed_down(tmp_path: Path) -> None:
    configured = config(people(tmp_path / "p"), listen=WITH_POSTGRES)
    tokens(configured, "ada")
    states: list[str] = []
    with serving(configured) as service:
        for _ in range(12):
            client = RawClient(service.addresses["postgres"].port)
            states.append(fields_of(client.login("ada", "wrong"))["C"])
            client.close()
    assert states[:5] == ["28P01"] * 5
    assert "53000" in states


def test_a_revoked_token_ends_its_connection(tmp_path: Path) -> None:
    configured = config(people(tmp_path / "p"), listen=WITH_POSTGRES)
    (secret,) = tokens(configured, "ada")
    with serving(configured) as service:
        client = RawClient(service.addresses["postgres"].port)
        client.login("ada", secret)
        assert client.query("SHOW datestyle")[-1] == (b"Z", b"I")
        (token,) = service.gate.tokens.all()
        service.gate.tokens.revoke(token.id)
        client.send(b"Q", b"SELECT count(*) FROM people\0")
        told = client.until(b"E")
        assert fields_of(told)["C"] == "28000"
        assert client.receive() == (b"", b"")
        client.close()


def test_a_statement_is_cancelled_and_what_it_paid_is_kept(
    town: WireTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = town.service.gate
    began, go_on = threading.Event(), threading.Event()
    bought = gate.answering.bought

    def slowly(*given: Any) -> Any:
        began.set()
        assert go_on.wait(20)
        return bought(*given)

    monkeypatch.setattr(gate.answering, "bought", slowly)
    sql = "SELECT count(*) FROM town WHERE age < 60 AND district = 'The Vale' AND NOT smoker"
    with psycopg.connect(town.dsn(), autocommit=True) as opened:
        canceller = threading.Thread(target=lambda: (began.wait(20), opened.cancel_safe(), go_on.set()))
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled) as ended:
            opened.execute(sql)
        assert "kept" in (ended.value.diag.message_hint or "")
        canceller.join()
        told: list[str] = []
        opened.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        assert opened.execute(sql).fetchone()
        assert "free" in told[0]
        opened.cancel_safe()  # nothing is executed: nothing happens
        assert opened.execute("SHOW datestyle").fetchone()


@pytest.mark.parametrize("named", ["", "mine-57014"])
def test_a_question_by_itself_that_is_cancelled_is_paid_once(
    town: WireTown, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    gate = town.service.gate
    began, go_on = threading.Event(), threading.Event()
    ask = gate._fly

    def debits() -> int:
        with gate.table("town").use() as opened:
            return len(opened.project.ledger.debits())

    async def slowly(asked: Any) -> Any:
        began.set()
        await asyncio.to_thread(go_on.wait, 20)
        return await ask(asked)

    sql = "SELECT count(*) FROM town WHERE age < 40 AND district = 'Inkwharf'"
    before = debits()
    with psycopg.connect(town.dsn(), autocommit=True) as opened:
        opened.execute("SET understudy.rho = 0.0001")
        opened.execute(f"SET understudy.request = '{named}'")
        monkeypatch.setattr(gate, "_fly", slowly)
        canceller = threading.Thread(target=lambda: (began.wait(20), opened.cancel_safe()))
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled) as ended:
            opened.execute(sql)
        canceller.join()
        monkeypatch.undo()
        request = (ended.value.diag.message_detail or "").removeprefix("request ")
        assert opened.execute("SHOW understudy.request").fetchone() == (named,)
        assert request
        assert named in ("", request)
        assert f"SET understudy.request = '{request}'" in (ended.value.diag.message_hint or "")
        go_on.set()
        opened.execute(f"SET understudy.request = '{request}'")
        first = opened.execute(sql).fetchone()
        assert opened.execute("SHOW understudy.request").fetchone() == ("",)
        opened.execute(f"SET understudy.request = '{request}'")
        assert opened.execute(sql).fetchone() == first
    assert debits() - before == 1


def test_silent_strangers_do_not_shut_the_door(town: WireTown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_STARTING_OF_AN_ADDRESS", 4)
    silent = [socket.create_connection(("127.0.0.1", town.port), timeout=10) for _ in range(6)]
    try:
        for first in silent[:2]:  # closed for those that came later
            with suppress(ConnectionResetError):
                assert first.recv(1) == b""
        with psycopg.connect(town.dsn("ben")) as opened:
            assert opened.execute("SHOW datestyle").fetchone()
        silent[-1].settimeout(0)
        with pytest.raises(BlockingIOError):  # it is still waited for
            silent[-1].recv(1)
    finally:
        for sock in silent:
            sock.close()


def test_the_oldest_of_the_address_with_the_most_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stranger:
        def __init__(self, peer: str) -> None:
            self.peer, self.is_over = peer, False

        def abort(self) -> None:
            self.is_over = True

    monkeypatch.setattr(door, "MOST_STARTING", 4)
    monkeypatch.setattr(door, "MOST_STARTING_OF_AN_ADDRESS", 3)
    crowd: dict[Any, str] = {Stranger(peer): peer for peer in "abbb"}
    served = SimpleNamespace(_starting=dict(crowd))

    def over_for(peer: str) -> list[bool]:
        door.PgInterface._make_room(served, peer)  # type: ignore[arg-type]
        newcomer: Any = Stranger(peer)
        served._starting[newcomer] = peer
        return [found.is_over for found in crowd]

    assert over_for("c") == [False, True, False, False]  # all are taken, most of them by b
    assert over_for("a") == [True, True, False, False]  # an address that has some gives one of its own
    served._starting = dict.fromkeys([*list(crowd)[2:], Stranger("b")], "b")
    assert over_for("b") == [True, True, True, False]  # an address that has its most
    assert len(served._starting) == 3


def test_only_who_knows_the_secret_cancels(town: WireTown) -> None:
    client = RawClient(town.port)
    told = client.login("ada", town.tokens["ada"])
    (body,) = [body for kind, body in told if kind == b"K"]
    process, secret = struct.unpack("!iI", body)
    cancelled: list[int] = []
    pg = town.service._postgres
    assert pg is not None
    served = pg._open[process][1]
    original = served.cancel
    served.cancel = lambda: cancelled.append(1)
    try:
        for key in (secret ^ 1, secret):
            with socket.create_connection(("127.0.0.1", town.port), timeout=10) as sock:
                sock.sendall(struct.pack("!iiiI", 16, 80877102, process, key))
                assert sock.recv(1) == b""
        assert cancelled == [1]
    finally:
        served.cancel = original
        client.close()


def test_a_statement_has_the_time_that_its_setting_gives(
    town: WireTown, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, go_on = town.service.gate, threading.Event()
    bought = gate.answering.bought
    monkeypatch.setattr(gate.answering, "bought", lambda *given: (go_on.wait(20), bought(*given))[1])
    with psycopg.connect(town.dsn(), autocommit=True) as opened:
        opened.execute("SET statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="timeout"):
            opened.execute("SELECT count(*) FROM town WHERE age < 80 AND district = 'Inkwharf' AND smoker")
        go_on.set()


def test_stopping_ends_connections_and_finishes_what_is_paid(tmp_path: Path) -> None:
    configured = config(people(tmp_path / "p"), listen=WITH_POSTGRES)
    (secret,) = tokens(configured, "ada")
    answers: list[Any] = []
    with serving(configured) as service:
        port = service.addresses["postgres"].port
        idle, busy = RawClient(port), RawClient(port)
        idle.login("ada", secret)
        busy.login("ada", secret)
        bought, began = service.gate.answering.bought, threading.Event()

        def slowly(*given: Any) -> Any:
            began.set()
            time.sleep(0.3)
            return bought(*given)

        service.gate.answering.bought = slowly
        asking = threading.Thread(
            target=lambda: answers.extend(busy.query("SELECT count(*) FROM people WHERE age < 18"))
        )
        asking.start()
        assert began.wait(20)
    asking.join(20)
    assert [kind for kind, _ in answers if kind in b"DE"] == [b"D"]
    assert fields_of(idle.until(b"E"))["C"] == "57P01"
    assert fields_of(busy.until(b"E"))["C"] == "57P01"
    with pytest.raises(ConnectionRefusedError):
        RawClient(port)
    idle.close()
    busy.close()


def test_an_analyst_who_asks_faster_than_their_rate_waits(tmp_path: Path) -> None:
    configured = config(
        people(tmp_path / "p"), listen=WITH_POSTGRES, rates=Rates(requests=5, at_once=4, waiting=64)
    )
    (secret,) = tokens(configured, "ada")
    with serving(configured) as service:
        client = RawClient(service.addresses["postgres"].port)
        client.login("ada", secret)
        began = time.monotonic()
        for _ in range(8):
            assert b"D" in [kind for kind, _ in client.query("SELECT count(*) FROM people")]
        assert time.monotonic() - began > 0.3
        client.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    return Tls(folder / "cert.pem", folder / "key.pem")


def test_tls_is_spoken_and_demanded(tmp_path: Path, certificate: Tls) -> None:
    with served_wire(tmp_path / "town", tls=certificate) as town:
        with psycopg.connect(
            town.dsn(sslmode="verify-full", sslrootcert=str(certificate.certificate))
        ) as opened:
            assert opened.pgconn.ssl_in_use
            assert opened.execute("SELECT sex, count(*) FROM town GROUP BY sex").fetchall()
        with pytest.raises(psycopg.OperationalError, match="wants TLS"):
            psycopg.connect(town.dsn(sslmode="disable"))
        with socket.create_connection(("127.0.0.1", town.port), timeout=10) as sock:
            # what came before encryption must not be read after it (CVE-2021-23214)
            sock.sendall(struct.pack("!ii", 8, 80877103) + struct.pack("!ii", 9, 3 << 16) + b"\0")
            assert b"08P01" in sock.recv(4096)
        with socket.create_connection(("127.0.0.1", town.port), timeout=10) as sock:
            sock.sendall(struct.pack("!ii", 8, 80877103))
            assert sock.recv(1) == b"S"
            context = ssl.create_default_context(cafile=str(certificate.certificate))
            with context.wrap_socket(sock, server_hostname="127.0.0.1") as encrypted:
                encrypted.sendall(struct.pack("!ii", 8, 80877103))
                assert encrypted.recv(1) == b"N"  # once is enough


def test_without_a_certificate_tls_is_declined(town: WireTown) -> None:
    with pytest.raises(psycopg.OperationalError, match="SSL"):
        psycopg.connect(town.dsn(sslmode="require"))
    with psycopg.connect(town.dsn(sslmode="prefer")) as opened:
        assert not opened.pgconn.ssl_in_use


def test_behind_a_proxy_others_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    configured = replace(config(people(tmp_path / "p")), behind=())
    import ipaddress

    proxied = replace(configured, behind=(ipaddress.ip_network("10.0.0.5"),))

    class At:
        is_encrypted = False

        def __init__(self, peer: str) -> None:
            self.peer = peer

    for peer in ("10.0.0.5", "127.0.0.1", "::1"):
        start._check_encrypted(At(peer), proxied, None)  # type: ignore[arg-type]
    with pytest.raises(start.Refusal, match="proxy"):
        start._check_encrypted(At("10.0.0.6"), proxied, None)  # type: ignore[arg-type]
    with pytest.raises(start.Refusal, match="TLS"):
        start._check_encrypted(At("127.0.0.1"), configured, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))  # type: ignore[arg-type]
