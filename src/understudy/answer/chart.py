"""Answers as charts with error bars, by Altair: the same colours as in reports and notebooks.

Altair is imported when the first chart is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from typing import TYPE_CHECKING, Any

from understudy.errors import ParameterError
from understudy.pages.notebook import BAR, FRAME, ErrorBar, Number

if TYPE_CHECKING:
    import altair as alt

MOST_BARS = 60
"""Bars of one chart; the title says how many more there are."""


@dataclass(frozen=True)
class ChartRow:
    """One bar: the names of its cell, and the number with its ends."""

    names: tuple[str, ...]
    bar: ErrorBar


def error_bars(by: Sequence[str], rows: Sequence[ChartRow], *, value: str, total: int) -> alt.LayerChart:
    """A chart with a bar, and a whisker over its error, for each row; the last of two names or more is a colour.

    `value` is what the numbers are called, and `total` how many rows there are, where only the first are given.
    A number without bounds has no whisker. Raises a `ParameterError` where Altair is not installed.
    """
    if find_spec("altair") is None:
        raise ParameterError("altair is not installed; run `pip install 'understudy[plot]'`")
    alt: Any = import_module("altair")
    drawn = rows[:MOST_BARS]
    coloured = len(by) > 1
    points = [
        {
            "cell": " · ".join(row.names[:-1] if coloured else row.names) or "all",
            "group": row.names[-1] if coloured else "",
            "value": _plain(row.bar.value),
            "low": _plain(row.bar.low),
            "high": _plain(row.bar.high),
        }
        for row in drawn
    ]
    dates = any(isinstance(point["value"], str) for point in points)
    kind = "T" if dates else "Q"
    order, groups = ([*dict.fromkeys(point[name] for point in points)] for name in ("cell", "group"))
    named = " · ".join(by[:-1] if coloured else by)
    where: dict[str, Any] = {"y": alt.Y("cell:N", sort=order, title=named or None)}
    if coloured:
        where["yOffset"] = alt.YOffset("group:N", sort=groups)
    base = alt.Chart(alt.Data(values=points))
    bars = base.mark_point(filled=True, size=60) if dates else base.mark_bar()
    colour = alt.Color("group:N", title=by[-1], sort=groups) if coloured else alt.value(BAR)
    layers = [
        bars.encode(x=alt.X(f"value:{kind}", title=value), color=colour, **where),
        base.mark_errorbar(ticks=True, color=FRAME, thickness=1.6).encode(
            x=alt.X(f"low:{kind}", title=value), x2="high", **where
        ),
    ]
    more = total - len(drawn)
    title = f"the first {len(drawn)} of {total:,}" if more > 0 else ""
    return alt.layer(*layers).properties(width=420, **({"title": title} if title else {}))


def _plain(value: Number | None) -> float | str | None:
    if value is None or isinstance(value, float | int):
        return None if value is None or not isfinite(value) else float(value)
    return value.isoformat()
