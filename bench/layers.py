"""Functions of a walk that may be layers which only pass on: short ones, with one place that names them.

A function of at most two statements that one place calls is either a rule with a name, or a step that hides
nothing and can go. Which of both it is, a reader has to say; this lists them. Callers are counted by name: of a
private function in its own file, of any other in all files, so that one which shares its name with something else
is not listed.

Run: python -m bench.house --layers 'CLI `ask`, cold'
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

MOST_STATEMENTS = 2


class Layer(NamedTuple):
    name: str
    file: str
    line: int
    code: str
    """Its last statement."""


def layers(calls: Iterable[tuple[str, str]], src: Path) -> Iterator[Layer]:
    """The short functions with one caller, of those that a walk enters, given by name and file."""
    everywhere = Counter[str]()
    words: dict[str, Counter[str]] = {}
    for path in src.rglob("*.py"):
        own = words[str(path.relative_to(src))] = Counter(
            re.findall(r"[A-Za-z_]\w*", path.read_text("utf-8"))
        )
        everywhere.update(own)
    trees: dict[str, ast.Module] = {}
    for name, file in calls:
        if file not in trees:
            trees[file] = ast.parse((src / file).read_text("utf-8"))
        found = _function(trees[file], name.replace(".<locals>", "").split("."))
        short = name.rpartition(".")[2]
        named = words[file] if short.startswith("_") else everywhere
        if found is None or short.startswith("__") or named[short] > 2:  # its definition, and one place more
            continue
        body = [one for one in found.body if not _is_text(one)]
        statements = sum(isinstance(part, ast.stmt) for one in body for part in ast.walk(one))
        if statements <= MOST_STATEMENTS:
            yield Layer(name, file, found.lineno, ast.unparse(body[-1]).partition("\n")[0])


def _function(tree: ast.AST, names: list[str]) -> ast.FunctionDef | None:
    node = tree
    for name in names:
        inner = (one for one in ast.walk(node) if one is not node and getattr(one, "name", None) == name)
        node = next((one for one in inner if isinstance(one, ast.FunctionDef | ast.ClassDef)), None)
        if node is None:
            return None
    return node if isinstance(node, ast.FunctionDef) else None


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
