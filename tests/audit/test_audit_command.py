"""`understudy audit privacy`: a report that can be filed, and a status that can be relied on."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from page_checks import read_page
from program import Runner
from understudy.cli import audit as command
from understudy.cli.app import app
from understudy.errors import ParameterError
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise.samplers import SeededNoise
from understudy_audit.audit_page import BEGINNINGS
from understudy_audit.claim import PureClaim
from understudy_audit.privacy import Pair, Subject
from understudy_audit.scalar import repeated


def run(*arguments: str):
    return Runner().invoke(app, ["audit", "privacy", *arguments])


def test_a_report_says_what_was_tested_with_what_power_and_what_was_found(tmp_path):
    page = tmp_path / "report.html"
    found = run(
        "--mechanism", "laplace", "--mechanism", "net", "--samples", "200", "--seed", "1", "--out", str(page)
    )
    assert found.exit_code == 0
    for words in (
        "laplace",
        "net",
        "would see",
        "seed 1",
        "No excess over a promise was certified",
        "1 - 1e-06",
    ):
        assert words in found.output
    html = page.read_text(encoding="utf-8")
    reader = read_page(html)
    assert html.startswith(BEGINNINGS[0])
    assert "mechanism.net.NetMechanism" in html
    assert "No excess was certified" in html
    assert len(reader.drawings) == 3  # the chart and the two swatches of its legend


def test_json_for_machines():
    found = run("--mechanism", "randomized-response", "--samples", "500", "--seed", "2", "--json")
    report = json.loads(found.stdout)
    assert report["sound"] is True
    (one,) = report["mechanisms"]
    assert (one["samples"], one["pairs_tested"], one["pairs_considered"]) == (500, 4, 20)
    assert (one["pairs_planned"], one["complete"]) == (4, True)
    assert all(finding["would_see"] is None or finding["would_see"] > 1 for finding in one["findings"])
    assert {finding["promised"] for finding in one["findings"]} == {1.0}


def broken(names):
    del names
    mechanism = LaplaceMechanism(epsilon=Fraction(2), l1=1)
    pair = Pair("<p>", repeated(mechanism, (0,)), repeated(mechanism, (1,)), PureClaim(Fraction(1)))
    return [Subject("broken", "here", "vector", lambda: [pair])]


def test_a_certified_excess_has_a_status_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setattr("understudy_audit.registry.named", broken)
    page = tmp_path / "r.html"
    found = run("--samples", "4000", "--seed", "1", "--out", str(page))
    assert found.exit_code == 3
    assert "PROMISE BROKEN by broken" in found.output
    assert "epsilon ≥" in found.output
    html = page.read_text(encoding="utf-8")
    assert "<p>:" not in html
    read_page(html)
    assert "A promise is broken" in html
    assert '<tr class="bad">' in html


def test_what_is_not_there_is_refused():
    with pytest.raises(ParameterError, match="quick, usual, full"):
        command.Sitting("huge").examine([], noise=SeededNoise(1), coins="")
    assert isinstance(run("--mechanism", "lapace").exception, ParameterError)


def test_where_a_page_cannot_be_written_nothing_is_drawn(tmp_path):
    """An earlier report may be replaced, and nobody's table."""
    table = tmp_path / "people.csv"
    table.write_text("age,sex\n51,M\n")
    for page in (tmp_path, tmp_path / "nowhere" / "page.html", table):
        found = run("--mechanism", "laplace", "--samples", "64", "--out", str(page))
        assert isinstance(found.exception, ParameterError)
        assert found.output == ""
    assert table.read_text() == "age,sex\n51,M\n"
    page = tmp_path / "page.html"
    page.write_text(BEGINNINGS[1] + "<style>…</html>")  # the report of an earlier version
    for _ in range(2):
        assert run("--mechanism", "laplace", "--samples", "64", "--out", str(page)).exit_code == 0


def test_what_is_named_twice_is_audited_once(tmp_path):
    record = str(tmp_path / "record")
    asked = ["--mechanism", "net", "--mechanism", "net", "--samples", "400", "--resume", record]
    found = json.loads(run(*asked, "--workers", "2", "--json").stdout)
    assert [one["mechanism"] for one in found["mechanisms"]] == ["net"]
    assert json.loads(run(*asked, "--hours", "0", "--json").stdout)["mechanisms"] == found["mechanisms"]


def test_a_run_that_is_stopped_says_so_and_goes_on(tmp_path):
    """With no time at all nothing is drawn; the next sitting does it all, and the one after only reports."""
    record, page = str(tmp_path / "record"), tmp_path / "page.html"
    asked = ["--mechanism", "net", "--mechanism", "laplace", "--samples", "400", "--resume", record]
    stopped = run(*asked, "--hours", "0", "--out", str(page))
    assert stopped.exit_code == 0
    assert "not begun" in stopped.output
    assert "Nothing was tested." in stopped.output
    assert "not begun" in page.read_text(encoding="utf-8")
    assert "Not finished" not in run(*asked).output
    again = json.loads(run(*asked, "--hours", "0", "--json").stdout)
    assert [one["complete"] for one in again["mechanisms"]] == [True, True]
    assert again["sound"] is True


def test_part_of_a_run_is_reported_as_a_part(tmp_path, monkeypatch):
    """Time runs out between two stages."""
    clock = iter(range(1000))
    monkeypatch.setattr("understudy.cli.audit.monotonic", lambda: next(clock))
    record = str(tmp_path / "record")
    found = run("--mechanism", "laplace", "--samples", "4000", "--resume", record, "--hours", str(5 / 3600))
    assert "no excess so far" in found.output
    assert "1/4" in found.output


def test_a_seed_and_a_record_exclude_each_other(tmp_path):
    found = run("--seed", "1", "--resume", str(tmp_path / "record"))
    assert isinstance(found.exception, ParameterError)
