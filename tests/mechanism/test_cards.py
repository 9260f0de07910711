"""One card for each mechanism: what plans, audits, records and documents it agrees with the card."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from understudy.errors import ParameterError
from understudy.mechanism.cards import cards, table
from understudy.planner.mechanisms import MECHANISMS
from understudy.privacy.bounded_noise import BoundedNoise
from understudy.privacy.event import Event, Pure, SpentBefore
from understudy.privacy.recording import KINDS, as_plain, from_plain
from understudy_audit.registry import subjects

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mechanisms.md"


def kinds(of: type[Event]) -> set[type[Event]]:
    """All kinds of event below one that have numbers of their own, whether recorded or not."""
    return {kind for below in of.__subclasses__() for kind in {below} | kinds(below)}


def test_every_kind_of_event_is_on_the_card_of_a_mechanism():
    on_cards = {kind for card in cards() for kind in card.events}
    assert on_cards == set(KINDS.values()) - {SpentBefore}


def test_every_kind_that_is_not_abstract_is_recorded_under_its_own_name():
    """What a ledger can hold is decided in one list, and by no data that names a module."""
    ours = {kind for kind in kinds(Event) if kind.__module__.startswith("understudy.privacy.")}
    names = {kind.__name__ for kind in ours if not kind.__name__.startswith("_")}
    assert names - {"AdditiveNoise", "Pure", "Located", "Together"} == KINDS.keys()
    assert all(kind.__name__ == name for name, kind in KINDS.items())


def test_what_is_not_recorded_is_neither_written_nor_read():
    with pytest.raises(ParameterError, match="Pure"):
        as_plain(Pure(epsilon=Fraction(1)))
    for name in ("Pure", "Event", "PrivacyLoss", "os.system"):
        with pytest.raises(ParameterError, match="not understood"):
            from_plain({"event": name, "epsilon": "1"})


def test_the_planner_and_the_audit_know_what_the_cards_name():
    planned = [planned for card in cards() for planned in card.plans]
    assert planned
    assert all(any(known is entry for known in MECHANISMS) for entry in planned)
    assert max(Counter(entry.name for entry in MECHANISMS).values()) == 1
    audited = [audited.name for card in cards() for audited in card.audited]
    assert set(audited) <= set(subjects())
    assert max(Counter(audited).values()) == 1


@pytest.mark.parametrize("card", cards(), ids=lambda card: card.name)
def test_an_audited_mechanism_is_charged_for_an_event_of_its_card(card):
    arguments = {
        "NoiseSubject": (1, [1]),
        "ReportSubject": (2,),
        "ChoiceSubject": (1,),
        "StreamSubject": (1, 1),
        "KeySubject": (),
    }
    for subject in card.audited:
        built = subject.build(Fraction(1), *arguments[type(subject).__name__])
        assert type(built.event) in card.events
        if isinstance(built.event, BoundedNoise):  # no rho, but the divergence that one of 1/2 would have
            assert built.event.divergence <= built.event.order / 2
        else:
            assert built.event.zcdp_cost() <= Fraction(1, 2)  # built for an epsilon of 1


def test_the_table_of_the_readme_is_that_of_the_cards():
    assert table() in PAGE.read_text(encoding="utf-8"), "run `make tables`"


def test_a_mechanism_is_imported_without_what_plans_it():
    for module, heavy in (
        ("understudy.mechanism.additive", "scipy"),
        ("understudy.planner.mechanisms", "numba"),
    ):
        code = f"import sys, {module}; print({heavy!r} in sys.modules)"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert told.stdout.strip() == "False", module
