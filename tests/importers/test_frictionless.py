from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from understudy.declaration.file import parse
from understudy.domain.attribute import Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DeclarationError
from understudy.privacy.relation import Neighbours
from understudy_importers.formats import read

PACKAGE = Path(__file__).parent / "package" / "datapackage.json"


def drafted(tmp_path: Path, content: object, table: str = "", name: str = "schema.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read(path, table=table)


def field(tmp_path: Path, **description: object):
    """The entry of a schema's only field."""
    (entry,) = drafted(tmp_path, {"fields": [{"name": "x", **description}]}).attributes
    return entry


def test_a_filled_in_draft_declares_what_the_package_says():
    text = read(PACKAGE, table="loans").text()
    for old, new in [
        ("neighbours:  #", "neighbours: add-remove  #"),
        ("{epsilon: }", "{epsilon: 1}"),
        ("title: {type: category, null: true, values: []}", "# title"),
        ("edges: []", "edges: [2015-03-01, 2025-12-31]"),
    ]:
        assert text.count(old) == 1, text
        text = text.replace(old, new)
    declared = parse(text)
    assert declared.name == "loans"
    assert (declared.source.location, declared.source.delimiter) == ("data/loans.csv", ";")
    assert declared.neighbours is Neighbours.ADD_REMOVE
    halves = [dt.date(y, m, 1) for y in range(2015, 2025) for m in (1, 7)][1:]
    to_null = {"null": True, "outside": Outside.NULL}
    assert declared.domain == Domain(
        (
            Categories(name="branch", values=("Hauptstraße", "no", "North 😀")),
            Categories(name="genre", values=("novel", "comic", "other"), **to_null),
            Bins.between("age", [6, *range(10, 105, 5), 105]),
            Bins(name="score", starts=(1, 2, 3, 4, 5), upper=5, **to_null),
            Bins.between("fee", [0.0, *(i / 5 for i in range(1, 13)), 2.5], **to_null),
            Bins.between("lent", [dt.date(2015, 3, 1), *halves, dt.date(2024, 12, 31)]),
            Bins.between("back", [dt.date(2015, 3, 1), dt.date(2025, 12, 31)], null=True),
            Bins.between("year_of_print", [1450, *range(1500, 2001, 50), 2024], **to_null),
            Boolean(name="renewed", null=True),
            Categories(name="damaged", values=("nein", "ja"), **to_null),
            Categories(name="shelf", values=("1", "2"), **to_null),
        )
    )


def test_what_is_not_taken_over_is_said():
    text = read(PACKAGE, table="loans").text()
    assert "encoding: iso-8859-1" in text
    assert "dialect, quoteChar: '" in text
    assert "schema, foreignKeys" in text
    assert "field fee, decimalChar: ," in text
    assert "field genre, maxLength: 9" in text
    assert "# loan_id: left out" in text
    assert "# reader: left out, its format is uuid" in text
    assert "# place: left out, its type is geopoint" in text
    assert "only one is given: 2015-03-01T00:00:00Z" in text
    assert "licenses" not in text


def test_a_schema_beside_the_package_is_read():
    outline = read(PACKAGE, table="readers")
    text = outline.text()
    assert outline.setting["source"].lacks
    assert "a.csv, b.csv" in text
    assert "format: %d.%m.%Y" in text
    assert "# id: left out" in text
    assert "members: {type: integer, bounds: [1, 9]}" in text
    assert "1920-01-01" in text
    assert (
        "visits: {type: integer, bounds: [0, 9], null: true}  # WATCH OUT: the missing value 3 lies" in text
    )
    assert "field visits, bareNumber: false: text is read as" in text


def test_a_resource_has_to_be_chosen_and_tabular():
    with pytest.raises(DeclarationError, match="loans, readers, scans"):
        read(PACKAGE)
    with pytest.raises(DeclarationError, match="no resource 'nothing'"):
        read(PACKAGE, table="nothing")
    with pytest.raises(DeclarationError, match="no schema"):
        read(PACKAGE, table="scans")


def test_a_missing_value_within_the_bounds_is_shouted_about(tmp_path):
    entry = field(
        tmp_path, type="integer", missingValues=["", "99"], constraints={"minimum": 0, "maximum": 120}
    )
    assert "WATCH OUT" in entry.line()
    assert "99" in entry.line()


@pytest.mark.parametrize(
    "path", ["../secret.csv", "/etc/passwd", "http://example.org/a.csv", "~/a.csv", "a\\b.csv"]
)
def test_a_path_that_leads_away_is_not_taken_over(tmp_path, path):
    resource = {"name": "r", "path": path, "schema": {"fields": [{"name": "x", "type": "boolean"}]}}
    outline = drafted(tmp_path, {"resources": [resource]})
    assert outline.setting["source"].lacks
    assert "path:" in outline.text()
    resource |= {"path": "a.csv", "schema": path}
    with pytest.raises(DeclarationError, match="lies elsewhere"):
        drafted(tmp_path, {"resources": [resource]})


def test_a_single_resource_and_a_schema_in_yaml_are_read(tmp_path):
    schema = {"fields": [{"name": "x", "type": "boolean"}]}
    one = drafted(
        tmp_path,
        {"name": "people", "path": "p.csv", "schema": schema, "dialect": {"csv": {"delimiter": "|"}}},
    )
    assert one.setting["source"].fields == {"": '"p.csv"'}
    assert one.setting["delimiter"].fields == {"": '"|"'}
    two = drafted(tmp_path, "fields:\n- name: x\n  type: boolean\n", name="people.schema.yml")
    assert two.setting["name"].fields == {"": "people"}


def test_an_empty_range_is_refused(tmp_path):
    with pytest.raises(DeclarationError, match="no value lies between"):
        field(tmp_path, type="integer", constraints={"exclusiveMinimum": 0, "exclusiveMaximum": 1})


def bounded(kind: str, low: object, high: object) -> dict[str, object]:
    return {"fields": [{"name": "x", "type": kind, "constraints": {"minimum": low, "maximum": high}}]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"fields": [{"type": "string"}]}, "'name' is missing"),
        ({"fields": ["x"]}, "key: value"),
        ({"fields": [{"name": "x", "type": ["string"]}]}, "single value"),
        ({"fields": [{"name": "x", "constraints": {"enum": []}}]}, "at least one value"),
        ({"fields": [{"name": "x", "constraints": {"enum": "abc"}}]}, "a list"),
        ({"fields": [{"name": "x", "constraints": {"enum": [["a"]]}}]}, "single value"),
        ({"fields": [{"name": "x", "constraints": {"enum": ["a", "a"]}}]}, "twice"),
        ({"fields": [{"name": "x", "constraints": [1]}]}, "key: value"),
        ({"fields": [{"name": "x", "categories": [{"label": "a"}]}]}, "'value' is missing"),
        (bounded("integer", 2, 1), "lies below"),
        (bounded("number", "a", 1), "finite"),
        (bounded("date", "a", "b"), "not a day"),
        ({"fields": [{"name": "x", "constraints": {"required": "maybe"}}]}, "neither true nor false"),
        ({"fields": [], "missingValues": "NA"}, "a list"),
        ({"fields": [{"name": "x"}, {"name": "x"}]}, "two fields"),
        ({"resources": []}, "has no resources"),
        ({"resources": ["x"]}, "key: value"),
        ({"path": "x.csv", "schema": "gone.json"}, "no such file"),
        ({"path": "x.csv", "schema": {"primaryKey": "x"}}, "'fields' is missing"),
        ({"path": "x.csv", "schema": {"fields": []}, "dialect": {"delimiter": "::"}}, "one character"),
        ('{"fields": [{"name": "x", "name": "y"}]}', "twice"),
        ('{"fields": [', "neither YAML nor JSON"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_clearly(tmp_path, content, words):
    with pytest.raises(DeclarationError, match=words) as refused:
        drafted(tmp_path, content)
    assert refused.value.file


@pytest.mark.parametrize(
    ("description", "line"),
    [
        ({"type": "integer", "constraints": {"minimum": 3, "maximum": 3, "required": True}}, "edges: [3, 4]"),
        (
            {"type": "number", "constraints": {"minimum": -1e-7, "maximum": 1e-7, "required": True}},
            "0.00000001",
        ),
        (
            {"type": "number", "constraints": {"minimum": 0, "maximum": 1e18, "required": True}},
            "50000000000000000,",
        ),
        ({"type": "integer", "constraints": {"enum": [1, 2], "required": True}}, 'values: ["1", "2"]'),
        ({"type": "any"}, "left out"),
        (
            {"type": "boolean", "trueValues": ["Yes", "y"], "falseValues": ["No"]},
            "{type: boolean, words: [Yes, No]",
        ),
        ({"type": "boolean", "trueValues": ["yes"]}, "{type: boolean, null"),
        ({"type": "boolean", "trueValues": ["0"], "falseValues": ["1"]}, "{type: boolean, null"),
        ({"type": "boolean", "trueValues": ["x"]}, 'values: [false, False, FALSE, "0", x]'),
        (
            {"type": "date", "constraints": {"minimum": "2024-05-01", "maximum": "2024-05-31"}},
            "bounds: [2024-05-01, 20",
        ),
        (
            {"type": "date", "constraints": {"minimum": "1900-01-01", "maximum": "2024-12-31"}},
            "01-01, 1910-01-01, 1920",
        ),
        ({}, "values: []}  # MISSING"),
        ({"type": "integer", "constraints": {"maximum": 5}}, "only one is given: 5"),
    ],
)
def test_fields_become_lines(tmp_path, description, line):
    assert line in field(tmp_path, **description).line()
