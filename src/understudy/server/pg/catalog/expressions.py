"""Expressions of a statement about the catalog: each is rewritten after its parts, and gets its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from understudy.errors import StatementError
from understudy.server.pg.catalog import kinds
from understudy.server.pg.catalog.calls import Calls
from understudy.server.pg.catalog.casts import array_literal, casted
from understudy.server.pg.catalog.kinds import Kind
from understudy.server.pg.catalog.names import function_name
from understudy.server.pg.catalog.relations import CatalogRelations
from understudy.server.pg.catalog.scope import Shape, SourceScope
from understudy.server.pg.catalog.session_facts import SessionFacts

_BOOLEAN = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between,
    exp.Like, exp.ILike, exp.Exists, exp.RegexpLike, exp.RegexpILike, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Boolean,
    exp.SimilarTo, exp.Escape, exp.ArrayContainsAll, exp.ArrayContainedBy, exp.ArrayOverlaps,
)  # fmt: skip
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.BitwiseAnd, exp.BitwiseOr)
_RANKS = ("int2", "int4", "int8", "numeric", "float4", "float8")
_SAME = (
    exp.Paren,
    exp.Filter,
    exp.Window,
    exp.Order,
    exp.Distinct,
    exp.Neg,
    exp.WithinGroup,
    exp.IgnoreNulls,
)
_ROLES = ("user", "current_user", "session_user", "current_role")
_SYSTEM = {"cmax": (0, "cid"), "cmin": (0, "cid"), "xmax": (0, "xid"), "xmin": (716, "xid")}
"""The system columns of a row, which are the same for all, and their types."""


class Expressions(Calls):
    """The part of a walk that rewrites expressions."""

    def __init__(
        self,
        relations: CatalogRelations,
        session: SessionFacts,
        given: Mapping[tuple[str, str], Shape] | None,
    ) -> None:
        self.relations = relations
        self.session = session
        self.given = given
        self.settings: dict[str, str] = {}

    if TYPE_CHECKING:

        def query(self, node: exp.Expr, outer: SourceScope | None) -> Shape: ...

    def kind(self, node: exp.Expr) -> Kind:
        """The type of an expression that was rewritten; empty where it is not known."""
        return str(node.meta.get("kind", ""))

    def typed(self, node: exp.Expr, kind: Kind) -> exp.Expr:
        """The expression, known to be of a type."""
        node.meta["kind"] = kind
        return node

    def element_of(self, node: exp.Expr) -> Kind:
        """The type of the elements of an expression that is an array."""
        return kinds.element(self.kind(node))

    def parts(self, node: exp.Expr, scope: SourceScope) -> None:
        """Rewrite every part of a clause or an expression, in place."""
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(key, self.expression(value, scope))
            elif isinstance(value, list):
                made = [
                    self.expression(part, scope) if isinstance(part, exp.Expr) else part for part in value
                ]
                node.set(key, made)

    def expression(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        """The expression that takes the place of this one."""
        if isinstance(node, exp.Query) or (
            isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query)
        ):
            shape = self.query(node, scope)
            return self.typed(node, shape[0][1] if shape else "")
        for kind, rewrite in self._BEFORE.items():
            if isinstance(node, kind):
                return rewrite(self, node, scope)
        if isinstance(node, exp.Identifier | exp.Var | exp.DataType | exp.Interval):
            return self.typed(node, "interval" if isinstance(node, exp.Interval) else "")
        if function_name(node):
            return self.call(node, function_name(node), scope)
        self.parts(node, scope)
        return self.typed(node, self._inferred(node))

    def _inferred(self, node: exp.Expr) -> Kind:
        if isinstance(node, _BOOLEAN):
            return "bool"
        if isinstance(node, _SAME):
            return self.kind(node.this) if isinstance(node.this, exp.Expr) else ""
        if isinstance(node, _ARITHMETIC):
            return arithmetic(self.kind(node.this), self.kind(node.expression))
        if isinstance(node, exp.Case):
            branches = [branch.args["true"] for branch in node.args["ifs"]]
            default = node.args.get("default")
            return _common([self.kind(one) for one in (*([default] if default else []), *branches)])
        if isinstance(node, exp.Null):
            return "unknown"
        return ""

    # ---- what is looked at before its parts

    def _literal(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        if node.args.get("is_string"):
            return self.typed(node, "unknown")
        text = str(node.this)
        if not text.isdigit():
            return self.typed(node, "numeric")
        return self.typed(node, "int4" if int(text[:30]) < 2**31 else "int8")

    def _escaped(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        """A text with escapes."""
        plain = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
        text, made, place = str(node.this), "", 0
        while place < len(text):
            if text[place] == "\\" and place + 1 < len(text):
                made += plain.get(text[place + 1], text[place + 1])
                place += 2
            else:
                made += text[place]
                place += 1
        return self.typed(exp.Literal.string(made), "unknown")

    def _column(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        assert isinstance(node, exp.Column)
        if isinstance(node.this, exp.Star):
            return node
        name, source = node.name.lower(), node.table.lower()
        node.set("db", None)
        node.set("catalog", None)
        kind = scope.kind(source, name)
        if kind is not None:
            return self.typed(node, kind)
        if not source and name in _ROLES and not node.this.args.get("quoted"):
            return self.typed(exp.Literal.string(self.session.user), "name")
        if name == "tableoid" and (oid := scope.oid(source)) is not None:
            return self.typed(exp.cast(exp.Literal.number(oid), "UINTEGER", dialect="duckdb"), "oid")
        if name in _SYSTEM:
            value, kind = _SYSTEM[name]
            return self.typed(exp.cast(exp.Literal.number(value), kinds.duck(kind), dialect="duckdb"), kind)
        if name == "ctid":
            return self.typed(exp.Literal.string("(0,1)"), "tid")
        if not source and name in scope.sources and len(scope.sources[name]) == 1:  # a row of one column
            column, kind = scope.sources[name][0]
            return self.typed(exp.column(exp.to_identifier(column, quoted=True), node.this), kind)
        return self.typed(node, "")

    def _dot(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        inner = node.expression
        if not isinstance(inner, exp.Identifier):  # a function with its schema
            return self.expression(inner, scope)
        value = self.expression(node.this, scope)
        made = exp.Anonymous(this="struct_extract", expressions=[value, exp.Literal.string(inner.name)])
        return self.typed(made, {"n": "int4"}.get(inner.name, ""))

    def _cast(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        assert isinstance(node, exp.Cast)
        value = self.expression(node.this, scope)
        return casted(self, value, node.to)

    def _collate(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        return self.expression(node.this, scope)

    def _operator(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        sign = node.args["operator"]
        sign = str(sign if isinstance(sign, str) else sign.name).split(".")[-1]
        left, right = node.this, node.expression
        made = _OPERATORS.get(sign)
        if made is None:
            raise StatementError(
                f"the operator {sign[:20]} is not known here",
                reason="undefined-function",
                remedy="Use another one",
            )
        return self.expression(made(left, right), scope)

    def _concatenation(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        sides = [self.expression(side, scope) for side in (node.this, node.expression)]
        found = [self.kind(side) for side in sides]
        if any(kinds.is_array(kind) for kind in found):
            whole = [
                side if kinds.is_array(kind) or not kind else exp.Array(expressions=[side])
                for side, kind in zip(sides, found, strict=True)
            ]
            made = exp.Anonymous(this="list_concat", expressions=whole)
            return self.typed(made, next(kind for kind in found if kinds.is_array(kind)))
        texts = [self.as_text(side) for side in sides]
        return self.typed(exp.DPipe(this=texts[0], expression=texts[1]), "text")

    def as_text(self, node: exp.Expr) -> exp.Expr:
        """An expression as text, as Postgres shows it."""
        kind = self.kind(node)
        if kinds.is_text(kind):
            return node
        return casted(self, node, exp.DataType.build("text"))

    def _compared(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        if isinstance(node.expression, exp.Any | exp.All):
            return self._any(node, scope)
        self.parts(node, scope)
        for side, other in (("this", "expression"), ("expression", "this")):
            value, kind = node.args[side], self.kind(node.args[other])
            if isinstance(value, exp.Literal) and value.is_string and kind in kinds.REFERENCES:
                node.set(side, casted(self, value, exp.DataType.build(kind, udt=True)))
        return self.typed(node, "bool")

    def _any(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        """A comparison with ANY or ALL of an array, or of a sub-query."""
        every = isinstance(node.expression, exp.All)
        left = self.expression(node.this, scope)
        held = (
            node.expression.this.unnest()
            if isinstance(node.expression.this, exp.Expr)
            else node.expression.this
        )
        if isinstance(held, exp.Query | exp.Subquery):
            self.query(held, scope)
            if isinstance(node, exp.EQ) and not every:
                return self.typed(exp.In(this=left, query=held), "bool")
            node.set("this", left)
            return self.typed(node, "bool")
        array = self.expression(held, scope)
        if isinstance(array, exp.Literal):
            array = array_literal(self, array.name, self.kind(left) or "text")
        if isinstance(node, exp.EQ) and not every:
            return self.typed(_contains(array, left), "bool")
        if isinstance(node, exp.NEQ) and every and array.find(exp.Null):  # false, or not known
            known = exp.If(this=_contains(array, left), true=exp.false())
            return self.typed(exp.Case(ifs=[known]), "bool")
        if isinstance(node, exp.NEQ) and every:
            return self.typed(exp.Not(this=_contains(array, left)), "bool")
        if isinstance(array, exp.Array) and array.expressions:
            single = [type(node)(this=left.copy(), expression=part) for part in array.expressions]
            return self.typed(exp.paren(exp.and_(*single) if every else exp.or_(*single)), "bool")
        raise StatementError(
            "ANY and ALL take = or <> here", reason="undefined-function", remedy="Write the comparisons out"
        )

    def _divided(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        """A division, which of whole numbers is a whole number."""
        self.parts(node, scope)
        sides = (self.kind(node.this), self.kind(node.expression))
        kind = arithmetic(*sides)
        if not all(side in ("int2", "int4", "int8") for side in sides):
            return self.typed(node, kind)
        made = exp.Anonymous(this="trunc", expressions=[exp.Div(this=node.this, expression=node.expression)])
        return self.typed(exp.cast(made, kinds.duck(kind), dialect="duckdb"), kind)

    def _in(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        if (query := node.args.get("query")) is not None:
            node.set("this", self.expression(node.this, scope))
            self.query(query, scope)
            return self.typed(node, "bool")
        self.parts(node, scope)
        return self.typed(node, "bool")

    def _exists(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        self.query(node.this, scope)
        return self.typed(node, "bool")

    def _array(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query):
            shape = self.query(node.expressions[0], scope)
            return self.typed(node, kinds.array(shape[0][1] or "text") if shape else "")
        self.parts(node, scope)
        return self.typed(node, kinds.array(_common([self.kind(part) for part in node.expressions])))

    def _bracket(self, node: exp.Expr, scope: SourceScope) -> exp.Expr:
        value = self.expression(node.this, scope)
        kind = self.kind(value)
        node.set("this", value if isinstance(value, exp.Column) else exp.paren(value))
        places = []
        for place in node.expressions:
            if isinstance(place, exp.Slice):  # an array again
                self.parts(place, scope)
                return self.typed(node, kind)
            literal = isinstance(place, exp.Literal) or (
                isinstance(place, exp.Neg) and isinstance(place.this, exp.Literal)
            )
            made = place if literal else self.expression(place, scope)
            if kind in ("int2vector", "oidvector"):  # which begin at 0
                number = int(place.to_py()) + 1 if literal else None
                made = (
                    exp.Add(this=made, expression=exp.Literal.number(1))
                    if number is None
                    else _number(number)
                )
            places.append(made)
        node.set("expressions", places)
        return self.typed(node, kinds.element(kind))

    _BEFORE: ClassVar[dict[type[exp.Expr], Callable[[Expressions, exp.Expr, SourceScope], exp.Expr]]] = {
        exp.Literal: _literal,
        exp.ByteString: _escaped,
        exp.Column: _column,
        exp.Dot: _dot,
        exp.Cast: _cast,
        exp.Collate: _collate,
        exp.Operator: _operator,
        exp.DPipe: _concatenation,
        exp.EQ: _compared,
        exp.NEQ: _compared,
        exp.LT: _compared,
        exp.LTE: _compared,
        exp.GT: _compared,
        exp.GTE: _compared,
        exp.Like: _compared,
        exp.ILike: _compared,
        exp.Div: _divided,
        exp.In: _in,
        exp.Exists: _exists,
        exp.Array: _array,
        exp.Bracket: _bracket,
    }


_OPERATORS: dict[str, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
    "~": lambda a, b: exp.RegexpLike(this=a, expression=b),
    "!~": lambda a, b: exp.Not(this=exp.RegexpLike(this=a, expression=b)),
    "~*": lambda a, b: exp.RegexpILike(this=a, expression=b),
    "!~*": lambda a, b: exp.Not(this=exp.RegexpILike(this=a, expression=b)),
    "~~": lambda a, b: exp.Like(this=a, expression=b),
    "!~~": lambda a, b: exp.Not(this=exp.Like(this=a, expression=b)),
    "=": lambda a, b: exp.EQ(this=a, expression=b),
    "<>": lambda a, b: exp.NEQ(this=a, expression=b),
    "<": lambda a, b: exp.LT(this=a, expression=b),
    ">": lambda a, b: exp.GT(this=a, expression=b),
    "<=": lambda a, b: exp.LTE(this=a, expression=b),
    ">=": lambda a, b: exp.GTE(this=a, expression=b),
    "+": lambda a, b: exp.Add(this=a, expression=b),
    "-": lambda a, b: exp.Sub(this=a, expression=b),
    "*": lambda a, b: exp.Mul(this=a, expression=b),
    "||": lambda a, b: exp.DPipe(this=a, expression=b),
}


def _contains(array: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="list_contains", expressions=[array, value])


def _number(number: int) -> exp.Expr:
    return exp.Literal.number(number) if number >= 0 else exp.Neg(this=exp.Literal.number(-number))


def arithmetic(left: Kind, right: Kind) -> Kind:
    """The type of what an operator makes of two numbers."""
    if left in _RANKS and right in _RANKS:
        return _RANKS[max(_RANKS.index(left), _RANKS.index(right))]
    if "unknown" in (left, right):
        return left if right == "unknown" else right
    return ""


def _common(found: list[Kind]) -> Kind:
    """The type of values of several expressions of which one is taken."""
    known = [kind for kind in found if kind and kind != "unknown"]
    if not known:
        return "" if "" in found else "text"
    if "oid" in known and all(kind == "oid" or kind in _RANKS[:3] for kind in known):
        return "oid"
    numbers = [kind for kind in known if kind in _RANKS]
    if len(numbers) == len(known):
        return max(numbers, key=_RANKS.index)
    return known[0]
