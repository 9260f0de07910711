"""What `init` makes of columns: types by majority, how text is written, and why."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from math import inf, nan

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from program import call
from ugly import TOWNS, ugly, write_ugly
from understudy.declaration.file import parse, read
from understudy.errors import SourceError
from understudy.frame_project import declare
from understudy.project import open_project
from understudy.releases.synthetic import as_table
from understudy.table import draft as table_draft
from understudy.table.draft import draft
from understudy.table.draft_file import write
from understudy.table.writing import decimals_of, writing_of


@pytest.mark.parametrize(
    ("values", "kind", "keys"),
    [
        (["1", "2", "N/A"], "number", {}),
        (["1.5", "2.25"], "number", {}),
        (["TRUE", "false"], "boolean", {}),
        (["2024-01-31", "2024-02-01"], "date", {}),
        (["31/12/2024", "01/02/2024"], "date", {"formats": ["%d/%m/%Y"]}),
        (["12/31/2024", "01/02/2024"], "date", {"formats": ["%m/%d/%Y"]}),
        (["31.12.24", "01.02.24"], "date", {"formats": ["%d.%m.%y"]}),
        (["5 Jan 2024", "31 Dec 2023"], "date", {"formats": ["%d %b %Y"]}),
        (["31/12/2024 23:59", "01/02/2024 00:00"], "date", {"formats": ["%d/%m/%Y %H:%M"]}),
        (["31/12/2024"] * 8 + ["31-Dec-2024"] * 2, "date", {"formats": ["%d/%m/%Y", "%d-%b-%Y"]}),
        (["20241231", "20240101"], "date", {"formats": ["%Y%m%d"]}),
        (["€ 1.234,50", "€ 5,00"], "number", {"strip": ("€",), "decimal": ",", "thousands": "."}),
        (["$1,234.50", "-$5.00"], "number", {"strip": ("$",), "thousands": ","}),
        (["12 EUR", "5 EUR"], "number", {"strip": ("EUR",)}),
        (["13.5%", "9%"], "number", {"percent": True}),
        (["13,5 %", "9,25 %"], "number", {"percent": True, "decimal": ","}),
        (["1,5", "2,25"], "number", {"decimal": ","}),
        (["1,234", "12,345,678"], "number", {"thousands": ","}),
        (["1 234,5", "999"], "number", {"decimal": ",", "thousands": " "}),
        (["1\u202f234,5", "999,1"], "number", {"decimal": ",", "thousands": "\u202f"}),
        (["00123", "04567"], "text", {}),
        (["red", "green"], "text", {}),
        (["12 kg", "13 kg"], "text", {}),
        (["N/A", "-"], "text", {}),
        (["1", "2", "three"], "text", {}),
    ],
)
def test_how_text_is_written_is_guessed_from_some_of_it(values, kind, keys):
    found = writing_of(values)
    intake = {
        "formats": [format.text for format in found.intake.formats],
        "strip": found.intake.strip,
        "decimal": found.intake.decimal,
        "thousands": found.intake.thousands,
        "percent": found.intake.percent,
    }
    usual = {"formats": [], "strip": (), "decimal": ".", "thousands": "", "percent": False}
    assert (found.kind, intake) == (kind, usual | keys)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["True", "False", "True", "N/A"], ("True", "False")),
        (["TRUE", "FALSE"], ("TRUE", "FALSE")),
        (["TRUE", "false", "true"], ("true", "false")),
        (["True", "True"], ("true", "false")),  # how false is written is not known
    ],
)
def test_words_of_booleans_are_told_where_each_is_spelled_alike(tmp_path, values, words):
    assert writing_of(values).words == words
    path = tmp_path / "flags.csv"
    path.write_text("a,b\n" + "".join(f"{i % 3},{value}\n" for i, value in enumerate(values * 20)))
    assert parse(draft(path)).domain["b"].words == words


def test_days_that_can_be_read_in_two_ways_are_told():
    assert "%m/%d/%Y reads them as well" in writing_of(["01/02/2024", "03/04/2024"]).why


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-16"])
def test_an_ugly_file_is_drafted_read_and_asked_truly(tmp_path, encoding):
    table = ugly(2000, ragged=2)
    path = write_ugly(tmp_path / "people.csv", table, encoding=encoding)
    drafted = write(path, tmp_path / "understudy.yml")
    declared = read(tmp_path / "understudy.yml")
    kinds = {attribute.name: attribute.kind for attribute in declared.domain}
    assert kinds == {
        "joined": "date", "pay": "real", "share": "real", "age": "integer", "zip": "category", "town": "category",
        "active": "boolean",
    }  # fmt: skip
    assert declared.source.encoding == encoding
    assert declared.domain["pay"].decimals == 2
    assert declared.domain["joined"].intake.missing == ("0000-00-00",)
    assert all(label.startswith("0") for label in declared.domain["zip"].proper_labels)
    said = {note.name: (note.kind, note.why) for note in drafted.columns}
    assert said["id"] == ("", "left out: 2,000 distinct values (an identifier or free text?)")
    assert "%d/%m/%Y" in said["joined"][1]
    assert "'€' is taken out" in said["pay"][1]
    assert "'N/A' read as missing" in said["age"][1]
    assert "leading zeros" in said["zip"][1]
    checked = json.loads(call("check", "--read", "--json", cwd=tmp_path).stdout)["read"]
    assert (checked["rows"], checked["lines"]) == (2000, checked["lines"] | {"dropped": 0, "ragged": 2})
    assert len(checked["lines"]["ragged_at"]) == 2
    found = {name: (counts["missing"], counts["unreadable"]) for name, counts in checked["misfits"].items()}
    assert found == {
        "joined": (table.undated, 0), "pay": (table.unpaid, 0), "share": (0, 0), "age": (table.ageless, 0),
        "zip": (0, 0), "town": (0, 0), "active": (2, 0),
    }  # fmt: skip
    project = open_project(tmp_path)
    for question, truth in (("count joined < 2018-01-01", table.early), ("count pay >= 50000", table.rich)):
        answer = project.ask(question, rho=0.002, beta=1e-9)
        assert abs(float(answer.value) - truth) <= float(answer.error)
    towns = project.ask("count by town", rho=0.002, beta=1e-9)
    for (label,), value, error in towns.rows():
        assert abs(value - table.towns.get(label, 0)) <= error
    assert set(TOWNS) <= {label for (label,), _, _ in towns.rows()}


def test_a_file_without_a_header_is_refused_or_numbered(tmp_path):
    write_ugly(tmp_path / "people.csv", ugly(100), header=False)
    refused = call("init", "people.csv", cwd=tmp_path, status=1)
    assert "--no-header" in refused.stderr
    assert not (tmp_path / "understudy.yml").exists()
    done = call("init", "people.csv", "--no-header", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert [column["column"] for column in told["columns"]] == [f"column_{i}" for i in range(1, 9)]
    declared = read(tmp_path / "understudy.yml")
    assert (declared.source.header, len(declared.source.columns)) == (False, 8)
    assert "100 rows were read" in call("check", "--read", cwd=tmp_path).stdout


def test_init_says_what_it_made_of_each_column(tmp_path):
    write_ugly(tmp_path / "people.csv", ugly(200))
    done = call("init", "people.csv", cwd=tmp_path)
    assert "Encoding cp1252" in done.stdout
    assert "  id: left out: 200 distinct values" in done.stdout
    assert "  joined: date; days are written %d/%m/%Y" in done.stdout
    assert sum(line.startswith("  ") for line in done.stdout.splitlines()) == 8


def test_lines_that_are_lost_stop_a_draft(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"town,age\n" + "Orléans,1\n".encode() * 900 + b"Orl\xe9ans,1\n" * 100)
    with pytest.raises(
        SourceError,
        match=r"^t.csv: some bytes .* not UTF-8.*--encoding cp1252.* 100 of 1,000 lines \(lines 902",
    ):
        write(tmp_path / "t.csv", tmp_path / "understudy.yml")


def test_a_few_lines_that_are_lost_are_told(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"town,age\n" + "Orléans,1\n".encode() * 999 + b"Orl\xe9ans,1\n")
    drafted = write(tmp_path / "t.csv", tmp_path / "understudy.yml")
    assert any("1 of 1,000 lines (line 1,001) are no rows" in note for note in drafted.notes)


def test_a_column_of_another_kind_in_one_of_twenty_values_is_told(tmp_path):
    values = [str(i % 50) for i in range(95)] + [f"about {i}" for i in range(5)]
    pd.DataFrame({"age": values, "sex": ["F", "M"] * 50}).to_csv(tmp_path / "t.csv", index=False)
    drafted = write(tmp_path / "t.csv", tmp_path / "understudy.yml")
    assert drafted.columns[0].kind == "integer"
    assert "5 of 100 values cannot be read" in drafted.columns[0].why
    assert "about" not in drafted.text  # what one person wrote is nobody's token


def test_a_column_of_no_one_kind_is_text(tmp_path):
    values = [str(i) for i in range(80)] + [f"about {i}" for i in range(20)]
    pd.DataFrame({"age": values, "sex": ["F", "M"] * 50}).to_csv(tmp_path / "t.csv", index=False)
    assert "# age: left out, 100 distinct values" in draft(tmp_path / "t.csv")


@pytest.mark.parametrize(("ticks", "kind"), [(18, "category"), (2, "integer")])
def test_a_tick_in_most_rows_is_a_value_and_in_few_a_missing_one(tmp_path, ticks, kind):
    """A column is what nine in ten of its values are: nine in ten that are `x` are no missing numbers."""
    path = tmp_path / "t.csv"
    path.write_text("v,w\n" + "".join(f"{'x' if i % 20 < ticks else i % 7},{i % 9}\n" for i in range(2_000)))
    write(path, tmp_path / "understudy.yml")
    declared = read(tmp_path / "understudy.yml").domain["v"]
    assert declared.kind == kind
    assert ("x" in declared.labels) == (kind == "category")
    assert declared.intake.missing == (() if kind == "category" else ("x",))


@pytest.mark.parametrize("value", ["", "x"])
def test_a_column_without_a_name_is_given_one(tmp_path, value):
    """Lines that end with a delimiter have one more column; where it is empty, it is left out."""
    rows = "".join(f"{i % 7};{i % 9};{value}\n" for i in range(200))
    (tmp_path / "t.csv").write_text(f"a;b;\n{rows}")
    made = write(tmp_path / "t.csv", tmp_path / "understudy.yml")
    assert made.notes == ("the header has no name for a column: `columns` gives each a name of its own",)
    names = read(tmp_path / "understudy.yml").domain.names
    assert names == (("a", "b", "column_3") if value else ("a", "b"))
    assert ("it is empty" in made.columns[2].why) == (not value)
    call("check", "--read", cwd=tmp_path)


def test_a_table_is_read_whose_header_has_no_name_for_a_column_that_nobody_declares(tmp_path):
    (tmp_path / "t.csv").write_text("a,,b,\n" + "1,2,3,\n" * 50)
    (tmp_path / "understudy.yml").write_text(
        "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 9}\nattributes:\n"
        "  b: {type: integer, bounds: [1, 5]}\n"
    )
    assert "50 rows were read" in call("check", "--read", cwd=tmp_path).stdout


def test_what_most_rows_say_for_nothing_is_a_missing_value(tmp_path):
    values = [str(i % 50) for i in range(900)] + ["pending"] * 50 + ["N/A"] * 50
    pd.DataFrame({"age": values, "sex": ["F", "M"] * 500}).to_csv(tmp_path / "t.csv", index=False)
    age = parse(draft(tmp_path / "t.csv")).domain["age"]
    assert age.intake.missing == ("N/A", "pending")
    assert age.null


def test_zip_codes_that_are_many_are_left_out_as_codes(tmp_path):
    pd.DataFrame({"zip": [f"{i:05}" for i in range(300)], "sex": ["F", "M"] * 150}).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert "# zip: left out, 300 distinct values: codes with leading zeros stay text" in draft(
        tmp_path / "t.csv"
    )


def test_columns_of_text_in_parquet_are_taken_in_as_well(tmp_path):
    days = [f"{i % 28 + 1:02}/0{i % 9 + 1}/2020" for i in range(300)]
    pd.DataFrame({"day": days, "n": range(300)}).to_parquet(tmp_path / "t.parquet")
    assert parse(draft(tmp_path / "t.parquet")).domain["day"].intake.formats[0].text == "%d/%m/%Y"


def test_few_passes_read_a_wide_table(tmp_path, monkeypatch):
    """Each pass reads the whole file: their number does not grow with the columns."""
    frame = pd.DataFrame({f"c{i}": [str(j % 7) for j in range(50)] for i in range(60)})
    frame.to_csv(tmp_path / "t.csv", index=False, header=[f"name{i}" for i in range(60)])
    import ibis.expr.types as types

    passes: list[object] = []
    run = types.Table.to_pyarrow
    monkeypatch.setattr(
        types.Table, "to_pyarrow", lambda self, **rest: passes.append(self) or run(self, **rest)
    )
    draft(tmp_path / "t.csv")
    assert len(passes) <= 3


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
def test_a_file_that_is_held_in_memory_is_drafted_like_one_that_is_not(tmp_path, monkeypatch, name):
    path = write_ugly(tmp_path / "people.csv", ugly(500, ragged=2), encoding="cp1252")
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(path.read_bytes()))
    texts, holdings = [], []
    hold = table_draft.held
    monkeypatch.setattr(table_draft, "held", lambda table: holdings.append(1) or hold(table))
    for limit in (table_draft.HELD, 0):
        monkeypatch.setattr(table_draft, "HELD", limit)
        texts.append(table_draft.draft(tmp_path / name))
    assert (texts[0], len(holdings)) == (texts[1], 1)


def test_one_value_is_told_as_one(tmp_path):
    (tmp_path / "t.csv").write_text("note\n" + "see file\n\n" * 9)
    assert (
        write(tmp_path / "t.csv", tmp_path / "understudy.yml").columns[0].why.startswith("1 distinct value;")
    )


# ---- decimals


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        (["5.73", "12.40", "0.99"], 2),
        (["5.73", "12.4", "7", "3.1"], 2),  # zeros at the end are often left out
        (["5.7"] * 98 + ["0.30000000000000004"] * 2, 1),  # a few that nobody rounded
        (["5"] * 98 + ["5.25"] * 2, 2),  # most are whole
        (["5.123456", "5.1"], 6),
        (["5.1234567", "5.1"], None),
        (["1.5e-7", "2.5e-7"], None),
        (["1", "2"], None),
        (["13.5%", "2%", "7.25%"], 2),
        (["1.234,5", "7,25", "12,00"], 2),
    ],
)
def test_decimals_of_text(values, decimals):
    assert writing_of(values).decimals == decimals


def test_decimals_of_numbers():
    assert decimals_of([5.73, 12.4, 7.0, nan, inf]) == 2
    assert decimals_of([0.1 + 0.2, 1 / 3, 2.5]) is None
    assert decimals_of([1.0, 2.0]) is None
    assert decimals_of([]) is None
    single = [float(np.float32(number)) for number in (5.73, 12.4)]  # 5.730000019073486
    assert (decimals_of(single), decimals_of(single, single=True)) == (None, 2)
    assert decimals_of([Decimal("5.70"), Decimal("1.25")]) == 2
    assert decimals_of([1e-5, 2e-5]) == 5


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rounded_columns_are_drafted_with_their_decimals_for_review(tmp_path, ending):
    rng = np.random.default_rng(1)
    price, raw = np.round(rng.gamma(2, 20, 500), 2), rng.normal(0, 1, 500)
    table = pa.table({"price": price, "raw": raw, "warm": pa.array(np.round(raw * 20, 1), pa.float32())})
    path = tmp_path / f"t.{ending}"
    (pa.csv.write_csv if ending == "csv" else pa.parquet.write_table)(table, path)
    text = draft(path)
    declared = parse(text).domain
    assert [declared[name].decimals for name in ("price", "raw", "warm")] == [2, None, 1]
    (line,) = [line for line in text.splitlines() if line.lstrip().startswith("price:")]
    assert line.endswith("# READ OFF THE DATA: review")
    notes = {note.name: note.why for note in write(path, tmp_path / "understudy.yml").columns}
    assert "rounded to 2 decimals" in notes["price"]
    assert "rounded" not in notes["raw"]
    codes = {name: np.arange(60) % declared[name].size for name in declared.names}
    rows = as_table(declared, codes, rng)
    assert all(round(value, 2) == value for value in rows["price"].to_pylist())


def test_decimals_of_a_frame_are_inferred_with_its_cells():
    frame = pa.table({"price": np.round(np.random.default_rng(1).gamma(2, 20, 500), 2)})
    with pytest.warns(UserWarning, match="read off the data"):
        project = declare(frame, epsilon=1, infer=["price"])
    assert project.domain["price"].decimals == 2
