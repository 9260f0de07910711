"""How long the text of a question may be. Longer ones are refused before any parser sees them."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.errors import ParameterError, TooLongError

MAX_CHARACTERS = 10_000
"""Characters of a question, in the small language or as SQL."""

MAX_WORDS = 2_000
"""Words of a question: names, numbers, texts, operators, parentheses and commas."""


@dataclass(frozen=True, slots=True)
class TextSize:
    """How many `characters` and `words` a question may have: 10,000 and 2,000 by default.

    Time and memory to read one grow with it; a server keeps to the usual size. Raises a `ParameterError` where
    either is below 1.
    """

    characters: int = MAX_CHARACTERS
    words: int = MAX_WORDS

    def __post_init__(self) -> None:
        if self.characters < 1 or self.words < 1:
            raise ParameterError("a question may have at least one character and one word")

    def check(self, text: str) -> None:
        """Refuse a `text` with too many characters, with a `TooLongError`."""
        if len(text) > self.characters:
            raise TooLongError(
                f"a question may have {self.characters:,} characters, not {len(text):,}",
                remedy="ask in several questions",
                limit=self.characters,
            )

    def check_words(self, words: int) -> None:
        """Refuse a question of so many `words`, with a `TooLongError`, before anything is made of them."""
        if words > self.words:
            raise TooLongError(
                f"a question may have {self.words:,} words, not {words:,}",
                remedy="ask in several questions",
                limit=self.words,
            )


USUAL = TextSize()
"""The size that questions have unless a program allows more."""
