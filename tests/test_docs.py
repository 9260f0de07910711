"""What the documentation shows is run, and what the program has is documented."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import understudy
import understudy.lectures
from understudy.cli.app import app
from understudy.declaration.file import parse
from understudy.domain.attribute import Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.expression import parse as ask
from understudy_demo import town

ROOT = Path(__file__).resolve().parent.parent
DECLARATION = (ROOT / "docs" / "declaration.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [body for tag, body in fenced if tag == language]


def test_the_documented_declaration_is_one():
    text = blocks(DECLARATION, "yaml")[0]
    declared = parse(text)
    assert {attribute.kind for attribute in declared.domain} == {
        "integer",
        "real",
        "date",
        "timestamp",
        "category",
        "boolean",
    }


def test_the_documented_ways_of_writing_can_be_declared():
    _, moments, measures, attributes, source = blocks(DECLARATION, "yaml")
    above = "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 1}\nattributes:\n"
    assert [attribute.size for attribute in parse(f"{above}{moments}").domain] == [31 * 24, 2]
    measured = parse(f"{above}{measures}").domain
    assert [attribute.steps for attribute in measured] == [20_000_000, 99]
    declared = parse(f"understudy: 1\nname: t\nbudget: {{epsilon: 1}}\n{source}{attributes}")
    assert (declared.source.encoding, declared.source.header) == ("cp1252", False)
    written = {"joined": "31/12/2015", "pay": "€ 1.234,50", "share": "13,5%", "age": "N/A", "zip": "01067"}
    domain = declared.domain
    codes = {name: domain[name].code(text) for name, text in written.items()}
    assert codes == {"joined": 0, "pay": 0, "share": 2, "age": domain["age"].null_cell, "zip": 0}


def test_the_documented_questions_can_be_asked():
    domain = Domain(
        (
            Bins.integers("age", 0, 99),
            Categories(name="sex", values=("F", "M")),
            Categories(name="district", values=("a",)),
            Boolean(name="smoker"),
            Categories(name="home town", values=("Old Forest", "Bree")),
            parse(blocks(DECLARATION, "yaml")[0]).domain["born"],
            Bins.between("income", [0, 1], null=True),
        )
    )  # fmt: skip
    (questions,) = blocks(DECLARATION, "")
    for question in questions.strip().splitlines():
        ask(question, domain)


def test_every_choice_is_documented():
    for option in Outside:
        assert f"`{option}`" in DECLARATION


def test_every_command_of_the_readme_exists():
    commands = {command.callback.__name__ for command in app.registered_commands}
    commands |= {group.name or group.typer_instance.info.name for group in app.registered_groups}
    shown = set(re.findall(r"^understudy (\w+)", README, re.MULTILINE))
    assert shown
    assert shown <= commands


def test_every_target_of_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make ([\w-]+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


PACKAGES = sorted((ROOT / "src").rglob("__init__.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.parent.name)
def test_every_room_says_what_it_is_for_and_names_what_is_there(package):
    told = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
    assert len(told.split()) >= 25
    for name in re.findall(r"(?<!`)`((?:understudy\w*|[a-z_]+)(?:\.\w+)+)`", told):
        assert any(
            is_there(name.split("."), base)
            for base in (ROOT / "src" / "understudy", ROOT / "src", package.parent)
        ), name


def is_there(parts: list[str], base: Path) -> bool:
    """Whether a dotted name is a package, a module, or a name that one of them has."""
    for cut in (len(parts), len(parts) - 1):
        place = base.joinpath(*parts[:cut])
        module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if module.exists() and all(
            re.search(rf"\b{name}\b", module.read_text("utf-8")) for name in parts[cut:]
        ):
            return True
    return False


def test_the_map_shows_every_room():
    shown = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for package in PACKAGES:
        if package.parent.parent.name in ("src", "understudy") and package.parent.name != "understudy":
            assert f"[`{package.parent.name}`](../{package.relative_to(ROOT)})" in shown, package


@pytest.mark.parametrize("question", town.QUESTIONS, ids=lambda question: question.text)
def test_every_question_of_the_demo_can_be_asked(question):
    ask(question.text, parse(town.declaration("town.parquet")).domain)


def test_importing_the_library_loads_no_engine():
    """Heavy imports happen when they are needed, not before."""
    for module in ("understudy", "understudy.cli.app"):
        code = f"import sys, {module}; print(*{{'ibis', 'duckdb', 'numpy', 'pyarrow'}} & set(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == ""


def test_the_project_holds_no_path_of_a_machine():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    for name in listed.stdout.split():
        if name != "tests/test_docs.py":
            text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
            assert not re.search(r"(?<![\w.])/(work|root|home)/", text), name


def public_docstrings() -> dict[str, str | None]:
    """The docstring of every public name, and of every public method and property of the public classes."""
    texts: dict[str, str | None] = {}
    for module in (understudy, understudy.lectures):
        for name in module.__all__:
            thing = getattr(module, name)
            texts[name] = thing.__doc__
            for attribute in dir(thing) if inspect.isclass(thing) else ():
                member = inspect.getattr_static(thing, attribute)
                function = getattr(member, "fget", None) or getattr(member, "__func__", None)
                function = function or getattr(member, "func", None) or member
                if not attribute.startswith("_") and str(getattr(function, "__module__", "")).startswith(
                    "understudy"
                ):
                    texts[f"{name}.{attribute}"] = function.__doc__
    return texts


def is_a_sentence(text: str | None) -> bool:
    """Whether a docstring begins with at least two words that end in a full stop, a colon or a semicolon.

    What `dataclass` writes by itself, the signature, is none.
    """
    return (
        text is not None
        and re.match(r"(?!\w+\(\w+:)\s*\S+\s[^\n].*?[.:;](\s|$)", text, re.DOTALL) is not None
    )


def test_every_public_name_and_method_says_what_it_is():
    texts = public_docstrings()
    assert {"session", "Project.ask", "Domain.shape", "GuessAndCheck.rejections_left"} <= set(texts)
    assert [name for name, text in texts.items() if not is_a_sentence(text)] == []


@pytest.mark.parametrize("text", [None, "", "Size.", "the size", "Point(x: int, y: int)"])
def test_a_docstring_without_a_sentence_is_found(text):
    assert not is_a_sentence(text)


def class_names(folder: Path) -> dict[str, list[str]]:
    """Where each class is defined under a folder, nested and private ones included.

    The underscores before a private name are dropped: `_Table` and `Table` would be read as one thing.
    """
    found: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name.lstrip("_"), []).append(
                    f"{file.relative_to(folder)}:{node.lineno}"
                )
    return found


def test_no_two_classes_have_one_name():
    found = class_names(ROOT / "src")
    assert {"Project", "Shares", "Session"} <= set(found)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_a_class_name_that_is_there_twice_is_found(tmp_path):
    (tmp_path / "one.py").write_text("class Table:\n    class Row: ...\n", encoding="utf-8")
    (tmp_path / "two.py").write_text("def make():\n    class _Row: ...\n", encoding="utf-8")
    assert class_names(tmp_path) == {"Table": ["one.py:1"], "Row": ["one.py:2", "two.py:2"]}
