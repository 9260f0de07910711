"""What a statement depends on besides the catalog: who asks, and the settings of the connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from understudy.server.pg.catalog.facts import facts

_SETTINGS = {
    "server_version": "15.0",
    "server_version_num": "150000",
    "search_path": '"$user", public',
    "timezone": "UTC",
    "default_transaction_read_only": "on",
    "transaction_read_only": "on",
    "lc_collate": "C",
    "lc_ctype": "C",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "is_superuser": "off",
    "role": "none",
    "transaction_isolation": "read committed",
    "transaction_deferrable": "off",
    "data_checksums": "off",
    "jit": "off",
}
"""What is otherwise here than Postgres delivers it, or stands in no view of settings."""


@dataclass(frozen=True)
class SessionFacts:
    """A connection: the analyst's name, the name of the database, and the settings that were made."""

    user: str
    database: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def schemas(self) -> list[str]:
        """The schemas of the search path that there are, in order, without `pg_catalog`."""
        path = self.setting("search_path") or ""
        names = [name or word.lower() for name, word in re.findall(r'"([^"]*)"|([^\s,"]+)', path)]
        known = ("public", "synthetic", "information_schema", "pg_catalog")
        return [name for name in dict.fromkeys(names) if name in known]

    @property
    def visible(self) -> list[str]:
        """The schemas whose objects need no qualifier, in the order in which they are searched."""
        schemas = self.schemas
        return schemas if "pg_catalog" in schemas else ["pg_catalog", *schemas]

    @property
    def version(self) -> str:
        """What `version()` returns."""
        return f"PostgreSQL {self.setting('server_version')} (Understudy)"

    def setting(self, name: str) -> str | None:
        """The value of a setting; None where there is no such."""
        name = name.lower()
        for known in (self.settings, _SETTINGS, _delivered()):
            if name in known:
                return known[name]
        return None

    def changed(self) -> dict[str, str]:
        """The settings whose value is not the one that Postgres delivers, by their names in small letters."""
        delivered = _delivered()
        return {
            name: value
            for name, value in {**_SETTINGS, **self.settings}.items()
            if delivered.get(name, value) != value
        }


def _delivered() -> dict[str, str]:
    if not _known:
        held = facts()
        columns = [name for name, _ in held.relations["pg_catalog"]["pg_settings"]]
        rows = held.rows["pg_settings"]
        names, values = rows[columns.index("name")], rows[columns.index("setting")]
        _known.update(
            {name.lower(): value for name, value in zip(names, values, strict=True) if value is not None}
        )
    return _known


_known: dict[str, str] = {}
