"""Reading a SELECT statement: what it is made of, or a refusal that says what to write instead.

Length and nesting are bounded on the tokens, before the parser sees them. Of the parse tree only the clauses that
are named here are read; a statement with any other is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.query.text_size import USUAL, TextSize
from understudy.sql.evaluate import Node, shown, used

MAX_NESTING = 20
MAX_GROWN = 2_000
"""Nodes of the expressions that names of the SELECT list stand for, all together."""
"""Parentheses, CASE and signs inside each other, as the tokens show it."""
MAX_DEPTH = 60
"""Levels of the parse tree; a chain of AND or of OR is one."""

EXAMPLE = "SELECT district, count(*) FROM town WHERE age < 30 GROUP BY district"


@dataclass(frozen=True)
class Item:
    """One column of the SELECT list."""

    name: str
    node: Node


@dataclass(frozen=True)
class Order:
    """One term of ORDER BY."""

    node: Node
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Statement:
    """A SELECT over one table, as parse trees whose names have been resolved."""

    items: tuple[Item, ...]
    where: Node | None
    group: tuple[Node, ...]
    having: Node | None
    order: tuple[Order, ...]
    limit: int | None
    offset: int


def tokens_of(text: str, size: TextSize = USUAL) -> list[Token]:
    """The words of a statement, within the limits on its size."""
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
_STARTS = {
    TokenType.WITH: "WITH is not answered: write one SELECT over the table itself",
    TokenType.FROM: "start with SELECT",
    TokenType.L_PAREN: "start with SELECT, without parentheses around it",
    TokenType.VALUES: "VALUES holds no private table",
}


def _check_tokens(tokens: Sequence[Token], size: TextSize) -> None:
    if not tokens:
        raise QueryError("an empty statement", remedy=f"a statement reads: {EXAMPLE}")
    size.check_words(len(tokens))
    first = tokens[0].token_type
    if first != TokenType.SELECT:
        problem = _STARTS.get(first, f"only SELECT is answered, not {tokens[0].text[:20]}")
        raise QueryError(problem, remedy=f"a statement reads: {EXAMPLE}")
    depth = signs = 0
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


def read(tokens: list[Token], text: str, domain: Domain, tables: Collection[str]) -> Statement:
    """The statement that the tokens make, about one of the `tables`."""
    select = _parsed(tokens, text, domain)
    _check_depth(select)
    _check_clauses(select)
    _check_readable(select)
    qualifiers = _table(select, tables)
    for column in select.find_all(exp.Column):
        _check_column(column, qualifiers)
    items = _items(select)
    aliases = {name.lower(): node for name, node in _aliases(select)}
    group = tuple(
        _resolved(node, items, aliases, domain, alias_first=False, clause="GROUP BY")
        for node in _grouping(select)
    )
    having = select.args.get("having")
    order = select.args.get("order")
    return Statement(
        items=items,
        where=select.args["where"].this if select.args.get("where") else None,
        group=group,
        having=_substituted(having.this, aliases, domain, alias_first=False) if having else None,
        order=tuple(_ordered(o, items, aliases, domain) for o in order.expressions) if order else (),
        limit=_bound(select.args.get("limit"), "LIMIT"),
        offset=_bound(select.args.get("offset"), "OFFSET") or 0,
    )


def _parsed(tokens: list[Token], text: str, domain: Domain) -> exp.Select:
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
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise QueryError("one SELECT is answered, no UNION and nothing else", remedy=f"it reads: {EXAMPLE}")
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


def _check_depth(root: Node) -> None:
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


def _check_readable(select: exp.Select) -> None:
    """Refuse what the parser left incomplete, or other databases read otherwise: a + b % c, a = b IS NULL."""
    for node in select.walk():
        if any(required and node.args.get(name) is None for name, required in node.arg_types.items()):
            raise QueryError("an operand is missing in the statement", remedy=f"it reads: {EXAMPLE}")
        children = list(node.iter_expressions())
        mixed = isinstance(node, exp.Mod) and any(isinstance(child, _TERMS) for child in children)
        tested = isinstance(node, _TESTS[:-1]) and any(isinstance(child, _TESTS) for child in children)
        if mixed or tested:
            raise QueryError(
                f"{shown(node)} can be read in two ways", remedy="put parentheses around its parts"
            )


_CLAUSES = {"expressions", "from_", "where", "group", "having", "order", "limit", "offset", "kind"}
_REFUSED = {
    "joins": ("joins are not answered", "one table is declared, name one table after FROM"),
    "laterals": ("joins are not answered", "one table is declared, name one table after FROM"),
    "distinct": ("DISTINCT is not answered", "GROUP BY lists every declared value"),
    "with_": ("WITH is not answered", "write one SELECT over the table itself"),
    "windows": ("window functions are not answered", "use GROUP BY"),
    "qualify": ("QUALIFY is not answered", "use HAVING on the rows of GROUP BY"),
    "sample": ("samples are not answered", "every question is about the whole table"),
    "into": ("INTO is not answered", "nothing is written"),
    "locks": ("locks are not answered", "nothing is written"),
    "pivots": ("PIVOT is not answered", "use GROUP BY"),
}


def _check_clauses(select: exp.Select) -> None:
    for clause in sorted(used(select) - _CLAUSES):
        unnamed = (f"{clause.strip('_').upper()} is not answered", "leave it out")
        problem, remedy = _REFUSED.get(clause, unnamed)
        raise QueryError(problem, remedy=remedy)
    if select.args.get("kind"):
        raise QueryError("SELECT AS is not answered", remedy="list the columns")


def _table(select: exp.Select, tables: Collection[str]) -> set[str]:
    """The names by which columns may be qualified."""
    source = select.args.get("from_")
    names = sorted(tables)
    known = " or ".join(names)
    if source is None:
        raise QueryError("FROM is missing", remedy=f"write FROM {known}", suggestions=names)
    table = source.this
    if isinstance(table, exp.Subquery):
        raise QueryError("sub-queries are not answered", remedy=f"write FROM {known}", suggestions=names)
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise QueryError("tables are not made by functions", remedy=f"write FROM {known}", suggestions=names)
    if extra := used(table) - {"this", "alias"}:
        problem = "a sample or version of a table" if "db" not in extra else "another database"
        raise QueryError(f"{problem} is not answered", remedy=f"write FROM {known}", suggestions=names)
    if table.name.lower() not in {name.lower() for name in tables}:
        raise QueryError(
            f"there is no table {table.name[:60]!r}", remedy=f"write FROM {known}", suggestions=names
        )
    alias = table.args.get("alias")
    if alias is not None and used(alias) - {"this"}:
        raise QueryError("columns of the table are not renamed", remedy="leave out the list after its name")
    return {table.name.lower(), alias.name.lower()} if alias is not None else {table.name.lower()}


def _check_column(column: exp.Column, qualifiers: set[str]) -> None:
    if isinstance(column.this, exp.Star):
        raise QueryError(
            "* stands for rows, which are private", remedy="ask for count(*) or another aggregate"
        )
    if used(column) - {"this", "table"}:
        raise QueryError(f"{shown(column)}: columns have one name", remedy="quote it with double quotes")
    if column.table and column.table.lower() not in qualifiers:
        raise QueryError(f"there is no table {column.table[:60]!r} in this statement")


def _aliases(select: exp.Select) -> Iterator[tuple[str, Node]]:
    for item in select.expressions:
        if isinstance(item, exp.Alias):
            yield item.alias, item.this


def _items(select: exp.Select) -> tuple[Item, ...]:
    taken: set[str] = set()
    items = []
    for item in select.expressions:
        node = item.this if isinstance(item, exp.Alias) else item
        if isinstance(node, exp.Star) or isinstance(item, exp.Aliases):
            raise QueryError("rows are private", remedy="name aggregates instead, such as SELECT count(*)")
        name = item.alias if isinstance(item, exp.Alias) else _name(node)
        unique, number = name, 1
        while unique.lower() in taken:
            unique, number = f"{name}_{number}", number + 1
        taken.add(unique.lower())
        items.append(Item(unique, node))
    if not items:
        raise QueryError("the SELECT list is empty", remedy=f"a statement reads: {EXAMPLE}")
    return tuple(items)


def _name(node: Node) -> str:
    if isinstance(node, exp.Column):
        return node.name
    return node.sql(dialect="duckdb", normalize_functions="lower")


def _grouping(select: exp.Select) -> list[Node]:
    group = select.args.get("group")
    if group is None:
        return []
    if extra := used(group) - {"expressions"}:
        what = "ALL" if "all" in extra else "ROLLUP, CUBE and GROUPING SETS"
        raise QueryError(
            f"GROUP BY {what} is not answered", remedy="list the attributes, GROUP BY sex, district"
        )
    return group.expressions


def _ordered(node: exp.Ordered, items: tuple[Item, ...], aliases: dict[str, Node], domain: Domain) -> Order:
    if used(node) - {"this", "desc", "nulls_first"} or isinstance(node.this, exp.Var):
        raise QueryError("ORDER BY takes columns or expressions with ASC, DESC and NULLS FIRST or LAST")
    term = _resolved(node.this, items, aliases, domain, alias_first=True, clause="ORDER BY")
    return Order(term, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _resolved(
    node: Node,
    items: tuple[Item, ...],
    aliases: dict[str, Node],
    domain: Domain,
    *,
    alias_first: bool,
    clause: str,
) -> Node:
    """A term of GROUP BY or ORDER BY: a position, a name given in the SELECT list, or an expression."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        if not node.this.isdigit() or not 1 <= int(node.this[:9]) <= len(items):
            raise QueryError(f"{clause} {node.this[:20]}", remedy=f"there are columns 1 to {len(items)}")
        return items[int(node.this) - 1].node
    return _substituted(node, aliases, domain, alias_first=alias_first)


def _substituted(node: Node, aliases: dict[str, Node], domain: Domain, *, alias_first: bool) -> Node:
    """The expression with names of the SELECT list replaced by what they name."""
    grown = 0

    def named(part: Node) -> Node:
        nonlocal grown
        if not isinstance(part, exp.Column) or part.table:
            return part
        found = aliases.get(part.name.lower())
        if found is None or (not alias_first and part.name in domain):
            return part
        grown += sum(1 for _ in found.walk())
        if grown > MAX_GROWN:
            raise QueryError("names of long expressions are used too often", remedy="ask in two statements")
        return found.copy()

    if not aliases:
        return node
    if isinstance(node, exp.Column):
        return named(node)
    changed = node.transform(named)
    _check_depth(changed)
    return changed


def _bound(node: Node | None, clause: str) -> int | None:
    if node is None:
        return None
    if not isinstance(node, exp.Limit | exp.Offset) or used(node) - {"this", "expression"}:
        raise QueryError(f"{clause} takes a whole number of rows, such as {clause} 10")
    number = node.expression
    if not isinstance(number, exp.Literal) or number.args.get("is_string") or not str(number.this).isdigit():
        raise QueryError(f"{clause} takes a whole number of rows, such as {clause} 10")
    return int(str(number.this)[:15])
