"""Horizontal bars with error bars, one line for each label: labels never meet, whatever they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from understudy.pages.lettering import SIZE, text_width
from understudy.pages.svg import drawing, fitting_ticks, label, line, rectangle

STEP = 17
"""From one line to the next, in pixels: more than the letters are high."""
FOOT, HEAD = 22, 4
LABELS = 0.42
"""The largest part of a drawing's width that labels take, unless told otherwise."""


Position = Callable[[float], float]
"""Where a value stands on an axis, in pixels."""


@dataclass(frozen=True)
class PlotBar:
    """One line: a value as a bar, an interval as a whisker, a target as a tick; any of them may be missing.

    A `doubtful` bar is drawn pale. `hint` is what a pointer over the line tells.
    """

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    target: float | None = None
    doubtful: bool = False
    hint: str = ""


def bars(
    lines: Sequence[PlotBar],
    *,
    words: str,
    unit: str = "",
    width: float = 340,
    top: float | None = None,
    labels: float = LABELS,
) -> str:
    """The drawing of some bars, over an axis from 0 (or the least end below) to the largest end, or to `top`.

    Labels take the part `labels` of the width at most, and are cut where they need more.
    `words` say what is shown to those who do not see it; `unit` is written below the axis.
    """
    ends = [end for bar in lines for end in (bar.value, bar.low, bar.high, bar.target) if end is not None]
    least = min([0.0, *ends])
    most = max([*ends, least]) if top is None else top
    most = most if most > least else least + 1
    side = min(max((text_width(bar.label) for bar in lines), default=0.0) + 8, width * labels)
    right = 16
    room = width - side - right

    def at(value: float) -> float:
        return side + (min(max(value, least), most) - least) / (most - least) * room

    bottom = HEAD + STEP * len(lines)
    height = bottom + FOOT + (14 if unit else 0)
    drawn: list[str] = []
    for value, text in fitting_ticks(least, most, room):
        x, half = at(value), text_width(text) / 2
        drawn.append(line(x, HEAD, x, bottom, "grid-line"))
        held = min(max(x, half), width - half)  # a word at the edge stays inside
        drawn.append(label(text, held, bottom + 14, room=width, anchor="middle", kind="faint"))
    for place, bar in enumerate(lines):
        drawn.append(_line(bar, HEAD + STEP * place, side, at, at(0.0)))
    if unit:
        drawn.append(
            label(unit, side + room / 2, bottom + 30, room=room + right, anchor="middle", kind="faint")
        )
    return drawing(width, height, "".join(drawn), words)


def _line(bar: PlotBar, y: float, side: float, at: Position, zero: float) -> str:
    middle = y + STEP / 2
    parts = [label(bar.label, side - 6, middle + SIZE * 0.36, room=side - 8, anchor="end")]
    if bar.value is not None:
        x = at(bar.value)
        kind = "bar doubtful" if bar.doubtful else "bar"
        parts.append(rectangle(min(zero, x), y + 2.5, abs(x - zero), STEP - 5, kind, hint=bar.hint))
    if bar.low is not None and bar.high is not None:
        a, b = at(bar.low), at(bar.high)
        parts += [line(a, middle, b, middle, "whisker")]
        parts += [line(end, middle - 3.5, end, middle + 3.5, "whisker") for end in (a, b)]
    if bar.target is not None:
        x = at(bar.target)
        parts.append(line(x, y + 1, x, y + STEP - 1, "target"))
    return "".join(parts)
