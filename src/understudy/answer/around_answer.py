"""The answer to a statement around private SELECTs: rows made of released numbers, without bounds of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from understudy.answer.sql_answer import SqlAnswer
from understudy.pages import notebook


@dataclass(frozen=True, eq=False, repr=False)
class AroundAnswer(SqlAnswer):
    """Rows that a statement made of the released rows of its inner SELECTs. They have no bounds.

    It has the fields of `SqlAnswer`, of which these mean something else, and some of its own.

    Nothing is known of how far these numbers are off: windows, joins and comparisons of released numbers follow
    no interval. The inner answers have their bounds, which hold together with probability 1 - `beta`. What was
    made of them cost nothing and says nothing that they do not say.

    columns  of the kind `derived`
    cells    the rows, as plain values
    inner    the answers of the SELECTs over the table, in the order of `released_0`, `released_1`, … in `outer`;
             their costs add up to `cost`
    outer    the statement that was run on their rows
    problem  why there are no rows, where the outer statement failed on what was released, such as a text that is
             no number; empty else. The inner answers were paid for, and are here
    reason   the `reason` of the `StatementError` that `problem` tells of; empty where there is none, and in
             answers that came from a server
    """

    inner: tuple[SqlAnswer, ...] = ()
    outer: str = ""
    problem: str = ""
    reason: str = ""

    @property
    def is_passing(self) -> bool:
        """Whether there are no rows only because nothing could run the outer statement at that moment."""
        return self.reason in ("busy", "unavailable")

    def as_dict(self) -> dict[str, Any]:
        """The rows as plain values, which JSON can hold: `bounds` says that there are none; `inner` has some."""
        return {
            **super().as_dict(),
            "bounds": "none",
            "inner": [{"statement": answer.text, **answer.as_dict()} for answer in self.inner],
            "outer": self.outer,
            "problem": self.problem,
        }

    def __repr__(self) -> str:
        text = " ".join(self.text.split())
        short = text if len(text) <= 60 else f"{text[:59]}…"
        return f"AroundAnswer({short!r}: {len(self.cells):,} rows without bounds, {self.source})"

    def _repr_html_(self) -> str:
        rows: list[list[notebook.Cell]] = [
            ["" if cell is None else str(cell) for cell in row] for row in self.cells[: notebook.MOST_ROWS]
        ]
        numbers = [column.name for column in self.columns if column.type in ("int", "float")]
        found = notebook.table(
            [column.name for column in self.columns], rows, numbers=numbers, total=len(self.cells)
        )
        price = f"{self.cost.currency} {self.cost.amount:.4g}"
        note = (
            f"Made of released rows: these numbers have no bounds. Source: {self.source}; charged: {price}."
        )
        note = f"{note} {self.problem}".strip()
        return notebook.panel(" ".join(self.text.split()), found, note=note)
