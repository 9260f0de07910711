"""Superset's models and charts at the Postgres door, by Superset itself."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from served_wire import WireTown

CONFIG = """
SECRET_KEY = "x" * 42
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
CACHE_CONFIG = DATA_CACHE_CONFIG = FILTER_STATE_CACHE_CONFIG = EXPLORE_FORM_DATA_CACHE_CONFIG = {{
    "CACHE_TYPE": "NullCache"
}}
"""


@pytest.mark.slow("Superset needs an environment of its own, named by UNDERSTUDY_SUPERSET, and a minute")
def test_superset_draws_charts(town: WireTown, tmp_path: Path) -> None:
    python = os.environ.get("UNDERSTUDY_SUPERSET", "")
    if not python:
        pytest.skip(
            "UNDERSTUDY_SUPERSET names no python: make an environment with `pip install apache-superset==6.1.* "
            "'flask-caching<2.4' cachetools psycopg2-binary`, and set it beside UNDERSTUDY_AUDIT"
        )
    (tmp_path / "superset_config.py").write_text(CONFIG.format(folder=tmp_path))
    environment = {
        "PATH": os.environ["PATH"], "SUPERSET_HOME": str(tmp_path), "HOME": str(tmp_path),
        "SUPERSET_CONFIG_PATH": str(tmp_path / "superset_config.py"),
    }  # fmt: skip
    program = Path(__file__).with_name("superset_path.py")
    told = subprocess.run(
        [python, program, town.url(driver="postgresql+psycopg2")],
        capture_output=True, text=True, timeout=600, check=False, env=environment,
    )  # fmt: skip
    found = {
        one["name"]: one for one in map(json.loads, filter(lambda s: s[:1] == "{", told.stdout.splitlines()))
    }
    assert [one for one in found.values() if "error" in one] == [], told.stderr[-3000:]
    assert found["schemas"]["told"] == ["information_schema", "public", "synthetic"]
    assert found["tables"]["told"] == ["town"]
    assert found["columns"]["told"] == ["age", "sex", "district", "smoker", "moved_in", "income"]
    assert found["filter values"]["told"][:4] == ["Emberquay", "Inkwharf", "Saltmarsh", "The Vale"]
    assert found["time grain"]["told"][0] >= 20
    assert {"bar", "filtered", "pivot", "custom sql", "sql lab"} <= set(found)
