"""The examples run, and print what they say they do."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {"first_project", "session", "tuned_model"}


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
