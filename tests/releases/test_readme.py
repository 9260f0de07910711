"""The page for whoever receives a release: it names what is there, and what it says is so."""

from __future__ import annotations

import re
import shlex
from hashlib import sha256

import pytest

import tiny_release
from understudy.answer.answer import Answer
from understudy.errors import RefusedError
from understudy.releases.making import release
from understudy.releases.readme import ABOUT, MARK, readme
from understudy.releases.release import Release


@pytest.fixture(scope="module")
def made() -> Release:
    return release(tiny_release.project(), "1-way", epsilon=1, method=tiny_release.tiny)


@pytest.mark.parametrize("csv", [False, True])
def test_it_names_the_files_that_are_there(made, tmp_path, csv):
    made.save(tmp_path / "out", rows=20, csv=csv)
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)) == {
        p.name for p in (tmp_path / "out").iterdir()
    }
    certificate = (tmp_path / "out" / "certificate.json").read_bytes()
    assert sha256(certificate).hexdigest() in text
    assert "hold together with probability 0.95" in " ".join(text.split())
    assert "epsilon 1:" in text
    assert "exchanging one row of the table for another" in text
    assert made.certificate["run"] in text.replace("\\", "")


def test_its_question_is_one_that_the_release_answers(made, tmp_path):
    made.save(tmp_path / "out", rows=20)
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("understudy ask"))
    answer = Release.load(tmp_path / "out").answer(shlex.split(line)[-1])
    assert isinstance(answer, Answer)
    assert answer.value.size == 3


def test_names_cannot_change_the_page(made):
    attributes = [{"name": "a`b 'c\n# d"}]
    told = made.certificate | {"table": "x](javascript:1) <b>\n# y|", "domain": {"attributes": attributes}}
    text = readme(told, "{}", list(ABOUT))
    assert "<b>" not in text.replace("\\<b", "")
    assert sum(line.startswith("# ") for line in text.splitlines()) == 1
    line = next(line for line in text.splitlines() if line.startswith("understudy ask"))
    assert shlex.split(line)[-1].startswith('count by "')


def test_a_page_of_somebody_elses_is_not_replaced(made, tmp_path):
    made.save(tmp_path / "out", rows=5)
    made.save(tmp_path / "out", rows=6, force=True)
    page = tmp_path / "out" / "README.md"
    assert page.read_text(encoding="utf-8").startswith(MARK)
    page.write_text("# Ours\n")
    with pytest.raises(RefusedError, match=r"no part of a release"):
        made.save(tmp_path / "out", rows=7, force=True)
    assert page.read_text() == "# Ours\n"
