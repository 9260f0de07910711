"""From the text of a statement to its parse tree, within limits on size and nesting.

Length and nesting are bounded on the tokens, before the parser sees them. The tree may be that of any query: which
ones are answered is said in `sql.read` and `sql.merge`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.query.text_size import USUAL, TextSize
from understudy.sql.evaluate import Node, shown

MAX_NESTING = 20
"""Parentheses, CASE and signs inside each other, as the tokens show it."""
MAX_DEPTH = 60
"""Levels of the parse tree; a chain of AND or of OR is one."""

EXAMPLE = "SELECT district, count(*) FROM town WHERE age < 30 GROUP BY district"


def tokens_of(text: str, size: TextSize = USUAL) -> list[Token]:
    """The words of a statement, within the limits on its size; comments and semicolons at its end are no words."""
    size.check(text)
    try:
        tokens = Dialect.get_or_raise("duckdb").tokenize(text)
    except TokenError:
        raise QueryError(
            "cannot read the words of the statement", remedy=f"is a quote open? It reads: {EXAMPLE}"
        ) from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    _check_tokens(tokens, size)
    return tokens


_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_SIGNS = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.DAT}
_QUERIES = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN}
_STARTS = {TokenType.FROM: "start with SELECT", TokenType.VALUES: "VALUES holds no private table"}


def _check_tokens(tokens: Sequence[Token], size: TextSize) -> None:
    if not tokens:
        raise QueryError("an empty statement", remedy=f"a statement reads: {EXAMPLE}")
    size.check_words(len(tokens))
    first = tokens[0].token_type
    if first not in _QUERIES:
        problem = _STARTS.get(first, f"only SELECT is answered, not {tokens[0].text[:20]}")
        raise QueryError(problem, remedy=f"a statement reads: {EXAMPLE}")
    depth = int(first == TokenType.L_PAREN)
    signs = 0
    previous = tokens[0]
    for token in tokens[1:]:
        kind = token.token_type
        if kind == TokenType.SEMICOLON:
            raise QueryError("one statement at a time: what follows the semicolon is not read")
        depth += (kind in _OPENING) - (kind in _CLOSING)
        signs = signs + 1 if kind in _SIGNS else 0
        if depth + signs > MAX_NESTING:
            raise QueryError(f"parentheses, CASE and NOT may be nested {MAX_NESTING} deep")
        if (
            previous.token_type == TokenType.NUMBER
            and token.start == previous.end + 1
            and kind == TokenType.VAR
        ):
            raise QueryError(f"{previous.text[:20]}{token.text[:20]} is not a number")
        previous = token


def parsed(tokens: list[Token], text: str, domain: Domain) -> exp.Query:
    """The query that the tokens make: a SELECT, a UNION of some, with WITH before it or not."""
    try:
        trees = Dialect.get_or_raise("duckdb").parser().parse(tokens, text)
    except ParseError as error:
        raise QueryError(
            f"cannot read the statement {_place(error)}",
            remedy=_unquoted(tokens, domain) or f"it reads: {EXAMPLE}",
        ) from None
    except (ValueError, ArithmeticError):  # the parser makes numbers of what is none: a->1e9
        raise QueryError(
            "cannot read the statement: it has a number that is none", remedy=f"it reads: {EXAMPLE}"
        ) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise QueryError("one SELECT is answered, and nothing else", remedy=f"it reads: {EXAMPLE}")
    check_depth(trees[0])
    _check_readable(trees[0])
    return trees[0]


def _unquoted(tokens: list[Token], domain: Domain) -> str:
    """What to say of a word of SQL that is an attribute as well, such as order; empty where there is none."""
    names = {name.casefold(): name for name in domain.names}
    plain = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)
    for token in tokens:
        if token.token_type not in plain and (name := names.get(token.text.casefold())) is not None:
            return (
                f'{token.text} is a word of SQL: write "{name}" in double quotes where the attribute is meant'
            )
    return ""


def _place(error: ParseError) -> str:
    first = error.errors[0] if error.errors else {}
    near = str(first.get("highlight") or "")[:30]
    return f"at line {first.get('line', 1)}, column {first.get('col', 1)}" + (
        f", near {near!r}" if near else ""
    )


def check_depth(root: Node) -> None:
    """Refuse a tree that is nested too deep for what reads it recursively."""
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise QueryError(
                "an expression is nested too deep",
                remedy="write IN (…) for a long chain, or ask in two statements",
            )
        for child in node.iter_expressions():
            chained = type(child) is type(node) and isinstance(node, exp.And | exp.Or)
            stack.append((child, depth + (not chained)))


_TESTS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Not,
)  # fmt: skip
_TERMS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv)


def _check_readable(root: Node) -> None:
    """Refuse what the parser left incomplete, or other databases read otherwise: a + b % c, a = b IS NULL."""
    for node in root.walk():
        if any(required and node.args.get(name) is None for name, required in node.arg_types.items()):
            if isinstance(node, exp.Quantile | exp.ApproxQuantile):
                raise QueryError(f"{shown(node)} has no level", remedy="write quantile_cont(x, 0.5)")
            raise QueryError("an operand is missing in the statement", remedy=f"it reads: {EXAMPLE}")
        children = list(node.iter_expressions())
        mixed = isinstance(node, exp.Mod) and any(isinstance(child, _TERMS) for child in children)
        tested = isinstance(node, _TESTS[:-1]) and any(isinstance(child, _TESTS) for child in children)
        if mixed or tested:
            raise QueryError(
                f"{shown(node)} can be read in two ways", remedy="put parentheses around its parts"
            )
