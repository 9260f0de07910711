"""`understudy audit`: whether the promises hold, for people who do not trust us."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.options import Json, emit

if TYPE_CHECKING:
    from understudy.audit.report import AuditReport
    from understudy.noise import NoiseSource

audit = typer.Typer(help="Test that the promises hold, by running the mechanisms.", no_args_is_help=True)


@audit.callback()
def promises() -> None:
    """Test that the promises hold, by running the mechanisms."""


@audit.command()
def privacy(
    mechanism: Annotated[
        list[str] | None, typer.Option("--mechanism", help="Only this one; may be given several times.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=4, help="Draws on each table, instead of the effort's.")
    ] = None,
    effort: Annotated[
        str, typer.Option(help="quick (a minute), usual (many minutes) or full (hours).")
    ] = "quick",
    seed: Annotated[
        int | None, typer.Option(min=0, help="Repeatable coins instead of the operating system's.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the report as a page.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Run mechanisms on neighbouring tables and certify lower bounds on epsilon. No project is needed.

    Exit status 1 if more than a promise was certified, at a joint error of one in a million.
    """
    from understudy.noise import SeededNoise, SystemNoise

    noise: NoiseSource = SystemNoise() if seed is None else SeededNoise(seed)
    coins = "the operating system" if seed is None else f"seed {seed}"
    report = examine(mechanism or [], effort=effort, samples=samples, noise=noise, coins=coins)
    if out is not None:
        out.write_text(report.html(), encoding="utf-8")
    if as_json:
        emit(report.as_dict())
    else:
        typer.echo(report.text())
    if not report.sound:
        sys.exit(1)


def examine(
    names: list[str], *, effort: str, samples: int | None, noise: NoiseSource, coins: str
) -> AuditReport:
    """Audit the named mechanisms, or all, with one joint error shared out equally among them."""
    from understudy import __version__
    from understudy.audit.privacy import FAMILY_ERROR
    from understudy.audit.privacy import audit as audited
    from understudy.audit.registry import EFFORTS, named
    from understudy.audit.report import AuditReport
    from understudy.errors import ParameterError

    if effort not in EFFORTS:
        raise ParameterError(f"an effort is one of {', '.join(EFFORTS)}, not {effort!r}")
    chosen = named(names)
    verdicts = []
    for subject in chosen:
        plan = EFFORTS[effort][subject.size]
        verdicts.append(
            audited(
                subject,
                samples=samples or plan.samples,
                noise=noise,
                error=FAMILY_ERROR / len(chosen),
                keep=plan.pairs,
                pilot=plan.pilot,
            )
        )
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return AuditReport(__version__, date, coins, FAMILY_ERROR, tuple(verdicts))
