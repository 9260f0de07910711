from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from understudy.declaration.file import parse, read
from understudy.declaration.outline import MARK, unreviewed
from understudy.errors import SourceError
from understudy.table.draft import draft
from understudy.table.draft_file import write
from understudy.table.source import in_memory

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
    text = draft(empty)
    assert text.count("left out") == 2
    for absent in ("nowhere.csv", "nowhere.parquet", "nowhere.duckdb"):
        with pytest.raises(SourceError, match=f"there is no file .*{absent}"):
            write(tmp_path / absent, tmp_path / "x.yml")
    assert not (tmp_path / "x.yml").exists()


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
