"""A table of people with numbers in units of their own, for questions whose `error` is in that unit."""

from __future__ import annotations

from collections.abc import Iterable

from understudy.declaration.declaration import Declaration
from understudy.declaration.file import parse

ROWS = 20_000

ATTRIBUTES = {
    "age": "{type: integer, resolution: 1, edges: [0, 20, 40, 60, 80, 100]}",
    "income": "{type: real, resolution: 1, edges: [0, 10000, 20000, 50000, 100000], null: true}",
    "kids": "{type: integer, bounds: [0, 4]}",
    "hours": "{type: integer, edges: [0, 10, 20, 40, 80]}",
    "sex": "{type: category, values: [F, M]}",
    "place": "{type: category, values: [a, b, c]}",
    "smoker": "{type: boolean}",
}


def declared(names: Iterable[str], *, budget: str, neighbours: str = "replace") -> Declaration:
    """The declaration of a table `t` of `ROWS` people with these attributes, each named in `ATTRIBUTES`."""
    bounds = "" if neighbours == "replace" else f"rows: {{at_least: {ROWS // 2}, at_most: {2 * ROWS}}}\n"
    attributes = "".join(f"  {name}: {ATTRIBUTES[name]}\n" for name in names)
    return parse(
        f"understudy: 1\nname: t\nsource: t.csv\nneighbours: {neighbours}\n{bounds}budget: {budget}\n"
        f"attributes:\n{attributes}"
    )
