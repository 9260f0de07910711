from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from understudy.declaration.file import parse
from understudy.domain.attribute import Boolean, Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import DeclarationError
from understudy.privacy.relation import Neighbours
from understudy_importers.formats import read

HOSPITAL = Path(__file__).parent / "hospital.yaml"


def drafted(tmp_path: Path, text: str, table: str = ""):
    path = tmp_path / "metadata.yaml"
    path.write_text(text)
    return read(path, table=table)


def table(*lines: str) -> str:
    return "db:\n  s:\n    t:\n" + "\n".join(f"      {line}" for line in lines) + "\n"


def test_a_filled_in_draft_declares_what_the_metadata_says():
    outline = read(HOSPITAL, table="visits")
    text = outline.text()
    with pytest.raises(DeclarationError):
        parse(text)
    for old, new in [
        ("source:  #", "source: visits.parquet  #"),
        ("{epsilon: }", "{epsilon: 1, delta: 1e-9}"),
        (
            "ward: {type: category, null: true, values: []}",
            "ward: {type: category, null: true, values: [A, B]}",
        ),
        ("edges: []", "edges: [2019-07-01, 2022-01-01, 2024-12-31]"),
    ]:
        assert text.count(old) == 1, text
        text = text.replace(old, new)
    declared = parse(text)
    assert declared.name == "visits"
    assert declared.neighbours is Neighbours.ADD_REMOVE
    assert declared.unit is not None
    assert (declared.unit.column, declared.unit.max_rows) == ("person", 3)
    assert declared.rows_at_least is declared.rows_at_most is None
    quarters = [dt.date(y, m, 1) for y in range(2019, 2025) for m in (1, 4, 7, 10)][3:22]
    costs = [*(2000.0 * i for i in range(13)), 25000.5]
    assert declared.domain == Domain(
        (
            Bins.between("age", list(range(0, 101, 5))),
            Bins(name="nights", starts=tuple(range(31)), upper=30, null=True),
            Bins.between("cost", costs, null=True),
            Categories(name="ward", values=("A", "B"), null=True),
            Boolean(name="emergency", null=True),
            Bins.between("admitted", [dt.date(2019, 7, 1), *quarters, dt.date(2024, 6, 30)], null=True),
            Bins.between(
                "discharged", [dt.date(2019, 7, 1), dt.date(2022, 1, 1), dt.date(2024, 12, 31)], null=True
            ),
        )
    )


def test_what_is_not_taken_over_is_said():
    text = read(HOSPITAL, table="dbo.visits").text()
    for key in ("rows: 120000", "sample_max_ids", "censor_dims", "clamp_counts", "clamp_columns", "use_dpsu"):
        assert f"#   - table, {key}" in text
    assert "#   - column cost, sensitivity: 100" in text
    assert "#   - column admitted, missing_value: 1900-01-01" in text
    assert "# scan: left out, its type is unknown" in text
    assert "# person: left out" in text
    assert "the 8 values" in text
    assert "20 bins" in text


def test_lines_to_fill_are_named_by_number():
    outline = read(HOSPITAL, table="visits")
    lines = outline.text().splitlines()
    unfilled = outline.unfilled()
    assert [what.split(":")[0] for what in unfilled.values()] == ["source", "budget", "ward", "discharged"]
    assert [i for i, line in enumerate(lines, 1) if "# MISSING:" in line] == list(unfilled)


def test_rows_that_belong_to_nobody_else_need_no_unit():
    outline = read(HOSPITAL, table="wards")
    assert "unit" not in outline.setting
    assert outline.setting["neighbours"].fields == {"": "replace"}  # rows_exact is public
    assert "floor" in " ".join(outline.unfilled().values())


@pytest.mark.parametrize(
    ("lines", "setting", "fields", "lacks"),
    [
        (["row_privacy: yes", "x: {type: boolean}"], "neighbours", {"": "add-remove"}, []),
        (["x: {type: boolean}"], "neighbours", {}, [""]),
        (
            ["p: {type: int, private_id: true}", "x: {type: boolean}"],
            "unit",
            {"column": "p", "max_rows": "1"},
            [],
        ),
        (
            ["max_contributions: 7", "p: {type: string, private_id: on}", "x: {type: boolean}"],
            "unit",
            {"column": "p", "max_rows": "7"},
            [],
        ),
        (
            ["p: {type: int, private_id: true}", "q: {type: int, private_id: true}", "x: {type: boolean}"],
            "unit",
            {"max_rows": "1"},
            ["column"],
        ),
    ],
)
def test_whose_rows_they_are(tmp_path, lines, setting, fields, lacks):
    entry = drafted(tmp_path, table(*lines)).setting[setting]
    assert entry.fields == fields
    assert list(entry.lacks) == lacks


def test_early_names_of_keys_are_known(tmp_path):
    outline = drafted(tmp_path, table("p: {type: int, is_key: True}", "x: {type: int, min: 0, max: 10}"))
    assert outline.setting["unit"].fields["column"] == "p"
    assert "x: {type: integer, bounds: [0, 10], null: true}" in outline.text()


def test_a_column_without_a_word_is_not_forgotten(tmp_path):
    text = drafted(tmp_path, table("x:", "y: {type: boolean}", "max_groups: 4")).text()
    assert "#   - x: nothing is said about it" in text
    assert "max_groups: 4 (line 6): not understood" in text


def test_a_table_has_to_be_chosen_among_several():
    with pytest.raises(DeclarationError, match=r"dbo\.visits, dbo\.wards.*--table"):
        read(HOSPITAL)
    with pytest.raises(DeclarationError, match="no table 'nurses'"):
        read(HOSPITAL, table="nurses")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (table("x: {type: int, lower: 9, upper: 3}"), 4, "lies below"),
        (table("x: {type: int, lower: low, upper: 3}"), 4, "not a finite number"),
        (table("x: {type: int, lower: [1], upper: 3}"), 4, "expected a single value"),
        (table("x: {type: int, lower: 0, upper: 1e19}"), 4, "64 bits"),
        (table("x: {type: float, lower: 0, upper: 1e350}"), 4, "too large"),
        (table("x: {type: float, lower: 0, upper: .inf}"), 4, "finite"),
        (table("x: {type: int, bounds: [1, 2, 3]}"), 4, "two values"),
        (table("x: {type: int, bounds: 3}"), 4, "a list"),
        (table("x: {type: datetime, lower: 1990-13-01, upper: 1990-01-01}"), 4, "not a day"),
        (table("x: {type: datetime, lower: 1990-01-01, upper: 9999-12-31}"), 4, "9999-12-30"),
        (table("x: {lower: 0}"), 4, "'type' is missing"),
        (table("x: {type: boolean, nullable: perhaps}"), 4, "neither true nor false"),
        (table("max_ids: many", "x: {type: int, private_id: true}", "y: {type: boolean}"), 4, "whole number"),
        (table("max_ids: 0", "x: {type: int, private_id: true}", "y: {type: boolean}"), 4, "max_rows"),
        (table("x: {type: boolean}", "x: {type: int}"), 5, "twice"),
        (table("rows: 5"), 4, "no columns"),
        (table("x: int", "y: {type: boolean}"), 4, "{type: int}"),
        ("db:\n  s:\n    t: 5\n", 3, "columns were expected"),
        ("db: []\n", 1, "schemas were expected"),
        ("engine: csv\n", 1, "no table"),
        ("db: {}\n", 1, "no table"),
        ("- a\n- b\n", 1, "no description"),
        ("hello", 1, "no description"),
        ("db: [\n", 2, "neither YAML nor JSON"),
        ("a: &x {s: *x}\n", 1, "holds itself"),
        ("db: {s: {t: {b: &b {type: int}, x: {<<: *b, lower: 0}}}}", 1, "merge key"),
        ("a: " + "[" * 80 + "]" * 80, 1, "nested too deeply"),
        ("a: " + "[" * 5000, None, ""),
        ("db: !!python/object/apply:os.getcwd []\n", 1, "no description that is known"),
    ],
)
def test_bad_files_are_refused_at_their_line(tmp_path, text, line, words):
    with pytest.raises(DeclarationError) as refused:
        drafted(tmp_path, text)
    assert words in str(refused.value)
    assert refused.value.file == "metadata.yaml"
    if line is not None:
        assert refused.value.line == line


def test_aliases_that_unfold_without_end_are_refused(tmp_path):
    rows = ["a0: &a0 [1, 2]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(DeclarationError, match="more than a million"):
        drafted(tmp_path, "\n".join(rows))


def test_a_huge_file_is_not_parsed(tmp_path):
    with pytest.raises(DeclarationError, match="larger than 2 MiB"):
        drafted(tmp_path, "#" * (5 << 20))


def test_names_and_values_cannot_break_out_of_their_line(tmp_path):
    text = table(
        'rows: "5\\nbudget: {epsilon: 900}"',
        '"a\\nb: c": {type: boolean}',
        '"#": {type: "x\\nattributes:\\u2028 y"}',
        '"\\x85q": {type: boolean, odd: "\\u2028budget: {epsilon: 5}"}',
        "row_privacy: true",
    )
    drawn = drafted(tmp_path, text).text().replace("source:  #", "source: t.csv #")
    declared = parse(drawn.replace("{epsilon: }", "{epsilon: 1}"))
    assert declared.domain.names == ("a\nb: c", "q")
    assert declared.domain["q"].column == "\x85q"
    assert declared.budget.epsilon == 1
