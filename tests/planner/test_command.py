"""`understudy plan` as a person or a script would run it."""

from __future__ import annotations

import json
from functools import partial

import pytest

import program

run = partial(program.call, "plan")


def test_a_plan_for_machines(tmp_path):
    done = program.run(
        "plan",
        "--rows",
        "100000",
        "--queries",
        "10000",
        "--beta",
        "0.05",
        "--promise",
        "validity",
        "--json",
        cwd=tmp_path,
    )
    reply = json.loads(done.stdout)
    widths = {entry["mechanism"]: entry["width"] for entry in reply["mechanisms"]}
    assert round(widths["cvar"], 4) == 0.1497
    assert round(widths["drift"], 4) == 0.1090
    assert len(widths) >= 10
    assert reply["solved_for"] == "alpha"


def test_a_plan_for_people_and_a_plot(tmp_path):
    known = ("--rows", "1e6", "--alpha", "0.02", "--epsilon", "1", "--delta", "1e-6", "--universe", "2^8")
    done = run(*known, "--plot", "frontier.svg", "--against", "epsilon", cwd=tmp_path)
    assert "queries" in done.stdout
    assert "recommended: histogram" in done.stdout
    assert (tmp_path / "frontier.svg").read_text().startswith("<svg")


def test_a_plan_from_a_declaration(tmp_path):
    (tmp_path / "understudy.yml").write_text(
        "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 1}\nattributes:\n"
        "  a: {type: boolean}\n  b: {type: integer, bounds: [0, 9]}\n"
    )
    done = run("--project", "understudy.yml", "--rows", "10000", "--queries", "50", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["known"]["universe"] == 20
    run("--project", ".", "--rows", "10", "--queries", "5", "--epsilon", "1", cwd=tmp_path, status=2)
    done = run("--project", ".", "--rows", "10000", "--marginals", "2", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["known"]["queries"] == 20
    run("--project", ".", "--rows", "10", "--queries", "5", "--marginals", "2", cwd=tmp_path, status=2)
    run("--rows", "10", "--marginals", "2", "--epsilon", "1", cwd=tmp_path, status=2)


def test_mistakes_are_one_sentence(tmp_path):
    for arguments in (
        ("--rows", "100", "--queries", "0", "--promise", "validity"),
        ("--rows", "100", "--queries", "10"),
        ("--rows", "nan", "--queries", "10", "--promise", "validity"),
        ("--rows", "100", "--queries", "10", "--epsilon", "1", "--universe", "many"),
        ("--rows", "100", "--queries", "10", "--epsilon", "1", "--universe", "2.5"),
        ("--rows", "100", "--queries", "10", "--epsilon", "1", "--plot", "x.gif"),
    ):
        assert len(run(*arguments, cwd=tmp_path, status=2).stderr.strip().splitlines()) == 1


def test_typical_errors_are_labelled_and_below_the_promise(tmp_path):
    known = ("--rows", "100000", "--queries", "100", "--epsilon", "1", "--delta", "1e-6", "--universe", "64")
    assert "not a promise" in run(*known, "--expected", cwd=tmp_path).stdout
    reply = json.loads(run(*known, "--expected", "--json", cwd=tmp_path).stdout)
    simulated = {e["mechanism"]: (e["expected"], e["width"]) for e in reply["mechanisms"] if "expected" in e}
    assert simulated.keys() == {"laplace", "gaussian", "histogram"}
    for expected, width in simulated.values():
        assert width / 50 < expected <= width


def test_the_table(tmp_path):
    lines = [line for line in run("--table", cwd=tmp_path).stdout.splitlines() if line]
    assert len(lines) == 21 + 1 + 17  # a line for each situation, and what the columns are
    assert "0.1497" in next(line for line in lines if line.split()[:2] == ["100000", "10000"])


@pytest.mark.parametrize("rows", ["200", "2000", "200000"])
def test_a_plan_of_marginals_says_once_what_fits_and_recommends_once(tmp_path, rows):
    """It said that nothing says anything, and in the next line how near each cell would be."""
    (tmp_path / "understudy.yml").write_text(
        "understudy: 1\nname: t\nsource: t.csv\nbudget: {epsilon: 1, delta: 1e-9}\nattributes:\n"
        + "".join(f"  a{i}: {{type: category, values: [x, y, z]}}\n" for i in range(3))
    )
    told = run("--project", ".", "--rows", rows, "--marginals", "2", cwd=tmp_path).stdout
    single, _ = told.split("all at once, as one release")
    assert single.startswith("asked one by one, 48 questions")
    for once in ("smalldb", "iterative-mw"):  # what a release says of its methods is said there alone
        assert once not in single
    assert "nothing here" not in told
    assert "vacuous" not in told
    assert ("says nothing: the error would be wider than the whole range" in told) == ("says nothing" in told)
    assert told.count("recommended: ") == 1
    assert "recommended: all at once, understudy release --method residual" in told.splitlines()[-2]
    assert told.splitlines()[-1].startswith("filter: gdp takes ")
    reply = json.loads(
        run("--project", ".", "--rows", rows, "--marginals", "2", "--json", cwd=tmp_path).stdout
    )
    assert reply["recommended"] == "release --method residual"
    assert not {"smalldb", "iterative-mw"} & {entry["mechanism"] for entry in reply["mechanisms"]}
