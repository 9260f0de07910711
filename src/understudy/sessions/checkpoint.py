"""What a session knew after some of its purchases, kept in the ledger so that nobody has to work it out again.

What a session knows follows from its journal and from what was released under each purchase: who goes on with it
reads one purchase after the other, a few milliseconds each. A checkpoint is the outcome of that for the first
purchases, which leaves only the later ones to be read.

Promise     A session that goes on from a checkpoint knows what one knows that has read every purchase.
Why         A checkpoint is used only if it was written for this session, as far as the journal's own step says, by
            the same code, under the same declaration, terms and budget; what it holds is what `state_codec` gives
            back bit by bit. In any other case it is not used, and every purchase is read.
Tampering   The checkpoint is the hidden state of a journal of the ledger. The entry that keeps it commits to its
            bytes, and is bound by the ledger's chain of hashes as the purchases are: bytes that were changed are
            not used, and `understudy ledger verify` names them.
Loss        It is written after a purchase was made and kept, in a transaction of its own. A process that dies
            before or while it is written leaves the checkpoint before it, or none.
Privacy     All of it was released, or follows from public values and from what was released. It costs nothing.
Cost        It is written whenever the purchases since the last one take as long to read as `EACH` counts, or a
            `PART` of all: a session of n purchases writes O(PART·n) of them, about as long as it takes to buy a
            few counts. A class of all marginals takes that long by itself, and little is bought after it.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import understudy
from understudy.errors import LedgerError, ParameterError, RefusedError, RequestConflictError
from understudy.ledger.interface import SEPARATOR, Ledger
from understudy.ledger.journal import Journal
from understudy.sessions.marginals_class import MarginalsPurchase
from understudy.sessions.purchase_journal import PurchaseJournal
from understudy.sessions.state_codec import StateWriter, Unreadable, Unwritable, read, written

EACH = 32
"""There may be another checkpoint when what was bought since the last takes as long to read as so many counts."""

PART = 32
"""There is another one when that is this part of all purchases, too."""

LONG = {MarginalsPurchase.kind}
"""Kinds of purchases that each take as long to read as `EACH` counts."""

MOST_BYTES = 1 << 28
"""A larger state is neither written nor read."""

ROOMS = (
    "answer", "curator", "domain", "ledger", "mechanism", "noise", "privacy", "query", "sessions", "theory",
)  # fmt: skip
"""Where the code is that decides what a session knows."""


@lru_cache(maxsize=1)
def code_version() -> str:
    """A digest of all code by which a session makes knowledge of what was released.

    Other code may find other intervals or prices from the same numbers, so that its checkpoints are not used.
    """
    found = sha256(f"{understudy.__version__} {sys.version_info[:2]} {np.__version__}".encode())
    root = Path(understudy.__file__).parent
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            found.update(f"\n{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return found.hexdigest()


class SessionCheckpoint:
    """The newest checkpoint of one session: read when the session is opened, written by who buys in it.

    Promise and reason are those of the module. `bound` is whatever the state depends on beside the journal and
    the code; `known` are the objects that the state refers to and every process has of its own.
    """

    def __init__(
        self, ledger: Ledger, purchases: PurchaseJournal, *, bound: Any, known: Mapping[str, Any]
    ) -> None:
        self._ledger = ledger
        self._purchases = purchases
        self._bound = bound
        self._known = known
        self._writer = StateWriter(known)
        self._kept = self._journal()
        self._at = self._long = 0

    def _journal(self) -> Journal | None:
        """The journal of the checkpoints; None where its name belongs to something else, so that none is kept."""
        try:
            return Journal(
                self._ledger,
                f"checkpoints of the session {self._purchases.name!r}",
                name=f"{self._purchases.name}{SEPARATOR}checkpoint",
                analyst=self._purchases.analyst,
                lazily=True,
            )
        except RequestConflictError:
            return None

    def load(self) -> tuple[int, Any] | None:
        """The number of purchases that the newest checkpoint stands for, and the state after them.

        None where there is none that can be used.
        """
        try:
            latest = self._kept.latest() if self._kept else None
            if latest is None or not latest.step:
                return None
            line, _, packed = latest.state.partition(b"\n")
            number = json.loads(line)["purchases"]
            if type(number) is not int or line != self._headline(number):
                return None
            unpacked = zlib.decompressobj()
            state = read(unpacked.decompress(packed, MOST_BYTES), self._known)
        except (
            LedgerError,
            RequestConflictError,
            Unreadable,
            Unwritable,
            ValueError,
            KeyError,
            TypeError,
            zlib.error,
        ):
            return None  # of other code, or changed: it is a cache, and the purchases are there
        self._at, self._long = number, 0
        return number, state

    def note(self, kind: str) -> None:
        """Know of a purchase of this kind, made or read, that the last checkpoint does not stand for."""
        self._long += kind in LONG

    @property
    def is_due(self) -> bool:
        """Whether enough was bought since the last checkpoint for another one; never in a ledger in memory."""
        later = self._purchases.length - self._at + EACH * self._long
        is_long = later >= max(EACH, self._purchases.length // PART)
        return is_long and self._kept is not None and self._ledger.is_begun

    def keep(self, state: Any) -> None:
        """Keep the state after the purchases that the journal has read or added, in place of the one before.

        Where that cannot be, nothing is kept: another process was quicker, the name is too long for another one
        beside it, or the state holds what cannot be written.
        """
        number = self._at = self._purchases.length
        self._long = 0
        if self._kept is None:
            return
        try:
            line, whole = self._headline(number), self._writer.whole(state)
            if line is None or len(whole) > MOST_BYTES:
                return
            _follow(self._kept)
            self._kept.add(
                f"session checkpoint after {number} purchases",
                {"purchases": number, "state": sha256(whole).hexdigest()},
                hidden=line + b"\n" + zlib.compress(whole, 1),
            )
        except (LedgerError, RefusedError, ParameterError, Unwritable):
            return

    def _headline(self, number: int) -> bytes | None:
        """What a checkpoint after so many purchases begins with; None where the journal has fewer."""
        last = self._purchases.text_of(number)
        if last is None:
            return None
        bound = sha256(written(self._bound, {})).hexdigest()
        plain = {
            "purchases": number,
            "last": sha256(last).hexdigest(),
            "bound": bound,
            "code": code_version(),
        }
        return json.dumps(plain, sort_keys=True).encode()


def _follow(kept: Journal) -> None:
    """Know the checkpoints so far, so that the next one can be added; one that was changed counts too."""
    try:
        kept.latest()
    except LedgerError:
        kept.length = len(kept.all())
