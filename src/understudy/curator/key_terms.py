"""The terms of a purchase of keys: what it is charged and what noise it has, for a price. Reads no data."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.errors import RefusedError
from understudy.mechanism.additive import Additive, noise_for
from understudy.mechanism.key_selection import KeySelection, best_selection
from understudy.privacy.columns import ONE_COUNT
from understudy.privacy.event import Event, Together
from understudy.privacy.filter import Filter
from understudy.privacy.price import Price
from understudy.privacy.relation import Relation
from understudy.rational import Number

KEY_SHARE = Price.of(rho=0.9).amount
"""What the selection of keys takes of its price; the rest tells how many rows hold a text."""


@dataclass(frozen=True, slots=True)
class KeyTerms:
    """What a purchase of keys is charged and does, by public numbers alone.

    `selection` tells keys, `texts` about how many rows of each column hold one at all; None where people are
    counted.
    """

    selection: KeySelection
    texts: Additive | None

    @property
    def event(self) -> Event:
        if self.texts is None:
            return self.selection.event
        return Together((self.selection.event, self.texts.event))


def key_terms(
    columns: int, price: Price, delta: Number, at_least: int, relation: Relation, *, kept: Filter
) -> KeyTerms:
    """The terms of `ColumnCurator.keys` for so many columns, under a budget that is `kept` so. Reads no data.

    Raises a RefusedError where the price is in epsilon.
    """
    _check_keys_currency(price)
    selection = best_selection(
        rho=price.amount * KEY_SHARE,
        delta=delta,
        relation=relation,
        keys_each=columns,
        at_least=at_least,
        kept=kept,
    )
    moved = relation.moves(ONE_COUNT).repeated(columns)
    return KeyTerms(selection, noise_for(price * (1 - KEY_SHARE), moved))


def key_terms_of_people(
    keys_each: int, price: Price, delta: Number, at_least: int, relation: Relation, *, kept: Filter
) -> KeyTerms:
    """The same of `ColumnCurator.keys_of_people`, for people of at most so many keys each."""
    _check_keys_currency(price)
    return KeyTerms(
        best_selection(
            rho=price.amount,
            delta=delta,
            relation=relation,
            keys_each=keys_each,
            at_least=at_least,
            kept=kept,
        ),
        None,
    )


def _check_keys_currency(price: Price) -> None:
    if price.currency != "rho":
        raise RefusedError(
            "keys that nobody listed are found with a delta, and this budget of pure epsilon has none",
            remedy="declare a budget with a delta",
        )
