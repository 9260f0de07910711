"""Reading ``understudy.yml``. Every complaint names the line, the field and the remedy."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from understudy.declaration.declaration import (
    UNREADABLE,
    Counting,
    Declaration,
    Protect,
    SourceSpec,
    Undecodable,
    Unit,
)
from understudy.declaration.intake import INTAKE_FIELDS, UTF_8, column_names, encoding, intake_of, share
from understudy.declaration.node import Node, root_of, text_of
from understudy.declaration.round_edges import round_edges, time_edges
from understudy.declaration.skew import BINS
from understudy.domain.attribute import Attribute, Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.domain.instants import Instants
from understudy.errors import DeclarationError
from understudy.privacy.budget import Budget
from understudy.privacy.filter import FILTERS
from understudy.privacy.limits import Limits
from understudy.privacy.relation import Neighbours
from understudy.query.constraint import Constraint, determines, impossible

FORMAT = 1
MAX_CELLS = 1 << 24
"""Cells of one attribute; a slip such as `bounds: [0, 10000000000]` must not fill the memory."""

SECRETS = {"password", "passfile", "sslpassword", "token", "access_token", "motherduck_token", "private_key"}
"""Names of parameters of a URL that hold secrets, or say where they are."""

KINDS = ("category", "integer", "real", "boolean", "date", "timestamp")


def located(path: Path | str) -> Path:
    """The declaration file that a path means: itself, or the one in that folder."""
    path = Path(path)
    return path / "understudy.yml" if path.is_dir() else path


def record_place(path: Path) -> Path:
    """Where the custodian's reading of the table that a declaration file describes is written down."""
    return path.with_name(f"{path.stem}.read.json")


def copy_place(path: Path) -> Path:
    """Where the codes of the rows of the table that a declaration file describes are kept, where it permits it."""
    return path.with_suffix(".codes")


def read(path: Path | str) -> Declaration:
    """The declaration in a file."""
    path = Path(path)
    text = text_of(path, absent="Draft one with `understudy init DATA`", large="Declare fewer cells")
    return parse(text, file=path.name)


def parse(text: str, *, file: str = "understudy.yml") -> Declaration:
    """The declaration in a text."""
    root = root_of(text, file=file, empty="Draft one with `understudy init DATA`")
    try:
        return _declaration(root)
    except DeclarationError as error:
        lacking = [number for number, line in enumerate(text.splitlines(), 1) if "# MISSING:" in line]
        if not lacking:
            raise
        marked = f"Lines marked MISSING are still to be filled in: {', '.join(map(str, lacking))}"
        raise DeclarationError(
            error.problem, remedy=f"{error.remedy}. {marked}", field=error.field, line=error.line, file=file
        ) from None


def _declaration(root: Node) -> Declaration:
    keys = (
        "understudy", "name", "source", "table", "delimiter", "protect", "neighbours", "budget", "unit", "rows",
        "attributes", "ledger", "witness", "opening", "limits", "constraints", "coded_copy", "encoding", "header",
        "columns", "undecodable", "unreadable",
    )  # fmt: skip
    top = root.mapping(keys)
    for key in ("understudy", "name", "source", "budget", "attributes"):
        if key not in top:
            root.fail(f"{key!r} is missing", f"Add a line `{key}: …`")
    if top["understudy"].integer() != FORMAT:
        top["understudy"].fail("this format is not known", f"This program reads `understudy: {FORMAT}`")
    rows = top["rows"].mapping(("at_least", "at_most")) if "rows" in top else {}
    domain = _domain(top["attributes"])
    return root.guard(
        lambda: Declaration(
            name=_name(top["name"]),
            source=_source(top),
            domain=domain,
            budget=_budget(top["budget"]),
            protect=Protect(top["protect"].choice(tuple(Protect))) if "protect" in top else Protect.PRIVACY,
            neighbours=(
                Neighbours(top["neighbours"].choice(tuple(Neighbours)))
                if "neighbours" in top
                else Neighbours.REPLACE
            ),
            unit=_unit(top["unit"]) if "unit" in top else None,
            rows_at_least=rows["at_least"].integer() if "at_least" in rows else None,
            rows_at_most=rows["at_most"].integer() if "at_most" in rows else None,
            ledger=(
                _place(top["ledger"], "Put the whole URL into the environment variable UNDERSTUDY_LEDGER")
                if "ledger" in top
                else ""
            ),
            witness=top["witness"].text() if "witness" in top else "",
            opening=_opening(top["opening"]) if "opening" in top else Fraction(0),
            limits=_limits(top["limits"]) if "limits" in top else Limits(),
            constraints=_constraints(top["constraints"], domain) if "constraints" in top else (),
            coded_copy=top["coded_copy"].flag() if "coded_copy" in top else False,
            unreadable=share(top["unreadable"]) if "unreadable" in top else UNREADABLE,
        ),
        "Change the declaration",
    )


def _name(node: Node) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", node.text()):
        node.fail(
            "a name has letters, digits, dots and dashes", "Name the table, for example `name: patients`"
        )
    return node.text()


_SOURCE_FIELDS = (
    "url", "path", "schema", "table", "delimiter", "password_variable", "password_file", "count", "time_limit",
    "encoding", "undecodable", "header", "columns",
)  # fmt: skip


def _source(top: dict[str, Node]) -> SourceSpec:
    """A path or URL, or a mapping with more about it; what is said about a file may also stand beside it."""
    node = top["source"]
    fields: dict[str, Node] = {}
    if isinstance(node.yaml, yaml.MappingNode):
        fields = node.mapping(_SOURCE_FIELDS)
    for key in ("table", "delimiter", "encoding", "undecodable", "header", "columns"):
        if key in top and key in fields:
            top[key].fail(f"{key!r} stands here and in 'source'", "Keep one of them")
        if key in top:
            fields[key] = top[key]
    texts = {
        key: fields[key].text()
        for key in ("table", "schema", "password_variable", "password_file")
        if key in fields
    }
    place = fields.get("url") or fields.get("path")
    if isinstance(node.yaml, yaml.MappingNode):
        if place is None:
            node.fail(
                "'url' or 'path' is missing", "Write `source: {url: postgresql://host/database, table: …}`"
            )
    else:
        place = node
    return node.guard(
        lambda: SourceSpec(
            location=_place(place, "Name the variable or file that holds it: `password_variable: …`"),
            path=fields["path"].text() if "url" in fields and "path" in fields else "",
            delimiter=_delimiter(fields["delimiter"]) if "delimiter" in fields else ",",
            count=Counting(fields["count"].choice(tuple(Counting))) if "count" in fields else Counting.AUTO,
            time_limit=fields["time_limit"].integer() if "time_limit" in fields else None,
            encoding=encoding(fields["encoding"]) if "encoding" in fields else UTF_8,
            header=fields["header"].flag() if "header" in fields else True,
            columns=column_names(fields["columns"]) if "columns" in fields else (),
            undecodable=(
                Undecodable(fields["undecodable"].choice(tuple(Undecodable)))
                if "undecodable" in fields
                else Undecodable.DROP
            ),
            **texts,
        ),
        "Change the source",
    )


def _delimiter(node: Node) -> str:
    text = {"\\t": "\t", "tab": "\t"}.get(node.text(), node.text())
    if len(text) != 1 or text in '"\r\n':
        node.fail("a delimiter is one character", 'Write `delimiter: ";"` or `delimiter: tab`')
    return text


def _budget(node: Node) -> Budget:
    fields = node.mapping(("epsilon", "delta", "key_delta", "filter", "order", "reserve"))
    if "epsilon" not in fields:
        node.fail("'epsilon' is missing", "Write `budget: {epsilon: 1}` or `{epsilon: 1, delta: 1e-9}`")
    delta = fields["delta"].number() if "delta" in fields else Fraction(0)
    keys = fields["key_delta"].number() if "key_delta" in fields else Fraction(0)
    kept = fields["filter"].choice(FILTERS) if "filter" in fields else "zcdp"
    order, reserve = (fields[key].number() if key in fields else None for key in ("order", "reserve"))
    return node.guard(
        lambda: Budget.of(
            fields["epsilon"].number(), delta, key_delta=keys, filter=kept, order=order, reserve=reserve
        ),
        "Choose another budget",
    )


def _place(node: Node, remedy: str) -> str:
    """A path or a URL; the declaration is public, so a URL with a password is refused."""
    text = node.text()
    if "://" in text:
        try:
            parts = urlsplit(text)
            named = {name.lower() for name in parse_qs(f"{parts.query};{parts.path}".replace(";", "&"))}
            secret = parts.password is not None or bool(SECRETS & named)
            if "," not in parts.netloc:  # several hosts have a port each
                _ = parts.port
        except ValueError:
            node.fail("this is not a URL", "Write a path, or postgresql://host:port/database")
        if secret:
            node.fail("a password does not belong into a public file", remedy)
    return text


def _opening(node: Node) -> Fraction:
    fields = node.mapping(("epsilon",))
    if "epsilon" not in fields:
        node.fail("'epsilon' is missing", "Write `opening: {epsilon: 0.3}`: what was spent before")
    spent = fields["epsilon"].number()
    if spent < 0:
        fields["epsilon"].fail("what was spent before cannot be negative", "Write 0 or more")
    return spent


def _limits(node: Node) -> Limits:
    fields = node.mapping(("analyst", "analysts", "day", "month"))
    shares = {name: child.number() for name, child in fields.items() if name != "analysts"}
    listed = fields["analysts"].mapping(None) if "analysts" in fields else {}
    named = {name: child.number() for name, child in listed.items()}
    remedy = 'Write `limits: {analyst: 0.2, day: 0.5}`, or `analysts: {ada: 0.2, "*": 0.1}` by name'
    return node.guard(lambda: Limits(**shares, analysts=named), remedy)


def _unit(node: Node) -> Unit:
    fields = node.mapping(("column", "max_rows", "key"))
    for key in ("column", "max_rows"):
        if key not in fields:
            node.fail(f"{key!r} is missing", "Write `unit: {column: person, max_rows: 3}`")
    column, most = fields["column"].text(), fields["max_rows"].integer()
    unit = node.guard(lambda: Unit(column, most), "Choose another bound")
    return replace(unit, key=fields["key"].text()) if "key" in fields else unit


def _constraints(node: Node, domain: Domain) -> tuple[Constraint, ...]:
    return tuple(_constraint(item, domain) for item in node.items())


def _constraint(node: Node, domain: Domain) -> Constraint:
    fields = node.mapping(("impossible", "attribute", "determines", "as"))
    if fields.keys() == {"impossible"}:
        told = fields["impossible"]
        return told.guard(
            lambda: impossible(domain, told.text()),
            "Write a condition, such as `age < 16 and retired = true`",
        )
    if fields.keys() != {"attribute", "determines", "as"}:
        node.fail(
            "a constraint has the key 'impossible', or 'attribute', 'determines' and 'as'",
            "Write `- impossible: age < 16 and retired = true`, "
            "or `- {attribute: city, determines: country, as: {Bree: Eriador}}`",
        )
    one, other = (
        fields[key].guard(lambda key=key: domain[fields[key].text()], "Name a declared attribute")
        for key in ("attribute", "determines")
    )
    cells: dict[int, int] = {}
    for key, value in fields["as"].pairs():
        cell = _cell(key, one)
        if cell in cells:
            key.fail(f"the cell of {key.text()!r} in {one.name} stands here twice", "Keep one of them")
        cells[cell] = _cell(value, other)
    return node.guard(lambda: determines(domain, one.name, other.name, cells), "Change the constraint")


def _cell(node: Node, attribute: Attribute) -> int:
    """The declared cell of a value; a slip must not end up in `other`, so what is outside is refused."""
    kinds = {"category": node.text, "boolean": node.flag, "integer": node.integer, "date": node.date,
             "timestamp": node.instant}  # fmt: skip
    found = attribute.proper_code(kinds.get(attribute.kind, node.real)())
    if found is None:
        node.fail(f"{node.text()!r} is in no declared cell of {attribute.name}", "Write one of its values")
    return found


def _domain(node: Node) -> Domain:
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
