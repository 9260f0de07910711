"""`understudy ask --release`: whoever receives the folder of a release asks it, without the table."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import tiny_release
from program import call
from served import config, people, serving, tokens
from understudy.releases.making import release
from understudy.releases.release import Release
from understudy.releases.run import MarginalAnswer


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder with one release, and nothing else."""
    folder = tmp_path_factory.mktemp("received")
    made = release(tiny_release.project(), "1-way", epsilon=1, method=tiny_release.tiny)
    made.save(folder / "spring", rows=40)
    return folder


@pytest.fixture
def ask(shelf, tmp_path):
    def asked(*words, status=0):
        return call("ask", "--release", str(shelf / "spring"), *words, cwd=tmp_path, status=status)

    return asked


def test_a_release_is_asked_without_table_and_declaration(ask, shelf):
    told = ask("count by age", "SELECT sex, count(*) FROM people GROUP BY sex", "count by age, sex").stdout
    assert "18-64" in told
    assert told.count("asking a release costs nothing") == 3
    assert told.count("with probability 0.95") == 2
    assert "uncertified: the stand-in alone answers" in told  # two attributes were not measured together
    plain = json.loads(ask("count age < 18", "--json").stdout)
    expected = Release.load(shelf / "spring").answer("count age < 18").as_dict()
    assert plain["answers"] == [json.loads(json.dumps({"question": "count age < 18", **expected}))]
    assert plain["table"] == "people"
    assert plain["answers"][0]["low"] <= plain["answers"][0]["value"] <= plain["answers"][0]["high"]
    unknown = json.loads(ask("count age < 18 by sex", "--json").stdout)["answers"][0]
    assert unknown["source"] == "uncertified"
    assert {row["error"] for row in unknown["rows"]} == {None}  # JSON has no infinity


def test_an_interval_that_lies_unevenly_is_told_by_its_ends(tmp_path):
    """What a terminal shows are both ends, and beside a group that may be empty that it may be."""
    made = release(tiny_release.project(), "1-way", epsilon=1, method=tiny_release.tiny)
    low, high = np.array([80.0, 300.0, 0.0]), np.array([180.0, 410.0, 1120.0])
    ages = MarginalAnswer(("age",), np.array([90.0, 400.0, 110.0]), low, high, "measured")
    replace(made, answers=(ages, *made.answers[1:])).save(tmp_path / "uneven", rows=0)
    told = call(
        "ask", "--release", "uneven", "count by age", "share by age", cwd=tmp_path
    ).stdout.splitlines()
    young, grown, old = (
        next(line.split("  ") for line in told if word in line) for word in ("0-17", "18-64", "65")
    )
    assert young[-1] == "between 80 and 180"
    assert grown[-1] == "between 300 and 410"
    assert old[-2:] == ["between 0 and 600", "consistent with 0"]  # there are 600 people
    assert any(line.endswith("between 0.13333 and 0.30000") for line in told)


@pytest.fixture
def cut(tmp_path):
    """The folder of a release in which each pair of age and sex has between 20 and 90 people."""
    made = release(tiny_release.project(), "2-way", epsilon=1, method=tiny_release.tiny)
    counts = np.full(made.domain.shape(("age", "sex")), 50.0)
    pair = MarginalAnswer(("age", "sex"), counts, counts - 30, counts + 40, "measured")
    answers = [pair if answer.clique == pair.clique else answer for answer in made.answers]
    replace(made, answers=tuple(answers)).save(tmp_path / "cut", rows=0)
    return tmp_path


def test_of_a_cut_bin_the_certified_ends_are_told(cut):
    """Counts of whole bins are in 20 to 90, with all of those that are cut in 40 to 180: no group is empty."""
    told = call(
        "ask", "--release", "cut", "count age < 28 by sex", "share age < 28 by sex", "count age < 28 by smoker",
        "SELECT sex, count(*) AS n FROM people WHERE age < 28 GROUP BY sex", cwd=cut,
    ).stdout.splitlines()  # fmt: skip
    counted, shared = (line.split("  ") for line in told if line.startswith("  F ") and "between" in line)
    assert [counted[-1], shared[-1]] == ["between 20 and 180", "between 0.03333 and 0.30000"]
    assert "  all within their bounds with probability 0.95; bins are at most ± 45 of that" in told
    assert (
        sum(line.endswith("error unknown") for line in told) == 3
    )  # age and smoker were not counted together
    assert not any("consistent with 0" in line for line in told)
    assert any(line.startswith("  F  ") and line.endswith("[20, 180]") for line in told)  # the SELECT
    assert "  all within their bounds with probability 0.95" in told
    assert not any("nothing is proved of its error" in line for line in told)
    bare = call("ask", "--release", "cut", "SELECT count(*) FROM people WHERE age < 28 AND smoker", cwd=cut)
    assert "[0, 600]" in bare.stdout  # all that is known is how many people there are
    call("ask", "--release", "cut", "count age < 28 by sex", "-o", "cut.csv", cwd=cut)
    head, first, *_ = (cut / "cut.csv").read_text().splitlines()
    assert head == '"sex","value","error","noisy","low","high"'
    assert first.endswith(",20,180")


def test_rows_are_written_where_they_are_wanted(ask, tmp_path):
    assert "3 rows" in ask("count by age", "-o", "ages.csv").stdout
    assert (tmp_path / "ages.csv").read_text().startswith('"age"')
    assert "exists already" in ask("count by age", "-o", "ages.csv", status=2).stderr
    assert "one question" in ask("count", "count", "-o", "two.csv", status=2).stderr


def test_what_cannot_be_said_to_a_release_is_refused(ask, tmp_path):
    for words in (
        ("--epsilon", "1"),
        ("--session", "mine"),
        ("--dry-run",),
        ("--table", "t"),
        ("--project", "p.yml"),
    ):
        refused = ask("count", *words, status=2)
        assert words[0] in refused.stderr
        assert "leave it out" in refused.stderr
    wrong = ask("count by age", "count agee < 18", status=2)
    assert "agee" in wrong.stderr
    assert not wrong.stdout  # no answer is shown before every question is understood
    missing = call("ask", "--release", "nowhere", "count", cwd=tmp_path, status=1)
    assert "is not the folder of a release" in missing.stderr


@pytest.mark.parametrize(
    ("short", "statement"),
    [
        ("avg age", "SELECT avg(age) FROM people"),
        ("median age", "SELECT median(age) FROM people"),
        ("quantile 0.9 age by smoker", "SELECT smoker, quantile_cont(age, 0.9) FROM people GROUP BY smoker"),
    ],
)
def test_a_short_question_about_a_measure_is_refused_with_the_statement_that_answers_it(
    ask, short, statement
):
    refused = ask(short, status=2).stderr
    assert f"in SQL here; write {statement}, with conditions after WHERE" in refused
    assert "starts with count" not in refused
    assert "costs nothing" in ask(statement).stdout
    assert "no attribute 'wage'" in ask("avg wage", status=2).stderr


def test_a_release_that_a_server_shows_is_asked_by_its_name(shelf, tmp_path, monkeypatch):
    configured = config(people(tmp_path / "home", rows=50), releases=shelf)
    (secret,) = tokens(configured, "ada")
    monkeypatch.setenv("UNDERSTUDY_TOKEN", secret)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    with serving(configured) as service:
        url = f"http://127.0.0.1:{service.addresses['http'].port}"
        told = call("ask", "--url", url, "--release", "spring", "count by age", cwd=tmp_path).stdout
        unknown = call("ask", "--url", url, "--release", "autumn", "count", cwd=tmp_path, status=2).stderr
    assert "18-64" in told
    assert "costs nothing" in told
    assert "it shows: spring" in unknown
