"""Where a ledger is kept: a file or a database, named by the environment, the declaration, or the default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from understudy.errors import LedgerError

LEDGER_VARIABLE = "UNDERSTUDY_LEDGER"
WITNESS_VARIABLE = "UNDERSTUDY_WITNESS"
DEFAULT_FILE = "understudy.ledger"


def ledger_place(declared: str, *, base: Path, environ: Mapping[str, str]) -> URL:
    """The environment goes before the declaration, the declaration before the default beside it."""
    given = environ.get(LEDGER_VARIABLE, "")
    if given and "://" not in given and not Path(given).is_absolute():
        raise _relative(LEDGER_VARIABLE)
    text = given or declared or DEFAULT_FILE
    return _database(text) if "://" in text else _file(base / text)


def witness_place(declared: str, *, base: Path, environ: Mapping[str, str]) -> Path | None:
    """The witness's file, where there is one."""
    given = environ.get(WITNESS_VARIABLE, "")
    if given and not Path(given).is_absolute():
        raise _relative(WITNESS_VARIABLE)
    text = given or declared
    return base / text if text else None


def _relative(variable: str) -> LedgerError:
    return LedgerError(
        f"{variable} is a relative path: it would mean another file in every folder",
        remedy="Write an absolute path or a URL",
    )


def _file(path: Path) -> URL:
    # Of a link that leads to itself this is the link, which is refused when it is looked at.
    return URL.create("sqlite", database=os.path.realpath(path))


def _database(text: str) -> URL:
    # The text may hold a password: it is in no message.
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # a port that is no number
        raise LedgerError(
            "the ledger's URL cannot be read", remedy="Write postgresql://host:port/database"
        ) from None
    backend = url.drivername.split("+")[0]
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and url.database and Path(url.database).is_absolute():
        return _file(Path(url.database))
    raise LedgerError(
        f"a ledger cannot be kept in {backend!r}",
        remedy="Give a file, sqlite:////absolute/path or postgresql://host/database",
    )
