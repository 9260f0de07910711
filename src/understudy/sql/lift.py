"""A SELECT over the table in two: one with its groups and aggregates, and one around it with everything else.

Window functions over groups, QUALIFY, comparisons of released numbers in the SELECT list and sub-queries there are
not answered with bounds. Where a statement has one, its groups and aggregates are asked for by an inner SELECT,
and the rest is made of the inner one's released rows (`sql.around`).
"""

from __future__ import annotations

from sqlglot import exp

from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.sql.evaluate import Node, used
from understudy.sql.names import Copier, as_item, resolved

INNER = "groups"
"""What the inner SELECT is called in the outer one."""

_COMPARED = (exp.Predicate, exp.Connector, exp.Not, exp.Case, exp.If)
_AGGREGATES = (exp.AggFunc, exp.Filter, exp.WithinGroup)


def lifted(select: exp.Select, domain: Domain) -> exp.Select:
    """The SELECT itself where it is answered as it is, else the one around an inner one with its aggregates."""
    if not _is_to_be(select):
        return select
    copier = Copier()
    plain = resolved(select, domain, copier)
    group = plain.args.get("group")
    if group is not None and used(group) - {"expressions"}:
        return select  # ROLLUP and the like are refused where GROUP BY is read
    parts = _Parts(list(group.expressions) if group is not None else [])
    outer = exp.Select()
    outer.set("expressions", [_item(parts, as_item(item)) for item in plain.expressions])
    for clause, place in (("having", "where"), ("qualify", "qualify"), ("order", "order")):
        if (part := plain.args.get(clause)) is not None:
            parts.replace_in(part)
            outer.set(place, exp.Where(this=part.this) if clause == "having" else part)
    for clause in ("limit", "offset", "distinct", "windows"):
        if (part := plain.args.get(clause)) is not None:
            for one in part if isinstance(part, list) else [part]:
                parts.replace_in(one)
            outer.set(clause, part)
    if not parts.has_groups:
        raise QueryError(
            "rows are private, and so is what a window function says about them",
            remedy="group first: SELECT sex, count(*), rank() OVER (ORDER BY count(*) DESC) FROM … GROUP BY sex",
        )
    inner = exp.Select(expressions=parts.items)
    for clause in ("from_", "where", "group"):
        if plain.args.get(clause) is not None:
            inner.set(clause, plain.args[clause])
    outer.set(
        "from_", exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(INNER))))
    )
    return outer


def _item(parts: _Parts, item: Node) -> Node:
    if not isinstance(item, exp.Alias):
        raise QueryError("rows are private", remedy="name aggregates instead, such as SELECT count(*)")
    parts.replace_in(item)
    return item


class _Parts:
    """The keys and aggregates of a statement, each once, with the names that the inner SELECT gives them."""

    def __init__(self, keys: list[Node]) -> None:
        self._found: dict[str, tuple[str, Node]] = {}
        self._keys = keys
        self.has_groups = bool(keys)

    @property
    def items(self) -> list[Node]:
        """The SELECT list of the inner statement: a key where the outer one needs nothing of it but its rows."""
        listed = [*self._found.values()] or [("c0", key) for key in self._keys[:1]]
        return [exp.alias_(node.copy(), name, quoted=True) for name, node in listed]

    def replace_in(self, root: Node) -> None:
        """Put names in the place of aggregates, and of what depends on the group alone."""
        for child in list(root.iter_expressions()):
            self._visit(child)

    def _visit(self, node: Node) -> None:
        if isinstance(node, exp.Identifier | exp.Query):
            return
        if isinstance(node, exp.Window):
            self._visit_window(node)
        elif _is_aggregate(node):
            self.has_groups = True
            self._name(node)
        elif (
            node.find(exp.Column) and not node.find(exp.AggFunc, exp.Window, exp.Query) and not _is_list(node)
        ):
            self._name(node)
        else:
            self.replace_in(node)

    def _visit_window(self, node: exp.Window) -> None:
        """A window function is the outer statement's, and what it is about is the inner one's."""
        self.replace_in(node.this.this if isinstance(node.this, exp.Filter) else node.this)
        for name, part in list(node.args.items()):
            for one in part if isinstance(part, list) else [part]:
                if name != "this" and isinstance(one, exp.Expr):
                    self._visit(one) if name == "partition_by" else self.replace_in(one)

    def _name(self, node: Node) -> None:
        kept = node.unnest()
        name, _ = self._found.setdefault(_words(kept), (f"c{len(self._found)}", kept.copy()))
        node.replace(exp.column(name, quoted=True))


def _is_aggregate(node: Node) -> bool:
    """Whether a node is one aggregate, or an end of its bounds."""
    bound = isinstance(node, exp.Anonymous) and node.name.lower() in ("low", "high")
    return isinstance(node, _AGGREGATES) or (bound and node.find(exp.AggFunc) is not None)


def _is_list(node: Node) -> bool:
    """Whether a node belongs to the form of a clause, and is no expression."""
    return isinstance(node, exp.Ordered | exp.Order | exp.If | exp.WindowSpec | exp.Distinct)


def _words(node: Node) -> str:
    """An expression apart from parentheses around it and from the qualifiers and the case of its columns."""
    copy = exp.Paren(this=node.unnest().copy())
    for column in copy.find_all(exp.Column):
        column.replace(exp.column(column.name.lower(), quoted=True))
    return copy.sql(dialect="duckdb")


def _is_to_be(select: exp.Select) -> bool:
    """Whether a SELECT holds something that only an outer one can say."""
    if select.args.get("qualify") or select.args.get("windows"):
        return True
    shown_parts = [*select.expressions, *([select.args["order"]] if select.args.get("order") else [])]
    if any(part.find(exp.Window, exp.Query) for part in shown_parts):
        return True
    if select.args.get("having") and select.args["having"].find(exp.Query):
        return True
    return any(_compares(item) for item in select.expressions) or _hides_keys(select)


def _compares(item: Node) -> bool:
    """Whether an item compares released numbers, of which no interval would be honest."""
    for aggregate in item.find_all(*_AGGREGATES):
        node = aggregate.parent
        while node is not None and node is not item.parent:
            if isinstance(node, _AGGREGATES):
                break
            if isinstance(node, exp.Case | exp.If):
                if _is_tested(aggregate, node):
                    return True
            elif isinstance(node, _COMPARED):
                return True
            node = node.parent
    return False


def _is_tested(aggregate: Node, choice: Node) -> bool:
    """Whether an aggregate stands in the condition of a CASE, and not in what it chooses."""
    node = aggregate
    while node.parent is not choice:
        if isinstance(node.parent, exp.If) and node.arg_key == "this":
            return True
        assert node.parent is not None
        node = node.parent
    return node.arg_key == "this"


def _hides_keys(select: exp.Select) -> bool:
    """Whether SELECT DISTINCT leaves out a key, so that rows of groups may be equal by chance."""
    distinct, group = select.args.get("distinct"), select.args.get("group")
    if distinct is None or distinct.args.get("on") or group is None:
        return False
    listed = {_words(i.this if isinstance(i, exp.Alias) else i) for i in select.expressions}
    names = {i.alias.lower() for i in select.expressions if isinstance(i, exp.Alias)}
    return not all(
        isinstance(key, exp.Literal) or key.name.lower() in names or _words(key) in listed
        for key in group.expressions
    )
