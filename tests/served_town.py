"""A town that is served: people, a release, a leaderboard, and somebody of every role who did something.

For tests of the pages and for the pictures in the documentation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

import understudy as us
from served import Client, config, serving, tokens
from understudy.declaration.file import read
from understudy.ledger.memory import MemoryLedger
from understudy.server.config import ApproveAbove, Listen, Rates, ServerConfig, SharedSession
from understudy.server.run import Service
from understudy.validity.board import create
from understudy_demo.town import declaration, people

BUDGET = "budget: {epsilon: 3, delta: 1e-9}\nlimits: {analysts: {ada: 0.05, '*': 0.1}}"

QUESTIONS = (
    ("ben", "count by sex"),
    ("ben", "share smoker = true by education"),
    ("ada", "count age < 30 by district"),
    ("ada", "count age < 30 by district"),
    ("ada", "SELECT education, count(*) AS people, avg(income) AS income FROM town GROUP BY education"),
    ("ada", "count health = good"),
    ("ada", "count by sex"),
    ("ada", "count by colour"),
)


@dataclass(frozen=True)
class ServedTown:
    """A running server, its folder, and a token for each name."""

    service: Service
    folder: Path
    tokens: dict[str, str]

    def client(self, name: str) -> Client:
        return Client(self.service, self.tokens[name])

    def address(self, door: str = "http", *, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.service.addresses[door].port}"


def write_town(
    folder: Path,
    *,
    rows: int,
    release: bool = True,
    labels: Sequence[str] = (),
    name: str = "town",
    alpha: Fraction = Fraction(1, 50),
) -> ServerConfig:
    """The town with a release and a board, in a folder, and the configuration of its server.

    `labels` are values of one more attribute, `mark`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = people(rows, seed=7)
    text = declaration("town.parquet").replace("budget: {epsilon: 2}        ", f"{BUDGET}    ")
    assert BUDGET in text
    text = text.replace("name: town", f"name: {name}")
    if labels:
        values = [labels[row % len(labels)] for row in range(rows)]
        table = table.append_column("mark", pa.array(values))
        text += f"  mark: {{type: category, values: {json.dumps(list(labels))}}}\n"
    parquet.write_table(table, folder / "town.parquet")
    (folder / "understudy.yml").write_text(text)
    (folder / "releases").mkdir(exist_ok=True)
    if release:
        write_release(folder, "2026-spring")
    return config(
        folder,
        tables={name: folder / "understudy.yml"},
        approve_above=ApproveAbove(people=Fraction(1, 50), agents=Fraction(1, 1000)),
        rates=Rates(requests=1e6, at_once=64, waiting=10_000),
        session=SharedSession(alpha=alpha),
        releases=folder / "releases",
        boards=(write_board(folder),),
    )


def write_release(folder: Path, name: str) -> None:
    """A small release of the town, paid from a ledger of its own."""
    declared = read(folder / "understudy.yml")
    project = us.open(folder, ledger=MemoryLedger(declared.budget))
    us.release(project, us.marginals(1), epsilon=1, delta=1e-9, rows=1000).save(folder / "releases" / name)


def write_board(folder: Path) -> Path:
    """A leaderboard of 600 labels."""
    labels = folder / "labels.csv"
    rng = np.random.default_rng(3)
    labels.write_text(
        "id,chronic\n" + "".join(f"p{i},{int(v)}\n" for i, v in enumerate(rng.random(600) < 0.4))
    )
    create(folder / "chronic", labels, id="id", label="chronic", queries=50).close()
    return folder / "chronic.json"


def predictions(seed: int = 1) -> str:
    """A file of predictions for that board."""
    rng = np.random.default_rng(seed)
    return "id,chronic\n" + "".join(f"p{i},{int(v)}\n" for i, v in enumerate(rng.random(600) < 0.35))


@contextmanager
def served_town(
    folder: Path, *, rows: int = 4000, listen: Listen | None = None, **given: Any
) -> Iterator[ServedTown]:
    """The town, served on free ports."""
    configured = write_town(folder, rows=rows, **given)
    configured = configured if listen is None else replace(configured, listen=listen)
    made: dict[str, str] = {name: tokens(configured, name)[0] for name in ("ada", "ben")}
    made["bot"] = tokens(configured, "bot", agent=True)[0]
    made["eve"] = tokens(configured, "eve", read_only=True)[0]
    made["olga"] = tokens(configured, "olga", role="auditor")[0]
    made["carl"] = tokens(configured, "carl", role="custodian")[0]
    with serving(configured) as service:
        yield ServedTown(service, folder, made)


def live(town: ServedTown) -> None:
    """A morning at the server: questions, a refusal, two questions that wait and one denied, a submission."""
    for name, question in QUESTIONS:
        town.client(name).ask(question, "town")
    for name, question, why in (
        ("ben", "count by age, sex, district", "ageing report for the council"),
        ("bot", "count by occupation, education", "nightly dashboard"),
        ("ada", "count by income, occupation", "wage gap, second draft"),
    ):
        town.client(name).ask(question, "town", error=60.0, why=why)
    waiting = town.client("carl").get("/approvals?state=waiting", door="admin")[1]["approvals"]
    denied = [one for one in waiting if one["analyst"] == "ada"]
    for one in denied:
        reason = "Ask by income alone first; this takes a quarter of what is left."
        town.client("carl")(
            "POST", f"/approvals/{one['id']}", {"decision": "deny", "reason": reason}, door="admin"
        )
    for seed, name in ((1, "logistic"), (2, "forest")):
        sent = {"content-type": "text/csv"}
        town.client("ada")(
            "POST",
            f"/v1/boards/chronic/submissions?name={name}",
            raw=predictions(seed).encode(),
            headers=sent,
        )
