"""Places to keep a ledger in: a file, and a Postgres server of our own where its program is installed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import URL, make_url


def _server_programs() -> Path | None:
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return places[-1].parent if places else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """A server on loopback with its own data and fsync on; it refuses to run as root, so root steps down."""
    programs = _server_programs()
    if programs is None:
        pytest.skip("no Postgres server is installed (initdb is neither on PATH nor in /usr/lib/postgresql)")
    step_down = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="understudy-postgres-"))
    if step_down:
        shutil.chown(folder, "postgres", "postgres")
    data, port = folder / "data", _free_port()
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "understudy", "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=True,
        capture_output=True,
        cwd=folder,
        **step_down,
    )
    settings = {
        "listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, "max_connections": 60,
        "shared_buffers": "16MB",
    }  # fmt: skip
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, *options], cwd=folder, stdout=log, stderr=log, **step_down
        )
    url = make_url(f"postgresql+psycopg://understudy@127.0.0.1:{port}/postgres")
    try:
        _wait_for(url, server)
        yield url
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: nobody needs its data any more
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(url: URL, server: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(_dsn(url)).close()
            return
        except psycopg.OperationalError:
            assert server.poll() is None, "the Postgres server did not start"
            assert time.monotonic() < deadline, "the Postgres server did not answer"
            time.sleep(0.05)


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


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose syncs cost nothing, where there is one: for tests of what a sync has no part in."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared, prefix="understudy-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def audit() -> bool:
    """Whether the long versions run (`make audit-ledger`)."""
    return bool(os.environ.get("UNDERSTUDY_AUDIT"))
