"""`understudy ask --url`: the client as a command."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from program import call
from served import config, people, serving, tokens
from understudy.server.config import ApproveAbove


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """A server that asks for approval above a tenth of the budget: its address, and a token of an analyst."""
    folder = tmp_path_factory.mktemp("town")
    above = ApproveAbove(people=Fraction(1, 10), agents=Fraction(1, 10))
    configured = config(people(folder, budget="{epsilon: 1, delta: 1e-9}"), approve_above=above)
    (secret,) = tokens(configured, "ada")
    with serving(configured) as service:
        yield f"http://127.0.0.1:{service.addresses['http'].port}", secret


@pytest.fixture
def ask(town, tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_TOKEN", town[1])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))

    def asked(*words, status=0):
        return call("ask", "--url", town[0], *words, cwd=tmp_path, status=status)

    return asked


def test_a_served_table_is_asked_priced_and_told_what_is_left(ask):
    priced = ask("count by sex", "--rho", "1e-5", "--dry-run")
    assert "would take at most" in priced.stdout
    told = ask("count by sex", "count age < 18", "--rho", "1e-5").stdout
    assert "sex" in told
    assert "with probability 0.95" in told
    assert "of the budget left" in told
    again = [
        json.loads(ask("count age < 18", "--rho", "1e-5", "--request", "mine", "--json").stdout)
        for _ in range(2)
    ]
    assert again[0]["answers"] == again[1]["answers"]  # one request is paid once
    assert again[0]["remaining"] == again[1]["remaining"]
    assert again[0]["answers"][0]["request"] == "mine"


def test_a_dry_run_of_what_cannot_be_paid_ends_as_the_question_would(ask):
    dear = ("count by sex", "--rho", "1")
    for words in (("--dry-run",), ("--yes",)):
        assert "remains" in ask(*dear, *words, status=1).stderr
    (plain,) = json.loads(ask(*dear, "--dry-run", "--json", status=1).stdout)
    assert plain["payable"] is False
    assert plain["refusal"]["kind"] == "InsufficientBudgetError"
    several = ("count by sex", "count by age", "--rho", "0.008", "--dry-run")  # each alone could be paid
    assert [one["payable"] for one in json.loads(ask(*several, "--json", status=1).stdout)] == [True, False]
    assert "what is left does not pay for it" in ask(*several, status=1).stdout


def test_the_rows_are_written_where_they_are_wanted(ask, tmp_path):
    ask("count by sex", "--rho", "1e-5", "-o", "answer.csv")
    assert (tmp_path / "answer.csv").read_text().splitlines()[0].startswith('"sex"')
    assert "exists already" in ask("count", "--rho", "1e-5", "-o", "answer.csv", status=2).stderr


def test_what_cannot_be_said_to_a_server_is_refused_before_anything_is_sent(ask, tmp_path):
    for words in (("--session", "mine"), ("--analyst", "bob"), ("--beta", "0.1"), ("--max-cells", "7")):
        refused = ask("count", *words, status=2)
        assert words[0] in refused.stderr
        assert "leave it out" in refused.stderr
    assert "price of its own" in ask("count", "--noise", "laplace", status=2).stderr
    assert "noise is auto" in ask("count", "--noise", "uniform", status=2).stderr
    assert "--url" in call("ask", "count", "--table", "people", cwd=tmp_path, status=2).stderr
    assert "no attribute 'agee'" in ask("count agee < 18", status=2).stderr
    assert "visits" in ask("count", "--table", "visits", status=2).stderr


def test_a_price_above_the_threshold_waits_for_the_custodian(ask):
    waits = ask("count by area", "--rho", "0.003", "--why", "the yearly report", "--yes", status=1)
    assert "approv" in waits.stderr
    large = ask("count by area", "--rho", "0.006", status=2)
    assert "--yes" in large.stderr


def test_a_token_that_is_missing_or_wrong_is_told_in_the_programs_words(ask, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_TOKEN", "us_wrong")
    assert "token" in ask("count", status=1).stderr
    monkeypatch.delenv("UNDERSTUDY_TOKEN")
    told = ask("count", status=1).stderr
    assert "in the variable UNDERSTUDY_TOKEN" in told
    assert "in Python as `token=`" in told
