"""Two tables are never priced as one: what tells versions of a table apart, and that a path means one file."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.domain.intake import Intake
from understudy.errors import RequestConflictError, SourceChangedError, SourceError
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.table.file_view import MAX_COLUMNS
from understudy.table.source import open_source
from understudy.table.stamp import COARSE_STEP_NS, STEP_NS, FileStamp, _until_settled, settled_stamps
from understudy.table.text_file import MAX_HEADER, read_header
from understudy.table.truth import Truth

DOMAIN = Domain((Bins.integers("age", 0, 9),))
BY_AGE = Marginal(DOMAIN, ("age",))


def curator(folder, spec, ledger) -> Curator:
    """A Curator over a file as it is now."""
    declaration = Declaration(
        name="t", source=spec, domain=DOMAIN, budget=Budget.of(10), neighbours=Neighbours.ADD_REMOVE
    )
    truth = Truth(open_source(spec, base=folder), DOMAIN)
    return Curator(truth, ledger, declaration, noise=SeededNoise(1))


def of_age(age) -> Marginal:
    return Marginal.of(LinearQuery.conjunction(DOMAIN, {"age": np.arange(10) == age}))


def spent_on_two(folder, spec, change, *, after=None) -> float:
    """What two disjoint questions of price 1 cost together, with a change of the table between them."""
    ledger = MemoryLedger(Budget.of(10))
    before = curator(folder, spec, ledger)
    counted = before._truth.count(("age",)).tolist()
    before.measure(of_age(1), epsilon=1)
    before._truth.source.expression.op().source.disconnect()
    change()
    changed = curator(folder, after or spec, ledger)
    assert changed._truth.count(("age",)).tolist() != counted, "the rows did not move: nothing is tested"
    changed.measure(of_age(2), epsilon=1)
    return ledger.spent.amount


def database(path, *statements) -> None:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def killed_writer(path, statement) -> None:
    """Another process writes and dies before the log is moved into the file."""
    program = (
        f"import duckdb, os\nc = duckdb.connect({str(path)!r}, config={{'checkpoint_threshold': '1TB'}})\n"
        f"c.execute({statement!r})\nos._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=False)


# ---- versions


def test_a_table_that_nobody_changed_is_one_version(tmp_path):
    """The control of what follows: two disjoint questions cost as one, also from two openings."""
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    database(tmp_path / "t.duckdb", "create table t as select 1 as age")
    for spec in (SourceSpec("t.csv"), SourceSpec("t.duckdb")):
        ledger = MemoryLedger(Budget.of(10))
        curator(tmp_path, spec, ledger).measure(of_age(1), epsilon=1)
        curator(tmp_path, spec, ledger).measure(of_age(2), epsilon=1)
        assert ledger.spent.amount == 1


def test_a_log_beside_a_database_is_part_of_its_version(tmp_path):
    path = tmp_path / "t.duckdb"
    database(path, "create table t as select 1 as age")

    def write():
        stamp = os.stat(path)
        killed_writer(path, "update t set age = 2")
        assert (tmp_path / "t.duckdb.wal").exists()
        assert (os.stat(path).st_mtime_ns, os.stat(path).st_ino) == (stamp.st_mtime_ns, stamp.st_ino)

    assert spent_on_two(tmp_path, SourceSpec("t.duckdb"), write) == 2


def test_a_log_that_grows_while_the_database_is_open_is_noticed(tmp_path):
    path = tmp_path / "t.duckdb"
    database(path, "create table t as select 1 as age")
    source = open_source(SourceSpec("t.duckdb"), base=tmp_path)
    (tmp_path / "t.duckdb.wal").write_bytes(b"")
    with pytest.raises(SourceChangedError):
        source.check_unchanged()


def test_a_view_over_another_file_has_no_version(tmp_path):
    (tmp_path / "people.csv").write_text("age\n1\n1\n")
    rows = f"read_csv('{tmp_path / 'people.csv'}', columns = {{'age': 'BIGINT'}}, header = true)"
    database(tmp_path / "t.duckdb", f"create view t as select * from {rows}")
    change = lambda: (tmp_path / "people.csv").write_text("age\n2\n1\n")  # noqa: E731
    assert spent_on_two(tmp_path, SourceSpec("t.duckdb"), change) == 2


def test_what_stands_behind_a_view_is_never_kept(tmp_path):
    """Rows that can change unnoticed are read anew at every look, and each question pays in full."""
    (tmp_path / "people.csv").write_text("age\n1\n1\n")
    rows = f"read_csv('{tmp_path / 'people.csv'}', columns = {{'age': 'BIGINT'}}, header = true)"
    database(tmp_path / "t.duckdb", f"create view t as select * from {rows}")
    ledger = MemoryLedger(Budget.of(10))
    asked = curator(tmp_path, SourceSpec("t.duckdb"), ledger)
    for _ in range(3):
        assert asked._truth.sums(BY_AGE)[1] == 2
    (tmp_path / "people.csv").write_text("age\n1\n5\n")
    assert asked._truth.sums(BY_AGE)[1] == 1
    asked.measure(of_age(1), epsilon=1)
    asked.measure(of_age(2), epsilon=1)
    assert ledger.spent.amount == 2
    assert (asked.edition, asked._truth.version) == ("", None)


def test_a_column_that_is_computed_when_it_is_read_has_no_version(tmp_path):
    database(tmp_path / "t.duckdb", "create table t(a int, age as (extract(second from now())::int % 10))")
    assert open_source(SourceSpec("t.duckdb"), base=tmp_path).version is None


def test_two_tables_of_one_database_are_two(tmp_path):
    database(tmp_path / "t.duckdb", "create table a as select 1 as age", "create table b as select 2 as age")
    a, b = SourceSpec("t.duckdb", "a"), SourceSpec("t.duckdb", "b")
    assert spent_on_two(tmp_path, a, lambda: None, after=b) == 2


def test_another_delimiter_makes_other_rows(tmp_path):
    (tmp_path / "t.csv").write_text("age,b;age;c\n1,2;3;x\n")
    first, second = SourceSpec("t.csv", delimiter=","), SourceSpec("t.csv", delimiter=";")
    assert spent_on_two(tmp_path, first, lambda: None, after=second) == 2


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_rewrite_in_place_that_keeps_its_time_is_another_version(ending, tmp_path):
    path = tmp_path / f"t.{ending}"

    def write(age):
        if ending == "csv":
            path.write_text(f"age\n{age}\n")
        else:
            with open(path, "wb") as file:
                parquet.write_table(pa.table({"age": [age]}), file)

    def rewrite():
        before = os.stat(path)
        write(2)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = os.stat(path)
        assert (after.st_mtime_ns, after.st_ino, after.st_size) == (
            before.st_mtime_ns,
            before.st_ino,
            before.st_size,
        )

    write(1)
    assert spent_on_two(tmp_path, SourceSpec(path.name), rewrite) == 2
    opened = open_source(SourceSpec(path.name), base=tmp_path)
    rewrite()
    with pytest.raises(SourceChangedError):
        opened.rows(DOMAIN)


def test_a_file_that_changes_in_the_middle_of_a_look_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age\n1\n")
    source = open_source(SourceSpec("t.csv"), base=tmp_path)
    look, before = source.look(), os.stat(path)
    look.__enter__()
    path.write_text("age\n2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SourceChangedError):
        look.__exit__(None, None, None)


def test_a_file_is_stamped_when_a_later_write_would_show(tmp_path):
    """Times are written down in steps: two writes within one step look alike."""
    path = tmp_path / "t.csv"
    for attempt in range(20):
        path.write_text(f"age\n{attempt % 10}\n")
        stamps = settled_stamps(path)
        path.write_text(f"age\n{(attempt + 1) % 10}\n")
        assert settled_stamps(path) != stamps


def test_waiting_for_a_stamp_is_bounded():
    now = time.time_ns()
    assert 0 < _until_settled(FileStamp("t", changed_ns=now | 1)) <= STEP_NS
    whole_second = now - now % 1_000_000_000
    assert 0 < _until_settled(FileStamp("t", changed_ns=whole_second)) <= COARSE_STEP_NS
    assert _until_settled(FileStamp("t", changed_ns=now + 10**12)) == 0
    assert _until_settled(FileStamp("t")) == 0


# ---- what version 0.1 recorded


def as_recorded_by_0_1(asked: Curator) -> Curator:
    """The Curator as version 0.1 would name the table's version."""
    asked._truth.__dict__["version"] = asked._truth.former_version
    return asked


def test_what_0_1_recorded_goes_on_and_what_it_could_not_tell_apart_does_not(tmp_path):
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    ledger, spec = MemoryLedger(Budget.of(10)), SourceSpec("t.csv")
    old = as_recorded_by_0_1(curator(tmp_path, spec, ledger))
    first = old.measure(of_age(1), epsilon=1, request="mine")
    handle = old.sparse(threshold=1, epsilon=1, request="handle")
    new = curator(tmp_path, spec, ledger)
    assert new.edition != old.edition
    assert new.measure(of_age(1), epsilon=1, request="mine").noisy == first.noisy
    assert new.sparse(threshold=1, epsilon=1, request="handle").hits_left == handle.hits_left
    assert ledger.spent.amount == 2
    new.measure(of_age(2), epsilon=1)
    assert ledger.spent.amount == 3, "0.1 could not tell versions apart: nothing is priced together with it"
    os.utime(tmp_path / "t.csv", ns=(1, 1))
    with pytest.raises(RequestConflictError):
        curator(tmp_path, spec, ledger).measure(of_age(1), epsilon=1, request="mine")


def test_what_0_1_charged_and_did_not_live_to_answer_is_not_looked_at(tmp_path):
    """Its version was told by less: rows that moved would be read at a price that is joint with the old ones."""
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    ledger, spec = MemoryLedger(Budget.of(10)), SourceSpec("t.csv")
    old = as_recorded_by_0_1(curator(tmp_path, spec, ledger))
    old._truth.sums_of = lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        old.measure(of_age(1), epsilon=1, request="mine")
    with pytest.raises(RequestConflictError, match="never answered"):
        curator(tmp_path, spec, ledger).measure(of_age(1), epsilon=1, request="mine")
    assert ledger.spent.amount == 1


# ---- a path means one file

NAMES = ["people[1]", "p*", "q?", "it's", 'a"b', "new\nline", "back\\slash", "{a,b}", "[*]?", "ü", "a;b"]
DECOYS = ["people1", "people", "pp", "qq", "a", "b", "xx"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "duckdb"])
def test_a_name_is_no_pattern(name, ending, tmp_path):
    def write(stem, age):
        path = tmp_path / f"{stem}.{ending}"
        if ending == "parquet":
            parquet.write_table(pa.table({"age": [age]}), path)
        elif ending == "duckdb":
            database(path, f"create table t as select {age} as age")
        elif ending == "csv.gz":
            with gzip.open(path, "wt") as file:
                file.write(f"age\n{age}\n")
        else:
            path.write_text(f"age\n{age}\n")

    for decoy in DECOYS:
        write(decoy, 9)
    write(name, 3)
    truth = Truth(open_source(SourceSpec(f"{name}.{ending}"), base=tmp_path), DOMAIN)
    assert truth.count(("age",)).tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("name", ["people[1].csv", "p*.parquet", "q?.tsv"])
def test_a_pattern_that_is_no_file_is_refused(name, tmp_path):
    for there in ("people1.csv", "pp.parquet", "qq.tsv"):
        (tmp_path / there).write_text("age\n1\n")
    with pytest.raises(SourceError, match="cannot be read"):
        open_source(SourceSpec(name), base=tmp_path)


def test_a_name_that_the_engine_cannot_take_literally_is_refused(tmp_path):
    (tmp_path / "b\\[x].csv").write_text("age\n1\n")
    with pytest.raises(SourceError, match="rename the file"):
        open_source(SourceSpec("b\\[x].csv"), base=tmp_path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("folder", ["age=7", "x[1]", "age=7/age=8", "a*"])
def test_the_name_of_a_folder_adds_nothing_to_the_rows(folder, ending, tmp_path):
    inside = tmp_path / folder
    inside.mkdir(parents=True)
    path = inside / f"t.{ending}"
    if ending == "csv":
        path.write_text("age,b\n3,1\n")
    else:
        parquet.write_table(pa.table({"age": [3], "b": [1]}), path)
    truth = Truth(open_source(SourceSpec(str(path)), base=tmp_path), DOMAIN)
    assert truth.count(("age",)).tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


# ---- headers and wide tables


def test_a_header_is_read_within_bounds(tmp_path):
    bomb = tmp_path / "t.csv.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"a" * (1 << 20))
    program = (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from pathlib import Path\nfrom understudy.table.text_file import read_header\n"
        "try:\n    read_header(Path(sys.argv[1]), ',')\nexcept Exception as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(bomb)], capture_output=True, text=True, check=False
    )
    assert f"longer than {MAX_HEADER:,} characters" in done.stdout, done.stderr


@pytest.mark.parametrize("text", ["a," * (MAX_HEADER // 2 + 1), '"' + "a\n" * (MAX_HEADER // 2 + 1)])
def test_a_header_that_does_not_end_is_refused(text, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SourceError, match=r"longer than|cannot be read"):
        read_header(tmp_path / "t.csv", ",")


def test_a_header_has_so_many_columns_at_most(tmp_path):
    (tmp_path / "t.csv").write_text(",".join(f"c{i}" for i in range(MAX_COLUMNS + 1)) + "\n")
    with pytest.raises(SourceError, match=f"at most {MAX_COLUMNS:,}"):
        read_header(tmp_path / "t.csv", ",")


def test_columns_that_are_not_declared_are_not_part_of_the_expression(tmp_path):
    """An engine takes time for every column of an expression: 30,000 took most of a minute to open."""
    names = ["age", *(f"c{i}" for i in range(30_000))]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + ",".join("3" for _ in names) + "\n")
    source = open_source(SourceSpec("t.csv"), base=tmp_path, columns={"age"}, candid=True)
    assert list(source.columns) == ["age"]
    assert len(source.names) == 30_001
    assert Truth(source, DOMAIN).count(("age",))[3] == 1
    other = open_source(SourceSpec("t.csv"), base=tmp_path, columns={"wage"}, candid=True)
    with pytest.raises(SourceError, match="it has: age, c0, c1"):
        other.check(Domain((Bins.integers("wage", 0, 9),)))


# ---- blank lines


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_blank_line_is_a_missing_value_in_one_column_and_no_row_in_several(newline, tmp_path):
    lines = ["age", "1", "", "2", '""', ""]
    (tmp_path / "one.csv").write_bytes((newline.join(lines) + newline).encode())
    missing = Domain((replace(Bins.integers("age", 0, 9), null=True),))
    one = Truth(open_source(SourceSpec("one.csv"), base=tmp_path), missing)
    assert one.rows == 5
    assert one.count(("age",)).tolist() == [0, 1, 1, *[0] * 7, 3]
    lines = ["age,b", "1,x", "", "2,y", ",", ""]
    (tmp_path / "two.csv").write_bytes((newline.join(lines) + newline).encode())
    two = Truth(open_source(SourceSpec("two.csv"), base=tmp_path, columns={"age"}), missing)
    assert two.rows == 3
    assert two.count(("age",)).tolist() == [0, 1, 1, *[0] * 7, 1]


def test_how_text_is_read_is_part_of_the_version(tmp_path):
    """Rows that are read otherwise are other rows: their debits add up, and their answers are not repeated."""
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    source = open_source(SourceSpec("t.csv"), base=tmp_path)
    age = {"name": "age", "starts": tuple(range(10)), "upper": 9}
    intakes = [
        Intake(),
        Intake(missing=("1",)),
        Intake(strip=("x",)),
        Intake(percent=True),
        Intake(thousands=","),
    ]
    versions = {Truth(source, Domain((Bins(**age, intake=intake),))).version for intake in intakes}
    assert len(versions) == 5
    assert (
        Truth(source, DOMAIN).version in versions
    )  # without any, the version is what it was before there were any
