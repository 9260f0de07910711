"""The door to a table of which nothing is declared yet: writings, bounds, bins and keys of its columns.

It keeps to the order of the `Curator`: validate without data, charge, look, keep, release. What it releases has
the noise of a mechanism; whatever depends on it afterwards is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from understudy.curator.door import kept_or_made
from understudy.curator.key_terms import key_terms, key_terms_of_people
from understudy.errors import ParameterError, RefusedError
from understudy.ledger.interface import Ledger
from understudy.mechanism.additive import noise_for
from understudy.mechanism.column_profile.profile import ColumnProfile, ColumnProfiling, counts_of, distinct_of
from understudy.mechanism.key_selection import KeySelection
from understudy.noise.samplers import NoiseSource, SystemNoise
from understudy.privacy.columns import ONE_COUNT, CountColumns
from understudy.privacy.event import Event
from understudy.privacy.price import Price
from understudy.privacy.relation import Relation
from understudy.rational import Number
from understudy.table.column_reader import WRITINGS, ColumnReader, NumberReading


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """The keys of a column that were told, the most frequent first, with their noisy counts; all of it is public.

    `threshold` is the least noisy count that is told, `at_least` the least exact one, `texts` about how many
    rows hold a text at all, and `error` within what a count is with probability 19/20.
    """

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    threshold: int
    at_least: int
    texts: float
    error: int

    def as_plain(self) -> dict[str, Any]:
        """As a ledger keeps it."""
        return {
            "labels": list(self.labels),
            "counts": list(self.counts),
            "threshold": self.threshold,
            "at_least": self.at_least,
            "texts": self.texts,
            "error": self.error,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> FoundKeys:
        return cls(
            tuple(plain["labels"]),
            tuple(plain["counts"]),
            plain["threshold"],
            plain["at_least"],
            plain["texts"],
            plain["error"],
        )


class ColumnCurator:
    """The only door to the columns of one file: it charges the ledger, durably, and only then looks.

    `request` names a purchase: the same name with the same question is charged once, and told the same again.
    Where the ledger cannot pay, `InsufficientBudgetError` is raised; where the file changed under the program,
    `SourceChangedError`. Nothing is charged then. Each row is one person (`keys_of_people` alone knows others).
    """

    def __init__(
        self, reader: ColumnReader, ledger: Ledger, relation: Relation, *, noise: NoiseSource | None = None
    ) -> None:
        if relation.max_rows != 1:
            raise ParameterError("columns are found out where each row is one person: `max_rows` is 1")
        self._reader = reader
        self.ledger = ledger
        self.relation = relation
        self._noise: NoiseSource = SystemNoise() if noise is None else noise

    @property
    def rows(self) -> int:
        """The number of rows, where it is public (`neighbours: replace`); else RefusedError."""
        if not self.relation.rows_are_public:
            raise RefusedError(
                "under `neighbours: add-remove` the number of rows is private", remedy="buy it"
            )
        return self._reader.rows()

    def about_rows(self, price: Price, *, request: str) -> float:
        """About how many rows there are, for a price; never less than 1."""
        mechanism = noise_for(price, self.relation.moves(ONE_COUNT))

        def look() -> int:
            rows = np.array([self._reader.rows()], np.int64)
            return int(mechanism.release(rows, noise=self._noise)[0])

        return max(float(self._paid(mechanism.event, "the number of rows", request, look)), 1.0)

    def writings(
        self, columns: Sequence[str], price: Price, share: float, *, request: str
    ) -> dict[str, list[int]]:
        """For each column of text about how many values are written in each of the `WRITINGS`.

        Counts that noise alone may have made, below `EVIDENT` deviations of it, are told as 0.
        """
        one = self.relation.moves(CountColumns(len(WRITINGS)))
        mechanism = noise_for(price, one.repeated(len(columns)))

        def look() -> list[list[int]]:
            self._reader.sample(share)
            return mechanism.release(self._reader.writings(columns), noise=self._noise).tolist()

        told_apart = _digest([*columns, *self._words])
        question = f"how {len(columns)} columns are written, of {share:.9g} of the rows {told_apart}"
        told = self._paid(mechanism.event, question, request, look)
        least = EVIDENT * float(mechanism.variance) ** 0.5
        shown = [[count if count >= least else 0 for count in counts] for counts in told]
        return dict(zip(columns, shown, strict=True))

    def profiles(
        self, readings: Mapping[str, NumberReading], price: Price, share: float, *, request: str
    ) -> dict[str, ColumnProfile]:
        """Bounds, bins, missing and different values of columns of numbers, for one price together."""
        profiling = ColumnProfiling(columns=len(readings), price=price, relation=self.relation)

        def look() -> list[dict[str, Any]]:
            self._reader.sample(share)
            found: list[dict[str, Any]] = []
            for column, chunks, missing in self._reader.numbers(readings, share):
                profile = profiling.profile(
                    counts_of(chunks, missing),
                    distinct=distinct_of(chunks),
                    whole=readings[column].whole,
                    noise=self._noise,
                )
                found.append(profile.as_plain())
            return found

        read = [
            f"{column} {reading.kind} {reading.intake}" for column, reading in readings.items()
        ] + self._words
        question = f"bounds and bins of {len(readings)} columns, of {share:.9g} of the rows {_digest(read)}"
        told = self._paid(profiling.event, question, request, look)
        return {column: ColumnProfile.from_plain(plain) for column, plain in zip(readings, told, strict=True)}

    def keys(
        self,
        columns: Sequence[str],
        price: Price,
        share: float,
        *,
        delta: Number,
        at_least: int = 1,
        request: str,
        analyst: str = "",
    ) -> dict[str, FoundKeys]:
        """The keys of columns of text that enough rows hold, for one price in rho and one delta together.

        A person holds one key in each column: what is told of all columns is one selection. Raises a
        RefusedError where the price is in epsilon, and as the ledger does where its budget has no delta for keys.
        """
        terms = key_terms(len(columns), price, delta, at_least, self.relation, kept=self.ledger.budget.filter)

        def look() -> list[dict[str, Any]]:
            self._reader.sample(share)
            return [self._found(column, terms.selection, terms.texts).as_plain() for column in columns]

        which = repr(columns[0]) if len(columns) == 1 else f"{len(columns)} columns"
        question = (
            f"keys of {which}, of {'all' if share >= 1 else f'{share:.9g} of the'} rows {_digest(columns)}"
        )
        told = self._paid(terms.event, question, request, look, analyst)
        return {column: FoundKeys.from_plain(plain) for column, plain in zip(columns, told, strict=True)}

    @property
    def _words(self) -> list[str]:
        """What a question says of texts that stand for no value."""
        return [f"missing {word!r}" for word in self._reader.missing]

    def _found(self, column: str, selection: KeySelection, texts: Any) -> FoundKeys:
        labels, counts, held = self._reader.keys(column, selection.at_least)
        told = selection.release(counts, noise=self._noise)
        some = int(texts.release(np.array([held], np.int64), noise=self._noise)[0])
        return _keys(labels, told.tolist(), selection, float(max(some, 0)))

    def keys_of_people(
        self,
        column: str,
        price: Price,
        *,
        unit: str,
        keys_each: int,
        delta: Number,
        at_least: int = 1,
        request: str,
        analyst: str = "",
    ) -> FoundKeys:
        """The keys of one column by how many people hold them, where rows of one `unit` are one person's.

        Of each person at most `keys_each` keys count, chosen by a hash of the person and the key. The promise
        is to people: the relation must be add-remove. Raises a RefusedError else.
        """
        if self.relation.rows_are_public:
            raise RefusedError(
                "a person of several rows needs `neighbours: add-remove`",
                remedy="declare that, with a `unit`",
            )
        terms = key_terms_of_people(
            keys_each, price, delta, at_least, self.relation, kept=self.ledger.budget.filter
        )
        selection = terms.selection

        def look() -> dict[str, Any]:
            labels, counts = self._reader.keys_of_people(
                column, unit, keys_each, selection.at_least, key="understudy"
            )
            told = selection.release(counts, noise=self._noise)
            found = _keys(labels, told.tolist(), selection, 0.0)
            return found.as_plain()

        question = f"keys of {column!r} by {unit!r}, {keys_each} of each"
        return FoundKeys.from_plain(self._paid(terms.event, question, request, look, analyst))

    def _paid(
        self, event: Event, question: str, request: str, look: Callable[[], Any], analyst: str = ""
    ) -> Any:
        """Charge, look, keep, release; what was answered before is told again and costs nothing.

        The question has the version of the source, so that a request for other rows is refused by the ledger. A
        `Curator` has a declared table, whose version is in the event, and whose older requests it has to find.
        """
        self._reader.source.check_unchanged()
        version = sha256(self._reader.source_name.encode()).hexdigest()[:16]
        debit = self.ledger.charge(event, question=f"{question} @{version}", request=request, analyst=analyst)
        return kept_or_made(self.ledger, debit, look)


EVIDENT = 4.0
"""Deviations of the noise above which a way of writing is taken to occur."""


def _keys(labels: Sequence[str], told: Sequence[int], selection: KeySelection, texts: float) -> FoundKeys:
    """The keys that were told, in an order that tells nothing of the table's own."""
    kept = sorted((-count, label) for label, count in zip(labels, told, strict=True) if count)
    return FoundKeys(
        tuple(label for _, label in kept),
        tuple(-count for count, _ in kept),
        selection.threshold,
        selection.at_least,
        texts,
        selection.error(0.05),
    )


def _digest(names: Sequence[str]) -> str:
    """What tells questions about other columns apart."""
    return "#" + sha256("\n".join(names).encode()).hexdigest()
