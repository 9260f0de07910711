"""What an analyst can see of a source: nothing that was read from it, whatever is wrong with it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy
from program import apart, call
from understudy.declaration.file import parse, read
from understudy.errors import SourceError
from understudy.project import Project, open_project
from understudy.table.source import open_source

SECRET = "Hazelcross"
DECLARATION = """\
understudy: 1
name: people
source: {source}
budget: {{epsilon: 1, delta: 1e-9}}
attributes:
  age: {{type: integer, edges: [0, 18, 65, 120]}}
  sex: {{type: category, values: [F, M]}}
"""


def _text(content: str, name: str = "people.csv") -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        if name.endswith(".gz"):
            (folder / name).write_bytes(gzip.compress(content.encode()))
        else:
            (folder / name).write_text(content)
        return name

    return write


def _parquet(columns: dict[str, object]) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        pq.write_table(pa.table(columns), folder / "people.parquet")
        return "people.parquet"

    return write


def _database(*statements: str) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        with duckdb.connect(str(folder / "people.duckdb")) as connection:
            for statement in statements:
                connection.execute(statement)
        return "people.duckdb"

    return write


def _torn(folder: Path) -> str:
    """Damage that shows only when rows are read."""
    columns = {"age": list(range(100)) * 300, "sex": [SECRET] * 30_000, SECRET: [SECRET] * 30_000}
    path = folder / "people.parquet"
    pq.write_table(pa.table(columns), path, compression="none", use_dictionary=False, data_page_size=4096)
    raw = bytearray(path.read_bytes())
    raw[300_000:500_000] = bytes(i % 251 for i in range(200_000))
    path.write_bytes(raw)
    return path.name


DAMAGED = {
    "no header": _text(f"51,M,{SECRET},48211.5\n52,F,{SECRET},1\n"),
    "no header, packed": _text(f"51,M,{SECRET},48211.5\n", "people.csv.gz"),
    "no header, values repeated": _text(f"{SECRET},{SECRET},1\n"),
    "no header, one column": _text(f"51;M;{SECRET}\n"),
    "a line of a report above the header": _text(f"Report on {SECRET}\nage,sex\n5,F\n"),
    "one column lacks": _text(f"age,{SECRET}\n5,F\n"),
    "named twice": _text(f"age,sex,{SECRET},{SECRET}\n1,F,1,1\n"),
    "an open quote": _text(f'"{SECRET},age,sex\n5,F\n'),
    "a structure": _parquet({"age": [{SECRET: 1}], "sex": ["F"]}),
    "no such column in Parquet": _parquet({SECRET: [1]}),
    "not Parquet": _text(SECRET * 100, "people.parquet"),
    "not packed": lambda folder: _text(SECRET, "plain.csv")(folder) and str(
        (folder / "plain.csv").rename(folder / "people.csv.gz").name
    ),
    "several tables": _database(f"CREATE TABLE {SECRET} (x INT)", "CREATE TABLE other (x INT)"),
    "another table's columns": _database(f"CREATE TABLE people ({SECRET} INT)"),
    "torn": _torn,
}  # fmt: skip


@pytest.fixture(params=DAMAGED, ids=lambda name: name.replace(" ", "-"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    source = DAMAGED[request.param](tmp_path)
    (tmp_path / "understudy.yml").write_text(DECLARATION.format(source=source))
    return tmp_path


def _told(error: BaseException) -> str:
    """All that a traceback or a log would show."""
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    return f"{error!r} {error} {vars(error)}"


def test_no_question_shows_anything_of_a_damaged_source(folder):
    with pytest.raises(SourceError) as refused:
        open_project(folder).ask("count by sex")
    assert SECRET.lower() not in _told(refused.value).lower()
    with pytest.raises(SourceError) as refused:
        understudy.session(open_project(folder), alpha=0.2, queries=10).ask("count sex = F")
    assert SECRET.lower() not in _told(refused.value).lower()


COMMANDS = (
    ("ask", "count by sex"),
    ("ask", "count by sex", "--dry-run"),
    ("ask", "SELECT sex, count(*) FROM people GROUP BY sex", "--json"),
    ("ask", "--session", "s", "--alpha", "0.2", "count by sex"),
    ("release", "--epsilon", "0.5", "-o", "out"),
)


@pytest.mark.parametrize(
    ("damage", "command"),
    [*(("no header", command) for command in COMMANDS), ("no header, values repeated", COMMANDS[0])],
)
def test_no_command_of_an_analyst_shows_a_row(damage, command, tmp_path):
    (tmp_path / "understudy.yml").write_text(DECLARATION.format(source=DAMAGED[damage](tmp_path)))
    done = apart(*command, cwd=tmp_path, status=1)
    assert "understudy check" in done.stdout + done.stderr
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.name != "people.csv":
            assert SECRET.encode() not in file.read_bytes()
    for word in (SECRET, "51", "48211", "Traceback"):
        assert word not in done.stdout + done.stderr


def test_a_frame_that_lacks_a_column_lists_nothing():
    declared = parse(DECLARATION.format(source="x.csv"))
    with pytest.raises(SourceError, match="lacks the declared column 'sex'") as refused:
        Project.frame(pd.DataFrame({"age": [1], SECRET: [2]}), declared)
    assert SECRET not in _told(refused.value)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("no header", f"it has: 51, M, {SECRET}, 48211.5. If these are values of a row"),
        ("no header, values repeated", f"names {SECRET} more than once"),
        ("no header, one column", "is the delimiter right"),
        ("one column lacks", f"no column 'sex'; it has: age, {SECRET}."),
        ("a structure", "struct"),
        ("several tables", f"has the tables {SECRET}, other"),
    ],
)
def test_the_custodian_is_told_what_the_source_has(damage, told, tmp_path):
    (tmp_path / "understudy.yml").write_text(DECLARATION.format(source=DAMAGED[damage](tmp_path)))
    declared = read(tmp_path / "understudy.yml")
    with pytest.raises(SourceError) as refused:
        open_source(declared.source, base=tmp_path, candid=True).check(declared.domain)
    assert told in str(refused.value)


def test_check_and_init_are_the_custodians(tmp_path):
    (tmp_path / "understudy.yml").write_text(
        DECLARATION.format(source=DAMAGED["no header, values repeated"](tmp_path))
    )
    for command in (("check",), ("init", "people.csv", "-o", "draft.yml")):
        done = call(*command, "--json", cwd=tmp_path, status=1)
        assert SECRET in json.loads(done.stdout)["error"]["message"]
