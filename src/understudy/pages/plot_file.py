"""Plots as files: an HTML page of the one design, or a drawing alone as SVG, which carries its colours with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from understudy.errors import ParameterError
from understudy.pages.shell import style
from understudy.pages.svg import drawing, label, rectangle

FORMATS = (".html", ".svg")
TITLE = 26
"""Height of a title above a drawing, in pixels."""


def check_format(path: Path) -> None:
    """Refuse, before any work, a plot in a format that nobody here writes."""
    suffix = path.suffix
    if suffix.lower() not in FORMATS:
        raise ParameterError(f"a plot is written as {', '.join(FORMATS)}, not {suffix or 'without a suffix'}")


def plot_text(path: Path, page: str, drawings: Sequence[tuple[str, str]], *, words: str) -> str:
    """What a file of that name holds: the `page`, or, of an SVG, the titled `drawings` one below the other."""
    check_format(path)
    return page if path.suffix.lower() == ".html" else _stacked(drawings, words)


def _stacked(drawings: Sequence[tuple[str, str]], words: str) -> str:
    """Drawings under their titles in one, on paper of its own, light or dark as its reader is."""
    sizes = [tuple(map(float, re.findall(r'(?:width|height)="([0-9.]+)"', body)[:2])) for _, body in drawings]
    width = max(size[0] for size in sizes)
    parts, y = list[str](), 0.0
    for (title, body), (_, height) in zip(drawings, sizes, strict=True):
        parts.append(label(title, 6, y + TITLE - 9, room=width - 12, size=13))
        parts.append(body.replace("<svg ", f'<svg y="{y + TITLE:g}" ', 1))
        y += TITLE + height
    sheet = f"<style>{_plot_style()}</style>"
    return drawing(width, y, sheet + rectangle(0, 0, width, y, "paper") + "".join(parts), words) + "\n"


def _plot_style() -> str:
    """What the style sheet says about drawings: its colours, and the rules for what is in them."""
    sheet = style()
    colours = re.findall(
        r"^:root \{.*?^\}|^@media \(prefers-color-scheme: dark\) \{.*?^\}", sheet, re.M | re.S
    )
    rules = [line for line in sheet.splitlines() if line.startswith(("svg text", "svg ."))]
    return "\n".join([*colours, *rules])
