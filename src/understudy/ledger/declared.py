"""The ledger that a declaration stands for, and the files of its project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.engine import URL

from understudy.declaration.declaration import Declaration
from understudy.errors import LedgerError
from understudy.ledger.place import ledger_place, witness_place
from understudy.ledger.store import DurableLedger
from understudy.ledger.witness import Witness


def open_ledger(
    declaration: Declaration, *, base: Path, environ: Mapping[str, str] = os.environ
) -> DurableLedger:
    """Open the durable ledger of the declared table, or what its first charge will make of the declaration.

    Relative paths are seen from `base`.
    """
    return DurableLedger(
        ledger_place(declaration.ledger, base=base, environ=environ),
        declaration.name,
        declaration.budget,
        opening=declaration.opening,
        limits=declaration.limits,
        witness=declared_witness(declaration, base=base, environ=environ),
    )


def check_ledger(declaration: Declaration, *, base: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse a ledger that disagrees with the declaration, or that could not be written. Writes none."""
    witness = declared_witness(declaration, base=base, environ=environ)
    if witness is not None:
        witness.check()
    place = ledger_place(declaration.ledger, base=base, environ=environ)
    if place.get_backend_name() == "sqlite":
        folder = Path(place.database or "").parent
        if not os.access(folder, os.W_OK | os.X_OK):
            missing = "cannot be written to" if folder.is_dir() else "is not there"
            raise LedgerError(
                f"the ledger cannot be kept: the folder {folder} {missing}",
                remedy="Make it, or declare another `ledger:`",
            )
    open_ledger(declaration, base=base, environ=environ).close()


def declared_witness(
    declaration: Declaration, *, base: Path, environ: Mapping[str, str] = os.environ
) -> Witness | None:
    """The witness of the declared ledger, where there is one."""
    path = witness_place(declaration.witness, base=base, environ=environ)
    if path is None:
        return None
    ledger = ledger_place(declaration.ledger, base=base, environ=environ)
    if ledger.get_backend_name() == "sqlite" and path.resolve() in map(Path.resolve, _files_of(ledger)):
        raise LedgerError(
            f"the witness cannot be the ledger itself ({path})",
            remedy="Declare another `witness:`, best on another disk; nothing was spent",
        )
    return Witness(path)


def project_files(
    declaration: Declaration, *, file: Path, environ: Mapping[str, str] = os.environ
) -> list[Path]:
    """Every file that a project lives on, there or not yet: no command may write its output to one of them."""
    base, source = file.parent, declaration.source
    places = [source.location.rpartition("://")[2].partition("?")[0], source.path, source.password_file]
    found = [file, *(base / place for place in places if place.strip("/"))]
    ledger = ledger_place(declaration.ledger, base=base, environ=environ)
    if ledger.get_backend_name() == "sqlite":
        found += _files_of(ledger)
    witness = witness_place(declaration.witness, base=base, environ=environ)
    if witness is not None:
        found += [witness, *(witness.with_name(witness.name + ending) for ending in (".new", ".lock"))]
    return found


def _files_of(ledger: URL) -> list[Path]:
    """The file of a SQLite ledger, and those that SQLite keeps beside it."""
    return [Path(f"{ledger.database}{ending}") for ending in ("", "-wal", "-shm", "-journal")]
