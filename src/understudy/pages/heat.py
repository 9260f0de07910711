"""Heat maps: a grid of cells whose colour covers the paper the more, the larger the value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from understudy.pages.lettering import SIZE, text_width
from understudy.pages.svg import drawing, label, number, rectangle

LINE = SIZE + 3
"""The least distance of two labels, in pixels: more than the letters are high."""
SIDE = 110
"""The most that labels take to the left of a map or below it, in pixels."""
FLAT = 3
"""Labels of columns lie flat where one fits below so many cells; else they are turned."""


@dataclass(frozen=True)
class HeatCell:
    """A cell: how much of its colour is seen (0 to 1), which colour, whether it is dotted, and its words.

    `depth` of None is a cell of which nothing is known.
    """

    depth: float | None
    kind: str = "heat"
    doubtful: bool = False
    hint: str = ""


def heat(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[HeatCell | None]],
    *,
    words: str,
    width: float = 250,
    least: float = 0,
    largest: float = 26,
    thin: bool = True,
) -> str:
    """A map of `cells[row][column]`, with the labels of rows to its left and those of columns below it.

    The map is about `width` pixels wide, labels included; with `least` no cell becomes smaller than that, and
    the map grows. Long labels of columns are turned; where there is no room for every label, every second one
    is left out, or more. Without `thin`, every label is needed: they are turned before any is left out. A
    cell that is None is not drawn.
    """
    side = min(max((text_width(name) for name in rows), default=0.0) + 8, SIDE)
    cell = min(max((width - side) / max(len(columns), 1), least, 2), largest)
    tall = min(max(cell, LINE if len(rows) <= 40 else 5, 3), largest)
    across, down = cell * len(columns), tall * len(rows)
    widest = max((text_width(name) for name in columns), default=0.0) + 6
    flat = widest <= cell * (FLAT if thin else 1)
    foot = LINE + 4 if flat else min(widest + 4, SIDE)
    parts: list[str] = []
    every = max(1, ceil(LINE / tall))
    for place, name in enumerate(rows[::every]):
        middle = tall * (place * every + 0.5)
        held = min(max(middle + SIZE * 0.36, SIZE), down + foot - 2)
        parts.append(label(name, side - 6, held, room=side - 8, anchor="end"))
    every = max(1, ceil((widest if flat else LINE) / cell))
    for place, name in enumerate(columns[::every]):
        x = side + cell * (place * every + 0.5)
        if flat:
            parts.append(label(name, x, down + LINE, room=widest, anchor="middle"))
        else:
            parts.append(label(name, x + SIZE * 0.36, down + 6, room=foot - 8, anchor="end", turn=-90))
    for i, line in enumerate(cells):
        for j, found in enumerate(line):
            if found is not None:
                parts.append(_cell(found, side + j * cell, i * tall, cell, tall))
    parts.append(rectangle(side + 0.5, 0.5, across - 1, down - 1, "frame"))
    return drawing(
        max(side + across + (widest / 2 if flat else LINE / 2), 60), down + foot, "".join(parts), words
    )


def _cell(found: HeatCell, x: float, y: float, width: float, height: float) -> str:
    if found.depth is None:
        return rectangle(x, y, width, height, "unknown", hint=found.hint)
    drawn = rectangle(
        x, y, width, height, found.kind, depth=min(max(found.depth, 0.0), 0.999), hint=found.hint
    )
    if found.doubtful and min(width, height) >= 5:
        across, down = number(x + width / 2), number(y + height / 2)
        drawn += f'<circle cx="{across}" cy="{down}" r="1.4" class="doubt"></circle>'
    return drawn


def depth_of(value: float, most: float) -> float:
    """How strongly a count is drawn: by its square root, so that small ones are seen beside large ones."""
    return sqrt(max(value, 0.0) / most) if most > 0 else 0.0
