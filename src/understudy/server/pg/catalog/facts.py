"""What every database of Postgres 15 holds in its catalog: facts that were read from a real server."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("postgres15.json.gz")


@dataclass(frozen=True, slots=True)
class Facts:
    """The catalog of Postgres 15 without any table of one's own.

    relations    by schema and name, the columns of each relation: pairs of a name and the name of a type
    rows         of those relations of `pg_catalog` that are the same in every database, column by column; numbers
                 stand for what Postgres shows by name in columns of types such as `regproc`
    formats      the name of each type in SQL, by its number
    indexes      the definitions of each index after its number, whole and as it is shown to people
    constraints  the definitions of each constraint likewise
    functions    of each function its number, arguments, arguments without defaults, and result
    keywords     what `pg_get_keywords()` returns
    """

    relations: dict[str, dict[str, list[tuple[str, str]]]]
    rows: dict[str, list[list[Any]]]
    formats: dict[int, str]
    indexes: list[list[Any]]
    constraints: list[list[Any]]
    functions: list[list[Any]]
    keywords: list[list[Any]]


@cache
def facts() -> Facts:
    """The facts, which are read from the package once."""
    found = json.loads(gzip.decompress(_FILE.read_bytes()))
    relations = {
        schema: {name: [(str(a), str(b)) for a, b in columns] for name, columns in held.items()}
        for schema, held in found["relations"].items()
    }
    return Facts(
        relations=relations,
        rows=found["rows"],
        formats={int(oid): str(name) for oid, name in found["formats"]},
        indexes=found["indexes"],
        constraints=found["constraints"],
        functions=found["functions"],
        keywords=found["keywords"],
    )
