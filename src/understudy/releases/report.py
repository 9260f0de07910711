"""The report of a release: one HTML page that needs nothing else, made of the release and its rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import vl_convert

from understudy.query.marginal import Marginal
from understudy.releases.synthetic import Codes

if TYPE_CHECKING:
    from understudy.releases.release import Release

MOST_ATTRIBUTES = 60
MOST_BARS = 40
"""Of one attribute; the first ones are drawn, and the page says so."""
MOST_STEPS = 40
MOST_MARGINALS = 300

INK, BAR, WHISKER, FAINT = "#1f2933", "#7fb2c4", "#12384a", "#8a97a3"

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 2.5rem 1.5rem 4rem; color: #1f2933; background: #fff;
  font: 16px/1.55 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .4rem; }
p { max-width: 46rem; margin: .4rem 0 .8rem; }
.lead, .note { color: #52606d; }
.note { font-size: .88rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem;
  margin: 1.6rem 0 0; }
.facts div { border: 1px solid #e3e8ec; border-radius: .6rem; padding: .7rem .9rem; background: #f8fafb; }
.facts dt { font-size: .8rem; color: #52606d; }
.facts dd { margin: .1rem 0 0; font-size: 1.15rem; font-weight: 600; font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(21rem, 1fr)); gap: 1rem 1.5rem; }
figure { margin: .6rem 0 0; overflow-x: auto; }
figcaption { font-weight: 600; font-size: .95rem; }
figcaption span { font-weight: 400; color: #52606d; font-size: .85rem; }
svg { max-width: 100%; height: auto; display: block; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #e3e8ec; vertical-align: top; }
td.number, th.number { text-align: right; }
summary { cursor: pointer; color: #12384a; margin: .6rem 0; }
code { font-size: .88em; background: #f1f4f6; padding: .1em .3em; border-radius: .25em; overflow-wrap: anywhere; }
"""


def page(release: Release, codes: Codes) -> str:
    """The page, of `release` and of the rows that were drawn from it, given by their `codes`."""
    told = release.certificate
    sections = [_promise(release), _errors(release), _table(release, codes), _budget(told), _check(told)]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Release of {escape(told['table'])}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Release of {escape(told['table'])}</h1>\n"
        f'<p class="lead">A public stand-in for a table that nobody has to see. Every number on this page was '
        f"paid for from the table's privacy budget, or follows from numbers that were.</p>\n"
        f"{_facts(release)}\n" + "\n".join(sections) + "\n</body>\n</html>\n"
    )


def _facts(release: Release) -> str:
    told = release.certificate
    privacy = told["privacy"]
    facts = {
        "people": f"{release.rows:,.0f}",
        "method": told["method"],
        "privacy": f"ε = {privacy['epsilon']:g}"
        + (f", δ = {privacy['delta']:g}" if privacy["delta"] else ""),
        "spent": f"{told['cost']['currency']} {told['cost']['amount']:.4g}",
        "answers": f"{told['workload']['queries']:,}",
        "largest error": _people(release.largest_error),
    }
    return (
        '<dl class="facts">'
        + "".join(f"<div><dt>{k}</dt><dd>{escape(v)}</dd></div>" for k, v in facts.items())
        + "</dl>"
    )


def _people(error: float | None) -> str:
    return f"± {error:,.0f} people" if error is not None and isfinite(error) else "not certified"


def _promise(release: Release) -> str:
    told = release.certificate
    privacy = told["privacy"]
    who = (
        "one person's row replaced by any other"
        if release.rows_are_public
        else "one person's rows added or removed"
    )
    certified = [a for a in release.answers if a.basis != "uncertified"]
    words = (
        f"Whatever anybody does with this release, it would have looked almost the same with {who}: "
        f"the probability of anything it shows changes by a factor of at most e<sup>{privacy['epsilon']:g}</sup>"
        + (f", up to a probability of {privacy['delta']:g}" if privacy["delta"] else "")
        + ". "
    )
    if certified:
        words += (
            f"{len(certified):,} of {len(release.answers):,} marginals carry error bars, and all of these hold "
            f"together with probability {1 - told['beta']:g}. "
        )
    else:
        words += "No error bar of this release is certified. "
    theorem = f"Theorem: {escape(told['theorem'])}. " if told["theorem"] else ""
    rows = "".join(
        f"<tr><th>{escape(_words(key))}</th><td>{escape(_value(value))}</td></tr>"
        for key, value in told["parameters"].items()
    )
    table = f"<table><tbody>{rows}</tbody></table>" if rows else ""
    return (
        f"<section><h2>What is promised</h2><p>{words}</p>"
        f'<p class="note">Mechanism: {escape(str(told["mechanism"]))}. {theorem}</p>{table}</section>'
    )


def _words(key: Any) -> str:
    return str(key).replace("_", " ")


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = str(value)
    if isinstance(value, dict):
        text = ", ".join(f"{_words(key)} {_value(part)}" for key, part in value.items())
    if isinstance(value, list):
        text = ", ".join(map(_value, value))
    return text if len(text) <= 200 else f"{text[:200]} …"


# ---- errors


def _errors(release: Release) -> str:
    answers = release.certificate["answers"][: len(release.answers)]
    points = [
        {
            "marginal": ", ".join(entry["by"]) or "everybody",
            "error": entry["error"],
            "cells": release.domain.size(entry["by"]),
            "basis": entry["basis"],
        }
        for entry in answers
    ]
    drawn = [point for point in points if point["error"] is not None]
    rows = "".join(
        f"<tr><td>{escape(p['marginal'])}</td><td class=number>{p['cells']:,}</td>"
        f"<td class=number>{_people(p['error'])}</td><td>{escape(p['basis'])}</td></tr>"
        for p in points[:MOST_MARGINALS]
    )
    more = (
        f'<p class="note">The other {len(points) - MOST_MARGINALS:,} are in answers.parquet.</p>'
        if len(points) > MOST_MARGINALS
        else ""
    )
    return (
        "<section><h2>Errors</h2>"
        "<p>The half-width of each marginal's error bars, in people: no cell of it is further from the table's "
        f"own count.</p>{_error_chart(drawn) if drawn else '<p>No marginal of this release is certified.</p>'}"
        f"<details><summary>All marginals</summary><table><thead><tr><th>marginal</th><th class=number>cells</th>"
        f"<th class=number>error</th><th>basis</th></tr></thead><tbody>{rows}</tbody></table>{more}</details>"
        "</section>"
    )


def _error_chart(points: list[dict[str, Any]]) -> str:
    widths = np.array([p["error"] for p in points])
    if len(points) <= 30:
        return _figure(
            alt.Chart(alt.Data(values=points), width=520, height=alt.Step(18))
            .mark_bar(color=BAR, height={"band": 0.7})
            .encode(
                x=alt.X("error:Q", title="half-width, people", axis=alt.Axis(tickCount=6)),
                y=alt.Y("marginal:N", sort="x", title=None, axis=alt.Axis(labelLimit=260)),
            )
        )
    counts, edges = np.histogram(widths, bins=min(30, len(set(widths.tolist())) + 1))
    bars = [
        {"from": float(edges[i]), "to": float(edges[i + 1]), "marginals": int(counts[i])}
        for i in range(len(counts))
    ]
    return _figure(
        alt.Chart(alt.Data(values=bars), width=620, height=180)
        .mark_bar(color=BAR, stroke="white")
        .encode(
            x=alt.X("from:Q", title="half-width, people", bin="binned"),
            x2="to:Q",
            y=alt.Y("marginals:Q", title="marginals"),
        )
    )


# ---- the synthetic table


def _table(release: Release, codes: Codes) -> str:
    rows = len(next(iter(codes.values())))
    figures = list(_attributes(release, codes, rows))
    left = len(release.domain) - len(figures)
    more = f'<p class="note">{left:,} more attributes are in synthetic.parquet.</p>' if left else ""
    return (
        f"<section><h2>The synthetic table</h2><p>{rows:,} rows were drawn from the stand-in. Bars: "
        "how many people they stand for. Whiskers: the release's own answer with its error bar, where it has "
        f'one.</p><div class="grid">{"".join(figures)}</div>{more}</section>'
    )


def _attributes(release: Release, codes: Codes, rows: int) -> Iterator[str]:
    scale = release.rows / max(rows, 1)
    for attribute in release.domain.attributes[:MOST_ATTRIBUTES]:
        counts = np.bincount(codes[attribute.name], minlength=attribute.size)
        answer = release.answer(Marginal(release.domain, (attribute.name,)))
        certified = bool(np.isfinite(answer.error).all())
        bars = [
            {
                "cell": label,
                "order": i,
                "people": float(count) * scale,
                "low": float(max(value - error, 0)) if certified else None,
                "high": float(min(value + error, release.rows)) if certified else None,
            }
            for i, (label, count, value, error) in enumerate(
                zip(attribute.labels, counts, answer.value, answer.error, strict=True)
            )
        ][:MOST_BARS]
        note = f"first {MOST_BARS} of {attribute.size:,} cells" if attribute.size > MOST_BARS else ""
        width = f"± {float(answer.error.max()):,.0f}" if certified else "no error bar"
        caption = f"{escape(attribute.name)} <span>{', '.join(part for part in (width, note) if part)}</span>"
        yield _figure(_bars(bars, certified=certified), caption)


def _bars(bars: list[dict[str, Any]], *, certified: bool) -> Any:
    cells = alt.Y("cell:N", sort=alt.EncodingSortField("order"), title=None, axis=alt.Axis(labelLimit=130))
    base = alt.Chart(alt.Data(values=bars), width=210, height=alt.Step(16))
    chart = base.mark_bar(color=BAR, height={"band": 0.72}).encode(
        x=alt.X("people:Q", title=None, axis=alt.Axis(tickCount=4)), y=cells
    )
    if not certified:
        return chart
    whisker = base.mark_rule(color=WHISKER, strokeWidth=1.6).encode(x="low:Q", x2="high:Q", y=cells)
    ends = [
        base.mark_tick(color=WHISKER, thickness=1.6, height=7).encode(x=f"{end}:Q", y=cells)
        for end in ("low", "high")
    ]
    return alt.layer(chart, whisker, *ends)


# ---- the budget, and how to check all this


def _budget(told: dict[str, Any]) -> str:
    paid: dict[str, float] = {}
    for step in told["steps"]:
        paid[step["step"]] = paid.get(step["step"], 0.0) + step["cost"]
    currency = told["cost"]["currency"]
    bars = [{"step": name, "order": i, "cost": cost} for i, (name, cost) in enumerate(paid.items())]
    chart = (
        alt.Chart(alt.Data(values=bars[:MOST_STEPS]), width=520, height=alt.Step(18))
        .mark_bar(color=BAR, height={"band": 0.7})
        .encode(
            x=alt.X("cost:Q", title=currency, axis=alt.Axis(tickCount=6)),
            y=alt.Y("step:N", sort=alt.EncodingSortField("order"), title=None, axis=alt.Axis(labelLimit=260)),
        )
    )
    more = (
        f'<p class="note">The first {MOST_STEPS} of {len(bars):,} steps are drawn; all of them are in '
        "certificate.json.</p>"
        if len(bars) > MOST_STEPS
        else ""
    )
    return (
        f"<section><h2>What it cost</h2><p>{currency} {told['cost']['amount']:.6g} in "
        f"{_many(len(bars), 'step')}, in the order in which they were bought.</p>"
        f"{_figure(chart) if bars else ''}{more}</section>"
    )


def _check(told: dict[str, Any]) -> str:
    requests = "".join(f"<li><code>{escape(name)}</code></li>" for name in told["requests"][:MOST_STEPS])
    more = (
        f"<li>… and {len(told['requests']) - MOST_STEPS:,} more</li>"
        if len(told["requests"]) > MOST_STEPS
        else ""
    )
    return (
        "<section><h2>How to check it</h2><p>The ledger of the table holds a debit for each of these requests; "
        "<code>understudy ledger verify</code> works out every price again.</p>"
        f"<details><summary>{_many(len(told['requests']), 'request')} of the run "
        f"<code>{escape(told['run'])}</code></summary><ul>{requests}{more}</ul></details>"
        f'<p class="note">Domain <code>{told["domain"]["digest"]}</code>. Neighbours: '
        f"{escape(told['privacy']['neighbours'])}. Made with {escape(told['program'])}.</p></section>"
    )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _figure(chart: Any, caption: str = "") -> str:
    styled = chart.configure(
        background="transparent",
        font="system-ui, Segoe UI, Helvetica Neue, Arial, sans-serif",
        # Browsers draw labels a little wider than the renderer that lays them out: room for that.
        padding={"left": 28, "right": 12, "top": 5, "bottom": 5},
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=INK, titleColor=FAINT, titleFontWeight="normal", gridColor="#eef1f3",
            domain=False, ticks=False, labelPadding=6, labelFontSize=11, titleFontSize=11,
        ),
    )  # fmt: skip
    svg = vl_convert.vegalite_to_svg(styled.to_dict())
    title = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f"<figure>{title}{svg}</figure>"
