"""The design of all pages: one style, one palette, escaped everywhere, labels that never meet."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import page_checks
from page_checks import HOSTILE, check_drawing, read_page
from understudy.pages.bars import PlotBar, bars
from understudy.pages.curves import curves
from understudy.pages.heat import HeatCell, heat
from understudy.pages.lettering import fitted, text_width
from understudy.pages.markup import (
    CellMarkup,
    banner,
    details,
    escaped,
    facts,
    figure,
    glossary,
    legend,
    paragraph,
    section,
    table,
)
from understudy.pages.shell import beginning, document, style
from understudy.pages.svg import fitting_ticks, swatch, tick_words, ticks

TOP = Path(__file__).resolve().parents[2]
LABELS = st.lists(st.text(max_size=40), min_size=1, max_size=45)


def everything(word: str) -> str:
    """A page with one word in every place that takes words."""
    drawn = bars([PlotBar(word, 1.0, 0.5, 1.5, 1.2, hint=word)], words=word, unit=word)
    mapped = heat([word], [word], [[HeatCell(0.5, hint=word, doubtful=True)]], words=word)
    parts = [
        paragraph(word), facts({word: word, f"{word} ": (word, word)}), banner("warn", word, word),
        details(word, paragraph(word)), figure(drawn, word, word), figure(mapped, word, wide=True),
        legend([(swatch("bar"), word)]), table([word, word], [[word, word]], words=word, stack=True, numbers=(1,)),
        glossary({word: word}),
    ]  # fmt: skip
    return document("test", word, section(word, "".join(parts), name="part"), lead=word, made=word)


@pytest.mark.parametrize("word", HOSTILE)
def test_words_stay_words(word):
    """No word becomes an element or an attribute; read back, it is the word, but for what no page can show."""
    reader = read_page(everything(word))
    assert set(reader.tags) <= page_checks.ALLOWED
    whole = "".join(reader.words)
    shown = re.sub("[\x00\u202e]", "\ufffd", word)
    assert whole.count(shown) >= 15


@given(st.text())
@settings(max_examples=60, deadline=None)
def test_any_text_can_be_written_and_is_inert(text):
    marked = escaped(text)
    marked.encode("utf-8")
    assert not set('<>"') & set(marked)
    assert "'" not in marked


def test_a_reader_of_pages_notices_what_is_wrong():
    """The checks can fail: a script, a handler, a foreign address, labels on top of each other."""
    page = document("test", "x", paragraph("x"))
    for bad in (
        "<script></script>",
        '<p onclick="x"></p>',
        '<a href="https://example.org">x</a>',
        '<p style="x"></p>',
    ):
        with pytest.raises(AssertionError):
            read_page(page.replace("<p>x</p>", bad))
    over = page_checks.Drawing(100, 20, [page_checks.Drawn(x, 12, "start", 11, 0, "label") for x in (0, 10)])
    with pytest.raises(AssertionError):
        check_drawing(over)
    with pytest.raises(AssertionError):
        check_drawing(page_checks.Drawing(20, 20, over.texts[:1]))


def test_a_page_begins_with_its_kind():
    assert document("demo", "x").startswith(beginning("demo"))
    assert beginning("demo") != beginning("release")


# ---- one palette


def variables(css: str) -> dict[str, str]:
    return dict(re.findall(r"(--[\w-]+):\s*([^;]+);", css))


def test_light_and_dark_name_the_same_colours():
    light, _, rest = style().partition("@media (prefers-color-scheme: dark)")
    dark = variables(rest.partition("}\n}")[0])
    own = {name for name, value in variables(light).items() if value.startswith("#")}
    assert own == set(dark)
    assert len(own) >= 15
    assert all(f"var({name})" in style() for name in own)


def test_the_documentation_has_the_palette_of_the_pages():
    site = (TOP / "website" / "theme" / "style.css").read_text(encoding="utf-8")
    for part in (
        lambda css: css.partition("@media")[0],
        lambda css: css.partition("scheme: dark")[2].partition("}\n}")[0],
    ):
        ours, theirs = variables(part(style())), variables(part(site))
        assert set(theirs) >= {"--ink", "--paper", "--link", "--line"}
        assert {name: ours[name] for name in theirs} == theirs


def test_every_class_of_a_page_is_in_the_style():
    used = {name for found in re.findall(r'class="([^"]+)"', everything("x")) for name in found.split()}
    assert {name for name in used if f".{name}" not in style()} == set()


# ---- tables


def test_a_table_scrolls_in_its_own_box_and_stacks_on_a_telephone():
    made = table(
        ["a", "b & c"],
        [["1", CellMarkup("<b>2</b>")]],
        numbers=(1,),
        words="numbers",
        stack=True,
        bad=frozenset({0}),
    )
    assert made.startswith(
        '<div class="scroll" role="region" tabindex="0" aria-label="numbers"><table class="stack">'
    )
    assert (
        '<tr class="bad"><th scope="row">1</th><td class="number" data-label="b &amp; c"><b>2</b></td></tr>'
        in made
    )
    short = table(["", "long head"], [["1", "2"]], words="", stack=True, short=("", "head"))
    assert 'data-label="head"' in short


# ---- text and axes


@given(st.text(max_size=60), st.floats(15, 300))
def test_fitted_text_fits(text, room):
    shown = fitted(text, room)
    assert text_width(shown) <= room + 0.1
    assert shown == text or shown.endswith("…")


@given(st.floats(-100, 100), st.floats(1e-6, 1e9), st.integers(1, 9))
def test_ticks_are_round_few_and_inside(start, width, most):
    low = start * width
    found = ticks(low, low + width, most)
    assert 1 <= len(found) <= most
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in found)


@given(st.floats(0, 1e9), st.floats(20, 500))
def test_ticks_of_an_axis_never_meet(high, width):
    placed = [
        ((value / high * width) if high else 0.0, text_width(word))
        for value, word in fitting_ticks(0, high, width)
    ]
    for (a, wide), (b, other) in pairwise(placed):
        assert b - a >= (wide + other) / 2


def test_ticks_are_written_with_the_decimals_of_their_step():
    assert tick_words([0.0, 0.5, 1.0]) == ["0.0", "0.5", "1.0"]
    assert tick_words([0.0, 5000.0]) == ["0", "5,000"]
    assert ticks(0, 0, 5) == [0]


# ---- drawings


@given(LABELS, st.floats(0, 1e7), st.text(max_size=50))
@settings(max_examples=60, deadline=None)
def test_labels_of_bars_never_meet(labels, most, unit):
    lines = [
        PlotBar(name, most * i / 50, most * i / 60, most * i / 40, most / 2) for i, name in enumerate(labels)
    ]
    (drawing,) = read_page(document("test", "x", bars(lines, words="bars", unit=unit))).drawings
    assert len(drawing.texts) >= len(labels) + 1


@given(LABELS, LABELS, st.booleans(), st.sampled_from([0, 16]))
@settings(max_examples=60, deadline=None)
def test_labels_of_heat_maps_never_meet(rows, columns, thin, least):
    cells = [[HeatCell(0.3) for _ in columns] for _ in rows]
    drawn = heat(rows, columns, cells, words="heat", thin=thin, least=least)
    (drawing,) = read_page(document("test", "x", drawn)).drawings
    if least:
        assert len(drawing.texts) == len(rows) + len(columns) or thin


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=30),
        st.lists(st.tuples(st.floats(1e-3, 1e9), st.floats(1e-6, 0.5)), max_size=5),
        min_size=1,
        max_size=16,
    ).filter(lambda named: any(named.values())),
    st.sampled_from([340, 720, 960]),
)
@settings(max_examples=60, deadline=None)
def test_names_of_curves_never_meet(named, width):
    drawn = curves(named, across="rows", up="half-width", words="curves", width=width)
    (drawing,) = read_page(document("test", "x", drawn)).drawings
    assert len(drawing.texts) >= sum(map(bool, named.values())) + 2


def test_bars_show_their_numbers():
    """A bar of half the axis is half as long; whiskers and targets stand where their values are."""
    drawn = bars([PlotBar("a", 50.0, 25.0, 75.0, 100.0), PlotBar("b", 100.0, doubtful=True)], words="two")
    lengths = [float(width) for width in re.findall(r'width="([\d.]+)" height="12" class="bar', drawn)]
    assert lengths[1] == pytest.approx(2 * lengths[0], abs=0.2)
    assert 'class="bar doubtful"' in drawn
    assert drawn.count('class="whisker"') == 3
    assert drawn.count('class="target"') == 1


def test_what_is_cut_is_in_a_hint():
    long = "a very long label that no drawing has room for, whatever its width may be"
    drawn = bars([PlotBar(long, 1.0)], words="x")
    assert f"<title>{long}</title>" in drawn
    assert f">{long}</text>" not in drawn
