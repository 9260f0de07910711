"""A leaderboard as a page: what was said, and nothing that was not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from page_checks import HOSTILE, read_page
from program import Runner
from understudy.cli.app import app
from understudy.errors import ParameterError
from understudy.validity import board_page as pages
from understudy.validity.board import Board, create
from understudy.validity.board_page import board_page

RUN = Runner()
N = 1000
DRAW = np.random.default_rng(0)
LABELS = DRAW.integers(0, 2, N)
GOOD = np.where(DRAW.random(N) < 0.2, 1 - LABELS, LABELS)


def written(path, values, column):
    path.write_text(f"id,{column}\n" + "".join(f"r{i},{y}\n" for i, y in enumerate(values)), encoding="utf-8")
    return path


@pytest.fixture
def board(tmp_path):
    labels = written(tmp_path / "labels.csv", LABELS, "label")
    made = create(tmp_path / "board.json", labels, id="id", label="label", queries=20)
    made.score(written(tmp_path / "good.csv", GOOD, "guess"), name="first")
    made.score(tmp_path / "good.csv", name="again")
    for word in HOSTILE[:3]:
        made.score(tmp_path / "good.csv", name=word)
    return made


def test_it_shows_what_was_told_and_a_dash_where_nothing_was(board):
    text = board_page(board, made="Made here.")
    reader = read_page(text)
    first, again = board.show()[:2]
    assert again.score.source == "repeat"
    assert f"{first.score.value:.4f} ± {first.score.width:.4f}" in text
    assert text.count("no better than the best so far") >= 4
    assert text.count(f"{first.score.value:.4f}</td>") == 1  # a repeat does not pass for a score of its own
    assert "15 left" in text
    assert all(line in "".join(reader.words) for line in board.holdout.mode.certificate.assumptions)


def test_no_label_and_no_secret_is_on_it(board):
    text = board_page(board)
    for secret in (board.terms.salt, board.terms.digest, board.terms.labels, board.terms.name):
        assert secret not in text


def test_an_empty_board_and_a_long_one(board, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "MOST_LISTED", 2)
    assert "3 earlier submissions are not listed" in board_page(board)
    fresh = create(tmp_path / "new.json", tmp_path / "labels.csv", id="id", label="label", queries=20)
    text = board_page(fresh)
    read_page(text)
    assert "Nothing was submitted yet" in text
    assert "<dt>best score</dt><dd>–</dd>" in text


def test_the_command_writes_it_and_nothing_over_the_board(board, tmp_path):
    board.close()
    page = tmp_path / "page.html"
    done = RUN.invoke(app, ["holdout", "show", str(board.path), "--html", str(page)])
    assert done.output == f"Wrote {page}.\n"
    read_page(page.read_text(encoding="utf-8"))
    again = RUN.invoke(
        app, ["holdout", "show", str(board.path), "--html", str(page), "--json", "--overwrite"]
    )
    assert len(json.loads(again.output)["scores"]) == 5
    for own in (page, board.path, board.path.with_suffix(".db"), tmp_path / "labels.csv"):
        before = own.read_bytes()
        wanted = ["holdout", "show", str(board.path), "--html", str(own)]
        refused = RUN.invoke(app, wanted if own == page else [*wanted, "--overwrite"])
        assert isinstance(refused.exception, ParameterError)
        assert own.read_bytes() == before
    Board(board.path).close()
