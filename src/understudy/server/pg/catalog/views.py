"""The views of the catalog, which `views.sql` defines in the SQL of the desk."""

from __future__ import annotations

import re
from pathlib import Path

_FILE = Path(__file__).with_name("views.sql")
_TEXT = re.sub(r"(?m)^--.*$", "", _FILE.read_text(encoding="utf-8"))

VIEWS = frozenset(re.findall(r"CREATE VIEW (\w+)\.(\w+) AS", _TEXT))
"""The views, by the schema of the desk that holds them and their name."""


def statements(database: str) -> list[str]:
    """What makes the views of a database of this name."""
    name = "'" + database.replace("'", "''") + "'"
    return [part.strip().replace("'DATABASE'", name) for part in _TEXT.split(";\n") if part.strip()]
