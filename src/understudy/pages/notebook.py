"""How objects look in a notebook: one style, tables, and error bars, as HTML that needs nothing else.

Every public object has a `_repr_html_` that is made here. All text is escaped on its way into a page, so that a
label such as ``<script>`` stays a label; `Markup`, which only this module makes, is the one thing that is not.
Bars have the colour that they have on all pages. A notebook has its own light or dark, whatever the reader's
system says: so text and lines take the colour of the page around them, and the bars are readable on both. Where a
notebook drops pictures and styles, the numbers remain.

Nothing here reads data: what is shown was released, or is public.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from understudy.pages.markup import escaped

MOST_ROWS = 50
"""Rows of a table that are shown; the page says how many more there are."""

BAR, FRAME = "#5fa8b0", "#8a97a3"
"""The colour of bars, as in the style sheet of all pages, and of lines around them."""

WIDTH, HEIGHT = 180, 14
"""The size of a bar in pixels."""

STYLE = f"""<style>
.understudy {{ font: 14px/1.45 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: inherit;
  max-width: 64rem; overflow-x: auto; }}
.understudy .title {{ font-size: 1.1em; font-weight: 650; margin: .2em 0 .3em; overflow-wrap: anywhere; }}
.understudy .note {{ opacity: .75; font-size: .92em; margin: .4em 0; max-width: 52rem; overflow-wrap: anywhere; }}
.understudy .warning {{ border-left: 3px solid {BAR}; padding-left: .6em; margin: .4em 0; max-width: 52rem; }}
.understudy table {{ border-collapse: collapse; margin: .3em 0; border: 0; font-size: 1em;
  font-variant-numeric: tabular-nums; }}
.understudy tr, .understudy tr:nth-child(even), .understudy tr:hover, .understudy thead {{ background: none; }}
.understudy th, .understudy td {{ text-align: left; vertical-align: top; padding: .2em 1em .2em 0; color: inherit;
  border: 0; border-bottom: 1px solid {FRAME}66; background: none; max-width: 34rem; overflow-wrap: break-word; }}
.understudy th {{ font-weight: 600; white-space: nowrap; }}
.understudy .number {{ text-align: right; white-space: nowrap; }}
.understudy svg {{ display: block; margin: .2em 0; }}
</style>"""

Number = float | dt.date
"""What a bar can stand for: a number, or a day."""


class Markup(str):
    """HTML that was made here, of escaped parts: it is put into a page as it is."""

    __slots__ = ()


@dataclass(frozen=True)
class ErrorBar:
    """A value between two ends; an end, or the value, that nobody knows is None."""

    value: Number | None
    low: Number | None = None
    high: Number | None = None

    @classmethod
    def around(cls, value: float, error: float) -> ErrorBar:
        """The bar of ``value ± error``, for what is never below 0; without ends where the error is infinite."""
        return cls(value, max(value - error, 0.0), value + error) if isfinite(error) else cls(value)


Cell = str | ErrorBar
"""What stands in a table: text, which is escaped unless it is `Markup`, or a bar."""


def panel(title: str, *parts: str, note: str = "") -> str:
    """A whole answer to `_repr_html_`: a title, parts made here, and a remark in words below them."""
    for part in parts:
        if not isinstance(part, Markup):
            raise TypeError("a panel is made of parts that this module made")
    remark = f'<div class="note">{escaped(note)}</div>' if note else ""
    head = f'<div class="title">{escaped(title)}</div>' if title else ""
    return f'{STYLE}<div class="understudy">{head}{"".join(parts)}{remark}</div>'


def facts(known: Mapping[str, str]) -> Markup:
    """A table of two columns: what is known, and what it is."""
    rows = "".join(f"<tr><th>{escaped(key)}</th><td>{_text(value)}</td></tr>" for key, value in known.items())
    return Markup(f"<table><tbody>{rows}</tbody></table>")


def warning(text: str) -> Markup:
    """A sentence that must not be overlooked."""
    return Markup(f'<div class="warning">{escaped(text)}</div>')


def listed(lines: Iterable[str]) -> Markup:
    """A list of sentences."""
    return Markup(f"<ul>{''.join(f'<li>{escaped(line)}</li>' for line in lines)}</ul>")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    numbers: Iterable[str] = (),
    total: int | None = None,
) -> Markup:
    """A table of at most `MOST_ROWS` rows; columns in `numbers` stand at the right.

    `total` is the number of rows that there are, where only the first are given. The bars of a column share one
    scale, which begins at 0 unless they stand for days.
    """
    right = {i for i, name in enumerate(columns) if name in set(numbers)}
    shown = list(rows[:MOST_ROWS])
    scales = [_scale([row[i] for row in shown if isinstance(row[i], ErrorBar)]) for i in range(len(columns))]
    css = [' class="number"' if i in right else "" for i in range(len(columns))]
    head = "".join(f"<th{css[i]}>{escaped(name)}</th>" for i, name in enumerate(columns))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{css[i]}>{_drawn(cell, scales[i]) if isinstance(cell, ErrorBar) else _text(cell)}</td>"
            for i, cell in enumerate(row)
        )
        + "</tr>"
        for row in shown
    )
    more = (len(rows) if total is None else total) - len(shown)
    rest = f'<div class="note">… {more:,} more</div>' if more > 0 else ""
    return Markup(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}")


def share(part: float, what: str) -> Markup:
    """A bar that is filled to `part`, a fraction between 0 and 1, with words beside it."""
    filled = min(max(part, 0.0), 1.0) * WIDTH
    return Markup(
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escaped(what)}">'
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" fill="none" stroke="{FRAME}"/>'
        f'<rect x="0.5" y="0.5" width="{max(filled - 1, 0):.1f}" height="{HEIGHT - 1}" fill="{BAR}"/></svg>'
        f"{escaped(what)}"
    )


def number(value: Number | None) -> str:
    """A number or a day for people: whole thousands, else four digits.

    >>> number(12345.6), number(0.123456), number(3.0)
    ('12,346', '0.1235', '3')
    """
    if value is None:
        return "null"
    if isinstance(value, dt.date):
        return str(value)
    if not isfinite(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def half_width(error: float) -> str:
    """An error for people; an infinite one in words."""
    return f"± {number(error)}" if isfinite(error) else "no bound"


def half_width_in(error: float, unit: str) -> str:
    """An error in people, or in the unit of the released column that `unit` names.

    >>> half_width_in(120.0, "people"), half_width_in(0.5, "avg(age)")
    ('± 120 people', '± 0.5 (avg(age))')
    """
    if unit == "people":
        return f"{half_width(error)} people"
    return f"{half_width(error)} ({unit})" if isfinite(error) else half_width(error)


def certainty(beta: float) -> str:
    """1 - β as a percentage.

    >>> certainty(0.05)
    '95%'
    """
    return f"{100 * (1 - beta):g}%"


def _text(value: str) -> str:
    return value if isinstance(value, Markup) else escaped(value)


# ---- bars


@dataclass(frozen=True)
class _Scale:
    """The line between the least and the largest number of a column's bars."""

    least: float
    most: float
    from_zero: bool

    def at(self, value: float) -> float:
        """The place of a number, in pixels."""
        room = self.most - self.least
        return 2 + (WIDTH - 4) * ((value - self.least) / room if room > 0 else 0.0)


def _scale(bars: Sequence[Cell]) -> _Scale:
    ends = [end for bar in bars if isinstance(bar, ErrorBar) for end in (bar.value, bar.low, bar.high)]
    days = any(isinstance(end, dt.date) for end in ends)
    found = [_as_number(end) for end in ends if end is not None]
    found = [value for value in found if isfinite(value)] or [0.0]
    if not days:
        found.append(0.0)
    return _Scale(min(found), max(found), not days)


def _as_number(value: Number) -> float:
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1)).total_seconds()
    return float(value.toordinal()) if isinstance(value, dt.date) else float(value)


def _drawn(bar: ErrorBar, scale: _Scale) -> str:
    """One bar with its whisker, as a picture; what it says is also written beside it, in the table."""
    middle, parts = HEIGHT / 2, []
    value, low, high = (
        None if end is None or not isfinite(_as_number(end)) else scale.at(_as_number(end))
        for end in (bar.value, bar.low, bar.high)
    )
    if value is not None and scale.from_zero:
        zero = scale.at(0.0)
        left, width = min(zero, value), abs(value - zero)
        parts.append(f'<rect x="{left:.1f}" y="3" width="{width:.1f}" height="{HEIGHT - 6}" fill="{BAR}"/>')
    elif value is not None:
        parts.append(f'<circle cx="{value:.1f}" cy="{middle}" r="4" fill="{BAR}"/>')
    if low is not None and high is not None:
        parts.append(_line(low, middle, high, middle))
        parts += [_line(end, middle - 4, end, middle + 4) for end in (low, high)]
    said = f"{number(bar.value)} between {number(bar.low)} and {number(bar.high)}"
    return f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escaped(said)}">{"".join(parts)}</svg>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="currentColor" '
        f'stroke-width="1.4"/>'
    )
