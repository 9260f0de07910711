"""A forger of ledgers who knows how their hashes are made."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from understudy.ledger.chain import Entry, digest


def resealed(document: dict[str, Any], change: Callable[[list[dict[str, Any]]], None]) -> dict[str, Any]:
    """The document with its entries changed, and every number and hash put right after that."""
    forged = copy.deepcopy(document)
    change(forged["entries"])
    previous = "0" * 64
    for number, entry in enumerate(forged["entries"], start=1):
        entry.update(number=number, previous=previous)
        entry["hash"] = previous = digest(Entry(**entry))
    forged["head"] = {"entries": len(forged["entries"]), "hash": previous}
    return forged
