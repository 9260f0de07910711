"""What the custodian's reading of a table found: kept beside the declaration, for its owner alone.

`understudy check --read` reads every declared value once, and writes down how many rows there were and how
many did not fit. It also writes down a verdict, which is what the declaration's tolerance made of these
counts then: the attributes of which more values were unreadable than is tolerated. Questions about these are
refused until the custodian has mended the declaration and read the table again.

Only the verdict is ever shown to an analyst, and it is fixed: it was decided once, by the custodian, about
one version of the table under one declaration. Nobody's question makes it anew, so that asking learns nothing
more about the table than this one statement, which the custodian has published by leaving the record in its
place. It is not differentially private. When the table, the declaration of its columns, or the tolerance
changes, the record stands for nothing any more.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.declaration.declaration import Declaration
from understudy.errors import SourceError, UnreadableError

if TYPE_CHECKING:
    from understudy.table.fit import Fit
    from understudy.table.source import Source

FORMAT = 1

OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """The custodian's statement about a table: when it was read, and what could not be read well enough.

    `unreadable` are the attributes of which too many values are unreadable; `incomplete` says that too many
    lines of a text file were lost.
    """

    when: str
    unreadable: frozenset[str] = frozenset()
    incomplete: bool = False

    def check(self, names: Iterable[str]) -> None:
        """Refuse a question about attributes that the custodian found to be unreadable. Looks at no data."""
        if self.incomplete:
            raise UnreadableError((), when=self.when)
        if found := tuple(name for name in dict.fromkeys(names) if name in self.unreadable):
            raise UnreadableError(found, when=self.when)


def verdict(declaration: Declaration, fit: Fit) -> ReadRecord:
    """What the declared tolerance makes of the counts."""
    above = {
        m.attribute.name
        for m in fit.attributes
        if m.unreadable > declaration.tolerated(m.attribute) * fit.rows
    }
    lines = fit.rows + fit.lost.dropped
    now = dt.datetime.now(dt.UTC).replace(microsecond=0).isoformat()
    return ReadRecord(now, frozenset(above), fit.lost.dropped > declaration.unreadable * lines)


def write_record(path: Path, declaration: Declaration, source: Source, fit: Fit) -> ReadRecord:
    """Keep what was read, for the owner of the file alone, in the place of an earlier record."""
    found = verdict(declaration, fit)
    kept = {
        "format": FORMAT,
        "note": "exact counts of the table, for its custodian; not for publication",
        "when": found.when,
        "table": declaration.name,
        "reading": _reading(declaration, source),
        "rows": fit.rows,
        "lines": {"dropped": fit.lost.dropped, "ragged": fit.lost.ragged},
        "attributes": {
            m.attribute.name: {"missing": m.missing, "unreadable": m.unreadable, "outside": m.outside}
            for m in fit.attributes
        },
        "unreadable": sorted(found.unreadable),
        "incomplete": found.incomplete,
    }
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, OWNER_ONLY)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(kept, file, ensure_ascii=False, indent=1)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise SourceError(
            f"what was read cannot be kept in {path} ({error.strerror}): make the folder writable for the "
            f"custodian"
        ) from None
    return found


def read_record(path: Path, declaration: Declaration, source: Source) -> ReadRecord | None:
    """The custodian's statement about the table as it is and as it is declared now; None where there is none."""
    try:
        kept: Any = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        return None
    except (OSError, ValueError, RecursionError):
        raise SourceError(
            f"the record of the last reading, {path.name}, cannot be read: run `understudy check --read` as "
            f"its owner"
        ) from None
    if not isinstance(kept, dict) or kept.get("reading") != _reading(declaration, source):
        return None
    named = kept.get("unreadable")
    unreadable = (
        frozenset(map(str, named)) if isinstance(named, list) else frozenset(declaration.domain.names)
    )
    return ReadRecord(str(kept.get("when", "")), unreadable, kept.get("incomplete") is not False)


def _reading(declaration: Declaration, source: Source) -> str:
    """A name for the rows, how they are read and cut, and what is tolerated; made of nothing that is in the rows.

    Where changes of the rows cannot be noticed, in a database or behind a view, it names the place alone.
    """
    rows = source.version or source.description
    attributes = [(a.meaning, declaration.tolerated(a)) for a in declaration.domain]
    meaning = repr((rows, attributes, declaration.unit, declaration.unreadable))
    return sha256(meaning.encode()).hexdigest()[:32]
