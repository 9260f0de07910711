"""Write the invented town as a table: `python -m understudy_demo people.csv --people 20000`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

from understudy_demo import town


def main() -> None:
    """Read the command line and write one file: CSV or Parquet, by the ending of its name."""
    parser = argparse.ArgumentParser(prog="python -m understudy_demo", description=__doc__)
    parser.add_argument("file", type=Path, help="a .csv or .parquet file that does not exist yet")
    parser.add_argument("--people", type=int, default=100_000, help="rows (100,000)")
    parser.add_argument("--seed", type=int, default=7, help="another town for another number (7)")
    parser.add_argument("--columns", nargs="*", default=[], help="these columns only")
    given = parser.parse_args()
    if given.file.exists():
        parser.error(f"{given.file} exists already: name another file")
    if given.file.suffix not in (".csv", ".parquet"):
        parser.error(f"{given.file}: the name must end in .csv or .parquet")
    people = town.people(given.people, seed=given.seed)
    for name in given.columns:
        if name not in people.column_names:
            parser.error(f"the town has no column {name!r}; it has {', '.join(people.column_names)}")
    table = people.select(given.columns or people.column_names)
    if given.file.suffix == ".csv":
        pyarrow.csv.write_csv(table, given.file)
    else:
        pyarrow.parquet.write_table(table, given.file)


if __name__ == "__main__":
    main()
