"""Write the table of mechanisms in docs/mechanisms.md anew, from their cards: `make tables`."""

from __future__ import annotations

from pathlib import Path

from understudy.mechanism.cards import table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "mechanisms.md"
BEGIN = "<!-- The mechanisms, by their cards: written by `make tables`. -->\n\n"
END = "\n<!-- The end of the mechanisms. -->\n"


def with_table(text: str) -> str:
    """The text with the current table between the marks; ValueError if they are not there."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
