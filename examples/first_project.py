"""A custodian's first project: from a CSV file to a table that answers for a price.

Run: python examples/first_project.py [FOLDER]     (a new folder; without one, a temporary folder is used)
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow.csv as csv

import understudy as us
from understudy.declaration.outline import unreviewed
from understudy.errors import InsufficientBudgetError
from understudy.table.draft_file import write
from understudy_demo import town

# What is publicly known about the columns: census classes, not what the table happens to hold.
ATTRIBUTES = """\
attributes:
  age: {type: integer, edges: [0, 18, 30, 45, 65, 105]}
  sex: {type: category, values: [F, M]}
  smoker: {type: boolean}
"""


def main(folder: Path) -> None:
    # The sensitive table. Here it is an invented town; yours is a file, a database or a cluster (docs/engines.md).
    people = town.people(5_000, seed=1).select(["age", "sex", "smoker"])
    csv.write_csv(people, folder / "people.csv")

    # `understudy init people.csv` drafts a declaration, and marks every line that it read off the data.
    drafted = write(folder / "people.csv", folder / "understudy.yml").text
    print(f"drafted: {len(unreviewed(drafted))} lines must be reviewed")

    # Review: what was read off the data is replaced by what is publicly known.
    settings = drafted[: drafted.index("attributes:")]
    (folder / "understudy.yml").write_text(settings + ATTRIBUTES, encoding="utf-8")

    # The project opens the table and its ledger, which keeps the budget for all processes and for ever.
    project = us.open(folder / "understudy.yml")
    cap = project.ledger.budget.cap
    print(f"budget: {cap.currency} {cap.amount:.4g}, which keeps epsilon 1 at delta 1e-9")

    # A quote reads no row and costs nothing.
    question = "count age < 30 by smoker"
    quote = project.quote(question, epsilon=0.1)
    print(f"quote: each count within {quote.error:g} people, for {quote.share:.1%} of the budget")

    # An answer: charged first, then looked at, then noise.
    answer = project.ask(question, epsilon=0.1)
    for (smoker,), value, error in answer.rows():
        print(f"  smoker {smoker}: {value:.0f} ± {error:.0f}")
    print(f"left: {project.ledger.remaining.amount / cap.amount:.0%} of the budget")

    # What does not fit is refused, and costs nothing.
    try:
        project.ask("count by sex", epsilon=5)
    except InsufficientBudgetError as refused:
        print(f"refused: {refused}")


if __name__ == "__main__":
    if sys.argv[1:]:
        Path(sys.argv[1]).mkdir()
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
