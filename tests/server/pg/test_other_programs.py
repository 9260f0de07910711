"""Programs that are not Python: psql, node-pg, pgjdbc and R, each as its users call it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from own_postgres import own_postgres
from served_wire import WireTown

HERE = Path(__file__).parent
JDBC = Path("/usr/share/java/postgresql.jar")


def run(words: list[Any], **given: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=120, check=False, **given
    )


def program(name: str, how: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: {how}")
    return found


def psql(url: str, *commands: str) -> subprocess.CompletedProcess[str]:
    words = [part for command in commands for part in ("-c", command)]
    return run([program("psql", "apt-get install postgresql-client"), "-X", url, *words])


def test_psql_asks_and_is_told(town: WireTown) -> None:
    told = psql(
        town.url(),
        "SELECT sex, count(*) AS n FROM town GROUP BY sex",
        "SELECT max(age) FROM town",
        "SELECT count(*) AS cut FROM town WHERE age < 28 OR age * 2 > 151",
        "EXPLAIN SELECT count(*) FROM town WHERE age < 50 AND smoker",
        "\\copy (SELECT sex, count(*) AS n FROM town GROUP BY sex) TO STDOUT WITH CSV HEADER",
        "BEGIN; DECLARE c CURSOR FOR SELECT district, count(*) FROM town GROUP BY 1; FETCH 1 FROM c; "
        "MOVE 1 FROM c; FETCH ALL FROM c; CLOSE c; COMMIT",
    )
    assert " sex |  n   " in told.stdout or " sex " in told.stdout
    assert "sex,n\nF," in told.stdout
    assert "QUERY PLAN" in told.stdout
    assert " cut " in told.stdout
    assert "MOVE 1" in told.stdout
    assert "Saltmarsh" in told.stdout
    assert "NOTICE:  source" in told.stderr
    assert "ERROR:  MAX(age) hangs on single rows, which are private" in told.stderr
    assert "HINT:  quantile_disc(x, 0.99) comes close" in told.stderr


COMMANDS = [
    r"\d",
    r"\d+ town",
    r"\dt",
    r"\l",
    r"\dn",
    r"\dn+",
    r"\du",
    r"\df",
    r"\dp",
    r"\dd",
    r"\dv",
    r"\di",
    r"\dT",
    r"\db",
    r"\dx",
    r"\conninfo",
    r"\encoding",
    r"\ds",
    r"\dm",
    r"\det",
    r"\dD",
    r"\drds",
]


def test_psql_describes(town: WireTown) -> None:
    told = psql(town.url(), *COMMANDS)
    assert "ERROR" not in told.stderr
    assert told.returncode == 0
    assert "bins at 0, 10, 20, 30, 40, 50, …, 100" in told.stdout
    assert "custodian" in told.stdout


TWIN = """CREATE TABLE town (
age integer NOT NULL, sex text NOT NULL, district text NOT NULL, smoker boolean NOT NULL, moved_in date NOT NULL,
income double precision NOT NULL)"""


def test_psql_describes_the_table_byte_for_byte_as_postgres_does(town: WireTown) -> None:
    with own_postgres(fsync="off") as server:
        psql(server.url, TWIN)
        for command in ("\\d town", "\\d public.town", "\\d nothing"):
            ours, theirs = psql(town.url(), command), psql(server.url, command)
            assert ours.stdout == theirs.stdout
            assert ours.stderr == theirs.stderr
            assert ours.returncode == theirs.returncode


def test_node(town: WireTown) -> None:
    node = program("node", "apt-get install nodejs npm")
    roots = [os.environ.get("NODE_PATH", ""), run(["npm", "root", "-g"]).stdout.strip()]
    given = {**os.environ, "NODE_PATH": os.pathsep.join(root for root in roots if root)}
    if run([node, "-e", "require('pg')"], env=given).returncode:
        pytest.skip("node-pg is not installed: npm install -g pg")
    told = run([node, HERE / "programs.js", town.port, "ada", town.tokens["ada"]], env=given)
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert [row["sex"] for row in found["rows"]][:2] == ["F", "M"]
    assert found["value"] == found["named"]
    assert isinstance(found["value"], float | int)
    assert found["fields"] == [16, 701]
    assert found["error"]["code"] == "0A000"
    assert "quantile_disc" in found["error"]["hint"]
    assert any(notice.startswith("source") for notice in found["notices"])


def test_jdbc(town: WireTown, tmp_path: Path) -> None:
    java = program("java", "apt-get install default-jdk-headless")
    javac = program("javac", "apt-get install default-jdk-headless")
    if not JDBC.exists():
        pytest.skip("pgjdbc is not installed: apt-get install libpostgresql-jdbc-java")
    compiled = run([javac, "-d", tmp_path, HERE / "Programs.java"])
    assert compiled.returncode == 0, compiled.stderr
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
    told = run(
        [java, *options, "-cp", f"{tmp_path}:{JDBC}", "Programs", town.port, "ada", town.tokens["ada"]]
    )
    lines = told.stdout.splitlines()
    assert [line for line in lines if not line.startswith("ok ")] == [], told.stderr
    found = dict(line.removeprefix("ok ").split(": ", 1) for line in lines)
    assert len(found) == 32
    assert found["product"] == "PostgreSQL 15.0"
    assert found["tables"] == found["synthetic tables"] == "1"
    assert found["columns"] == "6"
    assert found["prepared, binary after five"] == "1"
    assert found["described"] == "text float8 avg"
    assert found["schema"] == "public"
    assert found["refused"].startswith("0A000 ERROR: MAX(age) hangs on single rows")
    assert "Hint: quantile_disc(x, 0.99)" in found["refused"]
    assert found["read only"] == "25006"
    wanted = [name for name, value in found.items() if value == "false"]
    assert wanted == []


def test_r(town: WireTown) -> None:
    rscript = program("Rscript", "apt-get install r-base-core r-cran-dbi r-cran-rpostgresql")
    if run([rscript, "-e", "library(RPostgreSQL)"]).returncode:
        pytest.skip("RPostgreSQL is not installed: apt-get install r-cran-rpostgresql")
    told = run([rscript, HERE / "programs.R", town.port, "ada", town.tokens["ada"]])
    found = dict(line.strip().split(" ", 1) for line in told.stdout.splitlines() if " " in line.strip())
    assert found["exists"] == "TRUE", told.stderr
    assert found["fields"] == "age sex district smoker moved_in income"
    assert found["classes"] == "character numeric numeric"
    assert found["first"].startswith("F 13")
    assert found["inside"] == "TRUE"
    assert found["refused"] == "TRUE"
