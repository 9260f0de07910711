"""The folder that the demo writes is a project, and what was spent on it is not forgotten."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from understudy.declaration.file import parse
from understudy.errors import ParameterError
from understudy.privacy.cost import PureDP
from understudy.project import open_project
from understudy.server.check import check
from understudy.server.config import Address, Listen, ServerConfig
from understudy_demo import demo, trials
from understudy_demo.demo import TABLE, _write_town
from understudy_demo.town import declaration, people


def town(folder: Path, *, rows: int = 300, seed: int = 7) -> None:
    (folder / "understudy.yml").write_text(declaration(TABLE), encoding="utf-8")
    _write_town(folder, people(rows, seed=seed))


def test_the_same_town_is_left_as_it_is_with_its_ledger(tmp_path):
    town(tmp_path)
    project = open_project(tmp_path)
    project.ask("count by sex", epsilon=0.1)
    spent = project.ledger.spent
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir() if path.suffix == ".parquet"}
    town(tmp_path)
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in before} == before
    assert open_project(tmp_path).ledger.spent == spent
    project.ask("count by district", epsilon=0.1)  # the table is the one that was opened


@pytest.mark.parametrize("other", [{"seed": 8}, {"rows": 301}])
def test_other_people_do_not_move_in_with_a_ledger(tmp_path, other):
    town(tmp_path)
    town(tmp_path, **other)  # nothing was spent: they may
    open_project(tmp_path).ask("count by sex", epsilon=0.1)
    kept = (tmp_path / TABLE).read_bytes()
    with pytest.raises(ParameterError, match=r"has a ledger.*--folder"):
        town(tmp_path)
    assert (tmp_path / TABLE).read_bytes() == kept


def test_a_damaged_table_is_written_anew(tmp_path):
    town(tmp_path)
    (tmp_path / TABLE).write_bytes(b"PAR1 and then nothing")
    town(tmp_path)
    assert open_project(tmp_path).curator.rows == 300


def test_the_folder_can_be_served_though_a_release_is_in_it(tmp_path):
    """A release of the very table would be a trace of a ledger that was lost."""
    town(tmp_path)
    (tmp_path / "release").mkdir()
    certificate = {"table": trials.SHOWN.format(parse(declaration(TABLE)).name)}
    (tmp_path / "release" / "certificate.json").write_text(json.dumps(certificate))
    free = Address("127.0.0.1", 0)  # another server may have the usual ports
    config = replace(ServerConfig.single(tmp_path), listen=Listen(http=free, admin=free))
    assert list(config.tables) == ["town"]
    assert "town: 17 attributes; 100% of the budget is left." in check(config)


def test_the_commands_that_it_ends_with_can_be_pasted_into_a_shell(monkeypatch, capsys):
    monkeypatch.setattr(demo, "render_trials", lambda trials: None)
    nothing: Any = None
    demo.render(demo.Town(Path("my town"), 300, [], PureDP(0), 2.0, nothing))
    told = [line.strip() for line in capsys.readouterr().out.splitlines() if "--project" in line]
    assert len(told) == 3
    for line in told:
        assert shlex.split(line)[2:4] == ["--project", "my town"]
