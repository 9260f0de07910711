"""One SELECT out of nested ones, where that is what they mean; programs that draw charts write many of these.

Three kinds of sub-query, after FROM or in WITH, are taken into the SELECT around them:

- one that only filters, names and computes columns, such as ``(SELECT * FROM town WHERE age < 30)``;
- one with aggregates, where the outer one only picks, computes, filters or orders its columns: then the outer
  WHERE is a HAVING, and every number keeps its bounds;
- one with aggregates whose counts and sums the outer one adds up by some of its keys: then the outer sum is the
  count, or the sum, of the larger groups, which costs less and is off by less than the sum of its parts.

What remains nested is taken apart by `sql.around`. A SELECT over the table whose aggregates stand inside window
functions or comparisons is first split in two (`sql.lift`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.sql.evaluate import Node, used
from understudy.sql.lift import lifted
from understudy.sql.names import Copier, as_item, closed, columns_of, resolved
from understudy.sql.read import check_place, name_of
from understudy.sql.tokens import check_depth

_ROWS = {"expressions", "from_", "where", "order", "kind"}
_GROUPED = _ROWS | {"group", "having", "limit", "offset", "distinct"}
_BOUNDED = (
    exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Cast,
    exp.DataType, exp.DataTypeParam, exp.Round, exp.Coalesce, exp.Nullif, exp.Floor, exp.Ceil, exp.Abs,
    exp.Greatest, exp.Least, exp.Null,
)  # fmt: skip
_ADDED = (exp.Count, exp.CountIf, exp.Sum)


def simplified(query: exp.Query, tables: Collection[str], domain: Domain) -> exp.Query:
    """The query with all sub-queries merged that can be; the tree is changed in place."""
    return _Merger(tables, domain).query(query, {})


def nested(node: Node) -> Iterator[exp.Query]:
    """The outermost queries inside a node, itself not counted."""
    for child in node.iter_expressions():
        if isinstance(child, exp.Query):
            yield child
        else:
            yield from nested(child)


def is_direct(query: Node, tables: Collection[str]) -> bool:
    """Whether a query is a SELECT over the declared table alone."""
    if not isinstance(query, exp.Select) or query.args.get("joins") or query.args.get("laterals"):
        return False
    source = query.args.get("from_")
    table = source.this if source is not None else None
    return isinstance(table, exp.Table) and table.name.lower() in {name.lower() for name in tables}


class _Merger:
    def __init__(self, tables: Collection[str], domain: Domain) -> None:
        self._tables = tables
        self._domain = domain
        self._copier = Copier()

    def query(self, query: Node, env: Mapping[str, exp.Query]) -> exp.Query:
        """A query in which the names of `env` stand for those of WITH."""
        while isinstance(query, exp.Subquery) and not used(query) - {"this", "alias"}:
            query = query.this
        with_ = query.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise QueryError("WITH RECURSIVE is not answered", remedy="write the steps that are needed")
            query.set("with_", None)
            known = dict(env)
            for part in with_.expressions:
                if not isinstance(part.this, exp.Query):
                    raise QueryError("WITH holds SELECT statements only")
                known[part.alias.lower()] = self._renamed(self.query(part.this, known), part.args["alias"])
            env = known
        if isinstance(query, exp.Select):
            return self._select(query, env)
        if isinstance(query, exp.SetOperation):
            for side in ("this", "expression"):
                query.set(side, self.query(query.args[side], env))
            return query
        raise QueryError("one SELECT is answered, and nothing else")

    def _renamed(self, query: exp.Query, alias: Node) -> exp.Query:
        """WITH x (a, b) AS (…), or AS x (a, b) after a sub-query: the columns under their new names."""
        names = alias.args.get("columns")
        if not names:
            return query
        items = query.expressions if isinstance(query, exp.Select) else []
        if len(items) != len(names) or any(item.is_star for item in items):
            raise QueryError(
                "the list of columns after a name does not fit the sub-query",
                remedy="name its columns with AS",
            )
        plain = [item.this if isinstance(item, exp.Alias) else item for item in items]
        query.set(
            "expressions", [exp.alias_(p, n.name, quoted=True) for p, n in zip(plain, names, strict=True)]
        )
        return query

    def _select(self, select: exp.Select, env: Mapping[str, exp.Query]) -> exp.Query:
        for holder in (select.args.get("from_"), *select.args.get("joins", ())):
            if holder is not None:
                holder.set("this", self._source(holder.this, env))
        sources = {id(part) for part in self._sources(select)}
        for inner in list(nested(select)):
            if id(inner) not in sources:
                merged = self.query(inner, env)
                inner.replace(exp.Subquery(this=merged) if isinstance(inner, exp.Subquery) else merged)
        if is_direct(select, self._tables):
            return lifted(select, self._domain)
        merged = self._merged(select)
        check_depth(merged)
        return merged

    def _sources(self, select: exp.Select) -> Iterator[Node]:
        for holder in (select.args.get("from_"), *select.args.get("joins", ())):
            if holder is not None:
                yield holder.this

    def _source(self, source: Node, env: Mapping[str, exp.Query]) -> Node:
        """What stands after FROM or JOIN: a name of WITH as the query that it is, a query simplified."""
        while isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table | exp.Subquery):
            if source.args.get("alias") is not None and source.this.args.get("alias") is None:
                source.this.set("alias", source.args["alias"])
            source = source.this
        if isinstance(source, exp.Table):
            named = None if source.db else env.get(source.name.lower())
            if named is None:
                if isinstance(source.this, exp.Identifier):
                    check_place(source, self._tables)
                return source
            alias = source.args.get("alias") or exp.TableAlias(
                this=exp.to_identifier(source.name, quoted=True)
            )
            copy = self._renamed(self._copier.copy(named), alias)  # type: ignore[arg-type]  # a copy of its own kind
            return exp.Subquery(this=copy, alias=exp.TableAlias(this=alias.this))
        if isinstance(source, exp.Subquery):
            alias = source.args.get("alias")
            merged = self.query(source.this, env)
            if alias is not None:
                merged = self._renamed(merged, alias)
                alias = exp.TableAlias(this=alias.this)
            return exp.Subquery(this=merged, alias=alias)
        return source

    # ---- merging a SELECT with the one after its FROM

    def _merged(self, select: exp.Select) -> exp.Select:
        source = select.args.get("from_")
        inner = source.this.this if source is not None and isinstance(source.this, exp.Subquery) else None
        if inner is None or select.args.get("joins") or select.args.get("laterals"):
            return select
        if not is_direct(inner, self._tables) or next(nested(inner), None) is not None:
            return select
        name = source.this.alias.lower() if source is not None else ""
        has_groups = bool(used(inner) & {"group", "distinct"}) or any(
            item.find(exp.AggFunc) for item in inner.expressions
        )
        if not has_groups:
            if used(inner) & {"limit", "offset"}:
                raise QueryError(
                    "LIMIT in a sub-query over the table picks rows, which are private",
                    remedy="leave it out; every question is about the whole table",
                )
            return self._over_rows(select, inner, name) if not used(inner) - _ROWS else select
        if used(inner) - _GROUPED:
            return select
        over = self._over_groups(select, inner, name) or self._rolled_up(select, inner, name)
        return over or select

    def _over_rows(self, select: exp.Select, inner: exp.Select, name: str) -> exp.Select:
        """The outer SELECT over the table itself, under both conditions."""
        columns, passes = columns_of(inner, self._copier)
        found = _SubqueryColumns(self._copier, name, columns, passes=passes)
        _name_items(select)
        outer = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
        for clause in sorted(used(select) - {"from_", "kind", "limit", "offset", "distinct"}):
            parts = select.args[clause]
            free = outer if clause in ("order", "group", "having", "qualify") else set[str]()
            for part in parts if isinstance(parts, list) else [parts]:
                found.substitute(part, free=free, free_first=clause == "order")
        both = [part.this for part in (inner.args.get("where"), select.args.get("where")) if part is not None]
        select.set("where", exp.Where(this=_all(both)) if both else None)
        select.set("from_", inner.args["from_"])
        return lifted(select, self._domain)

    def _over_groups(self, select: exp.Select, inner: exp.Select, name: str) -> exp.Select | None:
        """The inner SELECT with the columns, filter and order of the outer one; None where it cannot be."""
        if used(select) - (_ROWS | {"limit", "offset"}) or any(
            item.find(exp.AggFunc, exp.Window, exp.Query) for item in select.expressions
        ):
            return None
        cut = used(inner) & {"limit", "offset"}
        if (cut and used(select) & {"where", "order", "limit", "offset"}) or (
            inner.args.get("distinct") and select.args.get("where")
        ):
            return None
        clauses = [select.args[name] for name in ("where", "order") if select.args.get(name)]
        if any(part.find(exp.AggFunc, exp.Window, exp.Query) for part in clauses):
            return None
        names = [item.alias if isinstance(item, exp.Alias) else name_of(item) for item in inner.expressions]
        items: list[Node] = []
        for item in select.expressions:
            items.extend([exp.column(name, quoted=True) for name in names] if item.is_star else [item])
        bare = [item.this if isinstance(item, exp.Alias) else item for item in items]
        picked = {part.name.lower() for part in bare if isinstance(part, exp.Column)}
        if len({name.lower() for name in names}) < len(names) or (
            inner.args.get("distinct") and picked != {name.lower() for name in names}
        ):
            return None
        if any(not isinstance(part, _BOUNDED) for item in bare for part in item.walk()):
            return None
        merged = resolved(inner, self._domain, self._copier)
        columns, _ = columns_of(merged, self._copier)
        found = _SubqueryColumns(self._copier, name, columns, passes=False)
        if not all(found.knows(column) for part in bare for column in part.find_all(exp.Column)):
            return None
        outer = exp.Select(expressions=[as_item(item) for item in items])
        for item in outer.expressions:
            found.substitute(item, free=set(), free_first=False)
        aliases = {item.alias.lower() for item in outer.expressions if isinstance(item, exp.Alias)}
        if (where := select.args.get("where")) is not None:
            found.substitute(where, free=set(), free_first=False)
            having = merged.args.get("having")
            both = [part.this for part in (having, where) if part is not None]
            merged.set("having", exp.Having(this=_all(both)))
        if (order := select.args.get("order")) is not None:
            found.substitute(order, free=aliases, free_first=True)
            merged.set("order", order)
        for clause in ("limit", "offset"):
            if select.args.get(clause):
                merged.set(clause, select.args[clause])
        merged.set("expressions", outer.expressions)
        return merged

    def _rolled_up(self, select: exp.Select, inner: exp.Select, name: str) -> exp.Select | None:
        """Counts and sums of groups, added up into larger groups: the same, asked of the larger groups."""
        if used(select) - (_ROWS | {"group", "limit", "offset", "having"}):
            return None
        if used(inner) & {"having", "limit", "offset", "distinct"}:
            return None
        plain = resolved(inner, self._domain, self._copier)
        columns, _ = columns_of(plain, self._copier)
        found = _SubqueryColumns(self._copier, name, columns, passes=False)
        outer = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
        added: list[tuple[Node, Node]] = []
        select = select.copy()
        select.set("from_", inner.args["from_"].copy())
        for column in select.find_all(exp.Column):
            own = not column.table and column.name.lower() in outer and column.find_ancestor(exp.Order)
            if own:
                continue  # ORDER BY means the column of the outer SELECT
            if not found.knows(column):
                if not column.table and column.name.lower() in outer:
                    continue
                return None
            of = found.columns[column.name.lower()]
            if of.find(exp.AggFunc) is None:
                continue
            core = of.this if isinstance(of, exp.Filter) else of
            if (
                not isinstance(column.parent, exp.Sum)
                or not isinstance(core, _ADDED)
                or core.find(exp.Distinct)
            ):
                return None
            added.append((column.parent, of))
        sums = {id(node) for node, _ in added}
        if any(id(node) not in sums for node in select.find_all(exp.AggFunc, exp.Window)):
            return None
        if any(item.is_star for item in select.expressions) or not (added or select.args.get("group")):
            return None
        _name_items(select)
        for node, of in added:
            node.replace(self._copier.copy(of))
        for clause in sorted(used(select) - {"from_", "kind", "limit", "offset"}):
            parts = select.args[clause]
            free = outer if clause in ("order", "group", "having") else set[str]()
            for part in parts if isinstance(parts, list) else [parts]:
                found.substitute(part, free=free, free_first=clause == "order", known_only=True)
        both = [part.this for part in (inner.args.get("where"), select.args.get("where")) if part is not None]
        select.set("where", exp.Where(this=_all(both)) if both else None)
        return select


class _SubqueryColumns:
    """The columns of a sub-query called `name`: what stands in their place when it is merged."""

    def __init__(self, copier: Copier, name: str, columns: Mapping[str, Node], *, passes: bool) -> None:
        self._copier = copier
        self._name = name
        self.columns = columns
        self._passes = passes

    def knows(self, column: exp.Column) -> bool:
        return (
            not column.table or column.table.lower() == self._name
        ) and column.name.lower() in self.columns

    def substitute(
        self, part: Node, *, free: Collection[str], free_first: bool, known_only: bool = False
    ) -> None:
        """Put what the columns stand for into a part of the outer SELECT; names in `free` are its own."""
        for column in list(part.find_all(exp.Column)):
            if column.find_ancestor(exp.Query) is not part.find_ancestor(exp.Query) or column.is_star:
                continue
            lower = column.name.lower()
            if not column.table and lower in free and (free_first or lower not in self.columns):
                continue
            if self.knows(column):
                column.replace(closed(self._copier.copy(self.columns[lower])))
            elif known_only:
                continue  # it is one of the table's already
            elif column.table and column.table.lower() != self._name:
                raise QueryError(f"there is no table {column.table[:60]!r} in this statement")
            elif self._passes:
                for place in ("table", "db", "catalog"):
                    column.set(place, None)
            else:
                raise QueryError(
                    f"there is no column {column.name[:60]!r} in the sub-query",
                    remedy=f"its columns are {', '.join(self.columns) or 'none'}",
                    suggestions=tuple(self.columns),
                )


def _all(conditions: list[Node]) -> Node | None:
    """Conditions that hold together; None where there is none."""
    if not conditions:
        return None
    joined = conditions[0]
    for more in conditions[1:]:
        joined = exp.And(this=exp.Paren(this=joined), expression=exp.Paren(this=more))
    return joined


def _name_items(select: exp.Select) -> None:
    select.set("expressions", [as_item(item) for item in select.expressions])
