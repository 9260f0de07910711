"""The audit of validity as a page: what each mode claimed against each analyst, how wide, and what was true."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.output import write_file
from understudy.pages.bars import PlotBar, bars
from understudy.pages.markup import banner, figure, glossary, legend, section, table
from understudy.pages.plot_file import plot_text
from understudy.pages.shell import document
from understudy.pages.svg import swatch

if TYPE_CHECKING:
    from understudy_audit.validity import AttackFinding

TITLE = "What a holdout claims under attack, and what is true"
WORDS = {
    "analyst": "A program that asks a holdout for scores, and chooses each question after the answers before it.",
    "mode": "How a holdout answers. `plain` shows every score as it is, and certifies nothing.",
    "claimed, true": "The score that the last answer told, and that of the population: means over the runs.",
    "half-width": "How far the claim may be from the truth by the mode's certificate.",
    "worst": "The largest distance between a claim and the truth in any run.",
    "all within": "In how many of the runs every single answer was within its certificate.",
}


def draw_findings(findings: Sequence[AttackFinding], path: Path, *, overwrite: bool = False) -> None:
    """Write the page as .html, or its drawings alone as .svg: files that fetch nothing and run nothing."""
    panels = _panels(findings)
    text = plot_text(path, validity_page(findings), panels, words=TITLE)
    write_file(path, text, overwrite=overwrite)


def validity_page(findings: Sequence[AttackFinding]) -> str:
    """The drawings, all findings in a table, and what the words mean."""
    drawn = "".join(figure(body, analyst) for analyst, body in _panels(findings))
    shown = legend(
        [
            (swatch("bar"), "claimed"),
            (swatch("whisker", shape="whisker"), "the certificate's interval around the claim"),
            (swatch("target", shape="target"), "true"),
        ]
    )
    heads = ("analyst", "mode", "claimed", "true", "half-width", "worst", "all within")
    rows = [_row(finding) for finding in findings]
    listed = table(heads, rows, numbers=(2, 3, 4, 5), words="All findings", stack=True, bad=_broken(findings))
    return document(
        "audit of validity",
        TITLE,
        _verdict(findings),
        section("Claims and truths", f'{shown}<div class="grid">{drawn}</div>') if drawn else "",
        section("All findings", listed),
        glossary(WORDS),
        lead="Analysts who try to fool themselves, against every mode of a holdout, on invented data.",
        made="Made by Understudy.",
    )


def _panels(findings: Sequence[AttackFinding]) -> list[tuple[str, str]]:
    """A drawing for each analyst, with a line for each mode that answered."""
    analysts = dict.fromkeys(finding.analyst for finding in findings if finding.runs)
    return [
        (
            analyst,
            bars([_line(f) for f in findings if f.analyst == analyst and f.runs], words=analyst, top=1.0),
        )
        for analyst in analysts
    ]


def _line(finding: AttackFinding) -> PlotBar:
    claimed, width = finding.claimed, finding.width
    return PlotBar(
        finding.mode,
        value=claimed,
        low=max(claimed - width, 0.0),
        high=min(claimed + width, 1.0),
        target=finding.truth,
        hint=f"claimed {claimed:.3f} ± {width:.3f}, true {finding.truth:.3f}",
    )


def _row(finding: AttackFinding) -> tuple[str, ...]:
    if not finding.runs:
        return (finding.analyst, finding.mode, "", "", "", "", f"refused: {finding.refused}")
    stopped = f", stopped early: {finding.refused}" if finding.refused else ""
    numbers = (finding.claimed, finding.truth, finding.width, finding.largest_error)
    within = f"{finding.covered} of {finding.runs} runs{stopped}"
    return (finding.analyst, finding.mode, *(f"{number:.3f}" for number in numbers), within)


def _broken(findings: Sequence[AttackFinding]) -> frozenset[int]:
    """Findings with a run in which some answer was outside its certificate."""
    return frozenset(i for i, finding in enumerate(findings) if finding.covered < finding.runs)


def _verdict(findings: Sequence[AttackFinding]) -> str:
    from understudy_audit.validity import PLAIN

    fooled = sum(f.runs - f.covered for f in findings if f.mode == PLAIN)
    certified = [f for f in findings if f.mode != PLAIN and f.runs]
    missed, runs = sum(f.runs - f.covered for f in certified), sum(f.runs for f in certified)
    told = f"Of {runs:,} runs against modes with a certificate, {missed:,} had an answer outside of it."
    if any(f.mode == PLAIN for f in findings):
        told += f" A plain holdout, which certifies nothing, was fooled in {fooled:,} runs."
    kind = "warn" if missed else "good"
    title = (
        "Some answers were outside their certificate" if missed else "Every answer was within its certificate"
    )
    return banner(kind, title, told + " A certificate may fail with the probability beta.") if runs else ""
