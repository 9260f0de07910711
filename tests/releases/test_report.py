"""The report: one page, made of the release alone, that needs nothing from anywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tiny_release
from page_checks import HOSTILE, read_page
from understudy.domain.attribute import Categories
from understudy.domain.domain import Domain
from understudy.pages.bars import PlotBar
from understudy.releases import quality_part, report
from understudy.releases.making import release
from understudy.releases.release import Release
from understudy.releases.report import page
from understudy.releases.report_words import PARAMETERS
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


def test_it_is_one_well_formed_page_that_fetches_nothing_and_whose_labels_never_meet(text):
    reader = read_page(text)
    assert len(reader.drawings) > 2


def test_it_shows_what_there_is(made, text):
    for attribute in made.domain:
        assert f"<figcaption>{attribute.name} " in text
        assert f"Synthetic rows by {attribute.name}" in text
    assert "5 of 15 marginals carry error bars" in text
    assert "e<sup>1</sup>" in text
    assert made.certificate["domain"]["digest"] in text
    assert all(f"<code>{request}</code>" in text for request in made.certificate["requests"])
    assert "probability 0.95" in text
    assert "What these words mean" in text


def test_bars_and_whiskers_are_the_releases_numbers(made, monkeypatch):
    """Every number that is drawn is a count of the synthetic rows or an end of an answer's interval."""
    drawn: dict[str, list[PlotBar]] = {}
    monkeypatch.setattr(
        report, "bars", lambda lines, words, **how: drawn.setdefault(words, list(lines)) and ""
    )
    page(made, made.draw(300))
    table = made.sample(300, backend="arrow")
    for attribute in made.domain:
        codes = [attribute.code(value) for value in table[attribute.column].to_pylist()]
        answer = made.answer(f"count by {attribute.name}")
        lines = drawn[f"Synthetic rows by {attribute.name}"]
        assert [bar.label for bar in lines] == list(attribute.labels)
        assert [bar.value for bar in lines] == [2.0 * codes.count(cell) for cell in range(attribute.size)]
        low, high = answer.value - answer.error, answer.value + answer.error
        assert np.allclose([bar.low for bar in lines], np.maximum(low, 0))
        assert np.allclose([bar.high for bar in lines], np.minimum(high, made.rows))
        assert [bar.doubtful for bar in lines] == (answer.error >= answer.value).tolist()
    errors = {bar.label: bar.value for bar in drawn["Half-width of the error bars"]}
    assert errors == {a.clique[0]: a.error.max() for a in made.answers if a.basis == "measured"}
    steps = made.certificate["steps"]
    whole = sum(step["cost"] for step in steps)
    shares = [bar.value for bar in drawn["Part of the price that each step cost"]]
    assert np.allclose(shares, [100 * step["cost"] / whole for step in steps])


def test_nothing_is_said_in_the_words_of_the_code(made):
    """A setting that is known is told in words with what it means; of one that is not, the name is shown."""
    settings = {"merged_below": 1030.74, "most_cells": 200_000, "unheard_of": 3}
    shown = page(replace(made, certificate={**made.certificate, "parameters": settings}), made.draw(5))
    assert "people below which values were measured together" in shown
    assert "hidden by the noise" in shown
    assert "1,031" in shown
    assert "unheard of" in shown
    assert "merged below" not in shown
    for key in PARAMETERS:
        assert all(PARAMETERS[key]), key


@pytest.mark.parametrize("word", HOSTILE)
def test_labels_of_a_hostile_declaration_are_inert(word):
    """Names and values come from a declaration that somebody else may have written."""
    name = word.replace("\x00", "").replace("\u202e", "")
    domain = Domain(
        (
            Categories(name=name, column=name, values=(name, f"{name} 2", "x" * 300)),
            Categories(name="b", column="b", values=("y", name)),
        )
    )
    rates = np.full(domain.shape(), 1 / domain.size())
    answers = tuple(
        MarginalAnswer.around(
            clique, np.full(domain.shape(clique), 20.0), np.full(domain.shape(clique), 5.0), "measured"
        )
        for clique in ((name,), ("b",), domain.names)
    )
    told = {
        "table": word, "method": word, "mechanism": word, "theorem": word, "parameters": {word: word},
        "beta": 0.05,
        "privacy": {"epsilon": 1.0, "delta": 0.0, "neighbours": "replace"}, "program": word, "run": word,
        "cost": {"currency": "epsilon", "amount": 1.0}, "requests": [word],
        "workload": {"marginals": 3, "queries": 9},
        "steps": [{"step": word, "what": word, "cost": 1.0}], "domain": {"digest": word},
        "answers": [{"by": list(a.clique), "basis": a.basis, "error": 5.0} for a in answers],
    }  # fmt: skip
    evil = Release(domain, StoredRates(domain, rates), 100.0, answers, told)
    read_page(page(evil, evil.draw(50)))


def test_nothing_certified_nothing_claimed(made):
    plain = [{**entry, "basis": "uncertified", "error": None} for entry in made.certificate["answers"]]
    bare = replace(
        made,
        answers=tuple(
            MarginalAnswer.around(a.clique, a.counts, np.full(a.counts.shape, np.inf), "uncertified")
            for a in made.answers
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
    monkeypatch.setattr(quality_part, "MOST_PAIRS_LISTED", 0)
    shown = page(made, made.draw(10))
    assert "3 more attributes" in shown
    assert "first 2 of 3 cells" in shown
    assert "The first 2 of 5 steps" in shown
    assert "The other 13 are in answers.parquet" in shown
    assert "and 3 more" in shown
    assert "9 pairs of a wide table" in shown
    assert "The other 1 are better" in shown
    read_page(shown)


def test_what_is_told_beside_the_workload_has_bars_of_its_own(made):
    """No card speaks of the workload alone while the page shows longer bars without a word."""
    workload = tuple(
        MarginalAnswer.around(a.clique, a.counts, a.counts * 0 + 53, "measured") for a in made.answers
    )
    single = MarginalAnswer.around(
        ("age",), np.full(made.domain.shape(("age",)), 200.0), np.full(3, 105), "measured"
    )
    entries = [
        {"by": list(a.clique), "basis": a.basis, "error": float(a.error.max())} for a in (*workload, single)
    ]
    both = replace(
        made, answers=workload, also=(single,), certificate={**made.certificate, "answers": entries}
    )
    shown = page(both, made.draw(5))
    count = len(workload)
    assert "<dt>longest error bar</dt><dd>± 53 people<small>in the workload</small>" in shown
    assert "<dt>longest beside it</dt><dd>± 105 people<small>in 1 marginal told as well</small>" in shown
    assert f"{count + 1} of {count + 1} marginals carry error bars" in shown
    assert shown.count("in the workload</td>") == count
    assert shown.count("beside it</td>") == 1
    assert "± 53 people in the workload, ± 105 people beside it" in both._repr_html_()
    assert "longest beside it" not in page(made, made.draw(5))


def test_many_marginals_become_a_histogram(made):
    many = [{"by": ["age"], "basis": "certified", "error": float(i % 7)} for i in range(60)]
    answers = tuple(MarginalAnswer.around(("age",), np.zeros(3), np.ones(3), "certified") for _ in many)
    grown = replace(made, answers=answers, certificate={**made.certificate, "answers": many})
    shown = page(grown, made.draw(5))
    assert "60 of 60 marginals" in shown
    assert "number of marginals" in shown
