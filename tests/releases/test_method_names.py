"""A release method is known in its own file and in two tables of methods; whatever else names one is listed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import understudy
from understudy.releases import method_names
from understudy.releases.method_names import METHOD_NAMES, OFFERED
from understudy.releases.methods import METHODS
from understudy.releases.report_words import small_marginal_words
from understudy.server.http.admin import ReleaseBody

SOURCE = Path(understudy.__file__).parents[1]
TABLES = {"understudy/releases/method_names.py", "understudy/releases/methods.py"}

ELSEWHERE = {
    # Advice of one method that names another, where it refuses.
    *(
        (f"understudy/mechanism/small_database/{file}.py", name)
        for file in ("classes", "levels", "shells", "small_database")
        for name in ("adaptive", "mwem")
    ),
    ("understudy/releases/adaptive/adaptive.py", "ic"),
    ("understudy/releases/adaptive/adaptive.py", "mwem"),
    ("understudy/releases/aim.py", "ic"),
    ("understudy/releases/aim.py", "mwem"),
    ("understudy/releases/mwem.py", "adaptive"),
    ("understudy/releases/residual/residual.py", "mwem"),
    # An option that one method alone has: `cells`, `ranges` and `device`.
    ("understudy/releases/method_advice.py", "mwem"),
    ("understudy/releases/method_choice.py", "residual"),
    ("understudy/releases/method_choice.py", "ic"),
    # The audit's list of what it attacks.
    *(("understudy_audit/composites.py", name) for name in ("net", "ic", "mwem", "residual", "adaptive", "aim")),
    # The same word for something else: the kind of a stored stand-in, a step, and a mechanism with its card.
    ("understudy/releases/stored.py", "adaptive"),
    ("understudy/releases/run.py", "net"),
    ("understudy/mechanism/small_database/card.py", "smalldb"),
    ("understudy/cli/plan.py", "residual"),
    ("understudy/cli/plan.py", "smalldb"),
}  # fmt: skip
"""Where the name of a method is written beside its own file and the tables, and why: a new one needs no line."""


def _texts(tree: ast.Module) -> Iterator[str]:
    """The text constants of a file that are not docstrings, nor strings that stand alone."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def _named_in(text: str) -> set[str]:
    """Methods that a text names: it is the name, or has it in quotes, or after `method`."""
    quoted = re.findall(r"[`'\"](\w+)[`'\"]", text) + re.findall(r"\b[Mm]ethods? (\w+)", text)
    return {name for name in METHOD_NAMES if name == text or name in quoted}


_ANY = re.compile(rf"\b({'|'.join(METHOD_NAMES)})\b")


def _occurrences(root: Path) -> set[tuple[str, str]]:
    found = set()
    for path in sorted(root.rglob("*.py")):
        place, text = path.relative_to(root).as_posix(), path.read_text()
        if not _ANY.search(text):
            continue
        named = {name for constant in _texts(ast.parse(text)) for name in _named_in(constant)}
        found |= {(place, name) for name in named}
    homes = {(METHODS[name].home.split(":")[0].replace(".", "/") + ".py", name) for name in METHOD_NAMES}
    return {(place, name) for place, name in found - homes if place not in TABLES}


def test_a_method_is_named_in_its_own_file_and_in_the_tables_only():
    assert _occurrences(SOURCE) == ELSEWHERE


def test_a_list_of_methods_elsewhere_would_be_found(tmp_path):
    path = tmp_path / "understudy" / "server"
    path.mkdir(parents=True)
    (path / "form.py").write_text('"""Not `ic`."""\nMETHODS = ("mwem", f"take `method=\'aim\'` or {1}")\n')
    assert _occurrences(tmp_path) == {
        ("understudy/server/form.py", "mwem"),
        ("understudy/server/form.py", "aim"),
    }


def test_both_tables_know_the_same_methods_by_the_same_words():
    assert set(METHODS) == set(METHOD_NAMES)
    for name, method in METHODS.items():
        assert method.told is METHOD_NAMES[name]
        assert method.name == name


def test_what_is_offered_is_every_method_that_needs_nothing_from_python():
    assert OFFERED[0] == "auto"
    assert set(OFFERED[1:]) == {name for name, method in METHODS.items() if not method.python_only}
    assert ReleaseBody.model_json_schema()["properties"]["method"]["enum"] == ["", *OFFERED]


@pytest.mark.parametrize("method", ["", *OFFERED])
def test_a_request_for_a_release_takes_what_is_offered(method):
    assert ReleaseBody(name="r", table="t", epsilon=1, method=method).method == method


@pytest.mark.parametrize("method", ["net", "mwem2", "Auto"])
def test_a_request_for_a_release_refuses_any_other_method(method):
    with pytest.raises(ValueError, match="a method is one of auto"):
        ReleaseBody(name="r", table="t", epsilon=1, method=method)


def test_names_are_known_without_the_machinery():
    """A server's start and a reader of published files wait for no compiler."""
    code = f"import sys, {method_names.__name__}; sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


def test_words_about_small_marginals_are_the_method_s():
    told = {name: small_marginal_words({"method": name, "parameters": {}}) for name in METHOD_NAMES}
    assert {name for name, words in told.items() if words} == {"aim", "ic", "net", "smalldb"}
    picked = {"method": "mwem", "parameters": {"small_marginals": "1-way ones from a tenth of the price"}}
    assert "measured the marginals that were picked" in small_marginal_words(picked)
    assert small_marginal_words({"method": "mwem", "parameters": {"small_marginals": {"added": 3}}}) == ""
    assert small_marginal_words({"method": "of_the_caller"}) == ""
