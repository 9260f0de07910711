"""A domain from Python's own values: what `declare` is given instead of ``understudy.yml``.

Each attribute is written with the fields of the declaration file and read by the reader of that file, so that both
mean the same.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml
from yaml.representer import SafeRepresenter

from understudy.declaration.file import declared
from understudy.declaration.node import Node
from understudy.domain.attribute import Attribute
from understudy.domain.domain import Domain
from understudy.errors import DeclarationError

AttributeCells = Attribute | type[bool] | range | Sequence[Any] | Mapping[str, Any]
"""How the cells of an attribute may be given.

A list       one cell for each listed value; None among them adds a cell for missing values
`range`      whole numbers, as cells of so many as its step says: ``range(0, 120, 10)``
(low, high)  whole numbers, or days, from `low` to `high`, each a cell of its own; a moment stands for its day
(low, high, bins)  numbers between `low` and `high` in so many bins of one length
`bool`       false and true
A mapping    the fields of the declaration file: ``{"edges": [0, 18, 65, 120], "null": True}``, or
             ``{"type": "timestamp", "bounds": [first, last]}`` for moments of time
`Attribute`  such as ``us.Bins.between("age", [0, 18, 65, 120])``, as it is
"""


def domain_of(attributes: Mapping[str, AttributeCells]) -> Domain:
    """The domain of attributes by name. Raises a `DeclarationError` that names the attribute and what to write."""
    if not attributes:
        raise DeclarationError(
            "no attribute is declared",
            remedy="Give attributes={'sex': ['F', 'M'], 'age': range(0, 120, 10)}, or infer=True",
            file="declare",
        )
    for name in attributes:
        if not isinstance(name, str):
            raise _wrong(name, "an attribute is named by text", "Rename the column")
    made = _read(
        {n: _fields(n, cells) for n, cells in attributes.items() if not isinstance(cells, Attribute)}
    )
    return Domain(
        tuple(
            replace(cells, name=name, column=cells.column if cells.column != cells.name else name)
            if isinstance(cells, Attribute)
            else made[name]
            for name, cells in attributes.items()
        )
    )


def _read(written: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Attribute]:
    """Attributes from the fields that the declaration file has for them, by name."""
    if not written:
        return {}
    document = {
        "understudy": 1, "name": "frame", "source": "frame", "budget": {"epsilon": 1}, "attributes": dict(written)
    }  # fmt: skip
    try:
        # The nodes that the reader of the file would find, without their text: to scan it takes ten times as long.
        nodes = SafeRepresenter(sort_keys=False).represent_data(document)
        domain = declared(Node(nodes, "", "declare")).domain
    except yaml.YAMLError:
        raise DeclarationError(
            "a value is neither text, a number, a day nor true or false",
            remedy="Write plain values",
            file="declare",
        ) from None
    except DeclarationError as error:
        raise DeclarationError(
            error.problem, remedy=error.remedy, field=error.field, file="declare"
        ) from None
    return dict(zip(written, domain, strict=True))


def _fields(name: str, cells: Any) -> dict[str, Any]:
    """The fields of the declaration file that say the same."""
    if cells is bool:
        return {"type": "boolean"}
    if isinstance(cells, range):
        if cells.step < 1 or not len(cells):
            raise _wrong(name, "a range of cells rises, and is not empty", "Write range(0, 120, 10)")
        return {"type": "integer", "bounds": [cells.start, cells.stop - 1], "width": cells.step}
    if isinstance(cells, Mapping):
        return _mapping(name, cells)
    if isinstance(cells, tuple):
        return _bounds(name, [_plain(value) for value in cells])
    if isinstance(cells, str) or not hasattr(cells, "__iter__"):
        raise _wrong(
            name,
            "its cells are not given",
            "Write a list of categories, a range, (low, high), (low, high, bins), bool, or a mapping of fields",
        )
    if isinstance(cells, set | frozenset):
        cells = sorted(cells, key=str)
    values = [_plain(value) for value in cells]
    null = {"null": True} if any(value is None for value in values) else {}
    return {"type": "category", "values": [_category(name, v) for v in values if v is not None]} | null


def _bounds(name: str, given: list[Any]) -> dict[str, Any]:
    if len(given) == 3 and isinstance(given[2], int):
        return {"type": "real", "bounds": [float(given[0]), float(given[1])], "bins": given[2]}
    kinds = {type(value) for value in given}
    if len(given) == 2 and kinds in ({int}, {dt.date}):
        return {"type": "integer" if kinds == {int} else "date", "bounds": given}
    raise _wrong(
        name,
        "a tuple is (low, high) of whole numbers or days, or (low, high, bins) of numbers",
        "Write (0, 120), (0.0, 1e6, 20), or a list where categories are meant",
    )


def _mapping(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if given.get("type") == "timestamp":
        return {key: _written_moments(value) for key, value in given.items()}
    fields = {key: _nested(value) for key, value in given.items()}
    if "type" in fields:
        return fields
    if "values" in fields:
        return {"type": "category"} | fields
    ends = fields.get("edges") or fields.get("bounds") or []
    kinds = {type(value) for value in ends}
    found = "date" if kinds == {dt.date} else "integer" if kinds == {int} and "bins" not in fields else "real"
    if not kinds:
        raise _wrong(name, "its cells are not given", "Write 'values', 'edges' or 'bounds', or 'type'")
    return {"type": found} | fields


def _nested(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _nested(inner) for key, inner in value.items()}
    if isinstance(value, Collection) and not isinstance(value, str):
        return [_plain(inner) for inner in value]
    return _plain(value)


def _written_moments(value: Any) -> Any:
    """A field of a timestamp attribute, in which moments of time are written as the declaration file has them."""
    if isinstance(value, Collection) and not isinstance(value, str):
        return [_written_moments(inner) for inner in value]
    return str(value) if isinstance(value, dt.date) else _plain(value)


def _plain(value: Any) -> Any:
    """A value without the wrapping of numpy or pandas; a moment of time as its day."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, dt.datetime):
        return value.date()
    return value


def _category(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int):
        raise _wrong(name, "categories are text or whole numbers", "Cut numbers into bins: (0.0, 1.0, 20)")
    return str(value)


def _wrong(name: str, problem: str, remedy: str) -> DeclarationError:
    return DeclarationError(problem, remedy=remedy, field=f"attributes[{name!r}]", file="declare")
