"""The only access to the data: charge, look, keep, release, in this order and in no other.

Measurements, choices and looks go through `ChargedAccess._paid`. Two things keep the same order elsewhere: many
measurements at once (`curator.batch`), which share transactions, and a sparse vector, whose journal is charged
when it is opened (`curator.open_sparse_vector`). What is charged is recorded with the version of the table that is
looked at, so that an answer about one version is never taken for one about another.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from understudy.curator.charge_terms import ChargeTerms
from understudy.curator.question_text import changed_since, respelt, spelt
from understudy.declaration.declaration import Declaration
from understudy.errors import RefusedError, RequestConflictError
from understudy.ledger.books import short_question
from understudy.ledger.interface import Debit, Ledger, fresh_request
from understudy.noise.samplers import NoiseSource, SystemNoise
from understudy.privacy.event import Event, Located, Together
from understudy.table.truth import Truth

Result = TypeVar("Result")


class Paid(NamedTuple):
    """What a look released, and the debit that it was charged."""

    debit: Debit
    released: Any


class ChargedAccess:
    """Access to a table that is charged for: nothing is looked at before its price is recorded, durably.

    It holds the exact counts (`truth`), the `ledger`, the `declaration` and the source of `noise`, and tells what
    is public about the table without a charge. What is worth buying, and at which price, is for its subclass, the
    `Curator`.
    """

    def __init__(
        self, truth: Truth, ledger: Ledger, declaration: Declaration, *, noise: NoiseSource | None
    ) -> None:
        self._truth = truth
        self._noise: NoiseSource = SystemNoise() if noise is None else noise
        self.ledger = ledger
        self.declaration = declaration
        self.domain = declaration.domain
        """The declared domain of the table."""
        self.relation = declaration.relation
        """The declared neighbours, which every look protects."""

    def close(self) -> None:
        """Let go of the table: whatever would look at it, or charge for it, then raises a `ClosedError`."""
        self._truth.close()

    @property
    def column_types(self) -> dict[str, str]:
        """The engine's names of the types of the table's columns, by column; none of a file of text.

        A schema is taken for public: neighbouring tables have the same. Nothing is charged and no row is read.
        """
        return self._truth.column_types

    @property
    def column_storage(self) -> dict[str, str]:
        """How the table's columns are stored, where that is not told by `column_types` (`table.storage`).

        It is part of the schema, which is taken for public: nothing is charged and no row is read.
        """
        return self._truth.column_storage

    # ---- what is public about the number of rows

    @property
    def rows(self) -> int:
        """The number of rows, where it is public (`neighbours: replace`); else raises a `RefusedError`.

        Nothing is charged. Where a person has several rows, those count that the declaration keeps.
        """
        if not self.relation.rows_are_public:
            raise RefusedError(
                "under `neighbours: add-remove` the number of rows is private", remedy="ask for it, `count`"
            )
        return self._truth.rows

    @property
    def rows_at_least(self) -> int:
        """A public lower bound on the number of rows: their number where it is public, else the declared one.

        Nothing is charged. Raises a `RefusedError` where the number is private and none was declared.
        """
        if self.relation.rows_are_public:
            return self._truth.rows
        if self.declaration.rows_at_least is None:
            raise RefusedError(
                "this needs a public lower bound on the number of rows",
                remedy="declare `rows: {at_least: …}`",
            )
        return self.declaration.rows_at_least

    @property
    def rows_at_most(self) -> int | None:
        """A public upper bound on the number of rows: their number where it is public, else the declared one.

        Nothing is charged. None where the number is private and none was declared.
        """
        return self._truth.rows if self.relation.rows_are_public else self.declaration.rows_at_most

    @property
    def forecast_rows(self) -> int:
        """The number of rows that forecasts are made for: theirs, else the declared least or most; 0 without."""
        if self.relation.rows_are_public:
            return self._truth.rows
        return self.declaration.rows_at_least or self.declaration.rows_at_most or 0

    # ---- the version of the table

    @property
    def edition(self) -> str:
        """What the ledger adds to a question about a file: the same words about other rows are another question.

        It is the name of the file's version behind an @. It is empty for frames, so that a notebook goes on with
        its frame, and for databases: there the caller sees to it that a request's name is not used again for other
        rows.
        """
        return f" @{self._truth.version}" if self._truth.is_file else ""

    def recorded(self, question: str, under: Callable[[str], Result]) -> Result:
        """What the function `under` returns for the text of a `question` with its edition, as ledgers record it.

        Version 0.1 told a file's versions apart by less: modification time and inode. What it recorded goes on
        under the edition that it wrote, as long as these two are the same. What it charged and never answered is
        not looked at any more: by what is compared now, the rows may be others. Raises the `RequestConflictError`
        of `under` where the request belongs to another question.
        """
        try:
            return under(question + self.edition)
        except RequestConflictError as conflict:
            before = f"{question} @{self._truth.former_version}"
            if self._truth.former_version is None or conflict.question != short_question(before):
                raise
            return under(before)

    def versioned(self, event: Event) -> Event:
        """The `event` with the version of the table in it; plain noise where nothing tells versions apart.

        A person may have another row in another version of the table, and other rows count where the declaration
        cuts them otherwise: such events must not be priced jointly.
        """
        if isinstance(event, Together):
            return Together(tuple(self.versioned(part) for part in event.events))
        if not isinstance(event, Located):
            return event
        version = self._truth.version
        return event.noise if version is None else replace(event, relation=f"{event.relation} @{version}")

    # ---- the one way

    def _charge(self, event: Event, question: str, terms: ChargeTerms) -> Debit:
        """The debit of an event for a question about this version of the table: a new one, or the request's.

        Raises a `RequestConflictError` that says so where the request was answered from another version.
        """
        name = terms.request or fresh_request()

        def charged(text: str) -> Debit:
            return self.ledger.charge(
                event, question=text, request=name, analyst=terms.analyst, step=terms.step
            )

        try:
            try:
                return self.recorded(spelt(terms.words or "", question), charged)
            except RequestConflictError:  # nothing was charged: it may be this question in other words
                known = None if terms.words is None else self.ledger.find(name)
                if known is None:
                    raise
                return self.recorded(respelt(known.question, question), charged)
        except RequestConflictError as conflict:
            raise changed_since(conflict, question, self.edition) from None

    def _paid(self, event: Event, question: str, terms: ChargeTerms, look: Callable[[], Any]) -> Paid:
        """Charge, look, keep, release. A request that was answered before gets the same answer.

        What `look` returns is kept as JSON: whole numbers and lists of them, just as they were released.
        """
        self._truth.check_unchanged()
        debit = self._charge(event, question, terms)

        def checked() -> Any:
            if debit.event != event:
                # Other rows may have been charged for; also by version 0.1, which told versions apart by less.
                raise RequestConflictError(
                    f"the request {debit.request!r} was charged for another version of the table, "
                    "and never answered",
                    remedy="take a new one",
                )
            return look()

        return Paid(debit, kept_or_made(self.ledger, debit, checked))


def kept_or_made(ledger: Ledger, debit: Debit, look: Callable[[], Any]) -> Any:
    """What was released for a debit: what the ledger keeps, else what `look` returns, kept before it is told.

    A debit that this call charged was never answered, and is not looked for.
    """
    known = ledger.answered(debit) if debit.repeated else None
    return json.loads(ledger.settle(debit, as_json(look())) if known is None else known)


def as_json(told: Any) -> bytes:
    """What a look released, as it is kept."""
    return json.dumps(told, separators=(",", ":")).encode()
