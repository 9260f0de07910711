"""The program as a person or a script would run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("understudy")
DECLARATION = """\
understudy: 1
name: people
source: people.csv
budget: {epsilon: 1}
attributes:
  age: {type: integer, edges: [0, 18, 65, 120]}
  sex: {type: category, values: [F, M]}
"""


def run(*arguments: str, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(PROGRAM), *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{age},{'FM'[age % 2]}" for age in range(100)] * 10
    (tmp_path / "people.csv").write_text("age,sex\n" + "\n".join(rows) + "\n")
    (tmp_path / "understudy.yml").write_text(DECLARATION)
    return tmp_path


def test_help_version_and_usage(tmp_path):
    assert "ask" in run("--help", cwd=tmp_path).stdout
    assert "count age<30" in run("ask", "--help", cwd=tmp_path).stdout
    assert run("--version", cwd=tmp_path).stdout.startswith("understudy ")
    assert "Commands" in run(cwd=tmp_path).stdout
    assert "frob" in run("frob", cwd=tmp_path, status=2).stderr
    assert "--epsilon" in run("ask", "--epsilon", "much", "count", cwd=tmp_path, status=2).stderr
    run("ask", cwd=tmp_path, status=2)


def test_init_then_check_then_ask(folder):
    (folder / "understudy.yml").unlink()
    done = run("init", "people.csv", cwd=folder)
    assert "READ OFF THE DATA" in done.stderr
    drafted = (folder / "understudy.yml").read_text()
    assert drafted.count("# READ OFF THE DATA") == 2
    run("init", "people.csv", cwd=folder, status=1)  # never overwrites by accident
    assert (folder / "understudy.yml").read_text() == drafted
    checked = run("check", cwd=folder)
    assert "2 attributes" in checked.stdout
    assert "still marked" in checked.stderr
    assert json.loads(run("check", "--json", cwd=folder).stdout)["lines_to_review"] == [10, 11]
    asked = run("ask", "count sex=F", "--epsilon", "0.5", cwd=folder)
    assert "epsilon 0.5" in asked.stdout
    assert "in memory" in asked.stderr


def test_answers_for_machines(folder):
    done = run("ask", "count age<18", "share by sex", "--epsilon", "0.25", "--json", cwd=folder)
    reply = json.loads(done.stdout)
    count, share = reply["answers"]
    assert abs(count["value"] - 180) <= 60
    assert count["error"] == 12
    assert count["cost"] == {"epsilon": 0.25}
    assert [row["cell"] for row in share["rows"]] == [["F"], ["M"], ["other"]]
    assert reply["remaining"] == {"epsilon": 0.5}


def test_a_refusal_is_status_1_and_a_mistake_is_status_2(folder):
    done = run("ask", "count sex=F", "--epsilon", "2", cwd=folder, status=1)
    assert "this costs epsilon 2 and 1 remains" in done.stderr
    refused = run("ask", "count sex=F", "--epsilon", "2", "--json", cwd=folder, status=1)
    assert json.loads(refused.stdout)["error"]["kind"] == "InsufficientBudgetError"
    assert "nearest: 0 and 18" in run("ask", "count age<17", cwd=folder, status=2).stderr
    for price in ("0", "-1", "nan", "inf", "1e308"):
        assert "epsilon" in run("ask", "count sex=F", f"--epsilon={price}", cwd=folder, status=2).stderr
    (folder / "people.csv").unlink()
    assert "cannot be read" in run("ask", "count sex=F", cwd=folder, status=1).stderr
    (folder / "understudy.yml").write_text(DECLARATION.replace("[F, M]", "[F, F]"))
    assert "understudy.yml, line 7, attributes.sex" in run("check", cwd=folder, status=2).stderr
    (folder / "understudy.yml").unlink()
    assert "understudy init" in run("check", cwd=folder, status=2).stderr


def test_a_later_mistake_stops_the_earlier_question_from_being_paid(folder):
    done = run("ask", "count sex=F", "count height<2", cwd=folder, status=2)
    assert "height" in done.stderr
    assert done.stdout == ""


def test_dry_run_asks_nothing(folder):
    done = run("ask", "count age<18 by sex", "--error", "20", "--dry-run", cwd=folder)
    assert "± 20 people at epsilon 0.39" in done.stdout
    (quote,) = json.loads(run("ask", "count", "--dry-run", "--json", cwd=folder).stdout)
    assert quote["cost"] == {"epsilon": 0.0}


def test_the_demo_shows_truth_beside_answers(tmp_path):
    reply = json.loads(run("demo", "--people", "2000", "--json", cwd=tmp_path).stdout)
    assert len(reply["questions"]) == 20
    assert reply["spent"] == reply["budget"]
    assert reply["error_bars"]["held"] >= reply["error_bars"]["of"] - 2
    assert (tmp_path / "demo" / "understudy.yml").exists()
    shown = run("demo", "--people", "2000", cwd=tmp_path).stdout
    assert "truth" in shown
    assert "error bars held" in shown
    run("check", "--project", "demo", cwd=tmp_path)
