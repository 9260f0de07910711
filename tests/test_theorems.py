"""Every statement that a docstring cites has a test that carries its name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CITATION = re.compile(
    r"\[([A-Z][A-Za-z]*[ 0-9-]*\d+), ((?:Theorem|Lemma|Claim|Corollary|Proposition|Definition|Algorithm)[^\]]*)\]"
)


def normalised(key: str, statement: str) -> str:
    """[Lecture 4, Theorem 5] is tested by test_lecture4_theorem_5…"""
    statement = re.sub(r"\(.*?\)", "", statement)
    words = f"{key.replace(' ', '')} {statement}".lower()
    return re.sub(r"[^a-z0-9]+", "_", words).strip("_")


def citations() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for key, statement in CITATION.findall(re.sub(r"\s+", " ", ast.get_docstring(node) or "")):
                    found.setdefault(
                        normalised(key, statement), f"{path.relative_to(ROOT)}: [{key}, {statement}]"
                    )
    return found


def written() -> set[str]:
    return {
        node.name.removeprefix("test_")
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("name", citations(), ids=str)
def test_every_cited_statement_has_a_test(name):
    has = any(test == name or test.startswith(name + "_") for test in written())
    assert has, f"{citations()[name]} needs a test named test_{name}"


def test_every_citation_is_in_the_bibliography():
    bibliography = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    known = set(re.findall(r"@\w+\{([^,]+),", bibliography))
    cited = set()
    for path in (ROOT / "src").rglob("*.py"):
        cited |= {
            key.replace(" ", "")
            for key in re.findall(
                r"\[([A-Z][A-Za-z]*[ 0-9-]*\d+)(?:,[^\]]*)?\]", path.read_text(encoding="utf-8")
            )
        }
    assert cited <= known, f"not in docs/references.bib: {sorted(cited - known)}"


def test_the_scan_finds_what_it_should():
    assert normalised("Lectures 9-10", "Definition 2") == "lectures9_10_definition_2"
    assert normalised("DworkRoth14", "Theorem 3.10") == "dworkroth14_theorem_3_10"
    assert "lecture4_theorem_5" in citations()
