"""A server in this process for all tests of a module, with a table of people and another one of dates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import understudy as us
from served import config, people, serving, tokens
from understudy.client.connect import Connection
from understudy.server.run import Service


@dataclass
class Served:
    """A server, its folder, and connections to it, which are closed with it."""

    service: Service
    folder: Path
    url: str
    made: list[Connection]

    def token(self, name: str, **given: Any) -> str:
        return tokens(self.service.gate.config, name, **given)[0]

    def connect(self, name: str = "ada", *, patience: float = 5, **given: Any) -> Connection:
        """A connection of an analyst of this name, or with whatever token is made for the given role."""
        found = us.connect(self.url, self.token(name, **given), patience=patience)
        self.made.append(found)
        return found


Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def serve(tmp_path_factory) -> Iterator[Serve]:
    """Start a server with a changed configuration; it is stopped after the module's tests."""
    open_servers: list[Any] = []

    def started(**given: Any) -> Served:
        budget = given.pop("budget", "{epsilon: 40, delta: 1e-9}")
        folder = people(tmp_path_factory.mktemp("served"), rows=400, budget=budget)
        entered = serving(config(folder, **given))
        service = entered.__enter__()
        found = Served(service, folder, f"http://127.0.0.1:{service.addresses['http'].port}", [])
        open_servers.append((entered, found))
        return found

    yield started
    for entered, found in reversed(open_servers):
        for connection in found.made:
            connection.close()
        entered.__exit__(None, None, None)


@pytest.fixture(scope="module")
def server(serve: Serve) -> Served:
    return serve()


@pytest.fixture
def ada(server: Served) -> Connection:
    return server.connect("ada")


@pytest.fixture(autouse=True)
def no_token_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("UNDERSTUDY_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
