"""Names in scope: the sources of a SELECT, their columns and the types of these."""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.server.pg.catalog.kinds import Kind

Shape = list[tuple[str, Kind]]
"""The columns of a relation or of a result, in order."""


@dataclass
class SourceScope:
    """The relations that expressions of one SELECT can name, by alias, inside those of the statement around it."""

    outer: SourceScope | None = None
    ctes: dict[str, Shape] = field(default_factory=dict)
    sources: dict[str, Shape] = field(default_factory=dict)
    oids: dict[str, int] = field(default_factory=dict)
    """The numbers of those sources that are relations of the catalog, for `tableoid`."""

    def cte(self, name: str) -> Shape | None:
        """The columns of a common table expression that is in scope."""
        if name in self.ctes:
            return self.ctes[name]
        return self.outer.cte(name) if self.outer else None

    def kind(self, source: str, column: str) -> Kind | None:
        """The type of a column, of one source or of any; None where no source has such a column."""
        for name, shape in self.sources.items():
            if source in ("", name):
                for known, kind in shape:
                    if known.lower() == column:
                        return kind
        return self.outer.kind(source, column) if self.outer else None

    def oid(self, source: str) -> int | None:
        """The number of the relation behind a source."""
        if not source and len(self.oids) == 1:
            return next(iter(self.oids.values()))
        if source in self.sources:
            return self.oids.get(source)
        return self.outer.oid(source) if self.outer else None
