"""The pictures of the server's pages in the documentation, taken anew in Chromium from an invented town.

make screenshots          writes docs/pictures/*.png
"""

from __future__ import annotations

import sys
import tempfile
from fractions import Fraction
from pathlib import Path

from browsers import Watched, chromium, chromium_program
from served_town import ServedTown, live, served_town

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
PEOPLE = 100_000
ALPHA = Fraction(1, 200)

DESK = {"viewport": {"width": 1080, "height": 700}, "color_scheme": "light"}
PHONE = {"viewport": {"width": 390, "height": 780}, "color_scheme": "dark"}

SHOTS: dict[str, tuple[str, str, str, int]] = {
    "server-table": ("ada", "http", "/tables/town", 900),
    "server-history": ("ada", "http", "/history", 560),
    "server-release": ("ada", "http", "/releases/2026-spring", 900),
    "server-board": ("ada", "http", "/boards/chronic", 900),
    "server-ledger": ("olga", "http", "/ledger?verify=1", 900),
    "server-approvals": ("carl", "admin", "/", 860),
}
"""By the name of the picture: who looks, at which door, where, and how many pixels of the page are shown."""

QUESTION = "count age < 30 by district"


def take(town: ServedTown) -> list[Path]:
    """Take every picture; returns the files."""
    taken: list[Path] = []

    def shot(watched: Watched, name: str, height: int) -> None:
        path = PICTURES / f"{name}.png"
        whole = watched.page.evaluate("document.documentElement.scrollHeight")
        width = watched.page.viewport_size["width"]  # pyright: ignore[reportOptionalSubscript]
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, whole)}
        watched.page.screenshot(path=path, clip=clip, full_page=True)  # pyright: ignore[reportArgumentType]
        taken.append(path)

    with chromium() as browser:
        for name, given, height in (("server-ask", DESK, 1010), ("server-ask-phone", PHONE, 1240)):
            watched = Watched(browser, town, "ada", **given)
            page = watched.go("/tables/town/ask")
            page.fill("#question", QUESTION)
            page.click("#ask button.main")
            page.wait_for_selector("#answer table")
            page.wait_for_selector("#price:not(.asking) strong")
            page.evaluate("document.activeElement.blur()")
            shot(watched, name, height)
        for name, (who, door, path, height) in SHOTS.items():
            watched = Watched(browser, town, who, door, **DESK)
            watched.go(path)
            shot(watched, name, height)
    return taken


def main() -> int:
    if chromium_program() is None:
        sys.stderr.write("no Chromium is installed: apt-get install chromium\n")
        return 1
    with tempfile.TemporaryDirectory() as folder, served_town(Path(folder), rows=PEOPLE, alpha=ALPHA) as town:
        live(town)
        for path in take(town):
            size = path.stat().st_size // 1024
            sys.stdout.write(f"{path.relative_to(PICTURES.parent.parent)}  {size} KB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
