"""Reading a statement about the catalog: Postgres' SQL into a parse tree, within limits on its size."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from understudy.errors import StatementError
from understudy.query.text_size import TextSize

SIZE = TextSize(characters=60_000, words=12_000)
"""What programs send about the catalog is longer than what people ask, and is written by programs."""

MAX_NESTING = 60
"""Parentheses, brackets and CASE inside each other."""

MAX_DEPTH = 200
"""Levels of the parse tree."""

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_SIGNS = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_NAMES_AFTER_AS = {
    "SELECT", "UPDATE", "INSERT", "DELETE", "TABLE", "DEFAULT", "USER", "ORDER", "GROUP", "COLUMN", "CONSTRAINT",
    "CHECK", "UNIQUE", "PRIMARY", "REFERENCES", "GRANT", "ANALYZE", "COMMENT", "DESC", "ASC", "END", "FROM",
}  # fmt: skip
"""Words of SQL that Postgres takes as the name of a column after AS."""


def parsed(text: str) -> exp.Query:
    """The one SELECT of a text; a `StatementError` says why there is none."""
    SIZE.check(text)
    dialect = Dialect.get_or_raise("postgres")
    try:
        tokens = dialect.tokenize(text)
    except TokenError:
        raise _unreadable("is a quote open?") from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    SIZE.check_words(len(tokens))
    _check_nesting(tokens)
    try:
        trees = [tree for tree in dialect.parser().parse(_as_postgres(tokens), text) if tree is not None]
    except ParseError as error:
        raise _unreadable(_place(error)) from None
    except (ValueError, ArithmeticError, RecursionError):  # the parser makes numbers of what is none
        raise _unreadable("write it more simply") from None
    if len(trees) != 1:
        raise StatementError(
            "one statement at a time", reason="not-select", remedy="Send the statements one by one"
        )
    tree = trees[0]
    if isinstance(tree, exp.Values):
        tree = _selected(tree)
    if not isinstance(tree, exp.Query):
        raise StatementError(
            "only SELECT is answered about the catalog", reason="not-select", remedy="Nothing is written"
        )
    check_depth(tree)
    return tree


def _selected(values: exp.Values) -> exp.Select:
    """VALUES as a statement: its columns have the names that Postgres gives them."""
    first = values.expressions[0] if values.expressions else None
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    columns = [exp.to_identifier(f"column{place}") for place in range(1, width + 1)]
    values.set("alias", exp.TableAlias(this=exp.to_identifier("given"), columns=columns))
    return exp.select("*").from_(values)


def check_depth(tree: exp.Expr) -> None:
    """Refuse a tree that is nested so deep that walks through it could not end well."""
    stack: list[tuple[exp.Expr, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise StatementError(
                "the statement is nested too deep", reason="size", remedy="Write IN (…) for a long chain"
            )
        stack.extend((child, depth + 1) for child in node.iter_expressions())


def _check_nesting(tokens: list[Token]) -> None:
    depth = signs = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        signs = signs + 1 if kind in _SIGNS else 0
        if depth + signs > MAX_NESTING:
            raise StatementError(
                f"parentheses, CASE and signs may be nested {MAX_NESTING} deep",
                reason="size",
                remedy="Write the statement more simply",
            )


def _as_postgres(tokens: list[Token]) -> list[Token]:
    """The tokens as Postgres reads them: any word may be a name after AS, and `oid[]` is a type."""
    changed: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        brackets = [after.token_type for after in tokens[place + 1 : place + 3]]
        if (
            token.token_type == TokenType.OBJECT_IDENTIFIER
            and brackets == [TokenType.L_BRACKET, TokenType.R_BRACKET]
        ):  # fmt: skip
            changed.append(_replaced(token, TokenType.VAR, f"_{token.text.lower()}"))
            place += 3
            continue
        after_as = bool(changed) and changed[-1].token_type == TokenType.ALIAS
        if after_as and token.text.upper() in _NAMES_AFTER_AS and token.token_type != TokenType.IDENTIFIER:
            token = _replaced(token, TokenType.VAR, token.text)
        changed.append(token)
        place += 1
    return changed


def _replaced(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


def _unreadable(remedy: str) -> StatementError:
    return StatementError("cannot read the statement", reason="syntax", remedy=remedy)


def _place(error: ParseError) -> str:
    first = error.errors[0] if error.errors else {}
    near = str(first.get("highlight") or "")[:30]
    return f"look at line {first.get('line', 1)}, column {first.get('col', 1)}" + (
        f", near {near!r}" if near else ""
    )
