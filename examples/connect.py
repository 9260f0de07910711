"""A served table from an analyst's side: connect, ask, and plot with error bars; no row is ever at hand.

Run: python examples/connect.py [FOLDER]     (a new folder; without one, a temporary folder is used)
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as parquet

import understudy as us
from understudy.errors import QueryError
from understudy_demo import town

DECLARATION = f"""\
understudy: 1
name: town
source: town.parquet
budget: {{epsilon: 2, delta: 1e-9}}
neighbours: replace
attributes:
  age: {{type: integer, edges: [0, 18, 30, 45, 65, 105]}}
  smoker: {{type: boolean}}
  district: {{type: category, values: [{", ".join(town.DISTRICTS)}]}}
"""
PROGRAM = [sys.executable, "-m", "understudy"]


def analyse(connection: us.Connection, folder: Path) -> None:
    """What an analyst does, with a token and an address."""
    print(f"tables: {', '.join(connection.tables)}")
    session = connection.session()
    print(f"promise: every answer within {session.width:,} people")

    # A price is told before anything is paid, as a part of the whole budget.
    question = "count smoker = true by district"
    quote = connection.quote(question)
    print(
        f"price: {'nothing' if quote.is_free else 'a part of the budget'}, within {quote.error:,.0f} people"
    )

    # The answer is the library's own: a table in a notebook, a frame, a chart.
    smokers = connection.ask(question)
    print(f"asked: {len(smokers.to_frame())} cells, {smokers.source}")
    (folder / "smokers.json").write_text(json.dumps(smokers.plot().to_dict()), encoding="utf-8")
    print("plotted: smokers.json, bars with a whisker over each error")

    # What anybody bought is free for everybody, and so is what follows from it.
    again = connection.ask(question)
    print(f"asked again: {again.source}, price {again.cost.amount:g}")
    table = connection.sql("SELECT smoker, count(*) AS people FROM town GROUP BY smoker")
    print(f"SQL: {len(table.rows)} rows, columns {', '.join(column.name for column in table.columns)}")

    # Errors are the library's own too, and say what to write instead.
    try:
        connection.ask("count smokers = true")
    except QueryError as refused:
        print(f"refused: {refused}")
    print(f"history: {sum(1 for _ in connection.history())} questions")
    print("within the budget" if connection.budget().left.share >= 0 else "overspent")


def main(folder: Path) -> None:
    """What a custodian does, on the machine that has the table: a declaration, a token, and the server."""
    parquet.write_table(town.people(20_000, seed=1), folder / "town.parquet")
    (folder / "understudy.yml").write_text(DECLARATION, encoding="utf-8")
    made = subprocess.run(
        [*PROGRAM, "token", "new", "ada", "--server", str(folder), "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    token = json.loads(made.stdout)["token"]
    with subprocess.Popen(
        [*PROGRAM, "serve", "--project", str(folder), "--port", "8760"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            address = next(filter(None, (re.search(r"http://[\d.:]+", line) for line in server.stdout)))[0]
            with us.connect(address, token) as connection:
                analyse(connection, folder)
        finally:
            server.terminate()


if __name__ == "__main__":
    if sys.argv[1:]:
        Path(sys.argv[1]).mkdir()
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
