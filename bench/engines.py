"""All 45 two-way tables of ten attributes in Postgres and in Spark: our path beside one GROUP BY for each of them.

The naive side groups by the raw columns, which happen to be codes already; the encoded one, as ours always does,
also clamps values and gives missing ones a cell: it is our path without the cover. Every job runs in a fresh
process against a server or session of its own.
CPU seconds are those of the driver and of the engine together, from the first question to the last count; memory
is the peak of the driver's Python and of Spark's JVM. All jobs must arrive at the same counts in every cell.

Run: python -m bench.engines [--rows N] [--spark-rows N] [--only postgres|spark] [--kept FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.postgres import NoServer, server
from bench.tables import KEPT, ROOT
from bench.verdict import Verdict, at_least, below, claim, ended, not_run, shown, verdict
from understudy.declaration.declaration import Counting, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.table.source import open_source
from understudy.table.truth import Truth

ROWS = SPARK_ROWS = 10**7
BAR_ROWS = {"postgres": 10**7, "spark": 10**8}
SEED = 20240301
SIZES = (16, 3, 6, 2, 32, 8, 5, 2, 9, 24)
NAMES = tuple(f"a{i}" for i in range(len(SIZES)))
PAIRS = tuple(itertools.combinations(NAMES, 2))
DOMAIN = Domain(tuple(Bins.integers(name, 0, size - 1) for name, size in zip(NAMES, SIZES, strict=True)))
NAIVE_PART = 9
"""Of Spark's 45 naive GROUP BYs as many are run, and their cost is scaled: each reads two columns of all rows."""

PART = PAIRS[:: len(PAIRS) // NAIVE_PART]

WARM_ROWS = 10**6
BAR, BAR_MIB = 5, 2048
CHUNK = 1 << 19

Tables = dict[tuple[str, ...], NDArray[np.int64]]


def columns(rows: int) -> Iterator[list[NDArray[np.int8]]]:
    """The table, a chunk at a time: two hidden traits of each person bend all attributes."""
    draw = np.random.default_rng(SEED)
    for start in range(0, rows, CHUNK):
        n = min(CHUNK, rows - start)
        traits = draw.beta(1.5, 2.5, (2, n)).astype(np.float32)
        chunk = []
        for i, size in enumerate(SIZES):
            level = 0.55 * traits[i % 2] + 0.2 * traits[(i + 1) % 2] + 0.25 * draw.random(n, np.float32)
            chunk.append(np.minimum((level * size).astype(np.int8), np.int8(size - 1)))
        yield chunk


def parquet(rows: int, folder: Path) -> Path:
    """The table as a file that is made once and kept."""
    path = folder / f"pairs_{rows}.parquet"
    if not path.exists():
        folder.mkdir(exist_ok=True)
        schema = pa.schema([(name, pa.int8()) for name in NAMES])
        with pq.ParquetWriter(path.with_suffix(".part"), schema) as writer:
            for chunk in columns(rows):
                writer.write_table(pa.table(chunk, schema=schema))
        path.with_suffix(".part").rename(path)
    return path


# ---- Postgres


SETTINGS = {
    "shared_buffers": "512MB", "fsync": "off", "wal_level": "minimal", "max_wal_senders": 0, "autovacuum": "off",
}  # fmt: skip


def load(url: str, rows: int) -> None:
    """The table in Postgres, by its binary COPY."""
    fields = [("fields", ">i2")] + [part for n in NAMES for part in ((f"{n} length", ">i4"), (n, ">i2"))]
    with psycopg.connect(url, autocommit=True) as connection:
        with connection.transaction():
            connection.execute(
                f"CREATE TABLE people ({', '.join(f'{name} smallint' for name in NAMES)})".encode()
            )
            with connection.cursor().copy("COPY people FROM STDIN (FORMAT BINARY, FREEZE)") as copy:
                copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
                for chunk in columns(rows):
                    records = np.zeros(len(chunk[0]), fields)
                    records["fields"] = len(NAMES)
                    for name, column in zip(NAMES, chunk, strict=True):
                        records[f"{name} length"], records[name] = 2, column
                    copy.write(records.tobytes())
                copy.write(b"\xff\xff")
        connection.execute("VACUUM ANALYZE people")


def postgres_ours(url: str, count: Counting) -> Tables:
    source = open_source(SourceSpec(url, "people", count=count), base=Path())
    return dict(Truth(source, DOMAIN).counts(PAIRS))


def postgres_naive(url: str) -> Tables:
    with psycopg.connect(url) as connection:
        # Neither side uses the server's parallel workers, and neither compiles.
        connection.execute("SET max_parallel_workers_per_gather = 0; SET jit = off; SET work_mem = '64MB'")
        return {
            pair: dense(pair, connection.execute(f"SELECT {group(pair)}".encode()).fetchall())
            for pair in PAIRS
        }


def group(pair: tuple[str, str]) -> str:
    return f"{pair[0]}, {pair[1]}, count(*) FROM people GROUP BY 1, 2"


def one_by_one(spec: SourceSpec, pairs: Sequence[tuple[str, str]]) -> Tables:
    """Our encoding, but a GROUP BY for each table."""
    with open_source(spec, base=Path()).look() as look:
        return {pair: look.cells(DOMAIN, pair) for pair in pairs}


def dense(pair: tuple[str, str], rows: Any) -> NDArray[np.int64]:
    table = np.zeros(DOMAIN.shape(pair), np.int64)
    first, second, counts = np.array(rows, np.int64).reshape(-1, 3).T
    table[first, second] = counts
    return table


# ---- Spark


def spark_session() -> Any:
    """A small session on loopback."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.master("local[2]")
    settings = {
        "driver.memory": "1g", "ui.enabled": "false", "driver.bindAddress": "127.0.0.1",
        "driver.host": "127.0.0.1", "sql.shuffle.partitions": "4", "ui.showConsoleProgress": "false",
        "log.level": "ERROR",
    }  # fmt: skip
    for key, value in settings.items():
        builder = builder.config(f"spark.{key}", value)
    return builder.getOrCreate()


def spark_ours(table: Path) -> Tables:
    source = open_source(SourceSpec("spark", path=str(table)), base=Path())
    return dict(Truth(source, DOMAIN).counts(PAIRS))


def spark_naive(session: Any, table: Path) -> Tables:
    session.read.parquet(str(table)).createOrReplaceTempView("people")
    answers = {pair: session.sql(f"SELECT {group(pair)}").toArrow() for pair in PART}
    return {
        pair: dense(pair, np.column_stack([c.to_numpy() for c in t.columns])) for pair, t in answers.items()
    }


# ---- measuring


def ticks(pid: int, *, children: bool) -> float:
    """CPU seconds of a process, or of those of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    used = fields[13:15] if children else fields[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


def report(tables: Tables, cpu: float, wall: float, mib: float, engine_mib: float = 0) -> None:
    digests = {"+".join(pair): hashlib.sha256(t.tobytes()).hexdigest()[:16] for pair, t in tables.items()}
    print(json.dumps({"cpu": cpu, "wall": wall, "mib": mib, "engine_mib": engine_mib, "digests": digests}))


def run_postgres(job: str, url: str, server: int) -> None:
    jobs: dict[str, Callable[[], Tables]] = {
        "ours": lambda: postgres_ours(url, Counting.AUTO),
        "ours, inside": lambda: postgres_ours(url, Counting.INSIDE),
        "naive": lambda: postgres_naive(url),
        "naive, encoded": lambda: one_by_one(SourceSpec(url, "people"), PAIRS),
    }
    before, theirs, start = process_time(), ticks(server, children=True), time.monotonic()
    tables = jobs[job]()
    wall = time.monotonic() - start
    time.sleep(0.5)  # until the server has seen its backends off
    report(
        tables, process_time() - before + ticks(server, children=True) - theirs, wall, peak_mib(os.getpid())
    )


def run_spark(job: str, rows: int, folder: Path) -> None:
    session = spark_session()
    jvm = session.sparkContext._gateway.proc.pid
    jobs: dict[str, Callable[[Path], Tables]] = {
        "ours": spark_ours,
        "naive": lambda table: spark_naive(session, table),
        "naive, encoded": lambda table: one_by_one(SourceSpec("spark", path=str(table)), PART),
    }
    jobs[job](
        parquet(min(rows, WARM_ROWS), folder)
    )  # the first questions to a JVM are not those that are timed
    before, theirs, start = process_time(), ticks(jvm, children=False), time.monotonic()
    tables = jobs[job](parquet(rows, folder))
    wall, cpu = time.monotonic() - start, process_time() - before + ticks(jvm, children=False) - theirs
    report(tables, cpu, wall, peak_mib(os.getpid()), peak_mib(jvm))


def in_fresh_process(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.engines", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return json.loads(done.stdout.splitlines()[-1])


def compare(engine: str, rows: int, jobs: dict[str, dict[str, Any]], scale: float) -> list[Verdict]:
    """Print the jobs beside each other."""
    print(f"{engine}: {len(PAIRS)} two-way tables of {rows:,} rows x {len(SIZES)} attributes")
    print(f"{'':34}{'CPU s':>9}{'wall s':>9}{'driver MiB':>12}{'engine MiB':>12}{'x ours':>9}")
    for name, job in jobs.items():
        factor = scale if name.startswith("naive") else 1.0
        job["cpu"], job["wall"] = job["cpu"] * factor, job["wall"] * factor
        label = f"{name}, {len(PART)} of {len(PAIRS)} scaled" if factor > 1 else name
        engine_mib = f"{job['engine_mib']:.0f}" if job["engine_mib"] else "-"
        print(
            f"{label:34}{job['cpu']:9.1f}{job['wall']:9.1f}{job['mib']:12.0f}{engine_mib:>12}"
            f"{job['cpu'] / jobs['ours']['cpu']:9.1f}"
        )
    ours = jobs["ours"]["digests"]
    equal = all(ours[pair] == digest for job in jobs.values() for pair, digest in job["digests"].items())
    ratio = jobs["naive"]["cpu"] / jobs["ours"]["cpu"]
    memory = max(jobs["ours"]["mib"], jobs["ours"]["engine_mib"])
    held = (
        verdict(f"engines, {engine}, beside GROUP BYs", ratio, at_least(BAR, "{:.1f} times less CPU")),
        verdict(f"engines, {engine}, memory", memory, below(BAR_MIB, "{:.0f} MiB")),
    )
    return [
        claim(f"engines, {engine}, all counts equal", holds=equal),
        *(one.of_full_size("rows", rows, BAR_ROWS[engine]) for one in held),
    ]


def compare_postgres(rows: int) -> list[Verdict]:
    try:
        with server(SETTINGS) as running:
            load(running.url, rows)
            place = ("--url", running.url, "--server", str(running.pid))
            names = ("ours", "ours, inside", "naive", "naive, encoded")
            return compare("postgres", rows, {n: in_fresh_process("--job", n, *place) for n in names}, 1)
    except NoServer as missing:
        return [not_run("engines, postgres", str(missing))]


def compare_spark(rows: int, folder: Path) -> list[Verdict]:
    if shutil.which("java") is None:
        return [not_run("engines, spark", "there is no Java")]
    parquet(rows, folder)
    place = ("--spark-rows", str(rows), "--kept", str(folder))
    jobs = {
        name: in_fresh_process("--job", f"spark {name}", *place)
        for name in ("ours", "naive", "naive, encoded")
    }
    return compare("spark", rows, jobs, len(PAIRS) / len(PART))


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--spark-rows", type=int, default=SPARK_ROWS)
    parser.add_argument("--only", choices=["postgres", "spark"])
    parser.add_argument("--kept", type=Path, default=KEPT, help="the folder that Spark's tables are kept in")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--server", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    folder = options.kept.resolve()
    if options.job:
        if options.job.startswith("spark "):
            run_spark(options.job.removeprefix("spark "), options.spark_rows, folder)
        else:
            run_postgres(options.job, options.url, options.server)
        sys.exit(0)  # one job: what it found is what it printed
    found = []
    if options.only != "spark":
        found += shown(*compare_postgres(options.rows))
    if options.only != "postgres":
        found += shown(*compare_spark(options.spark_rows, folder))
    return found


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
