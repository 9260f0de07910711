"""Bytes that are no protocol, statements that are too much, and clients that do not read: the server goes on."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from served_wire import RawClient, WireTown, error_fields, served_wire
from understudy.server.metrics import Metrics
from understudy.server.pg import transport
from understudy.server.pg.asking import SharedDesk
from understudy.server.pg.catalog.reading import parsed
from understudy.server.pg.connection import MOST_IN_A_ROW, PgConnection
from understudy.server.pg.frames import (
    BindMessage,
    Fields,
    FrameBuffer,
    ParseMessage,
    ProtocolError,
    WireFrame,
)
from understudy.server.pg.lexer import statements_of
from understudy.server.pg.routing import relations
from understudy.server.pg.settings import Settings
from understudy.server.pg.states import Refusal
from understudy.server.tokens import Caller

FAR = 1_000_000
"""Broken frames and starts of the long run."""


def frame(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


WHOLE = [
    frame(b"Q", b"SELECT 1\0"),
    frame(b"Q", b"SELECT count(*) FROM town\0"),
    frame(b"P", b"s\0SELECT count(*) FROM town WHERE age < $1\0" + struct.pack("!hi", 1, 23)),
    frame(b"B", b"p\0s\0" + struct.pack("!hhh", 1, 0, 1) + struct.pack("!i", 2) + b"30" + struct.pack("!h", 0)),
    frame(b"D", b"Ss\0"), frame(b"D", b"Pp\0"), frame(b"E", b"p\0" + struct.pack("!i", 0)), frame(b"C", b"Ss\0"),
    frame(b"H", b""), frame(b"S", b""), frame(b"d", b"abc"), frame(b"f", b"x\0"), frame(b"F", b"1234"),
]  # fmt: skip


def mutated(draw: random.Random) -> bytes:
    """Some messages, of which bytes were changed, dropped, doubled or cut off."""
    data = bytearray(b"".join(draw.choices(WHOLE, k=draw.randint(1, 4))))
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(data))
        match draw.randrange(5):
            case 0:
                data[place] = draw.randrange(256)
            case 1:
                del data[place : place + draw.randint(1, 8)]
            case 2:
                data[place:place] = draw.randbytes(draw.randint(1, 8))
            case 3:
                del data[place:]
            case _:
                data[place : place + 4] = struct.pack(
                    "!i", draw.choice((-1, 0, 3, 4, 2**31 - 1, 1 << 20, 5000))
                )
        if not data:
            return b"\0"
    return bytes(data)


def broken_start(draw: random.Random) -> bytes:
    kinds = [
        draw.randbytes(draw.randint(0, 60)),
        struct.pack("!ii", draw.choice((0, 7, 8, 9, 10_001, 2**31 - 1, -5)), draw.choice((3 << 16, 80877103))),
        struct.pack("!ii", 12, 3 << 16) + b"us\0\0",
        struct.pack("!ii", 17, 3 << 16) + b"user\0ada\0",
        struct.pack("!ii", 18, 3 << 16) + b"user\0ada\0\0" + frame(b"p", draw.randbytes(draw.randint(0, 40))),
        struct.pack("!ii", 18, 3 << 16) + b"user\0ada\0\0"
        + frame(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", draw.choice((-1, 3, 11, 9999))) + b"n,,n=,r=abc"),
        struct.pack("!iiii", 16, 80877102, 1, draw.randrange(2**31)),
    ]  # fmt: skip
    return draw.choice(kinds)


def assault(town: WireTown, count: int, seed: int) -> None:
    """So many broken starts and messages, the messages on connections that are opened again and again."""
    draw, done = random.Random(seed), 0
    while done < count:
        if draw.random() < 0.3:
            with socket.create_connection(("127.0.0.1", town.port), timeout=20) as sock:
                sock.sendall(broken_start(draw))
                done += 1
            continue
        client = RawClient(town.port)
        try:
            if client.login("ada", town.tokens["ada"])[-1][0] != b"Z":
                continue
            for _ in range(draw.randint(5, 60)):
                client.socket.sendall(mutated(draw))
                done += 1
                client.socket.settimeout(0)
                try:
                    if client.socket.recv(1 << 16) == b"":
                        break
                except BlockingIOError:
                    pass
                finally:
                    client.socket.settimeout(20)
        except OSError:
            pass
        finally:
            client.close()


def answers(town: WireTown) -> bool:
    with psycopg.connect(town.dsn("ben")) as connection:
        return connection.execute("SELECT count(*) FROM town").fetchone() is not None


def test_broken_frames_and_starts_harm_nobody(town: WireTown) -> None:
    assert answers(town)
    assault(town, 200, seed=0)
    before = psutil.Process().memory_info().rss
    assault(town, 5_000, seed=1)
    assert answers(town)
    assert psutil.Process().memory_info().rss - before < 50 << 20


@pytest.mark.slow("a million broken frames and starts take minutes")
def test_a_million_broken_frames_and_starts(tmp_path: Path) -> None:
    with served_wire(tmp_path / "town") as town:
        assert answers(town)
        assault(town, 20_000, seed=2)
        before = psutil.Process().memory_info().rss
        threads = [threading.Thread(target=assault, args=(town, FAR // 4, seed)) for seed in range(3, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers(town)
        assert psutil.Process().memory_info().rss - before < 50 << 20


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_bytes_are_frames_or_a_protocol_error(parts: list[bytes]) -> None:
    whole, cut = FrameBuffer(), FrameBuffer()
    data = b"".join(parts)

    def all_of(buffer: FrameBuffer, pieces: list[bytes]) -> list[object]:
        found: list[object] = []
        for piece in pieces:
            buffer.feed(piece)
            try:
                while (one := buffer.next(30)) is not None:
                    found.append(one)
            except ProtocolError:
                return [*found, "error"]
        return found

    assert all_of(whole, [data]) == all_of(cut, [data[i : i + 1] for i in range(len(data))])


@given(st.binary(max_size=60))
def test_any_body_is_a_message_or_a_protocol_error(body: bytes) -> None:
    for read in (ParseMessage.read, BindMessage.read, lambda b: Fields(b).text()):
        with suppress(ProtocolError):
            read(body)


@given(st.text(alphabet="'\"$;-/*\\ e1aE\n(", max_size=30))
def test_statements_are_cut_where_no_quote_is_open(text: str) -> None:
    with suppress(Refusal):
        assert all(statement.text in text and statement.tokens for statement in statements_of(text))


def state_of(client: RawClient, sql: str) -> str:
    told = client.query(sql)
    assert told[-1][0] == b"Z"
    return next((error_fields(body)["C"] for kind, body in told if kind == b"E"), "")


def test_statements_that_are_too_much_are_refused_at_once(town: WireTown) -> None:
    client = RawClient(town.port)
    client.login("ada", town.tokens["ada"])
    began = time.monotonic()
    assert (
        state_of(client, "SELECT count(*) FROM town WHERE " + " OR ".join(["age < 30"] * 70_000)) == "54000"
    )
    assert state_of(client, "SELECT " + "x" * (3 << 20)) == "54000"
    assert state_of(client, "SELECT count(*) FROM town WHERE " + " OR ".join(["age < 30"] * 2_000)) == "54000"
    assert state_of(client, "SELECT " + "(" * 5_000 + "1" + ")" * 5_000) in (
        "42601",
        "0A000",
        "54000",
        "54001",
    )
    assert state_of(client, "SELECT 1;" * 101) == "54000"
    assert state_of(client, "SELECT '" + "a" * 90_000 + "'") in ("54000",)
    assert time.monotonic() - began < 30
    client.send(b"P", b"big\0" + b"SELECT " + b"y" * (2 << 20) + b"\0" + struct.pack("!h", 0))
    client.send(b"S")
    assert error_fields(dict(client.until(b"Z"))[b"E"])["C"] == "54000"
    assert state_of(client, "SELECT count(*) FROM town") == ""
    client.socket.sendall(b"Q" + struct.pack("!i", 2**31 - 1))  # no message is that long
    assert error_fields(client.receive()[1])["S"] == "FATAL"
    client.close()


def test_what_a_connection_may_keep_is_limited(town: WireTown) -> None:
    client = RawClient(town.port)
    client.login("ada", town.tokens["ada"])
    for number in range(205):
        client.send(b"Q", f"SET my.setting{number} = 'x'\0".encode())
    told = [client.until(b"Z") for _ in range(205)]
    assert "53400" in [error_fields(body)["C"] for one in told for kind, body in one if kind == b"E"]
    client.close()


def test_a_client_that_does_not_read_is_left(town: WireTown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "SLOW_SECONDS", 0.3)
    client = RawClient(town.port)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.login("bot", town.tokens["bot"])
    door = town.service._postgres
    assert door is not None
    rows = "SELECT repeat('x', 10000) FROM generate_series(1, 2000)"
    client.send(b"Q", rows.encode() + b"\0")
    until = time.monotonic() + 20
    while "bot" in [connection.caller.analyst for _, connection in door._open.values()]:
        assert time.monotonic() < until
        time.sleep(0.02)
    client.close()
    assert answers(town)


def test_messages_that_came_together_leave_others_their_turn() -> None:
    class Hasty(transport.ClientTransport):
        """Has a thousand Flush messages at hand, and then the end."""

        left = 1000

        async def frame(self) -> WireFrame:
            self.left -= 1
            return WireFrame(ord("H" if self.left else "X"), b"")

    async def turns() -> int:
        shared, caller = cast(SharedDesk, SimpleNamespace(gate=None)), cast(Caller, None)
        settings = Settings("ada", {})
        hasty = PgConnection(Hasty(lambda _: None), shared, caller, settings, cast(Metrics, None))
        talk, found = asyncio.create_task(hasty.converse()), 0
        while not talk.done():
            await asyncio.sleep(0)
            found += 1
        await talk
        return found

    assert asyncio.run(turns()) > 1000 // MOST_IN_A_ROW


def test_hostile_sql_reaches_no_file_and_no_setting(town: WireTown) -> None:
    client = RawClient(town.port)
    client.login("ada", town.tokens["ada"])
    for sql in (
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM (SELECT sex, count(*) FROM town GROUP BY 1) t, read_text('/etc/passwd')",
        "SELECT count(*) FROM town a JOIN town b ON a.sex = b.sex",
        "SELECT * FROM (SELECT age FROM town) t LIMIT 5",
        "SELECT a.age FROM town a, (SELECT sex, count(*) FROM town GROUP BY 1) b",
        "SELECT age FROM town ORDER BY age LIMIT 1",
        "WITH t AS (SELECT * FROM town) SELECT * FROM t",
        "SELECT * FROM synthetic.spring, (SELECT age FROM town) t",
        "SELECT (SELECT max(age) FROM town)",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM town WHERE age = 7)",
        "SELECT set_config('understudy.nothing', 'x', false)",
        "SELECT count(*) FROM generate_series(1, 1000000000000)",
    ):
        assert state_of(client, sql) != "", sql
    assert state_of(client, "SHOW datestyle") == ""
    client.close()


def test_a_name_defined_with_a_character_beyond_ascii_hides_no_table() -> None:
    text = 'WITH "\u212aids" AS (SELECT 1) SELECT * FROM kids JOIN "\u212aids" ON true JOIN "\u0130" ON true'
    assert [table.name for table in relations(parsed(text))] == ["kids", "\u0130"]
    assert relations(parsed("WITH Kids AS (SELECT 1) SELECT * FROM kids")) == []
