"""`understudy audit privacy`: a report that can be filed, and a status that can be relied on."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from understudy.audit import command
from understudy.audit.claim import PureClaim
from understudy.audit.privacy import Pair, Subject
from understudy.audit.registry import Effort
from understudy.audit.scalar import repeated
from understudy.cli import app
from understudy.errors import ParameterError
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise import SeededNoise


def run(*arguments: str):
    return CliRunner().invoke(app, ["audit", "privacy", *arguments])


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
    assert html.startswith("<!doctype html>")
    assert "mechanism.net.NetMechanism" in html
    assert "<script" not in html


def test_json_for_machines():
    found = run("--mechanism", "randomized-response", "--samples", "500", "--seed", "2", "--json")
    report = json.loads(found.output)
    assert report["sound"] is True
    (one,) = report["mechanisms"]
    assert (one["samples"], one["pairs_tested"], one["pairs_considered"]) == (500, 4, 20)
    assert all(finding["would_see"] is None or finding["would_see"] > 1 for finding in one["findings"])
    assert {finding["promised"] for finding in one["findings"]} == {1.0}


def broken(names):
    del names
    mechanism = LaplaceMechanism(epsilon=Fraction(2), l1=1)
    pair = Pair("<p>", repeated(mechanism, (0,)), repeated(mechanism, (1,)), PureClaim(Fraction(1)))
    return [Subject("broken", "here", "vector", lambda: [pair])]


def test_a_certified_excess_is_status_1(monkeypatch, tmp_path):
    monkeypatch.setattr("understudy.audit.registry.named", broken)
    page = tmp_path / "r.html"
    found = run("--samples", "4000", "--seed", "1", "--out", str(page))
    assert found.exit_code == 1
    assert "PROMISE BROKEN by broken" in found.output
    assert "epsilon ≥" in found.output
    assert "<p>:" not in page.read_text(encoding="utf-8")


def test_what_is_not_there_is_refused():
    with pytest.raises(ParameterError, match="quick, usual, full"):
        command.examine([], effort="huge", samples=None, noise=SeededNoise(1), coins="")
    assert isinstance(run("--mechanism", "lapace").exception, ParameterError)
    assert Effort(1, 2, 3).pairs == 2
