"""The ledger that a declaration stands for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from understudy.declaration import Declaration
from understudy.ledger.place import ledger_place, witness_place
from understudy.ledger.store import DurableLedger
from understudy.ledger.witness import Witness


def open_ledger(
    declaration: Declaration, *, base: Path, environ: Mapping[str, str] = os.environ
) -> DurableLedger:
    """Open, or make, the durable ledger of the declared table; relative paths are seen from `base`."""
    return DurableLedger(
        ledger_place(declaration.ledger, base=base, environ=environ),
        declaration.name,
        declaration.budget,
        opening=declaration.opening,
        limits=declaration.limits,
        witness=declared_witness(declaration, base=base, environ=environ),
    )


def declared_witness(
    declaration: Declaration, *, base: Path, environ: Mapping[str, str] = os.environ
) -> Witness | None:
    """The witness of the declared ledger, where there is one."""
    path = witness_place(declaration.witness, base=base, environ=environ)
    return None if path is None else Witness(path)
