"""Engines to put the same table into: a Postgres server and a Spark session of our own, where installed."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from own_postgres import Server, own_postgres


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server for tables, that no crash will test."""
    with own_postgres(
        max_connections=20, shared_buffers="32MB", fsync="off", max_parallel_workers_per_gather=0
    ) as running:
        yield running


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
        # The tests are short, and nearly all that a statement allocates is garbage when it ends.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms1g -Xmn600m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": folder,
        "spark.local.dir": folder,
        "spark.log.level": "OFF",
    }
    builder = sql.SparkSession.builder.master("local[1]")
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
