"""Parts of a page as markup: every function escapes the words it is given and returns HTML.

An argument called `words` or `label` is text and is escaped; one called `body` is markup that a function of
this package made, and is taken as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Characters that no page can hold or that turn the text around them: they are shown as a replacement mark."""


def escaped(words: object) -> str:
    """Text as markup, in elements and in quoted attributes alike; what cannot be shown becomes U+FFFD.

    >>> escaped('"onload=<script>')
    '&quot;onload=&lt;script&gt;'
    """
    return escape(visible(str(words)), quote=True)


def visible(words: str) -> str:
    """Text without characters that no page can hold, or that turn the text around them: each becomes U+FFFD."""
    return _UNSHOWN.sub("\ufffd", words)


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain words; `kind` is a class of the style sheet, such as `note`."""
    return f"<p{_class(kind)}>{escaped(words)}</p>"


def section(title: str, body: str, *, name: str = "") -> str:
    """A part of the page under a heading; `name` makes it a target of links."""
    anchor = f' id="{escaped(name)}"' if name else ""
    return f"<section{anchor}><h2>{escaped(title)}</h2>{body}</section>"


def facts(told: Mapping[str, str | tuple[str, str]]) -> str:
    """A few numbers that the page begins with: each a name and a value, or a value with a remark below it."""
    cards: list[str] = []
    for name, value in told.items():
        shown, remark = (value, "") if isinstance(value, str) else value
        small = f"<small>{escaped(remark)}</small>" if remark else ""
        cards.append(f"<div><dt>{escaped(name)}</dt><dd>{escaped(shown)}{small}</dd></div>")
    return f'<dl class="facts">{"".join(cards)}</dl>'


def banner(kind: str, title: str, words: str) -> str:
    """What a reader must not miss; `kind` is `good`, `warn` or `bad`."""
    return (
        f'<div class="banner {kind}" '
        f'role="note"><strong>{escaped(title)}</strong><p>{escaped(words)}</p></div>'
    )


def details(summary: str, body: str) -> str:
    """What is folded away under a line that opens it; no script is needed."""
    return f"<details><summary>{escaped(summary)}</summary>{body}</details>"


def glossary(words: Mapping[str, str]) -> str:
    """The part "What these words mean"."""
    entries = "".join(f"<dt>{escaped(word)}</dt><dd>{escaped(said)}</dd>" for word, said in words.items())
    return section("What these words mean", f'<dl class="words">{entries}</dl>', name="words")


class CellMarkup(str):
    """A table's cell that is markup already, made by a function of this package."""


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Iterable[int] = (),
    words: str,
    stack: bool = False,
    short: Sequence[str] = (),
    bad: frozenset[int] = frozenset(),
) -> str:
    """A table in a box of its own, which scrolls where the page is too narrow for it.

    The first column heads its row. `numbers` are the columns that are aligned to the right; a `CellMarkup` is
    taken as markup, any other text is escaped. With `stack` a row becomes a block of lines at the width of a
    telephone, each after the head of its column, or after its name in `short`. `words` say to a screen reader
    what the box holds, `bad` are numbers of rows to be marked.
    """
    right = frozenset(numbers)
    kinds = [' class="number"' if place in right else "" for place in range(len(head))]
    top = "".join(
        f'<th scope="col"{kind}>{_shown(name)}</th>' for kind, name in zip(kinds, head, strict=True)
    )
    names = short or [_plain(name) for name in head]
    lines: list[str] = []
    for line, row in enumerate(rows):
        cells: list[str] = []
        for place, (kind, name, value) in enumerate(zip(kinds, names, row, strict=True)):
            tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
            label = f' data-label="{escaped(name)}"' if stack and place else ""
            cells.append(f"<{tag}{scope}{kind}{label}>{_shown(value)}</{tag}>")
        lines.append(f"<tr{_class('bad' if line in bad else '')}>{''.join(cells)}</tr>")
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escaped(words)}">'
        f"<table{_class('stack' if stack else '')}><thead><tr>{top}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def figure(body: str, label: str = "", remark: str = "", *, wide: bool = False) -> str:
    """A drawing under its name; a `wide` one keeps its size and scrolls in a box of its own."""
    small = f" <span>{escaped(remark)}</span>" if remark else ""
    caption = f"<figcaption>{escaped(label)}{small}</figcaption>" if label or remark else ""
    held = f'<div class="scroll" role="region" tabindex="0" aria-label="{escaped(label)}">{body}</div>'
    return f"<figure>{caption}{held if wide else body}</figure>"


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """Swatches (markup) with the words that say what they stand for."""
    items = "".join(f"<li>{swatch}{escaped(words)}</li>" for swatch, words in entries)
    return f'<ul class="legend">{items}</ul>'


def many(count: int, what: str, plural: str = "") -> str:
    """A number of things in words: `1 step`, `3 steps`.

    >>> many(1, "entry", "entries"), many(1200, "entry", "entries")
    ('1 entry', '1,200 entries')
    """
    return f"{count:,} {what if count == 1 else plural or what + 's'}"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _shown(value: str) -> str:
    return str(value) if isinstance(value, CellMarkup) else escaped(value)


def _plain(value: str) -> str:
    """The words of a head that may be markup."""
    return re.sub(r"<[^>]*>", "", value) if isinstance(value, CellMarkup) else value
