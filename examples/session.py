"""An analyst's session: questions that depend on earlier answers, under one promise for all of them.

Run: python examples/session.py
"""

from __future__ import annotations

import understudy as us
from understudy.declaration.file import parse
from understudy_demo import town

DECLARATION = f"""\
understudy: 1
name: town
source: town.parquet
budget: {{epsilon: 1, delta: 1e-9}}
neighbours: replace
attributes:
  age: {{type: integer, edges: [0, 18, 30, 45, 65, 105]}}
  smoker: {{type: boolean}}
  district: {{type: category, values: [{", ".join(town.DISTRICTS)}]}}
"""


def main() -> None:
    # A frame instead of a file: the budget lives as long as the project does.
    project = us.Project.frame(town.people(20_000, seed=2), parse(DECLARATION))

    # With probability 0.95, every answer of the session is within 2% of the rows, however they are chosen.
    session = us.session(project, alpha=0.02, beta=0.05, queries=200)
    rows = project.curator.rows  # public under `neighbours: replace`

    # Look at the ages, then drill down where most smokers are: the second question depends on the first answer.
    by_age = session.ask("count smoker = true by age")
    print(f"by age: within {by_age.error.max() / rows:.1%} of all rows, {by_age.source}")
    (most,), _, _ = max(by_age.rows(), key=lambda row: row[1])
    print(f"most smokers are of age {most}")
    low = most.split("-")[0]
    drilled = session.ask(f"count smoker = true and age >= {low} by district")
    print(f"by district: within {drilled.error.max() / rows:.1%} of all rows, {drilled.source}")

    # What was answered, or follows from it, is free.
    again = session.ask("count smoker = true by age")
    print(f"asked again: {again.source}, price {again.cost.amount:g}")
    print(f"everybody: {session.ask('count').source}")

    # SQL is read on the declared cells, never on rows.
    table = session.ask("SELECT smoker, count(*) AS people FROM town GROUP BY smoker")
    print(f"SQL: {len(table.rows)} rows, columns {', '.join(column.name for column in table.columns)}")

    spent = project.ledger.spent.amount / project.ledger.budget.cap.amount
    print("within the budget" if spent <= 1 else "overspent")


if __name__ == "__main__":
    main()
