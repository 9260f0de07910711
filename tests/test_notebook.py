"""What a notebook shows: every public object, in one style, escaped, and without a look at the table."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files
from math import inf

import numpy as np
import pandas as pd
import pytest

import understudy as us
from tiny_release import tiny
from understudy.errors import LedgerError
from understudy.noise.samplers import SeededNoise
from understudy.pages import notebook
from understudy.pages.notebook import ErrorBar
from understudy.table.truth import Truth
from understudy.validity.board import create
from understudy_demo import town

EVIL = "<script>alert('x')</script>&\"'"
VOID = {"rect", "line", "circle", "br"}


class Page(HTMLParser):
    """A page whose tags are closed in order; it knows the tags, the attributes and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data if self.open[-1:] != ["style"] else ""


def evil_frame():
    draw = np.random.default_rng(1)
    return pd.DataFrame({EVIL: draw.choice([EVIL, "M"], 4000), "age": draw.integers(0, 100, 4000)})


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Every public object that is worth a look, by name."""
    folder = tmp_path_factory.mktemp("shown")
    project = us.declare(
        evil_frame(),
        {EVIL: [EVIL, "M"], "age": range(0, 100, 10)},
        epsilon=4,
        delta=1e-6,
        noise=SeededNoise(1),
    )
    session = us.session(project, alpha=0.2, name=EVIL)
    labels = np.array([EVIL, "no"] * 2000)
    holdout = us.Holdout(None, labels, queries=5, metric="f1", noise=SeededNoise(2))
    ladder = us.Holdout(None, labels, queries=5, mode="ladder")
    for _ in range(2):
        ladder.score_predictions(labels, label=EVIL)
    pd.DataFrame({"id": range(4000), "label": labels}).to_csv(folder / "labels.csv", index=False)
    pd.DataFrame({"id": range(4000), "p": labels}).to_csv(folder / "team.csv", index=False)
    board = create(folder / "board.json", folder / "labels.csv", id="id", label="label", queries=5)
    for name in (EVIL, "second"):
        board.score(folder / "team.csv", name=name)
    prepared = project.prepare("count by age", rho=0.01)
    made = {
        "answer": project.ask(us.Marginal(project.domain, (EVIL,)), rho=0.01),
        "single": project.ask("count age < 50", rho=0.01),
        "uncertified": session.ask("count age < 30"),
        "sql": project.sql("SELECT age, count(*), sum(age) AS s FROM frame GROUP BY age", rho=0.01),
        "project": project,
        "domain": project.domain,
        "declaration": project.declaration,
        "quote": prepared.quote,
        "prepared": prepared,
        "budget": project.ledger.budget,
        "ledger": project.ledger,
        "session": session,
        "release": us.release(project, us.marginals(1), epsilon=1, delta=1e-7, method=tiny),
        "holdout": holdout,
        "score": holdout.score_predictions(labels),
        "loss": us.Holdout(None, np.linspace(0, 1, 4000), queries=2, metric="mae(scale=1)").score_predictions(
            np.linspace(0, 1, 4000)),
        "certificate": holdout.mode.certificate,
        "ladder": ladder,
        "board": board,
        "plan": us.plan(rows=1000, queries=10, promise="validity"),
        "marginal": us.Marginal(project.domain, ("age",)),
        "workload": us.Workload.all_marginals(project.domain, 1),
    }  # fmt: skip
    return made


SHOWN = ("answer", "single", "uncertified", "sql", "project", "domain", "quote", "prepared", "budget", "ledger",
         "session", "release", "holdout", "score", "loss", "certificate", "ladder", "board", "plan")  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_every_public_object_has_a_view_that_is_whole_and_inert(shown, name):
    html = shown[name]._repr_html_()
    page = Page(html)
    assert "script" not in page.tags
    assert "<script" not in html
    assert html.count("<style>") == 1
    assert not re.search(r"https?://|url\(|@import", html)  # nothing from elsewhere
    assert page.text.strip()


@pytest.mark.parametrize("name", ["answer", "project", "domain", "session", "ladder", "board"])
def test_labels_stay_labels(shown, name):
    assert EVIL in Page(shown[name]._repr_html_()).text


@pytest.mark.parametrize("name", ["answer", "single", "sql", "score", "loss", "ladder", "board"])
def test_numbers_have_error_bars(shown, name):
    html = shown[name]._repr_html_()
    assert html.count("<svg") >= 1
    assert 'stroke="currentColor"' in html  # readable on light and dark pages


def test_every_repr_is_one_short_line(shown):
    for name, value in shown.items():
        text = repr(value)
        assert "\n" not in text, name
        assert len(text) < 240, (name, text)
        assert "array(" not in text, name


def test_reprs_say_what_matters():
    project = town.project(1000)
    assert repr(project) == "Project('town', 17 attributes, budget epsilon 2)"
    assert repr(project.quote("count by sex", epsilon=0.5)) == "Quote(epsilon 0.5, ± 16 people, beta 0.05)"
    assert repr(project.ledger.budget) == "Budget(epsilon 2)"
    assert repr(us.marginals(2).over(project.domain)).startswith("Workload(136 marginals")
    answer = project.ask("count by sex", epsilon=0.5)
    assert re.fullmatch(r"Answer\('everyone by sex': 3 cells ± \d+, measured\)", repr(answer))


def test_a_project_is_shown_without_a_look_at_its_table(monkeypatch):
    project = town.project(1000)
    project.ask("count by sex", epsilon=0.5)

    def looked(*args, **named):
        raise AssertionError("the table was touched")

    for name in ("count", "counts", "check_unchanged"):
        monkeypatch.setattr(Truth, name, looked)
    monkeypatch.setattr(Truth, "rows", property(looked))
    monkeypatch.setattr(Truth, "version", property(looked))
    assert "1,000" not in project._repr_html_()
    assert "0.5 of 2 spent" in Page(project._repr_html_()).text
    assert "1000" not in repr(project)


def test_a_ledger_that_cannot_be_read_is_said_and_not_raised(monkeypatch):
    project = town.project(1000)

    def broken(self):
        raise LedgerError("the disk is gone", remedy="Put it back")

    monkeypatch.setattr(type(project.ledger), "spent", property(broken))
    assert "the disk is gone. Put it back" in Page(project._repr_html_()).text


def test_a_question_under_a_name_is_not_shown_to_others():
    project = town.project(1000)
    project.ask("count sex = F", epsilon=0.1, analyst="ada")
    project.ask("count sex = M", epsilon=0.1)
    text = Page(project.ledger._repr_html_()).text
    assert re.search(r"sex (in \(M\)|= M)", text)
    assert "#" not in text  # digests are for machines
    assert "ada" in text
    assert "(asked under a name)" in text
    assert not re.search(r"sex (in \(F\)|= F)", text)


def test_fifty_rows_are_shown_of_however_many():
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"a": draw.integers(0, 4000, 10), "b": draw.integers(0, 4000, 10)})
    project = us.declare(frame, {"a": range(4000), "b": range(4000)}, epsilon=1)
    marginal = us.Marginal(project.domain, ("a", "b"))
    nothing = np.broadcast_to(0.0, marginal.shape)
    answer = us.Answer(marginal, nothing, nothing, nothing, project.ledger.spent, 0.05)
    html = answer._repr_html_()  # of 16 million cells, whose labels nobody waits for
    assert html.count("<tr>") == 51
    assert "15,999,950 more" in html
    assert repr(answer) == "Answer('everyone by a, b': 16,000,000 cells ± 0, measured)"


# ---- the parts


def test_whatever_is_put_into_a_page_is_escaped():
    parts = [
        notebook.facts({EVIL: EVIL}), notebook.warning(EVIL), notebook.listed([EVIL]), notebook.share(0.5, EVIL),
        notebook.table([EVIL], [[EVIL]]),
    ]  # fmt: skip
    page = Page(notebook.panel(EVIL, *parts, note=EVIL))
    assert "script" not in page.tags
    assert page.text.count(EVIL) == 9  # once for each place
    with pytest.raises(TypeError):
        notebook.panel("title", EVIL)


def drawn(*bars):
    html = notebook.table(["x"], [[bar] for bar in bars])
    number = r'="(-?[\d.]+)"'
    rects = re.findall(rf"<rect x{number} y{number} width{number}", html)
    lines = re.findall(rf"<line x1{number} y1{number} x2{number}", html)
    return html, [(float(x), float(w)) for x, _, w in rects], [(float(a), float(b)) for a, _, b in lines]


def test_bars_share_a_scale_that_begins_at_zero():
    _, rects, lines = drawn(ErrorBar.around(50, 50), ErrorBar.around(25, 10))
    (x, wide), (_, half) = rects
    assert x == 2
    assert wide == pytest.approx(2 * half, abs=0.2)
    assert lines[0] == (2, 2 + 2 * wide)  # from 0 to 100
    assert all(0 <= end <= notebook.WIDTH for line in lines for end in line)


def test_negative_numbers_days_and_unknown_ends_are_drawn():
    _, rects, _ = drawn(ErrorBar(-10.0, -20.0, 0.0), ErrorBar(10.0, 0.0, 20.0))
    assert rects[0][0] < rects[1][0]
    html, _, lines = drawn(ErrorBar(dt.date(2020, 1, 1), dt.date(2019, 1, 1), dt.date(2021, 1, 1)))
    assert "<circle" in html
    assert len(lines) == 3
    html, rects, lines = drawn(
        ErrorBar(5.0), ErrorBar(None), ErrorBar(inf, 0.0, inf), ErrorBar.around(1, inf)
    )
    assert len(rects) == 2
    assert not lines
    assert "inf" not in html
    assert "nan" not in html


def test_bars_have_the_colour_that_they_have_on_every_page():
    sheet = (files("understudy.pages") / "style.css").read_text(encoding="utf-8")
    assert f"--bar: {notebook.BAR};" in sheet


def test_importing_the_package_loads_no_frames_and_no_charts():
    code = (
        "import sys, understudy as us\n"
        "from understudy.answer.answer import Answer\n"
        "from understudy.answer.sql_answer import SqlAnswer\n"
        "print(*{'pandas', 'polars', 'altair', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
