"""The declared attributes as a grid: what a column is worth in every cell, and how constants compare with it."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
from sqlglot import exp

from understudy.domain.attribute import Attribute, Mask, close_to, listed
from understudy.domain.bins import Bins
from understudy.domain.domain import Clique, Domain
from understudy.domain.edge import as_number
from understudy.errors import QueryError
from understudy.sql.changes import edges_of, is_alone
from understudy.sql.constants import Constant, is_number, plain, read_moment, read_number
from understudy.sql.evaluate import Comparison, Evaluator, Node, shown
from understudy.sql.grid import TEMPORAL, Bools, Numbers, Scope, Truths, Value, of_attribute, of_mask
from understudy.sql.scalar import FUNCTIONS


def grid_evaluator(domain: Domain) -> Evaluator:
    """Expressions over the cells of a domain."""
    scope = Scope.of(domain)

    def leaf(node: Node) -> Value | None:
        return of_attribute(attribute_of(domain, node)) if isinstance(node, exp.Column) else None

    def compare(node: Node, operator: str, constant: Constant) -> Truths | None:
        attribute = attribute_of(domain, node)
        mask = _compared(attribute, operator, constant)
        return None if mask is None else of_mask((attribute.name,), mask)

    def cut(node: Node, compared: Comparison, clique: Clique, undecided: Bools) -> QueryError:
        refusal = _cut_bin(domain, node, clique, undecided)

        def decided(finer: Domain) -> tuple[Truths, Bools]:
            return grid_evaluator(finer).decided(compared.operator, compared.left, compared.right)

        refusal.cuts = edges_of(domain, clique, undecided, decided)
        return refusal

    def bins(node: Node) -> tuple[Numbers, Numbers] | None:
        attribute = attribute_of(domain, node) if isinstance(node, exp.Column) else None
        return _edges(attribute) if isinstance(attribute, Bins) else None

    return Evaluator(scope, leaf, compare_attribute=compare, cut=cut, bins=bins, functions=FUNCTIONS)


def _compared(attribute: Attribute, operator: str, constant: Constant) -> Mask | None:
    """An attribute compared with a constant by its own rules; None where its bins must decide.

    Of a binned attribute a text is the label of a bin, a number in digits, or a day; a moment of time that is not
    midnight lies inside a day, so it is compared as an interval is.
    """
    if isinstance(attribute, Bins) and isinstance(constant, str):
        if attribute.kind in TEMPORAL and ".." not in constant and constant not in attribute.labels:
            constant = plain(read_moment(constant)) or constant if constant[:4].isdigit() else constant
        elif attribute.kind not in TEMPORAL and is_number(constant):
            number = plain(read_number(constant))
            assert number is not None
            constant = number
    if attribute.kind == "date" and isinstance(constant, dt.datetime):
        return None
    try:
        return attribute.compare(operator, constant)
    except QueryError as error:
        if attribute.kind != "date":
            raise
        tries = [_quoted(one) for one in error.suggestions]
        refusal = QueryError(error.problem, remedy=_quoted(error.remedy), suggestions=tries)
        refusal.cuts = error.cuts
        raise refusal from None


def _quoted(words: str) -> str:
    """Days in quotes: without them SQL would subtract."""
    return re.sub(r"([<>=] )(\d{4}-\d{2}-\d{2})", r"\1'\2'", words)


def _edges(attribute: Bins) -> tuple[Numbers, Numbers]:
    """Where the bin of each cell starts, and where it stops; missing where a cell is no bin."""
    missing = np.arange(attribute.size) >= attribute.proper_size
    edges = [as_number(edge) for edge in (*attribute.starts, attribute.upper)]
    found = []
    for part in (edges[:-1], edges[1:]):
        values = np.zeros(attribute.size)
        values[: attribute.proper_size] = part
        found.append(Numbers((attribute.name,), values, values, values, null=missing, kind=attribute.kind))
    return found[0], found[1]


def attribute_of(domain: Domain, node: Node) -> Attribute:
    """The attribute that a column names: exactly, or up to case where that is one attribute only."""
    name = node.name
    if name in domain:
        return domain[name]
    alike = [attribute for attribute in domain if attribute.name.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    if (listed_as := _listed_as(node)) is not None:
        raise QueryError(
            f"{name[:60]!r} is a name of the SELECT list, which stands for no column of the table",
            remedy=f"write {shown(listed_as)} in its place"
            + ("; a condition on it stands after HAVING" if node.find_ancestor(exp.Where) else ""),
        )
    text = "'" + name[:60].replace("'", "''") + "'"
    hint = f"if it is a value, write {text}"
    if getattr(node.this, "quoted", False):  # as other languages write a text
        hint = f"in SQL double quotes name a column; {hint}"
    close = close_to(name[:60], domain.names)
    raise QueryError(
        f"there is no attribute {name[:60]!r}",
        remedy=f"the domain has: {listed(close, domain.names, '`domain.names`')}; {hint}",
        suggestions=close,
    )


def _listed_as(node: Node) -> Node | None:
    """What a name of the SELECT list stands for; None for any other."""
    select = node.find_ancestor(exp.Select)
    for item in [] if select is None else select.expressions:
        if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
            return item.this
    return None


def _cut_bin(domain: Domain, node: Node, clique: Clique, undecided: Bools) -> QueryError:
    cell = tuple(int(i) for i in np.argwhere(np.atleast_1d(undecided))[0])
    for name, code in zip(clique, cell, strict=False):
        attribute = domain[name]
        if isinstance(attribute, Bins) and not is_alone(domain, clique, name):
            others = " and ".join(other for other in clique if isinstance(domain[other], Bins))
            return QueryError(
                f"{shown(node)} is about {others} together: their bins do not decide it",
                remedy="compare each of them with constants",
            )
        if isinstance(attribute, Bins) and code < attribute.proper_size:
            edges = (*attribute.starts, attribute.upper)
            return QueryError(
                f"{shown(node)} cuts the bin {attribute.labels[code]} of {name}: it holds for some of its values "
                f"and not for others",
                remedy=f"Let it change at an edge, {edges[code]} or {edges[code + 1]}",
                suggestions=(str(edges[code]), str(edges[code + 1])),
            )
    return QueryError(f"{shown(node)} is not decided by the declared cells")
