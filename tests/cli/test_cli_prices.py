"""Prices as parts of the whole, the question before a large one, long answers, and what is said in words."""

from __future__ import annotations

import json

import pyarrow.parquet
import pytest

from people import write_project
from program import call
from understudy.cli import prices
from understudy.privacy.budget import Budget
from understudy.privacy.cost import ZCDP

WITH_DELTA = "{epsilon: 1, delta: 1e-9}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("UNDERSTUDY_LEDGER", "UNDERSTUDY_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    return write_project(tmp_path, budget=WITH_DELTA)


def test_every_price_is_told_as_a_part_of_the_whole(folder):
    said = call("ask", "count by sex", "--epsilon", "0.1", cwd=folder).stdout
    assert "takes 1.2% of the budget (rho 0.0001771)" in said
    assert "99% of the budget left, about epsilon 0.99 of 1 (rho 0.0147959 of 0.0149731)" in said
    plain = json.loads(call("ask", "count by sex", "--epsilon", "0.1", "--json", cwd=folder).stdout)
    assert plain["answers"][0]["share"] == pytest.approx(0.01183, rel=1e-3)
    assert plain["answers"][0].keys() >= {"question", "rows", "by", "cost", "beta", "source", "unit"}
    assert plain["answers"][0]["noise"] == "gaussian"
    assert plain["remaining"].keys() == {"rho"}
    assert plain["remaining_share"] == pytest.approx(1 - 2 * 0.01183, rel=1e-3)
    assert plain["remaining_epsilon"] < 1
    dry = json.loads(call("ask", "share by sex", "--dry-run", "--json", cwd=folder).stdout)
    assert dry[0].keys() >= {"question", "cost", "error", "beta", "share", "epsilon", "noise", "forecast"}
    assert dry[0]["forecast"][0]["unit"] == "share of all rows"


def test_a_dry_run_of_what_cannot_be_paid_ends_as_the_question_would(tmp_path, folder):
    write_project(tmp_path, budget="{epsilon: 1}")
    call("ask", "count by sex", "--epsilon", "0.9", "--yes", cwd=folder)
    dear = ("ask", "count by sex", "--epsilon", "0.5")
    dry, asked = (call(*dear, *more, cwd=folder, status=1) for more in (("--dry-run",), ()))
    assert "would take 50% of the budget (epsilon 0.5)\n  what is left does not pay for it" in dry.stdout
    assert dry.stderr.splitlines()[-1] == asked.stderr.splitlines()[-1]
    assert "this costs epsilon 0.5 and 0.1 remains" in dry.stderr
    (plain,) = json.loads(call(*dear, "--dry-run", "--json", cwd=folder, status=1).stdout)
    assert plain["payable"] is False
    assert plain["refusal"]["kind"] == "InsufficientBudgetError"
    assert "0.1 remains" in plain["refusal"]["message"]
    (plain,) = json.loads(call("ask", "count", "--epsilon", "5", "--dry-run", "--json", cwd=folder).stdout)
    assert plain["payable"] is True  # the number of rows is public here
    several = ("ask", "count by sex", "count by age", "--epsilon", "0.06", "--dry-run", "--json")
    plain = json.loads(call(*several, cwd=folder, status=1).stdout)
    assert [one["payable"] for one in plain] == [True, False]  # each alone could be paid
    assert "0.04 remains" in plain[1]["refusal"]["message"]
    named = ("ask", "count by sex", "--epsilon", "0.1", "--request", "r")
    call(*named, "--yes", cwd=folder)
    assert "paid for under its request: takes nothing more" in call(*named, "--dry-run", cwd=folder).stdout
    other = ("ask", "count by age", "--epsilon", "0.1", "--request", "r")
    for more in (("--dry-run",), ()):
        said = call(*other, *more, cwd=folder, status=1)
        assert "the request id 'r' was used for another question" in said.stderr
        assert "takes nothing more" not in said.stdout
    assert "0 remains" in call(*named, "--dry-run", "--request", "s", cwd=folder, status=1).stderr


def test_a_dry_run_counts_with_the_limit_of_the_analyst(tmp_path, folder):
    write_project(tmp_path, budget="{epsilon: 1}")
    file = folder / "understudy.yml"
    file.write_text(file.read_text() + "limits: {analyst: 0.1}\n")
    for words in (("--dry-run",), ()):
        said = call(
            "ask", "count by sex", "--epsilon", "0.2", "--analyst", "ada", *words, cwd=folder, status=1
        )
        assert "0.1 remains within the limit for analyst 'ada'" in said.stderr


def test_a_dry_run_in_a_session_ends_as_the_questions_would(tmp_path, folder):
    write_project(tmp_path, budget="{epsilon: 1}")
    call("ask", "count by sex", "--epsilon", "0.99", "--yes", cwd=folder)
    session = ("ask", "--session", "s", "--alpha", "0.1", "--dry-run")
    for words in (("count by sex", "--error", "3"), ("--buy", "ranges(age)")):
        assert "0.01 remains" in call(*session, *words, cwd=folder, status=1).stderr
        assert "0.01 remains" in call(*session[:-1], *words, cwd=folder, status=1).stderr
        (plain,) = json.loads(call(*session, *words, "--json", cwd=folder, status=1).stdout)
        assert plain["payable"] is False
        assert "0.01 remains" in plain["refusal"]["message"]
    said = call(*session, "count by sex", cwd=folder).stdout  # a stand-in answers, and the status is 0
    assert "does not pay for it: a stand-in would answer, and nobody would vouch for it" in said
    assert "uncertified" in call(*session[:-1], "count by sex", cwd=folder).stdout
    (plain,) = json.loads(call(*session, "count by sex", "--json", cwd=folder).stdout)
    assert plain["payable"] is False
    assert "refusal" not in plain


def test_a_large_epsilon_is_written_out():
    for epsilon, told in ((100, "about epsilon 100 of 100 "), (1000, "about epsilon 1000 of 1000 ")):
        budget = Budget.of(epsilon, 1e-9)
        assert told in prices.left_told(budget.cap, budget)
    budget = Budget.of(99.7, 1e-9)
    assert "about epsilon 100 of 99.7 " in prices.left_told(budget.cap, budget)


def test_a_repeated_request_says_that_it_takes_nothing_this_time(folder):
    asked = ("ask", "count by sex", "--epsilon", "0.1", "--request", "r")
    first = call(*asked, cwd=folder).stdout
    assert "takes 1.2% of the budget (rho 0.0001771)" in first
    again = call(*asked, cwd=folder).stdout
    assert "answered from the ledger; takes nothing this time (the first time 1.2% of the budget" in again
    assert again.splitlines()[1:4] == first.splitlines()[1:4]  # the same numbers
    assert again.splitlines()[-1] == first.splitlines()[-1]  # and as much left
    plain = json.loads(call(*asked, "--json", cwd=folder).stdout)["answers"][0]
    assert plain["repeated"]
    assert plain["cost"] == {"rho": 0}
    assert plain["share"] == 0
    assert plain["recorded_cost"]["rho"] == pytest.approx(0.0001771, rel=1e-3)
    new = json.loads(call("ask", "count by sex", "--epsilon", "0.1", "--json", cwd=folder).stdout)["answers"][
        0
    ]
    assert not new["repeated"]
    assert new["cost"] == new["recorded_cost"] == new["quoted"]
    assert new["remark"] is None


def test_a_price_that_is_not_the_quoted_one_is_explained(folder):
    first = call("ask", "count age < 18 by sex", "--epsilon", "0.1", cwd=folder).stdout
    assert "that was quoted" not in first
    other = ("ask", "count age >= 65 by sex", "--epsilon", "0.1")
    less = call(*other, cwd=folder).stdout
    assert "takes less than a millionth of the budget" in less  # the rounding of halves
    assert (
        "costs less than the rho 0.0001771 that was quoted, since earlier questions were about other" in less
    )
    plain = json.loads(
        call("ask", "count age between 18 and 64 by sex", "--epsilon", "0.1", "--json", cwd=folder).stdout
    )["answers"][0]
    assert plain["cost"]["rho"] < 1e-12
    assert plain["quoted"]["rho"] == pytest.approx(0.0001771, rel=1e-3)
    assert "different people cost as one" in plain["remark"]
    public = call("ask", "count", "--epsilon", "0.1", cwd=folder).stdout
    assert "costs nothing: no person can change it, so it is public" in public


def test_a_price_above_the_quoted_one_is_explained():
    more = prices.Charged(ZCDP(20), ZCDP(10)).remark
    assert more is not None
    assert more.startswith("costs more than the rho 1e-14 that was quoted, since earlier questions")
    assert prices.Charged(ZCDP(10**9 + 3), ZCDP(10**9)).remark is None  # rounding
    alike, told = (ZCDP(149_690_000_000), ZCDP(149_730_000_000)), "rho 0.0001497"
    assert all(told == f"rho {cost.amount:.4g}" for cost in alike)
    assert prices.Charged(*alike).remark is None  # whoever reads both sees one number
    assert told in (prices.Charged(ZCDP(149_640_000_000), alike[1]).remark or "")


def test_groups_that_may_be_empty_are_not_told_like_findings(folder):
    text = (folder / "understudy.yml").read_text()
    (folder / "understudy.yml").write_text(text.replace("values: [F, M]", "values: [F, M, X, Y]"))
    asked = ("ask", "count by sex", "--rho", "0.004", "--yes", "--request", "r", "--beta", "1e-6")
    said = {line.split()[0]: line for line in call(*asked, cwd=folder).stdout.splitlines()[2:7]}
    for name in ("X", "Y", "other"):
        assert said[name].endswith("consistent with 0")
    for name in ("F", "M"):
        assert "consistent" not in said[name]
    plain = json.loads(call(*asked, "--json", cwd=folder).stdout)["answers"][0]["rows"]
    assert plain[0].keys() == {"cell", "value", "error"}
    assert float(said["F"].split()[1].replace(",", "")) == plain[0]["value"]  # no number is changed
    assert "consistent" not in call("ask", "count age < 18", "--epsilon", "0.01", cwd=folder).stdout
    rates = call(
        "ask", "rate age < 18 within sex", "--rho", "0.005", "--beta", "1e-6", "--yes", cwd=folder
    ).stdout
    told = {line.split()[0]: line for line in rates.splitlines()[2:7]}
    assert told["X"].endswith("nothing known")
    assert "known" not in told["F"]
    none = call("ask", "count age < 18 and age >= 65 by sex", cwd=folder).stdout
    assert none.count("certainly 0") == 5


def test_a_script_must_say_yes_to_more_than_a_quarter(folder):
    refused = call("ask", "count by sex", "--epsilon", "0.9", cwd=folder, status=2).stderr
    assert "82% of the budget" in refused
    assert "Say --yes" in refused
    assert not (folder / "understudy.ledger").exists()
    assert "--yes" in call("ask", "count by sex", "--epsilon", "0.9", "--json", cwd=folder, status=2).stdout
    several = ("count by sex", "count by age", "count age < 18")
    call("ask", *several, "--epsilon", "0.4", cwd=folder, status=2)  # together too much
    call("ask", "count by sex", "--epsilon", "0.4", cwd=folder)
    call("ask", "count by sex", "--epsilon", "0.7", "--yes", "--request", "r", cwd=folder)
    call("ask", "count by sex", "--epsilon", "0.7", "--request", "r", cwd=folder)  # it was paid


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1)])
def test_a_person_is_asked_above_a_twentieth(answer, status, folder, monkeypatch):
    asked = []

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return answer == "y\n"

    monkeypatch.setattr(prices.typer, "confirm", confirm)
    monkeypatch.setattr(prices, "sys", _Terminal)
    said = call("ask", "count by sex", "--epsilon", "0.3", cwd=folder, status=status)
    assert len(asked) == 1
    assert asked[0].startswith("This takes up to 9.9% of the budget")
    assert ("Nothing was asked" in said.stderr) == (status == 1)
    assert (folder / "understudy.ledger").exists() == (status == 0)
    call("ask", "count by sex", "--epsilon", "0.1", cwd=folder)
    call("ask", "count by sex", "--epsilon", "0.3", "--yes", cwd=folder)
    assert len(asked) == 1


class _Terminal:
    """A terminal, as far as it is looked at."""

    class stdin:
        isatty = staticmethod(lambda: True)

    class stderr:
        isatty = staticmethod(lambda: True)


def test_noise_by_name_is_of_pure_epsilon(folder):
    said = call(
        "ask", "count by sex", "--epsilon", "0.05", "--noise", "laplace", "--dry-run", cwd=folder
    ).stdout
    assert "laplace noise" in said
    assert "8.3% of the budget (rho 0.00125)" in said


# ---- long answers


def test_a_terminal_shows_fifty_rows_and_a_file_holds_all(tmp_path):
    folder = write_project(tmp_path, budget=WITH_DELTA)
    text = (folder / "understudy.yml").read_text()
    (folder / "understudy.yml").write_text(
        text.replace("edges: [0, 18, 65, 120]", "bounds: [0, 119], width: 1")
    )
    short = call("ask", "count by age", cwd=folder).stdout.splitlines()
    assert any(line.strip().startswith("… 70 more (--all") for line in short)
    assert sum("±" in line for line in short) == 50
    assert short[1].split() == ["age", "people"]
    assert (
        sum("±" in line for line in call("ask", "count by age", "--all", cwd=folder).stdout.splitlines())
        == 120
    )
    statement = "SELECT age, count(*) FROM people GROUP BY age"
    assert "… 70 more" in call("ask", statement, cwd=folder).stdout
    said = call("ask", "count by age", "-o", "answers.parquet", cwd=folder).stdout
    assert "Wrote answers.parquet: 120 rows." in said
    assert pyarrow.parquet.read_table(folder / "answers.parquet").num_rows == 120
    told = json.loads(call("ask", "count by age", "-o", "a.csv", "--json", cwd=folder).stdout)
    assert told["written"] == "a.csv"


def test_where_an_answer_cannot_be_written_is_found_out_before_it_is_paid(folder):
    (folder / "there.csv").write_text("mine")
    for out, words in (
        ("there.csv", "exists already"),
        ("people.csv", "belongs to the project"),
        ("answers.txt", ".parquet, .csv, .json"),
        ("no/answers.csv", "folder that is there"),
    ):
        assert words in call("ask", "count by sex", "-o", out, cwd=folder, status=2).stderr
    assert "one question" in call("ask", "count", "count by sex", "-o", "a.csv", cwd=folder, status=2).stderr
    assert not (folder / "understudy.ledger").exists()
    call("ask", "count by sex", "-o", "there.csv", "--overwrite", cwd=folder)
    assert (folder / "there.csv").read_text().startswith('"sex"')


def test_too_many_cells_are_refused_with_the_option_that_raises_the_limit(folder):
    said = call("ask", "count by age, sex", "--max-cells", "5", cwd=folder, status=2).stderr
    assert "--max-cells 9" in said
    assert "Nothing was spent" in said
    said = call(
        "ask",
        "--session",
        "s",
        "--alpha",
        "0.1",
        "count by age, sex",
        "--max-cells",
        "5",
        cwd=folder,
        status=2,
    )
    assert "--max-cells 9" in said.stderr
    assert not (folder / "understudy.ledger").exists()
    call("ask", "count by age, sex", "--max-cells", "9", cwd=folder)


# ---- words


def test_groups_have_heads_that_say_what_the_numbers_are(folder):
    said = call("ask", "share age < 18 by sex", "rate age < 18 within sex", cwd=folder).stdout.splitlines()
    heads = [line.split(maxsplit=1) for line in said if line.strip().startswith("sex")]
    assert heads == [["sex", "share of all rows"], ["sex", "rate within sex"]]
    assert call("ask", "share age < 18", cwd=folder).stdout.splitlines()[1].endswith("share of all rows")


def test_a_changed_table_is_told_as_such(folder):
    call("ask", "count by sex", "--request", "r", cwd=folder)
    with (folder / "people.csv").open("a") as file:
        file.write("5,F\n")
    said = call("ask", "count by sex", "--request", "r", cwd=folder, status=1).stderr
    assert "has changed since the request 'r' was answered" in said
    assert "Nothing was spent" in said
    assert "another question" in call("ask", "count by age", "--request", "r", cwd=folder, status=1).stderr


def test_a_session_remembers_its_terms(folder):
    call(
        "ask",
        "--session",
        "s",
        "--alpha",
        "0.2",
        "--beta",
        "0.01",
        "--queries",
        "20",
        "--yes",
        "count by sex",
        cwd=folder,
    )
    said = call("ask", "--session", "s", "count by sex", cwd=folder).stdout
    assert "source: repeat" in said
    assert "probability 0.99" in said
    refused = call("ask", "--session", "s", "--alpha", "0.3", "count by sex", cwd=folder, status=1).stderr
    assert "alpha 0.2, beta 0.01, queries 20" in refused
    assert "--alpha" in call("ask", "--session", "other", "count by sex", cwd=folder, status=2).stderr
    shown = call("ledger", "show", cwd=folder).stdout
    assert "for count by sex" in shown


def test_a_forecast_is_in_the_unit_of_the_column(folder):
    plain = json.loads(
        call(
            "ask", "SELECT avg(age) AS years, count(*) FROM people", "--dry-run", "--json", cwd=folder
        ).stdout
    )
    years, people = plain[0]["forecast"]
    assert years["column"] == "years"
    assert 0 < years["error"] < 120
    assert people["error"] <= plain[0]["error"] + 1
    said = call("ask", "SELECT avg(age) AS years FROM people", "--dry-run", cwd=folder).stdout
    assert "years: about ± " in said


def test_an_error_is_told_in_the_unit_of_the_column(folder):
    said = call("ask", "share sex = F", "--error", "0.1", "--dry-run", cwd=folder).stdout
    assert "each number ± 0.0" in said
    assert "(share)" in said
    dry = json.loads(call("ask", "share sex = F", "--error", "0.1", "--dry-run", "--json", cwd=folder).stdout)
    assert dry[0]["unit"] == "share"
    assert dry[0]["error"] <= 0.1
    refused = call("ask", "rate sex = F within age", "--error", "0.1", cwd=folder, status=1).stderr
    assert "ask with --error in a session" in refused


def test_an_error_in_a_session(folder):
    terms = ("--session", "s", "--alpha", "0.2", "--beta", "1e-9")
    price = json.loads(
        call("ask", "share sex = F", *terms, "--error", "0.1", "--dry-run", "--json", cwd=folder).stdout
    )
    assert (price[0]["error"], price[0]["unit"]) == (0.1, "share")
    told = json.loads(
        call("ask", "share sex = F", *terms, "--error", "0.1", "--json", "--yes", cwd=folder).stdout
    )
    assert 0 < told["answers"][0]["error"] <= 0.1
    assert 0 < told["answers"][0]["cost"]["rho"] <= price[0]["cost"]["rho"]
    again = call("ask", "share sex = F", "--session", "s", "--error", "0.1", "--dry-run", cwd=folder).stdout
    assert "each number ± 0.1 (share), for at most 0% of the budget" in again
