"""The ledger that a declaration stands for, and the files of its project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.engine import URL

from understudy.declaration.declaration import Declaration
from understudy.declaration.file import copy_place, record_place
from understudy.errors import LedgerError
from understudy.ledger.interface import NOTHING
from understudy.ledger.place import ledger_place, witness_place
from understudy.ledger.store import DurableLedger
from understudy.ledger.traces import check_not_lost
from understudy.ledger.witness import Witness
from understudy.privacy.budget import Budget

BEGUN_ANEW = "begun anew"
"""The request under which a ledger says that it was begun knowingly, whatever was before."""


def open_ledger(
    declaration: Declaration, *, base: Path, file: Path | None = None, environ: Mapping[str, str] = os.environ
) -> DurableLedger:
    """Open the durable ledger of the declared table, or what its first charge will make of the declaration.

    Relative paths are seen from `base`; `file` is the declaration's own. Raises a LedgerError where there is no
    ledger and its charges have left traces beside the declaration (`traces`).
    """
    place = ledger_place(declaration.ledger, base=base, environ=environ)
    ledger = _opened(declaration, place, declared_witness(declaration, base=base, environ=environ))
    try:
        check_not_lost(ledger, base=base, file=file, protect=declaration.protect)
    except BaseException:
        ledger.close()
        raise
    return ledger


def charged_budget(declaration: Declaration, *, base: Path, file: Path) -> Budget | None:
    """The budget that the declared table's ledger is kept by; None where nothing was charged to it.

    Its filter was fixed by the first charge. Raises as `open_ledger` does.
    """
    books = open_ledger(declaration, base=base, file=file)
    try:
        return books.budget if books.is_begun else None
    finally:
        books.close()


def begin_ledger(
    declaration: Declaration, *, base: Path, environ: Mapping[str, str] = os.environ
) -> DurableLedger:
    """Begin the ledger of the declared table knowingly, whatever traces there are of an earlier one.

    It then holds its first entry, and one that costs nothing and says that it was begun so. Raises a LedgerError
    where the ledger is there, and where a declared witness has seen one.
    """
    place = ledger_place(declaration.ledger, base=base, environ=environ)
    ledger = _opened(declaration, place, declared_witness(declaration, base=base, environ=environ))
    try:
        if ledger.is_begun:
            raise LedgerError(
                f"the ledger of {declaration.name!r} is there, in {ledger.place}",
                remedy="It goes on; nothing is begun anew beside it",
            )
        words = "begun anew by `understudy ledger new`: what an earlier ledger held is not in this one"
        ledger.charge(NOTHING, question=words, request=BEGUN_ANEW)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _opened(declaration: Declaration, place: URL, witness: Witness | None) -> DurableLedger:
    return DurableLedger(
        place,
        declaration.name,
        declaration.budget,
        opening=declaration.opening,
        promise=declaration.promise,
        limits=declaration.limits,
        witness=witness,
    )


def new_witness(
    declaration: Declaration, *, base: Path, file: Path | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[Witness, int]:
    """Make the declared witness for the ledger as it stands: the witness, and the entries that it has now seen.

    The ledger is opened, so that every hash and total of it is checked. Raises a LedgerError where no witness is
    declared, where there is one already, and where the ledger is gone, as `open_ledger` does.
    """
    witness = declared_witness(declaration, base=base, environ=environ)
    if witness is None:
        raise LedgerError(
            "no witness is declared",
            remedy="Declare `witness:`, best on another disk, or set UNDERSTUDY_WITNESS",
        )
    place = ledger_place(declaration.ledger, base=base, environ=environ)
    ledger = _opened(declaration, place, None)
    try:
        check_not_lost(ledger, base=base, file=file, protect=declaration.protect)
        entries, head = ledger.end
    finally:
        ledger.close()
    witness.make(declaration.name, entries, head)
    return witness, entries


def check_ledger(
    declaration: Declaration, *, base: Path, file: Path | None = None, environ: Mapping[str, str] = os.environ
) -> None:
    """Refuse a ledger that disagrees with the declaration, could not be written, or is gone. Writes none."""
    witness = declared_witness(declaration, base=base, environ=environ)
    if witness is not None:
        witness.check(declaration.name)
    place = ledger_place(declaration.ledger, base=base, environ=environ)
    if place.get_backend_name() == "sqlite":
        folder = Path(place.database or "").parent
        if not os.access(folder, os.W_OK | os.X_OK):
            missing = "cannot be written to" if folder.is_dir() else "is not there"
            raise LedgerError(
                f"the ledger cannot be kept: the folder {folder} {missing}",
                remedy="Make it, or declare another `ledger:`",
            )
    open_ledger(declaration, base=base, file=file, environ=environ).close()


def declared_witness(
    declaration: Declaration, *, base: Path, environ: Mapping[str, str] = os.environ
) -> Witness | None:
    """The witness of the declared ledger, where there is one."""
    path = witness_place(declaration.witness, base=base, environ=environ)
    if path is None:
        return None
    ledger = ledger_place(declaration.ledger, base=base, environ=environ)
    own = _files_of(ledger) if ledger.get_backend_name() == "sqlite" else []
    if os.path.realpath(path) in map(os.path.realpath, own):
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
    found = [
        file,
        record_place(file),
        copy_place(file),
        *(base / place for place in places if place.strip("/")),
    ]
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
