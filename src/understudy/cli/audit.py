"""`understudy audit`: whether the promises hold, for people who do not trust us."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.help import ProgramCommand, ProgramGroup
from understudy.cli.interrupt import if_interrupted
from understudy.cli.options import Json, emit
from understudy.cli.progress import bar
from understudy.cli.terminal import columns_of, say

if TYPE_CHECKING:
    from understudy.noise.samplers import NoiseSource
    from understudy_audit.privacy import Verdict
    from understudy_audit.record import Record, ResumableAudit
    from understudy_audit.report import AuditReport

EXCESS = 3
"""The exit status of a broken promise; 1 and 2 are said of an audit that could not be made."""

audit = typer.Typer(
    cls=ProgramGroup,
    help="Test that the promises hold, by running the mechanisms.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@audit.callback()
def promises() -> None:
    """Test that the promises hold, by running the mechanisms."""


@audit.command(cls=ProgramCommand)
def privacy(
    mechanism: Annotated[
        list[str] | None, typer.Option("--mechanism", help="Only this one; may be given several times.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=4, help="Draws on each table, instead of the effort's.")
    ] = None,
    effort: Annotated[
        str, typer.Option(help="quick (two minutes of one core), usual (ten) or full (hours).")
    ] = "quick",
    seed: Annotated[
        int | None, typer.Option(min=0, help="Repeatable coins instead of the operating system's.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Keep counts in this file, and go on from what it has.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0, help="Stop after about this time; 0 only reports.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="So many mechanisms at a time.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the report as a page.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Run mechanisms on neighbouring tables and certify lower bounds on epsilon. No project is needed.

    Exit status 3 if more than a promise was certified, at a joint error of one in a million.
    """
    from understudy.errors import ParameterError
    from understudy.noise.samplers import SeededNoise, SystemNoise
    from understudy.output import write_file

    if seed is not None and resume is not None:
        raise ParameterError("a seed would give the same coins again after each stop: resume without one")
    if seed is not None and workers > 1:
        raise ParameterError("a seed is one stream of coins: with several workers there is none")
    if out is not None:
        _check_page(out)
    noise: NoiseSource = SystemNoise() if seed is None else SeededNoise(seed)
    coins = "the operating system" if seed is None else f"seed {seed}"
    kept = "what was drawn is gone: --resume FILE would keep it"
    if resume is not None:
        kept = f"what was counted is in {resume}: give the same command again to go on"
    if_interrupted(kept)
    seconds = None if hours is None else hours * 3600
    sitting = Sitting(effort, samples, resume, seconds, workers, quiet=as_json)
    report = sitting.examine(mechanism or [], noise=noise, coins=coins)
    if as_json:
        emit(report.as_dict())
    else:
        say(report.text(columns_of(sys.stdout)))
    if out is not None:
        write_file(out, report.html(), overwrite=True)
    if not report.sound:
        sys.exit(EXCESS)


def _check_page(out: Path) -> None:
    """Before anything is drawn: a page replaces an earlier report, and nothing else."""
    from understudy.errors import ParameterError
    from understudy.output import check_no_dangling_link
    from understudy_audit.audit_page import BEGINNINGS

    check_no_dangling_link(out)
    if out.is_dir() or not out.parent.is_dir():
        raise ParameterError(f"no page can be written to {out}: give a file in a folder that is there")
    if out.exists() and not out.read_bytes().startswith(tuple(start.encode() for start in BEGINNINGS)):
        raise ParameterError(f"{out} exists already and is no report of an audit: give another file")


@dataclass(frozen=True)
class Sitting:
    """How much is drawn, where counts are kept, after how many seconds to leave off, and how many work."""

    effort: str = "quick"
    samples: int | None = None
    resume: Path | None = None
    seconds: float | None = None
    workers: int = 1
    quiet: bool = True

    def examine(self, names: list[str], *, noise: NoiseSource, coins: str) -> AuditReport:
        """Audit the named mechanisms, or all, with one joint error shared out equally among them."""
        from understudy import __version__
        from understudy.errors import ParameterError
        from understudy_audit.privacy import FAMILY_ERROR
        from understudy_audit.record import CHECKPOINTS, SUBJECT_ERROR, Record, ResumableAudit, plan_of
        from understudy_audit.registry import EFFORTS, named
        from understudy_audit.report import AuditReport

        if self.effort not in EFFORTS:
            raise ParameterError(f"an effort is one of {', '.join(EFFORTS)}, not {self.effort!r}")
        subjects = named(names)
        record = Record(plan_of(self.effort, self.samples), self.resume, may_grow=self.seconds != 0)
        may_stop = self.resume is not None or self.seconds is not None
        audits = []
        for subject in subjects:
            effort = EFFORTS[self.effort][subject.size]
            if self.samples is not None:
                effort = replace(effort, samples=self.samples)
            if may_stop:
                audits.append(ResumableAudit(subject, effort, record, CHECKPOINTS, SUBJECT_ERROR))
            else:
                whole = (Fraction(1),)
                audits.append(ResumableAudit(subject, effort, record, whole, FAMILY_ERROR / len(subjects)))
        with closing(record):
            verdicts = self._run(audits, record, noise)
        date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        return AuditReport(__version__, date, coins, FAMILY_ERROR, tuple(verdicts))

    def _run(self, audits: list[ResumableAudit], record: Record, noise: NoiseSource) -> list[Verdict]:
        from understudy_audit.workers import audit_side_by_side

        end = None if self.seconds is None else monotonic() + self.seconds
        steps, verdicts = sum(audit.steps for audit in audits), []
        told, words = 0, "beginning"
        with bar(words, quiet=self.quiet) as tell:

            def done(more: int) -> None:
                nonlocal told
                told += more
                tell(words, told / max(steps, 1))

            if self.workers > 1:
                words = f"running mechanisms, {self.workers} at a time"
                return audit_side_by_side(audits, record, workers=self.workers, end=end, done=done)
            for audit in audits:
                words = f"running {audit.subject.name}"
                done(0)
                verdicts.append(audit.run(noise, goes_on=lambda: end is None or monotonic() < end, done=done))
        return verdicts
