"""The program as a person or a script would run it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from people import declaration, write_project
from program import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path)


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
    exists = run("init", "people.csv", cwd=folder, status=1)  # never overwrites by accident
    assert "--overwrite" in exists.stderr
    assert (folder / "understudy.yml").read_text() == drafted
    checked = run("check", cwd=folder)
    assert "2 attributes" in checked.stdout
    assert "still marked" in checked.stderr
    assert json.loads(run("check", "--json", cwd=folder).stdout)["lines_to_review"] == [10, 11]
    asked = run("ask", "count sex=F", "--epsilon", "0.1", cwd=folder)
    assert "rho 0.005" in asked.stdout
    assert asked.stderr == ""
    assert (folder / "understudy.ledger").exists()


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
    (folder / "understudy.yml").write_text(declaration().replace("[F, M]", "[F, F]"))
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


def test_commands_share_one_budget_and_one_ledger(folder):
    price = ("--epsilon", "0.4", "--json")
    first = json.loads(
        run("ask", "count sex=F", *price, "--request", "r", "--analyst", "ada", cwd=folder).stdout
    )
    again = json.loads(
        run("ask", "count sex=F", *price, "--request", "r", "--analyst", "ada", cwd=folder).stdout
    )
    assert again == first
    assert first["remaining"] == {"epsilon": 0.6}
    run("ask", "count sex=M", "--epsilon", "0.4", cwd=folder)
    refused = run("ask", "count sex=M", "--epsilon", "0.4", cwd=folder, status=1)
    assert "this costs epsilon 0.4 and 0.2 remains" in refused.stderr
    shown = json.loads(run("ledger", "show", "--json", cwd=folder).stdout)
    assert (shown["spent"], shown["entries"]) == (0.8, 5)
    assert [entry["kind"] for entry in shown["newest"]] == ["open", "debit", "answer", "debit", "answer"]
    assert shown["newest"][1]["analyst"] == "ada"
    assert "0.2 left" in run("ledger", "show", "--last", "2", cwd=folder).stdout


def test_a_ledger_is_verified_and_exported(folder):
    assert "no ledger" in run("ledger", "verify", cwd=folder, status=1).stderr
    run("ask", "count sex=F", "--epsilon", "0.4", cwd=folder)
    assert "sound" in run("ledger", "verify", "--pld", cwd=folder).stdout
    verdict = json.loads(run("ledger", "verify", "--json", cwd=folder).stdout)
    assert verdict["sound"]
    written = json.loads(run("ledger", "export", "-o", "out.py", "--json", cwd=folder).stdout)
    assert written["head"] == verdict["head"]
    checked = [sys.executable, "-I", "out.py", written["head"]]
    assert subprocess.run(checked, cwd=folder, capture_output=True, check=False).returncode == 0
    run("ledger", "export", "--no-answers", "-o", "short.py", cwd=folder)
    books = sqlite3.connect(folder / "understudy.ledger")
    with books:
        books.execute("UPDATE understudy_entry SET cost = cost - 1 WHERE kind = 'debit'")
    books.close()
    assert "NOT SOUND" in run("ledger", "verify", cwd=folder, status=1).stdout
    refused = run("ask", "count sex=M", "--epsilon", "0.4", cwd=folder, status=1)
    assert "changed or lost" in refused.stderr
    run("ledger", "export", "-o", "forged.py", cwd=folder)
    checked = [sys.executable, "-I", "forged.py"]
    assert subprocess.run(checked, cwd=folder, capture_output=True, check=False).returncode == 1


def test_the_demo_shows_truth_beside_answers(tmp_path):
    reply = json.loads(run("demo", "--people", "2000", "--json", cwd=tmp_path).stdout)
    assert len(reply["questions"]) == 20
    assert 0 < reply["spent"]["epsilon"] <= reply["budget"]["epsilon"]  # questions about others cost less
    assert reply["error_bars"]["held"] >= reply["error_bars"]["of"] - 2
    assert (tmp_path / "demo" / "understudy.yml").exists()
    shown = run("demo", "--people", "2000", cwd=tmp_path).stdout
    assert "truth" in shown
    assert "error bars held" in shown
    run("check", "--project", "demo", cwd=tmp_path)
