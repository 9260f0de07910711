"""A server for tests: a small table of people, tokens of every role, and the server in this process or another."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import uvloop

import warm
from people import write_project
from understudy.server.config import Address, ApproveAbove, Listen, Rates, ServerConfig
from understudy.server.gate import Gate
from understudy.server.run import Service
from understudy.server.store import ServerStore
from understudy.server.tokens import Tokens

ANYWHERE = Listen(http=Address("127.0.0.1", 0), admin=Address("127.0.0.1", 0))
WITH_POSTGRES = replace(ANYWHERE, postgres=Address("127.0.0.1", 0))

MORE = "  area: {type: category, values: [n, e, s, w]}\n  job: {type: boolean}\n"


def people(
    folder: Path, *, rows: int = 2000, budget: str = "{epsilon: 40, delta: 1e-9}", more: str = ""
) -> Path:
    """A project of `rows` people in a folder: ages, sexes, areas and jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    write_project(folder, rows=0, budget=budget, more=more)
    lines = [
        f"{i * 7 % 100},{'FM'[i % 2]},{'nesw'[i * 3 % 4]},{'true' if i % 3 else 'false'}" for i in range(rows)
    ]
    (folder / "people.csv").write_text("age,sex,area,job\n" + "\n".join(lines) + "\n")
    with (folder / "understudy.yml").open("a") as file:
        file.write(MORE)
    return folder


def config(folder: Path, **given: Any) -> ServerConfig:
    """The server of the project in a folder: free ports, no waiting, and no approvals unless told otherwise."""
    plain = ServerConfig(
        folder=folder,
        tables={"people": folder / "understudy.yml"},
        listen=ANYWHERE,
        approve_above=ApproveAbove(people=Fraction(1), agents=Fraction(1)),
        rates=Rates(requests=1e6, at_once=64, waiting=10_000),
        response_grid_ms=1,
    )
    return replace(plain, **given)


def tokens(configured: ServerConfig, *names: str, **given: Any) -> list[str]:
    """New tokens, one for each name."""
    with ServerStore(configured.state) as store:
        return [Tokens(store).make(name, **given)[1] for name in names]


class Client:
    """A client of a server's ports, one connection for each request, or kept open inside `with`."""

    def __init__(self, service: Service | dict[str, int], token: str = "") -> None:
        self._ports = (
            service if isinstance(service, dict) else {k: a.port for k, a in service.addresses.items()}
        )
        self.token = token

    def __call__(
        self, method: str, path: str, body: Any = None, *, door: str = "http", raw: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any, dict[str, str]]:  # fmt: skip
        """Status, the document or the bytes, and the headers."""
        sent = {"authorization": f"Bearer {self.token}"} if self.token else {}
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
            sent["content-type"] = "application/json"
        connection = HTTPConnection("127.0.0.1", self._ports[door], timeout=60)
        try:
            connection.request(method, path, data, sent | (headers or {}))
            reply = connection.getresponse()
            content = reply.read()
        finally:
            connection.close()
        found = {name.lower(): value for name, value in reply.getheaders()}
        is_json = "json" in found.get("content-type", "")
        return reply.status, json.loads(content) if is_json and content else content, found

    def ask(self, question: str, table: str = "people", **given: Any) -> tuple[int, Any]:
        return self("POST", f"/v1/tables/{table}/ask", {"question": question, **given})[:2]

    def get(self, path: str, **given: Any) -> tuple[int, Any]:
        return self("GET", path, **given)[:2]


@contextmanager
def serving(configured: ServerConfig) -> Iterator[Service]:
    """A server on a thread of this process."""
    started = threading.Event()
    found: list[Any] = []

    def run() -> None:
        async def main() -> None:
            service = Service(gate)
            found.extend((service, asyncio.get_running_loop()))
            await service.run(lambda _: started.set(), signals=False)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    with ServerStore(configured.state) as store:
        gate = Gate.opened(configured, store)
        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert started.wait(30)
            yield found[0]
        finally:
            found[1].call_soon_threadsafe(found[0].stop.set)
            thread.join(30)
            gate.served.close()


PROGRAM = """
import sys
from pathlib import Path
import served
from understudy.server.run import serve
from understudy.server.config import Address, Listen
http, admin = map(int, sys.argv[2:4])
listen = Listen(http=Address("127.0.0.1", http), admin=Address("127.0.0.1", admin))
serve(served.config(Path(sys.argv[1]), listen=listen), announce=lambda words: print(words, flush=True))
"""


class Process:
    """A server in a process of its own, to be killed."""

    def __init__(self, folder: Path, ports: tuple[int, int] = (0, 0)) -> None:
        with (folder / "log").open("ab") as log:
            self.child = warm.Process(["-c", PROGRAM, str(folder), *map(str, ports)], stderr=log)
        words = self.child.stdout.readline()
        assert "Serving" in words, (folder / "log").read_text()[-2000:]
        self.ports = {"http": int(words.rsplit(":", 1)[1])}

    def end(self, number: int = signal.SIGKILL) -> int:
        """Send a signal, and wait for the end; returns the status."""
        self.child.send_signal(number)
        status = self.child.wait(60)
        self.child.stdout.close()
        return status
