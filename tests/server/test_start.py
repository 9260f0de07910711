"""What a server loads before it listens: libraries that take long to import wait until somebody needs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from served import config, people, tokens
from understudy.project import open_project

START = """
import sys
from pathlib import Path
import understudy.server.run as run
from understudy.server.config import Address, ApproveAbove, Listen, ServerConfig

folder = Path(sys.argv[1])
listen = Listen(http=Address("127.0.0.1", 0), admin=Address("127.0.0.1", 0))
configured = ServerConfig(folder=folder, tables={"people": folder / "understudy.yml"}, listen=listen)

def listening(words):
    heavy = {"ibis", "duckdb", "sqlglot", "pyarrow", "pandas", "scipy", "numba", "matplotlib", "altair", "sklearn"}
    own = {"understudy.validity", "understudy.planner", "understudy.standin", "understudy.releases.release"}
    print(*sorted((heavy | own) & set(sys.modules)), flush=True)
    import os
    os._exit(0)

run.serve(configured, announce=listening)
"""


def test_a_start_over_a_coded_copy_loads_no_engine_no_statistics_and_no_compiler(tmp_path: Path) -> None:
    folder = people(tmp_path, more="coded_copy: true\n")
    with open_project(folder) as project:
        project.ask("count by sex", rho=1e-4)  # leaves the coded copy
    tokens(config(folder), "ada")
    found = subprocess.run(
        [sys.executable, "-c", START, str(folder)], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout.split() == [], found.stderr
