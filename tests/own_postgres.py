"""A Postgres server of the tests' own, where its program is installed: on loopback, with its own data."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Server:
    """A running Postgres: where it is, and its first process."""

    port: int
    process: subprocess.Popen[bytes]
    superuser: str = "understudy"

    @property
    def url(self) -> str:
        return self.url_of(self.superuser, "postgres")

    def url_of(self, user: str, database: str) -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"


@contextmanager
def own_postgres(superuser: str = "understudy", **settings: Any) -> Iterator[Server]:
    """A server that ends with the block, with these settings; a test that wants one skips where there is none."""
    programs = _server_programs()
    if programs is None:
        pytest.skip("no Postgres server is installed (initdb is neither on PATH nor in /usr/lib/postgresql)")
    # the server refuses to run as root, so root steps down
    step_down: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="understudy-postgres-"))
    if step_down:
        shutil.chown(folder, "postgres", "postgres")
    data, port = folder / "data", _free_port()
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=True,
        capture_output=True,
        cwd=folder,
        **step_down,
    )
    placed = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, **settings}
    options = [part for key, value in placed.items() for part in ("-c", f"{key}={value}")]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, *options], cwd=folder, stdout=log, stderr=log, **step_down
        )
    running = Server(port, process, superuser)
    try:
        _wait_for(running)
        yield running
    finally:
        process.send_signal(signal.SIGQUIT)  # at once: nobody needs its data any more
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _server_programs() -> Path | None:
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return places[-1].parent if places else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(server: Server) -> None:
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(server.url).close()
            return
        except psycopg.OperationalError:
            assert server.process.poll() is None, "the Postgres server did not start"
            assert time.monotonic() < deadline, "the Postgres server did not answer"
            time.sleep(0.05)
