"""A domain as plain values: in the certificate of a release, and in what a server tells about a table."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from typing import Any

from understudy.domain.attribute import Attribute, Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.date_format import DateFormat
from understudy.domain.domain import Domain
from understudy.domain.instants import Instants
from understudy.domain.intake import Intake


def domain_as_plain(domain: Domain) -> list[dict[str, Any]]:
    """Everything that is declared about the attributes."""
    return [_attribute_as_plain(attribute) for attribute in domain]


def domain_from_plain(plain: Sequence[Mapping[str, Any]]) -> Domain:
    """The inverse of `domain_as_plain`. How a column is called and read may be left out.

    `resolution`, which makes a number a measure and changes no cell, is read where it is told: a server tells it,
    and the certificate of a release, whose digest names the cells, does not.

    Raises a `LookupError` where something is missing that must be said, a `ValueError` or `TypeError` where it
    is of another kind, and a `DomainError` where it makes no attribute.
    """
    return Domain(tuple(_attribute_from_plain(entry) for entry in plain))


def domain_digest(domain: Domain) -> str:
    """A name for the declared domain: two domains with one digest cut every column in the same way.

    The words by which rows say true and false decide no cell, and are left out.
    """
    cells = [
        {key: told for key, told in plain.items() if key != "words"} for plain in domain_as_plain(domain)
    ]
    text = json.dumps(cells, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def _attribute_as_plain(attribute: Attribute) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": attribute.name,
        "column": attribute.column,
        "type": attribute.kind,
        "outside": str(attribute.outside),
        "null": attribute.null,
    }
    if isinstance(attribute, Categories):
        plain["values"] = list(attribute.values)
    if isinstance(attribute, Boolean) and attribute.words != Boolean.words:
        plain["words"] = list(attribute.words)
    if isinstance(attribute, Bins):
        edges = [*attribute.starts, attribute.upper]
        plain["edges"] = [edge.isoformat() if isinstance(edge, dt.date) else edge for edge in edges]
        if isinstance(attribute, Instants) and attribute.step != 1:
            plain["resolution"] = attribute.step
        plain |= {} if attribute.decimals is None else {"decimals": attribute.decimals}
    if attribute.intake:
        plain["intake"] = _intake_as_plain(attribute.intake)
    return plain


def _intake_as_plain(intake: Intake) -> dict[str, Any]:
    return {
        "formats": [format.text for format in intake.formats],
        "missing": list(intake.missing),
        "strip": list(intake.strip),
        "decimal": intake.decimal,
        "thousands": intake.thousands,
        "percent": intake.percent,
    }


def _intake_from_plain(plain: Mapping[str, Any]) -> Intake:
    return Intake(
        formats=tuple(DateFormat(text) for text in plain["formats"]),
        missing=tuple(plain["missing"]),
        strip=tuple(plain["strip"]),
        decimal=plain["decimal"],
        thousands=plain["thousands"],
        percent=plain["percent"],
    )


def _attribute_from_plain(plain: Mapping[str, Any]) -> Attribute:
    common: dict[str, Any] = {"name": plain["name"], "column": plain.get("column", ""), "null": plain["null"]}
    if "intake" in plain:
        common["intake"] = _intake_from_plain(plain["intake"])
    if plain["type"] == "boolean":
        return Boolean(**common, words=plain.get("words", Boolean.words))
    common["outside"] = Outside(plain["outside"])
    if plain["type"] == "category":
        return Categories(**common, values=tuple(plain["values"]))
    if plain["type"] == "timestamp":
        *begins, end = (dt.datetime.fromisoformat(edge) for edge in plain["edges"])
        return Instants(**common, starts=tuple(begins), upper=end, step=plain.get("resolution", 1))
    read = {"integer": int, "real": float, "date": dt.date.fromisoformat}[plain["type"]]
    *starts, upper = (read(edge) for edge in plain["edges"])
    step = plain.get("resolution")
    if step is not None:
        common["resolution"] = Fraction(str(step))
    return Bins(**common, starts=tuple(starts), upper=upper, decimals=plain.get("decimals"))
