"""All 455 three-way tables of 10,000,000 rows: one pass over a clique cover beside what DuckDB offers.

Every job runs in a fresh process on one thread. CPU seconds are user + system time from the end of the imports
until the counts are there; peak memory is that of the whole process. All jobs must arrive at the same counts in
every cell. The table is generated once and kept.

Run: python -m bench.counting [--rows N] [--kept FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.clock import clocked, peak_mib
from bench.tables import KEPT, ROOT
from bench.verdict import Verdict, at_least, at_most, claim, ended, shown, verdict
from understudy.declaration.declaration import SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.table.counts import MarginalCounter
from understudy.table.source import open_source
from understudy.table.truth import Truth

ROWS = 10_000_000
SEED = 20240229
SIZES = (16, 3, 6, 2, 32, 8, 5, 2, 9, 24, 4, 5, 2, 12, 7)
NAMES = tuple(f"a{i:02d}" for i in range(len(SIZES)))
TRIPLES = tuple(itertools.combinations(range(len(SIZES)), 3))
BATCH_ROWS = 1 << 17
REPETITIONS = 3

SETS_A_STATEMENT = 5
"""What DuckDB 1.4 does fastest with grouping sets, of what was tried: 455, 65, 35, 13 and 5 sets a statement, from
the file and from a table in memory, on one thread and two. Fewer sets are cheaper (455: 77 CPU s, 65: 58, 13: 51,
5: 48, on a busy machine), a table in memory is a little cheaper than the file, threads make no difference to CPU
seconds. DuckDB 2.0, at 455 sets a statement and on a quieter machine, took 47 CPU s from the file, and 29 from
memory after loading."""

PERFECT_HASH_BITS = 20
"""Up to how many bits of keys DuckDB counts into an array; beyond, it hashes. The default of 12 is too few for
these triples: separate GROUP BYs then take half as long again."""

BAR = 8
"""Times less CPU than grouping sets that one pass over the cover must take."""

BAR_MIB = 2048
"""Memory that it must stay within."""

Tables = dict[tuple[int, ...], NDArray[np.int64]]


def table_path(rows: int, folder: Path = KEPT) -> Path:
    return folder / f"census_{rows}.parquet"


def generate(rows: int, folder: Path = KEPT) -> None:
    """Two hidden traits of each person bend all attributes, so that every pair is correlated."""
    folder.mkdir(exist_ok=True)
    draw = np.random.default_rng(SEED)
    schema = pa.schema([(name, pa.int8()) for name in NAMES])
    unfinished = table_path(rows, folder).with_suffix(".part")
    with pq.ParquetWriter(unfinished, schema) as writer:
        for start in range(0, rows, 1 << 20):
            n = min(1 << 20, rows - start)
            traits = draw.beta(1.5, 2.5, (2, n))
            columns = []
            for i, size in enumerate(SIZES):
                level = 0.55 * traits[i % 2] + 0.2 * traits[(i + 1) % 2] + 0.25 * draw.random(n)
                columns.append(np.minimum((level * size).astype(np.int8), size - 1))
            writer.write_table(pa.table(columns, schema=schema))
    unfinished.rename(table_path(rows, folder))


def connection() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("SET threads = 1; SET memory_limit = '8GB'; SET preserve_insertion_order = false")
    return con


def raw_by_pyarrow(path: Path) -> Iterator[pa.RecordBatch]:
    return pq.ParquetFile(path).iter_batches(batch_size=BATCH_ROWS, use_threads=False)


def raw_by_duckdb(path: Path) -> Iterator[pa.RecordBatch]:
    return iter(connection().execute(f"FROM '{path}'").fetch_record_batch(BATCH_ROWS))


def encoded_by_duckdb(path: Path) -> Iterator[pa.RecordBatch]:
    codes = ", ".join(
        f"CAST(least(greatest({name}, 0), {size - 1}) - 0 AS UTINYINT) AS {name}"
        for name, size in zip(NAMES, SIZES, strict=True)
    )
    return iter(connection().execute(f"SELECT {codes} FROM '{path}'").fetch_record_batch(BATCH_ROWS))


def encoded_by_ibis(path: Path) -> Iterator[pa.RecordBatch]:
    table = ibis.duckdb.connect(threads=1).read_parquet(path)
    clamped = {
        name: ibis.greatest(ibis.least(table[name].fill_null(0), size - 1), 0).cast("uint8")
        for name, size in zip(NAMES, SIZES, strict=True)
    }
    return iter(table.select(**clamped).to_pyarrow_batches(chunk_size=BATCH_ROWS))


def read(batches: Iterator[pa.RecordBatch]) -> None:
    for _ in batches:
        pass


def over_the_cover(batches: Iterator[pa.RecordBatch]) -> Tables:
    counter = MarginalCounter(SIZES, TRIPLES)
    for batch in batches:
        counter.add([column.to_numpy() for column in batch.columns])
    return counter.tables()


def by_the_product(path: Path) -> Tables:
    domain = Domain(tuple(Bins.integers(n, 0, size - 1) for n, size in zip(NAMES, SIZES, strict=True)))
    truth = Truth(open_source(SourceSpec(path.name), base=path.parent), domain)
    counts = truth.counts(itertools.combinations(NAMES, 3))
    return {tuple(map(NAMES.index, clique)): table for clique, table in counts.items()}


def from_memory(path: Path) -> duckdb.DuckDBPyConnection:
    con = connection()
    con.execute(f"CREATE TEMP TABLE census AS FROM '{path}'")
    return con


def grouping_sets(con: duckdb.DuckDBPyConnection, source: str, *, sets: int) -> list[pa.Table]:
    """`sets` grouping sets in each statement."""
    answers = []
    for start in range(0, len(TRIPLES), sets):
        keys = [", ".join(NAMES[a] for a in triple) for triple in TRIPLES[start : start + sets]]
        names = ", ".join(sorted({name for key in keys for name in key.split(", ")}))
        grouped = f"GROUP BY GROUPING SETS (({'), ('.join(keys)}))"
        answers.append(
            con.execute(f"SELECT {names}, count(*) AS n FROM {source} {grouped}").fetch_arrow_table()
        )
    return answers


def group_bys(con: duckdb.DuckDBPyConnection) -> list[pa.Table]:
    con.execute(f"SET perfect_ht_threshold = {PERFECT_HASH_BITS}")
    return grouping_sets(con, "census", sets=1)


def dense(answers: list[pa.Table]) -> Tables:
    """DuckDB's rows as tables; a row belongs to the set of its columns that are not null."""
    tables = {triple: np.zeros([SIZES[a] for a in triple], np.int64) for triple in TRIPLES}
    for answer in answers:
        counts = answer["n"].to_numpy()
        codes = {
            NAMES.index(name): answer[name].fill_null(-1).to_numpy() for name in answer.column_names[:-1]
        }
        for triple in TRIPLES:
            if set(triple) <= set(codes):
                rows = np.logical_and.reduce([codes[a] >= 0 for a in triple])
                tables[triple][tuple(codes[a][rows] for a in triple)] += counts[rows]
    return tables


OURS = "understudy: Truth.counts, as the product runs it"
PEER = "DuckDB: GROUPING SETS, fastest way found"
JOBS: dict[str, Callable[[Path], object]] = {
    "read codes: pyarrow, raw": lambda path: read(raw_by_pyarrow(path)),
    "read codes: DuckDB, raw": lambda path: read(raw_by_duckdb(path)),
    "read codes: DuckDB, clamped and cast": lambda path: read(encoded_by_duckdb(path)),
    "read codes: Ibis on DuckDB, the same": lambda path: read(encoded_by_ibis(path)),
    "counter alone: DuckDB encodes, one pass over the cover": lambda path: over_the_cover(
        encoded_by_duckdb(path)
    ),
    OURS: by_the_product,
    "DuckDB: separate GROUP BYs, perfect hashing": lambda path: group_bys(from_memory(path)),
    PEER: lambda path: grouping_sets(from_memory(path), "census", sets=SETS_A_STATEMENT),
    "DuckDB: GROUPING SETS, one statement on the file": lambda path: grouping_sets(
        connection(), f"'{path}'", sets=len(TRIPLES)
    ),
}


def run_job(name: str, table: Path) -> None:
    """Run a job in this process and print what it took, with a digest of all counts."""
    answer, seconds = clocked(lambda: JOBS[name](table))
    peak = peak_mib()
    digest = ""
    if answer is not None:
        tables = answer if isinstance(answer, dict) else dense(answer)  # pyright: ignore[reportArgumentType]
        digest = hashlib.sha256(b"".join(tables[triple].tobytes() for triple in TRIPLES)).hexdigest()
    print(json.dumps({"seconds": seconds, "mib": peak, "digest": digest}))


def in_fresh_process(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "bench.counting", *arguments],
        check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ).stdout  # fmt: skip


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--kept", type=Path, default=KEPT, help="the folder that the table is kept in")
    parser.add_argument("--job", choices=[*JOBS, "generate"], help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    folder = options.kept.resolve()
    if options.job == "generate":
        generate(options.rows, folder)
    elif options.job:
        run_job(options.job, table_path(options.rows, folder))
    else:
        return compare(options.rows, ("--rows", str(options.rows), "--kept", str(folder)))
    sys.exit(0)  # one job: what it found is what it printed


def compare(rows: int, table: tuple[str, ...]) -> list[Verdict]:
    if not table_path(rows, Path(table[-1])).exists():
        in_fresh_process("--job", "generate", *table)
    print(f"{len(TRIPLES)} three-way tables of {rows:,} x {len(SIZES)} codes; DuckDB {duckdb.__version__}")
    print(f"{'':54}{'CPU s':>9}{'MiB':>8}{'x ours':>9}")
    runs: dict[str, list[dict]] = {name: [] for name in JOBS}
    for name in JOBS:
        for _ in range(REPETITIONS if not name.startswith("DuckDB") else 1):
            runs[name].append(json.loads(in_fresh_process("--job", name, *table)))
    seconds = {name: median(run["seconds"] for run in of_job) for name, of_job in runs.items()}
    mib = {name: max(run["mib"] for run in of_job) for name, of_job in runs.items()}
    for name in JOBS:
        print(f"{name:54}{seconds[name]:9.2f}{mib[name]:8.0f}{seconds[name] / seconds[OURS]:9.1f}")
    digests = {run["digest"] for of_job in runs.values() for run in of_job} - {""}
    ratio = seconds[PEER] / seconds[OURS]
    return shown(
        claim("counting, all counts equal", holds=len(digests) == 1),
        verdict("counting, beside GROUPING SETS", ratio, at_least(BAR, "{:.1f} times less CPU")).of_full_size(
            "rows", rows, ROWS
        ),
        verdict("counting, memory", mib[OURS], at_most(BAR_MIB, "{:.0f} MiB")).of_full_size(
            "rows", rows, ROWS
        ),
    )


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
