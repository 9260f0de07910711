"""The rules of the gate hold at this door: approvals, limits, roles, pauses, request ids, one session for all."""

from __future__ import annotations

import signal
import struct
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

import served
import understudy as us
import warm
from served import Client, tokens
from served_wire import RawClient, WireTown, served_wire, write_town
from understudy.server.config import ApproveAbove

DEAR = "SELECT age, sex, district, count(*) FROM town GROUP BY 1, 2, 3"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireTown]:
    """A town where a question above a thousandth of a millionth of the budget waits for the custodian."""
    above = ApproveAbove(people=Fraction(1, 10**9), agents=Fraction(1, 10**9))
    with served_wire(tmp_path_factory.mktemp("strict") / "town", approve_above=above) as served:
        yield served


@pytest.mark.parametrize(("own", "whose"), [(False, "anybody"), (True, "you")])
def test_explain_says_whose_questions_are_free(tmp_path: Path, *, own: bool, whose: str) -> None:
    with served_wire(tmp_path / "town", own_sessions=own) as town, psycopg.connect(town.dsn()) as connection:
        lines = [row[0] for row in connection.execute("EXPLAIN SELECT count(*) FROM town").fetchall()]
        assert f"  Asked: in the session, where what {whose} bought is free" in lines


def test_a_dear_question_waits_and_is_paid_once_when_it_is_approved(strict: WireTown) -> None:
    with psycopg.connect(strict.dsn(), autocommit=True) as connection:
        connection.execute("SET understudy.why = 'for the council'")
        with pytest.raises(errors.ObjectNotInPrerequisiteState) as waits:
            connection.execute(DEAR)
        told = waits.value.diag
        assert "waits for the custodian's approval" in (told.message_primary or "")
        approvals = strict.service.gate.approvals
        (kept,) = [one for one in approvals.all() if one.question == DEAR]
        assert kept.id in (told.message_detail or "")
        assert kept.why == "for the council"
        assert f"understudy.request = '{kept.request}'" in (told.message_hint or "")
        lines = [row[0] for row in connection.execute(f"EXPLAIN {DEAR}").fetchall()]
        assert "  Approval: needed" in lines
        approvals.approve(kept.id, by="carl")
        until = time.monotonic() + 20
        while True:
            connection.execute(f"SET understudy.request = '{kept.request}'")
            try:
                rows = connection.execute(DEAR).fetchall()
                break
            except errors.ObjectNotInPrerequisiteState:  # the server asks it within a second
                assert time.monotonic() < until
                time.sleep(0.02)
        spent = strict.service.gate.served.tables["town"]
        with spent.use() as opened:
            before = opened.project.ledger.spent
            connection.execute(f"SET understudy.request = '{kept.request}'")
            assert connection.execute(DEAR).fetchall() == rows
            assert opened.project.ledger.spent == before


def test_a_denied_question_says_why(strict: WireTown) -> None:
    sql = "SELECT district, moved_in, count(*) FROM town GROUP BY 1, 2"
    with psycopg.connect(strict.dsn("ben"), autocommit=True) as connection:
        with pytest.raises(errors.ObjectNotInPrerequisiteState):
            connection.execute(sql)
        approvals = strict.service.gate.approvals
        (kept,) = [one for one in approvals.all() if one.question == sql]
        approvals.deny(kept.id, by="carl", reason="ask by district")
        connection.execute(f"SET understudy.request = '{kept.request}'")
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match="ask by district"):
            connection.execute(sql)


def test_what_one_bought_is_free_for_all_at_every_door(town: WireTown) -> None:
    sql = "SELECT count(*) FROM town WHERE age >= 40 AND smoker AND sex = 'M'"
    told: list[str] = []
    with psycopg.connect(town.dsn("ada")) as ada:
        value = ada.execute(sql).fetchone()
    with psycopg.connect(town.dsn("ben")) as ben:
        ben.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        assert ben.execute(sql).fetchone() == value
    assert told[0].startswith("source repeat, free")
    status, answer = Client(town.service, town.tokens["bot"]).ask(sql, "town")
    assert status == 200
    assert answer["answer"]["rows"][0][0]["value"] == value[0] if value else None
    with psycopg.connect(town.dsn("eve")) as eve:  # a read-only token gets what is free, and never pays
        assert eve.execute(sql).fetchone() == value
        with pytest.raises(errors.InsufficientPrivilege, match="never pays"):
            eve.execute("SELECT count(*) FROM town WHERE income < 10000 AND sex = 'M' AND age < 10")


def test_an_auditor_reads_the_catalog_and_asks_nothing(town: WireTown) -> None:
    with psycopg.connect(town.dsn("olga"), autocommit=True) as olga:
        assert olga.execute("SELECT relname FROM pg_class WHERE relname = 'town'").fetchone() == ("town",)
        with pytest.raises(errors.InsufficientPrivilege, match="auditor"):
            olga.execute("SELECT count(*) FROM town")


def test_a_paused_table_says_so_and_the_history_tells_all(town: WireTown) -> None:
    gate = town.service.gate
    sql = "SELECT count(*) FROM town WHERE age < 20 AND sex = 'F'"
    with psycopg.connect(town.dsn("bot"), autocommit=True) as bot:
        gate.pauses.pause("town", by="carl", reason="back at noon")
        try:
            with pytest.raises(errors.ObjectNotInPrerequisiteState, match="back at noon"):
                bot.execute(sql)
        finally:
            gate.pauses.resume("town", by="carl")
        assert bot.execute(sql).fetchone()
    _, history = Client(town.service, town.tokens["bot"]).get("/v1/history")
    assert sql in [one["question"] for one in history["questions"]]


def test_explain_and_describe_spend_nothing(town: WireTown) -> None:
    sql = "SELECT age, smoker, moved_in, count(*) FROM town GROUP BY 1, 2, 3"
    with town.service.gate.served.tables["town"].use() as opened:
        before = opened.project.ledger.spent
        with psycopg.connect(town.dsn()) as connection:
            connection.execute(f"EXPLAIN {sql}")
            connection.execute(f"EXPLAIN ANALYZE {sql}")
            connection.execute(f"PREPARE later AS {sql}")
            connection.execute(f"DECLARE later CURSOR FOR {sql}")
        client = RawClient(town.port)
        client.login("ada", town.tokens["ada"])
        client.send(b"P", b"s\0" + sql.encode() + b"\0" + struct.pack("!h", 0))
        client.send(b"D", b"Ss\0")
        client.send(b"B", b"p\0s\0" + struct.pack("!hhh", 0, 0, 0))
        client.send(b"D", b"Pp\0")
        client.send(b"S")
        assert [kind for kind, _ in client.until(b"Z")] == [b"1", b"t", b"T", b"2", b"T", b"Z"]
        client.close()
        assert opened.project.ledger.spent == before


PROGRAM = """
import sys
from dataclasses import replace
from pathlib import Path
import served
from understudy.server.config import Address
from understudy.server.run import serve
folder = Path(sys.argv[1])
listen = replace(served.WITH_POSTGRES, postgres=Address("127.0.0.1", int(sys.argv[2])))
configured = served.config(folder, tables={"town": folder / "understudy.yml"}, listen=listen)
serve(configured, announce=lambda words: print(words, flush=True))
"""


class Served:
    """A server in a process of its own, to be killed."""

    def __init__(self, folder: Path) -> None:
        self.child = warm.Process(["-c", PROGRAM, str(folder), "0"])
        words = ""
        while "ostgres" not in words:
            words = self.child.stdout.readline()
            assert words
        self.port = int(words.split("port=")[1].split()[0])

    def end(self, number: int) -> int:
        self.child.send_signal(number)
        status = self.child.wait(60)
        self.child.stdout.close()
        return status


def test_a_killed_server_pays_once_for_each_request(tmp_path: Path) -> None:
    folder = write_town(tmp_path / "town")
    (secret,) = tokens(served.config(folder), "ada")
    answers: dict[str, Any] = {}

    def asked(connection: psycopg.Connection[Any], request: str, sql: str) -> Any:
        connection.execute("SET understudy.rho = 0.0001")
        connection.execute(f"SET understudy.request = '{request}'")
        return connection.execute(sql).fetchone()

    def connected(running: Served) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1", port=running.port, user="ada", password=secret, dbname="x", autocommit=True
        )

    questions = {f"r{i}": f"SELECT count(*) FROM town WHERE age < {10 * (i + 1)}" for i in range(6)}
    running = Served(folder)
    connection = connected(running)
    for request, sql in questions.items():
        answers[request] = asked(connection, request, sql)
    # one more is sent, and the server is killed while it may be asked
    connection.execute("SET understudy.request = 'late'")
    connection.pgconn.send_query(b"SELECT count(*) FROM town WHERE smoker")
    connection.pgconn.flush()
    running.end(signal.SIGKILL)
    connection.close()
    running = Served(folder)
    with connected(running) as connection:
        for request, sql in questions.items():
            assert asked(connection, request, sql) == answers[request]
        late = asked(connection, "late", "SELECT count(*) FROM town WHERE smoker")
        assert asked(connection, "late", "SELECT count(*) FROM town WHERE smoker") == late
    assert running.end(signal.SIGTERM) == 0
    with us.open(folder) as project:
        debits = [entry for entry in project.ledger.entries() if entry.kind == "debit"]
        named = [entry for entry in debits if "ada/" in str(entry.request)]
        assert len(named) == len({entry.request for entry in named}) == len(questions) + 1
