"""The report of a release: one HTML page that needs nothing else, made of the release and its rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.pages.bars import PlotBar, bars
from understudy.pages.markup import (
    details,
    escaped,
    facts,
    figure,
    glossary,
    legend,
    many,
    paragraph,
    section,
    table,
)
from understudy.pages.shell import document
from understudy.pages.svg import swatch
from understudy.releases.quality import QualityJudge, ReleaseQuality, is_doubtful, mean_distance
from understudy.releases.quality_part import pairs_part, quality_part, warning
from understudy.releases.report_words import (
    BASES,
    GLOSSARY,
    named,
    people,
    percent,
    small_marginal_words,
    step_words,
    value_words,
)
from understudy.releases.synthetic import Codes
from understudy.releases.utility import predictions
from understudy.releases.utility_part import utility_part

if TYPE_CHECKING:
    from understudy.answer.answer import Answer
    from understudy.releases.release import Release

MOST_ATTRIBUTES = 60
MOST_BARS = 40
"""Of one attribute; the first ones are drawn, and the page says so."""
MOST_STEPS = 40
MOST_MARGINALS = 300
MOST_ERRORS = 30
"""Marginals whose errors are drawn one by one; more are drawn as a histogram."""


def page(release: Release, codes: Codes) -> str:
    """The page, of `release` and of the rows that were drawn from it, given by their `codes`."""
    told = release.certificate
    judge = QualityJudge(release, codes)
    shown = [attribute.name for attribute in release.domain.attributes[:MOST_ATTRIBUTES]]
    quality = judge.judge(shown)
    return document(
        "release",
        f"Release of {told['table']}",
        warning(quality),
        _facts(release, quality),
        quality_part(quality),
        _table(release, judge, shown),
        pairs_part(release, judge, quality),
        utility_part(predictions(release, codes), release.beta),
        _promise(release),
        _errors(release),
        _budget(told),
        _check(told),
        glossary(GLOSSARY),
        lead=(
            "A public stand-in for a table that nobody has to see. Every number on this page was paid for "
            "from the table's privacy budget, or follows from numbers that were."
        ),
        made=f"Made with {told['program']}. This page fetches nothing and runs no script.",
    )


def _facts(release: Release, quality: ReleaseQuality) -> str:
    told = release.certificate
    privacy = told["privacy"]
    delta = f"δ = {privacy['delta']:g}" if privacy["delta"] else ""
    shown: dict[str, str | tuple[str, str]] = {
        "people": (f"{release.rows:,.0f}", "that the release stands for"),
        "privacy": (f"ε = {privacy['epsilon']:g}", delta),
    }
    for name, judged in (("columns", quality.columns), ("pairs of columns", quality.pairs)):
        means = mean_distance(judged)
        if means is not None:
            expected, sampling = means
            shown[f"score, {name}"] = (
                percent(1 - expected),
                f"expected in their right cell; in a fresh sample {percent(1 - sampling)}",
            )
    shown["answers"] = (
        f"{told['workload']['queries']:,}",
        f"cells in {many(told['workload']['marginals'], 'marginal')}",
    )
    shown["longest error bar"] = people(release.largest_half_width), "in the workload"
    if (beside := release.largest_half_width_beside) is not None:
        shown["longest beside it"] = people(beside), f"in {many(len(release.also), 'marginal')} told as well"
    return facts(shown)


def _promise(release: Release) -> str:
    told = release.certificate
    privacy = told["privacy"]
    who = (
        "one person's row replaced by any other"
        if release.rows_are_public
        else "one person's rows added or removed"
    )
    told_of = (*release.answers, *release.also)
    certified = sum(answer.basis != "uncertified" for answer in told_of)
    words = (
        f"Whatever anybody does with this release, it would have looked almost the same with {who}: the "
        f"probability of anything it shows changes by a factor of at most e<sup>{privacy['epsilon']:g}</sup>"
        + (f", up to a probability of {privacy['delta']:g}" if privacy["delta"] else "")
        + ". "
    )
    if certified:
        words += (
            f"{certified:,} of {len(told_of):,} marginals carry error bars, and all of these hold "
            f"together with probability {1 - told['beta']:g}."
        )
    else:
        words += "No error bar of this release is certified."
    small = small_marginal_words(told)
    theorem = f" What its error bars rest on: {told['theorem']}." if told["theorem"] else ""
    full = "" if told["mechanism"] == told["method"] else f" ({told['mechanism']})"
    method = paragraph(f"Method: {told['method']}{full}.{theorem}{' ' + small if small else ''}", "note")
    settings = [
        [name, value_words(value), meaning]
        for name, meaning, value in ((*named(key), value) for key, value in told["parameters"].items())
    ]
    shown = table(
        ["setting", "value", "what it means"],
        settings,
        numbers=(1,),
        stack=True,
        words="Settings of the method",
    )
    return section(
        "What is promised", f"<p>{words}</p>{method}{details('How it was made', shown) if settings else ''}"
    )


# ---- errors


def _errors(release: Release) -> str:
    answers = release.certificate["answers"][: len(release.answers) + len(release.also)]
    points = [
        (
            ", ".join(entry["by"]) or "everybody",
            release.domain.size(entry["by"]),
            entry.get("half_width", entry["error"]),  # folders of 0.1 have intervals around their values
            entry["basis"],
            "in the workload" if place < len(release.answers) else "beside it",
        )
        for place, entry in enumerate(answers)
    ]
    drawn = sorted((error, name) for name, _, error, *_ in points if error is not None)
    rows = [
        [name, f"{cells:,}", people(error), BASES.get(basis, basis), told]
        for name, cells, error, basis, told in points[:MOST_MARGINALS]
    ]
    listed = table(
        ["columns", "cells", "error bar", "what it rests on", "told"],
        rows,
        numbers=(1, 2),
        words="Errors of all marginals",
    )
    if len(points) > MOST_MARGINALS:
        listed += paragraph(f"The other {len(points) - MOST_MARGINALS:,} are in answers.parquet.", "note")
    return section(
        "Error bars of the answers",
        paragraph(
            "Half of the length of each marginal's longest error bar, in people. The table's own counts lie in "
            "these bars; a released answer need not lie in the middle of its own."
            + (
                " The noise was planned for the workload: bars of marginals that are told beside it can be "
                "longer."
                if release.also
                else ""
            )
        )
        + (_error_chart(drawn) if drawn else paragraph("No marginal of this release is certified."))
        + details("All marginals", listed),
    )


def _error_chart(errors: list[tuple[float, str]]) -> str:
    """One bar for each marginal where they are few, else how many marginals have error bars of which width."""
    if len(errors) <= MOST_ERRORS:
        lines = [PlotBar(name, error, hint=people(error)) for error, name in errors]
        return figure(bars(lines, words="Half-width of the error bars", unit="half-width, people", width=340))
    widths = np.array([error for error, _ in errors])
    counts, edges = np.histogram(widths, bins=min(12, len(set(widths.tolist())) + 1))
    lines = [
        PlotBar(f"± {edges[i]:,.0f} to {edges[i + 1]:,.0f}", float(count), hint=many(int(count), "marginal"))
        for i, count in enumerate(counts)
    ]
    return figure(
        bars(lines, words="Marginals by the half-width of their error bars", unit="number of marginals")
    )


# ---- the synthetic table


def _table(release: Release, judge: QualityJudge, shown: list[str]) -> str:
    figures = list(_attributes(release, judge, shown))
    left = len(release.domain) - len(figures)
    more = paragraph(f"{many(left, 'more attribute')} are in synthetic.parquet.", "note") if left else ""
    rows = len(next(iter(judge.codes.values()))) if judge.codes else 0
    return section(
        "The columns of the synthetic table",
        paragraph(f"{rows:,} rows were drawn from the stand-in; a bar is how many people they stand for.")
        + legend(
            [
                (swatch("bar"), "synthetic rows, as people"),
                (swatch("bar doubtful"), "the error bar is at least as large as the count"),
                (swatch("whisker", shape="whisker"), "the released answer with its error bar"),
            ]
        )
        + f'<div class="grid">{"".join(figures)}</div>{more}',
    )


def _attributes(release: Release, judge: QualityJudge, shown: list[str]) -> Iterator[str]:
    for name in shown:
        attribute = release.domain[name]
        answer, rows = judge.shown((name,))
        counts = np.zeros(answer.value.shape) if rows is None else rows
        lines = [
            column_bar(label, float(counts[i]), answer, i)
            for i, label in enumerate(attribute.labels[:MOST_BARS])
        ]
        note = f"first {MOST_BARS} of {attribute.size:,} cells" if attribute.size > MOST_BARS else ""
        width = "no error bar"
        if answer.low is not None and answer.high is not None:
            width = f"± {float((answer.high - answer.low).max() / 2):,.0f}"
        remark = ", ".join(part for part in (width, note) if part)
        yield figure(bars(lines, words=f"Synthetic rows by {name}"), name, remark)


def column_bar(label: str, count: float, answer: Answer, i: int) -> PlotBar:
    """Cell `i` of a column: the rows as people, and the released answer with its error bar where there is one."""
    said = f"{label}: {count:,.0f} people in the rows"
    if answer.low is None or answer.high is None:
        return PlotBar(label, count, hint=said)
    value, low, high = float(answer.value[i]), float(answer.low[i]), float(answer.high[i])
    doubtful = bool(is_doubtful(answer.value, answer.low, answer.high)[i])
    said += f"; answer {value:,.0f}, between {low:,.0f} and {high:,.0f}"
    return PlotBar(label, count, low, high, doubtful=doubtful, hint=said)


# ---- the budget, and how to check all this


def _budget(told: dict[str, Any]) -> str:
    paid: dict[str, float] = {}
    for step in told["steps"]:
        paid[step["step"]] = paid.get(step["step"], 0.0) + step["cost"]
    currency, total = told["cost"]["currency"], sum(paid.values()) or 1.0
    lines = [
        PlotBar(step_words(name), cost / total * 100, hint=f"{name}: {currency} {cost:.4g}")
        for name, cost in paid.items()
    ][:MOST_STEPS]
    drawn = figure(
        bars(
            lines, words="Part of the price that each step cost", unit="% of the price", width=480, labels=0.6
        ),
        wide=True,
    )
    more = (
        paragraph(
            f"The first {MOST_STEPS} of {len(paid):,} steps are drawn; all of them are in certificate.json.",
            "note",
        )
        if len(paid) > MOST_STEPS
        else ""
    )
    return section(
        "What it cost",
        paragraph(
            f"{currency} {told['cost']['amount']:.6g} of the table's privacy budget, in "
            f"{many(len(paid), 'step')}, shown in the order in which they were bought. What is spent is "
            "spent for ever."
        )
        + (drawn if lines else "")
        + more,
    )


def _check(told: dict[str, Any]) -> str:
    requests = "".join(f"<li><code>{escaped(name)}</code></li>" for name in told["requests"][:MOST_STEPS])
    left = len(told["requests"]) - MOST_STEPS
    more = f"<li>… and {left:,} more</li>" if left > 0 else ""
    return section(
        "How to check it",
        "<p>The ledger of the table holds a debit for each of these requests; <code>understudy ledger "
        "verify</code> works out every price again.</p>"
        + details(
            f"{many(len(told['requests']), 'request')} of the run {told['run']}", f"<ul>{requests}{more}</ul>"
        )
        + f'<p class="note">Domain <code>{escaped(told["domain"]["digest"])}</code>. Neighbours: '
        f"{escaped(told['privacy']['neighbours'])}.</p>",
    )
