"""`understudy start`: a whole project from a file and a budget, and nothing spent where it cannot be made."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import json
import random
import shlex
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
import understudy.starting.start as starting
from page_checks import read_page
from program import call
from understudy.curator import column_curator
from understudy.declaration.declaration import SourceSpec, Undecodable
from understudy.declaration.file import read
from understudy.errors import InsufficientBudgetError, LedgerError, RefusedError, SourceError
from understudy.ledger import export, verifier
from understudy.ledger.declared import open_ledger
from understudy.ledger.witness import Witness
from understudy.mechanism.column_profile.profile import ColumnProfile
from understudy.noise.samplers import SeededNoise
from understudy.privacy.event import GaussianNoise
from understudy.privacy.key_event import TruncatedGeometricKeys
from understudy.privacy.relation import Neighbours
from understudy.rational import exact
from understudy.starting import opening
from understudy.starting.described import of_numbers
from understudy.starting.find_keys import find_keys
from understudy.starting.start import FORMER, budget_of, start
from understudy.starting.summary import summary
from understudy.starting.written import reading_of
from understudy.table import column_reader
from understudy.table.column_reader import MISSING_WORDS, WRITINGS, NumberReading, ValueKind
from understudy.table.source import open_source

ROWS = 6_000
TOWNS = ("Köln", "New York", "O'Brien, Co")


@pytest.fixture(scope="module")
def messy(tmp_path_factory) -> Path:
    """A file of text with a mark at its beginning, semicolons, and every way of writing that is known."""
    path = tmp_path_factory.mktemp("messy") / "messy.csv"
    rng = np.random.default_rng(1)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(
            [
                "id",
                "amount",
                "price €",
                "day",
                "two orders",
                "mixed",
                "town",
                "note",
                "flag",
                "empty",
                "year",
                "time",
            ]
        )
        for i in range(ROWS):
            day = dt.date(2000, 1, 1) + dt.timedelta(days=int(rng.integers(0, 8000)))
            writer.writerow(
                [
                    i + 100_000,
                    f"{rng.lognormal(8, 1):,.2f}",
                    f"€ {rng.lognormal(6, 1):.2f}".replace(".", ","),
                    day.strftime(("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y")[i % 3]),
                    day.strftime(("%m/%d/%Y", "%d/%m/%Y")[i % 2]),
                    str(i % 4) if i % 3 else "abc",
                    TOWNS[min(int(rng.geometric(0.5)) - 1, 2)] if i % 10 else "",
                    f"free text {i}",
                    ("yes", "no")[i % 2],
                    "",
                    int(rng.triangular(1930, 1980, 2010)),
                    f"{day} 12:{i % 60:02}:00",
                ]
            )
    return path


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--encoding", "foo"), "no encoding 'foo'"),
        (("--delimiter", "||"), "a delimiter is one character"),
        (("--delimiter", ""), "a delimiter is one character"),
    ],
)
def test_a_wrong_way_of_reading_is_told(tmp_path, given, words):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    said = call("start", "t.csv", "--epsilon", "1", *given, cwd=tmp_path, status=1).stderr
    assert words in said
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def started(data: Path, target: Path, **given):
    given = {"epsilon": 20, "delta": 1e-9, "noise": SeededNoise(1), "environ": {}} | given
    return start(data, target, **given)


# ---------------------------------------------------------------------------------------- what it finds


@pytest.fixture(scope="module")
def project(messy, tmp_path_factory):
    target = tmp_path_factory.mktemp("project") / "understudy.yml"
    return started(messy, target), target


def test_every_column_is_declared_as_what_it_is_or_left_out_and_named(project):
    found, target = project
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds == {
        "id": "",
        "amount": "real",
        "price €": "real",
        "day": "date",
        "two orders": "",
        "mixed": "category",
        "town": "category",
        "note": "",
        "flag": "boolean",
        "empty": "",
        "year": "integer",
        "time": "timestamp",
    }
    why = {column.name: column.why for column in found.columns}
    assert "identifier" in why["id"]
    assert "free text" in why["note"]
    assert "month first" in why["two orders"]
    assert "67%" in why["mixed"] or "whole numbers" in why["mixed"]
    declared = read(target)
    assert set(declared.domain["town"].labels) == {*TOWNS, "other", "null"}
    year = declared.domain["year"]
    assert year.starts[0] > 1900
    assert year.upper < 2030
    text = target.read_text()
    for name in ("id", "note", "empty"):
        assert f"# {name}: left out" in text


def test_what_it_wrote_is_asked_released_and_shown(project):
    found, target = project
    opened = us.open(target)
    try:
        towns = opened.ask("count by town", epsilon=1)
        assert towns.value.sum() == pytest.approx(ROWS, rel=0.05)
        assert towns.value[list(opened.domain["town"].labels).index("Köln")] > 0.3 * ROWS
        for column in ("amount", "price €", "day", "time", "year"):
            counts = opened.ask(f'count by "{column}"', epsilon=1).value
            readable = counts[: opened.domain[column].proper_size]
            assert readable.sum() > 0.9 * ROWS
            assert readable.max() < 0.25 * ROWS, column
    finally:
        opened.close()
    page = summary(found)
    read_page(page)
    assert all(column.name in page for column in found.columns)
    assert "left out" in page.lower()


def test_it_costs_a_tenth_and_a_second_start_nothing(project, messy):
    found, target = project
    budget = found.budget
    assert budget.share(found.cost) == pytest.approx(0.1, rel=1e-3)
    assert 0 < found.delta <= budget.key_delta
    ledger = open_ledger(read(target), base=target.parent, environ={})
    spent, own = ledger.spent, ledger.delta_spent
    before = target.read_bytes()
    again = started(messy, target, noise=SeededNoise(2))
    assert again.again
    assert again.text == found.text
    assert target.read_bytes() == before
    assert (ledger.spent, ledger.delta_spent) == (spent, own)
    assert started(messy, target, overwrite=True, noise=SeededNoise(3)).text == found.text
    assert ledger.spent == spent
    document = export.document(ledger.url, ledger.name)
    ledger.close()
    verdict = verifier.verify(document)
    assert verdict["sound"], verdict["problems"]
    assert verdict["key_delta_spent"] == pytest.approx(float(found.delta))


def test_parquet_has_types_and_needs_no_writings(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(2)
    day = np.datetime64("2010-01-01") + rng.integers(0, 3000, 4000)
    columns = {
        "weight": rng.normal(70, 9, 4000),
        "age": rng.integers(0, 90, 4000),
        "born": day,
        "seen": day.astype("datetime64[us]"),
        "town": [TOWNS[i % 3] for i in range(4000)],
        "member": [i % 2 == 0 for i in range(4000)],
        "list": [[i] for i in range(4000)],
    }
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    found = started(
        tmp_path / "people.parquet", tmp_path / "understudy.yml", neighbours=Neighbours.ADD_REMOVE
    )
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds == {
        "weight": "real", "age": "integer", "born": "date", "seen": "timestamp", "town": "category",
        "member": "boolean", "list": "",
    }  # fmt: skip
    assert found.rows == pytest.approx(4000, rel=0.1)
    assert read(tmp_path / "understudy.yml").neighbours is Neighbours.ADD_REMOVE


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_times_are_bought_to_the_second_and_a_second_start_pays_nothing(tmp_path, name):
    """Bounds of an hour's events are minutes wide of it, at round places."""
    rng = np.random.default_rng(4)
    seconds = rng.integers(0, 3600, 4000)
    old = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 10**9, 4000), unit="s")
    frame = pd.DataFrame(
        {"opened": pd.Timestamp("2024-03-01 09:00") + pd.to_timedelta(seconds, unit="s"), "old": old}
    )
    getattr(frame, f"to_{name[2:]}")(tmp_path / name, index=False)
    found = started(tmp_path / name, tmp_path / "understudy.yml")
    domain = read(tmp_path / "understudy.yml").domain
    for column in ("opened", "old"):
        attribute = domain[column]
        assert attribute.kind == "timestamp"
        inside = frame[column].between(attribute.starts[0], attribute.upper).mean()
        assert inside >= 0.99
        assert attribute.upper - attribute.starts[0] < 1.6 * (frame[column].max() - frame[column].min())
        assert attribute.proper_size >= 8
    assert all(edge.second in (0, 15, 30, 45) for edge in domain["opened"].starts)
    (tmp_path / "understudy.yml").unlink()
    again = started(tmp_path / name, tmp_path / "understudy.yml")
    assert read(tmp_path / "understudy.yml").domain == domain
    assert again.cost == found.cost


def test_a_budget_of_pure_epsilon_finds_numbers_and_says_that_keys_need_a_delta(messy, tmp_path):
    found = started(messy, tmp_path / "understudy.yml", delta=0, epsilon=200)
    kinds = {column.name: (column.kind, column.why) for column in found.columns}
    assert kinds["year"][0] == "integer"
    assert kinds["town"][0] == ""
    assert "delta" in kinds["town"][1]
    assert found.cost.currency == "epsilon"


# ---------------------------------------------------------------------------------------- nothing is spent


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n", "1 row,"),
        ("a,b,a\n1,2,3\n", "more than once"),
        ("", "no header"),
        ("17,F,2020-01-01\n18,M,2020-01-02\n", "numbers or days"),
        (",".join(f"c{i}" for i in range(1000)) + "\n" + ("1," * 999 + "1\n") * 50, "1,000 columns"),
    ],
    ids=["no rows", "one row", "duplicate headers", "nothing", "no header", "1,000 columns"],
)
def test_what_cannot_be_started_is_said_and_nothing_is_spent(text, word, tmp_path):
    data = tmp_path / "t.csv"
    data.write_text(text)
    with pytest.raises((SourceError, RefusedError), match=word):
        started(data, tmp_path / "understudy.yml", epsilon=1)
    assert not (tmp_path / "understudy.yml").exists()
    assert not list(tmp_path.glob("*.ledger*"))


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), "utf-16, whose mark it begins with"),
        ("t.csv", "ä,b\n1,2\n".encode("latin-1"), "cp1252, latin-1"),
        (
            "t.csv",
            b"a,,c\n1,2,3\n",
            "no name for column 2 of 3.*`columns` in a declaration, as `understudy init`",
        ),
        ("t.csv", b'a,b\n1,"2\n3,4\n', "quotation mark that is never closed"),
        ("t.csv.gz", b"a,b\n1,2\n", "cannot be unpacked"),
        (
            "t.csv.gz",
            gzip.compress(random.Random(1).randbytes(9_000).hex().encode())[:4_000],
            "cannot be unpacked",
        ),
        ("t.parquet", b"a,b\n1,2\n", "as a file of Parquet"),
        ("t.xlsx", b"PK", "ending says nothing known"),
        ("t.csv", None, "is a folder"),
        ("t.parquet", None, "is a folder"),
    ],
)
def test_files_that_are_something_else_are_named_and_nothing_is_spent(name, data, word, tmp_path):
    if data is None:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(data)
    with pytest.raises((SourceError, RefusedError), match=word):
        started(tmp_path / name, tmp_path / "understudy.yml", epsilon=1)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_packed_file_that_was_cut_off_is_named_and_nothing_is_spent(tmp_path):
    lines = "".join(f"{i},{i * 7919 % 1009}\n" for i in range(20_000))
    data = tmp_path / "t.csv.gz"
    data.write_bytes(gzip.compress(f"a,b\n{lines}".encode())[:-5_000])
    with pytest.raises(SourceError, match="cut off"):
        started(data, tmp_path / "understudy.yml")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv.gz"]


def test_a_file_that_is_there_is_not_replaced_and_nothing_is_spent(messy, tmp_path):
    target = tmp_path / "understudy.yml"
    target.write_text("understudy: 1\n")
    with pytest.raises(SourceError, match="exists already"):
        started(messy, target)
    target.write_text("# Written by `understudy start`: in a ledger that is gone\n")
    for overwrite in (False, True):
        with pytest.raises(LedgerError, match="was written by `understudy start`"):
            started(messy, target, overwrite=overwrite)
    assert not list(tmp_path.glob("*.ledger*"))
    with pytest.raises(SourceError, match="no file"):
        started(tmp_path / "none.csv", target)


def test_a_file_that_changed_is_another_table_and_is_not_paid_for_unasked(tmp_path):
    data, target = tmp_path / "t.csv", tmp_path / "understudy.yml"
    data.write_text("a\n" + "".join(f"{i % 50}\n" for i in range(3_000)))
    first = started(data, target)
    data.write_text("a\n" + "".join(f"{i % 60}\n" for i in range(3_000)))
    with pytest.raises(SourceError, match="exists already"):
        started(data, target)
    second = started(data, target, overwrite=True)
    assert not second.again
    ledger = open_ledger(read(target), base=tmp_path, environ={})
    assert ledger.spent.units == first.cost.units + second.cost.units
    ledger.close()


def test_a_witness_that_has_seen_more_than_the_ledger_stops_a_start(tmp_path):
    data = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.arange(2_000) % 50}), data)
    witness = Witness(tmp_path / "witness")
    witness.make("t", 40, "ab" * 32)
    environ = {"UNDERSTUDY_WITNESS": str(tmp_path / "witness")}
    with pytest.raises(LedgerError):
        started(data, tmp_path / "understudy.yml", environ=environ)


def test_two_views_of_one_file_are_two_tables(tmp_path):
    data = tmp_path / "db.duckdb"
    with duckdb.connect(str(data)) as made:
        made.execute("CREATE VIEW a AS SELECT range % 50 AS x FROM range(5000)")
        made.execute("CREATE VIEW b AS SELECT 1000000 + range % 50 AS x FROM range(5000)")
    one = started(data, tmp_path / "a.yml", table="a")
    other = started(data, tmp_path / "b.yml", table="b")
    assert (one.again, other.again) == (False, False)


def test_the_command_says_what_it_made_and_repeats_for_nothing(messy, tmp_path):
    said = call("start", str(messy), "--epsilon", "20", "--json", cwd=tmp_path)
    told = json.loads(said.stdout)
    assert told["share"] == pytest.approx(0.1, rel=1e-3)
    assert not told["repeated"]
    assert (tmp_path / "understudy.yml").exists()
    assert (tmp_path / "start.html").read_text().startswith("<!")
    again = json.loads(call("start", str(messy), "--epsilon", "20", "--json", cwd=tmp_path).stdout)
    assert again["repeated"]
    assert again["columns"] == told["columns"]
    listed = " ".join(call("ledger", "show", cwd=tmp_path).stdout.split())
    assert "how 12 columns are written, of all rows" in listed
    assert "of 1 of the rows" not in listed
    call("ledger", "show", "--html", "page.html", cwd=tmp_path)
    assert "of 1 of the rows" not in (tmp_path / "page.html").read_text()


def test_a_dry_run_tells_the_price_and_the_noise_and_buys_nothing(messy, project, tmp_path):
    found, _ = project
    told = json.loads(
        call("start", str(messy), "--epsilon", "20", "--dry-run", "--json", cwd=tmp_path).stdout
    )
    assert told["price"] == pytest.approx(found.cost.amount, rel=1e-3)
    assert told["columns"] == 12
    assert told["threshold"] > 10
    assert told["deviation"] > 0
    said = call("start", str(messy), "--dry-run", "--delta", "0", cwd=tmp_path).stdout
    assert "Nothing was spent" in " ".join(said.split())
    assert "need a delta" in " ".join(said.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("delta", [1e-9, 1.23456789e-7, 0.1, 3e-300])
def test_the_budget_is_one_that_a_declaration_can_say(delta):
    budget = budget_of(1.5, delta)
    assert budget.key_delta == exact(float(budget.key_delta))
    assert 0 < budget.key_delta < budget.delta


# ---------------------------------------------------------------------------------------- how text is written


def written(**shares):
    return [
        1000 * shares.get(name.replace("/", "_").replace(" ", "_").replace(".", "__"), 0) for name in WRITINGS
    ]


@pytest.mark.parametrize(
    ("shares", "kind"),
    [
        ({"whole": 1}, ValueKind.WHOLE),
        ({"whole": 0.5, "real": 0.5}, ValueKind.REAL),
        ({"thousands": 0.6, "whole": 0.3, "real": 0.1}, ValueKind.REAL),
        ({"comma": 0.8, "whole": 0.2}, ValueKind.REAL),
        ({"currency": 1}, ValueKind.REAL),
        ({"currency_comma": 0.9, "currency": 0.1}, ValueKind.REAL),
        ({"per_cent": 1}, ValueKind.REAL),
        ({"per_cent": 0.2, "per_cent_point": 0.7, "whole": 0.1}, ValueKind.REAL),
        ({"per_cent": 0.2, "per_cent_comma": 0.8}, ValueKind.REAL),
        ({"per_cent_point": 0.5, "per_cent_comma": 0.5}, None),
        ({"day": 1}, ValueKind.DAY),
        ({"day": 0.4, "day_month": 0.4, "day_or_month": 0.1, "day__month": 0.1}, ValueKind.DAY),
        ({"moment": 1}, ValueKind.MOMENT),
        ({"day_or_month": 1}, None),
        ({"day_month": 0.5, "month_day": 0.5}, None),
        ({"flag": 1}, None),
        ({"whole": 0.7, "code": 0.3}, None),
        ({"code": 1}, None),
        ({"whole": 0.99, "code": 0.01}, ValueKind.WHOLE),
        ({"whole": 0.4, "code": 0.3, "comma": 0.3}, None),
        ({"whole_point": 0.9, "whole": 0.1}, ValueKind.WHOLE),
        ({"whole_point": 0.9, "real": 0.1}, ValueKind.REAL),
        ({"whole": 0.6, "text": 0.4}, None),
        ({"missing": 1}, None),
    ],
)
def test_what_a_column_is_follows_from_how_it_is_written(shares, kind):
    reading, why = reading_of(written(**shares))
    assert (None if reading is None else reading.kind) is kind
    assert why


def test_counts_that_were_bought_when_fewer_ways_of_writing_were_known_are_read():
    known = WRITINGS[: WRITINGS.index("text") + 1]
    assert len(known) == 15  # what ledgers hold
    reading, _ = reading_of([1000 * (name == "whole") for name in known])
    assert reading is not None


def test_letters_that_may_say_yes_or_no_are_text_among_others():
    assert reading_of(written(flag=0.6, text=0.4)) == (None, "text")  # F and M


def test_what_was_bought_before_codes_were_told_apart_is_told_again(tmp_path, monkeypatch):
    """One way of writing more has the same noise and the same price: a start that was paid for stays paid for."""
    data = _written(tmp_path / "t.csv", {"plz": [("01067", "10115", "80331")[i % 3] for i in range(3_000)]})
    with monkeypatch.context() as patched:
        known = WRITINGS[: WRITINGS.index("code")]
        assert len(known) == 18  # what ledgers hold
        rules = tuple(rule for rule in column_reader._RULES if rule[0] in known)
        patched.setattr(column_reader, "WRITINGS", known)
        patched.setattr(column_reader, "_RULES", rules)
        patched.setattr(column_curator, "WRITINGS", known)
        before = started(data, tmp_path / "u.yml", epsilon=50)
    assert before.columns[0].kind == "integer"
    again = started(data, tmp_path / "u.yml", epsilon=50, overwrite=True)
    assert again.again
    assert again.columns == before.columns


def test_codes_keep_their_zeros_and_identifiers_are_left_out(tmp_path):
    rows = 4_000
    rng = np.random.default_rng(5)
    columns = {
        "plz": [("01067", "04103", "10115", "80331")[i % 4] for i in range(rows)],
        "month": [f"{i % 12 + 1:02}" for i in range(rows)],
        "sex": [("F", "M")[i % 2] for i in range(rows)],
        "age": [str(int(age)) for age in rng.integers(0, 100, rows)],
        "pandas_age": ["" if i % 7 == 0 else f"{i % 90}.0" for i in range(rows)],
        "padded": [f"{i:07}" for i in range(rows)],
        "long": [str(10**21 + i) for i in range(rows)],
        "number": [str(int(number)) for number in rng.permutation(10**6)[:rows]],
        "pandas_number": ["" if i % 3 == 0 else f"{i}.0" for i in range(rows)],
    }
    found = started(_written(tmp_path / "t.csv", columns), tmp_path / "u.yml", epsilon=50)
    assert {column.name: column.kind for column in found.columns} == {
        "plz": "category", "month": "category", "sex": "category", "age": "integer", "pandas_age": "integer",
        "padded": "", "long": "", "number": "", "pandas_number": "",
    }  # fmt: skip
    why = {column.name: column.why for column in found.columns}
    assert why["plz"].startswith("codes of digits, such as 007: 4 values")
    assert why["sex"].startswith("text: 2 values")
    assert all("identifier" in why[name] for name in ("padded", "long", "number", "pandas_number"))
    with us.open(tmp_path / "u.yml") as opened:
        assert abs(opened.ask("count plz = 01067", epsilon=5).value - rows / 4) < 100
        assert (
            abs(opened.ask("SELECT count(*) FROM t WHERE plz = '04103'", epsilon=5).rows[0][0] - rows / 4)
            < 100
        )
        assert abs(opened.ask("count pandas_age < 45", epsilon=5).value - rows * 6 / 14) < 200


@pytest.mark.parametrize(
    ("distinct", "missing", "is_left_out"),
    [
        (20_000, 0, True),
        (18_400, 0, True),  # noise took four deviations off: 19,000 - 2 * 400 is less
        (17_000, 0, False),
        (10_000, 0, False),  # every number twice
        (10_000, 10_000, True),
        (9_000, 10_000, True),
        (100, 0, False),
        (1_500, 18_400, False),  # of so few nothing can be seen in this noise
    ],
)
def test_an_identifier_is_told_by_different_values_beside_rows_that_have_some(distinct, missing, is_left_out):
    """Whatever bins were found: bounds of noise alone, or none at all, are those of an identifier too."""
    for bounds in ((1.0, 9.0), (None, None)):
        profile = ColumnProfile(*bounds, (), (500.0,) if bounds[0] else (), missing, distinct, 300.0)
        made = of_numbers(
            "x",
            NumberReading(ValueKind.WHOLE),
            profile,
            "whole numbers",
            rows=20_000,
            distinct_deviation=400.0,
        )
        assert ("an identifier" in made.why) is is_left_out
    amounts = of_numbers(
        "x", NumberReading(ValueKind.REAL), profile, "numbers", rows=20_000, distinct_deviation=400.0
    )
    assert "an identifier" not in amounts.why


def test_numbers_in_per_cent_are_numbers(tmp_path):
    shares = {
        "point": [f"{i % 80}.5%" for i in range(3_000)],
        "comma": [f"{i % 80},5 %" for i in range(3_000)],
    }
    found = started(_written(tmp_path / "t.csv", shares), tmp_path / "u.yml", epsilon=50)
    assert {column.name: column.kind for column in found.columns} == {"point": "real", "comma": "real"}
    domain = read(tmp_path / "u.yml").domain
    assert domain["point"].intake.percent
    assert domain["comma"].intake.decimal == ","
    with us.open(tmp_path / "u.yml") as opened:
        for name in shares:
            assert abs(opened.ask(f"count {name} < 40", epsilon=5).value - 1_500) < 300


# ---------------------------------------------------------------------------------------- keys of one column


def visits(folder: Path, *, unit: bool) -> Path:
    """People of four rows each: everybody was in Ulm twice, every other one in Bonn, and each somewhere alone."""
    lines = ["person,town"]
    for person in range(1_000):
        towns = ["Ulm", "Ulm", "Bonn" if person % 2 else "Kiel", f"village {person}"]
        lines += [f"p{person},{town}" for town in towns]
    (folder / "visits.csv").write_text("\n".join(lines) + "\n")
    whose = "neighbours: add-remove\nunit: {column: person, max_rows: 3}\n" if unit else ""
    (folder / "understudy.yml").write_text(
        "understudy: 1\nname: visits\nsource: visits.csv\n"
        f"budget: {{epsilon: 10, delta: 1e-6, key_delta: 5e-7}}\n{whose}"
        "attributes:\n  town: {type: category, values: [Ulm], outside: other}\n"
    )
    return folder / "understudy.yml"


@pytest.mark.parametrize("unit", [False, True])
def test_keys_of_one_column_are_of_rows_or_of_people(unit, tmp_path):
    project = visits(tmp_path, unit=unit)
    bought = find_keys(project, "town", epsilon=2, request="towns", noise=SeededNoise(1), environ={})
    counts = dict(zip(bought.found.labels, bought.found.counts, strict=True))
    assert set(counts) == {"Ulm", "Bonn", "Kiel"}
    assert counts["Ulm"] == pytest.approx(1_000 if unit else 2_000, abs=100)
    assert counts["Bonn"] == pytest.approx(500, abs=100)
    assert bought.cost.units > 0
    assert 0 < bought.delta <= Fraction(5, 10**8)
    again = find_keys(project, "town", epsilon=2, request="towns", noise=SeededNoise(2), environ={})
    assert again.found == bought.found
    assert again.cost.units == 0


def test_keys_are_refused_before_anything_is_spent(tmp_path):
    project = visits(tmp_path, unit=False)
    with pytest.raises(SourceError, match="no column"):
        find_keys(project, "city", epsilon=1, environ={})
    with pytest.raises(InsufficientBudgetError, match="delta"):
        find_keys(project, "town", epsilon=1, delta=1e-3, environ={})
    project.write_text(project.read_text().replace(", key_delta: 5e-7", ""))
    with pytest.raises(RefusedError, match="no delta for keys"):
        find_keys(project, "town", epsilon=1, environ={})
    assert not list(tmp_path.glob("*.ledger*"))


def test_the_command_lists_keys(tmp_path):
    visits(tmp_path, unit=True)
    said = call("keys", "town", "--epsilon", "2", cwd=tmp_path).stdout
    assert "Ulm" in said
    assert "people" in said
    assert "village" not in said
    told = json.loads(call("keys", "town", "--epsilon", "2", "--json", cwd=tmp_path).stdout)
    assert set(told["keys"]) == {"Ulm", "Bonn", "Kiel"}
    assert told["at_least"] == 10


# ---------------------------------------------------------------------------------------- words and encodings


def _written(path: Path, columns: dict[str, list[str]], encoding: str = "utf-8") -> Path:
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def test_a_frequent_value_is_declared_as_it_is_written_or_the_reason_is_true(tmp_path):
    rows = 3_000
    columns = {
        "padded": [("x y ", f"p{i}")[i % 100 == 0] for i in range(rows)],
        "belled": [("a\tb", f"p{i}")[i % 100 == 0] for i in range(rows)],
        "who": [f"p{i}" for i in range(rows)],
        "age": [str(i % 60) for i in range(rows)],
    }
    found = started(_written(tmp_path / "t.csv", columns), tmp_path / "u.yml", epsilon=50)
    padded, belled, who, _ = found.columns
    assert [label for label, _ in padded.keys] == ["x y "]
    assert "(an identifier or free text, it seems)" in who.why
    assert not belled.kind
    assert "characters that cannot be printed" in belled.why
    assert "identifier" not in belled.why
    with us.open(tmp_path / "u.yml") as opened:
        assert abs(opened.ask("count padded = 'x y '", epsilon=20).value - 2_970) < 30


@pytest.mark.parametrize("value", ["", "x"])
@pytest.mark.parametrize("ends", [1, 2])
def test_last_columns_without_a_name_are_left_out_by_the_header_alone(value, ends, tmp_path):
    """Whether anything stands there is private, so the same is said and paid in either case."""
    tail = ";" * (ends - 1) + f";{value}"
    rows = "".join(f"{i % 50};{i % 7}{tail}\n" for i in range(3_000))
    (tmp_path / "t.csv").write_text("Unnamed;b" + ";" * ends + "\n" + rows)
    found = started(tmp_path / "t.csv", tmp_path / "u.yml", epsilon=50)
    assert [column.name for column in found.columns if column.kind] == ["Unnamed", "b"]
    left = [column for column in found.columns if not column.kind]
    assert [column.name for column in left] == [f"column {place}" for place in range(3, 3 + ends)]
    assert all("name it in the first line of the file" in column.why for column in left)
    with us.open(tmp_path / "u.yml") as opened:
        assert abs(opened.ask("count b = 0", epsilon=20).value - 429) < 20


@pytest.mark.parametrize("name", ["age", "Einkommen (€)", "Ünï cøde", 'it\'s "so"'])
def test_the_next_command_can_be_pasted(name, tmp_path):
    _written(tmp_path / "t.csv", {name: [str(i % 60) for i in range(3_000)]})
    for output in ("understudy.yml", "weird name.yml"):
        said = call("start", "t.csv", "--epsilon", "5", "-o", output, cwd=tmp_path).stdout
        command = shlex.split(said.rsplit("Next: `", 1)[1].rstrip("`.\n"))
        assert command[0] == "understudy"
        call(*command[1:], cwd=tmp_path)


def _with_words(tmp_path: Path) -> Path:
    """Two in five values of each column but the last are words that stand for nothing."""
    words = ("N/A", "-")
    rows = range(4_000)
    day = dt.date(2001, 1, 1)
    told = {
        "age": [words[i % 2] if i % 5 < 2 else str(20 + i % 50) for i in rows],
        "pay": [words[i % 2] if i % 5 < 2 else f"{1_000 + i % 700:,}.50" for i in rows],
        "joined": [
            words[i % 2] if i % 5 < 2 else f"{day + dt.timedelta(days=i % 900):%d.%m.%Y}" for i in rows
        ],
        "time": [words[i % 2] if i % 5 < 2 else f"{day + dt.timedelta(days=i % 900)} 10:00:00" for i in rows],
        "smokes": [words[i % 2] if i % 5 < 2 else ("yes", "no")[i % 2] for i in rows],
        "answer": [words[i % 2] if i % 5 < 2 else ("red", "blue")[i % 2] for i in rows],
    }
    return _written(tmp_path / "words.csv", told)


def test_words_for_nothing_do_not_hide_what_a_column_is(tmp_path):
    found = started(_with_words(tmp_path), tmp_path / "u.yml", epsilon=50)
    kinds = {column.name: column.kind for column in found.columns}
    numbers = {"age": "integer", "pay": "real", "joined": "date", "time": "timestamp"}
    assert kinds == numbers | {"smokes": "boolean", "answer": "category"}
    for column in found.columns:
        if column.name in numbers:
            assert abs(column.missing - 1_600) < 100
    domain = read(tmp_path / "u.yml").domain
    assert all("N/A" in domain[name].intake.missing for name in (*numbers, "smokes"))
    assert {"N/A", "-"} <= set(domain["answer"].labels)  # in a column of text a word is a value
    assert not domain["answer"].intake.missing
    with us.open(tmp_path / "u.yml") as opened:
        for name in ("pay", "time"):
            told = opened.ask(f"count {name} is null", epsilon=5)
            assert abs(told.value - 1_600) < 100
    declared = read(tmp_path / "u.yml")
    fit = open_source(declared.source, base=tmp_path).read_through(declared.domain)
    assert not any(each.unreadable for each in fit.attributes)


def test_the_words_can_be_changed_and_are_part_of_what_was_bought(tmp_path):
    data = _with_words(tmp_path)
    found = started(data, tmp_path / "u.yml", epsilon=50, missing=["-"])
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds["age"] != "integer"  # N/A is text now
    with pytest.raises(SourceError, match="exists already"):
        started(data, tmp_path / "u.yml", epsilon=50)
    _written(tmp_path / "n.csv", {"n": [("-99", str(i % 40))[i % 3 > 0] for i in range(3_000)]})
    call("start", "n.csv", "--epsilon", "50", "--missing", "-99", "-o", "n.yml", cwd=tmp_path)
    attribute = read(tmp_path / "n.yml").domain["n"]
    assert attribute.intake.missing == ("-99",)
    assert attribute.lower_bound >= 0


@pytest.mark.parametrize("neighbours", [Neighbours.REPLACE, Neighbours.ADD_REMOVE])
def test_no_row_is_lost_by_bytes_of_another_encoding(neighbours, tmp_path):
    rows = 3_000
    columns = {
        "town": [("Köln", "Zürich")[i % 2] for i in range(rows)],
        "age": [str(i % 60) for i in range(rows)],
    }
    data = _written(tmp_path / "t.csv", columns, "latin-1")
    found = started(data, tmp_path / "u.yml", epsilon=50, neighbours=neighbours)
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds == {"town": "category", "age": "integer"}
    town = next(column for column in found.columns if column.name == "town")
    assert {label for label, _ in town.keys} == {"K\ufffdln", "Z\ufffdrich"}
    assert "--encoding" in town.why
    assert "undecodable: replace" in found.text
    with us.open(tmp_path / "u.yml") as opened:
        assert abs(opened.ask("count town = K\ufffdln", epsilon=5).value - rows / 2) < 100
        assert abs(opened.sql("SELECT count(*) FROM t WHERE age < 30", epsilon=5).rows[0][0] - rows / 2) < 100
    named = started(data, tmp_path / "named.yml", epsilon=50, encoding="latin-1", neighbours=neighbours)
    town = next(column for column in named.columns if column.name == "town")
    assert {label for label, _ in town.keys} == {"Köln", "Zürich"}
    assert "--encoding" not in town.why


# ---------------------------------------------------------------------------------------- paid once, priced whole


def _started_earlier(data: Path, target: Path, monkeypatch, **given):
    """A start as the program made it before it knew words for missing values and other encodings' bytes."""

    def spec_of(data, **told):
        return replace(opening.spec_of(data, **told), undecodable=Undecodable.DROP)

    with monkeypatch.context() as patched:
        patched.setattr(starting, "spec_of", spec_of)
        return started(data, target, missing=(), **given)


@pytest.mark.parametrize("neighbours", [Neighbours.REPLACE, Neighbours.ADD_REMOVE])
@pytest.mark.parametrize("kept", ["zcdp", "renyi"])
def test_what_an_earlier_version_bought_is_found_again_and_read_as_it_was_then(
    neighbours, kept, tmp_path, monkeypatch
):
    data, target = _with_words(tmp_path), tmp_path / "u.yml"
    given = {"epsilon": 50, "neighbours": neighbours, "kept": kept}
    before = _started_earlier(data, target, monkeypatch, **given)
    with us.open(target) as opened:
        requests = {debit.request for debit in opened.ledger.debits()}
    named = open_source(SourceSpec(str(data)), base=tmp_path).version
    assert f"start writings {sha256(repr(named).encode()).hexdigest()[:12]}" in requests
    again = started(data, target, overwrite=True, **given)
    assert again.again
    assert again.former
    assert again.columns == before.columns
    assert again.cost == before.cost
    assert FORMER in target.read_text()
    assert "undecodable:" not in again.text
    with us.open(target) as opened:
        assert {debit.request for debit in opened.ledger.debits()} == requests
    assert not again.now.units
    anew = started(data, tmp_path / "anew.yml", missing=MISSING_WORDS, **given)
    assert not anew.former
    assert anew.text != again.text
    assert not started(data, tmp_path / "last.yml", **given).former  # what was bought last as it is read now


@pytest.mark.parametrize("kept", ["zcdp", "renyi", "gdp"])
def test_keys_leave_some_delta_for_another_start(kept, tmp_path):
    towns = {"town": [("Köln", "Zürich")[i % 2] for i in range(3_000)]}
    data = _written(tmp_path / "t.csv", towns, "latin-1")
    given = {"epsilon": 5, "delta": 1e-6, "kept": kept}
    for number, encoding in enumerate(("utf-8", "latin-1", "cp1252")):
        first = started(data, tmp_path / f"{number}.yml", encoding=encoding, **given)
        again = started(data, tmp_path / f"{number}.yml", encoding=encoding, overwrite=True, **given)
        assert [column.kind for column in first.columns] == ["category"]
        assert again.again
        assert again.columns == first.columns


def test_a_start_that_the_ledger_cannot_pay_for_is_refused_before_its_first_charge(tmp_path):
    data = _written(tmp_path / "t.csv", {"town": [("Ulm", "Bonn")[i % 2] for i in range(3_000)]})
    started(data, tmp_path / "u.yml", epsilon=5, delta=1e-6)
    with us.open(tmp_path / "u.yml") as opened:
        opened.ask("count by town", rho=float(opened.ledger.remaining.amount) * 0.9)
        spent = opened.ledger.spent
    given = ("t.csv", "--epsilon", "5", "--delta", "1e-6", "--encoding", "latin-1", "-o", "l.yml")
    for more in ((), ("--dry-run",)):
        said = " ".join(call("start", *given, *more, cwd=tmp_path, status=1).stderr.split())
        assert "Nothing was spent" in said
        assert "another folder" in said
    again = call("start", "t.csv", "--epsilon", "5", "--delta", "1e-6", "--dry-run", cwd=tmp_path).stdout
    assert "not paid for again" in " ".join(again.split())
    with us.open(tmp_path / "u.yml") as opened:
        assert opened.ledger.spent == spent


def test_a_start_without_delta_for_keys_is_refused_before_its_first_charge(tmp_path):
    data = _written(tmp_path / "t.csv", {"town": [("Ulm", "Bonn")[i % 2] for i in range(3_000)]})
    budget = budget_of(5, 1e-6)
    event = GaussianNoise(l2_squared=Fraction(1), variance=Fraction(10**6))
    spent_keys = TruncatedGeometricKeys(epsilon=Fraction(1, 100), keys=1, reach=10**4, delta=budget.key_delta)
    with opening.ledger_of(data, tmp_path / "u.yml", budget, Neighbours.REPLACE, {}) as ledger:
        ledger.charge(event, question="q", request="q")
        ledger.charge(spent_keys, question="k", request="k")
        spent = ledger.spent
        with pytest.raises(InsufficientBudgetError, match="key_delta"):
            started(data, tmp_path / "u.yml", epsilon=5, delta=1e-6)
        assert ledger.spent == spent


def test_a_start_that_is_overtaken_says_what_was_spent(tmp_path, monkeypatch):
    data = _written(tmp_path / "t.csv", {"town": [("Ulm", "Bonn")[i % 2] for i in range(3_000)]})
    started(data, tmp_path / "u.yml", epsilon=5, delta=1e-6)
    with us.open(tmp_path / "u.yml") as opened:
        opened.ask("count by town", rho=float(opened.ledger.remaining.amount) * 0.95)
    monkeypatch.setattr(starting, "check_means", lambda *_: None)  # as if somebody else came after it
    with pytest.raises(RefusedError, match="was paid for the purchases before it") as refused:
        started(data, tmp_path / "l.yml", epsilon=5, delta=1e-6, encoding="latin-1")
    assert "Nothing was spent" not in str(refused.value)
