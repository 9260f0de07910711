"""`understudy server`: backups of a server's books and state, the way back, and its clock."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.help import ProgramCommand, ProgramGroup
from understudy.cli.interrupt import if_interrupted
from understudy.cli.options import Json, emit
from understudy.cli.server_options import HERE, ServerFile, by_terminal, config_of, opened_store
from understudy.cli.terminal import say, warn

server = typer.Typer(
    cls=ProgramGroup,
    help="Look after a server: back up and restore its ledgers, state and witnesses; old questions; its clock.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@server.command(cls=ProgramCommand)
def backup(
    folder: Annotated[Path, typer.Argument(help="A new folder for the copies.")],
    server: ServerFile = HERE,
    as_json: Json = False,
) -> None:
    """Copy the ledgers, server.db and what the witnesses have seen, also while the server runs."""
    from understudy.server.backup import backup as copy

    if_interrupted(f"the copies in {folder} are no backup: remove them")
    listed = copy(config_of(server), folder)
    if as_json:
        emit(listed)
        return
    for name, table in listed["tables"].items():
        if table["postgres"]:
            warn(f"The ledger of {name} is on Postgres and NOT in this backup: copy it there, with pg_dump.")
            continue
        seen = (
            ""
            if table["witness"] is None
            else f", of which its witness has seen {table['witness']['entries']}"
        )
        say(f"The ledger of {name}: {table['entries']} entries{seen}; it verifies.")
    if listed["state"] is None:
        say("There is no server.db yet.")
    say(f"Wrote {folder}. It holds answers and hidden states: keep it as secret as the ledger itself.")


@server.command(cls=ProgramCommand)
def restore(
    folder: Annotated[Path, typer.Argument(help="A folder that `server backup` wrote.")],
    server: ServerFile = HERE,
    as_json: Json = False,
) -> None:
    """Put back what is missing, damaged or older than a backup; refused where the ledger is behind its witness."""
    from understudy.server.restore import restore as put_back

    if_interrupted(
        "give the same command again: what was replaced is kept under its name with .before-restore"
    )
    done = put_back(config_of(server), folder)
    if as_json:
        emit({"restored": [{"what": part.what, "state": part.state, "why": part.why} for part in done]})
        return
    for part in done:
        say(f"{part.what}: {part.state} ({part.why})", hang=2)


@server.command(cls=ProgramCommand)
def prune(
    older_than: Annotated[
        float, typer.Option(help="Days: what ended longer ago than this is removed; at least 8.")
    ],
    server: ServerFile = HERE,
    as_json: Json = False,
) -> None:
    """Forget old questions, decided approvals and ended logins. Ledgers, tokens and the audit log stay whole."""
    from understudy.server.pruning import prune as forget
    from understudy.server.store import as_text

    if_interrupted("what is left is whole: give the same command again")
    with opened_store(server) as store:
        done = forget(store, days=older_than, by=by_terminal())
    if as_json:
        counts = {"questions": done.questions, "approvals": done.approvals, "logins": done.logins}
        emit({"before": as_text(done.before), **counts})
        return
    say(
        f"Removed {done.questions:,} questions, {done.approvals:,} approvals and {done.logins:,} logins from "
        f"before {as_text(done.before)}. What was paid for is in the ledger, and answered from there."
    )


@server.command(cls=ProgramCommand)
def clock(
    accept: Annotated[
        bool, typer.Option("--accept", help="Believe the machine's clock again, after it was wrongly ahead.")
    ] = False,
    server: ServerFile = HERE,
    as_json: Json = False,
) -> None:
    """The latest time that the server has seen, by which tokens expire; a clock that is set back revives none."""
    from understudy.server.audit_log import AuditLog
    from understudy.server.store import as_text

    with opened_store(server) as store:
        latest = store.now()
        if accept:
            store.accept_clock()
            AuditLog(store).write(by_terminal(), "accept clock", {"latest": as_text(latest)})
        behind = store.clock_is_behind
    if as_json:
        emit({"latest": as_text(latest), "machine": datetime.now(UTC).isoformat(), "behind_s": behind})
        return
    say(f"The latest time that was seen is {as_text(latest)}; the machine is {behind:.0f} seconds behind it.")
    if accept:
        say("The machine's clock is believed from now on. Restart the server if it is running.")
