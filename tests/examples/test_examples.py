"""The examples run, and print what they say they do."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as parquet
import pytest

import understudy as us
from served import config, serving, tokens
from understudy_demo import town

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "connect",
        "first_project",
        "session",
        "tuned_model",
    }


def test_the_first_project(tmp_path, capsys):
    loaded("first_project").main(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "drafted: 2 lines must be reviewed",
        "budget: rho 0.01497, which keeps epsilon 1 at delta 1e-9",
        "quote: each count within 168 people, for 1.2% of the budget",
    ]
    counts = [re.fullmatch(r"  smoker (\w+): (\d+) ± 168", line) for line in lines[3:5]]
    assert [count[1] for count in counts if count] == ["false", "true"]
    assert lines[5] == "left: 99% of the budget"
    assert re.match(r"refused: this costs rho 0.311\d* and 0.0147\d* remains. Nothing was spent", lines[6])
    assert (tmp_path / "understudy.ledger").exists()


def test_the_session(capsys):
    loaded("session").main()
    lines = capsys.readouterr().out.splitlines()
    assert [re.sub(r"\d+\.\d%", "x%", line) for line in lines if "most smokers" not in line] == [
        "by age: within x% of all rows, measured",
        "by district: within x% of all rows, measured",
        "asked again: repeat, price 0",
        "everybody: implied",
        "SQL: 2 rows, columns smoker, people",
        "within the budget",
    ]
    assert all(float(width) <= 2.0 for width in re.findall(r"(\d+\.\d)%", "\n".join(lines)))


def test_the_tuned_model(capsys):
    pytest.importorskip("sklearn")
    loaded("tuned_model").main()
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"bounded: each of 100 scores within ±0\.\d+ of the population", lines[0])
    assert lines[1].endswith("scores left: 0")
    assert lines[2] == "the best score is within its width of the truth: True"
    assert lines[3].startswith("refused: all 100 scores were given")


CONNECTED = [
    "tables: town",
    "promise: every answer within 400 people",
    "price: a part of the budget, within 400 people",
    "asked: 13 cells, measured",
    "plotted: smokers.json, bars with a whisker over each error",
    "asked again: repeat, price 0",
    "SQL: 2 rows, columns smoker, people",
    "refused: 31 is not a bin edge of age; nearest: 30 and 45: try age < 30 or age < 45",
    "history: 3 questions",
    "within the budget",
]


def test_the_analysts_part_of_a_served_table(tmp_path, capsys):
    """The server is one of the tests, in this process; `main` starts one as a custodian does."""
    example = loaded("connect")
    parquet.write_table(town.people(20_000, seed=1), tmp_path / "town.parquet")
    (tmp_path / "understudy.yml").write_text(example.DECLARATION)
    configured = config(tmp_path, tables={"town": tmp_path / "understudy.yml"})
    (token,) = tokens(configured, "ada")
    with serving(configured) as service:
        connection = us.connect(f"http://127.0.0.1:{service.addresses['http'].port}", token)
        example.analyse(connection, tmp_path)
        connection.close()
    assert capsys.readouterr().out.splitlines() == CONNECTED
    assert json.loads((tmp_path / "smokers.json").read_text())["layer"]


@pytest.mark.slow("it starts the program twice; `make test` runs the analyst's part")
def test_the_whole_of_a_served_table(tmp_path, capsys):
    loaded("connect").main(tmp_path)
    assert capsys.readouterr().out.splitlines() == CONNECTED
