"""A coded copy gives the same counts as the file, is used for its own rows alone, and is its owner's."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.declaration.declaration import SourceSpec, Unit
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import SourceChangedError
from understudy.table.coded_copy import MARK, CodedCopy
from understudy.table.source import Source, open_source
from understudy.table.truth import Truth
from understudy.table.view_reader import ViewReader

DOMAIN = Domain((Bins.integers("a", 0, 3), Bins.integers("b", 0, 299)))


def frame(seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).integers(0, 4, (500, 3)), columns=["a", "b", "person"])


def opened(folder: Path) -> Source:
    return open_source(SourceSpec("table.csv"), base=folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table and its coded copy."""
    frame().to_csv(tmp_path / "table.csv", index=False)
    Truth(opened(tmp_path), DOMAIN, copy=copy_in(tmp_path)).count(("a",))
    assert copy_in(tmp_path).path.exists()
    return tmp_path


def copy_in(folder: Path) -> CodedCopy:
    return CodedCopy(folder / "understudy.codes")


@pytest.fixture
def engine_is_closed(monkeypatch: pytest.MonkeyPatch):
    """No look reaches the engine."""

    def refuse(self: Source, *_: object) -> None:
        raise AssertionError("the engine was asked")

    monkeypatch.setattr(Source, "look", refuse)
    monkeypatch.setattr(Source, "check", refuse)
    monkeypatch.setattr(Source, "expression", property(refuse))


def test_it_answers_without_the_engine(folder: Path, engine_is_closed: None):
    truth = Truth(opened(folder), DOMAIN, copy=copy_in(folder))
    np.testing.assert_array_equal(truth.count(("a",)), frame().groupby("a").size())
    pairs = pd.crosstab(frame().a, frame().b).to_numpy()
    np.testing.assert_array_equal(truth.count(("a", "b"))[:, :4], pairs)
    assert truth.rows == 500


def changed_file(folder: Path) -> Truth:
    frame(1).to_csv(folder / "table.csv", index=False)
    return Truth(opened(folder), DOMAIN, copy=copy_in(folder))


def other_cells(folder: Path) -> Truth:
    domain = Domain((Bins.between("a", [0, 2, 4]), *tuple(DOMAIN)[1:]))
    return Truth(opened(folder), domain, copy=copy_in(folder))


def other_delimiter(folder: Path) -> Truth:
    source = open_source(SourceSpec("table.csv", delimiter=";"), base=folder)
    return Truth(replace(source, opening=opened(folder).opening), DOMAIN, copy=copy_in(folder))


def with_a_unit(folder: Path) -> Truth:
    return Truth(opened(folder), DOMAIN, Unit("person", 3), copy=copy_in(folder))


def damaged(folder: Path) -> Truth:
    copy = copy_in(folder).path
    data = bytearray(copy.read_bytes())
    data[-1] ^= 1
    copy.write_bytes(data)
    return Truth(opened(folder), DOMAIN, copy=copy_in(folder))


def cut_short(folder: Path) -> Truth:
    copy = copy_in(folder).path
    copy.write_bytes(copy.read_bytes()[:-1])
    return Truth(opened(folder), DOMAIN, copy=copy_in(folder))


def not_a_copy(folder: Path) -> Truth:
    copy_in(folder).path.write_bytes(b"UNDERSTUDYCODES\x01" + b"\xff" * 100)
    return Truth(opened(folder), DOMAIN, copy=copy_in(folder))


def writable_by_the_group(folder: Path) -> Truth:
    copy_in(folder).path.chmod(0o620)
    return Truth(opened(folder), DOMAIN, copy=copy_in(folder))


def a_link(folder: Path) -> Truth:
    copy = copy_in(folder).path
    copy.rename(folder / "elsewhere")
    copy.symlink_to(folder / "elsewhere")
    return Truth(opened(folder), DOMAIN, copy=copy_in(folder))


@pytest.mark.parametrize(
    "stale",
    [
        changed_file,
        other_cells,
        other_delimiter,
        with_a_unit,
        damaged,
        cut_short,
        not_a_copy,
        writable_by_the_group,
        a_link,
    ],
)
def test_another_table_s_copy_or_a_damaged_one_is_not_used(folder: Path, stale, monkeypatch):
    looks: list[str] = []
    look = Source.look
    monkeypatch.setattr(Source, "look", lambda self: looks.append("look") or look(self))
    truth = stale(folder)
    found = truth.count(("a",))
    assert looks
    rows = pd.read_csv(folder / "table.csv")
    if truth.unit is None:
        width = 4 // len(found)
        np.testing.assert_array_equal(found, rows.groupby(rows.a // width).size())
    else:
        assert found.sum() == 12  # three rows of each of four persons


def test_the_next_look_replaces_a_copy_that_is_stale(folder: Path):
    changed_file(folder).count(("a",))
    assert Truth(opened(folder), DOMAIN, copy=copy_in(folder))._kept


def test_only_its_owner_can_read_it(folder: Path):
    assert copy_in(folder).path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_a_file_of_somebody_s_stays_as_it_is(tmp_path: Path):
    frame().to_csv(tmp_path / "table.csv", index=False)
    copy_in(tmp_path).path.write_text("my own codes")
    assert Truth(opened(tmp_path), DOMAIN, copy=copy_in(tmp_path)).count(("a",)).sum() == 500
    assert copy_in(tmp_path).path.read_text() == "my own codes"


@pytest.mark.parametrize("change", [{"rows": 100}, {"bytes": None}, {"columns": []}])
def test_a_header_that_was_changed_is_not_believed(folder: Path, change: dict):
    copy = copy_in(folder).path
    data = copy.read_bytes()
    begin = len(MARK) + 8
    length = int.from_bytes(data[len(MARK) : begin], "little")
    header = json.loads(data[begin : begin + length]) | change
    text = json.dumps({key: value for key, value in header.items() if value is not None}).encode()
    copy.write_bytes(MARK + len(text).to_bytes(8, "little") + text + data[begin + length :])
    assert Truth(opened(folder), DOMAIN, copy=copy_in(folder))._kept is None


def test_rows_that_changed_during_the_look_are_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A copy is written when the look has ended at the rows that it began with."""
    copy_in(folder).path.unlink()
    truth = Truth(opened(folder), DOMAIN, copy=copy_in(folder))
    batches = ViewReader.batches

    def swapped(self, *arguments):
        yield from batches(self, *arguments)
        frame(1).to_csv(folder / "table.csv", index=False)

    monkeypatch.setattr(ViewReader, "batches", swapped)
    with pytest.raises(SourceChangedError):
        truth.count(("a",))
    assert not copy_in(folder).path.exists()


def test_an_interrupted_copy_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch):
    copy_in(folder).path.unlink()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        Truth(opened(folder), DOMAIN, copy=copy_in(folder)).count(("a",))
    assert [path.name for path in folder.iterdir()] == ["table.csv"]


@pytest.mark.parametrize("why", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_to_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int
):
    """Permissions do not stop root, who may well run the tests: the system's refusal is played instead."""
    frame().to_csv(tmp_path / "table.csv", index=False)
    really_open, refused = os.open, []

    def open_to_read(path: Any, flags: int, *mode: Any, **at: Any) -> int:
        if flags & os.O_CREAT:
            refused.append(path)
            raise OSError(why, os.strerror(why))
        return really_open(path, flags, *mode, **at)

    monkeypatch.setattr(os, "open", open_to_read)
    assert Truth(opened(tmp_path), DOMAIN, copy=copy_in(tmp_path)).count(("a",)).sum() == 500
    assert refused


def test_a_place_that_cannot_be_written_to_is_no_error(tmp_path: Path):
    frame().to_csv(tmp_path / "table.csv", index=False)
    copy = CodedCopy(tmp_path / "no such folder" / "understudy.codes")
    assert Truth(opened(tmp_path), DOMAIN, copy=copy).count(("a",)).sum() == 500


DECLARED = """
understudy: 1
name: table
source: table.csv
budget: {epsilon: 10}
attributes:
  a: {type: integer, bounds: [0, 3]}
"""


@pytest.mark.parametrize("permitted", [False, True])
def test_it_is_made_where_the_declaration_permits_it(tmp_path: Path, permitted):
    frame().to_csv(tmp_path / "table.csv", index=False)
    line = "coded_copy: true\n" if permitted else ""
    (tmp_path / "understudy.yml").write_text(DECLARED + line)
    us.open(tmp_path).ask("count by a", epsilon=1)
    assert (tmp_path / "understudy.codes").exists() == permitted
    again = us.open(tmp_path).ask("count by a", epsilon=1)
    assert np.abs(np.asarray(again.value) - frame().groupby("a").size()).max() < 100


ENGINES = ("duckdb", "ibis", "narwhals", "pandas", "pyarrow", "scipy", "sqlglot")


def test_a_question_over_a_copy_loads_no_engine(tmp_path: Path):
    """Most of the time of a short question is the time to load what it does not need."""
    frame().to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "understudy.yml").write_text(
        "understudy: 1\nname: t\nsource: table.csv\nbudget: {epsilon: 1, delta: 1e-9}\ncoded_copy: true\n"
        "attributes:\n  a: {type: integer, bounds: [0, 3]}\n"
    )
    us.open(tmp_path).ask("count by a")
    command = (
        "import sys; from understudy.cli.app import main; sys.argv = ['understudy', 'ask', 'count by a']; main(); "
        f"print('loaded', [name for name in {ENGINES} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded []"
