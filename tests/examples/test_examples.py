"""The examples run, and print what they say they do."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import sys
from fractions import Fraction
from math import prod
from pathlib import Path
from types import ModuleType

import duckdb
import pyarrow.parquet as parquet
import pytest

import understudy as us
from served import config, serving, tokens
from understudy.server.config import ApproveAbove, SharedSession
from understudy_demo import town

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "connect",
        "explore_agent",
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
    assert re.fullmatch(r"each of 100 scores tells its distance to the population, about ±0\.\d+", lines[0])
    assert re.fullmatch(r"realised: tuned on \d+ columns; scores left: 0", lines[1])
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
    "refused: there is no attribute 'smokers'; the domain has: smoker, age, district",
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


def checked_exploration(folder: Path, *, rows: int, alpha: Fraction, steps: int, attributes: str = ""):
    """The report of an exploration, every claim of which is compared with the town's true table.

    The bars of this session hold at once for 100,000 questions, except by a chance of one in a billion.
    """
    example = loaded("explore_agent")
    table = town.people(rows, seed=7)
    parquet.write_table(table, folder / "town.parquet")
    declared = town.declaration("town.parquet").replace("{epsilon: 2}", "{epsilon: 2, delta: 1e-9}")
    if attributes:
        head, _, lines = declared.partition("attributes:\n")
        kept = [line for line in lines.splitlines() if re.match(rf"  ({attributes}):", line)]
        declared = "\n".join([f"{head}attributes:", *kept, ""])
    (folder / "understudy.yml").write_text(declared)
    configured = config(
        folder,
        tables={"town": folder / "understudy.yml"},
        session=SharedSession(alpha=alpha, beta=Fraction(1, 10**9)),
        approve_above=ApproveAbove(people=Fraction(1), agents=Fraction(1, 20)),
    )
    (token,) = tokens(configured, "explorer", agent=True, doors=("mcp",))
    with serving(configured) as service:
        address = f"http://127.0.0.1:{service.addresses['http'].port}"
        report = asyncio.run(example.explored(address, token, steps=steps))
        ledger = service.gate.served.tables["town"]
        with ledger.use() as opened:
            budget = opened.project.ledger.budget
            spent = budget.share(opened.project.ledger.spent_by()["explorer"])
    assert report.spent == pytest.approx(spent, rel=1e-6), "the report of an agent's spending is the ledger's"
    assert spent <= example.ALLOWANCE

    def true_count(*conditions: str) -> int:
        where = " AND ".join(conditions) or "true"
        found = database.sql(f"SELECT count(*) FROM town WHERE {where}").fetchone()
        assert found is not None
        return found[0]

    with duckdb.connect() as database:
        database.register("town", table)
        for claim in report.claims:
            assert abs(true_count(*claim.group, *claim.cells) - claim.value) <= claim.error, claim
            predicted = true_count(*claim.group) * prod(true_count(cell) / rows for cell in claim.cells)
            assert claim.low <= predicted <= claim.high, claim
            assert claim.gap > 0 or claim in report.claims[: example.SHOWN]
    return report


def test_an_agent_explores_and_every_claim_is_within_its_bars(tmp_path):
    few = "marital|children|education|hours"
    report = checked_exploration(tmp_path, rows=20_000, alpha=Fraction(1, 40), steps=32, attributes=few)
    assert report.steps <= 32
    assert len(report.claims) >= 5
    assert report.outcomes["pinned"] >= 5, "its largest claims are read once more, for nothing"
    lines = list(report.lines())
    assert re.fullmatch(r"\d+ questions: \d+ bought for \d+\.\d% of the budget, \d+ free(, .*)?", lines[0])
    assert re.fullmatch(r" *[\d,]+ ± [\d,]+, not [\d,]+ to [\d,]+:  \w+ .*", lines[2])


@pytest.mark.slow("500 questions to a town of 100,000 people")
def test_an_agent_explores_for_500_steps(tmp_path):
    report = checked_exploration(tmp_path, rows=100_000, alpha=Fraction(1, 100), steps=500)
    assert report.steps == 500
    assert len(report.claims) >= 100
    assert max(len(claim.group + claim.cells) for claim in report.claims) >= 3, "it followed what it found"
