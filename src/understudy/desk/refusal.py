"""The words for a statement that a desk did not run to its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from understudy.errors import StatementError

if TYPE_CHECKING:
    from understudy.desk.desk import DeskLimits

_WORDS: dict[str, tuple[str, str, str]] = {
    "syntax": ("syntax", "cannot read the statement", "Write one SELECT"),
    "not-select": (
        "not-select",
        "only SELECT is answered here",
        "Write one SELECT; nothing is written",
    ),
    "several": ("not-select", "one statement at a time", "Send the statements one by one"),
    "no-function": (
        "undefined-function",
        "the function {name} is none of those that are allowed",
        "Use functions of numbers, text, dates and lists, aggregates or windows",
    ),
    "no-table": (
        "undefined-table",
        "there is no table {name!r} here",
        "Check the names after FROM",
    ),
    "no-source": (
        "not-select",
        "after FROM there can be tables, sub-queries, VALUES and generate_series",
        "Use one",
    ),
    "no-statement": ("not-select", "only SELECT is answered here", "Write one SELECT"),
    "no-parameter": ("syntax", "a parameter has no value", "Write the value itself"),
    "undefined-column": ("undefined-column", "there is no column {name!r}", "Check the names of the columns"),
    "undefined-table": ("undefined-table", "there is no table {name!r} here", "Check the names after FROM"),
    "undefined-function": (
        "undefined-function",
        "there is no function {name} of arguments like these",
        "Check its name and its arguments, or cast them",
    ),
    "undefined-type": (
        "undefined-type",
        "there is no type {name}",
        "Use a type such as float8, text or date",
    ),
    "ambiguous": (
        "ambiguous",
        "the column {name!r} could be one of several tables'",
        "Write the table before it",
    ),
    "grouping": (
        "grouping",
        "the column {name!r} is neither grouped by nor aggregated",
        "Add it to GROUP BY, or put an aggregate around it",
    ),
    "types": (
        "types",
        "an operator or a function is given types that it does not take",
        "Cast its arguments",
    ),
    "widths": (
        "types",
        "the SELECTs of a UNION, INTERSECT or EXCEPT have different numbers of columns",
        "List as many columns in each",
    ),
    "value": ("value", "a value cannot be converted or is out of range", "Check casts and literals"),
    "failed": ("failed", "the statement could not be run", "Write it more simply"),
    "time": ("time", "the statement took more than {seconds:g} seconds", "Ask for less at once"),
    "rows": ("size", "the result has more than {rows:,} rows", "Add LIMIT, or aggregate"),
    "size": ("size", "the statement took more than {megabytes} MB", "Ask for less at once"),
    "deep": ("size", "the statement is nested too deep", "Write IN (…) for a long chain"),
    "busy": ("busy", "other statements are being run", "Try again in a moment"),
    "unavailable": (
        "unavailable",
        "the process that runs statements on public rows could not be started",
        "Tell the custodian if it stays so",
    ),
}


def refusal(
    reason: str, *, limits: DeskLimits, name: str = "", near: Sequence[str] = (), rows: int = 0
) -> StatementError:
    """The error for what a process said became of a statement."""
    told, problem, remedy = _WORDS.get(reason, _WORDS["failed"])
    if near and told in ("undefined-column", "undefined-table", "undefined-function"):
        remedy = f"did you mean {near[0] if told == 'undefined-function' else repr(near[0])}?"
    return StatementError(
        problem.format(name=name[:60], seconds=limits.seconds, rows=rows, megabytes=limits.megabytes),
        reason=told,
        remedy=remedy,
        suggestions=near,
    )
