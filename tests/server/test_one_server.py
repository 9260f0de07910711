"""One server at a time for a state folder and for a SQLite ledger."""

from __future__ import annotations

import subprocess
import sys

import pytest

from understudy.errors import StoreError
from understudy.server.one_server import only_server

HOLD = """
import sys, time
from pathlib import Path
from understudy.server.one_server import only_server
with only_server(Path(sys.argv[1]), [Path(sys.argv[2])]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_server_is_refused_and_told_who_serves(tmp_path):
    state, ledger = tmp_path / "server.db", tmp_path / "town.ledger"
    elsewhere = tmp_path / "other.db"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, state, ledger], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        told = f"process {holder.pid} serves this state folder already"
        with pytest.raises(StoreError, match=told), only_server(state):
            pass
        told = r"serves the ledger .*town\.ledger already\. .*Postgres"
        with pytest.raises(StoreError, match=told), only_server(elsewhere, [ledger]):
            pass
        with only_server(elsewhere):  # a refused one holds nothing
            pass
        holder.kill()
        holder.wait()
        with only_server(state, [ledger, ledger]):  # a killed server is no hindrance
            pass


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(StoreError, match="must exist"), only_server(tmp_path / "absent" / "server.db"):
        pass
