"""The index of the lecture notes: statement, where it is stated as code, and the tests that bear its name.

`python tests/textbook/statement_index.py` writes it into docs/textbook.md, between the two marks.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from test_theorems import ROOT, found_in, normalised, written

PAGE = ROOT / "docs" / "textbook.md"
BEGIN, END = "<!-- index: begin -->", "<!-- index: end -->"
LECTURES = ("Lecture 4", "Lectures 9-10", "Lecture 7", "Lecture 18")
"""In the order in which they build on one another."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def stated() -> dict[tuple[str, str], list[str]]:
    """(lecture, statement) to the public functions and classes that cite it, or else the modules that do."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "[Lecture" not in text:
            continue
        tree, module = ast.parse(text), module_of(path)
        for node in tree.body:
            if isinstance(node, Definition) and not node.name.startswith("_"):
                _note(found, f"{module}.{node.name}", _docstrings(node))
        _note(found, module, ast.get_docstring(tree) or "")
    return found


def _docstrings(node: Definition) -> str:
    inner = (part for part in ast.walk(node) if isinstance(part, Definition))
    return " ".join(ast.get_docstring(part) or "" for part in inner)


def _note(found: dict[tuple[str, str], list[str]], name: str, text: str) -> None:
    for key, statement in found_in(text):
        known = found[key, statement] if key in LECTURES and statement else [name]
        if not any(other == name or other.startswith(name + ".") for other in known):
            known.append(name)


def _order(statement: str) -> tuple[int, list[int], str]:
    kinds = ("Definition", "Algorithm")
    numbers = [int(number) for number in re.findall(r"\d+", statement)]
    return (
        next((i for i, kind in enumerate(kinds) if statement.startswith(kind)), len(kinds)),
        numbers,
        statement,
    )


def index() -> str:
    """One table for each lecture."""
    known, parts = written(), []
    by_lecture: dict[str, dict[str, list[str]]] = {lecture: {} for lecture in LECTURES}
    for (lecture, statement), names in stated().items():
        by_lecture[lecture][statement] = names
    for lecture, statements in by_lecture.items():
        rows = [f"## {lecture}", "", "| statement | stated by | tests |", "|---|---|---|"]
        for statement in sorted(statements, key=_order):
            name = normalised(lecture, statement)
            files = sorted(
                {file for test, file in known.items() if test == name or test.startswith(name + "_")}
            )
            by = ", ".join(f"`{place}`" for place in statements[statement])
            rows.append(f"| {statement} | {by} | `test_{name}…` in {', '.join(files)} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def between_marks(text: str) -> str:
    return text.split(BEGIN)[1].split(END)[0].strip()


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{index()}\n\n{END}{after}", encoding="utf-8")
