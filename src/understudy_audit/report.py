"""The audit's report: what was tested, with what power, at what confidence, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from understudy.layout import folded, table
from understudy_audit.audit_page import audit_page, judgement, pairs_tested
from understudy_audit.privacy import PairFinding, Verdict
from understudy_audit.sight import LIMITS, sight


@dataclass(frozen=True)
class AuditReport:
    """Verdicts that hold together: the chance of any false alarm among all of them is at most `error`."""

    version: str
    date: str
    coins: str
    error: float
    verdicts: tuple[Verdict, ...]

    @property
    def sound(self) -> bool:
        return all(verdict.sound for verdict in self.verdicts)

    @property
    def excesses(self) -> list[tuple[Verdict, PairFinding]]:
        return [(verdict, found) for verdict in self.verdicts for found in verdict.findings if found.excess]

    @property
    def unfinished(self) -> list[str]:
        """Mechanisms that did not get all the draws that were planned for them."""
        return [verdict.subject for verdict in self.verdicts if not verdict.is_complete]

    @property
    def conclusion(self) -> str:
        tests = sum(len(verdict.findings) for verdict in self.verdicts)
        begun = sum(bool(verdict.findings) for verdict in self.verdicts)
        told = f"{begun} mechanisms, {tests:,} bounds, joint confidence 1 - {self.error:g}"
        if not begun:
            return "Nothing was tested."
        if self.sound:
            left = f" Not finished: {', '.join(self.unfinished)}." if self.unfinished else ""
            return f"No excess over a promise was certified ({told}).{left}"
        broken = sorted({verdict.subject for verdict, _ in self.excesses})
        return f"PROMISE BROKEN by {', '.join(broken)} ({told})."

    def as_dict(self) -> dict[str, Any]:
        return {
            "understudy": self.version,
            "date": self.date,
            "coins": self.coins,
            "error": self.error,
            "sound": self.sound,
            "conclusion": self.conclusion,
            "mechanisms": [_plain(verdict) for verdict in self.verdicts],
            "limits": LIMITS,
        }

    def text(self, columns: int | None = None) -> str:
        """The report for people, in lines of at most so many columns."""
        heads = (
            "mechanism", "draws a side", "pairs", "at δ", "promised", "certified", "would see", "verdict",
        )  # fmt: skip
        told = [
            *(f"  {line}" for line in _excess_lines(self.excesses)),
            "",
            "What these draws could and could not have seen, at the joint confidence:",
            *(f"  {sight(verdict)}" for verdict in self.verdicts),
            LIMITS,
            "",
            *_legend(),
            "",
            self.conclusion,
        ]
        title = f"Privacy audit of Understudy {self.version}, {self.date}, coins from {self.coins}"
        rows = [heads, *map(_row, self.verdicts)]
        words = [line for text in told for line in folded(text, columns, hang=2 * text.startswith(" "))]
        return "\n".join([*folded(title, columns), "", *table(rows, columns, left={0, 7}), *words])

    def html(self) -> str:
        """One page, without scripts and without anything from elsewhere."""
        seen = [*map(sight, self.verdicts), LIMITS]
        return audit_page(self, self.verdicts, _excess_lines(self.excesses), _legend(), seen)


def _row(verdict: Verdict) -> tuple[str, ...]:
    begun = (verdict.subject, f"{verdict.samples:,}", pairs_tested(verdict))
    if not verdict.findings:
        return (*begun, "-", "-", "-", "-", "not begun")
    worst = verdict.worst
    numbers = (
        f"{worst.delta:g}",
        f"{worst.claimed:.4f}",
        f"{worst.certified:.4f}",
        _number(worst.detectable),
    )
    return (*begun, *numbers, judgement(verdict))


def _number(value: float) -> str:
    return f"{value:.4f}" if isfinite(value) else "-"


def _legend() -> list[str]:
    return [
        "Each mechanism was run, through the code that answers analysts, on pairs of neighbouring tables: those "
        "that looked worst in a pilot. An event was learnt from one part of the draws and counted on the rest. "
        "Promised: the epsilon at that delta of what the runs spend at most; of runs after a fixed beginning "
        "(mwem-begun, adaptive-begun and the like), of what they spend after it.",
        "Certified: the epsilon that exact binomial bounds prove at the joint confidence, for the pair and event "
        "that came nearest to the promise. Would see: the least epsilon that so many draws would have certified "
        "as an excess on the most revealing pair there can be, randomised response; '-' where none would.",
        "A bound above the promise proves that the promise is broken.",
    ]


def _excess_lines(excesses: Sequence[tuple[Verdict, PairFinding]]) -> list[str]:
    return [
        f"{verdict.subject}, {found.pair}: {found.event}: {found.hits[0]:,} of {found.trials[0]:,} against "
        f"{found.hits[1]:,} of {found.trials[1]:,}, so epsilon ≥ {found.certified:.4f} at delta {found.delta:g}; "
        f"promised {found.claimed:.4f}"
        for verdict, found in excesses
    ]


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "mechanism": verdict.subject,
        "code": verdict.path,
        "samples": verdict.samples,
        "pairs_tested": verdict.tested,
        "pairs_planned": verdict.planned,
        "pairs_considered": verdict.candidates,
        "complete": verdict.is_complete,
        "sound": verdict.sound,
        "sight": sight(verdict),
        "findings": [
            {
                "pair": found.pair,
                "order": found.order,
                "delta": found.delta,
                "promised": found.claimed,
                "certified": found.certified,
                "would_see": found.detectable if isfinite(found.detectable) else None,
                "estimated": found.estimated if isfinite(found.estimated) else None,
                "event": found.event,
                "hits": list(found.hits),
                "trials": list(found.trials),
                "excess": found.excess,
            }
            for found in verdict.findings
        ],
    }
