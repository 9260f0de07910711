"""Drawings of the server's pages that no other page has: a budget as one bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from understudy.pages.markup import escaped
from understudy.pages.svg import rectangle
from understudy.server.pages import words

WIDTH, HEIGHT = 600.0, 22.0


def budget_bar(budget: Mapping[str, Any]) -> str:
    """A budget as a bar: what the visitor spent, what others spent, and what is left."""
    mine, others = float(budget["yours"]["spent"]["share"]), float(budget["others_spent"]["share"])
    left = float(budget["left"]["share"])
    said = (
        f"Of the whole budget you spent {words.part(mine)}, others spent {words.part(others)}, "
        f"and {words.left(left)} is left."
    )
    drawn = [rectangle(0, 0, WIDTH, HEIGHT, "left")]
    at = 0.0
    for share, kind in ((mine, "mine"), (others, "others")):
        width = max(share * WIDTH, 2.0 if share > 0 else 0.0)  # what was spent is seen, however little
        drawn.append(rectangle(at, 0, min(width, WIDTH - at), HEIGHT, kind))
        at += width
    return (
        f'<svg class="budget-bar" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(said)}">{"".join(drawn)}</svg>'
    )
