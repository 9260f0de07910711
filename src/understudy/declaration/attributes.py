"""Reading `attributes:`: the declared cells of each column. Complaints name line, field and remedy."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from understudy.declaration.intake import INTAKE_FIELDS, intake_of, share
from understudy.declaration.node import Node
from understudy.declaration.round_edges import round_edges, time_edges
from understudy.declaration.skew import BINS
from understudy.domain.attribute import Attribute, Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.domain.instants import Instants

MAX_CELLS = 1 << 24
"""Cells of one attribute; a slip such as `bounds: [0, 10000000000]` must not fill the memory."""

KINDS = ("category", "integer", "real", "boolean", "date", "timestamp")


def domain_of(node: Node) -> Domain:
    """The domain that the attributes of a declaration make."""
    if node.is_empty:
        node.fail(
            "no attribute is declared", "Declare a column at least: `sex: {type: category, values: [F, M]}`"
        )
    attributes = tuple(_attribute(name, child) for name, child in node.mapping(None).items())
    return node.guard(lambda: Domain(attributes), "Rename or remove one of them")


_FIELDS = {
    "category": ("values",),
    "boolean": ("words",),
    "integer": ("bounds", "edges", "width", "resolution"),
    "real": ("bounds", "edges", "bins", "resolution"),
    "date": ("bounds", "edges"),
    "timestamp": ("bounds", "edges", "width", "resolution"),
}


def _attribute(name: str, node: Node) -> Attribute:
    every = tuple(dict.fromkeys(key for kind in KINDS for key in (*_FIELDS[kind], *INTAKE_FIELDS[kind])))
    fields = node.mapping(("type", "column", "null", "outside", "unreadable", *every))
    if "type" not in fields:
        node.fail("'type' is missing", f"Write `type:` and one of {', '.join(KINDS)}")
    kind = fields["type"].choice(KINDS)
    for key in every:
        if key in fields and key not in _FIELDS[kind] + INTAKE_FIELDS[kind]:
            allowed = ", ".join(_FIELDS[kind] + INTAKE_FIELDS[kind])
            fields[key].fail(f"{key!r} means nothing for a {kind}", f"Fields of a {kind}: {allowed}")
    common: dict[str, Any] = {
        "name": name,
        "column": fields["column"].text() if "column" in fields else "",
        "null": fields["null"].flag() if "null" in fields else False,
        "intake": intake_of(node, fields),
        "unreadable": share(fields["unreadable"]) if "unreadable" in fields else None,
    }
    outside: dict[str, Any] = {}
    if "outside" in fields:
        outside["outside"] = Outside(fields["outside"].choice(tuple(Outside)))
    remedy = "Change this attribute"
    if kind == "boolean":
        if outside:
            fields["outside"].fail(
                "a boolean has no outside", "Remove the line; add `null: true` for missing values"
            )
        if "words" in fields:
            common["words"] = tuple(word.text() for word in fields["words"].items())
            if len(common["words"]) != 2:
                fields["words"].fail(
                    "a boolean has two words", "Write `words: [yes, no]`, that for true first"
                )
        return node.guard(lambda: Boolean(**common), remedy)
    if kind == "category":
        if "values" not in fields:
            node.fail("'values' is missing", "List them: `values: [red, green]`")
        values = tuple(value.text() for value in fields["values"].items())
        return node.guard(lambda: Categories(**common, values=values, **outside), remedy)
    decimals = fields["decimals"].integer() if "decimals" in fields else None
    starts, upper = _bins(kind, node, fields)
    if kind == "timestamp":
        seconds = fields["resolution"].integer() if "resolution" in fields else 1
        return node.guard(
            lambda: Instants(**common, starts=starts, upper=upper, step=seconds, **outside), remedy
        )
    step = Fraction(str(fields["resolution"].real())) if "resolution" in fields else None
    return node.guard(
        lambda: Bins(**common, starts=starts, upper=upper, decimals=decimals, resolution=step, **outside),
        remedy,
    )


def _bins(kind: str, node: Node, fields: dict[str, Node]) -> tuple[tuple, int | float | dt.date]:
    """The starts of the bins and the upper bound, from edges or from bounds."""
    scalar: Callable[[Node], int | float | dt.date] = {
        "integer": Node.integer, "real": Node.real, "date": Node.date, "timestamp": Node.instant
    }[kind]  # fmt: skip
    if ("edges" in fields) == ("bounds" in fields):
        node.fail("give either 'edges' or 'bounds'", "Write `edges: [0, 18, 65, 120]` or `bounds: [0, 120]`")
    if "edges" in fields:
        edges = [scalar(item) for item in fields["edges"].items()]
        if len(edges) < 2 or edges[-1] == edges[-2]:
            fields["edges"].fail("a bin needs two different edges", "Write at least `edges: [low, high]`")
        return tuple(edges[:-1]), edges[-1]
    bounds = [scalar(item) for item in fields["bounds"].items()]
    if len(bounds) != 2 or not bounds[0] < bounds[1]:  # type: ignore[operator]
        fields["bounds"].fail("bounds are two rising values", "Write `bounds: [low, high]`")
    return _equal_bins(kind, bounds, fields)


def _equal_bins(kind: str, bounds: list, fields: dict[str, Node]) -> tuple[tuple, int | float | dt.date]:
    low, high = bounds
    if kind == "timestamp":
        return _timed_bins(low, high, fields)
    if "resolution" in fields and not {"width", "bins"} & fields.keys():
        return _round_bins(kind, low, high)
    if kind == "real":
        if "bins" not in fields:
            fields["bounds"].fail("a real needs 'bins'", "Write `bins: 20`, or give `edges`")
        count = _sane(fields["bins"], fields["bins"].integer())
        return tuple(low + (high - low) * i / count for i in range(count)), high
    if kind == "date":
        days = _sane(fields["bounds"], (high - low).days + 1)
        return tuple(low + dt.timedelta(days=i) for i in range(days)), high
    width = fields["width"].integer() if "width" in fields else 1
    if width < 1:
        fields["width"].fail("a width is at least 1", "Write `width: 5`")
    _sane(fields["bounds"], (high - low) // width + 1)
    return tuple(range(low, high + 1, width)), high


def _timed_bins(low: dt.datetime, high: dt.datetime, fields: dict[str, Node]) -> tuple[tuple, dt.datetime]:
    """Bins of `width` seconds from the lower bound on; without a width, bins of a usual length of time."""
    if "width" not in fields:
        step = fields["resolution"].integer() if "resolution" in fields else 1
        return tuple(time_edges(low, high, max(step, 1))[:-1]), high
    width = fields["width"].integer()
    if width < 1:
        fields["width"].fail("a width is at least one second", "Write `width: 3600` for hours")
    count = _sane(fields["bounds"], (high - low) // dt.timedelta(seconds=width) + 1)
    return tuple(low + dt.timedelta(seconds=i * width) for i in range(count)), high


def _round_bins(kind: str, low: int | float, high: int | float) -> tuple[tuple, int | float]:
    """Bins at round places, for a measure of which nothing but bounds and a resolution is declared."""
    if kind == "integer" and high - low < 2 * BINS:
        return tuple(range(int(low), int(high) + 1)), high
    edges = round_edges(Fraction(str(low)), Fraction(str(high)), kind)
    read = int if kind == "integer" else float
    return tuple(read(edge) for edge in edges[:-1]), high


def _sane(node: Node, cells: int) -> int:
    if not 1 <= cells <= MAX_CELLS:
        node.fail(
            f"{cells:,} cells for one attribute", f"Between 1 and {MAX_CELLS:,} are possible: use wider bins"
        )
    return cells
