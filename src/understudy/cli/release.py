"""`understudy release`: a synthetic table, its answers, its certificate and its report, in one folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.interrupt import if_interrupted, was_interrupted
from understudy.cli.options import Json, ProjectFile, emit, tell_unread
from understudy.cli.progress import release_bar
from understudy.cli.terminal import say, warn
from understudy.errors import ParameterError, RequestConflictError, UnderstudyError
from understudy.releases.method_names import OFFERED

if TYPE_CHECKING:
    from understudy.project import Project
    from understudy.query.workload import Workload
    from understudy.releases.purchases import Purchases
    from understudy.releases.release import Release
    from understudy.releases.unfinished import Unfinished


def release(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder to write; --force replaces one that exists."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="What the release may spend.")] = None,
    project: ProjectFile = Path("understudy.yml"),
    workload: Annotated[
        str, typer.Option(help="all-1-way, all-2-way, all-3-way …, or a YAML, JSON or CSV file of marginals.")
    ] = "all-3-way",
    max_cells: Annotated[
        int | None, typer.Option(min=1, help="Leave out marginals with more cells than this.")
    ] = None,
    method: Annotated[str, typer.Option(help=f"{', '.join(OFFERED[:-1])} or {OFFERED[-1]}.")] = "auto",
    delta: Annotated[
        float | None, typer.Option(help="Of the release; by default that of the project's budget.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="The error, as a rate, to aim at; for methods with a target.")
    ] = None,
    beta: Annotated[float, typer.Option(help="Chance that any of the error bars does not hold.")] = 0.05,
    memory: Annotated[
        str | None,
        typer.Option(help="What the release may take, such as 8GB; half of the machine's if not said."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="CPU time that its fits and its last sweep may each take, as forecast; for adaptive."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cuda has a GPU hold the weights of ic; needs understudy[cuda].")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="An attribute that models will predict from the rows: marginals with it weigh more."
        ),
    ] = None,
    ranges: Annotated[
        str | None, typer.Option(help="Ordered attributes whose ranges are asked: age,hours; by residual.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE, for the method; may be repeated.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=0, max=10**9, help="Rows of the synthetic table; by default as many as people."),
    ] = None,
    within: Annotated[
        str, typer.Option(help="Which value of its bin a number shows: uniform or middle.")
    ] = "uniform",
    csv: Annotated[
        bool, typer.Option("--csv", help="Write the rows as synthetic.csv, too, in the declared writing.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the synthetic rows; protects nobody.")] = 0,
    name: Annotated[
        str, typer.Option(help="A name for this run in the ledger; under it what was bought comes back.")
    ] = "",
    analyst: Annotated[str, typer.Option(help="Who asks, where analysts have limits.")] = "",
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace the folder of an earlier release; the new one is paid anew."),
    ] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Close the unfinished release of this folder; run nothing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Forecast errors, price and memory; spend and write nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Pay a large part of the budget without being asked.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a public stand-in for the table: synthetic rows, answers with errors, a certificate, a report.

    The folder appears complete or not at all. A run that was stopped goes on when the same command is given
    again: what it bought comes back from the ledger and is not paid twice.

    A release that would take more than a twentieth of the whole budget asks first at a terminal; in a script, one
    that would take more than a quarter needs --yes.
    """
    from understudy.project import open_project
    from understudy.releases.folder import check_free
    from understudy.releases.synthetic import as_rule
    from understudy.releases.unfinished import Unfinished
    from understudy.releases.workload_file import as_workload

    if abandon and dry_run:
        raise ParameterError(
            "--abandon closes a release, and --dry-run changes nothing: leave one of them out"
        )
    if abandon and out is None:
        raise ParameterError("name the folder whose unfinished release is closed: --out FOLDER")
    if out is None and not dry_run:
        raise ParameterError("name the folder to write: --out FOLDER, or forecast it with --dry-run")
    opened = open_project(project)
    if abandon and out is not None:
        _abandon(opened, Unfinished(out), as_json=as_json)
        return
    if epsilon is None:
        raise ParameterError("say what the release may spend: --epsilon 1")
    rule = as_rule(within)  # mistakes are found before anything is bought
    wanted = as_workload(opened.domain, workload, max_cells=max_cells)
    given = {
        "memory": None if memory is None else as_bytes(memory),
        "seconds": seconds,
        "device": device,
        "target": target,
        "ranges": None if ranges is None else [name.strip() for name in ranges.split(",")],
    }
    options = {key: value for key, value in given.items() if value is not None} | _options(option or [])
    settings: dict[str, Any] = {
        "epsilon": epsilon, "delta": delta, "method": method, "alpha": alpha, "beta": beta, "analyst": analyst,
        **options,
    }  # fmt: skip
    asked = {"table": opened.declaration.name, "workload": _digest(wanted), **settings}
    note = None if out is None else Unfinished(out)
    started = None if note is None else note.name()
    if out is not None:
        check_free(out, force=force)
        _check_apart(out, opened, project)
    if dry_run:
        from understudy.cli.release_forecast import show_forecast

        run = None if note is None else note.going_on(asked)
        _check_name(run, name)
        tell_unread(opened, project, quiet=as_json)
        show_forecast(opened, wanted, settings | {"rows": rows}, run or name or None, as_json=as_json)
        return
    assert out is not None
    assert note is not None
    with _noted(opened, note, asked, name) as before:
        _confirm(opened, wanted, settings | {"rows": rows}, before, yes=yes, quiet=as_json)
        with release_bar(quiet=as_json) as report:
            made = _made(opened, wanted, settings | {"rows": rows}, before.name, report)
            made.save(out, rows=rows, seed=seed, within=rule, csv=csv, force=force, progress=report)
    if_interrupted(f"the release is whole, in {out}")
    _tell(opened, made, out, before, rows=rows, resumed=started is not None, as_json=as_json)
    tell_unread(opened, project, quiet=as_json)


def _check_name(run: str | None, name: str) -> None:
    """Refuse a name for a folder whose unfinished release has another one."""
    if name and run is not None and run != name:
        raise ParameterError(f"this folder's unfinished release is called {run}: leave --name out, or say so")


def _check_apart(out: Path, opened: Project, project: Path) -> None:
    """A release replaces a folder, and none of the project's own files may be it or in it."""
    from understudy.declaration.file import located
    from understudy.ledger.declared import project_files

    here = out.resolve()
    for own in project_files(opened.declaration, file=located(project)):
        if own.resolve() == here or own.resolve().is_relative_to(here):
            raise ParameterError(f"{out} belongs to the project: name another folder. Nothing was spent")


def _confirm(
    project: Project,
    workload: Workload,
    settings: dict[str, Any],
    before: Purchases,
    *,
    yes: bool,
    quiet: bool,
) -> None:
    """Ask before a large part of the budget is spent; what a run has paid already is not asked about.

    What would be refused is refused first, and a release that would be mostly noise is told so with the price: by
    its forecast, which reads no data.
    """
    from understudy.cli.prices import confirm, is_large
    from understudy.releases.purchases import most_charged
    from understudy.releases.run import check_currency

    ledger, declared = project.ledger, project.declaration.budget
    check_currency(ledger, declared.alone(settings["epsilon"], settings["delta"]))
    whole = most_charged(declared, settings["epsilon"], settings["delta"])
    left = type(whole)(max(whole.units - before.units, 0))
    if yes or not is_large(left, ledger):
        return
    from understudy.releases.forecast import forecast

    found = forecast(project, workload, **{key: value for key, value in settings.items() if key != "analyst"})
    if found.noise_words and not quiet:
        warn(found.noise_words)
    confirm(
        left, ledger, yes=yes, quiet=quiet,
        question="Make it?", refusal="Nothing was released", instead="take a smaller --epsilon",
    )  # fmt: skip


def _made(
    project: Project, workload: Workload, settings: dict[str, Any], run: str, report: Callable[..., None]
) -> Release:
    from understudy.releases.making import release as make

    return make(project, workload, name=run, progress=report, **settings)


def _options(given: list[str]) -> dict[str, Any]:
    """NAME=VALUE as a name and a whole number, a real or a word."""
    options: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise ParameterError(f"an option of a method is written NAME=VALUE, not {text!r}")
        options[key] = _number(value)
    return options


def as_bytes(text: str) -> int:
    """An amount of memory: a number, and a unit of 1000 or 1024 bytes.

    >>> as_bytes("500MB"), as_bytes("2 GiB"), as_bytes("4096")
    (500000000, 2147483648, 4096)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text, re.IGNORECASE)
    if found is None:
        raise ParameterError(f"memory is written such as 500MB or 2GiB, not {text!r}")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " "))


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _digest(workload: Workload) -> str:
    """A name for a workload, so that the same one can be recognised."""
    listed = [
        (clique, str(weight)) for clique, weight in zip(workload.cliques, workload.weights, strict=True)
    ]
    return sha256(repr(listed).encode()).hexdigest()


@contextmanager
def _noted(project: Project, note: Unfinished, asked: dict[str, Any], name: str) -> Iterator[Purchases]:
    """Note the run's name beside the folder while it is not finished, and tell what it bought before.

    Nothing bought, nothing to remember: a refusal leaves no note and no folder.
    """
    from understudy.releases.making import checked, fresh_name
    from understudy.releases.purchases import purchases

    begun, missing = note.name(), note.missing()
    charged = project.ledger.spent.units > 0
    run = note.begin(asked, checked(name) if name else fresh_name(), charged=charged)
    _check_name(run, name)
    before: Purchases | None = None
    try:
        before = purchases(project.ledger, run)
        yield before
    except BaseException as stop:
        bought = purchases(project.ledger, run).requests
        conflict = isinstance(stop, RequestConflictError)  # the same command again would meet it again
        new = before is None or bought != before.requests
        if not bought or (begun is None and (conflict or not new)):
            note.end(folders=missing)
        elif conflict:
            raise RequestConflictError(
                f"the release {run} of {note.folder} cannot go on: the table or its declaration has changed since "
                "it was begun. Close it with --abandon"
            ) from None
        else:
            kept = (
                f"the release {run} is not finished. What it bought is kept: give the same command again to go on "
                "and pay nothing twice, or --abandon to close it"
            )
            if_interrupted(kept)
            if not was_interrupted():
                warn(f"{kept[0].upper()}{kept[1:]}.")
        raise
    note.end()


def _abandon(project: Project, note: Unfinished, *, as_json: bool) -> None:
    from understudy.privacy.cost import UNITS
    from understudy.releases.purchases import paid_before

    try:
        run = note.name()
    except UnderstudyError:  # unreadable: closing it is all that can be done
        run = ""
    if run is None:
        raise ParameterError(f"there is no unfinished release of {note.folder}")
    spent = paid_before(project.ledger, run) / UNITS if run else 0.0
    note.end()
    if as_json:
        emit({"abandoned": run, "spent": {project.ledger.spent.currency: spent}})
        return
    say(
        f"Closed the unfinished release {run}; the {project.ledger.spent.currency} {spent:.6g} that it spent "
        f"stays spent. `--name {run}` would still bring back what it bought."
    )


def _spending(before: Purchases, now: float) -> str:
    """What a release was charged, in words; under a name that was used before, what of it is new."""
    if not before.units:
        return f"spent {before.currency} {now:.6g}"
    if not now:
        return f"nothing new was spent ({before.currency} {before.amount:.6g} was, before)"
    return f"spent {before.currency} {now:.6g}, beside {before.amount:.6g} before"


def _tell(
    project: Project,
    made: Release,
    out: Path,
    before: Purchases,
    *,
    rows: int | None,
    resumed: bool,
    as_json: bool,
) -> None:
    from understudy.cli.prices import left_as_plain, left_told
    from understudy.pages.markup import many
    from understudy.privacy.cost import UNITS
    from understudy.releases.purchases import paid_before
    from understudy.releases.quality import noise_of
    from understudy.releases.quality_part import noise_words

    told, left = made.certificate, project.ledger.remaining
    now = (paid_before(project.ledger, before.name) - before.units) / UNITS
    drawn = made.drawn_rows if rows is None else rows
    longest, usual, beside = (
        half if half is not None and isfinite(half) else None
        for half in (made.largest_half_width, made.usual_half_width, made.largest_half_width_beside)
    )
    noise = noise_of(made)
    if as_json:
        kept = ("method", "mechanism", "theorem", "parameters", "privacy", "cost", "run", "beta", "workload")
        emit(
            {
                "written": str(out),
                "rows": drawn,
                "people": made.rows,
                "answers": made.answered_cells,
                "largest_half_width": longest,
                "largest_half_width_beside": beside,
                "usual_half_width": usual,
                "mostly_noise": noise.is_noise,
                "resumed": resumed,
                **{key: told[key] for key in kept},
                "spent": {left.currency: now},
                **left_as_plain(left, project.ledger.budget),
            }
        )
        return
    width = "no error bars"
    if usual is not None:
        rest = "not all have one" if longest is None else f"all at most ± {longest:,.0f}"
        half = f"{usual:,.0f}" if usual >= 10 else f"{usual:,.1f}"
        width = f"half of their error bars at most ± {half} people, {rest}"
    asked, answered = told["workload"]["queries"], made.answered_cells
    cells = f"in {many(told['workload']['marginals'], 'marginal')}, {width}"
    if answered > asked:
        more = f"{answered - asked:,} in {many(len(made.also), 'marginal')} beside the workload"
        bars = "" if beside is None else f", at most ± {beside:,.0f}"
        cells = f"of which {asked:,} {cells}, and {more}{bars}"
    say(
        f"Wrote {out}: {many(drawn, 'synthetic row')}; {many(answered, 'answer')} {cells}"
        + ("." if usual is None else f"; all hold together with probability {1 - made.beta:g}.")
    )
    if (words := noise_words(noise)) is not None:
        warn(f"{words.title}. {words.text}")
    say(
        f"{told['method']}{': ' if told['theorem'] else ''}{told['theorem']}; {_spending(before, now)}; "
        f"{left_told(left, project.ledger.budget)}. Look at {out / 'report.html'}."
    )
