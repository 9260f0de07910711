"""Several measurements, each charged and answered on its own, in two transactions for all.

A durable transaction costs more than a look at a table of codes, so that many questions that wait together are
charged together, looked at one after the other, and kept together. Charges come before looks, as ever, and what
is kept is told.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from understudy.answer.answer import Answer
from understudy.curator.charge_terms import ChargeTerms
from understudy.curator.charged_access import Paid, as_json
from understudy.curator.prepared_measurement import PreparedMeasurement
from understudy.curator.question_text import spelt
from understudy.errors import RequestConflictError
from understudy.ledger.interface import Debit, Ledger, WantedCharge
from understudy.privacy.event import Event

PORTION_SECONDS = 0.05
"""How long the looks of a batch may take before the answers that are there are kept and handed over."""


@dataclass(frozen=True, slots=True)
class MeasurementOrder:
    """A measurement as `Curator.perform_all` takes it, with the arguments of `Curator.perform`."""

    prepared: PreparedMeasurement
    request: str | None = None
    analyst: str = ""
    words: str | None = None


class CheckedMeasurement(NamedTuple):
    """A measurement that was checked: what is charged, under which names, and the look that is paid for."""

    event: Event
    question: str
    terms: ChargeTerms
    look: Callable[[], Any]
    answers: Callable[[Paid], list[Answer]]


Outcome = tuple[int, list[Answer] | Exception]
"""The place of an order among those of its batch, and its answers or the reason why there are none."""


def bought_together(
    checked: Sequence[tuple[int, CheckedMeasurement]],
    told: list[Outcome],
    *,
    ledger: Ledger,
    edition: str,
    alone: Callable[[CheckedMeasurement], list[Answer]],
) -> Iterator[list[Outcome]]:
    """Charge all measurements in one transaction, look, and keep the answers in as few as can be.

    Yields portions of outcomes as soon as their answers are kept: all at once, unless looks take longer than
    `PORTION_SECONDS`. `told` are the outcomes that are known already; they come with the first portion.
    `edition` is what is added to the questions. A measurement whose request was charged before is bought
    `alone`. Raises a LedgerError where nothing could be charged or kept, for all measurements that are left.
    """
    debits = ledger.charge_all(
        [
            WantedCharge(
                one.event,
                spelt(one.terms.words or "", one.question) + edition,
                one.terms.request or "",
                one.terms.analyst,
            )
            for _, one in checked
        ]
    )
    kept: list[tuple[int, CheckedMeasurement, Debit, bytes]] = []
    began = time.monotonic()
    for (place, one), debit in zip(checked, debits, strict=True):
        try:
            if isinstance(debit, Debit) and not debit.repeated:
                kept.append((place, one, debit, as_json(one.look())))
            elif isinstance(debit, (Debit, RequestConflictError)):  # charged before, perhaps in other words
                told.append((place, alone(one)))
            else:
                told.append((place, debit))
        except Exception as error:
            told.append((place, error))
        if time.monotonic() > began + PORTION_SECONDS:
            yield told + _settled(kept, ledger)
            told, kept, began = [], [], time.monotonic()
    if told or kept:
        yield told + _settled(kept, ledger)


def _settled(looked: Sequence[tuple[int, CheckedMeasurement, Debit, bytes]], ledger: Ledger) -> list[Outcome]:
    """Keep what some looks released, in one transaction; what is kept is released."""
    kept = ledger.settle_all([(debit, answer) for _, _, debit, answer in looked])
    return [
        (place, known if isinstance(known, Exception) else one.answers(Paid(debit, json.loads(known))))
        for (place, one, debit, _), known in zip(looked, kept, strict=True)
    ]
