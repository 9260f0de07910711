"""Statements about the connection itself as plain values: SET, FETCH, DECLARE, COPY, EXPLAIN and others."""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.server.pg.lexer import SqlWord, StatementText
from understudy.server.pg.states import Refusal


def syntax(token: SqlWord | None) -> Refusal:
    """The refusal of a command that cannot be read."""
    if token is None:
        return Refusal("42601", "syntax error at end of input")
    return Refusal("42601", f'syntax error at or near "{token.text[:60]}"', position=token.start + 1)


class CommandWords:
    """The words of a command, taken one after the other."""

    def __init__(self, statement: StatementText, place: int = 1) -> None:
        self.statement = statement
        self.place = place

    @property
    def next(self) -> SqlWord | None:
        tokens = self.statement.tokens
        return tokens[self.place] if self.place < len(tokens) else None

    def has(self, *words: str) -> bool:
        """Take these words if they come next."""
        tokens = self.statement.tokens[self.place : self.place + len(words)]
        if tuple(token.upper or token.text for token in tokens) == words:
            self.place += len(words)
            return True
        return False

    def one_of(self, *words: str) -> str:
        """Take one of these words, and return it; empty where another comes next."""
        return next((word for word in words if self.has(word)), "")

    def name(self) -> str:
        token = self.next
        if token is None or token.kind not in ("word", "name"):
            raise syntax(token)
        self.place += 1
        return token.value

    def number(self) -> int | None:
        """Take a whole number with its sign, if one comes next."""
        before = self.place
        sign = -1 if self.has("-") else 1
        self.has("+")
        token = self.next
        if token is not None and token.kind == "number" and token.text.isdecimal() and len(token.text) <= 10:
            self.place += 1
            return sign * int(token.text)
        self.place = before
        return None

    def rest(self) -> StatementText:
        return self.statement.rest(self.place)

    def end(self) -> None:
        if self.next is not None:
            raise syntax(self.next)


@dataclass(frozen=True, slots=True)
class SetSetting:
    """SET: a setting's name and its value, None for its default; `local` lasts until the transaction's end."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH or MOVE: which rows of a cursor. `how` is relative, absolute, forward or backward; None is all."""

    cursor: str
    how: str
    count: int | None
    moves: bool


@dataclass(frozen=True, slots=True)
class Declare:
    """DECLARE: a cursor's name, its query, and whether it outlives the transaction and sends binary values."""

    name: str
    query: StatementText
    hold: bool
    binary: bool


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """How COPY writes rows."""

    format: str = "text"
    header: bool = False
    delimiter: str = ""
    null: str | None = None
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] | None = field(default=())


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN: the statement, the format of what is told, and whether it asked to be executed."""

    query: StatementText
    format: str
    analyze: bool


_SPECIAL = {
    ("TIME", "ZONE"): "timezone",
    ("NAMES",): "client_encoding",
    ("SESSION", "AUTHORIZATION"): "session_authorization",
    ("TRANSACTION", "ISOLATION", "LEVEL"): "transaction_isolation",
}


def setting_name(words: CommandWords) -> str:
    """A setting's name, as SET, SHOW and RESET write it."""
    for special, name in _SPECIAL.items():
        if words.has(*special):
            return name
    name = words.name()
    while words.has("."):
        name += "." + words.name()
    return name.lower()


def read_set(statement: StatementText) -> SetSetting | None:
    """A SET; None where it sets the mode of transactions, which is read only whatever is said."""
    words = CommandWords(statement)
    if words.has("TRANSACTION") or words.has("SESSION", "CHARACTERISTICS"):
        return None
    local = words.has("LOCAL")
    if not local and not CommandWords(statement).has("SESSION", "AUTHORIZATION"):
        words.has("SESSION")
    name = setting_name(words)
    values: list[str] = []
    if not (words.has("=") or words.has("TO")) and name not in _SPECIAL.values() and name != "role":
        raise syntax(words.next)
    while words.next is not None:
        if words.has(","):
            continue
        sign = "-" if words.has("-") else ""
        token = words.next
        if token is None or token.kind not in ("word", "string", "escaped", "number", "name", "dollar"):
            raise syntax(token)
        values.append(sign + (token.value if token.kind != "word" else token.text))
        words.place += 1
    if not values and name != "client_encoding":
        raise syntax(None)
    default = [value.upper() for value in values] == ["DEFAULT"] or (
        name == "timezone" and values == ["LOCAL"]
    )
    return SetSetting(name, None if default else ", ".join(values), local=local)


_DIRECTIONS = {
    "NEXT": ("forward", 1),
    "PRIOR": ("backward", 1),
    "FIRST": ("absolute", 1),
    "LAST": ("absolute", -1),
}


def read_fetch(statement: StatementText, *, moves: bool) -> Fetch:
    """A FETCH or, where it `moves`, a MOVE."""
    words = CommandWords(statement)
    word = words.one_of(*_DIRECTIONS, "ABSOLUTE", "RELATIVE", "FORWARD", "BACKWARD", "ALL")
    how, count = "forward", 1
    if word in _DIRECTIONS:
        how, count = _DIRECTIONS[word]
    elif word == "ALL":
        count = None
    elif word in ("ABSOLUTE", "RELATIVE"):
        how, count = word.lower(), words.number()
        if count is None:
            raise syntax(words.next)
    elif word:
        how = word.lower()
        count = None if words.has("ALL") else words.number() or 1
    elif (number := words.number()) is not None:
        count = number
    words.one_of("FROM", "IN")
    if how in ("forward", "backward") and count is not None and count < 0:
        how, count = ("backward" if how == "forward" else "forward"), -count
    found = Fetch(words.name(), how, count, moves)
    words.end()
    return found


def read_declare(statement: StatementText) -> Declare:
    """A DECLARE … CURSOR."""
    words = CommandWords(statement)
    name, binary, hold = words.name(), False, False
    while not words.has("CURSOR"):
        word = words.one_of("BINARY", "INSENSITIVE", "ASENSITIVE", "NO", "SCROLL")
        if not word:
            raise syntax(words.next)
        binary = binary or word == "BINARY"
    if words.has("WITH", "HOLD"):
        hold = True
    else:
        words.has("WITHOUT", "HOLD")
    if not words.has("FOR"):
        raise syntax(words.next)
    return Declare(name, words.rest(), hold, binary)


_FLAGS = {"TRUE": True, "ON": True, "1": True, "FALSE": False, "OFF": False, "0": False}


def read_explain(statement: StatementText) -> Explain:
    """An EXPLAIN with its options; those about plans, which there are none of, are passed over."""
    words = CommandWords(statement)
    form, analyze = "text", False
    if words.has("("):
        while not words.has(")"):
            name, value = words.name().upper(), words.next
            if value is not None and value.text not in (",", ")"):
                words.place += 1
            said = "" if value is None or value.text in (",", ")") else value.value
            if name == "FORMAT":
                form = said.lower()
            elif name == "ANALYZE":
                analyze = _FLAGS.get(said.upper(), True)
            words.has(",")
            if words.next is None:
                raise syntax(None)
    else:
        while word := words.one_of("ANALYZE", "ANALYSE", "VERBOSE"):
            analyze = analyze or word != "VERBOSE"
    if form not in ("text", "json"):
        raise Refusal("0A000", f"EXPLAIN has no format {form[:20]}", hint="Take FORMAT TEXT or FORMAT JSON.")
    return Explain(words.rest(), form, analyze)


def read_copy(statement: StatementText) -> tuple[StatementText, CopyOptions]:
    """COPY (query) TO STDOUT with its options; every other COPY is refused."""
    words = CommandWords(statement)
    if not words.has("("):
        raise Refusal(
            "0A000",
            "COPY of a table is not answered: its rows are private",
            hint="COPY (SELECT district, count(*) FROM town GROUP BY district) TO STDOUT",
        )
    begin, depth = words.place, 1
    while depth:
        token = words.next
        if token is None:
            raise syntax(None)
        depth += (token.text == "(") - (token.text == ")")
        words.place += 1
    query = statement.part(begin, words.place - 1)
    if not words.has("TO", "STDOUT"):
        raise Refusal(
            "25006",
            "COPY sends rows to the client and nowhere else",
            hint="COPY (SELECT …) TO STDOUT; in psql, \\copy writes a file of yours.",
        )
    words.one_of("WITH")
    given = _copy_list(words) if words.has("(") else _copy_words(words)
    words.end()
    return query, _copy_options(given)


def _copy_list(words: CommandWords) -> dict[str, str | tuple[str, ...]]:
    """The options of `COPY … (FORMAT csv, HEADER)`."""
    given: dict[str, str | tuple[str, ...]] = {}
    while not words.has(")"):
        name, token = words.name().upper(), words.next
        if token is None:
            raise syntax(None)
        if token.text == "(":
            words.place += 1
            names: list[str] = []
            while not words.has(")"):
                names.append(words.name())
                words.has(",")
            given[name] = tuple(names)
        elif token.text in (",", ")"):
            given[name] = "TRUE"
        else:
            given[name] = token.value
            words.place += 1
        words.has(",")
    return given


def _copy_words(words: CommandWords) -> dict[str, str | tuple[str, ...]]:
    """The options of `COPY … WITH CSV HEADER`, as they were written before Postgres 9."""
    given: dict[str, str | tuple[str, ...]] = {}
    while words.next is not None:
        if words.has("BINARY"):
            given["FORMAT"] = "binary"
        elif words.has("CSV"):
            given["FORMAT"] = "csv"
        elif words.has("HEADER"):
            given["HEADER"] = "TRUE"
        elif words.has("FORCE", "QUOTE"):
            names: list[str] = []
            while words.next is not None and (words.has("*") or words.next.kind in ("word", "name")):
                names.append(words.name() if words.statement.tokens[words.place - 1].text != "*" else "*")
                words.has(",")
            given["FORCE_QUOTE"] = "*" if names == ["*"] else tuple(names)
        elif word := words.one_of("DELIMITER", "NULL", "QUOTE", "ESCAPE"):
            words.one_of("AS")
            token = words.next
            if token is None:
                raise syntax(None)
            given[word] = token.value
            words.place += 1
        else:
            raise syntax(words.next)
    return given


def _copy_options(given: dict[str, str | tuple[str, ...]]) -> CopyOptions:
    known = {"FORMAT", "HEADER", "DELIMITER", "NULL", "QUOTE", "ESCAPE", "FORCE_QUOTE", "ENCODING"}
    for name in given:
        if name not in known:
            raise Refusal(
                "0A000", f"COPY … TO STDOUT has no option {name[:30]}", hint=", ".join(sorted(known))
            )
    form = str(given.get("FORMAT", "text")).lower()
    if form not in ("text", "csv", "binary"):
        raise Refusal("22023", f"COPY has no format {form[:20]}", hint="Take text, csv or binary.")
    marks = {name: str(given[name]) for name in ("DELIMITER", "QUOTE", "ESCAPE") if name in given}
    for name, mark in marks.items():
        if len(mark) != 1 or mark in "\r\n" or not mark.isascii():
            raise Refusal("22023", f"COPY {name.lower()} must be a single one-byte character")
    forced = given.get("FORCE_QUOTE", ())
    quote = marks.get("QUOTE", '"')
    return CopyOptions(
        format=form,
        header=_FLAGS.get(str(given.get("HEADER", "FALSE")).upper(), True),
        delimiter=marks.get("DELIMITER", "," if form == "csv" else "\t"),
        null=None if "NULL" not in given else str(given["NULL"]),
        quote=quote,
        escape=marks.get("ESCAPE", quote),
        force_quote=None if forced == "*" else tuple(forced),
    )
