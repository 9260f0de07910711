"""The audit's report as a page: what was promised, what was certified, and what such draws could have seen."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from understudy.pages.bars import PlotBar, bars
from understudy.pages.markup import (
    banner,
    escaped,
    facts,
    figure,
    glossary,
    legend,
    paragraph,
    section,
    table,
)
from understudy.pages.shell import beginning, document
from understudy.pages.svg import swatch

if TYPE_CHECKING:
    from understudy_audit.privacy import Verdict
    from understudy_audit.report import AuditReport

KIND = "audit of privacy"
BEGINNINGS = (
    beginning(KIND),
    "<!doctype html><html lang='en'><meta charset='utf-8'><title>Privacy audit</title>",  # as 0.1 wrote it
)
"""How the page begins, and began: a file that begins so may be replaced by a newer one."""

GLOSSARY = {
    "promised": "The epsilon at that delta of what the runs spend at most.",
    "certified": (
        "A lower bound on epsilon that exact binomial bounds prove from the draws, for the pair of tables and "
        "the event that came nearest to the promise. Above the promise it proves that the promise is broken."
    ),
    "would see": (
        "The least true epsilon that so many draws would have certified as an excess on the most revealing "
        "pair there can be. A fault that is smaller than this could have gone unnoticed."
    ),
    "draws a side": "How often the mechanism was run on each of two neighbouring tables.",
    "pairs": (
        "Pairs of neighbouring tables that were tested to the end, chosen by a pilot from those that were "
        "considered."
    ),
    "epsilon, delta": (
        "With probability at least 1 - delta, nothing becomes more likely by a factor above e to the epsilon "
        "when one person's data change."
    ),
}


def audit_page(
    report: AuditReport,
    verdicts: Sequence[Verdict],
    excesses: Sequence[str],
    words: Sequence[str],
    seen: Sequence[str],
) -> str:
    """The page of a report: its verdicts, the lines on every excess, what explains them, and what was seen."""
    begun = [verdict for verdict in verdicts if verdict.findings]
    kind = "bad" if not report.sound else "good" if begun and not report.unfinished else "warn"
    title = (
        "A promise is broken"
        if not report.sound
        else "No excess was certified"
        if begun
        else "Nothing was tested"
    )
    broken = "".join(f"<li>{escaped(line)}</li>" for line in excesses)
    return document(
        KIND,
        f"Privacy audit of Understudy {report.version}",
        banner(kind, title, report.conclusion),
        f"<ul>{broken}</ul>" if broken else "",
        facts(
            {
                "mechanisms": (f"{len(begun):,}", f"of {len(verdicts):,}"),
                "bounds": f"{sum(len(verdict.findings) for verdict in verdicts):,}",
                "draws": f"{sum(2 * verdict.samples * max(verdict.tested, 1) for verdict in begun):,}",
                "chance of a false alarm": f"{report.error:g}",
                "coins from": report.coins,
                "made": report.date,
            }
        ),
        _chart(begun),
        _listed(verdicts),
        section("What these draws could and could not have seen", "".join(map(paragraph, seen))),
        section("How it was tested", "".join(map(paragraph, words))),
        glossary(GLOSSARY),
        lead=(
            "Every mechanism was run many times on neighbouring tables, as an adversary would, to find out "
            "whether more leaks than is promised."
        ),
        made=f"Understudy {report.version}. This page fetches nothing and runs no script.",
    )


def _chart(begun: Sequence[Verdict]) -> str:
    if not begun:
        return ""
    lines = [
        PlotBar(
            verdict.subject,
            max(verdict.worst.certified, 0.0),
            target=verdict.worst.claimed if isfinite(verdict.worst.claimed) else None,
            hint=(
                f"{verdict.subject}: certified {verdict.worst.certified:.4f}, promised "
                f"{verdict.worst.claimed:.4f}"
            ),
        )
        for verdict in begun
    ]
    return section(
        "Certified against promised",
        legend(
            [
                (swatch("bar"), "epsilon that was certified"),
                (swatch("target", shape="target"), "epsilon that is promised"),
            ]
        )
        + figure(
            bars(lines, words="Certified and promised epsilon of each mechanism", unit="epsilon", width=350)
        )
        + paragraph(
            "A bar that passes its mark would prove a broken promise. A short bar proves nothing either way.",
            "note",
        ),
    )


def _listed(verdicts: Sequence[Verdict]) -> str:
    head = [
        "mechanism", "code", "draws a side", "pairs", "of", "ε promised", "at δ", "ε certified", "would see",
        "verdict",
    ]  # fmt: skip
    bad = frozenset(place for place, verdict in enumerate(verdicts) if not verdict.sound)
    return section(
        "Every mechanism",
        table(
            head,
            [_row(verdict) for verdict in verdicts],
            numbers=range(2, 9),
            words="Verdicts",
            stack=True,
            bad=bad,
        ),
    )


def _row(verdict: Verdict) -> list[str]:
    row = [
        verdict.subject,
        verdict.path,
        f"{verdict.samples:,}",
        pairs_tested(verdict),
        str(verdict.candidates),
    ]
    if not verdict.findings:
        return [*row, "–", "–", "–", "–", "not begun"]
    worst = verdict.worst
    seen = f"{worst.detectable:.4f}" if isfinite(worst.detectable) else "–"
    return [
        *row,
        f"{worst.claimed:.4f}",
        f"{worst.delta:g}",
        f"{worst.certified:.4f}",
        seen,
        judgement(verdict),
    ]


def judgement(verdict: Verdict) -> str:
    """The verdict on a mechanism, in words."""
    if not verdict.sound:
        return "EXCESS"
    return "no excess" if verdict.is_complete else "no excess so far"


def pairs_tested(verdict: Verdict) -> str:
    """How many pairs of tables were tested, of how many that were planned where some are left."""
    return str(verdict.tested) if verdict.is_complete else f"{verdict.tested}/{verdict.planned}"
