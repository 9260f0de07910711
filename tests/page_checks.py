"""What every page must be: one well-formed file that fetches and runs nothing, and whose labels never meet."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from hashlib import sha256
from html.parser import HTMLParser
from math import cos, radians, sin

from understudy.pages.lettering import text_width

VOID = {"meta", "br", "link", "img", "input", "hr"}
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "ul", "li", "dl", "dt", "dd",
    "div", "section", "figure", "figcaption", "span", "small", "strong", "code", "a", "sup",
    "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "footer", "svg", "text", "rect",
    "line", "polyline", "circle",
}  # fmt: skip
HOSTILE = [
    "<script>alert(1)</script>",
    '"onload="alert(1)',
    "'><img src=x onerror=alert(1)>",
    "\x00\u202eabc",
    "&lt;b&gt;",
]


@dataclass
class Drawn:
    """A text of a drawing: where its box is, and what it says."""

    x: float
    y: float
    anchor: str
    size: float
    turn: float
    text: str = ""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom, by the same estimate of widths that lays labels out."""
        width = text_width(self.text, self.size)
        left = {"start": 0.0, "middle": -width / 2, "end": -width}[self.anchor]
        corners = [(left, -0.78 * self.size), (left + width, 0.22 * self.size)]
        points = [(a, b) for a in (corners[0][0], corners[1][0]) for b in (corners[0][1], corners[1][1])]
        c, s = cos(radians(self.turn)), sin(radians(self.turn))
        turned = [(self.x + a * c - b * s, self.y + a * s + b * c) for a, b in points]
        xs, ys = [p[0] for p in turned], [p[1] for p in turned]
        return min(xs), min(ys), max(xs), max(ys)


@dataclass
class Drawing:
    width: float
    height: float
    texts: list[Drawn] = field(default_factory=list)


class PageReader(HTMLParser):
    """Reads a page: its tags, what is wrong with it, its words and its drawings."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.problems: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.drawings: list[Drawing] = []
        self._text: Drawn | None = None

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        if tag not in ALLOWED:
            self.problems.append(f"<{tag}>")
        for name, value in attrs:
            outside = name in ("src", "href", "srcset", "xlink:href") and not re.match(
                r"[\w.-]+/|#", value or ""
            )
            if name.startswith("on") or name == "style" or outside:
                self.problems.append(f"{name}={value}")
        if tag == "svg":
            _, _, width, height = map(float, values["viewbox"].split())
            self.drawings.append(Drawing(width, height))
        if tag == "text":
            turn = re.match(r"rotate\((-?[\d.]+)", values.get("transform") or "")
            self._text = Drawn(
                float(values["x"]), float(values["y"]), values["text-anchor"], float(values["font-size"]),
                float(turn[1]) if turn else 0.0,
            )  # fmt: skip
            self.drawings[-1].texts.append(self._text)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}>")
        if tag == "text":
            self._text = None

    def handle_data(self, data):
        if self._text is not None and self.open[-1] == "text":
            self._text.text += data
        if self.open and self.open[-1] != "style":
            self.words.append(data)


def check_drawing(drawing: Drawing) -> None:
    """Every label is inside of the drawing, and no two meet."""
    boxes = [(text.text, text.box) for text in drawing.texts]
    for words, (left, top, right, bottom) in boxes:
        inside = left >= -1 and top >= -1 and right <= drawing.width + 1 and bottom <= drawing.height + 1
        assert inside, (words, (left, top, right, bottom), drawing.width, drawing.height)
    for place, (words, a) in enumerate(boxes):
        for others, b in boxes[:place]:
            across = min(a[2], b[2]) - max(a[0], b[0])
            down = min(a[3], b[3]) - max(a[1], b[1])
            assert across <= 0.5 or down <= 0.5, (words, others)


def read_page(text: str) -> PageReader:
    """The page, if it is what every page must be; fails where it is not."""
    reader = PageReader()
    reader.feed(text)
    reader.close()
    assert not reader.problems, reader.problems
    assert not reader.open
    assert text.startswith("<!DOCTYPE html>")
    outer = set(re.findall(r"https?://[^\"' )]+", text)) - {"http://www.w3.org/2000/svg"}
    assert not outer
    assert "@import" not in text
    assert "url(" not in text
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(sha256(style[1].encode()).digest()).decode()
    assert (
        f"style-src &#x27;sha256-{digest}&#x27;" in text
    )  # else the browser would show the page without a style
    assert "default-src &#x27;none&#x27;" in text
    for drawing in reader.drawings:
        check_drawing(drawing)
    return reader
