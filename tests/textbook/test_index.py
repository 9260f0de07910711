"""The textbook is complete, and its index leads to every statement."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import understudy.theory
import understudy_textbook
from textbook.statement_index import PAGE, ROOT, between_marks, index, stated

BOOK = Path(understudy_textbook.__file__).parent
THEORY = Path(understudy.theory.__file__).parent
SHARED = sorted(path.stem for path in BOOK.glob("[!_]*.py") if (THEORY / path.name).exists())
TOOLS = {"arguments", "certificates", "logarithm", "minimise", "planned"}
"""What bounds are computed with and listed by: no statements."""


def public(path: Path) -> set[str]:
    """Functions and classes that a module defines itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.ClassDef
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


def test_the_index_of_the_page_is_that_of_the_code():
    assert between_marks(PAGE.read_text(encoding="utf-8")) == index(), (
        "python tests/textbook/statement_index.py writes the index anew"
    )


def test_every_statement_of_the_index_can_be_imported():
    for names in stated().values():
        for name in names:
            home, _, attribute = name.rpartition(".")
            try:
                found = import_module(name)
            except ModuleNotFoundError:
                found = getattr(import_module(home), attribute)
            assert found is not None


@pytest.mark.parametrize("name", SHARED)
def test_a_file_of_the_textbook_offers_what_the_product_relies_on_as_well(name):
    book, theory = import_module(f"understudy_textbook.{name}"), import_module(f"understudy.theory.{name}")
    offered = set(book.__all__)
    assert public(THEORY / f"{name}.py") | public(BOOK / f"{name}.py") <= offered
    for statement in public(THEORY / f"{name}.py"):
        assert getattr(book, statement) is getattr(theory, statement)


def test_no_statement_is_defined_twice():
    for name in SHARED:
        assert not public(THEORY / f"{name}.py") & public(BOOK / f"{name}.py")


@pytest.mark.parametrize("folder", [BOOK, THEORY], ids=["textbook", "theory"])
def test_every_file_is_on_the_shelf(folder):
    """The page, and the package's own docstring, name each file with what it is about."""
    page, docstring = PAGE.read_text(encoding="utf-8"), understudy_textbook.__doc__ or ""
    for path in folder.glob("*.py"):
        if path.stem not in {"__init__", *TOOLS}:
            assert f"`{path.stem}`" in docstring, path.relative_to(ROOT)
            assert f"`{path.stem}`" in page, path.relative_to(ROOT)


def test_what_theory_defines_the_product_uses():
    """A bound that nothing in the product calls belongs in the textbook."""
    product = [
        path
        for package in ("understudy", "understudy_audit", "understudy_demo", "understudy_importers")
        for path in (ROOT / "src" / package).rglob("*.py")
    ]
    used = {
        node.id if isinstance(node, ast.Name) else node.attr
        for path in product
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
    }
    for path in THEORY.glob("*.py"):
        assert public(path) <= used, (path.name, sorted(public(path) - used))
