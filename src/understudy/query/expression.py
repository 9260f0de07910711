"""The small question language: ``count age < 30 and sex = F by district``.

    question    = ("count" | "share") [condition] ["by" attribute {"," attribute}]
                | "rate" condition "within" attribute {"," attribute}
    condition   = and/or/not over comparisons, with parentheses
    comparison  = attribute (= | != | < | <= | > | >=) value
                | attribute ["not"] "in" "(" value {"," value} ")"
                | attribute ["not"] "between" value "and" value
                | attribute "is" ["not"] "null"

Attributes with unusual names are quoted with double quotes, values with single ones. A condition is evaluated on
the public cells of the attributes it names, never on rows; like in SQL a comparison with a missing value is
neither true nor false, and only rows for which the condition is true are counted.

A count is of people, and a share is of all rows of the table, also where there are groups: the shares of all
groups together are that of the condition. A rate is of the rows of its own group: ``rate smoker = true within
district`` is, for each district, the part of its people who smoke.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import NoReturn

import numpy as np

from understudy.domain.attribute import COMPARISONS, Attribute, Categories, Mask, Value, as_asked
from understudy.domain.domain import Clique, Domain
from understudy.errors import DomainError, QueryError, TooLargeError
from understudy.query.linear import Factor, LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.text_size import USUAL, TextSize

MAX_DEPTH = 50
MAX_REGION = 1 << 22
"""Cells over which a condition that is not a conjunction may be spread."""

MAX_WORK = 1 << 26
"""Cells that the comparisons of one question may touch, counted as often as they are touched."""

AGGREGATES = ("count", "share", "rate")

MEASURED = ("avg", "average", "covariance", "mean", "median", "quantile", "stddev", "sum", "variance")
"""Words that begin a question about measures (`measure_words`)."""

SQL_ONLY = (*MEASURED, "max", "min", "percentile")
"""Words with which people begin what is asked in SQL."""

NEAR = 0.7
"""How alike a first word must be to one of the language for that to be what was meant."""

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<date>\d{4}-\d\d-\d\d(?![\w.]))
      | (?P<number>[+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<value>'(?:[^']|'')*')
      | (?P<name>"(?:[^"]|"")*")
      | (?P<symbol>!=|<>|<=|>=|==|[=<>(),])
      | (?P<word>[^\s'"=<>!(),]+)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Question:
    """A parsed question: how many rows, what share of all rows, or what rate of a group's rows, in each cell.

    `others` counts the rows of the same cells that do not meet the condition: a rate needs both, and they are
    different people. It is None for counts and shares.
    """

    text: str
    aggregate: str
    marginal: Marginal
    others: Marginal | None = None


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A word of the question, and what kind of word it is."""

    kind: str
    text: str
    position: int


@dataclass(frozen=True)
class Region:
    """Where a condition holds, over the cells of a clique."""

    clique: Clique
    mask: Mask


def parse(text: str, domain: Domain, *, size: TextSize = USUAL) -> Question:
    """A question about `domain`, or a `QueryError` that says what to write instead. Reads no data.

    >>> from understudy.domain.attribute import Categories

    >>> from understudy.domain.bins import Bins
    >>> domain = Domain((Bins.between("age", [0, 18, 65, 120]), Categories(name="sex", values=("F", "M"))))
    >>> parse("count age < 18 by sex", domain).marginal.by
    ('sex',)
    >>> parse("count age < 17", domain)
    Traceback (most recent call last):
    understudy.errors.QueryError: 17 is not a bin edge of age; nearest: 0 and 18: try age < 0 or age < 18
    """
    size.check(text)
    return _Parser(text, domain, size).question()


def _tokens(text: str) -> list[Lexeme]:
    tokens: list[Lexeme] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise QueryError(
                f"cannot read the question from here: {text[position : position + 30]!r}",
                remedy="is a quote open?" if text[position:].lstrip()[:1] in ("'", '"') else "",
            )
        tokens.append(Lexeme(match.lastgroup, match.group(match.lastgroup), match.start(match.lastgroup)))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent. Conditions become linear queries as they are read."""

    def __init__(self, text: str, domain: Domain, size: TextSize) -> None:
        self.text = text
        self.domain = domain
        self.tokens = _tokens(text)
        size.check_words(len(self.tokens))
        self.at = 0
        self.depth = 0
        self._work = 0

    # ---- reading tokens

    def _peek(self, *words: str) -> bool:
        """Whether the next token is one of the given keywords or symbols."""
        if self.at >= len(self.tokens):
            return False
        token = self.tokens[self.at]
        return token.kind in ("word", "symbol") and token.text.lower() in words

    def _take(self, *words: str) -> str | None:
        if not self._peek(*words):
            return None
        self.at += 1
        return self.tokens[self.at - 1].text.lower()

    def _expect(self, word: str) -> None:
        if self._take(word) is None:
            self._fail(f"expected {word!r}")

    def _fail(
        self,
        problem: str,
        remedy: str = "a question reads: count age < 30 and sex = F by district",
        suggestions: Sequence[str] = (),
    ) -> NoReturn:
        where = repr(self.tokens[self.at].text) if self.at < len(self.tokens) else "the end"
        raise QueryError(f"{problem} at {where}", remedy=remedy, suggestions=suggestions)

    # ---- grammar

    def question(self) -> Question:
        aggregate = self._take(*AGGREGATES)
        if aggregate is None:
            if self._peek("max", "min"):
                self._fail(
                    "a question starts with count, share or rate",
                    "the largest and the smallest value hang on single rows, which are private; quantiles come "
                    "close, in SQL: SELECT quantile_disc(age, 0.99) FROM … (the name of the table)",
                )
            if self._peek(*SQL_ONLY):
                self._fail(
                    "a question starts with count, share or rate",
                    "averages, sums and quantiles are asked in SQL: SELECT avg(age), median(age) FROM … (the name "
                    "of the table)",
                )
            begun = "a question starts with count, share or rate"
            word = self.tokens[0].text.lower()[:60] if self.tokens else ""
            if close := difflib.get_close_matches(word, [*AGGREGATES, *MEASURED], cutoff=NEAR):
                self._fail(begun, f"did you mean {close[0]}?", close)
            self._fail(begun)
        regions: list[Region] = []
        if self.at < len(self.tokens) and not self._peek("by", "within"):
            self._take("where")
            regions = self._condition(negated=False)
        by = self._groups("within" if aggregate == "rate" else "by")
        marginal = Marginal(self.domain, by, self._all_of(regions))
        others = self._others(regions, by) if aggregate == "rate" else None
        return Question(self.text.strip(), aggregate, marginal, others)

    def _groups(self, word: str) -> tuple[str, ...]:
        """The attributes after ``by`` or, of a rate, ``within``; a rate must have some."""
        other = "by" if word == "within" else "within"
        if self._peek(other):
            raise QueryError(
                "a rate is of the rows of its group: write rate smoker = true within district"
                if word == "within"
                else "count and share have groups after by; for the part of each group's own rows write rate "
                "smoker = true within district"
            )
        by: list[str] = []
        if self._take(word):
            by.append(self._attribute())
            while self._take(","):
                by.append(self._attribute())
        elif word == "within":
            raise QueryError(
                "a rate is of the rows of a group, after within: rate smoker = true within district",
                remedy="what part of all rows meets a condition is a share: share smoker = true",
            )
        if twice := [name for i, name in enumerate(by) if name in by[:i]]:
            raise QueryError(f"{twice[0]} is named twice after {word}", remedy="name it once")
        if self.at < len(self.tokens):
            self._fail(f"expected 'and', 'or', {word!r} or the end")
        return tuple(by)

    def _others(self, regions: list[Region], by: tuple[str, ...]) -> Marginal:
        """The rows of each group that do not meet a rate's condition, missing values among them."""
        if not regions:
            raise QueryError("a rate needs a condition: rate smoker = true within district")
        whole = self._both(regions)
        left = LinearQuery(self.domain, (Factor(whole.clique, (~whole.mask.true).astype(np.float64)),))
        return Marginal(self.domain, by, left)

    def _all_of(self, regions: list[Region]) -> LinearQuery:
        """A conjunction of regions, kept apart where they touch different attributes."""
        held = [
            LinearQuery(self.domain, (Factor(region.clique, region.mask.true.astype(np.float64)),))
            for region in regions
        ]
        return reduce(and_, held) if held else LinearQuery.everyone(self.domain)

    def _condition(self, *, negated: bool, words: tuple[str, ...] = ("or", "and")) -> list[Region]:
        """A condition, as a list of regions that must all hold: parts linked by the first of the `words`.

        The parts themselves are linked by the others, which bind more tightly. `not` is pushed inwards (De
        Morgan), so that parts which are linked by and in the end just make the list longer; linked by or, they are
        spread over their common clique.
        """
        if not words:
            return self._negation(negated=negated)
        joined = (words[0] == "and") != negated
        regions = self._condition(negated=negated, words=words[1:])
        while self._take(words[0]):
            more = self._condition(negated=negated, words=words[1:])
            regions = regions + more if joined else [self._either(self._both(regions), self._both(more))]
        return regions

    def _negation(self, *, negated: bool) -> list[Region]:
        if self._take("not"):
            return self._deeper(lambda: self._negation(negated=not negated))
        if self._take("("):
            regions = self._deeper(lambda: self._condition(negated=negated))
            self._expect(")")
            return regions
        region = self._comparison()
        return [Region(region.clique, ~region.mask) if negated else region]

    def _deeper(self, read: Callable[[], list[Region]]) -> list[Region]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise QueryError(f"parentheses and not may be nested {MAX_DEPTH} deep")
        regions = read()
        self.depth -= 1
        return regions

    def _comparison(self) -> Region:
        name = self._attribute()
        attribute = self.domain[name]
        self._spend(attribute.size)
        if self._take("is"):
            negated = self._take("not") is not None
            self._expect("null")
            return Region((name,), ~attribute.is_null() if negated else attribute.is_null())
        negated = self._take("not") is not None
        if self._take("in"):
            mask = self._membership(attribute)
        elif self._take("between"):
            low = self._value(attribute)
            self._expect("and")
            mask = attribute.compare(">=", low) & attribute.compare("<=", self._value(attribute))
        elif not negated and self._peek(*COMPARISONS, "==", "<>"):
            symbol = self.tokens[self.at].text
            self.at += 1
            mask = attribute.compare({"==": "=", "<>": "!="}.get(symbol, symbol), self._value(attribute))
        else:
            self._fail(f"expected a comparison of {name}")
        return Region((name,), ~mask if negated else mask)

    def _membership(self, attribute: Attribute) -> Mask:
        self._expect("(")
        mask = attribute.compare("=", self._value(attribute))
        while self._take(","):
            self._spend(attribute.size)
            mask = mask | attribute.compare("=", self._value(attribute))
        self._expect(")")
        return mask

    def _attribute(self) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at].kind not in ("word", "name"):
            self._fail("expected an attribute")
        token = self.tokens[self.at]
        name = token.text[1:-1].replace('""', '"') if token.kind == "name" else token.text
        try:
            name = self.domain[name].name
        except DomainError as error:
            if whole := self._words_of(self.domain.names):
                raise QueryError(
                    f"{whole} is a name of several words", remedy=f"write {as_asked(whole)} in double quotes"
                ) from None
            raise QueryError(error.problem, remedy=error.remedy, suggestions=error.suggestions) from None
        self.at += 1
        return name

    def _value(self, attribute: Attribute) -> Value:
        if self.at >= len(self.tokens) or self.tokens[self.at].kind == "symbol":
            self._fail("expected a value")
        token = self.tokens[self.at]
        if token.kind == "name":
            self._fail_quoted(token.text)
        if token.kind == "word" and isinstance(attribute, Categories):
            self._check_quoted(attribute)
        self.at += 1
        if token.kind == "value":
            return token.text[1:-1].replace("''", "'")
        if token.kind == "date":
            try:
                return dt.date.fromisoformat(token.text)
            except ValueError:
                raise QueryError(f"{token.text} is not a day of the calendar") from None
        if token.kind == "number":
            plain = token.text.replace("_", "")
            if len(plain) > 300:
                raise QueryError("a number may have 300 characters")
            if isinstance(attribute, Categories) and re.match("0[0-9]", plain):
                return token.text  # a code such as 01067, which is another one without its zero
            return int(plain) if re.fullmatch(r"[+-]?\d+", plain) else float(plain)
        return token.text

    def _words_of(self, known: Sequence[str]) -> str:
        """The longest of the known texts of several words that stands here without quotes, or nothing."""
        rest = self.text[self.tokens[self.at].position :]
        here = (text for text in known if " " in text and rest.startswith(text))
        whole = max(here, key=len, default="")
        return whole if re.match(r"\w", rest[len(whole) :]) is None else ""

    def _check_quoted(self, attribute: Categories) -> None:
        """Refuse a declared value of several words without quotes, unless its first word is a value as well."""
        if attribute.proper_code(self.tokens[self.at].text) is None and (
            whole := self._words_of(attribute.values)
        ):
            single = "'" + whole.replace("'", "''") + "'"
            raise QueryError(
                f"{whole} is a value of several words", remedy=f"write {single} in single quotes"
            )

    def _fail_quoted(self, written: str) -> NoReturn:
        """Somebody wrote a value as other languages do."""
        text = written[1:-1].replace('""', '"')
        single = "'" + text.replace("'", "''") + "'"
        bare = f", or without any: {text}" if re.fullmatch(r"[^\s'\"=<>!(),]+", text) else ""
        raise QueryError(
            f"double quotes name an attribute; write the value {written} in single quotes: {single}{bare}"
        )

    # ---- regions

    def _both(self, regions: list[Region]) -> Region:
        whole = regions[0]
        for region in regions[1:]:
            clique = self._union(whole, region)
            whole = Region(clique, self._spread(whole, clique) & self._spread(region, clique))
        return whole

    def _either(self, one: Region, other: Region) -> Region:
        clique = self._union(one, other)
        return Region(clique, self._spread(one, clique) | self._spread(other, clique))

    def _union(self, one: Region, other: Region) -> Clique:
        clique = self.domain.clique({*one.clique, *other.clique})
        if (cells := self.domain.size(clique)) > MAX_REGION:
            raise TooLargeError("a condition with `or` over these attributes", cells=cells, limit=MAX_REGION)
        return clique

    def _spend(self, cells: int) -> None:
        """Take note of the cells that are touched; refuse when there were too many."""
        self._work += cells
        if self._work > MAX_WORK:
            raise QueryError(
                "the question is too much work over so many cells", remedy="ask about fewer attributes"
            )

    def _spread(self, region: Region, clique: Clique) -> Mask:
        self._spend(self.domain.size(clique))
        sizes = [self.domain[name].size if name in region.clique else 1 for name in clique]
        shape = self.domain.shape(clique)
        return Mask(
            np.broadcast_to(region.mask.true.reshape(sizes), shape),
            np.broadcast_to(region.mask.false.reshape(sizes), shape),
        )
