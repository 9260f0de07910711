"""A Postgres server of our own on loopback, where its programs are installed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

PATIENCE = 60.0
"""Seconds that a server may take to start, and to end."""


class NoServer(Exception):
    """There is no Postgres here."""


@dataclass(frozen=True)
class Server:
    """A running server: its URL and its first process."""

    url: str
    pid: int


def programs() -> Path:
    """The folder of the server's programs: those on the path, else of the newest version installed."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    installed = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(installed, key=lambda program: _numbers(program.parts[-3]), default=None)
    if newest is None:
        raise NoServer(
            "no Postgres server is installed (initdb is neither on PATH nor in /usr/lib/postgresql)"
        )
    return newest.parent


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


@contextmanager
def server(settings: Mapping[str, Any], *, place: Path | None = None) -> Iterator[Server]:
    """A server that ends with the block, with its data in a folder of its own in `place`."""
    found, port = programs(), _free_port()
    # the server refuses to run as root, so root steps down
    step_down: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="understudy-bench-", dir=place))
    if step_down:
        shutil.chown(folder, "postgres", "postgres")
    placed = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, **settings}
    options = [part for key, value in placed.items() for part in ("-c", f"{key}={value}")]
    setup = ["-D", folder / "data", "-U", "understudy", "-A", "trust", "-E", "UTF8", "--no-sync"]
    try:
        subprocess.run([found / "initdb", *setup], check=True, capture_output=True, cwd=folder, **step_down)
        with (folder / "log").open("wb") as log:
            command = [found / "postgres", "-D", folder / "data", *options]
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **step_down)
        url = f"postgresql://understudy@127.0.0.1:{port}/postgres"
        try:
            _wait_for(url, process)
            yield Server(url, process.pid)
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: nobody needs its data any more
            process.wait(PATIENCE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(url: str, process: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
