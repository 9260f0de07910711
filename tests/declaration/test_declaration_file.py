from __future__ import annotations

import datetime as dt
from contextlib import suppress

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.declaration.declaration import Protect
from understudy.declaration.file import parse, read
from understudy.domain.attribute import Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.errors import DeclarationError
from understudy.privacy.relation import Neighbours
from understudy_demo import town

GOOD = """\
understudy: 1
name: people
source: people.csv
delimiter: ";"
protect: validity
neighbours: add-remove
budget: {epsilon: 0.1, delta: 1e-9}
unit: {column: person, max_rows: 3}
rows: {at_least: 100, at_most: 5000}
attributes:
  age: {type: integer, bounds: [0, 99], width: 10}
  answer: {type: category, values: [yes, no, on, 1.0, null], outside: null, null: true}
  member: {type: boolean, column: is_member}
  income: {type: real, bounds: [0, 10], bins: 4, outside: other}
  born: {type: date, edges: [1990-01-01, 2000-01-01, 2010-12-31]}
"""


def test_every_field_is_read():
    declared = parse(GOOD)
    assert declared.protect is Protect.VALIDITY
    assert declared.neighbours is Neighbours.ADD_REMOVE
    assert (declared.source.location, declared.source.delimiter) == ("people.csv", ";")
    assert declared.budget.epsilon * 10 == 1
    assert (declared.unit.column, declared.relation.max_rows) == ("person", 3)
    assert (declared.rows_at_least, declared.rows_at_most) == (100, 5000)
    age, answer, member, income, born = declared.domain
    assert age.labels[0] == "0-9"
    assert age.labels[-1] == "90-99"
    assert isinstance(age, Bins)
    assert answer == Categories(
        name="answer", values=("yes", "no", "on", "1.0", "null"), outside=Outside.NULL, null=True
    )
    assert member == Boolean(name="member", column="is_member")
    assert income.labels == ("[0, 2.5)", "[2.5, 5)", "[5, 7.5)", "[7.5, 10]", "other")
    assert born.upper == dt.date(2010, 12, 31)


def test_the_town_declares_itself():
    declared = parse(town.declaration("town.parquet"))
    assert len(declared.domain) >= 12


@pytest.mark.parametrize(
    ("change", "line", "field", "hint"),
    [
        (("understudy: 1", "understudy: 2"), 1, "understudy", "understudy: 1"),
        (("name: people", "name: 'a b'"), 2, "name", "name: patients"),
        (("protect: validity", "protect: vlidity"), 5, "protect", "privacy, validity"),
        (("budget: {epsilon: 0.1, delta: 1e-9}", "budget: {epsilon: 0}"), 7, "budget", "positive"),
        (("epsilon: 0.1", "epsilon: -1"), 7, "budget", "positive"),
        (("epsilon: 0.1", "epsilon: nan"), 7, "budget.epsilon", "finite"),
        (("epsilon: 0.1", "epsilon: 1e308"), 7, "budget", "at most 1000"),
        (("epsilon: 0.1", "epsilon: 1e999999999"), 7, "budget.epsilon", "finite"),
        (("delta: 1e-9", "delta: 1"), 7, "budget", "below 1"),
        (("epsilon: 0.1, ", ""), 7, "budget", "epsilon"),
        (("max_rows: 3", "max_rows: 0"), 8, "unit", "max_rows"),
        (("at_least: 100", "at_least: many"), 9, "rows.at_least", "digits"),
        (("type: integer", "type: int"), 11, "attributes.age.type", "category, integer, real, boolean, date"),
        (("bounds: [0, 99], width", "bounds: [99, 0], width"), 11, "attributes.age.bounds", "low, high"),
        (("bounds: [0, 99], width: 10", "bounds: [0, 99999999999]"), 11, "attributes.age.bounds", "wider bins"),
        (("width: 10", "width: 0"), 11, "attributes.age.width", "width: 5"),
        (("width: 10", "bins: 10"), 11, "attributes.age.bins", "Fields of a integer"),
        (("width: 10", "widht: 10"), 11, "attributes.age", "Did you mean 'width'?"),
        (("yes, no, on", "yes, yes, on"), 12, "attributes.answer", "twice"),
        (("outside: null, null: true", "outside: null"), 12, "attributes.answer", "null: true"),
        (("outside: null, null: true", "outside: clamp"), 12, "attributes.answer", "clamp"),
        (("column: is_member", "outside: other"), 13, "attributes.member.outside", "null: true"),
        (("bins: 4, ", ""), 14, "attributes.income.bounds", "bins: 20"),
        (("[0, 10], bins", "[0, .inf], bins"), 14, "attributes.income.bounds[1]", "finite"),
        (("2000-01-01, 2010", "2000-31-01, 2010"), 15, "attributes.born.edges[1]", "2024-12-31"),
        (("1990-01-01, 2000", "2005-01-01, 2000"), 15, "attributes.born", "rise"),
        (("  born:", "  age:"), 15, "attributes", "Keep one"),
        (("neighbours: add-remove", "neighbours: replace"), 1, "", "add-remove"),
        (("source: people.csv\n", ""), 1, "", "source"),
    ],
)  # fmt: skip
def test_bad_files_name_line_field_and_remedy(change, line, field, hint):
    old, new = change
    assert old in GOOD
    with pytest.raises(DeclarationError) as refused:
        parse(GOOD.replace(old, new, 1))
    assert refused.value.line == line
    assert refused.value.field == field
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "a: [", "- 1\n- 2", "understudy: {a: 1}", "\t", "a: &x [*x]", "!!python/x y"]
)
def test_what_is_no_declaration_is_refused(text):
    with pytest.raises(DeclarationError):
        parse(text)


def test_unicode_equal_attribute_names_are_refused():
    extra = "  caf\u00e9: {type: boolean}\n  cafe\u0301: {type: boolean}\n"
    with pytest.raises(DeclarationError, match="twice"):
        parse(GOOD + extra)


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(DeclarationError, match="understudy init"):
        read(tmp_path / "understudy.yml")
    (tmp_path / "binary.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DeclarationError, match="UTF-8"):
        read(tmp_path / "binary.yml")


@given(
    st.integers(0, len(GOOD) - 1), st.integers(0, 12), st.text(alphabet="{}[]:,-0a\n \"'&*!#é", max_size=4)
)
@settings(max_examples=300)
def test_damaged_files_are_refused_clearly_or_read(position, cut, insert):
    with suppress(DeclarationError):
        parse(GOOD[:position] + insert + GOOD[position + cut :])


def test_a_text_that_was_read_before_is_not_scanned_again(monkeypatch):
    text = GOOD.replace("name: people", "name: read-before")
    bad = text.replace("width: 10", "width: ten")
    before = parse(text)
    with pytest.raises(DeclarationError) as first:
        parse(bad, file="a.yml")

    def scanned(*given, **how):
        raise AssertionError

    monkeypatch.setattr(yaml, "compose", scanned)
    assert parse(text) == before
    with pytest.raises(DeclarationError) as second:
        parse(bad, file="b.yml")
    assert (first.value.file, second.value.file) == ("a.yml", "b.yml")
    assert second.value.line == first.value.line == 11
    with pytest.raises(AssertionError):
        parse(text + "#")


def test_yaml_is_not_executed(tmp_path):
    made = tmp_path / "made"
    text = GOOD.replace("name: people", f"name: !!python/object/apply:os.mkdir ['{made}']")
    with pytest.raises(DeclarationError):
        parse(text)
    assert not made.exists()
    yaml.unsafe_load(text)
    assert made.exists()
