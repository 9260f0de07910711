from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from program import Runner
from understudy.cli.app import app
from understudy.errors import LedgerError, ParameterError, RefusedError, SourceError
from understudy.validity.board import Board, create

RUN = Runner()
N = 1000
DRAW = np.random.default_rng(0)
LABELS = DRAW.integers(0, 2, N)
GOOD = np.where(DRAW.random(N) < 0.3, 1 - LABELS, LABELS)
TERMS = {"id": "id", "label": "label", "queries": 10}


def written(path, values, column="label"):
    path.write_text(f"id,{column}\n" + "".join(f"r{i},{y}\n" for i, y in enumerate(values)), encoding="utf-8")
    return path


@pytest.fixture
def labels(tmp_path):
    return written(tmp_path / "labels.csv", LABELS)


@pytest.fixture
def submission(tmp_path):
    return written(tmp_path / "good.csv", GOOD, "prediction")


def scored(path, labels, submission):
    board = create(path, labels, **TERMS)
    board.score(submission)
    board.close()


def refusal(*arguments):
    done = RUN.invoke(app, ["holdout", *map(str, arguments)])
    assert done.exit_code != 0, done.output
    assert done.exception is not None
    return str(done.exception)


# ---- the two files of a board


def test_a_board_without_its_memory_is_refused(labels, submission, tmp_path):
    board = create(tmp_path / "board.json", labels, **TERMS)
    memory = tmp_path / "board.db"
    assert memory.exists()
    board.score(submission)
    board.close()
    kept = memory.rename(tmp_path / "away.db")
    for lost in (None, b""):
        if lost is not None:
            memory.write_bytes(lost)
        for command in (["score", tmp_path / "board.json", submission], ["show", tmp_path / "board.json"]):
            assert "board.db, which counts the scores of board.json" in refusal(*command)
        assert not memory.exists() or not memory.stat().st_size
    kept.rename(memory)
    assert Board(tmp_path / "board.json").holdout.left == 9


def test_a_copy_of_the_terms_alone_is_no_board(labels, tmp_path):
    create(tmp_path / "board.json", labels, **TERMS)
    shutil.copy(tmp_path / "board.json", tmp_path / "copy.json")
    with pytest.raises(SourceError, match=r"copy\.db, which counts the scores"):
        Board(tmp_path / "copy.json")


def test_an_older_memory_is_known_for_one(labels, submission, tmp_path):
    path, memory = tmp_path / "board.json", tmp_path / "board.db"
    board = create(path, labels, **TERMS)
    board.score(submission)
    board.close()
    shutil.copy(memory, tmp_path / "old.db")
    board.score(submission)
    board.close()
    shutil.copy(memory, tmp_path / "new.db")
    shutil.copy(tmp_path / "old.db", memory)
    with pytest.raises(SourceError, match=r"has 1 scores and board\.json has seen 2.*newest one"):
        Board(path)
    shutil.copy(tmp_path / "new.db", memory)
    assert Board(path).holdout.left == 8


@pytest.mark.parametrize("same", [True, False])
def test_the_memory_of_another_board_is_not_taken_for_its_own(labels, submission, tmp_path, same):
    """Not even of one with the same labels and the same terms."""
    board = create(tmp_path / "a.json", labels, **TERMS)
    other = create(tmp_path / "b.json", labels, **TERMS | ({} if same else {"queries": 20}))
    for _ in range(2):
        board.score(submission)
        other.score(submission)
    board.close()
    other.close()
    shutil.copy(tmp_path / "b.db", tmp_path / "a.db")
    for _ in range(2):  # and the attempt leaves nothing that would make the next one pass
        with pytest.raises(SourceError, match="another board's"):
            Board(tmp_path / "a.json")


def test_a_damaged_memory_is_refused(labels, submission, tmp_path):
    scored(tmp_path / "a.json", labels, submission)
    memory = tmp_path / "a.db"
    memory.write_bytes(memory.read_bytes()[:5000])
    with pytest.raises(LedgerError):
        Board(tmp_path / "a.json")


def test_terms_that_were_changed_are_refused(labels, submission, tmp_path):
    path = tmp_path / "a.json"
    scored(path, labels, submission)
    path.write_text(path.read_text(encoding="utf-8").replace('"queries": 10', '"queries": 10000'), "utf-8")
    with pytest.raises(SourceError, match="terms of a board are fixed"):
        Board(path)


def test_boards_that_never_noted_their_scores_go_on(labels, submission, tmp_path):
    path = tmp_path / "a.json"
    scored(path, labels, submission)
    terms = json.loads(path.read_text(encoding="utf-8"))
    assert terms.pop("scored") == 1
    path.write_text(json.dumps(terms), encoding="utf-8")
    board = Board(path)
    board.score(submission)
    board.close()
    assert json.loads(path.read_text(encoding="utf-8"))["scored"] == 2
    assert {file.name for file in tmp_path.iterdir()} == {"a.json", "a.db", "labels.csv", "good.csv"}


def test_two_that_score_at_once_both_count(labels, submission, tmp_path):
    create(tmp_path / "a.json", labels, **TERMS)
    first, second = Board(tmp_path / "a.json"), Board(tmp_path / "a.json")
    assert [board.score(submission).score.left for board in (first, second, first)] == [9, 8, 7]
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["scored"] == 3


def test_labels_that_are_gone_are_named(labels, tmp_path):
    create(tmp_path / "a.json", labels, **TERMS)
    labels.unlink()
    with pytest.raises(SourceError, match=r"labels\.csv, with the labels of a\.json, is missing"):
        Board(tmp_path / "a.json")


def test_a_board_that_cannot_be_made_leaves_nothing(labels, tmp_path):
    with pytest.raises(RefusedError, match="would say nothing"):
        create(tmp_path / "a.json", labels, **TERMS | {"queries": 10**6, "mode": "gaussian"})
    assert {file.name for file in tmp_path.iterdir()} == {"labels.csv"}


# ---- names


def test_what_is_no_board_is_said_to_be_none(labels, submission, tmp_path):
    assert "labels.csv is not a board" in refusal("score", labels, submission)
    assert "does not exist: `understudy holdout create`" in refusal("show", tmp_path / "none.json")
    assert "written as .json, not as c1.csv" in refusal(
        "create", labels, "--queries", 5, "-o", tmp_path / "c1.csv"
    )
    scored(tmp_path / "a.json", labels, submission)
    assert "nowhere.csv does not exist" in refusal("score", tmp_path / "a.json", tmp_path / "nowhere.csv")
    assert "created once" in refusal("create", labels, "--queries", 5, "-o", tmp_path / "a.json")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    assert "is no leaderboard" in refusal("show", tmp_path / "list.json")
    assert {file.suffix for file in tmp_path.glob("c1*")} == set()


def test_a_mode_without_a_file_names_the_one_with(labels, tmp_path):
    with pytest.raises(ParameterError, match="use `mode='ladder'`, or a Holdout"):
        create(tmp_path / "a.json", labels, **TERMS, mode="free-ladder")


# ---- guesses


def test_a_board_of_guesses_says_so_when_it_is_made_and_when_one_is_missing(labels, submission, tmp_path):
    made = ["holdout", "create", str(labels), "--queries", "10", "--mode", "check", "-o"]
    done = RUN.invoke(app, [*made, str(tmp_path / "a.json")])
    assert "every score must bring a guess" in done.output
    assert "give `guess`" in refusal("score", tmp_path / "a.json", submission)
    assert "between 0 and 1" in refusal("score", tmp_path / "a.json", submission, "--guess", 7)
    assert Board(tmp_path / "a.json").holdout.left == 10
    done = RUN.invoke(app, [*made, str(tmp_path / "b.json"), "--public", "0.5", "--json"])
    assert json.loads(done.output)["needs_guess"] is False


def test_a_guess_that_nobody_checks_is_refused(labels, submission, tmp_path):
    board = create(tmp_path / "a.json", labels, **TERMS)
    with pytest.raises(RefusedError, match="leave `guess` out"):
        board.score(submission, guess=0.7)
    assert board.holdout.left == 10


# ---- predictions


@pytest.mark.parametrize(
    ("metric", "value", "reason"),
    [
        ("accuracy", "yes", "text and the labels are numbers"),
        ("accuracy", "0.5", "not probabilities"),
        ("brier", "5.0", "between 0 and 1"),
        ("brier", "yes", "not numbers"),
        ("auc", "yes", "not numbers"),
    ],
)
def test_nonsense_is_refused_and_not_counted(labels, tmp_path, metric, value, reason):
    board = create(tmp_path / "a.json", labels, **TERMS, metric=metric)
    with pytest.raises(RefusedError, match=rf"^bad\.csv: .*{reason}.*Nothing was counted"):
        board.score(written(tmp_path / "bad.csv", [value] * N))
    assert board.holdout.left == 10
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["scored"] == 0


def test_texts_of_numbers_in_a_typed_file_are_refused(labels, tmp_path):
    board = create(tmp_path / "a.json", labels, **TERMS)
    ids = [f"r{i}" for i in range(N)]
    pq.write_table(pa.table({"id": ids, "p": [str(y) for y in GOOD]}), tmp_path / "s.parquet")
    with pytest.raises(RefusedError, match="text and the labels are numbers"):
        board.score(tmp_path / "s.parquet")
    (tmp_path / "s.csv").write_text(
        "id,p\n" + "".join(f'r{i},"{y}"\n' for i, y in enumerate(GOOD)), encoding="utf-8"
    )
    assert board.score(tmp_path / "s.csv").score.source == "measured"


def test_labels_that_look_like_numbers_are_text_where_labels_are(tmp_path):
    """A CSV file has no types: one label that is no number makes text of all, and of a submission's none."""
    truth = [*map(str, LABELS[:-1]), "unknown"]
    board = create(tmp_path / "a.json", written(tmp_path / "labels.csv", truth), **TERMS)
    found = board.score(written(tmp_path / "s.csv", LABELS)).score
    assert abs(found.value - 1) <= board.holdout.mode.eta
    with pytest.raises(RefusedError, match="missing predictions"):
        board.score(written(tmp_path / "s.csv", ["", *LABELS[1:]]))


def test_two_columns_of_ids_are_refused(labels, tmp_path):
    board = create(tmp_path / "a.json", labels, **TERMS)
    (tmp_path / "s.csv").write_text("id,id\nr0,r0\n", encoding="utf-8")
    with pytest.raises(RefusedError, match="column id"):
        board.score(tmp_path / "s.csv")


def test_a_ladder_says_that_a_submission_is_no_better(labels, submission, tmp_path):
    create(tmp_path / "a.json", labels, **TERMS).score(submission)
    worse = written(tmp_path / "worse.csv", 1 - LABELS)
    done = RUN.invoke(app, ["holdout", "score", str(tmp_path / "a.json"), str(worse)])
    assert "worse: no better than the best so far, 0." in done.output
    assert (
        "no better than the best so far"
        in RUN.invoke(app, ["holdout", "show", str(tmp_path / "a.json")]).output
    )


def test_a_plot_of_an_audit_replaces_no_file(tmp_path):
    plot = tmp_path / "audit.svg"
    plot.write_text("mine", encoding="utf-8")
    asked = ["audit", "validity", "--rows", "200", "--queries", "5", "--runs", "1", "--mode", "plain"]
    done = RUN.invoke(app, [*asked, "--plot", str(plot)])
    assert "--overwrite" in str(done.exception)
    assert plot.read_text(encoding="utf-8") == "mine"
    done = RUN.invoke(app, [*asked, "--plot", str(plot), "--overwrite"])
    assert f"Wrote {plot}." in done.output
    assert plot.read_text(encoding="utf-8").startswith("<svg")
