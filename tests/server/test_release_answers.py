"""A server answers questions from its releases: for nothing, as the program does, and within limits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import quote_plus

import numpy as np
import pytest

import understudy as us
from page_visitor import PageVisitor
from program import call
from served_town import ServedTown, served_town
from understudy.answer.plain import without_infinity
from understudy.answer.sql_answer import SqlAnswer
from understudy.errors import QueryError
from understudy.server import release_answers
from understudy.server.pages.answers import shown_answer
from understudy.server.problems import Problem, problem_of
from understudy.server.release_answers import ReleaseAnswers
from understudy.server.served_releases import ServedReleases

QUESTIONS = (
    "count by sex",
    "share age < 30",
    "count age < 33 and smoker = true",
    "SELECT sex, count(*) AS people FROM town GROUP BY sex",
)


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with served_town(tmp_path_factory.mktemp("asked"), rows=500) as served:
        yield served


@pytest.fixture(scope="module")
def printed(town: ServedTown) -> list:
    """What the program prints of the same folder."""
    folder = town.folder / "releases" / "2026-spring"
    said = call("ask", "--release", str(folder), "--json", *QUESTIONS, cwd=town.folder).stdout
    return json.loads(said)["answers"]


@pytest.mark.parametrize("who", ["ada", "eve", "olga", "carl", "bot"])
def test_everybody_may_ask_and_is_told_what_the_program_tells(town: ServedTown, printed, who):
    left = town.client("ada").get("/v1/tables/town/budget")[1]["left"]
    for question, expected in zip(QUESTIONS, printed, strict=True):
        status, told, _ = town.client(who)("POST", "/v1/releases/2026-spring/ask", {"question": question})
        assert status == 200
        assert (told["release"], told["table"], told["question"]) == ("2026-spring", "town", question)
        assert {"question": question, **told["answer"]} == expected
    assert town.client("ada").get("/v1/tables/town/budget")[1]["left"] == left
    assert town.client("ada").get("/v1/history")[1]["questions"] == []


def test_the_client_gets_the_answers_of_a_downloaded_folder(town: ServedTown):
    loaded = us.Release.load(town.folder / "releases" / "2026-spring")
    with us.connect(town.address(), token=town.tokens["ada"]) as server:
        release = server.releases()["2026-spring"]
        for question in QUESTIONS:
            told, expected = release.ask(question), loaded.answer(question)
            if isinstance(expected, SqlAnswer):
                assert isinstance(told, SqlAnswer)
                assert told.rows == expected.rows
            else:
                np.testing.assert_array_equal(told.value, expected.value)
                np.testing.assert_array_equal(told.error, expected.error)
                assert told.source == expected.source
        with pytest.raises(QueryError):
            release.ask("count by colour")


@pytest.mark.parametrize(
    ("release", "body", "status", "code"),
    [
        ("2026-spring", {"question": "count by colour"}, 422, "question"),
        ("2026-spring", {"question": "x" * 10_001}, 413, "too-long"),
        ("2026-spring", {"question": "   "}, 422, "question"),
        ("2026-spring", {"question": 3}, 422, "body"),
        ("2026-spring", {"question": "count", "epsilon": 1}, 422, "body"),
        ("2026-spring", {}, 422, "body"),
        ("absent", {"question": "count"}, 404, "no-release"),
        ("..", {"question": "count"}, 404, None),
    ],
)
def test_what_is_refused(town: ServedTown, release, body, status, code):
    found, told, _ = town.client("ada")("POST", f"/v1/releases/{release}/ask", body)
    assert found == status
    assert code is None or told["code"] == code


def test_a_release_and_a_file_of_a_release_that_are_not_there_are_told_apart(town: ServedTown):
    shelf = ServedReleases(town.folder / "releases")
    for name in ("absent", "..", ""):
        with pytest.raises(Problem, match="There is no such release"):
            shelf.file(name, "certificate.json")
    with pytest.raises(Problem, match="This release has no such file"):
        shelf.file("2026-spring", "unknown.csv")


def test_the_page_of_a_release_answers(town: ServedTown):
    ada = PageVisitor(town, "ada")
    page = ada.get("/releases/2026-spring?question=count+by+sex")
    assert page.status == 200
    assert "All bounds of this release hold at once" in page.text
    assert "count by sex" in page.text
    model = ada.get("/releases/2026-spring?question=count+by+sex%2C+smoker").text
    assert "estimates of its model" in model
    cut = ada.get("/releases/2026-spring?question=count+age+%3C+33").text
    folder = town.folder / "releases" / "2026-spring"
    said = call("ask", "--release", str(folder), "count age < 33", cwd=town.folder).stdout
    assert "rows are taken to be spread evenly in the bins that are cut" in cut
    assert "bins are ± " in said
    [bound] = [line.strip() for line in said.splitlines() if "bins are ± " in line]
    assert f"{bound[0].upper()}{bound[1:]}." in cut
    assert "nobody vouches" not in cut
    statement = quote_plus("SELECT count(*) AS n FROM town WHERE age < 33")
    stated = ada.get(f"/releases/2026-spring?question={statement}").text
    assert (
        "take rows to be spread evenly in the bins that are cut: nobody vouches for them. All bounds"
        in stated
    )
    assert "certifies no error" not in stated
    refused = ada.get("/releases/2026-spring?question=count+by+colour")
    assert refused.status == 422
    assert "colour" in refused.text


def test_a_page_shows_the_certified_ends_of_a_cut_bin(town: ServedTown):
    made = us.Release.load(town.folder / "releases" / "2026-spring")
    told = made.answer("share age < 33 by age")
    assert told.cut_bins is not None
    shown = shown_answer(without_infinity(told.as_dict()))
    ends = zip(told.cut_bins.low.tolist(), told.cut_bins.high.tolist(), strict=True)
    assert [(cell.low, cell.high) for _, (cell,) in shown.rows] == list(ends)
    unknown = without_infinity(made.answer("share age < 33 and smoker = true by sex").as_dict())
    assert {cell.reach for _, (cell,) in shown_answer(unknown).rows} == {"no bound"}


# ---- limits


@pytest.fixture
def shelf(town: ServedTown, tmp_path: Path) -> Path:
    shutil.copytree(town.folder / "releases", tmp_path / "releases")
    return tmp_path / "releases"


def test_a_large_release_and_a_large_answer_are_left_to_whoever_downloads_it(shelf: Path, monkeypatch):
    answers = ReleaseAnswers(ServedReleases(shelf))
    monkeypatch.setattr(release_answers, "MOST_CELLS", 2)
    with pytest.raises(Problem, match="cells") as many:
        answers.answer("2026-spring", "count by sex")
    assert (many.value.status, many.value.code) == (422, "too-large")
    assert "max_cells" not in many.value.hint
    assert "--release" in many.value.hint
    monkeypatch.setattr(release_answers, "MOST_BYTES", 100)
    with pytest.raises(Problem, match="too large") as refused:
        answers.answer("2026-spring", "count")
    assert refused.value.status == 413


def test_a_release_is_opened_once_and_again_when_it_was_made_anew(shelf: Path, monkeypatch):
    for name in "abcde":
        shutil.copytree(shelf / "2026-spring", shelf / name)
    answers = ReleaseAnswers(ServedReleases(shelf))
    first = answers.opened("a")
    assert answers.opened("a") is first
    certificate = shelf / "a" / "certificate.json"
    certificate.write_text(certificate.read_text() + "\n")
    assert answers.opened("a") is not first
    monkeypatch.setattr(release_answers, "MOST_HELD", 2)
    held = [answers.opened(name) for name in "bcd"]
    assert answers.opened("d") is held[2]
    assert answers.opened("b") is not held[0]


def test_a_damaged_release_is_a_refusal(shelf: Path):
    (shelf / "2026-spring" / "standin.npz").write_bytes(b"not a model")
    with pytest.raises(Problem, match="cannot be read") as refused:
        ReleaseAnswers(ServedReleases(shelf)).answer("2026-spring", "count")
    assert refused.value.status == 409


def test_no_refusal_of_a_server_names_a_limit_that_requests_lack(town: ServedTown):
    loaded = us.Release.load(town.folder / "releases" / "2026-spring")
    with pytest.raises(QueryError, match="max_cells") as refused:
        loaded.answer("count by sex", max_cells=2)
    told = problem_of(refused.value)
    assert (told.status, told.code) == (422, "too-large")
    assert "max_cells" not in told.hint
    assert "fewer attributes" in told.hint
