"""Engines to put the same table into: a Postgres server and a Spark session of our own, where installed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

POSTGRES_SETTINGS = {
    "listen_addresses": "127.0.0.1", "max_connections": 20, "shared_buffers": "32MB", "fsync": "off",
    "max_parallel_workers_per_gather": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Server:
    """A running Postgres: where it is, and its first process."""

    port: int
    process: subprocess.Popen

    @property
    def url(self) -> str:
        return f"postgresql://understudy@127.0.0.1:{self.port}/postgres"


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


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A Postgres server on loopback with its own data; it refuses to run as root, so root steps down."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = _server_programs()
    if programs is None:
        pytest.skip("no Postgres server is installed (initdb is neither on PATH nor in /usr/lib/postgresql)")
    step_down = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="understudy-table-"))
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
    settings = {**POSTGRES_SETTINGS, "port": port, "unix_socket_directories": folder}
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, *options], cwd=folder, stdout=log, stderr=log, **step_down
        )
    running = Server(port, process)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(running.url).close()
                break
            except psycopg.OperationalError:
                assert process.poll() is None, "the Postgres server did not start"
                assert time.monotonic() < deadline, "the Postgres server did not answer"
                time.sleep(0.05)
        yield running
    finally:
        process.send_signal(signal.SIGQUIT)  # at once: nobody needs its data any more
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A small Spark of our own, on loopback and without its page."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    java = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (java and Path(java, "bin", "java").exists()):
        pytest.skip("Spark needs Java, and there is none on PATH or in JAVA_HOME")
    folder = tempfile.mkdtemp(prefix="understudy-spark-")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",  # the tests are short
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": folder,
        "spark.local.dir": folder,
        "spark.log.level": "OFF",
    }
    builder = sql.SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)
