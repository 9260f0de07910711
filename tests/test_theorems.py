"""Every statement that the package cites, and every source that it cites as a whole, has a test of its name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from understudy.planner.mechanisms import MECHANISMS

ROOT = Path(__file__).resolve().parent.parent
CITATION = re.compile(r"\[([A-Z][A-Za-z]*[ 0-9-]*\d+)(?:, ([^\]]+))?\]")
"""[Lecture 4, Theorem 5], [Lecture 4, Auxiliary Claim], or [KOV15] alone."""

PRINTED = re.compile(r"([A-Z]\w+)[^;:(]*? (\d{4}), ((?:Theorem|Lemma|Claim|Corollary|Proposition) [\d.]*\d)")
"""Rogers et al. 2020, Theorem 2.1: as a plan says it."""

DEFINED = re.compile(r"^ *(?:async )?def test_(\w+)\(", re.MULTILINE)
"""A test, by the line that defines it."""


def normalised(key: str, statement: str = "") -> str:
    """[Lecture 4, Theorem 5] is tested by test_lecture4_theorem_5…, and [KOV15] by test_kov15…"""
    statement = re.sub(r"\(.*?\)", "", statement)
    words = f"{key.replace(' ', '')} {statement}".lower()
    return re.sub(r"[^a-z0-9]+", "_", words).strip("_")


def found_in(text: str) -> list[tuple[str, str]]:
    """(key, statement) of each citation; no statement where the source is cited as a whole."""
    return CITATION.findall(" ".join(text.split()))


@cache
def citations() -> dict[str, str]:
    """The name that a test must bear, and where the statement is cited."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for key, statement in found_in(path.read_text(encoding="utf-8")):
            cited = f"[{key}, {statement}]" if statement else f"[{key}]"
            found.setdefault(normalised(key, statement), f"{path.relative_to(ROOT)}: {cited}")
    return found


@cache
def bibliography() -> dict[str, str]:
    """Each key with its entry."""
    text = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    entries = re.split(r"^@\w+\{", text, flags=re.MULTILINE)[1:]
    return {entry.split(",", 1)[0]: entry for entry in entries}


def printed(theorem: str) -> list[str]:
    """The names that tests of the statements in a plan's line must bear."""
    names = []
    for surname, year, statement in PRINTED.findall(theorem):
        keys = [
            key
            for key, entry in bibliography().items()
            if f"author = {{{surname}," in entry and f"year = {{{year}}}" in entry
        ]
        assert len(keys) == 1, f"{surname} {year} is {keys or 'nobody'} in docs/references.bib"
        names.append(normalised(keys[0], statement))
    return names


@cache
def written() -> dict[str, str]:
    """The name of each test, without test_, and the file below `tests` that holds it."""
    return {
        name: str(path.relative_to(ROOT / "tests"))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in DEFINED.findall(path.read_text(encoding="utf-8"))
    }


def has_test(name: str) -> bool:
    return any(test == name or test.startswith(name + "_") for test in written())


@pytest.mark.parametrize("name", citations(), ids=str)
def test_every_cited_statement_has_a_test(name):
    assert has_test(name), f"{citations()[name]} needs a test named test_{name}"


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_every_statement_that_a_plan_prints_has_a_test(mechanism):
    for name in printed(mechanism.theorem):
        assert has_test(name), f"{mechanism.theorem} needs a test named test_{name}"


def test_every_citation_is_in_the_bibliography():
    cited = {
        key.replace(" ", "")
        for path in (ROOT / "src").rglob("*.py")
        for key, _ in found_in(path.read_text(encoding="utf-8"))
    }
    assert cited <= bibliography().keys(), (
        f"not in docs/references.bib: {sorted(cited - bibliography().keys())}"
    )


def test_the_scan_finds_what_it_should():
    assert normalised("Lectures 9-10", "Definition 2") == "lectures9_10_definition_2"
    assert normalised("DworkRoth14", "Theorem 3.10") == "dworkroth14_theorem_3_10"
    assert found_in("see [Lecture 7,\n    Definition 2], [KOV15] and x[0]") == [
        ("Lecture 7", "Definition 2"),
        ("KOV15", ""),
    ]
    assert {"lecture4_theorem_5", "lecture4_auxiliary_claim", "lecture4_medianmechanism", "kov15"} <= set(
        citations()
    )
    assert printed("Rogers et al. 2020, Theorem 2.1") == ["rrsstw20_theorem_2_1"]
    assert printed("Lecture 7 with NumericSparse (Dwork and Roth 2014, Theorem 3.28)") == [
        "dworkroth14_theorem_3_28"
    ]
    assert not has_test("kov15_theorem_1000")
    code = "def test_a(x):\n  def test_b():\nasync def test_c(): # def test_d()\ndef atest_e():"
    assert DEFINED.findall(code) == ["a", "b", "c"]
    assert written()["the_scan_finds_what_it_should"] == "test_theorems.py"
