"""Every test that the documentation names as evidence is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from audit.mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
DEFINED = {
    name
    for path in (ROOT / "tests").rglob("*.py")
    for name in re.findall(r"^\s*def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
}


@pytest.mark.parametrize("page", ["guarantees.md", "known-gaps.md"])
def test_the_named_tests_exist(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    assert named - DEFINED == set()
    assert page != "guarantees.md" or len(named) > 40


def test_the_number_of_mutants_is_the_documented_one():
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    escaped = sum(bool(mutant.escapes) for mutant in MUTANTS)
    assert f"{len(MUTANTS)} mechanisms broken on purpose" in text
    assert f"{len(MUTANTS) - escaped} of them are caught" in text
