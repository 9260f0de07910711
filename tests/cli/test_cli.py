"""The program as a person or a script would run it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from page_checks import read_page
from people import declaration, write_project
from program import apart, call, run
from understudy.pages.markup import escaped
from understudy_demo import demo, trials


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path)


def test_help_version_and_usage(tmp_path):
    assert "ask" in run("--help", cwd=tmp_path).stdout
    assert "count age<30" in call("ask", "--help", cwd=tmp_path).stdout
    assert call("--version", cwd=tmp_path).stdout.startswith("understudy ")
    assert "Begin with" in call(cwd=tmp_path).stdout
    assert "frob" in run("frob", cwd=tmp_path, status=2).stderr
    for group in ("ledger", "audit", "token"):  # the help of a group, not an error that tells it
        assert call(group, cwd=tmp_path, status=2).stderr.startswith(f"Usage: understudy {group}")
    assert "--epsilon" in call("ask", "--epsilon", "much", "count", cwd=tmp_path, status=2).stderr
    call("ask", cwd=tmp_path, status=2)


def test_init_then_check_then_ask(folder):
    (folder / "understudy.yml").unlink()
    done = run("init", "people.csv", cwd=folder)
    assert "READ OFF THE DATA" in done.stderr
    drafted = (folder / "understudy.yml").read_text()
    assert drafted.count("# READ OFF THE DATA") == 2
    exists = call("init", "people.csv", cwd=folder, status=1)  # never overwrites by accident
    assert "--overwrite" in exists.stderr
    assert (folder / "understudy.yml").read_text() == drafted
    checked = call("check", cwd=folder)
    assert "2 attributes" in checked.stdout
    assert "still marked" in checked.stderr
    assert json.loads(call("check", "--json", cwd=folder).stdout)["lines_to_review"] == [11, 12]
    asked = apart("ask", "count sex=F", "--epsilon", "0.1", cwd=folder)
    assert "takes 1.2% of the budget" in asked.stdout
    assert "2 lines of the declaration are still marked READ OFF THE DATA" in asked.stderr
    assert "As it is now, this table was never read through" in asked.stderr
    assert (folder / "understudy.ledger").exists()


def test_commands_that_are_told_can_be_pasted_into_a_shell(folder):
    said = call("init", "people.csv", "-o", "our people.yml", cwd=folder).stderr
    assert "then run `understudy check --project 'our people.yml'`." in said
    told = call("ask", "count by sex", "--project", "our people.yml", cwd=folder).stderr
    assert "`understudy check --project 'our people.yml'` names them" in told
    assert "`understudy check --read --project 'our people.yml'`: whether" in told
    said = call("ledger", "export", "--project", "our people.yml", "-o", "an export.py", cwd=folder).stdout
    assert "`python 'an export.py'` verifies it" in said


def test_init_of_tables_of_which_nothing_can_be_declared(tmp_path):
    (tmp_path / "header.csv").write_text("age,sex\n")
    refused = call("init", "header.csv", cwd=tmp_path, status=1)
    assert "header.csv has no rows" in refused.stderr
    assert not (tmp_path / "understudy.yml").exists()
    (tmp_path / "blank.csv").write_text("age,sex\n,\n")
    blank = call("init", "blank.csv", cwd=tmp_path, status=1)
    assert "No column could be declared" in blank.stderr
    assert "no attribute is declared" in call("check", cwd=tmp_path, status=2).stderr


def test_answers_for_machines(folder):
    done = apart("ask", "count age<18", "share by sex", "--epsilon", "0.25", "--yes", "--json", cwd=folder)
    reply = json.loads(done.stdout)
    count, share = reply["answers"]
    assert abs(count["value"] - 180) <= 90  # noise of scale 4
    assert count["error"] == 12
    assert count["cost"] == {"epsilon": 0.25}
    assert [row["cell"] for row in share["rows"]] == [["F"], ["M"], ["other"]]
    assert reply["remaining"] == {"epsilon": 0.5}


def test_a_refusal_is_status_1_and_a_mistake_is_status_2(folder):
    done = apart("ask", "count sex=F", "--epsilon", "2", cwd=folder, status=1)
    assert "this costs epsilon 2 and 1 remains" in done.stderr
    refused = call("ask", "count sex=F", "--epsilon", "2", "--json", cwd=folder, status=1)
    assert json.loads(refused.stdout)["error"]["kind"] == "InsufficientBudgetError"
    assert "age is an integer" in apart("ask", "count age<17.5", cwd=folder, status=2).stderr
    for price in ("0", "-1", "nan", "inf", "1e308"):
        assert "epsilon" in call("ask", "count sex=F", f"--epsilon={price}", cwd=folder, status=2).stderr
    (folder / "people.csv").unlink()
    assert "cannot be read" in call("ask", "count sex=F", cwd=folder, status=1).stderr
    (folder / "understudy.yml").write_text(declaration().replace("[F, M]", "[F, F]"))
    assert "understudy.yml, line 7, attributes.sex" in call("check", cwd=folder, status=2).stderr
    (folder / "understudy.yml").unlink()
    assert "understudy init" in call("check", cwd=folder, status=2).stderr


def test_a_later_mistake_stops_the_earlier_question_from_being_paid(folder):
    done = call("ask", "count sex=F", "count height<2", cwd=folder, status=2)
    assert "height" in done.stderr
    assert done.stdout == ""


def test_dry_run_asks_nothing(folder):
    done = call("ask", "count age<18 by sex", "--error", "20", "--dry-run", cwd=folder)
    assert "± 20 people (laplace noise)" in done.stdout
    assert "would take 40% of the budget (epsilon 0.397" in done.stdout
    (quote,) = json.loads(call("ask", "count", "--dry-run", "--json", cwd=folder).stdout)
    assert quote["cost"] == {"epsilon": 0.0}


def test_commands_share_one_budget_and_one_ledger(folder):
    price = ("--epsilon", "0.4", "--yes", "--json")
    first = json.loads(
        apart("ask", "count sex=F", *price, "--request", "r", "--analyst", "ada", cwd=folder).stdout
    )
    again = json.loads(
        apart("ask", "count sex=F", *price, "--request", "r", "--analyst", "ada", cwd=folder).stdout
    )
    was, now = first["answers"][0], again["answers"][0]
    assert {key for key in now if now[key] != was[key]} == {"cost", "share", "repeated"}  # the same numbers
    assert now["recorded_cost"] == was["cost"] == {"epsilon": 0.4}
    assert (now["cost"], now["repeated"], was["repeated"]) == ({"epsilon": 0}, True, False)
    assert again["remaining"] == first["remaining"]
    assert first["remaining"] == {"epsilon": 0.6}
    apart("ask", "count sex=M", "--epsilon", "0.4", "--yes", cwd=folder)
    refused = apart("ask", "count sex=M", "--epsilon", "0.4", cwd=folder, status=1)
    assert "this costs epsilon 0.4 and 0.2 remains" in refused.stderr
    shown = json.loads(call("ledger", "show", "--json", cwd=folder).stdout)
    assert (shown["spent"], shown["entries"]) == (0.8, 5)
    assert [entry["kind"] for entry in shown["newest"]] == ["open", "debit", "answer", "debit", "answer"]
    assert shown["newest"][1]["analyst"] == "ada"
    assert "0.2 left" in call("ledger", "show", "--last", "2", cwd=folder).stdout


def test_a_ledger_is_verified_and_exported(folder):
    assert "no ledger" in call("ledger", "verify", cwd=folder, status=1).stderr
    call("ask", "count sex=F", "--epsilon", "0.4", "--yes", cwd=folder)
    assert "sound" in call("ledger", "verify", "--pld", cwd=folder).stdout
    verdict = json.loads(call("ledger", "verify", "--json", cwd=folder).stdout)
    assert verdict["sound"]
    written = json.loads(call("ledger", "export", "-o", "out.py", "--json", cwd=folder).stdout)
    assert written["head"] == verdict["head"]
    checked = [sys.executable, "-I", "out.py", written["head"]]
    assert subprocess.run(checked, cwd=folder, capture_output=True, check=False).returncode == 0
    call("ledger", "export", "--no-answers", "-o", "short.py", cwd=folder)
    books = sqlite3.connect(folder / "understudy.ledger")
    with books:
        books.execute("UPDATE understudy_entry SET cost = cost - 1 WHERE kind = 'debit'")
    books.close()
    assert "NOT SOUND" in call("ledger", "verify", cwd=folder, status=1).stdout
    refused = call("ask", "count sex=M", "--epsilon", "0.4", cwd=folder, status=1)
    assert "changed or lost" in refused.stderr
    call("ledger", "export", "-o", "forged.py", "--as-it-is", cwd=folder, status=1)
    checked = [sys.executable, "-I", "forged.py"]
    assert subprocess.run(checked, cwd=folder, capture_output=True, check=False).returncode == 1


def test_the_demo_shows_truth_beside_answers(tmp_path, monkeypatch):
    """One performance, with a short session, told to people and to machines."""
    monkeypatch.setattr(trials, "QUESTIONS", 60)
    town = demo.run(tmp_path / "demo", people=2000, seed=7)
    page = (tmp_path / "demo" / "demo.html").read_text(encoding="utf-8")
    read_page(page)
    for exchange in town.exchanges:
        assert f"<figcaption>{escaped(exchange.question.text)} " in page
    assert 'href="release/report.html"' in page
    read_page((tmp_path / "demo" / "release" / "report.html").read_text(encoding="utf-8"))

    def performed(folder: Path, *, people: int, seed: int) -> demo.Town:
        assert (folder, people, seed) == (Path("demo"), 2000, 7)
        return town

    monkeypatch.setattr(demo, "run", performed)
    reply = json.loads(call("demo", "--people", "2000", "--json", cwd=tmp_path).stdout)
    assert len(reply["questions"]) == 20
    assert reply["session"]["questions"] == sum(reply["session"]["sources"].values()) == 60
    assert 0 < reply["spent"]["epsilon"] <= reply["budget"]["epsilon"]  # questions about others cost less
    assert reply["error_bars"]["held"] >= reply["error_bars"]["of"] - 2
    shown = call("demo", "--people", "2000", cwd=tmp_path).stdout
    assert "truth" in shown
    assert "error bars held" in shown
    assert shown.endswith(f"\n  understudy serve --project {tmp_path}/demo\n")
    apart("check", "--project", "demo", cwd=tmp_path)
