"""The words of SQL text as Postgres cuts them: enough to tell statements apart and to read short commands.

SELECT statements are read by a parser; here only quotes, comments and semicolons matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from understudy.server.pg.states import Refusal

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*)
  | (?P<comment>/\*)
  | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*')
  | (?P<string>(?:[uUbBxXnN]&?)?'(?:[^']|'')*')
  | (?P<name>"(?:[^"]|"")*")
  | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$)
  | (?P<parameter>\$\d+)
  | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d][\w$]*)
  | (?P<end>;)
  | (?P<broken>['"])
  | (?P<mark>::|<=|>=|<>|!=|\|\||.)
    """,
    re.X | re.S,
)
MOST_TEXT = 100_000
"""Characters of a text of several statements; each statement has its own, smaller limit."""

_COMMENT = re.compile(r"/\*|\*/")

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class SqlWord(NamedTuple):
    """A word or mark: its kind, its text as it is written, and where it begins and ends."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """A word in capitals; empty for all that is no bare word."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def value(self) -> str:
        """What the token means: a name or a text without its quotes, a bare word in small letters."""
        if self.kind == "string":
            return self.text[self.text.index("'") + 1 : -1].replace("''", "'")
        if self.kind == "escaped":
            inner = self.text[2:-1].replace("''", "'")
            return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), inner, flags=re.S)
        if self.kind == "name":
            return self.text[1:-1].replace('""', '"')
        if self.kind == "dollar":
            mark = self.text.index("$", 1) + 1
            return self.text[mark:-mark]
        return self.text.lower() if self.kind == "word" else self.text


def tokens_of(text: str) -> Iterator[SqlWord]:
    """The words of a text without spaces and comments; a `Refusal` 42601 where a quote or comment is open."""
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        assert found is not None  # the last alternative takes any character
        kind = found.lastgroup or ""
        if kind == "comment":
            place = _comment_end(text, found.end())
            continue
        end = found.end()
        if kind == "dollar":  # the rule above finds its opening tag; each text is searched for its end once
            closing = text.find(found[0], end)
            kind, end = ("dollar", closing + len(found[0])) if closing >= 0 else ("broken", end)
        if kind == "broken":
            raise Refusal(
                "42601",
                "a quote is not closed",
                hint="A text stands in single quotes, a name in double quotes; '' is a quote in a text.",
                position=place + 1,
            )
        if kind != "space":
            yield SqlWord(kind, text[place:end], place, end)
        place = end


def _comment_end(text: str, place: int) -> int:
    """Where a comment ends; Postgres' comments contain others."""
    depth = 1
    while depth:
        found = _COMMENT.search(text, place)
        if found is None:
            raise Refusal("42601", "a comment is not closed", hint="Close it with */", position=place)
        depth += 1 if found[0] == "/*" else -1
        place = found.end()
    return place


def check_length(characters: int) -> None:
    """A `Refusal` 54000 for a text of so many characters that cutting it into words takes long."""
    if characters > MOST_TEXT:
        raise Refusal(
            "54000",
            f"the statement has {characters:,} characters; at most {MOST_TEXT:,} are read",
            hint="Ask several shorter questions.",
        )


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement: its text from the first word to the last, and its words."""

    text: str
    tokens: tuple[SqlWord, ...]

    def after(self, number: int) -> str:
        """The text from the word of this number on."""
        return self.text[self.tokens[number].start :] if number < len(self.tokens) else ""

    def rest(self, number: int) -> StatementText:
        """The statement from the word of this number on."""
        if number >= len(self.tokens):
            return StatementText("", ())
        return self.part(number, len(self.tokens))

    def part(self, begin: int, end: int) -> StatementText:
        """The words from `begin` up to `end`, as a statement of their own."""
        if begin >= end:
            return StatementText("", ())
        start = self.tokens[begin].start
        moved = tuple(SqlWord(t.kind, t.text, t.start - start, t.end - start) for t in self.tokens[begin:end])
        return StatementText(self.text[start : self.tokens[end - 1].end], moved)


def statements_of(text: str) -> list[StatementText]:
    """The statements of a text, without the empty ones."""
    found: list[StatementText] = []
    begun: list[SqlWord] = []
    for token in (*tokens_of(text), SqlWord("end", ";", len(text), len(text))):
        if token.kind != "end":
            begun.append(token)
        elif begun:
            found.append(StatementText(text, tuple(begun)).part(0, len(begun)))
            begun = []
    return found
