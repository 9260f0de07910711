"""A server that is killed, stopped, or loses its ledger, its table or its disk: nothing is lost or paid twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPException
from pathlib import Path

import pytest

from served import Client, Process, config, people, serving, tokens
from understudy.errors import StoreError
from understudy.ledger.export import verify
from understudy.project import open_project
from understudy.server.one_server import only_server
from understudy.server.run import serve

QUESTIONS = ["count by sex", "count by area", "count by job", "count by age"]


def asking(number: int) -> dict:
    """Question `number`: every second one direct, the others in the session, each under a request of its own."""
    if number % 2:
        return {"question": f"count age < {(18, 65)[number % 4 // 2]}", "rho": 1e-5, "request": f"q{number}"}
    return {"question": QUESTIONS[number // 2 % 4], "request": f"q{number}"}


def killed(folder: Path, kills: int, questions: int, clients: int) -> None:
    """Kill a server under load again and again; then every request is answered once, and always the same."""
    configured = config(people(folder, budget="{epsilon: 100, delta: 1e-9}"))
    [ada] = tokens(configured, "ada")
    answers: dict[int, object] = {}
    changed: list[int] = []
    todo = set(range(questions))
    draw = random.Random(1)
    for kill in range(kills + 1):
        process = Process(folder)
        client = Client(process.ports, ada)

        def one(number: int, client: Client = client) -> None:
            try:
                status, told = client.ask(**asking(number))
            except (OSError, HTTPException):
                return
            assert status in (200, 503), told
            if status == 200:
                if answers.setdefault(number, told) != told:
                    changed.append(number)
                todo.discard(number)

        with ThreadPoolExecutor(clients) as pool:
            wanted = sorted(todo) + draw.sample(range(questions), min(5, questions))
            if kill < kills:
                threading.Timer(draw.uniform(0.05, 0.6), process.child.send_signal, [signal.SIGKILL]).start()
                list(pool.map(one, wanted))
                process.end()
            else:
                list(pool.map(one, range(questions)))
                process.end(signal.SIGTERM)
    assert not changed
    assert not todo
    project = open_project(folder)
    direct = [debit for debit in project.ledger.debits() if debit.request.startswith("ada/q")]
    assert len({debit.request for debit in direct}) == len(direct) == questions // 2
    ledger = project.ledger
    assert verify(ledger.url, ledger.name)["sound"]
    steps = [debit for debit in ledger.debits() if "#" in debit.request]
    assert len(steps) <= len(QUESTIONS)
    project.close()


def test_a_killed_server_answers_every_request_once(tmp_path):
    killed(tmp_path, kills=1, questions=16, clients=8)


@pytest.mark.slow("a thousand kills take an hour")
def test_a_thousand_kills(tmp_path):
    for run in range(50):
        killed(tmp_path / str(run), kills=20, questions=600, clients=32)


def test_a_stopped_server_answers_what_it_has_begun(tmp_path):
    configured = config(people(tmp_path))
    [ada] = tokens(configured, "ada")
    process = Process(tmp_path)
    client = Client(process.ports, ada)
    with ThreadPoolExecutor(16) as pool:
        flying = [pool.submit(client.ask, **asking(2 * i + 1)) for i in range(16)]
        time.sleep(0.3)
        assert process.end(signal.SIGTERM) == 0
        statuses = [one.result()[0] for one in flying if one.exception() is None]
    project = open_project(tmp_path)
    assert statuses.count(200) >= len(project.ledger.debits())
    project.close()


def test_a_second_server_on_the_same_state_is_told_so(tmp_path):
    configured = config(people(tmp_path))
    with only_server(configured.state), pytest.raises(StoreError, match="serves this state folder already"):
        serve(configured, announce=lambda _: None)


def served_again(client: Client, question: str) -> dict:
    """The answer, once the server has found its way back by itself."""
    for _ in range(60):
        status, told = client.ask(question, request=question.replace(" ", "-"))
        if status == 200:
            return told
        assert status == 503
        time.sleep(0.1)
    raise AssertionError(told)


def test_a_ledger_that_goes_and_comes_back(tmp_path):
    configured = config(people(tmp_path))
    [ada] = tokens(configured, "ada")
    with serving(configured) as service:
        client = Client(service, ada)
        first = client.ask("count by sex", request="r")[1]
        place, away = tmp_path / "understudy.ledger", tmp_path / "away"
        for ending in ("", "-wal", "-shm"):
            if (tmp_path / f"understudy.ledger{ending}").exists():
                os.rename(f"{place}{ending}", f"{away}{ending}")
        status, told = client.ask("count by area")
        assert (status, told["code"]) == (503, "ledger")
        assert str(tmp_path) not in str(told)
        assert client.get("/readyz")[0] == 503
        assert client.ask("count by sex", request="r")[1] == first  # what was answered is known
        for ending in ("", "-wal", "-shm"):
            if Path(f"{away}{ending}").exists():
                os.rename(f"{away}{ending}", f"{place}{ending}")
        assert served_again(client, "count by area")["answer"]["source"] == "measured"
        assert client.ask("count by sex", request="r")[1] == first
        assert client.get("/readyz")[0] == 200


def test_an_auditor_is_not_handed_an_unsound_ledger_as_a_sound_one(tmp_path):
    configured = config(people(tmp_path))
    [ada], [eve] = tokens(configured, "ada"), tokens(configured, "eve", role="auditor")
    with serving(configured) as service:
        assert Client(service, ada).ask("count by sex", epsilon=0.1)[0] == 200
        auditor = Client(service, eve)
        status, text, headers = auditor("GET", "/v1/ledger/export?table=people")
        assert (status, headers["content-disposition"]) == (200, 'attachment; filename="ledger.py"')
        with closing(sqlite3.connect(tmp_path / "understudy.ledger")) as raw:
            raw.execute("UPDATE understudy_entry SET cost = 1 WHERE kind = 'debit'")
            raw.commit()
        status, told, _ = auditor("GET", "/v1/ledger/export?table=people")
        assert status == 422
        assert "is not sound" in str(told)
        status, text, headers = auditor("GET", "/v1/ledger/export?table=people&as_it_is=true")
        assert (status, headers["content-disposition"]) == (200, 'attachment; filename="ledger-not-sound.py"')
        assert text.decode().startswith("# NOT SOUND")


def test_a_table_that_goes_and_comes_back(tmp_path):
    configured = config(people(tmp_path))
    [ada] = tokens(configured, "ada")
    os.rename(tmp_path / "people.csv", tmp_path / "kept.csv")
    (tmp_path / "people.csv").write_bytes((tmp_path / "kept.csv").read_bytes())
    with serving(configured) as service:
        client = Client(service, ada)
        (tmp_path / "people.csv").unlink()
        status, told = client.ask("count by sex")
        assert (status, told["status"]) == (503, 503)
        assert str(tmp_path) not in str(told)
        os.rename(tmp_path / "kept.csv", tmp_path / "people.csv")
        assert served_again(client, "count by sex")["answer"]["rows"]


def test_a_store_that_is_full_refuses_and_goes_on_when_there_is_room(tmp_path):
    configured = config(people(tmp_path))
    [ada] = tokens(configured, "ada")
    with serving(configured) as service:
        client = Client(service, ada)
        assert client.ask("count by sex")[0] == 200
        real = service.gate.store.writing
        service.gate.store.writing = lambda **_: (_ for _ in ()).throw(StoreError("full"))  # type: ignore[method-assign]
        status, told = client.ask("count by area", request="r")
        assert (status, told["code"]) == (503, "store")
        service.gate.store.writing = real  # type: ignore[method-assign]
        answer = served_again(client, "count by area")["answer"]
        assert answer["rows"]
        spent = [debit for debit in open_project(tmp_path).ledger.debits() if "#" in debit.request]
        assert len(spent) == 2


def crowd(folder: Path, analysts: int, questions: int) -> None:
    """Analysts ask at once until the budget is gone; neither it nor anybody's limit is overspent."""
    folder = people(folder, budget="{epsilon: 1}", more="limits: {analyst: 0.1}\n")
    configured = config(folder)
    names = [f"a{i}" for i in range(analysts)]
    secrets = tokens(configured, *names)
    refused = []
    with serving(configured) as service:

        def one(number: int) -> None:
            client, draw = Client(service, secrets[number]), random.Random(number)
            for _ in range(questions):
                price = draw.choice((0.01, 0.02, 0.04))
                status, told = client.ask(f"count age < {draw.choice((18, 65))}", epsilon=price)
                assert status in (200, 402), told
                refused.append(status == 402)

        with ThreadPoolExecutor(analysts) as pool:
            list(pool.map(one, range(analysts)))
    project = open_project(folder)
    assert any(refused)
    assert project.ledger.spent.amount <= 1
    assert all(cost.amount <= 0.1 for cost in project.ledger.spent_by().values())
    ledger = project.ledger
    assert verify(ledger.url, ledger.name)["sound"]
    project.close()


def test_a_crowd_overspends_neither_the_budget_nor_a_limit(tmp_path):
    crowd(tmp_path, analysts=12, questions=8)


@pytest.mark.slow("fifty analysts with two hundred questions each")
def test_fifty_analysts(tmp_path):
    crowd(tmp_path, analysts=50, questions=200)
