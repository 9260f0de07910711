"""Ledgers that version 0.1.0 wrote: they open, verify, and what they remember goes on for nothing.

`version_0_1/ledger.sql` holds a question ("asked"), a session of four purchases ("mine"), a session that died
between the plan of its first purchase and the debit ("halted"), a sparse vector after three questions ("above"),
one that died between its debit and its first state ("unopened"), and a debit that nobody answered ("lost").
`version_0_1/holdout.sql` is the memory of a holdout in the mode thresholdout, after three scores.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy.engine import URL

from understudy.declaration.file import parse
from understudy.errors import LedgerError, RequestConflictError
from understudy.ledger import export
from understudy.ledger.interface import NOTHING
from understudy.ledger.store import DurableLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.event import Selection
from understudy.project import Project
from understudy.query.linear import LinearQuery
from understudy.sessions.opening import session
from understudy.validity.holdout import Holdout

WRITTEN = Path(__file__).with_name("version_0_1")
DECLARED = parse("""\
understudy: 1
name: people
source: people.csv
budget: {epsilon: 60, delta: 1.0e-6}
attributes:
  age: {type: integer, edges: [0, 18, 40, 65, 80, 120]}
  sex: {type: category, values: [F, M]}
""")
ROWS = range(400)
FRAME = pa.table({"age": [i * 7 % 100 for i in ROWS], "sex": ["FM"[i % 3 % 2] for i in ROWS]})
SPENT = 13_117_702_500_000_000
PURCHASES = ["histogram", "histogram", "fresh", "fresh"]
ASKED = [62.0, 41.0, 73.0, 42.0, 47.0]
SAID = {
    "count age < 40 and sex = F": ([104.0], [20.0]),
    "count by sex": ([265.0, 130.0, 5.0], [17.666666666666686, 17.666666666666657, 17.666666666666668]),
    "count age >= 65 and sex = M": ([45.0], [20.0]),
    "share age < 18": ([0.17541985711731814], [0.04202228215331145]),
}
SCORES = [("try 0", 0.6666522278927719), ("try 1", 0.7495583554570356), ("try 2", 0.75)]
THRESHOLD = b'{"threshold": 0.07170240416511546}'


def written(name: str, folder: Path) -> URL:
    path = folder / f"{name}.db"
    raw = sqlite3.connect(path)
    raw.executescript((WRITTEN / f"{name}.sql").read_text(encoding="utf-8"))
    raw.close()
    return URL.create("sqlite", database=str(path))


@pytest.fixture
def url(tmp_path):
    return written("ledger", tmp_path)


@pytest.fixture
def project(url):
    ledger = DurableLedger(url, "people", DECLARED.budget)
    yield Project.frame(FRAME, DECLARED, ledger=ledger, noise=SeededNoise(8))
    ledger.close()


def opened(project, name="mine", **more):
    return session(project, alpha=0.05, queries=200, name=name, **more)


def younger(project, cells):
    domain = project.domain
    return LinearQuery.conjunction(domain, {"age": np.arange(domain["age"].size) < cells})


def test_it_verifies_with_the_file_alone(url, tmp_path):
    assert export.verify(url, "people")["sound"]
    alone = tmp_path / "ledger.py"
    alone.write_text(export.self_contained(export.document(url, "people")), encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", str(alone)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_was_charged_is_found(project):
    ledger = project.ledger
    assert ledger.spent.units == SPENT
    assert [debit.request for debit in ledger.debits("mine")] == ["mine", *(f"mine#{i}" for i in range(1, 5))]
    assert {debit.analyst for debit in ledger.debits("mine")} == {"ada"}
    lost = ledger.find("lost")
    assert (lost.event, lost.question) == (Selection(epsilon=Fraction(1, 100)), "lost")
    assert ledger.answered(lost) is None
    assert sum(debit.cost.units for debit in ledger.debits()) == SPENT


def test_a_question_is_answered_again_for_nothing(project):
    again = project.ask("count sex = F by age", rho=0.01, request="asked", analyst="ada")
    assert again.noisy.tolist() == ASKED
    with pytest.raises(RequestConflictError):
        project.ask("count by age", rho=0.01, request="asked", analyst="ada")
    assert project.ledger.spent.units == SPENT


@pytest.mark.parametrize("lazily", [False, True])
def test_a_session_goes_on_and_says_the_same_for_nothing(project, url, lazily):
    asked = opened(project, analyst="ada", lazily=lazily)
    assert [
        plan["kind"] for plan in map(json.loads, project.ledger.steps(asked._buyer.journal.debit))
    ] == PURCHASES
    for question, (value, error) in SAID.items():
        answer = asked.ask(question)
        assert np.ravel(answer.value).tolist() == pytest.approx(value, abs=1e-9)
        assert np.ravel(answer.error).tolist() == pytest.approx(error, abs=1e-9)
    assert (project.ledger.spent.units, asked._known.step) == (SPENT, 4)
    with pytest.raises(RequestConflictError, match="the name 'mine' belongs to another analyst"):
        opened(project, analyst="bob", lazily=lazily)
    new = asked.ask("count age >= 80 and sex = M")
    assert new.source == "measured"
    assert project.ledger.spent.units > SPENT
    assert [d.request for d in project.ledger.debits("mine#")] == [
        f"mine#{i}" for i in range(1, asked._known.step + 1)
    ]
    project.ledger.close()
    assert export.verify(url, "people")["sound"]


def test_a_purchase_that_was_written_down_and_never_paid_is_paid_once(project, url):
    ledger = project.ledger
    assert len(ledger.steps(ledger.find("halted"))) == 1
    assert ledger.find("halted#1") is None
    asked = opened(project, "halted")
    assert asked._known.step == 1
    paid = ledger.spent.units
    assert paid > SPENT
    assert opened(project, "halted")._known.step == 1
    assert ledger.spent.units == paid
    asked.ask("count age >= 80 and sex = F")
    ledger.close()
    assert export.verify(url, "people")["sound"]


def test_a_sparse_vector_goes_on_with_its_threshold_and_its_hits(project, url):
    ledger = project.ledger
    assert ledger.hidden(ledger.find("above")).state == b"150 1 3"
    handle = project.curator.sparse(threshold=150, epsilon=5, hits=2, request="above")
    assert handle.hits_left == 1
    assert handle.ask(younger(project, 1)) is False
    assert ledger.hidden(ledger.find("above")).state == b"150 1 4"
    assert ledger.steps(ledger.find("above")) == [b"false", b"true", b"false", b"false"]
    unopened = ledger.find("unopened")
    assert ledger.hidden(unopened) is None
    assert project.curator.sparse(threshold=150, epsilon=1, hits=2, request="unopened").hits_left == 2
    assert ledger.hidden(unopened).step == 0
    assert ledger.spent.units == SPENT
    ledger.close()
    assert export.verify(url, "people")["sound"]


def test_a_holdout_goes_on_with_its_secret(tmp_path):
    url = written("holdout", tmp_path)
    assert export.verify(url, "board")["sound"]
    labels = np.array([i * i % 7 < 3 for i in range(30_000)])
    holdout = Holdout(
        None,
        labels,
        queries=20,
        beta=0.05,
        mode="thresholdout",
        rejections=6,
        path=tmp_path / "holdout.db",
        name="board",
    )
    assert [(label, score.value) for label, score in holdout.history()] == SCORES
    assert (holdout.left, holdout._journal.hidden) == (17, THRESHOLD)
    every_sixth = np.where(np.arange(30_000) % 6 == 0, ~labels, labels)
    assert holdout.score_predictions(every_sixth, guess=5 / 6).source == "checked"
    holdout.close()
    ledger = DurableLedger(url, "board", holdout._ledger.budget)
    journal = ledger.find("board")
    assert (journal.event, ledger.hidden(journal).step, ledger.hidden(journal).state) == (
        NOTHING,
        4,
        THRESHOLD,
    )
    ledger.close()
    assert export.verify(url, "board")["sound"]


@pytest.mark.parametrize("kept", ["renyi", "gdp"])
def test_a_ledger_of_version_0_1_keeps_to_zcdp(url, kept):
    """A declaration that names a filter is refused, the file stays as it was, and opens as before."""
    before = Path(url.database or "").read_bytes()
    other = replace(DECLARED, budget=Budget.of(60, 1e-6, filter=kept))
    with pytest.raises(
        LedgerError, match="was opened with a budget of epsilon 60, delta 1e-06, the declaration"
    ):
        DurableLedger(url, "people", other.budget)
    ledger = DurableLedger(url, "people", DECLARED.budget)
    assert ledger.spent.units == SPENT
    ledger.close()
    assert export.verify(url, "people")["filter"] == "zcdp"
    assert Path(url.database or "").stat().st_size >= len(before) > 0
