"""`understudy ledger`: what was spent, by whom and on what."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.help import ProgramCommand, ProgramGroup
from understudy.cli.options import Json, Overwrite, ProjectFile, check_output, emit
from understudy.cli.terminal import say, say_table
from understudy.layout import shortened
from understudy.percent import percent_of

if TYPE_CHECKING:
    from understudy.declaration.declaration import Declaration
    from understudy.ledger.store import DurableLedger
    from understudy.privacy.budget import Budget

LISTED = 20
"""The newest charges that a terminal shows, unless told otherwise."""

ledger = typer.Typer(
    cls=ProgramGroup,
    help="What was spent, by whom and on what: show, verify, witness or export it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@ledger.command(cls=ProgramCommand)
def show(
    project: ProjectFile = Path("understudy.yml"),
    last: Annotated[
        int | None,
        typer.Option(min=0, help="How many of the newest charges to list: 20, on a page 200 entries."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page into this file: spending, entries, verification."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """What was spent and what remains, and the newest charges; with --html as a page, verified.

    Each charge is a line: its entry in the ledger, when it was made, what it took of the budget, and the question
    as it was asked, with who asked and the request's name in parentheses. Answers and the steps of sessions
    belong to charges; --json lists them all.
    """
    if html is not None:
        _write_page(project, html, last, overwrite=overwrite, as_json=as_json)
        return
    from understudy.declaration.file import located, read
    from understudy.ledger.declared import open_ledger
    from understudy.ledger.export import document

    path = located(project)
    books = open_ledger(read(path), base=path.parent, file=path)
    entries = document(books.url, books.name, answers=False)["entries"] if books.is_begun else []
    spent, left, cap = books.spent, books.remaining, books.budget.cap
    most = LISTED if last is None else last
    newest = entries[max(0, len(entries) - most) :]
    if as_json:
        totals = {"spent": spent.amount, "remaining": left.amount, "cap": cap.amount}
        emit(
            {
                "table": books.name,
                "place": books.place,
                "budget": str(books.budget),
                "currency": cap.currency,
                **books.budget.described(),
                **totals,
                "share": books.budget.share(spent),
                "spent_epsilon": books.budget.spent_epsilon(spent),
                **({"key_delta_spent": float(books.delta_spent)} if books.budget.key_delta else {}),
                "entries": len(entries),
                "newest": newest,
            }
        )
        return
    charges = _charges(entries, books.budget)
    listed = charges[max(0, len(charges) - most) :]
    if listed:
        say_table([("entry", "time (UTC)", "of budget", cap.currency, "question"), *listed], left={1, 4})
    many = f"{len(entries)} entries" if entries else "nothing was charged yet, and no entry written"
    if len(listed) < len(charges):
        many += f", the newest {len(listed)} of {len(charges)} charges listed (--last)"
    say(
        f"{books.name} in {books.place}: {many}; budget {books.budget}; "
        f"{percent_of(spent.units, cap.units)} spent: {cap.currency} {spent.amount:.6g} of {cap.amount:.6g}, "
        f"{left.amount:.6g} left" + _keys(books)
    )
    if not books.budget.is_pure:
        delta = float(books.budget.conversion_delta + books.delta_spent)
        epsilon = books.budget.spent_epsilon(spent)
        told = f"All that was charged is ({epsilon:.4g}, {delta:.3g})-DP together; here rho is"
        meaning = books.budget.filter.described().removeprefix("rho is ").removeprefix("rho of ")
        say(f"{told} {meaning}.")
        if spent.units and (floor := books.budget.floor_told()):
            say(f"{floor[0].upper()}{floor[1:]}.")


def _keys(books: DurableLedger) -> str:
    """What was spent of the part of delta that is for keys, where the budget has one."""
    if not books.budget.key_delta:
        return ""
    spent, cap = float(books.delta_spent), float(books.budget.key_delta)
    return f"; of delta, for keys: {spent:.3g} of {cap:.3g} spent"


def _write_page(project: Path, page: Path, last: int | None, *, overwrite: bool, as_json: bool) -> None:
    """The ledger as a page. It is verified and not opened, so that one that is broken can be shown as well."""
    from understudy import __version__
    from understudy.declaration.file import located
    from understudy.ledger.declared import declared_witness, open_ledger, project_files
    from understudy.ledger.export import document, holds
    from understudy.ledger.export import verify as examine
    from understudy.ledger.statement import MOST_ENTRIES, statement
    from understudy.output import write_file

    declaration, base, url = _ledger_of(project)
    check_output(page, overwrite=overwrite, belonging=project_files(declaration, file=located(project)))
    verdict, entries = None, []
    witness = declared_witness(declaration, base=base)
    name = declaration.name
    if holds(url, name) or (witness is not None and witness.knows(name) and witness.seen(name)[0]):
        verdict = examine(url, name, witness=witness)
        # What was written since is left to the next page: this one shows what was verified.
        entries = document(url, name, answers=False)["entries"][: verdict["entries"]]
    else:
        open_ledger(declaration, base=base, file=located(project)).close()  # refuses one that is lost
    place = (
        str(url.database) if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)
    )
    made = f"Made with understudy {__version__} at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    text = statement(
        declaration.name, declaration.budget, entries, verdict,
        place=place, last=MOST_ENTRIES if last is None else last, made=made,
    )  # fmt: skip
    write_file(page, text, overwrite=overwrite, private=True)
    sound = verdict is None or verdict["sound"]
    if as_json:
        emit({"written": str(page), "entries": len(entries), "sound": sound})
    else:
        say(f"Wrote {page}: {len(entries)} entries, {'sound' if sound else 'NOT SOUND'}.")
    if not sound:
        sys.exit(1)


def _charges(entries: list[dict[str, Any]], budget: Budget) -> list[tuple[str, ...]]:
    """What was charged, for people, a row for each charge, without heads.

    Answers and steps belong to charges and are no rows of their own; what a session asked stands with the charge
    that it led to. Names that were drawn at random tell nothing and are left out.
    """
    from understudy.ledger.interface import SEPARATOR, is_fresh
    from understudy.ledger.statement import asked_words

    called = {entry["number"]: entry["request"] or "" for entry in entries if entry["event"]}
    answered = {entry["debit"] for entry in entries if entry["kind"] == "answer"}
    steps = {
        f"{called.get(entry['debit'], '')}{SEPARATOR}{entry['step']}": entry["question"]
        for entry in entries
        if entry["kind"] == "step" and entry["question"]
    }
    rows: list[tuple[str, ...]] = []
    for entry in entries:
        if not entry["event"] and entry["kind"] != "open":
            continue
        name, cost = entry["request"] or "", type(budget.cap)(int(entry["cost"] or 0))
        said = asked_words(steps.get(name) or entry["question"] or "")
        if entry["kind"] == "open":
            said = "the ledger was opened"
        elif cost.units and entry["number"] not in answered:
            said += ", never answered"
        who = [
            shortened(told, 30) for told in (entry["analyst"] or "", "" if is_fresh(name) else name) if told
        ]
        rows.append(
            (
                str(entry["number"]),
                entry["at"][:16].replace("T", " "),
                percent_of(cost.units, budget.cap.units),
                f"{cost.amount:.4g}",
                shortened(said, 100) + (f" ({', '.join(who)})" if who else ""),
            )
        )
    return rows


@ledger.command(cls=ProgramCommand)
def verify(
    project: ProjectFile = Path("understudy.yml"),
    pld: Annotated[
        bool,
        typer.Option("--pld", help="Compare the total with an accountant of privacy loss distributions."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check every hash, link, price and sum of the ledger by code that shares nothing with what wrote it."""
    from understudy.ledger.declared import declared_witness
    from understudy.ledger.export import document
    from understudy.ledger.export import verify as examine
    from understudy.ledger.verifier import UNITS

    declaration, base, url = _ledger_of(project)
    verdict = examine(url, declaration.name, witness=declared_witness(declaration, base=base))
    if pld:
        from understudy.ledger.pld import compare

        verdict["pld"] = compare(document(url, declaration.name, answers=False))
    if as_json:
        emit(verdict)
    else:
        steps = verdict["steps_checked"]
        answers = verdict["answers_checked"] - steps
        for problem in verdict["problems"]:
            say(f"WRONG  {problem}", fg="red")
        say(
            f"{verdict['entries']} entries: {verdict['debits']} debits, {answers} answers, {steps} steps: "
            f"{'sound' if verdict['sound'] else 'NOT SOUND'}; spent {verdict['spent_units'] / UNITS:.6g} "
            f"{verdict['currency']}\nlast hash {verdict['head']}"
        )
        if pld:
            say(verdict["pld"]["words"])
    if not verdict["sound"]:
        sys.exit(1)


@ledger.command(cls=ProgramCommand)
def export(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write it.")] = Path(
        "ledger_export.py"
    ),
    project: ProjectFile = Path("understudy.yml"),
    answers: Annotated[
        bool, typer.Option("--answers/--no-answers", help="With the answers, or with their hashes only.")
    ] = True,
    as_it_is: Annotated[
        bool,
        typer.Option("--as-it-is", help="Write also a ledger that does not verify; the file says so."),
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write one file that holds the ledger and checks itself: `python FILE` needs nothing but Python.

    The ledger is verified first. One that is not sound is refused, unless it is wanted as it is, for whoever
    examines it: then the file says what was found wrong, and the exit status is 1.
    """
    from understudy.declaration.file import located
    from understudy.ledger.declared import declared_witness, project_files
    from understudy.ledger.export import exported
    from understudy.output import write_file

    declaration, base, url = _ledger_of(project)
    belonging = project_files(declaration, file=located(project))
    check_output(output, overwrite=overwrite, belonging=belonging)
    witness = declared_witness(declaration, base=base)
    found = exported(url, declaration.name, answers=answers, witness=witness, as_it_is=as_it_is)
    write_file(output, found.text, overwrite=overwrite, private=True)
    sound = not found.problems
    if as_json:
        told = {"written": str(output), "entries": found.entries, "head": found.head, "sound": sound}
        emit(told if sound else {**told, "problems": list(found.problems)})
    else:
        for problem in found.problems:
            say(f"WRONG  {problem}", fg="red")
        ending = f"`python {quote(str(output))}` verifies it" if sound else "NOT SOUND, and the file says so"
        say(f"Wrote {output}: {found.entries} entries. {ending[0].upper()}{ending[1:]}.")
    if not sound:
        sys.exit(1)


@ledger.command(cls=ProgramCommand)
def new(project: ProjectFile = Path("understudy.yml"), as_json: Json = False) -> None:
    """Begin a ledger where an earlier one is lost, knowingly: what that one held is forgotten.

    The first question makes a ledger by itself. Only where the file of one is gone, and a coded copy, a release or
    an export tells that there was one, nothing is answered before it is put back, or begun anew by this command.
    Declare what is known to be spent as `opening: {epsilon: …}` first.
    """
    from understudy.declaration.file import located, read
    from understudy.ledger.declared import begin_ledger

    path = located(project)
    books = begin_ledger(read(path), base=path.parent)
    spent, left = books.spent, books.remaining
    if as_json:
        emit({"table": books.name, "place": books.place, "spent": spent.amount, "remaining": left.amount})
        return
    say(
        f"Began the ledger of {books.name!r} anew, in {books.place}: {spent.currency} {spent.amount:.6g} is spent "
        f"by the declaration's `opening`, {left.amount:.6g} left. What an earlier ledger held is not in it."
    )


@ledger.command(cls=ProgramCommand)
def witness(
    project: ProjectFile = Path("understudy.yml"),
    new: Annotated[
        bool, typer.Option("--new", help="Make the declared witness, for the ledger as it stands.")
    ] = False,
    as_json: Json = False,
) -> None:
    """How far the ledger had come when its witness last saw it; `--new` makes the declared witness."""
    from understudy.declaration.file import located, read
    from understudy.errors import LedgerError
    from understudy.ledger.declared import declared_witness, new_witness

    path = located(project)
    declaration = read(path)
    if new:
        found, entries = new_witness(declaration, base=path.parent, file=path)
    else:
        declared = declared_witness(declaration, base=path.parent)
        if declared is None:
            raise LedgerError("no witness is declared", remedy="Declare `witness:`, best on another disk")
        found, (entries, _) = declared, declared.seen(declaration.name)
    if as_json:
        emit({"witness": str(found.path), "table": declaration.name, "entries": entries, "new": new})
        return
    done = "Made" if new else "The witness"
    say(f"{done} {found.path}: it has seen {entries} entries of the ledger of {declaration.name!r}.")


def _ledger_of(project: Path) -> tuple[Declaration, Path, Any]:
    """The declaration, its folder, and where its ledger is; the ledger is not opened, and may be broken."""
    from understudy.declaration.file import located, read
    from understudy.ledger.place import ledger_place

    path = located(project)
    declaration = read(path)
    return declaration, path.parent, ledger_place(declaration.ledger, base=path.parent, environ=os.environ)
