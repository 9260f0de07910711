"""The audits can fail: mechanisms broken on purpose are caught, each by the audit that is named with it."""

from __future__ import annotations

import pytest

from audit.mutants import HONEST, MUTANTS

LISTED = [mutant for mutant in MUTANTS if mutant.escapes]


def test_there_are_enough_mutants():
    assert len(MUTANTS) - len(LISTED) >= 40
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught(mutant):
    assert mutant.caught() == (not mutant.escapes), f"{mutant.audit}: {mutant.escapes}"


@pytest.mark.parametrize("honest", HONEST, ids=lambda honest: honest.name)
def test_what_is_right_is_not_caught(honest):
    assert not honest.caught(), honest.audit
