"""Synthetic rows as CSV: the declaration reads them back, and a spreadsheet finds no formula in them."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import tiny_release
from understudy.declaration.file import parse
from understudy.output import csv_text
from understudy.releases.csv_rows import write_csv
from understudy.releases.making import release
from understudy.releases.synthetic import Within, as_table
from understudy.table.source import open_source

DECLARATION = """\
understudy: 1
name: people
source: people.csv
budget: {epsilon: 2}
attributes:
  joined: {type: date, edges: [2014-01-01, 2018-01-01, 2024-01-01], format: "%d/%m/%Y", null: true}
  pay: {type: real, edges: [-5000, 0, 2500, 100000], decimal: ",", thousands: ".", decimals: 2, null: true}
  share: {type: real, bounds: [0, 100], bins: 7, outside: other, null: true}
  age: {type: integer, bounds: [0, 119], width: 5, missing: ["N/A"], null: true}
  zip: {type: category, values: ["01067", "04103", "-7", "a \\"quoted\\", text", "Zoë"], null: true}
  smoker: {type: boolean, words: ["Yes", "No"], null: true}
  member: {type: boolean, words: [1, 0], null: true}
"""


@pytest.mark.parametrize("kind", ["", "string"])
def test_the_declaration_reads_its_cells_back(tmp_path, kind: str):
    declared = parse(DECLARATION)
    domain = declared.domain
    rng = np.random.default_rng(3)
    codes = {attribute.name: rng.integers(0, attribute.size, 300) for attribute in domain}
    table = as_table(domain, codes, rng, types=dict.fromkeys(domain.names, kind))
    write_csv(tmp_path / "people.csv", domain, table)
    source = open_source(declared.source, base=tmp_path)
    batches = list(source.batches(domain, domain.names))
    for name in domain.names:
        assert np.concatenate([batch[name] for batch in batches]).tolist() == codes[name].tolist(), name


def test_what_the_file_says(tmp_path):
    declared = parse(DECLARATION)
    codes = {attribute.name: np.array([1, attribute.size - 1]) for attribute in declared.domain}
    table = as_table(declared.domain, codes, np.random.default_rng(0), within=Within.MIDDLE)
    write_csv(tmp_path / "rows.csv", declared.domain, table)
    head, first, missing = csv.reader((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines())
    assert head == ["joined", "pay", "share", "age", "zip", "smoker", "member"]
    assert first[0] == "31/12/2020"
    assert first[1] == "1.250,00"
    assert first[3:] == ["7", "04103", "Yes", "1"]
    assert missing == [""] * 7


def test_fields_stand_in_quotation_marks_only_where_they_need_them(tmp_path):
    declared = parse(DECLARATION)
    codes = {attribute.name: np.array([1, attribute.size - 1]) for attribute in declared.domain}
    codes["zip"] = np.array([3, 4])
    table = as_table(declared.domain, codes, np.random.default_rng(0), within=Within.MIDDLE)
    write_csv(tmp_path / "rows.csv", declared.domain, table)
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8") == (
        "joined,pay,share,age,zip,smoker,member\n"
        '31/12/2020,"1.250,00",21.42857142857143,7,"a ""quoted"", text",Yes,1\n'
        ",,,,Zoë,,\n"
    )


def test_a_missing_value_of_the_only_column_is_no_empty_line(tmp_path):
    text = (
        DECLARATION[: DECLARATION.index("  joined")] + "  age: {type: integer, bounds: [0, 9], null: true}\n"
    )
    declared = parse(text)
    table = as_table(declared.domain, {"age": np.array([3, 10, 4])}, np.random.default_rng(0))
    write_csv(tmp_path / "people.csv", declared.domain, table)
    assert (tmp_path / "people.csv").read_text() == 'age\n3\n""\n4\n'
    (batch,) = open_source(declared.source, base=tmp_path).batches(declared.domain, ("age",))
    assert batch["age"].tolist() == [3, 10, 4]


def test_no_rows_are_a_line_of_names(tmp_path):
    domain = parse(DECLARATION).domain
    codes = {name: np.zeros(0, np.int64) for name in domain.names}
    write_csv(tmp_path / "rows.csv", domain, as_table(domain, codes, np.random.default_rng(0)))
    assert (tmp_path / "rows.csv").read_text() == "joined,pay,share,age,zip,smoker,member\n"


def test_formulas_are_defused(tmp_path):
    text = DECLARATION.replace('"01067"', '"=cmd()", "@SUM(A1)", "+1-1"').replace(
        "  age:", '  "=age": {type: integer, bounds: [0, 9]}\n  age:'
    )
    domain = parse(text).domain
    codes = {attribute.name: np.arange(4) % attribute.size for attribute in domain}
    write_csv(tmp_path / "rows.csv", domain, as_table(domain, codes, np.random.default_rng(0)))
    head, *rows = csv.reader((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines())
    assert "'=age" in head
    assert [row[head.index("zip")] for row in rows] == ["'=cmd()", "'@SUM(A1)", "'+1-1", "04103"]
    pay = [row[head.index("pay")] for row in rows]
    assert pay[0].startswith("-")  # a number is no formula


def test_a_release_writes_them_where_it_is_asked(tmp_path):
    made = release(tiny_release.project(), "1-way", epsilon=1, method=tiny_release.tiny)
    made.save(tmp_path / "with", rows=30, csv=True)
    made.save(tmp_path / "without", rows=30)
    assert not (tmp_path / "without" / "synthetic.csv").exists()
    lines = (tmp_path / "with" / "synthetic.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 31
    made.save(tmp_path / "with", rows=3, force=True)  # a part of the release: it is replaced with it
    assert not (tmp_path / "with" / "synthetic.csv").exists()


@pytest.mark.parametrize("word", ["=1", "+a", "-a", "@x", "\tx", "  =1", "＝1", "\r=1"])
def test_what_acts_as_a_formula(word):
    assert csv_text(word) == f"'{word}"


@pytest.mark.parametrize("word", ["", "a=1", "-1", "+1.234,50", "-12%", "01067", "a-b"])
def test_what_does_not(word):
    assert csv_text(word) == word
