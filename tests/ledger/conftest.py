"""Places to keep a ledger in: a file, and a Postgres server of our own where its program is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import URL, make_url

from memory_folder import memory_folder
from own_postgres import own_postgres
from understudy.ledger.memory import MemoryLedger
from understudy.ledger.store import DurableLedger
from understudy.privacy.budget import Budget

ONE = Budget.of(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """A server with fsync on: a ledger's promises are about what reached the disk."""
    with own_postgres(max_connections=60, shared_buffers="16MB") as server:
        yield make_url(server.url).set(drivername="postgresql+psycopg")


def _dsn(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.fixture
def postgres(postgres_server: URL, request: pytest.FixtureRequest) -> URL:
    """A schema of the test's own, empty: much cheaper than a database."""
    name = f"t{abs(hash(request.node.nodeid))}"
    with psycopg.connect(_dsn(postgres_server), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return postgres_server.update_query_dict({"options": f"-csearch_path={name}"})


@pytest.fixture
def sqlite(tmp_path: Path) -> URL:
    return URL.create("sqlite", database=str(tmp_path / "understudy.ledger"))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> URL:
    """Every durable store in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledgers(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Opens ledgers of one kind; a second opening of a durable one is the same ledger."""
    opened: list[DurableLedger] = []

    def build(budget: Budget = ONE, *, name: str = "t", **settings: Any) -> Any:
        if request.param == "memory":
            return MemoryLedger(budget, **settings)
        opened.append(DurableLedger(request.getfixturevalue(request.param), name, budget, **settings))
        return opened[-1]

    yield build
    for ledger in opened:
        ledger.close()


@pytest.fixture(name="memory_folder")
def _memory_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose syncs cost nothing, where there is one: for tests of what a sync has no part in."""
    with memory_folder(tmp_path) as folder:
        yield folder


@pytest.fixture(scope="session")
def audit() -> bool:
    """Whether the long versions run (`make audit-ledger`)."""
    return bool(os.environ.get("UNDERSTUDY_AUDIT"))
