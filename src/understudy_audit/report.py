"""The audit's report: what was tested, with what power, at what confidence, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from understudy_audit.audit_page import audit_page, judgement, pairs_tested
from understudy_audit.privacy import PairFinding, Verdict


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
        }

    def text(self) -> str:
        lines = [
            f"Privacy audit of Understudy {self.version}, {self.date}, coins from {self.coins}",
            "",
            f"{'mechanism':<22}{'draws a side':>13}{'pairs':>7}{'at δ':>8}{'promised':>10}{'certified':>11}"
            f"{'would see':>11}  verdict",
        ]
        lines += [_line(verdict) for verdict in self.verdicts]
        lines += [f"  {line}" for line in _excess_lines(self.excesses)]
        return "\n".join([*lines, "", *_legend(), "", self.conclusion])

    def html(self) -> str:
        """One page, without scripts and without anything from elsewhere."""
        return audit_page(self, self.verdicts, _excess_lines(self.excesses), _legend())


def _line(verdict: Verdict) -> str:
    begun = f"{verdict.subject:<22}{verdict.samples:>13,}{pairs_tested(verdict):>7}"
    if not verdict.findings:
        return f"{begun}{'-':>8}{'-':>10}{'-':>11}{'-':>11}  not begun"
    worst = verdict.worst
    numbers = (
        f"{worst.delta:>8g}{worst.claimed:>10.4f}{worst.certified:>11.4f}{_number(worst.detectable):>11}"
    )
    return f"{begun}{numbers}  {judgement(verdict)}"


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
        "A bound below the promise does not prove the promise: that is what the proofs and the tests on exact "
        "laws are for. A bound above it proves that the promise is broken.",
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
