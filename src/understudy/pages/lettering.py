"""How wide text is, so that labels can be laid out before a browser draws them.

The widths are those of DejaVu Sans, which is wider than the fonts that browsers use elsewhere (Segoe, San
Francisco, Helvetica, Roboto): text that fits by this measure fits on the reader's screen.
"""

from __future__ import annotations

from unicodedata import combining, east_asian_width

SIZE = 11
"""Of the letters of a plot, in pixels."""

_ASCII = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636,
    636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752,
    295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390,
    838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411,
    521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
)  # fmt: skip
_OTHER, _WIDE = 700, 1000


def text_width(text: str, size: float = SIZE) -> float:
    """The width of a line of text in pixels, at letters of that size.

    >>> text_width("mm") > text_width("ii")
    True
    """
    return sum(map(_advance, text)) * size / 1000


def _advance(letter: str) -> int:
    place = ord(letter) - 32
    if 0 <= place < len(_ASCII):
        return _ASCII[place]
    if combining(letter):
        return 0
    return _WIDE if east_asian_width(letter) in "WF" or letter in "…—" else _OTHER


def fitted(text: str, room: float, size: float = SIZE) -> str:
    """The text where it fits into so many pixels, else its beginning and an ellipsis.

    >>> fitted("Juniper Row", 200), fitted("Juniper Row", 50)
    ('Juniper Row', 'Juniper…')
    """
    if text_width(text, size) <= room + 0.05:  # what was measured once fits, whatever rounding says
        return text
    used = text_width("…", size)
    kept = 0
    for letter in text:
        used += _advance(letter) * size / 1000
        if used > room:
            break
        kept += 1
    return f"{text[:kept].rstrip()}…"
