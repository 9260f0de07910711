"""Parameters of prepared statements: their types, their values, and the literals that stand for them.

A value is decoded as of the type that the client gave it, or that its place has, and is then written as a literal
between the words of the statement: a text in quotes with its quotes doubled, a number, TRUE, FALSE or NULL.
The statement is read again with these literals, as if they had been written by hand.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

from sqlglot import exp

from understudy.server.pg.arrays import ARRAYS, ELEMENTS, items_of, read_binary_array
from understudy.server.pg.lexer import SqlWord, StatementText, check_length
from understudy.server.pg.numerics import read_numeric
from understudy.server.pg.states import Refusal
from understudy.server.pg.values import (
    BOOL,
    BPCHAR,
    CHAR,
    DATE,
    EPOCH,
    EPOCH_TIME,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    JSON,
    NAME,
    NUMERIC,
    OID,
    PACKED,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARCHAR,
)

MOST_PARAMETERS = 1000

MOST_POWER = 400
"""The largest power of ten, up or down, of a `numeric`: it is written out in digits; no float reaches further."""

_TEXTS = frozenset((TEXT, VARCHAR, BPCHAR, NAME, CHAR, UNKNOWN, JSON, 0))
_WHOLE = {INT2: 15, INT4: 31, INT8: 63, OID: 32}
_REALS = frozenset((FLOAT4, FLOAT8))
_TRUTHS = {
    "t": True, "true": True, "y": True, "yes": True, "on": True, "1": True,
    "f": False, "false": False, "n": False, "no": False, "off": False, "0": False,
}  # fmt: skip
_NAMED = {
    "INT": INT4, "BIGINT": INT8, "SMALLINT": INT2, "DOUBLE": FLOAT8, "FLOAT": FLOAT4, "DECIMAL": NUMERIC,
    "BOOLEAN": BOOL, "DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMPTZ": TIMESTAMPTZ, "TEXT": TEXT,
    "VARCHAR": VARCHAR, "CHAR": BPCHAR, "NAME": NAME, "OID": OID, "JSON": JSON,
}  # fmt: skip


def decoded(raw: bytes | None, oid: int, form: int) -> Any:
    """The value of a parameter; a `Refusal` where the bytes are no value of that type."""
    if raw is None:
        return None
    try:
        element = ELEMENTS.get(oid)
        if element is not None:
            return _array(raw, element, form)
        return _binary(raw, oid) if form else _from_text(raw.decode(), oid)
    except Refusal:
        raise
    except (ValueError, struct.error, OverflowError, InvalidOperation):
        state = "22P03" if form else "22P02"
        how = "binary" if form else "text"
        raise Refusal(state, f"a parameter is no {how} value of the type {oid}") from None


def _array(raw: bytes, element: int, form: int) -> list[Any]:
    if not form:
        return [None if item is None else _from_text(item, element) for item in items_of(raw.decode())]
    given, items = read_binary_array(raw)
    return [None if item is None else _binary(item, given) for item in items]


def _binary(raw: bytes, oid: int) -> Any:
    code = PACKED.get(oid)
    if code is not None:
        return struct.unpack(code, raw)[0]
    if oid == NUMERIC:
        return _within_powers(read_numeric(raw))
    if oid == DATE:
        return EPOCH + dt.timedelta(days=struct.unpack("!i", raw)[0])
    if oid in (TIMESTAMP, TIMESTAMPTZ):
        moment = EPOCH_TIME + dt.timedelta(microseconds=struct.unpack("!q", raw)[0])
        return moment.replace(tzinfo=dt.UTC) if oid == TIMESTAMPTZ else moment
    if oid in _TEXTS:
        return _clean(raw.decode())
    raise Refusal(
        "0A000",
        f"a parameter of the type {oid} is not read in binary",
        hint="Pass it as a number, a text, a boolean or a date.",
    )


def _from_text(text: str, oid: int) -> Any:
    if oid in _WHOLE:
        number = int(text)
        if abs(number) >> _WHOLE[oid] > 0 and number != -(1 << _WHOLE[oid]):
            raise Refusal("22003", f'value "{text[:40]}" is out of range for its type')
        return number
    if oid in _REALS:
        return float(text)
    if oid == NUMERIC:
        return _within_powers(Decimal(text))
    if oid == BOOL:
        return _TRUTHS[text.strip().lower()] if text.strip().lower() in _TRUTHS else _no_truth(text)
    if oid == DATE:
        return dt.date.fromisoformat(text.strip()[:10])
    if oid in (TIMESTAMP, TIMESTAMPTZ):
        return dt.datetime.fromisoformat(text.strip())
    return _clean(text)


def _within_powers(number: Decimal) -> Decimal:
    if abs(number.adjusted()) > MOST_POWER:
        raise Refusal("22003", f"a numeric parameter is beyond the {MOST_POWER}th power of ten, or too small")
    return number


def _no_truth(text: str) -> bool:
    raise Refusal("22P02", f'invalid input syntax for type boolean: "{text[:40]}"')


def _clean(text: str) -> str:
    if "\0" in text:
        raise Refusal("22021", "a text holds the character zero")
    return text


def literal(value: Any) -> str:
    """A value as it is written in a statement."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float | Decimal):
        if not isfinite(value):
            raise Refusal("22003", "a parameter is not a finite number")
        told = format(value, "f") if isinstance(value, Decimal) else repr(value)
        return f"({told})" if told[0] == "-" else told
    if isinstance(value, dt.datetime):
        return quoted(value.isoformat(" "))
    if isinstance(value, dt.date):
        return quoted(value.isoformat())
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(literal, value))}]"
    return quoted(str(value))


def quoted(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Template:
    """A statement cut at its parameters: texts, and numbers of parameters between them; `count` is the largest."""

    pieces: tuple[str | int, ...]
    count: int

    @classmethod
    def of(cls, statement: StatementText) -> Template:
        pieces: list[str | int] = []
        place = most = 0
        for token in statement.tokens:
            if token.kind != "parameter":
                continue
            number = int(token.text[1:])
            if not 1 <= number <= MOST_PARAMETERS:
                raise Refusal("42P02", f"there is no parameter {token.text[:20]}", position=token.start + 1)
            most = max(most, number)
            pieces += (statement.text[place : token.start], number)
            place = token.end
        return cls((*pieces, statement.text[place:]), most)

    @property
    def marked(self) -> str:
        """The statement with each parameter as a quoted name, which every parser reads."""
        return "".join(f'"${piece}"' if isinstance(piece, int) else piece for piece in self.pieces)

    def filled(self, values: Sequence[Any]) -> str:
        """The statement with its values as literals; a `Refusal` 54000, before it is made, for one too long."""
        used = {piece for piece in self.pieces if isinstance(piece, int)}
        literals = {number: literal(values[number - 1]) for number in used}
        parts = [literals[piece] if isinstance(piece, int) else piece for piece in self.pieces]
        check_length(sum(map(len, parts)))
        return "".join(parts)


def with_lists(statement: StatementText) -> StatementText:
    """The statement with `= ANY (ARRAY[…])` as `IN (…)`, and `<> ALL (ARRAY[…])` as `NOT IN (…)`.

    That is how programs pass lists, and IN is what the library reads. An empty list is in nothing.
    """
    tokens = statement.tokens
    changes: list[tuple[int, int, str]] = []
    for i, token in enumerate(tokens):
        words = [t.upper or t.text for t in tokens[i : i + 5]]
        if words[1:] != ["ANY", "(", "ARRAY", "["] and words[1:] != ["ALL", "(", "ARRAY", "["]:
            continue
        is_any = words[1] == "ANY"
        if token.text not in (("=",) if is_any else ("<>", "!=")):
            continue
        end = _closing(tokens, i + 4)
        if end is None or end + 1 >= len(tokens):
            continue
        after = end + 1
        while tokens[after].text != ")":  # a cast of the list, which its values do not need
            if after + 1 >= len(tokens) or tokens[after].text in ("(", ";"):
                break
            after += 1
        if tokens[after].text != ")":
            continue
        inner = statement.text[tokens[i + 4].end : tokens[end].start].strip() or "NULL"
        changes.append((token.start, tokens[after].end, f"{'IN' if is_any else 'NOT IN'} ({inner})"))
    if not changes:
        return statement
    text = statement.text
    for start, end, words_in in reversed(changes):
        text = text[:start] + words_in + text[end:]
    return StatementText(text, ())


def _closing(tokens: Sequence[SqlWord], place: int) -> int | None:
    depth = 0
    for i in range(place, len(tokens)):
        depth += (tokens[i].text == "[") - (tokens[i].text == "]")
        if not depth:
            return i
    return None


def types_of(
    tree: exp.Expr, count: int, given: Sequence[int], attributes: Mapping[str, int]
) -> tuple[int, ...]:
    """The type of each parameter: as the client said, or that of what it is compared with, cast to, or text.

    In the tree the parameters are columns of the names `$1`, `$2`, …, as `Template.marked` writes them.
    """
    inferred: dict[int, int] = {}
    for column in tree.find_all(exp.Column):
        number = parameter_number(column)
        if 1 <= number <= count and number not in inferred:
            found = _inferred(column, attributes)
            if found:
                inferred[number] = found
    told = [given[i] if i < len(given) else 0 for i in range(count)]
    return tuple(oid if oid not in (0, UNKNOWN) else inferred.get(i + 1, TEXT) for i, oid in enumerate(told))


def parameter_number(column: exp.Expr) -> int:
    """The number of the parameter that a column stands for; 0 for a column that is one."""
    name = column.name
    return int(name[1:]) if name[:1] == "$" and name[1:].isdecimal() and len(name) < 6 else 0


def _inferred(parameter: exp.Expr, attributes: Mapping[str, int]) -> int:
    """What the place of a parameter says about its type; 0 where it says nothing."""
    if isinstance(parameter.parent, exp.Cast):
        return _of_cast(parameter.parent.to)
    if isinstance(parameter.parent, exp.Limit | exp.Offset):
        return INT8
    is_list = False
    node = parameter.parent
    while isinstance(node, exp.Predicate | exp.Binary | exp.Paren | exp.Any | exp.All | exp.Neg | exp.Tuple):
        is_list = is_list or isinstance(node, exp.Any | exp.All)
        for column in node.find_all(exp.Column):
            found = attributes.get(column.name.lower())
            if found and not parameter_number(column):
                return ARRAYS.get(found, TEXT) if is_list else found
        node = node.parent
    return 0


def _of_cast(kind: exp.Expr) -> int:
    """The type that a cast names; 0 where it is none that parameters have, such as regclass."""
    name = getattr(kind.this, "name", "")
    if name == "ARRAY" and kind.expressions:
        return ARRAYS.get(_of_cast(kind.expressions[0]), 0)
    if name == "USERDEFINED":
        name = str(kind.args.get("kind", "")).upper()
    return _NAMED.get(name, 0)
