from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.declaration.file import parse, read
from understudy.declaration.outline import MARK, unreviewed
from understudy.errors import DeclarationError, SourceError
from understudy.table.draft import draft
from understudy.table.draft_file import write, write_described
from understudy.table.source import in_memory
from understudy_importers.formats import read as described

FRAME = pd.DataFrame(
    {
        "id": np.arange(200) + 1000,
        "age": np.arange(200) % 90,
        "kids": np.arange(200) % 4,
        "pay": np.linspace(-5.5, 123456.7, 200),
        "town: name": ["no", "Y", 'say "x", y', "é"] * 50,
        "note": [f"free text {i}" for i in range(200)],
        "member": [True, False, None, True] * 50,
        "day": pd.date_range("1999-03-04", periods=200, freq="30D"),
        "nothing": [None] * 200,
    }
)


@pytest.mark.parametrize("ending", ["parquet", "csv", "semicolon.csv"])
def test_a_draft_is_a_declaration_that_fits_its_table(tmp_path, ending):
    path = tmp_path / f"people.{ending}"
    if ending == "parquet":
        FRAME.to_parquet(path)
    else:
        FRAME.to_csv(path, index=False, sep=";" if "semicolon" in ending else ",")
    write(path, tmp_path / "understudy.yml")
    declared = read(tmp_path / "understudy.yml")
    assert declared.source.location == path.name
    kinds = {attribute.name: attribute.kind for attribute in declared.domain}
    assert kinds["age"] == kinds["kids"] == "integer"
    assert kinds["pay"] == "real"
    assert kinds["town: name"] == "category"
    assert kinds["day"] == "date"
    assert {"id", "note", "nothing"}.isdisjoint(kinds)
    assert declared.domain["town: name"].proper_labels == tuple(sorted({"no", "Y", 'say "x", y', "é"}))
    assert declared.domain["member"].null


def test_every_line_read_off_the_data_is_marked(tmp_path):
    path = tmp_path / "people.parquet"
    FRAME.to_parquet(path)
    text = draft(path)
    for i, line in enumerate(text.splitlines(), 1):
        tells = any(word in line for word in ("bounds", "edges", "values", "null: true", "distinct"))
        assert (i in unreviewed(text)) == tells == (MARK in line), line


def test_every_value_seen_has_a_proper_cell(tmp_path):
    path = tmp_path / "people.parquet"
    FRAME.to_parquet(path)
    declared = parse(draft(path))
    domain = declared.domain
    in_memory(FRAME).check(domain)
    for name in ("age", "kids", "pay"):
        assert all(domain[name].proper_code(v) is not None for v in FRAME[name])
        assert FRAME[name].min() >= domain[name].starts[0]
        assert FRAME[name].max() <= domain[name].upper


def test_nothing_is_overwritten_unless_asked(tmp_path):
    path = tmp_path / "people.csv"
    FRAME.to_csv(path, index=False)
    target = tmp_path / "understudy.yml"
    target.write_text("understudy: mine")
    with pytest.raises(SourceError, match="exists already"):
        write(path, target)
    assert target.read_text() == "understudy: mine"
    write(path, target, overwrite=True)
    assert read(target)


def test_empty_and_missing_tables(tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_text("a,b\n")
    with pytest.raises(
        SourceError, match=r"empty.csv has no rows: .* --from, or declare its columns by hand"
    ):
        write(empty, tmp_path / "x.yml")
    for absent in ("nowhere.csv", "nowhere.parquet", "nowhere.duckdb"):
        with pytest.raises(SourceError, match=f"there is no file .*{absent}"):
            write(tmp_path / absent, tmp_path / "x.yml")
    with pytest.raises(SourceError, match="is a folder; name a CSV"):
        write(tmp_path, tmp_path / "x.yml")
    assert not (tmp_path / "x.yml").exists()


def test_typed_and_described_tables_without_rows(tmp_path):
    """Types of columns alone give no cells; a column of days that holds none is left out, beside others."""
    none = FRAME.assign(joined=pd.Series(pd.NaT, FRAME.index).dt.date, day=pd.Series(pd.NaT, FRAME.index))
    none["day"] = none["day"].astype("datetime64[s]")
    schema = pa.Table.from_pandas(none).schema
    schema = schema.set(schema.get_field_index("joined"), pa.field("joined", pa.date32()))
    table = pa.Table.from_pandas(none, schema=schema)
    path = tmp_path / "people.parquet"
    pq.write_table(table.slice(0, 0), path)
    with pytest.raises(SourceError, match=r"people.parquet has no rows"):
        write(path, tmp_path / "x.yml")
    assert not (tmp_path / "x.yml").exists()
    description = tmp_path / "schema.json"
    description.write_text('{"fields": [{"name": "age", "type": "integer"}]}')
    with pytest.raises(SourceError, match=r"has no rows: what the description lacks"):
        write_described(description, tmp_path / "x.yml", read=described, data=path)
    pq.write_table(table, path)
    drafted = {column.name: column for column in write(path, tmp_path / "x.yml").columns}
    assert drafted["joined"].why == drafted["day"].why == "left out: 0 distinct values: it is empty"
    assert read(tmp_path / "x.yml")


def test_a_draft_without_a_column_says_that_it_is_none_yet(tmp_path):
    path = tmp_path / "blank.csv"
    path.write_text("a,b\n,\n,\n")
    assert not write(path, tmp_path / "x.yml").has_attributes
    with pytest.raises(DeclarationError, match="no attribute is declared"):
        read(tmp_path / "x.yml")


@pytest.mark.parametrize(
    "url", ["postgresql://localhost/x", "spark:local[2]", "spark", "mysql://a@b/c", "sc://h:1"]
)
def test_a_table_behind_a_url_is_not_drafted(tmp_path, url):
    with pytest.raises(SourceError, match=r"init reads files.*--from"):
        write(Path(url), tmp_path / "x.yml")
    assert not (tmp_path / "x.yml").exists()


def test_a_table_is_named_in_a_database_only(tmp_path):
    path = tmp_path / "people.parquet"
    FRAME.to_parquet(path)
    with pytest.raises(SourceError, match="leave --table out"):
        write(path, tmp_path / "x.yml", table="foo")
    assert not (tmp_path / "x.yml").exists()


def test_a_drafted_budget_buys_what_a_release_costs_by_default(tmp_path):
    path = tmp_path / "people.parquet"
    FRAME.to_parquet(path)
    budget = parse(draft(path)).budget
    assert (budget.epsilon, budget.delta) == (1, Fraction(1, 10**9))


def test_a_draft_never_replaces_what_it_is_drafted_from(tmp_path):
    """Whatever it is told: the table may be the only copy."""
    table = tmp_path / "people.csv"
    table.write_text("age,sex\n51,M\n34,F\n")
    before = table.read_bytes()
    alias = tmp_path / "alias.csv"
    alias.symlink_to(table)
    for target in (table, alias):
        with pytest.raises(SourceError, match="what is to be described"):
            write(table, target, overwrite=True)
    assert table.read_bytes() == before
