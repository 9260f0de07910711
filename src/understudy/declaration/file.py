"""Reading ``understudy.yml``. Every complaint names the line, the field and the remedy."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml

from understudy.declaration.attributes import domain_of
from understudy.declaration.constraints import constraints_of
from understudy.declaration.declaration import (
    UNREADABLE,
    Counting,
    Declaration,
    Protect,
    SourceSpec,
    Undecodable,
    Unit,
)
from understudy.declaration.intake import UTF_8, column_names, encoding, share
from understudy.declaration.node import Node, root_of, text_of
from understudy.errors import DeclarationError
from understudy.privacy.budget import Budget
from understudy.privacy.filter import FILTERS
from understudy.privacy.limits import Limits
from understudy.privacy.relation import Neighbours

FORMAT = 1
STARTED = "Written by `understudy start`"
"""How the first line of a declaration begins that `understudy start` wrote."""

SECRETS = {"password", "passfile", "sslpassword", "token", "access_token", "motherduck_token", "private_key"}
"""Names of parameters of a URL that hold secrets, or say where they are."""


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


def was_started(path: Path) -> bool:
    """Whether a declaration file was written by `understudy start`, which pays for what it declares."""
    try:
        with path.open(encoding="utf-8") as text:
            return text.readline().startswith(f"# {STARTED}")
    except (OSError, UnicodeDecodeError):
        return False


def read(path: Path | str) -> Declaration:
    """The declaration in a file."""
    path = Path(path)
    text = text_of(path, absent="Draft one with `understudy init DATA`", large="Declare fewer cells")
    return parse(text, file=path.name)


def parse(text: str, *, file: str = "understudy.yml") -> Declaration:
    """The declaration in a text."""
    root = root_of(text, file=file, empty="Draft one with `understudy init DATA`")
    try:
        return declared(root)
    except DeclarationError as error:
        lacking = [number for number, line in enumerate(text.splitlines(), 1) if "# MISSING:" in line]
        if not lacking:
            raise
        marked = f"Lines marked MISSING are still to be filled in: {', '.join(map(str, lacking))}"
        raise DeclarationError(
            error.problem, remedy=f"{error.remedy}. {marked}", field=error.field, line=error.line, file=file
        ) from None


def declared(root: Node) -> Declaration:
    """The declaration in the nodes of a text."""
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
    domain = domain_of(top["attributes"])
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
            constraints=constraints_of(top["constraints"], domain) if "constraints" in top else (),
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
