"""The report: one page, made of the release alone, that needs nothing from anywhere."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import tiny_release
from understudy.releases import report
from understudy.releases.release import Release, release
from understudy.releases.report import page
from understudy.releases.run import MarginalAnswer
from understudy.releases.stored import StoredRates


@pytest.fixture(scope="module")
def made() -> Release:
    """Without its project: nothing but what was released is within the report's reach."""
    whole = release(tiny_release.project(), "2-way", epsilon=1, method=tiny_release.tiny)
    rates = whole.standin.project(whole.domain.names)
    return Release(
        whole.domain, StoredRates(whole.domain, rates), whole.rows, whole.answers, whole.certificate
    )


@pytest.fixture(scope="module")
def text(made) -> str:
    return page(made, made.draw())


class Balanced(HTMLParser):
    VOID = ("meta", "br", "path", "rect", "line", "stop")

    def __init__(self):
        super().__init__()
        self.open, self.problems = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in self.VOID and (not self.open or self.open.pop() != tag):
            self.problems.append(tag)


def test_it_is_one_well_formed_page(text):
    parser = Balanced()
    parser.feed(text)
    assert not parser.problems
    assert not parser.open
    assert text.startswith("<!DOCTYPE html>")


def test_it_fetches_nothing(text):
    assert set(re.findall(r"https?://[^\"' )]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert not re.search(r"<(script|link|img|iframe)|@import|url\((?!#)", text)


def test_it_shows_what_there_is(made, text):
    for attribute in made.domain:
        assert f"<figcaption>{attribute.name} " in text
    assert text.count("<svg") == len(made.domain) + 2  # each attribute, the errors, the budget
    assert "± " in text
    assert "5 of 15 marginals carry error bars" in text
    assert "e<sup>1</sup>" in text
    assert made.certificate["domain"]["digest"] in text
    assert all(f"<code>{request}</code>" in text for request in made.certificate["requests"])
    assert "probability 0.95" in text


def test_bars_and_whiskers_are_the_releases_numbers(made, monkeypatch):
    """Every number that is drawn is a count of the synthetic rows or an end of an answer's interval."""
    drawn: list[dict] = []
    monkeypatch.setattr(report, "_figure", lambda chart, caption="": drawn.append(chart.to_dict()) or "")
    rows = made.draw(300)
    page(made, rows)
    assert len(drawn) == len(made.domain) + 2
    table = made.sample(300, backend="arrow")
    codes = {a.name: [a.code(value) for value in table[a.column].to_pylist()] for a in made.domain}
    for attribute, spec in zip(made.domain, drawn[1:-1], strict=True):
        answer = made.answer(f"count by {attribute.name}")
        values = spec["data"]["values"]
        assert [bar["people"] for bar in values] == [
            2.0 * codes[attribute.name].count(cell) for cell in range(attribute.size)
        ]
        low, high = answer.value - answer.error, answer.value + answer.error
        assert np.allclose([bar["low"] for bar in values], np.maximum(low, 0))
        assert np.allclose([bar["high"] for bar in values], np.minimum(high, made.rows))
    errors = {bar["marginal"]: bar["error"] for bar in drawn[0]["data"]["values"]}
    assert errors == {a.clique[0]: a.error.max() for a in made.answers if a.basis == "measured"}
    assert [bar["cost"] for bar in drawn[-1]["data"]["values"]] == [
        s["cost"] for s in made.certificate["steps"]
    ]


def test_names_are_escaped(made):
    evil = {**made.certificate, "table": "<script>alert(1)</script>", "theorem": "a & b < c"}
    shown = page(replace(made, certificate=evil), made.draw(5))
    assert "<script>" not in shown
    assert "a &amp; b &lt; c" in shown


def test_nothing_certified_nothing_claimed(made):
    plain = [{**entry, "basis": "uncertified", "error": None} for entry in made.certificate["answers"]]
    bare = replace(
        made,
        answers=tuple(
            replace(a, basis="uncertified", error=np.full(a.error.shape, np.inf)) for a in made.answers
        ),
        certificate={**made.certificate, "answers": plain},
    )
    shown = page(bare, made.draw(0))
    assert "No error bar of this release is certified" in shown
    assert "not certified" in shown
    assert "no error bar" in shown


def test_large_releases_are_cut_and_say_so(made, monkeypatch):
    for name in ("MOST_ATTRIBUTES", "MOST_BARS", "MOST_STEPS", "MOST_MARGINALS"):
        monkeypatch.setattr(report, name, 2)
    shown = page(made, made.draw(10))
    assert "3 more attributes" in shown
    assert "first 2 of 3 cells" in shown
    assert "The first 2 of 5 steps" in shown
    assert "The other 13 are in answers.parquet" in shown
    assert "and 3 more" in shown


def test_many_marginals_become_a_histogram(made):
    many = [{"by": ["age"], "basis": "certified", "error": float(i % 7)} for i in range(60)]
    answers = tuple(MarginalAnswer(("age",), np.zeros(3), np.ones(3), "certified") for _ in many)
    grown = replace(made, answers=answers, certificate={**made.certificate, "answers": many})
    assert "60 of 60 marginals" in page(grown, made.draw(5))
