"""A project that was closed has let go of everything, and says so to whoever asks again."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import understudy as us
from understudy.declaration.file import parse
from understudy.errors import ClosedError, UnderstudyError
from understudy.ledger.memory import MemoryLedger
from understudy.privacy.budget import Budget
from understudy.table.view_reader import ViewReader

TEXT = """\
understudy: 1
name: town
source: {source}
budget: {{epsilon: 10, delta: 1e-6}}
attributes:
  age: {{type: integer, edges: [0, 18, 65, 120]}}
  sex: {{type: category, values: [F, M]}}
"""
FRAME = pd.DataFrame({"age": [10, 30, 70, 40] * 100, "sex": ["F", "M", "F", "F"] * 100})


def held(folder: Path) -> set[str]:
    """The files of a folder that this process has open or mapped."""
    gc.collect()
    found = set()
    for handle in Path("/proc/self/fd").iterdir():
        try:
            found.add(os.readlink(handle))
        except OSError:  # the folder's own handle, which is gone by now
            continue
    mapped = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    return {Path(name).name for name in found | mapped if name.startswith(f"{folder}/")}


def written(folder: Path, kind: str) -> Path:
    more = ""
    if kind == "csv":
        FRAME.to_csv(folder / "town.csv", index=False)
    elif kind == "utf-16":
        FRAME.to_csv(folder / "town.csv", index=False, encoding="utf-16")
        kind, more = "csv", "\nencoding: utf-16"
    elif kind == "copied":
        FRAME.to_csv(folder / "town.csv", index=False)
        kind, more = "csv", "\ncoded_copy: true"
    elif kind == "parquet":
        FRAME.to_parquet(folder / "town.parquet")
    else:
        with duckdb.connect(str(folder / "town.duckdb")) as made:
            made.register("frame", FRAME)
            made.execute("CREATE TABLE town AS SELECT * FROM frame")
    (folder / "understudy.yml").write_text(TEXT.format(source=f"town.{kind}{more}"))
    return folder


@pytest.mark.parametrize("kind", ["csv", "utf-16", "copied", "parquet", "duckdb"])
def test_a_closed_project_has_let_go_of_everything(tmp_path, kind):
    folder = written(tmp_path, kind)
    gc.collect()  # what other tests left lets go now, and not in the midst
    gc.freeze()  # and what is left need not be walked through each time that this test looks
    handles = len(os.listdir("/proc/self/fd"))
    for _ in range(2):  # the second one finds a coded copy, where there is one
        with us.open(folder) as town:
            for question in ("count sex=F", "count age<18", "count by sex, age"):
                town.ask(question, epsilon=0.01)
            assert "understudy.ledger" in held(folder)
            if kind == "copied":
                assert (folder / "understudy.codes").exists()
        assert held(folder) == set()
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == handles
    assert "understudy.ledger" in os.listdir(folder)


def test_what_is_asked_of_a_closed_project_is_refused(tmp_path):
    town = us.open(written(tmp_path, "csv"))
    session = us.session(town, alpha=0.2, beta=0.05, queries=100)
    prepared = town.prepare("count sex=F", epsilon=0.1)
    prepared.run(request="monday")
    spent = town.ledger.spent
    town.close()
    town.close()
    for ask in (
        lambda: town.ask("count sex=F", epsilon=0.1),
        lambda: town.ask("count sex=F", epsilon=0.1, request="monday"),
        lambda: town.sql("SELECT count(*) FROM town"),
        lambda: town.quote("count sex=F", epsilon=0.1),
        lambda: prepared.run(),
        lambda: prepared.due(),
        lambda: session.ask("count sex=F"),
        lambda: us.release(town, us.marginals(1), epsilon=0.1, delta=1e-6),
        lambda: town.ledger.spent,
        lambda: town.ledger.entries(),
    ):
        with pytest.raises(ClosedError) as refused:
            ask()
        assert refused.value.code == "closed"
        assert "closed" in refused.value.problem
        assert "again" in refused.value.remedy
    with us.open(tmp_path) as again:
        assert again.ledger.spent == spent
        assert again.ask("count sex=F", epsilon=0.1, request="monday").cost.units == spent.units


def test_a_closed_frame_is_refused_and_its_memory_forgotten():
    town = us.Project.frame(FRAME, parse(TEXT.format(source="t.csv")))
    town.ask("count sex=F", epsilon=0.1)
    town.ask("count sex=M", epsilon=0.1)
    town.close()
    assert (town.curator._truth._kept, len(town.curator._truth._counted)) == (None, 0)
    with pytest.raises(ClosedError):
        town.ask("count by sex", epsilon=0.1)


def test_a_ledger_that_was_passed_stays_open(tmp_path):
    books = MemoryLedger(Budget.of(10, 1e-6))
    with us.open(written(tmp_path, "csv"), ledger=books) as town:
        town.ask("count sex=F", epsilon=0.1)
    assert not town.owns_ledger
    assert books.spent.units
    durable = us.open(tmp_path).ledger
    with us.open(tmp_path, ledger=durable) as town:
        town.ask("count sex=F", epsilon=0.1)
    assert durable.spent.units
    durable.close()


def test_an_opening_that_fails_leaves_nothing_open(tmp_path):
    folder = written(tmp_path, "duckdb")
    with us.open(folder) as town:
        town.ask("count sex=F", epsilon=0.01)
    (folder / "understudy.yml").write_text(
        TEXT.format(source="town.duckdb").replace("epsilon: 10", "epsilon: 9")
    )
    with pytest.raises(UnderstudyError, match="recorded budget"):
        us.open(folder)
    assert held(folder) == set()


def test_closing_waits_for_the_look_under_way(tmp_path, monkeypatch):
    town = us.open(written(tmp_path, "csv"))
    looking, go_on = threading.Event(), threading.Event()
    plain = ViewReader.batches

    def slow(self, domain, clique, unit):
        looking.set()
        go_on.wait(5)
        return plain(self, domain, clique, unit)

    monkeypatch.setattr(ViewReader, "batches", slow)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(town.ask("count sex=F", epsilon=5)))
    asking.start()
    assert looking.wait(5)
    closing = threading.Thread(target=town.curator.close)
    closing.start()
    go_on.set()
    asking.join()
    closing.join()
    assert abs(float(answers[0].value) - 300) < 50
    with pytest.raises(ClosedError):
        town.ask("count sex=F", epsilon=0.1)
    town.close()
