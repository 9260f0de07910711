"""Which debits of a ledger are noise on sums over rows, and what they add up to for Theorem T (`theory.tilting`).

The theorem is about sums over independent rows, told with noise of a known law: discrete Laplace, rounded
normal, or discrete Gaussian, which is a randomised rounding of normal noise (`theory.smoothing`). Other debits
have the same events, such as noise on a distance between two tables, so that the event alone does not tell. The
question does, which the ledger keeps with each debit: only looks that are listed here by the beginning of their
question are sums over rows. Whatever is not listed counts as something else. Looks of several variances are not
listed, because their event names only one.

What a debit counts for is its price for a replaced row, ρ, such that it adds nαρ/2 to Λ:

    rounded normal noise of variance v, on values that a replaced row moves by Δ     Δ²/(2v)
    discrete Gaussian noise of variance v, on such values                            Δ²/(2(v - 4))
    discrete Laplace noise of scale b, on values that it moves by Δ₁ in total        (Δ₁/b)²/4

Under `add-remove` an event's sensitivity is what one row adds, at most. A replaced row moves the values by twice
that, and (Δ₁/b)² is the price; for Gaussian noise the covariance of what a row adds counts, whose trace is at
most Δ², so that the price is twice that of the list. Prices are added up one by one, in whole units, rounded up:
joint prices do not enter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from understudy.ledger.interface import SEPARATOR, Ledger, LedgerEntry
from understudy.ledger.paging import MAX_PAGE
from understudy.privacy.cost import UNITS
from understudy.privacy.event import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    Located,
    RoundedNormal,
    SpentBefore,
    Together,
    is_immovable,
)
from understudy.privacy.recording import from_text
from understudy.privacy.relation import Relation
from understudy.theory.smoothing import normal_rho

SUMS = re.compile(
    r"((?:(?! -> ).)* -> )?measure |combinations of |residuals up to |merged counts of ", re.DOTALL
)
"""How questions about sums over rows begin: measurements, behind the words in which they were asked, and looks.

The words end at the first arrow (`question_text` writes none into them), so that an arrow in a later text, such as
the name of a value, makes no measurement of another look.
"""

OTHER = {
    "GaussianNoise": "too little noise",
    "BoundedNoise": "bounded noise, which the theorem is not worked out for; `noise: gaussian` keeps to it",
}
"""Noises on sums over rows that the theorem does not cover, in words."""

_EDITION = re.compile(r" @([0-9a-f]+)$")


@dataclass(frozen=True, slots=True)
class RowSums:
    """The debits of a ledger up to entry `number`.

    `units` is what they add up to for a replaced row, in units of ρ, if all of them are noise on sums over rows;
    if not, `other` says in words what the first other one is.
    """

    number: int = 0
    units: int = 0
    other: str = ""

    @property
    def rho(self) -> float:
        """The sum of the prices, as a float that is not below it."""
        return float(Fraction(self.units + 1, UNITS)) if self.units else 0.0


class RowSumReader:
    """Reads the debits of a ledger, each once, and says what they are up to now.

    `version` names the rows that the ledger is read for, where rows can be told apart; of a file every debit
    names its version. Safe for threads and forks: what was read is replaced by one assignment, and reading twice
    does no harm.
    """

    def __init__(
        self, ledger: Ledger, relation: Relation, *, version: str | None, is_file: bool, opening: Fraction
    ) -> None:
        self._ledger = ledger
        self._relation = relation
        self._version = version
        self._is_file = is_file
        self._nothing = RowSums(other="something was spent before the ledger began" if opening else "")
        self._read = self._nothing
        self._upto: dict[str, RowSums] = {}
        self._skipped = self._reread = (
            0  # entries up to these were left out once, or were read from the first on
        )

    @property
    def read(self) -> RowSums:
        """What was read so far."""
        return self._read

    def go_on_from(self, known: RowSums) -> None:
        """Take what another reader of the same ledger has read, of the same rows, if that is more.

        The debits between are not read; if `upto` is asked for one of them, it reads the ledger again.
        """
        if known.number > self._read.number and not self._read.other:
            self._skipped = known.number
            self._read = known

    def upto(self, request: str) -> RowSums:
        """What the debits are up to that of a session's purchase, by its request: later ones change nothing.

        What the ledger holds now where there is no such debit. Raises as `now` does.
        """
        known = self._upto.get(request)
        if known is None:
            latest = self.now()
            if request not in self._upto and self._skipped > self._reread:
                self._reread = self._on_from(self._nothing).number
            known = self._upto.get(request, latest)
        return known

    def now(self) -> RowSums:
        """What the ledger holds at this moment, other processes' debits among it.

        Raises a `LedgerError` where the store cannot be reached or was changed.
        """
        known = self._read = self._on_from(self._read)
        return known

    def _on_from(self, known: RowSums) -> RowSums:
        """What the ledger holds now, where the entries up to a number are `known`; each later purchase is kept."""
        if known.other:
            return known  # more debits change nothing
        if known.number:
            pages = self._pages(known.number)
        else:  # of a long ledger the debits alone are read; its last entry first, so that none is left out
            last = self._ledger.entries(limit=1, newest_first=True)
            if any(map(_is_opening, self._ledger.entries(limit=1))):
                known = replace(known, other="something was spent before the ledger began")
            pages = self._pages(0, kind="debit")
            known = replace(known, number=last[0].number if last else 0)
        for entry in pages:
            if known.other:
                break
            if entry.kind == "debit":
                known = self._after(known, entry)
                if SEPARATOR in entry.request:
                    self._upto[entry.request] = replace(known, number=entry.number)
            known = replace(known, number=max(known.number, entry.number))
        return known

    def _pages(self, number: int, *, kind: str | None = None) -> Iterator[LedgerEntry]:
        while page := self._ledger.entries(after=number, limit=MAX_PAGE, kind=kind):
            yield from page
            if len(page) < MAX_PAGE:
                return
            number = page[-1].number

    def _after(self, known: RowSums, entry: LedgerEntry) -> RowSums:
        event = from_text(entry.event)
        parts = list(_parts(event))
        if all(is_immovable(part) for part in parts):  # a journal, or values that nobody moves
            return known
        if not SUMS.match(entry.question):
            return replace(known, other="a look that is more than sums over rows")
        units = 0
        for part in parts:
            price = _price(part, self._relation)
            if price is None:
                kind = type(_noise(part)).__name__
                other = OTHER.get(kind, f"an event of the kind {kind}")
                return replace(known, other=other)
            units += ceil(price * UNITS)
        if not self._is_about_these_rows(entry.question, parts):
            return replace(known, other="a question about another version of the table")
        return replace(known, units=known.units + units)

    def _is_about_these_rows(self, question: str, parts: list[Event]) -> bool:
        """Whether a debit names this version; what names none is believed, but of a file, where each does."""
        named = {part.relation.partition(" @")[2] for part in parts if isinstance(part, Located)} - {""}
        edition = _EDITION.search(question)
        if edition is not None and self._is_file:
            named.add(edition[1])
        return named == {self._version} if named else not self._is_file


def _parts(event: Event) -> Iterator[Event]:
    if isinstance(event, Together):
        for part in event.events:
            yield from _parts(part)
    else:
        yield event


def _noise(event: Event) -> Event:
    return event.noise if isinstance(event, Located) else event


def _price(event: Event, relation: Relation) -> Fraction | None:
    """What the noise of an event counts for; None where it is no noise of a law that the theorem is known for."""
    noise, steps = _noise(event), relation.steps_to_replace
    if isinstance(noise, LaplaceNoise):
        return (steps * noise.pure_cost()) ** 2 / 4
    if isinstance(noise, RoundedNormal):
        return steps * noise.l2_squared / (2 * noise.variance)
    if (
        isinstance(noise, GaussianNoise)
        and (price := normal_rho(noise.l2_squared, noise.variance)) is not None
    ):
        return steps * price
    return Fraction(0) if is_immovable(event) else None


def _is_opening(entry: LedgerEntry) -> bool:
    event = from_text(entry.event) if entry.kind == "open" else None
    return isinstance(event, SpentBefore) and event.epsilon > 0
