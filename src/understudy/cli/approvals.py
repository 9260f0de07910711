"""`understudy approvals`, `approve` and `deny`: questions that cost more than one may take without asking."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from understudy.cli.help import ProgramCommand, ProgramGroup
from understudy.cli.options import Json, emit
from understudy.cli.server_options import HERE, ServerFile, by_terminal, opened_store
from understudy.cli.terminal import say, say_table
from understudy.percent import percent_of

approvals = typer.Typer(
    cls=ProgramGroup,
    help="Questions that wait for a custodian, because of what they cost.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

ApprovalId = Annotated[str, typer.Argument(help="The id of the question, as `approvals list` shows it.")]


@approvals.command("list", cls=ProgramCommand)
def list_approvals(
    everything: Annotated[
        bool, typer.Option("--all", help="Those that were decided, answered or expired as well.")
    ] = False,
    server: ServerFile = HERE,
    as_json: Json = False,
) -> None:
    """The questions that wait: who asks, what, why, and which part of the whole budget it takes."""
    from understudy.server.approvals import Approvals

    with opened_store(server) as store:
        kept = Approvals(store)
        found = [one.as_dict() for one in (kept.all() if everything else kept.waiting())]
    if as_json:
        emit({"approvals": found})
        return
    if not found:
        say("Nothing waits for approval." if not everything else "Nothing has ever waited for approval.")
        return
    rows = [("id", "table", "analyst", "of the budget", "until", "state", "question", "why")]
    for one in found:
        who = f"{one['analyst']}{' (agent)' if one['agent'] else ''}"
        rows.append(
            (
                one["id"], one["table"], who, percent_of(one["share"]), one["expires"][:10],
                one["state"], one["question"], one["why"],
            )
        )  # fmt: skip
    say_table(rows, left={0, 1, 2, 4, 5, 6, 7})


def approve(id: ApprovalId, server: ServerFile = HERE, as_json: Json = False) -> None:
    """Let a waiting question be asked: the server prices it again, asks it and keeps the answer."""
    from understudy.server.approvals import Approvals

    with opened_store(server) as store:
        told = Approvals(store).approve(id, by_terminal()).as_dict()
    _tell(told, "approved: the server asks it within moments, or when it is started", as_json=as_json)


def deny(
    id: ApprovalId,
    reason: Annotated[str, typer.Option("--reason", help="What the analyst is told.")],
    server: ServerFile = HERE,
    as_json: Json = False,
) -> None:
    """Refuse a waiting question, with a reason that its analyst reads."""
    from understudy.server.approvals import Approvals

    with opened_store(server) as store:
        told = Approvals(store).deny(id, by_terminal(), reason).as_dict()
    _tell(told, "denied", as_json=as_json)


def _tell(told: dict[str, Any], what: str, *, as_json: bool) -> None:
    if as_json:
        emit(told)
        return
    part = f"{percent_of(told['share'])} of the budget of {told['table']}"
    say(f"The question of {told['analyst']!r} for {part} is {what}.")
