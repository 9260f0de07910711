"""CPU milliseconds to compile SQL, against the time sqlglot alone needs to parse the same text.

Bars: 5 ms for a statement over three attributes, 1 ms for one whose words or question were seen before.

Run: python -m bench.sql [--repeats 7]
"""

# ruff: noqa: E501 (a statement stands on one line)
from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import sqlglot

from bench.clock import median, repeated
from bench.verdict import Verdict, below, ended, shown, verdict
from understudy.declaration.file import parse
from understudy.sql import SqlCompiler, compile_sql
from understudy_demo.town import declaration

STATEMENTS = {
    "three attributes, one count": "SELECT count(*) FROM town WHERE age < 30 AND sex = 'F' AND district = 'Inkwharf'",
    "three attributes, grouped": "SELECT district, count(*) AS n, avg(income) FROM town WHERE age >= 20 GROUP BY district "
    "HAVING n > 100 ORDER BY n DESC LIMIT 5",
    "case and arithmetic": "SELECT CASE WHEN age < 20 THEN 'young' ELSE 'old' END AS years, "
    "100.0 * count(*) FILTER (WHERE smoker) / count(*) FROM town WHERE income >= 20000 OR tenure = 'owned' GROUP BY years",
}
REPEATS, TIMES = 7, 30
BAR_NEW, BAR_SEEN = 5.0, 1.0


def main(arguments: Sequence[str] = ()) -> list[Verdict]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=REPEATS)
    repeats = parser.parse_args(arguments).repeats

    def cpu_ms(job: Callable[[], object]) -> float:
        return median(repeated(job, TIMES), repeats) / TIMES * 1000

    domain = parse(declaration("town.parquet")).domain
    compiler = SqlCompiler(domain, tables=["town"], rows_public=True)
    print(
        f"{'':30}{'parse':>8}{'compile':>9}{'x':>6}{'respaced':>10}{'x':>6}{'same':>8}   CPU ms; x: over sqlglot's parse"
    )
    worst_new = worst_seen = 0.0
    for name, text in STATEMENTS.items():
        compiler.compile(text)
        spaced = iter(range(10**9))
        parsed = cpu_ms(lambda text=text: sqlglot.parse_one(text, read="duckdb"))
        fresh = cpu_ms(lambda text=text: compile_sql(text, domain, tables=["town"], rows_public=True))
        words = cpu_ms(lambda text=text, spaced=spaced: compiler.compile(text + " " * (next(spaced) % 4000)))
        same = cpu_ms(lambda text=text: compiler.compile(text))
        print(
            f"{name:30}{parsed:8.2f}{fresh:9.2f}{fresh / parsed:6.1f}{words:10.3f}{words / parsed:6.2f}{same:8.4f}"
        )
        worst_new, worst_seen = max(worst_new, fresh), max(worst_seen, words, same)
    return shown(
        verdict("sql, new statements", worst_new, below(BAR_NEW, "{:.2f} CPU ms")),
        verdict("sql, seen statements", worst_seen, below(BAR_SEEN, "{:.2f} CPU ms")),
    )


if __name__ == "__main__":
    sys.exit(ended(main(sys.argv[1:])))
