"""A small project in a folder, for tests of the program: a table of ages and sexes, and its declaration."""

from __future__ import annotations

from pathlib import Path

SEX = "{type: category, values: [F, M]}"


def declaration(*, sex: str = SEX, budget: str = "{epsilon: 1}", more: str = "") -> str:
    """The text of an understudy.yml for `people.csv`; `more` are further lines of it."""
    return f"""\
understudy: 1
name: people
source: people.csv
budget: {budget}
{more}attributes:
  age: {{type: integer, edges: [0, 18, 65, 120]}}
  sex: {sex}
"""


def write_project(folder: Path, *, rows: int = 1000, **declared: str) -> Path:
    """Ages from 0 to 99, one after the other, every second one F."""
    people = [f"{i % 100},{'FM'[i % 2]}" for i in range(rows)]
    (folder / "people.csv").write_text("age,sex\n" + "\n".join(people) + "\n")
    (folder / "understudy.yml").write_text(declaration(**declared))
    return folder
