"""Filling in what a description lacks: by a person, or off the data."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from program import PROGRAM, call, run
from understudy.declaration.file import parse, read
from understudy.declaration.outline import MARK, unreviewed
from understudy.errors import DeclarationError, SourceError
from understudy.table.draft_file import write_described as write_from
from understudy.table.source import open_source
from understudy_importers import formats
from understudy_importers.asking import complete

HERE = Path(__file__).parent
HOSPITAL = HERE / "hospital.yaml"
PACKAGE = HERE / "package" / "datapackage.json"

write_described = partial(write_from, read=formats.read)


def answering(**answers: list[str]):
    """A person with a list of answers for each line."""
    left = {key: list(lines) for key, lines in answers.items()}
    return lambda question: left[question.split(":")[0]].pop(0)


def test_a_person_fills_in_what_is_lacking():
    told: list[str] = []
    asked = answering(
        source=["visits.csv"],
        budget=["much", "1, 1e-9"],
        ward=["", "never asked again"],
        discharged=["2024-01-01, 2019-01-01", "[2019-01-01, 2024-06-30]"],
    )
    outline = complete(formats.read(HOSPITAL, table="visits"), asked, told.append)
    assert [what.split(":")[0] for what in outline.unfilled().values()] == ["ward"]
    assert len(told) == 2
    assert "finite number" in told[0]
    assert "lies below" in told[1]
    outline = complete(outline, answering(ward=["A, A", "A, [B]", "A, 'B, C', no, 1.0"]), told.append)
    assert "twice" in told[2]
    declared = parse(outline.text())
    assert declared.domain["ward"].proper_labels == ("A", "B, C", "no", "1.0")
    assert declared.domain["discharged"].proper_size == 11
    assert str(declared.budget.delta) == "1/1000000000"


def test_a_column_can_be_left_out_and_edges_can_be_given():
    told: list[str] = []
    asked = answering(source=["wards.csv"], budget=["0.5"], floor=["0, 3, 7, 12"])
    outline = complete(formats.read(HOSPITAL, table="wards"), asked, told.append)
    assert parse(outline.text()).domain["floor"].proper_labels == ("0-2", "3-6", "7-12")
    left = complete(
        formats.read(HOSPITAL, table="wards"),
        answering(source=["a.csv"], budget=["1"], floor=["-"]),
        told.append,
    )
    assert parse(left.text()).domain.names == ("beds",)
    assert told == []


@pytest.mark.parametrize(
    "written", ["1, 1e-9", "[1, 1e-9]", "{epsilon: 1, delta: 1e-9}", "{delta: 1e-9, epsilon: 1}"]
)
def test_a_budget_may_be_answered_as_it_is_written(written):
    told: list[str] = []
    asked = answering(source=["a.csv"], budget=["{delta: 1e-9}", "{epsilon: [1]}", written], floor=["-"])
    outline = complete(formats.read(HOSPITAL, table="wards"), asked, told.append)
    assert len(told) == 2
    assert str(parse(outline.text()).budget) == "epsilon 1, delta 1e-09"


def test_a_choice_that_contradicts_is_told():
    told: list[str] = []
    asked = answering(source=["l.csv"], neighbours=["both", "replace"], budget=["1"], back=["-"], title=["-"])
    outline = complete(formats.read(PACKAGE, table="loans"), asked, told.append)
    assert "'both'" in told[0]
    assert parse(outline.text()).neighbours == "replace"


@pytest.mark.parametrize(
    ("answers", "unit"), [(["reader", "reader, many", "reader, 4"], ("reader", 4)), ([""], None)]
)
def test_whose_rows_come_and_go_is_asked_as_well(answers, unit):
    told: list[str] = []
    asked = answering(neighbours=["add-remove"], unit=answers, budget=["1"], back=["-"], title=["-"])
    declared = parse(complete(formats.read(PACKAGE, table="loans"), asked, told.append).text())
    assert len(told) == len(answers) - 1
    assert (declared.unit and (declared.unit.column, declared.unit.max_rows)) == unit


ANSWERS = st.text(max_size=12) | st.lists(
    st.sampled_from(
        ["0", "1e350", "-5", "2020-01-01", "9999-12-31", "F", "'", "[", "]", ",", "{", "*a", "#", ".inf", "~"]
    )
).map(" ".join)


@given(st.lists(ANSWERS, min_size=1, max_size=12))
@settings(max_examples=150)
def test_no_answer_stops_the_program(answers):
    left = list(answers)
    outline = complete(
        formats.read(HOSPITAL, table="visits"), lambda _: left.pop() if left else "", lambda problem: None
    )
    if not outline.unfilled():
        parse(outline.text())


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    pd.DataFrame(
        {
            "person": range(100),
            "age": [20, 40] * 50,
            "nights": [1, 2] * 50,
            "cost": [10.0, 200.0] * 50,
            "ward": ["north", "south", "", "no"] * 25,
            "emergency": ["true", "false"] * 50,
            "admitted": ["2020-02-02"] * 100,
            "discharged": ["2020-02-03", "2023-05-06"] * 50,
            "scan": ["x"] * 100,
            "height": [180] * 100,
        }
    ).to_csv(path, index=False, sep="|")
    return path


def test_only_what_is_lacking_is_read_off_the_data_and_marked(tmp_path, visits):
    outline = write_described(HOSPITAL, tmp_path / "understudy.yml", data=visits, table="visits")
    text = (tmp_path / "understudy.yml").read_text()
    assert text == outline.text()
    marked = [text.splitlines()[line - 1].split(":")[0].strip() for line in unreviewed(text)]
    assert marked == ["ward", "discharged"]
    assert "# height: left out, a column of the table that is not described" in text
    assert [what.split(":")[0] for what in outline.unfilled().values()] == ["budget"]
    (tmp_path / "understudy.yml").write_text(text.replace("{epsilon: }", "{epsilon: 1}"))
    declared = read(tmp_path / "understudy.yml")
    assert (declared.source.location, declared.source.delimiter) == ("visits.csv", "|")
    assert declared.domain["ward"].proper_labels == ("no", "north", "south")
    assert declared.domain["age"].labels[-1] == "95-100"  # as described, whatever was seen
    open_source(declared.source, base=tmp_path).check(declared.domain, declared.unit)


def test_a_file_of_another_kind_needs_no_delimiter(tmp_path):
    frame = pd.DataFrame({"title": ["a", "b"] * 5, "back": pd.to_datetime(["2020-01-01", "2021-01-01"] * 5)})
    frame.to_parquet(tmp_path / "loans.parquet")
    outline = write_described(
        PACKAGE, tmp_path / "understudy.yml", data=tmp_path / "loans.parquet", table="loans"
    )
    assert "delimiter" not in outline.setting
    lines = {entry.key: entry.line() for entry in outline.attributes}
    assert "values: [a, b], null: true" in lines["title"]
    assert "2020-01-01" in lines["back"]
    assert MARK in lines["back"]


def test_without_data_no_table_is_opened(tmp_path):
    folder = tmp_path / "in"
    (folder / "data").mkdir(parents=True)
    (folder / "datapackage.json").write_text(PACKAGE.read_text())
    (folder / "data" / "loans.csv").write_text("a secret;header\n")
    outline = write_described(folder / "datapackage.json", tmp_path / "understudy.yml", table="loans")
    assert outline.setting["source"].fields == {"": '"in/data/loans.csv"'}
    assert MARK not in outline.text()
    assert "secret" not in outline.text()


def test_nothing_is_overwritten_and_bad_data_is_no_traceback(tmp_path, visits):
    target = tmp_path / "understudy.yml"
    target.write_text("mine")
    with pytest.raises(SourceError, match="exists already"):
        write_described(HOSPITAL, target, table="visits")
    assert target.read_text() == "mine"
    with pytest.raises(SourceError):
        write_described(HOSPITAL, tmp_path / "other.yml", table="visits", data=tmp_path / "gone.csv")
    assert not (tmp_path / "other.yml").exists()


def test_the_program_marks_what_is_missing_and_check_refuses_it(tmp_path):
    done = run("init", "--from", str(HOSPITAL), "--table", "visits", "--yes", cwd=tmp_path, status=1)
    assert "4 lines lack something" in done.stderr
    assert "ward: the 8 values" in done.stderr
    refused = call("check", cwd=tmp_path, status=2)
    assert "understudy.yml, line" in refused.stderr
    again = call(
        "init", "--from", str(HOSPITAL), "--table", "wards", "--json", "--overwrite", cwd=tmp_path, status=1
    )
    reply = json.loads(again.stdout)
    assert reply["lines_to_review"] == []
    lines = (tmp_path / "understudy.yml").read_text().splitlines()
    assert all("# MISSING:" in lines[item["line"] - 1] for item in reply["lines_to_fill"])
    call("init", cwd=tmp_path, status=2)
    call("init", "--from", "gone.yaml", "--output", "new.yml", cwd=tmp_path, status=2)


FILLED = {
    "source:  #": "source: wards.csv  #",
    "budget: {epsilon: }": "budget: {epsilon: 1}",
    "bounds: []": "bounds: [0, 9]",
}


@pytest.mark.parametrize("lack", [*FILLED, ""])
@pytest.mark.parametrize("marked", [True, False])
def test_each_lack_alone_is_refused(tmp_path, lack, marked):
    """A line that is not filled in is refused, whether its mark is still there or not."""
    (tmp_path / "wards.csv").write_text("beds,floor\n1,2\n")
    text = formats.read(HOSPITAL, table="wards").text()
    for old, new in FILLED.items():
        assert text.count(old) == 1
        text = text if old == lack else text.replace(old, new)
    text = text if marked else "\n".join(line.split("  #")[0] for line in text.splitlines())
    with pytest.raises((DeclarationError, SourceError)) if lack else nullcontext():
        declared = parse(text)
        open_source(declared.source, base=tmp_path).check(declared.domain)


def test_the_program_asks_at_a_terminal(tmp_path):
    pty = pytest.importorskip("pty", reason="this system has no terminals to imitate")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(PROGRAM), "init", "--from", str(HOSPITAL), "--table", "wards"],
        cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, b"wards.csv\n-3\n1\n0, 12\n")
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux says so when the other side has closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait() == 0, shown
    assert b"Press Enter" in shown
    assert b"positive" in shown
    declared = read(tmp_path / "understudy.yml")
    assert declared.domain["floor"].proper_size == 13
    assert declared.budget.epsilon == 1
