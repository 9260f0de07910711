"""Many writers: killed at random, or racing for the last units."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def run(program: str, *arguments: object) -> dict:
    done = subprocess.run(
        [sys.executable, str(HERE / program), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_kill_9_at_any_moment_loses_nothing_and_spends_nothing_twice(memory_folder, audit):
    """A kill cannot show a missing sync (`test_power_cut` does), so the files may lie in memory."""
    kills = 10_000 if audit else 100
    found = run("kill_writers.py", memory_folder, kills, 20240501)
    assert found["kills"] == kills
    assert found["debits"] > kills
    assert found["released"] > kills / 2
    assert found["moved"] > kills / 10


@pytest.mark.parametrize("kept", ["renyi", "gdp"])
def test_kill_9_in_a_ledger_that_another_filter_keeps(memory_folder, kept, audit):
    kills = 2000 if audit else 30
    found = run("kill_writers.py", memory_folder, kills, 20240502, kept)
    assert found["kills"] == kills
    assert found["debits"] > kills


def test_racing_processes_spend_the_budget_to_the_unit(memory_folder, audit):
    debits, threads = (100_000, 16) if audit else (2000, 2)
    found = run("race_writers.py", f"sqlite:///{memory_folder}/race.ledger", 8, threads, debits)
    assert abs(found["granted"] - debits) < debits / 10
    assert found["refused"] >= 8 * threads


def test_racing_processes_on_postgres(postgres, audit):
    debits, threads = (20_000, 8) if audit else (400, 2)
    url = postgres.render_as_string(hide_password=False)
    found = run("race_writers.py", url, 8, threads, debits)
    assert abs(found["granted"] - debits) < debits / 5
    assert found["refused"] >= 8 * threads
