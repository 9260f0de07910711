"""SVG elements as text: colours come from the page's style sheet by class, so that a plot is light or dark
with it.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, floor, isfinite, log10

from understudy.pages.lettering import SIZE, fitted, text_width
from understudy.pages.markup import escaped


def number(value: float) -> str:
    """A coordinate, in tenths of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def drawing(width: float, height: float, body: str, words: str) -> str:
    """An SVG drawing of that size in pixels; `words` say to a screen reader what it shows."""
    w, h = number(width), number(height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        f'aria-label="{escaped(words)}">{body}</svg>'
    )


def label(
    text: str,
    x: float,
    y: float,
    *,
    room: float,
    anchor: str = "start",
    kind: str = "",
    turn: float = 0,
    size: float = SIZE,
) -> str:
    """A line of text at its baseline, cut to `room` pixels; the whole is in a hint where it was cut."""
    shown = fitted(text, room, size)
    hint = f"<title>{escaped(text)}</title>" if shown != text else ""
    classes = f' class="{kind}"' if kind else ""
    turned = f' transform="rotate({number(turn)} {number(x)} {number(y)})"' if turn else ""
    return (
        f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" '
        f'font-size="{number(size)}"{classes}{turned}>{hint}{escaped(shown)}</text>'
    )


def rectangle(
    x: float, y: float, width: float, height: float, kind: str, *, depth: float = 1, hint: str = ""
) -> str:
    """A filled rectangle; `depth` is how strongly its colour covers the paper, `hint` what a pointer over it
    tells.
    """
    opacity = f' fill-opacity="{depth:.3g}"' if depth < 1 else ""
    said = f"<title>{escaped(hint)}</title>" if hint else ""
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" '
        f'height="{number(max(height, 0))}" class="{kind}"{opacity}>{said}</rect>'
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return (
        f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" '
        f'class="{kind}"></line>'
    )


def swatch(kind: str, *, depth: float = 1, shape: str = "bar") -> str:
    """A small sample of a colour for a legend: a `bar`, a `whisker`, a `target` or a `dot`."""
    drawn = {
        "bar": lambda: rectangle(1, 2, 18, 8, kind, depth=depth),
        "whisker": lambda: line(1, 6, 19, 6, kind) + line(1, 2, 1, 10, kind) + line(19, 2, 19, 10, kind),
        "target": lambda: line(10, 0, 10, 12, kind),
        "dot": lambda: f'<circle cx="10" cy="6" r="2" class="{kind}"></circle>',
    }[shape]()
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 12" width="20" height="12" '
        f'aria-hidden="true">{drawn}</svg>'
    )


# ---- axes


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from `low` to `high`, at most `most` of them: multiples of 1, 2 or 5 times a power of ten.

    >>> ticks(0, 48_842, 6)
    [0.0, 10000.0, 20000.0, 30000.0, 40000.0]
    """
    if not (isfinite(low) and isfinite(high)) or high <= low or most < 1:
        return [low]
    power = 10.0 ** (floor(log10((high - low) / most)) - 1)
    for step in (
        power * round_number for scale in (1, 10, 100, 1000) for round_number in (scale, 2 * scale, 5 * scale)
    ):
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if last - first + 1 <= most:
            return [whole * step for whole in range(first, last + 1)] or [low]
    return [low]


def tick_words(values: list[float]) -> list[str]:
    """The ticks of one axis as words, all with the same number of decimals."""
    gaps = [b - a for a, b in pairwise(values) if b > a]
    step = min(gaps, default=abs(values[0]) or 1.0)
    digits = max(0, min(12, -floor(log10(step) + 1e-9)))
    if digits > 6:
        return [f"{value:.2g}" for value in values]
    return [f"{value:,.{digits}f}" for value in values]


def fitting_ticks(low: float, high: float, width: float, *, most: int = 6) -> list[tuple[float, str]]:
    """Ticks with their words, as many as stand side by side on an axis of that width without touching."""
    for count in range(most, 0, -1):
        values = ticks(low, high, count)
        words = tick_words(values)
        places = [(value - low) / (high - low or 1) * width for value in values]
        halves = [text_width(word) / 2 for word in words]
        apart = all(
            right - left >= a + b + 8
            for left, right, a, b in zip(places, places[1:], halves, halves[1:], strict=False)
        )
        if apart:
            return list(zip(values, words, strict=True))
    return [(low, tick_words([low])[0])]
