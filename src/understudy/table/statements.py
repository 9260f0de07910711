"""Statements of the embedded engine that encode rows, kept by the public facts that they follow from.

To write such a statement takes Ibis longer than the engine takes to run it on a small table, and tables of the
same columns under the same declaration are opened, and looked at, again and again.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields
from threading import Lock
from typing import Any

from understudy.declaration.declaration import Unit
from understudy.domain.domain import Domain

MOST_STATEMENTS = 128
"""Statements that are kept; those that were not asked for the longest go first."""

LONGEST_STATEMENT = 1 << 16
"""Characters of a statement that is kept: one with thousands of categories is written anew each time."""

Key = tuple[Any, ...]

_kept: OrderedDict[Key, str] = OrderedDict()
_lock = Lock()


def key_of(rows: Any, domain: Domain, unit: Unit | None, *facts: Any) -> Key | None:
    """All that a statement about these rows follows from; None where that cannot be written down.

    Numbers that are equal but of different types (0, 0.0, -0.0) make different statements, so values are compared
    as pickle writes them, and attributes by their classes and fields.
    """
    import ibis.expr.operations as operations

    table = rows.op()
    if type(table) is not operations.DatabaseTable or (unit is not None and unit.cells is not None):
        return None
    whose = None if unit is None else (unit.column, unit.max_rows, unit.key)
    declared = [[getattr(attribute, field.name) for field in fields(attribute)] for attribute in domain]
    try:
        written = pickle.dumps((declared, whose, facts))
    except (pickle.PicklingError, AttributeError, TypeError):  # a class that somebody made inside a function
        return None
    place, kinds = table.namespace, tuple(type(attribute) for attribute in domain)
    columns = tuple(table.schema.items())
    return (table.name, place.catalog, place.database, columns, kinds, hashlib.sha256(written).digest())


def statement_of(key: Key | None, write: Callable[[], str]) -> str:
    """The statement that is kept under the key, or the one that is written now."""
    if key is None:
        return write()
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    statement = write()
    if len(statement) <= LONGEST_STATEMENT:
        with _lock:
            _kept[key] = statement
            while len(_kept) > MOST_STATEMENTS:
                _kept.popitem(last=False)
    return statement
