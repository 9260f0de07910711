"""Answers in a terminal: under heads that say what the numbers are, fifty rows unless all are asked for."""

from __future__ import annotations

from itertools import compress, islice

import numpy as np

from understudy.answer.answer import Answer
from understudy.answer.around_answer import AroundAnswer
from understudy.answer.reader import RATE
from understudy.answer.sql_answer import UNCERTIFIED_ORDER, SqlAnswer, shown
from understudy.cli.prices import Charged, price_told
from understudy.cli.terminal import say, say_table
from understudy.privacy.budget import Budget

SHOWN = 50
"""Rows of an answer that a terminal shows unless all are asked for."""

COUNTED = ("value", "share", "rate")
"""What is made of numbers of people (`Answer.measure`): of these 0 means that there are none."""


def show(
    question: str,
    answer: Answer | SqlAnswer,
    budget: Budget | None,
    *,
    everything: bool = False,
    charged: Charged | None = None,
) -> None:
    """One answer: the question, its rows under heads, how sure they are, and the price.

    `charged` says what was quoted and whether it was paid before, where that is known. Without a `budget` the
    answer is that of a release, which costs nothing.
    """
    say(question)
    rows = _sql_rows(answer, everything) if isinstance(answer, SqlAnswer) else _rows(answer, everything)
    count = len(answer.cells) if isinstance(answer, SqlAnswer) else _shown_cells(answer)
    keys = _sql_keys(answer) if isinstance(answer, SqlAnswer) else range(len(answer.query.by))
    heads = isinstance(answer, SqlAnswer) or bool(answer.query.by)
    say_table(rows, left=set(keys), heads=heads, indent=2)
    if not everything and count > SHOWN:
        say(f"  … {count - SHOWN:,} more (--all shows them, -o answers.parquet writes them)")
    if budget is None:
        price = "asking a release costs nothing"
    else:
        price = f"takes {price_told(answer.cost, budget)}" if charged is None else charged.told(budget)
    remark = None if charged is None else charged.remark
    if answer.source == "uncertified":  # there is no error to be within, or it is that of bins
        for line in _of_uncertified(answer, is_released=budget is None):
            say(f"  {line}")
        say(f"  {price}")
        return
    if isinstance(answer, AroundAnswer):
        say(f"  made of released rows, without bounds; {price}")
        if answer.problem:
            say(f"  {answer.problem}")
        for number, inner in enumerate(answer.inner):
            say(f"  released_{number}: {inner.text}")
            say_table(_sql_rows(inner, everything), left=set(_sql_keys(inner)), heads=True, indent=4)
        say(f"  what was released is within its bounds, all of it {certainty_told(answer.beta)}")
        return
    within = "their bounds" if isinstance(answer, SqlAnswer) or answer.low is not None else "the error"
    say(f"  all within {within} {certainty_told(answer.beta)}; {price}")
    if isinstance(answer, SqlAnswer) and answer.order == "uncertified":
        say(f"  {UNCERTIFIED_ORDER}")
    if remark is not None:
        say(f"  {remark}")


def certainty_told(beta: float) -> str:
    """How sure errors are: with probability 1 - β; always, where bounded noise was added.

    >>> certainty_told(0.05), certainty_told(0)
    ('with probability 0.95', 'for sure (bounded noise)')
    """
    return f"with probability {1 - beta:g}" if beta else "for sure (bounded noise)"


def _of_uncertified(answer: Answer | SqlAnswer, *, is_released: bool) -> list[str]:
    """What is certain of an answer whose values nobody vouches for."""
    if isinstance(answer, Answer) and answer.cut_bins is not None:
        return answer.cut_bins.told(unit=answer.unit, beta=answer.beta)
    if not is_released:
        return []
    if not isinstance(answer, SqlAnswer) or not answer.is_bounded:
        return ["uncertified: the stand-in alone answers, and nothing is proved of its error"]
    return [
        "uncertified: values are the stand-in's, or rows are taken to be spread evenly in the bins that are cut",
        f"all within their bounds {certainty_told(answer.beta)}",
        *([UNCERTIFIED_ORDER] if answer.order == "uncertified" else []),
    ]


def _rows(answer: Answer, everything: bool) -> list[tuple[str, ...]]:
    """Labels, value and error of each cell; heads over them where there are groups.

    Groups that the condition of the question rules out are left out: `count age < 30 by age`.
    """
    most = answer.value.size if everything else SHOWN
    digits = 0 if answer.unit == "people" or _is_whole(answer) else 5
    ruled_out = answer.query.excluded
    possible = np.ones(answer.value.size, bool) if ruled_out is None else ~ruled_out.ravel()
    cells = islice(compress(enumerate(answer.query.cell_labels()), possible.tolist()), most)
    values = [
        (labels, f"{answer.value.flat[i]:,.{digits}f}", _interval(answer, i, digits)) for i, labels in cells
    ]
    heads = [(*answer.query.by, answer.unit, "")] if answer.query.by else []
    if not heads and answer.unit != "people":
        values = [(labels, value, f"{error}  {answer.unit}") for labels, value, error in values]
    errors = max((len(error) for _, _, error in values), default=0)
    return [*heads, *((*labels, value, f"{error:<{errors}}") for labels, value, error in values)]


def _is_whole(answer: Answer) -> bool:
    """Whether a measure's numbers and their bounds are whole, as quantiles of whole numbers are."""
    if answer.low is None or answer.high is None:
        return False
    told = np.concatenate([part.ravel() for part in (answer.value, answer.low, answer.high)])
    told = told[np.isfinite(told)]
    return bool((told == np.rint(told)).all())


def _shown_cells(answer: Answer) -> int:
    ruled_out = answer.query.excluded
    return answer.value.size - (0 if ruled_out is None else int(ruled_out.sum()))


def _interval(answer: Answer, i: int, digits: int) -> str:
    """How far the number of cell i may be off, in words."""
    ends = answer.interval(i)
    if ends is None:
        return "error unknown"
    low, high = ends
    if answer.ends is not None:
        return f"between {low:,.{digits}f} and {high:,.{digits}f}{_doubt(answer, low, high)}"
    return f"± {float(answer.error.flat[i]):,.{digits}f}{_doubt(answer, low, high)}"


def _doubt(answer: Answer, low: float, high: float) -> str:
    """What is said beside a group that may be empty, so that nobody takes its number for a finding."""
    if not answer.query.by or answer.measure not in COUNTED:
        return ""
    if answer.unit.startswith(RATE):  # any rate is possible where the group may have no rows
        return "  nothing known" if low <= 0 and high >= 1 else ""
    if low == high == 0:
        return "  certainly 0"
    return "  consistent with 0" if low <= 0 else ""


def _sql_rows(answer: SqlAnswer, everything: bool) -> list[tuple[str, ...]]:
    most = len(answer.cells) if everything else SHOWN
    heads = tuple(column.name for column in answer.columns)
    return [heads, *(tuple(map(shown, row)) for row in answer.cells[:most])]


def _sql_keys(answer: SqlAnswer) -> list[int]:
    """The columns that hold words: those of groups."""
    return [
        i
        for i, column in enumerate(answer.columns)
        if column.kind == "key" or (column.kind == "derived" and column.type not in ("int", "float"))
    ]
