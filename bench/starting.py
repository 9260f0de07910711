"""What `understudy start` takes of a large file: 300 columns of a million rows, as CSV and as Parquet.

Beside it stands what other readers take for the same text: pyarrow's and DuckDB's, told to count rows, and a
program that reads the bytes and nothing more. The file is made anew in a folder for temporary files: 2 GB, or 4
with `--quoted`, where the text of a second one is in quotation marks and lines end with CR LF.

Run: python -m bench.starting [--rows 1000000] [--columns 300] [--quoted] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import duckdb

from bench.verdict import Verdict, at_most, ended, shown, verdict

SECONDS, MEGABYTES = 20.0, 1000.0

KINDS = (
    "round(500 * (random() - 0.5) + {i}, 4)",
    "round(exp(3 + random() * 5), 2)",
    "(100 / (random() + 0.001))::INT",
    "(1000 * random())::INT",
    "CASE WHEN random() < 0.6 THEN 0 ELSE round(1000 * random(), 2) END",
    "(60 * random() * random())::INT",
    "1930 + (80 * random())::INT",
    "DATE '2000-01-01' + (8000 * random())::INT",
    "['Köln', 'New York', 'Ulm', 'Bonn', 'Kiel', 'Berlin'][1 + (5.99 * random() * random())::INT]",
    "round(10000 + random(), 4)",
)
"""How the columns are made, in turn."""

START = """
import sys
from pathlib import Path
from understudy.starting.start import start
found = start(Path(sys.argv[1]), Path(sys.argv[2]) / "understudy.yml", epsilon=1, delta=1e-9, environ={})
assert found.kept
"""
READERS = {
    "pyarrow, all columns as text": """
import sys
import pyarrow as pa, pyarrow.csv as csv
pa.set_cpu_count(1)
names = open(sys.argv[1], encoding="utf-8").readline().strip().replace('"', "").split(",")
how = csv.ConvertOptions(column_types={name: pa.string() for name in names})
for batch in csv.open_csv(sys.argv[1], convert_options=how):
    pass
""",
    "DuckDB, count(*)": """
import sys
import duckdb
duckdb.execute("SET threads = 1")
duckdb.execute("SET memory_limit = '400MB'")
rows = f"read_csv('{sys.argv[1]}', all_varchar = true, buffer_size = {32 << 20})"
duckdb.execute(f"SELECT count(*) FROM {rows}").fetchall()
""",
    "the bytes alone": """
import sys
held = bytearray(1 << 20)
with open(sys.argv[1], "rb", buffering=0) as file:
    while file.readinto(held):
        pass
""",
}


def make(folder: Path, rows: int, columns: int, *, quoted: bool) -> None:
    """The files: a CSV, the same rows in a Parquet file, and, if wanted, a CSV that is written otherwise."""
    listed = ", ".join(f"{KINDS[i % len(KINDS)].format(i=i)} AS column_{i}" for i in range(columns))
    engine = duckdb.connect()
    engine.execute("SET memory_limit = '2GB'")
    engine.execute("SET preserve_insertion_order = false")
    parquet, text = folder / "wide.parquet", folder / "wide.csv"
    engine.execute(f"COPY (SELECT {listed} FROM range({rows})) TO '{parquet}' (ROW_GROUP_SIZE 20000)")
    engine.execute(f"COPY (FROM '{parquet}') TO '{text}' (HEADER)")
    if not quoted:
        return
    marked, ended_so = folder / "lines.csv", folder / "quoted.csv"
    engine.execute(f"COPY (FROM '{parquet}') TO '{marked}' (HEADER, FORCE_QUOTE *)")
    with marked.open("rb") as lines, ended_so.open("wb") as file:
        file.writelines(line[:-1] + b"\r\n" for line in lines)
    marked.unlink()


def taken(code: str, *arguments: Path) -> tuple[float, float]:
    """CPU seconds and the most megabytes of a program, with all that it starts."""
    script = arguments[0].with_name("measured.py")  # a program that is given as text gets a progress bar
    script.write_text(code)
    child = subprocess.Popen([sys.executable, str(script), *map(str, arguments)])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"a measured program failed with status {child.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(prog="python -m bench.starting", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--quoted", action="store_true")
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made")
    options = parser.parse_args(arguments)
    found: list[Verdict] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        made = get_context(
            "spawn"
        ).Process(  # what it holds would count as held by every child of this process
            target=make, args=(folder, options.rows, options.columns), kwargs={"quoted": options.quoted}
        )
        made.start()
        made.join()
        if made.exitcode:
            raise SystemExit("the files could not be made")
        print(f"{options.columns} columns x {options.rows:,} rows")
        print(f"{'':44}{'GB':>6}{'CPU s':>8}{'x bytes':>9}{'MB held':>9}")
        for path in sorted(path for path in folder.iterdir() if path.suffix in (".csv", ".parquet")):
            size = path.stat().st_size / 1e9
            bare, _ = taken(READERS["the bytes alone"], path)
            at = folder / f"{path.name} started"
            at.mkdir()
            for what, code in {
                "understudy start": START,
                **(READERS if path.suffix == ".csv" else {}),
            }.items():
                seconds, held = taken(code, path, *([at] if code == START else []))
                ratio = seconds / bare
                print(f"{path.name:14}{what:30}{size:6.2f}{seconds:8.1f}{ratio:9.0f}{held:9.0f}", flush=True)
                if code == START and path.stem == "wide":
                    found.append(verdict(f"start of {path.name}", seconds, at_most(SECONDS, "{:.1f} CPU s")))
                if code == START:
                    found.append(verdict(f"memory of {path.name}", held, at_most(MEGABYTES, "{:.0f} MB")))
    full = 300 * 1_000_000
    return shown(*(one.of_full_size("values", options.rows * options.columns, full) for one in found))


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
