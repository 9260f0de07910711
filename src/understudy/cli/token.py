"""`understudy token`: who may enter a server, and by which door."""

from __future__ import annotations

from typing import Annotated

import typer

from understudy.cli.help import ProgramCommand, ProgramGroup
from understudy.cli.options import Json, emit
from understudy.cli.server_options import HERE, ServerFile, by_terminal, opened_store
from understudy.cli.terminal import say, say_table, warn

token = typer.Typer(
    cls=ProgramGroup,
    help="Who may enter a server: make, list and revoke the tokens of analysts, auditors and custodians.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@token.command(cls=ProgramCommand)
def new(
    name: Annotated[
        str, typer.Argument(help="The analyst's name: budgets, limits and the history go by it.")
    ],
    role: Annotated[str, typer.Option(help="analyst, auditor or custodian.")] = "analyst",
    days: Annotated[float, typer.Option(help="Days until it expires.")] = 90,
    doors: Annotated[str, typer.Option(help="Where it is valid: some of http, pg, mcp.")] = "http,pg,mcp",
    agent: Annotated[
        bool, typer.Option("--agent", help="For a program that asks on its own: it needs approval sooner.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Prices and free answers only: it never pays.")
    ] = False,
    server: ServerFile = HERE,
    as_json: Json = False,
) -> None:
    """Make a token and print it, once: only its hash is kept."""
    from understudy.server.tokens import Tokens

    wanted = [door.strip() for door in doors.split(",") if door.strip()]
    with opened_store(server, new=True) as store:
        made, secret = Tokens(store).make(
            name, role=role, doors=wanted, days=days, agent=agent, read_only=read_only, by=by_terminal()
        )
        told = made.as_dict(store.now())
        place = store.path
    if as_json:
        emit({"token": secret, **told})
        return
    say(secret)
    say(
        f"This is the token of {name!r} ({role}; {', '.join(told['doors'])}), valid until {told['expires'][:10]}. "
        f"It is shown once and kept as a hash in {place}: hand it over by a safe way. Its id is {made.id}: "
        f"`understudy token revoke {made.id}` ends it.",
        err=True,
    )


@token.command("list", cls=ProgramCommand)
def list_tokens(server: ServerFile = HERE, as_json: Json = False) -> None:
    """Every token with its role, doors, expiry, last use and state; secrets are not known."""
    from understudy.server.tokens import Tokens

    with opened_store(server) as store:
        found = [made.as_dict(store.now()) for made in Tokens(store).all()]
        behind = store.clock_is_behind
    if behind > 60:
        warn(
            f"The clock of this machine is {behind / 3600:.1f} hours behind the latest time that the server has "
            f"seen; tokens expire by the later. If the clock was wrongly ahead, see `understudy server clock`."
        )
    if as_json:
        emit({"tokens": found})
        return
    if not found:
        say("There are no tokens: `understudy token new NAME` makes one.")
        return
    rows = [("id", "analyst", "role", "doors", "kind", "expires", "last use", "state")]
    for made in found:
        kinds = [
            name for name, is_one in (("agent", made["agent"]), ("read-only", made["read_only"])) if is_one
        ]
        rows.append(
            (
                made["id"],
                made["analyst"],
                made["role"],
                ",".join(made["doors"]),
                ", ".join(kinds),
                made["expires"][:10],
                (made["last_use"] or "never")[:16].replace("T", " "),
                made["state"],
            )
        )
    say_table(rows, left=set(range(8)))


@token.command(cls=ProgramCommand)
def revoke(
    id: Annotated[str, typer.Argument(help="The token's id, as `token list` shows it.")],
    server: ServerFile = HERE,
    as_json: Json = False,
) -> None:
    """End a token and the browser logins that were opened with it; a running server notices within a second."""
    from understudy.server.tokens import Tokens

    with opened_store(server) as store:
        made = Tokens(store).revoke(id, by=by_terminal())
        told = made.as_dict(store.now())
    if as_json:
        emit(told)
        return
    say(f"The token {made.id} of {made.analyst!r} is revoked.")
