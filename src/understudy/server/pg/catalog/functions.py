"""The functions of the catalog, which `functions.sql` defines as macros of the desk."""

from __future__ import annotations

import re
from pathlib import Path

_FILE = Path(__file__).with_name("functions.sql")
_PREFIX = "us_"


def statements() -> list[str]:
    """What makes the macros."""
    return _STATEMENTS


def _read() -> list[str]:
    text = re.sub(r"(?m)^--.*$", "", _FILE.read_text(encoding="utf-8"))
    return [part.strip() for part in text.split(";\n") if part.strip()]


def _forms() -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for statement in _STATEMENTS:
        name = statement.split(None, 3)[2]
        parameters = re.findall(rf"(?m)(?:^ +|{name} )\(([\w, ]*)\) AS \(", statement)
        found[name.removeprefix(_PREFIX)] = {len(part.split(",")) if part else 0 for part in parameters}
    return found


_STATEMENTS = _read()

FORMS = _forms()
"""By the name of a function of Postgres, how many arguments its macro takes, in each of its forms."""

VISIBLE = frozenset(name for name in FORMS if name.endswith("_is_visible"))
"""Functions that depend on the search path, which is given to them as a second argument."""
