"""Plain text that fits a width: lines folded between words, tables whose columns give way to each other.

Nothing here knows a terminal: `columns` is a number of characters, or None where lines may be of any length, as in
a file or a pipe. A word is cut only where it alone is wider than its column, and then ends with an ellipsis.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from unicodedata import category, east_asian_width

GAP = 2
"""Blanks between the columns of a table."""

NARROWEST = 6
"""Characters that a column of words keeps, however narrow the page: below that, rows are set as records."""


def cells(text: str) -> int:
    r"""How many places of a terminal a text takes: letters of East Asian scripts take two, accents none.

    >>> cells("age"), cells("東京"), cells("e\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if category(mark) in ("Mn", "Me", "Cf") else 2 if east_asian_width(mark) in "WF" else 1
        for mark in text
    )


def folded(text: str, columns: int | None, *, hang: int = 0) -> list[str]:
    """The lines of a text, each folded between words to at most so many columns.

    What follows a fold is indented as the line was, and by `hang` more. A word that is wider than a line stands
    alone in one, whole.

    >>> folded("  one two three", 9)
    ['  one two', '  three']
    >>> folded("one two three", None)
    ['one two three']
    """
    found: list[str] = []
    for line in text.split("\n"):
        if columns is None or cells(line) <= columns:
            found.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip(" "))]
        found += _filled(line.strip(" "), columns, indent, indent + " " * hang)
    return found


def _filled(text: str, columns: int, first: str, rest: str) -> list[str]:
    lines, line = [], first
    empty = True
    for word in text.split(" "):
        if not empty and cells(line) + 1 + cells(word) > columns:
            lines.append(line.rstrip(" "))
            line, empty = rest, True
        line += word if empty else f" {word}"
        empty = False
    return [*lines, line.rstrip(" ")]


def table(
    rows: Sequence[Sequence[str]],
    columns: int | None,
    *,
    left: Collection[int] = (),
    heads: bool = True,
    indent: int = 0,
) -> list[str]:
    """Rows in columns that fit a width. The columns in `left` hold words: they are set to the left, and folded.

    Other columns hold numbers, which are set to the right and never folded or cut. Heads, the first row, are
    folded in all columns. Where even the narrowest columns are too wide, each row becomes a record: a line for
    each value, after its head.

    >>> for line in table([("place", "people"), ("north of the river", "1,200")], 18, left={0}):
    ...     print(line)
    place       people
    north of     1,200
    the river
    """
    if not rows:
        return []
    many = len(rows[0])
    natural = [max(cells(row[i]) for row in rows) for i in range(many)]
    shown = [i for i in range(many) if natural[i]]
    room = None if columns is None else columns - indent - GAP * (len(shown) - 1)
    widths = dict(zip(shown, [natural[i] for i in shown], strict=True))
    if room is not None and sum(widths.values()) > room:
        least = {i: _least(rows, i, words=i in left, heads=heads) for i in shown}
        if sum(least.values()) > room:
            return _records(rows, columns, heads=heads, indent=indent)
        widths = _shared(widths, least, room)
    lines = []
    for place, row in enumerate(rows):
        wraps = [(heads and place == 0) or i in left for i in shown]
        parts = [
            [shortened(line, widths[i]) for line in folded(row[i], widths[i])] if wrap else [row[i]]
            for i, wrap in zip(shown, wraps, strict=True)
        ]
        for k in range(max(map(len, parts))):
            put = (
                _set(part[k] if k < len(part) else "", widths[i], left=i in left)
                for i, part in zip(shown, parts, strict=True)
            )
            lines.append((" " * indent + (" " * GAP).join(put)).rstrip())
    return lines


def shortened(text: str, width: int) -> str:
    """A text that is too wide by its beginning, up to a word's end where there is one not far off.

    >>> shortened("count by age and sex", 14), shortened("incomprehensibilities", 8)
    ('count by age …', 'incompr…')
    """
    if cells(text) <= width:
        return text
    kept = text
    while cells(kept) > max(width - 1, 0):
        kept = kept[:-1]
    end = len(kept) if text[len(kept) : len(kept) + 1] == " " else kept.rfind(" ")
    if end > len(kept) // 3 and cells(kept[:end]) + 2 <= width:
        return f"{kept[:end].rstrip()} …"
    return f"{kept.rstrip()}…"


def _least(rows: Sequence[Sequence[str]], i: int, *, words: bool, heads: bool) -> int:
    """How narrow a column may become: words may fold, numbers may not."""
    head = max(map(cells, rows[0][i].split(" "))) if heads else 0
    body = [row[i] for row in (rows[1:] if heads else rows)]
    if not words:
        return max([head, *map(cells, body)])
    longest = max([head, *(cells(word) for text in body for word in text.split(" "))])
    return min(longest, max(NARROWEST, head))


def _shared(widths: dict[int, int], least: dict[int, int], room: int) -> dict[int, int]:
    """The widths that take up the room, the widest giving way first."""
    found = dict(widths)
    while sum(found.values()) > room:
        widest = max((i for i in found if found[i] > least[i]), key=lambda i: found[i])
        found[widest] -= 1
    return found


def _set(text: str, width: int, *, left: bool) -> str:
    blank = " " * max(0, width - cells(text))
    return text + blank if left else blank + text


def _records(rows: Sequence[Sequence[str]], columns: int | None, *, heads: bool, indent: int) -> list[str]:
    """Each row as lines, one for each value that it has; a blank line between rows."""
    names = rows[0] if heads else [""] * len(rows[0])
    lines: list[str] = []
    for row in rows[1:] if heads else rows:
        lines += [""] if lines else []
        for name, value in zip(names, row, strict=True):
            if value:
                told = f"{name}: {value}" if name else value
                lines += folded(" " * indent + told, columns, hang=2)
    return lines
