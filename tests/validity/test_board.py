from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from program import Runner
from understudy.cli.app import app
from understudy.cli.options import as_options
from understudy.errors import RefusedError, SourceChangedError, SourceError
from understudy.validity.board import Board, create

RUN = Runner()
N = 2000
LABELS = np.where(np.random.default_rng(0).integers(0, 2, N) == 1, "yes", "no")


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,label\n" + "".join(f"r{i},{y}\n" for i, y in enumerate(LABELS)), encoding="utf-8")
    return path


def submission(path, values, ids=None):
    names = [f"r{i}" for i in range(len(values))] if ids is None else ids
    text = "id,prediction\n" + "".join(f"{i},{v}\n" for i, v in zip(names, values, strict=True))
    path.write_text(text, encoding="utf-8")
    return path


def flipped(share, seed=1):
    wrong = np.random.default_rng(seed).random(N) < share
    return np.where(wrong, np.where(LABELS == "yes", "no", "yes"), LABELS)


def test_a_board_from_the_command_line(labels, tmp_path):
    board = tmp_path / "board.json"
    done = RUN.invoke(app, ["holdout", "create", str(labels), "--queries", "20", "-o", str(board)])
    assert done.exit_code == 0, done.output
    assert "±" in done.output
    for share, name in ((0.5, "coin"), (0.2, "better"), (0.4, "worse")):
        file = submission(tmp_path / f"{name}.csv", flipped(share))
        done = RUN.invoke(app, ["holdout", "score", str(board), str(file), "--json"])
        assert done.exit_code == 0, done.output
    assert json.loads(done.output)["source"] == "repeat"
    told = json.loads(RUN.invoke(app, ["holdout", "show", str(board), "--json"]).output)
    assert [line["name"] for line in told["scores"]] == ["coin", "better", "worse"]
    assert [line["left"] for line in told["scores"]] == [19, 18, 17]
    best = told["scores"][-1]
    assert (best["value"], best["low"], best["high"]) == (None, None, None)  # it did not beat the board
    assert best["best"] == told["scores"][1]["value"]
    assert abs(best["best"] - 0.8) <= best["width"] < 0.3
    shown = RUN.invoke(app, ["holdout", "show", str(board)]).output
    assert "running best" in shown
    _, better, worse = shown.splitlines()[1:4]
    assert re.search(r"better +0\.\d+ +0\.\d+  measured", better)
    assert re.search(r"worse +– +–  no better than the best so far", worse)


@pytest.mark.parametrize(
    ("reason", "ids", "values"),
    [
        ("lacks ids", [f"r{i}" for i in range(N - 1)], ["no"] * (N - 1)),
        ("repeats ids", [f"r{i}" for i in range(N)] + ["r0"], ["no"] * (N + 1)),
        ("unknown ids", [f"r{i}" for i in range(N)] + ["x"], ["no"] * (N + 1)),
        ("missing predictions", None, ["nan"] + ["0.5"] * (N - 1)),
    ],
)
def test_malformed_submissions_are_refused_and_not_counted(labels, tmp_path, reason, ids, values):
    board = create(tmp_path / "b", labels, id="id", label="label", queries=5)
    with pytest.raises(RefusedError, match=reason):
        board.score(submission(tmp_path / "s.csv", values, ids))
    assert board.holdout.left == 5


def test_other_mistakes_are_refused(labels, tmp_path):
    board = create(tmp_path / "b", labels, id="id", label="label", queries=5)
    (tmp_path / "s.csv").write_text("key,prediction\nr1,no\n", encoding="utf-8")
    with pytest.raises(RefusedError, match="no column id"):
        board.score(tmp_path / "s.csv")
    (tmp_path / "s.csv").write_text("id,a,b\nr1,no,1\n", encoding="utf-8")
    with pytest.raises(RefusedError, match="one column"):
        board.score(tmp_path / "s.csv")
    with pytest.raises(RefusedError, match="created once"):
        create(tmp_path / "b", labels, id="id", label="label", queries=5)
    with pytest.raises(SourceError, match="no column"):
        create(tmp_path / "c", labels, id="id", label="target", queries=5)
    with pytest.raises(RefusedError, match="rows would certify"):
        create(tmp_path / "d", labels, id="id", label="label", queries=5000, mode="gaussian")
    assert not (tmp_path / "d.json").exists()
    labels.write_text("id,label\nr0,no\n", encoding="utf-8")
    with pytest.raises(SourceChangedError):
        Board(tmp_path / "b.json")


def test_guesses_come_from_the_public_half(labels, tmp_path):
    terms = {"id": "id", "label": "label", "mode": "check", "rejections": 3, "queries": 10, "public": 0.5}
    board = create(tmp_path / "b", labels, **terms)
    assert 900 < board.holdout.rows < 1100
    found = board.score(submission(tmp_path / "s.csv", flipped(0.3))).score
    assert found.source == "checked"
    assert abs(found.value - 0.7) < found.width
    assert board.score(tmp_path / "s.csv", guess=0.1).score.source == "measured"
    again = Board(tmp_path / "b.json")
    assert [standing.name for standing in again.show()] == ["s", "s"]
    assert again.holdout.left == 8


def test_parquet_and_probabilities(tmp_path):
    draw = np.random.default_rng(3)
    truth = draw.integers(0, 3, N)
    pq.write_table(pa.table({"id": np.arange(N), "label": truth}), tmp_path / "labels.parquet")
    board = create(
        tmp_path / "b", tmp_path / "labels.parquet", id="id", label="label", queries=5, metric="brier"
    )
    sure = np.eye(3)[truth]
    pq.write_table(
        pa.table({"id": np.arange(N), **{str(c): sure[:, c] for c in range(3)}}), tmp_path / "s.parquet"
    )
    assert board.score(tmp_path / "s.parquet").score.value == pytest.approx(1, abs=board.holdout.mode.eta)


def test_audit_validity_from_the_command_line(tmp_path):
    plot = tmp_path / "audit.svg"
    done = RUN.invoke(
        app,
        ["audit", "validity", "--rows", "500", "--queries", "100", "--runs", "2", "--mode", "plain", "--mode",
         "ladder", "--plot", str(plot)],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "T2 majority" in done.output
    assert plot.exists()


def test_the_command_loads_no_engine():
    code = "import sys, understudy.cli.holdout; print({'numpy', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_board_of_amounts_needs_a_public_scale(tmp_path):
    draw = np.random.default_rng(3)
    amounts = draw.normal(50, 15, N)
    path = tmp_path / "amounts.csv"
    path.write_text("id,label\n" + "".join(f"r{i},{y}\n" for i, y in enumerate(amounts)), encoding="utf-8")
    board = tmp_path / "board.json"
    create_it = ["holdout", "create", str(path), "--queries", "5", "-o", str(board)]
    refused = as_options(str(RUN.invoke(app, create_it).exception))
    assert "y is continuous" in refused
    assert "--metric 'mae(scale=10)'" in refused
    assert not board.exists()
    done = RUN.invoke(app, [*create_it, "--metric", "rmse(scale=40)"])
    assert done.exit_code == 0, done.output
    file = submission(tmp_path / "team.csv", amounts + draw.normal(0, 8, N))
    told = json.loads(RUN.invoke(app, ["holdout", "score", str(board), str(file), "--json"]).output)
    assert told["loss_interval"][0] <= 8 <= told["loss_interval"][1]
    assert Board(board).holdout.metric.text == "rmse(scale=40)"


def test_a_board_with_public_rows_guesses_every_mean(labels, tmp_path):
    board = create(tmp_path / "f.json", labels, id="id", label="label", queries=5, metric="f1", mode="check",
                   public=0.5, rejections=1)  # fmt: skip
    assert board.score(submission(tmp_path / "s.csv", flipped(0.2))).score.source == "checked"
