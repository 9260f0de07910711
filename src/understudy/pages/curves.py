"""Curves over two logarithmic axes, each with its name at its end: names never meet, whatever they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from understudy.pages.lettering import SIZE, text_width
from understudy.pages.markup import escaped
from understudy.pages.svg import drawing, label, line, number

STEP = 15
"""From one name to the next, in pixels: more than the letters are high."""
HEAD, FOOT, LEFT = 8, 40, 52
COLOURS = 6
DASHES = ("", "6 3", "2 3")
"""With as many kinds of lines as there are here, so many times `COLOURS` curves are told apart."""
NAMES = 0.34
"""The largest part of a drawing's width that names take."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class LogAxis:
    """Where positive numbers stand between two places, in pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a number; those beyond the ends stand there."""
        part = (log10(min(max(value, self.low), self.high)) - log10(self.low)) / (
            log10(self.high) - log10(self.low)
        )
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Powers of ten, and where these are few also 2 and 5 times them."""
        first, last = floor(log10(self.low)), ceil(log10(self.high))
        steps = (1,) if last - first > 3 else (1, 2, 5)
        found = [
            step * 10.0**power if power >= 0 else step / 10**-power
            for power in range(first, last + 1)
            for step in steps
        ]
        return [tick for tick in found if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9)]


def curves(
    named: Mapping[str, Points], *, across: str, up: str, words: str, width: float = 720, height: float = 400
) -> str:
    """A drawing of curves through points of positive numbers; `across` and `up` say what the axes are.

    Curves differ in colour and in how their line is broken, and each is named at its end. The drawing grows where
    the names need more height. `words` say what is shown to those who do not see it.
    """
    points = [point for curve in named.values() for point in curve]
    side = min(max((text_width(name) for name in named), default=0.0) + 22, width * NAMES)
    height = max(height, HEAD + FOOT + STEP * (len(named) + 1))
    bottom, right = height - FOOT, width - side
    x = LogAxis(*_range([a for a, _ in points]), LEFT, right)
    y = LogAxis(*_range([b for _, b in points]), bottom, HEAD)
    drawn = [*_grid(x, y, across, up)]
    ends = {name: curve[-1] for name, curve in named.items() if curve}
    places = _apart({name: y.at(end[1]) for name, end in ends.items()}, HEAD + STEP / 2, bottom)
    for i, (name, curve) in enumerate(named.items()):
        if not curve:
            continue
        kind, dash = f"curve-{i % COLOURS}", DASHES[i // COLOURS % len(DASHES)]
        path = " ".join(f"{number(x.at(a))},{number(y.at(b))}" for a, b in curve)
        broken = f' stroke-dasharray="{dash}"' if dash else ""
        said = f"<title>{escaped(name)}</title>"
        drawn.append(f'<polyline points="{path}" class="curve {kind}"{broken}>{said}</polyline>')
        a, b = ends[name]
        drawn.append(line(x.at(a), y.at(b), right + 6, places[name], "grid-line"))
        mark = f'<line x1="{number(right + 6)}" y1="{number(places[name])}" x2="{number(right + 18)}" '
        drawn.append(f'{mark}y2="{number(places[name])}" class="curve {kind}"{broken}></line>')
        drawn.append(label(name, right + 22, places[name] + SIZE * 0.36, room=side - 22))
    return drawing(width, height, "".join(drawn), words)


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low / 2, low * 2)


def _grid(x: LogAxis, y: LogAxis, across: str, up: str) -> list[str]:
    drawn: list[str] = []
    taken = float("-inf")
    for tick in x.ticks():
        place, word = x.at(tick), _word(tick)
        drawn.append(line(place, y.end, place, y.start, "grid-line"))
        if place - text_width(word) / 2 > taken:
            drawn.append(label(word, place, y.start + 17, room=100, anchor="middle", kind="faint"))
            taken = place + text_width(word) / 2 + 6
    taken = float("inf")
    for tick in y.ticks():
        place = y.at(tick)
        drawn.append(line(x.start, place, x.end, place, "grid-line"))
        if place + SIZE < taken:
            drawn.append(
                label(_word(tick), x.start - 5, place + 4, room=LEFT - 6, anchor="end", kind="faint")
            )
            taken = place
    middle = (x.start + x.end) / 2
    drawn.append(label(across, middle, y.start + 34, room=x.end - x.start, anchor="middle", kind="faint"))
    centre = (y.start + y.end) / 2
    drawn.append(label(up, 11, centre, room=y.start - y.end, anchor="middle", kind="faint", turn=-90))
    return drawn


def _word(value: float) -> str:
    """A number of an axis: short.

    >>> _word(200_000), _word(0.05), _word(10**9)
    ('200k', '0.05', '1e9')
    """
    if value >= 1e9 or value < 1e-3:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"


def _apart(wanted: Mapping[str, float], top: float, bottom: float) -> dict[str, float]:
    """Places near the wanted ones, at least `STEP` apart, between the top and the bottom."""
    order = sorted(wanted, key=lambda name: wanted[name])
    places: dict[str, float] = {}
    last = top - STEP
    for name in order:
        last = places[name] = max(wanted[name], last + STEP)
    last = bottom + STEP
    for name in reversed(order):
        last = places[name] = min(places[name], last - STEP)
    return places
