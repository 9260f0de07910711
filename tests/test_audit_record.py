"""A long run of tests goes on where it stopped, and begins anew on other code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import audit_record
from audit_record import code_state, passed_before, place

TESTS = """
import pathlib
import pytest

@pytest.mark.parametrize("which", ["planned sum", "other", "broken"])
def test_it(which):
    with pathlib.Path("ran.txt").open("a") as file:
        file.write(which + "\\n")
    assert which != "broken" or pathlib.Path("mended").exists()
"""


def run(folder: Path) -> tuple[str, str]:
    """What was run, in its order, and what pytest counted."""
    (folder / "ran.txt").unlink(missing_ok=True)
    place = {"PYTHONPATH": str(Path(audit_record.__file__).parent), "UNDERSTUDY_AUDIT_RECORD": "record.jsonl"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "audit_record", "-c", "/dev/null", "test_some.py"]
    off = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    told = subprocess.run(
        command, cwd=folder, env={**os.environ, **place, **off}, capture_output=True, text=True
    )
    counted = re.sub(r" in .*", "", told.stdout.strip().splitlines()[-1])
    return (folder / "ran.txt").read_text(), counted.strip("= ")


def test_what_passed_is_not_run_again_and_what_failed_is(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    assert run(tmp_path) == ("planned sum\nother\nbroken\n", "1 failed, 2 passed")
    (tmp_path / "mended").touch()
    assert run(tmp_path) == ("broken\n", "1 passed, 2 deselected")


def test_lines_of_other_code_and_lines_that_were_cut_off_count_for_nothing(tmp_path):
    record = tmp_path / "record.jsonl"
    assert passed_before(record, "new") == set()
    lines = [{"code": code, "test": f"of {code}", "seconds": 1.0} for code in ("old", "new")]
    record.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"code": "new", "te')
    assert passed_before(record, "new") == {"of new"}


def test_the_state_of_the_code_is_that_of_the_package_and_its_tests(tmp_path):
    for folder in ("src", "tests"):
        (tmp_path / folder).mkdir()
        before = code_state(tmp_path)
        (tmp_path / folder / "one.py").write_text("1")
        assert code_state(tmp_path) != before
        before = code_state(tmp_path)
        (tmp_path / folder / "one.py").write_text("2")
        assert code_state(tmp_path) != before
    assert code_state(tmp_path) == code_state(tmp_path)


def test_new_bands_come_first_and_what_takes_hours_last():
    names = [
        "tests/sessions/test_coverage.py::test_ten_thousand_questions_hold_together[direct]",
        "tests/sessions/test_session.py::test_something",
        "tests/sessions/test_coverage_purchases.py::test_a_purchase[fresh count]",
        "tests/sessions/test_coverage_bands.py::test_quantiles",
        "tests/sessions/test_coverage_purchases.py::test_a_purchase[planned sum]",
    ]
    assert sorted(names, key=place) == names[::-1]
