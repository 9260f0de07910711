"""Descriptions that were cut, twisted or made to hurt: a clear refusal, or a draft; nothing else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.declaration.file import parse
from understudy.declaration.outline import OutlineEntry, plain, scalar
from understudy.errors import DeclarationError
from understudy.table.draft import draft
from understudy_importers import frictionless, smartnoise
from understudy_importers.document import compose

HERE = Path(__file__).parent
FILES = {
    "smartnoise": (HERE / "hospital.yaml").read_text(),
    "frictionless": (HERE / "package" / "datapackage.json").read_text(),
}


def drafted(text: str) -> str:
    root = compose(text, file="damaged")
    if frictionless.is_frictionless(root):
        return frictionless.outline(root, folder=HERE / "package", table="loans").text()
    return smartnoise.outline(root, table="visits").text()


@pytest.mark.parametrize("kind", FILES)
@given(data=st.data())
@settings(max_examples=60)
def test_a_damaged_description_is_refused_clearly_or_drafted(kind, data):
    text = FILES[kind]
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(text) - 1))
        insert = data.draw(st.text(alphabet="{}[]:,-09ae\n \"'&*!#é\\<~\x85", max_size=5))
        text = text[:position] + insert + text[position + data.draw(st.integers(0, 9)) :]
    with suppress(DeclarationError):
        draft = drafted(text)
        with suppress(DeclarationError):
            parse(draft)


@given(st.text())
def test_any_text_can_be_a_value_or_a_comment(text):
    entry = OutlineEntry("x", {"type": "category", "values": f"[{scalar(text)}]"}, {}, remark=text)
    assert len(entry.line().splitlines()) == 1
    start = "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 1}\nattributes:\n  "
    with suppress(DeclarationError):  # what YAML cannot hold is refused
        assert parse(start + entry.line()).domain["x"].proper_size == 1
    assert len(plain(text)) <= 240


def test_headers_with_spaces_around_names_are_drafted(tmp_path):
    (tmp_path / "t.csv").write_text("age, sex\n1,F\n2,M\n")
    declared = parse(draft(tmp_path / "t.csv"))
    assert declared.domain.names == ("age", "sex")
    assert declared.domain["sex"].column == " sex"
