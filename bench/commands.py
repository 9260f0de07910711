"""CPU seconds (user and system) of whole commands over a CSV file of 200,000 rows and 30 columns, best of five.

`init` drafts the declaration, which asks for a coded copy; the first `ask` makes that copy, later ones use it. The
same for an attribute of 11,000 bins: equal ones, and ones that are anyhow apart.

Run: python -m bench.commands [--rows 200000] [--repeats 5]
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.clock import of_child
from bench.verdict import Verdict, at_most, ended, shown, verdict

ROWS, REPEATS, BINS = 200_000, 5, 11_000
ASK = ("ask", "--yes", "--rho", "1e-6")
BARS = {
    "init": 4.0,
    "ask --help": 0.5,
    "ask, first": 4.0,
    "ask, later": 1.3,
    "11,000 equal bins, first": 3.0,
    "11,000 equal bins, later": 1.5,
    "11,000 unequal bins, first": 3.5,
    "11,000 unequal bins, later": 1.5,
}
"""CPU seconds of each command on one core of a server of 2020."""


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = _measured(Path(folder), given.rows, given.repeats)
    return [one.of_full_size("rows", given.rows, ROWS) for one in found]


def _measured(folder: Path, rows: int, repeats: int) -> list[Verdict]:
    _write_table(folder / "people.csv", rows)

    def least(*command: str, before: Callable[[], object] = lambda: None) -> float:
        """What a command needs, without what the machine adds."""
        times = []
        for _ in range(repeats):
            before()
            times.append(of_child([sys.executable, "-m", "understudy", *command], cwd=folder, silent=True))
        return min(times)

    found: list[Verdict] = []

    def judge(name: str, seconds: float) -> None:
        found.extend(shown(verdict(f"commands, {name}", seconds, at_most(BARS[name], "{:.2f} CPU s"))))

    judge("init", least("init", "people.csv", "--overwrite"))
    judge("ask --help", least("ask", "--help"))
    projects = {"ask": ("understudy.yml", "count by c3")}
    for kind, edges in (("equal", _equal()), ("unequal", _unequal())):
        _declare(folder / f"{kind}.yml", edges)
        projects[f"{BINS:,} {kind} bins"] = (f"{kind}.yml", "count by pay0")
    for name, (project, question) in projects.items():
        command = (*ASK, question, "-p", project)
        copy = (folder / project).with_suffix(".codes")
        judge(f"{name}, first", least(*command, before=lambda copy=copy: copy.unlink(missing_ok=True)))
        judge(f"{name}, later", least(*command))
    return found


def _write_table(path: Path, rows: int) -> None:
    """Columns as people have them: codes, whole numbers, measures, skewed amounts, days, words, an identifier."""
    draw = np.random.default_rng(0)
    days = np.datetime64("2015-01-01") + draw.integers(0, 3000, (2, rows))
    columns = {
        "id": np.arange(rows),
        **{f"c{i}": draw.integers(0, 3 + 3 * i, rows).astype("<U2") for i in range(8)},
        **{f"n{i}": draw.integers(0, 50 * (i + 1), rows) for i in range(6)},
        **{f"x{i}": draw.normal(50, 10, rows).round(3) for i in range(5)},
        **{f"pay{i}": draw.lognormal(8, 1.5, rows).round(2) for i in range(4)},
        **{f"day{i}": days[i] for i in range(2)},
        "active": np.where(draw.random(rows) < 0.5, "true", "false"),
        "zip": np.char.zfill(draw.integers(0, 900, rows).astype(str), 5),
        "price": np.char.add("€", draw.lognormal(6, 1, rows).round(2).astype(str)),
        "share": np.char.add(draw.uniform(0, 30, rows).round(1).astype(str), "%"),
    }
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _equal() -> str:
    return f"bounds: [0, {10 * BINS}], bins: {BINS}"


def _unequal() -> str:
    edges = sorted(
        {round(float(edge), 2) for edge in np.random.default_rng(1).uniform(0, 10 * BINS, BINS + 1)}
    )
    return f"edges: [{', '.join(map(str, edges))}]"


def _declare(path: Path, edges: str) -> None:
    path.write_text(
        f"understudy: 1\nname: {path.stem}\nsource: people.csv\nbudget: {{epsilon: 1, delta: 1e-9}}\n"
        f"coded_copy: true\nattributes:\n  pay0: {{type: real, {edges}}}\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
